"""Consistency of estimates with their covariance, and the noise of signals by averaging time."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, ShapeError, SingularMatrix
from remora.model.arguments import count, number, positive
from remora.model.numbers import finite


def nees(error: ArrayLike, covariance: ArrayLike) -> Array:
    """Return eᵀ P⁻¹ e, `(...)`: the normalized estimation error squared [BLK01].

    Its mean over runs is n for a filter whose covariance is right.

    Args:
        error: true less estimated state, `(..., n)`.
        covariance: P of the filter, `(..., n, n)`.
    """
    e, P = finite("error", error).astype(float), finite("covariance", covariance).astype(float)
    if P.ndim < 2 or e.ndim < 1 or P.shape[-2:] != (e.shape[-1], e.shape[-1]):
        raise ShapeError(f"covariance must be (..., n, n) for (..., n), not {P.shape}, {e.shape}")
    try:
        weighted = np.linalg.solve(P, e[..., None])[..., 0]
    except np.linalg.LinAlgError:
        raise SingularMatrix("covariance is singular: it has no inverse") from None
    except ValueError:
        told = f"the leading axes of {e.shape} and of the covariance {P.shape} do not fit together"
        raise ShapeError(told) from None
    return (e * weighted).sum(axis=-1)


def chi_square_bounds(
    freedoms: int, runs: int = 1, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the bounds of the mean of `runs` chi-square numbers with n degrees of freedom.

    Args:
        freedoms: n.
        runs: number of independent runs.
        confidence: probability that the mean lies between the bounds.
    """
    freedoms, runs = count("freedoms", freedoms), count("runs", runs)
    p = number("confidence", confidence, "0.95")
    if not 0.0 < p < 1.0:
        raise InvalidValue(f"confidence must be between 0 and 1, not {confidence}")
    tail = 0.5 * (1.0 - p)
    stats: Any = importlib.import_module("scipy.stats")  # late: few programs need it
    low, high = (float(stats.chi2.ppf(p, freedoms * runs)) / runs for p in (tail, 1.0 - tail))
    return low, high


@dataclass(frozen=True)
class Consistency:
    """Mean of NEES or NIS over runs, with the bounds in which it lies for a consistent filter.

    Attributes:
        mean: at each time, `(n,)`.
        low: lower bound.
        high: upper bound.
        confidence: probability that the mean at one time lies within the bounds.
    """

    mean: Array
    low: float
    high: float
    confidence: float

    @property
    def inside(self) -> float:
        """Fraction of the times at which the mean lies within the bounds."""
        return float(np.mean((self.mean >= self.low) & (self.mean <= self.high)))

    @property
    def consistent(self) -> bool:
        """Whether the mean lies within the bounds at no fewer times than confidence - 0.05."""
        return self.inside >= self.confidence - 0.05

    def __str__(self) -> str:
        """Return the verdict with its numbers."""
        side = "within"
        if not self.consistent:
            side = "above" if float(np.mean(self.mean)) > self.high else "below"
        verdict = "consistent" if self.consistent else f"not consistent, its mean is {side} them"
        return (
            f"within [{self.low:.3f}, {self.high:.3f}] at {100 * self.inside:.0f} % of the times, "
            f"mean {float(np.mean(self.mean)):.3f}: {verdict}"
        )


def consistency(values: ArrayLike, freedoms: int, confidence: float = 0.95) -> Consistency:
    """Return whether NEES or NIS over runs is that of a consistent filter.

    Args:
        values: of each run at each time, `(runs, n)`.
        freedoms: number of states (NEES) or of measurements (NIS).
        confidence: of the bounds.
    """
    x = finite("values", values).astype(float)
    if x.ndim != 2 or 0 in x.shape:
        raise ShapeError(f"values must be (runs, n), not {x.shape}")
    low, high = chi_square_bounds(freedoms, len(x), confidence)
    return Consistency(x.mean(axis=0), low, high, confidence)


def allan_deviation(signal: ArrayLike, sample_time: float, points: int = 40) -> tuple[Array, Array]:
    """Return averaging times τ and overlapping Allan deviations of a rate, `(m,)` and `(..., m)`.

    σ²(τ) = mean (θ_{k+2j} - 2 θ_{k+j} + θ_k)²/(2 τ²), with θ the integral of the signal and
    τ = j h [IEEE952]. White noise of standard deviation s gives s √(h/τ), a random walk of
    intensity u gives u √(τ/3).

    Args:
        signal: the rate at equal intervals, `(..., n)`, n ≥ 3.
        sample_time: h, s.
        points: number of averaging times, from h to n h/2, in equal ratios.
    """
    x = finite("signal", signal).astype(float)
    if x.ndim < 1 or x.shape[-1] < 3:
        raise ShapeError(f"signal must be (..., n) with n of 3 or more, not {x.shape}")
    h, points = positive("sample_time", sample_time), count("points", points)
    n = x.shape[-1]
    angle = np.concatenate([np.zeros((*x.shape[:-1], 1)), np.cumsum(x, axis=-1) * h], axis=-1)
    powers = [k / max(points - 1, 1) for k in range(points)]
    steps = np.unique([int((n // 2) ** power + 1e-9) for power in powers])
    found: list[Array] = []
    for j in steps:
        second = angle[..., 2 * j :] - 2.0 * angle[..., j:-j] + angle[..., : -2 * j]
        found.append(np.sqrt(0.5 * np.mean(second * second, axis=-1)) / (j * h))
    return steps * h, np.stack(found, axis=-1)
