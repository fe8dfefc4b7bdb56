"""In-memory buffer of the samples of a run in progress."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.simulation.recording.quantities import (
    NO_SIGNALS,
    SignalColumns,
    column,
    recorded,
)
from remora.simulation.recording.recording import RecordedEvent, Recording

#: Samples for which memory is allocated at first.
FIRST_ROWS = 256
_NO_VALUES = np.zeros(0)


class SampleBuffer:
    """Samples of a run in progress, in memory, in the form that a `Recording` holds.

    Attributes:
        robot: the robot.
        settings: settings of the simulation.
        chunk: number of samples that are stored together.
        status: see `Recording`.
        message: see `Recording`.
        started: date and time, ISO 8601.
        version: version of Remora.
        phase_starts: start time of each phase, s.
        events: events in order.
        switches: switches of constraints in order.
        checkpoint: checkpoint to resume from, None: only from the start.
        saves: whether checkpoints are needed.
        signals: signals of components, see `signal_columns`.
    """

    saves = False

    def __init__(
        self,
        robot: Robot,
        settings: Mapping[str, Any],
        chunk: int,
        signals: SignalColumns = NO_SIGNALS,
    ) -> None:
        """Start without samples, with room for `chunk`."""
        self.robot, self.settings, self.chunk = robot, dict(settings), chunk
        self.signals = signals
        self.status, self.message = "running", ""
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.version: str = importlib.import_module("remora").__version__
        self.phase_starts: list[float] = []
        self.events: list[RecordedEvent] = []
        self.switches: list[ConstraintSwitch] = []
        self.checkpoint: Checkpoint | None = None
        self._data: dict[str, Array] = {}
        self._n = self._capacity = self._returned = 0

    def __len__(self) -> int:
        """Return the number of samples so far."""
        return self._n

    @property
    def last(self) -> float:
        """Time of the last sample, s; -inf if there is none."""
        return float(self._data["t"][self._n - 1]) if self._n else -np.inf

    def resume(self, run: Recording, checkpoint: Checkpoint) -> None:
        """Continue a recorded run from its checkpoint; there is no sample yet."""
        self.started, self.checkpoint, self._n = run.started, checkpoint, checkpoint.samples
        self.phase_starts = list(run.phase_starts[: checkpoint.phase + 1])
        self.events = list(run.events[: checkpoint.events])
        self.switches = [s for s in run.switches if s.phase <= checkpoint.phase]
        self._grow(run.wrenches is not None)
        for name, rows in self._data.items():
            rows[: self._n] = run.columns[name][: self._n]

    def restore(self, run: Recording) -> None:
        """Return to what a recording of this run holds."""
        self._n, self._returned = len(run), 0
        self.phase_starts, self.events = list(run.phase_starts), list(run.events)
        self.switches = list(run.switches)
        self._capacity = 0
        self._data = {}
        self._grow(run.wrenches is not None, self._n)
        for name, rows in self._data.items():
            rows[: self._n] = run.columns[name]

    def truncate(self, checkpoint: Checkpoint | None) -> None:
        """Take the run back to a checkpoint, or to its start; recordings keep what they hold."""
        self.status, self.message = "running", ""
        self._n = 0 if checkpoint is None else checkpoint.samples
        phase = -1 if checkpoint is None else checkpoint.phase
        self.phase_starts = self.phase_starts[: phase + 1]
        self.events = self.events[: 0 if checkpoint is None else checkpoint.events]
        self.switches = [s for s in self.switches if s.phase <= phase]
        if self._n < self._returned:
            self._data, self._returned = {k: x.copy() for k, x in self._data.items()}, 0

    def append(
        self,
        t: float | Array,
        q: Array,
        v: Array,
        tau: Array,
        passive: Array,
        wrenches: Array | None,
        work: Array,
        phase: int,
        signals: Array = _NO_VALUES,
    ) -> None:
        """Add a sample, or several at once as arrays with a leading axis.

        `remora.simulation.recording.quantities.RECORDED` describes the columns. A run without
        external wrenches in any sample (all None) has no such column; otherwise None stands for
        zero. All signals of a sample are one vector, in the order of `signals`.
        """
        times = np.atleast_1d(t)
        if not len(times):
            return
        n, stop = self._n, self._n + len(times)
        if stop > self._capacity or (wrenches is not None and "wrenches" not in self._data):
            self._grow(wrenches is not None or "wrenches" in self._data, stop)
        rows = {"t": times, "q": q, "v": v, "tau": tau, "passive": passive, "work": work}
        for name, values in rows.items():
            self._data[name][n:stop] = values
        self._data["phase"][n:stop] = phase
        if "wrenches" in self._data:
            self._data["wrenches"][n:stop] = 0.0 if wrenches is None else wrenches
        start = 0
        for name, own in self.signals.items():
            end = start + math.prod(own.size)
            self._data[name][n:stop] = signals[..., start:end].reshape(-1, *own.size)
            start = end
        self._n = stop
        self._appended()

    def _appended(self) -> None:
        """Hook for subclasses, called after new samples."""

    def event(self, t: float, name: str, q: Array, v: Array, action: str) -> None:
        """Record an event; see `RecordedEvent`."""
        state = (np.array(x, dtype=float) for x in (q, v))
        self.events.append(RecordedEvent(float(t), name, action, *state))

    def recording(self) -> Recording:
        """Return the run so far; later samples are not in it."""
        self._returned = max(self._returned, self._n)
        columns = {name: rows[: self._n] for name, rows in self._data.items()}
        columns = columns or self._unwritten(False, 0)
        for rows in columns.values():
            rows.flags.writeable = False
        return Recording(
            self.robot, self.settings, columns, tuple(self.events), self.status, self.message,
            self.started, self.version, phase_starts=tuple(self.phase_starts),
            signal_columns=self.signals, switches=tuple(self.switches),
        )  # fmt: skip

    def _grow(self, wrenches: bool, least: int = 0) -> None:
        """Allocate more memory; recordings returned before keep the old arrays."""
        full = max(least, self._n + 1) > self._capacity
        capacity = 2 * self._capacity if full else self._capacity
        capacity = max(min(self.chunk, FIRST_ROWS), capacity, self._n, least)
        grown = self._unwritten(wrenches, capacity)
        for name, rows in grown.items():
            rows[: self._n] = self._data[name][: self._n] if name in self._data else 0.0
        self._data, self._capacity = grown, capacity

    def _unwritten(self, wrenches: bool, rows: int) -> dict[str, Array]:
        """Return unwritten rows of all columns."""
        names = (*recorded(wrenches), *self.signals)
        rows_of = {name: column(name, self.signals) for name in names}
        return {n: np.empty((rows, *c.shape(self.robot)), c.dtype) for n, c in rows_of.items()}
