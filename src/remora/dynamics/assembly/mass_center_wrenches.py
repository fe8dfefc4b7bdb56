"""SA24's N(X, Ξ, Ξ̇): wrenches at the joints from the motions of the centres of mass.

Ξ are the twists of the centres of mass and Ξ̇ their rates, in body axes; frame i - 1 is the frame of
joint i before it moves, fixed in the preceding body [SA24, Algorithms 5 and 7]. The functions take
any robot; of an assembly, `assembly.to_robot()`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, quaternion, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, stack
from remora.dynamics.assembly.composition import WrenchParts
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import accelerations, poses, twists
from remora.dynamics.refusals import needs_dynamics
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot

_cross = vector.cross


class MassCenterMotions(NamedTuple):
    """Motions of the centres of mass of all bodies, [ω, v] in body axes, `(..., nb, 6)` each.

    Attributes:
        twists: Ξ.
        rates: Ξ̇, the rates of the components of Ξ.
    """

    twists: Array
    rates: Array


@takes_robot
def mass_center_motions(
    robot: Robot, q: ArrayLike, v: ArrayLike, vdot: ArrayLike
) -> MassCenterMotions:
    """Return Ξ and Ξ̇, the twists of the centres of mass and their rates [SA24, Algorithm 5].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
    """
    com = stack([asarray(body.com) for body in robot.bodies], axis=-2)
    at_origin = twists(robot, q, v), accelerations(robot, q, v, vdot)
    return MassCenterMotions(
        *(
            concatenate([x[..., :3], x[..., 3:] + _cross(x[..., :3], com)], trailing=1)
            for x in at_origin
        )
    )


@takes_robot
@needs_dynamics
def joint_wrenches(
    robot: Robot,
    q: ArrayLike,
    twists: ArrayLike,
    rates: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> Array:
    """Return Γ = N(X, Ξ, Ξ̇), the wrenches [f, τ] at all joints in frames i - 1, `(..., nb, 6)`.

    Frame i - 1 is the frame of joint i before it moves, not that of the preceding link.

    f_i = m_i (D(ξ̇_i) + P(ξ_i) × D(ξ_i) - g), τ_i = I_i P(ξ̇_i) + P(ξ_i) × I_i P(ξ_i) about the
    centre of mass, and Γ_i the sum over all bodies that joint i carries
    [SA24, eqs. 9, 10, Algorithm 7].

    Args:
        robot: the robot; with its gravity.
        q: configuration, `(..., nq)`.
        twists: Ξ, `(..., nb, 6)`.
        rates: Ξ̇, `(..., nb, 6)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
            SA24's Z_e are those that the robot exerts, with the opposite sign.
    """
    q = configuration(robot, q)
    n = len(robot.bodies)
    xi, rate = finite("twists", twists, n, 6), finite("rates", rates, n, 6)
    external = None if wrenches is None else finite("wrenches", wrenches, n, 6)
    rotations = poses(robot, q)[..., :4]
    on: list[Array] = []
    for i, body in enumerate(robot.bodies):
        omega, alpha = xi[..., i, :3], rate[..., i, :3]
        down = quaternion.rotate(quaternion.conjugate(rotations[..., i, :]), robot.gravity)
        acceleration = rate[..., i, 3:] + _cross(omega, xi[..., i, 3:]) - down
        force = asarray(body.mass)[..., None] * acceleration
        spin = vector.apply(body.inertia, omega)
        moment = vector.apply(body.inertia, alpha) + _cross(omega, spin)
        W = concatenate([force, moment + _cross(asarray(body.com), force)])
        on.append(W if external is None else W - external[..., i, :])
    at_joints: list[Array] = [np.zeros(6)] * n
    for i in reversed(range(n)):
        joint = robot.joints[i]
        relative = joints.relative_pose(joint, q)
        moved = dual_quaternion.mul(dual_quaternion.conjugate(joint.placement), relative)
        at_joints[i] = screw.adjoint(moved, on[i])
        if joint.parent >= 0:
            on[joint.parent] = on[joint.parent] + screw.adjoint(relative, on[i])
    batch = batch_shape(
        q, xi[..., 0, :], rate[..., 0, :], *([] if external is None else [external[..., 0, :]])
    )
    return with_batch(stack(at_joints, axis=-2), batch, trailing=2)


@takes_robot
def wrench_parts(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    wrenches: ArrayLike | None = None,
) -> WrenchParts:
    """Return Γ_M, Γ_C, Γ_g and Γ_Z, in frames i - 1 [SA24, section IV, eqs. 9, 10].

    Γ_M = N(X, 0, Ξ̇) - Γ_g, Γ_C = N(X, Ξ, 0) - Γ_g, Γ_g = N(X, 0, 0); the paper prints the first
    two with gravity, which then counts three times in their sum. Ξ̇ contains the terms of velocity
    of the kinematics, so Γ_M does not vanish where v̇ = 0, and Γ_C depends on the centres of mass
    being the reference points; `Assembly.wrench_parts` splits by v and v̇ instead.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, as for `joint_wrenches`.
    """
    motion = mass_center_motions(robot, q, v, vdot)
    none = 0.0 * motion.twists
    gravity = joint_wrenches(robot, q, none, none)
    external = np.zeros_like(gravity)
    if wrenches is not None:
        external = joint_wrenches(robot, q, none, none, wrenches) - gravity
    return WrenchParts(
        joint_wrenches(robot, q, none, motion.rates) - gravity,
        joint_wrenches(robot, q, motion.twists, none) - gravity,
        gravity,
        external,
    )
