"""Events: conditions watched during a run, including joint limits, and their zero crossings."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.components.system import SystemEvent
from remora.errors import InvalidValue, RemoraError, SimulationError, UnknownName
from remora.identity.table import Table
from remora.model.arguments import is_several
from remora.model.joints import in_coordinates
from remora.model.robot import Robot
from remora.simulation.inputs.loads import described, frozen_view

Action = Literal["record", "next", "stop", "reset"]
ACTIONS = ("record", "next", "stop")
#: (t, q, v, x) -> the event functions of components, `(ne,)`.
Crossings = Callable[[float, Array, Array, Array], Array]
#: A joint rests at a limit, or moves at one, within so many units in the last place.
LIMIT_ULPS = 8.0
#: Conditions are cut off here, infinite ones too: interpolants of them must not overflow.
CUT_OFF = 1e150


@dataclass(frozen=True)
class RobotCondition:
    """Base class of conditions (t, q, v) -> a number that depend on the numbers of the robot.

    Attributes:
        robot: the robot.
    """

    robot: Robot

    def __call__(self, t: float | Array, q: Array, v: Array) -> Any:
        """Return its value for the robot."""
        raise NotImplementedError

    def margin(self, robot: Robot, q: Array, v: Array) -> Array:
        """Return its value for a robot whose numbers may be symbolic, `(...)`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Event:
    """An event, which occurs when its condition crosses zero or becomes true.

    It occurs at the first time at which the condition has reached or crossed zero: it holds at the
    recorded state, and did not one unit in the last place of the time earlier. A condition that is
    zero at the start of a run triggers only when it reaches zero again.

    Attributes:
        condition: (t, q, v) -> a number, or a boolean: then the event is that it becomes true
            (with direction -1, false). The time is that of the run; in an event of a phase with
            `own_clock`, it is the time since the start of the phase.
        name: name in the recording.
        action: `record` logs the event, `next` starts the next phase, `stop` ends the run.
        direction: +1 for rising zero crossings of the condition, -1 for falling ones, 0 for both.
        at_start: whether it also occurs where it is first watched, at the start of the run or of
            its phase, if the condition is beyond zero there: not positive for direction -1, not
            negative for +1.

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> v[-1] = 0.5  # rad/s
        >>> turned = rm.Event(lambda t, q, v: q[-1] - 0.1, name="turned")
        >>> run = rm.simulate(robot, q, v, 10.0, events=[turned])
        >>> run.events[-1].name
        'turned'
    """

    condition: Callable[[float, Array, Array], float]
    name: str = "event"
    action: Literal["record", "next", "stop"] = "stop"
    direction: int = 0
    at_start: bool = False

    def __post_init__(self) -> None:
        """Check."""
        if self.action not in ACTIONS:
            raise UnknownName("action of an event", self.action, ACTIONS)
        if self.direction not in (-1, 0, 1):
            raise InvalidValue(f"direction of an event must be -1, 0 or 1, not {self.direction}")
        if not callable(self.condition):
            raise RemoraError(f"the condition of event {self.name!r} must be a function (t, q, v)")
        if self.at_start and not self.direction:
            raise InvalidValue(
                f"event {self.name!r} with at_start=True needs the direction -1 or 1: from which "
                "side it is beyond zero"
            )
        if not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError(f"the name of an event must be a string, not {self.name!r}")

    def on(self, robot: Robot) -> Event:
        """Return the event of a run with this robot, which may have other numbers."""
        own = self.condition
        if not isinstance(own, RobotCondition) or own.robot is robot or own.robot == robot:
            return self
        return replace(self, condition=replace(own, robot=robot))

    def described(self) -> list[Any]:
        """Return a plain description: name, action, direction, condition, at_start if it is."""
        told = [self.name, self.action, self.direction, described(self.condition)]
        return [*told, "at start"] if self.at_start else told


def listed_events(name: str, given: Any) -> tuple[Event, ...]:
    """Return events as a tuple, or raise an error with an example."""
    if isinstance(given, Event):
        return (given,)
    if not is_several(given):
        raise RemoraError(f"{name} must be a list of rm.Event(...), not {given!r}")
    found = tuple(given)
    for event in found:
        if not isinstance(event, Event):
            write = "rm.Event(condition, 'its name')" if callable(event) else "rm.Event(...)"
            raise RemoraError(
                f"{name} must be rm.Event(...), not {type(event).__name__}: write {write}, with a "
                "condition (t, q, v) -> a number that crosses zero, or a truth value"
            )
    return found


