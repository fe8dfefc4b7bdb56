"""Words for what acts in a run: names, numbers, loads and motions in its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from remora.model.formats.bounded_xml import shown

#: Maximum number of settings of a component, and those that are shown elsewhere.
MOST_SETTINGS = 12
_NOT_SETTINGS = ("made by", "name", "sample_time", "offset", "delay")
#: Maximum characters of a name in a title.
NAME = 24
#: Maximum characters of text from a file.
LONGEST = 300


def short(name: str, length: int = NAME) -> str:
    """Return a name for display: control characters escaped, the middle of a long name elided."""
    name = shown(name, 1000)
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[: length - 1 - half]}…{name[-half:]}"


def loaded(settings: Any) -> str:
    """Describe the loads in the settings of a run in words."""
    try:
        return _loaded(settings)
    except (TypeError, ValueError, LookupError):  # settings on disk may be damaged
        return shown(repr(settings))


def _loaded(settings: Any) -> str:
    if is_list(settings):
        return _numbers(settings)
    if not is_mapping(settings):
        return number_text(settings)
    for key, (listed, words) in _FORMS.items():
        if key in settings and (not listed or is_list(settings.get(listed))):
            return words(settings)
    moves = _moved(settings)
    if moves is not None:
        return moves
    items = list(settings.items())
    words = [f"{short(str(name))}: {loaded(part)}" for name, part in items[:12]]
    return ", ".join(words) + (f" and {len(items) - 12} more" if len(items) > 12 else "")


def _function(settings: Mapping[str, Any]) -> str:
    return f"function {shown(str(settings['function']).rpartition('<locals>.')[2], 80)}"


def _sum(settings: Mapping[str, Any]) -> str:
    parts = [part for part in settings["sum"] if part not in (None, {})]
    return "; ".join(loaded(part) for part in parts[:MOST_SETTINGS])


def _component(settings: Mapping[str, Any]) -> str:
    every = settings.get("sample_time")
    timing = f", every {every:g} s" if every else ""
    return f"{settings['made by']}: {', '.join(settings_in_words(settings))}{timing}"


def _sampled(settings: Mapping[str, Any]) -> str:
    return f"{loaded(settings['sampled'])}, every {settings.get('sample_time')} s"


def _pulse(settings: Mapping[str, Any]) -> str:
    start, stop = settings["pulse"]
    return f"{loaded(settings.get('value'))} from {start:g} s to {stop:g} s"


def _profile(settings: Mapping[str, Any]) -> str:
    times = settings["times"]
    span = f"{times[0]:g} s to {times[-1]:g} s" if times else ""
    return f"{settings['profile']} profile, {len(times)} points, {span}"


#: Forms of loads by a key: a key whose value must be a list, or "", and the form in words.
_FORMS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "function": ("", _function),
    "sum": ("sum", _sum),
    "made by": ("", _component),
    "sampled": ("", _sampled),
    "pulse": ("pulse", _pulse),
    "profile": ("times", _profile),
}


def _numbers(numbers: Sequence[Any]) -> str:
    flat: list[float] = np.asarray(numbers, dtype=float).ravel().tolist()
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    if not any(flat):
        return "zero"
    more = ", ..." if len(flat) > 12 else ""
    return "(" + ", ".join(f"{x:.4g}" for x in flat[:12]) + more + ")"


def settings_in_words(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings of a component or controller, without its timing and what is empty."""
    words: list[str] = []
    for key, x in settings.items():
        if key in _NOT_SETTINGS or key.endswith("_places") or x in (None, "", [], False):
            continue
        if x is True:
            words.append(key)
        elif is_list(x) and all(isinstance(part, str) for part in x):
            words.append(f"{key} {', '.join(x)}")
        else:
            words.append(f"{key} {loaded(x)}")
    return words[:MOST_SETTINGS]


def _moved(settings: Mapping[str, Any]) -> str | None:
    """Describe a prescribed joint motion in words; None for other inputs."""
    if "motion" in settings:
        inner, breaks = settings["motion"], settings.get("breaks") or [0.0]
        if is_mapping(inner) and {"from", "to"} <= set(inner):
            ends = f"{loaded(inner['from'])} to {loaded(inner['to'])}"
            return f"{ends} from {breaks[0]:g} s to {breaks[-1]:g} s"
        if is_mapping(inner) and {"times", "values"} <= set(inner):
            times, values = inner["times"], inner["values"]
            ends = f"{loaded(values[0])} to {loaded(values[-1])}"
            points = f"a curve through {len(times)} points"
            return f"{ends} from {times[0]:g} s to {times[-1]:g} s, {points}"
        return loaded(inner)
    if {"to", "between"} <= set(settings):
        start, stop = settings["between"]
        return f"to {loaded(settings['to'])} from {start:g} s to {stop:g} s"
    if {"through", "times"} <= set(settings):
        values, times = settings["through"], settings["times"]
        return f"to {loaded(values[-1])} at {times[-1]:g} s, a curve through {len(times)} points"
    return None


def number_text(x: Any) -> str:
    """Return a number, or other settings as text."""
    return f"{x:g}" if isinstance(x, (int, float)) else shown(str(x), LONGEST)


def fixed(x: float, size: float) -> str:
    """Return a value with as many decimals as the largest one needs, so that columns stay put.

    Four digits of the largest value; the largest itself decides about powers of ten.
    """
    if not math.isfinite(x):
        return "-"
    if size == 0.0:
        return "0"
    if not 1e-3 <= size < 1e6:
        power = math.floor(math.log10(size))
        text = f"{x / 10.0**power:.3f}e{power}"
    else:
        decimals = min(max(3 - math.floor(math.log10(size)), 0), 6)
        text = f"{x:.{decimals}f}"
    text = text[1:] if text.startswith("-") and float(text) == 0.0 else text
    return text.replace("-", "−")


def is_mapping(x: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether settings are a map."""
    return isinstance(x, Mapping)


def is_list(x: object) -> TypeGuard[Sequence[Any]]:
    """Return whether settings are a list."""
    return isinstance(x, (list, tuple))
