"""Program of one call of an exported closed loop: the steps of a batch up to the next time.

    if the run begins: enter the first phase
    while a phase is to be continued:
        the statements of a run up to the time, see `run_program`
        if the phase ends there and another follows: enter it

What has to survive between two calls (the cells that are live at the end of a call) is the state of
the loop. Loops without events, breaks and phases make the fixed steps of `lockstep_program`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from remora.algebra.array_ops import Array, absolute, less, select
from remora.algebra.selections import flag, larger, negated
from remora.codegen.integration.program import Program, renamed
from remora.codegen.integration.program_plan import carried
from remora.codegen.integration.statements import (
    Block,
    Cell,
    ForEach,
    If,
    Run,
    Sample,
    Statement,
    While,
    unchanged,
    wide_run,
)
from remora.codegen.ir.graph import Signature
from remora.components.system import ScheduledUpdate
from remora.simulation.batch.batch_phases import NUDGE, BatchPhase
from remora.simulation.batch.lockstep_program import lockstep_program
from remora.simulation.integrators import tableaus
from remora.simulation.program.event_search import FIRST, NEVER, NEXT, NOT_ENTERED, RUNNING
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import parameter_name
from remora.simulation.program.run_program import Recorded, run_program

#: Name of the noise among the arguments of a call, if it is given; of `input noise` in a program.
NOISE = "noise"
#: Cell that is 1 in the first call, and the one with the index of the phase.
BEGINS, PHASE = "begins", "phase"
#: Inputs of a program that are the same in all calls, besides the step.
FIXED = {"budget": 1e300, "max steps": 1e300, "known": 0.0}
STEP = "step"
#: Cells of each phase that the state reports.
REPORTED = ("phase start", "events", FIRST)
#: State of the robot and the components.
MOTION = ("q", "v", "x", "z", "rest q", "rest v", "rest x")
#: A phase of this duration does not end, s.
ENDLESS = 1e100
#: Largest deviation of a sample time from a multiple of the step, relative.
MULTIPLE = 1e-9
#: What a program of a run is given for a phase.
_OF_A_PHASE = ("phase start", "until", "anchor")
#: What phases have in common.
_SHARED = {*MOTION, "t", "start", "status", "seed", "run", "sample time"}


class LoopBlocks(RunBlocks):
    """Blocks of a run whose noise is given: standard normal numbers are an input."""

    def streams(self) -> dict[str, int]:
        """Return no streams: nothing is drawn."""
        return {}

    def normals(self, drawn: Mapping[str, Array], data: Sequence[Array]) -> Array:
        """Return the numbers that are given."""
        given = [s.name for s in self.equations.forces.inputs]
        return data[given.index(NOISE)] if NOISE in given else np.zeros(0)


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """The program of one call.

    Attributes:
        program: its tables have one entry; it returns the cells of the state.
        state: names of the cells of the state, which are inputs, too.
        fixed: inputs that are the same in all calls.
        lockstep: whether a call is one step of fixed length.
    """

    program: Program
    state: tuple[str, ...]
    fixed: Mapping[str, float]
    lockstep: bool

    def signature(self, name: str) -> Cell:
        """Return shape and precision of an input or cell."""
        found = (s for s in (*self.program.inputs, *self.program.cells) if s.name == name)
        return cast(Cell, next(found))


def after(name: str) -> str:
    """Return the name of the output with a cell of the state."""
    return f"after {name}"


def of_phase(name: str, k: int, phases: int) -> str:
    """Return the name of a cell of a phase; phases have some in common.

    Args:
        name: name in the program of the phase.
        k: index of the phase.
        phases: number of phases.
    """
    shared = name in _SHARED or name.startswith(("tick ", "parameter ", "input "))
    return name if shared or phases == 1 or name in (*FIXED, STEP) else f"{name} of phase {k}"


def steps_of(update: ScheduledUpdate, step: float) -> tuple[int, int] | None:
    """Return period and first time of an update in steps; None if they are no multiples of it."""
    counts: list[int] = []
    for value in (update.sample_time, update.offset):
        count = value / step
        near = round(count)
        whole = abs(count - near) <= MULTIPLE * max(1.0, count) and near < 2**32
        if not whole or (near == 0 and value > 0.0):
            return None
        counts.append(near)
    return counts[0], counts[1]


def in_lockstep(phases: Sequence[BatchPhase], step: float) -> bool:
    """Return whether a loop makes steps of fixed length: nothing happens within them."""
    one, updates = phases[0], phases[0].equations.system.schedule
    jumps = one.equations.system.events or one.breaks or one.entry.acts
    endless = len(phases) == 1 and one.duration >= ENDLESS
    regular = all(steps_of(update, step) is not None for update in updates)
    return endless and regular and not (jumps or one.equations.held)


def loop_program(
    phases: Sequence[BatchPhase], step: float, dtype: str, generated: bool
) -> LoopProgram:
    """Return the program of a call.

    Args:
        phases: the phases, in order.
        step: largest step, s.
        dtype: `float64` or `float32`.
        generated: whether noise is generated, of `seed` and `run`; otherwise it is given.
    """
    if in_lockstep(phases, step):
        program = lockstep_program(_blocks(phases[0], dtype, generated), ())
        (body,) = (renamed(s.body, str) for s in program.body if isinstance(s, ForEach))
        # weights of the last step's rates in the first stage are zero
        return _assembled([program], body, program.cells, step, MOTION, ("k", "change"))
    made = [_PhaseProgram(p, k, len(phases), step, dtype, generated)
            for k, p in enumerate(phases)]  # fmt: skip
    begins: list[Statement] = [wide_run(unchanged, ("start",), ("t",)), *made[0].begin()]
    begins += [s for one in made[1:] for s in one.no_events()]
    body: list[Statement] = [If(BEGINS, begins)]
    cells = {s.name: s for one in made for s in one.cells}
    if len(made) == 1:
        body += made[0].body
    else:
        flags = [f"in phase {k}" for k in range(len(made))]
        names = (*flags, "more", "moved", PHASE)
        cells |= {n: Cell(n, (1,), wide=True) for n in names}

        def chosen(phase: Array) -> tuple[Array, ...]:
            places = (less(absolute(phase - float(k)), 0.5) for k in range(len(made)))
            return (*map(flag, places), np.zeros(1))

        inner: list[Statement] = [wide_run(chosen, (PHASE,), (*flags, "more"))]
        for k, one in enumerate(made):
            last = k + 1 == len(made)
            then: list[Statement] = []
            if not last:
                then = [one.ended(phases[k + 1]), If("moved", made[k + 1].begin())]
            inner.append(If(flags[k], [*one.body, *then]))
        body += [wide_run(lambda: np.ones(1), (), ("more",)), While("more", inner)]
    reported = [of_phase(n, k, len(made)) for k in range(len(made)) for n in REPORTED]
    visible = [n for n in (*MOTION, "t", "status", PHASE, *reported) if n in cells]
    forgotten = [name for one in made for name in one.forgotten]
    programs = [one.program for one in made]
    return _assembled(programs, body, list(cells.values()), step, visible, forgotten)


class _PhaseProgram:
    """The statements of one phase, with the names that they have in the whole program."""

    def __init__(
        self, phase: BatchPhase, k: int, phases: int, step: float, dtype: str, generated: bool
    ) -> None:
        self._phase, self._k, self._step = phase, k, step
        self._name: Callable[[str], str] = lambda name: of_phase(name, k, phases)
        blocks = _blocks(phase, dtype, generated)
        self.program = run_program(blocks, Recorded(), phase.breaks, phase.from_phase)
        whole = list(self.program.body)
        place = next(i for i, s in enumerate(whole) if isinstance(s, ForEach))
        loop = whole[place]
        assert isinstance(loop, ForEach)
        cells = *self.program.cells, *phase.entry.cells()
        own = {s.name: s for s in cells if s.name not in (*FIXED, STEP)}
        names = [parameter_name(n) for n in phase.entry.latches.values()]
        numbers = phase.equations.parameter_signatures
        latched = {s.name: s for s in numbers if s.name in names}
        entered = Program(phase.equations.data, [*(own | latched).values()], self._entry(dtype))
        first = whole[0]
        assert isinstance(first, If)
        assert (first.cell, place) == ("entering", 1)
        self._before = [*renamed(entered.body, self._name), *renamed(first.body, self._name)]
        self.body = renamed(loop.body, self._name)
        #: The cells by their names in the whole program.
        self.cells = [Cell(self._name(s.name), s.shape, isinstance(s, Cell) and s.wide)
                      for s in (own | latched).values()]  # fmt: skip

        kept = {o.name.removeprefix("final ") for o in self.program.outputs}
        #: Those that a run does not need in another call.
        self.forgotten = [self._name(n) for n in own if n not in {*kept, *_OF_A_PHASE}]

    def _entry(self, dtype: str) -> list[Statement]:
        """Return the statements of the entry of the phase."""
        equations, entry = self._phase.equations, self._phase.entry

        def begin(t: Array, start: Array, anchor: Array) -> tuple[Array, Array]:
            q, v, _ = equations.motions(t - start if equations.own_clock else t, anchor)
            return q, v

        found = entry.latching()
        if entry.held:
            found.append(wide_run(begin, ("t", "phase start", "anchor"), ("begin q", "begin v")))
        found += entry.statements(dtype)
        if not entry.changes:
            return found
        rests = ("rest q", "rest v", "rest x")

        def kept(changed: Array, *rests: Array) -> tuple[Array, ...]:
            return tuple(select(less(0.5, changed), 0.0 * rest, rest) for rest in rests)

        return [*found, Run(Block(kept, ("changed", *rests), rests))]

    def begin(self) -> list[Statement]:
        """Return the statements that enter the phase at the time of the run."""
        duration, step, k = self._phase.duration, self._step, self._k

        def begin(t: Array) -> tuple[Array, ...]:
            end = t + duration if duration < ENDLESS else np.full(1, NEVER)
            return t, end, np.full(1, step), np.ones(1)

        names = [self._name(n) for n in ("phase start", "until", "h", "fresh")]
        found: list[Statement] = [wide_run(begin, ("t",), names)]
        if self._phase.equations.held:
            found.append(Run(Block(unchanged, ("q",), (self._name("anchor"),))))
        if k:
            found.append(wide_run(lambda: np.full(1, float(k)), (), (PHASE,)))
        return [*found, *self._before]

    def no_events(self) -> list[Statement]:
        """Return the statement that notes that no event of the phase has occurred yet."""
        count = len(self._phase.equations.system.events)
        return [wide_run(lambda: np.full(count, NEVER), (), (self._name(FIRST),))] if count else []

    def ended(self, following: BatchPhase) -> Run:
        """Return the statement that decides whether the following phase is entered."""

        def ended(t: Array, until: Array, status: Array) -> tuple[Array, ...]:
            event = flag(less(absolute(status - float(NEXT)), 0.5))
            over = flag(less(absolute(status - float(RUNNING)), 0.5)) * flag(
                negated(less(t, until))
            )
            if following.entry.phase.after_event:
                left = select(less(0.5, over), float(NOT_ENTERED), status)
                return event, event, select(less(0.5, event), float(RUNNING), left)
            moved = larger(event, over)
            return moved, moved, select(less(0.5, moved), float(RUNNING), status)

        reads_ = ("t", self._name("until"), "status")
        return wide_run(ended, reads_, ("moved", "more", "status"))


def _blocks(phase: BatchPhase, dtype: str, generated: bool) -> RunBlocks:
    nudge = NUDGE * float(np.finfo(float).eps) if phase.breaks else 0.0
    kind = RunBlocks if generated else LoopBlocks
    return kind(phase.equations, tableaus.RK4, dtype, nudge)


def _assembled(
    programs: Sequence[Program], body: Sequence[Statement], cells: Sequence[Signature],
    step: float, visible: Sequence[str], forgotten: Sequence[str] = (),
) -> LoopProgram:  # fmt: skip
    """Return the program of a call.

    Args:
        programs: those of the phases.
        body: statements of a call.
        cells: their cells.
        step: largest step, s.
        visible: cells of the state besides those that later calls need.
        forgotten: cells that later calls seem to need, but zero does.
    """
    known = {s.name for s in cells}
    tables = programs[0].tables
    inputs: dict[str, Signature] = {
        s.name: s
        for p in programs
        for s in p.inputs
        if s.name not in known and of_phase(s.name, 0, len(programs)) == s.name
    }
    if len(tables) == 1:
        inputs |= {n: Cell(n, (1,), wide=True) for n in (BEGINS, "start")}
        cells = [*cells, Cell(BEGINS, (1,), wide=True)]
    draft = _with_state(inputs, cells, body, tables, visible)
    needed = (carried(draft) | set(visible)) - set(forgotten) - inputs.keys()
    state = tuple(s.name for s in cells if s.name in needed)
    given = inputs | {s.name: s for s in cells if s.name in state}
    program = _with_state(given, cells, body, tables, state)
    fixed = {name: x for name, x in {**FIXED, STEP: step}.items() if name in inputs}
    return LoopProgram(program, state, fixed, len(tables) > 1)


def _with_state(
    inputs: Mapping[str, Signature], cells: Sequence[Signature], body: Sequence[Statement],
    tables: Sequence[str], state: Sequence[str],
) -> Program:  # fmt: skip
    """Return the program of a call that returns these cells."""
    wide = {s.name: isinstance(s, Cell) and s.wide for s in cells}
    samples: list[Statement] = []
    for own in (True, False):
        names = [n for n in state if wide[n] == own]
        if names:
            samples.append(Sample(Block(unchanged, names, [after(n) for n in names], wide=own)))
    return Program(list(inputs.values()), cells, [ForEach([*body, *samples])], tables)
