"""What is measured at the connection points of a black box: readings, checked by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.numbers import finite, unit_pose


@dataclass(frozen=True)
class PointReading:
    """The measured motion of a connection point, in the point's frame.

    Attributes:
        twist: [ω, v], `(..., 6)`.
        rate: its rate, `(..., 6)`.
        pose: pose of the point in the inertial frame, `(..., 8)`; needed where there is gravity,
            unless the rate is an accelerometer's (see `BlackBox`).
    """

    twist: ArrayLike
    rate: ArrayLike
    pose: ArrayLike | None = None


class BaseState(NamedTuple):
    """What a live black box receives: the motion of its base, in its base frame.

    Attributes:
        twist: [ω, v], `(..., 6)`.
        rate: of the twist's components, `(..., 6)`, without gravity; in a run the mean over the
            last period. None where it is not known: in forward dynamics and at the first tick.
        pose: in the inertial frame, `(..., 8)`; None beyond a user's object or a black box that
            does not measure the pose of its point.
        gravity: acceleration in the inertial frame, `(3,)`, m/s².
    """

    twist: Array
    rate: Array | None
    pose: Array | None
    gravity: Array


@dataclass(frozen=True)
class SensorReading:
    """What the sensors at a black box read at one time.

    Attributes:
        wrench: of the force-torque sensor at its base, [f, τ] in its base frame, `(..., 6)`; None
            for a root, which has no predecessor.
        points: motions of its connection points, by name.
        time: time stamp of the reading, s, which `BlackBox.max_age` needs; None for one made at
            the call.
    """

    wrench: ArrayLike | None = None
    points: Mapping[str, PointReading] = field(default_factory=dict[str, PointReading])
    time: float | None = None


def checked_wrench(name: str, reading: SensorReading) -> Array:
    """Return the wrench of a reading of the subsystem `name`, or raise."""
    if reading.wrench is None:
        raise InvalidValue(f"black box {name!r} has no wrench in its reading")
    return _measured("wrench", name, reading.wrench, 6)


def checked_point(name: str, reading: SensorReading, point: str) -> tuple[BodyMotion, Array | None]:
    """Return motion and pose of a point of a reading of the subsystem `name`, or raise."""
    if point not in reading.points:
        raise UnknownName(f"point in the reading of black box {name!r}", point, reading.points)
    at = reading.points[point]
    if not isinstance(at, PointReading):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RemoraError(
            f"black box {name!r}: the motion of point {point!r} must be a PointReading, not "
            f"{type(at).__name__}"
        )
    twist = _measured(f"twist of point {point!r}", name, at.twist, 6)
    rate = _measured(f"rate of point {point!r}", name, at.rate, 6)
    if at.pose is None:
        return BodyMotion(twist, rate), None
    what = f"black box {name!r}: its measured pose of point {point!r}"
    return BodyMotion(twist, rate), unit_pose(what, at.pose)


def known_points(name: str, points: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise if a reading has points that the black box does not declare."""
    allowed = tuple(allowed)
    for point in points:
        if point not in allowed:
            raise UnknownName(f"connection point of black box {name!r}", point, allowed)


def _measured(what: str, name: str, value: ArrayLike, size: int) -> Array:
    return finite(f"black box {name!r}: its measured {what}", value, size)
