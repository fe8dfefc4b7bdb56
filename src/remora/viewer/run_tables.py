"""Text that describes a run: display names, and tables of settings, phases and events."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.model.formats.bounded_xml import shown
from remora.model.joints import is_free, kind
from remora.model.limit_text import coordinate_text, range_text
from remora.model.robot import Joint, Robot
from remora.simulation.integrators.table import INTEGRATORS
from remora.simulation.recording.recording import Recording
from remora.viewer.load_words import LONGEST, is_list, is_mapping, number_text, short
from remora.viewer.scene.link_roles import WHEEL, role_of

#: Maximum characters of a line's label.
LABEL = 34
#: Maximum rows of a table, and of the table of events.
MOST_ROWS, MOST_EVENTS = 100, 25


def labelled(name: str, rest: str = "") -> str:
    """Return the label of a line: a name, shortened if needed, and the complete `rest`."""
    return short(name, max(10, LABEL - len(rest))) + rest


@dataclass(frozen=True)
class TextTable:
    """A table of text.

    Attributes:
        head: column names; those that begin with `#` hold numbers, with `$` commands.
        rows: the cells.
        more: number of rows left out.
    """

    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    more: int = 0


def _cut(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], count: int, most: int = MOST_ROWS
) -> TextTable:
    made = list(itertools.islice(rows, most))
    return TextTable(head, made, count - len(made))


# What was simulated -----------------------------------------------------------------------------


class Note(NamedTuple):
    """The note of a run: its first line, and what follows."""

    title: str
    description: str


def note_of(run: Recording) -> Note:
    """Return title and description of a run; of a scenario, its name with spaces and its text."""
    first, _, rest = str(run.settings.get("note") or "").partition("\n")
    name = re.fullmatch(r"scenario '(.*)'", first)
    title = name[1].replace("_", " ") if name else first
    return Note(title[:1].upper() + title[1:], rest.strip())


def setup(run: Recording) -> list[tuple[str, str]]:
    """Return the settings of a run as pairs of name and text."""
    robot, settings = run.robot, run.settings
    moving = "floats" if is_free(robot.joints[0]) else f"on a {robot.joints[0].kind} joint"
    rows = [
        ("robot", f"{shown(robot.name, LONGEST)}: {_count(len(robot.bodies), 'body', 'bodies')}, "
                  f"{robot.nv} degrees of freedom, {float(robot.mass):.6g} kg; its base {moving}"),
        ("gravity", f"{_vector(robot.gravity)} m/s²" if np.any(robot.gravity) else "none"),
        ("simulated", f"from {run.t[0]:.6g} s to {run.t[-1]:.6g} s, {_count(len(run), 'sample')}"
                      f"{_sampling(settings.get('sample'), settings.get('step_to_samples'))}"),
        ("integrator", _integrator(settings)),
        ("formulation", str(settings.get("formulation", ""))),
        ("joint limits", _limits(settings)),
        ("drives", "limited to the joints' efforts" if settings.get("saturate") else "not limited"),
        ("started", time_text(run.started)),
        ("wall time", f"{number_text(wall)} s" if (wall := settings.get("wall_time")) else ""),
        ("ended", f"{run.status}{f': {shown(run.message, LONGEST)}' if run.message else ''}"),
        ("made by", f"Remora {run.version}" if run.version else ""),
    ]  # fmt: skip
    return [(name, text) for name, text in rows if text]


def time_text(text: str) -> str:
    """Return an ISO 8601 date and time in readable form."""
    return shown(text).replace("T", " ").replace("+00:00", " UTC")


def _sampling(sample: Any, step_to_samples: Any) -> str:
    if sample is None:
        return ", one for every step"
    if isinstance(sample, (int, float)):
        return f", every {sample:g} s" + (
            "; steps end at them" if step_to_samples else "; by dense output"
        )
    return ", at given times"


def _integrator(settings: Mapping[str, Any]) -> str:
    name = str(settings.get("integrator", ""))
    row = INTEGRATORS.get(name)
    if row is None:
        return name
    step = settings.get("step")
    if row.error_order == 0:
        return f"{name}, order {row.order}, steps of {step} s"
    most = settings.get("max_step")
    bound = f"; steps of at most {most:g} s" if isinstance(most, (int, float)) else ""
    return (
        f"{name}, order {row.order}, adaptive: rtol {number_text(settings.get('rtol'))}, "
        f"atol {number_text(settings.get('atol'))}{bound}"
    )


def _limits(settings: Mapping[str, Any]) -> str:
    says = {"record": "noted when passed", "stop": "end the run", "ignore": "not watched"}
    text = says.get(str(settings.get("limits")), "")
    stops = settings.get("stops")
    if is_list(stops) and len(stops) == 2 and stops[0]:
        stiffness, damping = map(number_text, stops)
        text += f"; elastic stops, {stiffness} N m/rad or N/m, damping {damping}"
    return text


def described_phases(run: Recording) -> list[Mapping[str, Any]]:
    """Return the phases in the run's settings; may be empty for a damaged run."""
    phases: Any = run.settings.get("phases")
    return [phase if is_mapping(phase) else {} for phase in phases] if is_list(phases) else []


