"""A rate gyro: the angular velocity of a frame."""

from __future__ import annotations

from remora.algebra.array_ops import Array
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot
from remora.sensors.sensor import VectorSensor, on_a_body


class RateGyro(VectorSensor, unit="rad/s", size=3):
    """A sampled gyroscope with three axes, those of a frame.

    rate = (1 + scale) ∘ R(misalignment)ᵀ ω + bias + walk + σ n at each tick, within ±limit and
    rounded to the resolution, with standard normal numbers n, and a bias that walks randomly:
    walk ← walk + drift √T m, T the sample time.

    Output: `rate`, `(3,)`, rad/s. State: `walk`, `(3,)`, rad/s.
    """

    quantity = "rate"
    frame: str = parameter("body or frame it is mounted on", "frame")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        on_a_body(robot, self.frame)
        return super().interface(robot)

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(3, "rad/s")

    def true(self, at: Context) -> Array:
        """Return the angular velocity in the frame's axes."""
        return at.angular_velocity(self.frame)
