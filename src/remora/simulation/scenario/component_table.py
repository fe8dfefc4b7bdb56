"""The table of components by name: a new one is one file, one row here, one settings class."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from remora.actuators.first_order_actuator import FirstOrderActuator, FirstOrderActuatorSettings
from remora.actuators.thruster import Thruster, ThrusterSettings
from remora.actuators.thruster_set import ThrusterSet, ThrusterSetSettings
from remora.components.component import Component
from remora.control.attitude_pd import AttitudePD, AttitudePDComponentSettings
from remora.control.joint_pd import JointPD, JointPDComponentSettings
from remora.control.law_table import CONTROL_COMPONENTS, AnyControlSettings
from remora.sensors.rate_gyro import RateGyro, RateGyroSettings
from remora.sensors.threshold import Threshold, ThresholdSettings
from remora.simulation.inputs.signal_source import SignalSource
from remora.simulation.scenario.signal_source_settings import SignalSourceSettings
from remora.world.bushing import Bushing, BushingSettings
from remora.world.compliant_capture import CompliantCapture, CompliantCaptureSettings
from remora.world.spring import Spring, SpringSettings
from remora.world.wall import Wall, WallSettings

#: Components that a scenario file can list, by their `type` there.
COMPONENTS: dict[str, type[Component]] = {
    "joint_pd": JointPD,
    "attitude_pd": AttitudePD,
    "rate_gyro": RateGyro,
    "first_order_actuator": FirstOrderActuator,
    "thruster": Thruster,
    "thruster_set": ThrusterSet,
    "spring": Spring,
    "bushing": Bushing,
    "compliant_capture": CompliantCapture,
    "wall": Wall,
    "signal_source": SignalSource,
    "threshold": Threshold,
    **CONTROL_COMPONENTS,
}

#: The settings of any component in a scenario file; the key `type` selects the class.
AnyComponentSettings: TypeAlias = Annotated[
    JointPDComponentSettings
    | AttitudePDComponentSettings
    | RateGyroSettings
    | FirstOrderActuatorSettings
    | ThrusterSettings
    | ThrusterSetSettings
    | SpringSettings
    | BushingSettings
    | CompliantCaptureSettings
    | WallSettings
    | SignalSourceSettings
    | ThresholdSettings
    | AnyControlSettings,
    Field(discriminator="type"),
]
