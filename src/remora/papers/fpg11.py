"""From, Pettersen & Gravdahl (2011): singularity-free Lagrangian dynamics [FPG11]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.lagrangian.center_of_mass_coordinates import (
        separated_coriolis_matrix,
        separated_mass_matrix,
        separated_velocity,
    )
    from remora.dynamics.lagrangian.equivalent_manipulator import equivalent_state
    from remora.dynamics.lagrangian.link_jacobians import (
        link_adjoint,
        link_adjoint_partials,
        link_jacobian,
        link_jacobian_partials,
    )

__all__ = [
    "equivalent_state",
    "link_adjoint",
    "link_adjoint_partials",
    "link_jacobian",
    "link_jacobian_partials",
    "separated_coriolis_matrix",
    "separated_mass_matrix",
    "separated_velocity",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
