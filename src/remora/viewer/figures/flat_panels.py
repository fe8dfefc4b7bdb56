"""Panels without news: all of their lines stay where they began."""

from __future__ import annotations

import numpy as np

from remora.viewer.figures.panels import Panel

#: Variation relative to the size of the values that is none.
NONE = 1e-9


def is_flat(panel: Panel) -> bool:
    """Return whether no line of a panel changes by more than rounding, or it has no line."""
    for line in panel.lines:
        values = line.values[np.isfinite(line.values)]
        if not values.size:
            continue
        size = max(panel.scale, float(np.abs(values).max()))
        if float(np.ptp(values)) > NONE * size:
            return False
    return True
