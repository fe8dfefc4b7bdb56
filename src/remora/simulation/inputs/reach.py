"""`rm.plan_reach`: motions of the joints that bring a frame to a goal, base recoil included."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.refusals import refuse_kinematic, require_free_base, without_constraints
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.arguments import choice, count, names, positive, single
from remora.model.joints import in_coordinates, kind, speeds
from remora.model.numbers import finite
from remora.model.robot import Frame, Robot
from remora.model.state import configuration, difference, integrate
from remora.model.takes_robot import takes_robot
from remora.planning.floating_path import base_motion, follow
from remora.planning.joint_ranges import JointRanges, joint_ranges
from remora.planning.reach_path import ReachPath, line_path, quintic
from remora.planning.result import TargetError
from remora.planning.solve import inverse_kinematics
from remora.planning.targets import SHORT, row_groups, target_errors
from remora.planning.task_equations import task_errors
from remora.simulation.inputs.moves import peak_speed, through
from remora.simulation.inputs.profiles import Motion

PATHS = ("line", "joints")
BASES = ("fixed", "floating")
#: Starting points of inverse kinematics for a path of the joints.
STARTS = 9
#: A plan ends within this distance, m, and angle, rad, of its goal.
TOLERANCE = 1e-5
#: Samples of a plan, less one.
MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class ReachPlan:
    """A planned reach; at rest at both ends.

    Attributes:
        t: s, `(n,)`, from 0.
        q: configurations, `(n, nq)`, with the predicted pose of the base.
        v: velocities, `(n, nv)`.
        motions: of the joints by name, in time since the start of the plan, for `prescribed=`.
        error: predicted distance and angle to the goal at the end.
    """

    t: Array
    q: Array
    v: Array
    motions: dict[str, Motion]
    error: TargetError

    @property
    def duration(self) -> float:
        """Duration, s."""
        return float(self.t[-1])


@takes_robot
@without_constraints
def plan_reach(
    robot: Robot,
    q: ArrayLike,
    frame: str | int | Frame,
    goal: ArrayLike | str | Frame,
    duration: float | None = None,
    *,
    base: Literal["fixed", "floating"] = "floating",
    path: Literal["line", "joints"] = "line",
    locked: Collection[str] = (),
    steps: int = 200,
) -> ReachPlan:
    """Return motions of the joints that bring a frame from rest to rest at a goal.

    Nothing is measured: the base's recoil is predicted from the conservation of momentum, which
    must be zero at the start.

    Args:
        robot: the robot.
        q: configuration at the start, `(nq,)`.
        frame: the frame that reaches.
        goal: pose `(8,)` or position `(3,)` in the inertial frame, or a frame of the robot that
            is fixed there.
        duration: s; by default the shortest at which all joints, followers included, keep their
            speed limits; a shorter one is refused.
        base: "floating": the base recoils. "fixed": it is held.
        path: "line": the frame moves along a straight line and turns about one axis. "joints": all
            joints move along a straight line to the solution of `rm.inverse_kinematics`; works
            around singular configurations and ends of ranges.
        locked: names of joints that do not move.
        steps: number of samples less one.

    Raises:
        RemoraError: if the goal cannot be reached on such a path (the message says what limits
            it), or not in that time.
    """
    choice("base", base, BASES)
    choice("path", path, PATHS)
    steps, locked = count("steps", steps, 2, MOST_STEPS), names("locked", locked)
    if duration is not None:
        duration = positive("duration", duration)
    start = configuration(robot, single("q", q, robot.nq))
    moving, goal = robot.frame(frame), _goal(robot, goal)
    if base == "floating":
        require_free_base(robot)
        refuse_kinematic(robot, "plan_reach with a floating base")
    ranges = joint_ranges(robot, locked, "fixed" if base == "fixed" else "floating")
    planned = (
        line_path(robot, start, moving, goal, ranges, base == "floating", steps)
        if path == "line"
        else _joint_path(robot, start, moving, goal, base, locked, steps)
    )
    error = _error(robot, moving, goal, planned.q[-1])
    if max(error.position or 0.0, error.angle or 0.0) > TOLERANCE:
        raise RemoraError(
            f"the reach of {moving.name!r} ends {error} from its goal: the line passes too close "
            "to a singular configuration, or leaves the workspace; rm.inverse_kinematics tells "
            'what limits it, path="joints" goes around'
        )
    seconds = _duration(robot, planned, duration)
    t = seconds * planned.tau
    motions = _motions(robot, t, planned, ranges, base)
    return ReachPlan(t, planned.q, planned.rates / seconds, motions, error)


def _goal(robot: Robot, goal: Any) -> Array:
    """Return the goal as a pose or a position, or raise."""
    if isinstance(goal, (str, Frame)):
        fixed = robot.frame(goal)
        if fixed.body >= 0:
            raise InvalidValue(f"the goal {fixed.name!r} moves with a body; give its pose")
        return fixed.placement
    array = finite("goal", goal)
    if array.shape not in SHORT:
        raise ShapeError(f"goal must be a pose (8,) or a position (3,), not {array.shape}")
    return SHORT[array.shape](0, array).checked_goal(robot)


def _joint_path(
    robot: Robot, q: Array, frame: Frame, goal: Array, base: Any, locked: Collection[str], n: int
) -> ReachPath:
    """Return the straight joint path to the solution of inverse kinematics, with the base's."""
    task = SHORT[goal.shape](frame, goal, name="goal")
    found = inverse_kinematics(robot, task, q, base=base, locked=locked, starts=STARTS)
    if not found.success:
        raise RemoraError(f"the goal of {frame.name!r} is {found}")
    tau = np.linspace(0.0, 1.0, n + 1)
    s, ds = quintic(tau)
    if found.path is None:
        way = difference(robot, q, found.q)
        rates = ds[:, None] * way
        return ReachPath(tau, integrate(robot, q, s[:, None] * way), rates)
    way = np.concatenate([np.zeros(6), found.path.way])
    response = base_motion(robot, True)
    states = integrate(robot, q, s[:, None] * way)
    states = np.concatenate([follow(robot, q, way[6:], s, response), states[:, 8:]], axis=1)
    V = response(states) @ way[6:]
    rates = ds[:, None] * np.concatenate([V, np.broadcast_to(way[6:], (n + 1, way.size - 6))], 1)
    return ReachPath(tau, states, rates)


