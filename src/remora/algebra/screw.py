"""Twists, wrenches and spatial inertia of rigid bodies as dual vectors `(..., 6)` [VT18, 2.2].

Twist `[ω, v]` and wrench `[f, τ]` are vector dual quaternions written as `(..., 6)`: real part,
then dual part. Both change frames by the same adjoint. The power of a wrench on a twist is
ω·τ + v·f, the circle product of one with the swap of the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, pose, vector
from remora.algebra.array_ops import Array, asarray, concatenate, constant, stack


class Transform(NamedTuple):
    """The pose of frame B in A as rotation matrix and position, to transform many screws.

    Attributes:
        R: R_ab, `(..., 3, 3)`.
        p: position of B's origin in A, `(..., 3)`.
    """

    R: Array
    p: Array


def transform(x: Array) -> Transform:
    """Return the pose x_ab as rotation matrix and position."""
    return Transform(pose.to_rotation_matrix(x), pose.translation(x))


def to_outer(X: Transform, s: Array) -> Array:
    """Return s, given in B's frame, in A's: (R a, R b + p × R a) for s = (a, b)."""
    a = vector.apply(X.R, s[..., :3])
    return concatenate([a, vector.apply(X.R, s[..., 3:]) + vector.cross(X.p, a)])


def to_inner(X: Transform, s: Array) -> Array:
    """Return s, given in A's frame, in B's: (Rᵀ a, Rᵀ(b - p × a)) for s = (a, b)."""
    Rt = vector.transpose(X.R)
    b = s[..., 3:] - vector.cross(X.p, s[..., :3])
    return concatenate([vector.apply(Rt, s[..., :3]), vector.apply(Rt, b)])


def columns_to_outer(X: Transform, S: Array) -> Array:
    """Return the columns of S `(..., 6, k)`, screws given in B's frame, in A's."""
    return vector.transpose(to_outer(_for_rows(X), vector.transpose(S)))


def columns_to_inner(X: Transform, S: Array) -> Array:
    """Return the columns of S `(..., 6, k)`, screws given in A's frame, in B's."""
    return vector.transpose(to_inner(_for_rows(X), vector.transpose(S)))


def _for_rows(X: Transform) -> Transform:
    return Transform(X.R[..., None, :, :], X.p[..., None, :])


def adjoint(x: Array, s: Array) -> Array:
    """Return s, given in B's frame, in A's: x_ab s x_ab* [VT18, eqs. 14, 18-21].

    With s = (a, b): (R a, R b + p × R a), the shifting law, for twists and wrenches alike.
    """
    return to_outer(transform(x), s)


def adjoint_inverse(x: Array, s: Array) -> Array:
    """Return s, given in A's frame, in B's: x_ab* s x_ab [VT18, eqs. 14, 18-21]."""
    return to_inner(transform(x), s)


def adjoint_matrix(x: Array) -> Array:
    """Return Ad(x) with adjoint(x, s) = Ad(x) s, `(..., 8) -> (..., 6, 6)`."""
    return transform_matrix(transform(x))


def transform_matrix(X: Transform) -> Array:
    """Return the 6x6 matrix [R 0; [p]×R R] of `to_outer`, for twists and wrenches."""
    R = X.R
    below = vector.skew(X.p) @ R
    top = concatenate([R, np.zeros_like(R)])
    return concatenate([top, concatenate([below, R])], trailing=2)


def cross(a: Array, b: Array) -> Array:
    """Return the dual cross product (a₁×b₁, a₂×b₁ + a₁×b₂), `(..., 6)` [VT18, Table 2].

    It is the rate of change of a twist or wrench b that is fixed in a frame moving with the twist
    a.
    """
    a1, a2, b1, b2 = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return concatenate([vector.cross(a1, b1), vector.cross(a2, b1) + vector.cross(a1, b2)])


def shift(wrench: Array, r: Array) -> Array:
    """Return a wrench about the point Oq, given about Op, with r = r_{p/q} [VT18, eq. 17]."""
    f, tau = wrench[..., :3], wrench[..., 3:]
    return concatenate([f, tau + vector.cross(r, f)])


def power(twist: Array, wrench: Array) -> Array:
    """Return ω·τ + v·f, `(...)`: the power of a wrench on a body with that twist."""
    return dual_quaternion.circle(twist, dual_quaternion.swap(wrench))


class Inertia(NamedTuple):
    """The spatial inertia of a rigid body, or of a composite rigid body, about its frame's origin.

    Attributes:
        mass: m, `(...)`, kg.
        moment: the first moment m c, c the centre of mass, `(..., 3)`, kg m.
        about_origin: the second moments I - m [c]×[c]×, `(..., 3, 3)`, kg m².
    """

    mass: Array
    moment: Array
    about_origin: Array


def inertia(mass: Array, com: Array, about_com: Array) -> Inertia:
    """Return the inertia about the frame's origin from the one about the centre of mass."""
    m = asarray(mass)
    c = vector.skew(com)
    return Inertia(m, m[..., None] * com, about_com - m[..., None, None] * (c @ c))


