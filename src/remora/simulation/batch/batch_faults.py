"""Names of components that make a run of a batch fail, from the state in which the run ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.evaluation import Instant
from remora.errors import RemoraError
from remora.model.state import integrate
from remora.simulation.batch.batch_phases import BatchRuns
from remora.simulation.batch.event_search import BAD_EVENT, NOT_FINITE, TOO_SHORT
from remora.simulation.batch.phase_starts import to_host
from remora.simulation.batch.run_equations import RunEquations
from remora.simulation.systems.component_faults import name_of_largest, name_of_nan

#: How far ahead of the last state components are evaluated, s: a step to a fault is refused.
AHEAD = (0.0, *(1e-9 * 8.0**k for k in range(10)))
#: How the message of an event begins whose own function is NaN.
BAD_FUNCTION = "the function of an event is NaN"
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


def name_of_fault(equations: RunEquations, runs: BatchRuns, row: int) -> str:
    """Return which component is not finite where a run ended, or acts most; or an empty string.

    Nothing is returned where the state itself is not finite, as after steps that are not checked.

    Args:
        equations: of the phase in which the run ended.
        runs: the runs.
        row: index of the run.
    """
    q, v, x, z = (_of_run(runs.state[name], row) for name in ("q", "v", "x", "z"))
    t, robot = _of_run(runs.t, row), equations.robot
    if not np.all(np.isfinite(np.concatenate([q, v, x, t]))):
        return ""
    data = [
        _of_run(runs.data[s.name], row).reshape(s.shape)
        for s in equations.data  # broadcast to the runs
    ]
    moments: list[Instant] = []
    with np.errstate(all="ignore"):
        try:
            for ahead in AHEAD:
                there = integrate(robot, q, ahead * v)
                now = equations.instant(t + ahead, there, v, x, z, data)
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
