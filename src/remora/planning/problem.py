"""A problem of inverse kinematics, its functions in machine code or NumPy, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.kernels.kernel_memory import kernel
from remora.model.robot import Robot
from remora.planning.damped_step import FAR, damped_step
from remora.planning.floating_path import JointPath
from remora.planning.joint_ranges import JointRanges
from remora.planning.task_equations import TaskSpec, task_terms
from remora.planning.tasks import BoundTask

#: A start ends after this many steps in a row that reduce the cost by less than this fraction.
PATIENCE, PROGRESS = 6, 1e-3
FIRST_DAMPING = 1e-2
#: q, damping, walk -> q, errors, damping.
Step: TypeAlias = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is searched for.

    Attributes:
        robot: the robot.
        tasks: the targets.
        ranges: bounds of the joints.
        start: the first start, `(nq,)`; for a floating base, where the path begins.
        groups: S of `row_groups`.
        tolerance: m and rad.
        max_iterations: per start.
        compiled: whether to use machine code.
        goals: of all targets, `(k,)`.
        weights: of all rows, `(m,)`.
        terms: q -> errors `(..., m)` and Jacobian `(..., m, nv)`.
    """

    robot: Robot
    tasks: tuple[BoundTask, ...]
    ranges: JointRanges
    start: Array
    groups: Array
    tolerance: float
    max_iterations: int
    compiled: bool
    goals: Array = field(init=False)
    weights: Array = field(init=False)
    terms: Callable[[Array], tuple[Array, Array]] = field(init=False)

    def __post_init__(self) -> None:
        """Join the goals and the weights of all targets."""
        none = np.zeros(0)
        goals = np.concatenate([none, *(t.goal for t in self.tasks)])
        weights = np.concatenate([none, *(t.weights for t in self.tasks)])
        object.__setattr__(self, "goals", goals)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "terms", self._terms())

    @property
    def specs(self) -> tuple[TaskSpec, ...]:
        """Data of the targets for the equations."""
        return tuple(t.spec for t in self.tasks)

    @property
    def movable(self) -> bool:
        """Whether anything may move, and anything is asked for."""
        return bool(np.any(self.ranges.free)) and self.weights.size > 0

    def cost(self, errors: Array) -> Array:
        """Return the sum of the squares of the weighted errors."""
        return np.sum((self.weights * errors) ** 2, axis=-1)

    def progress(self, now: Array | float, before: Array | float, reach: float) -> Array:
        """Tell whether a step reduced the cost by enough to go on.

        Args:
            now: cost, e·e.
            before: cost before the step.
            reach: R of `damped_step`; of a farther error the part within R counts.
        """
        far = np.minimum(1.0, reach / np.sqrt(np.maximum(before, 1e-300)))
        return np.asarray(now < (1.0 - PROGRESS * far) * before)

    def reach(self, J: Array) -> float:
        """Return R of `damped_step` from the weighted Jacobian `(m, nv)`."""
        return float(np.sqrt(FAR * np.sum(J * J)))

    def met(self, errors: Array) -> Array:
        """Tell whether all targets are met, `(..., m) -> (...)`."""
        return np.all((errors**2) @ self.groups.T <= self.tolerance * self.tolerance, axis=-1)

    def _terms(self) -> Callable[[Array], tuple[Array, Array]]:
        robot, specs, goals = self.robot, self.specs, self.goals
        if not self.compiled or not self.movable:
            return lambda q: task_terms(robot, q, goals, specs)
        made = kernel(task_terms, robot, ("q", "goals"), {"goals": goals.shape}, specs=specs)
        return lambda q: made(q, goals)

    def step(self) -> Step:
        """Return q, damping, walk -> q, errors, damping after one step, see `damped_step`."""
        robot, specs, ranges = self.robot, self.specs, self.ranges
        others = self.goals, self.weights, ranges.free, ranges.lower, ranges.upper
        if not self.compiled:
            return lambda q, damping, walk: damped_step(robot, q, *others, damping, walk, specs)
        names = ("goals", "weights", "free", "lower", "upper")
        shapes = {name: x.shape for name, x in zip(names, others, strict=True)}
        shapes["damping"] = shapes["walk"] = (1,)
        made = kernel(damped_step, robot, ("q", *names, "damping", "walk"), shapes, specs=specs)
        return lambda q, damping, walk: made(q, *others, damping, walk)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        q: the best configuration.
        jacobian: of the weighted errors there; zero for speeds that may not be used, `(m, nv)`.
        iterations: steps of all starts.
        starts: number of starts.
        path: of a floating base.
    """

    q: Array
    jacobian: Array
    iterations: int
    starts: int
    path: JointPath | None = None
