"""Validation of arguments of a run, with errors that name the allowed values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from remora.errors import InvalidValue, RemoraError
from remora.model.arguments import names, number, real_numbers, shown


def seconds(name: str, given: Any) -> float:
    """Return a duration: finite and nonnegative."""
    x = number(name, given, "10.0, in s")
    if not (math.isfinite(x) and x >= 0.0):
        raise InvalidValue(f"{name} must be a number of seconds, finite and not negative, not {x}")
    return x


def path(name: str, given: Any) -> str | Path | None:
    """Return a path, or None."""
    if given is None or isinstance(given, (str, Path)):
        return given
    raise InvalidValue(f"{name} must be the path of a directory, not {shown(given)}")


def times(name: str, given: Any) -> tuple[float, ...]:
    """Return one or several finite times."""
    if isinstance(given, tuple) and not given:  # pyright: ignore[reportUnknownArgumentType]
        return ()
    array = real_numbers(given)
    if array is None or array.ndim > 1 or not np.all(np.isfinite(array)):
        raise InvalidValue(f"{name} must be finite times in s, such as [1.0, 2.5], not {given!r}")
    return tuple(float(t) for t in np.atleast_1d(array))


def constraint_names(name: str, given: Any) -> tuple[str, ...]:
    """Return one or several names of constraints, each of them once."""
    found = names(name, given, "constraints", "grasp")
    twice = [x for k, x in enumerate(found) if x in found[:k]]
    if twice:
        raise RemoraError(f"{name} names constraint {twice[0]!r} twice")
    return found


def stop_numbers(given: Any) -> tuple[float, float]:
    """Return stiffness and damping of stops, from one number or a pair."""
    if given is None:
        return 0.0, 0.0
    example = "1e4, or (1e4, 0.2) for stiffness and damping"
    array = real_numbers(given)
    if array is None or array.shape not in ((), (2,)):
        raise InvalidValue(f"stops must be {example}, not {shown(given)}")
    stiffness, damping = (float(x) for x in (array if array.ndim else (array, 0.0)))
    for what, x in (("stiffness", stiffness), ("damping", damping)):
        if not (math.isfinite(x) and x >= 0.0):
            raise InvalidValue(f"{what} must be finite and not negative, not {x}")
    return stiffness, damping
