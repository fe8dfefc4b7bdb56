"""Runs on disk: written while the simulation goes on, readable whatever ends it.

A run is a folder, one zarr group (format 3): an array for each recorded column and for some
derived quantities, one row a sample, described in its attributes; `events`, a group of the same
make; and robot, settings and status in the attributes of the group.

zarr writes every file under another name and renames it, so that a file is there whole or not at
all. Arrays are grown ahead of their rows, filled with NaN; of each chunk of rows the column `t` is
written last. So a row with a finite `t` is complete in all columns, and nothing else is asked when
a run is opened whose process was killed. (A machine that loses power may lose more: files are not
forced to the disk.)
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.namespace import Array
from remora.dynamics.compiled import CompiledRobot
from remora.errors import RemoraError, UnknownName
from remora.model.load import load
from remora.model.robot import Robot
from remora.model.yaml import dumps
from remora.simulate.quantities import QUANTITIES, STORED, column, recorded
from remora.simulate.recording import Event, Recording, Samples

#: Version of the format, in the attribute `remora_run`.
FORMAT = 1
#: How a run can end.
ENDS = ("complete", "interrupted", "failed")
#: What was simulated is on disk after this time at the latest, s.
FLUSH_SECONDS = 1.0
#: A chunk holds this many rows, fewer where a row is so long that it would be larger than that.
CHUNK_ROWS, CHUNK_BYTES = 4096, 4 * 1024 * 1024
#: No chunk of a run has more rows; what says otherwise was not written by Remora.
MOST_ROWS = 1 << 20

Spec = tuple[tuple[int, ...], str, dict[str, Any]]
"""Of an array: the shape of a row, the type, the attributes."""


class Recorder(Samples):
    """What a running simulation writes into: memory, and a folder if asked to.

    Samples stay in memory whatever happens to the disk; `recording` gives them.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Mapping[str, Any],
        out: str | os.PathLike[str] | None = None,
        chunk: int | None = None,
    ) -> None:
        """Prepare; with `out`, make the folder.

        Args:
            robot: the robot.
            settings: what the simulation was asked for; JSON can hold it.
            out: a folder to be made, or an empty one; None: memory only.
            chunk: rows written at a time and held by a file; default: by the robot's size.

        Raises:
            RemoraError: if `out` cannot be used, or the robot or the settings cannot be written.
        """
        super().__init__(robot, settings, _chunk_rows(robot) if chunk is None else chunk)
        self._folder = None if out is None else _Folder(Path(out), self.recording(), self.chunk)
        self._next = time.monotonic() + FLUSH_SECONDS

    def _appended(self) -> None:
        """Write at the first sample, at a full chunk, and when the last time is long ago.

        Raises:
            RemoraError: if the disk cannot take it; the sample is in memory all the same.
        """
        if self._folder is not None and (
            self._n % self.chunk == 0 or self._n == 1 or time.monotonic() >= self._next
        ):
            self.flush()

    def flush(self) -> None:
        """Write to disk what is not there yet; after an error of the disk, nothing.

        Raises:
            RemoraError: if the disk cannot take it; what was there stays readable.
        """
        if self._folder is not None:
            self._folder.write(self.recording())
            self._next = time.monotonic() + FLUSH_SECONDS

    def finish(self, status: str, message: str = "") -> None:
        """Write the rest, and how the run ended.

        After an error of the disk only the status is written, if that much is possible: the error
        has been raised, and a run on disk that says `running` has the samples up to then.

        Args:
            status: a name of ENDS.
            message: why it ended.

        Raises:
            RemoraError: if the disk cannot take it.
        """
        if status not in ENDS:
            raise UnknownName("end of a run", status, ENDS)
        self.status, self.message = status, message
        if self._folder is not None:
            self._folder.finish(self.recording())


