"""Reading of runs from disk, including those of processes that were killed."""

from __future__ import annotations

import os
import shlex
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import ModelWarning, RemoraError
from remora.identity.json_seal import unsealed
from remora.model.formats.load import load
from remora.model.robot import Robot
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.simulation.recording.quantities import recorded
from remora.simulation.recording.recording import RecordedEvent, Recording
from remora.simulation.storage.file_format import Spec, event_specs, signals_from, spec
from remora.simulation.storage.stored_folder import RUN, opened, readable

#: Maximum rows of a chunk; a file with more was not written by Remora.
MOST_ROWS = 1 << 20
#: How the warning of a robot whose meshes are not read begins.
MESHES_LEFT_OUT = "meshes left out"


def open_run(
    path: str | os.PathLike[str], mesh_root: str | os.PathLike[str] | None = None
) -> Recording:
    """Open a run that `rm.simulate(..., record=rm.Record(folder=path))` or `Recording.save` wrote.

    This also works while the run is being written and after its process was killed: then the
    complete samples are there, possibly none, and the status is `running`.

    Args:
        path: the folder.
        mesh_root: the folder that must contain the robot's meshes; by default mesh shapes are left
            out, since a run may come from an untrusted source. Nothing else depends on them.

    Raises:
        RemoraError: if there is no run at `path`, or it is damaged.
    """
    folder = Path(path)
    group, attributes = opened(RUN, folder)
    robot = stored_robot(folder, str(attributes.get("robot", "")), mesh_root)
    counts = attributes.get("rows", {})
    has_wrenches = (folder / "wrenches" / "zarr.json").is_file()
    with readable(folder):
        signals = signals_from(attributes.get("signals", {}))
    names = (*recorded(has_wrenches), *signals)
    specs = {name: spec(robot, name, signals) for name in names}
    columns = _read(folder, group, specs, counts.get("samples"))
    events: tuple[RecordedEvent, ...] = ()
    if (folder / "events" / "t").is_dir():
        inner = folder / "events"
        with readable(inner):
            table = group["events"]
            kinds: list[list[str]] = unsealed(dict(table.attrs))["kinds"]
        rows = _read(inner, table, event_specs(robot), counts.get("events"))
        with readable(inner):
            names = [kinds[int(k)] for k in rows["kind"]]
            events = tuple(
                RecordedEvent(float(rows["t"][i]), name, action, rows["q"][i], rows["v"][i])
                for i, (name, action) in enumerate(names)
            )
    text = {k: str(attributes.get(k, "")) for k in ("status", "message", "started", "remora")}

    def stored(name: str) -> Array | None:
        if not (folder / name / "zarr.json").is_file():
            return None
        return _column(folder, group, name, spec(robot, name), len(columns["t"]))

    settings = attributes.get("settings", {})
    starts = tuple(float(t) for t in attributes.get("phase_starts", ()))
    with readable(folder):
        switches = tuple(ConstraintSwitch.from_plain(s) for s in attributes.get("switches", ()))
    return Recording(
        robot, settings, columns, events, *text.values(), stored=stored, phase_starts=starts,
        signal_columns=signals, switches=switches,
    )  # fmt: skip


def stored_robot(folder: Path, text: str, mesh_root: str | os.PathLike[str] | None) -> Robot:
    """Return the robot of a run or a batch from its YAML text, without meshes unless asked for."""
    try:
        with tempfile.TemporaryDirectory(prefix="remora-") as place:
            file = Path(place) / "robot.yaml"
            file.write_text(text, encoding="utf-8", newline="\n")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)  # issued when the run was made
                root = mesh_root or Path(place).anchor
                robot = load(file, merge_fixed=False, mesh_root=root, inertia="warn")
    except RemoraError as error:
        raise RemoraError(f"{folder}: the robot in this folder is refused: {error}") from None
    bodies = [
        replace(body, geometry=tuple(g for g in body.geometry if g.kind != "mesh"))
        for body in robot.bodies
    ]
    meshes = [Path(g.mesh) for body in robot.bodies for g in body.geometry if g.mesh is not None]
    if mesh_root is not None or not meshes:
        return robot
    near = [mesh.parent for mesh in meshes if mesh.anchor == meshes[0].anchor]  # of one drive
    root = os.path.commonpath(near)
    note = (
        f"{MESHES_LEFT_OUT}: {len(meshes)}, since a run may come from someone else; to show them, "
        f"add --mesh-root {shlex.quote(root)} to the command, in Python mesh_root={root!r}"
    )
    return robot.replace(bodies=bodies, warnings=(*robot.warnings, note))


def _read(
    folder: Path, group: Any, specs: Mapping[str, Spec], expected: int | None
) -> dict[str, Array]:
    """Return the rows that are complete in all columns, read-only."""
    if not (folder / "t" / "zarr.json").is_file():
        if expected:
            raise RemoraError(f"{folder / 't'}: is missing; the run is damaged")
        return {name: _frozen(np.empty((0, *s), dtype)) for name, (s, dtype, _) in specs.items()}
    t = _column(folder, group, "t", specs["t"])
    bad = np.flatnonzero(~np.isfinite(t))
    rows = int(bad[0]) if len(bad) else len(t)
    if expected is not None and rows != expected:
        raise RemoraError(
            f"{folder / 't'}: has {rows} rows of the {expected} that were written; it is damaged"
        )
    columns = {"t": _frozen(t[:rows])}
    for name in specs.keys() - {"t"}:
        sparse = name == "wrenches" and expected is None  # started late, before the process ended
        columns[name] = _column(folder, group, name, specs[name], rows, sparse)
    return {name: columns[name] for name in specs}


def _column(
    folder: Path, group: Any, name: str, own: Spec, rows: int | None = None, sparse: bool = False
) -> Array:
    """Return the first rows of an array, checked; for None, all that have a file."""
    shape, dtype, _ = own
    place = folder / name
    with readable(place):
        array = group[name]
        found, chunk = array.shape, array.chunks[0]
        if found[1:] != shape or array.dtype != dtype or not 0 < chunk <= MOST_ROWS:
            raise ValueError(f"an array {found} of {array.dtype} was not expected")
        if 0 in shape:  # nothing to store
            return _frozen(np.empty((rows or 0, *shape)))
        ends = ["0"] * len(shape)
        count = -(-found[0] // chunk) if rows is None else -(-rows // chunk)
        there = 0
        while there < count and place.joinpath("c", str(there), *ends).is_file():
            there += 1
        if rows is None:
            rows = min(found[0], there * chunk)
        elif (there < count and not sparse) or found[0] < rows:
            raise ValueError(f"rows from {min(there * chunk, found[0])} on are missing")
        return _frozen(array[:rows])


def _frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x
