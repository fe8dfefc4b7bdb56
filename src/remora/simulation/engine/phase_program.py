"""A phase of a single run in machine code: the program of batches for one run.

The program makes steps, updates sampled components, locates events, and records. It returns when a
segment ends, its records are full, or it has tried many steps, and goes on in the next call with
the same bits. Between calls, Python samples controllers and enters the next segment.
"""

from __future__ import annotations

import bisect
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_hosted import HostedProgram
from remora.codegen.ir.graph import Signature
from remora.components.system import System
from remora.dynamics.kernels.cache_keys import tables_digest, value_key
from remora.errors import RemoraError
from remora.identity.digest import code_key
from remora.identity.recent import Recent
from remora.model.joints import in_coordinates
from remora.model.robot import Robot
from remora.simulation.engine.hosted_step import HostedStep
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
from remora.simulation.integrators.table import Integrator
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.phase.phase_loads import SmoothLoads
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_conditions import conditions
from remora.simulation.program.event_search import NEXT, RUNNING, STOPPED
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import (
    Forces,
    Law,
    RunEquations,
    input_name,
    parameter_name,
)
from remora.simulation.program.run_program import STEP, Recorded, StepControl, run_program

#: A call makes fewer steps if the last one took longer than this, s: Ctrl-C waits for its end.
LONGEST_CALL = 0.03
#: Tries of the first call and of any call, and the largest number of rows that a call records.
FIRST_TRIES, MOST_TRIES, MOST_ROWS = 128, 1_000_000, 4096
#: Events that a call records.
MOST_EVENTS = 64
#: Maximum number of kernels that are kept.
MOST_KEPT = 16


class Advance(NamedTuple):
    """What a call of the program has recorded.

    Attributes:
        rows: records in between, such as the ends of steps, `(n, width)`.
        samples: records at sample times, `(m, width)`.
        end: record of the state that was reached.
        events: time, event functions that fired (by index), q and v of each event.
        status: of the run, see `event_search`.
        start: whether the state at the start of the phase is to be recorded elsewhere.
        error: what a function raised that the program called; the state is that before its step.
    """

    rows: Array
    samples: Array
    end: Array
    events: list[tuple[float, list[int], Array, Array]]
    status: int
    start: bool = False
    error: BaseException | None = None

    @property
    def finite(self) -> bool:
        """Whether all numbers are."""
        parts = (x for x in (self.rows, self.samples, self.end) if x.size)
        return all(math.isfinite(float(x.sum())) or bool(np.isfinite(x).all()) for x in parts)


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
    def h(self) -> float:
        """The next step size, s."""
        return float(self._inputs["h"][0])

    @property
    def tried(self) -> int:
        """Number of steps tried so far."""
        return int(self._inputs["tried"][0])

    @property
    def looked(self) -> Array:
        """The event functions that are watched in all phases, in the order of the conditions."""
        return self._inputs["g"][self._lasting] if self._lasting.size else np.zeros(0)

    def conditions(self) -> Array:
        """Return the event functions in the order of the conditions of the phase.

        One that a reset left at zero is on the side from which its event came.
        """
        if not self._order:
            return np.zeros(0)
        g, found = self._inputs["g"], np.zeros(len(self._order))
        if "rebound" in self._inputs:
            way = self._inputs["rebound"]
            g = np.where(way != 0.0, -1e-300 * np.sign(way), g)
        found[self._order] = g[: len(self._order)]
        return found

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
        own = self._inputs
        w, rest = (
            np.concatenate([own[f"{p}{n}"] for n in ("v", "work", "x")]) for p in ("", "rest ")
        )
        state.moved(float(own["t"][0]), own["q"].copy(), w, own["rest q"].copy(), rest)
        state.z = own["z"][: state.z.size].copy()
        counts[:] = [int(own[f"tick {i}"][0]) for i in range(len(counts))]

    @property
    def cells(self) -> Array:
        """The state as one vector, for checkpoints."""
        return self._state.copy()

    def restore(self, cells: Array) -> None:
        """Continue from the state of a checkpoint."""
        self._state[:] = cells

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

    def advance(self, times: Array, first_row: bool, pause: float = math.inf) -> Advance:
        """Make steps, up to the end of the segment at most.

        Args:
            times: sample times within the rest of the segment, `(m,)`, s; unused for steps.
            first_row: whether the state at the start is recorded, too.
            pause: no step is made that begins then or later, s.
        """
        own = self._inputs
        rows = min(self._tries, MOST_ROWS)
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
        own["budget"][:] = own["tried"] + float(self._tries)
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
        done = self.advance(times, first_row)
        own["until"][:], self._tries = until, tries
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
        start = 0
        for cell in kept:
            stop = start + sizes[cell.name]
            self.inputs[cell.name] = self.state[start:stop].reshape(cell.shape)
            self.outputs[f"final {cell.name}"] = self.end[start:stop].reshape(cell.shape)
            start = stop
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
        self.recorded = recorded
        self.spare: list[_Memory] = []
        made = functools.partial(_program, equations, tableau, recorded)
        source: Any = made if key is not None else made()
        self.kernel = (
            HostedProgram(source, "run", key=key) if equations.forces.called or tableau.hosted
            else ProgramKernel(source, "run", key=key, lanes=1)
        )  # fmt: skip
        self.shapes = RunBlocks(equations, tableau, "float64", 0.0, bounded=True).record_shapes


