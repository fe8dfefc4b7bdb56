"""Ranges of an arm's joints, and configurations that fill them evenly.

A joint without limits has a documented default: an angle turns once around, [-π, π]; with one limit
it turns once around from there; a spherical joint takes every orientation. A length without limits
has no default: it must be given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import selections
from remora.algebra.array_ops import Array, ArrayLike, asarray, cos, sin, sqrt, stack
from remora.analysis.arm import moving_joints, named_joints
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates, is_free, kind
from remora.model.robot import FrameLike, Joint, Robot
from remora.planning.joint_ranges import UNBOUNDED, JointRanges
from remora.planning.joint_ranges import joint_ranges as planned_ranges

#: Ranges by joint: two numbers, or as many pairs as the joint has coordinates.
Ranges = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class JointRange:
    """The values that one joint takes.

    Attributes:
        name: name of the joint.
        q: index of its first coordinate in q.
        lower: smallest coordinates, rad or m; empty for a spherical joint, which takes every
            orientation.
        upper: largest coordinates.
        default: whether a coordinate has the default range because a limit is missing.
    """

    name: str
    q: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    default: bool = False

    @property
    def parameters(self) -> int:
        """How many numbers in [0, 1] describe a position of the joint."""
        return len(self.lower) or 3


def joint_ranges(
    robot: Robot,
    frame: FrameLike,
    joints: Sequence[str] | None = None,
    ranges: Ranges | None = None,
    sliding: bool = False,
) -> tuple[JointRange, ...]:
    """Return the range of each joint that moves the frame.

    Args:
        robot: the robot.
        frame: the name of a body or frame, the index of a body, or a Frame.
        joints: names of the joints that move; default: all that move the frame.
        ranges: other ranges than the joints' limits, by joint: `{"elbow": (-1.0, 1.0)}`.
        sliding: whether lengths without limits are allowed; their range is then infinite.

    Raises:
        InvalidValue: if a length has no limits, or a range is empty.
    """
    moving = [_leader(robot, j) for j in moving_joints(robot, frame)]
    names = list(dict.fromkeys(robot.joints[j].name for j in moving))
    for name in named_joints(joints or ()):
        if name not in names:
            raise UnknownName("joint that moves the frame", name, names)
    chosen = [name for name in names if joints is None or name in joints]
    given = dict(ranges or {})
    for name in given:
        if name not in chosen:
            raise UnknownName("joint of `ranges`", name, chosen)
    if not chosen:
        raise InvalidValue("joints is empty: name at least one joint that moves the frame")
    limits = planned_ranges(robot, (), "floating")  # those of followers hold for their leaders
    return tuple(_range(robot.joints[n], limits, given.get(n), sliding) for n in chosen)


def _leader(robot: Robot, j: int) -> int:
    mimic = robot.joints[j].mimic
    return j if mimic is None else mimic.joint


def _range(joint: Joint, limits: JointRanges, given: ArrayLike | None, sliding: bool) -> JointRange:
    row = kind(joint)
    if is_free(joint):
        raise InvalidValue(f"joint {joint.name!r} is free: its position has no range to sample")
    if not in_coordinates(joint):
        if given is not None:
            raise InvalidValue(f"joint {joint.name!r} is {joint.kind}: it has no range of angles")
        return JointRange(joint.name, joint.q.start, (), ())
    low, high = (
        [float(x) if abs(x) < UNBOUNDED else float(np.copysign(np.inf, x)) for x in side[joint.q]]
        for side in (limits.lower, limits.upper)
    )
    default = False
    if given is not None:
        pairs = np.reshape(asarray(given), (-1, 2))
        if pairs.shape[0] != row.nv or not np.all(np.isfinite(pairs)):
            raise InvalidValue(f"the range of joint {joint.name!r} must be {row.nv} x 2 numbers")
        low, high = [float(x) for x in pairs[:, 0]], [float(x) for x in pairs[:, 1]]
    for k, freedom in enumerate(row.freedoms):
        if math.isfinite(low[k]) and math.isfinite(high[k]):
            continue
        if not freedom.angular and not sliding:
            raise InvalidValue(
                f"joint {joint.name!r} slides without limits: give its range in m, "
                f"ranges={{{joint.name!r}: (lower, upper)}}"
            )
        default = True
        if not freedom.angular:
            continue
        if math.isfinite(low[k]):
            high[k] = low[k] + 2.0 * math.pi
        elif math.isfinite(high[k]):
            low[k] = high[k] - 2.0 * math.pi
        else:
            low[k], high[k] = -math.pi, math.pi
    if any(a > b for a, b in zip(low, high, strict=True)):
        raise InvalidValue(f"the range of joint {joint.name!r} is empty: from {low} to {high}")
    return JointRange(joint.name, joint.q.start, tuple(low), tuple(high), default)


def parameters(ranges: Sequence[JointRange]) -> int:
    """Return how many numbers in [0, 1] describe a sample."""
    return sum(r.parameters for r in ranges)


def additive_recurrence(index: Array, dimensions: int) -> Array:
    """Return the points number `index` of a low-discrepancy sequence in the unit cube.

    u_i = frac(½ + k g⁻ⁱ) with g the root of g^(d+1) = g + 1, the generalized golden ratio. Every
    part of the sequence can be computed by itself, so sampling can be divided and resumed.

    Args:
        index: numbers k, `(..., 1)`.
        dimensions: d.

    Returns:
        `(..., d)` in [0, 1).
    """
    g = 2.0
    for _ in range(64):
        g = (1.0 + g) ** (1.0 / (dimensions + 1.0))
    steps = [math.fmod(g ** -(i + 1.0), 1.0) for i in range(dimensions)]
    parts = [0.5 + index[..., 0] * step for step in steps]
    return stack([part - selections.floor(part) for part in parts])


def configurations(ranges: Sequence[JointRange], q0: Array, u: Array) -> Array:
    """Return q `(..., nq)`: q0 with the sampled joints at u `(..., d)`, d of `parameters`.

    Linear between the limits; orientations are uniform [Shoemake's formula].
    """
    entries = [q0[..., i] for i in range(q0.shape[-1])]
    at = 0
    for r in ranges:
        own = [u[..., at + k] for k in range(r.parameters)]
        at += r.parameters
        values = (
            [low + (high - low) * x for low, high, x in zip(r.lower, r.upper, own, strict=True)]
            if r.lower
            else _orientation(own)
        )
        for k, value in enumerate(values):
            entries[r.q + k] = value
    return stack(entries)


def _orientation(u: Sequence[Array]) -> list[Array]:
    share, a, b = (asarray(x) for x in (u[0], 2.0 * math.pi * u[1], 2.0 * math.pi * u[2]))
    near, far = sqrt(asarray(1.0 - share)), sqrt(share)
    return [near * sin(a), near * cos(a), far * sin(b), far * cos(b)]
