"""What a capture, a latch and a release do to the state, as equations on any scalar.

A constraint that begins to act transmits the impulse that removes the relative velocity it forbids;
one that pushes its bodies apart, the impulse that brings about the wanted relative velocity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, pose, quaternion, vector
from remora.algebra.array_ops import Array, asarray, concatenate, sqrt
from remora.dynamics.constraints.constraint_types import count
from remora.dynamics.constraints.loop_kinematics import (
    active_constraints,
    loop_at,
    loops_at,
    relative_pose,
)
from remora.dynamics.constraints.projection import held_impulse
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of
from remora.dynamics.recursive.outward_pass import moving_links
from remora.errors import RemoraError
from remora.model import joints
from remora.model.constraint import GEAR, ROD
from remora.model.robot import Robot

#: By the name of a released constraint: velocity of its child, in the axes of its frame on the
#: parent, m/s.
Velocities = tuple[tuple[str, tuple[float, ...]], ...]


class VelocityJump(NamedTuple):
    """The velocity after an impulse of the active constraints.

    Attributes:
        v: velocity after, `(..., nv)`.
        impulses: of all active constraints on their children, `(..., n)`, see `impulses_by_name`.
        energy: change of the kinetic energy, `(...)`, J.
        misfit: what of the wanted G v no impulse can bring about, `(..., m)`.
    """

    v: Array
    impulses: Array
    energy: Array
    misfit: Array


def capture_jump(robot: Robot, q: Array, v: Array, held: tuple[str, ...] = ()) -> VelocityJump:
    """Return the velocity after the active constraints removed the velocity that they forbid.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        held: names of joints that are prescribed or locked.
    """
    return _jump(robot, q, v, held, None)


def separation_jump(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...] = (), velocities: Velocities = ()
) -> VelocityJump:
    """Return the velocity after constraints push their bodies apart.

    Args:
        robot: the robot with the constraints that are released still active.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        held: names of joints that are prescribed or locked.
        velocities: of the constraints that push; others keep their bodies together.
    """
    given, links = dict(velocities), moving_links(robot, q, np.zeros(robot.nv))
    targets: list[Array] = []
    for c in active_constraints(robot):
        wanted = given.get(c.name)
        if wanted is None:
            targets.append(np.zeros(count(c)))
        elif c.kind == GEAR:
            raise RemoraError(f"constraint {c.name!r} is a gear: it cannot push bodies apart")
        else:
            r = quaternion.conjugate(pose.rotation(relative_pose(robot, c, q)))
            velocity = quaternion.rotate(r, np.array(wanted))
            twist = concatenate([np.zeros_like(velocity), velocity])
            targets.append(vector.apply(loop_at(robot, c, links).Lambda, twist))
    return _jump(robot, q, v, held, concatenate(targets))


def held_jump(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...], speeds: Array
) -> tuple[Array, Array]:
    """Return the velocity after joints were brought to other speeds by impulses of their drives.

    H Δv has no components but those of the joints' drives: H_ff Δv_f = -H_fh Δv_h.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        held: names of the joints.
        speeds: has their speeds, `(..., nv)`.

    Returns:
        Velocity after, `(..., nv)`, and the work of the impulses, `(...)`, J.
    """
    H, chosen = mass_matrix_of(robot, q), {i for n in held for i in _speeds_of(robot, n)}
    inside = [i for i in range(robot.nv) if i in chosen]
    free = [i for i in range(robot.nv) if i not in chosen]
    change = (speeds - v)[..., inside]
    if free:
        push = -vector.apply(H[..., free, :][..., inside], change)
        moved = linear.solve(H[..., free, :][..., free], push[..., None])[..., 0]
        change = concatenate([change, moved])
    change = change[..., np.argsort([*inside, *free])]
    after = v + change
    work = 0.5 * vector.dot(after + v, vector.apply(H, change))[..., 0]
    return after, asarray(work)


def _speeds_of(robot: Robot, name: str) -> range:
    return range(robot.nv)[robot.joints[name].v]


def latched_field(robot: Robot, name: str) -> str:
    """Return the field of a constraint that a latch sets."""
    fields = {GEAR: "offset", ROD: "length"}
    return fields.get(robot.constraints[name].kind, "child_placement")


def latched_value(robot: Robot, q: Array, name: str) -> Array:
    """Return what a latch sets the field of a constraint to: its bodies stay where they are.

    The frame on the child is placed where the frame on the parent is, so that a joint of any type
    is at zero; a rod takes its present length, a gear its present offset.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        name: of the constraint.
    """
    c = robot.constraints[name]
    if c.kind == GEAR:
        leading, driven = (joints.coordinates(robot.joints[i], q) for i in (c.parent, c.child))
        return asarray((driven - c.ratio * leading)[..., 0])
    x = relative_pose(robot, c, q)
    if c.kind == ROD:
        p = pose.translation(x)
        return asarray(sqrt(vector.dot(p, p))[..., 0])
    placed = dual_quaternion.mul(c.child_placement, dual_quaternion.conjugate(x))
    return dual_quaternion.normalize(placed)


def impulses_by_name(robot: Robot, impulses: Array) -> dict[str, Array]:
    """Return the impulse of each active constraint on its child.

    [f, τ] in the axes of the constraint's frame on the child, about its origin, `(..., 6)`; of a
    gear `(..., 1)`.

    Args:
        robot: the robot.
        impulses: of all of them, `(..., n)`.
    """
    found, start = dict[str, Array](), 0
    for c in active_constraints(robot):
        stop = start + (1 if c.kind == GEAR else 6)
        found[c.name], start = impulses[..., start:stop], stop
    return found


def _jump(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...], wanted: Array | None
) -> VelocityJump:
    batch = batch_shape(q, v)
    change, multipliers, misfit, _ = held_impulse(robot, q, v, held, wanted)
    parts, start = list[Array](), 0
    loops = loops_at(robot, moving_links(robot, q, np.zeros(robot.nv)))
    for c, loop in zip(active_constraints(robot), loops, strict=True):
        stop = start + count(c)
        own = multipliers[..., start:stop]
        parts.append(own if c.kind == GEAR else vector.apply(loop.V, own))
        start = stop
    after = v + change
    # a difference of kinetic energies without their cancellation
    energy = 0.5 * vector.dot(after + v, vector.apply(mass_matrix_of(robot, q), change))[..., 0]
    return VelocityJump(
        with_batch(after, batch, 1), with_batch(concatenate(parts), batch, 1),
        with_batch(asarray(energy), batch, 0), misfit,
    )  # fmt: skip