class MonitoredCondition(NamedTuple):
    """Name and action of a watched condition.

    Attributes:
        name: of the event.
        action: what it does.
        direction: +1 for rising zero crossings, -1 for falling ones, 0 for both.
        component: index of the event in `System.events` if it is one of a component; else -1.
        at_start: whether it also occurs where it is first watched.
    """

    name: str
    action: Action
    direction: int
    component: int = -1
    at_start: bool = False


class _Limit(NamedTuple):
    """A limit of a joint's coordinate, ratio q + offset, or of its speed, ratio v.

    The ratio and the offset are those of a mimic joint, whose place is that of its leader.
    """

    place: int
    speed: int
    sign: float
    ratio: float
    offset: float
    bound: float


class _Limits(NamedTuple):
    """Several limits, as arrays `(m,)`."""

    place: Array
    speed: Array
    sign: Array
    ratio: Array
    offset: Array
    bound: Array

    @classmethod
    def of(cls, limits: Sequence[_Limit]) -> _Limits:
        """Return the arrays of these limits."""
        place, speed, *numbers = np.array(limits, float).reshape(-1, len(_Limit._fields)).T
        return cls(place.astype(int), speed.astype(int), *numbers)


@functools.lru_cache(maxsize=64)
def _limits_of(robot: Robot, changes: int) -> tuple[_Limits, _Limits, tuple[str, ...]]:
    """Return the limits of the range, those of the speed, and the names of all conditions.

    Args:
        robot: the robot.
        changes: number of changes of the table of joint types, for the cache.
    """
    ranges: list[_Limit] = []
    speeds: list[_Limit] = []
    names: list[str] = []
    fast: list[str] = []
    for joint in robot.joints:
        q, v, mimic = joint.q.start, joint.v.start, joint.mimic  # of a follower: its leader's
        ratio, offset = (1.0, 0.0) if mimic is None else (mimic.ratio, mimic.offset)
        for k, limit in enumerate(np.atleast_1d(joint.limits.velocity).tolist()):
            if math.isfinite(limit):
                speeds.append(_Limit(q, v + k, 1.0, ratio, 0.0, limit))
                fast.append(f"{joint.name} speed limit")
        if not in_coordinates(joint):
            continue
        for side, values, sign in (
            ("upper", joint.limits.upper, 1.0),
            ("lower", joint.limits.lower, -1.0),
        ):
            for k, limit in enumerate(np.atleast_1d(values).tolist()):
                if math.isfinite(limit):
                    ranges.append(_Limit(q + k, v + k, sign, ratio, offset, limit))
                    names.append(f"{joint.name} {side} limit")
    return _Limits.of(ranges), _Limits.of(speeds), (*names, *fast, *fast)  # both ways


class JointLimits(NamedTuple):
    """The limits of a robot's joints as event functions: the distances to them.

    Attributes:
        ranges: limits of the coordinates.
        speeds: limits of the speeds, in both directions.
        names: of all event functions: of the ranges, of the speeds, of the speeds the other way.
        action: what a violation does.
        at_start: whether a limit that is violated at the start of the phase counts then.
    """

    ranges: _Limits
    speeds: _Limits
    names: tuple[str, ...]
    action: Action
    at_start: bool = False

    def values(self, q: Array, v: Array) -> Array:
        """Return the distances to all limits, `(m,)`, on numbers or symbols."""
        near, fast = self.ranges, self.speeds
        room = near.sign * (near.bound - (near.ratio * q[near.place] + near.offset))
        speed = fast.ratio * v[fast.speed]
        return concatenate([room, fast.bound - speed, fast.bound + speed])

    def along(self, q: Array, v: Array, y: Array, rate: Array) -> list[Array]:
        """Return the distances, less rounding, and their rates within a step, each `(m,)`.

        Args:
            q: configuration at the start of the step, `(nq,)`.
            v: velocity there, `(nv,)`.
            y: changes of coordinates and speeds since, `(2 nv, ...)`.
            rate: their rates.
        """
        near, fast, nv = self.ranges, self.speeds, v.shape[0]
        moved, gained = y[near.speed], y[nv + fast.speed]
        room = near.sign * (near.bound - (near.ratio * (q[near.place] + moved) + near.offset))
        speed = fast.ratio * (v[fast.speed] + gained)
        gain = fast.ratio * rate[nv + fast.speed]
        values = concatenate([room, fast.bound - speed, fast.bound + speed]) + self.rounding
        return [values, concatenate([-near.sign * near.ratio * rate[near.speed], -gain, gain])]

    @property
    def rounding(self) -> Array:
        """The sizes below which a violation is rounding, `(m,)`: a joint that rests at a limit."""
        near, fast = self.ranges, self.speeds
        size = np.concatenate([near.bound - near.offset, fast.bound, fast.bound])
        return LIMIT_ULPS * float(np.finfo(float).eps) * np.maximum(np.abs(size), 1.0)

    def identity_parts(self) -> tuple[Any, ...]:
        """Return its identity by value."""
        numbers = tuple(x.tolist() for x in (*self.ranges, *self.speeds))
        return numbers, self.names, self.action, self.at_start


