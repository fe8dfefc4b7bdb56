"""Words for what acts in a run: names, numbers, loads and motions in its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from remora.model.formats.bounded_xml import shown

#: Maximum number of settings of a component, and those that are told elsewhere.
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


def loaded(given: Any) -> str:
    """Describe the loads in the settings of a run in words."""
    try:
        return _loaded(given)
    except (TypeError, ValueError, LookupError):  # settings on disk may be damaged
        return shown(repr(given))


def _loaded(given: Any) -> str:
    if is_list(given):
        return _numbers(given)
    if not is_mapping(given):
        return number_text(given)
    for key, (listed, words) in _FORMS.items():
        if key in given and (not listed or is_list(given.get(listed))):
            return words(given)
    moves = _moved(given)
    if moves is not None:
        return moves
    items = list(given.items())
    words = [f"{short(str(name))}: {loaded(part)}" for name, part in items[:12]]
    return ", ".join(words) + (f" and {len(items) - 12} more" if len(items) > 12 else "")


def _function(given: Mapping[str, Any]) -> str:
    return f"function {shown(str(given['function']).rpartition('<locals>.')[2], 80)}"


def _sum(given: Mapping[str, Any]) -> str:
    parts = [part for part in given["sum"] if part not in (None, {})]
    return "; ".join(loaded(part) for part in parts[:MOST_SETTINGS])


def _component(given: Mapping[str, Any]) -> str:
    every = given.get("sample_time")
    timing = f", every {every:g} s" if every else ""
    return f"{given['made by']}: {', '.join(settings_in_words(given))}{timing}"


def _sampled(given: Mapping[str, Any]) -> str:
    return f"{loaded(given['sampled'])}, every {given.get('sample_time')} s"


def _pulse(given: Mapping[str, Any]) -> str:
    start, stop = given["pulse"]
    return f"{loaded(given.get('value'))} from {start:g} s to {stop:g} s"


def _profile(given: Mapping[str, Any]) -> str:
    times = given["times"]
    span = f"{times[0]:g} s to {times[-1]:g} s" if times else ""
    return f"{given['profile']} profile, {len(times)} points, {span}"


#: Forms of loads by a key: a key whose value must be a list, or "", and the form in words.
_FORMS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "function": ("", _function),
    "sum": ("sum", _sum),
    "made by": ("", _component),
    "sampled": ("", _sampled),
    "pulse": ("pulse", _pulse),
    "profile": ("times", _profile),
}


def _numbers(given: Sequence[Any]) -> str:
    flat: list[float] = np.asarray(given, dtype=float).ravel().tolist()
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    if not any(flat):
        return "zero"
    more = ", ..." if len(flat) > 12 else ""
    return "(" + ", ".join(f"{x:.4g}" for x in flat[:12]) + more + ")"


def settings_in_words(given: Mapping[str, Any]) -> list[str]:
    """Return the settings of a component or controller, without its timing and what is empty."""
    words: list[str] = []
    for key, x in given.items():
        if key in _NOT_SETTINGS or key.endswith("_places") or x in (None, "", [], False):
            continue
        if x is True:
            words.append(key)
        elif is_list(x) and all(isinstance(part, str) for part in x):
            words.append(f"{key} {', '.join(x)}")
        else:
            words.append(f"{key} {loaded(x)}")
    return words[:MOST_SETTINGS]


def _moved(given: Mapping[str, Any]) -> str | None:
    """Describe a prescribed joint motion in words; None for other inputs."""
    if "motion" in given:
        inner, breaks = given["motion"], given.get("breaks") or [0.0]
        if is_mapping(inner) and {"from", "to"} <= set(inner):
            ends = f"{loaded(inner['from'])} to {loaded(inner['to'])}"
            return f"{ends} from {breaks[0]:g} s to {breaks[-1]:g} s"
        if is_mapping(inner) and {"times", "values"} <= set(inner):
            times, values = inner["times"], inner["values"]
            ends = f"{loaded(values[0])} to {loaded(values[-1])}"
            points = f"a curve through {len(times)} points"
            return f"{ends} from {times[0]:g} s to {times[-1]:g} s, {points}"
        return loaded(inner)
    if {"to", "between"} <= set(given):
        start, stop = given["between"]
        return f"to {loaded(given['to'])} from {start:g} s to {stop:g} s"
    if {"through", "times"} <= set(given):
        values, times = given["through"], given["times"]
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
