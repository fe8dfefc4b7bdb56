"""Search for a configuration where q alone decides: a fixed base, or one that moves at will."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.model.state import difference
from remora.planning.problem import FIRST_DAMPING, PATIENCE, Found, Problem, Step
from remora.planning.starts import random_starts

#: Random starts that run as one batch.
BATCH = 16
#: Kinds of steps, and the damping of a walk.
DESCENT, WALK = np.zeros(1), np.ones(1)
WALK_DAMPING = np.array([0.5])


def search_configuration(problem: Problem, starts: int, rng: np.random.Generator) -> Found:
    """Take steps from the given start, then from batches of random ones, until one ends right."""
    q = best = problem.start
    errors = problem.terms(q)[0]
    if not problem.movable:
        return Found(q, _jacobian(problem, q), 0, 1)
    step, least = problem.step(), float(problem.cost(errors))
    reach = problem.reach(_jacobian(problem, q))
    iterations = tried = 0
    while tried < starts:
        first = tried == 0
        count = 1 if first else min(BATCH, starts - tried)
        begin = q[None] if first else random_starts(problem.robot, q, problem.ranges, count, rng)
        found, errors, steps = _descend(problem, step, begin, reach)
        if first and not problem.met(errors)[0]:
            left = problem.max_iterations - steps
            found, errors, more = _walk(problem, step, q, found, errors, left)
            steps += more
        tried, iterations = tried + count, iterations + steps
        met = problem.met(errors)
        if np.any(met):
            best = _closest(problem.robot, q, found[met])
            break
        costs = problem.cost(errors)
        k = int(np.argmin(costs))
        if costs[k] < least:
            best, least = found[k], float(costs[k])
    return Found(best, _jacobian(problem, best), iterations, tried)


def _descend(problem: Problem, step: Step, q: Array, reach: float) -> tuple[Array, Array, int]:
    """Take steps from each start `(n, nq)` until one meets the targets or none makes progress."""
    n = len(q)
    damping, limit = np.full((n, 1), FIRST_DAMPING), problem.tolerance**2
    if n == 1:  # a call for a single state has the least overhead
        q, damping = q[0], damping[0]
    errors, cost, slow, taken = problem.terms(q)[0], np.full(n, np.inf), np.zeros(n), 0
    squares, groups = problem.weights**2, problem.groups
    for _ in range(problem.max_iterations):
        if (groups @ (errors * errors).T).max(axis=0).min() <= limit:
            break
        q, errors, damping = step(q, damping, DESCENT)
        taken += n
        now = (errors * errors) @ squares
        slow = np.where(problem.progress(now, cost, reach), 0, slow + 1)
        cost = now
        if slow.min() >= PATIENCE:
            break
    return np.atleast_2d(q), np.atleast_2d(errors), taken


def _walk(
    problem: Problem, step: Step, q: Array, best: Array, errors: Array, most: int
) -> tuple[Array, Array, int]:
    """Walk from the given start, past local minima, where a descent did not meet the targets.

    Args:
        problem: the problem.
        step: its step.
        q: the start, `(nq,)`.
        best: what the descent found, `(1, nq)`.
        errors: there, `(1, m)`.
        most: number of steps.
    """
    best, least, now = best[0], float(problem.cost(errors[0])), errors[0]
    damping, limit = WALK_DAMPING, problem.tolerance**2
    groups, squares = problem.groups, problem.weights**2
    for taken in range(1, most + 1):
        q, found, damping = step(q, damping, WALK)
        cost = float((found * found) @ squares)
        if cost < least:
            best, least, now = q, cost, found
        if (groups @ (found * found)).max() <= limit:
            return q[None], found[None], taken
    return best[None], now[None], max(most, 0)


def _closest(robot: Robot, q: Array, found: Array) -> Array:
    """Return the configuration of `(n, nq)` that is the closest to q."""
    if len(found) == 1:
        return found[0]
    return found[int(np.argmin(np.linalg.norm(difference(robot, q, found), axis=-1)))]


def _jacobian(problem: Problem, q: Array) -> Array:
    return problem.weights[:, None] * problem.terms(q)[1] * problem.ranges.free
