"""`rm.tasks.solve_tasks`: joint speeds or accelerations that serve tasks under limits.

For the velocity of the next step v⁺ (level "velocity"), each task wants J v⁺ = gain × error + the
goal's velocity. For the acceleration (level "acceleration"), it wants J v̇ + J̇ v = gain² × error +
2 gain (goal's velocity - J v), a critically damped response. The base's motion is eliminated: at
rest (fixed), or by the momentum as an equality (floating),

    A_0 v_0 + A_m v_m = h,      H_0 v̇_0 + H_0m v̇_m + c_0 = 0.

What is left is least squares in the joints' speeds under inequalities (`quadratic_program`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.dynamics.forces.equations_of_motion import passive_loads
from remora.dynamics.formulations import bias_force, mass_matrix
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.momentum import momentum_matrix
from remora.dynamics.refusals import refuse_kinematic, require_free_base, without_constraints
from remora.errors import InvalidValue
from remora.model.arguments import choice, flag, positive, single
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot
from remora.planning.joint_ranges import UNBOUNDED, joint_ranges
from remora.planning.quadratic_program import Inequalities, Level, solve_levels
from remora.planning.result import TargetError
from remora.planning.targets import as_tasks, named_apart, row_groups, target_errors
from remora.planning.task_equations import task_biases, task_terms
from remora.planning.task_limits import (
    SpeedBounds,
    TaskLimits,
    checked_limits,
    effort_limits,
    speed_bounds,
)
from remora.planning.tasks import BoundTask, Task

BASES = ("fixed", "floating", "flying")
LEVELS = ("velocity", "acceleration")
#: A bound that is closer than this, relative to its size, is active.
ACTIVE = 1e-7


@dataclass(frozen=True, eq=False)
class TaskSolution:
    """What `rm.tasks.solve_tasks` found.

    Attributes:
        velocity: v after the step, base included, `(nv,)`.
        acceleration: v̇ by which the joints reach that velocity, `(nv,)`; None at the level
            "velocity" without torque limits.
        torque: generalized forces of the drives for it, `(nv,)`, or None.
        errors: of the tasks at q, by name.
        deviations: how far each task's rate (or acceleration) is from what it wants, by name.
        active: limits that the solution is at, such as "velocity of elbow".
    """

    velocity: Array
    acceleration: Array | None
    torque: Array | None
    errors: dict[str, TargetError]
    deviations: dict[str, float]
    active: tuple[str, ...]


@takes_robot
@without_constraints
def solve_tasks(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Task | Sequence[Task],
    limits: TaskLimits | None = None,
    dt: float = 0.01,
    *,
    base: Literal["fixed", "floating", "flying"] = "fixed",
    level: Literal["velocity", "acceleration"] = "velocity",
    momentum: ArrayLike | None = None,
    damping: float = 1e-8,
    compiled: bool = True,
) -> TaskSolution:
    """Return the velocity of the next step that serves the tasks best within the limits.

    Tasks of one priority share by their weights; those of a larger number use only what the smaller
    ones leave free.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.
        v: current velocity, `(nv,)`.
        tasks: one task, or several.
        limits: which limits to keep; ranges and speeds by default.
        dt: duration of the step, s.
        base: "fixed": free joints on the inertial frame stay at rest. "floating": the base recoils,
            so that the momentum stays as it is. "flying": the base is actuated.
        level: "velocity": differential inverse kinematics. "acceleration": with J̇ v, and the
            torques of inverse dynamics.
        momentum: of a floating robot at the level "velocity", [linear, angular about the inertial
            origin], `(6,)`; zero by default. The base's speeds in v are not used there.
        damping: weight of the speeds relative to that of the tasks; resolves redundancy and keeps
            speeds finite at singular configurations.
        compiled: use machine code; False evaluates in NumPy.

    Raises:
        RemoraError: if an argument is wrong, or no motion satisfies the limits; the message names
            the task or the limits.
    """
    limits = checked_limits(limits)
    choice("base", base, BASES)
    choice("level", level, LEVELS)
    dt, compiled = positive("dt", dt), flag("compiled", compiled)
    damping = positive("damping", damping)
    if momentum is not None and (base != "floating" or level != "velocity"):
        raise InvalidValue('momentum= is for base="floating" and level="velocity"')
    state = configuration(robot, single("q", q, robot.nq)), single("v", v, robot.nv)
    bound = named_apart([task.bind(robot) for task in as_tasks(tasks)])
    at = _Evaluation(robot, *state, tuple(bound), compiled)
    h = None if momentum is None else single("momentum", momentum, 6)
    motion = _base_motion(at, base, level, h)
    forces = _joint_forces(at, base) if limits.torque or level == "acceleration" else None
    return _solution(at, limits, dt, level, damping, motion, forces)


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """The robot's state, and functions of it by name."""

    robot: Robot
    q: Array
    v: Array
    tasks: tuple[BoundTask, ...]
    compiled: bool

    def of(self, function: Callable[..., Any], *names: str) -> Any:
        """Return a function of q and v at the state."""
        given = [getattr(self, name) for name in names]
        if not self.compiled:
            return function(self.robot, *given)
        return kernel(function, self.robot, names)(*given)

    def terms(self) -> tuple[Array, Array]:
        """Return the tasks' errors and Jacobians."""
        specs = tuple(t.spec for t in self.tasks)
        goals = np.concatenate([np.zeros(0), *(t.goal for t in self.tasks)])
        if not self.compiled or not self.tasks:
            return task_terms(self.robot, self.q, goals, specs)
        made = kernel(task_terms, self.robot, ("q", "goals"), {"goals": goals.shape}, specs=specs)
        return made(self.q, goals)

    def biases(self) -> Array:
        """Return J̇ v of the tasks."""
        specs = tuple(t.spec for t in self.tasks)
        if not self.compiled or not self.tasks:
            return task_biases(self.robot, self.q, self.v, specs)
        return kernel(task_biases, self.robot, ("q", "v"), specs=specs)(self.q, self.v)

    @functools.cached_property
    def dynamics(self) -> tuple[Array, Array]:
        """H, and the forces that v̇ does not change: C v, gravity, friction and springs."""
        H, c = self.of(mass_matrix, "q"), self.of(bias_force, "q", "v")
        return H, c - passive_loads(self.robot, self.q, self.v)


