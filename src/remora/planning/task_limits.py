"""Limits of the joints as bounds on the next velocities and torques.

A joint at distance d from the end of its range may have a next speed v with v dt ≤ d, or, with an
acceleration limit a, v dt + v²/(2a) ≤ d, so that it can always brake in time. Where an acceleration
limit and a limit of range or speed contradict each other, the joint decelerates at its limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, ShapeError
from remora.model.arguments import flag, positive, real_numbers, shown
from remora.model.joints import is_free
from remora.model.robot import Robot
from remora.planning.joint_ranges import UNBOUNDED, JointRanges, coordinate_indices


@dataclass(frozen=True, eq=False)
class TaskLimits:
    """Which limits `rm.tasks.solve_tasks` keeps.

    Attributes:
        position: the joints' ranges.
        velocity: the joints' speed limits.
        acceleration: largest acceleration, rad/s² or m/s²: one number for all joints, or by the
            joint's name; None: unlimited.
        torque: the joints' effort limits, N m or N; needs masses.
    """

    position: bool = True
    velocity: bool = True
    acceleration: float | Mapping[str, ArrayLike] | None = None
    torque: bool = False


def checked_limits(given: Any) -> TaskLimits:
    """Return the limits, by default those of `TaskLimits()`, or raise."""
    if given is None:
        return TaskLimits()
    if not isinstance(given, TaskLimits):
        raise InvalidValue(f"limits must be rm.tasks.TaskLimits(...), not {shown(given)}")
    for name in ("position", "velocity", "torque"):
        flag(f"limits: {name}", getattr(given, name))
    return given


@dataclass(frozen=True, eq=False)
class SpeedBounds:
    """Bounds of the next velocity, `(nv,)`, and what each stands for.

    Attributes:
        lower: `(nv,)`.
        upper: `(nv,)`.
        names: `(lower, upper)` of each speed, for messages.
    """

    lower: Array
    upper: Array
    names: tuple[tuple[str, str], ...]


def speed_bounds(
    robot: Robot, q: Array, v: Array, limits: TaskLimits, ranges: JointRanges, dt: float
) -> SpeedBounds:
    """Return the bounds of the next velocity; free bases have none."""
    a = _accelerations(robot, limits)
    lower, upper = np.full(robot.nv, -UNBOUNDED), np.full(robot.nv, UNBOUNDED)
    low_name, high_name = [""] * robot.nv, [""] * robot.nv
    labels = _labels(robot)

    def tighten(i: int, low: float, high: float, what: str) -> None:
        if low > lower[i]:
            lower[i], low_name[i] = low, f"{what} of {labels[i]}"
        if high < upper[i]:
            upper[i], high_name[i] = high, f"{what} of {labels[i]}"

    speeds = _speed_limits(robot)
    for i, k in enumerate(coordinate_indices(robot)):
        if limits.velocity and np.isfinite(speeds[i]):
            tighten(i, -speeds[i], speeds[i], "velocity")
        if limits.position and k is not None and labels[i]:
            below, above = q[k] - ranges.lower[k], ranges.upper[k] - q[k]
            tighten(i, -_brakable(below, a[i], dt), _brakable(above, a[i], dt), "position")
        if np.isfinite(a[i]):
            low, high = v[i] - a[i] * dt, v[i] + a[i] * dt
            lower[i], upper[i] = np.clip([lower[i], upper[i]], low, high)
            if lower[i] in (low, high):
                low_name[i] = f"acceleration of {labels[i]}"
            if upper[i] in (low, high):
                high_name[i] = f"acceleration of {labels[i]}"
    names = tuple(zip(low_name, high_name, strict=True))
    return SpeedBounds(lower, upper, names)


def effort_limits(robot: Robot) -> Array:
    """Return the effort limits `(nv,)`, infinite for free bases and where none is specified."""
    found = np.full(robot.nv, np.inf)
    for joint in robot.joints:
        if joint.mimic is None and not _is_base(robot, joint.v):
            found[joint.v] = joint.limits.effort
    return found


def _brakable(distance: float, a: float, dt: float) -> float:
    """Return the largest speed towards the end of a range; away from it where it is passed."""
    if distance >= UNBOUNDED / 2:
        return UNBOUNDED
    if np.isinf(a) or distance <= 0.0:
        return distance / dt
    return a * (np.sqrt(dt * dt + 2.0 * distance / a) - dt)


def _speed_limits(robot: Robot) -> Array:
    """Return the speed limits; a follower's hold for its leader, too."""
    found = np.full(robot.nv, np.inf)
    for joint in robot.joints:
        if _is_base(robot, joint.v):
            continue
        ratio = 1.0 if joint.mimic is None else abs(joint.mimic.ratio)
        if ratio > 0.0:
            found[joint.v] = np.minimum(found[joint.v], joint.limits.velocity / ratio)
    return found


def _accelerations(robot: Robot, limits: TaskLimits) -> Array:
    found = np.full(robot.nv, np.inf)
    given = limits.acceleration
    if given is None:
        return found
    moving = [j for j in robot.joints if j.mimic is None and not _is_base(robot, j.v)]
    table = given if isinstance(given, Mapping) else {j.name: given for j in moving}
    for name, value in table.items():
        joint = robot.joints[robot.joint_index(name)]
        size = joint.v.stop - joint.v.start
        what = f"acceleration limit of joint {name!r}"
        a = real_numbers(value)
        if a is None or a.shape not in ((), (size,)):
            raise ShapeError(f"{what} must be one number or {size}, not {shown(value)}")
        found[joint.v] = [positive(what, x) for x in np.broadcast_to(a, (size,))]
    return found


def _labels(robot: Robot) -> list[str]:
    """Return the joint's name for each speed; empty for free bases."""
    labels = [""] * robot.nv
    for joint in robot.joints:
        if joint.mimic is None and not _is_base(robot, joint.v):
            labels[joint.v] = [joint.name] * (joint.v.stop - joint.v.start)
    return labels


def _is_base(robot: Robot, place: slice) -> bool:
    """Tell whether these speeds are a free base's."""
    return any(j.v == place and j.parent < 0 and is_free(j) for j in robot.joints)
