"""The differential of the exponential map on SO(3) and SE(3), and its inverse: dexp and dexp⁻¹.

A frame moves from a pose x₀ to x = x₀ exp(½u), with u its rotation vector or screw relative to x₀.
With the twist ξ in the moving frame's own axes, ẋ = ½ x ξ,

    u̇ = ξ + ½ u×ξ + c u×(u×ξ),        c = (1 - h cot h)/θ²,
    ξ = u̇ - a u×u̇ + b u×(u×u̇),        a = (1 - cos θ)/θ²,   b = (1 - sin θ/θ)/θ²,

with θ = 2h the angle of u. For screws the same holds in dual numbers: θ² = u·u is dual, and a, b, c
at a dual number are their values and derivatives. Munthe-Kaas methods integrate on Lie groups with
these maps [HLW06, section IV.8]. The angle of u must be less than a full turn.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial

from remora.algebra import quaternion, screw, vector
from remora.algebra.array_ops import Array, concatenate, less, polynomial, select

#: Below this squared angle the coefficients are computed by their series.
SMALL = 0.5


def _bernoulli(count: int) -> list[Fraction]:
    """Return |B₂|, |B₄|, ...: Bernoulli numbers from the tangent numbers, which are integers.

    |B₂ₙ| = 2n Tₙ / (4ⁿ (4ⁿ - 1)), with tan x = Σ Tₙ x²ⁿ⁻¹/(2n - 1)!.
    """
    tangents = [factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    return [Fraction(2 * n * T, 4**n * (4**n - 1)) for n, T in enumerate(tangents, start=1)]


#: c, a and b in powers of θ².
_C = tuple(float(B / factorial(2 * k + 2)) for k, B in enumerate(_bernoulli(12)))
_A = tuple((-1) ** k / factorial(2 * k + 2) for k in range(10))
_B = tuple((-1) ** k / factorial(2 * k + 3) for k in range(10))


def rotation_vector_rate(u: Array, omega: Array) -> Array:
    """Return u̇ `(..., 3)` of the rotation vector u for the angular velocity ω, body axes."""
    once = vector.cross(u, omega)
    c, _ = _rate_coefficient(vector.dot(u, u))
    return omega + 0.5 * once + c * vector.cross(u, once)


def angular_velocity(u: Array, rate: Array) -> Array:
    """Return ω `(..., 3)`, body axes, of the rotation vector u that changes at `rate`."""
    once = vector.cross(u, rate)
    (a, _), (b, _) = _velocity_coefficients(vector.dot(u, u))
    return rate - a * once + b * vector.cross(u, once)


def screw_rate(u: Array, twist: Array) -> Array:
    """Return u̇ `(..., 6)` of the screw u for the twist ξ of the moved frame, its own axes."""
    once = screw.cross(u, twist)
    c = _dual(u, _rate_coefficient)
    return twist + 0.5 * once + _times(c, screw.cross(u, once))


def twist(u: Array, rate: Array) -> Array:
    """Return the twist ξ `(..., 6)` of the moved frame whose screw u changes at `rate`."""
    once = screw.cross(u, rate)
    a = _dual(u, lambda s: _velocity_coefficients(s)[0])
    b = _dual(u, lambda s: _velocity_coefficients(s)[1])
    return rate - _times(a, once) + _times(b, screw.cross(u, once))


Coefficient = tuple[Array, Array]


def _dual(u: Array, coefficient: Callable[[Array], Coefficient]) -> Coefficient:
    """Evaluate a coefficient at the dual number u·u = ω·ω + ε 2 ω·v."""
    omega, v = u[..., :3], u[..., 3:]
    value, slope = coefficient(vector.dot(omega, omega))
    return value, 2.0 * vector.dot(omega, v) * slope


def _times(c: Coefficient, s: Array) -> Array:
    """Return the product of a dual number and a screw."""
    first, second = s[..., :3], s[..., 3:]
    return concatenate([c[0] * first, c[0] * second + c[1] * first])


def _rate_coefficient(s: Array) -> Coefficient:
    """Return c and dc/ds for s = θ²."""
    cosine, sinc = quaternion.cos_sinc(0.25 * s)
    small = less(s, SMALL)
    large = select(small, 1.0, s)
    cotangent = cosine / sinc  # h cot h
    slope = (cotangent - 1.0 / (sinc * sinc)) / (2.0 * large)  # its derivative by s
    c = (1.0 - cotangent) / large
    return _either(small, s, _C, c, -(slope + c) / large)


def _velocity_coefficients(s: Array) -> tuple[Coefficient, Coefficient]:
    """Return a, da/ds, and b, db/ds, for s = θ²."""
    cosine, sinc = quaternion.cos_sinc(0.25 * s)  # of half the angle
    small = less(s, SMALL)
    a = 0.5 * sinc * sinc
    whole = sinc * cosine  # sin θ/θ
    large = select(small, 1.0, s)
    b = (1.0 - whole) / large
    turned = 1.0 - s * a  # cos θ
    da = (0.5 * whole - a) / large
    db = -(0.5 * (turned - whole) / large + b) / large
    return _either(small, s, _A, a, da), _either(small, s, _B, b, db)


def _either(
    small: Array, s: Array, series: tuple[float, ...], value: Array, slope: Array
) -> Coefficient:
    """Return a coefficient and its derivative, by series where s is small."""
    derivative = tuple(k * c for k, c in enumerate(series))[1:]
    return (
        select(small, polynomial(s, series), value),
        select(small, polynomial(s, derivative), slope),
    )
