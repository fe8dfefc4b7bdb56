"""Start of a phase of a batch: which runs enter it, held joints, and constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.state import neutral
from remora.simulation.batch.batch_phases import BatchPhase, BatchRuns
from remora.simulation.batch.batch_switching import latched_poses, switched_runs
from remora.simulation.batch.held_starts import contradictions, placed
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.program.event_search import BAD_HOLD, NEXT, NOT_ENTERED, RUNNING
from remora.simulation.program.run_equations import parameter_name


def start_phase(phase: BatchPhase, runs: BatchRuns, dtype: str, array_module: Any) -> None:
    """Let all runs that go on enter a phase; `runs` is changed.

    Args:
        phase: the phase.
        runs: the runs.
        dtype: precision of the batch.
        array_module: NumPy or CuPy.
    """
    given = phase.constraints.phase
    if phase.constraints.index and given.after_event:
        codes = to_host(runs.status)[:, 0]
        runs.fail(np.flatnonzero(codes == float(RUNNING)), NOT_ENTERED)
    runs.state["anchor"] = runs.state["q"]
    if phase.equations.held:
        _check_held(phase, runs, dtype)
    if phase.constraints.acts:
        _switch(phase, runs, array_module)


def _active(runs: BatchRuns) -> Array:
    """Return which runs go on, `(runs,)`."""
    codes = to_host(runs.status)[:, 0]
    return (codes == float(RUNNING)) | (codes == float(NEXT))


def _clock(phase: BatchPhase, t: Array) -> Array:
    return 0.0 * t if phase.equations.own_clock else t


def _check_held(phase: BatchPhase, runs: BatchRuns, dtype: str) -> None:
    """Fail the runs whose held joints would have to jump."""
    t, q, v = (to_host(x) for x in (runs.t[:, 0], runs.state["q"], runs.state["v"]))
    jump = contradictions(phase.equations, _clock(phase, t), q, v, dtype)
    runs.fail(np.flatnonzero(jump & _active(runs)), BAD_HOLD)


def _switch(phase: BatchPhase, runs: BatchRuns, array_module: Any) -> None:
    """Let the constraints of the phase act."""
    own, state = phase.constraints, runs.state
    t, q0, v0 = (np.array(to_host(x), float) for x in (runs.t[:, 0], state["q"], state["v"]))
    finite = np.isfinite(q0).all(axis=-1) & np.isfinite(v0).all(axis=-1)
    active = _active(runs) & finite
    values = {
        name: np.ascontiguousarray(to_host(runs.data[parameter_name(name)]), float)
        for name in own.parameters
    }
    # runs that do not come to the phase may hold anything: what is computed for them is not used
    q1 = np.where(active[:, None], q0, neutral(own.robot))
    v1 = np.where(active[:, None], v0, 0.0)
    latched = latched_poses(own, q1, values, active)
    q, v = placed(phase.equations, _clock(phase, t), q1, v1)
    after = switched_runs(own, t, q, v, values, latched, active)
    for name, numbers in after.latched.items():
        runs.data[parameter_name(name)] = array_module.asarray(numbers)
    for name, before, new in (("q", q0, after.q), ("v", v0, after.v)):
        chosen = np.where(active[:, None], new, before)
        chosen[list(after.faults)] = np.nan
        state[name] = array_module.asarray(chosen, dtype=state[name].dtype)
    changed = active & (np.any(after.q != q0, axis=-1) | np.any(after.v != v0, axis=-1))
    kept = array_module.asarray(~changed[:, None])
    for name in ("rest q", "rest v", "rest x"):
        state[name] = state[name] * kept
    for k, (code, told) in after.faults.items():
        runs.fail(np.array([k]), code)
        runs.faults[k] = told
    if after.switch is not None:
        runs.switches.append(after.switch)
