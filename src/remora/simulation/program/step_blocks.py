"""Blocks of a step of a run: the stages of a Runge-Kutta method, rates, the compensated update.

A run carries q, v and x with the compensation terms of their Kahan sums, and the discrete states z.
A step works in the chart about q [MK99]: the state is y = [u, v, x, work], q(t) = integrate(q, u),
with the work of drives, wrenches and passive forces where it is asked for.

    stages: change of y, with all rates, or with the last one only where that is enough
        rates in a stage                                          evaluate
            loads, then the equations of motion                   RunEquations.loads, rates
    the state at the end, by compensated sums                     add_change
    held joints in their places, q and v on the constraints       place_held, project
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from remora.algebra.array_ops import Array, absolute, concatenate, less, select
from remora.algebra.selections import larger, smaller
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    Host,
    If,
    Run,
    Statement,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.dynamics.state_layout import WORKS
from remora.model.state import compensated_sum, integrate, log_rate
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.program.run_equations import FORWARD_DYNAMICS, RunEquations, reads

#: Names of functions of Python that single runs call, see `HostedPart`.
LOADS, MOTIONS = "loads", "motions"
#: Cells with q, u, v and x of a stage.
_PLACED = ("qs", "us", "vs", "xs")


class StepBlocks:
    """The blocks of a step, for one method and precision.

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
        #: Size of y, see `runge_kutta_step`.
        self.size = 2 * self._nv + self._nx + self.works
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
        nv, nx, ny = self._nv, self._nx, self.size
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
        found += self._called
        if self._held:
            found += [Signature("held q", (self._nq,)), Signature("held v", (nv,)),
                      Signature("held a", (nv,)), Signature("anchor", (self._nq,))]  # fmt: skip
        return found

    # Stages of a step -----------------------------------------------------------------------------

    def stages(self, rates: Sequence[str], additional: Sequence[Statement]) -> list[Statement]:
        """Return the statements of all stages, from `t` over `length`, with a cell for each rate.

        Reads `fresh`: without it, the first stage is the last one of the step before.

        Args:
            rates: cells of the rates: of the stages, at the end of the step, and of the additional
                stages for dense output.
            additional: statements that decide whether an additional stage is evaluated, in `use`.
        """
        tableau, width = self.tableau, len(rates)
        count, size = len(tableau.b), self.size
        weights = np.zeros((width, width))
        weights[:count, :count], weights[count, :count] = tableau.a, tableau.b
        weights[count + 1 :] = tableau.dense_a[: width - count - 1, :width]
        c = np.array([*tableau.c, 1.0, *tableau.dense_c])[:width]
        rows = np.concatenate([c[:, None], self._inward(c)[:, None], np.eye(width)], axis=1)

        def begin(fresh: Array, row: Array) -> tuple[Array, ...]:
            chosen = [row[2 + i : 3 + i] for i in range(width)]
            return (select(less(0.5, chosen[0]), fresh, 1.0), *chosen)

        def change_of(i: int) -> Run:
            used: list[int] = np.flatnonzero(weights[i]).tolist()

            def change(length: Array, *K: Array) -> Array:
                return length * weighted(weights[i][used], K) if K else np.zeros(size)

            reads = ("length", *(rates[k] for k in used))
            to = ("change", "moved") if i == count else ("moved",)

            def last(length: Array, *K: Array) -> tuple[Array, Array]:
                return change(length, *K), change(length, *K)

            return Run(Block(last if i == count else change, reads, to, each=bool(used)))

        flags = [f"at {i}" for i in range(width)]
        stage: list[Statement] = [
            *([self.stage_times("t", "length", "row", 0)] if self.timed else []),
            wide_run(begin, ("fresh", "row"), ("use", *flags)),
            *additional,
            *(If(flag, [change_of(i)]) for i, flag in enumerate(flags)),
            Run(Block(self._placed, ("q", "v", "x", "moved"), _PLACED)),
            *self.held_stage(),
            # the first stage is the last one of the step before, unless something has changed
            If("use", [
                *self.evaluate(),
                *(If(flag, [Run(Block(unchanged, ("k",), (rates[i],)))])
                  for i, flag in enumerate(flags)),
            ]),
        ]  # fmt: skip
        return [For(rows, stage)]

    def chained_stages(self, t: str, h: str) -> list[Statement]:
        """Return the statements of the stages of a method in which each needs the last rate only.

        Args:
            t: name of the wide time at the start of the step.
            h: name of the step size, a wide number.
        """
        tableau, count = self.tableau, len(self.tableau.b)
        below = np.array([tableau.a[i, i - 1] if i else 0.0 for i in range(count)])
        assert np.array_equal(np.diag(below[1:], -1), tableau.a), "each stage needs the last only"
        before = np.concatenate([[0.0], tableau.b[:-1]])
        # weights of the last rate in the stage and in the change; c; offset from the ends
        rows = np.stack([below, before, tableau.c, self._inward(tableau.c)], axis=1)
        last = float(tableau.b[-1])

        def chained(
            q: Array, v: Array, x: Array, k: Array, change: Array, h: Array, row: Array
        ) -> tuple[Array, ...]:
            ahead, weight = row[:1] * h, row[1:2] * h
            return change + weight * k, *self._placed(q, v, x, ahead * k)

        def zero() -> Array:
            return np.zeros(self.size)

        def total(k: Array, change: Array, h: Array) -> Array:
            return change + last * h * k

        stage: list[Statement] = [
            *([self.stage_times(t, h, "row", 2)] if self.timed else []),
            Run(Block(chained, ("q", "v", "x", "k", "change", h, "row"), ("change", *_PLACED))),
            *self.held_stage(),
            *self.evaluate(),
        ]
        begin = Run(Block(zero, (), ("change",)))
        return [begin, For(rows, stage), Run(Block(total, ("k", "change", h), ("change",)))]

    def _placed(self, q: Array, v: Array, x: Array, dy: Array) -> tuple[Array, ...]:
        """Return q, u, v and x of a stage, after a change of y."""
        robot, nv, nx = self.equations.robot, self.equations.robot.nv, self.equations.system.nx
        us, vs, xs = dy[:nv], v + dy[nv : 2 * nv], x + dy[2 * nv : 2 * nv + nx]
        return integrate(robot, q, us), us, vs, xs

    def _inward(self, c: Array) -> Array:
        """Return how far inside the ends of a step loads are evaluated, relative to time."""
        return self.nudge * np.where(c == 0.0, 1.0, np.where(c == 1.0, -1.0, 0.0))

    # Rates ----------------------------------------------------------------------------------------

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

    # End of a step --------------------------------------------------------------------------------

    def add_change(self, suffix: str = "") -> Run:
        """Return the statement that adds `change` to the state, by compensated (Kahan) sums.

        Args:
            suffix: of the names of what it writes.
        """
        robot, names = self.equations.robot, [s.name for s in self.summed]
        rests = [f"rest {name}" for name in names]

        def added(change: Array, *state: Array) -> tuple[Array, ...]:
            return compensated_sum(robot, change, state[: len(names)], state[len(names) :])

        ends = [f"{name}{suffix}" for name in (*names, *rests)]
        return Run(Block(added, ("change", *names, *rests), ends))

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


def weighted(weights: Array, K: Sequence[Array]) -> Array:
    """Return Σ wᵢ Kᵢ over as many rates as there are weights."""
    total = weights[:1] * K[0]
    for i in range(1, len(weights)):
        total = total + weights[i : i + 1] * K[i]
    return total
