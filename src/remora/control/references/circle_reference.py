"""A motion of a pose on a circle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, cos, sin, sqrt
from remora.algebra.vector import cross, dot
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.control.references.pose_reference import POSE_OUTPUTS
from remora.control.references.time_laws import TIME_LAWS, time_law
from remora.errors import InvalidValue
from remora.model.robot import Robot


class CircleReference(Component):
    """A reference of a pose whose origin moves on a circle, with constant orientation.

    p = c + cos φ e + sin φ (n × e), φ = 2π turns s(t), with e from the centre c to the start and n
    the unit normal; s(t) goes from 0 to 1 by a time law, so the motion begins and ends at rest.

    Outputs: `pose`, `(8,)`; `twist`, `(6,)`, own axes; `twist_rate`, the rate of its components.
    """

    start_point: ArrayLike = parameter("where it begins, inertial axes", "vector", unit="m", size=3)
    center: ArrayLike = parameter("c, inertial axes", "vector", unit="m", size=3)
    normal: ArrayLike = parameter("n; the part of it along e is removed", "vector", size=3)
    duration: float = parameter("of the motion", unit="s", above=0.0)
    orientation: ArrayLike = parameter(
        "of the frame in the inertial frame", "orientation", default=(1.0, 0.0, 0.0, 0.0), key="rpy"
    )
    turns: float = parameter("number of turns; negative: the other way round", default=1.0)
    law: str = parameter(
        "of time; `trapezoidal` has a quarter of the time for each ramp", "choice",
        default="minimum_jerk", choices=tuple(TIME_LAWS),
    )  # fmt: skip
    start: float = parameter("time at which it begins", default=0.0, unit="s", minimum=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        arm = np.asarray(self.start_point) - np.asarray(self.center)
        if np.linalg.norm(np.cross(np.asarray(self.normal), arm)) < 1e-9:
            raise InvalidValue(
                "the normal of a circle must not point along its radius, nor be zero"
            )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        quarter = 0.25 * self.duration
        times = tuple(self.start + i * quarter for i in (0, 1, 3, 4))
        return Interface(outputs=POSE_OUTPUTS, breaks=times)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return pose, twist and its rate."""
        since = asarray(at.t)[..., None] - self.start
        s = time_law(self.law)(since, self.duration, 0.25 * self.duration)
        angle, rate, push = (2.0 * np.pi * self.turns * x for x in s)
        center, arm, n = asarray(self.center), asarray(self.start_point), asarray(self.normal)
        arm = arm - center
        n = n - arm * (dot(n, arm) / dot(arm, arm))
        side = cross(n, arm) / sqrt(dot(n, n))
        out, along = cos(angle) * arm + sin(angle) * side, cos(angle) * side - sin(angle) * arm
        back = quaternion.conjugate(asarray(self.orientation))
        v = quaternion.rotate(back, rate * along)
        vdot = quaternion.rotate(back, push * along - rate * rate * out)
        still = 0.0 * v
        return {
            "pose": pose.from_parts(asarray(self.orientation), center + out),
            "twist": concatenate([still, v]),
            "twist_rate": concatenate([still, vdot]),
        }
