"""A motion of a pose through way-points: screw motions, or straight lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.algebra.vector import cross
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.control.references import segments
from remora.control.references.time_laws import TIME_LAWS, Travel
from remora.errors import InvalidValue, ShapeError
from remora.model.robot import Robot

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
    """

    waypoints: Any = parameter("unit dual quaternions, `(m, 8)`, m ≥ 2", "poses")
    durations: Any = parameter(
        "one for all segments or one for each; None: from the limits", "durations", default=None,
        unit="s", above=0.0,
    )  # fmt: skip
    interpolation: str = parameter(
        "between the poses", "choice", default="screw", choices=INTERPOLATIONS
    )
    law: str = parameter("of time", "choice", default="minimum_jerk", choices=tuple(TIME_LAWS))
    max_speed: Any = parameter(
        "of the origin", "number", default=None, unit="m/s", above=0.0, fixed=True
    )
    max_acceleration: Any = parameter(
        "of the origin; None: not limited",
        "number",
        default=None,
        unit="m/s²",
        above=0.0,
        fixed=True,
    )
    max_angular_speed: Any = parameter(
        "of the frame", "number", default=None, unit="rad/s", above=0.0, fixed=True
    )
    max_angular_acceleration: Any = parameter(
        "of the frame; None: not limited",
        "number",
        default=None,
        unit="rad/s²",
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
            raise ShapeError("waypoints must be poses (m, 8) with m ≥ 2, of numbers") from None
        if points.ndim != 2 or len(points) < 2 or points.shape[1] != 8:
            raise ShapeError(f"waypoints must be poses (m, 8) with m ≥ 2, not {points.shape}")
        if not np.all(np.abs(np.linalg.norm(points[:, :4], axis=1) - 1.0) < 1e-6):
            raise InvalidValue("waypoints must be unit dual quaternions")
        object.__setattr__(self, "waypoints", dual_quaternion.normalize(points))
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
