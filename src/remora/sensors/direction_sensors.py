"""Sensors of directions and fields that are given in the inertial frame."""

from __future__ import annotations

import math

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, cos, less, select, sqrt
from remora.algebra.vector import dot
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot
from remora.sensors.sensor import Sensor, VectorSensor, on_a_body


class Magnetometer(VectorSensor, unit="T", size=3):
    """A sampled magnetometer: a field in the axes of a frame.

    (1 + scale) ∘ R(misalignment)ᵀ Rᵀ B + bias + walk + σ n at each tick, with the field B in
    inertial axes; errors are those of `RateGyro`.

    Input: `field`, `(3,)`, T, inertial axes. Output: `measured_field`, `(3,)`, T.
    """

    quantity = "measured_field"
    frame: str = parameter("body or frame it is mounted on", "frame")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        on_a_body(robot, self.frame)
        return super().interface(robot)

    def inputs(self, robot: Robot) -> dict[str, Signal]:
        """Return the field."""
        return {"field": Signal(3, "T")}

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(3, "T")

    def true(self, at: Context) -> Array:
        """Return the field in the frame's axes."""
        return quaternion.rotate(quaternion.conjugate(at.rotation(self.frame)), at.inputs["field"])


class SunSensor(Sensor, unit="rad", size=3):
    """A sampled sun sensor: the direction of a source of light in the axes of a frame.

    The unit vector R(bias + walk + σ n)ᵀ Rᵀ s, with the direction s in inertial axes, while it is
    within the field of view, a cone about the frame's z axis.

    Input: `direction`, `(3,)`, inertial axes, of any length; zero: there is none, as in eclipse.
    Outputs: `sun`, `(3,)`; `valid`, 0 where the last measurement stays, otherwise 1.
    """

    sees = True
    quantity = "sun"
    frame: str = parameter("body or frame it is mounted on; it looks along its z axis", "frame")
    half_angle: float = parameter(
        "of the field of view; by default it sees all directions", default=math.pi, unit="rad",
        above=0.0, maximum=math.pi, kw_only=True,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        on_a_body(robot, self.frame)
        return super().interface(robot)

    def inputs(self, robot: Robot) -> dict[str, Signal]:
        """Return the direction of the source."""
        return {"direction": Signal(3)}

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(3)

    def error_signal(self, robot: Robot) -> Signal:
        """Return the signal of a rotation vector."""
        return Signal(3, "rad")

    def true(self, at: Context) -> Array:
        """Return the direction in the frame's axes, a unit vector; zero for none."""
        s = at.inputs["direction"]
        size = dot(s, s)
        unit = s / sqrt(select(less(0.0, size), size, 1.0))
        return quaternion.rotate(quaternion.conjugate(at.rotation(self.frame)), unit)

    def measured(self, at: Context) -> Array:
        """Return the direction that is measured."""
        return quaternion.rotate(quaternion.exp(-0.5 * self.error(at)), self.true(at))

    def seen(self, at: Context) -> Array:
        """Return whether the source is in the field of view."""
        s = self.true(at)
        return select(less(0.5, dot(s, s)[..., 0]), in_cone(s, self.half_angle), 0.0)


def in_cone(p: Array, half_angle: ArrayLike) -> Array:
    """Return 1 where points `(..., 3)` lie in a cone about the z axis, otherwise 0."""
    # rounding must not hide anything from what sees all directions
    least = sqrt(dot(p, p) + 1e-300) * (cos(asarray(half_angle)) - 1e-15)
    return select(less(least[..., 0], p[..., 2]), 1.0, 0.0)
