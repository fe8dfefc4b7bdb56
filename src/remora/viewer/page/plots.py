"""Plots beside the scene, chosen by the user: small SVG line plots with a cursor at the time."""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.simulation.recording.recording import Recording
from remora.viewer.figures.figures import thinned
from remora.viewer.figures.panels import Panel, choice, panels
from remora.viewer.interpolation import sample_before
from remora.viewer.load_words import fixed
from remora.viewer.page.page import on

#: Height of a plot, and its left and bottom margins for the tick labels, px.
HEIGHT, LEFT, RIGHT, BELOW = 132, 46, 8, 17
#: Number of time intervals that a line is reduced to (minimum and maximum of each).
INTERVALS = 250
#: Maximum number of lines in a plot; plots with more than FEW can be searched.
LINES, FEW = 12, 3
COLORS = (
    "#4c8ed9", "#ef7f1a", "#35a15f", "#e05263", "#9a6fd0", "#b5851e", "#27a7b0", "#d067a9",
    "#7d8b99", "#8aa825", "#5b6fd6", "#a9714b",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Plot:
    """Lines over time.

    Attributes:
        unit: unit of all lines.
        names: one per line.
        t: times, `(n,)`, s.
        values: `(n, k)`.
    """

    unit: str
    names: list[str]
    t: Array
    values: Array


def _attitude(run: Recording) -> Plot:
    """Return the base's rotation vector since the start, in its initial axes."""
    x = run.frame_pose(run.robot.bodies[0].name)
    since = dual_quaternion.mul(np.broadcast_to(dual_quaternion.conjugate(x[0]), x.shape), x)
    axis, angle = pose.to_axis_angle(since)
    return Plot("°", ["about x", "about y", "about z"], run.t, np.degrees(axis * angle[:, None]))


def _position(run: Recording) -> Plot:
    x = pose.translation(run.frame_pose(run.robot.bodies[0].name))
    return Plot("m", ["x", "y", "z"], run.t, x)


def _momentum(part: int, unit: str) -> Callable[[Recording], Plot]:
    def plot(run: Recording) -> Plot:
        h = run.momentum[:, part : part + 3]
        drift = np.linalg.norm(h - h[0], axis=1)
        return Plot(unit, ["|change|", "size"],
                    run.t, np.column_stack([drift, np.linalg.norm(h, axis=1)]))  # fmt: skip

    return plot


def _energy(run: Recording) -> Plot:
    return Plot("J", ["energy"], run.t, run.energy[:, None])


#: Plots by name and unit: the quantity whose panel has this title and unit, or (run) -> lines.
PLOTS: dict[str, str | Callable[[Recording], Plot]] = {
    "joint angles, °": "q",
    "base attitude, °": _attitude,
    "joint torques, N m": "tau",
    "joint speeds, °/s": "v",
    "wheel speeds, rpm": "v",
    "wheel torques, N m": "tau",
    "joint travels, m": "q",
    "joint speeds, sliding, m/s": "v",
    "joint forces, N": "tau",
    "base position, m": _position,
    "linear momentum, N s": _momentum(0, "N s"),
    "angular momentum, N m s": _momentum(3, "N m s"),
    "energy, J": _energy,
}


def plot_of(run: Recording, name: str) -> Plot:
    """Return a plot by a name that `offered` returns."""
    of = PLOTS.get(name)
    if callable(of):
        return of(run)
    made = _signals(run) if of is None else _joints(run, of)
    panel = made[name]
    values = np.column_stack([line.values for line in panel.lines])
    return Plot(panel.unit, [line.plain or line.label for line in panel.lines], run.t, values)


def offered(run: Recording) -> list[str]:
    """Return the names of the plots for which a run has data."""
    joints = {name for quantity in ("q", "v", "tau") for name in _joints(run, quantity)}
    named = [name for name, of in PLOTS.items() if callable(of) or name in joints]
    return [*named, *_signals(run)]


def _joints(run: Recording, quantity: str) -> dict[str, Panel]:
    """Return the panels of a quantity of the joints, by title and unit."""
    made = panels(run, quantity, replace(choice(run), apart=True), sys.maxsize)
    return {f"{panel.title}, {panel.unit}": panel for panel in made if panel.lines}


def _signals(run: Recording) -> dict[str, Panel]:
    """Return the panels of the signals of components, by name and unit."""
    of = choice(run, degrees=False)
    made = [panel for name in run.signal_columns for panel in panels(run, name, of, sys.maxsize)]
    return {f"{panel.title}, {panel.unit}".removesuffix(", "): panel for panel in made}


def svg(plot: Plot) -> str:
    """Return lines, grid and tick labels of a plot as HTML in the page's colours."""
    shown = plot.values[:, :LINES]
    finite = shown[np.isfinite(shown)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    size = max(abs(low), abs(high))
    if high - low <= 1e-12 * size or high == low:
        pad = 0.5 * size or 1.0
        low, high = low - pad, high + pad
    pad = 0.06 * (high - low)
    low, high = low - pad, high + pad
    t0, t1 = float(plot.t[0]), float(plot.t[-1])
    span = (t1 - t0) or 1.0
    lines: list[str] = []
    for k in range(shown.shape[1]):
        t, y = thinned(plot.t, shown[:, k], INTERVALS)
        u, w = 1000.0 * (t - t0) / span, 1000.0 * (high - y) / (high - low)
        way = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(u, w, strict=True) if math.isfinite(b))
        lines.append(
            f'<polyline points="{way}" fill="none" stroke="{COLORS[k]}" stroke-width="1.6" '
            'stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
        )
    marks: list[str] = []
    inside = HEIGHT - BELOW
    for y in ticks(low, high, 4):
        top = inside * (high - y) / (high - low)
        marks.append(_rule(f"left:{LEFT}px;right:{RIGHT}px;top:{top:.1f}px;height:1px"))
        marks.append(
            f'<div style="position:absolute;top:{top - 7:.1f}px;left:0;width:{LEFT - 6}px;'
            f'text-align:right;opacity:.65">{_number(y)}</div>'
        )
    for t in ticks(t0, t0 + span, 5):
        left = f"calc({LEFT}px + (100% - {LEFT + RIGHT}px)*{(t - t0) / span:.5f})"
        marks.append(_rule(f"left:{left};top:0;height:{inside}px;width:1px"))
        marks.append(
            f'<div style="position:absolute;top:{inside + 2}px;left:{left};'
            f'transform:translateX(-50%);opacity:.65">{_number(t)}</div>'
        )
    return (
        f'<div data-remora-plot data-left="{LEFT}" data-right="{RIGHT}" '
        'title="click or drag: go to this time" '
        f'style="cursor:crosshair;touch-action:none;position:relative;height:{HEIGHT}px;'
        "margin:4px 8px 0;font-size:10.5px;"
        f'line-height:14px;font-variant-numeric:tabular-nums">{"".join(marks)}'
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" style="position:absolute;'
        f"left:{LEFT}px;top:0;width:calc(100% - {LEFT + RIGHT}px);height:{inside}px;"
        f'overflow:visible">{"".join(lines)}</svg></div>'
    )


def picked(plot: Plot, text: str) -> Plot:
    """Return the lines whose names contain one of the given parts; all if none do.

    Args:
        plot: the lines.
        text: parts of names, separated by commas; an exact name picks that line only.
    """
    parts = [part.strip().lower() for part in text.split(",") if part.strip()]
    names = [name.lower() for name in plot.names]
    rows = [
        k
        for k, name in enumerate(names)
        if any(name == part or (part not in names and part in name) for part in parts)
    ]
    if not rows:
        return plot
    return Plot(plot.unit, [plot.names[k] for k in rows], plot.t, plot.values[:, rows])


def cursor(plot: Plot, t: float, index: int, picker: str = "") -> str:
    """Return the cursor at time t and the legend with the values at the sample `index`.

    Args:
        plot: the lines.
        t: time, s.
        index: of the sample whose values are shown.
        picker: identifier of the control that a click on a name sets.
    """
    t0, t1 = float(plot.t[0]), float(plot.t[-1])
    at = (t - t0) / ((t1 - t0) or 1.0)
    left = f"calc({LEFT}px + (100% - {LEFT + RIGHT}px)*{at:.5f})"
    size = scale_of(plot)
    wide = len(fixed(-size, size))
    click = f'data-picker="{html.escape(picker)}" title="show this line only, or all"'
    names = "".join(
        f'<span data-remora-line="{html.escape(name)}" {click if picker else ""} '
        f'style="display:flex;gap:5px;white-space:nowrap;min-width:0">'
        f'<span style="color:{COLORS[k]}">■</span>'
        f'<span style="overflow:hidden;text-overflow:ellipsis">{html.escape(name)}</span>'
        f'<b style="margin-left:auto;min-width:{wide}ch;text-align:right">'
        f"{fixed(float(plot.values[index, k]), size)}</b></span>"
        for k, name in enumerate(plot.names[:LINES])
    )
    column = 26 + 5 * max(map(len, plot.names[:LINES]), default=0) + 7 * wide  # px
    more = (
        f" and {len(plot.names) - LINES} more: name them above" if len(plot.names) > LINES else ""
    )
    return (
        f'<div style="position:relative;margin:0 8px 6px;font-size:10.5px;line-height:15px;'
        f'font-variant-numeric:tabular-nums"><div style="position:absolute;left:{left};'
        f"top:-{HEIGHT}px;height:{HEIGHT - BELOW}px;width:1.5px;background:#f0620c;"
        f'pointer-events:none"></div><div style="display:grid;gap:0 16px;padding:3px 0 0 6px;'
        f'grid-template-columns:repeat(auto-fill,minmax(min(100%,{column}px),1fr))">{names}'
        f'<span style="opacity:.65">{more}</span></div></div>'
    )


def scale_of(plot: Plot) -> float:
    """Return the largest finite value of a plot; zero if it has none."""
    finite = plot.values[np.isfinite(plot.values)]
    return float(np.abs(finite).max(initial=0.0))


def ticks(low: float, high: float, about: int) -> list[float]:
    """Return about `about` round numbers from low to high."""
    raw = (high - low) / about
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(m * base for m in (1.0, 2.0, 5.0, 10.0) if m * base >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _rule(where: str) -> str:
    return f'<div style="position:absolute;{where};background:currentColor;opacity:.12"></div>'


def _number(x: float, digits: int = 4) -> str:
    if not math.isfinite(x):
        return "-"
    text = f"{x:.{digits - 1}g}" if abs(x) < 1e-3 or abs(x) >= 1e5 else f"{x:.{digits}g}"
    text = "0" if float(text) == 0.0 else text
    return text.replace("-", "−")


class ChosenPlot:
    """A plot selected by the user, with its cursor at the current time."""

    def __init__(
        self, server: Any, make: Callable[[str], Plot], names: Sequence[str], name: str,
        redraw: Callable[[], None],
    ) -> None:  # fmt: skip
        """Add the plot to the page.

        Args:
            server: viser's server.
            make: (name) -> plot.
            names: plots that can be chosen; the list is searched by typing in it.
            name: of the first.
            redraw: called after another was chosen.
        """
        self._make = make
        gui = server.gui
        self._choice = gui.add_dropdown("plot", names, initial_value=name)
        self._lines = gui.add_text(
            "filter", "", hint="Parts of names, such as elbow, wrist; empty: all. "
            "A click on a name below shows that line only."
        )  # fmt: skip
        # Set by a click on a name in the legend.
        self._pick = gui.add_text("pick", "", visible=False)
        self._picture = gui.add_html("")
        self._cursor = gui.add_html("")
        self._plot: Plot = self._made()
        on(self._choice.on_update, lambda: (self._chosen(), redraw()))
        on(self._lines.on_update, lambda: (self._made(), redraw()))
        on(self._pick.on_update, self._picked)

    @property
    def names(self) -> list[str]:
        """Names of the lines shown."""
        return self._plot.names

    def pick(self, text: str) -> None:
        """Show only the lines whose names contain one of these parts, separated by commas."""
        self._lines.value = text

    def _chosen(self) -> None:
        self._lines.value = ""
        self._made()

    def _picked(self) -> None:
        name = str(self._pick.value)
        if name:
            self._pick.value = ""  # so that the next click on the same name is a change
            self.pick("" if self.names == [name] else name)

    def _made(self) -> Plot:
        whole = self._make(self._choice.value)
        self._lines.visible = len(whole.names) > FEW
        self._plot = picked(whole, str(self._lines.value))
        self._picture.content = svg(self._plot)
        return self._plot

    def move(self, t: float) -> None:
        """Put the cursor at time t."""
        self._cursor.content = cursor(
            self._plot, t, int(sample_before(self._plot.t, t)), str(self._pick._impl.uuid)
        )
