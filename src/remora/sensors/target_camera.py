"""A camera that measures the pose of a target."""

from __future__ import annotations

import math

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, less, select, sqrt
from remora.algebra.vector import dot
from remora.components.component import Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.sensors.direction_sensors import in_cone
from remora.sensors.sensor import Sensor, on_a_body


class TargetCamera(Sensor, unit="rad and m", size=6):
    """A sampled camera: the pose of a target as a frame sees it.

    Orientation r exp(½ e_r) and position p + e_p, with r and p of the target in the axes of the
    camera and e = bias + walk + (σ + σ_d d) n, turns first, where d is the distance. It sees the
    target while the origin of its frame is within the field of view, a cone about the camera's z
    axis, and not too far. The time that images take is the `delay`.

    Outputs: `pose`, `(8,)`; `valid`, 0 where the last measurement stays, otherwise 1. Before the
    first measurement the pose is zero. State: `walk`, `(6,)`.
    """

    sees = True
    quantity = "pose"
    frame: str = parameter("body or frame it is mounted on; it looks along its z axis", "frame")
    target: str = parameter("body or frame whose pose it measures", "frame")
    range_noise: ArrayLike = parameter(
        "standard deviation σ_d of a measurement by distance", "numbers", default=0.0,
        unit="rad/m and 1", minimum=0.0, size=6, kw_only=True,
    )  # fmt: skip
    half_angle: float = parameter(
        "of the field of view; by default it sees all directions", default=math.pi, unit="rad",
        above=0.0, maximum=math.pi, kw_only=True,
    )  # fmt: skip
    reach: float = parameter(
        "largest distance at which it sees the target", default=1e9, unit="m", above=0.0,
        kw_only=True,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; raise if camera and target cannot move apart."""
        on_a_body(robot, self.frame)
        if robot.frame(self.frame).body == robot.frame(self.target).body:
            raise InvalidValue(f"frames {self.frame!r} and {self.target!r} are on one body")
        return super().interface(robot)

    def signal(self, robot: Robot) -> Signal:
        """Return the measured signal."""
        return Signal(8)

    def error_signal(self, robot: Robot) -> Signal:
        """Return the signal of a rotation vector and a displacement."""
        return Signal(6)

    def true(self, at: Context) -> Array:
        """Return the pose of the target in the camera's axes."""
        back = dual_quaternion.conjugate(at.pose(self.frame))
        return dual_quaternion.mul(back, at.pose(self.target))

    def error(self, at: Context) -> Array:
        """Return bias + walk + (σ + σ_d d) n."""
        p = pose.translation(self.true(at))
        distance = sqrt(dot(p, p) + 1e-300)
        more = asarray(self.range_noise) * distance * at.noise["noise"]
        return super().error(at) + more

    def measured(self, at: Context) -> Array:
        """Return the pose that is measured."""
        x, e = self.true(at), self.error(at)
        r = quaternion.mul(pose.rotation(x), quaternion.exp(0.5 * e[..., :3]))
        return pose.from_parts(r, pose.translation(x) + e[..., 3:])

    def seen(self, at: Context) -> Array:
        """Return whether the target is in the field of view and near enough."""
        p = pose.translation(self.true(at))
        reach = asarray(self.reach)
        near = less(dot(p, p)[..., 0], reach * reach)
        return select(near, in_cone(p, self.half_angle), 0.0)
