"""Graph passes: expansion of elementary functions, shared reciprocals, fused multiply-adds.

After these passes, kernels of the library's functions contain only operations of a vector unit, and
every rounding is explicit, so that results are bitwise identical on every machine.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from remora.codegen.ir.graph import Graph

_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def _rounded(x: Fraction, bits: int, single: bool) -> float:
    """Return x truncated to that many leading bits, so that products with small ints are exact."""
    whole = float(x)
    exponent = int(np.floor(np.log2(abs(whole)))) + 1
    scale = Fraction(2) ** (bits - exponent)
    value = float(Fraction(round(x * scale)) / scale)
    return float(np.float32(value)) if single else value


def _parts(x: Fraction, bits: Sequence[int], single: bool) -> list[float]:
    """Return x as a sum of numbers with few bits each, the last rounded to the precision."""
    parts: list[float] = []
    for b in bits:
        parts.append(_rounded(x, b, single))
        x = x - Fraction(parts[-1])
    return parts


@dataclass(frozen=True)
class Precision:
    """Constants of the elementary functions for one floating-point type.

    Attributes:
        half_pi: π/2 in parts: |x| up to 10⁵ times each part except the last is exact.
        rounder: adding and subtracting this rounds to the nearest integer.
        sin: coefficients of (sin r - r)/r³ in r².
        cos: coefficients of (cos r - 1 + r²/2)/r⁴ in r².
        atan: coefficients of (atan t - t)/t³ in t².
    """

    half_pi: tuple[float, ...]
    rounder: float
    sin: tuple[float, ...]
    cos: tuple[float, ...]
    atan: tuple[float, ...]


def _even(function: str, terms: int, width: float) -> tuple[float, ...]:
    """Fit the remainder of an even function by interpolation at Chebyshev points, in 60 digits.

    Near-minimax to well below the required precision.
    """
    points = [
        Fraction(width) * (1 + Fraction(float(np.cos(np.pi * (k + 0.5) / terms)))) / 2
        for k in range(terms)
    ]
    values = [_remainder(function, u) for u in points]
    # divided differences, then the polynomial in powers of u
    table = list(values)
    for j in range(1, terms):
        for k in reversed(range(j, terms)):
            table[k] = (table[k] - table[k - 1]) / (points[k] - points[k - j])
    poly = [Fraction(0)] * terms
    for k in reversed(range(terms)):
        shifted = [Fraction(0), *poly[:-1]]
        poly = [s - points[k] * p for s, p in zip(shifted, poly, strict=True)]
        poly[0] += table[k]
    return tuple(float(c) for c in poly)


def _remainder(function: str, u: Fraction) -> Fraction:
    """Return the remainder of a series after its first terms, as a function of u = x²."""
    total, power, k = Fraction(0), Fraction(1), 0
    while True:
        if function == "sin":
            term = Fraction((-1) ** (k + 1), _factorial(2 * k + 3)) * power
        elif function == "cos":
            term = Fraction((-1) ** k, _factorial(2 * k + 4)) * power
        else:  # atan
            term = Fraction((-1) ** (k + 1), 2 * k + 3) * power
        total += term
        if abs(term) < Fraction(1, 10**24) or k > 200:
            return Fraction(int(total * 10**40), 10**40)
        power = Fraction(int(power * u * 10**40), 10**40)
        k += 1


def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)


_QUARTER = float(np.pi / 4) ** 2 * 1.0001
_TAN_EIGHTH = float(np.tan(np.pi / 8)) ** 2 * 1.0001
#: Bits of the parts of π/2, bits of the significand after the first, and numbers of coefficients.
_PRECISIONS = {
    "float64": ((33, 33, 53), 52, {"sin": 7, "cos": 7, "atan": 13}),
    "float32": ((7, 8, 8, 8, 24), 23, {"sin": 4, "cos": 4, "atan": 6}),
}


@functools.cache
def precision_of(dtype: str) -> Precision:
    """Return the constants of a floating-point type, fitted when they are first needed."""
    bits, significand, terms = _PRECISIONS[dtype]
    return Precision(
        half_pi=tuple(_parts(_PI / 2, bits, single=dtype == "float32")),
        rounder=1.5 * 2.0**significand,
        sin=_even("sin", terms["sin"], _QUARTER),
        cos=_even("cos", terms["cos"], _QUARTER),
        atan=_even("atan", terms["atan"], _TAN_EIGHTH),
    )


def expanded(graph: Graph, dtype: str) -> Graph:
    """Return the graph with sin, cos and atan2 expanded into arithmetic operations."""
    precision = precision_of(dtype)
    pairs: dict[int, tuple[int, int]] = {}

    def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], _: int) -> int:
        if op in ("sin", "cos"):
            if a[0] not in pairs:
                pairs[a[0]] = _sin_cos(new, a[0], precision)
            return pairs[a[0]][op == "cos"]
        if op == "atan2":
            return _atan2(new, a[0], a[1], precision)
        return new.op(op, *a)

    return graph.rebuilt(rewrite)


def _horner(g: Graph, x: int, coefficients: Sequence[float]) -> int:
    result = g.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = g.op("fma", result, x, g.const(c))
    return result


def _sin_cos(g: Graph, x: int, p: Precision) -> tuple[int, int]:
    """Return sin x and cos x, accurate to about one unit in the last place for |x| up to 10⁵.

    x = k π/2 + r + t with r rounded and t its rounding error; then by the quadrant k.
    """
    scaled = g.op("mul", x, g.const(float(2 / _PI)))
    rounder = g.const(p.rounder)
    k = g.op("sub", g.op("add", scaled, rounder), rounder)
    minus_k = g.op("neg", k)
    before = r = x
    for part in p.half_pi[:-1]:
        before = r
        r = g.op("fma", minus_k, g.const(part), r)
    last = g.op("mul", k, g.const(p.half_pi[-1]))
    # rounding error of r after subtracting the second part: exact, since the product is
    lost = g.op("sub", g.op("sub", before, r), g.op("mul", k, g.const(p.half_pi[-2])))
    tail = g.op("sub", lost, last)
    head = g.op("add", r, tail)
    tail = g.op("sub", tail, g.op("sub", head, r))
    u = g.op("mul", head, head)
    # sin(head + tail) = head + (head³ S(u) + tail (1 - u/2)), cos = 1 - u/2 + (u² C(u) - head tail)
    half = g.op("fma", u, g.const(-0.5), g.const(1.0))
    cube = g.op("mul", g.op("mul", head, u), _horner(g, u, p.sin))
    sine = g.op("add", head, g.op("fma", tail, half, cube))
    square = g.op("mul", g.op("mul", u, u), _horner(g, u, p.cos))
    rest = g.op("fma", g.op("neg", head), tail, square)
    # 1 - u/2 in two parts: its rounding error is exact
    over = g.op("fma", u, g.const(-0.5), g.op("sub", g.const(1.0), half))
    cosine = g.op("add", half, g.op("add", over, rest))
    # quadrant: odd k swaps the two, odd k/2 flips the sign of the sine, and so on
    half_k = g.op("floor", g.op("mul", k, g.const(0.5)))
    odd = g.op("ne", g.op("add", half_k, half_k), k)
    pair = g.op("floor", g.op("mul", half_k, g.const(0.5)))
    lower = g.op("ne", g.op("add", pair, pair), half_k)  # k = 2 or 3: the lower half plane
    sin_value = g.op("select", odd, cosine, sine)
    cos_value = g.op("select", odd, g.op("neg", sine), cosine)
    return (
        g.op("select", lower, g.op("neg", sin_value), sin_value),
        g.op("select", lower, g.op("neg", cos_value), cos_value),
    )


def _atan2(g: Graph, y: int, x: int, p: Precision) -> int:
    """Return the angle of the point (x, y) in (-π, π], to about two units in the last place.

    The smaller coordinate over the larger, rotated by π/4 if the ratio exceeds tan(π/8).
    """
    zero, one = g.const(0.0), g.const(1.0)
    ax, ay = g.op("abs", x), g.op("abs", y)
    steep = g.op("lt", ax, ay)
    small, large = g.op("select", steep, ax, ay), g.op("select", steep, ay, ax)
    nothing = g.op("eq", large, zero)
    large = g.op("select", nothing, one, large)
    beyond = g.op("lt", g.op("mul", large, g.const(float(np.tan(np.pi / 8)))), small)
    above = g.op("select", beyond, g.op("sub", small, large), small)
    below = g.op("select", beyond, g.op("add", small, large), large)
    t = g.op("div", above, below)
    u = g.op("mul", t, t)
    angle = g.op("fma", g.op("mul", t, u), _horner(g, u, p.atan), t)
    eighth, quarter, half = (g.const(float(_PI / d)) for d in (4, 2, 1))
    angle = g.op("select", beyond, g.op("add", angle, eighth), angle)
    angle = g.op("select", steep, g.op("sub", quarter, angle), angle)
    angle = g.op("select", g.op("lt", x, zero), g.op("sub", half, angle), angle)
    return g.op("select", g.op("lt", y, zero), g.op("neg", angle), angle)


def shared_reciprocals(graph: Graph) -> Graph:
    """Return the graph with x/d, y/d, ... as products with one shared 1/d, as division is slow."""
    divisors: dict[int, int] = {}
    for op, a in graph.nodes:
        if op == "div":
            divisors[a[1]] = divisors.get(a[1], 0) + 1
    if all(count == 1 for count in divisors.values()):
        return graph

    def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], i: int) -> int:
        if op == "div" and divisors[old.nodes[i][1][1]] > 1:
            return new.op("mul", a[0], new.op("div", new.const(1.0), a[1]))
        return new.op(op, *a)

    return graph.rebuilt(rewrite)


def fused(graph: Graph) -> Graph:
    """Return the graph with each product used by a single sum fused into a multiply-add."""
    users = graph.users()

    def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], i: int) -> int:
        if op in ("add", "sub"):
            for side in (1, 0):
                source = old.nodes[i][1][side]
                if old.nodes[source][0] != "mul" or users[source] != 1:
                    continue
                if new.nodes[a[side]][0] != "mul":
                    continue
                x, y = new.nodes[a[side]][1]
                other = a[1 - side]
                if op == "add":
                    return new.op("fma", x, y, other)
                if side == 1:  # other - x y
                    return new.op("fma", new.op("neg", x), y, other)
                return new.op("fma", x, y, new.op("neg", other))
        return new.op(op, *a)

    return graph.rebuilt(rewrite)


def prepared(graph: Graph, dtype: str, fma: bool = True) -> Graph:
    """Return the graph ready for lowering.

    Args:
        graph: as traced.
        dtype: `float64` or `float32`.
        fma: whether the target has a fused multiply-add; otherwise it becomes two operations.
    """
    graph = expanded(shared_reciprocals(graph), dtype)
    if fma:
        return fused(graph)

    def split(old: Graph, new: Graph, op: str, a: tuple[int, ...], _: int) -> int:
        if op == "fma":
            return new.op("add", new.op("mul", a[0], a[1]), a[2])
        return new.op(op, *a)

    return graph.rebuilt(split)