def transform_inertia(X: Transform, M: Inertia) -> Inertia:
    """Return an inertia, given in B's frame, in A's, for X = X_ab.

    With a = R m c: m c' = a + m p and I' = R I Rᵀ - [p]×[a]× - [a]×[p]× - m [p]×[p]×.
    """
    R, p = X
    m = asarray(M.mass)[..., None]
    a = vector.apply(R, M.moment)
    P, A = vector.skew(p), vector.skew(a)
    PA = P @ A
    turned = linear.congruence(vector.transpose(R), M.about_origin)
    steiner = PA + vector.transpose(PA) + m[..., None] * (P @ P)
    return Inertia(asarray(M.mass), a + m * p, turned - steiner)


def add_inertia(A: Inertia, B: Inertia) -> Inertia:
    """Return the inertia of the composite of two bodies, both in the same frame."""
    return Inertia(*(asarray(a + b) for a, b in zip(A, B, strict=True)))


def inertia_matrix(M: Inertia) -> Array:
    """Return the 6x6 matrix with momentum [P, L] = M [ω, v] [VT18, eq. 28 about the origin].

    M = [-[m c]×, m 1; I, [m c]×]; with its two rows swapped it is symmetric.
    """
    mc = vector.skew(M.moment)
    m = asarray(M.mass)[..., None, None]
    top = concatenate([-mc, m * constant(np.eye(3), like=mc)])
    return concatenate([top, concatenate([M.about_origin, mc])], trailing=2)


def inertia_diagonal(M: Inertia) -> Array:
    """Return the diagonal of the symmetric 6x6 inertia on [ω, v], `(..., 6)`."""
    turning = [M.about_origin[..., k, k] for k in range(3)]
    return stack([*turning, *[asarray(M.mass)] * 3])


def momentum(M: Inertia, twist: Array) -> Array:
    """Return the dual momentum [P, L] about the frame's origin, in its axes [VT18, eq. 23].

    P = m v - m c × ω,    L = I ω + m c × v.
    """
    omega, v = twist[..., :3], twist[..., 3:]
    P = asarray(M.mass)[..., None] * v - vector.cross(M.moment, omega)
    return concatenate([P, vector.apply(M.about_origin, omega) + vector.cross(M.moment, v)])


def kinetic_energy(M: Inertia, twist: Array) -> Array:
    """Return ½ ωˢ ∘ (M ⋆ ωˢ), in J, `(...)` [VT18, eq. 24]."""
    return (0.5 * vector.dot(twist, dual_quaternion.swap(momentum(M, twist))))[..., 0]


def dual_inertia(mass: Array, about_com: Array) -> Array:
    """Return the 8x8 dual inertia matrix M about the centre of mass [VT18, eq. 22]."""
    m, one = asarray(mass)[..., None, None], np.ones((1, 1))
    return _block_diagonal(one, m * np.eye(3), one, about_com)


def H(M: Array) -> Array:
    """Return H(M) = [M₂, M₁] with H(M) a = M aˢ, `(..., 8, 8)` [VT18, eqs. 25, 26]."""
    return concatenate([M[..., 4:], M[..., :4]])


def H_inverse(mass: Array, about_com: Array) -> Array:
    """Return H(M)⁻¹ for the M of `dual_inertia`, `(..., 8, 8)` [VT18, Lemma 3]."""
    m, one = asarray(mass)[..., None, None], np.ones((1, 1))
    inverse = _block_diagonal(one, linear.inverse(about_com), one, np.eye(3) / m)
    return concatenate([inverse[..., 4:], inverse[..., :4]])


def _block_diagonal(*blocks: Array) -> Array:
    """Return the block-diagonal matrix of square blocks `(..., n_i, n_i)`."""
    rows: list[Array] = []
    for i, block in enumerate(blocks):
        height = block.shape[-2]
        row = [
            block if i == j else np.zeros((*block.shape[:-2], height, other.shape[-1]))
            for j, other in enumerate(blocks)
        ]
        rows.append(concatenate(row))
    return concatenate(rows, trailing=2)
