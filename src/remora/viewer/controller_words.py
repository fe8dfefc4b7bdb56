"""Settings of controllers, sensors and actuators in words with units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.model.joints import kind
from remora.model.limit_text import coordinate_text
from remora.model.robot import Robot
from remora.viewer.load_words import MOST_SETTINGS, is_list, loaded, settings_in_words, short
from remora.viewer.scene.link_roles import WHEEL, role_of

#: Units of gains by the name of the setting: of a joint that turns, and of one that slides.
_GAINS: dict[str, tuple[str, str]] = {
    "kp": ("N m/rad", "N/m"), "kd": ("N m s/rad", "N s/m"), "ki": ("N m/(rad s)", "N/(m s)"),
}  # fmt: skip
#: Units of other settings.
_UNITS = {
    "max_torque": "N m", "thrust": "N", "time_constant": "s", "null_gain": "1/s", "torque": "N m",
}  # fmt: skip
_TURN = 180.0 / math.pi


def controller_text(robot: Robot, given: Mapping[str, Any]) -> str:
    """Return a controller with its settings and units in one line."""
    every = given.get("sample_time")
    words = component_settings(robot, given)
    told = f": {', '.join(words)}" if words else ""
    return f"{given.get('made by')}{told}" + (f", every {loaded(every)} s" if every else "")


def component_settings(robot: Robot, given: Mapping[str, Any]) -> list[str]:
    """Return the settings of a component with units; those with a number for each joint by joint.

    Args:
        robot: the robot.
        given: the settings, as stored with a run.
    """
    joints = _joints(robot, given)
    rest = {key: x for key, x in given.items() if key not in _WORDS and key not in _UNITS}
    words: list[str] = []
    for key, x in given.items():
        if x is None or (key in ("null_gain", "speeds") and not np.any(np.asarray(x))):
            continue
        if key in _WORDS:
            words += _WORDS[key](robot, joints, key, x)
        elif key in _UNITS:
            words.append(f"{key} {loaded(x)} {_UNITS[key]}")
    if any(key in given for key in ("goal", *_GAINS)) and len(joints) > 1:
        rest.pop("joints", None)  # they are named beside the numbers
    return [*settings_in_words(rest), *words][:MOST_SETTINGS]


def _joints(robot: Robot, given: Mapping[str, Any]) -> list[str]:
    names = given.get("joints")
    return [str(n) for n in names if str(n) in robot.joints] if is_list(names) else []


def _goal(robot: Robot, joints: list[str], key: str, x: Any) -> list[str]:
    values = np.ravel(np.asarray(x, dtype=float))
    if values.shape == (4,) and len(joints) <= 1:
        rpy = np.degrees(pose.to_rpy(pose.from_parts(values, np.zeros(3)))) + 0.0
        text = ", ".join(f"{a:.4g}°" for a in rpy).replace("-", "−")
        return [f"goal roll, pitch, yaw ({text})"]
    if len(values) != len(joints):
        return [f"goal {loaded(values.tolist())}"]
    parts: list[str] = []
    prefixes = {name.partition("/")[0] if "/" in name else "" for name in joints}
    prefix = next(iter(prefixes)) if len(prefixes) == 1 else ""
    for name, value in zip(joints, values, strict=True):
        turns = kind(robot.joints[name]).freedoms[0].angular
        text = coordinate_text(float(value), turns) + ("°" if turns else " m")
        own = name.removeprefix(f"{prefix}/") if prefix else name
        parts.append(f"{short(own)} {text.replace('-', '−')}")
    return [f"goal {', '.join(parts)}"]


def _gain(robot: Robot, joints: list[str], key: str, x: Any) -> list[str]:
    values = [float(v) for v in np.ravel(np.asarray(x, dtype=float))]
    slides = [n for n in joints if not kind(robot.joints[n]).freedoms[0].angular]
    units = _GAINS[key]
    mixed = 0 < len(slides) < len(joints)
    unit = " or ".join(units) if mixed else units[1 if slides else 0]
    alike = len(set(values)) == 1
    text = f"{values[0]:.4g}" if alike else "(" + ", ".join(f"{v:.4g}" for v in values) + ")"
    return [f"{key} {text} {unit}"]


def _speed(robot: Robot, joints: list[str], key: str, x: Any) -> list[str]:
    if not isinstance(x, (int, float)):
        return [f"{key} {loaded(x)}"]
    turning = [kind(robot.joints[n]).freedoms[0].angular for n in joints]
    if joints and all(role_of(robot, robot.joint_index(n)) == WHEEL for n in joints):
        return [f"{key} {float(x) * 30.0 / math.pi:.5g} rpm"]
    if turning and all(turning):
        return [f"{key} {_TURN * float(x):.4g} °/s"]
    return [f"{key} {float(x):.4g} {'rad/s or m/s' if not turning or any(turning) else 'm/s'}"]


#: How settings are written, by name.
_WORDS = {
    "goal": _goal, "max_speed": _speed, "speeds": _speed, **dict.fromkeys(_GAINS, _gain),
}  # fmt: skip
