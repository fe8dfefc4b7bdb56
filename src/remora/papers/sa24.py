"""Silva & Adorno (2024): modular composition with black boxes [SA24]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.assembly.compiled_assembly import CompiledAssembly
    from remora.dynamics.assembly.connection import Connection
    from remora.dynamics.assembly.interconnection_graph import InterconnectionGraph
    from remora.dynamics.assembly.sensor_reading import (
        PointReading,
        SensorReading,
    )
    from remora.dynamics.assembly.sensor_recording import SensorRecording
    from remora.dynamics.assembly.split import (
        SplitRobot,
        split_robot,
    )
    from remora.dynamics.assembly.subsystem import (
        ForwardSubsystem,
        Subsystem,
        SubsystemAccelerations,
        SubsystemLoads,
    )

__all__ = [
    "CompiledAssembly",
    "Connection",
    "ForwardSubsystem",
    "InterconnectionGraph",
    "PointReading",
    "SensorReading",
    "SensorRecording",
    "SplitRobot",
    "Subsystem",
    "SubsystemAccelerations",
    "SubsystemLoads",
    "split_robot",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
