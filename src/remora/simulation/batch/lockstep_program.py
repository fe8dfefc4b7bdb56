"""Program of a batch in lockstep: all runs make the same fixed steps at the same times.

    for each interval m:                  # between samples, ticks and breaks
        for each scheduled update: if it is due at the start of the interval: update z
        repeat count times: one Runge-Kutta step
        if a sample is due at the end of the interval: record it

The times of samples, ticks and breaks are the same in all runs, so they are tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    If,
    Random,
    Record,
    Repeat,
    Run,
    Statement,
)
from remora.codegen.ir.graph import Signature
from remora.components.system import ScheduledUpdate
from remora.simulation.batch.run_blocks import RunBlocks, numbers_of_noise

#: Times closer than this many units in the last place are the same.
CLOSE = 8.0


def lockstep_program(blocks: RunBlocks, signals: Sequence[str]) -> Program:
    """Return the program.

    Inputs: q, v, x, z, `anchor` if joints are held, seed and run if there is noise, and the data of
    the equations. Tables: `start`, `step`, `count`, `keep` and `due 0`, `due 1`, ... of the updates.

    Args:
        blocks: the blocks of a run.
        signals: names of the signals that are recorded.
    """
    equations = blocks.equations
    system = equations.system
    updates = system.schedule
    tables = ["start", "step", "count", "keep", *(f"due {i}" for i in range(len(updates)))]
    streams = blocks.streams()
    drawn = {name: f"noise of {name}" for name in streams}
    inputs: list[Signature] = [*blocks.state, *equations.data]
    cells = [*blocks.state, *blocks.rests, *blocks.cells]
    if equations.held:
        inputs.append(Signature("anchor", (equations.robot.nq,)))
    if streams:
        inputs += [Cell("seed", (2,), wide=True), Cell("run", (1,), wide=True)]
        cells += [
            Signature(cell, (numbers_of_noise(system.layouts[name].noise),))
            for name, cell in drawn.items()
        ]
    cells += [Cell("now", (1,), wide=True), Cell("end", (1,), wide=True), Cell("kept", (1,), wide=True)]
    cells += [Cell("sample row", (1,), wide=True)]
    cells += [Cell(f"tick {i}", (1,), wide=True) for i in range(len(updates))]
    cells += [Cell(f"is due {i}", (1,), wide=True) for i in range(len(updates))]
    body: list[Statement] = []
    for i, update in enumerate(updates):
        body += _update(blocks, i, update, drawn, streams)

    def step_ends(start: Array, step: Array, index: Array) -> tuple[Array, Array]:
        return start + index * step, start + (index + 1.0) * step

    body.append(
        Repeat(
            "count",
            [
                Run(Block(step_ends, ("start", "step", "index"), ("now", "end"), wide=True)),
                For(blocks.rows(), blocks.stage("now", "step")),
                *blocks.finish("step", "end"),
            ],
        )
    )

    def interval_end(start: Array, step: Array, count: Array, keep: Array) -> tuple[Array, Array]:
        return start + count * step, keep

    ends = ("start", "step", "count", "keep")
    body += [
        Run(Block(interval_end, ends, ("now", "kept"), wide=True)),
        If(
            "kept",
            [
                Record(blocks.sample("now", signals), "sample row"),
                Run(Block(lambda row: row + 1.0, ("sample row",), ("sample row",), wide=True)),
            ],
        ),
    ]
    return Program(inputs, cells, [ForEach(body)], tables)


def _update(
    blocks: RunBlocks, i: int, update: ScheduledUpdate, drawn: dict[str, str], streams: dict[str, int]
) -> list[Statement]:
    """Return the statements of one scheduled update."""
    inner: list[Statement] = []
    if update.kind == "tick":
        inner += [
            Random(drawn[name], "seed", "run", f"tick {i}", streams[name])
            for name in update.names if name in drawn
        ]  # fmt: skip
    inner.append(blocks.update(update, "now", drawn))
    inner.append(Run(Block(lambda k: k + 1.0, (f"tick {i}",), (f"tick {i}",), wide=True)))
    due = Block(lambda due, start: (due, start), (f"due {i}", "start"), (f"is due {i}", "now"),
                wide=True)  # fmt: skip
    return [Run(due), If(f"is due {i}", inner)]


class Timetable(NamedTuple):
    """The tables of a lockstep program.

    Attributes:
        start: start of each interval, s.
        step: step size in it, s.
        count: number of steps.
        keep: whether a sample is taken at its end.
        due: for each update, whether it happens at the start of the interval.
        samples: number of samples.
    """

    start: Array
    step: Array
    count: Array
    keep: Array
    due: tuple[Array, ...]
    samples: int

    def passed(self) -> dict[str, Array]:
        """Return the tables by name."""
        named = {"start": self.start, "step": self.step, "count": self.count, "keep": self.keep}
        return named | {f"due {i}": d for i, d in enumerate(self.due)}


def timetable(
    times: Array, step: float, breaks: Sequence[float], updates: Sequence[ScheduledUpdate]
) -> Timetable:
    """Return intervals that end at every sample, break and update.

    Args:
        times: of the samples, the start of the run first, s.
        step: maximum step size, s.
        breaks: times at which loads are not smooth, s.
        updates: scheduled updates.
    """
    first, last = float(times[0]), float(times[-1])
    close = CLOSE * np.spacing(max(abs(first), abs(last)))
    ticks = [_ticks(u, first, last) for u in updates]
    inner = [float(t) for t in breaks if first < t < last]
    knots = _merged([times, *ticks, np.array(inner)], close)
    lengths = np.diff(knots)
    counts = np.maximum(np.ceil(lengths / step - 1e-6), 1.0)
    # the first interval has no steps: its sample is the initial state
    start = np.concatenate([knots[:1], knots[:-1]])
    steps = np.concatenate([[step], lengths / counts])
    whole = np.concatenate([[0.0], counts])
    keep = _near(knots, times, close)
    due = [_near(start, own, close) for own in ticks]
    for own in due:
        own[1:2] = 0.0  # the start of the run is the start of the first two intervals
    return Timetable(start, steps, whole, keep, tuple(due), int(np.count_nonzero(keep)))


def _ticks(update: ScheduledUpdate, first: float, last: float) -> Array:
    count = int(np.floor((last - first - update.offset) / update.sample_time + 1e-9)) + 1
    if count <= 0:
        return np.zeros(0)
    return first + (update.offset + update.sample_time * np.arange(count))


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
