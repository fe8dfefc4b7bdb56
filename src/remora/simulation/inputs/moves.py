"""Motions relative to a joint's position at the start of a phase, and splines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import hermite
from remora.algebra.array_ops import Array, ArrayLike, asarray, cos, is_array, less, select, sin
from remora.simulation.inputs.profiles import Motion, Profile, polynomial


@dataclass(frozen=True, eq=False)
class Sine:
    """A sine over time: amplitude × sin(omega (t - start) + phase).

    Attributes:
        amplitude: a number, or an array.
        omega: rad/s.
        phase: rad.
        start: s.
    """

    amplitude: Any
    omega: float
    phase: float = 0.0
    start: float = 0.0

    def __call__(self, t: float) -> Array:
        """Return the value at a time."""
        angle = self.omega * (t - self.start) + self.phase
        return np.asarray(self.amplitude, dtype=float) * sin(asarray(angle))


class Move:
    """Motion of a joint from its position at the start of the phase, in time since that start.

    Attributes:
        begin: q of the joint at the start of the phase, `(n,)` -> its motion from there.
        told: a plain description.
    """

    def __init__(self, begin: Callable[[Array], Motion], told: Mapping[str, Any]) -> None:
        """Store."""
        self.begin, self.told = begin, dict(told)

    @classmethod
    def to(cls, goal: ArrayLike, start: float, stop: float) -> Move:
        """Return the rest-to-rest move to a goal, see `Motion.between`.

        Args:
            goal: rad or m.
            start: s.
            stop: s.
        """
        q1 = np.atleast_1d(np.asarray(goal, dtype=float))
        told = {"to": q1.tolist(), "between": [start, stop]}
        return cls(lambda q0: Motion.between(start, stop, q0, q1), told)

    @classmethod
    def sine(cls, amplitude: ArrayLike, omega: float, phase: float = 0.0) -> Move:
        """Return q(t) = q₀ + amplitude × (sin(omega t + phase) - sin(phase)).

        The initial speed is amplitude × omega × cos(phase): zero for phase = -π/2.

        Args:
            amplitude: rad or m.
            omega: rad/s.
            phase: rad.
        """
        size = np.atleast_1d(np.asarray(amplitude, dtype=float))

        def begin(q0: Array) -> Motion:
            def moved(t: Any) -> tuple[Array, Array, Array]:
                angle = asarray(omega * t + phase)
                s, c = sin(angle), cos(angle)
                return q0 + size * (s - np.sin(phase)), size * omega * c, -size * omega**2 * s

            return Motion(moved)

        told = {"sine": {"amplitude": size.tolist(), "omega": omega, "phase": phase}}
        return cls(begin, told)

    @classmethod
    def through(cls, times: Sequence[float], values: ArrayLike) -> Move:
        """Return the spline through values, see `through`, from the joint's position at time 0.

        Args:
            times: ascending, after 0, `(n,)`, s.
            values: `(n,)` or `(n, k)`, rad or m.
        """
        x = np.asarray(values, dtype=float).reshape(len(times), -1)

        def begin(q0: Array) -> Motion:
            return through([0.0, *times], np.concatenate([q0[None], x]))

        return cls(begin, {"through": x.tolist(), "times": list(times)})


def through(times: ArrayLike, values: ArrayLike) -> Motion:
    """Return the cubic spline through values, at rest at both ends.

    Its acceleration is continuous except at the ends. With the increments h and d of times and
    values, the slopes s at the inner times satisfy
    sᵢ₋₁/hᵢ₋₁ + 2 (1/hᵢ₋₁ + 1/hᵢ) sᵢ + sᵢ₊₁/hᵢ = 3 (dᵢ₋₁/hᵢ₋₁² + dᵢ/hᵢ²).

    Args:
        times: ascending, `(n,)`, s; the joint is at rest before the first and after the last.
        values: `(n,)` or `(n, k)`, rad or m.
    """
    points = Profile(times, values)
    t, x = points.times, points.values.reshape(points.times.size, -1)
    m, table = x.shape[1], np.column_stack([t[:-1], np.diff(t), x[:-1], *_pieces(t, x)])

    def spline(when: Any) -> tuple[Array, Array, Array]:
        row, s, inside = _interval(table, t, when)
        first, step, a, b = (row[2 + k * m : 2 + (k + 1) * m] for k in range(4))
        curve, length = (s, step, a, b), row[1]
        place, speed = first + hermite.value(*curve), hermite.rate(*curve) / length
        return place, speed, inside * hermite.second_rate(*curve) / length**2

    def pieces(low: float, high: float) -> Array:
        if high <= t[0] or low >= t[-1]:
            return polynomial([x[-1] if low >= t[-1] else x[0]], low, low, 1.0)
        row = table[min(int(np.searchsorted(t, 0.5 * (low + high))), len(table)) - 1]
        first, step, a, b = (row[2 + k * m : 2 + (k + 1) * m] for k in range(4))
        cubic = [first, a, 3.0 * step - 2.0 * a - b, a + b - 2.0 * step]
        return polynomial(cubic, low, row[0], row[1])

    motion = Motion(spline, t.tolist())
    motion.pieces = pieces
    motion.given = {"times": t.tolist(), "values": x.tolist()}
    return motion


def peak_speed(times: Array, values: Array) -> Array:
    """Return the largest absolute speed of the spline through values, `(k,)`; see `through`.

    Args:
        times: ascending, `(n,)`, s.
        values: `(n, k)`, rad or m.
    """
    change, first, last = _pieces(times, values)
    bend = 3.0 * (
        first + last - 2.0 * change
    )  # the rate is first + x (last - first + bend (x - 1))
    top = 0.5 - 0.5 * (last - first) / np.where(bend == 0.0, np.inf, bend)
    rates = [hermite.rate(np.clip(x, 0.0, 1.0), change, first, last) for x in (0.0, top, 1.0)]
    return np.max(np.abs(rates) / np.diff(times)[:, None], axis=(0, 1))


def _pieces(t: Array, x: Array) -> tuple[Array, Array, Array]:
    """Return the changes of a spline's pieces and their slopes at both ends, times their length."""
    n, h, d = t.size, np.diff(t), np.diff(x, axis=0)
    M, right = np.eye(n), np.zeros_like(x)
    for i in range(1, n - 1):
        M[i, i - 1 : i + 2] = 1.0 / h[i - 1], 2.0 / h[i - 1] + 2.0 / h[i], 1.0 / h[i]
        right[i] = 3.0 * (d[i - 1] / h[i - 1] ** 2 + d[i] / h[i] ** 2)
    slope: Array = np.linalg.solve(M, right)
    return d, h[:, None] * slope[:-1], h[:, None] * slope[1:]


def _interval(table: Array, times: Array, when: Any) -> tuple[Array, Any, Any]:
    """Return the interval of a spline that holds a time, which may be symbolic.

    Args:
        table: rows [start, length, ...] of the intervals.
        times: their ends, `(n + 1,)`, s.
        when: s.

    Returns:
        Its row, the place within it, from 0 to 1, and 1 if the time is within the spline, else 0.
    """
    if not (is_array(when) and when.dtype == object):
        k = int(np.searchsorted(times, when, side="right")) - 1
        row = table[min(max(k, 0), len(table) - 1)]
        s = min(max((when - row[0]) / row[1], 0.0), 1.0)
        return row, s, float(times[0] <= when <= times[-1])
    row = table[0]
    for k in range(1, len(table)):
        row = select(less(times[k], when), table[k], row)
    s = (when - row[0]) / row[1]
    s = select(less(s, 0.0), 0.0, select(less(1.0, s), 1.0, s))
    return row, s, select(less(when, times[0]), 0.0, select(less(times[-1], when), 0.0, 1.0))
