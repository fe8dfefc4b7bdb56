"""Tasks: what inverse kinematics is asked for, each with weights, a gain and a priority.

A task is an immutable value. It names frames of the robot; `bind` looks them up and checks its
goal, so that an error names the task. The equations are rows of `task_equations`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.errors import InvalidValue, RemoraError
from remora.model.arguments import flag, not_negative, single, whole, word
from remora.model.numbers import UNIT_TOLERANCE, finite
from remora.model.robot import Frame, FrameLike, Robot
from remora.model.state import configuration
from remora.planning.task_equations import TaskSpec, equation

#: Positions farther away, m, leave no digits for the joints.
FARTHEST = 1e9


@dataclass(frozen=True, eq=False)
class BoundTask:
    """A task of one robot, checked.

    Attributes:
        name: of the task, for messages.
        spec: its equations.
        goal: `(k,)`.
        weights: of its rows, `(m,)`.
        velocity: of the goal, in the task's rows, `(m,)`.
        gain: 1/s; the error decays as exp(-gain t).
        priority: tasks of a smaller number are met first, strictly.
    """

    name: str
    spec: TaskSpec
    goal: Array
    weights: Array
    velocity: Array
    gain: float
    priority: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What all tasks have.

    Attributes:
        weight: factor on the task's error; with several tasks of one priority the sum of the
            squares of their weighted errors is least.
        gain: 1/s, of `rm.tasks.solve_tasks`: the error decays as exp(-gain t).
        priority: tasks of a smaller number are met first, and later ones do not disturb them.
        velocity: of the goal, in the task's rows, for a goal that moves; None: at rest.
        name: for messages; from the kind and the frame by default.
    """

    kind: ClassVar[str] = "task"
    weight: float = 1.0
    gain: float = 1.0
    priority: int = 0
    velocity: ArrayLike | None = None
    name: str | None = None

    def spec(self, robot: Robot) -> TaskSpec:
        """Return the data of the task for the equations."""
        raise NotImplementedError

    def checked_goal(self, robot: Robot) -> Array:
        """Return the goal as an array, or raise."""
        raise NotImplementedError

    @property
    def called(self) -> str:
        """The task's name in messages."""
        frame = getattr(self, "frame", None)
        place = "" if frame is None else f" {getattr(frame, 'name', frame)!r}"
        return self.name if isinstance(self.name, str) and self.name else f"{self.kind}{place}"

    def bind(self, robot: Robot) -> BoundTask:
        """Return the task of one robot.

        Raises:
            RemoraError: the message names the task and says what is wrong.
        """
        try:
            spec = self.spec(robot)
            angular = np.array(equation(spec).angular(robot), dtype=bool)
            weight = not_negative("weight", self.weight)
            gain = not_negative("gain", self.gain)
            given = np.zeros(angular.size) if self.velocity is None else self.velocity
            velocity = single("velocity", given, angular.size)
            priority = whole("priority", self.priority)
            if self.name is not None:
                word("name", self.name)
            weights = weight * self.row_weights(angular)
            goal = self.checked_goal(robot)
        except RemoraError as error:
            error.args = (f"task {self.called!r}: {error}",)
            raise
        return BoundTask(self.called, spec, goal, weights, velocity, gain, priority)

    def row_weights(self, angular: Array) -> Array:
        """Return the weight of each row relative to `weight`."""
        return np.ones(angular.size)


@dataclass(frozen=True, eq=False)
class FrameTask(Task):
    """Bring a frame to a pose.

    Attributes:
        frame: the name of a body or frame, the index of a body, or a Frame.
        goal: pose in the inertial frame, `(8,)`.
        position_weight: factor on the position's error, 1/m.
        orientation_weight: factor on the angle's error, 1/rad.
    """

    kind: ClassVar[str] = "pose of"
    frame: FrameLike
    goal: ArrayLike
    position_weight: float = dataclasses.field(default=1.0, kw_only=True)
    orientation_weight: float = dataclasses.field(default=1.0, kw_only=True)

    def spec(self, robot: Robot) -> TaskSpec:
        """Return the frame."""
        return TaskSpec("pose", framed(robot, self.frame))

    def checked_goal(self, robot: Robot) -> Array:
        """Return the pose."""
        goal = unit_pose(self.goal)
        _near(pose.translation(goal))
        return goal

    def row_weights(self, angular: Array) -> Array:
        """Return the weights of angles and lengths."""
        angle = not_negative("orientation_weight", self.orientation_weight)
        return np.where(angular, angle, not_negative("position_weight", self.position_weight))


@dataclass(frozen=True, eq=False)
class RelativePoseTask(FrameTask):
    """Bring a frame to a pose relative to another frame of the robot.

    Attributes:
        frame: the frame that moves.
        goal: its pose in `reference`, `(8,)`.
        reference: the other frame.
    """

    kind: ClassVar[str] = "relative pose of"
    reference: FrameLike = dataclasses.field(default=0, kw_only=True)

    def spec(self, robot: Robot) -> TaskSpec:
        """Return both frames."""
        return TaskSpec("pose", framed(robot, self.frame), framed(robot, self.reference))


@dataclass(frozen=True, eq=False)
class PositionTask(Task):
    """Bring the origin of a frame to a point.

    Attributes:
        frame: the name of a body or frame, the index of a body, or a Frame.
        goal: position in the inertial frame, `(3,)`, m.
    """

    kind: ClassVar[str] = "position of"
    frame: FrameLike
    goal: ArrayLike

    def spec(self, robot: Robot) -> TaskSpec:
        """Return the frame."""
        return TaskSpec("position", framed(robot, self.frame))

    def checked_goal(self, robot: Robot) -> Array:
        """Return the position."""
        return place(self.goal)


