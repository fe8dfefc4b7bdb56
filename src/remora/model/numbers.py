"""Conversion and checks of numeric array arguments, and read-only copies of them."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    asarray,
    is_array,
    is_symbolic,
    refuse_other_arrays,
)
from remora.errors import InvalidValue, ShapeError

#: Tolerance on the length of a unit quaternion argument.
UNIT_TOLERANCE = 1e-6
#: A pose that is unit to this rounding error (a product of poses, say) is not normalized: saving
#: and loading a robot must not change it.
UNIT_ROUNDING = 1e-13


def pose_error(x: Array) -> Array:
    """Return how far dual quaternions `(..., 8)` are from unit ones, `(...)`; relative to d."""
    r, d = x[..., :4], x[..., 4:]
    mixed = np.abs(np.sum(r * d, axis=-1)) / (1.0 + np.linalg.norm(d, axis=-1))
    return np.maximum(np.abs(np.linalg.norm(r, axis=-1) - 1.0), mixed)


def frozen(array: Array) -> Array:
    """Return the array as read-only (a copy if others could write to it)."""
    if array.flags.writeable or array.base is not None:
        array = array.copy()
        array.flags.writeable = False
    return array


def finite(what: str, x: ArrayLike, *trailing: int) -> Array:
    """Return an argument as an array `(..., *trailing)` of finite numbers, or raise."""
    array = numeric(what, x)
    if array.shape[array.ndim - len(trailing) :] != trailing:
        wanted = ", ".join(["...", *map(str, trailing)])
        raise ShapeError(f"{what} must have shape ({wanted}), not {array.shape}")
    if not is_symbolic(array) and not np.all(np.isfinite(array)):
        raise InvalidValue(f"{what} holds values that are not finite")
    return array


def unit_pose(what: str, x: ArrayLike) -> Array:
    """Return an argument as unit dual quaternions `(..., 8)`, or raise."""
    array = finite(what, x, 8)
    if not is_symbolic(array):
        off = float(np.max(pose_error(array), initial=0.0))
        if off > UNIT_TOLERANCE:
            raise InvalidValue(
                f"{what} is not a pose: its real part must have length 1 and be orthogonal to its "
                f"dual part, to {UNIT_TOLERANCE:g} (off by {off:.3g}); see "
                "rm.algebra.dual_quaternion.normalize"
            )
    return array


def numeric(what: str, x: ArrayLike) -> Array:
    """Return an argument as an array of numbers or symbols, or raise."""
    refuse_other_arrays(x, what)
    try:
        return asarray(x)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} is not numeric: {shown_value(x)}") from None


def shown_value(value: object) -> str:
    """Return a value as text of at most 80 characters, for a message."""
    text = str(value) if is_array(value) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."
