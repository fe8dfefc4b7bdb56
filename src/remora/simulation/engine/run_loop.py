"""Run loop: executes the phases of a run, records samples, and stores how the run ended."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.run_signals import entered
from remora.dynamics.constraints.switch_equations import latched_numbers
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kernels.kernel_memory import kernel
from remora.errors import RemoraError, SimulationError
from remora.model.joints import kind
from remora.simulation.engine.constraint_switching import captured, separated
from remora.simulation.engine.phase_dynamics import PhaseDynamics, RunSettings
from remora.simulation.engine.phase_loop import (
    LocatedEvent,
    Pause,
    PhaseLoop,
    StepInterval,
    StepperSettings,
)
from remora.simulation.engine.phase_program import Advance, PhaseProgram, phase_program
from remora.simulation.engine.progress import ProgressReporter
from remora.simulation.engine.reduced_phase_dynamics import phase_dynamics
from remora.simulation.engine.resets import Resets
from remora.simulation.engine.update_schedule import UpdateSchedule
from remora.simulation.inputs.events import Action, Event, EventMonitor
from remora.simulation.inputs.loads import Sum, is_mapping
from remora.simulation.inputs.phases import Phase, check_reach
from remora.simulation.integrators.step_control import CLOSE
from remora.simulation.phase.latched_numbers import latched_in_phase
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.run_program import Recorded, StepControl
from remora.simulation.recording.checkpoint import Checkpoint
from remora.simulation.recording.constraint_switch import ConstraintSwitch, robot_in_phase
from remora.simulation.recording.recording import Recording
from remora.simulation.storage.recorder import Recorder

#: Calls of the program whose rows are recorded together.
MOST_PARTS = 64
_NOTHING = np.zeros(0)
#: Initial step size of adaptive methods, s.
FIRST_STEP = 1e-3
#: Maximum distance of a joint from the start of its prescribed motion, rad or m, rad/s or m/s.
MISMATCH = 1e-9


class RunPlan(NamedTuple):
    """Settings of a run.

    Attributes:
        model: the robot and its equations.
        stepping: settings of the step size control.
        phases: the phases.
        events: events watched in all phases.
        limits: treatment of violated joint limits; None: ignore.
        times: sample times, `(n,)`, the start first; None: every step.
        step_to_samples: whether steps end at every sample.
        breaks: times that no step crosses, s.
        seed: seed of the components' noise.
        run: index of the run in its study.
        compiled: whether steps are made in machine code where possible.
        paused: whether the run can pause at any time, see `RunLoop.advance`.
    """

    model: RunSettings
    stepping: StepperSettings
    phases: tuple[Phase, ...]
    events: tuple[Event, ...]
    limits: Action | None
    times: Array | None
    step_to_samples: bool
    breaks: tuple[float, ...]
    seed: int = 0
    run: int = 0
    compiled: bool = True
    paused: bool = False


class PausedRun(NamedTuple):
    """A state that a run in memory can be taken back to.

    Attributes:
        mark: the state; None: the start of the run.
        segment: state at the start of the segment without discontinuities that it is in.
        first: initial q, v, x and z.
        phases: the phases.
        step: the last step, if Python has made it, with the discrete states within it.
    """

    mark: Checkpoint | None
    segment: Checkpoint | None
    first: tuple[Array, ...]
    phases: tuple[Phase, ...]
    step: tuple[StepInterval, Array] | None = None


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
        self._step: tuple[StepInterval, Array] | None = None
        self._stop = start
        self._schedule = UpdateSchedule(system, start, plan.seed, plan.run)
        self._resets = Resets()
        self._rows: list[Array] = []  # of the program, not recorded yet
        self._made_by: PhaseProgram | None = None
        end = self._end = start + sum(p.duration for p in plan.phases)
        self._next = 0  # index of the next sample time
        self._phase = 0
        self._last = -np.inf  # time of the last sample
        mark = recorder.mark
        if mark is not None:
            self._state.restore(mark)
            self._schedule.restore(mark.updates)
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
        return PausedRun(now, self._segment, self._first, self._plan.phases, self._step)

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
        recorder.cut(mark)
        self._segment, self._first, self._step = to.segment, to.first, to.step
        self._plan = self._plan._replace(phases=to.phases)
        self._begun, self._phase, self._next, self._last = False, 0, 0, recorder.last
        self._model = self._plan.model
        self._state = self._initial()
        self._schedule.restore([0] * len(self._schedule.counts))
        if mark is not None:
            self._state.restore(mark)
            self._schedule.restore(mark.updates)
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

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return q, v and all signals at a time within the last step, or at its end.

        A run that has failed at its start has no signals.
        """
        state = self._state
        if self.ended and not len(self._recorder):
            return state.q.copy(), state.v.copy(), _NOTHING
        if self.ended:
            row = self._recorder.recording().columns
            names = self._recorder.signals
            signals = [np.ravel(row[name][-1]) for name in names]
            return row["q"][-1], row["v"][-1], np.concatenate([_NOTHING, *signals])
        program = self._made_by
        if program is not None and self._drive.in_machine_code:
            row = program.state_at(t)
            signals = program.places.get("signals", slice(0, 0))
            return row[program.places["q"]], row[program.places["v"]], row[signals]
        system, q, v, x = self._system, state.q, state.v, state.x
        if self._step is None or t >= state.t:
            return q.copy(), v.copy(), system.signals(t, q, v, x)
        step, z = self._step
        now, system.z = system.z, z
        q, v, _, x = step.at(t)
        signals = system.signals(t, q, v, x)
        system.z = now
        system.center_chart(state.q, state.rest)
        return q, v, signals

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
            self._step = None if resumed is None else self._step
            self._switch(index, phase, resumed is not None)
            if resumed is None:
                if self._model.system is not None:
                    state.z = entered(self._model.system.phase_place, state.z, index, state.t)
                check_reach(self._model.robot, phase, state.q, state.v)
            system = self._system = phase_dynamics(self._model, phase, start, self._entered)
            self._schedule.enter(system.components)
            watch = self._watched(phase, system)
            program = self._program(index, phase, system, watch)
            first_row = False
            if resumed is None:
                first_row = self._enter(index, phase, stop, watch, program)
            else:
                for hold, order in zip(system.controllers, resumed.inside.orders, strict=True):
                    hold.value = order
            drive = PhaseLoop(
                system, state, plan.stepping, watch, self._made, self._advanced, self._following,
                self._reset, start, self._schedule, self._pause, program, first_row,
            )  # fmt: skip
            self._drive = drive
            inside = None if resumed is None else resumed.inside
            try:
                landings = self._landings(start, stop, program)
                ended = yield from drive.run(stop, landings, inside, before)
            finally:
                self.flush()
            before = drive.lasting
            if ended is not None and ended.watched.action == "stop":
                self._record_end()
                return f"stopped by {ended.watched.name!r} at t = {ended.t:.9g} s"
        self._record_end()
        return ""

    def _program(
        self, index: int, phase: Phase, system: PhaseDynamics, watch: EventMonitor
    ) -> PhaseProgram | None:
        """Return the phase in machine code, or None."""
        self._release()
        plan, own = self._plan, self._plan.stepping
        tableau = own.integrator.tableau if plan.compiled else None
        control = None
        if tableau is not None:
            step = FIRST_STEP if own.step is None else own.step
            control = StepControl(
                tableau, step, own.rtol, own.atol, own.max_step, own.max_steps
            )  # fmt: skip
        steps = plan.times is None
        recorded = Recorded(
            single=True, steps=steps, dense=not (steps or plan.step_to_samples), shown=plan.paused
        )  # fmt: skip
        everywhere = [e.on(plan.model.robot) for e in plan.events]
        finest = 2.0 * CLOSE * float(np.spacing(max(abs(self._start), abs(self._end))))
        made = phase_program(
            system, phase, watch, everywhere, own.integrator, control, recorded, index == 0, finest
        )  # fmt: skip
        if made is not None:
            numbers = dict(zip(system.latched.names, system.latched.values, strict=True))
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

    # Constraints ----------------------------------------------------------------------------------

    def _switch(self, index: int, phase: Phase, resumed: bool) -> None:
        """Take over the constraints that act in a phase; the state is changed in `_enter`."""
        model, recorder = self._plan.model, self._recorder
        self._before = robot_in_phase(model.robot, recorder.switches, index - 1)
        if not resumed and phase.switches:
            robot = self._before.with_active(on=phase.activate, off=phase.release)
            names = phase.activate if phase.latch else ()
            latched = {name: latched_numbers(robot, name, self._state.q) for name in names}
            recorder.switches.append(
                ConstraintSwitch(
                    self._state.t,
                    index,
                    tuple(phase.activate),
                    tuple(phase.release),
                    latched=latched,
                )
            )
        latched = latched_in_phase(model.robot, recorder.switches, index, model.system is not None)
        robot = latched.robot
        if latched.values:
            robot = robot_in_phase(model.robot, recorder.switches, index)
        system = model.system if model.system is None else model.system.acting_on(robot)
        self._model = model._replace(robot=robot, system=system, latched=latched)

    def _satisfy(self, phase: Phase, first: bool) -> bool:
        """Let the constraints of a phase act; return whether a speed jumped.

        Separation of what is released comes first, then the impulse of what is captured.
        """
        state, recorder = self._state, self._recorder
        robot, held = self._model.robot, self._system.held
        try:
            apart = separated(self._before, phase, state.q, state.v, held)
            done = captured(robot, phase.activate, apart.q, apart.v, held, first)
        except RemoraError as error:
            raise SimulationError(str(error), state.t) from error
        if phase.switches:
            impulses = {**done.impulses}
            for name, impulse in apart.impulses.items():
                impulses[name] = impulse + impulses.get(name, 0.0 * impulse)
            recorder.switches[-1] = replace(
                recorder.switches[-1], impulses=impulses, energy_loss=0.0 - done.energy,
                separation_work=apart.energy,
            )  # fmt: skip
        if np.array_equal(done.v, state.v) and np.array_equal(done.q, state.q):
            return False
        state.work[0] += apart.energy
        state.work[2] += done.energy
        state.q, state.v = done.q, done.v
        state.forget()
        self._system.set_held(state.t, state.q, state.v)
        self._system.center_chart(state.q)
        return phase.switches

    # Start of a phase ---------------------------------------------------------------------------

    def _enter(
        self, index: int, phase: Phase, stop: float, watch: EventMonitor,
        program: PhaseProgram | None,
    ) -> bool:  # fmt: skip
        """Start a phase at the current state; record a sample if it is first or a speed jumped.

        Returns whether the program is to record that sample.
        """
        state, system = self._state, self._system
        system.z = state.z
        system.given.enter(state.t, stop)
        jumped = self._begin(phase, system)
        jumped = self._satisfy(phase, index == 0) or jumped
        recent = [] if index == 0 or jumped else self._drive.just_sampled()
        for controller in system.controllers:
            last = next((c for c in recent if c.same_place(controller)), None)
            if last is None:
                system.given.sample(controller, state.t, state.q, state.v)
            else:  # the event that ended the last phase coincides with a sample
                controller.value = last.value
        if index == 0:
            self._note_passed_limits(watch, program is None)
            self._next = 0 if self._plan.times is None else 1
        if program is not None:
            return index == 0 or jumped
        if index == 0:
            self._schedule.perform(state)
            system.z = state.z
        if index == 0 or jumped:
            self._record(state.t, state.q, state.v, state.work, state.x)
        return False

    def _note_passed_limits(self, watch: EventMonitor, recorded: bool) -> None:
        """Raise if limits violated at the start would end the run; record them if asked to."""
        state = self._state
        for name, action in watch.passed(state.q, state.v):
            if action == "stop":
                raise RemoraError(f"the run begins beyond the {name}")
            if recorded:
                self._recorder.event(state.t, name, state.q, state.v, action)

    def _begin(self, phase: Phase, system: PhaseDynamics) -> bool:
        """Set held joints to their motion, or raise; return whether a speed jumped."""
        state, robot = self._state, self._plan.model.robot
        _check_torque(phase)
        wanted = state.v.copy()
        for name in system.held:
            joint = robot.joints[name]
            q, v, _ = system.motions.motion(name, state.t)
            off = float(np.max(np.abs(kind(joint).difference(state.q[joint.q], q))))
            if off > MISMATCH * max(1.0, float(np.max(np.abs(q)))):
                raise RemoraError(
                    f"contradiction: joint {name!r} is {off:.3g} rad or m from where its "
                    "prescribed motion begins"
                )
            wanted[joint.v] = v
        system.look_ahead(state.t, state.t + phase.duration)
        off = np.abs(wanted - state.v)
        if np.max(off, initial=0.0) <= MISMATCH * max(1.0, float(np.max(np.abs(wanted)))):
            system.set_held(state.t, state.q, state.v)
            return False
        if not phase.impulse:
            name = next(n for n in system.held if np.max(off[robot.joints[n].v]) > MISMATCH)
            now, then = (x[robot.joints[name].v].tolist() for x in (state.v, wanted))
            raise RemoraError(
                f"contradiction: joint {name!r} moves at {now}, its motion begins with {then}; "
                "to bring it there by an impulse, set impulse=True in the phase"
            )
        self._impulse(system, wanted)
        return True

    def _impulse(self, system: PhaseDynamics, wanted: Array) -> None:
        """Change the speeds of held joints instantly: H Δv = impulse in their drives only."""
        state, robot = self._state, self._plan.model.robot
        places = [i for n in system.held for i in range(robot.nv)[robot.joints[n].v]]
        H: Array = kernel(mass_matrix, robot, ("q",))(state.q)
        response = np.linalg.inv(H)[:, places]
        impulse = np.linalg.solve(response[places], wanted[places] - state.v[places])
        after = state.v + response @ impulse
        state.work[0] += 0.5 * float(impulse @ (state.v + after)[places])
        state.v = after
        state.forget()
        system.set_held(state.t, state.q, state.v)
        self._recorder.event(state.t, "impulse", state.q, state.v, "record")

    # Samples ------------------------------------------------------------------------------------

    def _landings(self, start: float, stop: float, program: PhaseProgram | None) -> list[float]:
        times = list(self._plan.breaks)
        if self._plan.step_to_samples and self._plan.times is not None and program is None:
            times += self._plan.times.tolist()
        return [t for t in times if start < t < stop]

    def _made(self, step: StepInterval, fired: list[LocatedEvent]) -> None:
        """Record the samples within a step and the events at its end."""
        self._step = step, self._system.z
        for event in fired:
            self._recorder.event(
                event.t, event.watched.name, event.q, event.v, event.watched.action
            )
        if self._plan.times is None:
            self._record(step.stop, *step.at(step.stop))
        else:
            times, close = self._plan.times, CLOSE * np.spacing(abs(step.stop))
            while self._next < times.size and times[self._next] <= step.stop + close:
                t = float(min(times[self._next], step.stop))
                self._record(t, *step.at(t))
                self._next += 1
        if self._recorder.saves and not fired and self._drive.settled:
            self._recorder.mark = self._marked()
        self._watcher.look(self._state.t, self._state.q, self._state.v)

    def _following(self) -> Array:
        """Return the sample times that follow."""
        times = self._plan.times
        return _NOTHING if times is None else times[self._next :]

    def _advanced(self, done: Advance) -> None:
        """Record what the program has made."""
        program = self._made_by
        if done.start:
            state = self._state
            self._record(state.t, state.q, state.v, state.work, state.x)
        if program is None or not done.end.size:
            return
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
        if self._recorder.saves and not done.events:
            self._recorder.mark = self._marked()
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
        self._recorder.extend(
            t, columns["q"], columns["v"], columns["tau"], columns["passive"],
            columns.get("wrenches"), columns["work"], self._phase, signals,
        )  # fmt: skip

    def _reset(self, fired: list[LocatedEvent]) -> None:
        """Change the state as components want it at events; record it before and after."""
        state, components = self._state, self._system.components
        assert components is not None
        if self._last < state.t:
            self._record(state.t, state.q, state.v, state.work, state.x)
        for event in fired:
            own = components.system.events[event.watched.component]
            self._resets.apply(self._system, state, own)
            self._system.z = state.z
        self._record(state.t, state.q, state.v, state.work, state.x)

    def _marked(self) -> Checkpoint:
        self.flush()
        state, recorder = self._state, self._recorder
        return Checkpoint(
            len(recorder), len(recorder.events), self._next, self._phase, self._entered,
            state.t, state.q.copy(), state.v.copy(), state.work.copy(), state.x.copy(),
            state.z.copy(), list(self._schedule.counts), state.carried(), self._drive.inside(),
        )  # fmt: skip

    def _record(self, t: float, q: Array, v: Array, work: Array, x: Array) -> None:
        self.flush()
        tau, lost, wrenches = self._system.loads_seen(t, q, v, x)
        signals = self._system.signals(t, q, v, x)
        self._last = t
        self._recorder.append(t, q, v, tau, lost, wrenches, work, self._phase, signals)

    def _record_end(self) -> None:
        """Record the end of the run as its last sample."""
        state, program = self._state, self._made_by
        if self._last >= state.t:
            return
        if program is not None and self._drive.in_machine_code:
            self._rows.append(program.row()[None])
            self._last = state.t
            self.flush()
        else:
            self._record(state.t, state.q, state.v, state.work, state.x)


def _check_torque(phase: Phase) -> None:
    parts = phase.torque.parts if isinstance(phase.torque, Sum) else (phase.torque,)
    for torque in filter(is_mapping, parts):
        for name in (*phase.prescribed, *phase.locked):
            if name in torque:
                raise RemoraError(
                    f"contradiction: joint {name!r} is prescribed or locked, so its torque is "
                    "computed and cannot be an input"
                )
