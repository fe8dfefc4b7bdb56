"""Points of a scrambled Sobol sequence by index: none before them is generated.

Point n of the sequence in Gray-code order is x_n = (s ⊕ ⨁_k g_k V_k)/2³⁰, with g_k the bits of
n ⊕ ⌊n/2⌋, V the direction numbers and s the digital shift, both scrambled. They
come from `scipy.stats.qmc.Sobol`, whose own `fast_forward` takes as long as there are points.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError

#: Points of a sequence.
MOST = 2**30
#: Points that are compared with SciPy's at each call.
COMPARED = 4


def sobol_points(start: int, stop: int, dimensions: int, seed: int) -> Array:
    """Return points `start` to `stop - 1`, `(n, dimensions)`, in [0, 1).

    Raises:
        RemoraError: beyond 2³⁰ points, where the sequence ends.
    """
    if stop > MOST:
        raise RemoraError(
            f"a Sobol sequence has 2^30 = {MOST} points, and run {stop - 1} is beyond them: use "
            "sampling: random or latin_hypercube"
        )
    qmc: Any = importlib.import_module("scipy.stats.qmc")
    sequence = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    # SciPy has no public access to these numbers; the first points show whether they mean the same.
    numbers, shift = getattr(sequence, "_sv", None), getattr(sequence, "_shift", None)
    with warnings.catch_warnings():  # the number of runs need not be a power of two
        warnings.simplefilter("ignore", UserWarning)
        first = sequence.random(COMPARED)
        if numbers is not None and shift is not None:
            numbers, shift = (np.asarray(x, dtype=np.uint64) for x in (numbers, shift))
            if np.array_equal(_points(np.arange(COMPARED), numbers, shift), first):
                return _points(np.arange(start, stop), numbers, shift)
        sequence.reset()  # the same numbers, point by point
        if start:
            sequence.fast_forward(start)
        return np.asarray(sequence.random(stop - start))


def _points(indices: Array, numbers: Array, shift: Array) -> Array:
    """Return the points of these indices.

    Args:
        indices: `(n,)`.
        numbers: direction numbers, `(dimensions, bits)`.
        shift: `(dimensions,)`.
    """
    n = indices.astype(np.uint64)
    gray = n ^ (n >> np.uint64(1))
    bits = numbers.shape[1]
    found = np.broadcast_to(shift, (n.size, shift.size)).copy()
    for k in range(bits):
        chosen = (gray >> np.uint64(k)) & np.uint64(1)
        found ^= chosen[:, None] * numbers[:, k]
    return found.astype(float) * 2.0**-bits
