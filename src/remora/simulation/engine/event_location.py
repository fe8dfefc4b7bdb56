"""Location of events within a step, to the last bit of their time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.state_layout import layout_of
from remora.errors import SimulationError
from remora.simulation.engine.crossings import FINEST, Crossing, Look, crossings, first_place
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.inputs.events import EventMonitor
from remora.simulation.integrators.step_result import StepResult
from remora.simulation.phase.run_state import RunState

#: After a crossing, changes of a condition count as rounding for this many units in the last place
#: of the time, and for this fraction of the step.
NOISE, NOISE_OF_STEP = 64.0, 1e-9
#: Magnitude of a condition that a reset leaves at zero.
TINY = float(np.finfo(float).tiny)
#: Time over which the slope of a condition after a reset is found, s.
SLOPE = 1e-7
#: Relative changes of a condition that are rounding.
ROUNDING = 4.0 * float(np.finfo(float).eps)


class EventLocator:
    """The conditions of a phase, and where they cross zero.

    Attributes:
        watch: the conditions.
        looked: the conditions at their last evaluation.
        last: for each condition, time and noise interval of its last zero crossing.
    """

    def __init__(
        self,
        system: PhaseDynamics,
        state: RunState,
        watch: EventMonitor,
        attempt: Callable[[float], StepResult],
        blame: Callable[[float], None],
    ) -> None:
        """Initialize.

        Args:
            system: the rates.
            state: state of the run.
            watch: the conditions.
            attempt: step size -> a step from the state.
            blame: raises if a component returns NaN in a step of this size, and names it.
        """
        self._system, self._state, self.watch, self._attempt = system, state, watch, attempt
        self._blame = blame
        self._layout = layout_of(system.robot, state.x.size)
        self.looked = np.zeros(0)
        self.last: dict[int, tuple[float, float]] = {}

    @property
    def settled(self) -> bool:
        """Whether no condition crossed zero so recently that a checkpoint must store it."""
        return not any(self.just_fired(k, self._state.t) for k in self.last)

    def start(self, before: Sequence[float]) -> None:
        """Look at the conditions at the start of a phase.

        Args:
            before: the first conditions just before the phase.
        """
        state = self._state
        self.looked = self.values(state.t, state.q, state.v, state.x)
        self.looked[: len(before)] = before
        for k in range(len(before), self.watch.events):
            item, value = self.watch.items[k], float(self.looked[k])
            if item.at_start and item.direction * value >= 0.0:
                # as after a jump through zero: the first step finds it at its start
                self.looked[k] = -item.direction * max(abs(value), TINY)

    def restore(self, looked: Array, last: Mapping[int, tuple[float, float]]) -> None:
        """Continue from a checkpoint."""
        self.looked, self.last = looked, dict(last)

    def values(self, t: float, q: Array, v: Array, x: Array) -> Array:
        """Return all conditions at a state."""
        return self.watch.values(t, self._system.given.time_of_phase(t), q, v, x)

    def passed(self, end: float, length: float, crossed: Sequence[int]) -> None:
        """Look at the conditions at the end of a step.

        Args:
            end: time of the state, s.
            length: of the step, s.
            crossed: conditions that crossed zero there.
        """
        if not len(self.watch):
            return
        state, items = self._state, self.watch.items
        after = self.values(end, state.q, state.v, state.x)
        for k in range(len(items)):
            if self.just_fired(k, end):
                after[k] = self.looked[k]
        self._before = self.looked
        for k in crossed:
            if k < len(items):
                self.last[k] = (end, NOISE * np.spacing(abs(end)) + NOISE_OF_STEP * length)
        self.looked = after

    def after_reset(self, fired: Sequence[int], rate: Array) -> None:
        """Look at the conditions of events after their reset.

        Where the reset has not changed a condition, its value is rounding, and its slope tells on
        which side of zero it is: if it goes on, it has crossed zero; if it turns back, or stays, it
        has not, so that crossing zero again is another event, however soon (or chattering, in place
        of a contact that is missed). Conditions of other events keep their value from before the
        reset, so that a jump of theirs through zero is an event.

        Args:
            fired: conditions whose events reset the state.
            rate: rate of y after the reset, `(n,)`.
        """
        state, layout = self._state, self._layout
        now = self.values(state.t, state.q, state.v, state.x)
        y = state.y + SLOPE * rate
        ahead = self.values(
            state.t + SLOPE, self._system.place(y[layout.u]), y[layout.v], y[layout.extra]
        )
        for k in fired:
            at_event, side = self.looked[k], math.copysign(1.0, self._before[k])
            if abs(now[k]) > abs(at_event):
                self.looked[k] = now[k]
                continue
            on = side * (ahead[k] - now[k]) < -ROUNDING * (abs(ahead[k]) + abs(now[k]))
            self.looked[k] = -side * TINY if on else side * TINY

    # The first event within a step --------------------------------------------------------------

    def locate(self, attempt: StepResult, end: float) -> tuple[StepResult, float, list[int]]:
        """Return the step, shortened to the first event within it, its end, and the events.

        The dense output of the step predicts the crossing. Then steps to candidate times are made
        until the condition has crossed zero at the end of one of them, and not one unit in the
        last place of the time earlier. Indices beyond the conditions are those of stops.
        """
        system, state, watch = self._system, self._state, self.watch
        if not (len(watch) or system.stops.count):
            return attempt, end, []
        if not watch.events:
            fastest, h = attempt.fastest(), end - state.t
            if system.stops.clear(state.q, fastest, h) and watch.far(state.q, state.v, fastest, h):
                return attempt, end, []
        look = self._look(attempt, end)
        room = np.maximum(system.stops.room(state.q), 0.0) if system.stops.count else np.zeros(0)
        first = np.concatenate([self.looked, room])
        found = crossings(look, first, watch.crossed, watch.events)
        if not found:
            return attempt, end, []
        places = [(first_place(look, crossing, watch.crossed), crossing) for crossing in found]
        return self._step_to(attempt, end, look, sorted(places, key=lambda x: x[0]))

    def just_fired(self, k: int, t: float) -> bool:
        """Return whether condition k crossed zero so recently that its changes are rounding."""
        if k not in self.last:
            return False
        fired, noise = self.last[k]
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
                v, own = moved[layout.v], moved[layout.extra]
                if x == 1.0:  # exact to the last bit
                    t, (q, v, own) = end, state.after(end, attempt.change)
                system.set_held(t, q, v)
                if x != 1.0:
                    q, v = system.projected(q, v)
                rows.append(self._seen(t, q, v, own))
            return np.array(rows)

        return look

    def _seen(self, t: float, q: Array, v: Array, x: Array) -> Array:
        """Return all conditions and the distances to the stops within a step."""
        system = self._system
        values = self.values(t, q, v, x)
        for k in self.last:
            if self.just_fired(k, t):
                values[k] = self.looked[k]
        return np.concatenate([values, system.stops.room(q)]) if system.stops.count else values

    def _step_to(
        self, attempt: StepResult, end: float, look: Look, places: list[tuple[float, Crossing]]
    ) -> tuple[StepResult, float, list[int]]:
        """Return the step to the first of these crossings, its end, and all crossings there."""
        system, state, watch = self._system, self._state, self.watch
        start, h = state.t, end - state.t
        place, crossing = places[0]
        row, before = crossing.row, crossing.before

        def tried(t: float) -> tuple[float, StepResult, Array]:
            shorter = attempt if t == end else self._attempt(t - start)
            if not (math.isfinite(shorter.error) and np.all(np.isfinite(shorter.change))):
                self._blame(t - start)
                raise SimulationError(
                    f"the step of {t - start:.3g} s to {self._name(row)} leads to a state that "
                    "is not finite: "
                    "choose shorter steps (max_step, or step)",
                    start,
                )
            q, v, x = state.after(t, shorter.change)
            system.set_held(t, q, v)
            return t, shorter, self._seen(t, q, v, x)

        def has_crossed(values: Array) -> bool:
            return watch.crossed(row, before, float(values[row]))

        earliest = max(float(np.nextafter(start, np.inf)), start + FINEST * h)
        guess = min(max(start + place * h, earliest), end)
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
        while high[0] - low > max(_last_place(high[0]), FINEST * h):
            middle, f_high = 0.5 * (low + high[0]), float(high[2][row])
            turn += 1
            if turn % 3 and f_high != f_low:
                # Secants approach from one side: at its last place, the next lands on the other.
                secant = high[0] - f_high * (high[0] - low) / (f_high - f_low)
                place_of_time = _last_place(high[0])
                middle = min(max(secant, low + place_of_time), high[0] - place_of_time)
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
        items = self.watch.items
        return f"event {items[row].name!r}" if row < len(items) else "where a stop is met"

    def _off(self, look: Look, place: float, row: int, value: float) -> float:
        """Return by how much in θ a crossing may differ from the dense output's prediction."""
        width = 1e-4 * min(place, 1.0 - place)
        if width <= 0.0:
            return 0.0
        left, right = look(np.array([place - width, place + width]))[:, row].tolist()
        slope = (right - left) / (2.0 * width)
        return min(2.0 * abs(value / slope), 1.0) if slope else 0.0


def _last_place(t: float) -> float:
    return float(np.spacing(abs(t)))
