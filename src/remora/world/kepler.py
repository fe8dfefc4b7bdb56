"""Two-body orbits: elements and states, Kepler's equation, the axes that move along an orbit."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from remora.algebra import quaternion
from remora.algebra.array_ops import Array, ArrayLike, asarray, cos, sin, sqrt, stack
from remora.algebra.vector import cross, dot
from remora.errors import InvalidValue
from remora.model.arguments import positive

#: Below this eccentricity, and this sine of the inclination, an orbit is circular, or equatorial.
ROUND = 1e-11


@dataclass(frozen=True, eq=False)
class OrbitalElements:
    """Osculating elements of an orbit, arrays of one shape.

    Attributes:
        semi_major_axis: a, m; negative for hyperbolas.
        eccentricity: e.
        inclination: i, rad.
        node: right ascension of the ascending node Ω, rad, in [0, 2π); 0 for equatorial orbits.
        periapsis: argument of periapsis ω, rad, in [0, 2π); 0 for circular orbits.
        anomaly: true anomaly ν, rad, in [0, 2π); of circular orbits, the angle from the node.
    """

    semi_major_axis: Array
    eccentricity: Array
    inclination: Array
    node: Array
    periapsis: Array
    anomaly: Array

    def __str__(self) -> str:
        """Return the elements of one orbit in km and degrees."""
        if np.ndim(self.semi_major_axis):
            return f"OrbitalElements of {np.shape(self.semi_major_axis)} states"
        words = [f"a = {float(self.semi_major_axis) / 1e3:.3f} km", f"e = {self.eccentricity:.6f}"]
        names = ("inclination", "node", "periapsis", "anomaly")
        for short, name in zip("iΩων", names, strict=True):
            words.append(f"{short} = {np.degrees(getattr(self, name)):.4f}°")
        return ", ".join(words)


def orbit_state(
    semi_major_axis: ArrayLike, eccentricity: ArrayLike, inclination: ArrayLike, node: ArrayLike,
    periapsis: ArrayLike, anomaly: ArrayLike, mu: ArrayLike,
) -> tuple[Array, Array]:  # fmt: skip
    """Return position and velocity of an orbit with these elements, `(..., 3)` each, m and m/s.

    r = p/(1 + e cos ν) P(ν),  v = √(μ/p) (e sin ν, 1 + e cos ν) in radial and transverse axes
    [Val13, ch. 2]; see `OrbitalElements`.
    """
    a, e, i, raan, omega, nu, mu = (
        asarray(x)
        for x in (semi_major_axis, eccentricity, inclination, node, periapsis, anomaly, mu)
    )
    p = a * (1.0 - e * e)
    u = omega + nu
    radial = stack([
        cos(raan) * cos(u) - sin(raan) * sin(u) * cos(i),
        sin(raan) * cos(u) + cos(raan) * sin(u) * cos(i),
        sin(u) * sin(i),
    ])  # fmt: skip
    transverse = stack([
        -cos(raan) * sin(u) - sin(raan) * cos(u) * cos(i),
        -sin(raan) * sin(u) + cos(raan) * cos(u) * cos(i),
        cos(u) * sin(i),
    ])  # fmt: skip
    far = 1.0 + e * cos(nu)
    speed = sqrt(mu / p)
    r = (p / far)[..., None] * radial
    return r, (speed * e * sin(nu))[..., None] * radial + (speed * far)[..., None] * transverse


def orbital_elements(position: ArrayLike, velocity: ArrayLike, mu: float) -> OrbitalElements:
    """Return the osculating elements of states `(..., 3)`, m and m/s [Val13, ch. 2].

    Args:
        position: from the centre of the planet, inertial axes.
        velocity: inertial.
        mu: μ, m³/s².
    """
    r, v = np.asarray(position, dtype=float), np.asarray(velocity, dtype=float)
    if r.shape[-1:] != (3,) or v.shape[-1:] != (3,):
        raise InvalidValue(f"positions and velocities must be (..., 3), not {r.shape}, {v.shape}")
    mu = positive("mu", mu)
    h = np.cross(r, v)
    if np.any(np.all(h == 0.0, axis=-1)):
        raise InvalidValue("positions and velocities must not be parallel, or zero")
    size, momentum = np.linalg.norm(r, axis=-1), np.linalg.norm(h, axis=-1)
    along = np.sum(r * v, axis=-1)
    out_of_round = np.cross(v, h) / mu - r / size[..., None]
    e = np.linalg.norm(out_of_round, axis=-1)
    a = 1.0 / (2.0 / size - np.sum(v * v, axis=-1) / mu)
    level = np.hypot(h[..., 0], h[..., 1])
    i = np.arctan2(level, h[..., 2])
    flat = level <= ROUND * momentum
    node = np.where(flat, 0.0, np.arctan2(h[..., 0], -h[..., 1]))
    to_node = np.stack([np.cos(node), np.sin(node), np.zeros_like(node)], axis=-1)
    ahead = np.cross(h / momentum[..., None], to_node)
    latitude = np.arctan2(np.sum(r * ahead, axis=-1), np.sum(r * to_node, axis=-1))
    nu: Array = np.arctan2(along * momentum / mu, momentum**2 / mu - size)
    circular = e <= ROUND
    nu = np.where(circular, latitude, nu)
    omega = np.where(circular, 0.0, latitude - nu)
    return OrbitalElements(a, e, i, *(_turned(x) for x in (node, omega, nu)))


def _turned(angle: Array) -> Array:
    """Return an angle in [0, 2π): the remainder of -1e-17 is rounded to 2π."""
    rest = np.mod(angle, 2.0 * np.pi)
    return np.where(rest >= 2.0 * np.pi, 0.0, rest)


def true_anomaly(mean: ArrayLike, eccentricity: ArrayLike) -> Array:
    """Return the true anomaly of a mean anomaly M, rad, by Kepler's equation M = E - e sin E.

    Newton's method from E = M + e sin M / (1 - sin(M + e) + sin M), for 0 ≤ e < 1 [Val13, ch. 2].
    """
    M, e = np.broadcast_arrays(np.asarray(mean, float), np.asarray(eccentricity, float))
    if np.any((e < 0.0) | (e >= 1.0)):
        raise InvalidValue("Kepler's equation is solved for eccentricities from 0 to below 1")
    turns = 2.0 * np.pi * np.round(M / (2.0 * np.pi))
    rest = M - turns
    E = rest + e * np.sin(rest) / (1.0 - np.sin(rest + e) + np.sin(rest))
    E = np.clip(np.where(np.isfinite(E), E, rest), rest - e, rest + e)
    for _ in range(50):
        step = (E - e * np.sin(E) - rest) / (1.0 - e * np.cos(E))
        E = np.clip(E - step, rest - e, rest + e)
        if np.all(np.abs(step) <= 1e-15 * np.maximum(np.abs(E), 1e-3)):
            break
    half = np.arctan2(np.sqrt(1.0 + e) * np.sin(E / 2.0), np.sqrt(1.0 - e) * np.cos(E / 2.0))
    return 2.0 * half + turns


def radial_axes(position: ArrayLike, velocity: ArrayLike) -> Array:
    """Return R of the radial, transverse and normal axes (RTN) in inertial axes, `(..., 3, 3)`.

    The columns are r̂, ĥ × r̂ and ĥ with h = r × v.
    """
    r = asarray(position)
    radial = r / sqrt(dot(r, r))
    h = cross(r, asarray(velocity))
    normal = h / sqrt(dot(h, h))
    return stack([radial, cross(normal, radial), normal])


def lvlh_rotation(position: ArrayLike, velocity: ArrayLike) -> Array:
    """Return the attitude of the local-vertical, local-horizontal axes, a quaternion `(..., 4)`.

    x lies in the orbit's plane along the motion, y is opposite to ĥ, z points down to the planet.
    """
    radial, ahead, normal = np.moveaxis(radial_axes(position, velocity), -1, 0)
    return quaternion.from_matrix(stack([ahead, -normal, -radial]))


def lvlh_rate(position: Array, velocity: Array, acceleration: Array) -> Array:
    """Return the angular velocity of the LVLH axes in their own axes, rad/s, `(..., 3)`.

    ω = (r/h) f_n r̂ + (h/r²) ĥ with the acceleration's component f_n along ĥ.
    """
    size = sqrt(dot(position, position))
    h = cross(position, velocity)
    momentum = sqrt(dot(h, h))
    pull = dot(acceleration, h) / momentum
    zero = 0.0 * size
    turn = [zero, -momentum / (size * size), -size * pull / momentum]
    return stack([x[..., 0] for x in turn])


def element_names() -> tuple[str, ...]:
    """Return the names of the six elements, in the order of `orbit_state`."""
    return tuple(field.name for field in fields(OrbitalElements))
