"""Checks of numbers that are passed to components."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, less, select
from remora.errors import InvalidValue, ShapeError


def vector(what: str, given: Any, size: int) -> Array:
    """Return finite numbers of shape `(size,)`; one number stands for all; or raise."""
    try:
        value = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} must be numbers, not {given!r}") from None
    if value.shape not in ((), (size,)):
        raise ShapeError(f"{what} must be one number or {size}, not of shape {value.shape}")
    if not np.all(np.isfinite(value)):
        raise InvalidValue(f"{what} must be finite, not {given!r}")
    return np.broadcast_to(value, (size,)).copy()


def number(what: str, given: Any, low: float, above: bool = False) -> float:
    """Return a finite number that is at least `low`, or greater than it; or raise."""
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} must be a number, not {given!r}") from None
    if not np.isfinite(value) or value < low or (above and value == low):
        told = f"greater than {low:g}" if above else f"{low:g} or greater"
        raise InvalidValue(f"{what} must be finite and {told}, not {given!r}")
    return value


def limited(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Return x limited to [low, high], element by element."""
    return select(less(high, x), high, select(less(x, low), low, x))
