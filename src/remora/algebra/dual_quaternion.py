"""Dual quaternions as plain arrays `(..., 8)`, real part then dual part [VT18, section 2.2].

A unit dual quaternion is a pose: `x_ab = r + ε ½ p r` is the pose of frame B in A, with r the
orientation and p the position of B's origin in A; `x_ac = mul(x_ab, x_bc)`.
"""

from __future__ import annotations

import math

import numpy as np

from remora.algebra import quaternion, vector
from remora.algebra.array_ops import Array, asarray, concatenate, less, polynomial, select, sqrt

# The series of (sin h/h - cos h)/h² in h²: 1/3 - h²/30 + ..., coefficients ±2(k+1)/(2k+3)!.
_DEFECT = tuple((-1) ** k * 2 * (k + 1) / math.factorial(2 * k + 3) for k in range(9))


def identity() -> Array:
    """Return the identity 1 + ε0: no motion."""
    return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def real(a: Array) -> Array:
    """Return the real part, `(..., 8) -> (..., 4)`."""
    return a[..., :4]


def dual(a: Array) -> Array:
    """Return the dual part, `(..., 8) -> (..., 4)`."""
    return a[..., 4:]


def pure(s: Array) -> Array:
    """Return the vector dual quaternion of a twist or wrench, `(..., 6) -> (..., 8)`."""
    return concatenate([quaternion.pure(s[..., :3]), quaternion.pure(s[..., 3:])])


def vec6(a: Array) -> Array:
    """Return the two vector parts side by side, `(..., 8) -> (..., 6)` [SA24, appendix A]."""
    return concatenate([a[..., 1:4], a[..., 5:]])


def vec(a: Array) -> Array:
    """Return the vector part (0, ār) + ε(0, ād), `(..., 8)` [VT18, Table 2]."""
    return pure(vec6(a))


def mul(a: Array, b: Array) -> Array:
    """Return the product ab = ar br + ε(ad br + ar bd) [VT18, Table 2]."""
    ar, ad, br, bd = real(a), dual(a), real(b), dual(b)
    return concatenate([quaternion.mul(ar, br), quaternion.mul(ad, br) + quaternion.mul(ar, bd)])


def conjugate(a: Array) -> Array:
    """Return a* = ar* + ε ad*; of a pose, the inverse: `x_ba = conjugate(x_ab)`."""
    return concatenate([quaternion.conjugate(real(a)), quaternion.conjugate(dual(a))])


def dot(a: Array, b: Array) -> Array:
    """Return a·b = ar·br + ε(ad·br + ar·bd) = ½(a*b + b*a), `(..., 8)` [VT18, Table 2]."""
    ar, ad, br, bd = real(a), dual(a), real(b), dual(b)
    return concatenate([quaternion.dot(ar, br), quaternion.dot(ad, br) + quaternion.dot(ar, bd)])


def cross(a: Array, b: Array) -> Array:
    """Return a×b = ar×br + ε(ad×br + ar×bd) = ½(ab - b*a*), `(..., 8)` [VT18, Table 2]."""
    ar, ad, br, bd = real(a), dual(a), real(b), dual(b)
    return concatenate(
        [quaternion.cross(ar, br), quaternion.cross(ad, br) + quaternion.cross(ar, bd)]
    )


def circle(a: Array, b: Array) -> Array:
    """Return the number a∘b = ar·br + ad·bd, `(..., 8) -> (...)` [VT18, Table 2]."""
    return vector.dot(a, b)[..., 0]


def swap(a: Array) -> Array:
    """Return aˢ = ad + ε ar, for `(..., 8)` and, likewise, for twists and wrenches `(..., 6)`."""
    half = a.shape[-1] // 2
    return concatenate([a[..., half:], a[..., :half]])


def norm(a: Array) -> Array:
    """Return ‖a‖ = √(a∘a), `(..., 8) -> (...)` [VT18, Table 2]."""
    return sqrt(vector.dot(a, a))[..., 0]


def normalize(a: Array) -> Array:
    """Return the unit dual quaternion nearest to `a`: ‖r‖ = 1 and r·d = 0.

    The real part is scaled to unit length. The dual part is scaled by the same factor, and its
    component along the real part is removed. The position p = 2 d r* is unchanged.
    """
    scale = 1.0 / sqrt(vector.dot(real(a), real(a)))
    r, d = real(a) * scale, dual(a) * scale
    return concatenate([r, d - r * vector.dot(r, d)])


