"""A matplotlib figure of the momentum envelope of wheels and the demand of the arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.viewer.figures.figures import COLOURS, DASHES, INK, STYLE, library

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
