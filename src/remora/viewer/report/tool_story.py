"""Paths of the tools of a run, distances from their targets, and captures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.simulation.recording.recording import Recording
from remora.viewer.command_words import place_text
from remora.viewer.figures.panels import Line, Panel
from remora.viewer.load_words import is_list, is_mapping, short
from remora.viewer.run_tables import TextTable, described_phases
from remora.viewer.scene.scene import end_effectors

#: Maximum number of tools, and of targets.
MOST_TOOLS, MOST_TARGETS = 4, 4
XYZ = "x", "y", "z"


class ToolTarget(NamedTuple):
    """A tool, and where it is to go.

    Attributes:
        tool: name of a body or frame.
        target: its pose `(n, 8)` or position `(n, 3)` at each sample.
        called: the target in words.
    """

    tool: str
    target: Array
    called: str


def tools(run: Recording) -> list[str]:
    """Return the tools of a run: those that have a target, then the ends of its arms."""
    named = [target.tool for target in tool_targets(run)]
    return list(dict.fromkeys([*named, *end_effectors(run.robot)]))[:MOST_TOOLS]


def tool_targets(run: Recording) -> list[ToolTarget]:
    """Return the targets that the phases name: of reaches, and fixtures of captures."""
    found: dict[tuple[str, str], ToolTarget] = {}
    for phase in described_phases(run):
        for tool, target in [*_reaches(phase), *_captures(phase)]:
            try:
                made = ToolTarget(tool, _poses(run, target), place_text(target))
                run.robot.frame(tool)
            except (TypeError, ValueError, LookupError):  # settings on disk may be damaged
                continue
            found.setdefault((made.tool, made.called), made)
    return list(found.values())[:MOST_TARGETS]


def _poses(run: Recording, target: Any) -> Array:
    if isinstance(target, str):
        return run.frame_pose(target)
    x = np.asarray(target, dtype=float)
    if x.shape not in ((3,), (8,)):
        raise ValueError("neither a position nor a pose")
    return np.tile(x, (len(run), 1))


def _reaches(phase: Any) -> Iterable[tuple[str, Any]]:
    settings = phase.get("prescribed")
    for motion in settings.values() if is_mapping(settings) else ():
        if is_mapping(motion) and "reach" in motion:
            yield str(motion["reach"]), motion.get("goal")


def _captures(phase: Any) -> Iterable[tuple[str, Any]]:
    settings = phase.get("events")
    for event in settings if is_list(settings) else ():
        condition = event[3] if is_list(event) and len(event) > 3 else None
        if is_mapping(condition) and {"grapple", "fixture"} <= set(condition):
            yield str(condition["grapple"]), str(condition["fixture"])


def errors(run: Recording, of: ToolTarget) -> tuple[Array, Array | None]:
    """Return distance, m, and angle, rad, of a tool from its target, `(n,)`; None: no attitude."""
    x = run.frame_pose(of.tool)
    if of.target.shape[1] == 3:
        return np.linalg.norm(pose.translation(x) - of.target, axis=1), None
    off = pose.translation(x) - pose.translation(of.target)
    turn = dual_quaternion.mul(dual_quaternion.conjugate(of.target), x)[:, :4]
    angle = 2.0 * np.linalg.norm(quaternion.log(quaternion.shortest(turn)), axis=1)
    return np.linalg.norm(off, axis=1), angle


def tool_table(run: Recording) -> TextTable:
    """Return a table of the paths of the tools, in the inertial frame."""
    rows: list[tuple[str, ...]] = []
    for name in tools(run):
        p = pose.translation(run.frame_pose(name))
        length = float(np.sum(np.linalg.norm(np.diff(p, axis=0), axis=1)))
        speed = np.linalg.norm(run.frame_twist(name)[:, 3:], axis=1)
        rows.append((short(name, 40), _at(p[0]), _at(p[-1]), f"{length:.4g}", f"{speed.max():.4g}"))
    head = ("tool", "from, m", "to, m", "#path, m", "#fastest, m/s")
    return TextTable(head, rows)


def target_table(run: Recording) -> TextTable:
    """Return a table of the distances of tools from their targets: smallest, and at the end."""
    rows: list[tuple[str, ...]] = []
    for of in tool_targets(run):
        far, angle = errors(run, of)
        k = int(np.argmin(far))
        rows.append(
            (short(of.tool, 40), of.called, _off(far, angle, k), f"{run.t[k]:.6g}",
             _off(far, angle, -1))
        )  # fmt: skip
    return TextTable(("tool", "target", "#nearest", "#at, s", "#at the end"), rows)


def _off(far: Array, angle: Array | None, k: int) -> str:
    turned = "" if angle is None else f", {math.degrees(angle[k]):.3g}°"
    return f"{1e3 * far[k]:.4g} mm{turned}"


def _at(p: Array) -> str:
    return ("(" + ", ".join(f"{x:.3f}" for x in p + 0.0) + ")").replace("-", "−")


def tool_panels(run: Recording) -> list[Panel]:
    """Return positions of the tools, and their distances and angles from their targets."""
    made: list[Panel] = []
    for name in tools(run)[:2]:
        p = pose.translation(run.frame_pose(name))
        lines = tuple(Line(axis, p[:, k]) for k, axis in enumerate(XYZ))
        made.append(Panel(f"position of {short(name)}, inertial axes", "m", lines))
    far: list[Line] = []
    turned: list[Line] = []
    for of in tool_targets(run):
        label = f"{short(of.tool, 16)} to {short(of.called, 16)}"
        off, angle = errors(run, of)
        far.append(Line(label, off))
        turned += [] if angle is None else [Line(label, np.degrees(angle))]
    if far:
        made.append(Panel("distance of the tool from its target", "m", tuple(far)))
    if turned:
        made.append(Panel("angle between tool and target", "°", tuple(turned)))
    return made


def capture_rows(run: Recording) -> TextTable:
    """Return a table of captures and releases: impulses and energies."""
    rows: list[tuple[str, ...]] = []
    for s in run.switches:
        for name in s.activated:
            impulse = s.impulses.get(name)
            force, torque = _sizes(impulse)
            rows.append(
                (f"{s.t:.6g}", short(name), "latched" if name in s.latched else "switched on",
                 force, torque, f"{1e3 * s.energy_loss:.4g}", "")
            )  # fmt: skip
        for name in s.released:
            force, torque = _sizes(s.impulses.get(name))
            work = f"{1e3 * s.separation_work:.4g}" if s.separation_work else ""
            rows.append((f"{s.t:.6g}", short(name), "released", force, torque, "", work))
    head = ("#time, s", "constraint", "what", "#impulse, N s", "#angular impulse, N m s")
    head = (*head, "#energy lost, mJ", "#separation, mJ")
    return TextTable(head, rows[:25], max(len(rows) - 25, 0))


def _sizes(impulse: Array | None) -> tuple[str, str]:
    if impulse is None or not np.any(impulse):
        return "", ""
    if impulse.size == 1:
        return f"{float(impulse[0]):.4g}", ""
    force, torque = np.linalg.norm(impulse[:3]), np.linalg.norm(impulse[3:])
    return f"{force:.4g}", f"{torque:.4g}"
