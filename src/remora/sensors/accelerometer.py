"""An accelerometer: the specific force at the origin of a frame."""

from __future__ import annotations

from remora.algebra import quaternion, screw, vector
from remora.algebra.array_ops import Array, asarray
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.dynamics.kinematics import accelerations
from remora.model.robot import Robot
from remora.sensors.sensor import VectorSensor, on_a_body, true_acceleration


class Accelerometer(VectorSensor, unit="m/s²", size=3):
    """A sampled accelerometer with three axes at the origin of a frame, anywhere on a body.

    It measures the specific force f = Rᵀ(a - g), with the acceleration a of the frame's origin, by
    the equations of motion with all loads that act just before the tick, and gravity g. In free
    fall it is zero in the centre of mass, and ω̇ × r + ω × (ω × r) at a distance r from there.
    Errors are those of `RateGyro`.

    Input: `acceleration`, `(nv,)`, the true acceleration of the robot. Output: `specific_force`,
    `(3,)`, m/s², the frame's axes. State: `walk`, `(3,)`, m/s².
    """

    quantity = "specific_force"
    frame: str = parameter("body or frame it is mounted on", "frame")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if the frame does not move."""
        on_a_body(robot, self.frame)
        return super().interface(robot)

    def inputs(self, robot: Robot) -> dict[str, Signal]:
        """Return the acceleration of the robot."""
        return {"acceleration": true_acceleration(robot)}

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(3, "m/s²")

    def true(self, at: Context) -> Array:
        """Return the specific force in the frame's axes."""
        own, robot = at.robot.frame(self.frame), at.robot
        rates = accelerations(robot, at.q, at.v, at.inputs["acceleration"])
        rate = screw.adjoint_inverse(own.placement, rates[..., own.body, :])
        twist = at.twist(self.frame)
        moved = rate[..., 3:] + vector.cross(twist[..., :3], twist[..., 3:])
        back = quaternion.conjugate(at.rotation(self.frame))
        return moved - quaternion.rotate(back, asarray(robot.gravity))
