"""Counter-based random words (Philox4x32-10) and the exact numbers made of them, in NumPy.

A word is a pure function of the seed and of its place in the run, so there is no generator state to
store, and the order in which runs or components are computed does not matter [SMDS11]. The 64 bits
of the seed are the key; the 128 bits of the counter are

    word 0   run                                       32 bits
    word 1   tick mod 2³²                              32 bits
    word 2   stream                                    32 bits
    word 3   block + 2¹⁶ (tick div 2³²)                16 + 16 bits

A block is 4 words. This file is the definition; machine code (`integration/random_words.py`) and C
(`export/random_c.py`) compute the same bits.

The numbers made of words are exact in float64 and in float32, so that rounding starts in the
functions that use them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array

ROUNDS = 10
#: Multipliers of a round.
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
#: Increments of the key from round to round (Weyl sequence).
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
#: Bits of each part of the counter, and of the seed.
SEED_BITS, RUN_BITS, STREAM_BITS, TICK_BITS, BLOCK_BITS = 64, 32, 32, 48, 16
WORDS_PER_BLOCK = 4
#: Numbers and random variables of a block.
NUMBERS_PER_PAIR, NORMALS_PER_BLOCK, UNIFORMS_PER_BLOCK = 3, 2, 4

_MASK = np.uint64(0xFFFFFFFF)


def philox4x32(counter: Sequence[Array], key: Sequence[Array]) -> list[Array]:
    """Return the four words of a block, as uint64 arrays of values below 2³².

    A round, with hi and lo the halves of a 64-bit product:

        c ← [hi(m₁ c₂) ⊕ c₁ ⊕ k₀, lo(m₁ c₂), hi(m₀ c₀) ⊕ c₃ ⊕ k₁, lo(m₀ c₀)],  k ← k + w

    Args:
        counter: four arrays of words, broadcast.
        key: two arrays of words.

    References:
        [SMDS11, section 3.3]
    """
    c = [np.asarray(x, np.uint64) for x in counter]
    k = [np.asarray(x, np.uint64) for x in key]
    for _ in range(ROUNDS):
        first, second = c[0] * np.uint64(MULTIPLIERS[0]), c[2] * np.uint64(MULTIPLIERS[1])
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ k[0],
            second & _MASK,
            (first >> np.uint64(32)) ^ c[3] ^ k[1],
            first & _MASK,
        ]
        k = [(x + np.uint64(w)) & _MASK for x, w in zip(k, INCREMENTS, strict=True)]
    return list(np.broadcast_arrays(*c))


def counter_words(run: Array, stream: Array, tick: Array, block: Array) -> list[Array]:
    """Return the four words of the counter; see the top of this file."""
    run, stream, tick, block = (np.asarray(x, np.uint64) for x in (run, stream, tick, block))
    above = (tick >> np.uint64(32)) << np.uint64(BLOCK_BITS)
    return [x & _MASK for x in (run, tick, stream, block | above)]


def whole_numbers(x: Array) -> Array:
    """Return whole numbers in float64, below 2⁵², as uint64: the mantissa of x + 2⁵²."""
    return (x + 2.0**52).view(np.uint64) & np.uint64(2**52 - 1)


def blocks_of_words(seed: Array, run: Array, stream: Array, tick: Array, count: int) -> Array:
    """Return the first `count` blocks of a stream at a tick, `(..., count, 4)` uint64.

    Args:
        seed: below 2⁶⁴; all four are whole numbers (not checked) and broadcast.
        run: below 2³².
        stream: below 2³².
        tick: below 2⁴⁸.
        count: number of blocks, at most 2¹⁶.
    """
    seed, run, stream, tick = (
        np.asarray(x, np.uint64)[..., None] for x in (seed, run, stream, tick)
    )
    counter = counter_words(run, stream, tick, np.arange(count, dtype=np.uint64))
    return np.stack(philox4x32(counter, [seed & _MASK, seed >> np.uint64(32)]), axis=-1)


def normal_numbers(block: Array) -> Array:
    """Return the numbers of a pair of normals, `(..., 3)` float64, from a block `(..., 4)`.

    They are e, the number of leading zeros of words 0 and 1 (0 to 64); f = 1 + (2 m + 1)/2²³ in
    (1, 2), with the upper 22 bits m of word 2; and w = (2 m + 1)/2²⁴ in (0, 1), with the upper 23
    bits m of word 3. Then f/2ᵉ⁺¹ and w are independent and uniform in (0, 1).
    """
    first, second, third, fourth = (block[..., k] for k in range(WORDS_PER_BLOCK))
    zeros = _leading_zeros(first) + np.where(first == 0, _leading_zeros(second), 0.0)
    odd = (third >> np.uint64(10)) * np.uint64(2) + np.uint64(1)
    return np.stack(
        [zeros, 1.0 + odd.astype(np.float64) * 2.0**-23, uniform_numbers(fourth)], axis=-1
    )


def uniform_numbers(words: Array) -> Array:
    """Return (2 m + 1)/2²⁴ in (0, 1) for each word, with its upper 23 bits m."""
    odd = (words >> np.uint64(9)) * np.uint64(2) + np.uint64(1)
    return odd.astype(np.float64) * 2.0**-24


def _leading_zeros(words: Array) -> Array:
    """Return the number of leading zeros of 32-bit words as floats; 32 for zero."""
    return 32.0 - np.frexp(words.astype(np.float64))[1]
