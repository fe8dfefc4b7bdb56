"""Conditions and choices as arithmetic on arrays `(1,)` or `(n,)`, for blocks of programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array, asarray, less, select


def each(x: Array) -> list[Array]:
    """Return the elements of a vector, each `(1,)`."""
    return [x[i : i + 1] for i in range(x.shape[0])]


def flag(condition: Array) -> Array:
    """Return 1 where a condition holds, 0 elsewhere."""
    return select(condition, 1.0, 0.0)


def negated(condition: Array) -> Array:
    """Return whether a condition does not hold."""
    return less(flag(condition), 0.5)


def smaller(a: Array | float, b: Array | float) -> Array:
    """Return the smaller of two numbers."""
    return select(less(a, b), a, b)


def larger(a: Array | float, b: Array | float) -> Array:
    """Return the larger of two numbers."""
    return select(less(b, a), a, b)


def largest(parts: Sequence[Array]) -> Array:
    """Return the largest of several numbers."""
    found = asarray(parts[0])
    for part in parts[1:]:
        found = larger(found, part)
    return found


def smallest(parts: Sequence[Array]) -> Array:
    """Return the smallest of several numbers."""
    found = asarray(parts[0])
    for part in parts[1:]:
        found = smaller(found, part)
    return found


def floor(x: Array) -> Array:
    """Return the largest whole number that is not larger."""
    return asarray(np.floor(x))
