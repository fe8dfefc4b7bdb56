"""A first-order actuator: torques that follow a command with a lag, limited in size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from remora.algebra.array_ops import Array, clip
from remora.components.actions import Action, JointForce, Wrench
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.parameter import parameter
from remora.components.signals import Signal, State
from remora.errors import RemoraError
from remora.model.joints import kind
from remora.model.robot import Robot


class FirstOrderActuator(Component):
    """Drives of joints, or a torque on a body, that follow a command with a lag.

    τ̇ = (sat(command) - τ) / T, with sat limiting each element to ±limit. τ acts on the joints, in
    the order of their degrees of freedom, or as an external torque on a body in the frame's axes.

    Input: `command`, `(k,)`, N m or N. Output: `torque`, τ, likewise, which is the continuous state
    `lagged`; k is the number of degrees of freedom, or 3.
    """

    joints: tuple[str, ...] = parameter("names of the joints; or", "joints", default=())
    frame: str = parameter("body or frame on which it exerts a torque", "frame", default="")
    time_constant: float = parameter("T", default=0.1, unit="s", above=0.0)
    limit: float | None = parameter("of each element", default=None, unit="N m or N", above=0.0)

    def __post_init__(self) -> None:
        """Check."""
        super().__post_init__()
        if bool(self.joints) == bool(self.frame):
            raise RemoraError("an actuator acts on joints=('elbow', ...) or on frame='bus'")

    def interface(self, robot: Robot) -> Interface:
        """Return the interface; the unit of a mix of rotations and translations is empty."""
        if self.frame:
            units, size = {"N m"}, 3
        else:
            freedoms = [
                f for name in self.joints
                for f in kind(robot.joints[robot.joint_index(name)]).freedoms
            ]  # fmt: skip
            units, size = {f.force_unit for f in freedoms}, len(freedoms)
        if not size:
            raise RemoraError(f"the joints {', '.join(self.joints)} do not move")
        unit = units.pop() if len(units) == 1 else ""
        return Interface(
            inputs={"command": Signal(size, unit)},
            outputs={"torque": Signal(size, unit)},
            continuous={"lagged": State(np.zeros(size), unit)},
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torque."""
        return {"torque": at.state["lagged"]}

    def derivative(self, at: Context) -> Mapping[str, Array]:
        """Return the rate of the torque."""
        command = at.inputs["command"]
        if self.limit is not None:
            command = clip(command, -1.0 * self.limit, self.limit)
        return {"lagged": (command - at.state["lagged"]) / self.time_constant}

    def act(self, at: Context) -> Action | list[Action]:
        """Return the torque on the body, or the forces of the joints."""
        torque = at.state["lagged"]
        if self.frame:
            return Wrench(self.frame, torque=torque)
        found: list[Action] = []
        start = 0
        for name in self.joints:
            own = at.robot.joints[name].v
            stop = start + own.stop - own.start
            found.append(JointForce(name, torque[..., start:stop]))
            start = stop
        return found
