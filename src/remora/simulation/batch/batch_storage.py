"""Batches on disk: one folder with all samples, written whole or not at all.

A batch is a folder with one zarr group (format 3), readable by zarr alone: arrays `t`, `q`, `v`,
`ok`, `end`, `outcome`, the states at the end, one array for each parameter and signal, the events,
and the switches of constraints. The robot, the names and a digest of each array are in the
attributes of the group. Arrays are not compressed, so a file that was cut off has the wrong size; a
changed one has another digest.

Components and loads may be the user's own code. They are not stored, only their digest: with the
same system and phases, single runs of an opened batch can be simulated again.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.system import System
from remora.errors import RemoraError
from remora.identity.digest import digest_or_none
from remora.identity.json_seal import sealed
from remora.model.formats.yaml.yaml import robot_to_yaml
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.result import Batch, BatchEvents, FinalStates
from remora.simulation.batch.single_run import RunArguments
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.run_settings import Integrator, Physics
from remora.simulation.recording.constraint_switch import BatchSwitch
from remora.simulation.storage.reading import stored_robot
from remora.simulation.storage.stored_folder import (
    BATCH,
    array_digest,
    opened,
    readable,
    writable,
    zarr,
)

#: Arrays of the events.
_EVENTS = ("counts", "times", "fired", "first")
#: Bytes of a file of an array.
CHUNK_BYTES = 32 << 20
#: Data types of stored arrays.
TYPES = ("float64", "float32", "int64", "uint8", "bool")
NOT_STORED = (
    "it was opened from disk, where components and loads are not stored; give them to "
    "rm.open_batch(path, system=..., phases=...)"
)


def save_batch(batch: Batch, path: str | os.PathLike[str]) -> Path:
    """Write a batch into a new folder; see `Batch.save`."""
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RemoraError(f"{folder}: exists and is not empty; name another folder")
    arrays, attributes = _content(batch)
    with writable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as place:
            group: Any = zarr().create_group(Path(place) / "batch")
            for name, values in arrays.items():
                _written(group, name, values)
            group.attrs.update(sealed(attributes))
            if folder.exists():
                folder.rmdir()
            (Path(place) / "batch").replace(folder)
    return folder


def _content(batch: Batch) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays by name, and the attributes of the group."""
    names, codes = np.unique(np.asarray(batch.outcome, str), return_inverse=True)
    arrays = {
        "t": batch.t, "q": batch.q, "v": batch.v, "ok": batch.ok, "end": batch.end,
        "final_q": batch.final.q, "final_v": batch.final.v,
        "outcome": codes.reshape(np.shape(batch.outcome)).astype(np.uint8),
    }  # fmt: skip
    attributes: dict[str, Any] = {
        **BATCH.heading(),
        "robot": robot_to_yaml(batch.robot),
        "status": batch.status,
        "outcomes": names.tolist(),
        "longest_outcome": names.dtype.itemsize // 4,
        "runs": list(batch.ok.shape),
        "parameters": [[n, batch.component_axes.get(n)] for n in batch.parameters],
        "signals": [[n, batch.signal_units.get(n, "")] for n in batch.signals],
        "events": None if batch.events is None else list(batch.events.names),
    }
    arrays |= {f"parameter_{k}": x for k, x in enumerate(batch.parameters.values())}
    arrays |= {f"signal_{k}": x for k, x in enumerate(batch.signals.values())}
    arrays |= {f"final_signal_{k}": batch.final.signals[n] for k, n in enumerate(batch.signals)}
    if batch.events is not None:
        arrays |= {f"event_{n}": getattr(batch.events, n) for n in _EVENTS}
    attributes["switches"] = [s.description() for s in batch.switches]
    attributes["faults"] = [[k, text] for k, text in batch.faults.items()]
    for k, switch in enumerate(batch.switches):
        arrays |= {f"switch_{k}_{n}": x for n, x in enumerate(switch.arrays())}
    arguments = batch.arguments
    if arguments is not None:
        arrays |= {"start_q": arguments.q, "start_v": arguments.v, "run": arguments.run}
        attributes["arguments"] = json.dumps(_arguments(batch.system, arguments))
    host = {name: _on_host(x) for name, x in arrays.items()}
    attributes["digests"] = {name: array_digest(x) for name, x in host.items()}
    return host, attributes


