"""The program of a run, alone or in a batch: updates, steps, events, records.

A run does the following in a phase, in any number of calls:

    on entering: contact of stops, updates that are due, event functions
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
from dataclasses import dataclass, replace

import numpy as np

from remora.algebra import vector
from remora.algebra.array_ops import (
    Array,
    absolute,
    concatenate,
    less,
    select,
    sqrt,
)
from remora.algebra.selections import each, flag, floor, larger, largest, negated, smaller
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    Cell,
    ForEach,
    Host,
    If,
    Record,
    Run,
    Sample,
    Statement,
    While,
    hosts,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.dynamics.state_layout import WORKS
from remora.model.state import integrate
from remora.simulation.inputs.profiles import DEGREE
from remora.simulation.inputs.run_settings import Integrator
from remora.simulation.integrators.error_scale import coordinate_magnitudes
from remora.simulation.integrators.step_control import CLOSE, GROW, SAFETY, SHRINK
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.program.event_search import (
    NOT_FINITE,
    TOO_SHORT,
    EventSearch,
    dense_output,
)
from remora.simulation.program.run_blocks import (
    RunBlocks,
    one,
    plus_one,
)
from remora.simulation.program.run_equations import Break
from remora.simulation.program.step_blocks import weighted

_EPS = float(np.finfo(float).eps)
_NEVER = 1e300
#: Initial step size of adaptive methods, s.
FIRST_STEP = 1e-3
#: The step size control between two steps: next step size, whether the last try was rejected, and
#: the number of tries; whether the rate is not known.
CONTROLLED = ("h", "refused", "tried", "fresh")
#: Rate of y at the start of the step, unless `fresh` says that it is not known.
RATE = "rate"
#: Names of the functions that make the steps of a method without stages, and their dense output.
STEP, DENSE = "step", "dense output"
#: Names of the functions that refuse a step: of a motion that is no motion, and an unstable one.
CHECK_MOTIONS, CHECK_STABLE = "check of motions", "check of stability"
#: What is known of the step that was tried last, with which a fault is explained.
TRIED = ("length", "error", "q end", "v end", "x end")
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

    @classmethod
    def of(cls, integrator: Integrator) -> StepControl:
        """Return the control with the settings of a user, which name the method."""
        own = integrator
        step = FIRST_STEP if own.step is None else own.step
        return cls(own.row.tableau, step, own.rtol, own.atol, own.max_step, own.max_steps)

    @property
    def adaptive(self) -> bool:
        """Whether the step size is controlled by an error estimate."""
        return len(self.tableau.errors) > 0

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of the control that are arguments of a program."""
        found = {"max steps": float(self.max_steps)}
        if not self.adaptive:
            return found | {"step": self.step}
        return found | {"rtol": self.rtol, "atol": self.atol, "max step": min(self.max_step, 1e300)}


@dataclass(frozen=True)
class Recorded:
    """What a program records.

    Attributes:
        signals: names of the signals at samples; not for single runs, which record all.
        single: whether a single run is recorded: time, state, works, loads and signals as one
            vector, see `RunBlocks.record`.
        steps: whether the end of every step is recorded; otherwise samples are.
        dense: whether samples lie within steps; otherwise steps end at samples.
        shown: whether a run pauses after the step that contains the time `pause`, and the state
            within that step can be asked for, as samples that are not after the state.
    """

    signals: tuple[str, ...] = ()
    single: bool = False
    steps: bool = False
    dense: bool = False
    shown: bool = False

    @property
    def keeps_step(self) -> bool:
        """Whether the dense output of the last step is kept."""
        return self.dense or self.shown


def run_program(
    blocks: RunBlocks,
    recorded: Recorded,
    breaks: Sequence[Break] = (),
    from_phase: Collection[str] = (),
) -> Program:
    """Return the program.

    Inputs: the state of a run (`kept`), `start` of the run, `phase start`, `until`, `entering`, the
    data of the equations; `anchor` with held joints, `seed` and `run` with noise. Table: `sample
    time`. A run makes steps until it has tried `budget` of them, or its records are full (`room`,
    `event room`). It goes on in another call, with the same bits: its state is returned.

    Args:
        blocks: the blocks of a run.
        recorded: what is recorded.
        breaks: times at which loads are not smooth.
        from_phase: components whose ticks are counted from the start of the phase.
    """
    return _RunProgram(blocks, recorded, breaks, from_phase).program()


