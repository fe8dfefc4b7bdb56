"""Events of a batch: those of components, and conditions given as `rm.Event`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.context import Context
from remora.components.system import System
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.simulation.batch.result import BatchEvents
from remora.simulation.inputs.events import Event, RobotCondition


class EventCondition(Component):
    """The condition of an `rm.Event` as a component.

    Attributes:
        condition: (t, q, v) -> a number.
        crossing: direction and action.
        event: name of the event.
        of_phase: whether it belongs to a phase: then its time is that of the phase's clock.
    """

    condition: Callable[..., Any]
    crossing: ZeroCrossing
    event: str
    of_phase: bool

    def interface(self, robot: Robot) -> Interface:
        """Return the event."""
        return Interface(events={"event": self.crossing})

    def crossings(self, at: Context) -> Mapping[str, ArrayLike]:
        """Return the condition, with the numbers of the run's own robot."""
        if isinstance(self.condition, RobotCondition):
            return {"event": self.condition.margin(at.robot, at.q, at.v)}
        return {"event": self.condition(at.clock if self.of_phase else at.t, at.q, at.v)}


def conditions(
    robot: Robot, everywhere: Sequence[Event], events: Sequence[Event]
) -> list[EventCondition]:
    """Return events as components, or raise if one cannot be compiled.

    Args:
        robot: the robot.
        everywhere: events of the whole run, whose conditions receive the time of the run.
        events: events of the phase, whose conditions receive the time of its clock.
    """
    found: list[EventCondition] = []
    for k, event in enumerate((*everywhere, *events)):
        with np.errstate(all="ignore"):
            value: Any = event.condition(0.0, neutral(robot), np.zeros(robot.nv))
        if isinstance(value, (bool, np.bool_)):
            raise RemoraError(
                f"event {event.name!r} of a batch needs a condition that is a number which crosses "
                "zero, not a truth value: write q[8] - 0.5 instead of q[8] > 0.5"
            )
        name = re.sub(r"[^A-Za-z0-9_\-]", "_", event.name) or "event"
        crossing = ZeroCrossing(event.direction, event.action, event.at_start)
        found.append(
            EventCondition(
                event.condition,
                crossing,
                event.name,
                k >= len(everywhere),
                name=f"event_{k}_{name}",
            )
        )
    return found


def event_names(system: System) -> list[str]:
    """Return the names of a system's events: `component.event`, or that of an `rm.Event`."""
    names: list[str] = []
    for own in system.events:
        component = system.components[own.component]
        names.append(component.event if isinstance(component, EventCondition) else str(own))
    return names


def collected(
    parts: Sequence[tuple[System, Array, Array, Array, Array]], most: int, stacklevel: int
) -> BatchEvents | None:
    """Return the events of all phases.

    Args:
        parts: of each phase: its system, the number of events of each run `(...)`, their times
            `(..., capacity)`, which occurred `(..., capacity, events)`, and when each event first
            did `(..., events)`, NaN if it did not.
        most: number of events that were stored for each run and phase.
        stacklevel: of the warning about events that were not stored.
    """
    if not parts:
        return None
    names = list(dict.fromkeys(name for system, *_ in parts for name in event_names(system)))
    times = np.concatenate([part[2] for part in parts], axis=-1)
    flags: list[Array] = []
    earliest: list[Array] = []
    for system, _, _, fired, first in parts:
        own = event_names(system)
        places = [[k for k, n in enumerate(own) if n == name] for name in names]
        columns = [np.max(fired[..., own], axis=-1, initial=0.0) for own in places]
        flags.append(np.stack(columns, axis=-1))
        known = np.where(np.isnan(first), np.inf, first)
        columns = [np.min(known[..., own], axis=-1, initial=np.inf) for own in places]
        earliest.append(np.stack(columns, axis=-1))
    fired, first = np.concatenate(flags, axis=-2), np.min(earliest, axis=0)
    first = np.where(np.isfinite(first), first, np.nan)
    order = np.argsort(times, axis=-1, kind="stable")  # NaN last
    times = np.take_along_axis(times, order, axis=-1)
    fired = np.take_along_axis(fired, order[..., None], axis=-2)
    filled = int(np.max(np.sum(np.isfinite(times), axis=-1), initial=0))
    more = int(np.count_nonzero(np.max([part[1] for part in parts], axis=0) > most))
    if more and most:  # who stores none does not miss them
        warnings.warn(
            f"{more} runs had more than {most} events in a phase; of the later ones only the "
            "first of each name is known (events.first): raise max_events",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
    counts: Array = np.sum([part[1] for part in parts], axis=0)
    return BatchEvents(tuple(names), counts, times[..., :filled], fired[..., :filled, :], first)
