"""A matplotlib figure of the conditioning of an arm along a run or a path."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.analysis.jacobian_conditioning import NEAR, SINGULAR, Conditioning
from remora.viewer.figures.figures import COLOURS, DASHES, MUTED, STYLE, library
from remora.viewer.run_tables import labelled

#: Axes end at this singular value, and at its reciprocal as condition number.
FLOOR = 1e-5
#: Largest number of joints with lines of their own.
MOST_LINES = 8


def conditioning_figure(found: Conditioning) -> Any:
    """Return a figure: singular values, condition number, distances to the nearest limits."""
    rows = 2 + bool(found.joints)
    with library("matplotlib").rc_context(STYLE):
        figure = library("matplotlib.figure").Figure(
            figsize=(7.0, 1.75 * rows + 0.3), layout="constrained"
        )
        axes = figure.subplots(rows, 1, sharex=True)
        x = found.t
        for k, sigma in enumerate(found.singular_values.T):
            axes[0].plot(x, sigma, color=COLOURS[k % 8], linestyle=DASHES[k % 8], label=f"σ{k + 1}")
        axes[0].set_yscale("log")
        axes[0].set_title(f"singular values of the Jacobian of {found.frame}, {found.base} base")
        axes[1].plot(x, found.condition, color=COLOURS[6])
        axes[1].axhline(SINGULAR, color=COLOURS[1], linewidth=0.8, linestyle=(0, (4, 2)))
        near = np.where(found.condition > SINGULAR, 1.0, 0.0)
        axes[1].fill_between(
            x, 0, 1, where=near > 0.0, transform=axes[1].get_xaxis_transform(),
            color=COLOURS[1], alpha=0.12, linewidth=0.0,
        )  # fmt: skip
        axes[1].set_yscale("log")
        low, high = found.smallest.min(), found.condition.max()
        if low < FLOOR:  # singular to rounding: how small it is tells nothing
            axes[0].set_ylim(bottom=FLOOR)
        if not high < 1.0 / FLOOR:
            axes[1].set_ylim(1.0, 1.0 / FLOOR)
        axes[1].set_title(f"condition number; near a singularity above {SINGULAR:g}")
        if found.joints:
            _limits(axes[2], found)
        for ax in axes[[0, *([2] if found.joints else [])]]:
            ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes[-1].set_xlabel("time, s" if found.timed else "point of the path")
        axes[-1].margins(x=0)
    return figure


def _limits(ax: Any, found: Conditioning) -> None:
    """Draw the distances to limits as parts of the ranges, of the joints that come nearest."""
    share = np.where(np.isfinite(found.limit_share), found.limit_share, np.inf)
    order: list[int] = np.argsort(share.min(axis=0))[:MOST_LINES].tolist()
    for row, k in enumerate(sorted(order)):
        ax.plot(
            found.t, 100.0 * found.limit_share[:, k], color=COLOURS[row % 8],
            linestyle=DASHES[row % 8], label=labelled(found.joints[k]),
        )  # fmt: skip
    ax.axhline(0.0, color=MUTED, linewidth=0.8)
    ax.axhspan(0.0, 100.0 * NEAR, color=COLOURS[1], alpha=0.12, linewidth=0.0)
    ax.set_ylabel("% of the range")
    ax.set_title("distance of the joints to the nearer limit")
