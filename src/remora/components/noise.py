"""Random numbers of components: a pure function of seed, run, stream and tick.

A component that draws noise at its tick n takes the same numbers in a single run, in a batch of any
size, on any processor and on the GPU. Nothing is stored between ticks, so a resumed run needs
nothing either. The integers (`codegen/ir/philox.py`) deliver numbers that are exact; the functions
here are made of additions, rounded products, square roots and selections alone. Each of these is
exactly specified by IEEE 754, so the results are bitwise identical wherever they are computed.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    asarray,
    less,
    rounded,
    select,
    sqrt,
    stack,
)
from remora.codegen.ir import philox
from remora.errors import InvalidValue, ShapeError

# Near-minimax polynomials (interpolation at Chebyshev points in 400 bits).
#: (log(1 + x) - x)/x² in x, for 1 + x from √½ to √2; error below 1.1e-17.
_LOG = (
    -0.5, 0.3333333333333337, -0.24999999999999434, 0.1999999999997539, -0.16666666666809493,
    0.1428571429024968, -0.12499999988222806, 0.11111110728276133, -0.10000000292018527,
    0.09090926583349322, -0.08333341981503226, 0.07691844931666444, -0.07142174469213361,
    0.06673760553266889, -0.0626692694372098, 0.05825016315649815, -0.05348822804715091,
    0.05407910059601296, -0.06208626441252276, 0.05649671973574749, -0.024334191987675318,
)  # fmt: skip
#: (sin(π t/4)/t - π/4)/t² in t², for t from 0 to 1; error below 1e-17.
_SIN = (
    -0.08074551218828077, 0.0024903945701920073, -3.6576204173860995e-05, 3.133616535431528e-07,
    -1.7571791752800344e-09, 6.8874821400921975e-12,
)  # fmt: skip
#: (cos(π t/4) - 1)/t² in t², for t from 0 to 1; error below 1.3e-19.
_COS = (
    -0.30842513753404244, 0.015854344243815488, -0.0003259918869271996, 3.590860447448612e-06,
    -2.4611366238309744e-08, 1.1500679700940496e-10, -3.863156948832656e-13,
)  # fmt: skip
_QUARTER_PI = 0.7853981633974483
#: ln 2 in two parts; whole numbers up to 128 times the first are exact in float32.
_LN2 = (0.693145751953125, 1.4286068203094173e-06)
#: √2 to 22 bits: f, with 23, is never equal to it, and compares alike in both precisions.
_SQRT2 = 5931642 * 2.0**-22


def standard_normals(numbers: ArrayLike) -> Array:
    """Return independent standard normals, two for each three numbers (Box-Muller).

        z₀ = √(-2 ln u) cos 2πw,  z₁ = √(-2 ln u) sin 2πw,  u = f/2ᵉ⁺¹

    Accurate to 3 units in the last place; the largest magnitude is 9.5.

    Args:
        numbers: `(..., 3 n)`, e, f and w of each pair; see `philox.normal_numbers`.

    Returns:
        `(..., 2 n)`.

    Raises:
        ShapeError: if the last axis is not a multiple of three.

    References:
        [BM58]
    """
    numbers = asarray(numbers)
    if not numbers.ndim or numbers.shape[-1] % philox.NUMBERS_PER_PAIR:
        raise ShapeError(
            f"numbers of standard_normals must have shape (..., 3 n), e, f and w of each pair, not "
            f"{numbers.shape}"
        )
    pairs = numbers.shape[-1] // philox.NUMBERS_PER_PAIR
    groups = numbers.reshape(*numbers.shape[:-1], pairs, philox.NUMBERS_PER_PAIR)
    radius = sqrt(_twice_minus_log(groups[..., 0], groups[..., 1]))
    cosine, sine = _cos_sin(groups[..., 2])
    normal = stack([_product(radius, cosine), _product(radius, sine)])
    return normal.reshape(*numbers.shape[:-1], 2 * pairs)


def _twice_minus_log(e: Array, f: Array) -> Array:
    """Return -2 ln(f/2ᵉ⁺¹), accurate also where it is close to zero.

    -ln u = n ln 2 - ln g, with g = f and n = e + 1, or g = f/2 and n = e, so that g is within √2 of
    one.
    """
    large = less(_SQRT2, f)
    x = select(large, _product(f, 0.5), f) - 1.0
    n = select(large, e, e + 1.0)
    log = x + _product(_product(x, x), _horner(x, _LOG))
    total = _product(n, _LN2[0]) + (_product(n, _LN2[1]) - log)
    return total + total


def _cos_sin(w: Array) -> tuple[Array, Array]:
    """Return cos 2πw and sin 2πw for w in (0, 1), an odd multiple of 2⁻²⁴.

    The angle is reflected into the first octant, which is exact.
    """
    lower = less(0.5, w)
    w = select(lower, w - 0.5, w)
    left = less(0.25, w)
    w = select(left, 0.5 - w, w)
    steep = less(0.125, w)
    w = select(steep, 0.25 - w, w)
    t = _product(w, 8.0)
    u = _product(t, t)
    sine = _product(t, _QUARTER_PI + _product(u, _horner(u, _SIN)))
    cosine = 1.0 + _product(u, _horner(u, _COS))
    cosine, sine = select(steep, sine, cosine), select(steep, cosine, sine)
    cosine = select(left, -cosine, cosine)
    return select(lower, -cosine, cosine), select(lower, -sine, sine)


def _horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Evaluate `c0 + c1 x + c2 x² + ...`, each product rounded."""
    result = _product(x, coefficients[-1])
    for c in reversed(coefficients[1:-1]):
        result = _product(result + c, x)
    return result + coefficients[0]


