"""Program of a batch in lockstep: all runs make the same fixed steps at the same times.

    for each interval m:                  # between samples, ticks and breaks
        for each scheduled update: if it is due at the start of the interval: update z
        repeat count times: one Runge-Kutta step
        if a sample is due at the end of the interval: record it

The times of samples, ticks and breaks are the same in all runs, so they are tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    ForEach,
    If,
    Record,
    Repeat,
    Sample,
    Statement,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.components.system import ScheduledUpdate, System
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.program.run_blocks import (
    RunBlocks,
    plus_one,
)

#: Cell with the number of steps that a run has made.
STEPS = "steps"
#: Times closer than this many units in the last place are the same.
CLOSE = 8.0


def lockstep_program(blocks: RunBlocks, signals: Sequence[str]) -> Program:
    """Return the program.

    Inputs: q, v, x, z, their compensation terms, `tick 0`, ... of the updates, `anchor` if
    joints are held, seed and run if there is noise, and the data of the equations. Tables: `start`,
    `step`, `count`, `keep` and `due 0`, `due 1`, ... of the updates.

    Args:
        blocks: the blocks of a run.
        signals: names of the signals that are recorded.
    """
    equations = blocks.equations
    updates = range(len(equations.system.schedule))
    ticks = [Cell(f"tick {i}", (1,), wide=True) for i in updates]
    inputs: list[Signature] = [*blocks.state, *blocks.rests, *equations.data, *ticks]
    if equations.own_clock:
        inputs.append(Cell("phase start", (1,), wide=True))
    if equations.held:
        inputs.append(Signature("anchor", (equations.robot.nq,)))
    inputs += blocks.noise_inputs
    numbers = ("now", "end", "kept", "sample row", STEPS, *(f"is due {i}" for i in updates))
    cells = [*blocks.state, *blocks.rests, *blocks.cells, *ticks]
    cells += [Cell(name, (1,), wide=True) for name in numbers]

    def step_ends(start: Array, step: Array, index: Array) -> tuple[Array, Array]:
        return start + index * step, start + (index + 1.0) * step

    def interval_end(start: Array, step: Array, count: Array, keep: Array) -> tuple[Array, Array]:
        return start + count * step, keep

    def due(i: int) -> list[Statement]:
        now = wide_run(unchanged, (f"due {i}", "start"), (f"is due {i}", "now"))
        return [now, If(f"is due {i}", blocks.tick(i, "now"))]

    times = wide_run(step_ends, ("start", "step", "index"), ("now", "end"))
    step: list[Statement] = [
        *([times] if blocks.timed else []),
        *blocks.chained_stages("now", "step"),
        blocks.add_change(),
        *blocks.place_held("end"),
        *blocks.project(),
        wide_run(plus_one, (STEPS,), (STEPS,)),
    ]
    sample: list[Statement] = [
        Record(blocks.sample("now", signals), "sample row"),
        wide_run(plus_one, ("sample row",), ("sample row",)),
    ]
    body = [
        *(statement for i in updates for statement in due(i)),
        Repeat("count", step),
        wide_run(interval_end, ("start", "step", "count", "keep"), ("now", "kept")),
        If("kept", sample),
    ]
    return Program(inputs, cells, [ForEach(body), *_final(blocks)], table_names(equations.system))


def table_names(system: System) -> list[str]:
    """Return the names of the tables of a lockstep program."""
    return ["start", "step", "count", "keep", *(f"due {i}" for i in range(len(system.schedule)))]


def _final(blocks: RunBlocks) -> list[Statement]:
    """Return the statements that return the state of a run at its end, `final q`, ..."""
    narrow = [s.name for s in (*blocks.state, *blocks.rests)]
    wide = [STEPS, *(f"tick {i}" for i in range(len(blocks.equations.system.schedule)))]
    return [
        Sample(Block(unchanged, own, [f"final {n}" for n in own], wide=own is wide))
        for own in (narrow, wide)
    ]


class Timetable(NamedTuple):
    """The tables of a lockstep program.

    Attributes:
        start: start of each interval, s.
        step: step size in it, s.
        steps: number of steps.
        keep: whether a sample is taken at its end.
        due: for each update, whether it happens at the start of the interval.
        samples: number of samples.
    """

    start: Array
    step: Array
    steps: Array
    keep: Array
    due: tuple[Array, ...]
    samples: int

    def passed(self) -> dict[str, Array]:
        """Return the tables by name."""
        named = {"start": self.start, "step": self.step, "count": self.steps, "keep": self.keep}
        return named | {f"due {i}": d for i, d in enumerate(self.due)}

    def until(self, steps: int) -> Timetable:
        """Return the table of the first steps; the updates of the interval of the last are made."""
        done = np.cumsum(self.steps)
        last = int(np.searchsorted(done, max(steps, 1)))
        counts = self.steps[: last + 1].copy()
        counts[last] = steps - (done[last] - self.steps[last])
        keep = self.keep[: last + 1]
        due = tuple(d[: last + 1] for d in self.due)
        return Timetable(
            self.start[: last + 1], self.step[: last + 1], counts, keep, due, int(keep.sum())
        )

    @property
    def end(self) -> float:
        """Time after the last step, s."""
        return float(self.start[-1] + self.steps[-1] * self.step[-1])


@dataclass(frozen=True, eq=False)
class RepeatedRun:
    """A phase in lockstep, to be repeated for one run up to some step.

    Attributes:
        kernel: the program.
        rows: its inputs at the start of the phase, each `(runs, *shape)`.
        table: the timetable.
    """

    kernel: Any
    rows: list[Any]
    table: Timetable

    def after(self, row: int, steps: int) -> dict[str, Array]:
        """Return q, v, x and z of a run after so many steps, on the host."""
        table = self.table.until(steps)
        call = {"tables": table.passed(), "capacity": table.samples}
        returned = self.kernel(*(a[row : row + 1] for a in self.rows), **call)
        found = zip((o.name for o in self.kernel.interface.outputs), returned, strict=True)
        final = {n[6:]: to_host(x)[0] for n, x in found if n.startswith("final ")}
        return {name: np.asarray(final[name], dtype=float) for name in ("q", "v", "x", "z")}


def timetable(
    samples: Array,
    begin: float,
    end: float,
    step: float,
    breaks: Sequence[float],
    updates: Sequence[tuple[ScheduledUpdate, float, int]],
) -> Timetable:
    """Return intervals from `begin` to `end` that end at every sample, break and update.

    Args:
        samples: times of the samples, within [begin, end], s.
        begin: s.
        end: s.
        step: maximum step size, s.
        breaks: times at which loads are not smooth, s.
        updates: scheduled updates, each with the time from which its ticks are counted, s, and how
            many of them have happened.
    """
    close = CLOSE * np.spacing(max(abs(begin), abs(end)))
    ticks = [_ticks(u, start, number, begin, end, close) for u, start, number in updates]
    inner = np.array([float(t) for t in breaks if begin < t < end])
    knots = _merged([np.array([begin, end]), samples, *ticks, inner], close)
    lengths = np.diff(knots)
    counts = np.maximum(np.ceil(lengths / step - 1e-6), 1.0)
    # the first interval has no steps: its sample is the initial state
    start = np.concatenate([knots[:1], knots[:-1]])
    steps = np.concatenate([[step], lengths / counts])
    whole = np.concatenate([[0.0], counts])
    keep = _near(knots, samples, close)
    due = [_near(start, own, close) for own in ticks]
    for own in due:
        own[1:2] = 0.0  # the first two intervals have the same start
    return Timetable(start, steps, whole, keep, tuple(due), int(np.count_nonzero(keep)))


def _ticks(
    update: ScheduledUpdate, start: float, number: int, begin: float, end: float, close: float
) -> Array:
    """Return the times of an update from `begin` on, before `end`, but for the first `number`."""
    origin = start + update.offset
    first = max(int(np.ceil((begin - close - origin) / update.sample_time)), number)
    last = int(np.ceil((end - close - origin) / update.sample_time))
    return start + (update.offset + update.sample_time * np.arange(first, max(last, first)))


def _merged(parts: Sequence[Array], close: float) -> Array:
    """Return all times in ascending order; of times that are close, that of the earlier part."""
    known = np.unique(parts[0])
    for part in parts[1:]:
        new = np.unique(part)
        known = np.sort(np.concatenate([known, new[_near(new, known, close) == 0.0]]))
    return known


def _near(times: Array, others: Array, close: float) -> Array:
    """Return 1 for each time that is close to one of the others, 0 otherwise."""
    if not others.size:
        return np.zeros(times.shape)
    ordered = np.sort(others)
    above = np.clip(np.searchsorted(ordered, times), 0, ordered.size - 1)
    below = np.clip(above - 1, 0, None)
    gap = np.minimum(np.abs(ordered[above] - times), np.abs(ordered[below] - times))
    return (gap <= close).astype(float)
