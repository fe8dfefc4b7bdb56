"""Batches whose runs are made one after the other, by the program of single runs.

Implicit and variational steps are made by Python, and so is what cannot be compiled: functions that
ask for numbers, events that are truth values. A run is bit for bit that of `rm.simulate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.components.system import System
from remora.errors import SimulationError
from remora.simulation.batch.batch_inputs import BatchInputs
from remora.simulation.batch.batch_phases import BatchRuns, BatchSettings
from remora.simulation.batch.result import FAILED
from remora.simulation.batch.single_run import RunArguments, run_alone
from remora.simulation.integrators.step_control import CLOSE
from remora.simulation.program.event_search import INTERRUPTED, NOT_ENTERED, RUNNING, STOPPED
from remora.simulation.recording.constraint_switch import BatchSwitch, ConstraintSwitch
from remora.simulation.recording.recording import Recording


def runs_in_turn(
    system: System, inputs: BatchInputs, settings: BatchSettings, arguments: RunArguments,
    names: Sequence[str], advance: Callable[[int], None],
) -> BatchRuns:  # fmt: skip
    """Perform the runs one after the other.

    Args:
        system: the robot with its components.
        inputs: arguments of the runs.
        settings: of the batch.
        arguments: what a run needs to be simulated alone.
        names: names of all events that a run may have.
        advance: shows progress.
    """
    count = len(arguments.q)
    runs = BatchRuns(settings, count, {}, {}, np)
    skipped = np.zeros(inputs.batch, bool)
    for fault in inputs.faults:
        skipped |= np.broadcast_to(fault.runs, inputs.batch)
    done: dict[int, Recording] = {}
    for k in np.flatnonzero(~skipped.ravel()).tolist():
        if runs.interrupted:
            runs.status[k] = float(INTERRUPTED)
            continue
        try:
            place = tuple(int(i) for i in np.unravel_index(k, inputs.batch)) if inputs.batch else 0
            run = run_alone(system, inputs.parameters, inputs.batch, arguments, place)
        except SimulationError as error:
            if not isinstance(error.recording, Recording):
                raise
            run, runs.faults[k] = error.recording, error.reason
        runs.status[k] = float(_status(run, len(arguments.phases)))
        runs.interrupted = run.status == "interrupted"
        done[k] = run
        _fill(runs, settings, k, run)
        advance(1)
    runs.events += _events(done, names, count, settings.max_events)
    runs.switches += _switches(done, arguments, count)
    return runs


def _status(run: Recording, phases: int) -> int:
    """Return how a run ended, see `event_search`."""
    if run.status != "complete":
        return INTERRUPTED if run.status == "interrupted" else FAILED
    last = run.events[-1].t if run.events else 0.0
    if any(event.action == "stop" for event in run.events if event.t == last):
        return STOPPED
    return RUNNING if len(run.phase_starts) == phases else NOT_ENTERED


def _fill(runs: BatchRuns, settings: BatchSettings, k: int, run: Recording) -> None:
    """Put the samples and the end of a run into their row; of two at a time, the first counts."""
    if not len(run):
        return
    times, t = settings.times, run.t
    close = CLOSE * np.spacing(np.abs(times))
    places = np.minimum(np.searchsorted(t, times - close), len(t) - 1)
    reached = np.abs(t[places] - times) <= close
    columns: Mapping[str, Any] = {"sample q": run.q, "sample v": run.v} | {
        name: run.signals[name] for name in settings.signals
    }
    for name, values in columns.items():
        shape = values.shape[1:]
        runs.sampled(name, shape)[k, reached] = values[places[reached]]
        runs.end(name, shape)[k] = values[-1]
    runs.t[k] = t[-1]


def _events(
    done: Mapping[int, Recording], names: Sequence[str], count: int, most: int
) -> list[tuple[list[str], Any, Any, Any, Any]]:
    """Return the events of all runs as those of one phase, see `BatchRuns.events`."""
    seen = [event.name for run in done.values() for event in run.events]
    known = list(dict.fromkeys((*names, *seen)))
    if not known:
        return []
    moments = {k: sorted({event.t for event in run.events}) for k, run in done.items()}
    rows = min(most, max(map(len, moments.values()), default=0))
    counts, first = np.zeros((count, 1)), np.full((count, len(known)), np.nan)
    times, fired = np.full((count, rows, 1), np.nan), np.full((count, rows, len(known)), np.nan)
    for k, occurred in moments.items():
        counts[k] = len(occurred)
        times[k, : len(occurred), 0], fired[k, : len(occurred)] = occurred[:rows], 0.0
        for event in reversed(done[k].events):
            row, place = occurred.index(event.t), known.index(event.name)
            first[k, place] = event.t
            if row < rows:
                fired[k, row, place] = 1.0
    return [(known, counts, times, fired, first)]


def _switches(
    done: Mapping[int, Recording], arguments: RunArguments, count: int
) -> list[BatchSwitch]:
    """Return what was switched; NaN in runs that did not come to the phase."""
    made: list[BatchSwitch] = []
    for index, phase in enumerate(arguments.phases):
        if not phase.switches:
            continue
        switches = {
            k: s for k, run in done.items() for s in run.switches
            if s.phase == index and np.any(run.phase >= index)  # the others failed there
        }  # fmt: skip
        one = next(
            iter(switches.values()),
            ConstraintSwitch(math.nan, index, tuple(phase.activate), tuple(phase.release)),
        )
        whole = [np.full((count, *x.shape), np.nan) for x in one.arrays()]
        for k, switch in switches.items():
            for numbers, x in zip(whole, switch.arrays(), strict=True):
                numbers[k] = x
        made.append(BatchSwitch.of(one.description(), whole))
    return made
