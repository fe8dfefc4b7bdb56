"""Ranges of the joints as bounds on q, and which speeds may be used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates, is_free, kind
from remora.model.robot import Robot

#: Stands for infinity in compiled code, rad or m.
UNBOUNDED = 1e30
#: A joint this close to the end of its range is at its limit, rad or m.
AT_LIMIT = 1e-9


@dataclass(frozen=True, eq=False)
class JointRanges:
    """Bounds of the coordinates of q, and the speeds that may be used.

    Attributes:
        lower: `(nq,)`, rad or m; -UNBOUNDED where there is no limit.
        upper: `(nq,)`.
        free: 1 for each speed that may be used, else 0, `(nv,)`.
    """

    lower: Array
    upper: Array
    free: Array


def coordinate_indices(robot: Robot) -> list[int | None]:
    """Return, for each speed, the index of the coordinate that it is the rate of, or None."""
    found: list[int | None] = [None] * robot.nv
    for joint in robot.joints:
        if joint.mimic is None and in_coordinates(joint):
            found[joint.v] = list(range(robot.nq)[joint.q])
    return found


def joint_ranges(robot: Robot, locked: Collection[str], base: str) -> JointRanges:
    """Return the ranges of a robot's joints; a follower's limits hold for its leader, too.

    Args:
        robot: the robot.
        locked: names of joints that must not move.
        base: "fixed": free joints on the inertial frame do not move either.
    """
    lower, upper = np.full(robot.nq, -UNBOUNDED), np.full(robot.nq, UNBOUNDED)
    free = np.ones(robot.nv)
    for joint in robot.joints:
        if not in_coordinates(joint) or kind(joint).nq == 0:
            continue
        low, high = joint.limits.lower, joint.limits.upper
        if joint.mimic is not None:
            if joint.mimic.ratio == 0.0:
                continue
            ends = (np.stack([low, high]) - joint.mimic.offset) / joint.mimic.ratio
            low, high = ends.min(axis=0), ends.max(axis=0)
        lower[joint.q] = np.maximum(lower[joint.q], low)
        upper[joint.q] = np.minimum(upper[joint.q], high)
        if np.any(lower[joint.q] > upper[joint.q]):
            raise InvalidValue(f"joint {joint.name!r} and the joints that follow it share no range")
    for joint in robot.joints:
        if base == "fixed" and joint.parent < 0 and is_free(joint):
            free[joint.v] = 0.0
    for name in locked:
        if name not in robot.joints:
            raise UnknownName("joint", name, robot.joints.names)
        free[robot.joints[name].v] = 0.0
    return JointRanges(lower, upper, free)


def at_limits(robot: Robot, ranges: JointRanges, q: Array) -> tuple[str, ...]:
    """Return the names of joints that stand at an end of their range."""
    near = (q - ranges.lower <= AT_LIMIT) | (ranges.upper - q <= AT_LIMIT)
    return tuple(j.name for j in robot.joints if j.mimic is None and np.any(near[j.q]))
