"""Silva & Adorno (2024): modular composition with black boxes [SA24]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.assembly.assembly_kernel import assembly_kernel
    from remora.dynamics.assembly.compiled_assembly import CompiledAssembly
    from remora.dynamics.assembly.connection import Connection
    from remora.dynamics.assembly.interconnection_graph import InterconnectionGraph
    from remora.dynamics.assembly.mass_center_wrenches import (
        MassCenterMotions,
        joint_wrenches,
        mass_center_motions,
        wrench_parts,
    )
    from remora.dynamics.assembly.sensor_reading import (
        BaseState,
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
    "BaseState",
    "CompiledAssembly",
    "Connection",
    "ForwardSubsystem",
    "InterconnectionGraph",
    "MassCenterMotions",
    "PointReading",
    "SensorReading",
    "SensorRecording",
    "SplitRobot",
    "Subsystem",
    "SubsystemAccelerations",
    "SubsystemLoads",
    "assembly_kernel",
    "joint_wrenches",
    "mass_center_motions",
    "split_robot",
    "wrench_parts",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
