"""Blocks of the programs of batches: stages of a Runge-Kutta step, updates, samples.

A run carries q, v and x with the compensation terms of their Kahan sums, and the discrete states z.
A step works in the chart about q: the state is y = [u, v, x, work], q(t) = integrate(q, u), with
the work of drives, wrenches and passive forces where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, absolute, concatenate, total_and_rest
from remora.algebra.selections import larger, smaller
from remora.codegen.integration.statements import Block, Cell, Host, Run, Statement, unchanged
from remora.codegen.ir.graph import Signature
from remora.components.evaluation import Instant
from remora.components.noise import standard_normals
from remora.components.system import ScheduledUpdate
from remora.dynamics.state_layout import WORKS
from remora.errors import RemoraError
from remora.model.state import increment, integrate, log_rate
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.program.run_equations import FORWARD_DYNAMICS, RunEquations, reads
from remora.simulation.systems.noise_streams import noise_streams

#: Names of functions of Python that single runs call, see `HostedPart`; updates have a number.
LOADS, MOTIONS, RECORD, UPDATE = "loads", "motions", "hosted record", "update"
MEASURE = "measured motion"


class RunBlocks:
    """The blocks of a run, for one method and precision.

    Attributes:
        equations: the equations.
        tableau: the Runge-Kutta method.
        dtype: precision of the kernel.
        nudge: offset from the ends of a step at which loads are evaluated, relative to time.
        bounded: whether loads are evaluated between the times `low` and `high` of the call.
    """

    def __init__(
        self,
        equations: RunEquations,
        tableau: Tableau,
        dtype: str,
        nudge: float,
        bounded: bool = False,
    ) -> None:
        """Find out which blocks depend on time: these are computed in double precision."""
        self.equations, self.tableau, self.dtype, self.nudge = equations, tableau, dtype, nudge
        self.bounded = bounded
        robot, system = equations.robot, equations.system
        self._nq, self._nv, self._nx, self._nz = robot.nq, robot.nv, system.nx, system.nz
        self.works = WORKS if equations.works else 0
        self._ny = 2 * self._nv + self._nx + self.works
        self._pushed = equations.pushed
        self._loaded = ["load tau", *(["load wrenches"] if self._pushed else []), "load x"]
        #: Whether Python computes loads, updates, resets and records.
        self._hosted = "system" in equations.hosted
        #: Loads of the phase that Python computes.
        self._called = [
            Signature(f"called {n}", x) for n, x in equations.called_shapes.items()
            if not self._hosted
        ]  # fmt: skip
        times = [Signature("t", (1,)), Signature("clock", (1,))]
        arguments = [*times, *self.state, *self._called, *equations.data]
        loads_read_time = not self._hosted and any(
            reads(self._loads, arguments, s.name) for s in times
        )
        #: Whether loads are a statement of their own, in double precision.
        self.apart = (dtype == "float32" and loads_read_time) or equations.large or self._hosted
        self._held = ["held q", "held v", "held a"] if equations.held else []
        self._pieces = ("pieces", "piece start") if equations.pieces else ()
        #: Whether speeds at the ends of steps are set, not integrated.
        self.placed = bool(equations.held) or equations.reduced
        #: Whether a stage needs its time.
        self.timed = loads_read_time or self._hosted or bool(equations.held or self._called)

    @property
    def state(self) -> list[Signature]:
        """Names and shapes of the state of a run."""
        sizes = {"q": self._nq, "v": self._nv, "x": self._nx, "z": self._nz}
        return [Signature(name, (n,)) for name, n in sizes.items()]

    @property
    def summed(self) -> list[Signature]:
        """Names and shapes of what a step adds to: q, v, x, and the works if there are any."""
        works = [Signature("work", (self.works,))] if self.works else []
        return [*self.state[:3], *works]

    @property
    def rests(self) -> list[Signature]:
        """Compensation terms of the Kahan sums."""
        return [Signature(f"rest {s.name}", s.shape) for s in self.summed]

    @property
    def cells(self) -> list[Signature]:
        """Variables of the blocks besides state and compensation terms."""
        nv, nx, ny = self._nv, self._nx, self._ny
        found: list[Signature] = [
            Cell("stage t", (1,), wide=True), Cell("stage clock", (1,), wide=True),
            Signature("k", (ny,)), Signature("change", (ny,)),
            Signature("qs", (self._nq,)), Signature("us", (nv,)), Signature("vs", (nv,)),
            Signature("xs", (nx,)),
        ]  # fmt: skip
        if self.apart:
            shapes = {"load tau": (nv,), "load wrenches": (len(self.equations.robot.bodies), 6)}
            found += [Signature(n, shapes.get(n, (nx,))) for n in self._loaded]
            if self.equations.large:
                found += [Signature("load vdot", (nv,)), Signature("load work", (self.works,))]
        if self._hosted:
            size = sum(int(np.prod(shape)) for shape in self.record_shapes.values())
            found.append(Signature(RECORD, (size,)))
        found += self._called
        if self._held:
            found += [Signature("held q", (self._nq,)), Signature("held v", (nv,)),
                      Signature("held a", (nv,)), Signature("anchor", (self._nq,))]  # fmt: skip
        return found

    # Stages of a step ---------------------------------------------------------------------------

    def rows(self) -> Array:
        """Return per stage: weight of the previous k in the stage and in the change; c; nudge."""
        tableau = self.tableau
        stages = len(tableau.b)
        below = np.array([tableau.a[i, i - 1] if i else 0.0 for i in range(stages)])
        assert np.array_equal(np.diag(below[1:], -1), tableau.a), "each stage needs the last only"
        before = np.concatenate([[0.0], tableau.b[:-1]])
        c = tableau.c
        inward = self.nudge * np.where(c == 0.0, 1.0, np.where(c == 1.0, -1.0, 0.0))
        return np.stack([below, before, c, inward], axis=1)

    def stage(self, t: str, h: str, row: str = "row") -> list[Statement]:
        """Return the statements of a stage: they write k, from k of the previous stage.

        Args:
            t: name of the time at the start of the step, a wide number.
            h: name of the step size, a wide number.
            row: name of the row of `rows`.
        """

        def prepare(
            q: Array, v: Array, x: Array, k: Array, change: Array, h: Array, row: Array
        ) -> tuple[Array, ...]:
            ahead, before = row[:1] * h, row[1:2] * h
            u, dv, dx = self._parts(ahead * k)
            return change + before * k, integrate(self.equations.robot, q, u), u, v + dv, x + dx

        when = [self.stage_times(t, h, row, 2)] if self.timed else []
        given = ("q", "v", "x", "k", "change", h, row)
        made = ("change", "qs", "us", "vs", "xs")
        first = Run(Block(prepare, given, made))
        return [*when, first, *self.held_stage(), *self.evaluate()]

    def stage_times(self, t: str, h: str, row: str, place: int) -> Run:
        """Return the statement that computes `stage t` and `stage clock`.

        Args:
            t: name of the time at the start of the step.
            h: name of the step size.
            row: name of the row of coefficients.
            place: index of c in it; the offset from the ends of the step follows.
        """
        starts = ("phase start",) if self.equations.own_clock else ()

        def stage_time(t: Array, h: Array, row: Array, *start: Array) -> tuple[Array, Array]:
            # at the ends of a step, loads that jump there are evaluated just inside
            inward = row[place + 1 : place + 2] * (absolute(t) + absolute(h))
            now = t + row[place : place + 1] * h + inward
            return now, now - start[0] if start else now

        def bounded(t: Array, h: Array, row: Array, *rest: Array) -> tuple[Array, Array]:
            now = t + row[place : place + 1] * h
            return self._inside(now, rest[0], rest[1], rest[2:])

        writes = ("stage t", "stage clock")
        if self.bounded:
            reads_ = (t, h, row, "low", "high", *starts)
            return Run(Block(bounded, reads_, writes, wide=True))
        return Run(Block(stage_time, (t, h, row, *starts), writes, wide=True))

    def _inside(
        self, t: Array, low: Array, high: Array, start: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Return a time within bounds, and on the clock of the loads."""
        now = smaller(larger(t, low), high)
        return now, now - start[0] if start else now

    def held_stage(self) -> list[Statement]:
        """Return the statements that put held joints at their places in qs, us and vs.

        In the reduced model they set the base's part of vs.
        """
        if self.equations.reduced:
            reads = ("qs", "vs", "momentum", *self.equations.data_names)
            return [Run(Block(self.equations.with_momentum, reads, ("vs",)))]
        if not self._held:
            return []

        def place(q: Array, us: Array, vs: Array, held_q: Array, held_v: Array):
            u, v = self.equations.with_held(q, us, vs, (held_q, held_v))
            return integrate(self.equations.robot, q, u), u, v

        given = ("stage clock", "anchor", *self._pieces)
        moved = wide_run(self.equations.motions, given, self._held)
        reads = ("q", "us", "vs", "held q", "held v")
        placed = Run(Block(place, reads, ("qs", "us", "vs")))
        return [self._motions_at("stage t") or moved, placed]

    def _motions_at(self, t: str) -> Host | None:
        """Return the statement in which Python computes the motions of held joints at a time."""
        if "motions" not in self.equations.hosted:
            return None
        return Host(MOTIONS, (t,), self._held)

    def evaluate(self) -> list[Statement]:
        """Return the statements that compute k at qs, us, vs, xs and `stage t`."""
        times = ("stage t", "stage clock")
        names = self.equations.data_names
        state = ("qs", "vs", "xs", "z")
        held = self._held[2:]
        touched = ("contact",) if self.equations.stops else ()
        called = [s.name for s in self._called]
        asked = self._asked("stage clock", "qs", "vs")

        def rates(
            qs: Array, us: Array, vs: Array, tau: Array, wrenches: Array | None, dx: Array,
            rest: Sequence[Array],
        ) -> Array:  # fmt: skip
            contact = rest[0] if touched else None
            acceleration = rest[len(touched)] if held else None
            data = rest[len(touched) + len(held) :]
            motion, works = self.equations.rates(
                qs, us, vs, tau, wrenches, acceleration, contact, data
            )
            return concatenate([motion, dx, works])

        def evaluate(
            t: Array, clock: Array, us: Array, qs: Array, vs: Array, xs: Array, z: Array,
            *rest: Array,
        ) -> Array:  # fmt: skip
            own, rest = rest[: len(called)], rest[len(called) :]
            data = rest[len(touched) + len(held) :]
            loads = self.equations.loads(t, clock, qs, vs, xs, z, data, own)
            return rates(qs, us, vs, *loads, rest)

        def evaluate_loaded(qs: Array, us: Array, vs: Array, *rest: Array) -> Array:
            count = len(self._loaded)
            tau, dx = rest[0], rest[count - 1]
            return rates(qs, us, vs, tau, rest[1] if self._pushed else None, dx, rest[count:])

        if not self.apart:
            given = (*times, "us", *state, *called, *touched, *held, *names)
            return [*asked, Run(Block(evaluate, given, ("k",)))]
        wide = self.dtype == "float32"
        reads = (*times, *state, *called, *names)
        loads: Run | Host = Run(Block(self._loads, reads, self._loaded, wide=wide))
        if self._hosted:
            loads = Host(LOADS, ("stage t", *state), self._loaded)
        if self.equations.large:
            return [*asked, loads, *self._by_tree_loops()]
        then = Block(
            evaluate_loaded, ("qs", "us", "vs", *self._loaded, *touched, *held, *names), ("k",)
        )
        return [*asked, loads, Run(then)]

    def _asked(self, clock: str, q: str, v: str) -> list[Statement]:
        """Return the statements in which Python computes loads at a state."""
        names = zip(self.equations.forces.called, self._called, strict=False)
        return [Host(name, (clock, q, v), (cell.name,)) for name, cell in names]

    def _by_tree_loops(self) -> list[Statement]:
        """Return the rates of a large robot: its forward dynamics is one call, for all runs."""
        touched = ("contact",) if self.equations.stops else ()

        def rates(us: Array, vs: Array, vdot: Array, dx: Array, works: Array) -> Array:
            return concatenate([log_rate(self.equations.robot, us, vs), vdot, dx, works])

        reads = ("qs", "vs", *self._loaded[:-1], *touched)
        made = ("load vdot", "load work")
        return [
            Host(FORWARD_DYNAMICS, reads, made, batched=not self._hosted),
            Run(Block(rates, ("us", "vs", "load vdot", "load x", "load work"), ("k",))),
        ]

    def _loads(
        self, t: Array, clock: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array
    ) -> tuple[Array, ...]:
        called, data = rest[: len(self._called)], rest[len(self._called) :]
        found = self.equations.loads(t, clock, q, v, x, z, data, called)
        return tuple(part for part in found if part is not None)

    def _parts(self, y: Array) -> tuple[Array, Array, Array]:
        """Return the parts of y = [u, v, x], without works."""
        return y[: self._nv], y[self._nv : 2 * self._nv], y[2 * self._nv :]

    def finish(self, h: str, t: str) -> list[Statement]:
        """Return the statements that add the change of a step to the state.

        Args:
            h: name of the step size.
            t: name of the wide time at the end of the step, for held joints.
        """
        last = float(self.tableau.b[-1])
        robot = self.equations.robot

        def finish(
            q: Array, v: Array, x: Array, rest_q: Array, rest_v: Array, rest_x: Array, k: Array,
            change: Array, h: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            u, dv, dx = self._parts(change + last * h * k)
            q, rest_q = total_and_rest(q, increment(robot, q, u) + rest_q)
            v, rest_v = total_and_rest(v, dv + rest_v)
            x, rest_x = total_and_rest(x, dx + rest_x)
            return q, v, x, rest_q, rest_v, rest_x, np.zeros(self._ny)

        names = ("q", "v", "x", "rest q", "rest v", "rest x")
        done: list[Statement] = [Run(Block(finish, (*names, "k", "change", h), (*names, "change")))]
        return [*done, *self.place_held(t), *self.project()]

    def project(self, suffix: str = "") -> list[Statement]:
        """Return the statements that put the end of a step onto the constraints.

        Args:
            suffix: of the names of the state.
        """
        if not self.equations.constrained:
            return []
        names = [f"{name}{suffix}" for name in ("q", "v", "rest q", "rest v")]
        given = (*names, *self.equations.data_names)
        return [Run(Block(self.equations.projected, given, names))]

    def place_held(self, t: str, suffix: str = "") -> list[Statement]:
        """Return the statements that set held joints to their motion at a wide time.

        In the reduced model they set the base's speeds.

        Args:
            t: name of the time.
            suffix: of the names of the state.
        """
        if self.equations.reduced:

            def completed(q: Array, v: Array, rest: Array, *given: Array) -> tuple[Array, Array]:
                v = self.equations.with_momentum(q, v, *given)
                return v, concatenate([np.zeros(6), rest[6:]])

            ends = [f"{name}{suffix}" for name in ("q", "v", "rest v")]
            given = ("momentum", *self.equations.data_names)
            return [Run(Block(completed, (*ends, *given), ends[1:]))]
        if not self._held:
            return []
        robot, held = self.equations.robot, self.equations.held

        def place(
            q: Array, v: Array, rest_q: Array, rest_v: Array, held_q: Array, held_v: Array
        ) -> tuple[Array, ...]:
            parts = list[tuple[Array, ...]]()
            for joint in robot.joints:
                if joint.mimic is not None or joint.v.stop == joint.v.start:
                    continue
                own = joint.name in held
                parts.append((
                    (held_q if own else q)[joint.q], (held_v if own else v)[joint.v],
                    0.0 * rest_q[joint.q] if own else rest_q[joint.q],
                    0.0 * rest_v[joint.v] if own else rest_v[joint.v],
                ))  # fmt: skip
            return tuple(concatenate([part[i] for part in parts]) for i in range(4))

        starts = ("phase start",) if self.equations.own_clock else ()

        def motions(t: Array, anchor: Array, *rest: Array) -> tuple[Array, ...]:
            clock = t - rest[0] if starts else t
            return self.equations.motions(clock, anchor, *rest[len(starts) :])

        moved = wide_run(motions, (t, "anchor", *starts, *self._pieces), self._held)
        names = [f"{name}{suffix}" for name in ("q", "v", "rest q", "rest v")]
        placed = Run(Block(place, (*names, "held q", "held v"), names))
        return [self._motions_at(t) or moved, placed]

    # Updates of discrete states -----------------------------------------------------------------

    def update(self, update: ScheduledUpdate, t: str, noise: Mapping[str, str]) -> Run | Host:
        """Return the statement of one scheduled update of z.

        Args:
            update: the update.
            t: name of the wide time of the update.
            noise: name of the cell with the random numbers of each component that has noise.
        """
        equations, layouts = self.equations, self.equations.system.layouts
        drawn = [name for name in update.names if name in noise]
        starts = ("phase start",) if equations.own_clock else ()

        def changed(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            begin, rest = rest[: len(starts)], rest[len(starts) :]
            numbers, data = rest[: len(drawn)], rest[len(drawn) :]
            now: Instant = equations.instant(t, q, v, x, z, data, *begin)
            if update.kind == "release":
                return now.released(update.names)
            own = dict(zip(drawn, numbers, strict=True))
            parts = [
                standard_normals(own[name])[: layout.noise.stop - layout.noise.start]
                if name in own else np.zeros(layout.noise.stop - layout.noise.start)
                for name, layout in layouts.items()
            ]  # fmt: skip
            return now.ticked(update.names, concatenate(parts) if parts else np.zeros(0))

        cells = [noise[name] for name in drawn]
        if self._hosted or not equations.system.called_at_ticks.isdisjoint(update.names):
            own = equations.system.schedule.index(update)
            return Host(f"{UPDATE} {own}", (t, "q", "v", "x", "z", *cells), ("z",))
        sizes = [Signature(noise[name], (numbers_of_noise(layouts[name].noise),)) for name in drawn]
        begins = [Signature(name, (1,)) for name in starts]
        arguments = [Signature(t, (1,)), *self.state, *begins, *sizes, *equations.data]
        wide = self.dtype == "float32" and reads(changed, arguments, t)
        names = (t, "q", "v", "x", "z", *starts, *cells, *equations.data_names)
        return Run(Block(changed, names, ("z",), wide=wide))

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


def numbers_of_noise(place: slice) -> int:
    """Return how many numbers of the generator the normals of a component need."""
    return 3 * -(-(place.stop - place.start) // 2)


def one() -> Array:
    """Return 1."""
    return np.ones(1)


def plus_one(number: Array) -> Array:
    """Return the next whole number."""
    return number + 1.0


def wide_run(function: Callable[..., Any], reads: Sequence[str], writes: Sequence[str]) -> Run:
    """Return the statement of a block that is computed in double precision."""
    return Run(Block(function, reads, writes, wide=True))
