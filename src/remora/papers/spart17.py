"""Virgili-Llop et al. (2017): SPART's quantities and calls in its conventions [SPART17]."""

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
    from remora.dynamics.spart_calls import (
        Kinematics,
        composite_body_masses,
        floating_base_inverse_dynamics,
        flying_forward_dynamics,
        flying_inverse_dynamics,
        jacobians,
        kinematics,
        state,
        velocities,
    )

__all__ = [
    "Kinematics",
    "NaturalOrthogonalComplement",
    "Partition",
    "composite_body_masses",
    "convective_inertia",
    "floating_base_inverse_dynamics",
    "floating_convective_inertia",
    "floating_inertia",
    "flying_forward_dynamics",
    "flying_inverse_dynamics",
    "generalized_inertia",
    "jacobians",
    "joint_axes",
    "kinematics",
    "link_inertias",
    "natural_orthogonal_complement",
    "natural_orthogonal_complement_rate",
    "state",
    "twist_propagation",
    "velocities",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
