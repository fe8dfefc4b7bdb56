"""What a run was commanded to do, phase by phase, in words with units.

Angles are in degrees; times are those of the run, also where a phase has its own clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import pose
from remora.model.formats.bounded_xml import shown
from remora.model.joints import in_coordinates, kind
from remora.model.limit_text import coordinate_text
from remora.model.robot import Joint, Robot
from remora.simulation.recording.recording import Recording
from remora.viewer.component_words import controller_text
from remora.viewer.load_words import LONGEST, is_list, is_mapping, loaded, short
from remora.viewer.run_tables import MOST_ROWS, described_phases, phase_starts

#: Maximum number of names in a list.
MOST_NAMES = 16


class PhaseWords(NamedTuple):
    """A phase in words.

    Attributes:
        name: its name, or its number.
        start: s; None if it was not reached.
        end: s.
        lines: one sentence for each thing that was commanded.
    """

    name: str
    start: float | None
    end: float
    lines: list[str]


class _Clock(NamedTuple):
    """Writes times of a phase as times of the run; if it was not reached, those in the phase."""

    shift: float | None

    def text(self, t: float) -> str:
        return f"{t:.6g} s into it" if self.shift is None else f"{self.shift + t:.6g} s"

    def span(self, start: float, stop: float) -> str:
        return f"from {self.text(start).removesuffix(' s')} to {self.text(stop)}"


def commanded(run: Recording) -> list[PhaseWords]:
    """Return the phases of a run with what was commanded in each."""
    phases, starts = described_phases(run), phase_starts(run)
    made: list[PhaseWords] = []
    for k, phase in enumerate(phases[:MOST_ROWS]):
        start = float(starts[k]) if k < len(starts) else None
        end = float(starts[k + 1]) if k + 1 < len(starts) else float(run.t[-1])
        clock = _Clock(start if phase.get("own_clock") else (0.0 if start is not None else None))
        name = shown(str(phase.get("name") or ""), LONGEST) or f"phase {k + 1}"
        try:
            lines = [line for row in _LINES for line in row(run.robot, phase, clock)]
        except (TypeError, ValueError, LookupError, AttributeError):  # damaged settings
            lines = ["what was commanded cannot be read"]
        made.append(PhaseWords(name, start, end, lines or ["nothing is commanded"]))
    return made


def value_text(joint: Joint, values: Any) -> str:
    """Return coordinates of a joint with their units: `75°`, `0.2 m`, `(10°, 0.1 m)`."""
    numbers = [float(x) for x in np.ravel(np.asarray(values, dtype=float))]
    freedoms = kind(joint).freedoms
    if not in_coordinates(joint) or len(numbers) != len(freedoms):
        return "(" + ", ".join(f"{x:.4g}" for x in numbers) + ")"
    parts = [
        coordinate_text(x, freedom.angular) + ("°" if freedom.angular else " m")
        for x, freedom in zip(numbers, freedoms, strict=True)
    ]
    text = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    return text.replace("-", "−")


def force_text(joint: Joint, values: Any) -> str:
    """Return generalized forces of a joint with their units; of a free joint, torque and force."""
    numbers = [float(x) for x in np.ravel(np.asarray(values, dtype=float))]
    freedoms = kind(joint).freedoms
    if joint.kind == "free" and len(numbers) == 6:
        return " and ".join(_parts(("torque", "N m", numbers[:3]), ("force", "N", numbers[3:])))
    if len(numbers) != len(freedoms):
        return "(" + ", ".join(f"{x:.4g}" for x in numbers) + ")"
    return ", ".join(
        f"{x:.4g} {freedom.force_unit}" for x, freedom in zip(numbers, freedoms, strict=True)
    )


def wrench_text(values: Any) -> str:
    """Return a wrench [f, τ] with units, without a part that is zero."""
    numbers = [float(x) for x in np.ravel(np.asarray(values, dtype=float))]
    if len(numbers) != 6:
        return loaded(values)
    return " and ".join(_parts(("force", "N", numbers[:3]), ("torque", "N m", numbers[3:])))


def _parts(*vectors: tuple[str, str, Sequence[float]]) -> list[str]:
    some = [
        f"{what} ({', '.join(f'{x:.4g}' for x in numbers)}) {unit}"
        for what, unit, numbers in vectors
        if any(numbers)
    ]
    return some or ["zero"]


def _listed(names: Sequence[str], rest: Sequence[str] = ()) -> tuple[str, str]:
    """Return " of PREFIX" if all names have one, and the names, each with what is said of it."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    prefixes = {name.partition("/")[0] if "/" in name else "" for name in names}
    prefix = next(iter(prefixes)) if len(prefixes) == 1 and len(names) > 1 else ""
    own = [short(name.removeprefix(f"{prefix}/") if prefix else name) for name in names]
    said = rest or [""] * len(own)
    own = [f"{name} {text}".rstrip() for name, text in zip(own, said, strict=True)]
    return f" of {short(prefix)}" if prefix else "", ", ".join(own[:MOST_NAMES]) + more


