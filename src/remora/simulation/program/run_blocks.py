"""Blocks of a run besides those of its steps: updates of discrete states, samples, records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.codegen.integration.statements import (
    Block,
    Cell,
    Host,
    Random,
    Run,
    Statement,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.components.evaluation import Instant
from remora.components.noise import standard_normals
from remora.components.system import ScheduledUpdate
from remora.dynamics.state_layout import WORKS
from remora.errors import RemoraError
from remora.simulation.program.run_equations import reads
from remora.simulation.program.step_blocks import StepBlocks
from remora.simulation.systems.noise_streams import noise_streams

#: Names of functions of Python that single runs call, see `HostedPart`; updates have a number.
RECORD, UPDATE, MEASURE = "hosted record", "update", "measured motion"


class RunBlocks(StepBlocks):
    """The blocks of a run, for one method and precision."""

    @property
    def cells(self) -> list[Signature]:
        """Variables of the blocks besides state and compensation terms."""
        found, layouts = super().cells, self.equations.system.layouts
        found += [Signature(_noise_of(name), (_numbers_of_noise(layouts[name].noise),))
                  for name in self.streams()]  # fmt: skip
        if self._hosted:
            size = sum(int(np.prod(shape)) for shape in self.record_shapes.values())
            found.append(Signature(RECORD, (size,)))
        return found

    # Updates of discrete states -----------------------------------------------------------------

    def tick(self, i: int, t: str) -> list[Statement]:
        """Return the statements of one scheduled update, which they count.

        Args:
            i: index of the update.
            t: name of the wide time of the update.
        """
        update, count, streams = self.equations.system.schedule[i], f"tick {i}", self.streams()
        found: list[Statement] = []
        if update.kind == "tick":
            found += [
                Random(_noise_of(name), "seed", "run", count, streams[name])
                for name in update.names if name in streams
            ]  # fmt: skip
        found += [*self.measure(update, t), self.update(update, t)]
        return [*found, wide_run(plus_one, (count,), (count,))]

    @property
    def noise_inputs(self) -> list[Cell]:
        """What random numbers depend on besides the tick, if there are any."""
        names = {"seed": 2, "run": 1} if self.streams() else {}
        return [Cell(name, (size,), wide=True) for name, size in names.items()]

    def update(self, update: ScheduledUpdate, t: str) -> Run | Host:
        """Return the statement of one scheduled update of z.

        Args:
            update: the update.
            t: name of the wide time of the update.
        """
        equations, layouts = self.equations, self.equations.system.layouts
        streams = self.streams()
        drawn = [name for name in update.names if name in streams]
        starts = ("phase start",) if equations.own_clock else ()

        def changed(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            begin, rest = rest[: len(starts)], rest[len(starts) :]
            numbers, data = rest[: len(drawn)], rest[len(drawn) :]
            now: Instant = equations.instant(t, q, v, x, z, data, *begin)
            if update.kind == "release":
                return now.released(update.names)
            own = dict(zip(drawn, numbers, strict=True))
            return now.ticked(update.names, self.normals(own, data))

        cells = [_noise_of(name) for name in drawn]
        if self._hosted or not equations.system.called_at_ticks.isdisjoint(update.names):
            own = equations.system.schedule.index(update)
            return Host(f"{UPDATE} {own}", (t, "q", "v", "x", "z", *cells), ("z",))
        sizes = [Signature(_noise_of(n), (_numbers_of_noise(layouts[n].noise),)) for n in drawn]
        begins = [Signature(name, (1,)) for name in starts]
        arguments = [Signature(t, (1,)), *self.state, *begins, *sizes, *equations.data]
        wide = self.dtype == "float32" and reads(changed, arguments, t)
        names = (t, "q", "v", "x", "z", *starts, *cells, *equations.data_names)
        return Run(Block(changed, names, ("z",), wide=wide))

    def normals(self, drawn: Mapping[str, Array], data: Sequence[Array]) -> Array:
        """Return the standard normal numbers of all components, zero for those without noise.

        Args:
            drawn: numbers of the generator by component.
            data: see `RunEquations.data`.
        """
        parts: list[Array] = []
        for name, layout in self.equations.system.layouts.items():
            size = layout.noise.stop - layout.noise.start
            own = standard_normals(drawn[name])[:size] if name in drawn else np.zeros(size)
            parts.append(own)
        return concatenate(parts) if parts else np.zeros(0)

    def measure(self, update: ScheduledUpdate, t: str) -> list[Statement]:
        """Return the statements that set the true motion that components of an update measure.

        Args:
            update: the update.
            t: name of the wide time of the update.
        """
        equations = self.equations
        if update.kind != "tick" or equations.system.reads_motion.isdisjoint(update.names):
            return []
        if self._hosted:
            return [Host(MEASURE, (t, "q", "v", "x", "z"), ("z",))]
        if equations.large:
            raise RemoraError(
                f"{sorted(equations.system.reads_motion)[0]!r} measures accelerations or loads, "
                "which batches of robots of this size do not compute: use rm.simulate"
            )
        starts = ("phase start",) if equations.own_clock else ()
        held, called = self._held[2:], [s.name for s in self._called]
        before: list[Statement] = []
        if held:

            def motions(t: Array, anchor: Array, *rest: Array) -> tuple[Array, ...]:
                clock = t - rest[0] if starts else t
                return equations.motions(clock, anchor, *rest[len(starts) :])

            moved = wide_run(motions, (t, "anchor", *starts, *self._pieces), self._held)
            before.append(self._motions_at(t) or moved)
        if called:

            def seen(t: Array, *start: Array) -> Array:
                return t - start[0] if start else t

            before.append(wide_run(seen, (t, *starts), ("stage clock",)))
            before += self._asked("stage clock", "q", "v")

        def measured(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            own, rest = rest[: len(called)], rest[len(called) :]
            begin, acceleration = rest[: len(starts)], rest[len(starts) :][: len(held)]
            data = rest[len(starts) + len(held) :]
            clock = t - begin[0] if begin else t
            driven = acceleration[0] if held else None
            return equations.with_motion(t, clock, q, v, x, z, driven, data, own)

        names = (t, "q", "v", "x", "z", *called, *starts, *held, *equations.data_names)
        return [*before, Run(Block(measured, names, ("z",), wide=self.dtype == "float32"))]

    def streams(self) -> dict[str, int]:
        """Return the number of the random stream of each component that has noise."""
        return noise_streams(self.equations.system)

    # Samples ------------------------------------------------------------------------------------

    def sample(self, t: str, signals: Sequence[str], prefix: str = "") -> Block:
        """Return the block that computes the recorded values of a sample: q, v and signals.

        Args:
            t: name of the wide time.
            signals: names of the signals and states of components.
            prefix: put in front of the names of the results.
        """
        equations = self.equations

        def sample(t: Array, q: Array, v: Array, x: Array, z: Array, *data: Array):
            values = equations.instant(t, q, v, x, z, data).recorded()
            return (q, v, *(values[name] for name in signals))

        names = (t, "q", "v", "x", "z", *equations.data_names)
        arguments = [Signature(t, (1,)), *self.state, *equations.data]
        wide = bool(signals) and self.dtype == "float32" and reads(sample, arguments, t)
        made = [f"{prefix}{name}" for name in ("sample q", "sample v", *signals)]
        return Block(sample, names, made, wide=wide)

    def record(self, t: str, suffix: str = "") -> tuple[list[Statement], Block]:
        """Return the statements and the block of a record of a single run, see `record_shapes`.

        Args:
            t: name of the wide time.
            suffix: of the names of the state.
        """
        equations = self.equations
        starts = ("phase start",) if equations.own_clock else ()
        state = [f"{name}{suffix}" for name in ("q", "v", "x", "work")]
        held = self._held[2:]
        if self._hosted:
            asked = Host(RECORD, (t, *state, f"z{suffix}"), (RECORD,))
            return [asked], Block(unchanged, (RECORD,), ("record",))

        def record(
            t: Array, low: Array, high: Array, q: Array, v: Array, x: Array, work: Array, z: Array,
            *rest: Array,
        ) -> Array:  # fmt: skip
            called, rest = rest[: len(self._called)], rest[len(self._called) :]
            begin, acceleration = rest[: len(starts)], rest[len(starts) :][: len(held)]
            data = rest[len(starts) + len(held) :]
            now, clock = self._inside(t, low, high, begin)
            drives = acceleration[0] if held else None
            loads = equations.recorded_loads(now, clock, q, v, x, z, drives, data, called)
            values = equations.instant(now, q, v, x, z, data).recorded()
            signals = [values[name].reshape((-1,)) for name in equations.system.signals]
            return concatenate([t, q, v, work, *loads, *signals])

        before: list[Statement] = []
        if held:

            def motions(t: Array, low: Array, high: Array, anchor: Array, *rest: Array):
                start, moved = rest[: len(starts)], rest[len(starts) :]
                return equations.motions(self._inside(t, low, high, start)[1], anchor, *moved)

            reads_ = (t, "low", "high", "anchor", *starts, *self._pieces)
            before = [self._motions_at(t) or wide_run(motions, reads_, self._held)]
        if self._called:

            def seen(t: Array, low: Array, high: Array, *start: Array) -> Array:
                return self._inside(t, low, high, start)[1]

            reads_ = (t, "low", "high", *starts)
            before.append(Run(Block(seen, reads_, ("stage clock",), wide=True)))
            before += self._asked("stage clock", state[0], state[1])
        called = [s.name for s in self._called]
        names = (
            t, "low", "high", *state, f"z{suffix}", *called, *starts, *held, *equations.data_names
        )  # fmt: skip
        return before, Block(record, names, ("record",))

    @property
    def record_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parts of a record: time, state, works, loads and signals."""
        system = self.equations.system
        shapes: dict[str, tuple[int, ...]] = {"t": (1,), "q": (self._nq,), "v": (self._nv,)}
        shapes |= {"work": (WORKS,), **self.equations.load_shapes}
        sizes = [int(np.prod(shape)) for shape, _ in system.signals.values()]
        return shapes | ({"signals": (sum(sizes),)} if sizes else {})


def _noise_of(name: str) -> str:
    """Return the name of the cell with the random numbers of a component."""
    return f"noise of {name}"


def _numbers_of_noise(place: slice) -> int:
    """Return how many numbers of the generator the normals of a component need."""
    return 3 * -(-(place.stop - place.start) // 2)


def one() -> Array:
    """Return 1."""
    return np.ones(1)


def plus_one(number: Array) -> Array:
    """Return the next whole number."""
    return number + 1.0
