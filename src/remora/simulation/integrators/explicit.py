"""Explicit Runge-Kutta step for any tableau, with error estimate and dense output."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from remora.algebra.array_ops import Array
from remora.simulation.integrators.step_result import StepResult, norm
from remora.simulation.integrators.tableaus import Tableau


class Rates(Protocol):
    """The right-hand side of a differential equation."""

    def rates(self, t: float, y: Array) -> Array:
        """Return the rate of y, `(n,)`."""
        ...


def attempt(
    tableau: Tableau,
    system: Rates,
    t: float,
    y: Array,
    rate: Array,
    h: float,
    scale: Array,
    again: bool = False,
) -> StepResult:
    """Return one step of a Runge-Kutta method.

    Args:
        tableau: the method.
        system: the rates of y.
        t: time, s.
        y: state, `(n,)`.
        rate: system.rates(t, y).
        h: step size, s.
        scale: error tolerance of each component, `(n,)`.
        again: unused.
    """
    stages, extra = len(tableau.b), len(tableau.dense_c)
    k = np.empty((stages + 1 + extra, y.size))
    k[0] = rate
    for i, (c, a) in enumerate(tableau.later_stages, start=1):
        k[i] = system.rates(t + c * h, y + h * (a @ k[:i]))
    change = h * (tableau.b @ k[:stages])
    k[stages] = system.rates(t + h, y + change)
    error = _error(tableau, k[: stages + 1], h, scale)
    made = False

    def dense(theta: Array) -> Array:
        nonlocal made
        if not made:  # its additional stages are evaluated on first use
            for i in range(extra):
                n = stages + 1 + i
                shift = h * (tableau.dense_a[i, :n] @ k[:n])
                k[n] = system.rates(t + tableau.dense_c[i] * h, y + shift)
            made = True
        return _between(tableau, k, change, h, theta)

    def fastest() -> Array:
        return np.max(np.abs(k[: stages + 1]), axis=0)

    return StepResult(change, error, dense, fastest, k[stages])


def _error(tableau: Tableau, k: Array, h: float, scale: Array) -> float:
    """Return the error norm; two estimates are combined as in DOP853 [HNW93, section II.10]."""
    if len(tableau.errors) == 0:
        return 0.0
    fifth = norm(h * (tableau.errors[0] @ k), scale)
    if len(tableau.errors) == 1 or fifth == 0.0:
        return fifth
    third = norm(h * (tableau.errors[1] @ k), scale)
    return fifth * fifth / math.hypot(fifth, 0.1 * third)


def _between(tableau: Tableau, k: Array, change: Array, h: float, theta: Array) -> Array:
    """Return y(t + θh) - y(t) `(m, n)`, the dense output as a polynomial nested in θ and 1 - θ."""
    stages = len(tableau.b)
    bend = h * k[0] - change
    parts = [change, bend, change - h * k[stages] - bend]
    parts += [h * (row @ k) for row in tableau.dense_d]
    x = theta[:, None]
    result = np.zeros((len(theta), change.size))
    for i in reversed(range(len(parts))):
        result = (parts[i] + result) * (x if i % 2 == 0 else 1.0 - x)
    return result
