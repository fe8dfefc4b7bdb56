"""Program of a batch in which each run has its own steps: adaptive step sizes and events.

for each sample time:
while the run has not reached it:
scheduled updates that are due
choose the step; stages; candidate state at its end; error; event functions there
accept the step, or try again with another length
if an event occurred: record it, reset states, or end the run
record the sample
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import (
    Array,
    absolute,
    concatenate,
    less,
    select,
    sqrt,
    total_and_rest,
)
from remora.algebra.selections import flag, floor, larger, largest, negated, smaller
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    If,
    Random,
    Run,
    Sample,
    Statement,
    While,
)
from remora.codegen.ir.graph import Signature
from remora.dynamics.state_layout import WORKS
from remora.model.state import increment, integrate
from remora.simulation.batch.event_search import (
    FIRST,
    NODES,
    NOT_FINITE,
    TOO_SHORT,
    EventSearch,
)
from remora.simulation.batch.lockstep_program import final_samples
from remora.simulation.batch.run_blocks import (
    RunBlocks,
    numbers_of_noise,
    one,
    plus_one,
    unchanged,
    wide_run,
)
from remora.simulation.batch.run_equations import Break
from remora.simulation.integrators.error_scale import coordinate_magnitudes
from remora.simulation.integrators.step_control import CLOSE, GROW, SAFETY, SHRINK
from remora.simulation.integrators.tableaus import Tableau

_EPS = float(np.finfo(float).eps)
_NEVER = 1e300
#: The step size control between two steps: next step size, whether the last try was rejected, and
#: the number of tries; whether the rate is not known.
CONTROLLED = ("h", "refused", "tried", "fresh")
#: Rate of y at the start of the step, unless `fresh` says that it is not known.
RATE = "rate"
#: Put in front of the names of what is recorded at the end of a run.
AT_END = "end "


@dataclass(frozen=True)
class StepControl:
    """How steps are chosen.

    Attributes:
        tableau: the method; without error estimate, steps have a fixed length.
        step: fixed length, or initial length of an adaptive method, s.
        rtol: relative error tolerance.
        atol: absolute error tolerance.
        max_step: s.
        max_steps: maximum number of steps that a run may try.
    """

    tableau: Tableau
    step: float
    rtol: float = 1e-10
    atol: float = 1e-12
    max_step: float = math.inf
    max_steps: int = 1_000_000

    @property
    def adaptive(self) -> bool:
        """Whether the step size is controlled by an error estimate."""
        return len(self.tableau.errors) > 0


def free_program(
    blocks: RunBlocks,
    control: StepControl,
    signals: Sequence[str],
    breaks: Sequence[Break] = (),
    from_phase: Collection[str] = (),
) -> Program:
    """Return the program.

    Inputs: q, v, x, z, their compensation terms, `tick 0`, ... of the updates, `t`, `start` of the
    run, `phase start`, `until`, `status`, the data of the equations; `anchor` with held joints,
    `seed` and `run` with noise. Table: `sample time`. A run makes steps until it has tried `budget`
    of them; one without events goes on in another call, with its state and `CONTROLLED` returned.

    Args:
        blocks: the blocks of a run.
        control: how steps are chosen.
        signals: names of the signals that are recorded.
        breaks: times at which loads are not smooth.
        from_phase: components whose ticks are counted from the start of the phase.
    """
    return _FreeProgram(blocks, control, signals, breaks, from_phase).program()


class _FreeProgram:
    """Builds the program; each method returns the statements of one part."""

    def __init__(
        self,
        blocks: RunBlocks,
        control: StepControl,
        signals: Sequence[str],
        breaks: Sequence[Break],
        from_phase: Collection[str],
    ) -> None:
        self._from_phase = from_phase
        self._blocks, self._control, self._signals = blocks, control, signals
        self._breaks = sorted(set(breaks))
        self._equations = blocks.equations
        self._system, self._robot = blocks.equations.system, blocks.equations.robot
        self._updates, self._events = self._system.schedule, self._system.events
        self._names = self._equations.data_names
        stages = len(control.tableau.b)
        #: Cells of the rates of y in the stages; the last is that at the end of the step.
        self._rates = [RATE, *(f"k{i}" for i in range(1, stages + 1))]
        self._search = EventSearch(blocks, RATE, self._rates[-1])
        self._ny = 2 * self._robot.nv + self._system.nx
        self._streams = blocks.streams()
        self._drawn = {name: f"noise of {name}" for name in self._streams}

    def program(self) -> Program:
        """Return the program."""
        blocks, equations, count = self._blocks, self._equations, self._search.functions
        wide = ["t", "start", "phase start", "until", "status", *CONTROLLED, "budget"]
        inputs: list[Signature] = [*blocks.state, *blocks.rests, *equations.data]
        inputs.append(Signature(RATE, (self._ny,)))
        inputs += [Cell(f"tick {i}", (1,), wide=True) for i in range(len(self._updates))]
        inputs += [Cell(name, (1,), wide=True) for name in wide]
        cells = [*blocks.state, *blocks.rests, *blocks.cells]
        cells += [Signature(f"{s.name} end", s.shape) for s in (*blocks.state[:3], *blocks.rests)]
        cells += [Signature(name, (self._ny,)) for name in self._rates]
        cells += [Cell(f"at {i}", (1,), wide=True) for i in range(len(self._rates))]
        cells += [Signature("error", (1,))]
        cells += [Signature("reset fault", (1,))]
        numbers = (
            *wide, "goal", "target", "end", "length", "accept", "active", "use", "segment start",
            "segment steps", "segment step", "low", "high", "side", "final", "search", "cut",
            "reached", "events", "recent", "recent time", "tries", "any", "logged",
        )  # fmt: skip
        cells += [Cell(name, (1,), wide=True) for name in numbers]
        cells += [Cell(f"{n} {i}", (1,), wide=True)
                  for n in ("tick", "is due") for i in range(len(self._updates))]  # fmt: skip
        cells += [Cell(f"fired {i}", (1,), wide=True) for i in range(count)]
        if self._events:
            cells.append(Cell(FIRST, (len(self._events),), wide=True))
        if count:
            vectors = ("g", "g end", "g low", "g high", "fired")
            cells += [Cell(name, (count,), wide=True) for name in vectors]
            shape = (len(NODES), count)
            cells += [Cell(name, shape, wide=True) for name in ("g inside", "slopes")]
        if equations.held:
            inputs.append(Signature("anchor", (self._robot.nq,)))
        if self._streams:
            inputs += [Cell("seed", (2,), wide=True), Cell("run", (1,), wide=True)]
            cells += [
                Signature(cell, (numbers_of_noise(self._system.layouts[name].noise),))
                for name, cell in self._drawn.items()
            ]
        body = [
            *self._search.no_events(), *self._search.first_contact(),
            *self._due(first=True), *self._search.first_look(),
            ForEach([
                *self._aim_at_sample(),
                While("active", [
                    *self._due(), *self._choose(), *self._stages(), *self._decide(),
                    If("accept", self._commit()),
                    *self._search.fire(), *self._go_on(),
                ]),
                Sample(blocks.sample("t", self._signals)),
                Sample(Block(np.subtract, ("t", "sample time"), ("late",), wide=True)),
            ]),
            *self._final(),
        ]  # fmt: skip
        return Program(inputs, cells, body, ["sample time"])

    # Times ----------------------------------------------------------------------------------------

    def _next_times(self, start: Array, phase: Array, ticks: Sequence[Array]) -> list[Array]:
        found: list[Array] = []
        for update, k in zip(self._updates, ticks, strict=True):
            origin = phase if any(n in self._from_phase for n in update.names) else start
            found.append(origin + (update.offset + update.sample_time * k))
        return found

    def _due(self, first: bool = False) -> list[Statement]:
        """Return the updates that are due at the time of the run.

        Args:
            first: whether this is the start, where event functions have no value yet.
        """
        ticks = [f"tick {i}" for i in range(len(self._updates))]
        if not ticks:
            return []

        def due(t: Array, start: Array, phase: Array, *ticks: Array) -> tuple[Array, ...]:
            now = t + CLOSE * _EPS * (absolute(t) + absolute(start))
            times = self._next_times(start, phase, ticks)
            flags = [flag(negated(less(now, time))) for time in times]
            return (*flags, largest(flags))

        writes = [f"is due {i}" for i in range(len(ticks))]
        found: list[Statement] = [
            wide_run(due, ("t", "start", "phase start", *ticks), (*writes, "any"))
        ]
        for i, update in enumerate(self._updates):
            inner: list[Statement] = []
            if update.kind == "tick":
                inner += [
                    Random(self._drawn[name], "seed", "run", f"tick {i}", self._streams[name])
                    for name in update.names if name in self._drawn
                ]  # fmt: skip
            inner.append(self._blocks.update(update, "t", self._drawn))
            inner.append(wide_run(plus_one, (ticks[i],), (ticks[i],)))
            inner.append(wide_run(one, (), ("fresh",)))
            found.append(If(f"is due {i}", inner))
        if self._search.functions and not first:
            found.append(If("any", self._search.look_after_jump()))
        return found

    def _aim_at_sample(self) -> list[Statement]:
        def aim(time: Array, until: Array, *now: Array) -> tuple[Array, Array]:
            goal = smaller(time, until)
            return goal, _goes_on(goal, *now)

        reads = ("sample time", "until", *_PROGRESS)
        return [wide_run(aim, reads, ("goal", "active"))]

    def _go_on(self) -> list[Statement]:
        return [wide_run(_goes_on, ("goal", *_PROGRESS), ("active",))]

    # Steps ----------------------------------------------------------------------------------------

    def _choose(self) -> list[Statement]:
        """Return the choice of the length of a step."""
        ticks = [f"tick {i}" for i in range(len(self._updates))]
        control, breaks = self._control, self._breaks

        def target(t: Array, start: Array, phase: Array, goal: Array, *ticks: Array) -> Array:
            near = CLOSE * _EPS * (absolute(t) + absolute(start))
            found = goal
            jumps = [b.time + (phase if b.of_phase else 0.0 * t) for b in breaks]
            for time in [*self._next_times(start, phase, ticks), *jumps]:
                later = select(less(t + near, time), time, _NEVER)
                found = smaller(found, later)
            return select(less(goal - near, found), goal, found)

        def fixed(
            t: Array, start: Array, phase: Array, goal: Array, old: Array, first: Array,
            steps: Array, step: Array, length: Array, high: Array, cut: Array, *ticks: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            over = less(steps, step + 0.5)  # the segment is finished
            first = select(over, t, first)
            aim = select(over, target(t, start, phase, goal, *ticks), old)
            count = -floor(-((aim - first) / control.step - 1e-6))
            steps = select(over, larger(count, 1.0), steps)
            step = select(over, 0.0, step)
            last = less(steps, step + 1.5)
            end = select(last, aim, first + (aim - first) * ((step + 1.0) / steps))
            free = select(less(0.0, cut), smaller(cut, end - t), end - t)
            length = select(less(0.0, high), length, free)
            return aim, end, first, steps, step, length

        def adaptive(
            t: Array,
            start: Array,
            phase: Array,
            goal: Array,
            old: Array,
            h: Array,
            length: Array,
            high: Array,
            cut: Array,
            *ticks: Array,
        ) -> tuple[Array, ...]:
            aim = target(t, start, phase, goal, *ticks)
            wanted, left = smaller(h, control.max_step), aim - t
            last = negated(less(wanted * (1.0 + 1e-9), left))
            free = select(last, left, smaller(wanted, 0.5 * left))
            shorter = select(less(0.0, cut), smaller(cut, free), free)
            # an event is located within the step that found it, whatever the next one may be
            located = less(0.0, high)
            end = select(located, old, select(last, aim, t + free))
            return aim, end, select(located, length, shorter)

        if control.adaptive:
            given = ("t", "start", "phase start", "goal", "end", "h", "length", "high", "cut")
            reads = (*given, *ticks)
            return [wide_run(adaptive, reads, ("target", "end", "length"))]
        kept = ("segment start", "segment steps", "segment step")
        reads = (
            "t",
            "start",
            "phase start",
            "goal",
            "target",
            *kept,
            "length",
            "high",
            "cut",
            *ticks,
        )
        return [wide_run(fixed, reads, ("target", "end", *kept, "length"))]

    def _stages(self) -> list[Statement]:
        """Return the stages, the candidate state at the end of the step, and its error."""
        tableau, blocks, robot = self._control.tableau, self._blocks, self._robot
        count, nv, rates = len(tableau.b), robot.nv, self._rates
        width = count + 1
        weights = np.zeros((width, count))
        weights[:count], weights[count] = tableau.a, tableau.b
        c = np.array([*tableau.c, 1.0])
        inward = blocks.nudge * np.where(c == 0.0, 1.0, np.where(c == 1.0, -1.0, 0.0))
        rows = np.concatenate([c[:, None], inward[:, None], np.eye(width)], axis=1)

        def begin(fresh: Array, row: Array) -> tuple[Array, ...]:
            chosen = [row[2 + i : 3 + i] for i in range(width)]
            return (select(less(0.5, chosen[0]), fresh, 1.0), *chosen)

        def change_of(i: int) -> Run:
            used = np.flatnonzero(weights[i])

            def change(length: Array, *K: Array) -> Array:
                return length * _weighted(weights[i][used], K) if K else np.zeros(self._ny)

            return Run(Block(change, ("length", *(rates[k] for k in used)), ("change",)))

        def place(q: Array, v: Array, x: Array, dy: Array) -> tuple[Array, ...]:
            us, vs, xs = dy[:nv], v + dy[nv : 2 * nv], x + dy[2 * nv :]
            return integrate(robot, q, us), us, vs, xs

        flags = [f"at {i}" for i in range(width)]
        stage: list[Statement] = [
            *([blocks.stage_times("t", "length", "row", 0)] if blocks.timed else []),
            wide_run(begin, ("fresh", "row"), ("use", *flags)),
            *(If(flag, [change_of(i)]) for i, flag in enumerate(flags)),
            Run(Block(place, ("q", "v", "x", "change"), ("qs", "us", "vs", "xs"))),
            *blocks.held_stage(),
            # the first stage is the last one of the step before, unless something has changed
            If("use", [
                *blocks.evaluate(),
                *(If(flag, [Run(Block(unchanged, ("k",), (rates[i],)))])
                  for i, flag in enumerate(flags)),
            ]),
        ]  # fmt: skip

        def candidate(
            q: Array, v: Array, x: Array, rest_q: Array, rest_v: Array, rest_x: Array, change: Array
        ) -> tuple[Array, ...]:
            du, dv, dx = change[:nv], change[nv : 2 * nv], change[2 * nv :]
            q1, rest_q1 = total_and_rest(q, increment(robot, q, du) + rest_q)
            v1, rest_v1 = total_and_rest(v, dv + rest_v)
            x1, rest_x1 = total_and_rest(x, dx + rest_x)
            return q1, v1, x1, rest_q1, rest_v1, rest_x1

        names = ("q", "v", "x", "rest q", "rest v", "rest x")
        ends_of = [f"{name} end" for name in names]
        found: list[Statement] = [
            For(rows, stage),
            wide_run(_zero, (), ("fresh",)),
            Run(Block(candidate, (*names, "change"), ends_of)),
        ]
        if self._control.adaptive:
            reads = ("q", "v", "x", "length", *self._rates)
            found.append(Run(Block(self._error, reads, ("error",))))
        else:
            found.append(Run(Block(_finite_sum, ("q end", "v end", "x end"), ("error",))))
        return found

    def _error(self, q: Array, v: Array, x: Array, h: Array, *K: Array) -> Array:
        """Return the error norm in units of the tolerance, as in single runs."""
        rtol, atol = self._control.rtol, self._control.atol
        size = concatenate([coordinate_magnitudes(self._robot, q), v, x])
        scale = rtol * absolute(size) + atol
        norms: list[Array] = []
        for weights in self._control.tableau.errors:
            ratio = h * _weighted(weights, K) / scale
            norms.append(sqrt(vector.dot(ratio, ratio) / (self._ny + WORKS)))
        if len(norms) == 1:
            return norms[0]
        fifth, third = norms
        below = sqrt(fifth * fifth + 0.01 * third * third)
        return fifth * fifth / select(less(0.0, below), below, 1.0)

    # Decisions ------------------------------------------------------------------------------------

    def _decide(self) -> list[Statement]:
        """Return the decision whether a step is accepted, and what is tried next."""
        control, count = self._control, self._search.functions
        root = control.tableau.error_order + 1

        def sized(
            error: Array, length: Array, h: Array, refused: Array, high: Array
        ) -> tuple[Array, ...]:
            """Step size control; within the location of an event every finite step is fine."""
            finite = less(error, 1e300)
            good = select(less(0.0, high), flag(finite), flag(negated(less(1.0, error))))
            good = good * flag(finite)
            # beyond these bounds the change of the step size is limited anyway
            least, most = (0.5 * SAFETY / GROW) ** root, (2.0 * SAFETY / SHRINK) ** root
            ratio = SAFETY / _root(larger(smaller(error, most), least), root)
            ratio = select(finite, ratio, SHRINK)
            shrunk = length * larger(SHRINK, smaller(ratio, 1.0))
            limit = select(less(0.5, refused), 1.0, GROW)
            grown = length * smaller(limit, larger(SHRINK, ratio))
            after = select(less(length, h * (1.0 - 1e-9)), larger(h, grown), grown)
            fine = less(0.5, good)
            h1 = select(less(0.0, high), h, select(fine, after, shrunk))
            return good, h1, select(fine, 0.0, 1.0)

        def checked(error: Array) -> Array:
            return flag(less(error, 1e300))

        found: list[Statement] = []
        if control.adaptive:
            reads = ("error", "length", "h", "refused", "high")
            found.append(wide_run(sized, reads, ("accept", "h", "refused")))
        else:
            found.append(wide_run(checked, ("error",), ("accept",)))

        def ends(
            accept: Array, tried: Array, t: Array, h: Array, length: Array, status: Array
        ) -> tuple[Array, Array]:
            tried = tried + 1.0
            many = less(float(control.max_steps), tried)
            # the next step would not change the time
            short = less(h, 4.0 * _EPS * absolute(t)) if control.adaptive else less(1.0, 0.0)
            failed = flag(many) if control.adaptive else flag(less(accept, 0.5))
            code = float(TOO_SHORT if control.adaptive else NOT_FINITE)
            bad = less(0.5, failed + flag(short) * flag(less(accept, 0.5)))
            return tried, select(bad, code, status)

        reads = ("accept", "tried", "t", "h", "length", "status")
        found.append(wide_run(ends, reads, ("tried", "status")))
        inner = self._satisfied()
        if count:
            inner += [*self._search.inside(), *self._search.look_at_end()]
        if inner:
            found.append(If("accept", inner))
        if count:
            found += [*self._search.bracket(), *self._search.progress()]
        return found

    def _satisfied(self) -> list[Statement]:
        """Return the statements that put the end of a step onto the constraints.

        Events are looked at there: a step that is shortened to an event ends there, too.
        """
        if not self._equations.constrained:
            return []
        reached = wide_run(np.add, ("t", "length"), ("reached",))
        placed = self._blocks.place_held("reached", " end")
        return [*([reached] if placed else []), *placed, *self._blocks.project(" end")]

    def _commit(self) -> list[Statement]:
        """Return the statements that make the end of the step the state of the run."""
        names = ("q", "v", "x", "rest q", "rest v", "rest x")
        ends = [f"{name} end" for name in names]
        nv = self._robot.nv
        # the rate at the end of the last stage is not that of the state: it was changed
        changed = bool(self._equations.held) or self._equations.constrained

        def time(
            t: Array, end: Array, length: Array, step: Array, target: Array
        ) -> tuple[Array, ...]:
            full = negated(less(length, (end - t) * (1.0 - 1e-15)))
            reached = select(full, end, t + length)
            # loads may jump at the target
            fresh = np.ones(1) if changed else flag(negated(less(reached, target)))
            return reached, select(full, step + 1.0, step), fresh

        def rate(v: Array, k: Array) -> Array:
            return concatenate([v, k[nv:]])

        reads = ("t", "end", "length", "segment step", "target")
        found: list[Statement] = [
            Run(Block(rate, ("v end", self._rates[-1]), (RATE,))),
            Run(Block(unchanged, ends, names)),
            wide_run(time, reads, ("t", "segment step", "fresh")),
            *self._blocks.place_held("t"),
        ]
        if self._search.functions:
            found.append(wide_run(unchanged, ("g end",), ("g",)))
        return found

    def _final(self) -> list[Statement]:
        wide = ["t", "status", "events", *CONTROLLED]
        wide += [FIRST] if self._events else []
        last = Sample(Block(unchanged, (RATE,), (f"final {RATE}",)))
        end = Sample(self._blocks.sample("t", self._signals, AT_END))
        return [*final_samples(self._blocks, len(self._updates), wide), last, end]


#: What decides whether a run goes on to its goal.
_PROGRESS = ("t", "status", "tried", "budget")


def _goes_on(goal: Array, t: Array, status: Array, tried: Array, budget: Array) -> Array:
    """Return whether a run makes another step in this call."""
    return flag(less(t, goal)) * flag(less(status, 0.5)) * flag(less(tried, budget))


def _root(x: Array, n: int) -> Array:
    """Return the n-th root of numbers of about one, by square roots and Newton's method."""
    if n % 2 == 0:
        return _root(sqrt(x), n // 2)
    y = x if n == 1 else sqrt(sqrt(x))
    for _ in range(0 if n == 1 else 16):
        y = y + (x / y ** (n - 1) - y) / n
    return y


def _zero() -> Array:
    return np.zeros(1)


def _weighted(weights: Array, K: Sequence[Array]) -> Array:
    """Return Σ wᵢ Kᵢ over as many rates as there are weights."""
    total = weights[:1] * K[0]
    for i in range(1, len(weights)):
        total = total + weights[i : i + 1] * K[i]
    return total


def _finite_sum(*arrays: Array) -> Array:
    """Return the sum of all absolute values: finite if these are."""
    return np.sum(absolute(concatenate(list(arrays))), keepdims=True)
