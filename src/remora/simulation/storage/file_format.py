"""What a run on disk consists of; `storage` writes it, `reading` reads it.

A run is a folder, one zarr group (format 3): an array for each recorded column and for some
derived quantities, one row a sample, described in its attributes; `events`, a group of the same
make; and robot, settings and status in the attributes of the group.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.recording.quantities import column

#: Version of the format, in the attribute `remora_run`.
FORMAT = 1

Spec = tuple[tuple[int, ...], str, dict[str, Any]]
"""Of an array: the shape of a row, the type, the attributes."""


def zarr() -> Any:
    """Return zarr, or say what is missing."""
    try:
        return importlib.import_module("zarr")
    except ModuleNotFoundError:
        raise RemoraError("runs on disk need zarr: python3 -m pip install zarr") from None


def spec(robot: Robot, name: str) -> Spec:
    """Return what the array of a column or quantity is."""
    row = column(name)
    components = row.components(robot)
    attributes = {
        "meaning": row.meaning,
        "components": [own for own, _ in components],
        "units": [unit for _, unit in components],
    }
    return row.shape(robot), row.dtype, attributes


def event_specs(robot: Robot) -> dict[str, Spec]:
    """Return what the arrays of the events are."""
    which = {"meaning": "which of `kinds`, a list of [name, action], of the group's attributes"}
    own = {name: spec(robot, name) for name in ("t", "q", "v")}
    return {**own, "kind": ((), "int64", which)}


def fill(name: str, dtype: Any) -> float | int:
    """Return what stands where nothing is written; wrenches are zero before they come."""
    if name == "wrenches":
        return 0.0
    return np.nan if np.dtype(dtype).kind == "f" else -1


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON gives them back, or raise."""
    try:
        return json.loads(json.dumps(dict(settings)))
    except (TypeError, ValueError) as error:
        raise RemoraError(f"settings of a run must be plain data for JSON: {error}") from None
