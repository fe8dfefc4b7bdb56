"""Recorder of a run: writes samples and checkpoints to disk during the simulation.

A run is a folder with one zarr group (format 3): an array for each recorded column and for some
derived quantities, one row per sample, described in its attributes; `events`, a group of the same
structure; and robot, settings and status in the attributes of the group.

zarr writes every file under a temporary name and renames it, so that a file is complete or absent.
Arrays are extended ahead of their rows and filled with NaN; in each chunk of rows, the column `t`
is written last. So a row with a finite `t` is complete in all columns, and a run whose process was
killed can be opened without further checks. (A power failure may lose more: files are not synced to
disk.)

A checkpoint (see `checkpoint`) is written after the rows, in the attributes of the group. To resume
from it, rows after the checkpoint are cut off, `t` first; earlier rows are not changed.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import RemoraError, UnknownName
from remora.identity.json_seal import sealed
from remora.model.formats.yaml.yaml import robot_to_yaml
from remora.model.robot import Robot
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.recording.export import refuse_file_name
from remora.simulation.recording.quantities import (
    NO_SIGNALS,
    QUANTITIES,
    STORED,
    EvaluatedRobot,
    SignalColumns,
    by_phase,
    column,
    recorded,
    robots_by_phase,
)
from remora.simulation.recording.recording import RecordedEvent, Recording
from remora.simulation.recording.samples import SampleBuffer
from remora.simulation.storage.file_format import (
    Spec,
    event_specs,
    fill,
    plain,
    plain_signals,
    spec,
)
from remora.simulation.storage.fingerprint import Acting, changed
from remora.simulation.storage.resume import StoppedRun
from remora.simulation.storage.stored_folder import RUN, occupied, readable, writable, zarr

#: Final statuses of a run.
ENDS = ("complete", "interrupted", "failed")
#: Maximum time before samples are written to disk, s.
FLUSH_SECONDS = 1.0
#: Rows of a chunk; fewer if a chunk would exceed this size in bytes.
CHUNK_ROWS, CHUNK_BYTES = 4096, 4 * 1024 * 1024


class Recorder(SampleBuffer):
    """Destination of a running simulation's samples: memory, and optionally a folder.

    Samples stay in memory even if the disk fails; `recording` returns them.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Mapping[str, Any],
        out: str | os.PathLike[str] | None = None,
        chunk: int | None = None,
        stopped: StoppedRun | None = None,
        fingerprints: Callable[[], Acting] | None = None,
        signals: SignalColumns = NO_SIGNALS,
    ) -> None:
        """Initialize; with `out`, create the folder or continue the run in it.

        Args:
            robot: the robot.
            settings: settings of the simulation, JSON-compatible.
            out: a folder to create, or an empty one; None: memory only.
            chunk: rows per write and per file; default: by the robot's size.
            stopped: the run in `out` to continue; see `stopped_run`.
            fingerprints: returns the present fingerprints of the loads.
            signals: signals of components.

        Raises:
            RemoraError: if `out` cannot be used, or the robot or the settings cannot be written.
        """
        if out is not None and stopped is None:
            refuse_file_name(out)
        rows = CHUNK_ROWS if chunk is None else chunk
        if chunk is None and out is not None:
            rows = _chunk_rows(robot, signals)
        super().__init__(robot, settings, rows, signals)
        checkpoint = None if stopped is None else stopped.checkpoint
        if stopped is not None and checkpoint is not None:
            self.resume(stopped.run, checkpoint)
        self._folder, self.saves = None, out is not None
        self._seen = self._n  # samples at the last look at the clock
        self._fingerprints = fingerprints
        self._first = None if fingerprints is None else fingerprints()  # at the start
        #: Parts found to have changed, in order.
        self._changed = dict.fromkeys(() if checkpoint is None else checkpoint.changed)
        if out is not None:
            again = stopped is not None
            attributes: dict[str, Any] = {}
            if self._first is not None:
                attributes["acting"] = {n: own.plain() for n, own in self._first.items()}
            run = self.recording()
            self._folder = _Folder(Path(out), run, self.chunk, again, checkpoint, attributes)
        self._next = time.monotonic() + FLUSH_SECONDS

    def _appended(self) -> None:
        """Write at the first sample, at a full chunk, and if the last write is long ago.

        Raises:
            RemoraError: if writing fails; the sample is still in memory.
        """
        before, self._seen = self._seen, self._n
        if self._folder is not None and (
            self._n // self.chunk != before // self.chunk
            or not before
            or time.monotonic() >= self._next
        ):
            self.flush()

    def flush(self) -> None:
        """Write pending samples to disk; after a disk error, do nothing.

        Raises:
            RemoraError: if writing fails; what was written before stays readable.
        """
        if self._folder is not None:
            self._folder.write(self.recording(), self._checkpoint())
            self._next = time.monotonic() + FLUSH_SECONDS

    def finish(self, status: str, message: str = "") -> None:
        """Write the remaining samples and the final status.

        After a disk error only the status is written, if possible: the error has been raised
        already, and a run on disk with status `running` has the samples up to then.

        Args:
            status: a name of ENDS.
            message: reason for the end.

        Raises:
            RemoraError: if writing fails.
        """
        if status not in ENDS:
            raise UnknownName("end of a run", status, ENDS)
        self.status, self.message = status, message
        if self._folder is not None:
            self._folder.finish(self.recording(), self._checkpoint())

    def _checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint, with the loads that have changed since the start of the run."""
        if self.checkpoint is None or self._fingerprints is None or self._first is None:
            return self.checkpoint
        self._changed.update(dict.fromkeys(changed(self._first, self._fingerprints())))
        return self.checkpoint._replace(changed=tuple(self._changed))


def save(run: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording into a new folder; see `Recording.save`."""
    _Folder(Path(path), run, _chunk_rows(run.robot, run.signal_columns)).finish(run)


