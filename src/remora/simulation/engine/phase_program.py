"""A phase of a single run: the program of batches for one run.

The program makes steps, updates sampled components, locates events, and records. Python computes
what cannot be traced, see `hosted_parts`; everything else is machine code. It returns when a
segment ends, its records are full, or it has tried many steps, and goes on in the next call with
the same bits. Between calls, Python samples controllers and enters the next segment.
"""

from __future__ import annotations

import bisect
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_hosted import HostedProgram
from remora.codegen.ir.graph import Signature
from remora.components.system import System
from remora.dynamics.kernels.cache_keys import tables_digest, value_key
from remora.dynamics.kernels.kernel_memory import remembered
from remora.errors import RemoraError
from remora.identity.digest import code_key
from remora.model.joints import in_coordinates
from remora.simulation.engine.hosted_parts import HostedParts
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.inputs.events import (
    Event,
    EventMonitor,
    RobotCondition,
    joint_limits,
)
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.profiles import DEGREE
from remora.simulation.inputs.pure_functions import CapturedNumbers, is_pure
from remora.simulation.integrators.step_control import CLOSE
from remora.simulation.integrators.table import Method
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.phase.phase_loads import SmoothLoads
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_conditions import conditions
from remora.simulation.program.event_search import NEXT, RUNNING, STOPPED
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import (
    Forces,
    HostedPart,
    Law,
    RunEquations,
    input_name,
    parameter_name,
)
from remora.simulation.program.run_program import TRIED, Recorded, StepControl, run_program

#: A call makes fewer steps if the last one took longer than this, s: Ctrl-C waits for its end.
LONGEST_CALL = 0.03
#: Tries of the first call and of any call; the number of rows that a call can record, at least and
#: at most.
FIRST_TRIES, MOST_TRIES, FIRST_ROWS, MOST_ROWS = 128, 1_000_000, 128, 4096
#: Events that a call records.
MOST_EVENTS = 64


class Advance(NamedTuple):
    """What a call of the program has recorded.

    Attributes:
        rows: records in between, such as the ends of steps, `(n, width)`.
        samples: records at sample times, `(m, width)`.
        end: record of the state that was reached.
        events: time, event functions that fired (by index), q and v of each event.
        status: of the run, see `event_search`.
        error: what a function raised that the program called.
    """

    rows: Array
    samples: Array
    end: Array
    events: list[tuple[float, list[int], Array, Array]]
    status: int
    error: BaseException | None = None

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        for x in (self.rows, self.samples, self.end):  # a sum is quick, but may overflow
            if x.size and not (math.isfinite(x.sum()) or np.isfinite(x).all()):
                return False
        return True