class _BaseMotion(NamedTuple):
    """v (or v̇) = offset + N u, u the speeds (or accelerations) with the indices `unknown`."""

    offset: Array
    N: Array
    unknown: Array


class _Forces(NamedTuple):
    """v̇ = offset + N a and torque = still + per_rate a for the unknown accelerations a."""

    offset: Array
    N: Array
    still: Array
    per_rate: Array


def _base_motion(at: _Evaluation, base: str, level: str, h: Array | None) -> _BaseMotion:
    """Return what satisfies the base's condition."""
    robot = at.robot
    if base == "flying":
        return _BaseMotion(np.zeros(robot.nv), np.eye(robot.nv), np.arange(robot.nv))
    if base == "fixed":
        free = joint_ranges(robot, (), "fixed").free
        held = (free == 0.0) & (np.abs(at.v) > 0.0)
        if np.any(held):
            raise InvalidValue("v: a fixed base is at rest, and its speeds are not zero")
        unknown = np.flatnonzero(free)
        return _BaseMotion(np.zeros(robot.nv), np.eye(robot.nv)[:, unknown], unknown)
    require_free_base(robot)
    refuse_kinematic(robot, "solve_tasks with a floating base")
    if np.any(np.asarray(robot.gravity, dtype=float)):
        raise InvalidValue("a floating base has no constant momentum under gravity")
    if level == "velocity":
        A = at.of(momentum_matrix, "q")
        now = np.zeros(6) if h is None else h
    else:
        H, c = at.dynamics
        A, now = H[:6], -c[:6]
    parts = np.linalg.solve(A[:, :6], np.column_stack([now, -A[:, 6:]]))
    count = robot.nv - 6
    offset = np.concatenate([parts[:, 0], np.zeros(count)])
    N = np.concatenate([parts[:, 1:], np.eye(count)])
    return _BaseMotion(offset, N, np.arange(6, robot.nv))


def _joint_forces(at: _Evaluation, base: str) -> _Forces:
    """Return v̇ and the drives' forces as affine functions of the unknown accelerations."""
    refuse_kinematic(at.robot, "solve_tasks with torques or accelerations")
    H, c = at.dynamics
    offset, N, _ = _base_motion(at, base, "acceleration", None)
    return _Forces(offset, N, H @ offset + c, H @ N)


