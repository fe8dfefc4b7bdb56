"""Virgili-Llop et al. (2017): SPART's quantities in its conventions [SPART17]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.spart import (
        NaturalOrthogonalComplement,
        Partition,
        convective_inertia,
        floating_convective_inertia,
        floating_inertia,
        generalized_inertia,
        joint_axes,
        link_inertias,
        natural_orthogonal_complement,
        natural_orthogonal_complement_rate,
        twist_propagation,
    )

__all__ = [
    "NaturalOrthogonalComplement",
    "Partition",
    "convective_inertia",
    "floating_convective_inertia",
    "floating_inertia",
    "generalized_inertia",
    "joint_axes",
    "link_inertias",
    "natural_orthogonal_complement",
    "natural_orthogonal_complement_rate",
    "twist_propagation",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
