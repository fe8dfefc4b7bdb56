"""One Levenberg-Marquardt step of inverse kinematics within the ranges of the joints.

With the weighted error e, its Jacobian J and cost ½ e·e, the step solves

    (J Jᵀ + μ) y = e,  dq = Jᵀ y,    μ = damping × min(cost, ½ R |e|) + rounding,

for as many unknowns as J has rows (or columns, if these are fewer). μ vanishes with the error, so
convergence is quadratic where the goal can be reached, and the step stays short where it cannot, or
where the arm is singular. R² = 10 |J|² is about how far all joints together reach: beyond it, for
goals far outside the workspace or of a base that flies there, μ grows with the distance only.
Coordinates that would leave their range are put to its end, and the others' step is solved anew, a
few times over.

In a descent a step that does not reduce the cost is not taken, and the damping grows. In a walk
every step is taken and the damping stays: it passes local minima in which a descent ends.
Everything is arithmetic on arrays, so many starts run as one batch of compiled code.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import linear, vector
from remora.algebra.array_ops import Array, clip, constant, less, select, sqrt, stack
from remora.model.robot import Robot
from remora.model.state import integrate
from remora.planning.joint_ranges import coordinate_indices
from remora.planning.task_equations import TaskSpec, task_errors, task_jacobian

#: Fraction of the trace that is added to J Jᵀ, so that its pivots stay above rounding.
PIVOT_MARGIN = 1e-12
#: Added besides, for frames that nothing moves.
TINY = 1e-30
#: Factors on the damping after a step that was taken, and after one that was not.
TAKEN, REFUSED = 0.2, 8.0
#: Times that coordinates are put to the ends of their ranges in one step, before the last solution.
PASSES = 2
SMALLEST_DAMPING, LARGEST_DAMPING = 1e-8, 1e12
#: R²/|J|².
FAR = 10.0


def damped_step(
    robot: Robot,
    q: Array,
    goals: Array,
    weights: Array,
    free: Array,
    lower: Array,
    upper: Array,
    damping: Array,
    walk: Array,
    specs: tuple[TaskSpec, ...],
) -> tuple[Array, Array, Array]:
    """Return q after one step, the errors there (without weights), and the next damping.

    Args:
        robot: the robot.
        q: configuration within its range, `(..., nq)`.
        goals: of all tasks, `(..., k)`.
        weights: of all rows, `(..., m)`.
        free: 1 for each speed that may be used, else 0, `(..., nv)`.
        lower: `(..., nq)`.
        upper: `(..., nq)`.
        damping: `(..., 1)`.
        walk: 1 for a step of a walk, 0 for one of a descent, `(..., 1)`.
        specs: the tasks.

    Returns:
        q `(..., nq)`, errors `(..., m)`, damping `(..., 1)`.
    """
    errors = task_errors(robot, q, goals, specs)
    e = weights * errors
    J = weights[..., None] * task_jacobian(robot, q, specs)
    cost = 0.5 * vector.dot(e, e)
    usable = free * movable(robot, q, lower, upper, vector.apply(vector.transpose(J), e))
    mu = damping * near_cost(J * free[..., None, :], e)
    step = bounded_solution(robot, q, lower, upper, J, e, usable, mu)
    moved = clip(integrate(robot, q, step), lower, upper)
    there = task_errors(robot, moved, goals, specs)
    lighter = less(vector.dot(weights * there, weights * there), 2.0 * cost)
    walking = less(0.5, walk)
    factor = select(lighter, TAKEN, REFUSED)
    next_damping = clip(factor * damping, SMALLEST_DAMPING, LARGEST_DAMPING)
    taken = less(0.5, select(lighter, 1.0, walk))
    return (
        select(taken, moved, q),
        select(taken, there, errors),
        select(walking, damping, next_damping),
    )


def near_cost(J: Array, e: Array) -> Array:
    """Return min(½ e·e, ½ R |e|) `(..., 1)` with R² = 10 |J|²: half the square of a near error."""
    squares, entries = vector.dot(e, e), J.reshape((*J.shape[:-2], -1))
    far = sqrt(FAR * vector.dot(entries, entries) * squares)
    return 0.5 * select(less(far, squares), far, squares)


def bounded_solution(
    robot: Robot,
    q: Array,
    lower: Array,
    upper: Array,
    J: Array,
    e: Array,
    usable: Array,
    mu: Array,
) -> Array:
    """Return dq `(..., nv)`: coordinates stop at the ends of their ranges, the others compensate.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        lower: `(..., nq)`.
        upper: `(..., nq)`.
        J: `(..., m, nv)`.
        e: `(..., m)`.
        usable: 1 for each speed that may be used, else 0, `(..., nv)`.
        mu: damping, `(..., 1)`.
    """
    at_end = 0.0 * usable
    for _ in range(PASSES):
        rest = e - vector.apply(J, at_end)
        step = damped_solution(J * usable[..., None, :], rest, mu)
        way, beyond = _ends(robot, q, lower, upper, step)
        at_end = at_end + usable * beyond * way
        usable = usable * (1.0 - beyond)
    return at_end + damped_solution(J * usable[..., None, :], e - vector.apply(J, at_end), mu)


def _ends(robot: Robot, q: Array, lower: Array, upper: Array, step: Array) -> tuple[Array, Array]:
    """Return the way to the end of each range, and 1 for each step that goes beyond it, else 0."""
    ways: list[Array] = []
    beyond: list[Array] = []
    for i, k in enumerate(coordinate_indices(robot)):
        own = step[..., i]
        if k is None:
            ways.append(0.0 * own)
            beyond.append(0.0 * own)
            continue
        down, up = lower[..., k] - q[..., k], upper[..., k] - q[..., k]
        low, high = less(own, down), less(up, own)
        ways.append(select(low, down, up))
        beyond.append(select(low, 1.0, select(high, 1.0, 0.0)))
    return stack(ways), stack(beyond)


def damped_solution(J: Array, e: Array, mu: Array) -> Array:
    """Return dq `(..., nv)` of (JᵀJ + μ) dq = Jᵀe, by the smaller of the two systems."""
    m, n = J.shape[-2:]
    Jt = vector.transpose(J)
    wide = m <= n
    A = J @ Jt if wide else Jt @ J
    trace = sum((A[..., i, i] for i in range(1, A.shape[-1])), start=A[..., 0, 0])
    shift = mu + PIVOT_MARGIN * stack([trace]) + TINY
    A = A + shift[..., None] * constant(np.eye(A.shape[-1]), like=A)
    right = e[..., None] if wide else Jt @ e[..., None]
    y = linear.ldl_solve(linear.ldl(A), right)
    return (Jt @ y if wide else y)[..., 0]


def movable(robot: Robot, q: Array, lower: Array, upper: Array, descent: Array) -> Array:
    """Return 0 for each speed whose coordinate would be pushed out of its range, else 1."""
    parts: list[Array] = []
    for i, k in enumerate(coordinate_indices(robot)):
        if k is None:
            parts.append(1.0 + 0.0 * descent[..., i])
            continue
        down, up = less(descent[..., i], 0.0), less(0.0, descent[..., i])
        below = select(less(lower[..., k], q[..., k]), 1.0, select(down, 0.0, 1.0))
        above = select(less(q[..., k], upper[..., k]), 1.0, select(up, 0.0, 1.0))
        parts.append(below * above)
    return stack(parts)