# Held joints -------------------------------------------------------------------------------------


def _reaches(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    reaches = [x for x in _prescribed(phase).values() if is_mapping(x) and "reach" in x]
    for x in reaches[:1]:  # all joints of a phase have the same
        goal, how = x.get("goal"), str(x.get("path"))
        way = "in a straight line" if how == "line" else "by straight lines of the joints"
        base = "recoils" if x.get("base") == "floating" else "is held"
        yield f"{short(str(x['reach']))} reaches {place_text(goal)} {way}; the base {base}"


def place_text(goal: Any) -> str:
    """Return a goal in words: the name of a frame, a position, or a pose in degrees."""
    if isinstance(goal, str):
        return short(goal)
    x = np.asarray(goal, dtype=float)
    at = x if x.shape == (3,) else pose.translation(x)
    text = "(" + ", ".join(coordinate_text(float(p), False) for p in at) + ") m"
    if x.shape == (8,):
        turn = ", ".join(
            f"{coordinate_text(round(float(a), 9) + 0.0, True)}°" for a in pose.to_rpy(x)
        )
        text += f", roll, pitch, yaw ({turn})"
    return text.replace("-", "−")


def _moves(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    """Return prescribed motions; joints that move at the same times share a sentence."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, settings in _prescribed(phase).items():
        if is_mapping(settings) and "reach" in settings:
            continue
        joint = next((j for j in robot.joints if j.name == name), None)
        how, what = _move(joint, settings, clock)
        groups.setdefault(how, []).append((name, what))
    for how, words in groups.items():
        of, text = _listed([name for name, _ in words], [what for _, what in words])
        yield f"joints{of} {how}: {text}"


def _move(joint: Joint | None, settings: Any, clock: _Clock) -> tuple[str, str]:
    """Return how a joint moves, and where to."""
    if joint is None or not is_mapping(settings):
        return "follow", f"{loaded(settings)}"
    if "motion" in settings:
        inner, breaks = settings["motion"], settings.get("breaks") or [0.0]
        if is_mapping(inner) and {"from", "to"} <= set(inner):
            ends = f"from {value_text(joint, inner['from'])} to {value_text(joint, inner['to'])}"
            return f"move {clock.span(breaks[0], breaks[-1])}, from rest to rest", ends
        if is_mapping(inner) and {"times", "values"} <= set(inner):
            return _curve(joint, inner["times"], inner["values"], clock)
        return "follow", f"{loaded(inner)}"
    if {"to", "between"} <= set(settings):
        start, stop = settings["between"]
        how = f"move {clock.span(start, stop)}, from rest to rest"
        return how, f"to {value_text(joint, settings['to'])}"
    if {"through", "times"} <= set(settings):
        return _curve(joint, settings["times"], settings["through"], clock)
    if "sine" in settings and is_mapping(settings["sine"]):
        wave = settings["sine"]
        period = 2.0 * math.pi / float(wave["omega"]) if wave["omega"] else math.inf
        return "swing", f"by ±{value_text(joint, wave['amplitude'])} every {period:.4g} s"
    return "follow", f"{loaded(settings)}"


def _curve(joint: Joint, times: Any, values: Any, clock: _Clock) -> tuple[str, str]:
    how = f"follow curves through {len(times)} points until {clock.text(float(times[-1]))}"
    return how, f"to {value_text(joint, values[-1])}"


def _locked(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    names = phase.get("locked")
    if is_list(names) and names:
        of, text = _listed([str(name) for name in names])
        yield f"joints{of} locked: {text}"


def _prescribed(phase: Mapping[str, Any]) -> Mapping[str, Any]:
    prescribed = phase.get("prescribed")
    return prescribed if is_mapping(prescribed) else {}


# Loads -------------------------------------------------------------------------------------------


def _torques(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    yield from _torque(robot, phase.get("torque"), clock)


def _torque(robot: Robot, settings: Any, clock: _Clock) -> Iterable[str]:
    if settings is None or settings in ({}, []):
        return
    if is_mapping(settings) and is_list(settings.get("sum")):
        for part in settings["sum"]:
            yield from _torque(robot, part, clock)
    elif is_mapping(settings) and "made by" in settings:
        yield controller_text(robot, settings)
    elif is_mapping(settings) and all(name in robot.joints for name in settings):
        for name, own in settings.items():
            joint = robot.joints[name]
            yield f"{short(name)} is driven by {_timed(own, joint, force_text, clock)}"
    elif is_list(settings) and len(settings) == robot.nv:
        for joint in robot.joints:
            own = settings[joint.v]
            if joint.mimic is None and any(own):
                yield f"{short(joint.name)} is driven by {force_text(joint, own)}"
    else:
        yield f"torques: {loaded(settings)}"


def _wrenches(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    base, settings = phase.get("base_wrench"), phase.get("wrenches")
    if base is not None:
        on = short(robot.bodies[0].name)
        yield f"from outside on {on}: {_timed(base, None, _wrench, clock)}"
    if is_mapping(settings) and all(name in robot.bodies for name in settings):
        for name, own in settings.items():
            yield f"from outside on {short(name)}: {_timed(own, None, _wrench, clock)}"
    elif settings not in (None, {}, []):
        yield f"wrenches from outside: {loaded(settings)}"


def _wrench(joint: Any, values: Any) -> str:
    return wrench_text(values)


def _timed(settings: Any, joint: Any, write: Callable[[Any, Any], str], clock: _Clock) -> str:
    """Return a load in words: constant, in a span of time, or by a function."""
    if is_mapping(settings):
        if is_list(settings.get("pulse")):
            start, stop = settings["pulse"]
            inner = _timed(settings.get("value"), joint, write, clock)
            return f"{inner} {clock.span(float(start), float(stop))}"
        if "profile" in settings and is_list(settings.get("times")) and settings["times"]:
            times = settings["times"]
            span = clock.span(float(times[0]), float(times[-1]))
            return f"a {settings['profile']} profile through {len(times)} points {span}"
        return loaded(settings)
    return write(joint, settings)


# Switches and conditions -------------------------------------------------------------------------


def _switches(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    latched = ", latched where it is" if phase.get("latch") else ""
    for key, word, note in (("activate", "switched on", latched), ("release", "switched off", "")):
        if is_list(phase.get(key)) and phase[key]:
            names = [str(name) for name in phase[key]]
            of, text = _listed(names)
            yield f"constraint{of} {text} is {word}{note}"
    apart = phase.get("separation")
    if is_mapping(apart):
        for name, velocity in apart.items():
            leaves = f"its child leaves at {_separation(velocity)}"
            yield f"at the release of {short(str(name))}, {leaves}"


def _separation(velocity: Any) -> str:
    """Return a separation velocity in words: a speed along z, or a vector."""
    x = [float(c) for c in np.asarray(velocity, dtype=float).reshape(3)]
    vector = f"({', '.join(f'{c:.4g}' for c in x)}) m/s in the axes"
    text = vector if any(x[:2]) else f"{x[2]:.4g} m/s along z"
    return f"{text.replace('-', '−')} of the constraint's frame on the parent"


def _conditions(robot: Robot, phase: Mapping[str, Any], clock: _Clock) -> Iterable[str]:
    """Return what ends the phase before its time."""
    listed = phase.get("events")
    events: Sequence[Any] = listed if is_list(listed) else []
    for event in events:
        name, action = str(event[0]), str(event[1])
        if action not in ("next", "stop"):
            continue
        what = "the phase ends" if action == "next" else "the run ends"
        condition: Mapping[str, Any] = event[3] if len(event) > 3 and is_mapping(event[3]) else {}
        if {"grapple", "fixture", "distance"} <= set(condition):
            angle = float(condition.get("angle", math.pi))
            limits = [f"within {1e3 * float(condition['distance']):.4g} mm"]
            limits += [f"{math.degrees(angle):.4g}°"] if angle < math.pi else []
            near = f"{short(str(condition['grapple']))} is {' and '.join(limits)} of "
            near += (
                f"{short(str(condition['fixture']))}, at {1e3 * float(condition['speed']):.4g} mm/s"
            )
            yield f"{what} when {near} or less ({short(name)})"
        else:
            yield f"{what} at the event {short(name)}"


_LINES: tuple[Callable[[Robot, Mapping[str, Any], _Clock], Iterable[str]], ...] = (
    _reaches, _moves, _locked, _torques, _wrenches, _switches, _conditions,
)  # fmt: skip
