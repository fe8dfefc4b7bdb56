"""Matplotlib figures of a run: `run.plot()`, `run.plot("tau", "momentum")`.

Each panel of `viewer.figures.panels` becomes one or more axes with at most eight lines each. All
axes share the time axis. Phases and events are light vertical lines, labelled above the first axes.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError
from remora.simulation.recording.recording import Recording
from remora.viewer.figures.panels import PANELS, Line, Panel, choice, panels
from remora.viewer.load_words import short
from remora.viewer.run_tables import LABEL, phase_spans

#: A palette for all types of colour vision (Okabe and Ito 2008, without the yellow, which is too
#: light for a line). From the fifth line on, dashes distinguish the lines as well.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#202225", "#8a6d3b",
)  # fmt: skip
DASHES = ("-", "-", "-", "-", (0, (5, 1.5)), (0, (5, 1.5)), (0, (2, 1)), (0, (2, 1)))
INK, MUTED, FAINT = "#202124", "#5f6368", "#dadce0"
#: Panels shown when no names are passed.
OVERVIEW = (
    "q", "v", "tau", "attitude", "position", "reactions", "wrenches", "momentum", "energy", "drift",
    "signals",
)  # fmt: skip
#: Number of time intervals that a line is reduced to (minimum and maximum of each).
INTERVALS = 700
#: A relative error below this is rounding error: 2⁻⁵².
EPSILON = 2.0**-52
#: Sizes in inches: an axes, its margins, and a row of labels above the first axes.
WIDTH, HEIGHT, LEFT, LEGEND, TITLE, BOTTOM, ROW = 4.9, 1.3, 0.75, 2.3, 0.36, 0.5, 0.15
#: Maximum rows of labels above the first axes, and maximum labelled events; further: short ticks.
MOST_ROWS, MOST_EVENTS = 3, 15
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"], "font.size": 8, "text.parse_math": False, "text.usetex": False,
    "text.color": INK, "axes.edgecolor": MUTED, "axes.labelcolor": INK, "axes.linewidth": 0.6,
    "axes.titlesize": 8.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlecolor": INK, "axes.grid": True, "axes.axisbelow": True, "axes.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.unicode_minus": True,
    "figure.facecolor": "white", "grid.color": FAINT, "grid.linewidth": 0.5, "grid.linestyle": "-",
    "lines.linewidth": 1.2, "legend.frameon": False, "legend.fontsize": 7.5,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "axes.formatter.use_mathtext": False,
}  # fmt: skip


class TimeMark(NamedTuple):
    """A vertical line at the start of a phase or at an event."""

    t: float
    label: str
    phase: bool


def plot(run: Recording, *what: str | Sequence[str], degrees: bool = True) -> Any:
    """Return a matplotlib Figure of a run, without showing or saving it.

    Examples::

        run.plot()  # an overview
        run.plot("tau", "momentum")  # quantities, see below
        run.plot(["elbow", "wrist"])  # angles, speeds and torques of two joints
        run.plot("attitude", ["tool"])  # of a body or frame

    The figure is registered with pyplot: `plt.show()` shows it, `figure.savefig("run.pdf")` saves
    it.

    Args:
        run: the run.
        *what: quantities: `q`, `v`, `vdot`, `tau`, `passive` (of the joints), `power`, `reactions`
            (magnitudes), `attitude`, `position`, `com`, `momentum`, `energy` (and work), `drift`
            (relative drift of the conserved quantities), `wrenches` (external), `signals` (of all
            components), or one signal, `gyro.rate`. Other names, or lists of names, select joints,
            bodies or frames.
        degrees: whether angles are in degrees (otherwise in rad).

    Raises:
        RemoraError: if matplotlib is not installed, or the run has no samples.
        UnknownName: for an unknown name; the message lists the known ones.
    """
    chosen = _asked(run, what, degrees)
    pyplot = library("matplotlib.pyplot")
    with library("matplotlib").rc_context(STYLE):
        figure = pyplot.figure()
        draw(figure, run, chosen, 2 if len(chosen) > 5 else 1)
    if "inline" in pyplot.get_backend():
        pyplot.close(figure)  # otherwise a notebook shows it twice: the cell's value, open figures
    return figure


def panels_of(run: Recording, *names: str) -> list[Panel]:
    """Return the panels of quantities that have lines, each of at most eight."""
    of = choice(run)
    found = [p for name in names for panel in panels(run, name, of) for p in split(panel)]
    return [panel for panel in found if panel.lines]


def figure_of_panels(run: Recording, chosen: Sequence[Panel]) -> Any:
    """Return a Figure of panels, not registered with pyplot; None if there are none."""
    if not chosen:
        return None
    with library("matplotlib").rc_context(STYLE):
        figure = library("matplotlib.figure").Figure()
        draw(figure, run, chosen, 1)
    return figure


def _asked(run: Recording, what: Sequence[str | Sequence[str]], degrees: bool) -> list[Panel]:
    """Return the panels for the requested quantities, joints, bodies and frames."""
    quantities: list[str] = []
    names: list[str] = []  # of joints, bodies and frames
    for x in what:
        if isinstance(x, str) and (x in PANELS or x in run.signal_columns):
            quantities.append(x)
        else:
            names += [x] if isinstance(x, str) else x
    of = choice(run, names, degrees)
    if names and not quantities:
        joints = sum(name in run.robot.joints for name in names)
        quantities += ["q", "v", "tau"] if joints else []
        quantities += ["position", "attitude"] if joints < len(names) else []
    found = [panel for name in quantities or OVERVIEW for panel in panels(run, name, of)]
    return [part for panel in found if quantities or panel.lines for part in split(panel)]


def split(panel: Panel) -> list[Panel]:
    """Split a panel into panels of at most eight lines each, of about equal size."""
    most, lines = len(COLOURS), panel.lines
    parts = max(1, -(-len(lines) // most))
    if parts == 1:
        return [panel]
    ends = np.linspace(0, len(lines), parts + 1).round().astype(int).tolist()
    return [
        replace(panel, title=f"{panel.title} ({k + 1} of {parts})", lines=lines[a:b])
        for k, (a, b) in enumerate(itertools.pairwise(ends))
    ]


def library(name: str) -> Any:
    """Return a module of matplotlib, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise RemoraError(
            "figures need matplotlib: pip install '.[plot]' in Remora's folder"
        ) from None