class _RunProgram:
    """Builds the program; each method returns the statements of one part."""

    def __init__(
        self,
        blocks: RunBlocks,
        recorded: Recorded,
        breaks: Sequence[Break],
        from_phase: Collection[str],
    ) -> None:
        self._from_phase = from_phase
        self._blocks, self._recorded = blocks, recorded
        self._breaks = sorted(set(breaks))
        self._equations = blocks.equations
        self._system, self._robot = blocks.equations.system, blocks.equations.robot
        self._updates, self._events = self._system.schedule, self._system.events
        self._names = self._equations.data_names
        tableau = self._tableau = blocks.tableau
        self._adaptive = len(tableau.errors) > 0
        self._stages_count = len(tableau.b)
        watched = blocks.equations.system.events or blocks.equations.limits
        #: Whether the state within steps is known, for samples and events there.
        self._within = recorded.keeps_step or bool(watched) or blocks.equations.stops > 0
        self._within = self._within or tableau.hosted
        self._extra = len(tableau.dense_c) if self._within else 0
        #: Cells of the rates of y in the stages, that at the end of the step, and those of the
        #: additional stages of dense output.
        width = self._stages_count + 1 + self._extra
        self._rates = [RATE, *(f"k{i}" for i in range(1, width))]
        self._search = EventSearch(blocks, self._rates[: self._stages_count + 1])
        self._dense = (tableau.degree, self._blocks.size)
        self._summed = [s.name for s in blocks.summed]

    def kept(self) -> list[Cell]:
        """Return the state of a run between two calls."""
        blocks = self._blocks
        plain: list[Signature] = [*blocks.summed, *blocks.state[3:], *blocks.rests]
        plain.append(Signature(RATE, (self._blocks.size,)))
        if self._equations.stops:
            plain.append(Signature("contact", (self._equations.stops,)))
        if self._recorded.keeps_step:  # for samples within it
            own = (*blocks.summed, blocks.state[3])
            plain += [Signature(f"{s.name} before", s.shape) for s in own]
            plain.append(Signature("dense", self._dense))
        wide = ["t", "status", "events", *CONTROLLED]
        if not self._adaptive:
            wide += ["target", "end", "segment start", "segment steps", "segment step"]
        if self._search.functions:
            wide += ["recent", "recent time", "tries"]
        if self._recorded.keeps_step:
            wide += ["t before", "length before"]
        wide += [f"tick {i}" for i in range(len(self._updates))]
        found = [Cell(s.name, s.shape) for s in plain]
        return [*found, *(Cell(n, (1,), wide=True) for n in wide), *self._search.kept()]

    def program(self) -> Program:
        """Return the program."""
        blocks, equations, recorded = self._blocks, self._equations, self._recorded
        kept = self.kept()
        given = ["start", "phase start", "until", "budget", "entering", "max steps"]
        given += ["rtol", "atol", "max step"] if self._adaptive else ["step"]
        given += ["low", "high"] if blocks.bounded else []
        given += ["room", "event room"] if recorded.single else []
        given += ["pending"] if recorded.steps else []
        given += ["pause"] if recorded.shown else []
        inputs: list[Signature] = [*kept, *equations.data]
        inputs += [Cell(name, (1,), wide=True) for name in given]
        cells: list[Signature] = [*kept, *blocks.cells, *self._search.cells()]
        cells += [Signature(f"{s.name} end", s.shape) for s in (*blocks.summed, *blocks.rests)]
        cells += [Signature(name, (self._blocks.size,)) for name in (*self._rates[1:], "moved")]
        cells += [Cell(f"at {i}", (1,), wide=True) for i in range(len(self._rates))]
        cells += [Signature("error", (1,)), Signature("reset fault", (1,))]
        if self._adaptive:
            names = [f"ratio {i}" for i in range(len(self._tableau.errors))]
            cells += [Signature(name, (self._blocks.size,)) for name in ("scale", *names)]
        if self._within:
            cells.append(Signature("dense trial", self._dense))
        if recorded.keeps_step:
            own = (*blocks.summed, blocks.state[3])
            cells += [Signature(f"{s.name} sample", s.shape) for s in own]
            cells += [Signature(f"rest {n} sample", (size,))
                      for n, size in (("q", self._robot.nq), ("v", self._robot.nv))]  # fmt: skip
        numbers = (
            *given, "goal", "target", "end", "length", "accept", "active", "use", "segment start",
            "segment steps", "segment step", "low bracket", "high bracket", "side", "final",
            "search", "cut", "reached", "recent", "recent time", "tries", "any", "logged",
            "event row", "row number", "was reset", "sampled", "sample at",
            "theta", "moving", "nodes", "looking", "rough",
            "use node", "asked", "touched",
        )  # fmt: skip
        known = {s.name for s in cells}
        cells += [Cell(name, (1,), wide=True) for name in numbers if name not in known]
        cells += [Cell(f"is due {i}", (1,), wide=True) for i in range(len(self._updates))]
        if equations.held:
            inputs.append(Signature("anchor", (self._robot.nq,)))
        if equations.reduced:
            inputs.append(Signature("momentum", (6,)))
        if equations.pieces:
            inputs += [Cell("pieces", (DEGREE + 1, self._robot.nv), wide=True),
                       Cell("piece start", (1,), wide=True)]  # fmt: skip
        if self._search.functions:
            inputs.append(Cell("known", (1,), wide=True))
        inputs += blocks.noise_inputs
        body: list[Statement] = [
            If("entering", [
                *self._search.no_events(), *self._search.first_contact(),
                *self._due(first=True), *self._search.first_look(),
            ]),
        ]  # fmt: skip
        tables = [] if recorded.steps and not recorded.shown else ["sample time"]
        step: list[Statement] = [
            *self._due(), *self._choose(), *self._stable(), *self._stages(), *self._decide(),
            If("accept", self._commit()), *self._search.fire(), *self._after_reset(),
        ]  # fmt: skip
        if recorded.steps:
            row = If("pending", [*self._record("t"), wide_run(_zero, (), ("pending",))])
            step = [row, If("moving", step)]
            body += [*self._aim_at("until"), While("active", [*step, *self._go_on()])]
            body += [ForEach(self._sample())] if recorded.shown else []
        else:
            steps = While("active", [*step, *self._go_on()])
            body.append(ForEach([*self._aim_at("sample time"), steps, *self._sample()]))
        return Program(inputs, cells, [*body, *self._final()], tables)

    # Records --------------------------------------------------------------------------------------

    def _record(self, t: str) -> list[Statement]:
        """Return the statements that record a row of a single run."""
        before, block = self._blocks.record(t)
        row = wide_run(plus_one, ("row number",), ("row number",))
        return [*before, Record(block, "row number"), row]

    def _after_reset(self) -> list[Statement]:
        """Return the statements that record the state after a reset."""
        resets = any(e.crossing.action == "reset" for e in self._events)
        if not (self._recorded.single and resets):
            return []
        return [If("was reset", [*self._record("t"), wide_run(_zero, (), ("was reset",))])]

    def _sample(self) -> list[Statement]:
        """Return the statements that record a sample."""
        late = Sample(Block(np.subtract, ("t", "sample time"), ("late",), wide=True))
        if not self._recorded.single:
            return [Sample(self._blocks.sample("t", self._recorded.signals)), late]
        if not self._recorded.keeps_step:
            before, block = self._blocks.record("t")
            return [*self._asked("t", before), Sample(replace(block, writes=("sample",))), late]
        robot, nv, names = self._robot, self._robot.nv, [*self._summed, "z"]
        ends = [f"{n} before" for n in names]

        def within(time: Array, t: Array, begin: Array, length: Array) -> tuple[Array, ...]:
            """Return the time and the state of a sample, of the end of a step if it is there."""
            close = CLOSE * _EPS * absolute(t)
            inner = less(time, t - close)
            theta = (time - begin) / select(less(0.0, length), length, 1.0)
            return smaller(time, t), theta, flag(inner)

        def state(theta: Array, inner: Array, dense: Array, *rest: Array) -> tuple[Array, ...]:
            now, before = rest[: len(names)], rest[len(names) :]
            change, _ = dense_output(dense, theta)
            q, *others, z = before
            moved, start = [integrate(robot, q, change[:nv])], nv
            for own in others:
                moved.append(own + change[start : start + own.shape[0]])
                start += own.shape[0]
            inside = less(0.5, inner)
            chosen = [select(inside, a, b) for a, b in zip((*moved, z), now, strict=True)]
            return (*chosen, 0.0 * chosen[0], 0.0 * chosen[1])

        writes = ("sample at", "theta", "sampled")
        found = [f"{n} sample" for n in (*names, "rest q", "rest v")]
        reads = ("sample time", "t", "t before", "length before")
        placed = [
            *self._blocks.place_held("sample at", " sample"), *self._blocks.project(" sample")
        ]  # fmt: skip
        before, block = self._blocks.record("sample at", " sample")
        return [
            wide_run(within, reads, writes),
            Run(Block(state, ("theta", "sampled", "dense", *names, *ends), found)),
            *([If("sampled", placed)] if placed else []),
            *self._asked("sample at", before), Sample(replace(block, writes=("sample",))), late,
        ]  # fmt: skip

    def _asked(self, t: str, statements: list[Statement]) -> list[Statement]:
        """Return what Python computes for a sample: not if the run has not come to it."""
        if not hosts(statements):
            return statements

        def reached(t: Array, time: Array) -> Array:
            return flag(negated(less(t, time - 2.0 * CLOSE * _EPS * absolute(time))))

        return [wide_run(reached, (t, "sample time"), ("asked",)), If("asked", statements)]

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
        for i in range(len(self._updates)):
            fresh = wide_run(one, (), ("fresh",))
            found.append(If(f"is due {i}", [*self._blocks.tick(i, "t"), fresh]))
        if self._search.functions and not first:
            found.append(If("any", self._search.look_after_jump()))
        return found

    def _aim_at(self, time: str) -> list[Statement]:
        def aim(until: Array, time: Array, *now: Array) -> tuple[Array, ...]:
            goal = smaller(time, until)
            if self._recorded.dense:  # a sample at the end of a step, up to rounding, is that end
                early = time - CLOSE * _EPS * absolute(time)
                goal = select(less(time, until), early, until)
            return goal, *self._goes_on(goal, *now)

        def go(until: Array, *now: Array) -> tuple[Array, ...]:
            return aim(until, until, *now)

        own, reads = (go, ("until",)) if time == "until" else (aim, ("until", time))
        return [wide_run(own, (*reads, *self._progress), ("goal", *self._moving))]

    def _go_on(self) -> list[Statement]:
        return [wide_run(self._goes_on, ("goal", *self._progress), self._moving)]

    @property
    def _moving(self) -> tuple[str, ...]:
        """Whether the loop goes on, and whether it makes a step then."""
        return ("active", "moving") if self._recorded.steps else ("active",)

    @property
    def _progress(self) -> tuple[str, ...]:
        """What decides whether a run makes another step in this call."""
        rooms = ("row number", "room", "event row", "event room") if self._recorded.single else ()
        pending = ("pending",) if self._recorded.steps else ()
        pause = ("pause",) if self._recorded.shown else ()
        return ("t", "status", "tried", "budget", "high bracket", "cut", *rooms, *pending, *pause)

    def _goes_on(
        self, goal: Array, t: Array, status: Array, tried: Array, budget: Array, high: Array,
        cut: Array, *rest: Array,
    ) -> tuple[Array, ...]:  # fmt: skip
        """Return whether a run makes another step in this call, see `_moving`."""
        room = flag(less(tried, budget))
        rooms = rest[:4] if self._recorded.single else ()
        for used, most in zip(rooms[::2], rooms[1::2], strict=True):
            room = room * flag(less(used, most))
        # an event is located within one call
        room = larger(room, flag(less(0.0, high + cut)))
        if self._recorded.shown:
            goal = smaller(goal, rest[-1])
        moving = flag(less(t, goal)) * flag(less(status, 0.5)) * room
        return (larger(moving, rest[4]), moving) if self._recorded.steps else (moving,)

    # Steps ----------------------------------------------------------------------------------------

    def _choose(self) -> list[Statement]:
        """Return the choice of the length of a step."""
        ticks = [f"tick {i}" for i in range(len(self._updates))]
        breaks = self._breaks

        def target(t: Array, start: Array, phase: Array, goal: Array, *ticks: Array) -> Array:
            near = CLOSE * _EPS * (absolute(t) + absolute(start))
            found = goal
            jumps = [b.time + (phase if b.of_phase else 0.0 * t) for b in breaks]
            for time in [*self._next_times(start, phase, ticks), *jumps]:
                later = select(less(t + near, time), time, _NEVER)
                found = smaller(found, later)
            return select(less(goal - near, found), goal, found)

        aim_at = "until" if self._recorded.dense else "goal"

        def fixed(
            t: Array, start: Array, phase: Array, goal: Array, old: Array, size: Array,
            first: Array, steps: Array, step: Array, length: Array, high: Array, cut: Array,
            *ticks: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            over = less(steps, step + 0.5)  # the segment is finished
            first = select(over, t, first)
            aim = select(over, target(t, start, phase, goal, *ticks), old)
            count = -floor(-((aim - first) / size - 1e-6))
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
            most: Array,
            length: Array,
            high: Array,
            cut: Array,
            *ticks: Array,
        ) -> tuple[Array, ...]:
            aim = target(t, start, phase, goal, *ticks)
            wanted, left = smaller(h, most), aim - t
            last = negated(less(wanted * (1.0 + 1e-9), left))
            free = select(last, left, smaller(wanted, 0.5 * left))
            shorter = select(less(0.0, cut), smaller(cut, free), free)
            # an event is located within the step that found it, whatever the next one may be
            located = less(0.0, high)
            end = select(located, old, select(last, aim, t + free))
            return aim, end, select(located, length, shorter)

        if self._adaptive:
            given = (
                "t", "start", "phase start", aim_at, "end", "h", "max step", "length",
                "high bracket", "cut",
            )  # fmt: skip
            reads = (*given, *ticks)
            return [wide_run(adaptive, reads, ("target", "end", "length"))]
        kept = ("segment start", "segment steps", "segment step")
        reads = (
            "t",
            "start",
            "phase start",
            aim_at,
            "target",
            "step",
            *kept,
            "length",
            "high bracket",
            "cut",
            *ticks,
        )
        return [wide_run(fixed, reads, ("target", "end", *kept, "length"))]

    def _stable(self) -> list[Statement]:
        """Return the check that the stops do not make the motion grow in a fixed step."""
        if "stability" not in self._equations.hosted:
            return []

        def touched(contact: Array) -> Array:
            return largest(each(contact))

        return [
            wide_run(touched, ("contact",), ("touched",)),
            If("touched", [Host(CHECK_STABLE, ("t", "length", "q", "contact"), ())]),
        ]

    def _stages(self) -> list[Statement]:
        """Return the stages, the candidate state at the end of the step, and its error."""
        if self._tableau.hosted:
            return self._hosted()
        count, rates = self._stages_count, self._rates

        def dense_stage(use: Array, row: Array, nodes: Array, *more: Array) -> Array:
            needed = nodes  # also if a sample or the pause lies within the step
            for time in more[2:]:
                needed = larger(needed, flag(less(time, more[0] + more[1])))
            return select(less(0.5, sum(row[3 + count + i : 4 + count + i]
                                        for i in range(self._extra))), needed, use)  # fmt: skip

        asked = self._inner_times
        reads_dense = ("use", "row", "nodes", *(("t", "length", *asked) if asked else ()))
        additional: list[Statement] = []
        if self._extra:
            additional = [If(f"at {count + 1}", self._search.near()),
                          wide_run(dense_stage, reads_dense, ("use",))]  # fmt: skip
        found: list[Statement] = [
            *self._blocks.stages(rates, additional),
            wide_run(_zero, (), ("fresh",)),
            self._blocks.add_change(" end"),
        ]
        if self._adaptive:
            found += self._error()
        else:
            found.append(Run(Block(_finite_sum, ("q end", "v end", "x end"), ("error",))))
        return found

    @property
    def _inner_times(self) -> list[str]:
        """Names of the times at which the state within a step is asked for."""
        recorded = self._recorded
        return [*(["goal"] if recorded.dense else []), *(["pause"] if recorded.shown else [])]

    def _hosted(self) -> list[Statement]:
        """Return the step of a method that Python makes, see `HostedStep`."""
        touched = ("contact",) if self._equations.stops else ()
        scaled = ("scale",) if self._adaptive else ()
        state = ("q", "v", "x", "z", "work", "rest q")
        reads = ("t", "length", "fresh", "refused", *state, *touched, *scaled)

        def checked(error: Array, *ends: Array) -> Array:
            return error + _finite_sum(*ends)

        found: list[Statement] = [
            Host(STEP, reads, ("change", "error", RATE)), wide_run(_zero, (), ("fresh",)),
            self._blocks.add_change(" end"),
        ]  # fmt: skip
        if scaled:
            found.insert(0, self._tolerances())
        if not self._adaptive:
            ends = ("q end", "v end", "x end")
            found.append(Run(Block(checked, ("error", *ends), ("error",))))
        return found

    def _error(self) -> list[Statement]:
        """Return the statements that compute the error norm in units of the tolerance."""
        estimates, works = self._tableau.errors, self._blocks.works
        rates = self._rates[: self._stages_count + 1]
        ratios = [f"ratio {i}" for i in range(len(estimates))]

        def each(h: Array, scale: Array, *K: Array) -> tuple[Array, ...]:
            return tuple(h * weighted(weights, K) / scale for weights in estimates)

        def norm(*ratios: Array) -> Array:
            norms: list[Array] = []
            for ratio in ratios:
                own = ratio[: ratio.shape[0] - works]  # not of the works
                norms.append(sqrt(vector.dot(own, own) / (own.shape[0] + WORKS)))
            if len(norms) == 1:
                return norms[0]
            fifth, third = norms
            below = sqrt(fifth * fifth + 0.01 * third * third)
            return fifth * fifth / select(less(0.0, below), below, 1.0)

        return [
            self._tolerances(),
            Run(Block(each, ("length", "scale", *rates), ratios, each=True)),
            Run(Block(norm, ratios, ("error",))),
        ]

    def _tolerances(self) -> Run:
        """Return the tolerance of each component of y; any error of the works is tolerated."""
        works = np.full(self._blocks.works, 1e300)

        def scale(q: Array, v: Array, x: Array, rtol: Array, atol: Array) -> Array:
            size = concatenate([coordinate_magnitudes(self._robot, q), v, x])
            return concatenate([rtol * absolute(size) + atol, works])

        return Run(Block(scale, ("q", "v", "x", "rtol", "atol"), ("scale",)))

    # Decisions ------------------------------------------------------------------------------------

    def _decide(self) -> list[Statement]:
        """Return the decision whether a step is accepted, and what is tried next."""
        adaptive, count = self._adaptive, self._search.functions
        root = self._tableau.error_order + 1

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
        if adaptive:
            reads = ("error", "length", "h", "refused", "high bracket")
            found.append(wide_run(sized, reads, ("accept", "h", "refused")))
        else:
            found.append(wide_run(checked, ("error",), ("accept",)))

        def ends(
            accept: Array, tried: Array, t: Array, h: Array, most: Array, status: Array
        ) -> tuple[Array, Array]:
            tried = tried + 1.0
            many = less(most, tried)
            # the next step would not change the time
            short = negated(less(t, t + 0.1 * h)) if adaptive else less(1.0, 0.0)
            failed = flag(many) if adaptive else flag(less(accept, 0.5))
            code = float(TOO_SHORT if adaptive else NOT_FINITE)
            bad = less(0.5, failed + flag(short) * flag(less(accept, 0.5)))
            return tried, select(bad, code, status)

        reads = ("accept", "tried", "t", "h", "max steps", "status")
        found.append(wide_run(ends, reads, ("tried", "status")))
        inner = self._satisfied()
        if count:
            inner += [] if self._extra else self._search.near()
            inner += [*self._search.look_at_end()]
            inner.append(
                If("accept", [If("nodes", [*self._coefficients(), *self._search.inside()])])
            )
        if inner:
            found.append(If("accept", inner))
        if count:
            found += self._search.looking()
            found += [If("looking", self._search.bracket()), *self._search.progress()]
        return found

    def _satisfied(self) -> list[Statement]:
        """Return the statements that put the end of a step onto the constraints.

        In the reduced model they set the base's speeds there. Events are looked at there: a step
        that is shortened to an event ends there, too.
        """
        if not (self._equations.constrained or self._equations.reduced):
            return []
        reached = wide_run(np.add, ("t", "length"), ("reached",))
        placed = self._blocks.place_held("reached", " end")
        return [*([reached] if placed else []), *placed, *self._blocks.project(" end")]

    def _commit(self) -> list[Statement]:
        """Return the statements that make the end of the step the state of the run."""
        names = [*self._summed, *(f"rest {name}" for name in self._summed)]
        ends = [f"{name} end" for name in names]
        nv, last = self._robot.nv, self._rates[self._stages_count]
        # the rate at the end of the last stage is not that of the state: it was changed
        changed = self._blocks.placed or self._equations.constrained

        def time(
            t: Array, end: Array, length: Array, step: Array, target: Array
        ) -> tuple[Array, ...]:
            # also if an event was located so close to the end that time does not tell them apart
            short = flag(less(length, (end - t) * (1.0 - 1e-15))) * flag(less(t + length, end))
            full = less(short, 0.5)
            reached = select(full, end, t + length)
            # loads may jump at the target
            fresh = np.ones(1) if changed else flag(negated(less(reached, target)))
            return reached, select(full, step + 1.0, step), fresh

        def rate(v: Array, k: Array) -> Array:
            return concatenate([v, k[nv:]])

        reads = ("t", "end", "length", "segment step", "target")
        moved = "motions" in self._equations.hosted
        found: list[Statement] = [
            *([Host(CHECK_MOTIONS, ("t", "length"), ())] if moved else []),
            *self._keep_dense(),
            Run(Block(rate, ("v end", last), (RATE,))),
            Run(Block(unchanged, ends, names)),
            wide_run(time, reads, ("t", "segment step", "fresh")),
            *self._blocks.place_held("t"),
        ]
        found += self._search.commit()
        resets = any(e.crossing.action == "reset" for e in self._events)
        if self._recorded.steps:
            found.append(wide_run(one, (), ("pending",)))
        if self._recorded.single and resets:
            own = [f"fired {i}" for i, e in enumerate(self._events)
                   if e.crossing.action == "reset"]  # fmt: skip
            before = self._record("t")
            if self._recorded.steps:
                before.append(wide_run(_zero, (), ("pending",)))
            found += [wide_run(lambda *x: largest(x), own, ("was reset",)),
                      If("was reset", before)]  # fmt: skip
        return found

    def _keep_dense(self) -> list[Statement]:
        """Return the statements that keep what samples within the step need."""
        if not self._recorded.keeps_step:
            return []
        names = [*self._summed, "z"]
        before = [f"{name} before" for name in names]
        found = self._coefficients()
        if self._tableau.hosted:  # if a sample or the pause lies within the step

            def asked(t: Array, length: Array, *times: Array) -> Array:
                return largest([flag(less(time, t + length)) for time in times])

            found = [wide_run(asked, ("t", "length", *self._inner_times), ("asked",)),
                     If("asked", found)]  # fmt: skip
        return [
            *found,
            Run(Block(unchanged, ("dense trial",), ("dense",))),
            Run(Block(unchanged, names, before)),
            wide_run(unchanged, ("t", "length"), ("t before", "length before")),
        ]

    def _coefficients(self) -> list[Statement]:
        """Return the statement that computes the dense output of the step, see `tableaus`."""
        tableau, stages = self._tableau, self._stages_count
        if tableau.hosted:
            return [Host(DENSE, (), ("dense trial",))]

        def coefficients(change: Array, length: Array, *K: Array) -> Array:
            bend = length * K[0] - change
            parts = [change, bend, change - length * K[stages] - bend]
            parts += [length * weighted(row, K) for row in tableau.dense_d]
            return concatenate([part[None] for part in parts], trailing=2)

        reads = ("change", "length", *self._rates)
        return [Run(Block(coefficients, reads, ("dense trial",), each=True))]

    def _final(self) -> list[Statement]:
        """Return the statements that return the state of the run."""
        found: list[Statement] = []
        for wide in (False, True):
            own = [cell.name for cell in self.kept() if cell.wide is wide]
            block = Block(unchanged, own, [f"final {name}" for name in own], wide=wide)
            found.append(Sample(block))
        if self._recorded.single:
            rows = ("row number", "event row", "length")
            found.append(Sample(Block(unchanged, TRIED[1:], [f"final {n}" for n in TRIED[1:]])))
            found.append(Sample(Block(unchanged, rows, [f"final {n}" for n in rows], wide=True)))
            return found
        return [*found, Sample(self._blocks.sample("t", self._recorded.signals, AT_END))]


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


def _finite_sum(*arrays: Array) -> Array:
    """Return the sum of all absolute values: finite if these are."""
    return np.sum(absolute(concatenate(list(arrays))), keepdims=True)
