"""File format of a run on disk; `recorder` writes it, `reading` reads it.

A run is a folder with one zarr group (format 3): an array for each recorded column and for some
derived quantities, one row per sample, described in its attributes; `events`, a group of the same
structure; and robot, settings and status in the attributes of the group. Chunks of arrays and the
attributes of the groups have checksums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.recording.quantities import (
    NO_SIGNALS,
    SignalColumn,
    SignalColumns,
    column,
    signal_columns,
)

#: Name of a signal: component and signal; it is also the name of a folder.
_SIGNAL = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*\.[A-Za-z_][A-Za-z0-9_\-]*")
#: Maximum length of an axis of a signal.
MOST_ELEMENTS = 1 << 20

Spec = tuple[tuple[int, ...], str, dict[str, Any]]
"""An array: shape of a row, data type, attributes."""


def spec(robot: Robot, name: str, signals: SignalColumns = NO_SIGNALS) -> Spec:
    """Return the specification of the array of a column, quantity or signal."""
    row = column(name, signals)
    components = row.components(robot)
    attributes = {
        "meaning": row.meaning,
        "components": [own for own, _ in components],
        "units": [unit for _, unit in components],
    }
    return row.shape(robot), row.dtype, attributes


def plain_signals(signals: SignalColumns) -> dict[str, Any]:
    """Return names, shapes and units of signals as JSON-compatible data."""
    return {name: [list(own.size), own.unit] for name, own in signals.items()}


def signals_from(data: Any) -> dict[str, SignalColumn]:
    """Return the signals of data written by `plain_signals`.

    Raises:
        ValueError: if it is something else.
    """
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, (size, unit) in dict(data).items():
        whole = all(type(n) is int and 0 < n <= MOST_ELEMENTS for n in size)
        if not _SIGNAL.fullmatch(name) or not whole or not isinstance(unit, str):
            raise ValueError(f"{name!r} is not a signal of a component")
        found[name] = (tuple(size), unit)
    return signal_columns(found)


def event_specs(robot: Robot) -> dict[str, Spec]:
    """Return the specifications of the arrays of events."""
    which = {"meaning": "which of `kinds`, a list of [name, action], of the group's attributes"}
    own = {name: spec(robot, name) for name in ("t", "q", "v")}
    return {**own, "kind": ((), "int64", which)}


def fill(name: str, dtype: Any) -> float | int:
    """Return the fill value of unwritten rows; zero for wrenches, which may start late."""
    if name == "wrenches":
        return 0.0
    return np.nan if np.dtype(dtype).kind == "f" else -1


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings after a JSON round trip, or raise."""
    try:
        return json.loads(json.dumps(dict(settings)))
    except (TypeError, ValueError) as error:
        raise RemoraError(f"settings of a run must be plain data for JSON: {error}") from None
