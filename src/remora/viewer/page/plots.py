"""Plots beside the scene: small SVG line plots with a cursor at the current time."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from remora.algebra import dual_quaternion, pose
from remora.algebra.array_ops import Array
from remora.model.joints import in_coordinates, is_free, kind
from remora.model.robot import Robot
from remora.simulation.recording.recording import Recording
from remora.viewer.load_words import fixed
from remora.viewer.scene.link_roles import WHEEL, role_of

#: Height of a plot, and its left and bottom margins for the tick labels, px.
HEIGHT, LEFT, RIGHT, BELOW = 132, 46, 8, 17
#: Number of points per line after decimation, which preserves minima and maxima.
POINTS = 500
#: Maximum number of lines in a plot.
LINES = 12
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


def _speeds_of(robot: Robot, turning: bool, wheels: bool = False) -> list[tuple[str, int]]:
    """Return name and index in v of rotational or translational joint DOFs, except free bases.

    Reaction wheels are apart: they turn a thousand times faster.
    """
    found: list[tuple[str, int]] = []
    for i, joint in enumerate(robot.joints):
        if joint.mimic is not None or is_free(joint):
            continue
        if (role_of(robot, i) == WHEEL) != wheels:
            continue
        for k, freedom in enumerate(kind(joint).freedoms):
            if freedom.angular == turning:
                full = f"{joint.name} {freedom.name}".rstrip()
                found.append((full, joint.v.start + k))
    return found


def _coordinates(turning: bool) -> Callable[[Recording], Plot]:
    def plot(run: Recording) -> Plot:
        robot = run.robot
        places = {
            joint.v.start + k: joint.q.start + k
            for joint in robot.joints
            if joint.mimic is None and in_coordinates(joint)
            for k in range(joint.v.stop - joint.v.start)
        }
        found = [(name, places[v]) for name, v in _speeds_of(robot, turning) if v in places]
        values = run.q[:, [k for _, k in found]]
        unit = "°" if turning else "m"
        return Plot(unit, [n for n, _ in found], run.t, np.degrees(values) if turning else values)

    return plot


def _per_speed(
    quantity: str, turning: bool, unit: str, wheels: bool = False
) -> Callable[[Recording], Plot]:
    def plot(run: Recording) -> Plot:
        found = _speeds_of(run.robot, turning, wheels)
        values = run.quantity(quantity)[:, [k for _, k in found]]
        values = np.degrees(values) if unit.startswith("°") else values
        return Plot(unit, [name for name, _ in found], run.t, values)

    return plot


def _wheel_speeds(run: Recording) -> Plot:
    """Return the speeds of the reaction wheels, rpm."""
    found = _speeds_of(run.robot, True, wheels=True)
    values = run.v[:, [k for _, k in found]] * (30.0 / math.pi)
    return Plot("rpm", [name for name, _ in found], run.t, values)


def _wheel_torques(run: Recording) -> Plot:
    """Return the torques of the reaction wheels' motors, N m."""
    found = _speeds_of(run.robot, True, wheels=True)
    values = run.quantity("tau")[:, [k for _, k in found]]
    return Plot("N m", [name for name, _ in found], run.t, values)


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


#: Available plots: (run) -> lines. A plot without lines is not offered.
PLOTS: dict[str, Callable[[Recording], Plot]] = {
    "joint angles, °": _coordinates(True),
    "base attitude, °": _attitude,
    "joint torques, N m": _per_speed("tau", True, "N m"),
    "joint speeds, °/s": _per_speed("v", True, "°/s"),
    "wheel speeds, rpm": _wheel_speeds,
    "wheel torques, N m": _wheel_torques,
    "joint travels, m": _coordinates(False),
    "joint forces, N": _per_speed("tau", False, "N"),
    "base position, m": _position,
    "linear momentum, N s": _momentum(0, "N s"),
    "angular momentum, N m s": _momentum(3, "N m s"),
    "energy, J": _energy,
}


def plot_of(run: Recording, name: str) -> Plot:
    """Return a plot by a name that `offered` returns."""
    return PLOTS[name](run) if name in PLOTS else _signals_by_label(run)[name](run)


def _signals_by_label(run: Recording) -> dict[str, Callable[[Recording], Plot]]:
    """Return the plots of the signals of components, by name and unit."""
    return {
        f"{name}, {own.unit}" if own.unit else name: _signal(name)
        for name, own in run.signal_columns.items()
    }


def _signal(name: str) -> Callable[[Recording], Plot]:
    def plot(run: Recording) -> Plot:
        own = run.signal_columns[name]
        values = run.signals[name].reshape(len(run), -1)
        labels = [index or name.partition(".")[2] for index, _ in own.components(run.robot)]
        return Plot(own.unit, ["x", "y", "z"] if own.size == (3,) else labels, run.t, values)

    return plot


def offered(run: Recording) -> list[str]:
    """Return the names of the plots for which a run has data."""
    sliding = bool(_speeds_of(run.robot, False))
    turning = bool(_speeds_of(run.robot, True))
    spinning = bool(_speeds_of(run.robot, True, wheels=True))
    needs = {
        "joint travels, m": sliding, "joint forces, N": sliding, "joint angles, °": turning,
        "joint torques, N m": turning, "joint speeds, °/s": turning,
        "wheel speeds, rpm": spinning, "wheel torques, N m": spinning,
    }  # fmt: skip
    return [*(name for name in PLOTS if needs.get(name, True)), *_signals_by_label(run)]


def decimated(t: Array, y: Array, points: int = POINTS) -> tuple[Array, Array]:
    """Decimate a line to about `points` points, keeping minimum and maximum of each interval."""
    n = len(t)
    if n <= points:
        return t, y
    edges = np.linspace(0, n, points // 2 + 1).astype(int)
    rows: list[int] = [0]
    for a, b in itertools.pairwise(edges):
        part = np.nan_to_num(y[a:b])
        rows += sorted({a + int(part.argmin()), a + int(part.argmax())})
    rows = sorted({*rows, n - 1})
    return t[rows], y[rows]


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
        t, y = decimated(plot.t, shown[:, k])
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
