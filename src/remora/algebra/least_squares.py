"""Damped and weighted least squares, and projection onto a null space, by LDLᵀ on any scalar."""

from __future__ import annotations

import numpy as np

from remora.algebra import linear
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.algebra.vector import apply, transpose
from remora.errors import SingularMatrix

#: Message of a matrix without full rank.
UNDAMPED = "the matrix is singular: the pose is a singular one; a positive damping bounds the rates"


def damped_inverse(A: Array, damping: ArrayLike = 0.0, weight: Array | None = None) -> Array:
    """Return A⁺ = W⁻¹Aᵀ(A W⁻¹Aᵀ + λ²1)⁻¹, `(..., n, m)`.

    x = A⁺b minimizes ‖b - A x‖² + λ²xᵀW x.

    Without damping it is the solution of A x = b with the least xᵀW x, or, for m > n, the x with
    the least ‖b - A x‖; a matrix without full rank is then an error for floats and not finite in
    compiled code. For m > n the equal form (AᵀA + λ²W)⁻¹Aᵀ is evaluated. With damping λ the
    solution is bounded by ‖b‖/(2λ) for W = 1, at the cost of an error of λ²/(σ² + λ²) of b along a
    singular value σ [NH86].

    Args:
        A: `(..., m, n)`.
        damping: λ ≥ 0, `(...)`, in the unit of A.
        weight: W, `(..., n, n)`, symmetric and positive definite; the identity by default.
    """
    size = asarray(damping)[..., None, None]
    spread = transpose(A)
    try:
        if A.shape[-2] > A.shape[-1]:
            W = np.eye(A.shape[-1]) if weight is None else weight
            return linear.solve(linear.mirror(spread @ A) + size * size * W, spread)
        spread = spread if weight is None else linear.solve(weight, spread)
        square = linear.mirror(A @ spread)
        extra = size * size * np.eye(A.shape[-2])
        # A⁺ = spread · square⁻¹, and square is symmetric
        return transpose(linear.solve(square + extra, transpose(spread)))
    except SingularMatrix:
        raise SingularMatrix(UNDAMPED) from None


def projected(A: Array, inverse: Array, x: Array) -> Array:
    """Return (1 - A⁺A) x, the part of x `(..., n)` in the null space of A, for A⁺ given.

    With a damped A⁺ it is not exactly in the null space: A(1 - A⁺A) = λ²(A W⁻¹Aᵀ + λ²1)⁻¹A.
    """
    return x - apply(inverse, apply(A, x))
