"""Statistics of campaigns: success rates, percentiles, and which dispersion drives which output."""

from __future__ import annotations

import math

import numpy as np

from remora.algebra.array_ops import Array

#: Half-width of a 95 % interval of a normal distribution, in standard deviations.
Z95 = 1.959963984540054


def wilson(successes: int, runs: int, z: float = Z95) -> tuple[float, float]:
    """Return Wilson's interval of a success probability [W27].

        (p + z²/2n ± z √(p (1 - p)/n + z²/4n²)) / (1 + z²/n)

    Args:
        successes: number of successes.
        runs: number of runs n; at least one.
        z: half-width in standard deviations; default: 95 %.
    """
    p, n = successes / runs, float(runs)
    centre = p + z * z / (2.0 * n)
    half = z * math.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    scale = 1.0 + z * z / n
    low = 0.0 if successes == 0 else (centre - half) / scale
    return low, 1.0 if successes == runs else (centre + half) / scale


def rank_correlation(x: Array, y: Array) -> float:
    """Return Spearman's rank correlation of two samples; NaN if one of them is constant.

    Args:
        x: `(n,)`; pairs with a number that is not finite are left out.
        y: `(n,)`.
    """
    known = np.isfinite(x) & np.isfinite(y)
    a, b = (_ranks(values[known]) for values in (x, y))
    if a.size < 3:
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0.0 else math.nan


def _ranks(x: Array) -> Array:
    """Return ranks from 1, equal numbers with the mean of theirs."""
    order = np.argsort(x, kind="stable")
    _, inverse, counts = np.unique(x[order], return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean = last - (counts - 1) / 2.0
    ranks = np.empty(x.size)
    ranks[order] = mean[inverse]
    return ranks


def first_order_index(x: Array, y: Array) -> float:
    """Return the first-order Sobol index of y with respect to x, estimated from given samples.

        S = Var(E[y | x]) / Var(y)

    The conditional means are those of √n classes of x with equal counts; the part of their
    variance that the finite classes add is subtracted. The distribution of x does not matter, but
    it must not depend on the other inputs [PBS13].

    Args:
        x: input, `(n,)`; pairs with a number that is not finite are left out.
        y: output, `(n,)`.

    Returns:
        An estimate in [0, 1]; NaN for fewer than 30 samples or a constant output.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n = x.size
    whole = float(np.var(y)) if n else 0.0
    if n < 30 or whole <= 1e-24 * max(1e-300, float(np.mean(y * y))) or np.ptp(x) == 0.0:
        return math.nan
    classes = np.array_split(y[np.argsort(x, kind="stable")], max(4, min(100, math.isqrt(n) // 2)))
    mean = float(np.mean(y))
    between = sum(c.size * (float(np.mean(c)) - mean) ** 2 for c in classes) / n
    within = sum(c.size * float(np.var(c)) for c in classes) / n
    noise = within * len(classes) / n
    return min(1.0, max(0.0, (between - noise) / whole))
