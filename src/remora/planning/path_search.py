"""Search for the end of a straight joint path along which a floating base recoils."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.state import difference
from remora.planning.damped_step import (
    LARGEST_DAMPING,
    REFUSED,
    SMALLEST_DAMPING,
    TAKEN,
    bounded_solution,
    movable,
    near_cost,
)
from remora.planning.floating_path import (
    base_motion,
    base_motion_rate,
    end_of_path,
    end_variation,
    sampled_path,
)
from remora.planning.joint_ranges import coordinate_indices
from remora.planning.problem import FIRST_DAMPING, PATIENCE, Found, Problem
from remora.planning.starts import random_starts

#: Longest joint motion of one Magnus step while searching, rad or m; the result is refined.
STEP = 0.15
FEWEST_STEPS, MOST_STEPS = 4, 64
#: Times by which the steps of the path are refined at most.
MOST_REFINED = 16


def search_path(problem: Problem, starts: int, rng: np.random.Generator) -> Found:
    """Take steps from a path that does not move, then from random ones, until one ends right."""
    iterations = tried = 0
    way, J, least = np.zeros(problem.robot.nv - 6), np.zeros(0), np.inf
    for begin in _guesses(problem, starts, rng):
        moved, errors, own, steps = _descend(problem, begin)
        tried, iterations = tried + 1, iterations + steps
        cost = float(problem.cost(errors))
        if cost < least or J.size == 0:
            way, J, least = moved, own, cost
        if problem.met(errors):
            way, J = moved, own
            break
    response = base_motion(problem.robot, problem.compiled)
    path = sampled_path(problem.robot, problem.start, way, _steps(way), response)
    J = J * np.concatenate([np.zeros(6), problem.ranges.free[6:]])
    return Found(path.q[-1], J, iterations, tried, path)


def _guesses(problem: Problem, starts: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield first guesses of the joints' way: none, then random ones."""
    free = problem.ranges.free[6:]
    yield np.zeros(free.size)
    for _ in range(starts - 1 if np.any(free) else 0):
        end = random_starts(problem.robot, problem.start, problem.ranges, 1, rng)[0]
        yield difference(problem.robot, problem.start, end)[6:] * free


def _steps(way: Array) -> int:
    longest = float(np.max(np.abs(way), initial=0.0))
    return min(max(math.ceil(longest / STEP), FEWEST_STEPS), MOST_STEPS)


def _descend(problem: Problem, way: Array) -> tuple[Array, Array, Array, int]:
    """Take Levenberg-Marquardt steps; return the way, its errors and Jacobian, and their number."""
    robot, ranges, start = problem.robot, problem.ranges, problem.start
    response = base_motion(robot, problem.compiled)
    rate = base_motion_rate(robot, problem.compiled)
    free = ranges.free[6:]

    def end(way: Array, steps: int) -> tuple[Array, Array, Array]:
        q = end_of_path(robot, start, way, steps, response)
        return q, *problem.terms(q)

    damping, slow, refined, count = FIRST_DAMPING, 0, 1, 0
    q, errors, J = end(way, _steps(way))
    while True:
        steps = refined * _steps(way)
        W = end_variation(robot, start, way, steps, response, rate)
        Jw = problem.weights[:, None] * (J @ W)
        full = np.concatenate([np.zeros((len(Jw), 6)), Jw], axis=1)
        if problem.met(errors):  # as far as these steps resolve the path
            finer = end(way, 4 * steps)
            if problem.met(finer[1]) or refined >= MOST_REFINED:
                return way, finer[1], full, count
            refined, (q, errors, J) = 4 * refined, finer
            continue
        if count >= problem.max_iterations or slow >= PATIENCE or not np.any(free):
            return way, errors, full, count
        e = problem.weights * errors
        cost = float(e @ e)
        usable = free * movable(robot, q, ranges.lower, ranges.upper, full.T @ e)[6:]
        usable = np.concatenate([np.zeros(6), usable])
        mu = damping * near_cost(full, e)
        step = bounded_solution(robot, q, ranges.lower, ranges.upper, full, e, usable, mu)[6:]
        moved = _within(problem, way + step)
        trial = end(moved, refined * _steps(moved))
        count += 1
        now = float(problem.cost(trial[1]))
        slow = 0 if problem.progress(now, cost, problem.reach(full)) else slow + 1
        if now < cost:
            way, (q, errors, J), damping = moved, trial, max(TAKEN * damping, SMALLEST_DAMPING)
        else:
            damping = min(REFUSED * damping, LARGEST_DAMPING)


def _within(problem: Problem, way: Array) -> Array:
    """Return the way with each coordinate's end clipped to its range."""
    clipped = way.copy()
    for i, k in enumerate(coordinate_indices(problem.robot)[6:]):
        if k is not None and problem.ranges.free[6 + i]:
            low, high = problem.ranges.lower[k], problem.ranges.upper[k]
            clipped[i] = np.clip(problem.start[k] + way[i], low, high) - problem.start[k]
    return clipped