def phase_starts(run: Recording) -> list[float]:
    """Return the start time of each phase reached, s; otherwise the time of its first sample."""
    if run.phase_starts:
        return list(run.phase_starts)
    last = int(np.max(run.phase, initial=-1))
    return [float(run.t[np.searchsorted(run.phase, k)]) for k in range(last + 1)]


class PhaseSpan(NamedTuple):
    """A phase that was reached: its name or number, start and end, s."""

    name: str
    start: float
    end: float


def phase_spans(run: Recording) -> list[PhaseSpan]:
    """Return the phases that a run reached; none if it has only one without a name."""
    phases, starts = described_phases(run), [float(t) for t in phase_starts(run)]
    names = [
        str((phases[k].get("name") if k < len(phases) else None) or f"phase {k + 1}")
        for k in range(len(starts))
    ]
    ends = [*starts[1:], float(run.t[-1])]
    spans = [PhaseSpan(n, a, b) for n, a, b in zip(names, starts, ends, strict=False)]
    return [] if len(spans) == 1 and spans[0].name == "phase 1" else spans


def sources(run: Recording) -> dict[str, str]:
    """Return the source of every user function in the run's inputs, by name."""
    found: dict[str, str] = {}

    def look(settings: Any) -> None:
        if is_mapping(settings):
            if isinstance(settings.get("source"), str):
                found.setdefault(str(settings.get("function")), settings["source"])
            for part in settings.values():
                look(part)
        elif is_list(settings):
            for part in settings[:MOST_ROWS]:
                look(part)

    look(described_phases(run))
    return dict(list(found.items())[:20])


def events(run: Recording) -> TextTable:
    """Return a table of the events."""
    does = {"record": "noted", "next": "the next phase begins", "stop": "the run ends"}
    rows = (
        (f"{e.t:.6g}", shown(e.name, LONGEST), does.get(e.action, shown(e.action)))
        for e in run.events
    )
    return _cut(("#time, s", "event", "what follows"), rows, len(run.events), MOST_EVENTS)


# The robot --------------------------------------------------------------------------------------


def robot_table(robot: Robot) -> TextTable:
    """Return a table of bodies and joints with their limits, in degrees and metres."""

    def rows() -> Iterable[tuple[str, ...]]:
        depth = {-1: -1}
        for i, (body, joint) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
            depth[i] = depth[joint.parent] + 1
            branch = "\u2003" * min(depth[i] - 1, 8) + "└ " if depth[i] else ""
            yield (
                str(i), branch + shown(body.name, LONGEST), f"{float(body.mass):.4g}",
                _vector(body.com), shown(joint.name, LONGEST), joint.kind, *_bounds(robot, i),
            )  # fmt: skip

    head = ("#", "body", "#mass, kg", "centre of mass, m", "joint", "kind")
    head = (*head, "#range", "#speed", "#effort")
    return _cut(head, rows(), len(robot.bodies))


