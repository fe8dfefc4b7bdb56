"""Events of a run as components: conditions given as `rm.Event`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import ArrayLike
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.context import Context
from remora.components.system import System
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.state import neutral
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
                "zero, not a truth value: write q[8] - 0.5 instead of q[8] > 0.5, or use "
                "target='python'"
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
