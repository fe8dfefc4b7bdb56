"""A threshold: an event when a signal crosses a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from remora.algebra.array_ops import Array, absolute, asarray
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.context import Context
from remora.components.parameter import OF_SIGNAL, parameter
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot


class Threshold(Component):
    """An event `crossed` when its input crosses a level.

    The level is one of `above`, `below` and `crosses`. The event function is s - level, with the
    input s or its element `index`. For the norm of a vector it is s·s - level abs(level), which is
    smooth at zero.

    Input: `signal`, in `unit`. Event: `crossed`.
    """

    above: float | None = parameter("the signal rises above this", default=None, unit=OF_SIGNAL)
    unit: str = parameter("of the signal", "text", default="")
    size: int = parameter(
        "number of elements of a vector; 0 for a number", "whole", default=0, minimum=0
    )
    index: int | None = parameter(
        "element of a vector, from 0; default: its norm", "whole", default=None, minimum=0
    )
    action: Literal["record", "stop", "next"] = parameter(
        "only log it, end the run, or go on with the next phase", "choice", default="record",
        choices=("record", "stop", "next"),
    )  # fmt: skip
    below: float | None = parameter(
        "the signal falls below this", default=None, unit=OF_SIGNAL, kw_only=True
    )
    crosses: float | None = parameter(
        "the signal passes this either way", default=None, unit=OF_SIGNAL, kw_only=True
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if sum(level is not None for level in (self.above, self.below, self.crosses)) != 1:
            raise InvalidValue("must have one of above, below, crosses")
        if self.index is not None and not 0 <= self.index < self.size:
            raise InvalidValue(
                f"index of a threshold must be one of a vector of {self.size}, not {self.index}"
            )

    @property
    def _level(self) -> tuple[int, float]:
        """The direction of the crossing and the level."""
        levels = {1: self.above, -1: self.below, 0: self.crosses}
        return next((key, level) for key, level in levels.items() if level is not None)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={"signal": Signal(self.size or (), self.unit)},
            events={"crossed": ZeroCrossing(self._level[0], self.action)},
        )

    def crossings(self, at: Context) -> Mapping[str, Array]:
        """Return the event function."""
        x, level = at.inputs["signal"], self._level[1]
        if self.size and self.index is None:
            # of squares: the norm itself has no derivative at zero
            return {"crossed": (x * x).sum(axis=-1) - level * absolute(asarray(level))}
        if self.index is not None:
            x = x[..., self.index]
        return {"crossed": x - level}
