"""Checks of the values that the methods of a component return by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.algebra.array_ops import Array, asarray
from remora.errors import RemoraError, ShapeError

NO_NOISE = "there is noise only at the ticks of a component with a sample_time"


def checked(
    who: str, shapes: Mapping[str, tuple[int, ...]], returned: Any, partial: bool = False
) -> dict[str, Array]:
    """Return the arrays that a method of a component returned by name, or raise.

    Args:
        who: component and method, for messages.
        shapes: expected names and shapes.
        returned: what the method returned.
        partial: whether names may be missing.
    """
    if not isinstance(returned, Mapping):
        kind = type(returned).__name__
        raise RemoraError(f"{who} must return a dictionary of {', '.join(shapes)}, not {kind}")
    given: Mapping[str, Any] = returned  # pyright: ignore[reportUnknownVariableType]
    for name in given:
        if name not in shapes:
            declared = ", ".join(shapes) or "nothing"
            raise RemoraError(f"{who} returns {name!r}; the interface declares {declared}")
    missing = [name for name in shapes if name not in given]
    if missing and not partial:
        raise RemoraError(f"{who} does not return {', '.join(missing)}")
    found: dict[str, Array] = {}
    for name, value in given.items():
        try:
            array = asarray(value)
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise ShapeError(f"{who}: {name!r} must be numbers, not {kind}") from None
        shape = shapes[name]
        if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
            if array.size == 1 and shape in ((), (1,)):
                array = array.reshape(shape)
            else:
                raise ShapeError(f"{who}: {name!r} must have shape {shape}, not {array.shape}")
        found[name] = array
    return found
