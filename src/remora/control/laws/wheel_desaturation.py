"""Desaturation of reaction wheels by an external torque, with hysteresis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, asarray, less, select
from remora.components.actions import Wrench
from remora.components.component import Component, Interface
from remora.components.component_settings import SampledSettings
from remora.components.context import Context
from remora.components.parameter_checks import limited, number
from remora.components.signals import Signal, State
from remora.control.law_settings import LawComponentSettings
from remora.errors import InvalidValue
from remora.model.robot import Robot
from remora.model.settings_fields import Positive


class WheelDesaturation(Component):
    """A torque on the base that takes momentum out of its wheels [MC14].

    T = -k h while on, each axis limited to ±max_torque, else 0. It goes on when ‖h‖ exceeds `upper`
    and off below `lower` (Schmitt trigger). It acts on the base as it is, as of ideal thrusters;
    with `torque_output` it is a demand for a `ThrusterSet`. Connected to `external` of
    `ReactionWheels`, the wheels take it up at once and the base does not move; without it the
    attitude controller does so.

    Input: `momentum` h, `(3,)`, N m s, of the wheels, base axes. Outputs: `torque` T, `(3,)`, N m;
    `firing`, 1 while on. Discrete state: `on`.

    Valid where max_torque is within what the wheels can take up.

    Attributes:
        gain: k, 1/s.
        max_torque: of each axis, N m.
        upper: N m s.
        lower: N m s.
        torque_output: whether T is only an output, and something else acts.
    """

    gain: float
    max_torque: float
    upper: float
    lower: float
    torque_output: bool = False

    def __post_init__(self) -> None:
        """Check."""
        if self.sample_time is None:
            raise InvalidValue("a wheel_desaturation needs a sample_time")
        for name in ("gain", "max_torque", "upper", "lower"):
            value = number(f"{name} of a desaturation", getattr(self, name), 0.0, above=True)
            object.__setattr__(self, name, value)
        if self.lower >= self.upper:
            raise InvalidValue(f"lower ({self.lower:g}) must be below upper ({self.upper:g})")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={"momentum": Signal(3, "N m s")},
            outputs={"torque": Signal(3, "N m"), "firing": Signal(())},
            discrete={"on": State(0.0)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torque and whether it is on."""
        on = self._on(at)
        demand = -self.gain * at.inputs["momentum"]
        torque = limited(demand, -1.0 * self.max_torque, self.max_torque)
        return {"torque": on[..., None] * torque, "firing": on}

    def update(self, at: Context) -> Mapping[str, Array]:
        """Return whether it is on."""
        return {"on": self._on(at)}

    def act(self, at: Context) -> Wrench | None:
        """Return the torque on the base."""
        if self.torque_output:
            return None
        return Wrench(at.robot.bodies[0].name, torque=self.outputs(at)["torque"])

    def _on(self, at: Context) -> Array:
        h = at.inputs["momentum"]
        square = asarray((h * h).sum(axis=-1))
        was = at.memory["on"]
        kept = select(less(square, self.lower * self.lower), 0.0, was)
        return select(less(self.upper * self.upper, square), 1.0, kept)


class WheelDesaturationSettings(SampledSettings, LawComponentSettings):  # pyright: ignore[reportIncompatibleVariableOverride]
    """The settings of a wheel_desaturation component in a scenario file."""

    component: ClassVar[type[Component]] = WheelDesaturation
    type: Literal["wheel_desaturation"]
    gain: Positive = Field(description="1/s")
    max_torque: Positive = Field(description="of each axis, N m")
    upper: Positive = Field(description="momentum at which it goes on, N m s")
    lower: Positive = Field(description="momentum at which it goes off, N m s")
    torque_output: bool = Field(default=False, description="whether something else acts")