# Drawing ----------------------------------------------------------------------------------------


def draw(figure: Any, run: Recording, chosen: Sequence[Panel], columns: int) -> None:
    """Draw panels into an empty figure, column by column, and set the figure's size to fit."""
    rows = -(-len(chosen) // columns)
    marked = marks(run)
    begin, end = float(run.t[0]), float(run.t[-1])
    if end <= begin:
        begin, end = begin - 0.5, end + 0.5
    placed, lost, names = _placed(marked, begin, end)
    ticks = sum(not mark.label for mark in marked)
    remarks = [f"{ticks} events: ticks below"] if ticks else []
    remarks += [f"{lost} more, without room for a name"] if lost else []
    strip = ROW * names + (0.04 if names else 0.0)
    cell = TITLE + HEIGHT
    wide, high = columns * (LEFT + WIDTH + LEGEND), strip + rows * cell + BOTTOM
    figure.set_size_inches(wide, high)
    for k, panel in enumerate(chosen):
        column, row = divmod(k, rows)
        left = column * (LEFT + WIDTH + LEGEND) + LEFT
        bottom = high - strip - (row + 1) * cell
        ax = figure.add_axes((left / wide, bottom / high, WIDTH / wide, HEIGHT / high))
        ax.set_xlim(begin, end)
        above = 0.07 + (strip if row == 0 else 0.0)
        remark = _draw_panel(ax, run.t, panel)
        said = [remark] if remark else []
        unit = _powers(ax, panel)
        ax.set_title(panel.title + (f", {unit}" if unit else ""), pad=72 * above)
        _draw_marks(ax, marked)
        if row == 0:
            _draw_names(ax, placed)
            said += remarks
        _write(ax, "; ".join(said), above)
        if row == rows - 1 or k == len(chosen) - 1:
            ax.set_xlabel("time, s")
        else:
            ax.tick_params(labelbottom=False)


def _draw_panel(ax: Any, t: Array, panel: Panel) -> str:
    """Draw lines and legend; return a remark, or an empty string."""
    flat = (_logarithmic if panel.log else _range)(ax, panel)
    note = panel.note or flat
    if not panel.lines:
        ax.set_yticks([])
        ax.text(0.5, 0.5, panel.note, transform=ax.transAxes, ha="center", color=MUTED)
        return ""
    handles: list[Any] = []
    for k, line in enumerate(panel.lines):
        values = np.maximum(line.values, ax.get_ylim()[0]) if panel.log else line.values
        dash = (0, (4, 2)) if line.dashed else DASHES[k]
        look = {"color": COLOURS[k], "linestyle": dash, "label": f"line {k}"}
        if np.count_nonzero(np.isfinite(values)) < 2:
            look |= {"marker": "o", "markersize": 4}
        handles += ax.plot(*thinned(t, values), solid_joinstyle="round", **look)
        for limit in _near(line):
            if ax.get_ylim()[0] < limit < ax.get_ylim()[1]:
                ax.axhline(limit, color=COLOURS[k], linewidth=0.8, linestyle=(0, (1, 2)))
                note = note or "dotted: limits"
    legend = ax.legend(
        handles, [line.label for line in panel.lines], loc="upper left", borderaxespad=0.0,
        bbox_to_anchor=(1.01, 1.01), handlelength=2.2, labelspacing=0.3, handletextpad=0.6,
        title=panel.key or None, title_fontsize=7, alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(MUTED)
    return note


def _write(ax: Any, text: str, above: float) -> None:
    """Write a remark above the legend, beside the title, clipped at the edge of the figure."""
    if not text:
        return
    long = len(text) > LABEL + 5
    place = {"x": 0.99 + LEGEND / WIDTH, "ha": "right"} if long else {"x": 1.017}
    ax.text(
        y=1.0 + above / HEIGHT, s=text, transform=ax.transAxes, color=MUTED, fontsize=7, **place
    )


def _range(ax: Any, panel: Panel) -> str:
    """Set the range of a linear axis: it fits the lines and nearby limits, and hides noise."""
    finite = [line.values[np.isfinite(line.values)] for line in panel.lines]
    low = min((float(np.min(x)) for x in finite if x.size), default=0.0)
    high = max((float(np.max(x)) for x in finite if x.size), default=0.0)
    span = high - low
    if span <= 1e-9 * max(panel.scale, abs(low), abs(high)):
        middle = 0.5 * (low + high) if abs(low + high) > 1e-9 * panel.scale else 0.0
        ax.set_ylim(middle - panel.scale, middle + panel.scale)
        return f"varies by {span:.0e} {panel.unit}: rounding" if span > 0.0 else ""
    near = [limit for line in panel.lines for limit in _near(line)]
    low, high = min([low, *near]), max([high, *near])
    room = 0.08 * (high - low)
    ax.set_ylim(low - room, high + room)
    return ""


def _near(line: Line) -> list[float]:
    """Return the limits that a line approaches or exceeds."""
    values = line.values[np.isfinite(line.values)]
    if not values.size or not np.any(np.isfinite(line.limits)):
        return []
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.4 * max(high - low, abs(low), abs(high))
    return [x for x in line.limits if low - room < x < high + room]


def _logarithmic(ax: Any, panel: Panel) -> str:
    """Set a logarithmic axis that marks the level of rounding errors."""
    ticker = library("matplotlib.ticker")
    largest = max((_largest(line) for line in panel.lines), default=0.0)
    decades = max(-12, math.ceil(math.log10(max(largest, 1e-300)) + 0.3))
    ax.set_yscale("log")
    ax.set_ylim(1e-17, 10.0**decades)
    ax.axhspan(1e-17, EPSILON, color=FAINT, alpha=0.6, linewidth=0)
    ax.text(
        1.017, 1.2e-17, f"grey: rounding of one\nnumber, below {EPSILON:.1e}", color=MUTED,
        fontsize=7, transform=ax.get_yaxis_transform(), va="bottom",
    )  # fmt: skip
    every = max(1, -(-(decades + 17) // 6))
    ax.yaxis.set_major_locator(ticker.FixedLocator([10.0**k for k in range(decades, -18, -every)]))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(_power_of_ten))
    ax.yaxis.set_minor_locator(ticker.NullLocator())
    return ""


def _powers(ax: Any, panel: Panel) -> str:
    """Factor a common power of ten out of the tick labels; return the unit including it."""
    if panel.log or not panel.lines:
        return panel.unit
    ticker = library("matplotlib.ticker")
    low, high = ax.get_ylim()
    power = 3 * math.floor(math.log10(max(abs(low), abs(high))) / 3)
    if -3 <= power <= 3 or high - low < 1e-3 * abs(high):
        plain = ticker.ScalarFormatter(useOffset=False)
        plain.set_scientific(False)
        ax.yaxis.set_major_formatter(plain)
        return panel.unit

    def number(x: float, position: object) -> str:
        return f"{x / 10.0**power:g}".replace("-", "−")

    ax.yaxis.set_major_formatter(ticker.FuncFormatter(number))
    return f"{_power_of_ten(10.0**power, None)} {panel.unit}".strip()


def _largest(line: Line) -> float:
    return float(np.max(line.values[np.isfinite(line.values)], initial=0.0))


def _power_of_ten(x: float, position: object) -> str:
    digits = str(round(math.log10(x))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


def thinned(t: Array, values: Array, intervals: int = INTERVALS) -> tuple[Array, Array]:
    """Return the samples needed to draw a line: the extremes in each of many intervals."""
    if len(t) <= 3 * intervals:
        return t, values
    span = max(float(t[-1] - t[0]), 1e-300)
    bucket = np.minimum((t - t[0]) * (intervals / span), intervals - 1).astype(int)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1) > 0)
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(t)))
    wanted = [~np.isfinite(values)]  # keep gaps
    for extremes in (np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)):
        wanted.append(values == extremes[group])
    kept = [np.array([0, len(t) - 1])]
    for found in map(np.flatnonzero, wanted):
        kept.append(found[np.unique(group[found], return_index=True)[1]])
    index = np.unique(np.concatenate(kept))
    return t[index], values[index]


