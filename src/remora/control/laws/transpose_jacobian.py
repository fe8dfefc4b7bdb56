"""Transpose-Jacobian control: joint torques of a virtual spring and damper at a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.vector import apply, transpose
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.control.law_settings import LawComponentSettings
from remora.control.motion import controlled_motion as motion
from remora.control.motion.gains import gains
from remora.control.motion.joint_signals import joint_forces, joint_signal
from remora.control.motion.pose_goal import POSE_INPUTS, pose_goal
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.model.settings_fields import FrameName, JointName, NotNegative, Positive


class TransposeJacobian(Component):
    """Torques that pull a frame to a reference, without inverting anything [MMA89; SPART17, 2.4].

    τ_c = Aᵀ (K_p e + K_d (t_d - t)) - k v_c, with A = J* for a floating base, J_c otherwise, e the
    rotation vector and the position error and t the frame's twist, all in inertial axes.

    Inputs: `pose`, `twist` of a reference. Output: `torque`, `(k,)`.

    Asymptotically stable at a constant reference without gravity, since the torques are those of a
    spring and dampers (passive). It needs no masses for a fixed base, and passes singular poses
    without large torques, but does not move along lost directions. `joint_damping` must be positive
    where joints are redundant. Motion in between is coupled and depends on the pose.

    Attributes:
        frame: name of the frame.
        joints: names of the controlled joints; all by default.
        rows: rows that are controlled.
        base: `fixed`, `flying` or `floating`.
        kp: N m/rad, N/m: one or six, three of rotation, three of translation.
        kd: N m s/rad, N s/m, likewise.
        joint_damping: k, N m s/rad.
    """

    frame: str
    kp: ArrayLike
    kd: ArrayLike
    joints: Sequence[str] = ()
    rows: str | Sequence[str] = "pose"
    base: str = "floating"
    joint_damping: float = 0.0

    def __post_init__(self) -> None:
        """Check."""
        motion.row_indices(self.rows)
        if self.base not in motion.BASES:
            raise UnknownName("base", self.base, motion.BASES)
        for name in ("kp", "kd"):
            value = gains(f"{name} of a transpose-Jacobian law", getattr(self, name), 6)
            object.__setattr__(self, name, value)
        damping = gains("joint_damping", self.joint_damping, 1, zero=True)
        object.__setattr__(self, "joint_damping", float(damping[0]))

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        robot.frame(self.frame)
        names = motion.joint_names(robot, self.joints)
        return Interface(
            inputs=POSE_INPUTS, outputs={"torque": joint_signal(robot, names, "force_unit")}
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        places = motion.speed_places(at.robot, motion.joint_names(at.robot, self.joints))
        rows = motion.row_indices(self.rows)
        goal = pose_goal(at, self.frame)
        moves = motion.response(at, places, self.base)
        A = motion.frame_rates(at, self.frame, rows, places, self.base, moves).matrix
        force = (self.kp * goal.error + self.kd * (goal.rate - goal.actual))[..., rows]
        return {"torque": apply(transpose(A), force) - self.joint_damping * at.v[..., places]}

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = motion.joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self.outputs(at)["torque"])


class TransposeJacobianSettings(LawComponentSettings):
    """The settings of a transpose_jacobian component in a scenario file."""

    component: ClassVar[type[Component]] = TransposeJacobian
    type: Literal["transpose_jacobian"]
    frame: FrameName = Field(description="body or frame that moves")
    kp: Positive = Field(description="N m/rad and N/m")
    kd: Positive = Field(description="N m s/rad and N s/m")
    joints: list[JointName] = Field(default=[], description="controlled joints; default: all")
    rows: str | list[str] = Field(default="pose", description="pose, position, orientation, ...")
    base: Literal["fixed", "flying", "floating"] = "floating"
    joint_damping: NotNegative = Field(default=0.0, description="N m s/rad")
