"""Why a step of a single run fails: what the components return at its start and within it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, SimulationError
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.engine.resets import state_after_reset
from remora.simulation.engine.rounding import rounding_of
from remora.simulation.inputs.events import EventMonitor, MonitoredCondition
from remora.simulation.inputs.run_settings import Integrator
from remora.simulation.phase.run_state import RunState
from remora.simulation.program.event_search import (
    BAD_EVENT,
    BAD_RESET,
    CHATTER_TIME,
    CHATTERING,
    MOST_EVENTS,
)
from remora.simulation.systems.component_faults import name_in_memory

#: The cause of a failed step is looked for until so much later, s.
AHEAD = 1e-6


class FailedStep(NamedTuple):
    """The step at which a program ended.

    Attributes:
        status: of the program, see `event_search`.
        length: of the step, s.
        error: its error in units of the tolerance.
        tried: number of steps tried so far.
        end: q, v and x at its end.
        fired: the events that occurred last.
    """

    status: int
    length: float
    error: float
    tried: int
    end: tuple[Array, Array, Array]
    fired: Sequence[MonitoredCondition]


class StepFaults:
    """Explains the faults of a phase."""

    def __init__(
        self, system: PhaseDynamics, state: RunState, integrator: Integrator, watch: EventMonitor
    ) -> None:
        """Initialize.

        Args:
            system: equations of the phase.
            state: state of the run, that before the step.
            integrator: settings of the steps, with the method.
            watch: the conditions of the phase.
        """
        self._system, self._state, self._integrator, self._watch = system, state, integrator, watch

    def refuse(self, failed: FailedStep) -> NoReturn:
        """Raise the error of a step that failed: it names the cause, if a component is one."""
        system, state = self._system, self._state
        system.z = state.z
        system.center_chart(state.q, state.rest)
        told = {
            BAD_EVENT: self._bad_event, BAD_RESET: self._bad_reset, CHATTERING: self._chattering
        }  # fmt: skip
        message = told.get(failed.status, self._bad_step)(failed)
        raise SimulationError(message, state.t)

    def refuse_nan(self, records: Sequence[tuple[float, Array, Array]]) -> None:
        """Raise if a component returns NaN at one of these times, q and v, and name it."""
        components, state = self._system.components, self._state
        if components is not None:
            for t, q, v in records:
                now = self._system.given.inside(t)
                components.refuse_nan(now, q, v, state.x, state.z)

    def refuse_update(self, updates: Sequence[int], after: Array) -> NoReturn:
        """Raise the error of updates at the state whose discrete states are not finite.

        Args:
            updates: the updates, as indices into the schedule.
            after: the discrete states after them, `(nz,)`.
        """
        components, state = self._system.components, self._state
        assert components is not None
        system, z = components.system, state.z
        for i in updates:  # in NumPy a component says why, such as that a matrix is singular
            own, noise = system.schedule[i], np.zeros(system.noise_size)
            z = components.updated(own, state.t, state.q, state.v, state.x, z, noise)
        raise SimulationError(name_in_memory(system, after), state.t)

    # Steps ----------------------------------------------------------------------------------------

    def _bad_step(self, failed: FailedStep) -> str:
        own, h = self._integrator, failed.length
        if own.row.error_order and failed.tried > own.max_steps:
            return (
                f"{own.max_steps} steps were not enough (the last is of {h:.3g} s): "
                f"{self._slowed(h)}"
            )
        self._blame(h)
        if not own.row.error_order:
            return (
                f"a step of {h:g} s leads to a state that is not finite, or cannot be solved: use "
                f"a shorter `step`; for stiff equations integrator='radau'{self._largest()}"
            )
        return (
            f"steps became too short (the last, of {h:.3g} s, had an error of "
            f"{failed.error:.3g} times the tolerance): the loads are not smooth, too stiff for "
            "this integrator (try integrator='radau'), or drives the state to infinity; or "
            f"tolerances are too tight{self._largest()}"
        )

    def _blame(self, h: float) -> None:
        """Raise if a component returns NaN in a step of this length, or just ahead; name it."""
        system, state, y = self._system, self._state, self._state.y
        rate = system.rates(state.t, y)
        if not np.all(np.isfinite(rate)):
            try:
                system.refuse_contradiction(state.t, y)
            except InvalidValue as error:
                raise SimulationError(str(error), state.t) from error
        system.watch_for_nan(True)
        try:
            rate, ahead = system.rates(state.t, y), h
            self._repeat(y, rate, h)
            while ahead <= AHEAD:  # where the slope is infinite, steps end before the fault
                system.rates(state.t + ahead, y + ahead * rate)
                ahead *= 8.0
        finally:
            system.watch_for_nan(False)

    def _repeat(self, y: Array, rate: Array, h: float) -> None:
        """Evaluate the rates wherever a step of this length does.

        Args:
            y: at its start.
            rate: of y there.
            h: its length, s.
        """
        system, t, method = self._system, self._state.t, self._integrator.row
        if method.step is not None:
            method.step(system, t, y, rate, h, np.full(y.size, np.inf), True)
            return
        tableau, k = method.tableau, [rate]
        weights = np.vstack([tableau.a[1:], tableau.b])
        for c, row in zip([*tableau.c[1:], 1.0], weights, strict=True):
            k.append(system.rates(t + float(c) * h, y + h * (row[: len(k)] @ np.array(k))))

    def _slowed(self, h: float) -> str:
        """Return why steps of this length may have been so many."""
        robot, state, own = self._system.robot, self._state, self._integrator
        found = rounding_of(robot, state.q, state.v, own.rtol, own.atol)
        if found is not None and found.step < 10.0 * h:
            return found.described(own.atol)
        advice = (
            "check whether a controller is unstable; otherwise raise max_steps of rm.Integrator"
        )
        most = self._system.stiffest()
        if most is None:
            return advice
        return f"{advice}; {most.described()}: where that is too stiff, use integrator='radau'"

    def _largest(self) -> str:
        """Return the end of a message that names the component with the largest action."""
        state = self._state
        found = self._system.largest_action(state.t, state.q, state.v, state.x)
        return f"; {found}" if found else ""

    # Events ---------------------------------------------------------------------------------------

    def _bad_event(self, failed: FailedStep) -> str:
        """Raise the error of the function of an event that is NaN at an end of a step."""
        state, given = self._state, self._system.given
        there = state.t + failed.length, *failed.end
        for t, q, v, x in ((state.t, state.q, state.v, state.x), there):
            self._watch.event_values(t, given.time_of_phase(t), q, v, x)
        return "the function of an event is NaN"

    def _bad_reset(self, failed: FailedStep) -> str:
        """Raise the error of a reset at the end of a step."""
        system, state = self._system, self._state
        q, v, x = failed.end
        for item in failed.fired:
            if item.action == "reset" and system.components is not None:
                event = system.components.system.events[item.component]
                t = state.t + failed.length
                state_after_reset(system, event, t, q, v, x, state.z, state.work)
        names = ", ".join(repr(item.name) for item in failed.fired)
        return f"the reset at event {names} returns a state that is not valid"

    def _chattering(self, failed: FailedStep) -> str:
        components, items = self._system.components, failed.fired
        resets = [item for item in items if item.action == "reset"]
        names: list[str] = []
        for item in resets or items:
            name = f"event {item.name!r}"
            if components is not None and item.component >= 0:
                event = components.system.events[item.component]
                name = f"event {event.name!r} of component {event.component!r}"
            names.append(name)
        told = f"{', '.join(names) or 'an event'} chatters: it occurs again and again"
        if not resets:
            return f"{told} without progress of time, as where its condition stays at zero"
        return (
            f"{told}, more than {MOST_EVENTS:g} times within {CHATTER_TIME:g} s; let the reset "
            "move the state away from the event, or end the motion there (a contact that comes to "
            "rest needs a force, or a joint that is locked in a next phase)"
        )
