"""Estimates of the state: what control laws compute with instead of the true state."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.estimation.attitude_filter import AttitudeFilter
    from remora.estimation.filter_consistency import (
        Consistency,
        allan_deviation,
        chi_square_bounds,
        consistency,
        nees,
    )
    from remora.estimation.momentum_observer import MomentumObserver
    from remora.estimation.state_estimate import StateEstimate

__all__ = [
    "AttitudeFilter",
    "Consistency",
    "MomentumObserver",
    "StateEstimate",
    "allan_deviation",
    "chi_square_bounds",
    "consistency",
    "nees",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
