"""A motion of joints through way-points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, asarray
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_names, joint_signal
from remora.components.parameter import parameter
from remora.control.references import segments
from remora.control.references.time_laws import TIME_LAWS
from remora.errors import InvalidValue, ShapeError
from remora.model.robot import Robot


class JointReference(Component):
    """A reference of joints: straight lines in joint space through way-points, at rest at each.

    q_d = w_0 + Σ_i s_i (w_{i+1} - w_i), with s_i(t) from 0 to 1 by a time law: `minimum_jerk`, or
    `trapezoidal` with constant accelerations. All joints of a segment begin and end together.

    Outputs: `position`, `velocity`, `acceleration`, `(k,)`.

    The durations are given, or are the shortest that keep the largest speeds and accelerations.
    Durations that are given together with limits and exceed them are an error.
    """

    waypoints: Any = parameter("`(m, k)`, m ≥ 2", "places", unit="rad or m")
    joints: Sequence[str] = parameter("its joints; all by default", "joints", default=())
    durations: Any = parameter(
        "one for all segments or one for each; None: from the limits", "durations", default=None,
        unit="s", above=0.0,
    )  # fmt: skip
    law: str = parameter("of time", "choice", default="minimum_jerk", choices=tuple(TIME_LAWS))
    max_speed: Any = parameter(
        "one, or one by joint",
        "joint limits",
        default=None,
        unit="rad/s or m/s",
        above=0.0,
        fixed=True,
    )
    max_acceleration: Any = parameter(
        "likewise; None: not limited",
        "joint limits",
        default=None,
        unit="rad/s² or m/s²",
        above=0.0,
        fixed=True,
    )
    start: float = parameter("time at which it begins", default=0.0, unit="s", minimum=0.0)
    ramps: Array = field(init=False)

    def __post_init__(self) -> None:
        """Check, and find the durations."""
        super().__post_init__()
        try:
            points = np.array(self.waypoints, dtype=float)
        except (TypeError, ValueError):
            raise ShapeError("waypoints must be finite, (m, k) with m ≥ 2, of numbers") from None
        if points.ndim != 2 or len(points) < 2 or not np.all(np.isfinite(points)):
            raise ShapeError(f"waypoints must be finite, (m, k) with m ≥ 2, not {points.shape}")
        object.__setattr__(self, "waypoints", points)
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
        names = joint_names(robot, self.joints)
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