def joint_limits(robot: Robot, action: Action, at_start: bool) -> JointLimits:
    """Return the limits of a robot's joints, see `JointLimits`."""
    return JointLimits(*_limits_of(robot, Table.changes), action, at_start)


def limit_names(robot: Robot) -> list[str]:
    """Return the names of the events at the limits of a robot's joints."""
    return list(dict.fromkeys(_limits_of(robot, Table.changes)[2]))


class EventMonitor:
    """All conditions of a phase, as one function with several values.

    The events' conditions come first (those of the whole run, of the components, of the phase),
    followed by the distances to limits: of the range, and of the speed in both directions. All of
    these are smooth where the motion is.

    Attributes:
        items: name and action of each condition.
        events: number of conditions that belong to events.
        lasting: number of conditions, the first, that are watched in all phases.
        limits: action when a joint violates a limit; None: limits are not watched.
    """

    def __init__(
        self,
        robot: Robot,
        everywhere: Sequence[Event],
        events: Sequence[Event],
        limits: Action | None,
        components: Sequence[SystemEvent] = (),
        crossings: Crossings | None = None,
    ) -> None:
        """Collect the conditions.

        Args:
            robot: the robot.
            everywhere: events of the whole run, whose conditions receive the time of the run.
            events: events of the phase, whose conditions receive the time of its clock.
            limits: action when a joint violates a limit; None: limits are not watched.
            components: events of the components.
            crossings: their functions; needed if there are any.
        """
        self._everywhere, self._events = tuple(everywhere), tuple(events)
        self.limits: Action | None = limits
        self._crossings = crossings if components else None
        self.lasting = len(everywhere) + len(components)
        self.events = self.lasting + len(events)
        self.items = [
            *(
                MonitoredCondition(e.name, e.action, e.direction, -1, e.at_start)
                for e in everywhere
            ),
            *(
                MonitoredCondition(
                    str(e), e.crossing.action, e.crossing.direction, k, e.crossing.at_start
                )
                for k, e in enumerate(components)
            ),
            *(MonitoredCondition(e.name, e.action, e.direction, -1, e.at_start) for e in events),
        ]
        if limits is not None:
            names = _limits_of(robot, Table.changes)[2]
            self.items += [MonitoredCondition(name, limits, -1) for name in names]

    def __len__(self) -> int:
        """Return the number of conditions."""
        return len(self.items)

    def event_values(
        self, t: float, own: float, q: Array, v: Array, x: Array
    ) -> tuple[Array, Array]:
        """Return the conditions of events at a state, and which are truth values, `(n,)` each.

        A condition that is true is 1, one that is false -1.

        Args:
            t: time of the run, s.
            own: time of the phase, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states of the components, `(nx,)`.
        """
        q, v = frozen_view(q), frozen_view(v)
        asked: list[Any] = [_asked(event, t, q, v) for event in self._everywhere]
        if self._crossings is not None:
            asked += np.clip(self._crossings(t, q, v, x), -CUT_OFF, CUT_OFF).tolist()
        asked += [_asked(event, own, q, v) for event in self._events]
        truths = np.array([isinstance(value, bool) for value in asked], dtype=bool)
        numbers = [(1.0 if x else -1.0) if isinstance(x, bool) else x for x in asked]
        return np.array(numbers, dtype=float), truths


def _asked(event: Event, t: float, q: Array, v: Array) -> Any:
    """Return the value of a condition, a number or a boolean, or raise if it fails."""
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


def _number(event: Event, value: object) -> Any:
    try:
        if np.asarray(value).dtype == bool:
            return bool(np.asarray(value).item())
        number = float(np.asarray(value, dtype=float).item())
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise RemoraError(
            f"the condition of event {event.name!r} must return a number, not {kind}"
        ) from None
    if math.isnan(number):
        raise RemoraError(f"the condition of event {event.name!r} is NaN")
    return min(max(number, -CUT_OFF), CUT_OFF)
