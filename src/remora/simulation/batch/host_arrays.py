"""Arrays of a batch on the host, whether they are computed by a CPU or by a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, is_array


def on_device(x: Any, dtype: str | None = None) -> bool:
    """Return whether an argument of a batch is an array of a GPU, which is used as it is.

    Args:
        x: the argument: numbers, or an array of NumPy, CuPy, PyTorch, JAX, ...
        dtype: precision to which arguments are converted; None: the batch runs on a GPU.
    """
    return dtype is None and not is_array(x) and hasattr(x, "__dlpack__")


def to_host(x: Any) -> Array:
    """Return an array of the GPU, or of the CPU, as a NumPy array."""
    return x.get() if hasattr(x, "get") else np.asarray(x)
