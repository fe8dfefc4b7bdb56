"""Dot product, cross product and skew matrix of 3-vectors, for any scalar and batch shape."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, stack


def dot(a: Array, b: Array) -> Array:
    """Return a·b with the last axis kept, `(..., n) -> (..., 1)`, ready to scale a vector."""
    return np.sum(a * b, axis=-1, keepdims=True)


def cross(a: Array, b: Array) -> Array:
    """Return a×b, `(..., 3)`."""
    a1, a2, a3 = a[..., 0], a[..., 1], a[..., 2]
    b1, b2, b3 = b[..., 0], b[..., 1], b[..., 2]
    return stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1])


def skew(s: Array) -> Array:
    """Return the matrix [s]× with [s]× b = s×b, `(..., 3) -> (..., 3, 3)` [VT18, eq. 1]."""
    s1, s2, s3 = s[..., 0], s[..., 1], s[..., 2]
    zero = np.zeros_like(s1)
    rows = [[zero, -s3, s2], [s3, zero, -s1], [-s2, s1, zero]]
    return stack([stack(row) for row in rows], axis=-2)


def apply(A: Array, b: Array) -> Array:
    """Return the product of a matrix and a vector, `(..., m, n), (..., n) -> (..., m)`."""
    return (A @ b[..., None])[..., 0]


def transpose(A: Array) -> Array:
    """Return Aᵀ, `(..., m, n) -> (..., n, m)`."""
    return np.swapaxes(A, -1, -2)
