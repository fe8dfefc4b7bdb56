"""Events: conditions that are watched during a run, and where they cross zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from remora.algebra.namespace import Array
from remora.errors import InvalidValue, RemoraError, SimulationError, UnknownName
from remora.model.joints import in_coordinates
from remora.model.robot import Robot
from remora.simulation.inputs.loads import described, frozen_view

Action = Literal["record", "next", "stop"]
ACTIONS = ("record", "next", "stop")
#: Into how many parts a step is divided to see a condition that crosses zero twice within.
LOOKS = 4
#: Looks at a condition until its zero is known to the last bit.
MOST_LOOKS = 60


@dataclass(frozen=True)
class Event:
    """A condition to be watched: something happens when it crosses zero.

    Attributes:
        condition: (t, q, v) -> a number.
        name: what it is called in the recording.
        action: `record` notes it, `next` goes on with the next phase, `stop` ends the run.
        direction: +1 when the condition rises through zero, -1 when it falls, 0 both.
    """

    condition: Callable[[float, Array, Array], float]
    name: str = "event"
    action: Action = "stop"
    direction: int = 0

    def __post_init__(self) -> None:
        """Check."""
        if self.action not in ACTIONS:
            raise UnknownName("action of an event", self.action, ACTIONS)
        if self.direction not in (-1, 0, 1):
            raise InvalidValue(f"direction of an event must be -1, 0 or 1, not {self.direction}")
        if not callable(self.condition):
            raise RemoraError(f"the condition of event {self.name!r} must be a function (t, q, v)")

    def described(self) -> list[Any]:
        """Return it in plain words and numbers: name, action, direction, condition."""
        return [self.name, self.action, self.direction, described(self.condition)]


class Watched(NamedTuple):
    """What happens where one of the watched conditions crosses zero."""

    name: str
    action: Action
    direction: int


class Watch:
    """All conditions of a phase, as one function with several values.

    Attributes:
        items: what each of them is.
    """

    def __init__(
        self,
        robot: Robot,
        everywhere: Sequence[Event],
        events: Sequence[Event],
        limits: Action | None,
        offset: float = 0.0,
    ) -> None:
        """Gather what is watched.

        Args:
            robot: the robot.
            everywhere: events of the whole run, whose conditions see its time.
            events: of the phase, whose conditions see the phase's.
            limits: what happens where a joint passes a limit; None: nothing.
            offset: from the phase's time to that of the run, s.
        """
        self._events = (*everywhere, *events)
        self._offsets = [offset] * len(everywhere) + [0.0] * len(events)
        self.items = [Watched(e.name, e.action, e.direction) for e in self._events]
        self._signs = np.zeros(0)
        self._bounds = np.zeros(0)
        self._places = np.zeros(0, int)
        self._speeds = np.zeros(0, int)
        self._fast = np.zeros(0, int)
        self._fastest = np.zeros(0)
        if limits is not None:
            self._watch_limits(robot, limits)

    def _watch_limits(self, robot: Robot, action: Action) -> None:
        found: list[tuple[int, int, float, float]] = []
        for joint in robot.joints:
            if joint.mimic is not None or not in_coordinates(joint):
                continue
            for side, values, sign in (
                ("upper", joint.limits.upper, 1.0),
                ("lower", joint.limits.lower, -1.0),
            ):
                for k, limit in enumerate(np.atleast_1d(values).tolist()):
                    if math.isfinite(limit):
                        found.append((joint.q.start + k, joint.v.start + k, limit, sign))
                        self.items.append(Watched(f"{joint.name} {side} limit", action, -1))
        self._places = np.array([place for place, *_ in found], int)
        self._speeds = np.array([speed for _, speed, *_ in found], int)
        self._bounds = np.array([limit for *_, limit, _ in found])
        self._signs = np.array([sign for *_, sign in found])
        own = [joint for joint in robot.joints if joint.mimic is None]
        speeds = [
            (joint, joint.v.start + k, limit)
            for joint in own
            for k, limit in enumerate(np.atleast_1d(joint.limits.velocity).tolist())
            if math.isfinite(limit)
        ]
        self.items += [Watched(f"{joint.name} speed limit", action, -1) for joint, *_ in speeds]
        self._fast = np.array([place for _, place, _ in speeds], int)
        self._fastest = np.array([limit for *_, limit in speeds])

    def __len__(self) -> int:
        """Return how many conditions there are."""
        return len(self.items)

    def values(self, t: float, q: Array, v: Array) -> Array:
        """Return all conditions at a state; of limits, the room that is left."""
        own: list[float] = []
        if self._events:
            q, v = frozen_view(q), frozen_view(v)
        for event, offset in zip(self._events, self._offsets, strict=True):
            own.append(_asked(event, t + offset, q, v))
        room = self._signs * (self._bounds - q[self._places])
        slack = self._fastest - np.abs(v[self._fast])
        return np.concatenate([np.array(own), room, slack])

    def far(self, q: Array, v: Array, dq: Array, dv: Array, h: float) -> bool:
        """Tell whether nothing can happen in a step of dq and dv: no events, and limits far away.

        Twice as far as the joint gets, or would at the sum of its speeds at both ends; and a speed
        that is less than its limit by twice its change, and less than half of it on the way.
        """
        if self._events:
            return False
        way = np.abs(dq) + h * (np.abs(v) + np.abs(v + dv))
        near = np.abs(self._bounds - q[self._places]) <= 2.0 * way[self._speeds]
        slack = self._fastest - np.abs(v[self._fast])
        fast = (slack <= 2.0 * np.abs(dv[self._fast])) | (
            h * self._fastest <= 2.5 * np.abs(dq[self._fast])
        )
        return not (np.any(near) or np.any(fast))

    def passed(self, values: Array) -> list[tuple[str, Action]]:
        """Return which limits are passed, and what is to happen then."""
        limits = zip(self.items, values.tolist(), strict=True)
        return [(w.name, w.action) for w, room in list(limits)[len(self._events) :] if room < 0.0]

    def crossed(self, before: Array, after: Array) -> Array:
        """Tell which conditions crossed zero the way they are watched for."""
        way = np.array([w.direction for w in self.items])
        rises = (before < 0.0) & (after >= 0.0) & (way >= 0)
        falls = (before > 0.0) & (after <= 0.0) & (way <= 0)
        first = len(self._events)  # limits may be touched before they are passed
        falls[first:] = (before[first:] >= 0.0) & (after[first:] < 0.0)
        return rises | falls


def _asked(event: Event, t: float, q: Array, v: Array) -> float:
    """Return a condition, or say that it cannot be had."""
    try:
        value = event.condition(t, q, v)
    except RemoraError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise SimulationError(
            f"the condition of event {event.name!r} raised {kind}: {error}", t
        ) from error
    return _number(event, value)


def _number(event: Event, value: object) -> float:
    try:
        number = float(np.asarray(value, dtype=float).item())
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise RemoraError(
            f"the condition of event {event.name!r} must give a number, not {kind}"
        ) from None
    if math.isnan(number):
        raise RemoraError(f"the condition of event {event.name!r} is NaN")
    return number


def bracketed(
    function: Callable[[float], float], low: float, high: float, f_low: float, f_high: float
) -> float:
    """Return where a function changes its sign between low and high.

    The end of the last bracket at which it has the sign of the right end: the regula falsi with
    halved weights (Illinois), and halving where that stalls.

    Args:
        function: of one number.
        low: the left end.
        high: the right end.
        f_low: what is taken for the function at the left end.
        f_high: what is taken for it at the right end, of the other sign or zero.
    """
    kept = 0
    for look in range(MOST_LOOKS):
        if f_high == 0.0 or high - low <= 4.0 * np.spacing(max(abs(low), abs(high))):
            break
        x = high - f_high * (high - low) / (f_high - f_low)
        if not low < x < high or look % 3 == 2:
            x = 0.5 * (low + high)
        f = function(x)
        if f != 0.0 and (f < 0.0) == (f_low < 0.0):
            low, f_low = x, f
            f_high *= 0.5 if kept == 1 else 1.0
            kept = 1
        else:
            high, f_high = x, f
            f_low *= 0.5 if kept == -1 else 1.0
            kept = -1
    return high
