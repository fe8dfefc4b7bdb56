"""The block-sparse saddle-point (KKT) system of bodies and constraints, by Schur complement.

    [S11 S12; S21 0] [y; T] = [B1; B2]    [VT18, eqs. 50, 57-60]

S11 has one block per body, S12 and S21 one for each body that a joint connects. The Schur
complement couples only joints that share a body. Eliminated from the leaves of the tree inward, it
has no fill-in, so that the cost is linear in the number of bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, orthogonal, vector
from remora.algebra.array_ops import Array, concatenate, stack
from remora.errors import InvalidValue

#: The place of the rows of closed loops among the joints: before the first, thus eliminated last.
LOOP = -1
#: Square of the sine below which a row of closed loops counts as dependent on the earlier ones. Of
#: 250 random robots rounding leaves up to 1.4e-12 for dependent rows, independent ones have 1.5e-6.
DEPENDENT_SQUARE = 1e-10


class LoopRows(NamedTuple):
    """The rows and columns that closed loops add to S.

    Attributes:
        S12: by body, `(..., n, m)`.
        S21: by body, `(..., m, n)`.
        B2: `(..., m)`.
        dependent: see `orthogonal.solve_semidefinite`.
    """

    S12: dict[int, Array]
    S21: dict[int, Array]
    B2: Array
    dependent: Array | float = DEPENDENT_SQUARE


@dataclass(frozen=True)
class SaddlePointSystem:
    """The system's blocks.

    Attributes:
        S11: a square block per body.
        S11_inverse: their inverses.
        S12: by (body, joint), `(..., n, r_j)`.
        S21: by (joint, body), `(..., r_j, n)`.
        B1: per body, `(..., n)`.
        B2: per joint, `(..., r_j)`; empty where a joint constrains nothing.
    """

    S11: list[Array]
    S11_inverse: list[Array]
    S12: dict[tuple[int, int], Array]
    S21: dict[tuple[int, int], Array]
    B1: list[Array]
    B2: list[Array]

    def dense(self) -> tuple[Array, Array]:
        """Return S and [B1; B2] as dense arrays [VT18, eq. 50], `(..., n, n)` and `(..., n)`."""
        n, r = [b.shape[-1] for b in self.B1], [b.shape[-1] for b in self.B2]
        rows: list[Array] = []
        for i, block in enumerate(self.S11):
            own = [block if k == i else np.zeros((n[i], n[k])) for k in range(len(n))]
            rows.append(concatenate(own + self._placed(self.S12, i, n[i], r)))
        for j in range(len(r)):
            if r[j] > 0:
                own = self._placed(self.S21, j, r[j], n)
                rows.append(concatenate([*own, np.zeros((r[j], sum(r)))]))
        return concatenate(rows, trailing=2), concatenate([*self.B1, *self.B2])

    @staticmethod
    def _placed(
        blocks: dict[tuple[int, int], Array], row: int, height: int, widths: list[int]
    ) -> list[Array]:
        """Return the blocks of a row, zeros for missing blocks."""
        return [
            blocks[row, k] if (row, k) in blocks else np.zeros((height, width))
            for k, width in enumerate(widths)
        ]


def solve(system: SaddlePointSystem) -> tuple[list[Array], list[Array]]:
    """Return y per body and T per joint [VT18, eq. 60].

    T = (S21 S11⁻¹ S12)⁻¹ (S21 S11⁻¹ B1 - B2),    y = S11⁻¹ (B1 - S12 T).
    """
    return solve_with_loops(system, None)[:2]


def solve_with_loops(
    system: SaddlePointSystem, loops: LoopRows | None
) -> tuple[list[Array], list[Array], Array]:
    """Return y per body, T per joint, and the multipliers of closed loops, `(..., m)`.

    The rows of closed loops are eliminated last. What is left of them, the mobility of the loops,
    may be singular: then the multipliers of smallest Euclidean norm are returned.
    """
    S12, S21 = dict(system.S12), dict(system.S21)
    h = {j: -b for j, b in enumerate(system.B2)}
    if loops is not None:
        S12 |= {(i, LOOP): block for i, block in loops.S12.items()}
        S21 |= {(LOOP, i): block for i, block in loops.S21.items()}
        h[LOOP] = -loops.B2
    touched: dict[int, list[int]] = {}
    for i, j in S12:
        touched.setdefault(i, []).append(j)
    G: dict[tuple[int, int], Array] = {}
    for i, around in touched.items():
        for j in around:
            row = S21[j, i] @ system.S11_inverse[i]
            h[j] = h[j] + vector.apply(row, system.B1[i])
            for k in around:
                block = row @ S12[i, k]
                G[j, k] = G[j, k] + block if (j, k) in G else block
    T = _block_solve(G, h, DEPENDENT_SQUARE if loops is None else loops.dependent)
    y: list[Array] = []
    for i, (inverse, b) in enumerate(zip(system.S11_inverse, system.B1, strict=True)):
        rest = b
        for j in touched.get(i, []):
            rest = rest - vector.apply(S12[i, j], T[j])
        y.append(vector.apply(inverse, rest))
    return y, [T[j] for j in range(len(system.B2))], T.get(LOOP, np.zeros(0))


def solve_known(system: SaddlePointSystem, y: list[Array]) -> list[Array]:
    """Return T per joint for known y, from the leaves inward: S12 T = B1 - S11 y.

    The wrench of body i's own joint follows from those of the joints mounted on it [VT18, eqs. 65,
    68]. Every joint must be prescribed, so that its map is square.
    """
    rest = [
        b - vector.apply(block, known)
        for b, block, known in zip(system.B1, system.S11, y, strict=True)
    ]
    proximal = {j: (i, block) for (i, j), block in system.S12.items() if i != j}
    T: dict[int, Array] = {}
    for i in reversed(range(len(rest))):
        own = system.S12[i, i]
        back = vector.transpose(own)
        T[i] = linear.solve(back @ own, vector.apply(back, rest[i])[..., None])[..., 0]
        if i in proximal:
            k, block = proximal[i]
            rest[k] = rest[k] - vector.apply(block, T[i])
    return [T[i] for i in range(len(rest))]


def _block_solve(
    G: dict[tuple[int, int], Array], h: dict[int, Array], dependent: Array | float
) -> dict[int, Array]:
    """Solve G T = h for symmetric block-sparse G, eliminating the last joint first, loops last."""
    near: dict[int, set[int]] = {}
    for j, k in G:
        if k < j:
            near.setdefault(j, set()).add(k)
    size = G.get((LOOP, LOOP))
    factors: dict[int, tuple[Array, Array]] = {}
    for j in sorted({j for j, _ in G} - {LOOP}, reverse=True):
        factors[j] = _factor(G[j, j], j)
        inward = sorted(near.get(j, ()))
        for k in inward:
            W = vector.transpose(linear.ldl_solve(factors[j], G[j, k]))
            h[k] = h[k] - vector.apply(W, h[j])
            for m in inward:
                fill = W @ G[j, m]
                G[k, m] = G[k, m] - fill if (k, m) in G else -fill
                if m < k:
                    near.setdefault(k, set()).add(m)
    T = dict(h)
    if size is not None:  # minus the mobility of the loops, negative semi-definite
        diagonal = stack([-size[..., i, i] for i in range(size.shape[-1])])
        T[LOOP] = orthogonal.solve_semidefinite(-G[LOOP, LOOP], -h[LOOP], diagonal, dependent)
    for j in sorted(factors):
        rest = h[j]
        for k in near.get(j, ()):
            rest = rest - vector.apply(G[j, k], T[k])
        T[j] = linear.ldl_solve(factors[j], rest[..., None], G[j, j])[..., 0]
    return T


def _factor(block: Array, joint: int) -> tuple[Array, Array]:
    try:
        return linear.ldl(block)  # symmetric up to rounding; the lower triangle is read
    except InvalidValue:
        raise InvalidValue(f"S is singular at joint {joint}") from None
