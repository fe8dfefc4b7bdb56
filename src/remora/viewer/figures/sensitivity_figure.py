"""A matplotlib figure of the sensitivity of a miss: what contributes, beside a Monte Carlo."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.analysis.sensitivity import MissSensitivity
from remora.viewer.figures.figures import COLOURS, INK, MUTED, STYLE, library
from remora.viewer.run_tables import labelled

#: Largest number of bars.
MOST_BARS = 14


def sensitivity_figure(found: MissSensitivity, misses: Array | None = None) -> Any:
    """Return a figure of the largest contributions and the distribution of the miss distance.

    Args:
        found: the sensitivity.
        misses: of a Monte Carlo, `(n, 3)`, m; default: 300 samples.
    """
    misses = found.monte_carlo(300)[1] if misses is None else misses
    size = found.contributions
    order: list[int] = np.argsort(-size)[:MOST_BARS].tolist()
    with library("matplotlib").rc_context(STYLE):
        figure = library("matplotlib.figure").Figure(
            figsize=(8.2, max(2.6, 0.9 + 0.22 * len(order))), layout="constrained"
        )
        bars, spread = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
        bars.barh(range(len(order)), 1e3 * size[order], color=COLOURS[0], height=0.62)
        bars.set_yticks(range(len(order)), [labelled(found.labels[k]) for k in order])
        bars.invert_yaxis()
        bars.grid(visible=False, axis="y")
        bars.set_xlabel("miss of one standard deviation, mm")
        bars.set_title(f"what {found.frame.name} misses its target by")
        distance = 1e3 * np.sort(np.linalg.norm(misses, axis=1))
        part = (np.arange(len(distance)) + 0.5) / len(distance)
        spread.plot(distance, 100.0 * part, color=INK, label=f"{len(distance)} robots")
        drawn = np.random.default_rng(0).normal(size=(20_000, len(found.labels)))
        linear = 1e3 * np.sort(np.linalg.norm(found.miss(drawn * found.deviations), axis=1))
        spread.plot(
            linear, 100.0 * np.linspace(0.0, 1.0, len(linear)), color=COLOURS[1],
            linestyle=(0, (4, 2)), label="derivatives",
        )  # fmt: skip
        spread.axvline(1e3 * found.rms, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        spread.annotate(
            f" rms {1e3 * found.rms:.2f} mm", (1e3 * found.rms, 4.0), color=MUTED, fontsize=7.5
        )
        spread.set_xlim(0.0, float(np.percentile(linear, 99.8)))
        spread.set_ylim(0.0, 100.0)
        spread.set_xlabel("miss distance, mm")
        spread.set_ylabel("% of robots below")
        spread.legend(loc="lower right")
        spread.set_title("distribution")
    return figure
