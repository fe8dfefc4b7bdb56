"""Figures of a campaign: distributions, percentile bands, drivers and convergence."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns.outputs import Quantity
from remora.campaigns.result import Campaign
from remora.campaigns.statistics import wilson
from remora.campaigns.study import Study
from remora.viewer.figures.figures import COLOURS, INK, STYLE, library
from remora.viewer.figures.percentile_bands import draw_bands

#: Width and height of a row of axes, inches.
WIDTH, HEIGHT = 7.2, 1.9
#: Maximum number of axes in a row.
COLUMNS = 3
#: Points of the curve of convergence.
POINTS = 200


F = TypeVar("F", bound=Callable[..., Any])


def styled(draw: F) -> F:
    """Return a function that draws in the style of all figures."""

    @functools.wraps(draw)
    def drawn(*args: Any) -> Any:
        with library("matplotlib").rc_context(STYLE):
            return draw(*args)

    return cast("F", drawn)


@styled
def distributions(campaign: Campaign, study: Study) -> Any:
    """Return histograms of the outputs, with criteria as lines, or None if nothing is finite."""
    shown: list[tuple[Quantity, Array]] = []
    for name, output in study.outputs.items():
        x = campaign[name]
        x = x[np.isfinite(x)]
        if x.size:
            shown.append((output.quantity, output.quantity.shown(x)))
    if not shown:
        return None
    figure, axes = _grid(len(shown))
    for ax, (quantity, x) in zip(axes, shown, strict=False):
        low, high = np.percentile(x, [0.05, 99.95])
        if high <= low:
            low, high = low - 0.5, high + 0.5
        ax.hist(np.clip(x, low, high), bins=60, range=(low, high), color=COLOURS[0])
        median, top = np.percentile(x, [50, 95])
        for value, style in ((median, "-"), (top, "--")):
            ax.axvline(value, color=INK, linewidth=0.8, linestyle=style)
        for criterion in study.success.values():
            if criterion.settings.output == quantity.name:
                for bound in (criterion.settings.below, criterion.settings.above):
                    if bound is not None and low <= quantity.shown(np.array(bound)) <= high:
                        ax.axvline(quantity.shown(np.array(bound)), color=COLOURS[1], linewidth=1.2)
        ax.set_title(quantity.name)
        ax.set_xlabel(quantity.shown_unit)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.grid(False)
    return figure


@styled
def consistency(campaign: Campaign, study: Study) -> Any:
    """Return the means of NIS and NEES over the runs with their chi-square bounds, or None."""
    names = [name for name, band in study.bands.items() if band.freedoms is not None]
    if not names or not np.any(campaign["ok"] == 1.0):
        return None
    figure, axes = _grid(len(names), columns=1)
    for ax, name in zip(axes, names, strict=False):
        found, t = campaign.consistency(name), campaign.consistency_times(name)
        ax.fill_between(t, found.low, found.high, color=COLOURS[0], alpha=0.25, linewidth=0)
        ax.plot(t, found.mean, color=INK, marker=".", markersize=3, linewidth=0.6)
        ax.set_title(f"{name}: mean over the runs")
        ax.margins(x=0)
    axes[len(names) - 1].set_xlabel("time, s")
    return figure


@styled
def bands(campaign: Campaign, study: Study) -> Any:
    """Return percentile bands over time, or None."""
    if not study.bands or not len(campaign):
        return None
    figure, axes = _grid(len(study.bands), columns=1)
    for ax, (name, quantity) in zip(axes, study.bands.items(), strict=False):
        draw_bands(ax, campaign.t, quantity.shown(campaign[name]))
        ax.set_title(f"{name}, {quantity.shown_unit}" if quantity.shown_unit else name)
    axes[len(study.bands) - 1].set_xlabel("time, s")
    return figure


def short_name(dispersion: str) -> str:
    """Return the name of a dispersion without what all initial states have in common."""
    for head in ("start.bases.", "start.joints.", "start.speeds.", "start."):
        if dispersion.startswith(head):
            tail = " at the start" if head == "start.joints." else ""
            return dispersion.removeprefix(head) + (" speed" if "speeds" in head else tail)
    return dispersion


@styled
def drivers(campaign: Campaign) -> Any:
    """Return rank correlations of outputs and dispersions as a table of colours, or None."""
    rows, columns = campaign.outputs, campaign.dispersions
    rows = [*rows, "success"] if campaign.criteria else rows
    if not rows or not columns or len(campaign) < 30:
        return None
    table = np.array([[campaign.drivers(o)[d][0] for d in columns] for o in rows])
    size = (WIDTH, 1.4 + 0.3 * len(rows))
    figure = library("matplotlib.figure").Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    ax.imshow(table, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
    labels = [short_name(name) for name in columns]
    ax.set_xticks(range(len(columns)), labels, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(False)
    for (i, j), value in np.ndenumerate(table):
        if not math.isnan(value):
            ink = "#ffffff" if abs(value) > 0.6 else "#111111"
            label = f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
            ax.text(j, i, label, ha="center", va="center", color=ink, fontsize=7.5)
    ax.set_title("Rank correlation of outputs, success and dispersions")
    return figure


@styled
def convergence(campaign: Campaign) -> Any:
    """Return the success rate by the number of runs, with its 95 % interval, or None."""
    held = campaign["success"]
    held = held[np.isfinite(held)]
    if not campaign.criteria or held.size < 20:
        return None
    count = np.unique(np.geomspace(10, held.size, POINTS).astype(int))
    sums = np.cumsum(held)[count - 1]
    rate = sums / count
    interval = np.array([wilson(int(s), int(n)) for s, n in zip(sums, count, strict=True)])
    figure, axes = _grid(1, columns=1)
    ax = axes[0]
    ax.fill_between(count, 100 * interval[:, 0], 100 * interval[:, 1], color=COLOURS[0], alpha=0.25,
                    linewidth=0)  # fmt: skip
    ax.plot(count, 100 * rate, color=COLOURS[0])
    ax.set_xscale("log")
    ax.set_xlabel("runs")
    ax.set_title("Success rate, %, with its 95 % interval")
    ax.margins(x=0)
    return figure


def _grid(count: int, columns: int = COLUMNS) -> tuple[Any, list[Any]]:
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    size = (WIDTH, HEIGHT * rows)
    figure = library("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes: list[Any] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes
