"""Orthogonalization of columns in a weighted metric, without branches, with dependent ones dropped.

    Y = Q R,    Qᵀ W Q = diag(n),    R unit upper triangular,

by the modified Gram-Schmidt method without square roots. A column whose remainder is nearly zero
depends on the columns before it; its reciprocal is zero. A factorization of YᵀWY would square the
condition number; here angles between columns are resolved down to `DEPENDENT`. Minimum-norm
solutions are computed as in [B96, section 2.4], where loss of orthogonality of Q does no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import linear, vector
from remora.algebra.array_ops import Array, concatenate, less, select, stack

#: Sine of the angle to the earlier columns below which a column counts as dependent on them.
DEPENDENT = 1e-8
#: The square of that sine for columns of which only the products YᵀWY are known.
DEPENDENT_SQUARE = 1e-12


class Orthogonal(NamedTuple):
    """The factors of Y `(..., n, m)` in the metric W = diag(w).

    Attributes:
        Q: orthogonal columns, not normalized, `(..., n, m)`.
        R: `(..., m, m)`, unit upper triangular.
        reciprocal: 1/n_i, zero for columns that depend on earlier ones, `(..., m)`.
        kept: 1 for independent columns, 0 for dependent ones, `(..., m)`.
        w: `(..., n)`.
    """

    Q: Array
    R: Array
    reciprocal: Array
    kept: Array
    w: Array


def orthogonalize(Y: Array, w: Array, size: Array) -> Orthogonal:
    """Return the factors of Y.

    Args:
        Y: `(..., n, m)`.
        w: positive weights, `(..., n)`.
        size: square of the columns' length in the metric before cancellation, `(..., m)`.
    """
    m = Y.shape[-1]
    rest = [Y[..., :, k] for k in range(m)]
    R: list[list[Array]] = [[np.zeros(1)] * i + [np.ones(1)] for i in range(m)]
    reciprocals: list[Array] = []
    flags: list[Array] = []
    for i in range(m):
        weighted = w * rest[i]
        square = vector.dot(weighted, rest[i])
        keep = less(DEPENDENT**2 * size[..., i : i + 1], square)
        flags.append(select(keep, 1.0, 0.0))
        reciprocals.append(flags[i] / select(keep, square, 1.0))
        for k in range(i + 1, m):
            r = vector.dot(weighted, rest[k]) * reciprocals[i]
            R[i].append(r)
            rest[k] = rest[k] - rest[i] * r
    rows = [concatenate(row) for row in R]
    joined = stack(rows, axis=-2)
    return Orthogonal(stack(rest), joined, concatenate(reciprocals), concatenate(flags), w)


def minimum_norm(factors: Orthogonal, b: Array) -> tuple[Array, Array, Array]:
    """Return the x of smallest xᵀWx with YᵀWx = b, its μ with x = Qμ, and the misfit.

    The misfit `(..., m)` is what is left of b in the equations of dependent columns: zero where
    the equations do not contradict each other.

    Args:
        factors: of Y `(..., n, m)`.
        b: `(..., m)`.
    """
    Q, R, reciprocal, kept, w = factors
    m = b.shape[-1]
    z: list[Array] = []
    for i in range(m):
        left = b[..., i : i + 1]
        for k in range(i):
            left = left - R[..., k, i : i + 1] * z[k]
        z.append(left)
    x = np.zeros(Q.shape[-2])
    mu: list[Array] = []
    for i in reversed(range(m)):
        q = Q[..., :, i]
        along = vector.dot(w * q, x)
        mu.insert(0, (z[i] - along) * reciprocal[..., i : i + 1])
        x = x + q * mu[0]
    return x, concatenate(mu), concatenate(z) * (1.0 - kept)


def smallest_multipliers(R: Array, kept: Array, mu: Array) -> Array:
    """Return the λ of smallest Euclidean norm with (Rλ)_i = μ_i for independent i, `(..., m)`.

    The solution with λ_i = 0 for dependent i, less its part in the null space, which the columns
    N = T⁻¹ e_i of dependent i span; T is R with the rows of dependent i replaced by those of 1.

    Args:
        R: unit upper triangular, `(..., m, m)`.
        kept: 1 for independent columns, 0 for others, `(..., m)`.
        mu: `(..., m)`.
    """
    eye = np.eye(mu.shape[-1])
    T = vector.transpose(R * kept[..., None] + eye * (1.0 - kept)[..., None])
    basic = linear.back_substitute(T, (mu * kept)[..., None])
    N = linear.back_substitute(T, eye) * (1.0 - kept)[..., None, :]
    Nt = vector.transpose(N)
    square = Nt @ N + eye * kept[..., None]
    return (basic - N @ linear.ldl_solve(linear.ldl(square), Nt @ basic, square))[..., 0]


def solve_semidefinite(A: Array, b: Array, size: Array) -> Array:
    """Return the λ of smallest Euclidean norm with Aλ = b, `(..., m)`.

    A = RᵀNR is symmetric and positive semi-definite. As A holds squares, angles between columns are
    only resolved down to the root of `DEPENDENT_SQUARE`.

    Args:
        A: `(..., m, m)`; its upper triangle is read.
        b: `(..., m)`.
        size: magnitude of A's diagonal before cancellation, `(..., m)`.
    """
    m = A.shape[-1]
    rest = [[A[..., i, k : k + 1] for k in range(m)] for i in range(m)]
    right = [b[..., i : i + 1] for i in range(m)]
    R: list[list[Array]] = [[np.zeros(1)] * i + [np.ones(1)] for i in range(m)]
    flags: list[Array] = []
    mu: list[Array] = []
    for i in range(m):
        keep = less(DEPENDENT_SQUARE * size[..., i : i + 1], rest[i][i])
        flags.append(select(keep, 1.0, 0.0))
        reciprocal = flags[i] / select(keep, rest[i][i], 1.0)
        mu.append(right[i] * reciprocal)
        R[i] += [rest[i][k] * reciprocal for k in range(i + 1, m)]
        for k in range(i + 1, m):
            right[k] = right[k] - R[i][k] * right[i]
            for n in range(k, m):
                rest[k][n] = rest[k][n] - R[i][k] * rest[i][n]
    rows = stack([concatenate(row) for row in R], axis=-2)
    return smallest_multipliers(rows, concatenate(flags), concatenate(mu))
