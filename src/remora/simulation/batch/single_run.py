"""One run of a batch as an ordinary recording: simulated again, alone, with the same steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, asarray
from remora.components.system import System
from remora.errors import InvalidValue, RemoraError
from remora.simulation.engine.simulate import prepare_run
from remora.simulation.inputs.events import Event
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.run_settings import Integrator, Physics, Record
from remora.simulation.recording.recording import Recording


@dataclass(frozen=True, eq=False)
class RunArguments:
    """What a run of a batch needs to be simulated alone.

    Attributes:
        q: initial configurations, `(runs, nq)`.
        v: initial velocities, `(runs, nv)`.
        run: index of each run for its noise, `(runs,)`.
        phases: the phases.
        integrator: settings of the steps.
        physics: settings of the equations of motion.
        start: initial time, s.
        seed: of the noise.
        sample: times of the samples, s.
        events: events that are watched in all phases.
        obstacle: why a run cannot be simulated alone; empty if it can.
        loads: loads of the only phase that differ from run to run, by name, `(runs, ...)`.
    """

    q: Array
    v: Array
    run: Array
    phases: tuple[Phase, ...]
    integrator: Integrator
    physics: Physics
    start: float
    seed: int
    sample: Array
    events: Sequence[Event] = ()
    obstacle: str = ""
    loads: Mapping[str, Array] = field(default_factory=dict[str, Array])


def run_alone(
    system: System, parameters: Mapping[str, Array], shape: tuple[int, ...], of: RunArguments,
    index: Any,
) -> Recording:  # fmt: skip
    """Return one run of a batch as a recording; the batch has warned of its start.

    Args:
        system: the robot with its components.
        parameters: parameters that differ from run to run, by name, `(..., *shape)`.
        shape: batch shape of the runs.
        of: the arguments of the batch.
        index: index of the run; for a batch with several axes a tuple, or counted through.
    """
    if of.obstacle:
        raise RemoraError(f"a run of this batch cannot be simulated alone: {of.obstacle}")
    place = _place(index, shape)
    number = int(np.ravel_multi_index(place, shape)) if shape else 0
    changed: dict[str, Array] = {}
    for name, values in parameters.items():
        trailing = values.shape[values.ndim - len(system.shape_of(name)) :]
        changed[name] = asarray(np.broadcast_to(values, (*shape, *trailing))[place])
    made = system.with_parameters(changed)
    phases = of.phases
    if of.loads:
        phases = (replace(phases[0], **{what: x[number] for what, x in of.loads.items()}),)
    record = Record(of.sample, note=f"run {number} of a batch", progress=False)
    run = prepare_run(
        made, of.q[number], of.v[number], phases, events=of.events,
        integrator=replace(of.integrator, step_to_samples=True), physics=of.physics,
        record=record, start=of.start, seed=(of.seed, int(of.run[number])),
    )  # fmt: skip
    return run.run(record)


def _place(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of a run in the batch shape, or raise."""
    count = int(np.prod(shape, dtype=int))
    given: list[Any] = [*index] if isinstance(index, tuple) else [index]
    whole = all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in given)
    if whole and len(given) == 1 and len(shape) != 1 and 0 <= given[0] < count:
        return tuple(int(i) for i in np.unravel_index(int(given[0]), shape)) if shape else ()
    fits = whole and len(given) == len(shape)
    if not fits or any(not 0 <= i < n for i, n in zip(given, shape, strict=True)):
        known = f"0 to {count - 1}" if len(shape) <= 1 else f"a place in {shape}"
        raise InvalidValue(f"a batch of {count} runs has no run {index!r}; known: {known}")
    return tuple(int(i) for i in given)
