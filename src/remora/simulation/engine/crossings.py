"""Zero crossings of event conditions within a step, from Chebyshev interpolants.

Within a step a condition is a function of θ in [0, 1]. It is interpolated at the 9 Chebyshev points
of an interval, the whole step first; an interval on which the last coefficients are not small is
halved, down to 1/64 of the step. On each interval the points, and the extrema of the interpolant
that come near zero, are looked at in turn. Coordinates and speeds of joints are polynomials of
degree 8 at most in θ (those of the integrators are of degree 3 to 7), so nothing of theirs is
missed. Of a smooth condition an excursion through zero and back is missed only if it is smaller
than `RESOLVED` times the condition on its interval. The condition of an event that has the same
value at all points of an interval may be a step function, a truth value above all: it is looked at
on a grid of 1/64 of the step, too. What it does between two points of that grid only is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from remora.algebra.array_ops import Array

#: Degree of the interpolants: at least that of every dense output.
DEGREE = 8
#: Maximum number of bisections of the step.
MOST_HALVINGS = 6
#: The interpolant is accurate if its last coefficients are this small, relative to the condition.
RESOLVED = 1e-9
#: Rounding error of a dense output, relative to its largest value: extrema this small touch zero
#: without crossing it.
ROUNDING = 64.0 * float(np.finfo(float).eps)
#: Conditions that are constant at the points of an interval are looked at so often in a step.
FINE = 64
#: Smallest difference of two θ: a step that starts at t = 0 has no last bit of its own there.
FINEST = 1e-18
#: Looks at a condition until its zero is known to the last bit.
MOST_LOOKS = 120
#: The Chebyshev points in [0, 1], in ascending order.
POINTS = 0.5 - 0.5 * np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
#: Maps values at the points to coefficients of Chebyshev polynomials of 2θ - 1.
_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(2.0 * POINTS - 1.0, DEGREE))

_NOWHERE = (np.zeros(0), np.zeros(0))

#: θ `(p,)` -> all conditions there, `(p, m)`.
Look = Callable[[Array], Array]
#: Index of a condition, its value before and after -> whether it crossed zero in its direction.
Crossed = Callable[[int, float, float], bool]


class Crossing(NamedTuple):
    """The first crossing of a condition in a step.

    Attributes:
        row: index of the condition.
        low: θ before it.
        high: θ after it.
        before: the condition at low.
        after: the condition at high.
    """

    row: int
    low: float
    high: float
    before: float
    after: float


def crossings(look: Look, first: Array, crossed: Crossed, events: int = 0) -> list[Crossing]:
    """Return the first crossing of every condition that crosses zero within a step.

    Args:
        look: the conditions within the step.
        first: the conditions at its start, `(m,)`.
        crossed: what counts as a crossing.
        events: how many of them, the first, are conditions of events, which may be step functions.
    """
    values = np.vstack([first, look(POINTS[1:])])
    coefficients: Array = np.abs(_COEFFICIENTS @ values)
    size = np.max(np.abs(values), axis=0)
    tail = coefficients[-1] + coefficients[-2]
    away = coefficients[0] > np.sum(coefficients[1:], axis=0)
    known = away & (tail <= RESOLVED * size)  # never zero
    known[:events] &= ~_constant(values[:, :events])
    found: list[Crossing] = []
    for k in np.flatnonzero(~known).tolist():
        search = _Search(look, k, crossed, smooth=k >= events)
        crossing = search.first(0.0, 1.0, values[:, k], 0)
        if crossing is not None:
            found.append(crossing)
    return found


class _Search:
    """The search for one condition."""

    def __init__(self, look: Look, row: int, crossed: Crossed, smooth: bool) -> None:
        self._look, self._row, self._crossed, self._smooth = look, row, crossed, smooth

    def _seen(self, theta: Array) -> Array:
        return self._look(theta)[:, self._row]

    def first(self, low: float, high: float, values: Array, depth: int) -> Crossing | None:
        """Return the first crossing between low and high; `values` at the Chebyshev points."""
        coefficients: Array = _COEFFICIENTS @ values
        size, small = np.max(np.abs(values)), np.abs(coefficients[-2:]).sum()
        if small > RESOLVED * size and depth < MOST_HALVINGS:
            middle, half = 0.5 * (low + high), DEGREE // 2
            for a, b, ends in (
                (low, middle, (values[0], values[half])),
                (middle, high, (values[half], values[-1])),
            ):
                inner = self._seen(a + (b - a) * POINTS[1:-1])
                part = self.first(a, b, np.concatenate([ends[:1], inner, ends[1:]]), depth + 1)
                if part is not None:
                    return part
            return None
        places, seen = POINTS, values
        more, found = self._between(low, high, values, coefficients, 10.0 * small + 1e-12 * size)
        if more.size:
            places, seen = np.concatenate([places, more]), np.concatenate([seen, found])
            order = np.argsort(places, kind="stable")
            places, seen = places[order], seen[order]
        for i in range(1, places.size):
            if self._crossed(self._row, float(seen[i - 1]), float(seen[i])):
                a, b = (low + (high - low) * float(x) for x in places[i - 1 : i + 1])
                return Crossing(self._row, a, b, float(seen[i - 1]), float(seen[i]))
        return None

    def _between(
        self, low: float, high: float, values: Array, coefficients: Array, margin: float
    ) -> tuple[Array, Array]:
        """Return further places in the interval, in [0, 1], and the condition there."""
        if not self._smooth and _constant(values):
            count = round(FINE * (high - low))
            places = np.arange(1, count) / count
            return (places, self._seen(low + (high - low) * places)) if count > 1 else _NOWHERE
        places = _near_zero(coefficients, margin)
        if not places.size:
            return _NOWHERE
        seen = self._seen(low + (high - low) * places)
        sure = np.abs(seen) > ROUNDING * np.max(np.abs(values))  # else it only touches zero
        return places[sure], seen[sure]


def _constant(values: Array) -> Any:
    """Tell whether all values are the same, to the last bit; of several conditions, of each."""
    return np.all(values == values[0], axis=0)


def _near_zero(coefficients: Array, margin: float) -> Array:
    """Return the inner extrema, in [0, 1], at which the interpolant is zero or beyond."""
    slope = chebyshev.chebder(coefficients)
    size = float(np.max(np.abs(slope)))
    if size < float(np.finfo(float).tiny):
        return np.zeros(0)
    slope, coefficients = slope / size, coefficients / size
    # last coefficients that are rounding would be divided by
    roots = np.asarray(chebyshev.chebroots(chebyshev.chebtrim(slope, float(np.finfo(float).eps))))
    real = np.real(roots[np.abs(np.imag(roots)) <= 1e-6])
    real = np.sort(real[np.abs(real) < 1.0])
    value = chebyshev.chebval(real, coefficients)
    bend = chebyshev.chebval(real, chebyshev.chebder(slope))
    # minima that are not above zero, maxima that are not below
    margin /= size
    near = np.where(bend > 0.0, value <= margin, np.where(bend < 0.0, value >= -margin, True))
    return 0.5 + 0.5 * real[near]


def first_place(look: Look, crossing: Crossing, crossed: Crossed) -> float:
    """Return the smallest θ known at which a condition has crossed zero.

    Alternates the Illinois variant of regula falsi with bisection, so that the bracket also closes
    to the last bit where the condition is discontinuous.

    Args:
        look: the conditions within the step.
        crossing: a bracket of the crossing.
        crossed: whether a sign change counts as a crossing.
    """
    row, low, high, f_low, f_high = crossing
    before, kept = f_low, 0
    for turn in range(MOST_LOOKS):
        if high - low <= max(np.spacing(high), FINEST):
            break
        x = 0.5 * (low + high)
        if turn % 2 == 0 and f_high != f_low:
            secant = high - f_high * (high - low) / (f_high - f_low)
            x = secant if low < secant < high else x
        f = float(look(np.array([x]))[0, row])
        if crossed(row, before, f):
            high, f_high = x, f
            f_low *= 0.5 if kept == -1 else 1.0
            kept = -1
        else:
            low, f_low = x, f
            f_high *= 0.5 if kept == 1 else 1.0
            kept = 1
    return high
