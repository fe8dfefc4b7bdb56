"""Dooley & McCarthy (1993): dynamics in dual-quaternion coordinates [DM93]."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.dynamics.maximal.image_coordinates import (
        ImageSpaceConstraints,
        from_image_coordinates,
        image_coordinates,
        image_rates,
        image_space_constraints,
        project_image_coordinates,
    )
    from remora.dynamics.maximal.image_system import (
        ImageSpaceSolution,
        ImageSpaceSystem,
        image_space_solution,
        image_space_system,
    )

__all__ = [
    "ImageSpaceConstraints",
    "ImageSpaceSolution",
    "ImageSpaceSystem",
    "from_image_coordinates",
    "image_coordinates",
    "image_rates",
    "image_space_constraints",
    "image_space_solution",
    "image_space_system",
    "project_image_coordinates",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
