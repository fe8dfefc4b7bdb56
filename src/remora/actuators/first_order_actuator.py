"""A first-order actuator: torques that follow a command with a lag, limited in size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from remora.algebra.array_ops import Array
from remora.components.actions import Action, JointForce, Wrench
from remora.components.component import Component, Interface
from remora.components.component_settings import ContinuousSettings
from remora.components.context import Context
from remora.components.parameter_checks import limited, number
from remora.components.signals import Signal, State
from remora.errors import RemoraError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, JointName, Positive


class FirstOrderActuator(Component):
    """Drives of joints, or a torque on a body, that follow a command with a lag.

    τ̇ = (sat(command) - τ) / T, with sat limiting each element to ±limit. τ acts on the joints, in
    the order of their degrees of freedom, or as an external torque on a body in the frame's axes.

    Input: `command`, `(k,)`, N m or N. Output: `torque`, τ, likewise, which is the continuous state
    `lagged`; k is the number of degrees of freedom, or 3.

    Attributes:
        joints: names of the joints; or
        frame: name of the body or frame.
        time_constant: T, s.
        limit: of each element, N m or N; None: no limit.
    """

    joints: tuple[str, ...] = ()
    frame: str = ""
    time_constant: float = 0.1
    limit: float | None = None

    def __post_init__(self) -> None:
        """Check."""
        joints: Any = self.joints
        object.__setattr__(self, "joints", (joints,) if isinstance(joints, str) else tuple(joints))
        lag = number("time_constant of an actuator", self.time_constant, 0.0, above=True)
        object.__setattr__(self, "time_constant", lag)
        if self.limit is not None:
            most = number("limit of an actuator", self.limit, 0.0, above=True)
            object.__setattr__(self, "limit", most)
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
            command = limited(command, -1.0 * self.limit, self.limit)
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


class FirstOrderActuatorSettings(ContinuousSettings):
    """The settings of a first-order actuator in a scenario file."""

    type: Literal["first_order_actuator"]
    joints: list[JointName] = Field(default=[], description="joints it drives; or")
    frame: FrameName | None = Field(default=None, description="body or frame it exerts a torque on")
    time_constant: Positive = Field(description="s")
    limit: Positive | None = Field(default=None, description="of each element, N m or N")

    def made(self, robot: Robot, name: str) -> FirstOrderActuator:
        """Return the component."""
        return FirstOrderActuator(
            tuple(self.joints), self.frame or "", self.time_constant, self.limit, name=name
        )
