"""Waveforms: low-pass filter, differentiation, and measures of how similar two of them are."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.errors import InvalidValue, ShapeError
from remora.model.numbers import finite


def low_pass(
    x: ArrayLike, cutoff: float, rate: float, order: int = 2, zero_phase: bool = True
) -> Array:
    """Return samples filtered by a Butterworth low-pass [SA24, section V].

    Args:
        x: samples along the first axis, `(n, ...)`.
        cutoff: frequency at which one pass of the filter has lost half of the power, Hz.
        rate: samples per second, Hz.
        order: of the filter.
        zero_phase: filter forward and backward, without delay, for data that is complete; otherwise
            forward only, as in a running measurement. It starts in the steady state of the first
            sample.
    """
    x = _samples(x)
    if not 0.0 < cutoff < 0.5 * rate:
        raise InvalidValue(f"cutoff={cutoff!r} Hz; it must lie between 0 and {0.5 * rate:g} Hz")
    if order < 1:
        raise InvalidValue(f"order={order!r} of a filter; it must be at least 1")
    # SciPy's signal processing takes long to import and is needed here only.
    signal: Any = importlib.import_module("scipy.signal")
    sections = signal.butter(order, cutoff, fs=rate, output="sos")
    if zero_phase:
        try:
            return signal.sosfiltfilt(sections, x, axis=0)
        except ValueError:
            raise ShapeError(
                f"{len(x)} samples are too few for a filter of order {order}"
            ) from None
    start = signal.sosfilt_zi(sections).reshape(-1, 2, *(1,) * (x.ndim - 1)) * x[:1]
    return signal.sosfilt(sections, x, axis=0, zi=start)[0]


def differentiate(x: ArrayLike, step: float) -> Array:
    """Return the derivative of samples by Richardson extrapolation of central differences.

    ẋ_k = (4 D_h - D_2h) / 3 with D_h = (x_{k+1} - x_{k-1}) / 2h: of fourth order, error h⁴ x⁽⁵⁾/30.
    At the two samples next to each end, differences of the same order to one side.

    Args:
        x: samples along the first axis, `(n, ...)`, at least five.
        step: time between samples, s.
    """
    x = _samples(x)
    if len(x) < 5:
        raise ShapeError(f"differentiate needs at least 5 samples, not {len(x)}")
    if not step > 0.0:
        raise InvalidValue(f"step={step!r}; the time between samples must be positive")
    fine = (x[3:-1] - x[1:-3]) / 2.0
    coarse = (x[4:] - x[:-4]) / 4.0
    inside = (4.0 * fine - coarse) / 3.0
    first = np.tensordot(_ONE_SIDED, x[:5], axes=1)
    last = -np.tensordot(_ONE_SIDED, x[: -6 : -1], axes=1)[::-1]  # fmt: skip
    return np.concatenate([first, inside, last]) / step


#: Weights of five samples for the derivatives at the first and the second of them.
_ONE_SIDED = np.array([[-25.0, 48.0, -36.0, 16.0, -3.0], [-3.0, -10.0, 18.0, -6.0, 1.0]]) / 12.0


def root_mean_square_error(x: ArrayLike, y: ArrayLike) -> Array:
    """Return √(mean (x - y)²) along the first axis, `(n, ...) -> (...)`."""
    x, y = _pair(x, y)
    return np.sqrt(np.mean((x - y) ** 2, axis=0))


def multiple_correlation(x: ArrayLike, y: ArrayLike, cycles: int = 1) -> Array:
    """Return the coefficient of multiple correlation (CMC) of two waveforms, `(n, ...) -> (...)`.

    The within-cycle formulation of Ferrari, Cutti and Cappello (2010), reference [56] of SA24: with
    P = 2 waveforms, G cycles of F samples, Ȳ_gf the mean of both at a sample and Ȳ_g of a cycle,

        CMC² = 1 - [Σ (Y_gpf - Ȳ_gf)² / (G F (P - 1))] / [Σ (Y_gpf - Ȳ_g)² / (G (F P - 1))].

    1 for equal waveforms. Where waveforms differ more from each other than they vary, CMC² is
    negative; the result is 0 there.

    Args:
        x: samples along the first axis, `(n, ...)`.
        y: as x.
        cycles: number of movement cycles, G; n must be a multiple of it.
    """
    x, y = _pair(x, y)
    if cycles < 1 or len(x) % cycles:
        raise InvalidValue(f"{len(x)} samples cannot be divided into cycles={cycles!r}")
    frames = len(x) // cycles
    both = np.stack([x, y]).reshape(2, cycles, frames, *x.shape[1:])
    between = np.sum((both - both.mean(axis=0)) ** 2, axis=(0, 1, 2)) / (cycles * frames)
    spread = np.sum((both - both.mean(axis=(0, 2), keepdims=True)) ** 2, axis=(0, 1, 2))
    total = spread / (cycles * (2 * frames - 1))
    if np.any(total == 0.0):
        raise InvalidValue("waveforms that do not vary have no coefficient of multiple correlation")
    return np.sqrt(np.maximum(1.0 - between / total, 0.0))


def _samples(x: ArrayLike) -> Array:
    array = finite("samples", x)
    if array.ndim == 0:
        raise ShapeError("samples must be an array (n, ...)")
    return array


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    x, y = _samples(x), _samples(y)
    if x.shape != y.shape:
        raise ShapeError(f"waveforms must have the same shape, not {x.shape} and {y.shape}")
    return x, y
