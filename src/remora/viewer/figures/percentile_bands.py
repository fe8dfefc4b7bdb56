"""Percentile bands: how a quantity spreads over many runs, as a function of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import UnknownName
from remora.simulation.recording.quantities import described, elements
from remora.viewer.figures.figures import COLOURS, INK, STYLE, library

if TYPE_CHECKING:
    from remora.simulation.batch.result import Batch

#: Percentiles at the edges of the bands, and the median.
LEVELS = (1, 5, 25, 50, 75, 95, 99)
#: Width and height of an axes, inches.
WIDTH, HEIGHT = 7.2, 1.9


def percentiles(values: Array, levels: tuple[float, ...] = LEVELS) -> Array:
    """Return percentiles over the runs at each sample, `(levels, samples)`.

    Args:
        values: `(runs, samples)`; NaN where a run had ended.
        levels: percent.
    """
    found = np.full((len(levels), values.shape[1]), np.nan)
    for k in range(values.shape[1]):
        own = values[np.isfinite(values[:, k]), k]
        if own.size:
            found[:, k] = np.percentile(own, levels)
    return found


def draw_bands(ax: Any, t: Array, values: Array) -> None:
    """Draw the median, and bands of 50, 90 and 98 % of the runs.

    Args:
        ax: matplotlib axes.
        t: times, `(samples,)`, s.
        values: `(runs, samples)`.
    """
    p = percentiles(values)
    for k, alpha in ((0, 0.15), (1, 0.25), (2, 0.4)):
        ax.fill_between(t, p[k], p[-1 - k], color=COLOURS[0], alpha=alpha, linewidth=0)
    ax.plot(t, p[3], color=INK)
    ax.margins(x=0)


def plot_batch(batch: Batch, *names: str, degrees: bool = True) -> Any:
    """Return a matplotlib Figure with percentile bands of quantities of a batch.

    Args:
        batch: the batch.
        *names: `q.elbow`, `v.elbow`, or elements of signals, `gyro.rate[1]`; default: all
            coordinates of joints with one.
        degrees: whether angles are shown in degrees.
    """
    known = batch_columns(batch)
    chosen = names or tuple(n for n in known if n.startswith("q.") and n.count(".") == 1)
    for name in chosen:
        if name not in known:
            raise UnknownName("quantity of the batch", name, known)
    shown = chosen or tuple(known)[:1]
    with library("matplotlib").rc_context(STYLE):
        size = (WIDTH, HEIGHT * len(shown))
        figure = library("matplotlib.figure").Figure(figsize=size, layout="constrained")
        axes: list[Any] = (
            figure.subplots(len(shown), 1, squeeze=False, sharex=True).ravel().tolist()
        )
        for ax, name in zip(axes, shown, strict=True):
            values, unit = known[name]
            turned = degrees and unit in ("rad", "rad/s")
            unit = unit.replace("rad", "deg") if turned else unit
            draw_bands(ax, batch.t, np.degrees(values) if turned else values)
            ax.set_title(f"{name}, {unit}" if unit else name)
        axes[-1].set_xlabel("time, s")
    return figure


def batch_columns(batch: Batch) -> dict[str, tuple[Array, str]]:
    """Return values `(runs, samples)` and unit of all recorded numbers, by name."""
    runs = len(batch)
    found: dict[str, tuple[Array, str]] = {}
    for name, values in (("q", batch.q), ("v", batch.v)):
        flat = np.asarray(values).reshape(runs, batch.t.size, -1)
        for k, (label, unit) in enumerate(described(batch.robot, name)):
            found[label] = (flat[..., k], unit)
    for name, values in batch.signals.items():
        shape, unit = values.shape[batch.ok.ndim + 1 :], batch.signal_units.get(name, "")
        flat = np.asarray(values).reshape(runs, batch.t.size, -1)
        for k, label in enumerate(elements(name, shape)):
            found[label] = (flat[..., k], unit)
    return found
