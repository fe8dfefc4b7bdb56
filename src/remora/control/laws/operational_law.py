"""What laws of operational space share: a frame, the joints that move it, the base, damping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import asarray
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_forces, joint_names, joint_signal, speed_places
from remora.components.parameter import parameter
from remora.components.signals import Signal
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import ACCELERATED_POSE_INPUTS
from remora.model.robot import Robot


class OperationalLaw(Component):
    """A law whose joint torques control the motion of a frame; its outputs include `torque`."""

    uses_design = True

    frame: str = parameter("body or frame that is controlled", "frame")
    joints: Sequence[str] = parameter(
        "controlled joints; all by default", "joints", default=(), kw_only=True
    )
    base: str = parameter(
        "of the robot", "choice", default="floating", choices=motion.BASES, kw_only=True
    )
    damping: float = parameter(
        "λ of the least squares near singular poses", default=0.0, minimum=0.0, kw_only=True
    )
    joint_damping: float = parameter(
        "k, in the null space", default=1.0, unit="1/s", minimum=0.0, kw_only=True
    )

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
        torque = joint_signal(robot, joint_names(robot, self.joints), "force_unit")
        return Interface(
            inputs={**ACCELERATED_POSE_INPUTS, **(inputs or {})},
            outputs={"torque": torque, output: Signal(6)},
        )

    def places(self, at: Context) -> list[int]:
        """Return the indices of the controlled speeds in v."""
        return speed_places(at.robot, joint_names(at.robot, self.joints))

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, asarray(self.outputs(at)["torque"]))
