"""Shapes of a drawing, and the styles in which SVG and figures draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Rectangle:
    """A rectangle with rounded corners; `style` is a key of STYLES."""

    x: float
    y: float
    width: float
    height: float
    style: str
    radius: float = 7.0


@dataclass(frozen=True)
class Wire:
    """A polyline, with an arrow head at its end or a dot at its start if asked for."""

    points: tuple[Point, ...]
    style: str
    arrow: bool = True
    dot: bool = False


@dataclass(frozen=True)
class TextShape:
    """A text; `anchor` is start, middle or end, and y is its middle."""

    x: float
    y: float
    text: str
    style: str
    anchor: str = "start"
    size: float = 12.0
    bold: bool = False


@dataclass(frozen=True)
class Diamond:
    """A diamond about a point, the mark of an event."""

    x: float
    y: float
    style: str
    size: float = 5.0


Shape: TypeAlias = Rectangle | Wire | TextShape | Diamond

#: (light, dark) colours by style.
STYLES: dict[str, tuple[str, str]] = {
    "page": ("#ffffff", "#16191d"),
    "block": ("#f4f7fa", "#242a31"),
    "robot": ("#e4edf7", "#22344a"),
    "edge": ("#8a97a6", "#6d7a89"),
    "ink": ("#1d2329", "#eceff2"),
    "muted": ("#5d6975", "#a3aeba"),
    "signal": ("#2b6cb0", "#7fb4ea"),
    "action": ("#c2570c", "#f2a05c"),
    "state": ("#76818d", "#8d99a6"),
    "event": ("#b3261e", "#ff8a80"),
    "sampled": ("#6b4fa0", "#bda5ea"),
}
#: Style of the outline of filled shapes.
OUTLINES = {"block": "edge", "robot": "edge", "event": "event"}


@dataclass(frozen=True)
class Drawing:
    """Shapes on a page, in px, y downwards."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str
