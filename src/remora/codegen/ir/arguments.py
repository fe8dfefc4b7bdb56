"""Checks of a kernel's arguments: names, shapes and batch, common to all machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from remora.codegen.ir.graph import Signature
from remora.errors import ShapeError, UnknownName

DTYPES = ("float64", "float32")


def ordered(
    kernel: str, inputs: Sequence[Signature], arguments: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Return positional and named arguments in the order of the inputs."""
    names = [s.name for s in inputs]
    given = dict(zip(names, arguments, strict=False))
    doubled = [n for n in named if n in given]
    for name in named:
        if name not in names:
            raise UnknownName(f"argument of kernel {kernel}", name, names)
    missing = [n for n in names if n not in given and n not in named]
    if len(arguments) > len(names) or doubled or missing:
        raise ShapeError(
            f"kernel {kernel} takes {', '.join(names)}; "
            + (f"{', '.join(missing)} missing" if missing else f"{len(arguments)} were given")
        )
    return [given[n] if n in given else named[n] for n in names]


def batch_of(kernel: str, signature: Signature, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch shape of an argument, or raise if its shape does not fit."""
    size = max(0, len(shape) - len(signature.shape))
    if shape[size:] != signature.shape:
        wanted = ", ".join(["...", *map(str, signature.shape)])
        raise ShapeError(
            f"{signature.name} of kernel {kernel} must have shape ({wanted}), not {shape}"
        )
    return shape[:size]


def common_batch(
    inputs: Sequence[Signature], batches: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the batch shape that all arguments broadcast to."""
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        shown = ", ".join(f"{s.name} {b}" for s, b in zip(inputs, batches, strict=True))
        raise ShapeError(f"batch shapes do not broadcast: {shown}") from None


def listed(items: Sequence[Signature]) -> str:
    """Return names and shapes as shown in a kernel's repr."""
    return ", ".join(f"{s.name} (...{''.join(f', {n}' for n in s.shape)})" for s in items)


def wrong_dtype(what: str, given: object, wanted: str) -> str:
    """Return the error message for an argument of another dtype than the kernel."""
    other = str(given)
    advice = f", or compile with dtype={other!r}" if other in DTYPES else ""
    return f"{what} is {other}; the kernel is {wanted}: convert it{advice}"
