"""What acts on a robot from its surroundings, and between its bodies."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.world.bushing import Bushing
    from remora.world.compliant_capture import CompliantCapture
    from remora.world.kepler import (
        OrbitalElements,
        lvlh_rotation,
        orbit_state,
        orbital_elements,
        radial_axes,
        true_anomaly,
    )
    from remora.world.orbit import Orbit
    from remora.world.spring import Spring
    from remora.world.wall import Wall

__all__ = [
    "Bushing",
    "CompliantCapture",
    "Orbit",
    "OrbitalElements",
    "Spring",
    "Wall",
    "lvlh_rotation",
    "orbit_state",
    "orbital_elements",
    "radial_axes",
    "true_anomaly",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
