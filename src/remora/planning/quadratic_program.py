"""Least squares under linear inequalities with strict priorities, by quadratic programs (DAQP).

Level k minimizes ‖W(J u - b)‖² + δ‖u‖² among the u that satisfy the inequalities and leave the
higher levels' J u as they are: u = u_{k-1} + N z, N a basis of the null space of the higher levels'
rows. δ is the damping times the largest diagonal entry of the least-squares matrix.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue

# DAQP ships no type stubs.
daqp: Any = importlib.import_module("daqp")

#: Singular values below this fraction of the largest are directions that a level does not use.
NULL = 1e-7
#: Feasibility tolerance of the solver.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Level:
    """The rows of one priority.

    Attributes:
        J: `(m, n)`.
        b: wanted J u, `(m,)`.
        weights: `(m,)`.
    """

    J: Array
    b: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Inequalities:
    """lower ≤ A u ≤ upper, with names for each row.

    Attributes:
        A: `(k, n)`.
        lower: `(k,)`.
        upper: `(k,)`.
        names: what each lower and each upper bound stands for.
    """

    A: Array
    lower: Array
    upper: Array
    names: tuple[tuple[str, str], ...]


def solve_levels(levels: Sequence[Level], limits: Inequalities, damping: float) -> Array:
    """Return u `(n,)`.

    Raises:
        InvalidValue: if no u satisfies the inequalities; the message names those that are violated
            by the last iterate.
    """
    n = limits.A.shape[1]
    u, N = np.zeros(n), np.eye(n)
    for k, level in enumerate(levels):
        weighted = level.weights[:, None] * (level.J @ N)
        wanted = level.weights * (level.b - level.J @ u)
        step = _bounded(weighted, wanted, u, N, limits, damping)
        u = u + N @ step
        if k + 1 < len(levels):
            N = N @ _null_space(weighted)
            if N.shape[1] == 0:
                break
    return u


def _bounded(J: Array, b: Array, u: Array, N: Array, limits: Inequalities, damping: float) -> Array:
    """Return the z of one level: least ‖J z - b‖² + δ‖u + N z‖² within the limits."""
    H = J.T @ J
    delta = damping * max(float(np.max(np.diagonal(H), initial=0.0)), 1e-12)
    H = H + delta * np.eye(len(H))
    f = -(J.T @ b) + delta * (N.T @ u)
    free = -np.linalg.solve(H, f)
    value = limits.A @ u
    moved = value + limits.A @ (N @ free)
    if np.all((moved >= limits.lower) & (moved <= limits.upper)):
        return free
    # The last level's solution may be at a bound, and beyond it by rounding.
    first = not np.any(u)
    lower = limits.lower - value if first else np.minimum(limits.lower - value, 0.0)
    upper = limits.upper - value if first else np.maximum(limits.upper - value, 0.0)
    scale = 1.0 / np.maximum(np.linalg.norm(limits.A @ N, axis=1), 1e-300)
    rows = np.ascontiguousarray(scale[:, None] * (limits.A @ N))
    z, _, flag, _ = daqp.solve(
        H, f, rows, scale * upper, scale * lower, np.zeros(len(rows), dtype=np.int32),
        primal_tol=TOLERANCE,
    )  # fmt: skip
    if flag != 1 or not np.all(np.isfinite(z)):
        _refuse(limits, u + N @ np.asarray(z, dtype=float), int(flag))
    return np.asarray(z, dtype=float)


def _refuse(limits: Inequalities, u: Array, flag: int) -> None:
    over = np.maximum(limits.A @ u - limits.upper, limits.lower - limits.A @ u)
    over_upper = limits.A @ u > limits.upper
    names = [
        pair[int(up)] or pair[1 - int(up)]
        for pair, x, up in zip(limits.names, over, over_upper, strict=True)
        if not x <= TOLERANCE
    ]
    raise InvalidValue(
        f"no motion satisfies all limits (DAQP exit {flag}); in conflict: "
        f"{', '.join(names) or 'unknown'}"
    )


def _null_space(J: Array) -> Array:
    """Return an orthonormal basis `(n, k)` of the null space of J."""
    if 0 in J.shape or not np.any(J):
        return np.eye(J.shape[1])
    _, sizes, V = np.linalg.svd(J)
    rank = int(np.sum(sizes > NULL * sizes[0]))
    return V[rank:].T
