"""A drawing as a matplotlib figure, for PNG and PDF files."""

from __future__ import annotations

import importlib
from typing import Any

from remora.components.diagram.shapes import (
    OUTLINES,
    STYLES,
    Diamond,
    Drawing,
    Rectangle,
    TextShape,
    Wire,
)
from remora.errors import RemoraError

#: Pixels of the drawing per inch of the figure.
DPI = 96.0
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def figure(drawing: Drawing) -> Any:
    """Return a matplotlib Figure in light colours, not registered with pyplot."""
    try:
        patches: Any = importlib.import_module("matplotlib.patches")
        made: Any = importlib.import_module("matplotlib.figure").Figure(
            (drawing.width / DPI, drawing.height / DPI)
        )
    except ModuleNotFoundError:
        raise RemoraError(
            "pictures other than .svg need matplotlib: pip install '.[plot]' in Remora's folder"
        ) from None
    axes = made.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, drawing.width), ylim=(drawing.height, 0.0))
    axes.axis("off")
    for shape in drawing.shapes:
        _draw(axes, patches, shape)
    return made


def _draw(axes: Any, patches: Any, shape: Any) -> None:
    colour = STYLES[shape.style][0]
    if isinstance(shape, Rectangle):
        outline = OUTLINES.get(shape.style)
        edge = STYLES[outline][0] if outline else "none"
        style = f"round,pad=0,rounding_size={shape.radius}"
        axes.add_patch(patches.FancyBboxPatch(
            (shape.x, shape.y), shape.width, shape.height, style, facecolor=colour, edgecolor=edge,
            linewidth=0.9,
        ))  # fmt: skip
    elif isinstance(shape, Wire):
        xs, ys = zip(*shape.points, strict=True)
        dashes = {"linestyle": (0, (4, 2.5))} if shape.style == "state" else {}
        axes.plot(xs, ys, color=colour, linewidth=1.1, solid_joinstyle="round", **dashes)
        if shape.dot:
            axes.add_patch(patches.Circle(shape.points[0], 3.0, color=colour, linewidth=0.0))
        if shape.arrow:
            (x0, y0), (x, y) = shape.points[-2:]
            length = max(abs(x - x0) + abs(y - y0), 1e-9)
            u, w = (x - x0) / length, (y - y0) / length
            tip = [(x, y), (x - 8 * u - 3.4 * w, y - 8 * w + 3.4 * u),
                   (x - 8 * u + 3.4 * w, y - 8 * w - 3.4 * u)]  # fmt: skip
            axes.add_patch(patches.Polygon(tip, closed=True, color=colour, linewidth=0.0))
    elif isinstance(shape, Diamond):
        x, y, s = shape.x, shape.y, shape.size
        corners = [(x, y - s), (x + s, y), (x, y + s), (x - s, y)]
        axes.add_patch(patches.Polygon(corners, closed=True, color=colour, linewidth=0.0))
    else:
        assert isinstance(shape, TextShape)
        axes.text(
            shape.x, shape.y, shape.text, color=colour, fontsize=0.66 * shape.size,
            ha=_ANCHORS[shape.anchor], va="center_baseline", parse_math=False,
            fontweight="bold" if shape.bold else "normal",
        )  # fmt: skip
