"""Black boxes: subsystems known only through measurements at their connection points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from remora.algebra import screw
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.dynamics.assembly.sensor_reading import (
    BaseState,
    SensorReading,
    checked_point,
    checked_wrench,
    known_points,
)
from remora.dynamics.assembly.sensor_recording import SensorRecording
from remora.dynamics.recursive.outward_pass import BodyMotion
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.identity.table import Table
from remora.model.arguments import not_negative, number

#: Sign that turns a sensor's wrench into the wrench of the predecessor on the black box.
SENSOR_SIGNS: Table[str, float] = Table({"reaction": -1.0, "actuation": 1.0})

#: A live source: (time, motion of the base; None for a root) -> what the sensors read.
LiveSource = Callable[[ArrayLike, BaseState | None], SensorReading]


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A subsystem of which only sensor data is known (GET_FROM_SENSORS of SA24).

    A sensor between predecessor and black box is usually mounted so that it reads the reaction,
    the wrench of the black box on its predecessor. The recursion propagates the opposite, the
    actuation: ζ = -ζ_sensor [SA24, footnote 15]. `sensor` says which of them the data is.

    Attributes:
        source: a recording, or a function `(t, base) -> SensorReading` that is called with the
            time and the motion of its base, a `BaseState` with twist, its rate, pose and gravity
            (None for a root).
        points: names of its connection points.
        sensor: `reaction` (default) or `actuation`.
        accelerometer: whether measured rates contain minus the acceleration of gravity, as an
            accelerometer's do; otherwise gravity is added, which takes the poses of the points.
        max_age: largest age of a live reading, s, which then needs a time stamp; None: any. The
            gaps of a recording are limited by its `max_gap`.
    """

    source: SensorRecording | LiveSource
    points: tuple[str, ...] = ()
    sensor: Literal["reaction", "actuation"] = "reaction"
    accelerometer: bool = False
    max_age: float | None = None

    def __post_init__(self) -> None:
        """Check the source and the words."""
        if not isinstance(self.source, SensorRecording) and not callable(self.source):
            raise RemoraError(
                "the source of a BlackBox is a SensorRecording or a function (t, base) -> "
                f"SensorReading, not {type(self.source).__name__}"
            )
        if self.sensor not in SENSOR_SIGNS:
            raise UnknownName("kind of sensor", self.sensor, SENSOR_SIGNS)
        if isinstance(self.points, str):
            raise RemoraError(f"points={self.points!r} of a BlackBox; write ({self.points!r},)")
        object.__setattr__(self, "points", tuple(self.points))
        if self.max_age is not None:
            not_negative("max_age of a BlackBox", self.max_age)
            if isinstance(self.source, SensorRecording):
                raise RemoraError(
                    "max_age of a BlackBox is for live sources; of a SensorRecording, set max_gap"
                )

    def read(self, name: str, t: ArrayLike | None, base: BaseState | None) -> SensorReading:
        """Return the checked sensor readings of the subsystem `name` at time t."""
        if t is None:
            raise InvalidValue(f"subsystem {name!r} is a black box: its data needs the time, t=...")
        if isinstance(self.source, SensorRecording):
            known_points(name, self.source.points, self.points)
            return self.source.at(t, name)
        try:
            reading = self.source(t, base)
        except Exception as error:
            kind = type(error).__name__
            raise RemoraError(f"black box {name!r}: its source raised {kind}: {error}") from error
        if not isinstance(reading, SensorReading):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError(
                f"black box {name!r}: its source returned {type(reading).__name__}, not a "
                "SensorReading"
            )
        known_points(name, reading.points, self.points)
        self._check_age(name, t, reading.time)
        return reading

    def _check_age(self, name: str, t: ArrayLike, stamp: float | None) -> None:
        if stamp is None:
            if self.max_age is not None:
                raise InvalidValue(
                    f"black box {name!r}: its reading has no time stamp, which "
                    f"max_age={self.max_age:.6g} s needs: SensorReading(..., time=t)"
                )
            return
        what = f"black box {name!r}: the time stamp of its reading"
        stamp = number(what, stamp, "0.25, in s")
        if not math.isfinite(stamp):
            raise InvalidValue(f"{what} must be a finite number of seconds, not {stamp}")
        if self.max_age is not None and np.max(np.abs(asarray(t) - stamp)) > self.max_age:
            latest = float(np.max(asarray(t)))
            raise InvalidValue(
                f"black box {name!r} has only stale data at t = {latest:.9g} s: its "
                f"reading is of t = {stamp:.9g} s, max_age is {self.max_age:.6g} s"
            )

    def wrench(self, name: str, reading: SensorReading) -> Array:
        """Return the wrench of the predecessor on the black box, in its base frame."""
        return SENSOR_SIGNS[self.sensor] * checked_wrench(name, reading)

    def motions(
        self, name: str, reading: SensorReading, used: Iterable[str], gravity: Array
    ) -> list[BodyMotion]:
        """Return the motions of the connection points in use.

        Args:
            name: of the subsystem.
            reading: what its sensors read.
            used: names of points.
            gravity: acceleration in the inertial frame, `(3,)`.
        """
        moved: list[BodyMotion] = []
        for point in used:
            motion, pose = checked_point(name, reading, point)
            if not self.accelerometer and np.any(asarray(gravity) != 0.0):
                if pose is None:
                    raise InvalidValue(
                        f"black box {name!r}: with gravity, the motion of point {point!r} needs "
                        "its pose, or accelerometer=True if the rate is an accelerometer's"
                    )
                ground = concatenate([np.zeros(3), -asarray(gravity)])
                rate = motion.rate + screw.adjoint_inverse(pose, ground)
                motion = motion._replace(rate=rate)
            moved.append(motion)
        return moved
