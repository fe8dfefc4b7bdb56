"""Active constraints: closed loops, grips, rods and gears."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.constraints.actuation import constrained_inverse_dynamics
    from remora.dynamics.constraints.constraint_report import (
        ConstraintReport,
        constraint_report,
    )
    from remora.dynamics.constraints.loop_kinematics import (
        constraint_bias,
        constraint_jacobian,
        constraint_residual,
    )
    from remora.dynamics.constraints.null_space import (
        constraint_null_space,
        independent_speeds,
    )
    from remora.dynamics.constraints.projection import (
        ConstraintImpulse,
        constraint_impulse,
        constraint_projector,
        project_configuration,
        project_velocity,
    )
    from remora.dynamics.constraints.reactions import constraint_multipliers
    from remora.dynamics.derivatives.derivatives import (
        MultiplierDerivatives,
        constrained_inverse_dynamics_derivatives,
        constraint_multiplier_derivatives,
    )
    from remora.model.building.added_constraints import add_constraint, mimic_to_gears
    from remora.simulation.recording.constraint_switch import ConstraintSwitch

__all__ = [
    "ConstraintImpulse",
    "ConstraintReport",
    "ConstraintSwitch",
    "MultiplierDerivatives",
    "add_constraint",
    "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives",
    "constraint_bias",
    "constraint_impulse",
    "constraint_jacobian",
    "constraint_multiplier_derivatives",
    "constraint_multipliers",
    "constraint_null_space",
    "constraint_projector",
    "constraint_report",
    "constraint_residual",
    "independent_speeds",
    "mimic_to_gears",
    "project_configuration",
    "project_velocity",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
