"""Matplotlib figures of maps over two joints: manipulability, coupling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.viewer.figures.figures import COLOURS, STYLE, library
from remora.viewer.figures.workspace_figures import new_axes


def map_figure(
    grid: Mapping[str, Array], values: Array, label: str, units: tuple[str, str], title: str
) -> Any:
    """Return a figure of values over two joints.

    Args:
        grid: positions of two joints, in the units shown.
        values: `(n, m)`; what is not finite stays blank.
        label: of the colours.
        units: of the two positions, such as "°".
        title: heading.
    """
    figure, ax = new_axes((5.2, 4.0))
    (one, a), (two, b) = grid.items()
    with library("matplotlib").rc_context(STYLE):
        picture = ax.imshow(
            np.where(np.isfinite(values), values, np.nan).T, origin="lower", aspect="auto",
            extent=(a[0], a[-1], b[0], b[-1]), cmap="viridis", interpolation="nearest",
        )  # fmt: skip
        ax.grid(visible=False)
        bar = figure.colorbar(picture, ax=ax)
        bar.set_label(label)
        bar.outline.set_linewidth(0.4)
        ax.set_xlabel(f"{one}, {units[0]}")
        ax.set_ylabel(f"{two}, {units[1]}")
        ax.set_title(title)
    return figure


def bar_figure(names: list[str], values: Array, label: str, title: str) -> Any:
    """Return a figure of one horizontal bar for each name."""
    figure, ax = new_axes((5.2, 0.8 + 0.24 * len(names)))
    with library("matplotlib").rc_context(STYLE):
        ax.barh(range(len(names)), values, color=COLOURS[0], height=0.62)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(label)
        ax.set_title(title)
    return figure


def interval_figure(names: list[str], values: Array, half: Array) -> Any:
    """Return a figure of intervals relative to their values, logarithmic; zero has none."""
    figure, ax = new_axes((5.2, 0.9 + 0.24 * len(names)))
    size = np.where(values == 0.0, np.nan, np.abs(values))
    with library("matplotlib").rc_context(STYLE):
        ax.barh(range(len(names)), 100.0 * half / size, color=COLOURS[0], height=0.62)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set_xscale("log")
        ax.set_xlabel("half width of the interval, % of the estimate")
        ax.set_title("how well each parameter is known")
    return figure
