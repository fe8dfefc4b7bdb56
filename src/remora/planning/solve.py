"""`rm.inverse_kinematics`: the configuration that meets targets, or comes closest to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, cast

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.refusals import (
    floats,
    refuse_kinematic,
    require_free_base,
    without_constraints,
)
from remora.model.arguments import choice, count, flag, generator, names, positive
from remora.model.robot import FrameLike, Robot
from remora.model.takes_robot import takes_robot
from remora.planning.configuration_search import search_configuration
from remora.planning.joint_ranges import UNBOUNDED, JointRanges, at_limits, joint_ranges
from remora.planning.path_search import search_path
from remora.planning.problem import Found, Problem
from remora.planning.result import SINGULAR, STATIONARY, InverseKinematicsResult
from remora.planning.starts import first_start, wrapped
from remora.planning.targets import bound_targets, row_groups, target_errors
from remora.planning.tasks import Task

#: A target that joints move by less, m or rad per m or rad, does not depend on them.
NEGLIGIBLE = 1e-6
BASES = ("fixed", "floating", "flying")
Base = Literal["fixed", "floating", "flying"]
Targets = Mapping[FrameLike, ArrayLike] | Task | Sequence[Task]


@takes_robot
@without_constraints
def inverse_kinematics(
    robot: Robot,
    targets: Targets,
    q0: ArrayLike | None = None,
    base: Base | None = None,
    *,
    tolerance: float = 1e-8,
    locked: Collection[str] = (),
    limits: bool = True,
    starts: int = 65,
    max_iterations: int = 100,
    seed: int | np.random.Generator = 0,
    compiled: bool = True,
) -> InverseKinematicsResult:
    """Return the configuration that meets all targets, or the closest one and what limits it.

    Levenberg-Marquardt steps on the manifold of q, from q0 and then from random starts, reduce the
    sum of the squares of the targets' weighted errors within the joints' ranges (`damped_step`). Of
    several solutions of one batch of starts the closest to q0 is returned.

    Args:
        robot: the robot.
        targets: frame -> pose `(8,)` or position `(3,)` in the inertial frame; or tasks, such as
            `rm.tasks.FrameTask`, `rm.tasks.PositionTask`, `rm.tasks.DirectionTask`, one or several.
        q0: configuration to start from, `(nq,)`; neutral by default.
        base: None: "floating" for a free-floating robot with masses, "fixed" for all others.
            "fixed": free joints on the inertial frame stay as in q0. "floating": the joints move
            along a straight line from q0, and the base recoils so that the momentum stays zero; the
            end, `result.path`, is where the robot really arrives, at any speed along the path, when
            it starts at rest. "flying": the base moves at will.
        tolerance: on each target's distance, m, and angle, rad.
        locked: names of joints that must not move.
        limits: whether to keep the joints within their ranges.
        starts: number of starting points that are tried, q0 among them.
        max_iterations: steps per start.
        seed: of the random starts.
        compiled: use machine code, made on first use for a robot and its targets and kept; False
            evaluates in NumPy, which is slower but starts at once.

    Raises:
        RemoraError: if an argument is wrong; an unreachable target is no error but a result.

    Example:
        >>> robot = rm.load("servicer")
        >>> q0 = rm.configuration(robot, {"shoulder_pitch": 0.5, "elbow_pitch": -1.0})
        >>> goal = rm.frame_pose(robot, q0, "tool")
        >>> result = rm.inverse_kinematics(robot, {"tool": goal}, base="fixed")
        >>> result.success
        True
    """
    if base is None:
        base = "floating" if robot.dynamics and floats(robot) else "fixed"
    base = cast(Base, choice("base", base, BASES))
    if base == "floating":
        require_free_base(robot)
        refuse_kinematic(robot, "inverse_kinematics with a floating base")
    tolerance, starts = positive("tolerance", tolerance), count("starts", starts)
    max_iterations = count("max_iterations", max_iterations)
    rng, compiled = generator("seed", seed), flag("compiled", compiled)
    ranges = joint_ranges(robot, names("locked", locked), base)
    if not flag("limits", limits):
        free = np.full(robot.nq, UNBOUNDED)
        ranges = JointRanges(-free, free, ranges.free)
    tasks = bound_targets(robot, targets)
    problem = Problem(
        robot, tuple(tasks), ranges, first_start(robot, q0, ranges), row_groups(robot, tasks),
        tolerance, max_iterations, compiled,
    )  # fmt: skip
    search = search_path if base == "floating" else search_configuration
    return _result(problem, search(problem, starts, rng))


def _result(problem: Problem, found: Found) -> InverseKinematicsResult:
    robot, ranges, q = problem.robot, problem.ranges, found.q
    errors = problem.terms(q)[0]
    value, direction = _singular(found.jacobian)
    if found.path is None:
        q = wrapped(robot, q, problem.start, ranges)
    success = bool(problem.met(errors))
    near = at_limits(robot, ranges, q)
    limiting = () if success else _limiting(problem, found, errors, near)
    return InverseKinematicsResult(
        q=q,
        success=success,
        errors=target_errors(problem.tasks, problem.groups, errors),
        iterations=found.iterations,
        starts=found.starts,
        joints_at_limits=near,
        limited_by=limiting,
        singular_value=value,
        singular_direction=direction,
        reason="" if success else _reason(problem, found, errors, limiting, value),
        path=found.path,
    )


def _singular(J: Array) -> tuple[float, Array | None]:
    """Return the ratio of the singular values, and the direction of the rows that is hardest."""
    if 0 in J.shape or not np.any(J):
        return 0.0, None
    U, sizes, _ = np.linalg.svd(J)
    smallest = float(sizes[-1]) if J.shape[0] <= J.shape[1] else 0.0
    ratio = smallest / float(sizes[0])
    return ratio, U[:, -1] if ratio < SINGULAR else None


def _reason(
    problem: Problem, found: Found, errors: Array, limiting: tuple[str, ...], ratio: float
) -> str:
    """Return in words why the targets are not met."""
    J, e = found.jacobian, problem.weights * errors
    if not np.any(problem.ranges.free[0 if found.path is None else 6 :]):
        return "no joint may move"
    if _negligible(problem, J):
        return "the joints that may move do not change the targets"
    if limiting:
        return f"limited by the range of {', '.join(limiting)}"
    slope = float(np.linalg.norm(J.T @ e) / (np.linalg.norm(J) * np.linalg.norm(e)))
    if slope > STATIONARY:
        return "the steps ended before the closest one; more steps (max_iterations) may come closer"
    if ratio >= SINGULAR:
        return "no small motion comes closer; other starts may (starts, seed, q0)"
    return (
        "out of reach: the joints cannot move the targets any closer (singular, ratio "
        f"{ratio:.1e}), unless other starts do"
    )


def _negligible(problem: Problem, J: Array) -> bool:
    """Tell whether the targets do not move with the joints, to the accuracy of a path's end."""
    return bool(np.all(np.abs(J) <= NEGLIGIBLE * np.max(problem.weights, initial=0.0)))


def _limiting(
    problem: Problem, found: Found, errors: Array, near: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the joints at their limits that would have to move on to come closer."""
    if _negligible(problem, found.jacobian):
        return ()
    descent = found.jacobian.T @ (problem.weights * errors)
    size = float(np.linalg.norm(descent))
    names: list[str] = []
    for name in near:
        joint = problem.robot.joints[name]
        push = descent[joint.v] * np.where(
            problem.ranges.upper[joint.q] - found.q[joint.q] <= 1e-9, 1.0, -1.0
        )
        if np.any(push > 1e-3 * size) and np.any(push > 1e-9):
            names.append(name)
    return tuple(names)