def left(a: Array) -> Array:
    """Return the matrix ⟦a⟧L with ab = ⟦a⟧L b, `(..., 8) -> (..., 8, 8)` [VT18, eq. 9]."""
    return _lower_blocks(quaternion.left(real(a)), quaternion.left(dual(a)))


def right(b: Array) -> Array:
    """Return the matrix ⟦b⟧R with ab = ⟦b⟧R a, `(..., 8) -> (..., 8, 8)` [VT18, eq. 9]."""
    return _lower_blocks(quaternion.right(real(b)), quaternion.right(dual(b)))


def skew(s: Array) -> Array:
    """Return [s]× with [s]× b = s×b, both vector dual quaternions [VT18, eq. 7]."""
    return _lower_blocks(quaternion.skew(real(s)), quaternion.skew(dual(s)))


def exp(s: Array) -> Array:
    """Return the pose exp of the vector dual quaternion s, `(..., 6) -> (..., 8)`.

    A constant twist ξ held for the time t moves a frame by `exp(½ t ξ)`. With v + ε v' = s and
    h = ‖v‖, the real part is (cos h, v sin h/h), the dual part its derivative along v':

        (-(v·v') sin h/h,  v' sin h/h - v (v·v') (sin h/h - cos h)/h²).
    """
    return concatenate([quaternion.cos_sinc(vector.dot(s[..., :3], s[..., :3]))[0], _exp_rest(s)])


def exp_minus_one(s: Array) -> Array:
    """Return exp(s) - 1 without cancellation for small s, `(..., 6) -> (..., 8)`."""
    hh = vector.dot(s[..., :3], s[..., :3])
    cosine, sinc = quaternion.cos_sinc(hh)
    return concatenate([quaternion.cos_minus_one(hh, cosine, sinc), _exp_rest(s)])


def _exp_rest(s: Array) -> Array:
    """Return all components of exp(s) except the first."""
    v, dv = s[..., :3], s[..., 3:]
    hh, along = vector.dot(v, v), vector.dot(v, dv)
    cosine, sinc = quaternion.cos_sinc(hh)
    defect = _sinc_minus_cos(hh, sinc, cosine)
    return concatenate([v * sinc, -along * sinc, dv * sinc - v * (along * defect)])


def log(x: Array) -> Array:
    """Return s with exp(s) = ±x and at most half a turn, `(..., 8) -> (..., 6)`.

    `2 log(x)` is the constant twist that reaches the pose x in unit time, the screw of the motion
    (SA24 use (φ n, p)/2 instead, which agrees for pure rotations and pure translations). With
    (w, v) + ε(w', v') = x, h the half angle and f = h/sin h:

        log x = f v + ε(f v' - w' g v),    g = f³ (sin h/h - cos h)/h².
    """
    x = select(less(x[..., :1], 0.0), -x, x)
    w, v, dw, dv = x[..., :1], x[..., 1:4], x[..., 4:5], x[..., 5:]
    f = quaternion.half_angle_over_sine(real(x))
    g = f**3 * _sinc_minus_cos(f**2 * vector.dot(v, v), 1.0 / f, w)
    return concatenate([f * v, f * dv - dw * g * v])


def _sinc_minus_cos(hh: Array, sinc: Array, cosine: Array) -> Array:
    """Return (sin h/h - cos h)/h² for hh = h², by series where the difference would cancel."""
    small = less(hh, 0.5)
    return select(small, polynomial(hh, _DEFECT), (sinc - cosine) / select(small, 1.0, hh))


def power(x: Array, t: Array | float) -> Array:
    """Return x to the power t: the fraction t of the screw motion to the pose x. `t` is `(...)`."""
    return exp(asarray(t)[..., None] * log(x))


def sclerp(a: Array, b: Array, t: Array | float) -> Array:
    """Return the pose at the fraction t of the screw motion from pose a to pose b: a (a*b)ᵗ."""
    return mul(a, power(mul(conjugate(a), b), t))


def _lower_blocks(diagonal: Array, below: Array) -> Array:
    upper = concatenate([diagonal, np.zeros_like(diagonal)])
    return concatenate([upper, concatenate([below, diagonal])], trailing=2)
