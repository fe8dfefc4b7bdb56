"""Analyses of robots and runs: conditioning, coupling, workspaces, payloads, waveforms."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.analysis.base_coupling import (
        Coupling,
        DisturbanceBudget,
        coupling,
        coupling_map,
        disturbance_budget,
        momentum_demand,
        wheel_envelope,
        wheel_margin,
    )
    from remora.analysis.free_floating_workspace import (
        FloatingWorkspace,
        floating_workspace,
    )
    from remora.analysis.jacobian_conditioning import (
        Conditioning,
        conditioning,
    )
    from remora.analysis.manipulability import Manipulability
    from remora.analysis.measures import manipulability_map
    from remora.analysis.payload import (
        PayloadEstimate,
        identify_payload,
    )
    from remora.analysis.sensitivity import (
        MissSensitivity,
        miss_sensitivity,
    )
    from remora.analysis.straight_path import (
        StraightPathWorkspace,
        straight_path_workspace,
    )
    from remora.analysis.waveforms import (
        differentiate,
        low_pass,
        multiple_correlation,
        root_mean_square_error,
    )
    from remora.analysis.workspace import Workspace

__all__ = [
    "Conditioning",
    "Coupling",
    "DisturbanceBudget",
    "FloatingWorkspace",
    "Manipulability",
    "MissSensitivity",
    "PayloadEstimate",
    "StraightPathWorkspace",
    "Workspace",
    "conditioning",
    "coupling",
    "coupling_map",
    "differentiate",
    "disturbance_budget",
    "floating_workspace",
    "identify_payload",
    "low_pass",
    "manipulability_map",
    "miss_sensitivity",
    "momentum_demand",
    "multiple_correlation",
    "root_mean_square_error",
    "straight_path_workspace",
    "wheel_envelope",
    "wheel_margin",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
