"""Loop over the steps of one phase: step size control, event location, compensated sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.state_layout import layout_of
from remora.errors import SimulationError
from remora.simulation.engine.crossings import Crossing, Look, crossings, first_place
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.run_state import RunState
from remora.simulation.inputs.events import EventMonitor, MonitoredCondition
from remora.simulation.inputs.loads import HeldValue
from remora.simulation.integrators.error_scale import ErrorScale
from remora.simulation.integrators.step_result import StepResult, norm
from remora.simulation.integrators.table import Integrator
from remora.simulation.recording.checkpoint import PhaseCheckpoint

#: Limits of the ratio of successive step sizes, and safety factor of the step size control.
SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9
#: Times closer than this many units in the last place are considered equal.
CLOSE = 8.0
#: A controller sampled less than this before the end of a phase is not sampled again at the start
#: of the next, s; at most a hundredth of its sample time.
SAME_SAMPLE = 1e-6
#: After a crossing, changes of a condition count as rounding for this many units in the last place
#: of the time, and for this fraction of the step.
NOISE, NOISE_OF_STEP = 64.0, 1e-9


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
        at: time -> q, v and work.
    """

    start: float
    stop: float
    at: Callable[[float], tuple[Array, Array, Array]]


class PhaseLoop:
    """One phase of a run, from its start to its end or to an event that ends it."""

    def __init__(
        self,
        system: PhaseDynamics,
        state: RunState,
        stepping: StepperSettings,
        watch: EventMonitor,
        made: Callable[[StepInterval, list[LocatedEvent]], None],
        start: float,
    ) -> None:
        """Initialize.

        Args:
            system: the rates.
            state: state of the run; it is advanced.
            stepping: settings of the step size control.
            watch: event conditions.
            made: called after each step, with the step and the events at its end.
            start: start time of the phase, s.
        """
        self._system, self._state, self._stepping = system, state, stepping
        self._watch, self._made, self._start = watch, made, start
        self._h: float | None = None
        self._rate: Array | None = None
        self._looked = np.zeros(0)
        self._asked = [1] * len(system.controllers)  # sampled once, at the start
        self._bounds = (start, start)  # of the segment
        self._tried = 0
        self._last: dict[int, tuple[float, float]] = {}  # crossing times, and noise intervals
        self._reach = ErrorScale(system.robot)
        self._layout = layout_of(system.robot)
        self._any_error = np.full(self._layout.size, np.inf)

    @property
    def looked(self) -> Array:
        """The conditions at their last evaluation."""
        return self._looked

    @property
    def settled(self) -> bool:
        """Whether no condition crossed zero so recently that a checkpoint must store it."""
        return not any(self._just_fired(k, self._state.t) for k in self._last)

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
        return PhaseCheckpoint(
            self._h,
            self._rate,
            self._looked,
            asked,
            orders,
            self._bounds,
            self._tried,
            dict(self._last),
        )

    def run(
        self,
        stop: float,
        landings: Sequence[float],
        resumed: PhaseCheckpoint | None = None,
        before: Sequence[float] = (),
    ) -> LocatedEvent | None:
        """Advance to the time `stop`; return the event that ended the phase earlier, if any.

        Args:
            stop: s.
            landings: additional times at which a step must end.
            resumed: checkpoint to continue from, if not from the start of the phase.
            before: the first conditions just before the phase.
        """
        system, state, start, asked = self._system, self._state, self._start, self._asked
        breaks = sorted({t for t in (*system.breaks, *landings) if start < t < stop})
        if resumed is None:
            self._looked = self._values(state.t, state.q, state.v)
            self._looked[: len(before)] = before
        else:
            asked[:], self._h, self._looked = resumed.asked, resumed.h, resumed.looked
            self._tried, self._last = resumed.tried, dict(resumed.last)
            # also if it is at its end: loads there are sampled as inside the segment
            self._bounds = resumed.segment
            system.enter(*resumed.segment)
            system.touch(state.t, state.q, state.v)
            if state.t < resumed.segment[1]:
                ended = self._segment(*resumed.segment, resumed.rate)
                if ended is not None:
                    return ended
        system.touch(state.t, state.q, state.v)
        while state.t < stop:
            now = state.t + CLOSE * np.spacing(abs(state.t))
            while breaks and breaks[0] <= now:
                breaks.pop(0)
            due = [stop, *breaks[:1]]
            for k, controller in enumerate(system.controllers):
                if start + asked[k] * controller.sample_time <= now:
                    system.sample(controller, state.t, state.q, state.v)
                    asked[k] += 1
                due.append(start + asked[k] * controller.sample_time)
            target = min(due)
            if stop - target <= CLOSE * np.spacing(abs(stop)):
                target = stop
            ended = self._segment(state.t, target)
            if ended is not None:
                return ended
        return None

    # Steps --------------------------------------------------------------------------------------

    def _segment(self, start: float, stop: float, rate: Array | None = None) -> LocatedEvent | None:
        """Advance to `stop` through an interval without discontinuities."""
        state, integrator = self._state, self._stepping.integrator
        self._system.center_chart(state.q)
        self._bounds = (start, stop)
        self._system.enter(start, stop)
        if state.t == start:
            self._system.check_joined(start, state.q, state.v)
        self._rate = rate
        if integrator.error_order:
            return self._adaptive(stop, state.t == start)
        length = self._stepping.step
        assert length is not None
        count = max(1, math.ceil((stop - start) / length - 1e-6))
        for i in range(1, count + 1):
            end = stop if i == count else start + (stop - start) * (i / count)
            while state.t < end:  # once, or again after an event within
                self._refuse_unstable(end - state.t)
                attempt = self._attempt(end - state.t)
                if not (attempt.error <= 1.0 and np.all(np.isfinite(attempt.change))):
                    raise SimulationError(
                        f"a step of {end - state.t:g} s leads to no finite state, or to none at "
                        "all: make `step` shorter; where it is stiff, use integrator='radau'",
                        state.t,
                    )
                ended = self._accept(attempt, end)
                if ended is not None:
                    return ended
        return None

    def _refuse_unstable(self, h: float) -> None:
        """Refuse a fixed step in which the stops that are touched make the motion grow."""
        stable, system, state = self._stepping.integrator.stable, self._system, self._state
        if math.isinf(stable) or not np.any(system.contact):
            return
        frequency = system.stop_frequency(state.q)
        if h * frequency > stable:
            raise SimulationError(
                f"steps of {h:g} s are too long for the stops, which swing at {frequency:.3g} rad/s"
                f": steps of more than {stable / frequency:.2g} s are unstable; make `step` "
                "shorter, the stops softer, or use an adaptive integrator",
                state.t,
            )

    def _adaptive(self, stop: float, first: bool) -> LocatedEvent | None:
        state, power = self._state, -1.0 / (self._stepping.integrator.error_order + 1)
        if self._h is None:
            self._h = self._stepping.step or self._first_step(stop - state.t)
        refused = False
        while state.t < stop:
            left = stop - state.t
            wanted = min(self._h, self._stepping.max_step)
            last = left <= wanted * (1.0 + 1e-9)
            h = left if last else min(wanted, 0.5 * left)
            attempt = self._attempt(h, first or refused)
            self._tried += 1
            if self._tried > self._stepping.max_steps:
                raise SimulationError(
                    f"{self._stepping.max_steps} steps were not enough (the last is of {h:.3g} s): "
                    "a controller may drive the robot faster and faster; else raise max_steps"
                    f"{self._stiffest()}",
                    state.t,
                )
            if not attempt.error <= 1.0:  # or NaN
                refused = True
                finite = math.isfinite(attempt.error)
                self._h = h * (max(SHRINK, SAFETY * attempt.error**power) if finite else SHRINK)
                if state.t + 0.1 * self._h <= state.t:
                    raise SimulationError(
                        f"steps became too short to go on (the last, of {h:.3g} s, had an error of "
                        f"{attempt.error:.3g} times what is allowed): what acts is not smooth, too "
                        "stiff for this integrator (try integrator='radau'), or drives the state "
                        "to infinity; or tolerances are too tight",
                        state.t,
                    )
                continue
            factor = GROW if attempt.error == 0.0 else SAFETY * attempt.error**power
            grown = h * min(1.0 if refused else GROW, max(SHRINK, factor))
            first = refused = False
            self._h = max(self._h, grown) if h < wanted else grown
            ended = self._accept(attempt, stop if last else state.t + h)
            if ended is not None:
                return ended
        return None

    def _stiffest(self) -> str:
        """Return the end of a message that names the joint that makes the equations stiff."""
        found = self._system.stiffest()
        if found is None:
            return ""
        return f"; {found.described()}: where that is too stiff, use integrator='radau'"

    def _attempt(self, h: float, again: bool = False) -> StepResult:
        system, state = self._system, self._state
        system.center_chart(state.q, state.rest)
        y = state.y
        if self._rate is None:
            self._rate = system.rates(state.t, y)
        step = self._stepping.integrator.step
        return step(system, state.t, y, self._rate, h, self._scale(), again)

    def _accept(self, attempt: StepResult, end: float) -> LocatedEvent | None:
        """Advance the state by a step, or to the first event within it."""
        system, state = self._system, self._state
        attempt, end, crossed = self._to_event(attempt, end)
        start, layout = state.t, self._layout
        y, length = state.y, end - start
        before, contact = state.q, system.contact

        def at(t: float) -> tuple[Array, Array, Array]:
            if t == end:
                return state.q, state.v, state.work
            system.center_chart(before)
            during, system.contact = system.contact, contact
            moved = y + attempt.dense(np.array([(t - start) / length]))[0]
            q, v = system.place(moved[layout.u]), moved[layout.v]
            system.set_held(t, q, v)
            system.contact = during
            return q, v, moved[layout.work]

        system.check_motions(start, end)
        state.add(end, attempt.change)
        system.set_held(end, state.q, state.v)
        items = self._watch.items
        fired = [LocatedEvent(end, items[k], state.q, state.v) for k in crossed if k < len(items)]
        if len(self._watch):
            after = self._values(end, state.q, state.v)
            for k in range(len(items)):
                if self._just_fired(k, end):
                    after[k] = self._looked[k]
            for k in crossed:
                if k < len(items):
                    self._last[k] = (end, NOISE * np.spacing(abs(end)) + NOISE_OF_STEP * length)
            self._looked = after
        self._rate = None
        if attempt.rate is not None:
            self._rate = np.concatenate([state.v, attempt.rate[layout.after_u]])
        if system.touch(end, state.q, state.v):
            self._rate = None
        self._made(StepInterval(start, end, at), fired)
        system.center_chart(state.q)
        ends = [f for f in fired if f.watched.action != "record"]
        return min(ends, key=lambda f: f.watched.action != "stop", default=None)

    # Events -------------------------------------------------------------------------------------

    def _values(self, t: float, q: Array, v: Array) -> Array:
        return self._watch.values(t, self._system.time_of_phase(t), q, v)

    def _to_event(self, attempt: StepResult, end: float) -> tuple[StepResult, float, list[int]]:
        """Return the step, shortened to the first event within it, its end, and the events.

        The dense output of the step predicts the crossing. Then steps to candidate times are made
        until the condition has crossed zero at the end of one of them, and not one unit in the
        last place of the time earlier. Indices beyond the conditions are those of stops.
        """
        system, state, watch = self._system, self._state, self._watch
        if not (len(watch) or system.stops):
            return attempt, end, []
        if not watch.events:
            fastest, h = attempt.fastest(), end - state.t
            clear = system.clear_of_stops(state.q, fastest, h)
            if clear and watch.far(state.q, state.v, fastest, h):
                return attempt, end, []
        look = self._look(attempt, end)
        room = np.maximum(system.room_to_stops(state.q), 0.0) if system.stops else np.zeros(0)
        first = np.concatenate([self._looked, room])
        found = crossings(look, first, watch.crossed, watch.events)
        if not found:
            return attempt, end, []
        places = [(first_place(look, crossing, watch.crossed), crossing) for crossing in found]
        return self._step_to(attempt, end, look, sorted(places, key=lambda x: x[0]))

    def _just_fired(self, k: int, t: float) -> bool:
        """Return whether condition k crossed zero so recently that its changes are rounding."""
        if k not in self._last:
            return False
        fired, noise = self._last[k]
        return t - fired <= noise

    def _look(self, attempt: StepResult, end: float) -> Look:
        """Return the conditions within a step as a function of θ."""
        system, state = self._system, self._state
        start, layout, y = state.t, self._layout, state.y

        def look(theta: Array) -> Array:
            system.center_chart(state.q)
            inner = y + attempt.dense(theta)
            places = system.place(np.ascontiguousarray(inner[:, layout.u]))
            rows: list[Array] = []
            for x, q, moved in zip(theta.tolist(), places, inner, strict=True):
                t = start + x * (end - start)
                v = moved[layout.v]
                if x == 1.0:  # exact to the last bit
                    t, (q, v) = end, state.after(attempt.change)
                system.set_held(t, q, v)
                rows.append(self._seen(t, q, v))
            return np.array(rows)

        return look

    def _seen(self, t: float, q: Array, v: Array) -> Array:
        """Return all conditions and the distances to the stops within a step."""
        system = self._system
        values = self._values(t, q, v)
        for k in self._last:
            if self._just_fired(k, t):
                values[k] = self._looked[k]
        return np.concatenate([values, system.room_to_stops(q)]) if system.stops else values

    def _step_to(
        self, attempt: StepResult, end: float, look: Look, places: list[tuple[float, Crossing]]
    ) -> tuple[StepResult, float, list[int]]:
        """Return the step to the first of these crossings, its end, and all crossings there."""
        system, state, watch = self._system, self._state, self._watch
        start, h = state.t, end - state.t
        place, crossing = places[0]
        row, before = crossing.row, crossing.before

        def tried(t: float) -> tuple[float, StepResult, Array]:
            shorter = attempt if t == end else self._attempt(t - start)
            if not (math.isfinite(shorter.error) and np.all(np.isfinite(shorter.change))):
                raise SimulationError(
                    f"the step of {t - start:.3g} s to {self._name(row)} leads to no finite state: "
                    "choose shorter steps (max_step, or step)",
                    start,
                )
            q, v = state.after(shorter.change)
            system.set_held(t, q, v)
            return t, shorter, self._seen(t, q, v)

        def has_crossed(values: Array) -> bool:
            return watch.crossed(row, before, float(values[row]))

        guess = min(max(start + place * h, float(np.nextafter(start, np.inf))), end)
        here = tried(guess)
        width = max(self._off(look, place, row, float(here[2][row])) * h, 4.0 * _last_place(guess))
        low, f_low, high = start, before, here
        if has_crossed(here[2]):
            while high[0] - width > start:
                here = tried(high[0] - width)
                if not has_crossed(here[2]):
                    low, f_low = here[0], float(here[2][row])
                    break
                high, width = here, 8.0 * width
        else:
            while not has_crossed(here[2]):
                if here[0] == end:  # predicted by the dense output, but not confirmed by the step
                    return attempt, end, []
                low, f_low = here[0], float(here[2][row])
                here, width = tried(min(low + width, end)), 8.0 * width
            high = here
        turn = 0
        while high[0] - low > max(_last_place(high[0]), 1e-18 * h):
            middle, f_high = 0.5 * (low + high[0]), float(high[2][row])
            turn += 1
            if turn % 2 and f_high != f_low:
                secant = high[0] - f_high * (high[0] - low) / (f_high - f_low)
                middle = secant if low < secant < high[0] else middle
            if not low < middle < high[0]:
                break
            here = tried(middle)
            if has_crossed(here[2]):
                high = here
            else:
                low, f_low = middle, float(here[2][row])
        t, shorter, values = high
        near = max(place, (t - start) / h) + 1e-9
        crossed = [
            c.row for x, c in places
            if x <= near and watch.crossed(c.row, c.before, float(values[c.row]))
        ]  # fmt: skip
        return shorter, t, crossed

    def _name(self, row: int) -> str:
        items = self._watch.items
        return f"event {items[row].name!r}" if row < len(items) else "where a stop is met"

    def _off(self, look: Look, place: float, row: int, value: float) -> float:
        """Return by how much in θ a crossing may differ from the dense output's prediction."""
        width = 1e-4 * min(place, 1.0 - place)
        if width <= 0.0:
            return 0.0
        left, right = look(np.array([place - width, place + width]))[:, row].tolist()
        slope = (right - left) / (2.0 * width)
        return min(2.0 * abs(value / slope), 1.0) if slope else 0.0

    # Step size control --------------------------------------------------------------------------

    def _scale(self) -> Array:
        """Return the error tolerance of each component of y; unlimited for work."""
        state = self._state
        layout, allowed = self._layout, self._any_error.copy()
        allowed[layout.u], allowed[layout.v] = self._reach(state.q), state.v
        size = allowed[layout.motion]
        np.abs(size, out=size)
        size *= self._stepping.rtol
        size += self._stepping.atol
        return allowed

    def _first_step(self, longest: float) -> float:
        """Return an initial step size from the change of the rates [HNW93, section II.4]."""
        system, state, scale = self._system, self._state, self._scale()
        y = state.y
        if self._rate is None:
            self._rate = system.rates(state.t, y)
        size, rate = norm(y, scale), norm(self._rate, scale)
        h = min(max(0.01 * size / rate, 1e-6) if rate > 1e-5 else 1e-6, longest)
        change = norm(system.rates(state.t + h, y + h * self._rate) - self._rate, scale) / h
        most = max(rate, change)
        order = self._stepping.integrator.order
        better = (0.01 / most) ** (1.0 / (order + 1)) if most > 1e-15 else 100.0 * h
        return min(100.0 * h, better, longest)


def _last_place(t: float) -> float:
    return float(np.spacing(abs(t)))