def _product(a: Array, b: ArrayLike) -> Array:
    """Return a b, rounded: a fused multiply-add would change its bits on some processors."""
    return rounded(a * b)


# Draws -------------------------------------------------------------------------------------------


def words(seed: int, run: ArrayLike, stream: ArrayLike, tick: ArrayLike, count: int) -> Array:
    """Return the first random 32-bit words of a stream at a tick, `(..., count)` uint32.

    Args:
        seed: of the study, below 2⁶⁴.
        run: index of the run, below 2³².
        stream: number of the stream, below 2³²; see `stream_number`.
        tick: number of the tick, below 2⁴⁸.
        count: number of words, at most 2¹⁸.

    Raises:
        InvalidValue: if an argument is not a whole number in its range.
    """
    drawn = _blocks(seed, run, stream, tick, count, philox.WORDS_PER_BLOCK)
    return _joined(drawn)[..., :count].astype(np.uint32)


def normals(seed: int, run: ArrayLike, stream: ArrayLike, tick: ArrayLike, count: int) -> Array:
    """Return independent standard normals of a stream at a tick, `(..., count)`.

    Args:
        seed: of the study, below 2⁶⁴.
        run: index of the run, below 2³².
        stream: number of the stream, below 2³².
        tick: number of the tick, below 2⁴⁸.
        count: number of normals, at most 2¹⁷.
    """
    drawn = _blocks(seed, run, stream, tick, count, philox.NORMALS_PER_BLOCK)
    return standard_normals(_joined(philox.normal_numbers(drawn)))[..., :count]


def uniforms(seed: int, run: ArrayLike, stream: ArrayLike, tick: ArrayLike, count: int) -> Array:
    """Return independent uniform numbers of a stream at a tick, `(..., count)`.

    They are odd multiples of 2⁻²⁴, so neither 0 nor 1, and exact in float32. They are made of the
    same words as `normals`: use one stream for either.

    Args:
        seed: of the study, below 2⁶⁴.
        run: index of the run, below 2³².
        stream: number of the stream, below 2³².
        tick: number of the tick, below 2⁴⁸.
        count: number of uniform numbers, at most 2¹⁸.
    """
    drawn = _blocks(seed, run, stream, tick, count, philox.UNIFORMS_PER_BLOCK)
    return _joined(philox.uniform_numbers(drawn))[..., :count]


def stream_number(name: str) -> int:
    """Return the number of a stream by its name, such as `imu.gyroscope`.

    By name, a component keeps its noise when others are added or their order changes. Two names
    share a number with a probability of 2⁻³²; whoever uses several names must compare them.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def _blocks(
    seed: int, run: ArrayLike, stream: ArrayLike, tick: ArrayLike, count: int, size: int
) -> Array:
    """Return the blocks that hold `count` values, `size` each, after checking all arguments."""
    limit = size << philox.BLOCK_BITS
    if not isinstance(count, int) or not 0 <= count <= limit:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"count must be a whole number from 0 to {limit}, not {count!r}")
    return philox.blocks_of_words(
        _whole("seed", seed, philox.SEED_BITS),
        _whole("run", run, philox.RUN_BITS),
        _whole("stream", stream, philox.STREAM_BITS),
        _whole("tick", tick, philox.TICK_BITS),
        math.ceil(count / size),
    )


def _joined(blocks: Array) -> Array:
    """Return the numbers of all blocks in one row."""
    *batch, count, size = blocks.shape
    return blocks.reshape(*batch, count * size)


def _whole(name: str, value: ArrayLike, bits: int) -> Array:
    """Return whole numbers below 2^bits as uint64, or raise."""
    wanted = f"{name} must be a whole number from 0 to 2^{bits} - 1"
    a = np.asarray(value)
    if a.dtype.kind not in "iu":
        raise InvalidValue(f"{wanted}, not {value!r} ({a.dtype})")
    wrong = (a < 0) | (a > np.uint64(2**bits - 1))
    if np.any(wrong):
        raise InvalidValue(f"{wanted}, not {a[wrong].reshape(-1)[0]}")
    return a.astype(np.uint64)
