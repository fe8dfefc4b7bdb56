"""Matplotlib figures of analyses: maps over two joints, bars, envelopes, conditioning, misses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.analysis.jacobian_conditioning import NEAR, SINGULAR, Conditioning
from remora.analysis.sensitivity import MissSensitivity
from remora.viewer.figures.figures import COLOURS, DASHES, INK, MUTED, STYLE, library
from remora.viewer.figures.workspace_figures import new_axes
from remora.viewer.run_tables import labelled


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


#: Planes in which the envelope is shown: indices of the base's axes.
PLANES = ((0, 1), (0, 2), (1, 2))


def wheel_figure(axes: Array, capacity: Array, t: Array, demand: Array, timed: bool) -> Any:
    """Return a figure: the demand over time, and in three planes within the wheels' envelope.

    Args:
        axes: spin axes of the wheels in the base frame, `(w, 3)`.
        capacity: largest momentum of each wheel, `(w,)`, N m s.
        t: times, `(k,)`, s.
        demand: momentum that the wheels must store, base axes, `(k, 3)`, N m s.
        timed: whether t is the time of a run.
    """
    with library("matplotlib").rc_context(STYLE):
        figure = library("matplotlib.figure").Figure(figsize=(7.4, 5.0), layout="constrained")
        grid = figure.add_gridspec(2, 3, height_ratios=(1.0, 1.35))
        top = figure.add_subplot(grid[0, :])
        for k, name in enumerate("xyz"):
            top.plot(t, demand[:, k], color=COLOURS[k], linestyle=DASHES[k], label=f"h{name}")
        top.plot(t, np.linalg.norm(demand, axis=-1), color=INK, linewidth=1.2, label="norm")
        top.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        top.set_xlabel("time, s" if timed else "time of the path, s")
        top.set_ylabel("N m s")
        top.set_title("momentum that the wheels must store to hold the vehicle, base axes")
        top.margins(x=0)
        for column, (i, j) in enumerate(PLANES):
            ax = figure.add_subplot(grid[1, column])
            outline = shadow(axes[:, [i, j]], capacity)
            ax.fill(*outline.T, color=COLOURS[2], alpha=0.15, linewidth=0.0)
            ax.plot(*np.vstack([outline, outline[:1]]).T, color=COLOURS[2], linewidth=1.0)
            ax.plot(demand[:, i], demand[:, j], color=COLOURS[1], linewidth=1.4)
            ax.plot(demand[0, i], demand[0, j], "o", color=COLOURS[1], markersize=3)
            ax.set_aspect("equal", adjustable="datalim")
            ax.set_xlabel(f"h{'xyz'[i]}, N m s")
            ax.set_ylabel(f"h{'xyz'[j]}, N m s")
            ax.set_title("envelope and demand" if column == 0 else "")
    return figure


def shadow(axes: Array, capacity: Array) -> Array:
    """Return the outline of the envelope {Σ h_i a_i, |h_i| ≤ H_i} in a plane, `(2 m, 2)`.

    Its edges are 2 H_i a_i, in the order of their directions.

    Args:
        axes: a_i in the plane, `(w, 2)`.
        capacity: H_i, `(w,)`.
    """
    edges = axes * capacity[:, None]
    edges = edges[np.linalg.norm(edges, axis=-1) > 1e-12 * capacity.max()]
    edges = np.where(
        (edges[:, 1:] < 0.0) | ((edges[:, 1:] == 0.0) & (edges[:, :1] < 0.0)), -edges, edges
    )
    edges = edges[np.argsort(np.arctan2(edges[:, 1], edges[:, 0]))]
    start = -edges.sum(axis=0)
    steps = 2.0 * np.concatenate([edges, -edges])
    return start + np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)[:-1]])


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
