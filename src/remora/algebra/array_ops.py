"""Array operations that depend on the scalar type: floats or CasADi symbols.

Every algorithm of Remora works on arrays whose last axes hold the object (a quaternion, a twist,
...) and whose leading axes are any batch shape. An array holds either floats or, with
`dtype=object`, CasADi `SX` scalars. Only the functions in this file distinguish the two.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from remora.algebra.symbol import Symbol, as_symbol, binary, casadi, if_else, unary
from remora.errors import ShapeError

Array: TypeAlias = NDArray[Any]
ArrayLike: TypeAlias = (
    Array
    | float
    | np.generic
    | Sequence[float | np.generic | Array]
    | Sequence[Sequence[float | Array]]
    | Sequence[Sequence[Sequence[float]]]
)
"""Accepted array arguments: numbers, nested sequences, arrays, CasADi `SX`."""

# operations on arrays of symbols, element by element
_SIN, _COS, _SQRT, _FABS = (
    np.frompyfunc(unary(code), 1, 1)
    for code in (casadi.OP_SIN, casadi.OP_COS, casadi.OP_SQRT, casadi.OP_FABS)
)
_ATAN2, _COPYSIGN = (
    np.frompyfunc(binary(code), 2, 1) for code in (casadi.OP_ATAN2, casadi.OP_COPYSIGN)
)
_IF_ELSE = np.frompyfunc(if_else, 3, 1)


def is_array(x: object) -> TypeGuard[Array]:
    """Tell whether `x` is a NumPy array (of any scalar)."""
    return isinstance(x, np.ndarray)


def asarray(x: ArrayLike) -> Array:
    """Return `x` as an array of floats, or of symbols if it holds any.

    A CasADi column `SX(n, 1)` becomes an object array `(n,)`, a scalar `SX` one of shape `()`.
    Floats of any width become doubles, and so does an object array without a symbol in it.

    Raises:
        ShapeError: for a masked array or a `np.matrix`, whose semantics differ, and for complex
            numbers.
    """
    if type(x) is np.ndarray and (x.dtype == np.float64 or _is_symbol(x)):
        return x
    if type(x) is Symbol:
        return wrapped(x)
    refuse_other_arrays(x)
    if is_array(x) and _is_symbol(x):
        return np.asarray(x)
    if isinstance(x, casadi.SX):
        return _from_casadi(x)
    if _holds_symbols(x):
        return stack([asarray(e) for e in x], axis=0)
    return np.asarray(x, dtype=float)


def refuse_other_arrays(x: object, what: str = "the array") -> None:
    """Refuse array subclasses with different semantics.

    Args:
        x: anything.
        what: its name in the message.

    Raises:
        ShapeError: for a masked array, whose mask would be ignored, a `np.matrix`, which never has
            one axis, or complex numbers, whose imaginary part would be.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise ShapeError(
            f"{what} is a masked array, whose masked elements have no value: pass a plain "
            "array, such as x.filled(0.0) or x.data"
        )
    if isinstance(x, np.matrix):
        raise ShapeError(f"{what} is a np.matrix, which always has two axes: pass np.asarray(x)")
    if isinstance(x, np.complexfloating) or (is_array(x) and x.dtype.kind == "c"):
        raise ShapeError(f"{what} is complex, and its imaginary part would be lost: pass x.real")


def is_symbolic(x: Array) -> bool:
    """Tell whether `x` holds symbols, which have no values yet."""
    return x.dtype == object


class LastingSymbol(np.ndarray[Any, Any]):
    """A single symbol as an array `()` that stays one in arithmetic.

    NumPy turns results of shape `()` into their element, here a CasADi symbol, which multiplied by
    an array becomes a CasADi matrix.
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return the result of an operation: an array, also of shape `()`."""
        return array.view(LastingSymbol) if array.ndim == 0 else np.asarray(array)


def lasting(x: Array) -> Array:
    """Return an array; a single symbol as one that stays an array in arithmetic."""
    return x.view(LastingSymbol) if x.ndim == 0 and is_symbolic(x) else x


def stack(parts: Sequence[ArrayLike], axis: int = -1) -> Array:
    """Stack along a new axis after broadcasting the parts' batch shapes."""
    arrays = [asarray(p) for p in parts]
    if any(a.shape != arrays[0].shape for a in arrays):
        arrays = np.broadcast_arrays(*arrays)
    return np.stack(arrays, axis=axis)


def concatenate(parts: Sequence[Array], trailing: int = 1) -> Array:
    """Join along axis `-trailing` after broadcasting the batch axes in front of it."""
    batch = parts[0].shape[:-trailing]
    if any(p.shape[:-trailing] != batch for p in parts):
        batch = np.broadcast_shapes(*(p.shape[:-trailing] for p in parts))
        parts = [np.broadcast_to(p, batch + p.shape[-trailing:]) for p in parts]
    return np.concatenate(parts, axis=-trailing)


