"""Desaturation of reaction wheels by an external torque, with hysteresis."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra.array_ops import Array, asarray, clip, less, select
from remora.components.actions import Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.errors import InvalidValue
from remora.model.robot import Robot


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
    """

    sampled = True
    gain: float = parameter("k", unit="1/s", above=0.0)
    max_torque: float = parameter("of each axis", unit="N m", above=0.0)
    upper: float = parameter("momentum at which it goes on", unit="N m s", above=0.0)
    lower: float = parameter("momentum at which it goes off", unit="N m s", above=0.0)
    torque_output: bool = parameter(
        "whether T is an output only, and something else acts", "flag", default=False
    )

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
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
        torque = clip(demand, -1.0 * self.max_torque, self.max_torque)
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
