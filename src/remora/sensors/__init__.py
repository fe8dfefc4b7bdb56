"""Sensors and monitors: components that measure the robot or watch signals."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.sensors.accelerometer import Accelerometer
    from remora.sensors.direction_sensors import Magnetometer, SunSensor
    from remora.sensors.force_torque_sensor import ForceTorqueSensor
    from remora.sensors.joint_sensors import JointEncoders, Tachometers
    from remora.sensors.rate_gyro import RateGyro
    from remora.sensors.star_tracker import StarTracker
    from remora.sensors.target_camera import TargetCamera
    from remora.sensors.threshold import Threshold

__all__ = [
    "Accelerometer",
    "ForceTorqueSensor",
    "JointEncoders",
    "Magnetometer",
    "RateGyro",
    "StarTracker",
    "SunSensor",
    "Tachometers",
    "TargetCamera",
    "Threshold",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
