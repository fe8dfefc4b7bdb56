"""Orthogonalization of columns in a weighted metric, without branches, with dependent ones dropped.

    Y = Q R,    Qᵀ W Q = diag(n),    R unit upper triangular,

by the modified Gram-Schmidt method without square roots. A column whose remainder is zero to
rounding depends on the columns before it; its reciprocal is zero. Unlike the factorization of
YᵀWY, which squares the condition number, this resolves angles between columns down to `DEPENDENT`.
Minimum-norm solutions are computed as in [B96, section 2.4], where loss of orthogonality of Q does no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import linear, vector
from remora.algebra.array_ops import Array, concatenate, less, select, stack

#: Sine of the angle to the earlier columns below which a column counts as dependent on them.
DEPENDENT = 1e-8


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


def smallest_multipliers(factors: Orthogonal, mu: Array) -> Array:
    """Return the λ of smallest Euclidean norm with Yλ = Qμ, `(..., m)`.

    λ = Rₖᵀ (Rₖ Rₖᵀ)⁻¹ μ, with Rₖ the rows of R that belong to independent columns.

    Args:
        factors: of Y `(..., n, m)`.
        mu: `(..., m)`.
    """
    kept = factors.kept
    R = factors.R * kept[..., None]
    square = R @ vector.transpose(R)
    eye = np.eye(mu.shape[-1])
    B = square + eye * (1.0 - kept)[..., None]
    found = linear.ldl_solve(linear.ldl(B), (mu * kept)[..., None], B)[..., 0]
    return vector.apply(vector.transpose(R), found)
