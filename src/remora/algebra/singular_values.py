"""Singular values of small matrices by one-sided Jacobi rotations, on floats and symbols.

Pairs of rows are rotated until all are orthogonal [GV13, section 8.6.3]. The number of sweeps is
fixed, so that no branch depends on a value and the same code is compiled. Small singular values
are precise relative to themselves where the rows are well scaled.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import Array, absolute, asarray, less, select, sqrt, stack

#: Sweeps over all pairs of rows, by the number of rows; convergence is quadratic.
SWEEPS = {0: 0, 1: 0, 2: 2, 3: 5, 4: 7, 5: 8, 6: 9}
#: Added where 0/0 would come of two rows that are both zero.
TINY = 1e-30


def left_svd(A: Array) -> tuple[Array, Array]:
    """Return the left singular vectors U and the singular values σ of A, σ in descending order.

    A = U diag(σ) Vᵀ, so the ellipsoid {A x : xᵀx = 1} has the semi-axes σ along U's columns.

    Args:
        A: `(..., k, n)`, k at most 6; any n. With n < k the last k - n values are zero.

    Returns:
        U `(..., k, k)`, orthogonal, and σ `(..., k)`.
    """
    k = A.shape[-2]
    rows = [A[..., i, :] for i in range(k)]
    turned = [np.eye(k)[i] for i in range(k)]  # the same rotations of the unit matrix
    for _ in range(SWEEPS[k]):
        for i in range(k):
            for j in range(i + 1, k):
                c, s = _rotation(rows[i], rows[j])
                rows[i], rows[j] = c * rows[i] - s * rows[j], s * rows[i] + c * rows[j]
                turned[i], turned[j] = c * turned[i] - s * turned[j], s * turned[i] + c * turned[j]
    values = [_length(row) for row in rows]
    for last in range(k - 1, 0, -1):  # a sorting network of exchanges of neighbours
        for i in range(last):
            swap = less(values[i], values[i + 1])
            values[i : i + 2] = _exchanged(swap, values[i], values[i + 1])
            turned[i : i + 2] = _exchanged(swap, turned[i], turned[i + 1])
    if not k:
        return np.zeros((*A.shape[:-2], 0, 0)), np.zeros((*A.shape[:-2], 0))
    sigma = stack([value[..., 0] for value in values])
    return vector.transpose(stack(turned, axis=-2)), sigma


def singular_values(A: Array) -> Array:
    """Return the singular values of A `(..., k, n)`, k at most 6, descending, `(..., k)`."""
    return left_svd(A)[1]


def _rotation(a: Array, b: Array) -> tuple[Array, Array]:
    """Return c and s `(..., 1)` that make c a - s b and s a + c b orthogonal.

    tan φ = 2 a·b / (d + sign(d) √(d² + 4 (a·b)²)) with d = b·b - a·a: the smaller angle.
    """
    d, twice = vector.dot(b, b) - vector.dot(a, a), 2.0 * vector.dot(a, b)
    size = absolute(d) + absolute(twice) + TINY
    d, twice = d / size, twice / size  # the squares neither overflow nor vanish
    root = sqrt(d * d + twice * twice)
    t = twice / (select(less(d, 0.0), d - root, d + root) + TINY)
    c = 1.0 / sqrt(1.0 + t * t)
    return c, t * c


def _length(a: Array) -> Array:
    return sqrt(vector.dot(a, a))


def _exchanged(condition: Array, a: Array, b: Array) -> list[Array]:
    return [select(condition, b, a), select(condition, a, b)]


def volume(A: Array) -> Array:
    """Return √det(A Aᵀ), the product of the singular values of A `(..., k, n)`, `(...)`.

    By Gram-Schmidt orthogonalization of the rows, so that it is precise near zero, where the
    determinant of A Aᵀ would lose half of the digits.
    """
    result = np.ones((*A.shape[:-2], 1))
    done: list[Array] = []
    for i in range(A.shape[-2]):
        row = A[..., i, :]
        for unit in done:
            row = row - vector.dot(row, unit) * unit
        length = _length(row)
        done.append(row / (length + TINY))
        result = result * length
    return asarray(result[..., 0])
