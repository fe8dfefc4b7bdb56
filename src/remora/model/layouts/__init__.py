"""Conversion of states to and from the layouts of Pinocchio, MuJoCo and SPART."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.model.layouts.layout import Layout
    from remora.model.layouts.libraries import (
        mujoco,
        pinocchio,
        spart,
    )

__all__ = ["Layout", "mujoco", "pinocchio", "spart"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
