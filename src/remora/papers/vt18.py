"""Valverde & Tsiotras (2018): dual-quaternion Newton-Euler dynamics [VT18]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.formulations import newton_euler_solution
    from remora.dynamics.maximal.joint_relations import (
        from_generalized_coordinates,
        generalized_coordinates,
        rate_maps,
    )
    from remora.dynamics.maximal.newton_euler import (
        NewtonEulerSystem,
        newton_euler_system,
    )

__all__ = [
    "NewtonEulerSystem",
    "from_generalized_coordinates",
    "generalized_coordinates",
    "newton_euler_solution",
    "newton_euler_system",
    "rate_maps",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