def _solution(
    at: _Evaluation,
    limits: TaskLimits,
    dt: float,
    level: str,
    damping: float,
    motion: _BaseMotion,
    forces: _Forces | None,
) -> TaskSolution:
    robot, (offset, N, unknown) = at.robot, motion
    errors, J = at.terms()
    wanted, levels = _wanted(at, errors, J, level), list[Level]()
    for priority in sorted({task.priority for task in at.tasks}):
        own = np.concatenate([np.full(t.weights.size, t.priority == priority) for t in at.tasks])
        weights = np.concatenate([t.weights for t in at.tasks])[own]
        levels.append(Level(J[own] @ N, wanted[own] - J[own] @ offset, weights))
    bounds = speed_bounds(robot, at.q, at.v, limits, joint_ranges(robot, (), "flying"), dt)
    now = at.v[unknown]
    inequalities = _inequalities(at, bounds, dt, level, motion, forces, limits.torque, now)
    u = solve_levels(levels, inequalities, damping) if N.shape[1] else np.zeros(0)
    x = offset + N @ u
    off = J @ x - wanted
    rate = u if level == "acceleration" else (u - now) / dt
    return TaskSolution(
        velocity=x if level == "velocity" else at.v + dt * x,
        acceleration=None if forces is None else forces.offset + forces.N @ rate,
        torque=None if forces is None else forces.still + forces.per_rate @ rate,
        errors=target_errors(at.tasks, row_groups(robot, at.tasks), errors),
        deviations={
            t.name: float(np.linalg.norm(off[r])) for r, t in zip(_rows(at), at.tasks, strict=True)
        },
        active=_active(inequalities, u),
    )


def _rows(at: _Evaluation) -> list[slice]:
    found, start = list[slice](), 0
    for task in at.tasks:
        found.append(slice(start, start + task.weights.size))
        start += task.weights.size
    return found


def _wanted(at: _Evaluation, errors: Array, J: Array, level: str) -> Array:
    """Return the rates, or accelerations less the bias, that the tasks want."""
    none = np.zeros(0)
    gain = np.concatenate([none, *(np.full(t.weights.size, t.gain) for t in at.tasks)])
    moving = np.concatenate([none, *(t.velocity for t in at.tasks)])
    if level == "velocity":
        return gain * errors + moving
    return gain**2 * errors + 2.0 * gain * (moving - J @ at.v) - at.biases()


def _inequalities(
    at: _Evaluation,
    bounds: SpeedBounds,
    dt: float,
    level: str,
    motion: _BaseMotion,
    forces: _Forces | None,
    torque: bool,
    now: Array,
) -> Inequalities:
    """Return the limits as rows on the unknowns u; `now` are their current speeds."""
    offset, N, _ = motion
    lower, upper = bounds.lower, bounds.upper
    if level == "acceleration":
        lower, upper = (lower - at.v) / dt, (upper - at.v) / dt
    kept = [i for i, name in enumerate(bounds.names) if any(name)]
    A, low, high = N[kept], lower[kept] - offset[kept], upper[kept] - offset[kept]
    names = [bounds.names[i] for i in kept]
    if torque and forces is not None:
        effort = effort_limits(at.robot)
        limited = np.flatnonzero(np.isfinite(effort))
        rows, still = forces.per_rate[limited], forces.still[limited]
        if level == "velocity":
            rows, still = rows / dt, still - rows @ now / dt
        A = np.concatenate([A, rows])
        low = np.concatenate([low, -effort[limited] - still])
        high = np.concatenate([high, effort[limited] - still])
        owners = [f"torque of {_owner(at.robot, int(i))}" for i in limited]
        names += [(owner, owner) for owner in owners]
    low, high = np.maximum(low, -UNBOUNDED), np.minimum(high, UNBOUNDED)
    return Inequalities(A, low, high, tuple(names))


def _owner(robot: Robot, i: int) -> str:
    return next(j.name for j in robot.joints if j.mimic is None and j.v.start <= i < j.v.stop)


def _active(limits: Inequalities, u: Array) -> tuple[str, ...]:
    value = limits.A @ u
    near = ACTIVE * (1.0 + np.abs(value))
    low, high = value - limits.lower <= near, limits.upper - value <= near
    found = dict[str, None]()
    for pair, below, above in zip(limits.names, low, high, strict=True):
        found |= {name: None for name, hit in zip(pair, (below, above), strict=True) if hit}
    return tuple(name for name in found if name)