def constant(x: Array, like: Array) -> Array:
    """Return the float array `x`, as symbols where `like` is symbolic."""
    return x.astype(object) if is_symbolic(like) else x


def select(condition: ArrayLike, yes: ArrayLike, no: ArrayLike) -> Array:
    """Return `yes` where `condition` holds and `no` elsewhere, element by element.

    Both are evaluated. An argument that would divide by zero in the branch not taken must be
    replaced before the division, not after it.
    """
    parts = [p if is_array(p) else asarray(p) for p in (condition, yes, no)]
    if any(is_symbolic(p) for p in parts):
        return wrapped(_IF_ELSE(*parts))
    return np.where(*parts)


def less(a: ArrayLike, b: ArrayLike) -> Array:
    """Return `a < b` element by element, as symbols where either is symbolic."""
    a, b = asarray(a), asarray(b)
    if is_symbolic(a) or is_symbolic(b):
        return wrapped(np.less(a, b, dtype=object))
    return np.less(a, b)


def clip(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Return `x` limited to [low, high] element by element, as np.clip does, also on symbols."""
    raised = select(less(x, low), low, x)
    return select(less(high, raised), high, raised)


def total_and_rest(x: Array, dx: Array) -> tuple[Array, Array]:
    """Return x + dx rounded, and its exact rounding error (compensated summation) [K65]."""
    total = rounded(x + dx)
    back = rounded(total - x)
    return total, (x - rounded(total - back)) + (dx - back)


def rounded(x: Array) -> Array:
    """Return `x` behind a barrier to symbolic simplification such as (a + b) - a = b.

    A product behind it is rounded on every processor, never fused with a sum.
    """
    if not is_symbolic(x):
        return x
    return wrapped(_COPYSIGN(x, x))  # x with the sign of x is x


def waypoint(x: Array) -> Array:
    """Return `x`, marked for the tracer: later values depend on it and on little else.

    To reduce register pressure, a GPU thread then drops other values and recomputes them.
    """
    noted = _waypoints.get()
    if noted is not None and is_symbolic(x):
        noted.append(x)
    return x


@contextmanager
def noting_waypoints() -> Generator[list[Array]]:
    """Yield a list that collects every symbolic array marked by `waypoint` in this context."""
    noted: list[Array] = []
    token = _waypoints.set(noted)
    try:
        yield noted
    finally:
        _waypoints.reset(token)


_waypoints: ContextVar[list[Array] | None] = ContextVar("waypoints", default=None)


def sin(x: Array) -> Array:
    """Sine, in radians."""
    return _elementwise(x, np.sin, _SIN)


def cos(x: Array) -> Array:
    """Cosine, in radians."""
    return _elementwise(x, np.cos, _COS)


def sqrt(x: Array) -> Array:
    """Square root."""
    return _elementwise(x, np.sqrt, _SQRT)


def absolute(x: Array) -> Array:
    """Absolute value."""
    return _elementwise(x, np.abs, _FABS)


def arctan2(y: Array, x: Array) -> Array:
    """Angle of the point (x, y), in (-π, π]."""
    if is_symbolic(y) or is_symbolic(x):
        return wrapped(_ATAN2(y, x))
    return np.arctan2(y, x)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Evaluate `c0 + c1 x + c2 x² + ...` by Horner's rule."""
    result = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def _elementwise(x: Array, of_floats: Callable[[Array], Array], of_symbols: Any) -> Array:
    return wrapped(of_symbols(x)) if is_symbolic(x) else of_floats(x)


def wrapped(x: Any) -> Array:
    """NumPy returns the bare element of a 0-d object array: put it back into an array."""
    if is_array(x):
        return x
    out = np.empty((), dtype=object)
    out[()] = x
    return out


def _from_casadi(x: Any) -> Array:
    if x.is_scalar():
        return wrapped(as_symbol(x))
    rows, columns = x.shape
    out = np.empty((rows, columns), dtype=object)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = as_symbol(x[i, j])
    return out[:, 0] if columns == 1 else out


def _holds_symbols(x: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether a nested list or tuple has a symbol somewhere."""
    return _is_sequence(x) and any(_is_symbol(e) or _holds_symbols(e) for e in x)


def _is_sequence(x: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(x, (list, tuple))


def _is_symbol(x: object) -> bool:
    """Tell whether `x` is a symbol or an array that holds one; stops at the first."""
    if is_array(x):
        return x.dtype == object and any(isinstance(e, casadi.SX) for e in x.flat)
    return isinstance(x, casadi.SX)
