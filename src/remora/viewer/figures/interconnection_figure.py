"""A matplotlib figure of the interconnection graph of an assembly [SA24, Figures 3, 4 and 7].

Circles are subsystems, squares black boxes, the root has a double outline. Dashed arrows carry
twists and their rates, solid arrows wrenches. The tree grows from left to right.
"""

from __future__ import annotations

import math
from typing import Any

from remora.dynamics.assembly.interconnection_graph import InterconnectionGraph
from remora.errors import RemoraError
from remora.viewer.figures.figures import INK, library

#: Colours of the vertices, light enough for black text.
_FILLS = (
    "#f6c9a8", "#b7d7ee", "#bfe3cf", "#eccbe0", "#fbe3a6", "#cfd2f2", "#d9d9d9", "#e3d3b8",
)  # fmt: skip
_TWIST, _WRENCH = "#0072b2", "#b3410a"
#: Distances in inches: between depths, between leaves, radius of a vertex.
_ACROSS, _DOWN, _RADIUS = 2.3, 1.15, 0.26
#: Largest number of subsystems that is drawn.
_MOST = 60


def interconnection_figure(
    graph: InterconnectionGraph, title: str = "", size: tuple[float, float] | None = None
) -> Any:
    """Return the Figure.

    Args:
        graph: of `assembly.graph(...)`.
        title: above the graph.
        size: width and height in inches; chosen by default.
    """
    if len(graph.names) > _MOST:
        raise RemoraError(
            f"the graph has {len(graph.names)} subsystems; it is drawn for at most {_MOST}"
        )
    matplotlib, figure_class = library("matplotlib"), library("matplotlib.figure").Figure
    places = _places(graph.parents)
    left, right = min(x for x, _ in places), max(x for x, _ in places)
    low, high = min(y for _, y in places), max(y for _, y in places)
    margin = 1.0
    width, height = right - left + 2 * margin, high - low + 2 * margin + 0.45
    with matplotlib.rc_context({"font.family": ["DejaVu Sans"], "mathtext.fontset": "dejavusans"}):
        figure = figure_class(figsize=size or (max(width, 4.6), height))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(left - margin, right + margin)
        axes.set_ylim(low - margin - 0.45, high + margin)
        axes.set_aspect("equal")
        axes.axis("off")
        for i, parent in enumerate(graph.parents):
            if parent >= 0:
                _edges(axes, graph, places, parent, i)
            _loops(axes, graph, places[i], i)
        for i, place in enumerate(places):
            _vertex(axes, graph, place, i)
        _key(axes, left - margin + 0.2, low - margin - 0.25)
        if title:
            axes.set_title(title, fontsize=10, color=INK, y=0.965)
    return figure


