"""A thruster: a force along a fixed direction of a frame, proportional to its command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.components.actions import Wrench
from remora.components.component import Component, Interface
from remora.components.component_settings import ComponentSettings
from remora.components.context import Context
from remora.components.parameter_checks import limited, number, vector
from remora.components.signals import Signal
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, Positive, Vector


class Thruster(Component):
    """A thruster at the origin of a frame; the expelled mass is neglected.

    f = thrust · min(max(command, 0), 1) along `direction`, acting at the frame's origin.

    Input: `command`, 0 (off, the default) to 1 (on). Output: `force` f, N.

    Attributes:
        frame: name of the body or frame it is mounted on.
        thrust: N.
        direction: of the force on the robot in the frame's axes, `(3,)`; normalized.
    """

    frame: str
    thrust: float
    direction: ArrayLike = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check."""
        thrust = number("the thrust of a thruster", self.thrust, 0.0, above=True)
        object.__setattr__(self, "thrust", thrust)
        given: Any = self.direction
        direction = vector("the direction of a thruster", given, 3)
        length = float(np.linalg.norm(direction))
        if np.ndim(given) == 0 or not length:
            raise InvalidValue(f"the direction must be three numbers, not all zero, not {given!r}")
        object.__setattr__(self, "direction", direction / length)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={"command": Signal((), "", default=0.0)}, outputs={"force": Signal((), "N")}
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the force."""
        return {"force": asarray(self.thrust * limited(at.inputs["command"], 0.0, 1.0))}

    def act(self, at: Context) -> Wrench:
        """Return the force on the body."""
        return Wrench(self.frame, force=self.outputs(at)["force"][..., None] * self.direction)


class ThrusterSettings(ComponentSettings):
    """The settings of a thruster in a scenario file."""

    type: Literal["thruster"]
    frame: FrameName = Field(description="body or frame it is mounted on")
    thrust: Positive = Field(description="N")
    direction: Vector = Field(
        default=[1.0, 0.0, 0.0], description="of the force on the robot, the frame's axes"
    )

    def made(self, robot: Robot, name: str) -> Thruster:
        """Return the component."""
        return Thruster(
            self.frame, self.thrust, self.direction, name=name, sample_time=self.sample_time,
            offset=self.offset, delay=self.delay,
        )  # fmt: skip
