"""Checks of arguments of any function: numbers, whole numbers, flags, words and names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName
from remora.model.numbers import finite

#: Numbers are within these bounds, so that products of a few (m d², say) stay finite and above 0.
SMALLEST_NUMBER, LARGEST_NUMBER = 1e-50, 1e50


def number(name: str, given: Any, example: str) -> float:
    """Return one number; NaN and infinity are accepted, strings and booleans are not.

    Args:
        name: name of the argument.
        given: its value.
        example: an example for the error message, such as `10.0, in s`.
    """
    array = real_numbers(given)
    if array is None or array.ndim:
        raise InvalidValue(f"{name} must be a number, such as {example}, not {shown(given)}")
    return float(array)


def positive(name: str, given: Any, least: float = SMALLEST_NUMBER) -> float:
    """Return one positive number whose square is neither zero nor infinite.

    Args:
        name: name of the argument.
        given: its value.
        least: the smallest one allowed.
    """
    x = number(name, given, "0.01")
    if not x > 0.0:
        raise InvalidValue(f"{name} must be positive, not {x}")
    if not least <= x <= LARGEST_NUMBER:
        raise InvalidValue(f"{name} must be from {least:g} to {LARGEST_NUMBER:g}, not {x}")
    return x


def not_negative(name: str, given: Any) -> float:
    """Return one number that is zero or greater and whose square is finite."""
    x = number(name, given, "1.0")
    if not x >= 0.0:
        raise InvalidValue(f"{name} must not be negative, not {x}")
    if x > LARGEST_NUMBER:
        raise InvalidValue(f"{name} must be at most {LARGEST_NUMBER:g}, not {x}")
    return x


def at_least(name: str, given: Any, low: float, above: bool = False) -> float:
    """Return a finite number that is at least `low`, or greater than it."""
    try:
        x = float(given)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} must be a number, not {given!r}") from None
    if not np.isfinite(x) or x < low or (above and x == low):
        allowed = f"greater than {low:g}" if above else f"{low:g} or greater"
        raise InvalidValue(f"{name} must be finite and {allowed}, not {given!r}")
    return x


def each(name: str, given: Any, size: int) -> Array:
    """Return finite numbers `(size,)`; one number stands for all."""
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} must be numbers, not {given!r}") from None
    if array.shape not in ((), (size,)):
        raise ShapeError(f"{name} must be one number or {size}, not of shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InvalidValue(f"{name} must be finite, not {given!r}")
    return np.broadcast_to(array, (size,)).copy()


def single(name: str, given: ArrayLike, size: int) -> Array:
    """Return finite numbers `(size,)`, neither a batch nor symbols."""
    array = finite(name, given, size)
    if array.ndim != 1:
        raise ShapeError(f"{name} must have shape ({size},), not {array.shape}")
    if is_symbolic(array):
        raise InvalidValue(f"{name} must be numbers, not symbols")
    if np.max(np.abs(array), initial=0.0) > LARGEST_NUMBER:
        raise InvalidValue(f"{name} holds numbers beyond {LARGEST_NUMBER:g}")
    return array


def seconds(name: str, given: Any) -> float:
    """Return a duration: finite and nonnegative."""
    x = number(name, given, "10.0, in s")
    if not (math.isfinite(x) and x >= 0.0):
        raise InvalidValue(f"{name} must be a number of seconds, finite and not negative, not {x}")
    return x


def times(name: str, given: Any) -> tuple[float, ...]:
    """Return one or several finite times."""
    if isinstance(given, tuple) and not given:  # pyright: ignore[reportUnknownArgumentType]
        return ()
    array = real_numbers(given)
    if array is None or array.ndim > 1 or not np.all(np.isfinite(array)):
        raise InvalidValue(f"{name} must be finite times in s, such as [1.0, 2.5], not {given!r}")
    return tuple(float(t) for t in np.atleast_1d(array))


def whole(name: str, given: Any) -> int:
    """Return an integer."""
    array = real_numbers(given)
    if array is None or array.ndim or array.dtype.kind not in "iu":
        raise InvalidValue(f"{name} must be a whole number, not {shown(given)}")
    return int(array)


def count(name: str, given: Any, least: int = 1, most: int = 10**9) -> int:
    """Return an integer from `least` to `most`."""
    found = whole(name, given)
    if found < least:
        raise InvalidValue(f"{name} must be at least {least}, not {found}")
    if found > most:
        raise InvalidValue(f"{name} must be at most {most}, not {found}")
    return found


def natural(name: str, given: Any, bits: int) -> int:
    """Return an integer from 0 to 2^bits - 1."""
    found = whole(name, given)
    if not 0 <= found < 2**bits:
        raise InvalidValue(f"{name} must be a whole number from 0 to 2^{bits} - 1, not {found}")
    return found


def flag(name: str, given: Any) -> bool:
    """Return a boolean."""
    if not isinstance(given, (bool, np.bool_)):
        raise InvalidValue(f"{name} must be True or False, not {shown(given)}")
    return bool(cast(bool, given))


def word(name: str, given: Any) -> str:
    """Return a string."""
    if not isinstance(given, str):
        raise InvalidValue(f"{name} must be a string, not {shown(given)}")
    return given


def choice(what: str, given: Any, known: Sequence[str]) -> str:
    """Return one of the known words."""
    if not isinstance(given, str) or given not in known:
        raise UnknownName(what, given, known)
    return given


def names(name: str, given: Any, of: str = "joints", example: str = "elbow") -> tuple[str, ...]:
    """Return one or several names.

    Args:
        name: name of the argument.
        given: its value.
        of: what is named, for the error message.
        example: a name, for the error message.
    """
    if isinstance(given, str):
        return (given,)
    found: tuple[Any, ...] = tuple(given) if is_several(given) else (None,)
    if not all(isinstance(x, str) for x in found):
        raise RemoraError(
            f"{name} must be names of {of}, such as [{example!r}] or {example!r}, not "
            f"{shown(given)}"
        )
    return found


def known_options(what: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise if keyword arguments that are passed on are not known."""
    known = tuple(known)
    for key in given:
        if key not in known:
            raise UnknownName(what, key, known)


def by_name(name: str, given: Any) -> dict[str, Any]:
    """Return a mapping from names to values as a dictionary."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise RemoraError(
            f"{name} must be a dictionary by name, such as {{'elbow': ...}}, not {shown(given)}"
        )
    found: dict[Any, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
    for key in found:
        if not isinstance(key, str):
            raise RemoraError(f"{name} must be given by names, not by {key!r}")
    return found


def generator(name: str, given: Any) -> np.random.Generator:
    """Return a generator of random numbers, from its seed or as it is."""
    if isinstance(given, np.random.Generator):
        return given
    return np.random.default_rng(natural(name, given, 63))


def is_several(given: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether a value is an ordered collection: a list, a tuple, a generator."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping, np.ndarray)):
        return False
    try:
        iter(given)  # pyright: ignore[reportUnknownArgumentType]
    except TypeError:  # CasADi's symbols only pretend to be iterable
        return False
    return True


def real_numbers(given: Any) -> Array | None:
    """Return real numbers as an array, or None if the value is not numeric."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "iuf" else None


def shown(given: Any) -> str:
    """Return a value as text with its type; only the type where the text is long."""
    text = repr(given)
    return f"{type(given).__name__} {text}" if len(text) <= 60 else type(given).__name__
