"""Points of a design by index: no point before them and no table is made.

Point n of a Sobol sequence in Gray-code order is x_n = (s ⊕ ⨁_k g_k V_k)/2³⁰, with g_k the bits of
n ⊕ ⌊n/2⌋, V the direction numbers and s the digital shift, both scrambled. They
come from `scipy.stats.qmc.Sobol`, whose own `fast_forward` takes as long as there are points.

A random permutation of 0, ..., n - 1: a balanced Feistel network on 2k bits, 2²ᵏ ≥ n, is a
permutation of 0, ..., 2²ᵏ - 1 for any round function; an index that it maps outside of 0, ...,
n - 1 is mapped again until it is inside (cycle walking), which is a permutation of 0, ..., n - 1
[BR02].
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, RemoraError

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


#: Rounds of the network, one key each. Four are indistinguishable from random [LR88]; small halves
#: of few bits need more.
ROUNDS = 12
#: Odd multipliers of the round function (SplitMix64) [SLF14].
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def permuted(index: Array, size: int, keys: Array) -> Array:
    """Return the places of indices under the permutation of 0, ..., size - 1 given by keys.

    Args:
        index: whole numbers from 0 to size - 1, of any shape.
        size: n ≥ 1, at most 2⁶².
        keys: one 64-bit key for each of the `ROUNDS` rounds, `(ROUNDS,)` uint64.
    """
    found = np.array(index, np.uint64)
    if not 1 <= size <= 2**62 or np.any(found >= np.uint64(size)):
        raise InvalidValue(f"indices must be from 0 to size - 1, and size at most 2^62, not {size}")
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    found = _network(found, half, keys)
    outside = found >= np.uint64(size)
    while np.any(outside):
        found[outside] = _network(found[outside], half, keys)
        outside = found >= np.uint64(size)
    return found


def _network(x: Array, half: int, keys: Array) -> Array:
    """Return x `(n,)` after all rounds on two halves of so many bits."""
    bits, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = x >> bits, x & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right, key) & mask)
    return (left << bits) | right


def _mixed(x: Array, key: np.uint64) -> Array:
    """Return 64 bits that depend on all bits of x and of the key (arithmetic modulo 2⁶⁴)."""
    z = (x + np.uint64(1)) * _SECOND ^ key
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))