def _arguments(system: System, arguments: RunArguments) -> dict[str, Any]:
    """Return what a run needs to be simulated alone, except arrays, as JSON-compatible data."""
    obstacle = arguments.obstacle
    left = {"events=": arguments.events, "loads that differ from run to run": arguments.loads}
    for what, some in left.items():
        if some and not obstacle:
            obstacle = f"it had {what}, which its folder does not hold"
    return {
        "integrator": asdict(arguments.integrator), "physics": asdict(arguments.physics),
        "start": arguments.start, "seed": arguments.seed, "obstacle": obstacle,
        "durations": [phase.duration for phase in arguments.phases],
        "plain": _plain(arguments.phases), "components": bool(system.components),
        "system": digest_or_none(system), "phases": digest_or_none(arguments.phases),
    }  # fmt: skip


def _plain(phases: Sequence[Phase]) -> bool:
    """Return whether the phases have nothing but a duration."""
    bare = digest_or_none(tuple(Phase(phase.duration) for phase in phases))
    return bare is not None and bare == digest_or_none(tuple(phases))


def _on_host(x: Any) -> Array:
    found = np.asarray(to_host(x), order="C")
    return found.astype(np.int64) if found.dtype.kind in "iu" and found.itemsize > 1 else found


def _written(group: Any, name: str, values: Array) -> None:
    row = values.itemsize * math.prod(values.shape[1:])
    rows = max(1, min(len(values), CHUNK_BYTES // max(row, 1))) if values.ndim else 1
    chunks = (rows, *(max(1, n) for n in values.shape[1:])) if values.ndim else ()
    made = group.create_array(
        name, shape=values.shape, dtype=values.dtype, chunks=chunks, compressors=None,
        config={"write_empty_chunks": True},
    )  # fmt: skip
    made[...] = values


# Reading -----------------------------------------------------------------------------------------


def open_batch(
    path: str | os.PathLike[str],
    *,
    system: System | None = None,
    phases: Sequence[Phase] | None = None,
    mesh_root: str | os.PathLike[str] | None = None,
) -> Batch:
    """Open a batch that `Batch.save` wrote.

    Samples, signals, events and parameters are the same bits; `plot`, `to_pandas`, `evaluate` and
    `view` work. Components and loads are not stored, since they may be code of your own. Runs of a
    robot without any can be simulated again, `batch[7]`; for others give them here.

    Args:
        path: the folder.
        system: the robot with its components, equal by value to that of the batch.
        phases: the phases, equal by value; for a batch with a `duration` and loads
            `[rm.Phase(duration, torque=...)]`.
        mesh_root: the folder that must contain the robot's meshes; by default they are left out.

    Raises:
        RemoraError: if there is no batch at `path`, a file of it is damaged, or `system` or
            `phases` differ from those of the batch.
    """
    folder = Path(path)
    group, attributes = opened(BATCH, folder)
    robot = stored_robot(folder, str(attributes.get("robot", "")), mesh_root)
    with readable(folder / "zarr.json"):
        digests: dict[str, str] = dict(attributes["digests"])
        parameters = [(str(n), axes) for n, axes in attributes["parameters"]]
        signals = [(str(n), str(unit)) for n, unit in attributes["signals"]]
        outcomes = np.array(attributes["outcomes"], f"<U{min(64, attributes['longest_outcome'])}")
        status, shape = str(attributes["status"]), tuple(map(int, attributes["runs"]))
        stored = json.loads(attributes["arguments"]) if "arguments" in attributes else None
        named = attributes["events"]
        switches = list(attributes.get("switches", []))
        faults = {int(k): str(text) for k, text in attributes.get("faults", [])}
    found = {name: _read(folder, group, name, digests[name]) for name in digests}
    with readable(folder):
        if found["ok"].shape != shape or found["q"].shape[-1] != robot.nq:
            raise ValueError("its arrays do not belong to its robot")
        events = None
        if named is not None:
            parts = (found[f"event_{n}"] for n in _EVENTS)
            events = BatchEvents(tuple(map(str, named)), *parts)
        last = {name: found[f"final_signal_{k}"] for k, (name, _) in enumerate(signals)}
        final = FinalStates(found["end"], found["final_q"], found["final_v"], last)
        values = {name: found[f"parameter_{k}"] for k, (name, _) in enumerate(parameters)}
        batch = Batch(
            robot, found["t"], found["q"], found["v"], values, found["ok"], status,
            System(robot), {name: found[f"signal_{k}"] for k, (name, _) in enumerate(signals)},
            outcomes[found["outcome"]], found["end"], final, events, None,
            tuple(_switch(k, description, found) for k, description in enumerate(switches)), faults,
            signal_units=dict(signals),
            component_axes={name: int(axes) for name, axes in parameters if axes is not None},
        )  # fmt: skip
    return _with_arguments(folder, batch, stored, found, system, phases)


def _switch(k: int, description: Mapping[str, Any], found: Mapping[str, Array]) -> BatchSwitch:
    """Return the switch with this number from its description and its arrays."""
    names = [n for n in found if n.startswith(f"switch_{k}_")]
    return BatchSwitch.of(description, [found[f"switch_{k}_{n}"] for n in range(len(names))])


def _with_arguments(
    folder: Path, batch: Batch, stored: Mapping[str, Any] | None, found: Mapping[str, Array],
    system: System | None, phases: Sequence[Phase] | None,
) -> Batch:  # fmt: skip
    """Return the batch with what its runs need to be simulated alone."""
    if stored is None:
        return batch
    with readable(folder / "zarr.json"):
        integrator, physics = Integrator(**stored["integrator"]), Physics(**stored["physics"])
        start, seed = float(stored["start"]), int(stored["seed"])
        bare = tuple(Phase(float(x)) for x in stored["durations"])
        plain, obstacle = bool(stored["plain"]), str(stored["obstacle"])
        components = bool(stored["components"])
        digests = {"system": stored["system"], "phases": stored["phases"]}
    given = bare if phases is None else tuple(phases)
    mine = batch.system if system is None else system
    for what, known, value in (("system", mine, system), ("phases", given, phases)):
        if value is not None and (digests[what] is None or digest_or_none(known) != digests[what]):
            raise RemoraError(f"{folder}: the {what} of this batch differ{'s' * (what[-1] == 'm')}")
    known = (plain or phases is not None) and (not components or system is not None)
    arguments = RunArguments(
        found["start_q"], found["start_v"], found["run"], given, integrator, physics, start, seed,
        batch.t, (), obstacle or ("" if known else NOT_STORED),
    )  # fmt: skip
    return batch.with_arguments(mine, arguments)


def _read(folder: Path, group: Any, name: str, digest: str) -> Array:
    """Return an array after checking the sizes of its files and its digest."""
    with readable(folder / name):
        array = group[name]
        if str(array.dtype) not in TYPES:
            raise ValueError(f"an array of {array.dtype} was not expected")
        each = array.dtype.itemsize * math.prod(array.chunks)
        counts = [-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True)]
        for place in np.ndindex(*counts):  # before memory is taken for what may not be there
            file = (folder / name / "c").joinpath(*map(str, place))
            size = file.stat().st_size if file.is_file() else -1
            if size != each:
                what = "is missing" if size < 0 else f"has {size} bytes instead of {each}"
                raise RemoraError(f"{file}: {what}; the batch is damaged")
        values = np.asarray(array[...])
    if array_digest(values) != digest:
        raise RemoraError(f"{folder / name}: its numbers have changed; the batch is damaged")
    return values
