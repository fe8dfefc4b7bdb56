"""Arrays of a batch on the host, whether they are computed by a CPU or by a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array


def to_host(x: Any) -> Array:
    """Return an array of the GPU, or of the CPU, as a NumPy array."""
    return x.get() if hasattr(x, "get") else np.asarray(x)