def _bounds(robot: Robot, i: int) -> tuple[str, str, str]:
    """Return position range, speed limit and effort limit of joint i, if it has a single DOF."""
    joint = robot.joints[i]
    if joint.mimic is not None:
        leader = short(robot.joints[joint.mimic.joint].name)
        return f"{joint.mimic.ratio:g} × {leader}", "", ""
    if kind(joint).nv != 1:
        return "", "", ""
    freedom, limits = kind(joint).freedoms[0], joint.limits
    turns = freedom.angular
    low, high, speed, effort = (
        float(x[0]) for x in (limits.lower, limits.upper, limits.velocity, limits.effort)
    )
    fastest = f"{coordinate_text(speed, turns)} {'°/s' if turns else 'm/s'}"
    if role_of(robot, i) == WHEEL:
        fastest = f"{speed * 30.0 / math.pi:.4g} rpm"
    return (
        range_text(low, high, turns),
        fastest if math.isfinite(speed) else "",
        f"{effort:.4g} {freedom.force_unit}" if math.isfinite(effort) else "",
    )


# At a glance ------------------------------------------------------------------------------------


def tiles(run: Recording) -> list[tuple[str, str]]:
    """Return the key figures of a run: pairs of value and label."""
    kept, robot = run.conservation(), run.robot
    made = [(f"{run.duration:.4g} s", f"simulated, {_count(len(run), 'sample')}")]
    if is_free(robot.joints[0]):
        x = run.frame_pose(robot.bodies[0].name)
        turned = 2.0 * quaternion.log(quaternion.mul(quaternion.conjugate(x[:1, :4]), x[:, :4]))
        most = math.degrees(float(np.max(np.linalg.norm(turned, axis=-1))))
        made.append((f"{most:.3g}°", f"largest turn of {short(robot.bodies[0].name)}"))
        moved = pose.translation(x)
        far = float(np.max(np.linalg.norm(moved - moved[0], axis=-1)))
        made.append((f"{far:.3g} m", f"largest move of {short(robot.bodies[0].name)}"))
    made += capture_tiles(run)
    made += _largest(run)
    drift = kept.angular_momentum
    if not drift.broken_by:
        worst = max(drift.relative, kept.linear_momentum.relative)
        made.append((f"{worst:.1e}", "relative error of momentum"))
    made.append((f"{kept.energy.relative:.1e}", "relative error of the energy balance"))
    return made


def capture_tiles(run: Recording) -> list[tuple[str, str]]:
    """Return the largest impulse of a capture, and the energy lost in all of them."""
    sizes = [
        (float(np.linalg.norm(x[:3])), name)
        for s in run.switches
        if s.activated
        for name, x in s.impulses.items()
    ]
    if not sizes:
        return []
    size, name = max(sizes)
    lost = sum(s.energy_loss for s in run.switches)
    text = f"{1e3 * lost:.3g} mJ" if lost < 1.0 else f"{lost:.3g} J"
    return [
        (f"{size:.3g} N s", f"impulse of the capture, {short(name)}"),
        (text, "kinetic energy lost in captures"),
    ]


def _largest(run: Recording) -> list[tuple[str, str]]:
    """Return the joints with the largest torque, fraction of the effort limit and reaction."""
    robot = run.robot
    own = [j for j in robot.joints if j.mimic is None and kind(j).nv == 1]
    made: list[tuple[str, str]] = []
    turning = [j for j in own if kind(j).freedoms[0].angular]

    def peak(joint: Joint) -> float:
        return float(np.max(np.abs(run.tau[:, joint.v])))

    def share(joint: Joint) -> float:
        return peak(joint) / float(joint.limits.effort[0])

    def add(joints: Sequence[Joint], by: Callable[[Joint], float], text: str, what: str) -> None:
        if joints and by(best := max(joints, key=by)) > 0.0:
            made.append((text.format(by(best)), f"{what}, {short(best.name)}"))

    limited = [j for j in own if 0.0 < float(j.limits.effort[0]) < math.inf]
    add(turning, peak, "{:.3g} N m", "largest joint torque")
    add(limited, share, "{:.1%}", "largest share of an effort limit")
    held = [j for j in robot.joints if j.kind != "free"]
    add(held, lambda j: _moment(run, robot.joint_index(j.name)), "{:.3g} N m",
        "largest reaction torque")  # fmt: skip
    return made


def _moment(run: Recording, i: int) -> float:
    return float(np.max(np.linalg.norm(run.reactions[:, i, 3:], axis=-1)))


def _count(n: int, one: str, many: str = "") -> str:
    return f"1 {one}" if n == 1 else f"{n:,} {many or one + 's'}".replace(",", "\u202f")


def _vector(values: Array) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in values) + ")"
