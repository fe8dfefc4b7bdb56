"""The end of a batch: the outcome of every run, and the error where some of them failed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.system import System
from remora.errors import SimulationError
from remora.simulation.batch.batch_faults import BAD_FUNCTION
from remora.simulation.batch.batch_inputs import BatchInputs
from remora.simulation.batch.batch_phases import BatchRuns, BatchSettings
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.result import OUTCOMES, Batch, BatchEvents, FinalStates
from remora.simulation.program.event_search import (
    BAD_HOLD,
    INTERRUPTED,
    NEXT,
    NOT_ENTERED,
    RUNNING,
    STOPPED,
    TOO_SHORT,
    VIOLATED,
)


def finished_batch(
    system: System, inputs: BatchInputs, settings: BatchSettings, runs: BatchRuns, failures: str,
    status: str, free: bool,
) -> Batch:  # fmt: skip
    """Return the batch, or raise if a run failed."""
    batch, times = inputs.batch, settings.times

    def shaped(x: Any) -> Any:
        return x.reshape((*batch, *x.shape[1:]))

    robot = system.robot
    q, v = (
        shaped(runs.sampled("sample q", (robot.nq,))),
        shaped(runs.sampled("sample v", (robot.nv,))),
    )
    signals = {n: shaped(runs.sampled(n, system.signals[n][0])) for n in settings.signals}
    codes = to_host(shaped(runs.status)[..., 0]).astype(int)
    ends = to_host(shaped(runs.t)[..., 0])
    impossible = np.zeros(batch, bool)
    for fault in inputs.faults:
        impossible |= np.broadcast_to(fault.runs, batch)
    final = FinalStates(
        ends, shaped(runs.end("sample q", (robot.nq,))), shaped(runs.end("sample v", (robot.nv,))),
        {n: shaped(runs.end(n, system.signals[n][0])) for n in settings.signals},
    )  # fmt: skip
    if status == "interrupted":
        for values in (final.q, final.v, *final.signals.values()):
            values[codes == INTERRUPTED] = math.nan
    if inputs.faults:  # results of the equations with such numbers are meaningless
        for values in (q, v, final.q, final.v, *final.signals.values()):
            values[impossible] = math.nan
    finite = to_host((abs(q).sum(axis=-1) + abs(v).sum(axis=-1)) < math.inf)
    for values in signals.values():  # shape (..., n, *shape)
        size = abs(values.reshape((*finite.shape, -1))).sum(axis=-1)
        finite &= to_host(size < math.inf)
    past = times > ends[..., None] + 1e-9 * (1.0 + np.abs(ends[..., None]))
    ended = np.isin(codes, (RUNNING, STOPPED, NEXT, NOT_ENTERED))
    excused = ended[..., None] & past
    ok = (finite | excused).all(axis=-1) & ended
    outcome = np.array(OUTCOMES)[codes]
    outcome = np.where(ok | (codes != RUNNING), outcome, "not finite")
    events = _events(runs, shaped, settings.max_events)
    found = Batch(
        system.robot, times, q, v, inputs.parameters, np.asarray(ok), status, system, signals,
        outcome, ends, final, events, None, tuple(switch.shaped(batch) for switch in runs.switches),
        runs.faults,
        signal_units={n: system.signals[n][1] for n in signals},
        component_axes={n: len(system.shape_of(n)) for n in inputs.parameters
                        if system.owner_of(n) != "robot"},
    )  # fmt: skip
    failed = int(np.size(ok) - np.count_nonzero(ok))
    if failed and failures == "raise" and status == "complete":
        _raise_failed(found, finite | excused, failed)
    return found


def _events(runs: BatchRuns, shaped: Any, most: int) -> BatchEvents | None:
    parts = [
        (
            names,
            to_host(shaped(counts[..., 0])),
            to_host(shaped(times[..., 0])),
            to_host(shaped(fired)),
            to_host(shaped(first)),
        )
        for names, counts, times, fired, first in runs.events
    ]
    return _collected(parts, most, stacklevel=4)


def _raise_failed(batch: Batch, fine: Array, failed: int) -> None:
    bad = np.argwhere(~fine)
    if not len(bad):
        bad = np.argwhere(~batch.ok[..., None])
    first = bad[np.argmin(bad[:, -1])]
    place = tuple(first[:-1].tolist())
    name = ", ".join(map(str, place))
    why = str(batch.outcome[place])
    reason = {
        "event is NaN": "the function of an event is NaN there, one of "
        + _event_names(batch.system),
        "invalid reset": "the reset at an event returned numbers that are not finite, or a "
        "quaternion that is not of unit norm, one of " + _event_names(batch.system, "reset"),
        "step too short": "its steps became too short or too many: what acts is not smooth, or too "
        "stiff for this integrator",
        "chattering": "its events chatter: they occur again and again without progress of time, as "
        "where an event function stays at zero and changes its sign by rounding",
        **dict.fromkeys((OUTCOMES[BAD_HOLD], *OUTCOMES[VIOLATED:]), _fault(batch, place)),
    }.get(why, "its step is too long, or what acts drives it to infinity" + _culprit(batch, place))
    fault = _fault(batch, place)
    if fault.startswith(BAD_FUNCTION):
        reason = fault
    elif fault and why == "event is NaN":  # of a state to which what acts has driven it
        reason = f"what acts drives it to no finite state: {fault}"
    elif fault and fault not in reason:
        reason += f"; {fault}"
    early = why in OUTCOMES[TOO_SHORT:]
    if early:
        head = f"{failed} of {batch.ok.size} runs could not be finished, among them run [{name}]"
    else:
        head = (
            f"{failed} of {batch.ok.size} runs do not stay finite, the first of them run [{name}]"
        )
    time = float(batch.t[min(int(first[-1]), batch.t.size - 1)])
    if early:
        time = float(batch.end[place])
    raise SimulationError(
        f"{head}: {reason} (rm.Record(failures='keep') returns the other runs)",
        time,
        batch,
    )


def _fault(batch: Batch, place: tuple[int, ...]) -> str:
    """Return why constraints could not act in a run, or which component made it fail."""
    number = int(np.ravel_multi_index(place, batch.ok.shape)) if batch.ok.shape else 0
    return batch.faults.get(number, "")


def _event_names(system: System, action: str = "") -> str:
    """Return the names of a system's events, or of those with an action."""
    names = [str(e) for e in system.events if action in ("", e.crossing.action)]
    return ", ".join(map(repr, names)) if names else "those given as events="


