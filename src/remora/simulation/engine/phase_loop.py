"""Driving a run: steps chosen, events located, samples taken, sums without loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.namespace import Array
from remora.dynamics.forces.equations_of_motion import WORKS
from remora.errors import SimulationError
from remora.simulation.engine.run_model import RunModel
from remora.simulation.engine.run_state import RunState
from remora.simulation.inputs.events import LOOKS, Watch, Watched, bracketed
from remora.simulation.integrators.error_scale import ErrorScale
from remora.simulation.integrators.step_result import StepResult, norm
from remora.simulation.integrators.table import Integrator
from remora.simulation.recording.checkpoint import PhaseCheckpoint

#: A step may be this much shorter or longer than the one before it.
SHRINK, GROW, SAFETY = 0.2, 8.0, 0.9
#: Times closer than this many units in the last place are one.
CLOSE = 8.0


class StepperSettings(NamedTuple):
    """How steps are chosen.

    Attributes:
        integrator: the method.
        rtol: error allowed in a step, relative to the size of each number.
        atol: error allowed in a step, absolute.
        step: length of the steps of a method without error estimate, s; else the first step, or
            None to find one.
        max_step: longest step, s.
        max_steps: most steps of an adaptive method.
    """

    integrator: Integrator
    rtol: float
    atol: float
    step: float | None
    max_step: float
    max_steps: int


class LocatedEvent(NamedTuple):
    """An event that happened.

    Attributes:
        t: when, s.
        watched: which.
        q: the configuration then, `(nq,)`.
        v: the velocity then, `(nv,)`.
    """

    t: float
    watched: Watched
    q: Array
    v: Array


class StepInterval(NamedTuple):
    """A step that was made.

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
        system: RunModel,
        state: RunState,
        stepping: StepperSettings,
        watch: Watch,
        made: Callable[[StepInterval, list[LocatedEvent]], None],
        start: float,
    ) -> None:
        """Prepare.

        Args:
            system: the rates.
            state: where the run is; it is moved on.
            stepping: how steps are chosen.
            watch: conditions to look at.
            made: called after each step, with it and with the events at its end.
            start: when the phase began, s.
        """
        self._system, self._state, self._stepping = system, state, stepping
        self._watch, self._made, self._start = watch, made, start
        self._h: float | None = None
        self._rate: Array | None = None
        self._looked = np.zeros(0)
        self._asked = [1] * len(system.controllers)  # they have seen the start
        self._bounds = (start, start)  # of the segment
        self._tried = 0
        self._last: dict[int, tuple[float, float]] = {}  # when conditions crossed, and to where
        self._reach = ErrorScale(system.robot)
        self._any_error = np.full(2 * system.robot.nv + WORKS, np.inf)

    @property
    def looked(self) -> Array:
        """The conditions as they were last seen."""
        return self._looked

    def inside(self) -> PhaseCheckpoint:
        """Return what makes the next step be as it would have been, for a mark."""
        orders = [c.value for c in self._system.controllers]
        return PhaseCheckpoint(
            self._h, self._rate, self._looked, list(self._asked), orders, self._bounds
        )

    def run(
        self,
        stop: float,
        landings: Sequence[float],
        resumed: PhaseCheckpoint | None = None,
        before: Sequence[float] = (),
    ) -> LocatedEvent | None:
        """Go on to the time `stop`; return the event that ended it before, if one did.

        Args:
            stop: s.
            landings: further times that a step is to end at.
            resumed: where to go on from, if not from the start of the phase.
            before: the first conditions as they were just before the phase.
        """
        system, state, start, asked = self._system, self._state, self._start, self._asked
        breaks = sorted({t for t in (*system.breaks, *landings) if start < t < stop})
        if resumed is None:
            self._looked = self._watch.values(system.clock(state.t), state.q, state.v)
            self._looked[: len(before)] = before
        else:
            asked[:], self._h, self._looked = resumed.asked, resumed.h, resumed.looked
            if state.t < resumed.segment[1]:
                ended = self._segment(*resumed.segment, resumed.rate)
                if ended is not None:
                    return ended
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
        """Go on to `stop` through times in which all is smooth, from the start or from within."""
        state, integrator = self._state, self._stepping.integrator
        self._system.q, self._bounds = state.q, (start, stop)
        self._system.enter(start, stop)
        self._rate = rate
        if integrator.error_order:
            return self._adaptive(stop, state.t == start)
        length = self._stepping.step
        assert length is not None
        count = max(1, math.ceil((stop - start) / length - 1e-6))
        for i in range(1, count + 1):
            end = stop if i == count else start + (stop - start) * (i / count)
            while state.t < end:  # once, or again after an event within
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
                    "a controller may drive the robot faster and faster; else raise max_steps",
                    state.t,
                )
            if not attempt.error <= 1.0:  # or not a number
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

    def _attempt(self, h: float, again: bool = False) -> StepResult:
        system, state = self._system, self._state
        system.q, system.rest = state.q, state.rest
        y = state.y
        if self._rate is None:
            self._rate = system.rates(state.t, y)
        step = self._stepping.integrator.step
        return step(system, state.t, y, self._rate, h, self._scale(), again)

    def _accept(self, attempt: StepResult, end: float) -> LocatedEvent | None:
        """Move the state on by a step, or to the first event within it."""
        system, state = self._system, self._state
        attempt, end, crossed = self._to_event(attempt, end)
        start, nv = state.t, system.robot.nv
        y, length = state.y, end - start

        def at(t: float) -> tuple[Array, Array, Array]:
            if t == end:
                return state.q, state.v, state.work
            system.q = before
            moved = y + attempt.dense(np.array([(t - start) / length]))[0]
            q, v = system.place(moved[:nv]), moved[nv : 2 * nv]
            system.set_held(t, q, v)
            return q, v, moved[2 * nv :]

        before = state.q
        state.add(end, attempt.change)
        system.set_held(end, state.q, state.v)
        fired = [LocatedEvent(end, self._watch.items[k], state.q, state.v) for k in crossed]
        if len(self._watch):
            after = self._watch.values(system.clock(end), state.q, state.v)
            for k in crossed:
                self._last[k] = (end, -1.0 if self._looked[k] > 0.0 else 1.0)
            for k, (_, side) in self._last.items():  # on the other side, whatever rounding says
                if self._just_fired(k, end):
                    after[k] = side * max(abs(after[k]), np.finfo(float).tiny)
            self._looked = after
        self._rate = None
        if attempt.rate is not None:
            self._rate = np.concatenate([state.v, attempt.rate[nv:]])
        self._made(StepInterval(start, end, at), fired)
        system.q = state.q
        ends = [f for f in fired if f.watched.action != "record"]
        return min(ends, key=lambda f: f.watched.action != "stop", default=None)

    # Events -------------------------------------------------------------------------------------

    def _to_event(self, attempt: StepResult, end: float) -> tuple[StepResult, float, list[int]]:
        """Return the step, shortened to the first event within it, its end, and what happened.

        The polynomial between the ends of the step tells where to look; then steps to that very
        time are made, until the event is where they end.
        """
        state, nv = self._state, self._system.robot.nv
        dq, dv = attempt.change[:nv], attempt.change[nv : 2 * nv]
        if not len(self._watch) or self._watch.far(state.q, state.v, dq, dv, end - state.t):
            return attempt, end, []
        before, low = self._looked, 0.0
        for high in (np.arange(1, LOOKS + 1) / LOOKS).tolist():
            after = self._seen(attempt, end, high)
            crossed = np.flatnonzero(self._watch.crossed(before, after)).tolist()
            crossed = [k for k in crossed if not self._just_fired(k, end)]
            if crossed:
                break
            before, low = after, high
        else:
            return attempt, end, []

        def zero(k: int) -> float:
            def condition(x: float) -> float:
                return float(self._seen(attempt, end, x)[k])

            return bracketed(condition, low, high, float(before[k]), float(after[k]))

        places = {k: zero(k) for k in crossed}
        first = min(places.values())
        found = [k for k, place in places.items() if place <= first * (1.0 + 1e-12)]
        return (*self._step_to(attempt, end, found[0], first), found)

    def _just_fired(self, k: int, end: float) -> bool:
        """Tell whether condition k crossed zero so shortly before that this is the same time."""
        if k not in self._last:
            return False
        return end - self._last[k][0] <= 4.0 * CLOSE * np.spacing(abs(end))

    def _step_to(
        self, attempt: StepResult, end: float, k: int, place: float
    ) -> tuple[StepResult, float]:
        """Return the step that ends where condition k is zero, and its end."""
        start, h = self._state.t, end - self._state.t
        width = 1e-4 * min(1.0, place)
        ends = (self._seen(attempt, end, x)[k] for x in (place - width, place + width))
        left, right = (float(x) for x in ends)
        slope = (right - left) / (2.0 * width) if width > 0.0 else 0.0
        best = (math.inf, attempt, end)
        for _ in range(4):
            stop = max(start + place * h, float(np.nextafter(start, np.inf)))
            shorter = self._attempt(stop - start)
            off = float(self._seen(shorter, stop, 1.0)[k])
            if abs(off) >= best[0] or not math.isfinite(off):
                break
            best = (abs(off), shorter, stop)
            if slope == 0.0 or abs(off / slope) * h <= 2.0 * np.spacing(abs(stop)):
                break
            place -= off / slope
        return best[1], best[2]

    def _seen(self, attempt: StepResult, end: float, theta: float) -> Array:
        """Return the conditions within a step."""
        system, state = self._system, self._state
        nv, start = system.robot.nv, state.t
        system.q = state.q
        y = state.y
        y += attempt.change if theta == 1.0 else attempt.dense(np.array([theta]))[0]
        t = end if theta == 1.0 else start + theta * (end - start)
        q, v = system.place(y[:nv]), y[nv : 2 * nv]
        system.set_held(t, q, v)
        return self._watch.values(system.clock(t), q, v)

    # Lengths of steps ---------------------------------------------------------------------------

    def _scale(self) -> Array:
        """Return the error that is allowed in each number of y; in work any."""
        state = self._state
        nv = self._system.robot.nv
        allowed = self._any_error.copy()
        size = allowed[: 2 * nv]
        size[:nv], size[nv:] = self._reach(state.q), state.v
        np.abs(size, out=size)
        size *= self._stepping.rtol
        size += self._stepping.atol
        return allowed

    def _first_step(self, longest: float) -> float:
        """Return a first step by how fast the rates change [HNW93, section II.4]."""
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
