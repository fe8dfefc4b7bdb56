"""Recordings of the sensors at a black box, interpolated in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.dynamics.assembly.sensor_reading import PointReading, SensorReading
from remora.errors import InvalidValue, ShapeError
from remora.model.arguments import positive
from remora.model.numbers import finite, frozen, unit_pose


class SensorRecording:
    """Samples of the sensors at a black box over time.

    Between two samples wrenches, twists and rates are interpolated linearly and poses along a
    screw; at a sample they are exact. Outside the samples there is no data: that is an error.

    Attributes:
        t: times of the samples, increasing, `(n,)`, s.
        wrench: of the sensor at the base, `(n, 6)`, or None.
        points: motions of the connection points, arrays with n rows.
        max_gap: longest time between neighbouring samples that may be bridged, s; None: any.
    """

    def __init__(
        self,
        t: ArrayLike,
        wrench: ArrayLike | None = None,
        points: Mapping[str, PointReading] | None = None,
        max_gap: float | None = None,
    ) -> None:
        """Check that all columns have one row per time."""
        self.t = frozen(finite("t of a sensor recording", t))
        if self.t.ndim != 1 or len(self.t) < 2 or not np.all(np.diff(self.t) > 0.0):
            raise InvalidValue(
                "t of a sensor recording must be an array (n,) of at least two increasing times"
            )
        self.max_gap = (
            None if max_gap is None else positive("max_gap of a sensor recording", max_gap)
        )
        self.wrench = None if wrench is None else self._column("wrench", wrench, 6)
        self.points: dict[str, PointReading] = {}
        for name, point in (points or {}).items():
            pose = point.pose
            self.points[name] = PointReading(
                self._column(f"twist of {name!r}", point.twist, 6),
                self._column(f"rate of {name!r}", point.rate, 6),
                None if pose is None else self._poses(f"pose of {name!r}", pose),
            )

    def _column(self, what: str, x: ArrayLike, size: int) -> Array:
        column = finite(f"{what} of a sensor recording", x, size)
        if column.shape != (len(self.t), size):
            raise ShapeError(
                f"{what} of a sensor recording has shape {column.shape}; its {len(self.t)} times "
                f"need ({len(self.t)}, {size})"
            )
        return frozen(column)

    def _poses(self, what: str, x: ArrayLike) -> Array:
        return frozen(unit_pose(f"{what} of a sensor recording", self._column(what, x, 8)))

    def at(self, t: ArrayLike, name: str = "") -> SensorReading:
        """Return the reading at a time, or at times `(...)`.

        Args:
            t: time, s.
            name: of the black box, for error messages.

        Raises:
            InvalidValue: where there is no sample, or only samples further apart than `max_gap`.
        """
        t = asarray(t)
        who = f"black box {name!r}" if name else "the sensor recording"
        first, last = float(self.t[0]), float(self.t[-1])
        outside = (t < first) | (t > last)
        if np.any(outside):
            when = float(t[outside][0] if t.shape else t)
            raise InvalidValue(
                f"{who} has no data at t = {when:.9g} s: its recording covers {first:.9g} to "
                f"{last:.9g} s"
            )
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        gap = self.t[k + 1] - self.t[k]
        s = (t - self.t[k]) / gap
        stale = (gap > (np.inf if self.max_gap is None else self.max_gap)) & (s > 0.0) & (s < 1.0)
        if np.any(stale):
            when, width = (float(np.asarray(x)[stale][0] if t.shape else x) for x in (t, gap))
            raise InvalidValue(
                f"{who} has only stale data at t = {when:.9g} s: its samples are {width:.6g} s "
                f"apart, max_gap is {self.max_gap:.6g} s"
            )
        points = {point: self._point(point, k, s) for point in self.points}
        wrench = None if self.wrench is None else _between(self.wrench, k, s)
        return SensorReading(wrench, points)

    def _point(self, name: str, k: Array, s: Array) -> PointReading:
        columns: Any = self.points[name]
        pose: Any = columns.pose
        if pose is not None:
            pose = dual_quaternion.sclerp(pose[k], pose[k + 1], s)
        return PointReading(_between(columns.twist, k, s), _between(columns.rate, k, s), pose)

    def __repr__(self) -> str:
        """Return the number of samples, the time they cover and the points."""
        points = ", ".join(self.points) or "none"
        return (
            f"SensorRecording({len(self.t)} samples, {self.t[0]:.6g} to {self.t[-1]:.6g} s, "
            f"points: {points})"
        )


def _between(x: Array, k: Array, s: Array) -> Array:
    part = s[..., None]
    return (1.0 - part) * x[k] + part * x[k + 1]
