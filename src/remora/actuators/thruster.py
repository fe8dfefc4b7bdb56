"""A thruster: a force along a fixed direction of a frame, proportional to its command."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra.array_ops import Array, ArrayLike, asarray, clip
from remora.components.actions import Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.model.robot import Robot


class Thruster(Component):
    """A thruster at the origin of a frame; the expelled mass is neglected.

    f = thrust · min(max(command, 0), 1) along `direction`, acting at the frame's origin.

    Input: `command`, 0 (off, the default) to 1 (on). Output: `force` f, N.
    """

    frame: str = parameter("body or frame it is mounted on", "frame")
    thrust: float = parameter("largest force", unit="N", above=0.0)
    direction: ArrayLike = parameter(
        "of the force on the robot in the frame's axes, normalized", "direction",
        default=(1.0, 0.0, 0.0), size=3,
    )  # fmt: skip

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        return Interface(
            inputs={"command": Signal((), "", default=0.0)}, outputs={"force": Signal((), "N")}
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the force."""
        return {"force": asarray(self.thrust * clip(at.inputs["command"], 0.0, 1.0))}

    def act(self, at: Context) -> Wrench:
        """Return the force on the body."""
        return Wrench(self.frame, force=self.outputs(at)["force"][..., None] * self.direction)
