"""Transpose-Jacobian control: joint torques of a virtual spring and damper at a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remora.algebra.array_ops import Array, ArrayLike
from remora.algebra.vector import apply, transpose
from remora.components.actions import Action
from remora.components.component import Component, Interface
from remora.components.context import Context
from remora.components.joint_signals import joint_forces, joint_names, joint_signal, speed_places
from remora.components.parameter import parameter, row_indices
from remora.control.motion import controlled_motion as motion
from remora.control.motion.pose_goal import POSE_INPUTS, pose_goal
from remora.model.robot import Robot


class TransposeJacobian(Component):
    """Torques that pull a frame to a reference, without an inverse [MMA89; SPART17, section 3].

    τ_c = Aᵀ (K_p e + K_d (t_d - t)) - k v_c, with A = J* for a floating base, J_c otherwise, e the
    rotation vector and the position error and t the frame's twist, all in inertial axes.

    Inputs: `pose`, `twist` of a reference. Output: `torque`, `(k,)`.

    Asymptotically stable at a constant reference without gravity, since the torques are those of a
    spring and dampers (passive). It needs no masses for a fixed base, and passes singular poses
    without large torques, but does not move along lost directions. `joint_damping` must be positive
    where joints are redundant. Motion in between is coupled and depends on the pose.
    """

    uses_design = True

    frame: str = parameter("body or frame that moves", "frame")
    kp: ArrayLike = parameter(
        "one or six, rotation first", "numbers", unit="N m/rad and N/m", above=0.0, size=6
    )
    kd: ArrayLike = parameter("likewise", "numbers", unit="N m s/rad and N s/m", above=0.0, size=6)
    joints: Sequence[str] = parameter("controlled joints; all by default", "joints", default=())
    rows: str | Sequence[str] = parameter("controlled rows of the frame", "rows", default="pose")
    base: str = parameter("of the robot", "choice", default="floating", choices=motion.BASES)
    joint_damping: float = parameter("k", default=0.0, unit="N m s/rad", minimum=0.0)

    def interface(self, robot: Robot) -> Interface:
        """Return the interface."""
        robot.frame(self.frame)
        names = joint_names(robot, self.joints)
        return Interface(
            inputs=POSE_INPUTS, outputs={"torque": joint_signal(robot, names, "force_unit")}
        )

    def outputs(self, at: Context) -> Mapping[str, Array]:
        """Return the torques."""
        places = speed_places(at.robot, joint_names(at.robot, self.joints))
        rows = row_indices(self.rows)
        goal = pose_goal(at, self.frame)
        moves = motion.response(at, places, self.base)
        A = motion.frame_rates(at, self.frame, rows, places, self.base, moves).matrix
        force = (self.kp * goal.error + self.kd * (goal.rate - goal.actual))[..., rows]
        return {"torque": apply(transpose(A), force) - self.joint_damping * at.v[..., places]}

    def act(self, at: Context) -> list[Action]:
        """Return the torques of the joints."""
        names = joint_names(at.robot, self.joints)
        return joint_forces(at.robot, names, self.outputs(at)["torque"])
