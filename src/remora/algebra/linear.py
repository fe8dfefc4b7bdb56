"""Small linear algebra on any scalar: LDLᵀ of symmetric matrices, and congruence.

Unrolled over the rows, so that zeros known while tracing fold away and nothing branches on a
value. A pivot that is zero to rounding, or not finite, is refused: for float matrices by an error,
in what is compiled by a result that is not finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.namespace import Array, absolute, asarray, casadi, is_symbolic, stack, wrapped
from remora.errors import InvalidValue

#: A pivot of at most this fraction of its size before cancellation is nothing but rounding.
PIVOT_ROUNDING = 1e-14


def ldl(A: Array, size: Array | None = None) -> tuple[Array, Array]:
    """Return L (unit lower triangular) and d with A = L diag(d) Lᵀ, for symmetric A.

    Args:
        A: `(..., n, n)`, symmetric; only its lower triangle is read.
        size: `(..., n, n)`, how large A's entries were before anything in them cancelled; A itself
            by default. A pivot that is nothing but rounding of its diagonal is refused.

    Returns:
        L `(..., n, n)` and d `(..., n)`.
    """
    n = A.shape[-1]
    L: list[list[Array]] = [[] for _ in range(n)]
    d: list[Array] = []
    reciprocal: list[Array] = []  # one division a row, multiplications for the rest
    for i in range(n):
        scaled: list[Array] = []  # L[i][j] d[j]
        for j in range(i):
            s = A[..., i, j]
            for k in range(j):
                s = s - scaled[k] * L[j][k]
            scaled.append(s)
            L[i].append(s * reciprocal[j])
        pivot = A[..., i, i]
        for k in range(i):
            pivot = pivot - scaled[k] * L[i][k]
        d.append(_checked_pivot(pivot, A, A if size is None else size, i))
        reciprocal.append(1.0 / d[i])
    one, zero = np.ones(()), np.zeros(())
    rows = [stack([*L[i], one, *[zero] * (n - 1 - i)]) for i in range(n)]
    return stack(rows, axis=-2), stack(d)


def ldl_solve(factors: tuple[Array, Array], B: Array) -> Array:
    """Return A⁻¹B from the factors of A; B is `(..., n, m)`."""
    L, d = factors
    n = d.shape[-1]
    y: list[Array] = []
    for i in range(n):
        row = B[..., i, :]
        for k in range(i):
            row = row - L[..., i, k, None] * y[k]
        y.append(row)
    reciprocal = 1.0 / d
    x: list[Array] = [row * reciprocal[..., i, None] for i, row in enumerate(y)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - L[..., k, i, None] * x[k]
    return stack(x, axis=-2)


def ltdl(A: Array, size: Array | None = None) -> tuple[Array, Array]:
    """Return L (unit lower triangular) and d with A = Lᵀ diag(d) L, for symmetric A.

    Like `ldl`, but from the last row to the first. Where an entry of A stands only between a row
    and those that carry it, as in a tree numbered outwards, L has no entry that A has not.

    Args:
        A: `(..., n, n)`, symmetric.
        size: `(..., n, n)`, how large A's entries were before anything in them cancelled.
    """
    L, d = ldl(_turned(A), None if size is None else _turned(size))
    return np.swapaxes(_turned(L), -1, -2), d[..., ::-1]


def ltdl_solve(factors: tuple[Array, Array], B: Array) -> Array:
    """Return A⁻¹B from the factors of `ltdl`; B is `(..., n, m)`."""
    L, d = factors
    turned = _turned(np.swapaxes(L, -1, -2)), d[..., ::-1]
    return ldl_solve(turned, B[..., ::-1, :])[..., ::-1, :]


def ltdl_inverse(factors: tuple[Array, Array]) -> Array:
    """Return A⁻¹ `(..., n, n)` from the factors of `ltdl`, exactly symmetric."""
    full = ltdl_solve(factors, np.eye(factors[1].shape[-1]))
    return mirror(np.swapaxes(full, -1, -2))  # its upper triangle is the cheaper one


def _turned(A: Array) -> Array:
    """Return A with its rows and columns in the opposite order."""
    return A[..., ::-1, ::-1]


def solve(A: Array, B: Array) -> Array:
    """Return A⁻¹B for symmetric A `(..., n, n)` and B `(..., n, m)`."""
    return ldl_solve(ldl(A), B)


def inverse(A: Array) -> Array:
    """Return A⁻¹ for symmetric A `(..., n, n)`."""
    return solve(A, np.eye(A.shape[-1]))


def congruence(X: Array, A: Array) -> Array:
    """Return Xᵀ A X for symmetric A `(..., n, n)` and X `(..., n, m)`, exactly symmetric."""
    return mirror(np.swapaxes(X, -1, -2) @ (A @ X))


def mirror(A: Array) -> Array:
    """Return the lower triangle of A `(..., n, n)` with its mirror image as the upper.

    For a matrix that is symmetric but for rounding. What a traced graph would have computed for
    the upper triangle is then used by nothing and drops out.
    """
    n = A.shape[-1]
    rows = [stack([A[..., max(i, j), min(i, j)] for j in range(n)]) for i in range(n)]
    return stack(rows, axis=-2)


def uncancelled(S: Array, diagonal: Array) -> Array:
    """Return Σ_i S_ij² |d_i| `(..., k)`: the size of SᵀAS's diagonal if nothing in it cancelled.

    For symmetric, positive semi-definite A it is at least 1/n of that diagonal.

    Args:
        S: `(..., n, k)`.
        diagonal: d, that of A, `(..., n)`.
    """
    return np.sum(S * S * absolute(diagonal)[..., None], axis=-2)


def _checked_pivot(pivot: Array, A: Array, size: Array, i: int) -> Array:
    """Return a pivot that can be divided by, or raise; of symbols 0 stands for one that cannot."""
    pivot, rounding = asarray(pivot), asarray(PIVOT_ROUNDING * absolute(size[..., i, i]))
    if is_symbolic(pivot) or is_symbolic(rounding):
        return wrapped(np.frompyfunc(_guarded, 2, 1)(pivot, rounding))
    if not np.all(np.isfinite(pivot) & (np.abs(pivot) > rounding)):
        raise InvalidValue("the matrix is singular (a pivot of LDLᵀ is zero to rounding)")
    return pivot


def _guarded(pivot: Any, rounding: Any) -> Any:
    """Return a symbolic pivot, 0 where it is zero to rounding; NaN stays NaN."""
    pivot, rounding = casadi.SX(pivot), casadi.SX(rounding)
    if not (pivot.is_constant() and rounding.is_constant()):
        return casadi.if_else(casadi.fabs(pivot) <= rounding, 0.0, pivot)
    if not abs(float(pivot)) > float(rounding):
        raise InvalidValue("the matrix is singular (a pivot of LDLᵀ is zero to rounding)")
    return pivot
