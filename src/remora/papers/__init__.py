"""The five papers: what only their readers look for, a module for each, and `index`."""

import sys
from typing import TYPE_CHECKING

from remora.lazy_names import lazy_names

if TYPE_CHECKING:
    from remora.papers import dm93, fpg11, sa24, spart17, vt18
    from remora.papers.integrated_states import (
        STATES,
        BodyMotions,
        PaperRun,
        PaperState,
        integrate_state,
    )
    from remora.papers.paper_index import PaperIndex, PaperRow, index

__all__ = [
    "STATES",
    "BodyMotions",
    "PaperIndex",
    "PaperRow",
    "PaperRun",
    "PaperState",
    "dm93",
    "fpg11",
    "index",
    "integrate_state",
    "sa24",
    "spart17",
    "vt18",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(sys.modules[__name__])
