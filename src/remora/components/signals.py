"""Signals and states of components: shapes, units and initial values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, ShapeError

#: Unit of an input that takes signals of any unit.
ANY_UNIT = "any unit"
#: The state of a robot: inputs of components that use the design, outputs of estimates.
STATE = ("q", "v")


def shape_of(what: str, given: Any) -> tuple[int, ...]:
    """Return a shape given as a number of elements or as a tuple, or raise."""
    items: list[Any] = [*given] if isinstance(given, tuple) else [given]
    whole = [isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in items]
    if not all(whole) or any(n <= 0 for n in items):
        raise ShapeError(f"the shape of {what} must be a positive number or a tuple, not {given!r}")
    return tuple(int(n) for n in items)


def same_unit(a: str, b: str) -> bool:
    """Return whether two units are written alike, up to the sign of multiplication."""
    return _spelled(a) == _spelled(b)


def _spelled(unit: str) -> str:
    return " ".join(unit.replace("*", " ").replace("·", " ").split())


@dataclass(frozen=True, init=False, eq=False)
class Signal:
    """An input or output of a component.

    Attributes:
        shape: `()` for a number, `(3,)` for a vector.
        unit: SI unit, such as `"rad/s"` or `"N m"`; empty for a pure number.
        default: for inputs, the value if nothing is connected; None: a connection is required.
        source: for inputs, the signal of the run that is connected if nothing else is, such as
            `"motion.acceleration"`; None: there is none.
    """

    shape: tuple[int, ...]
    unit: str
    default: Array | None
    source: str | None

    def __init__(
        self,
        shape: int | tuple[int, ...] = (),
        unit: str = "",
        default: ArrayLike | None = None,
        source: str | None = None,
    ) -> None:
        """Check the shape and the default value.

        Args:
            shape: a number of elements, or a tuple.
            unit: SI unit.
            default: value of an input if nothing is connected.
            source: signal of the run that is connected if nothing else is.
        """
        own = () if shape == () else shape_of("a signal", shape)
        object.__setattr__(self, "shape", own)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "default", None)
        object.__setattr__(self, "source", source)
        if default is not None:
            value = np.asarray(default, dtype=float)
            if value.shape not in ((), own):
                raise ShapeError(
                    f"the default of a signal must have shape {own}, not {value.shape}"
                )
            object.__setattr__(self, "default", np.broadcast_to(value, own).copy())

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        """Return `(3,) rad/s`."""
        return " ".join(x for x in (str(self.shape) if self.shape else "", self.unit) if x)


@dataclass(frozen=True)
class State:
    """A continuous or discrete state of a component.

    Attributes:
        initial: its value at the start of a run; the shape of the state is the shape of this value.
        unit: SI unit.
    """

    initial: Any
    unit: str = ""

    def __post_init__(self) -> None:
        """Convert the initial value to an array."""
        try:
            value = np.array(self.initial, dtype=float)
        except (TypeError, ValueError):
            raise InvalidValue(
                f"the initial value of a state must be numbers, not {self.initial!r}"
            ) from None
        if not np.all(np.isfinite(value)):
            raise InvalidValue(f"the initial value of a state must be finite, not {self.initial}")
        value.flags.writeable = False
        object.__setattr__(self, "initial", value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the state."""
        value: Array = self.initial
        return value.shape
