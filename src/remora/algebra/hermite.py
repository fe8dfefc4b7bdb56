"""The cubic Hermite polynomial on [0, 1]: through 0 and `change`, with given slopes at both ends.

    p(x) = x (d + (1 - x) g),    g = (a - d) - x m,    m = (a - d) - (d - b),

with d the change, a the slope at 0 and b the slope at 1. This form is exact at both ends.
"""

from __future__ import annotations

from remora.algebra.array_ops import Array


def value(x: Array, change: Array, first: Array, last: Array) -> Array:
    """Return p(x).

    Args:
        x: argument in [0, 1]; it broadcasts with the others.
        change: p(1), any shape.
        first: slope at 0.
        last: slope at 1.
    """
    g, _ = _inner(x, change, first, last)
    return x * (change + (1.0 - x) * g)


def rate(x: Array, change: Array, first: Array, last: Array) -> Array:
    """Return dp/dx at x; see `value`."""
    g, m = _inner(x, change, first, last)
    return change + (1.0 - 2.0 * x) * g - x * (1.0 - x) * m


def second_rate(x: Array, change: Array, first: Array, last: Array) -> Array:
    """Return d²p/dx² at x; see `value`."""
    g, m = _inner(x, change, first, last)
    return -2.0 * (g + (1.0 - 2.0 * x) * m)


def _inner(x: Array, change: Array, first: Array, last: Array) -> tuple[Array, Array]:
    start, end = first - change, change - last
    return start - x * (start - end), start - end
