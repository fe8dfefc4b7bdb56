"""Events in programs of batches: event functions, location of zero crossings, resets, stops.

An event is located by repeated steps from the same state. Of two lengths, after the shorter the
event has not occurred and after the longer it has; they are brought together by the Illinois method
until they differ by a few units in the last place of the time. The step of the longer length is
then accepted, so that the state at the event has the accuracy of any other step. Zero crossings
that the ends of a step do not show are found from cubics between five points of it.

Stops at joint limits are events, too: contact begins or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from remora.algebra import hermite
from remora.algebra.array_ops import (
    Array,
    absolute,
    asarray,
    casadi,
    concatenate,
    less,
    select,
    sqrt,
)
from remora.algebra.selections import (
    each,
    flag,
    floor,
    larger,
    largest,
    negated,
    smaller,
    smallest,
)
from remora.codegen.integration.statements import Block, For, If, Record, Run, Statement
from remora.components.run_signals import event_key, occurred
from remora.dynamics.forces.stops import stop_overlaps, stop_rates
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import integrate, normalize
from remora.simulation.batch.batch_events import event_names
from remora.simulation.batch.run_blocks import RunBlocks, one, plus_one, wide_run

#: Status of a run.
RUNNING, STOPPED, NEXT, NOT_FINITE, TOO_SHORT, CHATTERING, BAD_EVENT, BAD_RESET, BAD_HOLD = range(9)
#: Status of a run that ended at the start of a phase: no event led to it, constraints that begin to
#: act are violated, or are blocked by others or by held joints.
NOT_ENTERED, VIOLATED, BLOCKED = range(9, 12)
#: Status of a run that Ctrl-C ended.
INTERRUPTED = 12
#: Cell with the time at which each event of components first occurred, s; `NEVER`: it did not.
FIRST, NEVER = "first", 1e300
#: Tolerance of the norm of a quaternion that a reset returns; within it, it is normalized.
UNIT = {"float64": 1e-9, "float32": 1e-5}
#: Events so soon after the start of a phase, besides rounding, are reported at its start, s.
AT_START = 1e-16
#: An event is located to this many units in the last place of the time.
LOCATED = 4.0
#: Nodes of a step, as fractions of it, between which event functions are taken to be cubics.
NODES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Fraction of a step that is tried to find the event of a function that jumped at its start.
SHORT = 2.0**-10
#: Events of a run within `CHATTER_TIME` seconds after which it ends as chattering.
MOST_EVENTS, CHATTER_TIME = 1000.0, 1e-6
#: Tries to get to the end of one step, with the events within it, after which a run ends as
#: chattering: an event function that stays at zero changes its sign by rounding all the time.
MOST_TRIES = 50_000.0
_EPS = float(np.finfo(float).eps)


class EventSearch:
    """Statements that find and handle the events of a run.

    Attributes:
        functions: number of event functions: those of components, then those of stops.
    """

    def __init__(self, blocks: RunBlocks, first: str, last: str) -> None:
        """Store the blocks of a run, and the names of the rates at the ends of a step."""
        self._ends = first, last
        self._blocks, self._equations = blocks, blocks.equations
        self._robot, self._events = blocks.equations.robot, blocks.equations.system.events
        self._names, self._stops = blocks.equations.data_names, blocks.equations.stops
        self.functions = len(self._events) + self._stops

    # Events ---------------------------------------------------------------------------------------

    def no_events(self) -> list[Statement]:
        """Return the statement that notes that no event has occurred yet."""
        count = len(self._events)
        return [wide_run(lambda: np.full(count, NEVER), (), (FIRST,))] if count else []

    def look(self, t: str, suffix: str, to: str) -> list[Statement]:
        """Return the evaluation of the event functions; a run with one that is NaN ends."""
        if not self.functions:
            return []

        def look(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            return self._values(t, q, v, x, z, rest)

        state = tuple(f"{name}{suffix}" for name in ("q", "v", "x"))

        def ended(g: Array, status: Array) -> Array:
            return select(less(0.5, _lost(g) * flag(less(status, 0.5))), float(BAD_EVENT), status)

        return [
            wide_run(look, (t, *state, "z", *self._touched, *self._names), (to,)),
            wide_run(ended, (to, "status"), ("status",)),
        ]

    def first_look(self) -> list[Statement]:
        """Return the evaluation of the event functions at the start of a phase.

        The function of an event that also occurs at the start gets the other sign where it is
        beyond zero, as after a jump: the first step finds the event.
        """
        started = self._equations.started
        signs = np.zeros(self.functions)
        for i, event in enumerate(self._events):
            if event.crossing.at_start and event.component in started:
                signs[i] = -event.crossing.direction
        seen = self.look("t", "", "g")
        if not np.any(signs):
            return seen

        def raised(g: Array) -> Array:
            beyond = flag(negated(less(0.0, signs * g))) * np.abs(signs)
            return select(less(0.5, beyond), signs * larger(absolute(g), 1e-300), g)

        return [*seen, wide_run(raised, ("g",), ("g",))]

    @property
    def _touched(self) -> tuple[str, ...]:
        """Names of what event functions read besides state and data."""
        begin = ("phase start",) if self._equations.own_clock else ()
        return (*begin, *(("contact",) if self._stops else ()))

    def _values(
        self, t: Array, q: Array, v: Array, x: Array, z: Array, rest: Sequence[Array]
    ) -> Array:
        """Return the event functions; those of stops fall below zero where contact changes."""
        own = dict(zip(self._touched, rest, strict=False))
        data, begin = rest[len(own) :], own.get("phase start")
        found = self._equations.instant(t, q, v, x, z, data, begin).crossings()
        if not self._stops:
            return found
        room = (2.0 * own["contact"] - 1.0) * stop_overlaps(self._robot, q)
        return concatenate([found, room]) if self._events else room

    def first_contact(self) -> list[Statement]:
        """Return which stops are in contact at the start."""
        if not self._stops:
            return []

        def contact(q: Array, v: Array) -> Array:
            over, rate = stop_overlaps(self._robot, q), stop_rates(self._robot, v)
            into = flag(less(0.0, rate))
            return select(less(0.0, over), 1.0, select(less(over, 0.0), 0.0, into))

        return [Run(Block(contact, ("q", "v"), ("contact",)))]

    def look_at_end(self) -> list[Statement]:
        """Return the evaluation of the event functions at the end of a step."""
        when = wide_run(np.add, ("t", "length"), ("reached",))

        def accepted(accept: Array, g: Array) -> Array:
            return accept * (1.0 - _lost(g))

        return [
            when, *self.look("reached", " end", "g end"),
            wide_run(accepted, ("accept", "g end"), ("accept",)),
        ]  # fmt: skip

    def look_after_jump(self) -> list[Statement]:
        """Return the evaluation of the event functions after a jump of the state.

        The state jumps at ticks and resets. A function that jumped through zero keeps its value
        from before, so that the next step finds its event; one whose event has just occurred does
        not.
        """

        def settled(g: Array, now: Array, fired: Array) -> Array:
            jumped = self._crossed(g, now) * (1.0 - fired)
            return select(less(0.5, jumped), g, now)

        return [*self.look("t", "", "g end"), wide_run(settled, ("g", "g end", "fired"), ("g",))]

    def inside(self) -> list[Statement]:
        """Return event functions and their slopes at the nodes of a step, by Hermite interpolation.

        Slopes are derivatives with respect to the fraction of the step.
        """
        nv, robot = self._robot.nv, self._robot

        def inside(
            node: Array, values: Array, slopes: Array, t: Array, length: Array, q: Array, v: Array,
            x: Array, z: Array, change: Array, first: Array, last: Array, *rest: Array,
        ) -> tuple[Array, Array]:  # fmt: skip
            symbol = casadi.SX.sym("theta")
            theta = asarray(symbol).reshape((1,))
            y = hermite.value(theta, change, length * first, length * last)
            there = integrate(robot, q, y[:nv]), v + y[nv : 2 * nv], x + y[2 * nv :]
            g = casadi.vertcat(*self._values(t + theta * length, *there, z, rest).tolist())
            slope = casadi.jacobian(g, symbol)

            def appended(rows: Array, expression: Any) -> Array:
                there = casadi.densify(casadi.substitute(expression, symbol, node.item()))
                return concatenate([rows[1:], asarray(there).reshape((1, -1))], trailing=2)

            return appended(values, g), appended(slopes, slope)

        found = ("g inside", "slopes")
        state = ("t", "length", "q", "v", "x", "z", "change", *self._ends)
        reads = ("node", *found, *state, *self._touched, *self._names)
        # a loop: the functions and their slopes are long, and compiled once
        return [For(np.reshape(NODES, (-1, 1)), [wide_run(inside, reads, found)], "node")]

    def bracket(self) -> list[Statement]:
        """Return the location of events; sets `accept` to whether the step is final."""
        crossed = self._crossed
        finest = float(np.finfo(self._blocks.dtype).eps) if self._blocks.dtype == "float32" else 0.0

        def locate(
            accept: Array, t: Array, length: Array, low: Array, high: Array, side: Array,
            final: Array, search_count: Array, g: Array, g_end: Array, g_inside: Array,
            slopes: Array, g_low: Array,
            g_high: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            close = LOCATED * _EPS * (absolute(t) + length) + finest * length
            hit = crossed(g, g_end)
            any_hit, inside = largest(each(hit)), less(0.0, high)
            # crossings within the step that its ends do not show: a shorter step makes them visible
            part = self._hidden(g, g_inside, slopes, g_end)
            bulge = flag(less(part, 1.0)) * flag(less(64.0 * close, length))
            bulge = select(inside, 0.0, bulge)
            any_hit = any_hit * (1.0 - bulge)
            searching = select(less(0.5, any_hit), 1.0, select(inside, 1.0, 0.0))
            # the bracket
            first = flag(negated(inside)) * any_hit
            low = select(less(0.5, first), 0.0, low)
            g_low = select(less(0.5, first), g, g_low)
            is_hit = less(0.5, any_hit)
            same = select(is_hit, less(0.5, side), less(side, -0.5))
            new_low, new_high = select(is_hit, low, length), select(is_hit, length, high)
            new_g_low = select(is_hit, select(same, 0.5 * g_low, g_low), g_end)
            new_g_high = select(is_hit, g_end, select(same, 0.5 * g_high, g_high))
            new_side = select(is_hit, 1.0, -1.0)
            width = new_high - new_low
            done = negated(less(close, width))
            # the earliest zero of the secants
            where = crossed(g_low, new_g_high) + crossed(new_g_low, new_g_high)
            slope = new_g_low - new_g_high
            zeros = new_g_low / select(less(0.0, absolute(slope)), slope, 1.0)
            zeros = select(less(0.5, where), zeros, 2.0)
            theta = larger(smaller(smallest(each(zeros)), 1.0), 0.0)
            # every third time the middle, which also gets over plateaus
            third = less(search_count - 3.0 * floor(search_count / 3.0), 1.5)
            guess = new_low + select(third, theta, 0.5) * width
            guess = larger(smaller(guess, new_high - 0.5 * close), new_low + 0.5 * close)
            again = select(done, new_high, guess)
            # outcome
            search = less(0.5, searching)
            finished = select(done, flag(is_hit), 0.0)
            finished = select(less(0.5, final), 1.0, finished)
            take = accept * select(search, finished, 1.0 - bulge)
            fired = hit * take * accept
            keep = accept * select(search, 1.0 - finished, 0.0)  # another try in the bracket
            going = less(0.5, keep)
            cut = select(less(0.5, bulge * accept), part * length, 0.0)
            return (
                take, select(going, again, length), select(going, new_low, 0.0),
                select(going, new_high, 0.0),
                select(going, new_side, 0.0), select(going, flag(done), 0.0),
                select(going, search_count + 1.0, 0.0), cut,
                new_g_low, new_g_high, fired, *each(fired),
            )  # fmt: skip

        kept = ("low", "high", "side", "final", "search")
        flags = [f"fired {i}" for i in range(self.functions)]
        reads = (
            "accept",
            "t",
            "length",
            *kept,
            "g",
            "g end",
            "g inside",
            "slopes",
            "g low",
            "g high",
        )
        writes = ("accept", "length", *kept, "cut", "g low", "g high", "fired", *flags)
        return [wide_run(locate, reads, writes)]

    def progress(self) -> list[Statement]:
        """Return the check that events within a step do not keep the run from its end."""

        def progress(
            accept: Array, t: Array, length: Array, end: Array, tries: Array, status: Array
        ) -> tuple[Array, Array]:
            close = LOCATED * _EPS * (absolute(t) + length)
            arrived = accept * flag(negated(less(t + length, end - close)))
            tries = select(less(0.5, arrived), 0.0, tries + 1.0)
            stuck = flag(less(MOST_TRIES, tries)) * flag(less(status, 0.5))
            return tries, select(less(0.5, stuck), float(CHATTERING), status)

        reads = ("accept", "t", "length", "end", "tries", "status")
        return [wide_run(progress, reads, ("tries", "status"))]

    def _crossed(self, before: Array, after: Array) -> Array:
        """Return 1 for each event function that crossed zero, 0 otherwise.

        A function of a component that is zero at first crosses when it reaches zero again; one of a
        stop, when it becomes negative.
        """
        count = len(self._events)
        directions = np.array([float(e.crossing.direction) for e in self._events])
        parts: list[Array] = []
        if count:
            b, a = before[:count], after[:count]
            up = flag(less(b, 0.0)) * flag(negated(less(a, 0.0))) * (directions >= 0.0)
            down = flag(less(0.0, b)) * flag(negated(less(0.0, a))) * (directions <= 0.0)
            parts.append(up + down)
        if self._stops:
            b, a = before[count:], after[count:]
            parts.append(flag(negated(less(b, 0.0))) * flag(less(a, 0.0)))
        return concatenate(parts)

    def _hidden(self, g: Array, values: Array, slopes: Array, g_end: Array) -> Array:
        """Return the fraction of the step after which a crossing shows that the ends do not show.

        Between nodes, event functions are taken to be cubics; their extrema are the points where
        they may have changed sign.

        Args:
            g: event functions at the start, `(ne,)`.
            values: at the nodes, `(n, ne)`.
            slopes: at the nodes.
            g_end: at the end of the step.

        Returns:
            `(1,)`; 2 if there is none.
        """
        # a function that has just jumped through zero may return before the end of the step
        jumped, shown = self._crossed(g, values[0]), self._crossed(g, g_end)
        g = select(less(0.5, jumped), values[0], g)
        # a slope may not exist, as that of a norm at zero
        slopes = select(less(absolute(slopes), 1e300), slopes, 0.0)
        seen, places = [g], [np.zeros(self.functions)]
        for i in range(len(NODES) - 1):
            width = NODES[i + 1] - NODES[i]
            f0, f1 = (g if i == 0 else values[i]), values[i + 1]
            if i == len(NODES) - 2:
                f1 = g_end
            for x, value in _extrema(f0, width * slopes[i], f1, width * slopes[i + 1]):
                seen.append(value)
                places.append(NODES[i] + width * x)
            seen.append(f1)
            places.append(np.full(self.functions, NODES[i + 1]))
        found = np.full(self.functions, 2.0)
        for i in reversed(range(len(seen) - 1)):
            there = select(less(1e-12, places[i]), places[i], places[i + 1])
            found = select(less(0.5, self._crossed(seen[i], seen[i + 1])), there, found)
        found = select(less(0.5, jumped), SHORT, found)
        found = select(less(0.5, shown), 2.0, found)
        return smallest(each(found))

    def fire(self) -> list[Statement]:
        """Return the statements for events that occurred at the end of the step."""
        if not self.functions:
            return []
        count = len(self._events)
        stops = np.array([e.crossing.action == "stop" for e in self._events], dtype=float)
        nexts = np.array([e.crossing.action == "next" for e in self._events], dtype=float)

        def status(
            fired: Array, t: Array, old: Array, recent: Array, since: Array
        ) -> tuple[Array, ...]:
            own = fired[:count]
            some = largest(each(own))
            hit = less(0.5, some)
            near = less(t - since, CHATTER_TIME)
            recent = select(hit, select(near, recent + 1.0, 1.0), recent)
            since = select(hit, select(near, since, t), since)
            code = select(less(0.5, largest(each(own * nexts))), float(NEXT), old)
            code = select(less(0.5, largest(each(own * stops))), float(STOPPED), code)
            code = select(less(MOST_EVENTS, recent), float(CHATTERING), code)
            code = select(less(old, 0.5), code, old)
            return some, code, recent, since

        def reported(t: Array, begin: Array) -> Array:
            # what holds at the start of a phase occurs then, not a few units later
            close = AT_START + 2.0 * LOCATED * _EPS * absolute(begin)
            return select(less(t - begin, close), begin, t)

        def log(t: Array, begin: Array, fired: Array) -> tuple[Array, Array]:
            return reported(t, begin), fired[:count]

        def earliest(t: Array, begin: Array, fired: Array, first: Array) -> Array:
            return smaller(first, select(less(0.5, fired[:count]), reported(t, begin), NEVER))

        found: list[Statement] = [wide_run(_any, ("fired",), ("any",))]
        inner: list[Statement] = []
        if self._events:
            reads = ("fired", "t", "status", "recent", "recent time")
            inner += [
                wide_run(status, reads, ("logged", "status", "recent", "recent time")),
                If("logged", [
                    Record(Block(log, ("t", "phase start", "fired"), ("event t", "event fired"),
                                 wide=True), "events", "events"),
                    wide_run(plus_one, ("events",), ("events",)),
                    wide_run(earliest, ("t", "phase start", "fired", FIRST), (FIRST,)),
                ]),
            ]  # fmt: skip
        inner += self._note(reported)
        resets = [i for i, e in enumerate(self._events) if e.crossing.action == "reset"]
        for i in resets:
            inner.append(If(f"fired {i}", self._reset(i)))
        if resets:
            inner += self._blocks.place_held("t")
        if self._stops:

            def flip(contact: Array, fired: Array) -> Array:
                return contact + fired[count:] * (1.0 - 2.0 * contact)

            inner.append(Run(Block(flip, ("contact", "fired"), ("contact",))))
        flags = [f"fired {i}" for i in range(self.functions)]
        inner += [
            wide_run(one, (), ("fresh",)),
            *self.look_after_jump(),
            wide_run(_none, ("fired",), ("fired", *flags)),
        ]
        return [*found, If("any", inner)]

    def _note(self, reported: Callable[[Array, Array], Array]) -> list[Statement]:
        """Return the statement that lets components know of events; none if they read none."""
        system = self._equations.system
        places = system.event_places
        names = {i: name for i, name in enumerate(event_names(system)) if event_key(name) in places}
        if not names:
            return []

        def note(t: Array, begin: Array, z: Array, fired: Array) -> Array:
            now = {name: fired[i : i + 1] for i, name in names.items()}
            return occurred(places, z, now, reported(t, begin))

        return [wide_run(note, ("t", "phase start", "z", "fired"), ("z",))]

    def _reset(self, i: int) -> list[Statement]:
        """Return the statements of a reset; a run in which it is not valid ends."""
        event, robot = self._events[i], self._robot

        def reset(
            t: Array, q: Array, v: Array, x: Array, z: Array, *data: Array
        ) -> tuple[Array, ...]:
            now = self._equations.instant(t, q, v, x, z, data)
            q1, v1, x1, z1 = now.reset(event.component, event.name)
            sizes = [np.sum(absolute(part), keepdims=True) for part in (q1, v1, x1, z1)]
            fault = larger(_defect(robot, q1), flag(negated(less(sum(sizes), np.inf))))
            after = q1 if q1 is q else normalize(robot, q1)
            return after, v1, x1, z1, 0.0 * q, 0.0 * v, 0.0 * x, fault

        def ended(fault: Array, status: Array) -> Array:
            wrong = flag(negated(less(fault, UNIT[self._blocks.dtype])))
            return select(less(0.5, wrong * flag(less(status, 2.5))), float(BAD_RESET), status)

        state = ("q", "v", "x", "z")
        writes = (*state, "rest q", "rest v", "rest x", "reset fault")
        return [
            Run(Block(reset, ("t", *state, *self._names), writes)),
            wide_run(ended, ("reset fault", "status"), ("status",)),
        ]


def _defect(robot: Robot, q: Array) -> Array:
    """Return how far the quaternions of a configuration are from unit norm, `(1,)`."""
    found = np.zeros(1)
    for joint in robot.joints:
        row = kind(joint)
        if row.quaternion is None or joint.mimic is not None:
            continue
        own = q[joint.q]
        r = own[row.quaternion]
        found = larger(found, absolute(sqrt(np.sum(r * r, keepdims=True)) - 1.0))
        if row.dual is not None:
            d = own[row.dual]
            size = larger(sqrt(np.sum(d * d, keepdims=True)), 1.0)
            found = larger(found, absolute(np.sum(r * d, keepdims=True)) / size)
    return found


def _lost(g: Array) -> Array:
    """Return 1 if one of the event functions is NaN, 0 otherwise."""
    return largest(each(flag(negated(less(g, 0.0))) * flag(negated(less(-1.0, g)))))


def _extrema(f0: Array, s0: Array, f1: Array, s1: Array) -> list[tuple[Array, Array]]:
    """Return places and values of the extrema of cubics on [0, 1], in order.

    The cubic p has p(0) = f0, p'(0) = s0, p(1) = f1, p'(1) = s1. Where it has no extremum inside,
    or a slope is NaN (such as that of a norm at zero), the place is 0 and the value f0.
    """
    c2, c3 = 3.0 * (f1 - f0) - 2.0 * s0 - s1, 2.0 * (f0 - f1) + s0 + s1
    discriminant = c2 * c2 - 3.0 * c3 * s0
    root = sqrt(larger(discriminant, 0.0))
    away = -(c2 + select(less(c2, 0.0), -root, root))  # no cancellation
    some = less(0.0, absolute(away))
    x1 = s0 / select(some, away, 1.0)
    cubic = less(0.0, absolute(c3))
    x2 = away / (3.0 * select(cubic, c3, 1.0))
    ok = flag(less(0.0, discriminant))
    x1 = select(less(0.5, ok * flag(some) * _within(x1)), x1, 0.0)
    x2 = select(less(0.5, ok * flag(cubic) * _within(x2)), x2, 0.0)

    def value(x: Array) -> Array:
        return select(less(0.0, x), f0 + x * (s0 + x * (c2 + x * c3)), f0)

    low, high = smaller(x1, x2), larger(x1, x2)
    return [(low, value(low)), (high, value(high))]


def _any(fired: Array) -> Array:
    return largest(each(fired))


def _none(fired: Array) -> tuple[Array, ...]:
    return 0.0 * fired, *each(0.0 * fired)


def _within(x: Array) -> Array:
    return flag(less(0.0, x)) * flag(less(x, 1.0))
