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
#: Number of columns up to which `factorize` orthogonalizes.
MANY_COLUMNS = 12


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


class SemiNormal(NamedTuple):
    """The triangular factor of the products YᵀWY = Rᵀ diag(n) R, W = diag(w) [B96, section 6.6.5].

    Cheaper than `Orthogonal` for many columns, most of all if Y is sparse. Angles between columns
    are only resolved down to the root of `DEPENDENT_SQUARE`; solutions are corrected once, which
    gives them nearly the accuracy of `Orthogonal`.

    Attributes:
        Y: `(..., n, m)`.
        R: `(..., m, m)`, unit upper triangular.
        reciprocal: 1/n_i, zero for columns that depend on earlier ones, `(..., m)`.
        kept: 1 for independent columns, 0 for dependent ones, `(..., m)`.
        w: `(..., n)`.
    """

    Y: Array
    R: Array
    reciprocal: Array
    kept: Array
    w: Array


def factorize(Y: Array, w: Array, size: Array) -> Orthogonal | SemiNormal:
    """Return the factors of Y: orthogonal ones, or those of its products for many columns.

    Args:
        Y: `(..., n, m)`.
        w: positive weights, `(..., n)`.
        size: square of the columns' length in the metric before cancellation, `(..., m)`.
    """
    if Y.shape[-1] <= MANY_COLUMNS:
        return orthogonalize(Y, w, size)
    A = vector.transpose(Y) @ (w[..., None] * Y)
    R, reciprocal, kept = _factors_of_products(A, size)
    return SemiNormal(Y, R, reciprocal, kept, w)


def _factors_of_products(
    A: Array, size: Array, dependent: Array | float = DEPENDENT_SQUARE
) -> tuple[Array, Array, Array]:
    """Return R, 1/n and the flags of A = Rᵀ diag(n) R `(..., m, m)`; its upper half is read."""
    m: int = A.shape[-1]
    rest = [[A[..., i, k : k + 1] for k in range(m)] for i in range(m)]
    R: list[list[Array]] = [[np.zeros(1)] * i + [np.ones(1)] for i in range(m)]
    reciprocals: list[Array] = []
    flags: list[Array] = []
    for i in range(m):
        keep = less(dependent * size[..., i : i + 1], rest[i][i])
        flags.append(select(keep, 1.0, 0.0))
        reciprocals.append(flags[i] / select(keep, rest[i][i], 1.0))
        R[i] += [rest[i][k] * reciprocals[i] for k in range(i + 1, m)]
        for k in range(i + 1, m):
            for n in range(k, m):
                rest[k][n] = rest[k][n] - R[i][k] * rest[i][n]
    rows = stack([concatenate(row) for row in R], axis=-2)
    return rows, concatenate(reciprocals), concatenate(flags)


def minimum_norm(factors: Orthogonal | SemiNormal, b: Array) -> tuple[Array, Array, Array]:
    """Return the x of smallest xᵀWx with YᵀWx = b, its μ with x = Qμ, and the misfit.

    The misfit `(..., m)` is what is left of b in the equations of dependent columns: zero where
    the equations do not contradict each other.

    Args:
        factors: of Y `(..., n, m)`.
        b: `(..., m)`.
    """
    if isinstance(factors, SemiNormal):
        return _corrected(factors, b)
    Q, R, reciprocal, kept, w = factors
    m = b.shape[-1]
    z = _forward(R, b)
    x = np.zeros(Q.shape[-2])
    mu: list[Array] = []
    for i in reversed(range(m)):
        q = Q[..., :, i]
        along = vector.dot(w * q, x)
        mu.insert(0, (z[i] - along) * reciprocal[..., i : i + 1])
        x = x + q * mu[0]
    return x, concatenate(mu), concatenate(z) * (1.0 - kept)


def _forward(R: Array, b: Array) -> list[Array]:
    """Return R⁻ᵀb, component by component, `(..., 1)` each."""
    z: list[Array] = []
    for i in range(b.shape[-1]):
        left = b[..., i : i + 1]
        for k in range(i):
            left = left - R[..., k, i : i + 1] * z[k]
        z.append(left)
    return z


def _corrected(factors: SemiNormal, b: Array) -> tuple[Array, Array, Array]:
    """Return what `minimum_norm` does, from the products: a solution and one correction."""
    Y, R, reciprocal, kept, w = factors
    x, mu = np.zeros(Y.shape[-2]), np.zeros(b.shape[-1])
    misfit, left = None, b
    for _ in range(2):
        z = concatenate(_forward(R, left))
        misfit = z * (1.0 - kept) if misfit is None else misfit
        own = z * reciprocal
        x = x + vector.apply(Y, linear.back_substitute(vector.transpose(R), own[..., None])[..., 0])
        mu = mu + own
        left = b - vector.apply(vector.transpose(Y), w * x)
    assert misfit is not None
    return x, mu, misfit