def _culprit(batch: Batch, place: tuple[int, ...]) -> str:
    """Return the names of the signals that stopped being finite first."""
    first: dict[str, int] = {}
    for name, values in batch.signals.items():
        samples = to_host(values[place])
        bad = ~np.isfinite(samples.reshape(samples.shape[0], -1)).all(axis=-1)
        if bad.any():
            first[name] = int(np.argmax(bad))
    if not first:
        return ""
    earliest = min(first.values())
    names = ", ".join(repr(n) for n, k in first.items() if k == earliest)
    return f"; not finite first: signal {names}"


def _collected(
    parts: Sequence[tuple[list[str], Array, Array, Array, Array]], most: int, stacklevel: int
) -> BatchEvents | None:
    """Return the events of all phases.

    Args:
        parts: of each phase: the names of its events, the number of events of each run `(...)`,
            their times `(..., capacity)`, which occurred `(..., capacity, events)`, and when each
            event first did `(..., events)`, NaN if it did not.
        most: number of events that were stored for each run and phase.
        stacklevel: of the warning about events that were not stored.
    """
    if not parts:
        return None
    names = list(dict.fromkeys(name for of_phase, *_ in parts for name in of_phase))
    times = np.concatenate([part[2] for part in parts], axis=-1)
    flags: list[Array] = []
    earliest: list[Array] = []
    for of_phase, _, _, fired, first in parts:
        places = [[k for k, n in enumerate(of_phase) if n == name] for name in names]
        columns = [np.max(fired[..., columns_of], axis=-1, initial=0.0) for columns_of in places]
        flags.append(np.stack(columns, axis=-1))
        known = np.where(np.isnan(first), np.inf, first)
        columns = [np.min(known[..., columns_of], axis=-1, initial=np.inf) for columns_of in places]
        earliest.append(np.stack(columns, axis=-1))
    fired, first = np.concatenate(flags, axis=-2), np.min(earliest, axis=0)
    first = np.where(np.isfinite(first), first, np.nan)
    order = np.argsort(times, axis=-1, kind="stable")  # NaN last
    times = np.take_along_axis(times, order, axis=-1)
    fired = np.take_along_axis(fired, order[..., None], axis=-2)
    filled = int(np.max(np.sum(np.isfinite(times), axis=-1), initial=0))
    more = int(np.count_nonzero(np.max([part[1] for part in parts], axis=0) > most))
    if more and most:  # who stores none does not miss them
        warnings.warn(
            f"{more} runs had more than {most} events in a phase; of the later ones only the "
            "first of each name is known (events.first): raise max_events of rm.Record",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
    counts: Array = np.sum([part[1] for part in parts], axis=0)
    return BatchEvents(tuple(names), counts, times[..., :filled], fired[..., :filled, :], first)
