"""Names of components that make a run of a batch fail, from the state in which the run ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.evaluation import Instant
from remora.errors import RemoraError
from remora.model.state import integrate
from remora.simulation.batch.batch_phases import BatchRuns
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.lockstep_program import RepeatedRun
from remora.simulation.program.event_search import BAD_EVENT, NOT_FINITE, TOO_SHORT
from remora.simulation.program.run_equations import RunEquations
from remora.simulation.systems.component_faults import (
    name_in_memory,
    name_of_largest,
    name_of_nan,
)

#: How far ahead of the last state components are evaluated, s: a step to a fault is refused.
AHEAD = (0.0, *(1e-9 * 8.0**k for k in range(10)))
#: How the message of an event begins whose own function is NaN.
BAD_FUNCTION = "the function of an event is NaN"
#: Why a run of the reduced model cannot go on.
BASE_DRIVEN = "model='reduced' is for a base that is not driven, but there is torque on it"
#: Runs of a phase for which a component is looked for.
MOST = 4


def note_faults(equations: RunEquations, runs: BatchRuns) -> None:
    """Add the components that made runs fail in a phase to the faults, for the first few runs."""
    failed = np.isin(to_host(runs.status)[:, 0], (NOT_FINITE, TOO_SHORT, BAD_EVENT))
    new = [row for row in np.flatnonzero(failed).tolist() if row not in runs.faults]
    for row in new[:MOST]:
        found = name_of_fault(equations, runs, row)
        if found:
            runs.faults[row] = found


def note_lockstep_faults(equations: RunEquations, runs: BatchRuns, again: RepeatedRun) -> None:
    """Add the components that made runs fail in a phase in lockstep, for the first few runs.

    Steps in lockstep are not checked: the state at the end is NaN. The run is repeated to the last
    step after which it is finite.
    """
    parts = [to_host(abs(runs.state[name]).sum(axis=-1)) for name in ("q", "v", "x", "z")]
    failed = ~np.isfinite(sum(parts))
    new = [row for row in np.flatnonzero(failed).tolist() if row not in runs.faults]
    for row in new[:MOST]:
        found = _name_in_lockstep(equations, runs, again, row)
        if found:
            runs.faults[row] = found


def _name_in_lockstep(
    equations: RunEquations, runs: BatchRuns, again: RepeatedRun, row: int
) -> str:
    low, high = 0, int(again.table.steps.sum())
    first = again.after(row, low)
    if not _finite(first):
        bad_memory = not np.all(np.isfinite(first["z"]))
        return name_in_memory(equations.system, first["z"]) if bad_memory else ""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _finite(again.after(row, middle)) else (low, middle)
    last, next_one = again.after(row, low), again.after(row, high)
    if not np.all(np.isfinite(next_one["z"])):  # an update is made before its step
        return name_in_memory(equations.system, next_one["z"])
    return _name_at(equations, runs, row, np.array([again.table.until(low).end]), last)


def _finite(state: dict[str, Array]) -> bool:
    return all(bool(np.all(np.isfinite(x))) for x in state.values())


def name_of_fault(equations: RunEquations, runs: BatchRuns, row: int) -> str:
    """Return which component is not finite where a run ended, or acts most; or an empty string.

    Nothing is returned where the state itself is not finite, as after steps that are not checked.

    Args:
        equations: of the phase in which the run ended.
        runs: the runs.
        row: index of the run.
    """
    state = {name: _of_run(runs.state[name], row) for name in ("q", "v", "x", "z")}
    return _name_at(equations, runs, row, _of_run(runs.t, row), state)


def _name_at(
    equations: RunEquations, runs: BatchRuns, row: int, t: Array, state: dict[str, Array]
) -> str:
    """Return which component is not finite at a state or shortly after it, or acts most."""
    (q, v, x, z), robot = (state[name] for name in ("q", "v", "x", "z")), equations.robot
    if not np.all(np.isfinite(np.concatenate([q, v, x, t]))):
        return ""
    data = [
        _of_run(runs.data[s.name], row).reshape(s.shape)
        for s in equations.data  # broadcast to the runs
    ]
    if equations.reduced:
        clock = t - _of_run(runs.began, row) if equations.own_clock else t
        tau, _, _ = equations.loads(t, clock, q, v, x, z, data)
        if np.any(tau[:6]):
            return BASE_DRIVEN
    moments: list[Instant] = []
    with np.errstate(all="ignore"):
        try:
            for ahead in AHEAD:
                there = integrate(robot, q, ahead * v)
                now = equations.instant(t + ahead, there, v, x, z, data, _of_run(runs.began, row))
                found = name_of_nan(now) or _bad_event(now)
                if found:
                    return found
                moments.append(now)
            return name_of_largest(moments[0])
        except RemoraError as error:  # its message names the component
            return str(error)


def _bad_event(now: Instant) -> str:
    """Return which event has a function that is NaN, or an empty string."""
    if not now.system.events:
        return ""
    for event, value in zip(now.system.events, now.crossings(), strict=True):
        if np.isnan(value):
            return f"{BAD_FUNCTION}: {str(event)!r}"
    return ""


def _of_run(values: Any, row: int) -> Array:
    """Return the numbers of one run, as floats on the host."""
    return np.asarray(to_host(values[row]), dtype=float)
