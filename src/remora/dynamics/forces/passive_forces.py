"""Passive forces of joints: viscous damping, dry friction, springs and elastic stops.

`forward_dynamics` takes the sum of all generalized forces; these are some of them:

    vdot = forward_dynamics(robot, q, v, tau + friction_forces(robot, v))
"""

from __future__ import annotations

import math

import numpy as np

from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    absolute,
    asarray,
    is_symbolic,
    less,
    select,
    stack,
)
from remora.dynamics.joint_arrays import batch_shape, gather
from remora.errors import InvalidValue
from remora.model.joints import coordinates, in_coordinates, kind, speeds
from remora.model.robot import Joint, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot


@takes_robot
def friction_forces(robot: Robot, v: ArrayLike, slip_speed: ArrayLike = 1e-3) -> Array:
    """Return `-d v - f v/(abs(v) + s)`, `(..., nv)`: damping d and dry friction f of each joint.

    Dry friction is smoothed: it has half its magnitude at the slip speed s and all of it far above.

    Args:
        robot: the robot.
        v: velocity, `(..., nv)`.
        slip_speed: s, rad/s or m/s, positive.
    """
    v, slip = velocity(robot, v), asarray(slip_speed)
    if not is_symbolic(slip) and not np.all(slip > 0.0):
        raise InvalidValue(f"slip_speed must be positive, not {slip_speed!r}")
    parts: list[Array] = []
    for joint in robot.joints:
        own = speeds(joint, v)
        loss = joint.damping * own + joint.friction * own / (absolute(own) + slip)
        parts.append(-loss if joint.mimic is None else -joint.mimic.ratio * loss)
    return gather(robot, parts, batch_shape(v))


@takes_robot
def spring_forces(robot: Robot, q: ArrayLike) -> Array:
    """Return `-k (q - q_0)`, `(..., nv)`: the forces of the joints' springs.

    The stiffness k and the reference q_0 at which a spring is relaxed are properties of the joint,
    `joint.stiffness` and `joint.spring_reference`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    parts: list[Array] = []
    for joint in robot.joints:
        if not has_spring(joint):
            parts.append(np.zeros(kind(joint).nv))
            continue
        force = -joint.stiffness * (coordinates(joint, q) - joint.spring_reference)
        parts.append(force if joint.mimic is None else joint.mimic.ratio * force)
    return gather(robot, parts, batch_shape(q))


def has_spring(joint: Joint) -> bool:
    """Tell whether a joint has a spring, or may have one: a symbolic stiffness."""
    stiffness = np.asarray(joint.stiffness)
    return is_symbolic(stiffness) or bool(np.any(stiffness != 0.0))


@takes_robot
def stop_forces(
    robot: Robot, q: ArrayLike, v: ArrayLike, stiffness: ArrayLike, damping: ArrayLike = 0.0
) -> Array:
    """Return the forces `(..., nv)` of elastic stops at the joints' limits.

    At a penetration δ the stop pushes back with k δ (1 + d δ̇), and never pulls. The force is
    continuous and zero at first contact; losses grow with impact speed [HC75].

    Args:
        robot: the robot; `limits.lower` and `limits.upper` of its joints are used.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        stiffness: k, N m/rad or N/m, positive.
        damping: d, s/rad or s/m; a bounce loses about the fraction 4/3 d v of its energy.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    k, d = asarray(stiffness), asarray(damping)
    for name, value in (("stiffness", k), ("damping", d)):
        if not is_symbolic(value) and not np.all((value >= 0.0) & np.isfinite(value)):
            raise InvalidValue(f"{name} of stops must not be negative: {value}")
    return contact_forces(robot, q, v, in_contact(robot, q), k, d)


def stop_overlaps(robot: Robot, q: Array) -> Array:
    """Return the penetrations δ `(..., m)` of the joint limits, negative within the range.

    One number for each finite limit, joint by joint, the upper limits of a joint before its lower
    ones; rad or m.
    """
    own = [sign * (coordinates(j, q)[..., k] - limit) for _, j, k, sign, limit in _limits(robot)]
    return stack(own) if own else np.zeros((*q.shape[:-1], 0))


def stop_rates(robot: Robot, v: Array) -> Array:
    """Return the rates δ̇ `(..., m)` of `stop_overlaps`, rad/s or m/s."""
    own = [sign * speeds(joint, v)[..., k] for _, joint, k, sign, _ in _limits(robot)]
    return stack(own) if own else np.zeros((*v.shape[:-1], 0))


def in_contact(robot: Robot, q: Array) -> Array:
    """Return 1 for each stop in contact and 0 for each that is not, `(..., m)`."""
    return select(less(0.0, stop_overlaps(robot, q)), 1.0, 0.0)


def contact_forces(
    robot: Robot, q: Array, v: Array, contact: Array, stiffness: ArrayLike, damping: ArrayLike
) -> Array:
    """Return the forces `(..., nv)` of the stops marked as in contact.

    With contact states frozen, the force is a smooth function of q and v, even across the point
    where contact begins or ends. Event location needs this.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        contact: 1 or 0 for each finite limit, `(..., m)`, see `stop_overlaps`.
        stiffness: k, N m/rad or N/m.
        damping: d, s/rad or s/m.
    """
    k, d = asarray(stiffness), asarray(damping)
    over, rate = stop_overlaps(robot, q), stop_rates(robot, v)
    push = contact * k * over * _positive(1.0 + d * rate)
    limits = _limits(robot)
    parts: list[Array] = []
    for index, joint in enumerate(robot.joints):
        own: list[Array] = [np.zeros(())] * kind(joint).nv
        for i, (other, _, place, sign, _) in enumerate(limits):
            if other == index:
                own[place] = own[place] - sign * push[..., i]
        force = stack(own) if own else np.zeros(0)
        parts.append(force if joint.mimic is None else joint.mimic.ratio * force)
    return gather(robot, parts, batch_shape(q, v))


def _limits(robot: Robot) -> list[tuple[int, Joint, int, float, float]]:
    """Return every finite limit: its joint, which coordinate, +1 for an upper one, its value."""
    return [
        (index, joint, k, sign, x)
        for index, joint in enumerate(robot.joints)
        if in_coordinates(joint)
        for sign, values in ((1.0, joint.limits.upper), (-1.0, joint.limits.lower))
        for k, x in enumerate(np.atleast_1d(values).tolist())
        if math.isfinite(x)
    ]


def _positive(x: Array) -> Array:
    return select(less(0.0, x), x, 0.0)