def save(run: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording into a new folder; see `Recording.save`."""
    _Folder(Path(path), run, _chunk_rows(run.robot)).finish(run)


# Writing ----------------------------------------------------------------------------------------


class _Folder:
    """A run on disk while it is written, by one thread of its own.

    So a write that is left alone by Ctrl-C is finished before the next begins.
    """

    def __init__(self, path: Path, run: Recording, chunk: int) -> None:
        self._path, self._chunk = path, chunk
        self._samples: _Table | None = None
        self._events: _Table | None = None
        self._broken = False
        self._fast = CompiledRobot(run.robot)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remora-recorder")
        attributes = {
            "remora_run": FORMAT,
            "remora": run.version,
            "started": run.started,
            "status": "running",
            "message": "",
            "settings": _json(run.settings),
            "robot": dumps(run.robot),
        }
        zarr = _zarr()
        with _explained(path):
            if path.exists() and not path.is_dir():
                raise RemoraError(f"{path}: is a file; name a new folder")
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise RemoraError(f"{path}: is not empty; name a new folder, or remove it first")
            self._group = zarr.create_group(path, zarr_format=3, attributes=attributes)

    def write(self, run: Recording) -> None:
        if not self._broken:
            self._do(partial(self._write, run))

    def finish(self, run: Recording) -> None:
        told = contextlib.suppress(RemoraError) if self._broken else contextlib.nullcontext()
        with told:
            self.write(run)
            self._do(partial(self._close, run))
        self._thread.shutdown(wait=False)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            with _explained(self._path):
                self._thread.submit(job).result()
        except Exception:
            self._broken = True
            raise

    def _write(self, run: Recording) -> None:
        if run.events:
            kinds = list(dict.fromkeys((e.name, e.action) for e in run.events))
            if self._events is None:
                group = self._group.create_group("events")
                self._events = _Table(group, self._chunk, _event_specs(run.robot))
            self._events.group.update_attributes({"kinds": kinds})
            self._events.write(len(run.events), partial(_event_rows, run.events, kinds))
        if len(run):
            specs = {name: _spec(run.robot, name) for name in (*run.columns, *STORED)}
            if self._samples is None:
                self._samples = _Table(self._group, self._chunk, specs)
            self._samples.add(specs)  # wrenches may come late
            self._samples.write(len(run), partial(self._rows, run))

    def _rows(self, run: Recording, rows: slice) -> dict[str, Array]:
        block = {name: values[rows] for name, values in run.columns.items()}
        return block | {name: QUANTITIES[name].of(self._fast, block) for name in STORED}

    def _close(self, run: Recording) -> None:
        end: dict[str, Any] = {"status": run.status, "message": run.message}
        if not self._broken:
            for table in filter(None, (self._samples, self._events)):
                table.resize(table.rows)  # without those made ahead
            end["rows"] = {"samples": len(run), "events": len(run.events)}
        self._group.update_attributes(end)


class _Table:
    """Arrays of a group that grow together, a chunk of rows a file; `t` is written last."""

    def __init__(self, group: Any, chunk: int, specs: Mapping[str, Spec]) -> None:
        self.group, self.rows = group, 0
        self._chunk, self._chunks = chunk, 1
        self._arrays: dict[str, Any] = {}
        self.add(specs)

    def add(self, specs: Mapping[str, Spec]) -> None:
        """Make the arrays that are not there yet; all rows will be written again."""
        codec = importlib.import_module("zarr.codecs").ZstdCodec(level=0, checksum=True)
        for name in _t_last(set(specs) - set(self._arrays)):
            shape, dtype, attributes = specs[name]
            self._arrays[name] = self.group.create_array(
                name,
                shape=(self._chunk * self._chunks, *shape),
                chunks=(self._chunk, *(max(1, n) for n in shape)),
                dtype=dtype,
                fill_value=_fill(name, dtype),
                compressors=[codec],
                attributes=attributes,
                config={"write_empty_chunks": True},  # so that a missing file is a damage
            )
            self._good = 0

    def write(self, rows: int, block: Callable[[slice], Mapping[str, Array]]) -> None:
        """Write the chunks that are not on disk as they should be, up to the number of rows."""
        for k in range(self._good // self._chunk, -(-rows // self._chunk)):
            if k >= self._chunks:
                self.resize(2 * k * self._chunk)
                self._chunks = 2 * k
            start, stop = k * self._chunk, min(rows, (k + 1) * self._chunk)
            values = block(slice(start, stop))
            for name in _t_last(values):
                array = self._arrays[name]
                fill = _fill(name, array.dtype)
                whole = np.full((self._chunk, *array.shape[1:]), fill, array.dtype)
                whole[: stop - start] = values[name]
                array[start : start + self._chunk] = whole
            self._good, self.rows = stop, max(stop, self.rows)

    def resize(self, rows: int) -> None:
        """Give all arrays that many rows."""
        for array in self._arrays.values():
            array.resize((rows, *array.shape[1:]))


# Reading ----------------------------------------------------------------------------------------


def open_run(
    path: str | os.PathLike[str], mesh_root: str | os.PathLike[str] | None = None
) -> Recording:
    """Open a run that `rm.simulate(..., out=path)` or `Recording.save` wrote.

    Also while it is written and after its process was killed: then there are the samples that are
    complete, none if none was written yet, and the status is `running`.

    Args:
        path: the folder.
        mesh_root: the folder that the robot's meshes must lie in; default: shapes that are meshes
            are left out, for a run may come from anywhere. Nothing else depends on them.

    Raises:
        RemoraError: if there is no run at `path`, or it is damaged.
    """
    folder = Path(path)
    group = _opened(folder)
    attributes: dict[str, Any] = dict(group.attrs)
    robot = _robot(folder, str(attributes.get("robot", "")), mesh_root)
    counts = attributes.get("rows", {})
    has_wrenches = (folder / "wrenches" / "zarr.json").is_file()
    specs = {name: _spec(robot, name) for name in recorded(has_wrenches)}
    columns = _read(folder, group, specs, counts.get("samples"))
    events: tuple[Event, ...] = ()
    if (folder / "events" / "t").is_dir():
        inner = folder / "events"
        with _readable(inner):
            table = group["events"]
            kinds: list[list[str]] = table.attrs.get("kinds", [])
        rows = _read(inner, table, _event_specs(robot), counts.get("events"))
        with _readable(inner):
            names = [kinds[int(k)] for k in rows["kind"]]
            events = tuple(
                Event(float(rows["t"][i]), name, action, rows["q"][i], rows["v"][i])
                for i, (name, action) in enumerate(names)
            )
    text = {k: str(attributes.get(k, "")) for k in ("status", "message", "started", "remora")}

    def stored(name: str) -> Array | None:
        if not (folder / name / "zarr.json").is_file():
            return None
        return _column(folder, group, name, _spec(robot, name), len(columns["t"]))

    settings = attributes.get("settings", {})
    return Recording(robot, settings, columns, events, *text.values(), stored=stored)


def _opened(folder: Path) -> Any:
    """Return the group of a run."""
    with _readable(folder):
        if not folder.exists():
            raise RemoraError(f"{folder}: there is no such folder")
        if not folder.is_dir():
            raise RemoraError(f"{folder}: is a file; a run is a folder")
        if not (folder / "zarr.json").is_file():
            raise RemoraError(f"{folder}: there is no run in this folder (no zarr.json)")
        group = _zarr().open_group(folder, mode="r", zarr_format=3)
        version = group.attrs.get("remora_run")
    if version is None:
        raise RemoraError(f"{folder}: is zarr data, but no run of Remora")
    if version != FORMAT:
        raise RemoraError(
            f"{folder}: is a run in format {version!r}, this Remora reads {FORMAT}; it was "
            f"written by Remora {group.attrs.get('remora')}"
        )
    return group


def _robot(folder: Path, text: str, mesh_root: str | os.PathLike[str] | None) -> Robot:
    try:
        with tempfile.TemporaryDirectory(prefix="remora-") as place:
            file = Path(place) / "robot.yaml"
            file.write_text(text, encoding="utf-8", newline="\n")
            robot = load(file, merge_fixed=False, mesh_root=mesh_root or Path(place).anchor)
    except RemoraError as error:
        raise RemoraError(f"{folder}: the robot in this run is refused: {error}") from None
    bodies = [
        replace(body, geometry=tuple(g for g in body.geometry if g.kind != "mesh"))
        for body in robot.bodies
    ]
    shown = sum(len(body.geometry) for body in robot.bodies)
    left = shown - sum(len(body.geometry) for body in bodies)
    if mesh_root is not None or left == 0:
        return robot
    note = f"meshes left out: {left}; open the run with the mesh_root that they lie in"
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
        sparse = name == "wrenches" and expected is None  # which came late, and then the end
        columns[name] = _column(folder, group, name, specs[name], rows, sparse)
    return {name: columns[name] for name in specs}


def _column(
    folder: Path, group: Any, name: str, spec: Spec, rows: int | None = None, sparse: bool = False
) -> Array:
    """Return the first rows of an array, checked; for None, all that have a file."""
    shape, dtype, _ = spec
    place = folder / name
    with _readable(place):
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


# Small things that both need --------------------------------------------------------------------


def _zarr() -> Any:
    try:
        return importlib.import_module("zarr")
    except ModuleNotFoundError:
        raise RemoraError("runs on disk need zarr: python3 -m pip install zarr") from None


@contextlib.contextmanager
def _explained(path: Path) -> Generator[None]:
    """Turn an error of the disk into one that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "make room, or write elsewhere" if full else "write into a folder of your own"
        why = error.strerror or str(error)
        raise RemoraError(f"{path}: cannot be written: {why}; {advice}") from error


@contextlib.contextmanager
def _readable(place: Path) -> Generator[None]:
    """Turn whatever zarr says of damaged data into an error that names the place."""
    try:
        yield
    except RemoraError:
        raise
    except Exception as error:  # it may be of any kind: JSON, shapes, compression, the disk
        why = str(error) or type(error).__name__
        raise RemoraError(f"{place}: cannot be read, or is damaged: {why}") from error


def _json(settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(dict(settings)))
    except (TypeError, ValueError) as error:
        raise RemoraError(f"settings of a run must be plain data for JSON: {error}") from None


def _chunk_rows(robot: Robot) -> int:
    """Return how many rows a chunk has: a power of two."""
    longest = 8 * max(math.prod(column(name).shape(robot)) for name in (*recorded(True), *STORED))
    return min(CHUNK_ROWS, 1 << max(4, (CHUNK_BYTES // max(1, longest)).bit_length() - 1))


def _spec(robot: Robot, name: str) -> Spec:
    row = column(name)
    components = row.components(robot)
    attributes = {
        "meaning": row.meaning,
        "components": [own for own, _ in components],
        "units": [unit for _, unit in components],
    }
    return row.shape(robot), row.dtype, attributes


def _event_specs(robot: Robot) -> dict[str, Spec]:
    which = {"meaning": "which of `kinds`, a list of [name, action], of the group's attributes"}
    own = {name: _spec(robot, name) for name in ("t", "q", "v")}
    return {**own, "kind": ((), "int64", which)}


def _event_rows(
    events: Sequence[Event], kinds: Sequence[tuple[str, str]], rows: slice
) -> dict[str, Array]:
    some = events[rows]
    return {
        "t": np.array([e.t for e in some]),
        "q": np.array([e.q for e in some]),
        "v": np.array([e.v for e in some]),
        "kind": np.array([kinds.index((e.name, e.action)) for e in some]),
    }


def _t_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: name == "t")


def _fill(name: str, dtype: Any) -> float | int:
    """Return what stands where nothing is written; wrenches are zero before they come."""
    if name == "wrenches":
        return 0.0
    return np.nan if np.dtype(dtype).kind == "f" else -1


def _frozen(x: Array) -> Array:
    x.flags.writeable = False
    return x
