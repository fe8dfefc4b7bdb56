"""The dynamically equivalent manipulator (DEM): a fixed-base twin of a floating chain [FPG11].

For a floating chain of bodies 1 ... n, let s_i be the mass of bodies 1 to i, M = s_n, and b_i the
vector from the centre of mass of body i to that of body i+1 [FPG11, eqs. 33-44]. About the common
centre of mass

    2T = Σ_jk M σ_j (1 - σ_k) ḃ_j·ḃ_k + rotation,    σ_i = s_i/M, j ≤ k,

which equals the energy of a chain on a spherical joint at the centre of mass, with every b_i scaled
by σ_i and the masses m'_i = m_i M²/(s_i-1 s_i). Lengths fixed in body i thus become L'_i = σ_i-1
L_i (joint i to centre of mass) and σ_i R_i (centre of mass to joint i+1). Inertias, axes and the
joints' own properties are unchanged.

Supported joints rotate bodies about points fixed in them (fixed, revolute, universal, spherical) or
are helical (the pitch is scaled). A prismatic joint is not supported: its travel, hence its
coordinate, would have to be scaled. Branches are not supported: edges e and f on two branches are
coupled by -M ν_e ν_f ḃ_e·ḃ_f, with ν the fraction of the mass beyond an edge. In a twin with the
same tree no body lies beyond both, so no masses and lengths can couple them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.refusals import needs_dynamics, require_free_base
from remora.errors import InvalidValue
from remora.model.joint_types import lookup
from remora.model.numbers import finite
from remora.model.robot import Body, Frame, Joint, Limits, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import children

#: Supported joint types: rotations about fixed points, and helical joints, whose pitch scales.
TURNING = ("fixed", "revolute", "universal", "spherical", "helical")


@takes_robot
@needs_dynamics
def equivalent_manipulator(robot: Robot, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Robot:
    """Return the fixed-base robot whose joints move as those of a floating one [FPG11, 33-44].

    Its first joint is spherical and located at the floating robot's centre of mass. With equal
    joint forces, joint states, base attitude and base angular velocity, both robots move alike,
    also with nonzero angular momentum. Frames on the last body have the same pose relative to the
    centre of mass. The mass of the first body has no effect and is unchanged. There is no gravity:
    a twin on the ground needs an air bearing or gravity compensation.

    Frames on bodies other than the last are omitted, since their poses differ; so are visible
    shapes.

    Args:
        robot: a chain on a free base; its joints fixed, revolute, helical, universal or spherical.
        origin: position of the centre of mass in the inertial frame, `(3,)`, m.

    Raises:
        InvalidValue: for another base, branches, joints that travel, or bodies without mass.
    """
    _refuse_unsupported(robot)
    masses = [asarray(body.mass) for body in robot.bodies]
    sums = [masses[0]]
    for m in masses[1:]:
        sums.append(asarray(sums[-1] + m))
    total = sums[-1]
    share = [asarray(s / total) for s in sums]  # σ_i
    last = len(masses) - 1
    bodies: list[Body] = []
    moved: list[Joint] = []
    for i, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        if i == 0:
            bodies.append(replace(body, com=np.zeros(3), geometry=()))
            moved.append(_spherical(joint, asarray(finite("origin", origin, 3))))
            continue
        mass = asarray(masses[i] * total * total / (sums[i - 1] * sums[i]))
        com = asarray(body.com) * share[i - 1][..., None]
        bodies.append(replace(body, mass=mass, com=com, geometry=()))
        placement = _scaled(robot, i - 1, joint.placement, share)
        shift = joint.q.start - 4, joint.v.start - 3
        moved.append(
            replace(
                joint,
                q=slice(shift[0], joint.q.stop - 4),
                v=slice(shift[1], joint.v.stop - 3),
                placement=placement,
                pitch=asarray(joint.pitch) * share[i - 1],
            )
        )
    frames = [
        replace(frame, placement=_scaled(robot, last, frame.placement, share))
        for frame in robot.frames
        if frame.body == last
    ]
    twin = replace(robot, name=f"{robot.name} equivalent", warnings=_left_out(robot, last))
    return twin.replace(bodies=bodies, joints=moved, frames=frames, gravity=np.zeros(3))


@takes_robot
def equivalent_state(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return q `(..., nq - 4)` and v `(..., nv - 3)` of the equivalent manipulator.

    It contains the attitude and angular velocity of the base and the joint states, without the
    base's translation.

    Args:
        robot: the floating robot.
        q: its configuration, `(..., nq)`.
        v: its velocity, `(..., nv)`.
    """
    require_free_base(robot)
    q, v = configuration(robot, q), velocity(robot, v)
    batch = batch_shape(q, v)
    q, v = with_batch(q, batch, 1), with_batch(v, batch, 1)
    return concatenate([q[..., :4], q[..., 8:]]), concatenate([v[..., :3], v[..., 6:]])


def _scaled(robot: Robot, i: int, placement: Array, share: list[Array]) -> Array:
    """Return a placement on body i scaled for the twin: σ_i-1 L_i + σ_i R_i [FPG11, eq. 37]."""
    com = asarray(robot.bodies[i].com)
    R = pose.translation(placement) - com
    p = share[i][..., None] * R
    if i > 0:
        p = p + share[i - 1][..., None] * com
    return pose.from_parts(placement[..., :4], p)


def _spherical(base: Joint, origin: Array) -> Joint:
    """Return the spherical joint of the first body, oriented like the floating base."""
    nv = lookup("spherical").nv
    unlimited = np.full(nv, np.inf)
    return replace(
        base,
        kind="spherical",
        q=slice(0, 4),
        v=slice(0, 3),
        placement=pose.from_parts(base.placement[..., :4], origin),
        limits=Limits(-unlimited, unlimited, unlimited, unlimited),
        damping=base.damping[..., :nv],
        friction=base.friction[..., :nv],
        rotor_inertia=base.rotor_inertia[..., :nv],
        stiffness=np.zeros(nv),
        spring_reference=np.zeros(nv),
    )


def _left_out(robot: Robot, last: int) -> tuple[str, ...]:
    gone: list[Frame] = [frame for frame in robot.frames if frame.body != last]
    return tuple(
        f"frame {frame.name!r} is left out: only what body {robot.bodies[last].name!r} carries is "
        "where it is on the floating robot"
        for frame in gone
    )


def _refuse_unsupported(robot: Robot) -> None:
    require_free_base(robot)
    name = f"robot {robot.name!r} has no equivalent manipulator"
    for i, body in enumerate(robot.bodies):
        carried = children(robot, i)
        if len(carried) > 1:
            names = ", ".join(repr(robot.bodies[k].name) for k in carried)
            raise InvalidValue(
                f"{name}: body {body.name!r} carries {names}, and only a serial chain has one "
                "(bodies on different branches are coupled through the base). Make the joints of "
                "all arms but one 'fixed' and load the robot with merge_fixed=True"
            )
    for joint in robot.joints[1:]:
        if joint.kind not in TURNING:
            raise InvalidValue(
                f"{name}: joint {joint.name!r} is {joint.kind}, and its travel would have to be "
                f"scaled; allowed are {', '.join(TURNING)}"
            )
        if joint.mimic is not None:
            raise InvalidValue(f"{name}: joint {joint.name!r} mimics another")
    for i, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        mass = asarray(body.mass)
        if mass.dtype != object and np.any(mass <= 0.0) and i == 0:
            raise InvalidValue(f"{name}: its base {body.name!r} (on {joint.name!r}) has no mass")
