"""Components of a run: a table of them, and their settings in words with the declared units."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.components.parameter import OF_SIGNAL, Parameter, declared
from remora.model.formats.bounded_xml import shown
from remora.model.joints import kind
from remora.model.limit_text import coordinate_text
from remora.model.robot import Robot
from remora.simulation.recording.recording import Recording
from remora.simulation.scenario.component_table import COMPONENTS
from remora.viewer.load_words import (
    LONGEST,
    MOST_SETTINGS,
    is_list,
    is_mapping,
    loaded,
    settings_in_words,
    short,
)
from remora.viewer.run_tables import MOST_ROWS, TextTable
from remora.viewer.scene.link_roles import WHEEL, role_of

_TURN = 180.0 / math.pi


def controller_text(robot: Robot, settings: Mapping[str, Any]) -> str:
    """Return a controller with its settings and units in one line."""
    every = settings.get("sample_time")
    words = component_settings(robot, settings)
    text = f": {', '.join(words)}" if words else ""
    return f"{settings.get('made by')}{text}" + (f", every {loaded(every)} s" if every else "")


def component_settings(robot: Robot, settings: Mapping[str, Any]) -> list[str]:
    """Return the settings of a component with units; those with a number for each joint by joint.

    Args:
        robot: the robot.
        settings: the settings, as stored with a run.
    """
    parameters = _parameters().get(str(settings.get("made by")), {})
    joints = _joints(robot, settings)
    words: list[str] = []
    for key, x in settings.items():
        own = parameters.get(key)
        if key == "joints" and len(joints) > 1 and "goal" in settings:
            continue  # they are named beside the numbers
        if own is None or x in (None, "", [], False):
            words += settings_in_words({key: x})
        elif own.kind == "number" and not np.any(x):
            continue
        elif own.unit == OF_SIGNAL:
            words.append(f"{key} {loaded(x)} {settings.get('unit', '')}".rstrip())
        else:
            words.append(_setting(robot, joints, key, own, x))
    return words[:MOST_SETTINGS]


@functools.cache
def _parameters() -> dict[str, Mapping[str, Parameter]]:
    """Return the parameters of all ready-made components, by the name of the class."""
    return {row.__name__: declared(row) for row in COMPONENTS.values()}


def _joints(robot: Robot, settings: Mapping[str, Any]) -> list[str]:
    names = settings.get("joints")
    return [str(n) for n in names if str(n) in robot.joints] if is_list(names) else []


def _setting(robot: Robot, joints: list[str], key: str, own: Parameter, x: Any) -> str:
    """Return a setting in words."""
    try:
        return _with_unit(robot, joints, key, own, x)
    except (TypeError, ValueError, LookupError):  # settings on disk may be damaged
        return f"{key} {loaded(x)}"


def _with_unit(robot: Robot, joints: list[str], key: str, own: Parameter, x: Any) -> str:
    if own.kind == "orientation":
        rpy = (
            np.degrees(pose.to_rpy(pose.from_parts(np.asarray(x, dtype=float), np.zeros(3)))) + 0.0
        )
        text = ", ".join(f"{angle:.4g}°" for angle in rpy).replace("-", "−")
        return f"{key} roll, pitch, yaw ({text})"
    if own.kind == "joint places":
        return _places(robot, joints, key, x)
    if not own.unit:
        (word,) = settings_in_words({key: x})
        return word
    turning = [kind(robot.joints[name]).freedoms[0].angular for name in joints]
    mixed = len(set(turning)) > 1
    unit = own.unit if mixed else own.unit_of(not turning or turning[0])
    factor = 1.0
    if unit == "rad/s" and joints and _are_wheels(robot, joints):
        unit, factor = "rpm", 30.0 / math.pi
    elif unit in ("rad", "rad/s") and (turning or own.unit == unit):
        unit, factor = unit.replace("rad", "°"), _TURN
    elif unit in ("rad", "rad/s"):
        unit = own.unit
    return f"{key} {_numbers(factor * np.asarray(x, dtype=float))} {unit}"


def _numbers(x: Any) -> str:
    """Return numbers as text, those that are all the same once."""
    values: Sequence[float] = np.ravel(x).tolist()
    if np.ndim(x) > 1 or len(values) > MOST_SETTINGS:
        return loaded(np.asarray(x).tolist())
    texts = [f"{value:.4g}" for value in values]
    return texts[0] if len(set(values)) == 1 else f"({', '.join(texts)})"


def _are_wheels(robot: Robot, joints: list[str]) -> bool:
    return all(role_of(robot, robot.joint_index(name)) == WHEEL for name in joints)


def _places(robot: Robot, joints: list[str], key: str, x: Any) -> str:
    """Return coordinates by joint."""
    values = np.ravel(np.asarray(x, dtype=float))
    if len(values) != len(joints):
        return f"{key} {loaded(values.tolist())}"
    prefixes = {name.partition("/")[0] if "/" in name else "" for name in joints}
    prefix = next(iter(prefixes)) if len(prefixes) == 1 else ""
    parts: list[str] = []
    for name, value in zip(joints, values, strict=True):
        turns = kind(robot.joints[name]).freedoms[0].angular
        text = coordinate_text(float(value), turns) + ("°" if turns else " m")
        own = name.removeprefix(f"{prefix}/") if prefix else name
        parts.append(f"{short(own)} {text.replace('-', '−')}")
    return f"{key} {', '.join(parts)}"


def component_table(run: Recording) -> TextTable:
    """Return a table of the components: timing, sources of inputs, signals, settings."""
    components, connections = run.settings.get("components"), run.settings.get("connections")
    named: Mapping[str, Any] = components if is_mapping(components) else {}
    sources: Mapping[str, Any] = connections if is_mapping(connections) else {}
    rows: list[tuple[str, ...]] = []
    for name, settings in list(named.items())[:MOST_ROWS]:
        own: Mapping[str, Any] = settings if is_mapping(settings) else {}
        reads = [
            f"{target.removeprefix(name + '.')} ← {_source(source)}"
            for target, source in sources.items() if target.startswith(f"{name}.")
        ]  # fmt: skip
        signals = [
            f"{key.removeprefix(name + '.')} [{column.unit or '1'}]"
            for key, column in run.signal_columns.items() if key.startswith(f"{name}.")
        ]  # fmt: skip
        words = component_settings(run.robot, own)
        kind = f" ({own['made by']})" if own.get("made by") else ""
        cells = (
            f"{name}{kind}", _timing(own), "; ".join(reads), "; ".join(signals), ", ".join(words),
        )  # fmt: skip
        rows.append(tuple(shown(cell, 2 * LONGEST) for cell in cells))
    head = ("component", "timing", "inputs", "signals and states", "settings")
    return TextTable(head, rows, len(named) - len(rows))


def _timing(own: Mapping[str, Any]) -> str:
    if own.get("sample_time") is None:
        return "continuous"
    text = f"every {loaded(own['sample_time'])} s"
    return text + "".join(f", {k} {loaded(own[k])} s" for k in ("offset", "delay") if own.get(k))


def _source(source: Any) -> str:
    return source if isinstance(source, str) else loaded(source)
