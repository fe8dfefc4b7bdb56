"""Determinant and adjugate of small matrices without division: defined at singular matrices, too.

By Laplace's expansion in blocks: the minors of the first i rows and those of the last n - i - 1
rows, for all sets of columns, give the cofactors of row i. About n 2ⁿ multiplications in all.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np

from remora.algebra.array_ops import Array, asarray, stack
from remora.errors import ShapeError

Columns: TypeAlias = tuple[int, ...]
Minors: TypeAlias = list[dict[Columns, Array]]
#: Largest matrix: 2ⁿ minors are kept.
LARGEST = 10


def adjugate(A: Array) -> tuple[Array, Array]:
    """Return adj(A) `(..., n, n)` and det(A) `(...)`, with A adj(A) = det(A) 1.

    Args:
        A: `(..., n, n)`, n ≤ 10.
    """
    n = int(A.shape[-1])
    if A.shape[-2] != n or not 0 < n <= LARGEST:
        raise ShapeError(f"adjugate needs a square matrix of at most {LARGEST} rows, not {A.shape}")
    every: list[int] = [*range(n)]
    first, last = _minors(A, every), _minors(A, every[::-1])
    cofactors = [
        [_cofactor(n, i, j, first[i], last[n - 1 - i]) for j in range(n)] for i in range(n)
    ]
    columns = [stack(row) for row in cofactors]
    return stack(columns, axis=-1), asarray(first[n][tuple(range(n))])


def _minors(A: Array, rows: list[int]) -> Minors:
    """Return, by number k of rows taken in this order, the minors of these rows by columns.

    Rows are in increasing order within a minor, whichever end they are taken from.
    """
    n = A.shape[-1]
    empty: dict[Columns, Array] = {(): np.ones(A.shape[:-2])}
    found: Minors = [empty]
    upward = rows[0] > 0  # a new row is the first one of its minor
    for k, i in enumerate(rows, start=1):
        level: dict[Columns, Array] = {}
        for chosen in combinations(range(n), k):
            total: Array | None = None
            for place, j in enumerate(chosen):
                rest = chosen[:place] + chosen[place + 1 :]
                odd = place % 2 if upward else (k - 1 - place) % 2
                term = A[..., i, j] * found[-1][rest]
                term = -term if odd else term
                total = term if total is None else total + term
            assert total is not None
            level[chosen] = total
        found.append(level)
    return found


def _cofactor(
    n: int, i: int, j: int, above: dict[Columns, Array], below: dict[Columns, Array]
) -> Array:
    """Return (-1)^(i+j) times the minor without row i and column j."""
    others = [c for c in range(n) if c != j]
    total: Array | None = None
    for places in combinations(range(n - 1), i):
        left = tuple(others[p] for p in places)
        right = tuple(c for c in others if c not in left)
        odd = (sum(places) - i * (i - 1) // 2 + i + j) % 2
        term = above[left] * below[right]
        term = -term if odd else term
        total = term if total is None else total + term
    assert total is not None
    return total