def _places(parents: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return positions of the vertices: x by depth, y so that no branches overlap."""
    children: dict[int, list[int]] = {}
    depth: list[int] = []
    for i, parent in enumerate(parents):
        depth.append(0 if parent < 0 else depth[parent] + 1)
        children.setdefault(parent, []).append(i)
    y: dict[int, float] = {}
    leaf = 0
    todo: list[tuple[int, bool]] = [(0, False)]
    while todo:
        i, done = todo.pop()
        below = children.get(i, [])
        if not below:
            y[i] = -_DOWN * leaf
            leaf += 1
        elif done:
            y[i] = sum(y[k] for k in below) / len(below)
        else:
            todo.append((i, True))
            todo.extend((k, False) for k in reversed(below))
    return [(_ACROSS * depth[i], y[i]) for i in range(len(parents))]


def _edges(
    axes: Any, graph: InterconnectionGraph, places: list[tuple[float, float]], p: int, i: int
) -> None:
    """Draw the twist edge from p to i and the wrench edge from i to p, side by side."""
    (x0, y0), (x1, y1) = places[p], places[i]
    before, here = graph.labels[p], graph.labels[i]
    length = math.hypot(x1 - x0, y1 - y0)
    along = (x1 - x0) / length, (y1 - y0) / length
    normal = -along[1], along[0]
    for sign, label, style in (
        (1.0, rf"$\Xi_{{{before},{here}}}$", {"color": _TWIST, "linestyle": (0, (4, 2))}),
        (-1.0, rf"$\Gamma_{{{here},{before}}}$", {"color": _WRENCH, "linestyle": "-"}),
    ):
        off = 0.075 * sign
        gap = math.sqrt((_RADIUS + 0.05) ** 2 - off**2)
        start = (x0 + along[0] * gap + normal[0] * off, y0 + along[1] * gap + normal[1] * off)
        end = (x1 - along[0] * gap + normal[0] * off, y1 - along[1] * gap + normal[1] * off)
        if sign < 0.0:
            start, end = end, start
        axes.annotate(
            "", end, start,
            arrowprops={"arrowstyle": "-|>,head_width=0.16,head_length=0.3", "shrinkA": 0,
                        "shrinkB": 0, "linewidth": 1.2, **style},
        )  # fmt: skip
        at = 0.6  # nearer to i, where edges of one vertex are apart
        axes.text(
            x0 + (x1 - x0) * at + normal[0] * sign * 0.23,
            y0 + (y1 - y0) * at + normal[1] * sign * 0.23,
            label, color=style["color"], fontsize=9, ha="center", va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip


def _loops(axes: Any, graph: InterconnectionGraph, place: tuple[float, float], i: int) -> None:
    """Draw the self-loops: own twists above the vertex, own wrenches below it."""
    if graph.names[i] in graph.black_boxes:
        return
    (x, y), here = place, graph.labels[i]
    for sign, label, style in (
        (1.0, rf"$\Xi_{{{here},{here}}}$", {"color": _TWIST, "linestyle": (0, (4, 2))}),
        (-1.0, rf"$W_{{{here}}}$", {"color": _WRENCH, "linestyle": "-"}),
    ):
        spread = 0.13
        start = (x - spread, y + sign * math.sqrt((_RADIUS + 0.02) ** 2 - spread**2))
        end = (x + spread, start[1])
        axes.annotate(
            "", end, start,
            arrowprops={"arrowstyle": "-|>,head_width=0.16,head_length=0.3", "shrinkA": 0,
                        "shrinkB": 0, "linewidth": 1.2,
                        "connectionstyle": f"arc3,rad={-sign * 1.5}", **style},
        )  # fmt: skip
        aside = -0.33 if graph.parents[i] < 0 else 0.33  # edges leave the root to the right
        axes.text(
            x + aside, y + sign * 0.42, label, color=style["color"], fontsize=9,
            ha="center", va="center",
        )  # fmt: skip


def _vertex(axes: Any, graph: InterconnectionGraph, place: tuple[float, float], i: int) -> None:
    patches = library("matplotlib.patches")
    x, y = place
    black = graph.names[i] in graph.black_boxes
    fill = "#303236" if black else _FILLS[i % len(_FILLS)]
    r = _RADIUS
    look = {"facecolor": fill, "edgecolor": INK, "linewidth": 1.1, "zorder": 3}
    if black:
        side = 1.8 * r
        axes.add_patch(patches.Rectangle((x - side / 2, y - side / 2), side, side, **look))
    else:
        axes.add_patch(patches.Circle(place, r, **look))
        if graph.parents[i] < 0:
            inner = {**look, "facecolor": "none"}
            axes.add_patch(patches.Circle(place, 0.8 * r, **inner))
    axes.text(
        x, y, graph.labels[i], ha="center", va="center", fontsize=10, zorder=4,
        color="white" if black else INK, fontweight="bold",
    )  # fmt: skip
    if graph.names[i] != graph.labels[i]:
        axes.text(
            x - 0.16, y - r - 0.12, graph.names[i], ha="right", va="top", fontsize=7.5, color=INK,
            zorder=4,
        )  # fmt: skip


def _key(axes: Any, x: float, y: float) -> None:
    for k, (label, color, style) in enumerate(
        (
            ("twists and their rates", _TWIST, (0, (4, 2))),
            ("wrenches", _WRENCH, "-"),
        )
    ):
        at = x + 2.1 * k
        axes.plot([at, at + 0.4], [y, y], color=color, linestyle=style, linewidth=1.2)
        axes.text(at + 0.47, y, label, fontsize=8, va="center", color=INK)
