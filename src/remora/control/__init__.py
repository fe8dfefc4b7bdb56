"""Control laws and references, as components."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.control.attitude_pd import AttitudePD
    from remora.control.end_effector_wrench import EndEffectorWrenchControl
    from remora.control.joint_pd import JointPD
    from remora.control.laws.admittance import Admittance
    from remora.control.laws.base_pose_tracking import BasePoseTracking
    from remora.control.laws.base_reaction_compensation import BaseReactionCompensation
    from remora.control.laws.coordinated_tracking import CoordinatedTracking
    from remora.control.laws.desired_reaction import DesiredReaction
    from remora.control.laws.frame_pose_tracking import FramePoseTracking
    from remora.control.laws.impedance import Impedance
    from remora.control.laws.joint_computed_torque import JointComputedTorque
    from remora.control.laws.joint_pid import JointPID
    from remora.control.laws.joint_rate_servo import JointRateServo
    from remora.control.laws.operational_computed_torque import OperationalComputedTorque
    from remora.control.laws.reaction_null_space import ReactionNullSpace
    from remora.control.laws.resolved_rate import ResolvedRate
    from remora.control.laws.transpose_jacobian import TransposeJacobian
    from remora.control.laws.wheel_desaturation import WheelDesaturation
    from remora.control.references.circle_reference import CircleReference
    from remora.control.references.joint_reference import JointReference
    from remora.control.references.pose_reference import PoseReference
    from remora.control.state_machine import StateMachine

__all__ = [
    "Admittance",
    "AttitudePD",
    "BasePoseTracking",
    "BaseReactionCompensation",
    "CircleReference",
    "CoordinatedTracking",
    "DesiredReaction",
    "EndEffectorWrenchControl",
    "FramePoseTracking",
    "Impedance",
    "JointComputedTorque",
    "JointPD",
    "JointPID",
    "JointRateServo",
    "JointReference",
    "OperationalComputedTorque",
    "PoseReference",
    "ReactionNullSpace",
    "ResolvedRate",
    "StateMachine",
    "TransposeJacobian",
    "WheelDesaturation",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