# Phases and events ------------------------------------------------------------------------------


def marks(run: Recording) -> list[TimeMark]:
    """Return phases and events of a run in time order; a phase absorbs events at its start."""
    found = [TimeMark(span.start, short(span.name, 28), True) for span in phase_spans(run)]
    phases = {mark.t: k for k, mark in enumerate(found)}
    if len(run.events) > MOST_EVENTS:
        return [*found, *(TimeMark(event.t, "", False) for event in run.events)]
    for event in run.events:
        label, k = short(event.name, 28), phases.get(event.t)
        if k is None:
            found.append(TimeMark(event.t, label, False))
        elif len(found[k].label) < 40:
            found[k] = found[k]._replace(label=f"{found[k].label} ({label})")
    return sorted(found, key=lambda mark: mark.t)


def _placed(
    marked: Sequence[TimeMark], begin: float, end: float
) -> tuple[list[tuple[TimeMark, int]], int, int]:
    """Assign label rows to marks without overlap; also return the unplaced and row counts."""
    rows: list[list[tuple[float, float]]] = []
    placed: list[tuple[TimeMark, int]] = []
    named = [mark for mark in marked if mark.label]
    for mark in sorted(named, key=lambda mark: (not mark.phase, mark.t)):
        left = (mark.t - begin) / (end - begin) * WIDTH
        right = left + 0.1 + 0.062 * len(mark.label)
        free = (k for k, row in enumerate(rows) if all(right <= a or b <= left for a, b in row))
        row = next(free, len(rows))
        if row == MOST_ROWS or right > WIDTH + LEGEND:
            continue
        if row == len(rows):
            rows.append([])
        rows[row].append((left, right))
        placed.append((mark, row))
    return placed, len(named) - len(placed), len(rows)


def _draw_marks(ax: Any, marked: Sequence[TimeMark]) -> None:
    looks = {True: ("-", 1.0), False: ((0, (3, 2)), 1.0), None: ("-", 0.07)}
    for which, (style, top) in looks.items():
        times = np.unique([m.t for m in marked if (m.phase if m.label else None) is which])
        if len(times):
            ax.vlines(
                times, 0.0, top, transform=ax.get_xaxis_transform(), color=MUTED, alpha=0.55,
                linewidth=0.7, linestyle=style, zorder=1,
            )  # fmt: skip


def _draw_names(ax: Any, placed: Sequence[tuple[TimeMark, int]]) -> None:
    rows = 1 + max((row for _, row in placed), default=0)
    for mark, row in placed:
        height = (0.05 + ROW * (rows - 1 - row)) / HEIGHT
        ax.text(
            mark.t, 1.0 + height, mark.label, transform=ax.get_xaxis_transform(), fontsize=7,
            color=MUTED, style="normal" if mark.phase else "italic", va="bottom",
        )  # fmt: skip
