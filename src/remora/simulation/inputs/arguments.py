"""Validation of the scalar arguments of a run, with errors that name the allowed values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, RemoraError


def number(name: str, given: Any, example: str) -> float:
    """Return one number; NaN and infinity are accepted, strings and booleans are not.

    Args:
        name: name of the argument.
        given: its value.
        example: an example for the error message, such as `10.0, in s`.
    """
    array = _numbers(given)
    if array is None or array.ndim:
        raise InvalidValue(f"{name} must be a number, such as {example}, not {_shown(given)}")
    return float(array)


def seconds(name: str, given: Any) -> float:
    """Return a duration: finite and nonnegative."""
    x = number(name, given, "10.0, in s")
    if not (math.isfinite(x) and x >= 0.0):
        raise InvalidValue(f"{name} must be a number of seconds, finite and not negative, not {x}")
    return x


def whole(name: str, given: Any) -> int:
    """Return an integer."""
    array = _numbers(given)
    if array is None or array.ndim or array.dtype.kind not in "iu":
        raise InvalidValue(f"{name} must be a whole number, not {_shown(given)}")
    return int(array)


def natural(name: str, given: Any, bits: int) -> int:
    """Return an integer from 0 to 2^bits - 1."""
    found = whole(name, given)
    if not 0 <= found < 2**bits:
        raise InvalidValue(f"{name} must be a whole number from 0 to 2^{bits} - 1, not {found}")
    return found


def flag(name: str, given: Any) -> bool:
    """Return a boolean."""
    array = np.asarray(given)
    if array.ndim or array.dtype.kind != "b":
        raise InvalidValue(f"{name} must be True or False, not {_shown(given)}")
    return bool(array)


def word(name: str, given: Any) -> str:
    """Return a string."""
    if not isinstance(given, str):
        raise InvalidValue(f"{name} must be a string, not {_shown(given)}")
    return given


def path(name: str, given: Any) -> str | Path | None:
    """Return a path, or None."""
    if given is None or isinstance(given, (str, Path)):
        return given
    raise InvalidValue(f"{name} must be the path of a directory, not {_shown(given)}")


def times(name: str, given: Any) -> tuple[float, ...]:
    """Return one or several finite times."""
    if isinstance(given, tuple) and not given:  # pyright: ignore[reportUnknownArgumentType]
        return ()
    array = _numbers(given)
    if array is None or array.ndim > 1 or not np.all(np.isfinite(array)):
        raise InvalidValue(f"{name} must be finite times in s, such as [1.0, 2.5], not {given!r}")
    return tuple(float(t) for t in np.atleast_1d(array))


def names(name: str, given: Any) -> tuple[str, ...]:
    """Return one or several names."""
    if isinstance(given, str):
        return (given,)
    if not is_several(given) or not all(isinstance(x, str) for x in given):
        raise RemoraError(
            f"{name} must be names of joints, such as ['elbow'] or 'elbow', not {_shown(given)}"
        )
    return tuple(given)


def constraint_names(name: str, given: Any) -> tuple[str, ...]:
    """Return one or several names of constraints, each of them once."""
    if isinstance(given, str):
        return (given,)
    if not is_several(given) or not all(isinstance(x, str) for x in given):
        raise RemoraError(
            f"{name} must be names of constraints, such as ['grasp'] or 'grasp', not "
            f"{_shown(given)}"
        )
    found: tuple[str, ...] = tuple(given)
    twice = [x for k, x in enumerate(found) if x in found[:k]]
    if twice:
        raise RemoraError(f"{name} names constraint {twice[0]!r} twice")
    return found


def by_name(name: str, given: Any) -> dict[str, Any]:
    """Return a mapping from names to values as a dictionary."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise RemoraError(
            f"{name} must be a dictionary by name, such as {{'elbow': ...}}, not {_shown(given)}"
        )
    found: dict[Any, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
    for key in found:
        if not isinstance(key, str):
            raise RemoraError(f"{name} must be given by names, not by {key!r}")
    return found


def stop_numbers(given: Any) -> tuple[float, float]:
    """Return stiffness and damping of stops, from one number or a pair."""
    if given is None:
        return 0.0, 0.0
    example = "1e4, or (1e4, 0.2) for stiffness and damping"
    array = _numbers(given)
    if array is None or array.shape not in ((), (2,)):
        raise InvalidValue(f"stops must be {example}, not {_shown(given)}")
    stiffness, damping = (float(x) for x in (array if array.ndim else (array, 0.0)))
    for what, x in (("stiffness", stiffness), ("damping", damping)):
        if not (math.isfinite(x) and x >= 0.0):
            raise InvalidValue(f"{what} must be finite and not negative, not {x}")
    return stiffness, damping


def is_several(given: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether a value is an ordered collection: a list, a tuple, a generator."""
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping, np.ndarray))


def _numbers(given: Any) -> Array | None:
    """Return real numbers as an array, or None if the value is not numeric."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "iuf" else None


def _shown(given: Any) -> str:
    text = repr(given)
    return f"{type(given).__name__} {text}" if len(text) <= 60 else type(given).__name__
