"""Functions for specialists: momentum matrices, floating bases, derivatives, passive forces."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.derivatives.derivatives import (
        ForwardDerivatives,
        InverseDerivatives,
        forward_dynamics_derivatives,
        inverse_dynamics_derivatives,
    )
    from remora.dynamics.derivatives.regressor import (
        inertia_derivatives,
        inertia_parameters,
        inertia_regressor,
    )
    from remora.dynamics.floating import (
        base_response,
        base_response_rate,
        floating_inverse_dynamics,
        generalized_jacobian_rate,
    )
    from remora.dynamics.forces.passive_forces import friction_forces, spring_forces, stop_forces
    from remora.dynamics.formulations import FORMULATIONS
    from remora.dynamics.kernels.casadi_function import casadi_function
    from remora.dynamics.kinematics import (
        accelerations,
        frame_acceleration,
        jacobian_rate,
    )
    from remora.dynamics.lagrangian.lagrange_equations import mass_matrix_partials
    from remora.dynamics.lagrangian.reduced import (
        reduced_forward_dynamics,
        reduced_momentum_force,
    )
    from remora.dynamics.maximal.joint_relations import (
        constraint_violation,
        joint_accelerations,
        joint_speeds,
        joint_twists,
    )
    from remora.dynamics.momentum import (
        center_of_mass_jacobian,
        centroidal_momentum,
        centroidal_momentum_matrix,
        locked_inertia,
        momentum_matrix,
    )
    from remora.dynamics.recursive.articulated_body import ArticulatedBody
    from remora.dynamics.recursive.outward_pass import BodyMotion

__all__ = [
    "FORMULATIONS",
    "ArticulatedBody",
    "BodyMotion",
    "ForwardDerivatives",
    "InverseDerivatives",
    "accelerations",
    "base_response",
    "base_response_rate",
    "casadi_function",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "constraint_violation",
    "floating_inverse_dynamics",
    "forward_dynamics_derivatives",
    "frame_acceleration",
    "friction_forces",
    "generalized_jacobian_rate",
    "inertia_derivatives",
    "inertia_parameters",
    "inertia_regressor",
    "inverse_dynamics_derivatives",
    "jacobian_rate",
    "joint_accelerations",
    "joint_speeds",
    "joint_twists",
    "locked_inertia",
    "mass_matrix_partials",
    "momentum_matrix",
    "reduced_forward_dynamics",
    "reduced_momentum_force",
    "spring_forces",
    "stop_forces",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
