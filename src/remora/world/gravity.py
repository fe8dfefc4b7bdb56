"""Gravity of a planet: point mass and zonal harmonics, at one place and between two places.

Potential of a planet whose axis of symmetry is z [Val13, ch. 8]:

    U = (μ/r) (1 - Σ Jₙ (R/r)ⁿ Pₙ(s)),    s = z/r,  n = 2, 3, ...
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from remora.algebra.array_ops import Array, asarray, sqrt
from remora.algebra.exact_difference import Pair, inverse_norm, same
from remora.algebra.vector import apply, cross, dot

#: μ of the Earth, m³/s²; its radius, m, and J₂ to J₆ that belong to it (EGM2008, tide free)
#: [PHKF12].
EARTH_MU = 3.986004415e14
EARTH_RADIUS = 6378136.3
EARTH_ZONALS = (
    1.08262617385e-3, -2.53241051857e-6, -1.61989759992e-6, -2.27753590731e-7, 5.40666576e-7,
)  # fmt: skip
_POLE = np.array([0.0, 0.0, 1.0])


def gravity(r: Pair, mu: Array | float, radius: Array | float, zonals: Array) -> Pair:
    """Return the gravitational acceleration ∂U/∂r at one place, and its change to another.

    g = -μ/r² r̂ + Σ μ Jₙ Rⁿ/rⁿ⁺² (P'ₙ₊₁(s) r̂ - P'ₙ(s) ẑ)

    Args:
        r: position from the centre of the planet, m, axes with z along its pole, `(..., 3)`, and
            its change to the other place.
        mu: μ, m³/s².
        radius: R, m.
        zonals: J₂, J₃, ..., `(k,)`; none for a point mass.
    """
    u = inverse_norm(r)
    up, pole = r * u, same(_POLE)
    size = (u * u).scaled(mu)
    g = (size * up).scaled(-1.0)
    terms = _legendre(_last(up), zonals.shape[-1])
    for n, (_, slope, next_slope) in enumerate(terms, start=1):
        size = (size * u).scaled(radius)
        if n > 1:
            g = g + (size * (next_slope * up - slope * pole)).scaled(zonals[..., n - 2, None])
    return g


def potential(r: Pair, mu: Array | float, radius: Array | float, zonals: Array) -> Pair:
    """Return U at one place and its change to another, `(..., 1)`, m²/s²; see `gravity`."""
    u = inverse_norm(r)
    size = u.scaled(mu)
    total = size
    for n, (value, _, _) in enumerate(_legendre(_last(r * u), zonals.shape[-1]), start=1):
        size = (size * u).scaled(radius)
        if n > 1:
            total = total - (size * value).scaled(zonals[..., n - 2, None])
    return total


def _last(x: Pair) -> Pair:
    return Pair(x.start[..., 2:], x.change[..., 2:])


def _legendre(s: Pair, count: int) -> Iterator[tuple[Pair, Pair, Pair]]:
    """Return Pₙ(s), P'ₙ(s) and P'ₙ₊₁(s) for n = 1 to count + 1; nothing if the count is zero.

    (n + 1) Pₙ₊₁ = (2n + 1) s Pₙ - n Pₙ₋₁,  P'ₙ₊₁ = s P'ₙ + (n + 1) Pₙ.
    """
    before, value, slope = same(1.0), s, same(1.0)
    for n in range(1, count + 2 if count else 1):
        next_slope = s * slope + value.scaled(n + 1.0)
        yield value, slope, next_slope
        rising = (s * value).scaled(2.0 * n + 1.0) - before.scaled(float(n))
        before, value, slope = value, rising.scaled(1.0 / (n + 1.0)), next_slope


def gravity_gradient(
    r: Array, inertia: Array, mu: Array | float, with_force: bool = True
) -> tuple[Array, Array]:
    """Return torque and force on an extended body, of second order in its size, of a point mass.

    τ = 3μ/r³ r̂ × I r̂,  f = -3μ/r⁴ (I r̂ + (tr I - 5 r̂·I r̂) r̂/2), in addition to m g at its centre
    of mass [Hug86, ch. 8]. Both together conserve energy and angular momentum.

    Args:
        r: position of the centre of mass from the centre of the planet, body axes, `(..., 3)`, m.
        inertia: about the centre of mass, body axes, `(..., 3, 3)`.
        mu: μ, m³/s².
        with_force: whether f is computed; otherwise it is zero.

    Returns:
        Torque about the centre of mass and force, body axes, `(..., 3)` each.
    """
    square = dot(r, r)
    near = asarray(3.0 * mu) / (square * square)
    bent = apply(inertia, r)
    near = near / sqrt(square)
    torque = near * cross(r, bent)
    if not with_force:
        return torque, 0.0 * r
    spin = dot(r, bent) / square
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., None]
    return torque, -near * (bent + 0.5 * (trace - 5.0 * spin) * r)


def gravity_gradient_energy(r: Array, inertia: Array, mu: Array | float) -> Array:
    """Return the potential energy that belongs to `gravity_gradient`, `(...)`, J.

    V = -μ/(2r³) (tr I - 3 r̂·I r̂)
    """
    square = dot(r, r)
    spin = dot(r, apply(inertia, r)) / square
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., None]
    return (asarray(-0.5 * mu) / (square * sqrt(square)) * (trace - 3.0 * spin))[..., 0]
