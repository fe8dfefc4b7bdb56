"""Run loop: executes the phases of a run, records samples, and stores how the run ended."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.run_signals import entered
from remora.dynamics.constraints.switch_equations import latched_field
from remora.errors import RemoraError, SimulationError
from remora.simulation.engine.phase_dynamics import PhaseDynamics, RunSettings
from remora.simulation.engine.phase_loop import Pause, PhaseLoop
from remora.simulation.engine.phase_program import (
    Advance,
    PhasePlan,
    PhaseProgram,
    phase_program,
)
from remora.simulation.engine.progress import ProgressReporter
from remora.simulation.engine.reduced_phase_dynamics import phase_dynamics
from remora.simulation.engine.step_faults import StepFaults
from remora.simulation.inputs.events import Action, Event, EventMonitor
from remora.simulation.inputs.phases import Phase, check_reach, total_duration
from remora.simulation.inputs.robot_loads import refuse_torque_of_held
from remora.simulation.inputs.run_settings import Integrator
from remora.simulation.integrators.step_control import refuse_unresolved
from remora.simulation.phase.latched_numbers import latched_in_phase
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_search import RUNNING
from remora.simulation.program.phase_entry import PhaseEntry
from remora.simulation.program.run_program import Recorded, StepControl
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.recording.constraint_switch import ConstraintSwitch, robot_in_phase
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.recorder import Recorder

#: Calls of the program whose rows are recorded together.
MOST_PARTS = 64
_NOTHING = np.zeros(0)


class RunPlan(NamedTuple):
    """Settings of a run.

    Attributes:
        model: the robot and its equations.
        integrator: settings of the steps, with the method.
        phases: the phases.
        events: events watched in all phases.
        limits: treatment of violated joint limits; None: ignore.
        times: sample times, `(n,)`, the start first; None: every step.
        breaks: times that no step crosses, s.
        seed: seed of the components' noise.
        run: index of the run in its study.
        paused: whether the run can pause at any time, see `RunLoop.advance`.
    """

    model: RunSettings
    integrator: Integrator
    phases: tuple[Phase, ...]
    events: tuple[Event, ...]
    limits: Action | None
    times: Array | None
    breaks: tuple[float, ...]
    seed: int = 0
    run: int = 0
    paused: bool = False


class PausedRun(NamedTuple):
    """A state that a run in memory can be taken back to.

    Attributes:
        mark: the state; None: the start of the run.
        segment: state at the start of the segment without discontinuities that it is in.
        first: initial q, v, x and z.
        phases: the phases.
    """

    mark: Checkpoint | None
    segment: Checkpoint | None
    first: tuple[Array, ...]
    phases: tuple[Phase, ...]


class RunLoop:
    """A run in progress."""

    def __init__(
        self, plan: RunPlan, recorder: Recorder, start: float, q: Array, v: Array, progress: Any
    ) -> None:
        """Initialize; a run with a checkpoint continues from it. Progress: `ProgressReporter`."""
        self._plan, self._recorder, self._model = plan, recorder, plan.model
        self._start = start
        robot, system = plan.model.robot, plan.model.system
        states = () if system is None else (system.initial_x, system.initial_z)
        self._first = q.copy(), v.copy(), *states
        self._state = self._initial()
        self._pause = Pause(marked=self._mark_segment if plan.paused else None)
        self._segment: Checkpoint | None = None
        self._stop = start
        #: Updates of each entry of the system's schedule so far.
        self._updates = [0] * (0 if system is None else len(system.schedule))
        self._rows: list[Array] = []  # of the program, not recorded yet
        self._made_by: PhaseProgram | None = None
        end = self._end = start + total_duration(plan.phases)
        self._next = 0  # index of the next sample time
        self._phase = 0
        self._last = -np.inf  # time of the last sample
        mark = recorder.checkpoint
        if mark is not None:
            self._state.restore(mark)
            self._updates[:] = mark.updates
            self._next, self._last = mark.next, recorder.last
        self._run, self._begun = self._phases(mark), False
        self._watcher = ProgressReporter(robot, start, end, q, v, progress, self._state.t)

    def _initial(self) -> RunState:
        """Return the state at the start of the run."""
        return RunState(self._plan.model.robot, self._start, *self._first)

    def go(self) -> Recording:
        """Run and return the recording; it is stored however the run ends."""
        try:
            self.advance()
        except KeyboardInterrupt:
            message = f"interrupted at t = {self._state.t:.9g} s"
            self._finish("interrupted", message)
            warnings.warn(f"{message}: what was computed is kept", RuntimeWarning, stacklevel=4)
        finally:
            self._watcher.close()
            self._release()
        return self._recorder.recording()

    def advance(self, until: float = math.inf) -> None:
        """Make steps until the state is not before a time; it is that of the end of a step.

        A run that has reached its end is finished, and stored however it ends. Any sequence of
        calls makes the same steps.

        Args:
            until: s.
        """
        state, self._pause.t = self._state, until
        if self.ended or (self._begun and state.t >= until and not self._finishes(until)):
            return
        self._begun = True
        try:
            next(self._run)
            if self._finishes(until):
                self._pause.t = math.inf
                next(self._run)
        except StopIteration as end:
            self._watcher.look(state.t, state.q, state.v, last=True)
            self._finish("complete", end.value)
        except KeyboardInterrupt:
            raise
        except RemoraError as error:
            raise self._failed(error) from error
        except BaseException as error:
            self._failed(RemoraError(f"{type(error).__name__}: {error}"))
            raise

    def _finish(self, status: str, message: str) -> None:
        try:
            self._recorder.finish(status, message)
        except RemoraError as error:
            raise self._failed(error) from error

    @property
    def ended(self) -> bool:
        """Whether the run has ended, for whatever reason."""
        return self._recorder.status != "running"

    def _failed(self, why: RemoraError) -> SimulationError:
        """Record the cause, on disk too unless writing failed, and return the error."""
        reason = why.reason if isinstance(why, SimulationError) else str(why)
        time = why.time if isinstance(why, SimulationError) else self._state.t
        error = SimulationError(reason, time)
        with contextlib.suppress(RemoraError):
            self._recorder.finish("failed", str(error))
        error.recording = self._recorder.recording()
        return error

    def _finishes(self, until: float) -> bool:
        """Return whether the step that a run has made last reaches its end by a time, s."""
        ended, last = self._drive.ended, self._phase + 1 == len(self._plan.phases)
        stopped = ended is not None and (last or ended.watched.action == "stop")
        return self._state.t <= until and (stopped or (last and self._state.t >= self._stop))

    # A run that pauses ----------------------------------------------------------------------------

    def _mark_segment(self) -> None:
        """Store the state at the start of a segment, to which the run can be taken back."""
        self._segment = self._marked()

    def mark(self) -> PausedRun:
        """Return the state of a paused run; if it has ended, that at the start of its segment."""
        if not self._begun or self.ended:
            return PausedRun(self._segment, self._segment, self._first, self._plan.phases)
        now = self._marked()
        return PausedRun(now, self._segment, self._first, self._plan.phases)

    def rewind(self, to: PausedRun | None = None) -> None:
        """Take the run back to a state of `mark`; samples and events after it are removed.

        Args:
            to: the state; None: start of the segment, the last one that a run can be taken back to.
        """
        if to is None:
            to = PausedRun(self._segment, self._segment, self._first, self._plan.phases)
        recorder, mark = self._recorder, to.mark
        self._run.close()
        self._rows.clear()
        recorder.truncate(mark)
        self._segment, self._first = to.segment, to.first
        self._plan = self._plan._replace(phases=to.phases)
        self._begun, self._phase, self._next, self._last = False, 0, 0, recorder.last
        self._model = self._plan.model
        self._state = self._initial()
        self._updates[:] = [0] * len(self._updates)
        if mark is not None:
            self._state.restore(mark)
            self._updates[:] = mark.updates
            self._next = mark.next
        self._run = self._phases(mark)

    def land(self, t: float) -> None:
        """End a segment at a time that a paused run has reached: no step crosses it.

        The steps since the last discontinuity are made again, as if that were one, too. At the
        start of the run, it is taken back there.
        """
        if t == self._start:
            self._segment = None
            self.rewind()
            return
        self.advance(t)
        while not (self.ended or (self._state.t == t and self._drive.inside().segment[1] == t)):
            mark = self._segment
            assert mark is not None
            inside = mark.inside._replace(segment=(mark.inside.segment[0], t))
            self._segment = mark._replace(inside=inside)
            self.rewind()
            self.advance(t)

    def change(self, z: Array | None = None) -> None:
        """Note that loads have changed, and discrete states: `land` has reached the state."""
        if z is not None:
            self._state.z = z
            self._first = (*self._first[:3], z) if not self._begun else self._first
        if self._begun:
            self._drive.jumped()
            self._segment = self._marked()

    def replan(self, phases: tuple[Phase, ...], load: str) -> None:
        """Let phases with another load follow from the state that `land` has reached."""
        self._plan = self._plan._replace(phases=phases)
        if self._begun:
            mark, given = self._marked(), self._system.given
            gone = given.controllers_of(load)
            kept = [k for k, c in enumerate(given.controllers) if c not in gone]
            asked, orders = ([x[k] for k in kept] for x in (mark.inside.asked, mark.inside.orders))
            self._segment = mark._replace(inside=mark.inside._replace(asked=asked, orders=orders))
            self.rewind()

    @property
    def state(self) -> RunState:
        """The state at the end of the last step."""
        return self._state

    def phase_from(self, t: float) -> Phase:
        """Return the phase of the steps that follow a time, which a paused run has reached."""
        over = self._state.t <= t and (self._drive.ended is not None or t >= self._stop)
        return self._plan.phases[min(self._phase + over, len(self._plan.phases) - 1)]

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return q, v and all signals at a time within the last step, or at its end.

        A run that has failed at its start has no signals.
        """
        if self.ended and not len(self._recorder):
            return self._state.q.copy(), self._state.v.copy(), _NOTHING
        if self.ended:
            row = self._recorder.recording().columns
            names = self._recorder.signals
            signals = [np.ravel(row[name][-1]) for name in names]
            return row["q"][-1], row["v"][-1], np.concatenate([_NOTHING, *signals])
        program = self._made_by
        assert program is not None
        row = program.state_at(t)
        signals = program.places.get("signals", slice(0, 0))
        return row[program.places["q"]], row[program.places["v"]], row[signals]

    # Phases ---------------------------------------------------------------------------------------

    def _phases(self, mark: Checkpoint | None) -> Generator[None, None, str]:
        """Execute all phases; return the reason for an early end, if any."""
        state, plan = self._state, self._plan
        before: list[float] = []  # the conditions of the events of the whole run
        ended = None
        for index in range(len(plan.phases)):
            phase = self._plan.phases[index]
            if mark is not None and index < mark.phase:
                continue
            resumed = mark if mark is not None and index == mark.phase else None
            if resumed is None and index and phase.after_event and ended is None:
                self._record_end()
                name = phase.name or f"phase {index + 1}"
                return f"no event led to {name!r}: ended at t = {state.t:.9g} s"
            if resumed is None and index and phase.switches:
                self._record_end()  # the state before the impulse
            self._phase = index
            if resumed is None:
                self._recorder.phase_starts.append(state.t)
                self._entered = state.q.copy()
            else:
                self._entered = resumed.entered
            start = self._recorder.phase_starts[index]
            stop = self._stop = start + phase.duration
            self._switch(index, phase, resumed is not None)
            if resumed is None:
                if self._model.system is not None:
                    state.z = entered(self._model.system.phase_place, state.z, index, state.t)
                check_reach(self._model.robot, phase, state.q, state.v)
            system = self._system = phase_dynamics(self._model, phase, start, self._entered)
            watch = self._watched(phase, system)
            planned = self._planned(index, phase, system, watch)
            program = self._program(planned)
            first_row = False
            if resumed is None:
                first_row = self._enter(index, phase, stop, watch)
            else:
                for hold, order in zip(system.controllers, resumed.inside.orders, strict=True):
                    hold.value = order
            drive = PhaseLoop(
                system, state, self._updates, program,
                functools.partial(self._program, planned, called=True),
                StepFaults(system, state, plan.integrator, watch), self._advanced, self._following,
                start, self._pause, first_row,
            )  # fmt: skip
            self._drive = drive
            inside = None if resumed is None else resumed.inside
            try:
                landings = [t for t in plan.breaks if start < t < stop]
                ended = yield from drive.run(stop, landings, inside, before)
            finally:
                self.flush()
            before = drive.lasting
            if ended is not None and ended.watched.action == "stop":
                self._record_end()
                return f"stopped by {ended.watched.name!r} at t = {ended.t:.9g} s"
        self._record_end()
        return ""

    def _planned(
        self, index: int, phase: Phase, system: PhaseDynamics, watch: EventMonitor
    ) -> PhasePlan:
        """Return what the program of a phase is made of."""
        plan, own, model = self._plan, self._plan.integrator, self._model
        updates = () if model.system is None else model.system.schedule
        refuse_unresolved(self._start, self._end, [p.duration for p in plan.phases], updates)
        steps = plan.times is None
        recorded = Recorded(
            single=True, steps=steps, dense=not (steps or own.step_to_samples), shown=plan.paused
        )  # fmt: skip
        everywhere = [e.on(plan.model.robot) for e in plan.events]
        return PhasePlan(
            system, phase, watch, everywhere, own.row, StepControl.of(own), recorded, index == 0
        )

    def _program(self, planned: PhasePlan, called: bool = False) -> PhaseProgram:
        """Return the program of a phase, see `phase_program`."""
        self.flush()
        self._release()
        plan, latched = self._plan, planned.system.latched
        made = phase_program(planned, self._state, called)
        numbers = dict(zip(latched.names, latched.values, strict=True))
        made.fix(numbers, self._start, plan.seed, plan.run, plan.model.momentum)
        made.hold(self._entered)
        if self._recorder.saves:
            made.begin_slowly()
        self._made_by = made
        return made

    def _watched(self, phase: Phase, system: PhaseDynamics) -> EventMonitor:
        """Return the conditions of a phase."""
        plan, components = self._plan, system.components
        robot = self._model.robot
        own = plan.model.robot
        events = [e.on(own) for e in plan.events], [e.on(own) for e in phase.events]
        if components is None:
            return EventMonitor(robot, *events, plan.limits)

        def crossings(t: float, q: Array, v: Array, x: Array) -> Array:
            return components.crossings(t, q, v, x, system.z)

        return EventMonitor(robot, *events, plan.limits, components.system.events, crossings)

    # Start of a phase ---------------------------------------------------------------------------

    def _switch(self, index: int, phase: Phase, resumed: bool) -> None:
        """Take over the constraints that act in a phase; the state is changed in `_enter`."""
        model, switches, state = self._plan.model, self._recorder.switches, self._state
        before = latched_in_phase(model.robot, switches, index - 1, True)
        if not resumed and phase.switches:
            on, off = tuple(phase.activate), tuple(phase.release)
            switches.append(ConstraintSwitch(state.t, index, on, off))
        acting = latched_in_phase(model.robot, switches, index, True).robot
        held = *phase.prescribed, *phase.locked
        entry = PhaseEntry(index, phase, before.robot, acting, before.names, held)
        numbers = {n: x[None] for n, x in zip(before.names, before.values, strict=True)}
        self._entry, self._numbers, self._latched = entry, numbers, dict[str, Array]()
        if not resumed and entry.latches:
            self._latched = entry.latched(state.q[None], numbers)
            taken = {
                name: {latched_field(acting, name): self._latched[to][0]}
                for name, to in entry.latches.items()
            }
            switches[-1] = replace(switches[-1], latched=taken)
        latched = latched_in_phase(model.robot, switches, index, model.system is not None)
        robot = latched.robot
        if latched.values:
            robot = robot_in_phase(model.robot, switches, index)
        system = model.system if model.system is None else model.system.acting_on(robot)
        self._model = model._replace(robot=robot, system=system, latched=latched)

    def _jumped(self, phase: Phase) -> bool:
        """Bring the state to what holds from now on, or raise; return whether a speed jumped."""
        state, system, recorder = self._state, self._system, self._recorder
        held = (*phase.prescribed, *phase.locked)
        refuse_torque_of_held(self._plan.model.robot, held, phase.torque)
        q, v = state.q.copy(), state.v.copy()
        system.motions.set(state.t, q, v)
        done = self._entry.enter(
            state.q[None], state.v[None], (q[None], v[None]), self._numbers, self._latched
        )
        if done.faults:
            raise SimulationError(done.faults[0], state.t)
        system.look_ahead(state.t, state.t + phase.duration)
        changed, pushed = bool(done.changed[0]), bool(done.jumped[0])
        if changed:
            state.q, state.v = done.q[0].copy(), done.v[0].copy()
            state.forget()
        system.set_held(state.t, state.q, state.v)
        if changed:
            system.center_chart(state.q)
        energy, apart = float(done.energy[0]), float(done.separation_work[0])
        state.work[0] += float(done.drive_work[0])
        state.work[0] += apart
        state.work[2] += energy
        if pushed:
            recorder.event(state.t, "impulse", state.q, state.v, "record")
        if phase.switches:
            recorder.switches[-1] = replace(
                recorder.switches[-1], impulses={n: x[0] for n, x in done.impulses.items()},
                energy_loss=0.0 - energy, separation_work=apart,
            )  # fmt: skip
        return pushed or (changed and phase.switches)

    def _enter(self, index: int, phase: Phase, stop: float, watch: EventMonitor) -> bool:
        """Start a phase at the current state.

        Returns whether the program is to record a sample there: the first, or a speed jumped.
        """
        state, system = self._state, self._system
        system.z = state.z
        system.given.enter(state.t, stop)
        jumped = self._jumped(phase)
        recent = [] if index == 0 or jumped else self._drive.just_sampled()
        for controller in system.controllers:
            last = next((c for c in recent if c.same_place(controller)), None)
            if last is None:
                system.given.sample(controller, state.t, state.q, state.v)
            else:  # the event that ended the last phase coincides with a sample
                controller.value = last.value
        if index == 0:
            self._next = 0 if self._plan.times is None else 1
        return index == 0 or jumped

    # Samples ------------------------------------------------------------------------------------

    def _following(self) -> Array:
        """Return the sample times that follow."""
        times = self._plan.times
        return _NOTHING if times is None else times[self._next :]

    def _advanced(self, done: Advance) -> None:
        """Record what the program has made."""
        program = self._made_by
        assert program is not None
        for t, fired, q, v in done.events:
            for k in sorted(fired, key=program.place_of):
                item = program.items[k]
                self._recorder.event(t, item.name, q, v, item.action)
        rows = done.rows
        if len(done.samples):
            rows = np.concatenate([rows, done.samples]) if len(rows) else done.samples
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            self._next += len(done.samples)
        if len(rows):
            self._rows.append(rows)
            self._last = float(rows[-1, 0])
        if self._recorder.saves or len(self._rows) >= MOST_PARTS:
            self.flush()
        whole = program.running and not done.events and done.status == RUNNING
        if self._recorder.saves and whole and done.error is None:
            self._recorder.checkpoint = self._marked()
        self._watcher.look(self._state.t, self._state.q, self._state.v)

    def _release(self) -> None:
        """End the use of the last program."""
        if self._made_by is not None:
            self._made_by.release()
            self._made_by = None

    def flush(self) -> None:
        """Record the rows of the last calls of the program."""
        if self._rows and self._made_by is not None:
            rows, self._rows = np.concatenate(self._rows), []
            self._extend(self._made_by, rows)

    def _extend(self, program: PhaseProgram, rows: Array) -> None:
        """Record rows of the program."""
        if not len(rows):
            return
        columns = {
            name: rows[:, place].reshape(-1, *program.shapes[name])
            for name, place in program.places.items()
        }
        signals = columns.get("signals", np.zeros((len(rows), 0)))
        t = columns["t"][:, 0]
        self._recorder.append(
            t, columns["q"], columns["v"], columns["tau"], columns["passive"],
            columns.get("wrenches"), columns["work"], self._phase, signals,
        )  # fmt: skip

    def _marked(self) -> Checkpoint:
        self.flush()
        state, recorder = self._state, self._recorder
        return Checkpoint(
            len(recorder), len(recorder.events), self._next, self._phase, self._entered,
            state.t, state.q.copy(), state.v.copy(), state.work.copy(), state.x.copy(),
            state.z.copy(), list(self._updates), state.carried(), self._drive.inside(),
        )  # fmt: skip

    def _record_end(self) -> None:
        """Record the end of the run as its last sample."""
        program = self._made_by
        if self._last < self._state.t and program is not None:
            self._rows.append(program.row()[None])
            self._last = self._state.t
            self.flush()
