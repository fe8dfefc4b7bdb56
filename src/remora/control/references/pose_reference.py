"""A motion of a pose through way-points: screw motions, or straight lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.algebra.vector import cross
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.components.signals import Signal
from remora.control.law_settings import LawComponentSettings
from remora.control.references import segments
from remora.control.references.time_laws import Travel
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import (
    AngleVector,
    NotNegative,
    Positive,
    PositiveRate,
    Settings,
    Vector,
)

#: How a segment leads from one pose to the next.
INTERPOLATIONS = ("screw", "straight")
#: The outputs of references of poses.
POSE_OUTPUTS = {"pose": Signal(8), "twist": Signal(6), "twist_rate": Signal(6)}


class PoseReference(Component):
    """A reference of a pose through way-points, at rest at each.

    `screw`: x = x_i exp(s log(x_i* x_{i+1})), one screw motion with rotation and translation along
    one axis at constant pitch (ScLERP) [VT18, section 2.2]. `straight`: the origin on a straight
    line, the orientation by the shortest rotation.

    s(t) goes from 0 to 1 by a time law, `minimum_jerk` or `trapezoidal`. A segment turns by at most
    half a turn: give way-points in between for more.

    Outputs: `pose`, `(8,)`; `twist`, `(6,)`, of the moving frame in its own axes; `twist_rate`, the
    rate of its components.

    The durations are given, or are the shortest that keep the largest speeds and accelerations, of
    the angular velocity and, in a screw motion, of the twist's linear part. Durations that are
    given together with limits and exceed them are an error.

    Attributes:
        waypoints: unit dual quaternions, `(m, 8)`, m ≥ 2.
        durations: s, one for all segments or m - 1; None: from the limits.
        interpolation: `screw` or `straight`.
        law: `minimum_jerk` or `trapezoidal`.
        max_speed: m/s.
        max_acceleration: m/s²; None: not limited.
        max_angular_speed: rad/s.
        max_angular_acceleration: rad/s²; None: not limited.
        start: time at which the motion begins, s.
    """

    waypoints: Any
    durations: Any = None
    interpolation: str = "screw"
    law: str = "minimum_jerk"
    max_speed: Any = field(default=None, metadata={"fixed": True})
    max_acceleration: Any = field(default=None, metadata={"fixed": True})
    max_angular_speed: Any = field(default=None, metadata={"fixed": True})
    max_angular_acceleration: Any = field(default=None, metadata={"fixed": True})
    start: float = 0.0
    ramps: Array = field(init=False)

    def __post_init__(self) -> None:
        """Check, and find the durations."""
        if self.interpolation not in INTERPOLATIONS:
            raise UnknownName("interpolation", self.interpolation, INTERPOLATIONS)
        try:
            points = np.array(self.waypoints, dtype=float)
        except (TypeError, ValueError):
            raise ShapeError("waypoints must be poses (m, 8) with m ≥ 2, of numbers") from None
        if points.ndim != 2 or len(points) < 2 or points.shape[1] != 8:
            raise ShapeError(f"waypoints must be poses (m, 8) with m ≥ 2, not {points.shape}")
        if not np.all(np.abs(np.linalg.norm(points[:, :4], axis=1) - 1.0) < 1e-6):
            raise InvalidValue("waypoints must be unit dual quaternions")
        object.__setattr__(self, "waypoints", dual_quaternion.normalize(points))
        object.__setattr__(self, "start", number("start of a path", self.start, 0.0))
        turns, moves = self._steps(self.waypoints)
        sizes = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (moves, turns)]
        durations, ramps = segments.segment_times(
            "a pose_reference",
            self.law,
            len(turns),
            self.durations,
            list(zip(sizes, (self.max_speed, self.max_angular_speed), strict=True)),
            list(zip(sizes, (self.max_acceleration, self.max_angular_acceleration), strict=True)),
        )
        object.__setattr__(self, "durations", durations)
        object.__setattr__(self, "ramps", ramps)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        times = segments.breaks(self.start, self.durations, self.ramps)
        return Interface(outputs=POSE_OUTPUTS, breaks=times)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return pose, twist and its rate."""
        s = segments.travelled(at.t, self.law, self.start, asarray(self.durations), self.ramps)
        points = asarray(self.waypoints)
        turns, moves = self._steps(points)
        along = self._straight if self.interpolation == "straight" else self._screw
        return along(points, turns, moves, s)

    def _steps(self, points: Array) -> tuple[Array, Array]:
        """Return rotation vectors and displacements of the segments, `(..., m - 1, 3)`."""
        before, after = points[..., :-1, :], points[..., 1:, :]
        u = 2.0 * dual_quaternion.log(dual_quaternion.mul(dual_quaternion.conjugate(before), after))
        if self.interpolation == "screw":
            return u[..., :3], u[..., 3:]
        return u[..., :3], pose.translation(after) - pose.translation(before)

    @staticmethod
    def _screw(points: Array, turns: Array, moves: Array, s: Travel) -> dict[str, Array]:
        u = concatenate([turns, moves])
        x = points[..., 0, :]
        for i in range(u.shape[-2]):
            part = dual_quaternion.exp(0.5 * s.s[..., i, None] * u[..., i, :])
            x = dual_quaternion.mul(x, part)
        rates = [(r[..., None] * u).sum(axis=-2) for r in (s.rate, s.acceleration)]
        return {"pose": x, "twist": rates[0], "twist_rate": rates[1]}

    @staticmethod
    def _straight(points: Array, turns: Array, moves: Array, s: Travel) -> dict[str, Array]:
        r = pose.rotation(points[..., 0, :])
        for i in range(turns.shape[-2]):
            r = quaternion.mul(r, quaternion.exp(0.5 * s.s[..., i, None] * turns[..., i, :]))
        place, speed, push = ((x[..., None] * moves).sum(axis=-2) for x in s)
        omega, turning = ((x[..., None] * turns).sum(axis=-2) for x in (s.rate, s.acceleration))
        back = quaternion.conjugate(r)
        v = quaternion.rotate(back, speed)
        return {
            "pose": pose.from_parts(r, pose.translation(points[..., 0, :]) + place),
            "twist": concatenate([omega, v]),
            "twist_rate": concatenate([turning, quaternion.rotate(back, push) - cross(omega, v)]),
        }


