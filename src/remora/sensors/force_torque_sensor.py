"""A force-torque sensor: the load that a joint transmits."""

from __future__ import annotations

from remora.algebra import pose, quaternion, screw
from remora.algebra.array_ops import Array, concatenate
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.run_signals import WRENCHES
from remora.components.signals import Signal
from remora.dynamics.recursive.recursive_newton_euler import joint_loads
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.sensors.sensor import ScaledSensor, true_acceleration


class ForceTorqueSensor(ScaledSensor, unit="N, N m", size=6):
    """A sampled force-torque sensor in a joint: the whole load on what it carries.

    The wrench [f, τ] that the joint exerts on its body, of its bearings and its drive: what moves
    the bodies beyond it, less gravity and the wrenches on them from outside and of constraints, by
    the equations of motion with all loads that act just before the tick. A sensor within an arm is
    a fixed joint.

    Inputs: `acceleration`, `(nv,)`, and `wrenches`, `(nb, 6)`, the true ones. Output: `wrench`,
    `(6,)`, N and N m, in the axes of a frame and about its origin. State: `walk`, `(6,)`.
    """

    quantity = "wrench"
    joint: str = parameter("the joint whose load it measures", "text")
    frame: str | None = parameter(
        "body or frame of its axes and reference point, on the joint's body; by default the body",
        "frame", default=None,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if nothing is beyond the joint, or the frame is elsewhere."""
        index = robot.joint_index(self.joint)
        if index == 0:
            raise RemoraError(f"joint {self.joint!r} carries the base: it transmits no load")
        if self.frame is not None and robot.frame(self.frame).body != index:
            body = robot.bodies[index].name
            raise InvalidValue(
                f"frame {self.frame!r} must be on {body!r}, the body of joint {self.joint!r}"
            )
        return super().interface(robot)

    def inputs(self, robot: Robot) -> dict[str, Signal]:
        """Return the acceleration of the robot, and the wrenches on its bodies."""
        return {
            "acceleration": true_acceleration(robot),
            "wrenches": Signal((len(robot.bodies), 6), source=WRENCHES),
        }

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(6)

    def true(self, at: Context) -> Array:
        """Return the wrench in the axes of the frame, about its origin."""
        robot, told = at.robot, at.inputs
        index = robot.joint_index(self.joint)
        loads = joint_loads(robot, at.q, at.v, told["acceleration"], told["wrenches"])
        W = loads[index].W
        if self.frame is None:
            return W
        place = robot.frame(self.frame).placement
        moved = screw.shift(W, -pose.translation(place))
        back = quaternion.conjugate(pose.rotation(place))
        return concatenate(
            [quaternion.rotate(back, moved[..., :3]), quaternion.rotate(back, moved[..., 3:])]
        )
