"""Actuators: components that turn commands into forces and torques on the robot."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.actuators.first_order_actuator import FirstOrderActuator
    from remora.actuators.reaction_wheels import ReactionWheels
    from remora.actuators.thruster import Thruster
    from remora.actuators.thruster_set import ThrusterSet

__all__ = ["FirstOrderActuator", "ReactionWheels", "Thruster", "ThrusterSet"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
