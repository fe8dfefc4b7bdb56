"""Loop over the steps of one phase: segments between discontinuities, step size control."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.run_signals import occurred
from remora.dynamics.state_layout import layout_of
from remora.errors import InvalidValue, SimulationError
from remora.simulation.engine.event_location import EventLocator
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.phase_program import Advance, PhaseProgram, pieces_of
from remora.simulation.engine.rounding import rounding_of
from remora.simulation.engine.update_schedule import UpdateSchedule
from remora.simulation.inputs.events import EventMonitor, MonitoredCondition
from remora.simulation.inputs.loads import SAME_SAMPLE, HeldValue
from remora.simulation.integrators.error_scale import ErrorScale
from remora.simulation.integrators.step_control import CLOSE, GROW, SAFETY, SHRINK
from remora.simulation.integrators.step_result import StepResult, norm
from remora.simulation.integrators.table import Integrator
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_search import NEXT, RUNNING, STOPPED
from remora.simulation.recording.checkpoint import PhaseCheckpoint

#: The cause of a failed step is looked for until so much later, s.
AHEAD = 1e-6
#: No records of the program.
NOTHING = Advance(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0), [], RUNNING)
#: Events so soon after the start of a phase, besides rounding, are reported at its start, s.
AT_START = 1e-16


class StepperSettings(NamedTuple):
    """Settings of the step size control.

    Attributes:
        integrator: the integration method.
        rtol: relative error tolerance of a step.
        atol: absolute error tolerance of a step.
        step: step size of a method without error estimate, s; otherwise the initial step size, or
            None to choose one automatically.
        max_step: maximum step size, s.
        max_steps: maximum number of steps of an adaptive method.
    """

    integrator: Integrator
    rtol: float
    atol: float
    step: float | None
    max_step: float
    max_steps: int


class LocatedEvent(NamedTuple):
    """An event that occurred.

    Attributes:
        t: its time, s.
        watched: the event.
        q: configuration at t, `(nq,)`.
        v: velocity at t, `(nv,)`.
    """

    t: float
    watched: MonitoredCondition
    q: Array
    v: Array


class StepInterval(NamedTuple):
    """An accepted step.

    Attributes:
        start: s.
        stop: s.
        at: time -> q, v, work and x.
    """

    start: float
    stop: float
    at: Callable[[float], tuple[Array, Array, Array, Array]]


@dataclass
class Pause:
    """Where a run pauses: after the step that contains a time.

    Attributes:
        t: the time, s.
        marked: called at the start of each segment, for a run that can be taken back there; None:
            the run never pauses.
    """

    t: float = math.inf
    marked: Callable[[], None] | None = None


#: Steps of a run: it yields where it pauses, and returns the event that ended the phase, if any.
Steps: TypeAlias = Generator[None, None, LocatedEvent | None]


class PhaseLoop:
    """One phase of a run, from its start to its end or to an event that ends it."""

    def __init__(
        self,
        system: PhaseDynamics,
        state: RunState,
        stepping: StepperSettings,
        watch: EventMonitor,
        made: Callable[[StepInterval, list[LocatedEvent]], None],
        advanced: Callable[[Advance], None],
        times: Callable[[], Array],
        reset: Callable[[list[LocatedEvent]], None],
        start: float,
        schedule: UpdateSchedule,
        pause: Pause,
        program: PhaseProgram | None = None,
        first_row: bool = False,
    ) -> None:
        """Initialize.

        Args:
            system: the rates.
            state: state of the run; it is advanced.
            stepping: settings of the step size control.
            watch: event conditions.
            made: called after each step, with the step and the events at its end.
            advanced: called with what the program has recorded.
            times: returns the sample times that follow, `(n,)`, s.
            reset: called with the events that reset the state, which it changes.
            start: start time of the phase, s.
            schedule: updates of sampled components.
            pause: where the run pauses.
            program: the phase in machine code, if it can be compiled.
            first_row: whether the program records the state at the start.
        """
        self._system, self._state, self._stepping = system, state, stepping
        self._made, self._reset, self._start = made, reset, start
        self._advanced, self._program, self._first_row = advanced, program, first_row
        self._times = times
        self._schedule, self._pause = schedule, pause
        #: The event that has ended the phase.
        self.ended: LocatedEvent | None = None
        state.finish = system.finish if system.constrained else None
        self._events = EventLocator(system, state, watch, self._attempt, self._blame)
        self._h: float | None = None
        self._rate: Array | None = None
        self._asked = [1] * len(system.controllers)  # sampled once, at the start
        self._bounds = (start, start)  # of the segment
        self._tried = 0
        self._reach = ErrorScale(system.robot)
        self._layout = layout_of(system.robot, state.x.size)
        self._any_error = np.full(self._layout.size, np.inf)

    @property
    def lasting(self) -> list[float]:
        """The conditions that are watched in all phases, at their last evaluation."""
        if self._program is not None:
            return self._program.looked.tolist()
        return self._events.looked[: self._events.watch.lasting].tolist()

    @property
    def in_machine_code(self) -> bool:
        """Whether the program has made the steps so far."""
        return self._program is not None

    @property
    def settled(self) -> bool:
        """Whether no condition crossed zero so recently that a checkpoint must store it."""
        return self._program is not None or self._events.settled

    def just_sampled(self) -> list[HeldValue]:
        """Return the controllers whose last sample is recent enough to count as current."""
        now, found = self._state.t, list[HeldValue]()
        for controller, asked in zip(self._system.controllers, self._asked, strict=True):
            period = controller.sample_time
            last = self._start + (asked - 1) * period
            if now - last <= min(SAME_SAMPLE, 0.01 * period):
                found.append(controller)
        return found

    def inside(self) -> PhaseCheckpoint:
        """Return the part of a checkpoint that makes the next step reproducible."""
        orders = [c.value for c in self._system.controllers]
        asked = list(self._asked)
        program = self._program
        return PhaseCheckpoint(
            self._h,
            self._rate,
            self._events.looked if program is None else np.zeros(0),
            asked,
            orders,
            self._bounds,
            self._tried,
            dict(self._events.last),
            None if program is None else program.cells,
            self.ended,
        )

    def jumped(self) -> None:
        """Take over discrete states that were changed between two segments."""
        self._system.z, self._rate = self._state.z, None
        if self._program is not None:
            self._program.take(self._state, self._schedule.counts)

    def _paused(self) -> Generator[None]:
        """Pause until the run is to go beyond its state."""
        while self._state.t >= self._pause.t:
            yield

    def _left(self) -> Steps:
        """Leave the phase, after an event that has ended it."""
        yield from self._paused()
        if self._program is not None:
            self._program.proceed()
        return self.ended

    def run(
        self,
        stop: float,
        landings: Sequence[float],
        resumed: PhaseCheckpoint | None = None,
        before: Sequence[float] = (),
    ) -> Steps:
        """Advance to the time `stop`; return the event that ended the phase earlier, if any.

        Args:
            stop: s.
            landings: additional times at which a step must end.
            resumed: checkpoint to continue from, if not from the start of the phase.
            before: the first conditions just before the phase.
        """
        system, state, start, asked = self._system, self._state, self._start, self._asked
        breaks = sorted({t for t in (*system.breaks, *landings) if start < t < stop})
        system.z = state.z
        program = self._program
        if resumed is None:
            if program is None:
                self._events.start(before)
            else:
                program.begin(state, self._schedule.counts, before, system.q)
        else:
            asked[:], self._h, self._tried = resumed.asked, resumed.h, resumed.tried
            # also if it is at its end: loads there are sampled as inside the segment
            self._bounds = resumed.segment
            system.given.enter(*resumed.segment)
            if program is not None and resumed.program is not None:
                program.restore(resumed.program)
                self._enter_program(program, resumed.segment[1])
                self._record_passed(program, resumed.segment[1])
            else:
                self._program = None
                self._events.restore(resumed.looked, resumed.last)
                system.touch(state.t, state.q, state.v, state.x)
            if resumed.ended is not None:
                self.ended = resumed.ended
                return (yield from self._left())
            if state.t < resumed.segment[1]:
                ended = yield from self._segment(*resumed.segment, resumed.rate)
                if ended is not None:
                    return ended
            yield from self._paused()
        if self._program is None:
            system.touch(state.t, state.q, state.v, state.x)
        elif self._first_row and not state.t < stop:  # a phase without duration
            system.given.enter(start, stop)
            self._enter_program(self._program, stop)
            self._advanced(self._program.start())
            self._first_row = False
            self._program.give(state, self._schedule.counts)
        while state.t < stop:
            now = state.t + CLOSE * np.spacing(abs(state.t))
            while breaks and breaks[0] <= now:
                breaks.pop(0)
            due = [stop, *breaks[:1]]
            for k, controller in enumerate(system.controllers):
                if start + asked[k] * controller.sample_time <= now:
                    system.given.sample(controller, state.t, state.q, state.v)
                    asked[k] += 1
                due.append(start + asked[k] * controller.sample_time)
            if self._program is None:
                if self._schedule.perform(state):
                    system.z = state.z
                    system.touch(state.t, state.q, state.v, state.x)
                due.append(self._schedule.next_time())
            target = min(due)
            if stop - target <= CLOSE * np.spacing(abs(stop)):
                target = stop
            ended = yield from self._segment(state.t, target)
            if ended is not None:
                return ended
        return None

    # Steps --------------------------------------------------------------------------------------

    def _segment(self, start: float, stop: float, rate: Array | None = None) -> Steps:
        """Advance to `stop` through an interval without discontinuities."""
        state, integrator = self._state, self._stepping.integrator
        self._system.center_chart(state.q)
        self._bounds = (start, stop)
        self._system.given.enter(start, stop)
        if state.t == start:
            self._system.motions.check_joined(start, state.q, state.v)
        self._rate = rate
        if self._program is not None:
            return (yield from self._in_machine_code(self._program, stop))
        self._mark(start)
        yield from self._paused()
        if integrator.error_order:
            return (yield from self._adaptive(stop, state.t == start))
        return (yield from self._fixed(start, stop))

    def _mark(self, start: float) -> None:
        """Mark the start of a segment."""
        if self._pause.marked is not None and self._state.t == start:
            self._pause.marked()

    def _fixed(self, start: float, stop: float) -> Steps:
        """Advance to `stop` by steps of one length."""
        state, count, i = self._state, self._count(start, stop), 1
        while state.t < stop:
            end = stop if i == count else start + (stop - start) * (i / count)
            if state.t >= end:
                i += 1
                continue
            self._refuse_unstable(end - state.t)
            attempt = self._attempt(end - state.t)
            if not (attempt.error <= 1.0 and np.all(np.isfinite(attempt.change))):
                self._blame(end - state.t)
                raise SimulationError(
                    f"a step of {end - state.t:g} s leads to a state that is not finite, or "
                    "cannot be solved: use a shorter `step`; for stiff equations integrator='radau'"
                    f"{self._largest()}",
                    state.t,
                )
            self.ended = self._accept(attempt, end)
            if self.ended is not None:
                return (yield from self._left())
            yield from self._paused()
        return None

    def _refuse_unstable(self, h: float) -> None:
        """Refuse a fixed step in which the stops that are touched make the motion grow."""
        stable, system, state = self._stepping.integrator.stable, self._system, self._state
        if math.isinf(stable) or not np.any(system.stops.contact):
            return
        frequency = system.stops.frequency(state.q, system.held)
        if h * frequency > stable:
            raise SimulationError(
                f"steps of {h:g} s are too long for the stops, which swing at {frequency:.3g} rad/s"
                f": steps of more than {stable / frequency:.2g} s are unstable; make `step` "
                "shorter, the stops softer, or use an adaptive integrator",
                state.t,
            )

    def _adaptive(self, stop: float, first: bool) -> Steps:
        state, power = self._state, -1.0 / (self._stepping.integrator.error_order + 1)
        refused = False
        while state.t < stop:
            left = stop - state.t
            if self._h is None:  # at the start of the phase, and after a reset
                self._h, first = self._stepping.step or self._first_step(left), True
            wanted = min(self._h, self._stepping.max_step)
            last = left <= wanted * (1.0 + 1e-9)
            h = left if last else min(wanted, 0.5 * left)
            attempt = self._attempt(h, first or refused)
            self._tried += 1
            if self._tried > self._stepping.max_steps:
                raise SimulationError(
                    f"{self._stepping.max_steps} steps were not enough (the last is of {h:.3g} s): "
                    f"{self._slowed(h)}",
                    state.t,
                )
            if not attempt.error <= 1.0:  # or NaN
                refused = True
                finite = math.isfinite(attempt.error)
                self._h = h * (max(SHRINK, SAFETY * attempt.error**power) if finite else SHRINK)
                if state.t + 0.1 * self._h <= state.t:
                    self._blame(h)
                    raise SimulationError(
                        f"steps became too short (the last, of {h:.3g} s, had an error of "
                        f"{attempt.error:.3g} times the tolerance): the loads are not smooth, too "
                        "stiff for this integrator (try integrator='radau'), or drives the state "
                        f"to infinity; or tolerances are too tight{self._largest()}",
                        state.t,
                    )
                continue
            factor = GROW if attempt.error == 0.0 else SAFETY * attempt.error**power
            grown = h * min(1.0 if refused else GROW, max(SHRINK, factor))
            first = refused = False
            self._h = max(self._h, grown) if h < wanted else grown
            self.ended = self._accept(attempt, stop if last else state.t + h)
            if self.ended is not None:
                return (yield from self._left())
            yield from self._paused()
        return None

    def _slowed(self, h: float) -> str:
        """Return why steps of this length may have been so many."""
        robot, state, own = self._system.robot, self._state, self._stepping
        found = rounding_of(robot, state.q, state.v, own.rtol, own.atol)
        if found is not None and found.step < 10.0 * h:
            return found.described(own.atol)
        advice = "check whether a controller is unstable; otherwise raise max_steps"
        return f"{advice}{self._stiffest()}"

    def _stiffest(self) -> str:
        """Return the end of a message that names the joint that makes the equations stiff."""
        found = self._system.stiffest()
        if found is None:
            return ""
        return f"; {found.described()}: where that is too stiff, use integrator='radau'"

    def _largest(self) -> str:
        """Return the end of a message that names the component with the largest action."""
        state = self._state
        found = self._system.largest_action(state.t, state.q, state.v, state.x)
        return f"; {found}" if found else ""

    def _attempt(self, h: float, again: bool = False) -> StepResult:
        system, state = self._system, self._state
        system.center_chart(state.q, state.rest)
        y = state.y
        if self._rate is None:
            self._rate = self._rate_at_start(y)
        step = self._stepping.integrator.step
        return step(system, state.t, y, self._rate, h, self._scale(), again)

    def _rate_at_start(self, y: Array) -> Array:
        """Return the rate of y at the start of a step; raise if constraints contradict there."""
        rate = self._system.rates(self._state.t, y)
        if not np.all(np.isfinite(rate)):
            try:
                self._system.refuse_contradiction(self._state.t, y)
            except InvalidValue as error:
                raise SimulationError(str(error), self._state.t) from error
        return rate

    def _blame(self, h: float) -> None:
        """Raise if a component returns NaN in a step of this length, or just ahead; name it."""
        system, state = self._system, self._state
        system.watch_for_nan(True)
        try:
            self._rate = None
            self._attempt(h)
            rate, ahead = system.rates(state.t, state.y), h
            while ahead <= AHEAD:  # where the slope is infinite, steps end before the fault
                system.rates(state.t + ahead, state.y + ahead * rate)
                ahead *= 8.0
        finally:
            system.watch_for_nan(False)

    def _accept(self, attempt: StepResult, end: float) -> LocatedEvent | None:
        """Advance the state by a step, or to the first event within it."""
        system, state, events = self._system, self._state, self._events
        attempt, end, crossed = events.locate(attempt, end)
        start, layout = state.t, self._layout
        y, length = state.y, end - start
        before, contact = state.q, system.stops.contact

        def at(t: float) -> tuple[Array, Array, Array, Array]:
            if t == end:
                return state.q, state.v, state.work, state.x
            system.center_chart(before)
            during, system.stops.contact = system.stops.contact, contact
            moved = y + attempt.dense(np.array([(t - start) / length]))[0]
            q, v = system.place(moved[layout.u]), moved[layout.v]
            system.set_held(t, q, v)
            q, v = system.projected(q, v)
            system.stops.contact = during
            return q, v, moved[layout.work], moved[layout.extra]

        system.motions.check_step(start, end)
        state.add(end, attempt.change)
        system.set_held(end, state.q, state.v)
        items = events.watch.items
        seen = [k for k in crossed if k < len(items)]
        # what holds at the start of a phase occurs then, not a unit in the last place later
        early = end - self._start <= AT_START + 8.0 * np.spacing(abs(self._start))
        when = self._start if early else end
        fired = [LocatedEvent(when, items[k], state.q, state.v) for k in seen]
        events.passed(end, length, crossed)
        self._rate = None
        if attempt.rate is not None and not system.constrained:
            self._rate = np.concatenate([state.v, attempt.rate[layout.after_u]])
        if system.touch(end, state.q, state.v, state.x):
            self._rate = None
        self._made(StepInterval(start, end, at), fired)
        self._note(fired)
        resets = [k for k in seen if items[k].action == "reset"]
        if resets:
            self._reset([f for f in fired if f.watched.action == "reset"])
            system.z, self._rate, self._h = state.z, None, None
            system.center_chart(state.q)
            events.after_reset(resets, system.rates(state.t, state.y))
            system.touch(end, state.q, state.v, state.x)
        system.center_chart(state.q)
        ends = [f for f in fired if f.watched.action in ("stop", "next")]
        return min(ends, key=lambda f: f.watched.action != "stop", default=None)

    def _note(self, fired: list[LocatedEvent]) -> None:
        """Let components know of events."""
        system, state = self._system, self._state
        if fired and system.components is not None:
            names = {event.watched.name: 1.0 for event in fired}
            z = occurred(
                system.components.system.event_places, state.z, names, np.full(1, fired[0].t)
            )
            if z is not state.z:
                state.z = system.z = z
                self._rate = None

    # Steps in machine code ----------------------------------------------------------------------

    def _in_machine_code(self, program: PhaseProgram, stop: float) -> Steps:
        """Advance to `stop` by calls of the program.

        What it cannot do, a step that fails, is left to the steps of Python, which explain why:
        they begin at the state before that call.
        """
        system, state, loads = self._system, self._state, self._system.given.smooth
        self._enter_program(program, stop)
        pause = self._pause
        if program.begun:
            self._mark(self._bounds[0])
            yield from self._paused()
        times = self._times()
        while state.t < stop:
            if not (program.current and (loads is None or loads.is_current)):
                return (yield from self._in_python(program, stop))
            before = program.cells
            entering = pause.marked is not None and not program.begun
            until = state.t if entering else pause.t
            done = program.advance(_within(times, stop), self._first_row, until)
            bad = done.status not in (RUNNING, STOPPED, NEXT) or not done.finite
            if bad and done.error is None:
                program.restore(before)
                return (yield from self._in_python(program, stop))
            self._first_row = False
            program.accept()
            program.give(state, self._schedule.counts)
            system.z = state.z
            self._h, self._tried = program.h, program.tried
            self._advanced(done)
            self._record_passed(program, stop)
            times = self._times()
            if done.error is not None:
                raise done.error
            if done.status != RUNNING:
                self.ended = self._ended_by(program, done)
                return (yield from self._left())
            if entering:
                self._mark(self._bounds[0])
            yield from self._paused()
        return None

    def _record_passed(self, program: PhaseProgram, stop: float) -> None:
        """Record the samples up to the state: they may be more than one call records.

        Those at the end of the segment are passed when it is reached, as in the program.
        """
        t = self._state.t
        while True:
            times = self._times()
            count = len(_within(times, t))
            if t < stop:
                count = min(count, bisect.bisect_left(times, stop))
            if not count:
                return
            self._advanced(program.record(np.minimum(times[:count], t)))

    def _enter_program(self, program: PhaseProgram, stop: float) -> None:
        """Let the program enter the segment that ends at `stop`."""
        system, given = self._system, self._system.given
        clocks, loads = given.clocks, given.smooth
        coefficients = None if loads is None else loads.enter([clocks])[0]
        program.enter(
            stop, given.bounds, self._start, given.offset, coefficients, pieces_of(system, *clocks)
        )

    def _ended_by(self, program: PhaseProgram, done: Advance) -> LocatedEvent | None:
        """Return the event that ended the phase: one that stops the run comes first."""
        t, fired, q, v = done.events[-1]
        ends = [program.items[k] for k in fired if program.items[k].action in ("stop", "next")]
        watched = min(ends, key=lambda w: w.action != "stop")
        return LocatedEvent(t, watched, q, v)

    def _in_python(self, program: PhaseProgram, stop: float) -> Steps:
        """Leave the rest of the phase to Python."""
        state, system = self._state, self._system
        self._program = None
        system.center_chart(state.q, state.rest)
        if program.begun:
            self._events.restore(program.conditions(), {})
        else:
            self._events.start(())
        if self._schedule.perform(state):
            system.z = state.z
        system.touch(state.t, state.q, state.v, state.x)
        if self._first_row:
            self._advanced(NOTHING._replace(start=True))
            self._first_row = False
        stop = min(stop, self._schedule.next_time())
        return (yield from self._segment(state.t, stop))

    def _count(self, start: float, stop: float) -> int:
        """Return the number of fixed steps in a segment."""
        length = self._stepping.step
        if self._stepping.integrator.error_order or length is None:
            return 1
        return max(1, math.ceil((stop - start) / length - 1e-6))

    # Step size control --------------------------------------------------------------------------

    def _scale(self) -> Array:
        """Return the error tolerance of each component of y; unlimited for work."""
        state = self._state
        layout, allowed = self._layout, self._any_error.copy()
        allowed[layout.u], allowed[layout.v] = self._reach(state.q), state.v
        allowed[layout.extra] = state.x
        for part in (layout.motion, layout.extra):
            size = allowed[part]
            np.abs(size, out=size)
            size *= self._stepping.rtol
            size += self._stepping.atol
        return allowed

    def _first_step(self, longest: float) -> float:
        """Return an initial step size from the change of the rates [HNW93, section II.4]."""
        system, state, scale = self._system, self._state, self._scale()
        y = state.y
        if self._rate is None:
            self._rate = self._rate_at_start(y)
        size, rate = norm(y, scale), norm(self._rate, scale)
        h = min(max(0.01 * size / rate, 1e-6) if rate > 1e-5 else 1e-6, longest)
        change = norm(system.rates(state.t + h, y + h * self._rate) - self._rate, scale) / h
        most = max(rate, change)
        order = self._stepping.integrator.order
        better = (0.01 / most) ** (1.0 / (order + 1)) if most > 1e-15 else 100.0 * h
        return min(100.0 * h, better, longest)


def _within(times: Array, stop: float) -> Array:
    """Return the sample times in the rest of a segment, `(m,)`; those at its end are its end."""
    if not times.size:
        return times
    count = bisect.bisect_right(times, stop + CLOSE * math.ulp(abs(stop)))
    return np.minimum(times[:count], stop)
