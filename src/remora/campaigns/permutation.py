"""A random permutation of 0, ..., n - 1 that is evaluated by index: no table of n entries is made.

A balanced Feistel network on 2k bits, 2²ᵏ ≥ n, is a permutation of 0, ..., 2²ᵏ - 1 for any round
function; an index that it maps outside of 0, ..., n - 1 is mapped again until it is inside (cycle
walking), which is a permutation of 0, ..., n - 1 [BR02].
"""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue

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