def _error(robot: Robot, frame: Frame, goal: Array, q: Array) -> TargetError:
    task = SHORT[goal.shape](frame, goal, name="goal").bind(robot)
    errors = task_errors(robot, q, task.goal, (task.spec,))
    return target_errors([task], row_groups(robot, [task]), errors)["goal"]


def _duration(robot: Robot, path: ReachPath, given: float | None) -> float:
    """Return the duration, checked against the joints' speed limits, or the shortest.

    The limits hold for the splines between the samples, for joints on the inertial frame and for
    mimic joints, too.
    """
    peaks = np.max(np.abs(path.rates), axis=0)
    for joint in robot.joints:
        if in_coordinates(joint):
            spline = peak_speed(path.tau, path.q[:, joint.q])
            peaks[joint.v] = np.maximum(peaks[joint.v], spline)
    shortest, slowest = 0.0, ""
    for joint in robot.joints:
        peak, limit = np.abs(speeds(joint, peaks)), joint.limits.velocity
        needed = np.divide(peak, limit, out=np.zeros_like(peak), where=peak > 0.0)
        if np.any(needed > shortest):
            shortest, slowest = float(np.max(needed)), joint.name
    if np.isinf(shortest):
        raise InvalidValue(f"joint {slowest!r} has to move, and its speed limit is zero")
    if given is None:
        if shortest == 0.0:
            raise InvalidValue("duration: the joints have no speed limits, so it must be given")
        return shortest
    if given < shortest * (1.0 - 1e-9):
        raise InvalidValue(
            f"duration {given:g} s is too short: the speed limit of joint {slowest!r} needs "
            f"{shortest:.4g} s"
        )
    return given


def _motions(
    robot: Robot, t: Array, path: ReachPath, ranges: JointRanges, base: str
) -> dict[str, Motion]:
    """Return a spline for each joint that may be used."""
    motions: dict[str, Motion] = {}
    for joint in robot.joints:
        based = base == "floating" and joint is robot.joints[0]
        if joint.mimic is not None or kind(joint).nv == 0 or based:
            continue
        if not np.any(ranges.free[joint.v]):
            continue
        if not in_coordinates(joint):
            raise InvalidValue(
                f"joint {joint.name!r} is {joint.kind}: its motion has no spline; lock it"
            )
        motions[joint.name] = through(t, path.q[:, joint.q])
    return motions
