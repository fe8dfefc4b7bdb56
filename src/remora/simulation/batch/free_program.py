"""Program of a batch in which each run has its own steps: adaptive step sizes and events.

    for each sample time:
        while the run has not reached it:
            scheduled updates that are due
            choose the step; stages; candidate state at its end; error; event functions there
            accept the step, or try again with another length
            if an event occurred: record it, reset states, or end the run
        record the sample

An event is located by repeated steps from the same state. Of two lengths, after the shorter the
event has not occurred and after the longer it has; they are brought together by the Illinois method
until they differ by a few units in the last place of the time. The step of the longer length is
then accepted, so that the state at the event has the accuracy of any other step.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import hermite
from remora.algebra.array_ops import (
    Array,
    absolute,
    asarray,
    casadi,
    concatenate,
    less,
    select,
    sqrt,
    stack,
    total_and_rest,
)
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    If,
    Random,
    Record,
    Run,
    Sample,
    Statement,
    While,
)
from remora.codegen.ir.graph import Signature
from remora.dynamics.forces.stops import stop_overlaps, stop_rates
from remora.dynamics.state_layout import WORKS
from remora.model.state import increment, integrate
from remora.simulation.batch.lockstep_program import final_samples
from remora.simulation.batch.run_blocks import RunBlocks, numbers_of_noise
from remora.simulation.integrators.error_scale import coordinate_magnitudes
from remora.simulation.integrators.step_control import GROW, SAFETY, SHRINK
from remora.simulation.integrators.tableaus import Tableau

#: Status of a run.
RUNNING, STOPPED, NEXT, NOT_FINITE, TOO_SHORT, CHATTERING = range(6)
#: Times closer than this many units in the last place are the same.
CLOSE = 8.0
#: An event is located to this many units in the last place of the time.
LOCATED = 4.0
#: Nodes of a step, as fractions of it, between which event functions are taken to be cubics.
NODES = (0.0, 0.5, 1.0)
#: Events of a run within `CHATTER_TIME` seconds after which it ends as chattering.
MOST_EVENTS, CHATTER_TIME = 1000.0, 1e-6
_EPS = float(np.finfo(float).eps)
_NEVER = 1e300


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
    breaks: Sequence[float] = (),
    from_phase: Collection[str] = (),
) -> Program:
    """Return the program.

    Inputs: q, v, x, z, their compensation terms, `tick 0`, ... of the updates, `t`, `start` of the
    run, `phase start`, `until`, `status`, the data of the equations; `anchor` with held joints,
    `seed` and `run` with noise. Table: `sample time`.

    Args:
        blocks: the blocks of a run.
        control: how steps are chosen.
        signals: names of the signals that are recorded.
        breaks: times at which loads are not smooth, on the clock of the loads, s.
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
        breaks: Sequence[float],
        from_phase: Collection[str],
    ) -> None:
        self._from_phase = from_phase
        self._blocks, self._control, self._signals = blocks, control, signals
        self._breaks = sorted({float(b) for b in breaks})
        self._equations = blocks.equations
        self._system, self._robot = blocks.equations.system, blocks.equations.robot
        self._updates, self._events = self._system.schedule, self._system.events
        self._names = self._equations.data_names
        self._stops = self._equations.stops
        #: Number of event functions: those of components, then those of stops.
        self._functions = len(self._events) + self._stops
        self._ny = 2 * self._robot.nv + self._system.nx
        self._streams = blocks.streams()
        self._drawn = {name: f"noise of {name}" for name in self._streams}

    def program(self) -> Program:
        """Return the program."""
        blocks, equations, count = self._blocks, self._equations, self._functions
        wide = ["t", "start", "phase start", "until", "status"]
        inputs: list[Signature] = [*blocks.state, *blocks.rests, *equations.data]
        inputs += [Cell(f"tick {i}", (1,), wide=True) for i in range(len(self._updates))]
        inputs += [Cell(name, (1,), wide=True) for name in wide]
        stages = len(self._control.tableau.b) + 1
        cells = [*blocks.state, *blocks.rests, *blocks.cells]
        cells += [Signature(f"{s.name} end", s.shape) for s in (*blocks.state[:3], *blocks.rests)]
        cells += [Signature("K", (stages, self._ny)), Signature("error", (1,))]
        numbers = (
            *wide, "goal", "target", "end", "h", "length", "landing", "refused", "tried", "accept",
            "active", "segment start", "segment steps", "segment step", "low", "high",
            "side", "final", "search", "cut", "reached", "events", "recent", "recent time", "any", "logged",
        )  # fmt: skip
        cells += [Cell(name, (1,), wide=True) for name in numbers]
        cells += [Cell(f"{n} {i}", (1,), wide=True)
                  for n in ("tick", "is due") for i in range(len(self._updates))]  # fmt: skip
        cells += [Cell(f"fired {i}", (1,), wide=True) for i in range(count)]
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
            self._run(lambda: np.full(1, self._control.step), (), ("h",)),
            *self._first_contact(), *self._due(), *self._look("t", "", "g"),
            ForEach([
                *self._aim_at_sample(),
                While("active", [
                    *self._due(), *self._choose(), *self._stages(), *self._decide(),
                    If("accept", self._commit()),
                    *self._fire(), *self._go_on(),
                ]),
                Sample(blocks.sample("t", self._signals)),
                Sample(Block(lambda t, time: t - time, ("t", "sample time"), ("late",), wide=True)),
            ]),
            *self._final(),
        ]  # fmt: skip
        return Program(inputs, cells, body, ["sample time"])

    @staticmethod
    def _run(function: object, reads: Sequence[str], writes: Sequence[str]) -> Run:
        return Run(Block(function, reads, writes, wide=True))  # pyright: ignore

    # Times ----------------------------------------------------------------------------------------

    def _next_times(self, start: Array, phase: Array, ticks: Sequence[Array]) -> list[Array]:
        found: list[Array] = []
        for update, k in zip(self._updates, ticks, strict=True):
            origin = phase if any(n in self._from_phase for n in update.names) else start
            found.append(origin + (update.offset + update.sample_time * k))
        return found

    def _due(self) -> list[Statement]:
        """Return the updates that are due at the time of the run."""
        ticks = [f"tick {i}" for i in range(len(self._updates))]
        if not ticks:
            return []

        def due(t: Array, start: Array, phase: Array, *ticks: Array) -> tuple[Array, ...]:
            now = t + CLOSE * _EPS * (absolute(t) + absolute(start))
            times = self._next_times(start, phase, ticks)
            flags = [_flag(_not(less(now, time))) for time in times]
            return (*flags, _largest(flags))

        writes = [f"is due {i}" for i in range(len(ticks))]
        found: list[Statement] = [
            self._run(due, ("t", "start", "phase start", *ticks), (*writes, "any"))
        ]
        for i, update in enumerate(self._updates):
            inner: list[Statement] = []
            if update.kind == "tick":
                inner += [
                    Random(self._drawn[name], "seed", "run", f"tick {i}", self._streams[name])
                    for name in update.names if name in self._drawn
                ]  # fmt: skip
            inner.append(self._blocks.update(update, "t", self._drawn))
            inner.append(self._run(lambda k: k + 1.0, (ticks[i],), (ticks[i],)))
            found.append(If(f"is due {i}", inner))
        if self._functions:  # event functions may jump with z; that is no zero crossing
            found.append(If("any", self._look("t", "", "g")))
        return found

    def _aim_at_sample(self) -> list[Statement]:
        def aim(t: Array, until: Array, status: Array, time: Array) -> tuple[Array, Array]:
            goal = _smaller(time, until)
            return goal, _flag(less(t, goal)) * _flag(less(status, 0.5))

        return [self._run(aim, ("t", "until", "status", "sample time"), ("goal", "active"))]

    def _go_on(self) -> list[Statement]:
        def on(t: Array, goal: Array, status: Array) -> Array:
            return _flag(less(t, goal)) * _flag(less(status, 0.5))

        return [self._run(on, ("t", "goal", "status"), ("active",))]

    # Steps ----------------------------------------------------------------------------------------

    def _choose(self) -> list[Statement]:
        """Return the choice of the length of a step."""
        ticks = [f"tick {i}" for i in range(len(self._updates))]
        control, breaks = self._control, self._breaks

        own_clock = self._equations.own_clock

        def target(t: Array, start: Array, phase: Array, goal: Array, *ticks: Array) -> Array:
            near = CLOSE * _EPS * (absolute(t) + absolute(start))
            found = goal
            jumps = [phase + b if own_clock else b + 0.0 * t for b in breaks]
            for time in [*self._next_times(start, phase, ticks), *jumps]:
                later = select(less(t + near, time), time, _NEVER)
                found = _smaller(found, later)
            return select(less(goal - near, found), goal, found)

        def fixed(
            t: Array, start: Array, phase: Array, goal: Array, old: Array, first: Array,
            steps: Array, step: Array, length: Array, high: Array, cut: Array, *ticks: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            over = less(steps, step + 0.5)  # the segment is finished
            first = select(over, t, first)
            aim = select(over, target(t, start, phase, goal, *ticks), old)
            count = -_floor(-((aim - first) / control.step - 1e-6))
            steps = select(over, _larger(count, 1.0), steps)
            step = select(over, 0.0, step)
            last = less(steps, step + 1.5)
            end = select(last, aim, first + (aim - first) * ((step + 1.0) / steps))
            free = select(less(0.0, cut), _smaller(cut, end - t), end - t)
            length = select(less(0.0, high), length, free)
            return aim, end, first, steps, step, length

        def adaptive(
            t: Array,
            start: Array,
            phase: Array,
            goal: Array,
            h: Array,
            length: Array,
            high: Array,
            cut: Array,
            *ticks: Array,
        ) -> tuple[Array, ...]:
            aim = target(t, start, phase, goal, *ticks)
            wanted, left = _smaller(h, control.max_step), aim - t
            last = _not(less(wanted * (1.0 + 1e-9), left))
            free = select(last, left, _smaller(wanted, 0.5 * left))
            shorter = select(less(0.0, cut), _smaller(cut, free), free)
            length = select(less(0.0, high), length, shorter)
            return aim, select(last, aim, t + free), length

        if control.adaptive:
            reads = ("t", "start", "phase start", "goal", "h", "length", "high", "cut", *ticks)
            return [self._run(adaptive, reads, ("target", "end", "length"))]
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
        return [self._run(fixed, reads, ("target", "end", *kept, "length"))]

    def _stages(self) -> list[Statement]:
        """Return the stages, the candidate state at the end of the step, and its error."""
        tableau, blocks, robot = self._control.tableau, self._blocks, self._robot
        count, nv = len(tableau.b), robot.nv
        width = count + 1
        rows = np.zeros((width, 2 * width + 2))
        rows[:count, :count], rows[count, :count] = tableau.a, tableau.b
        rows[:, width] = [*tableau.c, 1.0]
        ends = [1.0 if c == 0.0 else -1.0 if c == 1.0 else 0.0 for c in rows[:, width]]
        rows[:, width + 1] = blocks.nudge * np.array(ends)
        rows[:, width + 2 :] = np.eye(width)

        def prepare(
            q: Array, v: Array, x: Array, K: Array, h: Array, row: Array
        ) -> tuple[Array, ...]:
            dy = h * _weighted(row[:count], K)
            us, vs, xs = dy[:nv], v + dy[nv : 2 * nv], x + dy[2 * nv :]
            return dy, integrate(robot, q, us), us, vs, xs

        def store(K: Array, k: Array, row: Array) -> Array:
            chosen = row[width + 2 :]
            return stack(
                [select(less(0.5, chosen[i : i + 1]), k, K[i]) for i in range(width)], axis=0
            )

        stage: list[Statement] = [
            blocks.stage_times("t", "length", "row", width),
            Run(Block(prepare, ("q", "v", "x", "K", "length", "row"),
                      ("change", "qs", "us", "vs", "xs"))),
            *blocks.held_stage(), *blocks.evaluate(),
            Run(Block(store, ("K", "k", "row"), ("K",))),
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
            Run(Block(candidate, (*names, "change"), ends_of)),
        ]
        if self._control.adaptive:
            found.append(Run(Block(self._error, ("q", "v", "x", "K", "length"), ("error",))))
        else:
            found.append(Run(Block(_finite_sum, ("q end", "v end", "x end"), ("error",))))
        return found

    def _error(self, q: Array, v: Array, x: Array, K: Array, h: Array) -> Array:
        """Return the error norm in units of the tolerance, as in single runs."""
        rtol, atol = self._control.rtol, self._control.atol
        size = concatenate([coordinate_magnitudes(self._robot, q), v, x])
        scale = rtol * absolute(size) + atol
        norms = [
            sqrt(
                np.sum((h * _weighted(weights, K) / scale) ** 2, keepdims=True) / (self._ny + WORKS)
            )
            for weights in self._control.tableau.errors
        ]
        if len(norms) == 1:
            return norms[0]
        fifth, third = norms
        below = sqrt(fifth * fifth + 0.01 * third * third)
        return fifth * fifth / select(less(0.0, below), below, 1.0)

    # Decisions ------------------------------------------------------------------------------------

    def _decide(self) -> list[Statement]:
        """Return the decision whether a step is accepted, and what is tried next."""
        control, count = self._control, self._functions
        root = control.tableau.error_order + 1

        def sized(
            error: Array, length: Array, h: Array, refused: Array, high: Array
        ) -> tuple[Array, ...]:
            """Step size control; within the location of an event every finite step is fine."""
            finite = less(error, 1e300)
            good = select(less(0.0, high), _flag(finite), _flag(_not(less(1.0, error))))
            good = good * _flag(finite)
            # beyond these bounds the change of the step size is limited anyway
            least, most = (0.5 * SAFETY / GROW) ** root, (2.0 * SAFETY / SHRINK) ** root
            ratio = SAFETY / _root(_larger(_smaller(error, most), least), root)
            ratio = select(finite, ratio, SHRINK)
            smaller = length * _larger(SHRINK, _smaller(ratio, 1.0))
            limit = select(less(0.5, refused), 1.0, GROW)
            grown = length * _smaller(limit, _larger(SHRINK, ratio))
            after = select(less(length, h * (1.0 - 1e-9)), _larger(h, grown), grown)
            fine = less(0.5, good)
            h1 = select(less(0.0, high), h, select(fine, after, smaller))
            return good, h1, select(fine, 0.0, 1.0)

        def checked(error: Array) -> Array:
            return _flag(less(error, 1e300))

        found: list[Statement] = []
        if control.adaptive:
            reads = ("error", "length", "h", "refused", "high")
            found.append(self._run(sized, reads, ("accept", "h", "refused")))
        else:
            found.append(self._run(checked, ("error",), ("accept",)))

        def ends(
            accept: Array, tried: Array, t: Array, h: Array, length: Array, status: Array
        ) -> tuple[Array, Array]:
            tried = tried + 1.0
            many = less(float(control.max_steps), tried)
            # the next step would not change the time
            short = less(h, 4.0 * _EPS * absolute(t)) if control.adaptive else less(1.0, 0.0)
            failed = _flag(many) if control.adaptive else _flag(less(accept, 0.5))
            code = float(TOO_SHORT if control.adaptive else NOT_FINITE)
            bad = less(0.5, failed + _flag(short) * _flag(less(accept, 0.5)))
            return tried, select(bad, code, status)

        reads = ("accept", "tried", "t", "h", "length", "status")
        found.append(self._run(ends, reads, ("tried", "status")))
        if count:
            found += [If("accept", [*self._inside(), *self._look_at_end()]), *self._bracket()]
        return found

    # Events ---------------------------------------------------------------------------------------

    def _look(self, t: str, suffix: str, to: str) -> list[Statement]:
        """Return the evaluation of the event functions."""
        if not self._functions:
            return []

        def look(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            return self._values(t, q, v, x, z, rest)

        state = tuple(f"{name}{suffix}" for name in ("q", "v", "x"))
        return [self._run(look, (t, *state, "z", *self._touched, *self._names), (to,))]

    @property
    def _touched(self) -> tuple[str, ...]:
        return ("contact",) if self._stops else ()

    def _values(
        self, t: Array, q: Array, v: Array, x: Array, z: Array, rest: Sequence[Array]
    ) -> Array:
        """Return the event functions; those of stops fall below zero where contact changes."""
        data = rest[len(self._touched) :]
        found = self._equations.instant(t, q, v, x, z, data).crossings()
        if not self._stops:
            return found
        room = (2.0 * rest[0] - 1.0) * stop_overlaps(self._robot, q)
        return concatenate([found, room]) if self._events else room

    def _first_contact(self) -> list[Statement]:
        """Return which stops are in contact at the start."""
        if not self._stops:
            return []

        def contact(q: Array, v: Array) -> Array:
            over, rate = stop_overlaps(self._robot, q), stop_rates(self._robot, v)
            into = _flag(less(0.0, rate))
            return select(less(0.0, over), 1.0, select(less(over, 0.0), 0.0, into))

        return [Run(Block(contact, ("q", "v"), ("contact",)))]

    def _look_at_end(self) -> list[Statement]:
        when = self._run(lambda t, length: t + length, ("t", "length"), ("reached",))
        return [when, *self._look("reached", " end", "g end")]

    def _inside(self) -> list[Statement]:
        """Return event functions and their slopes at the nodes of a step, by Hermite interpolation.

        Slopes are derivatives with respect to the fraction of the step.
        """
        nv, robot = self._robot.nv, self._robot

        def inside(
            t: Array, length: Array, q: Array, v: Array, x: Array, z: Array, change: Array,
            K: Array, *rest: Array,
        ) -> tuple[Array, Array]:  # fmt: skip
            symbol = casadi.SX.sym("theta")
            theta = asarray(symbol).reshape((1,))
            y = hermite.value(theta, change, length * K[0], length * K[-1])
            there = integrate(robot, q, y[:nv]), v + y[nv : 2 * nv], x + y[2 * nv :]
            g = casadi.vertcat(*self._values(t + theta * length, *there, z, rest).tolist())
            slope = casadi.jacobian(g, symbol)

            def at(expression: Any, place: float) -> Array:
                there = casadi.densify(casadi.substitute(expression, symbol, place))
                return asarray(there).reshape((-1,))

            values, slopes = (stack([at(e, p) for p in NODES], axis=0) for e in (g, slope))
            return values, slopes

        reads = ("t", "length", "q", "v", "x", "z", "change", "K", *self._touched, *self._names)
        return [self._run(inside, reads, ("g inside", "slopes"))]

    def _bracket(self) -> list[Statement]:
        """Return the location of events; sets `accept` to whether the step is final."""
        crossed = self._crossed
        finest = float(np.finfo(self._blocks.dtype).eps) if self._blocks.dtype == "float32" else 0.0

        def locate(
            accept: Array, t: Array, length: Array, low: Array, high: Array, side: Array,
            final: Array, search_count: Array, g: Array, g_end: Array, g_inside: Array, slopes: Array, g_low: Array,
            g_high: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            close = LOCATED * _EPS * (absolute(t) + length) + finest * length
            hit = crossed(g, g_end)
            any_hit, inside = _largest(_each(hit)), less(0.0, high)
            # crossings within the step that its ends do not show: a shorter step makes them visible
            part = self._hidden(g, g_inside, slopes, g_end)
            bulge = (1.0 - any_hit) * _flag(less(part, 1.0)) * _flag(less(64.0 * close, length))
            bulge = select(inside, 0.0, bulge)
            searching = select(less(0.5, any_hit), 1.0, select(inside, 1.0, 0.0))
            # the bracket
            first = _flag(_not(inside)) * any_hit
            low = select(less(0.5, first), 0.0, low)
            g_low = select(less(0.5, first), g, g_low)
            is_hit = less(0.5, any_hit)
            same = select(is_hit, less(0.5, side), less(side, -0.5))
            new_low, new_high = select(is_hit, low, length), select(is_hit, length, high)
            new_g_low = select(is_hit, select(same, 0.5 * g_low, g_low), g_end)
            new_g_high = select(is_hit, g_end, select(same, 0.5 * g_high, g_high))
            new_side = select(is_hit, 1.0, -1.0)
            width = new_high - new_low
            done = _not(less(close, width))
            # the earliest zero of the secants
            where = crossed(g_low, new_g_high) + crossed(new_g_low, new_g_high)
            slope = new_g_low - new_g_high
            zeros = new_g_low / select(less(0.0, absolute(slope)), slope, 1.0)
            zeros = select(less(0.5, where), zeros, 2.0)
            theta = _larger(_smaller(_smallest(_each(zeros)), 1.0), 0.0)
            # every third time the middle, which also gets over plateaus
            third = less(search_count - 3.0 * _floor(search_count / 3.0), 1.5)
            guess = new_low + select(third, theta, 0.5) * width
            guess = _larger(_smaller(guess, new_high - 0.5 * close), new_low + 0.5 * close)
            again = select(done, new_high, guess)
            # outcome
            search = less(0.5, searching)
            finished = select(done, _flag(is_hit), 0.0)
            finished = select(less(0.5, final), 1.0, finished)
            take = accept * select(search, finished, 1.0 - bulge)
            fired = hit * take * accept
            keep = accept * select(search, 1.0 - finished, 0.0)  # another try in the bracket
            going = less(0.5, keep)
            cut = select(less(0.5, bulge * accept), part * length, 0.0)
            return (
                take, select(going, again, length), select(going, new_low, 0.0),
                select(going, new_high, 0.0),
                select(going, new_side, 0.0), select(going, _flag(done), 0.0),
                select(going, search_count + 1.0, 0.0), cut,
                new_g_low, new_g_high, fired, *_each(fired),
            )  # fmt: skip

        kept = ("low", "high", "side", "final", "search")
        each = [f"fired {i}" for i in range(self._functions)]
        reads = (
            "accept",
            "t",
            "length",
            *kept,
            "g",
            "g end",
            "g inside",
            "slopes",
            "g low",
            "g high",
        )
        writes = ("accept", "length", *kept, "cut", "g low", "g high", "fired", *each)
        return [self._run(locate, reads, writes)]

    def _crossed(self, before: Array, after: Array) -> Array:
        """Return 1 for each event function that crossed zero, 0 otherwise.

        A function of a component that is zero at first crosses when it reaches zero again; one of a
        stop, when it becomes negative.
        """
        count = len(self._events)
        directions = np.array([float(e.crossing.direction) for e in self._events])
        parts: list[Array] = []
        if count:
            b, a = before[:count], after[:count]
            up = _flag(less(b, 0.0)) * _flag(_not(less(a, 0.0))) * (directions >= 0.0)
            down = _flag(less(0.0, b)) * _flag(_not(less(0.0, a))) * (directions <= 0.0)
            parts.append(up + down)
        if self._stops:
            b, a = before[count:], after[count:]
            parts.append(_flag(_not(less(b, 0.0))) * _flag(less(a, 0.0)))
        return concatenate(parts)

    def _hidden(self, g: Array, values: Array, slopes: Array, g_end: Array) -> Array:
        """Return the fraction of the step after which a crossing shows that the ends do not show.

        Between nodes, event functions are taken to be cubics; their extrema are the points where
        they may have changed sign.

        Args:
            g: event functions at the start, `(ne,)`.
            values: at the nodes, `(n, ne)`.
            slopes: at the nodes.
            g_end: at the end of the step.

        Returns:
            `(1,)`; 2 if there is none.
        """
        seen, places = [g], [np.zeros(self._functions)]
        for i in range(len(NODES) - 1):
            width = NODES[i + 1] - NODES[i]
            f0, f1 = (g if i == 0 else values[i]), values[i + 1]
            if i == len(NODES) - 2:
                f1 = g_end
            for x, value in _extrema(f0, width * slopes[i], f1, width * slopes[i + 1]):
                seen.append(value)
                places.append(NODES[i] + width * x)
            seen.append(f1)
            places.append(np.full(self._functions, NODES[i + 1]))
        found = np.full(self._functions, 2.0)
        for i in reversed(range(len(seen) - 1)):
            there = select(less(1e-12, places[i]), places[i], places[i + 1])
            found = select(less(0.5, self._crossed(seen[i], seen[i + 1])), there, found)
        return _smallest(_each(found))

    def _commit(self) -> list[Statement]:
        """Return the statements that make the end of the step the state of the run."""
        names = ("q", "v", "x", "rest q", "rest v", "rest x")
        ends = [f"{name} end" for name in names]
        control = self._control

        def time(t: Array, end: Array, length: Array, step: Array) -> tuple[Array, Array]:
            full = _not(less(length, (end - t) * (1.0 - 1e-15)))
            return select(full, end, t + length), select(full, step + 1.0, step)

        found: list[Statement] = [
            Run(Block(lambda *ends: ends, ends, names)),
            self._run(time, ("t", "end", "length", "segment step"), ("t", "segment step")),
            *self._blocks.place_held("t"),
        ]
        if self._functions:
            found.append(self._run(lambda g: g, ("g end",), ("g",)))
        if not control.adaptive:
            return found
        return found

    def _fire(self) -> list[Statement]:
        """Return the statements for events that occurred at the end of the step."""
        if not self._functions:
            return []
        count = len(self._events)
        stops = np.array([e.crossing.action == "stop" for e in self._events], dtype=float)
        nexts = np.array([e.crossing.action == "next" for e in self._events], dtype=float)

        def status(
            fired: Array, t: Array, old: Array, recent: Array, since: Array
        ) -> tuple[Array, ...]:
            own = fired[:count]
            some = _largest(_each(own))
            hit = less(0.5, some)
            near = less(t - since, CHATTER_TIME)
            recent = select(hit, select(near, recent + 1.0, 1.0), recent)
            since = select(hit, select(near, since, t), since)
            code = select(less(0.5, _largest(_each(own * nexts))), float(NEXT), old)
            code = select(less(0.5, _largest(_each(own * stops))), float(STOPPED), code)
            code = select(less(MOST_EVENTS, recent), float(CHATTERING), code)
            return some, code, recent, since

        def log(t: Array, fired: Array) -> tuple[Array, Array]:
            return t, fired[:count]

        found: list[Statement] = [
            self._run(lambda fired: _largest(_each(fired)), ("fired",), ("any",))
        ]
        inner: list[Statement] = []
        if self._events:
            reads = ("fired", "t", "status", "recent", "recent time")
            inner += [
                self._run(status, reads, ("logged", "status", "recent", "recent time")),
                If("logged", [
                    Record(Block(log, ("t", "fired"), ("event t", "event fired"), wide=True),
                           "events", "events"),
                    self._run(lambda n: n + 1.0, ("events",), ("events",)),
                ]),
            ]  # fmt: skip
        for i, event in enumerate(self._events):
            if event.crossing.action == "reset":
                inner.append(If(f"fired {i}", [self._reset(i)]))
        if self._stops:

            def flip(contact: Array, fired: Array) -> Array:
                return contact + fired[count:] * (1.0 - 2.0 * contact)

            inner.append(Run(Block(flip, ("contact", "fired"), ("contact",))))
        each = [f"fired {i}" for i in range(self._functions)]
        inner += [
            *self._look("t", "", "g"),
            self._run(lambda f: (0.0 * f, *_each(0.0 * f)), ("fired",), ("fired", *each)),
        ]
        return [*found, If("any", inner)]

    def _reset(self, i: int) -> Run:
        event = self._events[i]

        def reset(
            t: Array, q: Array, v: Array, x: Array, z: Array, *data: Array
        ) -> tuple[Array, ...]:
            now = self._equations.instant(t, q, v, x, z, data)
            parts = now.reset(event.component, event.name)
            return (*parts, 0.0 * q, 0.0 * v, 0.0 * x)

        state = ("q", "v", "x", "z")
        writes = (*state, "rest q", "rest v", "rest x")
        return Run(Block(reset, ("t", *state, *self._names), writes))

    def _final(self) -> list[Statement]:
        wide = ("t", "status", "tried", "events", "h")
        return final_samples(self._blocks, len(self._updates), wide)


def _extrema(f0: Array, s0: Array, f1: Array, s1: Array) -> list[tuple[Array, Array]]:
    """Return places and values of the extrema of cubics on [0, 1], in order.

    The cubic p has p(0) = f0, p'(0) = s0, p(1) = f1, p'(1) = s1. Where it has no extremum inside,
    the place is 0 and the value f0.
    """
    c2, c3 = 3.0 * (f1 - f0) - 2.0 * s0 - s1, 2.0 * (f0 - f1) + s0 + s1
    discriminant = c2 * c2 - 3.0 * c3 * s0
    root = sqrt(_larger(discriminant, 0.0))
    away = -(c2 + select(less(c2, 0.0), -root, root))  # no cancellation
    some = less(0.0, absolute(away))
    x1 = s0 / select(some, away, 1.0)
    cubic = less(0.0, absolute(c3))
    x2 = away / (3.0 * select(cubic, c3, 1.0))
    ok = _flag(less(0.0, discriminant))
    x1 = select(less(0.5, ok * _flag(some) * _within(x1)), x1, 0.0)
    x2 = select(less(0.5, ok * _flag(cubic) * _within(x2)), x2, 0.0)

    def value(x: Array) -> Array:
        return f0 + x * (s0 + x * (c2 + x * c3))

    low, high = _smaller(x1, x2), _larger(x1, x2)
    return [(low, value(low)), (high, value(high))]


def _within(x: Array) -> Array:
    return _flag(less(0.0, x)) * _flag(less(x, 1.0))


def _each(x: Array) -> list[Array]:
    """Return the elements of a vector, each `(1,)`."""
    return [x[i : i + 1] for i in range(x.shape[0])]


def _flag(condition: Array) -> Array:
    return select(condition, 1.0, 0.0)


def _not(condition: Array) -> Array:
    return less(_flag(condition), 0.5)


def _smaller(a: Array | float, b: Array | float) -> Array:
    return select(less(a, b), a, b)


def _larger(a: Array | float, b: Array | float) -> Array:
    return select(less(b, a), a, b)


def _largest(parts: Sequence[Array]) -> Array:
    found = asarray(parts[0])
    for part in parts[1:]:
        found = _larger(found, part)
    return found


def _smallest(parts: Sequence[Array]) -> Array:
    found = asarray(parts[0])
    for part in parts[1:]:
        found = _smaller(found, part)
    return found


def _floor(x: Array) -> Array:
    return asarray(np.floor(x))


def _root(x: Array, n: int) -> Array:
    """Return the n-th root of numbers of about one, by square roots and Newton's method."""
    if n % 2 == 0:
        return _root(sqrt(x), n // 2)
    y = x if n == 1 else sqrt(sqrt(x))
    for _ in range(0 if n == 1 else 16):
        y = y + (x / y ** (n - 1) - y) / n
    return y


def _weighted(weights: Array, K: Array) -> Array:
    """Return Σ wᵢ Kᵢ over as many rows as there are weights."""
    total = weights[:1] * K[0]
    for i in range(1, len(weights)):
        total = total + weights[i : i + 1] * K[i]
    return total


def _finite_sum(*arrays: Array) -> Array:
    """Return the sum of all absolute values: finite if these are."""
    return np.sum(absolute(concatenate(list(arrays))), keepdims=True)