def _program(equations: RunEquations, tableau: Tableau, recorded: Recorded) -> Program:
    return run_program(RunBlocks(equations, tableau, "float64", 0.0, bounded=True), recorded)


def phase_program(
    system: PhaseDynamics,
    phase: Phase,
    watch: EventMonitor,
    everywhere: Sequence[Event],
    integrator: Integrator,
    control: StepControl | None,
    recorded: Recorded,
    first: bool,
    finest: float,
) -> PhaseProgram | None:
    """Return the program of a phase; None if a part of it must be called in Python.

    Args:
        system: equations of the phase.
        phase: the phase.
        watch: all its event conditions.
        everywhere: events of the whole run.
        integrator: the method.
        control: how steps are chosen; None: in Python.
        recorded: what is recorded.
        first: whether it is the first phase.
        finest: times closer than this are the same, s.
    """
    if control is None or not system.programmable:
        return None
    model = system.model
    if system.stops.count and math.isfinite(integrator.stable):
        return None  # steps that the stops make unstable are refused
    if model.system is not None and any(u.sample_time <= finest for u in model.system.schedule):
        return None  # time does not resolve it: it is refused
    loads, latched = system.given.smooth, system.latched
    prescribed = tuple(name for name in system.held if name in phase.prescribed)
    if not all(_has_pieces(system, name) for name in prescribed):
        return None
    called = system.given.called if loads is None else {}
    events = *everywhere, *phase.events
    captured = [CapturedNumbers(e.condition) for e in events if not _of_robot(e)]
    if not all(_of_robot(e) or is_pure(e.condition) for e in events):
        return None
    acting = System(latched.robot) if model.system is None else latched.open_system(model.system)
    limits = None if watch.limits is None else joint_limits(latched.robot, watch.limits, first)
    effort = None if system.effort is None else tuple(system.effort.tolist())
    parts = None if model.system is None else model.system.kernel_parts()
    settings = (
        model.formulation, model.passive, effort, phase.torque is None, tuple(called),
        None if loads is None else (loads.degree, loads.placed, loads.pushes), control.tableau,
        recorded, latched.names, system.held, prescribed, phase.own_clock,
        None if limits is None else limits.action, first, model.momentum is not None,
    )  # fmt: skip
    captured_by_loads = () if loads is None else loads.captured
    told = [(e.condition, e.direction, e.action, e.at_start) for e in events]
    tables = tables_digest()
    code = code_key(parts, told) if parts or told else ""
    key = None
    if tables is not None and code is not None:
        key = (tables, code, captured_by_loads, id(latched.robot), len(everywhere), *settings)
    known = _kept.get(key)
    if known is None:
        made = _with_conditions(acting, everywhere, phase.events)
        if made is None:
            return None
        new = [n for n in made.components if n not in acting.components]
        # those of the whole run are first watched in the first phase
        started = frozenset(made.components if first else new[len(everywhere) :])
        equations = RunEquations(
            made, _forces(loads, phase, called), latched.names, model.formulation, model.passive,
            dict.fromkeys(system.held), phase.own_clock, started, effort, limits, works=True,
            pieces=prescribed, reduced=model.momentum is not None,
        )  # fmt: skip
        entry = None
        if key is not None:
            values = vars(control.tableau), vars(recorded), captured_by_loads
            plain = tuple(x for x in settings if x is not control.tableau and x is not recorded)
            entry = value_key(_program, latched.robot, parts, told, values, plain)
        try:
            own = _CompiledPhase(equations, control.tableau, recorded, entry)
        except RemoraError:  # what cannot be traced is called, and then explained
            return None
        known = _kept.keep(key, (own, latched.robot))
    count = len(model.system.events) if model.system is not None else 0
    wide = len(everywhere)
    order = [*range(wide, wide + count), *range(wide), *range(wide + count, len(watch.items))]
    functions: dict[str, Callable[..., Any]] = dict(called)
    if control.tableau.hosted:
        functions[STEP] = HostedStep(system, integrator)
    return PhaseProgram(known[0], control, watch, order, captured, functions)


#: Compiled programs by their settings, with the robot whose identity is in the key.
_kept: Recent[tuple[Any, ...], tuple[_CompiledPhase, Robot]] = Recent(MOST_KEPT)


def _of_robot(event: Event) -> bool:
    return isinstance(event.condition, RobotCondition)


def _has_pieces(system: PhaseDynamics, name: str) -> bool:
    """Return whether the motion of a joint is made of polynomials in its coordinates."""
    return system.motions.has_pieces(name) and in_coordinates(system.robot.joints[name])


def _with_conditions(
    acting: System, everywhere: Sequence[Event], events: Sequence[Event]
) -> System | None:
    """Return a system with events as components; None if one of them cannot be traced."""
    if not everywhere and not events:
        return acting
    try:
        added = conditions(acting.robot, everywhere, events)
        names = {**acting.components, **{c.name: c for c in added}}
        made = System(acting.robot, names, dict(acting.connections))
    except Exception:  # whatever a user's function raises: the run loop calls and explains it
        return None
    return None if made.untraceable else made


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
