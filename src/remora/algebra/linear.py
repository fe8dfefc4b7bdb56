"""Small linear algebra on floats and symbols: LDLᵀ factorization, solves, congruence.

Loops are unrolled over the rows, so that zeros known while tracing fold away, and no branch depends
on a value. A pivot that is zero to rounding, or not finite, is an error for float matrices. In
compiled code it gives a result that is not finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, absolute, asarray, casadi, is_symbolic, stack
from remora.errors import SingularMatrix

#: A pivot of at most this fraction of its size before cancellation is rounding error.
PIVOT_ROUNDING = 1e-14
SINGULAR = "the matrix is singular (a pivot of LDLᵀ is zero to rounding)"


def ldl(A: Array, size: Array | None = None) -> tuple[Array, Array]:
    """Return L (unit lower triangular) and d with A = L diag(d) Lᵀ, for symmetric A.

    Args:
        A: `(..., n, n)`, symmetric; only its lower triangle is read.
        size: `(..., n, n)`, magnitude of A's entries before cancellation; A itself by default. A
            pivot within rounding error of zero on this scale is refused.

    Returns:
        L `(..., n, n)` and d `(..., n)`.
    """
    n = A.shape[-1]
    L: list[list[Array]] = [[] for _ in range(n)]
    d: list[Array] = []
    reciprocal: list[Array] = []  # one division per row, otherwise multiplications
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


def ldl_solve(factors: tuple[Array, Array], B: Array, size: Array | None = None) -> Array:
    """Return A⁻¹B from the factors of A.

    Args:
        factors: from `ldl`.
        B: `(..., n, m)`.
        size: as for `ldl`: compiled code returns non-finite rows where a pivot is within rounding
            error of zero. None: pivots are not checked.
    """
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
    solution = stack(x, axis=-2)
    return solution if size is None else _refused(solution, d, size)


def forward_substitute(L: Array, B: Array) -> Array:
    """Return L⁻¹B for unit lower triangular L `(..., n, n)` and B `(..., n, m)`."""
    y: list[Array] = []
    for i in range(L.shape[-1]):
        row = B[..., i, :]
        for k in range(i):
            row = row - L[..., i, k, None] * y[k]
        y.append(row)
    return stack(y, axis=-2)


def back_substitute(L: Array, B: Array) -> Array:
    """Return L⁻ᵀB for unit lower triangular L `(..., n, n)` and B `(..., n, m)`."""
    n = L.shape[-1]
    x = [B[..., i, :] for i in range(n)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - L[..., k, i, None] * x[k]
    return stack(x, axis=-2)


def ltdl(A: Array, size: Array | None = None) -> tuple[Array, Array]:
    """Return L (unit lower triangular) and d with A = Lᵀ diag(d) L, for symmetric A.

    Like `ldl`, but from the last row to the first. If A has entries only between a row and its
    ancestors, as for a tree numbered outward, there is no fill-in: L is as sparse as A.

    Args:
        A: `(..., n, n)`, symmetric.
        size: `(..., n, n)`, magnitude of A's entries before cancellation.
    """
    L, d = ldl(_turned(A), None if size is None else _turned(size))
    return np.swapaxes(_turned(L), -1, -2), d[..., ::-1]


def ltdl_solve(factors: tuple[Array, Array], B: Array, size: Array | None = None) -> Array:
    """Return A⁻¹B from the factors of `ltdl`; B is `(..., n, m)`, for `size` see `ldl_solve`."""
    L, d = factors
    turned = _turned(np.swapaxes(L, -1, -2)), d[..., ::-1]
    size = None if size is None else _turned(size)
    return ldl_solve(turned, B[..., ::-1, :], size)[..., ::-1, :]


def reciprocal_pivots(d: Array, size: Array) -> Array:
    """Return 1/d `(..., n)`; in compiled code not finite where a pivot is zero to rounding.

    Args:
        d: pivots of `ldl` or `ltdl`, `(..., n)`.
        size: `(..., n, n)`, see `ldl`.
    """
    return _refused((1.0 / d)[..., None], d, size)[..., 0]


def ltdl_inverse(factors: tuple[Array, Array], size: Array | None = None) -> Array:
    """Return A⁻¹ `(..., n, n)` from the factors of `ltdl`, exactly symmetric."""
    full = ltdl_solve(factors, np.eye(factors[1].shape[-1]), size)
    return mirror(np.swapaxes(full, -1, -2))  # the upper triangle is cheaper to compute


def _turned(A: Array) -> Array:
    """Return A with its rows and columns in the opposite order."""
    return A[..., ::-1, ::-1]


def solve(A: Array, B: Array) -> Array:
    """Return A⁻¹B for symmetric A `(..., n, n)` and B `(..., n, m)`."""
    return ldl_solve(ldl(A), B, A)


def inverse(A: Array) -> Array:
    """Return A⁻¹ for symmetric A `(..., n, n)`."""
    return solve(A, np.eye(A.shape[-1]))


def congruence(X: Array, A: Array) -> Array:
    """Return Xᵀ A X for symmetric A `(..., n, n)` and X `(..., n, m)`, exactly symmetric."""
    return mirror(np.swapaxes(X, -1, -2) @ (A @ X))


def mirror(A: Array) -> Array:
    """Return the lower triangle of A `(..., n, n)` with its mirror image as the upper.

    For a matrix that is symmetric up to rounding. In a traced graph the upper triangle is then dead
    code and is eliminated.
    """
    n = A.shape[-1]
    rows = [stack([A[..., max(i, j), min(i, j)] for j in range(n)]) for i in range(n)]
    return stack(rows, axis=-2)


def uncancelled(S: Array, diagonal: Array) -> Array:
    """Return Σ_i S_ij² abs(d_i), `(..., k)`: the magnitude of SᵀAS's diagonal before cancellation.

    For symmetric, positive semi-definite A it is at least 1/n of that diagonal.

    Args:
        S: `(..., n, k)`.
        diagonal: d, the diagonal of A, `(..., n)`.
    """
    return np.sum(S * S * absolute(diagonal)[..., None], axis=-2)


def _checked_pivot(pivot: Array, A: Array, size: Array, i: int) -> Array:
    """Return the pivot if it can be divided by, or raise; symbolic pivots are not checked."""
    rounding = PIVOT_ROUNDING * absolute(size[..., i, i])
    if is_symbolic(A) or is_symbolic(asarray(rounding)):
        return pivot
    if not np.all(np.isfinite(pivot) & (np.abs(pivot) > rounding)):
        raise SingularMatrix(SINGULAR)
    return pivot


def _refused(x: Array, d: Array, size: Array) -> Array:
    """Return rows of a solution, infinite where the row's pivot is zero to rounding.

    Float matrices with such a pivot were refused before. A symbolic pivot itself is left unchanged,
    so that terms that cancel with it still fold away.

    Args:
        x: `(..., n, m)`.
        d: the pivots, `(..., n)`.
        size: `(..., n, n)`, see `ldl`.
    """
    if not is_symbolic(d):
        return x
    sizes = stack([size[..., i, i] for i in range(d.shape[-1])])
    return np.frompyfunc(_refused_number, 3, 1)(x, d[..., None], sizes[..., None])


def _refused_number(x: Any, pivot: Any, size: Any) -> Any:
    x, pivot, size = casadi.SX(x), casadi.SX(pivot), casadi.fabs(casadi.SX(size))
    if pivot.is_constant() and size.is_constant():
        if not abs(float(pivot)) > PIVOT_ROUNDING * float(size):
            raise SingularMatrix(SINGULAR)
        return x
    if casadi.is_equal(casadi.fabs(pivot), size, 2):
        return x  # no cancellation: only zero is singular, and divides to infinity by itself
    return casadi.if_else(casadi.fabs(pivot) <= PIVOT_ROUNDING * size, casadi.inf, x)
