"""A motion of a pose on a circle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, cos, sin, sqrt
from remora.algebra.vector import cross, dot
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter_checks import number, vector
from remora.control.law_settings import LawComponentSettings
from remora.control.references.pose_reference import POSE_OUTPUTS
from remora.control.references.time_laws import time_law
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.settings_fields import AngleVector, NotNegative, Positive, Vector


class CircleReference(Component):
    """A reference of a pose whose origin moves on a circle, with constant orientation.

    p = c + cos φ e + sin φ (n × e), φ = 2π turns s(t), with e from the centre c to the start and n
    the unit normal; s(t) goes from 0 to 1 by a time law, so the motion begins and ends at rest.

    Outputs: `pose`, `(8,)`; `twist`, `(6,)`, own axes; `twist_rate`, the rate of its components.

    Attributes:
        start_point: where it begins, `(3,)`, m, inertial axes.
        center: c, `(3,)`, m.
        normal: n, `(3,)`; the part of it along e is removed.
        duration: s.
        orientation: quaternion of the frame in the inertial frame, `(4,)`.
        turns: number of turns, negative for the opposite direction.
        law: `minimum_jerk` or `trapezoidal`, with a quarter of the time for each ramp.
        start: time at which the motion begins, s.
    """

    start_point: ArrayLike
    center: ArrayLike
    normal: ArrayLike
    duration: float
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    turns: float = 1.0
    law: str = "minimum_jerk"
    start: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        time_law(self.law)
        for name in ("start_point", "center", "normal"):
            value = vector(f"{name} of a circle", getattr(self, name), 3)
            object.__setattr__(self, name, value)
        r = vector("orientation of a circle", self.orientation, 4)
        if abs(np.linalg.norm(r) - 1.0) > 1e-6:
            raise InvalidValue(f"orientation of a circle must be a unit quaternion, not {r}")
        object.__setattr__(self, "orientation", quaternion.normalize(r))
        duration = number("duration of a circle", self.duration, 0.0, above=True)
        object.__setattr__(self, "duration", duration)
        object.__setattr__(self, "start", number("start of a circle", self.start, 0.0))
        object.__setattr__(self, "turns", number("turns of a circle", self.turns, -np.inf))
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


class CircleReferenceSettings(LawComponentSettings):
    """The settings of a circle_reference component in a scenario file."""

    component: ClassVar[type[Component]] = CircleReference
    type: Literal["circle_reference"]
    start_point: Vector = Field(description="m, inertial axes")
    center: Vector = Field(description="m, inertial axes")
    normal: Vector = Field(description="normal of its plane, inertial axes")
    duration: Positive = Field(description="s")
    rpy: AngleVector = Field(default=[0.0, 0.0, 0.0], description="orientation: rad, or '30 deg'")
    turns: float = 1.0
    law: Literal["minimum_jerk", "trapezoidal"] = "minimum_jerk"
    start: NotNegative = Field(default=0.0, description="s")

    def made(self, robot: Robot, name: str) -> Component:
        """Return the component."""
        turned: Any = quaternion.from_rpy(np.array(self.rpy))
        return self.with_values(name, rpy=None, orientation=turned)