class PhaseProgram:
    """The program of a phase, with the state of its run.

    Attributes:
        items: name and action of each event function, in the order of the program.
        places: slices of the parts of a record.
        shapes: shapes of the parts of a record.
    """

    def __init__(
        self,
        own: _CompiledPhase,
        control: StepControl,
        watch: EventMonitor,
        order: Sequence[int],
        captured: Sequence[CapturedNumbers],
        called: Mapping[str, Callable[..., Any]],
    ) -> None:
        """Allocate the arguments.

        Args:
            own: what is compiled.
            control: how steps are chosen.
            watch: all conditions of the phase.
            order: their indices there, in the order of the program.
            captured: numbers that conditions capture from outside.
            called: the functions that Python computes: loads, and steps of implicit methods.
        """
        self.items, self._recorded = [watch.items[k] for k in order], own.recorded
        self._own = own
        self._order = list(order)
        self._lasting = np.argsort(order[: watch.lasting])
        self._kernel, self.shapes = own.kernel, own.shapes
        if isinstance(self._kernel, HostedProgram):
            self._kernel = self._kernel.bound(called)
        self.places, start = dict[str, slice](), 0
        for name, shape in own.shapes.items():
            stop = start + int(np.prod(shape))
            self.places[name], start = slice(start, stop), stop
        self._width = start
        self._captured = [(numbers, numbers()) for numbers in captured]
        self._spare = None if isinstance(own.kernel, HostedProgram) else own.spare
        self._memory = self._spare.pop() if self._spare else _Memory(self._kernel)
        self._inputs, self._outputs = self._memory.inputs, self._memory.outputs
        self._state, self._end = self._memory.state, self._memory.end
        for name, x in control.numbers.items():
            self._inputs[name][:] = x
        self._tries, self._step = FIRST_TRIES, control.step

    def release(self) -> None:
        """Leave the arguments to the next run of the same program; this one is over."""
        if self._spare is not None:
            self._spare.append(self._memory)

    def states(self, done: Advance) -> list[tuple[float, Array, Array]]:
        """Return time, q and v of all records of a call."""
        t, q, v = (self.places[name] for name in ("t", "q", "v"))
        return [(float(row[t][0]), row[q], row[v]) for row in (*done.rows, *done.samples)]

    def begin_slowly(self) -> None:
        """Return from the first calls early: a run that is saved has its first samples soon."""
        self._tries = 1

    @property
    def current(self) -> bool:
        """Whether the numbers that compiled conditions capture are still the same."""
        return all(numbers() == known for numbers, known in self._captured)

    def place_of(self, k: int) -> int:
        """Return the index of an event function among the conditions of the phase."""
        return self._order[k]

    @property
    def begun(self) -> bool:
        """Whether a call has been made in the phase."""
        return not self._inputs["entering"][0] > 0.5

    @property
    def loaded(self) -> bool:
        """Whether loads are polynomials and traced functions."""
        return self._own.loaded

    @property
    def moved(self) -> bool:
        """Whether joints have motions that are polynomials."""
        return "pieces" in self._inputs

    @property
    def z(self) -> Array:
        """The discrete states, those of conditions last."""
        return self._inputs["z"]

    @property
    def contact(self) -> Array:
        """Flags of the stops in contact."""
        return self._inputs["contact"].copy()

    @property
    def last_try(self) -> tuple[float, float, int, tuple[Array, Array, Array]]:
        """Length and error of the step that was tried last, number of tries, and q, v, x there."""
        own = {name: self._outputs[f"final {name}"].copy() for name in TRIED}
        length, error = float(own["length"][0]), float(own["error"][0])
        tried = int(self._inputs["tried"][0])
        return length, error, tried, (own["q end"], own["v end"], own["x end"])

    @property
    def looked(self) -> Array:
        """The event functions that are watched in all phases, in the order of the conditions."""
        return self._inputs["g"][self._lasting] if self._lasting.size else np.zeros(0)

    # State ----------------------------------------------------------------------------------------

    def begin(
        self, state: RunState, counts: Sequence[int], before: Sequence[float], anchor: Array
    ) -> None:
        """Begin a phase.

        Args:
            state: state of the run.
            counts: updates of each entry of the schedule so far.
            before: the lasting event functions at the end of the last phase.
            anchor: configuration in which joints are locked, `(nq,)`.
        """
        own = self._inputs
        self._state[:] = 0.0
        self.take(state, counts)
        own["fresh"][:], own["h"][:], own["entering"][:] = 1.0, self._step, 1.0
        if "g" in own:
            own["g"][self._lasting[: len(before)]] = before
            own["known"][:] = float(len(before))
        self.hold(anchor)

    def hold(self, anchor: Array) -> None:
        """Set the configuration in which joints are locked, `(nq,)`."""
        if "anchor" in self._inputs:
            self._inputs["anchor"][:] = anchor

    def fix(
        self, numbers: Mapping[str, Array], start: float, seed: int, run: int,
        momentum: Sequence[float] | None,
    ) -> None:  # fmt: skip
        """Set what does not change in a run.

        Args:
            numbers: latched parameters by name.
            start: start of the run, s.
            seed: of the noise.
            run: index of the run in its study.
            momentum: of the reduced model, `(6,)`; None: the full model.
        """
        own = self._inputs
        for name, x in numbers.items():
            own[parameter_name(name)][...] = x
        own["start"][:] = start
        if momentum is not None:
            own["momentum"][:] = momentum
        if "seed" in own:
            own["seed"][:] = float(seed & 0xFFFFFFFF), float(seed >> 32)
            own["run"][:] = float(run)

    def take(self, state: RunState, counts: Sequence[int]) -> None:
        """Take over the state of the run."""
        own, rests = self._inputs, state.carried()
        own["t"][:] = state.t
        for name, value, rest in zip(
            ("q", "v", "work", "x"), (state.q, state.v, state.work, state.x), rests, strict=True
        ):
            own[name][:], own[f"rest {name}"][:] = value, rest
        own["z"][: state.z.size] = state.z
        for i, count in enumerate(counts):
            own[f"tick {i}"][:] = float(count)

    def give(self, state: RunState, counts: list[int]) -> None:
        """Hand the state over to the run."""
        own, (moving, rests) = self._inputs, self._memory.moving
        w, rest = self._state[moving], self._state[rests]
        state.moved(own["t"].item(), own["q"].copy(), w, own["rest q"].copy(), rest)
        state.z = own["z"][: state.z.size].copy()
        counts[:] = self.counts(len(counts))

    def counts(self, size: int) -> list[int]:
        """Return the updates of each entry of a schedule of this size so far."""
        return [int(self._inputs[f"tick {i}"].item()) for i in range(size)]

    @property
    def cells(self) -> Array:
        """The state as one vector, for checkpoints."""
        return self._state.copy()

    def restore(self, cells: Array) -> None:
        """Continue from the state of a checkpoint."""
        self._state[:] = cells

    def follow(self, other: PhaseProgram) -> None:
        """Continue from the state of another program of the same phase."""
        self.restore(other.cells)
        for name in ("entering", "known"):
            if name in self._inputs:
                self._inputs[name][:] = other._inputs[name]

    # Calls ----------------------------------------------------------------------------------------

    def enter(
        self, until: float, bounds: tuple[float, float], phase_start: float, offset: float,
        loads: tuple[Array, Array] | None, pieces: Array | None,
    ) -> None:  # fmt: skip
        """Enter a segment.

        Args:
            until: its end, s.
            bounds: times between which loads are evaluated, s.
            phase_start: s.
            offset: start of the clock of the loads, s.
            loads: coefficients of drive forces and wrenches, see `SmoothLoads.coefficients`; None:
                Python computes them.
            pieces: coefficients of the motions of held joints, `(DEGREE + 1, nv)`.
        """
        own, (low, high) = self._inputs, bounds
        own["until"][:], own["low"][:], own["high"][:] = until, low, high
        own["phase start"][:] = phase_start
        for name, value in zip(("torque", "wrenches"), loads or (), strict=False):
            if input_name(name) in own:
                own[input_name(name)][:] = value.reshape(own[input_name(name)].shape)
        if input_name("since") in own:
            own[input_name("since")][:] = low - offset
        if pieces is not None:
            own["pieces"][:], own["piece start"][:] = pieces, low - offset

    def advance(
        self, times: Array, first_row: bool, pause: float = math.inf, single: bool = False
    ) -> Advance:
        """Make steps, up to the end of the segment at most.

        Args:
            times: sample times within the rest of the segment, `(m,)`, s; unused for steps.
            first_row: whether the state at the start is recorded, too.
            pause: no step is made that begins then or later, s.
            single: whether at most one step is tried.
        """
        own, tries = self._inputs, 1 if single else self._tries
        rows = min(max(tries, FIRST_ROWS), MOST_ROWS)
        steps = self._recorded.steps
        if self._recorded.shown:
            own["pause"][:] = min(pause, 1e300)
            if len(times) > 1 and pause < times[-1]:  # and the next one: steps may end there
                times = times[: bisect.bisect_right(times, pause) + 1]
        table = times if steps and self._recorded.shown else np.zeros(0)
        if not steps:
            ends = [*([own["t"][0]] if first_row else []), *times[:rows]]
            # beyond the samples of this call, the run goes on if there are no others
            table = np.array([*ends, *([own["until"][0]] if len(times) <= rows else [])])
        memory = self._memory
        memory.bind(rows + 4, len(table))
        own["budget"][:] = own["tried"] + float(tries)
        own["room"][:], own["event room"][:] = float(rows), float(MOST_EVENTS - 1)
        if steps:
            own["pending"][:] = float(first_row)
        memory.table[: len(table)] = table
        begun, error = time.perf_counter(), None
        try:
            memory.run(len(table))
        except BaseException as raised:  # by a function that is called
            error = raised
        took = time.perf_counter() - begun
        if took > LONGEST_CALL:
            self._tries = max(1, self._tries // 2)
        elif took < 0.3 * LONGEST_CALL and not math.isfinite(pause):
            self._tries = min(2 * self._tries, MOST_TRIES)
        self._state[:] = self._end
        found = self._result(table, first_row and not steps, min(rows, len(times)))
        return found if error is None else found._replace(error=error)

    def record(self, times: Array) -> Advance:
        """Record samples that are not after the state, without a step."""
        return self._standing(times, False)

    def state_at(self, t: float) -> Array:
        """Return the record at a time within the last step, or at its end."""
        return self._standing(np.array([t]), False).samples[0]

    @property
    def running(self) -> bool:
        """Whether no event has ended the phase."""
        return int(self._inputs["status"][0]) == RUNNING

    def start(self) -> Advance:
        """Enter a phase without duration, and record its state."""
        done = self._standing(np.zeros(0), True)
        self.accept()
        return done

    def row(self) -> Array:
        """Return the record of the state."""
        return self._standing(np.zeros(0), True).rows[0]

    def _standing(self, times: Array, first_row: bool) -> Advance:
        """Make a call without a step."""
        own, tries = self._inputs, self._tries
        until = own["until"].copy()
        own["until"][:] = own["t"]
        try:
            done = self.advance(times, first_row)
        finally:
            own["until"][:], self._tries = until, tries
        if done.error is not None:
            raise done.error
        return done

    def accept(self) -> None:
        """Note that the last call was good."""
        self._inputs["entering"][:] = 0.0

    def _result(self, table: Array, first_row: bool, asked: int) -> Advance:
        out, count = self._outputs, int(self._outputs["final row number"][0])
        rows = out["record"][:count].copy() if "record" in out else np.zeros((0, self._width))
        samples, end = np.zeros((0, self._width)), rows[-1] if count else np.zeros(self._width)
        if len(table):
            own = out["sample"][: len(table)].copy()
            inner = table < self._inputs["until"][0]  # as in the program: the end is exact
            close = np.where(inner, CLOSE * np.spacing(np.abs(table)), 0.0)
            reached = int(np.count_nonzero(out["late"][: len(table), 0] >= -close))
            skipped = int(first_row)
            samples, end = own[skipped : min(reached, skipped + asked)], own[-1]
            if first_row and reached:
                rows = np.concatenate([own[:1], rows])
        events = list[tuple[float, list[int], Array, Array]]()
        for k in range(int(out["final event row"][0])):
            fired = np.flatnonzero(out["event fired"][k] > 0.5).tolist()
            state = out["event q"][k].copy(), out["event v"][k].copy()
            events.append((float(out["event t"][k, 0]), fired, *state))
        return Advance(rows, samples, end, events, int(self._inputs["status"][0]))

    def proceed(self) -> None:
        """Let a run go on that an event has ended: the next phase."""
        if int(self._inputs["status"][0]) in (STOPPED, NEXT):
            self._inputs["status"][:] = float(RUNNING)


class _Memory:
    """The arguments and results of a program, at fixed places.

    Attributes:
        state: the state of the run, all its cells in a row; `end`: after a call.
        inputs: arguments by name; those of the state are views of it.
        outputs: results by name.
        table: sample times.
        moving: places of v, work and x in the state, and of their compensation terms.
        run: makes a call, with so many sample times.
    """

    def __init__(self, kernel: ProgramKernel | HostedProgram) -> None:
        self._kernel, interface = kernel, kernel.interface
        finals = [o for o in interface.outputs if o.name.startswith("final ")]
        sizes = {o.name[6:]: int(np.prod(o.shape)) for o in finals}
        kept = [s for s in interface.inputs if s.name in sizes]
        total = sum(sizes[s.name] for s in kept)
        self.state, self.end = np.zeros(total), np.zeros(total)
        self.inputs, self.outputs = dict[str, Array](), dict[str, Array]()
        places, start = dict[str, Array](), 0
        for cell in kept:
            stop = start + sizes[cell.name]
            places[cell.name] = np.arange(start, stop)
            self.inputs[cell.name] = self.state[start:stop].reshape(cell.shape)
            self.outputs[f"final {cell.name}"] = self.end[start:stop].reshape(cell.shape)
            start = stop
        self.moving = tuple(
            np.concatenate([places[f"{rest}{name}"] for name in ("v", "work", "x")])
            for rest in ("", "rest ")
        )
        for cell in interface.inputs:
            self.inputs.setdefault(cell.name, np.zeros(cell.shape))
        for output in finals:
            self.outputs.setdefault(output.name, np.zeros(output.shape))
        self._capacity, self._entries, self.table = 0, 0, np.zeros(0)

    def bind(self, rows: int, entries: int) -> None:
        """Make room for the records of a call."""
        if rows <= self._capacity and entries <= self._entries:
            return
        self._capacity = max(rows, self._capacity)
        self._entries = max(2 * entries, self._entries, 64) if entries else self._entries
        interface = self._kernel.interface
        sizes = {"records": self._capacity, "events": MOST_EVENTS}
        capacity = {name: sizes[name] for name in interface.buffers}
        for output in interface.outputs:
            if output.per != "run":
                axis = interface.axis(output, self._entries, capacity)
                self.outputs[output.name] = np.zeros((*axis, *output.shape))
        self.table = np.zeros(self._entries)
        self.run = self._kernel.single_run(
            [self.inputs[s.name] for s in interface.inputs],
            [self.outputs[o.name] for o in interface.outputs], capacity,
            [self.table] if interface.tables else [],
        )  # fmt: skip


# What is compiled -------------------------------------------------------------------------------


class _CompiledPhase:
    """A compiled program, and the shapes of its records."""

    def __init__(
        self, equations: RunEquations, tableau: Tableau, recorded: Recorded, key: str | None
    ) -> None:
        self.recorded, self.loaded = recorded, not equations.forces.called
        self.spare: list[_Memory] = []
        made = functools.partial(_program, equations, tableau, recorded)
        source: Any = made if key is not None else made()
        self.kernel = (
            HostedProgram(source, "run", key=key)
            if equations.forces.called or equations.hosted or equations.system.called_at_ticks
            or tableau.hosted
            else ProgramKernel(source, "run", key=key, lanes=1)
        )  # fmt: skip
        self.shapes = RunBlocks(equations, tableau, "float64", 0.0, bounded=True).record_shapes


def _program(equations: RunEquations, tableau: Tableau, recorded: Recorded) -> Program:
    return run_program(RunBlocks(equations, tableau, "float64", 0.0, bounded=True), recorded)


class PhasePlan(NamedTuple):
    """What the program of a phase is made of.

    Attributes:
        system: equations of the phase.
        phase: the phase.
        watch: all its event conditions.
        everywhere: events of the whole run.
        integrator: the method.
        control: how steps are chosen.
        recorded: what is recorded.
        first: whether it is the first phase.
    """

    system: PhaseDynamics
    phase: Phase
    watch: EventMonitor
    everywhere: Sequence[Event]
    integrator: Method
    control: StepControl
    recorded: Recorded
    first: bool


def phase_program(plan: PhasePlan, state: RunState, called: bool = False) -> PhaseProgram:
    """Return the program of a phase; Python computes what cannot be traced, see `HostedPart`.

    Args:
        plan: what it is made of.
        state: state of the run, at which conditions are tried.
        called: whether Python computes loads and conditions in any case: they may change.
    """
    system = plan.system
    hosted: frozenset[HostedPart] = frozenset()
    if called or not all(_of_robot(e) or is_pure(e.condition) for e in _events(plan)):
        hosted |= {"events"}
    if not all(_has_pieces(system, n) for n in system.held if n in plan.phase.prescribed):
        hosted |= {"motions"}
    if system.stops.count and math.isfinite(plan.integrator.stable):
        hosted |= {"stability"}
    more: tuple[frozenset[HostedPart], ...] = frozenset(), frozenset({"events"})
    for part in more if system.programmable else ():
        try:
            return _made(plan, state, hosted | part, called)
        except _NotTraceable:
            continue
    large = {"dynamics"} if system.large else set[HostedPart]()
    return _made(plan, state, hosted | large | {"system", "events"}, called)


class _NotTraceable(Exception):
    """A condition or a component cannot be traced: it is called, and then explained."""


def _events(plan: PhasePlan) -> tuple[Event, ...]:
    """Return the events that users gave."""
    return *plan.everywhere, *plan.phase.events


def _made(
    plan: PhasePlan, state: RunState, hosted: frozenset[HostedPart], called: bool
) -> PhaseProgram:
    """Return the program in which Python computes some parts.

    Raises:
        _NotTraceable: if it would have to compute others, too.
    """
    system, phase, watch, recorded = plan.system, plan.phase, plan.watch, plan.recorded
    model, latched, everywhere = system.model, system.latched, plan.everywhere
    tableau = plan.control.tableau
    loads = None if called or "system" in hosted else system.given.smooth
    prescribed = tuple(n for n in system.held if n in phase.prescribed and "motions" not in hosted)
    functions: dict[str, Callable[..., Any]] = {} if loads is not None else system.given.called
    events = _events(plan)
    captured: list[CapturedNumbers] = []
    if "events" in hosted:
        events = _named_only(events, watch, system, state)
    else:
        captured = [CapturedNumbers(e.condition) for e in events if not _of_robot(e)]
    acting = System(latched.robot) if model.system is None else latched.open_system(model.system)
    limits = None if watch.limits is None else joint_limits(latched.robot, watch.limits, plan.first)
    effort = None if system.effort is None else tuple(system.effort.tolist())
    parts = None
    if model.system is not None:
        parts = _structure(acting) if "system" in hosted else acting.kernel_parts()
    settings = (
        model.formulation, model.passive, effort, phase.torque is None, tuple(functions),
        None if loads is None else (loads.degree, loads.placed, loads.pushes), tableau,
        recorded, latched.names, system.held, prescribed, phase.own_clock,
        None if limits is None else limits.action, plan.first, model.momentum is not None,
        tuple(sorted(hosted)),
    )  # fmt: skip
    captured_by_loads = () if loads is None else loads.captured
    told = [(e.condition, e.direction, e.action, e.at_start) for e in events]
    tables = tables_digest()
    code = code_key(parts, told) if parts or told else ""
    key, wide = None, len(everywhere)
    if tables is not None and code is not None:
        key = (tables, code, captured_by_loads, id(latched.robot), wide, *settings)

    def compiled(_: None) -> _CompiledPhase:
        made = _with_conditions(acting, events[:wide], events[wide:], "system" in hosted)
        new = [n for n in made.components if n not in acting.components]
        # those of the whole run are first watched in the first phase
        started = frozenset(made.components if plan.first else new[wide:])
        equations = RunEquations(
            made, _forces(loads, phase, functions), latched.names, model.formulation,
            model.passive, dict.fromkeys(system.held), phase.own_clock, started, effort, limits,
            works=True, pieces=prescribed, reduced=model.momentum is not None,
            hosted=hosted,
        )  # fmt: skip
        entry = None
        if key is not None:
            values = vars(tableau), vars(recorded), captured_by_loads
            plain = tuple(x for x in settings if x is not tableau and x is not recorded)
            entry = value_key(_program, latched.robot, parts, told, values, plain)
        try:
            return _CompiledPhase(equations, tableau, recorded, entry)
        except RemoraError as error:
            if "system" in hosted:
                raise
            raise _NotTraceable from error

    own = remembered("phase", key, latched.robot, lambda: None, compiled)
    count = len(model.system.events) if model.system is not None else 0
    order = [*range(wide, wide + count), *range(wide), *range(wide + count, len(watch.items))]
    functions |= HostedParts(system, plan.integrator, watch, order, tableau.degree).functions
    return PhaseProgram(own, plan.control, watch, order, captured, functions)


def _named_only(
    events: Sequence[Event], watch: EventMonitor, system: PhaseDynamics, state: RunState
) -> tuple[Event, ...]:
    """Return events without their conditions, which Python evaluates.

    One whose condition is a truth value occurs when it becomes true, unless it has a direction.
    """
    t, given = state.t, system.given
    system.z = state.z
    _, truths = watch.event_values(t, given.time_of_phase(t), state.q, state.v, state.x)
    own = [t for t, item in zip(truths.tolist(), watch.items, strict=False) if item.component < 0]
    return tuple(
        replace(event, condition=_elsewhere, direction=event.direction or int(truth))
        for event, truth in zip(events, own, strict=True)
    )


def _elsewhere(t: Array, q: Array, v: Array) -> Array:
    """Return a number: the condition is evaluated by Python."""
    return 1.0 + 0.0 * t


def _structure(system: System) -> tuple[Any, ...]:
    """Return all that a program depends on in which Python evaluates the components."""
    layouts = {name: own.noise for name, own in system.layouts.items()}
    events = [(str(event), event.crossing) for event in system.events]
    sizes = system.nx, system.nz, [shape for shape, _ in system.signals.values()]
    actions = [type(a).__name__ for own in system.layouts.values() for a in own.actions]
    return system.schedule, events, layouts, sizes, actions, system.event_places


def _of_robot(event: Event) -> bool:
    return isinstance(event.condition, RobotCondition)


def _has_pieces(system: PhaseDynamics, name: str) -> bool:
    """Return whether the motion of a joint is made of polynomials in its coordinates."""
    return system.motions.has_pieces(name) and in_coordinates(system.robot.joints[name])


def _with_conditions(
    acting: System, everywhere: Sequence[Event], events: Sequence[Event], hosted: bool
) -> System:
    """Return a system with events as components, or raise if one of them cannot be traced.

    Args:
        acting: the system.
        everywhere: events of the whole run.
        events: events of the phase.
        hosted: whether Python evaluates the components.
    """
    if not everywhere and not events:
        return acting
    try:
        added = conditions(acting.robot, everywhere, events)
        made = acting.with_components({c.name: c for c in added})
    except Exception as error:  # whatever a user's function raises
        if hosted:
            raise
        raise _NotTraceable from error
    if made.called_in_between and not hosted:
        raise _NotTraceable
    return made


def _forces(
    loads: SmoothLoads | None, phase: Phase, called: Mapping[str, Callable[..., Any]]
) -> Forces:
    """Return the loads as polynomials whose coefficients are arguments, and traced functions.

    Args:
        loads: the loads between two breaks; None: Python computes them.
        phase: the phase.
        called: the functions of loads that Python computes.
    """
    if loads is None:
        names: dict[str, Any] = dict.fromkeys(called)
        return Forces(None, None, called=names)
    rows = loads.degree + 1

    def value(what: str, own: Any) -> Law:
        def force(t: Array, q: Array, v: Array, **given: Array) -> Array:
            found = horner((t - given["since"]).reshape((1,)), given[what])
            traced = own(t)
            return found if traced is None else found + traced

        return force

    torque = None if phase.torque is None else value("torque", loads.torque)
    wrenches = value("wrenches", loads.wrenches) if loads.pushes else None
    inputs: list[Signature] = []
    if torque is not None:
        inputs.append(Signature("torque", (rows, *loads.torque_shape)))
    if wrenches is not None:
        inputs.append(Signature("wrenches", (rows, *loads.wrench_shape)))
    if inputs:
        inputs.append(Signature("since", (1,)))
    return Forces(torque, wrenches, tuple(inputs))


def horner(s: Array, coefficients: Array) -> Array:
    """Return Σ cₖ sᵏ of coefficients `(n, ...)` at s `(1,)`."""
    found: Array = coefficients[-1]
    for row in coefficients[-2::-1] if len(coefficients) > 1 else ():
        found = found * s + row
    return found


def pieces_of(system: PhaseDynamics, low: float, high: float) -> Array | None:
    """Return the polynomials of the prescribed joints between two times of their clock, s."""
    found = np.zeros((DEGREE + 1, system.robot.nv))
    moving = False
    for name in system.motions.prescribed:
        found[:, system.robot.joints[name].v] = system.motions.pieces(name, low, high)
        moving = True
    return found if moving else None
