"""Conditions of scenario files: of time, of a joint, of a frame.

They are written on arrays, so single runs, batches and campaigns evaluate the same equations, each
run with the numbers of its own robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import pose, vector
from remora.algebra.array_ops import Array, asarray, is_symbolic, sqrt
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.kinematics import frame_pose, frame_twist
from remora.model.robot import Robot
from remora.simulation.inputs.events import RobotCondition


@dataclass(frozen=True)
class TimeCondition:
    """A condition of time: t - limit.

    Attributes:
        limit: s.
        told: plain description, for the settings of a run.
    """

    limit: float
    told: dict[str, Any]

    def __call__(self, t: float | Array, q: Array, v: Array) -> Any:
        """Return its value."""
        return t - self.limit


@dataclass(frozen=True)
class JointCondition:
    """A condition of a joint with one coordinate: coordinate or speed, less the limit.

    Attributes:
        place: index of the coordinate in q, or of the speed in v.
        of_speed: whether it is the speed.
        ratio: of a mimic joint, otherwise 1.
        offset: of a mimic joint, otherwise 0.
        limit: rad or m, or per second.
        told: plain description, for the settings of a run.
    """

    place: int
    of_speed: bool
    ratio: float
    offset: float
    limit: float
    told: dict[str, Any]

    def __call__(self, t: float | Array, q: Array, v: Array) -> Any:
        """Return its value."""
        value = (v if self.of_speed else q)[..., self.place]
        return self.ratio * value + (self.offset - self.limit)


@dataclass(frozen=True)
class FrameCondition(RobotCondition):
    """A condition of a frame: distance from a point, or rate of turning, less the limit.

    Attributes:
        robot: the robot.
        frame: name of a body or frame.
        point: in the inertial frame, m; None: the frame's rate of turning.
        limit: m or rad/s.
        told: plain description, for the settings of a run.
    """

    frame: str
    point: tuple[float, ...] | None
    limit: float
    told: dict[str, Any]

    def __call__(self, t: float | Array, q: Array, v: Array) -> Any:
        """Return its value."""
        if is_symbolic(asarray(q)) or is_symbolic(asarray(v)):
            return self.margin(self.robot, q, v)
        if self.point is None:
            return kernel(turning, self.robot, ("q", "v"), frame=self.frame)(q, v) - self.limit
        away = kernel(distance, self.robot, ("q",), frame=self.frame, point=self.point)
        return away(q) - self.limit

    def margin(self, robot: Robot, q: Array, v: Array) -> Array:
        """Return its value for a robot whose numbers may be symbolic, `(...)`."""
        if self.point is None:
            return turning(robot, q, v, self.frame) - self.limit
        return distance(robot, q, self.frame, self.point) - self.limit


def distance(robot: Robot, q: Array, frame: str, point: tuple[float, ...]) -> Array:
    """Return the distance of a frame's origin from a point of the inertial frame, `(...)`, m."""
    away = pose.translation(frame_pose(robot, q, frame)) - np.array(point)
    return sqrt(vector.dot(away, away))[..., 0]


def turning(robot: Robot, q: Array, v: Array, frame: str) -> Array:
    """Return the magnitude of a frame's angular velocity, `(...)`, rad/s."""
    omega = frame_twist(robot, q, v, frame)[..., :3]
    return sqrt(vector.dot(omega, omega))[..., 0]
