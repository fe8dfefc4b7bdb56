"""A motion of joints through way-points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from remora.algebra.array_ops import Array, asarray
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.joint_signals import joint_signal
from remora.control.references import segments
from remora.errors import InvalidValue, ShapeError
from remora.model.robot import Robot
from remora.model.settings_fields import Angle, JointName, NotNegative, Positive, PositiveRate


class JointReference(Component):
    """A reference of joints: straight lines in joint space through way-points, at rest at each.

    q_d = w_0 + Σ_i s_i (w_{i+1} - w_i), with s_i(t) from 0 to 1 by a time law: `minimum_jerk`, or
    `trapezoidal` with constant accelerations. All joints of a segment begin and end together.

    Outputs: `position`, `velocity`, `acceleration`, `(k,)`.

    The durations are given, or are the shortest that keep the largest speeds and accelerations.
    Durations that are given together with limits and exceed them are an error.

    Attributes:
        waypoints: `(m, k)`, m ≥ 2, rad or m.
        joints: names of the joints; all by default.
        durations: s, one for all segments or m - 1; None: from the limits.
        law: `minimum_jerk` or `trapezoidal`.
        max_speed: rad/s or m/s, one or one by joint.
        max_acceleration: rad/s² or m/s², likewise; None: not limited.
        start: time at which the motion begins, s.
    """

    waypoints: Any
    joints: Sequence[str] = ()
    durations: Any = None
    law: str = "minimum_jerk"
    max_speed: Any = field(default=None, metadata={"fixed": True})
    max_acceleration: Any = field(default=None, metadata={"fixed": True})
    start: float = 0.0
    ramps: Array = field(init=False)

    def __post_init__(self) -> None:
        """Check, and find the durations."""
        try:
            points = np.array(self.waypoints, dtype=float)
        except (TypeError, ValueError):
            raise ShapeError("waypoints must be finite, (m, k) with m ≥ 2, of numbers") from None
        if points.ndim != 2 or len(points) < 2 or not np.all(np.isfinite(points)):
            raise ShapeError(f"waypoints must be finite, (m, k) with m ≥ 2, not {points.shape}")
        object.__setattr__(self, "waypoints", points)
        object.__setattr__(self, "start", number("start of a path", self.start, 0.0))
        steps = np.diff(points, axis=0)
        durations, ramps = segments.segment_times(
            "a joint_reference",
            self.law,
            len(steps),
            self.durations,
            [(steps, self.max_speed)],
            [(steps, self.max_acceleration)],
        )
        object.__setattr__(self, "durations", durations)
        object.__setattr__(self, "ramps", ramps)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        names = motion.joint_names(robot, self.joints)
        position = joint_signal(robot, names, "coordinate_unit")
        if self.waypoints.shape[-1] != position.size:
            raise InvalidValue(
                f"waypoints have {self.waypoints.shape[-1]} numbers for {position.size} coordinates"
            )
        return Interface(
            outputs={
                "position": position,
                "velocity": joint_signal(robot, names, "speed_unit"),
                "acceleration": joint_signal(robot, names, "acceleration_unit"),
            },
            breaks=segments.breaks(self.start, self.durations, self.ramps),
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return position, velocity and acceleration."""
        points = asarray(self.waypoints)
        steps = points[..., 1:, :] - points[..., :-1, :]
        s = segments.travelled(at.t, self.law, self.start, asarray(self.durations), self.ramps)
        along = [(x[..., None] * steps).sum(axis=-2) for x in s]
        return {
            "position": points[..., 0, :] + along[0],
            "velocity": along[1],
            "acceleration": along[2],
        }


class JointReferenceSettings(LawComponentSettings):
    """The settings of a joint_reference component in a scenario file."""

    component: ClassVar[type[Component]] = JointReference
    type: Literal["joint_reference"]
    waypoints: list[list[Angle]] = Field(min_length=2, description="rad, m, or '30 deg'")
    joints: list[JointName] = Field(default=[], description="joints; default: all")
    durations: list[Positive] | None = Field(default=None, description="of the segments, s")
    law: Literal["minimum_jerk", "trapezoidal"] = "minimum_jerk"
    max_speed: PositiveRate | None = Field(default=None, description="rad/s, m/s, or '5 deg/s'")
    max_acceleration: Positive | None = Field(default=None, description="rad/s² or m/s²")
    start: NotNegative = Field(default=0.0, description="s")
