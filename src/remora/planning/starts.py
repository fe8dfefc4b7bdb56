"""Starting points of inverse kinematics: the given configuration, then random ones."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue
from remora.model.arguments import single
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Joint, Robot
from remora.model.state import configuration, neutral, normalize
from remora.planning.joint_ranges import UNBOUNDED, JointRanges

#: A given configuration may be this far beyond its range; it is then moved to its end, rad or m.
SLACK = 1e-6


def first_start(robot: Robot, q0: ArrayLike | None, ranges: JointRanges) -> Array:
    """Return q0, checked, or the neutral configuration moved into its ranges."""
    if q0 is None:
        return np.clip(neutral(robot), ranges.lower, ranges.upper)
    q = normalize(robot, configuration(robot, single("q0", q0, robot.nq)))
    for joint in robot.joints:
        if joint.mimic is not None or not np.any(ranges.free[joint.v]):
            continue
        beyond = np.maximum(ranges.lower - q, q - ranges.upper)[joint.q].max(initial=0.0)
        if beyond > SLACK:
            raise InvalidValue(
                f"q0: joint {joint.name!r} is {beyond:.3g} beyond its range; limits=False ignores "
                "the ranges"
            )
    movable = _movable_coordinates(robot, ranges)
    return np.where(movable, np.clip(q, ranges.lower, ranges.upper), q)


def random_starts(
    robot: Robot, q: Array, ranges: JointRanges, count: int, rng: np.random.Generator
) -> Array:
    """Return random configurations `(count, nq)` within the ranges; locked joints stay."""
    drawn = np.repeat(q[None], count, axis=0)
    for joint in robot.joints:
        if joint.mimic is not None or not np.any(ranges.free[joint.v]):
            continue
        row = kind(joint)
        if in_coordinates(joint):
            drawn[:, joint.q] = _random_coordinates(joint, q, ranges, count, rng)
        else:
            drawn[:, joint.q] = [row.random(rng) for _ in range(count)]
    return drawn


def _random_coordinates(
    joint: Joint, q: Array, ranges: JointRanges, count: int, rng: np.random.Generator
) -> Array:
    """Return coordinates `(count, n)`, uniform in their range; within half a turn or 1 m of q."""
    half = np.array([np.pi if f.angular else 1.0 for f in kind(joint).freedoms])
    low, high = ranges.lower[joint.q], ranges.upper[joint.q]
    bounded = (low > -UNBOUNDED) & (high < UNBOUNDED)
    near_low = np.maximum(low, q[joint.q] - half)
    near_high = np.minimum(high, q[joint.q] + half)
    return rng.uniform(
        np.where(bounded, low, near_low), np.where(bounded, high, near_high), (count, half.size)
    )


def wrapped(robot: Robot, q: Array, near: Array, ranges: JointRanges) -> Array:
    """Return q with whole turns of unlimited revolute joints taken out, close to `near`."""
    leaders = {j.mimic.joint for j in robot.joints if j.mimic is not None}
    turns = np.zeros(robot.nq)
    for i, joint in enumerate(robot.joints):
        unlimited = joint.kind == "revolute" and joint.mimic is None and i not in leaders
        if unlimited and np.all(np.isinf([joint.limits.lower, joint.limits.upper])):
            turns[joint.q] = np.round((q[joint.q] - near[joint.q]) / (2.0 * np.pi))
    return q - 2.0 * np.pi * turns


def _movable_coordinates(robot: Robot, ranges: JointRanges) -> Array:
    movable = np.zeros(robot.nq, dtype=bool)
    for joint in robot.joints:
        movable[joint.q] = bool(np.any(ranges.free[joint.v]))
    return movable
