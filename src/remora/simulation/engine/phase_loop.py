"""Loop over the segments of one phase: controllers, calls of its program, faults."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.phase_program import Advance, PhaseProgram, pieces_of
from remora.simulation.engine.step_faults import FailedStep, StepFaults
from remora.simulation.inputs.events import MonitoredCondition
from remora.simulation.inputs.loads import SAME_SAMPLE, HeldValue
from remora.simulation.integrators.step_control import CLOSE
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_search import NEXT, RUNNING, STOPPED
from remora.simulation.recording.checkpoint import PhaseCheckpoint


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
        counts: list[int],
        program: PhaseProgram,
        called: Callable[[], PhaseProgram],
        faults: StepFaults,
        advanced: Callable[[Advance], None],
        times: Callable[[], Array],
        start: float,
        pause: Pause,
        first_row: bool = False,
    ) -> None:
        """Initialize.

        Args:
            system: the rates.
            state: state of the run; it is advanced.
            counts: updates of each entry of the system's schedule so far; they are counted.
            program: the program of the phase.
            called: returns the program in which Python computes loads and conditions.
            faults: explains steps that fail.
            advanced: called with what the program has recorded.
            times: returns the sample times that follow, `(n,)`, s.
            start: start time of the phase, s.
            pause: where the run pauses.
            first_row: whether the program records the state at the start.
        """
        self._system, self._state, self._counts, self._start = system, state, counts, start
        self._advanced, self._program, self._first_row = advanced, program, first_row
        self._times, self._called, self._faults, self._pause = times, called, faults, pause
        #: The event that has ended the phase.
        self.ended: LocatedEvent | None = None
        self._asked = [1] * len(system.controllers)  # sampled once, at the start
        self._bounds = (start, start)  # of the segment
        self._fired: list[MonitoredCondition] = []  # that occurred last

    @property
    def lasting(self) -> list[float]:
        """The conditions that are watched in all phases, at their last evaluation."""
        return self._program.looked.tolist()

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
        return PhaseCheckpoint(
            list(self._asked), orders, self._bounds, self._program.cells, self.ended
        )

    def jumped(self) -> None:
        """Take over discrete states that were changed between two segments."""
        self._system.z = self._state.z
        self._program.take(self._state, self._counts)

    def _paused(self) -> Generator[None]:
        """Pause until the run is to go beyond its state."""
        while self._state.t >= self._pause.t:
            yield

    def _left(self) -> Steps:
        """Leave the phase, after an event that has ended it."""
        yield from self._paused()
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
        if resumed is None:
            self._program.begin(state, self._counts, before, system.q)
        else:
            asked[:] = resumed.asked
            # also if it is at its end: loads there are sampled as inside the segment
            self._bounds = resumed.segment
            system.given.enter(*resumed.segment)
            self._program.restore(resumed.program)
            self._enter_program(resumed.segment[1])
            self._record_passed(resumed.segment[1])
            if resumed.ended is not None:
                self.ended = resumed.ended
                return (yield from self._left())
            if state.t < resumed.segment[1]:
                ended = yield from self._segment(*resumed.segment)
                if ended is not None:
                    return ended
            yield from self._paused()
        if self._first_row and not state.t < stop:  # a phase without duration
            system.given.enter(start, stop)
            self._enter_program(stop)
            self._advanced(self._program.start())
            self._first_row = False
            self._program.give(state, self._counts)
        while state.t < stop:
            now = state.t + CLOSE * math.ulp(state.t)
            while breaks and breaks[0] <= now:
                breaks.pop(0)
            due = [stop, *breaks[:1]]
            for k, controller in enumerate(system.controllers):
                if start + asked[k] * controller.sample_time <= now:
                    system.given.sample(controller, state.t, state.q, state.v)
                    asked[k] += 1
                due.append(start + asked[k] * controller.sample_time)
            target = min(due)
            if stop - target <= CLOSE * math.ulp(stop):
                target = stop
            ended = yield from self._segment(state.t, target)
            if ended is not None:
                return ended
        return None

    # Segments -----------------------------------------------------------------------------------

    def _segment(self, start: float, stop: float) -> Steps:
        """Advance to `stop` through an interval without discontinuities, by calls of the program.

        A call that fails is repeated step by step: what came before is recorded, and the step that
        fails is explained. After Ctrl-C the run is as it was before the call.
        """
        state, system, pause = self._state, self._system, self._pause
        system.center_chart(state.q)
        self._bounds = (start, stop)
        system.given.enter(start, stop)
        if state.t == start:
            system.motions.check_joined(start, state.q, state.v)
        self._enter_program(stop)
        if self._program.begun:
            self._mark(start)
            yield from self._paused()
        times, careful, loads = self._times(), False, system.given.smooth
        while state.t < stop:
            program = self._program
            if not program.current or (program.loaded and loads and not loads.is_current):
                program = self._call_functions(stop)
            before = program.cells
            entering = pause.marked is not None and not program.begun
            until = state.t if entering else pause.t
            done = program.advance(_within(times, stop), self._first_row, until, careful)
            failed = done.error is not None or done.status not in (RUNNING, STOPPED, NEXT)
            finite, size = done.finite, state.z.size
            sound = not size or bool(np.isfinite(program.z[:size]).all())
            if failed or not (finite and sound):
                if not (careful or isinstance(done.error, KeyboardInterrupt)):
                    program.restore(before)
                    careful = True
                    continue
                if not sound and done.error is None:
                    self._refuse_update(program)
                if failed:
                    self._refuse(before, done)
            self._first_row = False
            program.accept()
            program.give(state, self._counts)
            system.z = state.z
            if not finite:
                self._faults.refuse_nan(program.states(done))
            if done.events:
                self._fired = [program.items[k] for k in done.events[-1][1]]
            self._advanced(done)
            self._record_passed(stop)
            times = self._times()
            if done.status != RUNNING:
                self.ended = self._ended_by(program, done)
                return (yield from self._left())
            if entering:
                self._mark(start)
            yield from self._paused()
        return None

    def _mark(self, start: float) -> None:
        """Mark the start of a segment."""
        if self._pause.marked is not None and self._state.t == start:
            self._pause.marked()

    def _call_functions(self, stop: float) -> PhaseProgram:
        """Let Python compute loads and conditions: numbers that they read have changed."""
        before, self._program = self._program, self._called()
        self._program.follow(before)
        self._enter_program(stop)
        return self._program

    def _refuse(self, before: Array, done: Advance) -> NoReturn:
        """Raise the error of a call that failed: the state is that before it."""
        program, system = self._program, self._system
        last = [program.items[k] for k in done.events[-1][1]] if done.events else self._fired
        failed = FailedStep(done.status, *program.last_try, last)
        program.restore(before)
        if self._first_row and len(done.rows):  # the start of the run has been recorded
            self._advanced(done._replace(rows=done.rows[:1], samples=done.samples[:0], events=[]))
            self._first_row = False
        if done.error is not None:
            raise done.error
        if system.stops.count:
            system.stops.contact = program.contact
        self._faults.refuse(failed)

    def _refuse_update(self, program: PhaseProgram) -> NoReturn:
        """Raise the error of discrete states that are not finite after updates at the state."""
        before, size = list(self._counts), self._state.z.size
        counts = program.counts(len(before))
        updates = [i for i, n in enumerate(counts) if n > before[i]]
        self._faults.refuse_update(updates, program.z[:size].copy())

    def _record_passed(self, stop: float) -> None:
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
            self._advanced(self._program.record(np.minimum(times[:count], t)))

    def _enter_program(self, stop: float) -> None:
        """Let the program enter the segment that ends at `stop`."""
        system, given, program = self._system, self._system.given, self._program
        clocks, loads = given.clocks, given.smooth if self._program.loaded else None
        coefficients = None if loads is None else loads.enter([clocks])[0]
        pieces = pieces_of(system, *clocks) if program.moved else None
        program.enter(stop, given.bounds, self._start, given.offset, coefficients, pieces)

    def _ended_by(self, program: PhaseProgram, done: Advance) -> LocatedEvent | None:
        """Return the event that ended the phase: one that stops the run comes first."""
        t, fired, q, v = done.events[-1]
        ends = [program.items[k] for k in fired if program.items[k].action in ("stop", "next")]
        watched = min(ends, key=lambda w: w.action != "stop")
        return LocatedEvent(t, watched, q, v)


def _within(times: Array, stop: float) -> Array:
    """Return the sample times in the rest of a segment, `(m,)`; those at its end are its end."""
    if not times.size:
        return times
    count = bisect.bisect_right(times, stop + CLOSE * math.ulp(abs(stop)))
    return np.minimum(times[:count], stop)
