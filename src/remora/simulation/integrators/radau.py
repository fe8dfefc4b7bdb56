"""Radau IIA of order 5, an implicit method for stiff equations [HW96, sections IV.5 and IV.8].

The step is the polynomial of degree three through y that satisfies the differential equation at the
Radau points c of the step (collocation). With the stages Zᵢ = y(t + cᵢh) - y,

    Z = h A F(Z),    Fᵢ = f(t + cᵢh, y + Zᵢ),    Aᵢⱼ = ∫₀^cᵢ ℓⱼ,

ℓⱼ the Lagrange polynomials of c. The last point is the end of the step, so that y(t + h) = y + Z₃:
the method is stiffly accurate, and modes that decay faster than the step are damped at once. The
Newton iteration with the Jacobian J at the start decouples, by the eigenvectors of A⁻¹, into a real
and a complex system of n equations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from remora.algebra.array_ops import Array
from remora.simulation.integrators.step_result import StepResult, norm

#: Order of the solution, and of the embedded formula for the error estimate.
ORDER, ERROR_ORDER = 5, 3
#: The Newton iteration ends when the remaining error is this fraction of the tolerance.
ENOUGH = 1e-2
#: Maximum number of Newton iterations; if more are needed, a shorter step is cheaper.
MOST_ITERATIONS = 10
#: Stagnating iterations have reached the rounding error of f if they are as small as this.
NEAR = 0.1
#: Rounding error of y, relative to it.
ROUNDING = 4.0 * float(np.finfo(float).eps)


class ImplicitSystem(Protocol):
    """A differential equation ẏ = f(t, y) with its Jacobian with respect to y."""

    def rates(self, t: float, y: Array) -> Array:
        """Return f `(n,)`."""
        ...

    def jacobian(self, t: float, y: Array) -> Array:
        """Return ∂f/∂y `(n, n)`."""
        ...


class Collocation(NamedTuple):
    """Coefficients of the method, all derived from its points.

    Attributes:
        c: the points, `(3,)`.
        inverse: A⁻¹, `(3, 3)`.
        gamma: the real eigenvalue of A⁻¹.
        mu: one of its two complex ones.
        real: row of T⁻¹ and column of T, A⁻¹ = T Λ T⁻¹, for the real eigenvalue, `(2, 3)`.
        pair: the same for the complex one, `(2, 3)`.
        powers: P with y(t + θh) - y = [θ, θ², θ³] P Z, `(3, 3)`.
        error: e with the error (γ/h - J)⁻¹ (f + eᵀZ/h), `(3,)`: the difference between f at the
            start and the polynomial's derivative there.
    """

    c: Array
    inverse: Array
    gamma: float
    mu: complex
    real: Array
    pair: Array
    powers: Array
    error: Array


def _collocation(c: Array) -> Collocation:
    """Return the coefficients of the method that collocates at c.

    With V = [cᵢᵏ], k = 0, 1, 2: A V = [cᵢᵏ⁺¹/(k+1)]. The step is compared with one of order 3 that
    also uses f(t), with weight 1/γ: the differences b̂ - b of the other weights satisfy
    (b̂ - b)ᵀ V = [-1/γ, 0, 0], and hF = A⁻¹Z [HW96, section IV.8].
    """
    k = np.arange(3)
    V, shifted = c[:, None] ** k, c[:, None] ** (k + 1)
    inverse = V @ np.linalg.inv(shifted / (k + 1))
    values, T = np.linalg.eig(inverse)
    rows = np.linalg.inv(T)
    turning: Array = np.imag(values)
    r, z = int(np.argmin(np.abs(turning))), int(np.argmax(turning))
    return Collocation(
        c=c,
        inverse=inverse,
        gamma=float(values[r].real),
        mu=complex(values[z]),
        real=np.real(np.stack([rows[r], T[:, r]])),
        pair=np.stack([rows[z], T[:, z]]),
        powers=np.linalg.inv(shifted),
        error=-np.linalg.inv(V)[0] @ inverse,
    )


#: The points are the zeros of d²/dx² [x² (x - 1)³] [HW96, section IV.5].
RADAU = _collocation(np.array([(4.0 - math.sqrt(6.0)) / 10.0, (4.0 + math.sqrt(6.0)) / 10.0, 1.0]))


def attempt(
    system: ImplicitSystem,
    t: float,
    y: Array,
    rate: Array,
    h: float,
    scale: Array,
    again: bool = False,
) -> StepResult:
    """Return one step of Radau IIA; its error is infinite if the Newton iteration diverges.

    Args:
        system: has `rates(t, y)` and `jacobian(t, y)`.
        t: time, s.
        y: state, `(n,)`.
        rate: system.rates(t, y).
        h: step size, s.
        scale: error tolerance of each component, `(n,)`.
        again: whether this is the first step after a discontinuity, or a retry after a rejected
            step: then a large error is estimated a second time, see `_error`.
    """
    J, one = system.jacobian(t, y), np.eye(y.size)
    Z = None
    with np.errstate(over="ignore", invalid="ignore"):  # from diverging iterations
        try:
            real = np.linalg.inv(RADAU.gamma / h * one - J)
            pair = np.linalg.inv(RADAU.mu / h * one - J)
            Z = _stages(system, t, y, h, scale, real, pair)
        except np.linalg.LinAlgError:
            real = one
    found = np.zeros((3, y.size)) if Z is None else Z
    error = math.inf
    if Z is not None:
        error = _error(rate, Z, h, scale, real, functools.partial(system.rates, t), y, again)
    coefficients: Array = RADAU.powers @ found

    def dense(theta: Array) -> Array:
        return theta[:, None] ** np.arange(1, 4) @ coefficients

    def fastest() -> Array:
        met = np.vstack([rate, RADAU.inverse @ found / h])
        return np.max(np.abs(met), axis=0)

    return StepResult(found[2], error, dense, fastest)


def _stages(
    system: ImplicitSystem, t: float, y: Array, h: float, scale: Array, real: Array, pair: Array
) -> Array | None:
    """Return Z `(3, n)` by Newton iteration from zero; None if it does not converge.

    Args:
        system: the differential equation.
        t: time, s.
        y: state, `(n,)`.
        h: step size, s.
        scale: error tolerance of each component, `(n,)`.
        real: (γ/h - J)⁻¹, `(n, n)`.
        pair: (μ/h - J)⁻¹, `(n, n)`, complex.
    """
    Z: Array = np.zeros((3, y.size))
    scales, last = np.tile(scale, 3), math.inf
    for left in reversed(range(MOST_ITERATIONS)):
        F = np.stack([system.rates(t + c * h, y + z) for c, z in zip(RADAU.c, Z, strict=True)])
        rest = F - RADAU.inverse @ Z / h
        turned: Array = np.outer(RADAU.pair[1], pair @ (RADAU.pair[0] @ rest))
        step: Array = np.outer(RADAU.real[1], real @ (RADAU.real[0] @ rest))
        step = step + 2.0 * np.real(turned)
        size = norm(step.ravel(), scales)
        if not math.isfinite(size):
            return None
        Z = Z + step
        rounding = ROUNDING * norm(np.abs(y) + np.abs(Z[2]), scale)
        ratio = size / last
        if size <= rounding or (ratio >= 1.0 and size <= NEAR):  # stagnation
            return Z
        if ratio >= 1.0:
            return None
        if last < math.inf:
            ahead = size * ratio / (1.0 - ratio)
            if ahead <= max(ENOUGH, rounding):
                return Z
            if ahead * ratio**left > max(ENOUGH, rounding):
                return None
        last = size
    return None


def _error(
    rate: Array,
    Z: Array,
    h: float,
    scale: Array,
    real: Array,
    rates: Callable[[Array], Array],
    y: Array,
    again: bool,
) -> float:
    """Return the norm of the estimated error, (γ/h - J)⁻¹ (f + eᵀZ/h) [HW96, eqs. IV.8.19, 8.20].

    For modes that a step damps at once, this estimate does not decrease with the step size. With f
    at y plus the estimate in place of f it does, but is too small where the solution is smooth: it
    is used after discontinuities and rejected steps only.
    """
    compared = RADAU.error @ Z / h
    estimate = real @ (rate + compared)
    size = norm(estimate, scale)
    if again and size >= 1.0:
        with np.errstate(over="ignore", invalid="ignore"):
            size = norm(real @ (rates(y + estimate) + compared), scale)
    return size if math.isfinite(size) else math.inf
