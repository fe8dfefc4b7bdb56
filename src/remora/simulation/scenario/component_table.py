"""The table of components by name: a new one is one file and one row here."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from remora.actuators.first_order_actuator import FirstOrderActuator
from remora.actuators.reaction_wheels import ReactionWheels
from remora.actuators.thruster import Thruster
from remora.actuators.thruster_set import ThrusterSet
from remora.components.component import Component
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
from remora.estimation.attitude_filter import AttitudeFilter
from remora.estimation.state_estimate import StateEstimate
from remora.sensors.accelerometer import Accelerometer
from remora.sensors.direction_sensors import Magnetometer, SunSensor
from remora.sensors.force_torque_sensor import ForceTorqueSensor
from remora.sensors.joint_sensors import JointEncoders, Tachometers
from remora.sensors.rate_gyro import RateGyro
from remora.sensors.star_tracker import StarTracker
from remora.sensors.target_camera import TargetCamera
from remora.sensors.threshold import Threshold
from remora.simulation.inputs.signal_source import SignalSource
from remora.simulation.scenario.component_settings import (
    ComponentSettings,
    LawSettings,
    component_settings,
    law_settings,
    settings_of,
)
from remora.world.bushing import Bushing
from remora.world.compliant_capture import CompliantCapture
from remora.world.orbit import Orbit
from remora.world.spring import Spring
from remora.world.wall import Wall

#: Components that a scenario file can list, by their `type` there.
COMPONENTS: dict[str, type[Component]] = {
    "joint_pd": JointPD,
    "attitude_pd": AttitudePD,
    "end_effector_wrench": EndEffectorWrenchControl,
    "rate_gyro": RateGyro,
    "star_tracker": StarTracker,
    "joint_encoders": JointEncoders,
    "tachometers": Tachometers,
    "accelerometer": Accelerometer,
    "force_torque_sensor": ForceTorqueSensor,
    "sun_sensor": SunSensor,
    "magnetometer": Magnetometer,
    "target_camera": TargetCamera,
    "state_estimate": StateEstimate,
    "attitude_filter": AttitudeFilter,
    "first_order_actuator": FirstOrderActuator,
    "thruster": Thruster,
    "thruster_set": ThrusterSet,
    "spring": Spring,
    "bushing": Bushing,
    "compliant_capture": CompliantCapture,
    "wall": Wall,
    "orbit": Orbit,
    "signal_source": SignalSource,
    "threshold": Threshold,
    "state_machine": StateMachine,
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
#: Those that a phase can list as `controllers`: functions of time and state, without signals.
LAWS = {name: row for name, row in COMPONENTS.items() if "__call__" in vars(row)}

if TYPE_CHECKING:
    AnyComponentSettings: TypeAlias = ComponentSettings
    AnyLawSettings: TypeAlias = LawSettings
else:
    _ANY = functools.reduce(operator.or_, (component_settings(x, k) for k, x in COMPONENTS.items()))
    _ANY_LAW = functools.reduce(operator.or_, (law_settings(x, k) for k, x in LAWS.items()))
    #: The settings of any component in a scenario file; the key `type` selects the class.
    AnyComponentSettings = Annotated[_ANY, Field(discriminator="type")]
    #: The settings of any control law of a phase; the key `law` selects the class.
    AnyLawSettings = Annotated[_ANY_LAW, Field(discriminator="law")]


def settings_page() -> str:
    """Return the page of the docs with the settings of all components, in Markdown."""
    lines = [
        "# Settings of components",
        "",
        "The keys of every `type` of {doc}`scenarios`, made from the fields of the components by",
        "`remora run --components`. Python classes take the same names. All types take `name`, and",
        "`sample_time`, `offset` and `delay`, in s. An angle may be `30 deg`, a rate `5 deg/s`.",
        "",
    ]
    for name, row in COMPONENTS.items():
        summary = (row.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        timing = " It needs a `sample_time`." if row.sampled else ""
        lines += [f"## {name}", "", f"`{row.__name__}`: {summary}{timing}", ""]
        lines += ["| key | meaning | default |", "| --- | --- | --- |"]
        for key, (parameter, default) in settings_of(row).items():
            meaning = parameter.text.replace("|", "\\|")
            lines.append(f"| `{key}` | {meaning} | {default} |")
        lines.append("")
    return "\n".join(lines)
