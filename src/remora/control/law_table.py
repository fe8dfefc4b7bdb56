"""The table of control laws and references that are components: one file, one row here each."""

from __future__ import annotations

from typing import TypeAlias

from remora.components.component import Component
from remora.control.laws.admittance import Admittance, AdmittanceSettings
from remora.control.laws.base_pose_tracking import BasePoseTracking, BasePoseTrackingSettings
from remora.control.laws.base_reaction_compensation import (
    BaseReactionCompensation,
    BaseReactionCompensationSettings,
)
from remora.control.laws.coordinated_tracking import (
    CoordinatedTracking,
    CoordinatedTrackingSettings,
)
from remora.control.laws.desired_reaction import DesiredReaction, DesiredReactionSettings
from remora.control.laws.frame_pose_tracking import FramePoseTracking, FramePoseTrackingSettings
from remora.control.laws.impedance import Impedance, ImpedanceSettings
from remora.control.laws.joint_computed_torque import (
    JointComputedTorque,
    JointComputedTorqueSettings,
)
from remora.control.laws.joint_pid import JointPID, JointPIDSettings
from remora.control.laws.joint_rate_servo import JointRateServo, JointRateServoSettings
from remora.control.laws.operational_computed_torque import (
    OperationalComputedTorque,
    OperationalComputedTorqueSettings,
)
from remora.control.laws.reaction_null_space import ReactionNullSpace, ReactionNullSpaceSettings
from remora.control.laws.reaction_wheels import ReactionWheels, ReactionWheelsSettings
from remora.control.laws.resolved_rate import ResolvedRate, ResolvedRateSettings
from remora.control.laws.transpose_jacobian import TransposeJacobian, TransposeJacobianSettings
from remora.control.laws.wheel_desaturation import WheelDesaturation, WheelDesaturationSettings
from remora.control.references.circle_reference import CircleReference, CircleReferenceSettings
from remora.control.references.joint_reference import JointReference, JointReferenceSettings
from remora.control.references.pose_reference import PoseReference, PoseReferenceSettings

#: Laws and references, by their `type` in scenario files.
CONTROL_COMPONENTS: dict[str, type[Component]] = {
    "resolved_rate": ResolvedRate,
    "desired_reaction": DesiredReaction,
    "reaction_null_space": ReactionNullSpace,
    "joint_rate_servo": JointRateServo,
    "transpose_jacobian": TransposeJacobian,
    "joint_computed_torque": JointComputedTorque,
    "operational_computed_torque": OperationalComputedTorque,
    "impedance": Impedance,
    "admittance": Admittance,
    "base_reaction_compensation": BaseReactionCompensation,
    "joint_pid": JointPID,
    "base_pose_tracking": BasePoseTracking,
    "frame_pose_tracking": FramePoseTracking,
    "coordinated_tracking": CoordinatedTracking,
    "reaction_wheels": ReactionWheels,
    "wheel_desaturation": WheelDesaturation,
    "joint_reference": JointReference,
    "pose_reference": PoseReference,
    "circle_reference": CircleReference,
}

#: The settings of any of them in a scenario file.
AnyControlSettings: TypeAlias = (
    ResolvedRateSettings
    | DesiredReactionSettings
    | ReactionNullSpaceSettings
    | JointRateServoSettings
    | TransposeJacobianSettings
    | JointComputedTorqueSettings
    | OperationalComputedTorqueSettings
    | ImpedanceSettings
    | AdmittanceSettings
    | BaseReactionCompensationSettings
    | JointPIDSettings
    | BasePoseTrackingSettings
    | FramePoseTrackingSettings
    | CoordinatedTrackingSettings
    | ReactionWheelsSettings
    | WheelDesaturationSettings
    | JointReferenceSettings
    | PoseReferenceSettings
    | CircleReferenceSettings
)
