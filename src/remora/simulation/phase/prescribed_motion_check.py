"""Consistency check of prescribed motions: v is the rate of q, v̇ the rate of v, no jumps.

The drives of a prescribed joint supply the forces that its v̇ requires. A jump of v would need an
impulse, which is not computed, and a v that is not the rate of q has the momentum of a different
motion: both would make momentum and energy of the run wrong. So every step is checked against

    log(q(a)⁻¹ q(b)) = ∫ u̇ dt,  u̇ the rate of u(t) = log(q(a)⁻¹ q(t)) by v,
    v(b) - v(a) = ∫ v̇ dt

by Gauss quadrature of order 8, on halves of the step where it fails on the whole. A smooth motion
soon passes; a jump stays as large in the shortest interval. Jumps of v̇ are allowed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import SimulationError
from remora.simulation.inputs.held_joints import HeldJoint

#: Tolerance of positions and speeds, relative to their size (at least 1).
CLOSE = 1e-9
#: Tolerance of rates, relative to their size.
CLOSE_RATE = 1e-6
#: Maximum number of subdivided intervals of a step before its rates are considered wrong.
MOST_INTERVALS = 200
#: Intervals shorter than this are not divided, in units in the last place of the time.
SHORTEST = 256.0

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS

#: (t) -> q, v, v̇ of the joint.
At = Callable[[float], tuple[Array, Array, Array]]


def check_step(held: HeldJoint, at: At, start: float, stop: float) -> None:
    """Raise if a motion is inconsistent or jumps between two times.

    Args:
        held: the joint.
        at: its motion.
        start: s.
        stop: s.

    Raises:
        SimulationError: with joint, time and values.
    """
    first = _fault(held, at, start, stop)
    intervals, looked = [] if first is None else [(start, stop)], 0
    while intervals:
        a, b = intervals.pop()
        if _fault(held, at, a, b) is None:
            continue
        looked += 1
        middle = 0.5 * (a + b)
        if b - a <= SHORTEST * np.spacing(max(abs(a), abs(b))) or not a < middle < b:
            check_joined(held, b, at(a), at(b))
        elif looked < MOST_INTERVALS:
            intervals += [(middle, b), (a, middle)]
            continue
        raise SimulationError(
            f"contradiction: the motion of joint {held.joint.name!r} {first}", start
        )


def check_joined(
    held: HeldJoint,
    t: float,
    before: tuple[Array, Array, Array],
    after: tuple[Array, Array, Array],
) -> None:
    """Raise if q or v of a motion jumps at a time.

    Args:
        held: the joint.
        t: the time, s.
        before: q, v, v̇ just before it.
        after: q, v, v̇ just after it.

    Raises:
        SimulationError: with joint, time and values.
    """
    name = held.joint.name
    apart = 2.0 * SHORTEST * np.spacing(abs(t))  # maximum difference of the two times
    off = np.abs(held.row.difference(before[0], after[0]))
    size = max(_size(before[0]), _size(after[0]), 1.0)
    if np.any(off > CLOSE * size + apart * max(_size(before[1]), _size(after[1]))):
        raise SimulationError(
            f"contradiction: the motion of joint {name!r} jumps from q = {_shown(before[0])} to "
            f"{_shown(after[0])} at t = {t:.9g} s",
            t,
        )
    off = np.abs(after[1] - before[1])
    size = max(_size(before[1]), _size(after[1]), 1.0)
    if np.any(off > CLOSE * size + apart * max(_size(before[2]), _size(after[2]))):
        raise SimulationError(
            f"contradiction: the velocity of the motion of joint {name!r} jumps from "
            f"{_shown(before[1])} to {_shown(after[1])} at t = {t:.9g} s, which needs an impulse; "
            "make it continuous, or begin a phase there with impulse=True",
            t,
        )


def _fault(held: HeldJoint, at: At, a: float, b: float) -> str | None:
    """Return the fault of the motion between two times, or None."""
    h = b - a
    (q0, v0, a0), (q1, v1, a1) = at(a), at(b)
    inner = [at(a + float(x) * h) for x in _NODES]
    passed: list[Array] = [held.row.difference(q0, q) for q, _, _ in inner]
    rates = [held.row.log_rate(u, v) for u, (_, v, _) in zip(passed, inner, strict=True)]
    clock = SHORTEST * np.spacing(max(abs(a), abs(b)))
    speed = max(_size(v0), _size(v1), *(_size(v) for _, v, _ in inner))
    growth = max(_size(a0), _size(a1), *(_size(x) for _, _, x in inner))
    for what, of, change, mean, told, size, rate in (
        ("v", "q", held.row.difference(q0, q1), _mean(rates), v0, max(_size(q0), 1.0), speed),
        ("vdot", "v", v1 - v0, _mean([x for *_, x in inner]), a0, max(speed, 1.0), growth),
    ):
        off = np.abs(change - h * mean)
        if np.any(off > CLOSE * size + (CLOSE_RATE * h + clock) * rate):
            return (
                f"says {what} = {_shown(told)} at t = {a:.9g} s, but from there to {b:.9g} s its "
                f"{of} changes at {_shown(change / h)} per second"
            )
    return None


def _mean(values: list[Array]) -> Array:
    return np.sum(np.stack(values) * _WEIGHTS[:, None], axis=0)


def _size(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _shown(x: Array) -> list[float]:
    return [float(f"{number:.9g}") for number in x.tolist()]