# Writing ----------------------------------------------------------------------------------------


class _Folder:
    """A run on disk while it is written, by a thread of its own.

    A write interrupted by Ctrl-C is therefore finished before the next begins.
    """

    def __init__(
        self,
        path: Path,
        run: Recording,
        chunk: int,
        again: bool = False,
        checkpoint: Checkpoint | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self._path, self._chunk = path, chunk
        self._samples: _Table | None = None
        self._events: _Table | None = None
        self._broken = self._finished = False
        self._robots: dict[int, EvaluatedRobot] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remora-recorder")
        attributes = {
            **RUN.heading(),
            "remora": run.version,
            "started": run.started,
            "status": "running",
            "message": "",
            "settings": plain(run.settings),
            "robot": robot_to_yaml(run.robot),
            **(more or {}),
        }
        if run.signal_columns:
            attributes["signals"] = plain_signals(run.signal_columns)
        library = zarr()
        with writable(path):
            if path.exists() and not path.is_dir():
                raise RemoraError(f"{path}: is a file; name a new folder")
            path.mkdir(parents=True, exist_ok=True)
            if not again and occupied(path):
                advice = "name a new folder, or remove it first"
                if (path / "zarr.json").is_file():
                    advice += (
                        "; to resume a run: resume=True of rm.Record, on the command line --resume"
                    )
                raise RemoraError(f"{path}: is not empty; {advice}")
            self._unlock = _locked(self, path)
            try:
                if again:
                    self._group = library.open_group(path, mode="r+", zarr_format=3)
                    self._reopen(run, checkpoint)
                else:
                    self._group = library.create_group(
                        path, zarr_format=3, attributes=sealed(attributes)
                    )
            except BaseException:
                self._unlock()
                raise

    def _reopen(self, run: Recording, checkpoint: Checkpoint | None) -> None:
        """Continue a run: rows up to the checkpoint stay; without one it starts again."""
        group, events = self._group, None
        _update(group, {"status": "running", "message": "", "rows": {}})
        if (self._path / "events" / "zarr.json").is_file():
            events = group["events"]
        if checkpoint is None:
            for table in filter(None, (group, events)):
                if "t" in table:  # without it there are no rows
                    del table["t"]
            return
        specs = _specs(run)
        self._samples = _Table.cut(self._path, group, specs, checkpoint.samples)
        if events is not None and "t" in events:
            place, own = self._path / "events", event_specs(run.robot)
            self._events = _Table.cut(place, events, own, checkpoint.events)

    def write(self, run: Recording, checkpoint: Checkpoint | None = None) -> None:
        if not self._broken:
            self._do(partial(self._write, run, checkpoint))

    def finish(self, run: Recording, checkpoint: Checkpoint | None = None) -> None:
        if self._finished:  # Ctrl-C came after that
            return
        again = contextlib.suppress(RemoraError) if self._broken else contextlib.nullcontext()
        try:
            with again:  # the error has been raised already
                self.write(run, checkpoint)
                self._do(partial(self._close, run))
        except KeyboardInterrupt:  # `finish` is called again
            raise
        except BaseException:
            self._end()
            raise
        self._end()

    def _end(self) -> None:
        self._finished = True
        self._unlock()
        self._thread.shutdown(wait=False)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            with writable(self._path):
                self._thread.submit(job).result()
        except Exception:
            self._broken = True
            raise

    def _write(self, run: Recording, checkpoint: Checkpoint | None) -> None:
        if run.events:
            kinds = list(dict.fromkeys((e.name, e.action) for e in run.events))
            table = (
                self._group.require_group("events") if self._events is None else self._events.group
            )
            _update(table, {"kinds": kinds})
            if self._events is None:
                self._events = _Table(table, self._chunk, event_specs(run.robot))
            self._events.write(len(run.events), partial(_event_rows, run.events, kinds))
        if len(run):
            specs = _specs(run)
            if self._samples is None:
                self._samples = _Table(self._group, self._chunk, specs)
            self._samples.add(specs)  # wrenches may start late
            self._samples.write(len(run), partial(self._rows, run))
        if checkpoint is not None:
            where = {
                "phase_starts": run.phase_starts,
                "switches": [s.plain() for s in run.switches],
                "checkpoint": checkpoint.plain(),
            }
            _update(self._group, where)

    def _rows(self, run: Recording, rows: slice) -> dict[str, Array]:
        block = {name: values[rows] for name, values in run.columns.items()}
        known = len(run.switches) + 1
        if len(self._robots) != known:  # compiled once, and once for every switch
            self._robots = robots_by_phase(run.robot, run.switches) | self._robots
        return block | {name: by_phase(QUANTITIES[name], self._robots, block) for name in STORED}

    def _close(self, run: Recording) -> None:
        end: dict[str, Any] = {"status": run.status, "message": run.message}
        if not self._broken:
            for table in filter(None, (self._samples, self._events)):
                table.resize(table.rows)  # remove rows allocated ahead
            end["rows"] = {"samples": len(run), "events": len(run.events)}
            end["phase_starts"] = run.phase_starts
            end["switches"] = [s.plain() for s in run.switches]
        if run.status == "complete":
            end["checkpoint"] = None
        _update(self._group, end)


def _update(group: Any, new: Mapping[str, Any]) -> None:
    """Change attributes of a group and their checksum, in one write."""
    group.update_attributes(sealed({**dict(group.attrs), **new}))


class _Table:
    """Arrays of a group that grow together, one chunk of rows per file; `t` is written last."""

    def __init__(self, group: Any, chunk: int, specs: Mapping[str, Spec]) -> None:
        self.group, self.rows = group, 0
        self._chunk, self._chunks = chunk, 1
        self._good = 0
        self._arrays: dict[str, Any] = {}
        self.add(specs)

    @classmethod
    def cut(cls, place: Path, group: Any, specs: Mapping[str, Spec], rows: int) -> _Table:
        """Return the table of arrays that are there, without all but the first rows.

        Raises:
            RemoraError: if one of them is damaged; the text names it.
        """
        with zarr().config.set({"array.write_empty_chunks": True}):
            arrays: dict[str, Any] = {}
            for name, (shape, dtype, _) in specs.items():
                with readable(place / name):
                    if name not in group:
                        continue
                    found = arrays[name] = group[name]
                    if found.shape[1:] != shape or found.dtype != dtype:
                        raise ValueError(f"{found.shape} of {found.dtype} was not expected")
        t = arrays["t"]
        chunk = int(t.chunks[0])
        table = cls(group, chunk, {})
        kept = table._chunks = max(1, -(-rows // chunk))
        t.resize((kept * chunk,))
        t[rows:] = fill("t", t.dtype)
        table._arrays = arrays
        table.resize(kept * chunk)
        late = any(x.nchunks_initialized < rows // chunk for x in table._arrays.values() if x.size)
        table.rows, table._good = rows, 0 if late else rows // chunk * chunk
        return table

    def add(self, specs: Mapping[str, Spec]) -> None:
        """Create missing arrays; all rows will be written again."""
        codec = importlib.import_module("zarr.codecs").ZstdCodec(level=0, checksum=True)
        for name in _t_last(set(specs) - set(self._arrays)):
            shape, dtype, attributes = specs[name]
            self._arrays[name] = self.group.create_array(
                name,
                shape=(self._chunk * self._chunks, *shape),
                chunks=(self._chunk, *(max(1, n) for n in shape)),
                dtype=dtype,
                fill_value=fill(name, dtype),
                compressors=[codec],
                attributes=attributes,
                overwrite=True,  # files of a run that starts again
                config={"write_empty_chunks": True},  # so that a missing file means damage
            )
            self._good = 0

    def write(self, rows: int, block: Callable[[slice], Mapping[str, Array]]) -> None:
        """Write the chunks that are not up to date on disk, up to the number of rows."""
        for k in range(self._good // self._chunk, -(-rows // self._chunk)):
            if k >= self._chunks:
                self.resize(2 * k * self._chunk)
                self._chunks = 2 * k
            start, stop = k * self._chunk, min(rows, (k + 1) * self._chunk)
            values = block(slice(start, stop))
            for name in _t_last(values):
                array = self._arrays[name]
                nothing = fill(name, array.dtype)
                whole = np.full((self._chunk, *array.shape[1:]), nothing, array.dtype)
                whole[: stop - start] = values[name]
                array[start : start + self._chunk] = whole
            self._good, self.rows = stop, max(stop, self.rows)

    def resize(self, rows: int) -> None:
        """Resize all arrays to that many rows."""
        for array in self._arrays.values():
            array.resize((rows, *array.shape[1:]))


def _locked(holder: object, path: Path) -> Callable[[], object]:
    """Lock a folder for writing; return the function that unlocks it, as process exit does too."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ModuleNotFoundError:  # no locking on this platform
        return lambda: None
    handle = os.open(path, os.O_RDONLY)
    unlock = weakref.finalize(holder, os.close, handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        unlock()
        raise RemoraError(f"{path}: another process is writing a run there") from None
    except OSError:  # not supported by some network disks
        pass
    return unlock


def _specs(run: Recording) -> dict[str, Spec]:
    """Return the specifications of the arrays of a run."""
    names = (*run.columns, *STORED)
    return {name: spec(run.robot, name, run.signal_columns) for name in names}


def _chunk_rows(robot: Robot, signals: SignalColumns = NO_SIGNALS) -> int:
    """Return the number of rows of a chunk: a power of two."""
    names = (*recorded(True), *STORED, *signals)
    longest = 8 * max(math.prod(column(name, signals).shape(robot)) for name in names)
    return min(CHUNK_ROWS, 1 << max(4, (CHUNK_BYTES // max(1, longest)).bit_length() - 1))


def _event_rows(
    events: Sequence[RecordedEvent], kinds: Sequence[tuple[str, str]], rows: slice
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
