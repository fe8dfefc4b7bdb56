"""A signal source: a constant, a profile, a pulse or another function of time as a signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, absolute, asarray, is_array
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot

#: How far after a time the function is evaluated, relative: at a jump, the later value holds. Less
#: than the distance from breaks that integrators keep.
AFTER = 2.0**-50
#: The same at t = 0, s.
AFTER_ZERO = 2.0**-100


class SignalSource(Component):
    """A signal that is a function of time alone: gain · f(t).

    `shape` is that of the signal; None: that of f. At a jump the later value holds. Steps end where
    a `Profile` or `Pulse` is not smooth; for other functions, pass `breaks` to `rm.Integrator`.

    Output: `value`, in `unit`.
    """

    value: Any = parameter(
        "f: numbers, a `Profile`, a `Pulse`, or a function of the time in s, on arrays", "load"
    )
    unit: str = parameter("of the signal", "text", default="")
    gain: float = parameter("a factor", default=1.0)
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Convert numbers to an array, and check them."""
        super().__post_init__()
        if not callable(self.value):
            try:
                value = np.array(self.value, dtype=float)
            except (TypeError, ValueError):
                raise InvalidValue(
                    "a signal source needs numbers, a Profile, a Pulse or a function of time, not "
                    f"{self.value!r}"
                ) from None
            if not np.all(np.isfinite(value)):
                raise InvalidValue(f"a signal source needs finite numbers, not {self.value!r}")
            object.__setattr__(self, "value", value)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        shape = self._at(np.zeros(())).shape if self.shape is None else self.shape
        breaks = tuple(getattr(self.value, "breaks", ()))
        return Interface(outputs={"value": Signal(shape, self.unit)}, breaks=breaks)

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the value."""
        after = asarray(at.t + (AFTER * absolute(at.t) + AFTER_ZERO))
        value = asarray(self.gain * self._at(after))
        return {"value": value if self.shape is None else value.reshape(self.shape)}

    def _at(self, t: Array) -> Array:
        if is_array(self.value):
            return self.value
        traced: Any = getattr(self.value, "traced", self.value)
        return asarray(traced(t))