def closest(factors: Orthogonal, X: Array, B: Array | None = None) -> tuple[Array, Array]:
    """Return the X' closest to X in the metric W with YᵀWX' = B, column by column, and μ.

    X' - X = Qμ with μ `(..., m, k)`, zero in the rows of dependent columns of Y, whose equations
    are left out.

    Args:
        factors: of Y `(..., n, m)`.
        X: `(..., n, k)`.
        B: `(..., m, k)`; zero by default.
    """
    Q, R, reciprocal, _, w = factors
    m: int = R.shape[-1]
    z: list[Array] = []
    for i in range(m):
        left = np.zeros(X.shape[-1]) if B is None else B[..., i, :]
        if B is not None:
            for k in range(i):
                left = left - R[..., k, i, None] * z[k]
        z.append(left)
    mu: list[Array] = []
    for i in reversed(range(m)):
        q = Q[..., :, i]
        along = ((w * q)[..., None, :] @ X)[..., 0, :]
        mu.insert(0, (z[i] - along) * reciprocal[..., i, None])
        X = X + q[..., :, None] * mu[0][..., None, :]
    return X, stack(mu, axis=-2)


def basic_multipliers(R: Array, kept: Array, mu: Array) -> Array:
    """Return the λ with (Rλ)_i = μ_i for independent i and λ_i = 0 for dependent i, `(..., m, k)`.

    Args:
        R: unit upper triangular, `(..., m, m)`.
        kept: 1 for independent columns, 0 for others, `(..., m)`.
        mu: `(..., m, k)`.
    """
    return linear.back_substitute(_without_dependent(R, kept), mu * kept[..., None])


def null_space(R: Array, kept: Array) -> Array:
    """Return N `(..., m, m)`: the λ with Yλ = 0 are the span of its columns of dependent i.

    Columns of independent i are zero.
    """
    eye = np.eye(R.shape[-1])
    return linear.back_substitute(_without_dependent(R, kept), eye) * (1.0 - kept)[..., None, :]


def null_part(R: Array, kept: Array, X: Array) -> Array:
    """Return the orthogonal projection of columns X `(..., m, k)` onto the λ with Yλ = 0."""
    N = null_space(R, kept)
    Nt = vector.transpose(N)
    square = Nt @ N + np.eye(R.shape[-1]) * kept[..., None]
    return N @ linear.ldl_solve(linear.ldl(square), Nt @ X, square)


def _without_dependent(R: Array, kept: Array) -> Array:
    """Return Tᵀ, T being R with the rows of dependent columns replaced by those of 1."""
    eye = np.eye(R.shape[-1])
    return vector.transpose(R * kept[..., None] + eye * (1.0 - kept)[..., None])


def smallest_multipliers(R: Array, kept: Array, mu: Array) -> Array:
    """Return the λ of smallest Euclidean norm with (Rλ)_i = μ_i for independent i, `(..., m)`.

    The solution with λ_i = 0 for dependent i, less its part in the null space, which the columns
    N = T⁻¹ e_i of dependent i span; T is R with the rows of dependent i replaced by those of 1.

    Args:
        R: unit upper triangular, `(..., m, m)`.
        kept: 1 for independent columns, 0 for others, `(..., m)`.
        mu: `(..., m)`.
    """
    basic = basic_multipliers(R, kept, mu[..., None])
    return (basic - null_part(R, kept, basic))[..., 0]


def solve_semidefinite(
    A: Array, b: Array, size: Array, dependent: Array | float = DEPENDENT_SQUARE
) -> Array:
    """Return the λ of smallest Euclidean norm with Aλ = b, `(..., m)`.

    A = RᵀNR is symmetric and positive semi-definite. As A holds squares, angles between columns are
    only resolved down to the root of `DEPENDENT_SQUARE`.

    Args:
        A: `(..., m, m)`; its upper triangle is read.
        b: `(..., m)`.
        size: magnitude of A's diagonal before cancellation, `(..., m)`.
        dependent: square of the sine of the angle to the earlier columns below which a column
            counts as dependent on them, a number or `(..., 1)`.
    """
    R, reciprocal, kept = _factors_of_products(A, size, dependent)
    return smallest_multipliers(R, kept, concatenate(_forward(R, b)) * reciprocal)
