"""Sensors and monitors: components that measure the robot or watch signals."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.sensors.joint_encoders import JointEncoders
    from remora.sensors.rate_gyro import RateGyro
    from remora.sensors.star_tracker import StarTracker
    from remora.sensors.threshold import Threshold

__all__ = ["JointEncoders", "RateGyro", "StarTracker", "Threshold"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
