"""A threshold: an event when a signal crosses a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, absolute, asarray
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.component_settings import ContinuousSettings
from remora.components.context import Context
from remora.components.signals import Signal
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import AngleOrRate

#: Direction of the zero crossing by name.
DIRECTIONS = {"above": 1, "below": -1, "both": 0}


class Threshold(Component):
    """An event `crossed` when its input crosses a level.

    The event function is s - level, with the input s or its element `index`. For the norm of a
    vector it is s·s - level abs(level), which is smooth at zero.

    Input: `signal`, in `unit`. Event: `crossed`.

    Attributes:
        level: in `unit`.
        unit: unit of the input.
        size: number of elements of a vector; 0 for a number.
        index: element of a vector; None: its norm.
        direction: `above`: rising crossings, `below`: falling ones, `both`.
        action: `record`, `stop` or `next`, see `ZeroCrossing`.
    """

    level: float
    unit: str = ""
    size: int = 0
    index: int | None = None
    direction: Literal["above", "below", "both"] = "above"
    action: Literal["record", "stop", "next"] = "record"

    def __post_init__(self) -> None:
        """Check."""
        object.__setattr__(self, "level", float(self.level))
        if self.direction not in DIRECTIONS:
            raise UnknownName("direction of a threshold", self.direction, DIRECTIONS)
        if self.action not in ("record", "stop", "next"):
            raise UnknownName("action of a threshold", self.action, ("record", "stop", "next"))
        if self.size < 0:
            raise InvalidValue(f"size of a threshold must not be negative, not {self.size}")
        if self.index is not None and not 0 <= self.index < self.size:
            raise InvalidValue(
                f"index of a threshold must be one of a vector of {self.size}, not {self.index}"
            )

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={"signal": Signal(self.size or (), self.unit)},
            events={"crossed": ZeroCrossing(DIRECTIONS[self.direction], self.action)},
        )

    def crossings(self, at: Context) -> Mapping[str, Array]:
        """Return the event function."""
        x = at.inputs["signal"]
        if self.size and self.index is None:
            # of squares: the norm itself has no derivative at zero
            return {"crossed": (x * x).sum(axis=-1) - self.level * absolute(asarray(self.level))}
        if self.index is not None:
            x = x[..., self.index]
        return {"crossed": x - self.level}


class ThresholdSettings(ContinuousSettings):
    """The settings of a threshold in a scenario file: one of above, below, crosses."""

    type: Literal["threshold"]
    above: AngleOrRate | None = Field(default=None, description="the signal passes this upwards")
    below: AngleOrRate | None = Field(default=None, description="the signal passes this downwards")
    crosses: AngleOrRate | None = Field(
        default=None, description="the signal passes this either way"
    )
    unit: Annotated[str, Field(max_length=40)] = Field(default="", description="of the signal")
    size: Annotated[int, Field(ge=0)] = Field(
        default=0, description="number of elements if the signal is a vector"
    )
    index: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="element of a vector, counted from 0; default: its norm"
    )
    action: Literal["record", "stop", "next"] = Field(
        default="record", description="only log it, end the run, or go on with the next phase"
    )

    def made(self, robot: Robot, name: str) -> Threshold:
        """Return the component."""
        given = {"above": self.above, "below": self.below, "both": self.crosses}
        found = [(key, level) for key, level in given.items() if level is not None]
        if len(found) != 1:
            raise InvalidValue("must have one of above, below, crosses")
        ((direction, given_level),) = found
        level = float(given_level)  # Degrees are in rad already
        return Threshold(level, self.unit, self.size, self.index, direction, self.action, name=name)  # pyright: ignore[reportArgumentType]
