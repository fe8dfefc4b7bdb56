"""Joint stops: what pushes a joint back that has passed a limit of its range."""

from __future__ import annotations

import numpy as np

from remora.algebra.namespace import Array, ArrayLike, asarray, is_symbolic, less, select
from remora.dynamics.recursive.outward_pass import batch_shape, gather
from remora.errors import InvalidValue
from remora.model.joints import coordinates, in_coordinates, kind, speeds
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot


@takes_robot
def stop_forces(
    robot: Robot, q: ArrayLike, v: ArrayLike, stiffness: ArrayLike, damping: ArrayLike = 0.0
) -> Array:
    """Return the forces `(..., nv)` of elastic stops at the joints' limits.

    Beyond a limit by δ the stop pushes back with k δ (1 + d δ̇), and never pulls: continuous, no
    force at touch, and losses that grow with the speed of the impact [HC75].

    Args:
        robot: the robot; what counts are `limits.lower` and `limits.upper` of its joints.
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
    parts: list[Array] = []
    for joint in robot.joints:
        if not in_coordinates(joint):
            parts.append(np.zeros(kind(joint).nv))
            continue
        own, rate = coordinates(joint, q), speeds(joint, v)
        force = _push(own, rate, joint.limits.upper, k, d)
        force = force - _push(-own, -rate, -joint.limits.lower, k, d)
        parts.append(force if joint.mimic is None else joint.mimic.ratio * force)
    return gather(robot, parts, batch_shape(q, v))


def _push(own: Array, rate: Array, limit: Array, k: Array, d: Array) -> Array:
    """Return the force of a stop at an upper limit, where there is one."""
    finite = np.isfinite(limit)
    over = own - np.where(finite, limit, 0.0)
    touching = select(less(0.0, over), 1.0, 0.0) * np.where(finite, 1.0, 0.0)
    return -touching * k * over * _positive(1.0 + d * rate)


def _positive(x: Array) -> Array:
    return select(less(0.0, x), x, 0.0)
