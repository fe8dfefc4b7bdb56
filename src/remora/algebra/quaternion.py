"""Quaternions as plain arrays `(..., 4)`, scalar first, Hamilton's product [VT18, section 2.1].

A unit quaternion `r_ab` is the orientation of frame B in A; `r_ac = mul(r_ab, r_bc)`.
Its negative is the same orientation.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import (
    Array,
    arctan2,
    asarray,
    concatenate,
    cos,
    less,
    polynomial,
    select,
    sin,
    sqrt,
    stack,
)

#: Below this squared argument `exp` and `log` use their series, which are exact to rounding there
#: and, unlike the quotients they replace, have derivatives of every order at zero.
SMALL = 1e-2

_COS = (1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600)
_SINC = (1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800)
_ATAN = (1.0, -1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11, 1 / 13, -1 / 15)


def identity() -> Array:
    """Return the identity 1 = (1, 0, 0, 0)."""
    return np.array([1.0, 0.0, 0.0, 0.0])


def pure(v: Array) -> Array:
    """Return the vector quaternion (0, v), `(..., 3) -> (..., 4)`."""
    return concatenate([np.zeros_like(v[..., :1]), v])


def vec(a: Array) -> Array:
    """Return the vector part, `(..., 4) -> (..., 3)`."""
    return a[..., 1:]


def mul(a: Array, b: Array) -> Array:
    """Return the product ab = (a0 b0 - ā·b̄, a0 b̄ + b0 ā + ā×b̄) [VT18, Table 1]."""
    a0, a1, a2, a3 = (a[..., i] for i in range(4))
    b0, b1, b2, b3 = (b[..., i] for i in range(4))
    return stack(
        [
            a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
            a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
            a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
        ]
    )


def conjugate(a: Array) -> Array:
    """Return a* = (a0, -ā); of a unit quaternion, the inverse."""
    return concatenate([a[..., :1], -a[..., 1:]])


def dot(a: Array, b: Array) -> Array:
    """Return a·b = (a0 b0 + ā·b̄, 0) = ½(a*b + b*a), `(..., 4)` [VT18, Table 1]."""
    s = vector.dot(a, b)
    return concatenate([s, np.zeros_like(a[..., 1:] + b[..., 1:])])


def cross(a: Array, b: Array) -> Array:
    """Return a×b = (0, a0 b̄ + b0 ā + ā×b̄) = ½(ab - b*a*) [VT18, Table 1]."""
    v = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + vector.cross(a[..., 1:], b[..., 1:])
    return pure(v)


def norm(a: Array) -> Array:
    """Return ‖a‖ = √(a·a), `(..., 4) -> (...)`."""
    return sqrt(vector.dot(a, a))[..., 0]


def normalize(a: Array) -> Array:
    """Return a/‖a‖."""
    return a / sqrt(vector.dot(a, a))


def left(a: Array) -> Array:
    """Return the matrix ⟦a⟧L with ab = ⟦a⟧L b, `(..., 4) -> (..., 4, 4)` [VT18, eq. 3]."""
    return _multiplication_matrix(a, +1.0)


def right(b: Array) -> Array:
    """Return the matrix ⟦b⟧R with ab = ⟦b⟧R a, `(..., 4) -> (..., 4, 4)` [VT18, eq. 4]."""
    return _multiplication_matrix(b, -1.0)


def skew(s: Array) -> Array:
    """Return [s]× on vector quaternions, `(..., 4) -> (..., 4, 4)` [VT18, eq. 1]."""
    m = vector.skew(s[..., 1:])
    column = np.zeros_like(s[..., 1:])
    below = concatenate([column[..., None], m])
    return concatenate([np.zeros_like(below[..., :1, :]), below], trailing=2)


def exp(v: Array) -> Array:
    """Return the unit quaternion exp((0, v)) = (cos ‖v‖, v sin ‖v‖/‖v‖), `(..., 3) -> (..., 4)`.

    The rotation by the vector φ (axis times angle) is `exp(φ/2)`.
    """
    cosine, sinc = cos_sinc(vector.dot(v, v))
    return concatenate([cosine, v * sinc])


def exp_minus_one(v: Array) -> Array:
    """Return exp((0, v)) - 1 without cancellation for small v, `(..., 3) -> (..., 4)`."""
    s = vector.dot(v, v)
    cosine, sinc = cos_sinc(s)
    return concatenate([cos_minus_one(s, cosine, sinc), v * sinc])


def cos_minus_one(s: Array, cosine: Array, sinc: Array) -> Array:
    """Return cos h - 1 for s = h² as -sin² h/(1 + cos h), which avoids cancellation."""
    near = less(s, 1.0)
    return select(near, -s * sinc * sinc / (1.0 + select(near, cosine, 1.0)), cosine - 1.0)


def cos_sinc(s: Array) -> tuple[Array, Array]:
    """Return cos h and sin h/h as functions of s = h², smooth through zero."""
    small = less(s, SMALL)
    h = sqrt(select(small, 1.0, s))
    return (
        select(small, polynomial(s, _COS), cos(h)),
        select(small, polynomial(s, _SINC), sin(h) / h),
    )


def log(r: Array) -> Array:
    """Return the vector v with exp(v) = ±r and ‖v‖ ≤ π/2, `(..., 4) -> (..., 3)`.

    Of r and -r, the one with the smaller rotation angle is used, so that 2 log(r) is the rotation
    vector of at most half a turn.
    """
    r = shortest(r)
    return r[..., 1:] * half_angle_over_sine(r)


def half_angle_over_sine(r: Array) -> Array:
    """Return h/sin h for the half angle h of a unit quaternion with r0 ≥ 0, `(..., 1)`."""
    w, v = r[..., :1], r[..., 1:]
    s = vector.dot(v, v)
    small = less(s, SMALL)
    sine = sqrt(select(small, 1.0, s))
    cosine = select(small, w, 1.0)  # at least √(1 - SMALL) where the series is used
    return select(small, polynomial(s / cosine**2, _ATAN) / cosine, arctan2(sine, w) / sine)


def shortest(r: Array) -> Array:
    """Return the one of r and -r whose scalar part is not negative."""
    return select(less(r[..., :1], 0.0), -r, r)


def power(r: Array, t: Array | float) -> Array:
    """Return r to the power t: the fraction t of the shorter rotation. `t` is `(...)`."""
    return exp(asarray(t)[..., None] * log(r))


def rotate(r: Array, v: Array) -> Array:
    """Return the vector r v r*: coordinates in A of a vector given in B, for r = r_ab."""
    u = r[..., 1:]
    t = 2.0 * vector.cross(u, v)
    return v + r[..., :1] * t + vector.cross(u, t)


def from_axis_angle(axis: Array, angle: Array) -> Array:
    """Return the rotation by `angle` `(...)` about the unit vector `axis` `(..., 3)`."""
    half = 0.5 * asarray(angle)[..., None]
    return concatenate([cos(half), axis * sin(half)])


def to_axis_angle(r: Array) -> tuple[Array, Array]:
    """Return axis `(..., 3)` and angle `(...)` in [0, π]; the axis of the identity is x."""
    r = shortest(r)
    w, v = r[..., :1], r[..., 1:]
    s = vector.dot(v, v)
    none = less(s, 1e-300)
    sine = sqrt(select(none, 1.0, s))
    x_axis = np.array([1.0, 0.0, 0.0])
    return select(none, x_axis, v / sine), select(none, 0.0, 2.0 * arctan2(sine, w))[..., 0]


def to_matrix(r: Array) -> Array:
    """Return the rotation matrix R_ab of the unit quaternion r_ab, `(..., 4) -> (..., 3, 3)`."""
    w, x, y, z = (r[..., i] for i in range(4))
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    rows = [
        [1.0 - (yy + zz), xy - wz, xz + wy],
        [xy + wz, 1.0 - (xx + zz), yz - wx],
        [xz - wy, yz + wx, 1.0 - (xx + yy)],
    ]
    return stack([stack(row) for row in rows], axis=-2)


def from_matrix(R: Array) -> Array:
    """Return the unit quaternion of a rotation matrix, scalar part not negative.

    The matrix gives 4 r rᵀ linearly; its column with the largest diagonal entry (at least 1),
    divided by twice the root of that entry, is r to full precision at every angle.
    """
    (a, b, c), (d, e, f), (g, h, i) = ([R[..., j, k] for k in range(3)] for j in range(3))
    columns = [
        [1.0 + a + e + i, h - f, c - g, d - b],
        [h - f, 1.0 + a - e - i, b + d, c + g],
        [c - g, b + d, 1.0 - a + e - i, f + h],
        [d - b, c + g, f + h, 1.0 - a - e + i],
    ]
    best, largest = stack(columns[0]), stack([columns[0][0]])
    for k in range(1, 4):
        candidate, entry = stack(columns[k]), stack([columns[k][k]])
        larger = less(largest, entry)
        best, largest = select(larger, candidate, best), select(larger, entry, largest)
    return shortest(best / (2.0 * sqrt(largest)))


def from_rpy(rpy: Array) -> Array:
    """Return the orientation of roll-pitch-yaw angles about fixed x, then y, then z (URDF)."""
    half = 0.5 * rpy
    (cr, cp, cy), (sr, sp, sy) = ([g[..., i] for i in range(3)] for g in (cos(half), sin(half)))
    return stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def to_rpy(r: Array) -> Array:
    """Return roll, pitch, yaw `(..., 3)`; where pitch is ±90° yaw carries the whole rotation.

    Yaw is computed after roll has been removed, so that the three angles reproduce `r` even where
    roll alone is lost to rounding.
    """
    R = to_matrix(r)
    roll = arctan2(R[..., 2, 1:2], R[..., 2, 2:3])
    sr, cr = sin(roll), cos(roll)
    pitch = arctan2(-R[..., 2, 0:1], sr * R[..., 2, 1:2] + cr * R[..., 2, 2:3])
    yaw = arctan2(
        sr * R[..., 0, 2:3] - cr * R[..., 0, 1:2], cr * R[..., 1, 1:2] - sr * R[..., 1, 2:3]
    )
    return concatenate([roll, pitch, yaw])


def _multiplication_matrix(a: Array, sign: float) -> Array:
    """Return [a0, -āᵀ; ā, a0 I ± [ā]×]."""
    a0, a1, a2, a3 = (a[..., i] for i in range(4))
    s1, s2, s3 = sign * a1, sign * a2, sign * a3
    rows = [[a0, -a1, -a2, -a3], [a1, a0, -s3, s2], [a2, s3, a0, -s1], [a3, -s2, s1, a0]]
    return stack([stack(row) for row in rows], axis=-2)
