"""Checks of gains: finite, positive, and matrices positive definite."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.parameter_checks import vector
from remora.errors import InvalidValue, ShapeError


def gains(what: str, given: Any, size: int, zero: bool = False) -> Array:
    """Return gains `(size,)`, one number standing for all; raise if one is not positive.

    Args:
        what: name of the gains in messages.
        given: one number, or `size`.
        size: number of rows.
        zero: whether zero is allowed.
    """
    value = vector(what, given, size)
    if np.any(value < 0.0) or (not zero and np.any(value == 0.0)):
        least = "zero or positive" if zero else "positive"
        raise InvalidValue(f"{what} must be {least} for a stable loop, not {given!r}")
    return value


def listed_gains(what: str, given: Any, zero: bool = False) -> Array:
    """Return gains `(n,)`, one or one by joint; their number is checked with the robot later.

    Args:
        what: name of the gains in messages.
        given: one number, or a list.
        zero: whether zero is allowed.
    """
    try:
        size = int(np.size(given))
    except ValueError:
        raise ShapeError(f"{what} must be one number or a list of numbers, not {given!r}") from None
    if not size:
        raise ShapeError(f"{what} must be one number or one by joint, not an empty list")
    return gains(what, given, size, zero)


def definite(what: str, given: Any, size: int, zero: bool = False) -> Array:
    """Return a gain matrix `(size, size)`; numbers are its diagonal.

    Raises:
        InvalidValue: if it is not symmetric, or not positive definite (semi-definite if `zero`).
    """
    try:
        array = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} must be numbers, not {given!r}") from None
    if array.ndim < 2:
        return np.diag(gains(what, given, size, zero))
    if array.shape != (size, size):
        raise ShapeError(f"{what} must be {size} x {size}, not of shape {array.shape}")
    if (
        not np.all(np.isfinite(array))
        or np.abs(array - array.T).max() > 1e-12 * np.abs(array).max()
    ):
        raise InvalidValue(f"{what} must be a finite symmetric matrix")
    least = float(np.linalg.eigvalsh(array).min())
    floor = -1e-12 * float(np.abs(array).max()) if zero else 0.0
    if least < floor or (not zero and least == 0.0):
        raise InvalidValue(f"{what} must be positive definite; its least eigenvalue is {least:.3g}")
    return array.copy()
