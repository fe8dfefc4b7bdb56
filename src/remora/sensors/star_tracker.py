"""A star tracker: the attitude of a frame with bias and noise."""

from __future__ import annotations

from remora.algebra import quaternion
from remora.algebra.array_ops import Array
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot
from remora.sensors.sensor import Sensor, on_a_body


class StarTracker(Sensor, unit="rad", size=3):
    """A sampled star tracker: the orientation of a frame in the inertial frame.

    r exp(½(bias + walk + σ n)) at each tick, with the orientation r of the frame and standard
    normal numbers n; bias and σ are rotation vectors in the frame's axes, small angles.

    Output: `attitude`, `(4,)`, a unit quaternion. State: `walk`, `(3,)`, rad.
    """

    quantity = "attitude"
    frame: str = parameter("body or frame it is mounted on", "frame")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        on_a_body(robot, self.frame)
        return super().interface(robot)

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(4)

    def error_signal(self, robot: Robot) -> Signal:
        """Return the signal of a rotation vector."""
        return Signal(3, "rad")

    def true(self, at: Context) -> Array:
        """Return the attitude."""
        return at.rotation(self.frame)

    def measured(self, at: Context) -> Array:
        """Return the attitude that is measured."""
        return quaternion.mul(self.true(at), quaternion.exp(0.5 * self.error(at)))