class WaypointSettings(Settings):
    """A pose in a scenario file."""

    xyz: Vector = Field(default=[0.0, 0.0, 0.0], description="m, inertial axes")
    rpy: AngleVector = Field(default=[0.0, 0.0, 0.0], description="rad, or '30 deg'")

    @property
    def pose(self) -> Array:
        """The pose, `(8,)`."""
        return pose.from_xyz_rpy(self.xyz, self.rpy)


class PoseReferenceSettings(LawComponentSettings):
    """The settings of a pose_reference component in a scenario file."""

    component: ClassVar[type[Component]] = PoseReference
    type: Literal["pose_reference"]
    waypoints: list[WaypointSettings] = Field(min_length=2, description="poses")
    durations: list[Positive] | None = Field(default=None, description="of the segments, s")
    interpolation: Literal["screw", "straight"] = "screw"
    law: Literal["minimum_jerk", "trapezoidal"] = "minimum_jerk"
    max_speed: Positive | None = Field(default=None, description="m/s")
    max_acceleration: Positive | None = Field(default=None, description="m/s²")
    max_angular_speed: PositiveRate | None = Field(default=None, description="rad/s or '5 deg/s'")
    max_angular_acceleration: Positive | None = Field(default=None, description="rad/s²")
    start: NotNegative = Field(default=0.0, description="s")

    def made(self, robot: Robot, name: str) -> Component:
        """Return the component."""
        return self.with_values(name, waypoints=[x.pose for x in self.waypoints])
