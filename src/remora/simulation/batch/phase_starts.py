"""Start of a phase of a batch: which runs enter it, and what they are given, see `PhaseEntry`."""

from __future__ import annotations

from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.constraints.switch_equations import latched_field
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.lagrangian.reduced import base_velocity
from remora.simulation.batch.batch_phases import BatchPhase, BatchRuns
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.inputs.profiles import Motion
from remora.simulation.program.event_search import BAD_HOLD, NEXT, NOT_ENTERED, RUNNING
from remora.simulation.program.phase_entry import EnteredRuns, PhaseEntry
from remora.simulation.program.run_equations import RunEquations, parameter_name
from remora.simulation.recording.constraint_switch import BatchSwitch


def start_phase(phase: BatchPhase, runs: BatchRuns, dtype: str, array_module: Any) -> None:
    """Let all runs that go on enter a phase; `runs` is changed.

    Args:
        phase: the phase.
        runs: the runs.
        dtype: precision of the batch.
        array_module: NumPy or CuPy.
    """
    entry, state = phase.entry, runs.state
    if entry.index and entry.phase.after_event:
        codes = to_host(runs.status)[:, 0]
        runs.fail(np.flatnonzero(codes == float(RUNNING)), NOT_ENTERED)
    state["anchor"] = state["q"]
    if phase.equations.reduced:
        _set_base(phase, runs, array_module)
    if not (entry.held or entry.acts):
        return
    t, q, v = (to_host(x) for x in (runs.t[:, 0], state["q"], state["v"]))
    codes = to_host(runs.status)[:, 0]
    finite = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
    rows = np.flatnonzero(((codes == float(RUNNING)) | (codes == float(NEXT))) & finite)
    values = {
        name: np.ascontiguousarray(to_host(runs.data[parameter_name(name)])[rows], float)
        for name in entry.parameters
    }
    clock = 0.0 * t[rows] if phase.equations.own_clock else t[rows]
    q, v = q[rows], v[rows]
    latched = entry.latched(q, values)
    after = entry.enter(q, v, _begins(phase.equations, clock, q, v), values, latched, dtype)
    for name, numbers in latched.items():
        constraint, _, field = name.rpartition(".")
        usual = getattr(entry.robot.constraints[constraint], field)
        whole = np.array(np.broadcast_to(usual, (len(t), *numbers.shape[1:])))
        whole[rows] = numbers
        runs.data[parameter_name(name)] = array_module.asarray(whole)
    _place(after, runs, rows, array_module)
    if entry.phase.switches:
        runs.switches.append(_switch(entry, after, t, rows, latched))


def _set_base(phase: BatchPhase, runs: BatchRuns, array_module: Any) -> None:
    """Set the speeds of the base from the momentum of each run: those of the reduced model."""
    state, names = runs.state, phase.entry.parameters
    q, v = to_host(state["q"]), np.array(to_host(state["v"]))
    given = [to_host(runs.data[n]) for n in ("momentum", *map(parameter_name, names))]
    arguments = ("q", "joint_speeds", "momentum")
    twist = kernel(base_velocity, phase.equations.robot, arguments, None, names)
    v[:, :6] = twist(*(np.array(x, float) for x in (q, v[:, 6:], *given)))
    state["v"] = array_module.asarray(v)


def _place(after: EnteredRuns, runs: BatchRuns, rows: Array, array_module: Any) -> None:
    """Put the runs that have entered a phase into their rows."""
    changed = np.zeros((len(runs.t), 1), bool)
    changed[rows, 0] = after.changed
    for name, new in (("q", after.q), ("v", after.v)):
        whole = np.array(to_host(runs.state[name]))
        failed = (after.status != RUNNING) & (after.status != BAD_HOLD)
        chosen = np.where(failed[:, None], np.nan, new)
        whole[rows] = np.where(changed[rows] | failed[:, None], chosen, whole[rows])
        runs.state[name] = array_module.asarray(whole)
    kept = array_module.asarray(~changed)
    for name in ("rest q", "rest v", "rest x"):
        runs.state[name] = runs.state[name] * kept
    for k, text in after.faults.items():
        runs.fail(rows[k : k + 1], int(after.status[k]))
        runs.faults[int(rows[k])] = text
    if np.any(after.jumped):
        first = np.full((len(runs.t), 1), np.nan)
        first[rows[after.jumped]] = to_host(runs.t)[rows[after.jumped]]
        occurred = np.isfinite(first)
        parts = occurred.astype(float), first[..., None], occurred[..., None].astype(float), first
        runs.events.append((["impulse"], *map(array_module.asarray, parts)))


def _begins(equations: RunEquations, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """Return states `(runs, nq)`, `(runs, nv)` with held joints where their motions begin.

    Args:
        equations: equations of the phase.
        t: time of each run on the clock of the motions, `(runs,)`, s.
        q: configurations, `(runs, nq)`.
        v: velocities, `(runs, nv)`.
    """
    q, v = np.array(q), np.array(v)
    for name, motion in equations.held.items():
        joint = equations.robot.joints[name]
        if motion is None:
            v[:, joint.v] = 0.0
        elif len(t):
            q[:, joint.q], v[:, joint.v] = _at(motion, t)
    return q, v


def _at(motion: Motion, t: Array) -> tuple[Array, Array]:
    """Return coordinates and speeds of a motion at the time of each run."""
    times, which = np.unique(t, return_inverse=True)
    values: list[tuple[Any, ...]] = [motion.traced(np.asarray(time)) for time in times]
    begins, speeds = (np.stack([np.asarray(x[i], float) for x in values])[which.ravel()]
                      for i in range(2))  # fmt: skip
    return begins, speeds


def _switch(
    entry: PhaseEntry, after: EnteredRuns, t: Array, rows: Array, latched: dict[str, Array]
) -> BatchSwitch:
    """Return what was switched; NaN in runs that have not entered the phase."""
    entered = after.status == RUNNING

    def whole(x: Array) -> Array:
        found = np.full((len(t), *x.shape[1:]), np.nan)
        found[rows[entered]] = x[entered]
        return found

    fields = {name: {latched_field(entry.robot, name): whole(latched[parameter])}
              for name, parameter in entry.latches.items()}  # fmt: skip
    return BatchSwitch(
        whole(t[rows]), entry.index, tuple(entry.phase.activate), tuple(entry.phase.release),
        {name: whole(x) for name, x in after.impulses.items()}, whole(0.0 - after.energy),
        whole(after.separation_work), fields,
    )  # fmt: skip
