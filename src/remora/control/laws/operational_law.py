"""What laws of operational space share: a frame, the joints that move it, the base, damping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from pydantic import Field

from remora.algebra.array_ops import asarray
from remora.components.actions import Action
from remora.components.component import Component, Interface, default_name
from remora.components.context import Context
from remora.components.parameter_checks import number
from remora.components.signals import Signal
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.joint_signals import joint_forces, joint_signal
from remora.control.motion.pose_goal import ACCELERATED_POSE_INPUTS
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, JointName, NotNegative


class OperationalLaw(Component):
    """A law whose joint torques control the motion of a frame; its outputs include `torque`.

    Attributes:
        frame: name of the frame.
        joints: names of the controlled joints; all by default.
        base: `fixed`, `flying` or `floating`.
        damping: λ of the least squares near singular poses.
        joint_damping: k, 1/s, in the null space.
    """

    frame: str
    joints: Sequence[str] = field(default=(), kw_only=True)
    base: str = field(default="floating", kw_only=True)
    damping: float = field(default=0.0, kw_only=True)
    joint_damping: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        """Check."""
        if self.base not in motion.BASES:
            raise UnknownName("base", self.base, motion.BASES)
        for name in ("damping", "joint_damping"):
            value = number(f"{name} of {default_name(self)}", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface: a pose to follow in, torques and an error out."""
        return self.torque_interface(robot, "error")

    def torque_interface(
        self, robot: Robot, output: str, inputs: Mapping[str, Signal] | None = None
    ) -> Interface:
        """Return an interface with torques and one screw out.

        Args:
            robot: the robot.
            output: name of the screw `(6,)`.
            inputs: besides those of a pose.
        """
        robot.frame(self.frame)
        torque = joint_signal(robot, motion.joint_names(robot, self.joints), "force_unit")
        return Interface(
            inputs={**ACCELERATED_POSE_INPUTS, **(inputs or {})},
            outputs={"torque": torque, output: Signal(6)},
        )

    def places(self, at: Context) -> list[int]:
        """Return the indices of the controlled speeds in v."""
        return motion.speed_places(at.robot, motion.joint_names(at.robot, self.joints))

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = motion.joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, asarray(self.outputs(at)["torque"]))


class OperationalLawSettings(LawComponentSettings):
    """The settings that these laws share in a scenario file."""

    frame: FrameName = Field(description="body or frame that is controlled")
    joints: list[JointName] = Field(default=[], description="controlled joints; default: all")
    base: Literal["fixed", "flying", "floating"] = "floating"
    damping: NotNegative = Field(default=0.0, description="of the least squares")
    joint_damping: NotNegative = Field(default=1.0, description="in the null space, 1/s")