@dataclass(frozen=True, eq=False)
class DirectionTask(Task):
    """Point an axis of a frame along a direction.

    The error is the chord between the two unit vectors. Its gradient vanishes where they are
    exactly opposite, from where `rm.inverse_kinematics` starts anew.

    Attributes:
        frame: the name of a body or frame, the index of a body, or a Frame.
        axis: in the frame's axes, `(3,)`; scaled to unit length.
        goal: direction in the inertial frame, `(3,)`; scaled to unit length.
    """

    kind: ClassVar[str] = "direction of"
    frame: FrameLike
    axis: ArrayLike
    goal: ArrayLike

    def spec(self, robot: Robot) -> TaskSpec:
        """Return frame and axis."""
        x, y, z = unit("axis", self.axis).tolist()
        return TaskSpec("direction", framed(robot, self.frame), axis=(x, y, z))

    def checked_goal(self, robot: Robot) -> Array:
        """Return the direction as a unit vector."""
        return unit("goal", self.goal)


@dataclass(frozen=True, eq=False)
class PostureTask(Task):
    """Bring the joints to a posture; the pose of a free base is ignored.

    Attributes:
        goal: configuration, `(nq,)`.
    """

    kind: ClassVar[str] = "posture"
    goal: ArrayLike

    def spec(self, robot: Robot) -> TaskSpec:
        """Return nothing more."""
        return TaskSpec("posture")

    def checked_goal(self, robot: Robot) -> Array:
        """Return the configuration."""
        return configuration(robot, single("goal", self.goal, robot.nq))


@dataclass(frozen=True, eq=False)
class CenterOfMassTask(Task):
    """Bring the robot's centre of mass to a point.

    Attributes:
        goal: position in the inertial frame, `(3,)`, m.
    """

    kind: ClassVar[str] = "centre of mass"
    goal: ArrayLike

    def spec(self, robot: Robot) -> TaskSpec:
        """Return nothing more; a robot without masses is refused."""
        if not robot.dynamics:
            raise InvalidValue(f"robot {robot.name!r} has no masses (dynamics=False)")
        return TaskSpec("center of mass")

    def checked_goal(self, robot: Robot) -> Array:
        """Return the position."""
        return place(self.goal)


@dataclass(frozen=True, eq=False)
class BaseAttitudeTask(Task):
    """Turn the base, body 0, to an orientation.

    Attributes:
        goal: unit quaternion `(4,)`, or a pose `(8,)` whose position is ignored.
    """

    kind: ClassVar[str] = "attitude of the base"
    goal: ArrayLike

    def spec(self, robot: Robot) -> TaskSpec:
        """Return the base."""
        return TaskSpec("attitude", robot.frame(0))

    def checked_goal(self, robot: Robot) -> Array:
        """Return the orientation."""
        given = finite("goal", self.goal)
        if given.shape == (8,):
            return unit_pose(given)[:4]
        r = single("goal", given, 4)
        _check_unit("goal", r)
        return quaternion.normalize(r)


@dataclass(frozen=True, eq=False)
class ZeroReactionTask(Task):
    """Keep the base at rest while the arms move: the joint speeds lie in the reaction null space.

    A task of velocities: it has no error, and in `rm.inverse_kinematics` no meaning.

    Attributes:
        attitude_only: only the base's angular velocity vanishes.
    """

    kind: ClassVar[str] = "zero reaction"
    attitude_only: bool = False

    def spec(self, robot: Robot) -> TaskSpec:
        """Return the base."""
        if flag("attitude_only", self.attitude_only):
            return TaskSpec("base does not turn", robot.frame(0))
        return TaskSpec("base at rest")

    def checked_goal(self, robot: Robot) -> Array:
        """Return nothing: there is no goal."""
        return np.zeros(0)


def framed(robot: Robot, frame: FrameLike) -> Frame:
    """Return the frame meant; one that is given as a value must have a pose."""
    found = robot.frame(frame)
    if isinstance(frame, Frame) and not is_symbolic(found.placement):
        unit_pose(found.placement, f"the placement of frame {found.name!r}")
    return found


def place(given: ArrayLike) -> Array:
    """Return a position `(3,)` that is not beyond all numbers, or raise."""
    return _near(single("goal", given, 3))


def _near(point: Array) -> Array:
    if np.max(np.abs(point)) > FARTHEST:
        raise InvalidValue(f"goal is more than {FARTHEST:g} m away")
    return point


def unit(what: str, given: ArrayLike) -> Array:
    """Return a unit vector `(3,)`, or raise for one that is nearly zero."""
    array = single(what, given, 3)
    length = float(np.linalg.norm(array))
    if length < UNIT_TOLERANCE:
        raise InvalidValue(f"{what} must be a direction, not {array.tolist()}")
    return array / length


def unit_pose(given: ArrayLike, what: str = "goal") -> Array:
    """Return a pose `(8,)` as a unit dual quaternion, or raise."""
    x = single(what, given, 8)
    _check_unit(what, x[:4])
    mixed = abs(float(x[:4] @ x[4:])) / (1.0 + float(np.linalg.norm(x[4:])))
    if mixed > UNIT_TOLERANCE:
        raise InvalidValue(
            f"{what} is not a pose: its dual part is not orthogonal to its real part"
        )
    return dual_quaternion.normalize(x)


def _check_unit(what: str, r: Array) -> None:
    off = abs(float(r @ r) - 1.0)
    if off > 2.0 * UNIT_TOLERANCE:
        raise InvalidValue(
            f"the quaternion of {what} is not of unit length (|r|² is off by {off:.3g})"
        )
