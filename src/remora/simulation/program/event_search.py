"""Events in programs of batches: event functions, location of zero crossings, resets, stops.

An event is located by repeated steps from the same state. Of two lengths, after the shorter the
event has not occurred and after the longer it has; they are brought together by the Illinois method
until they differ by a few units in the last place of the time. The step of the longer length is
then accepted, so that the state at the event has the accuracy of any other step. Zero crossings
that the ends of a step do not show are found from cubics between nine points of it.

Limits of joints are events, too, and so are elastic stops at them: contact begins or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

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
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    Host,
    If,
    Record,
    Run,
    Statement,
    unchanged,
    wide_run,
)
from remora.components.run_signals import event_key, occurred
from remora.dynamics.forces.passive_forces import stop_overlaps, stop_rates
from remora.dynamics.momentum import kinetic_energy, potential_energy
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import integrate, normalize
from remora.simulation.program.event_conditions import event_names
from remora.simulation.program.run_blocks import RunBlocks, one, plus_one
from remora.simulation.program.run_equations import RunEquations

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
#: An event is located to this part of the relative spacing of the time: one unit in its last place
#: at most.
LOCATED = 0.5
#: Located steps are not divided further than this, s.
SHORTEST = 1e-30
#: Nodes of a step, as fractions of it, between which event functions are taken to be cubics, and
#: nodes for functions that are not: those whose value at a node is further from the cubic between
#: its neighbours than this part of its size.
NODES, FINE_NODES = (tuple(i / n for i in range(n + 1)) for n in (8, 64))
ROUGH = 0.02
#: Cells of the loop over nodes, see `_Nodes`; of the location of an event, see `_Bracket`; and what
#: nodes read of a step, see `_Step`.
NODE_CELLS = ("g node", "slope node", "g older", "slope older", "hidden", "later", "changes")
BRACKET_CELLS = ("low bracket", "high bracket", "side", "final", "search", "g low", "g high")
STEP_CELLS = ("jumped", "t", "length", "q", "v", "x", "z", "dense trial")
#: Functions of Python that single runs call, see `HostedPart`: the functions of events, with the
#: cell of what it computes; resets, which have a number.
EVENTS, CALLED, RESET = "event functions", "called events", "reset"
#: The same at the nodes, with the cells of values and slopes.
AT_NODES, AT_FINE_NODES = (
    (f"event functions at {nodes}", f"called at {nodes}", f"called slopes at {nodes}")
    for nodes in ("nodes", "fine nodes")
)
#: Fraction of a step that is tried to find the event of a function that jumped at its start.
SHORT = 2.0**-10
#: Events of a run within `CHATTER_TIME` seconds after which it ends as chattering.
MOST_EVENTS, CHATTER_TIME = 1000.0, 1e-6
#: Tries to get to the end of one step, with the events within it, after which a run ends as
#: chattering: an event function that stays at zero changes its sign by rounding all the time.
MOST_TRIES = 50_000.0
_EPS = float(np.finfo(float).eps)


class _Nodes(NamedTuple):
    """What the search within a step knows after a node.

    Attributes:
        g: event functions at the node, `(n,)`.
        slope: their derivatives by θ.
        older: event functions at the node before.
        slope_older: their derivatives there.
        hidden: fraction of the step after which the first crossing shows; 2: there is none yet.
        later: whether it is not at the start of the step.
        changes: number of changes of sign.
        rough: whether a function is no cubic between the nodes, `(1,)`.
    """

    g: Array
    slope: Array
    older: Array
    slope_older: Array
    hidden: Array
    later: Array
    changes: Array
    rough: Array


class _Step(NamedTuple):
    """A step that is searched for events.

    Attributes:
        jumped: event functions that jumped through zero at its start, `(n,)`.
        t: time at its start, `(1,)`, s.
        length: `(1,)`, s.
        q: configuration at its start, `(nq,)`.
        v: velocity there, `(nv,)`.
        x: continuous states there, `(nx,)`.
        z: discrete states, `(nz,)`.
        dense: coefficients of its dense output, `(degree, ny)`.
    """

    jumped: Array
    t: Array
    length: Array
    q: Array
    v: Array
    x: Array
    z: Array
    dense: Array


class _Bracket(NamedTuple):
    """Two lengths of a step between which the first of its events occurs.

    Attributes:
        low: the shorter one, `(1,)`, s.
        high: the longer one, s; 0: there is no bracket.
        side: 1 or -1: which of them the last try has replaced.
        final: whether the next try is the last.
        tries: number of tries.
        g_low: event functions after the shorter one, `(n,)`.
        g_high: after the longer one.
    """

    low: Array
    high: Array
    side: Array
    final: Array
    tries: Array
    g_low: Array
    g_high: Array

    def narrowed(self, hit: Array, length: Array, g: Array) -> _Bracket:
        """Return the bracket after a try, by the Illinois method.

        Args:
            hit: whether an event has occurred, `(1,)`.
            length: that was tried, `(1,)`, s.
            g: event functions after it, `(n,)`.
        """
        same = select(hit, less(0.5, self.side), less(self.side, -0.5))
        return self._replace(
            low=select(hit, self.low, length), high=select(hit, length, self.high),
            side=select(hit, 1.0, -1.0),
            g_low=select(hit, select(same, 0.5 * self.g_low, self.g_low), g),
            g_high=select(hit, g, select(same, 0.5 * self.g_high, self.g_high)),
        )  # fmt: skip

    def is_narrow(self, close: Array) -> Array:
        """Return whether its ends are closer than `close`, s, or nothing is between them."""
        width = self.high - self.low
        middle = self.low + 0.5 * width
        apart = flag(less(self.low, middle)) * flag(less(middle, self.high))
        return negated(less(0.5, flag(less(close, width)) * apart))


class EventSearch:
    """Statements that find and handle the events of a run.

    Attributes:
        functions: number of event functions: those of components, of limits, of stops.
        logged: number of them that are recorded: all but those of stops.
    """

    def __init__(self, blocks: RunBlocks, rates: Sequence[str]) -> None:
        """Store the blocks of a run, and the names of the rates in the stages of a step."""
        self._rates, self._ends = rates, (rates[0], rates[-1])
        self._blocks, self._equations = blocks, blocks.equations
        self._robot, self._events = blocks.equations.robot, blocks.equations.system.events
        self._names, self._stops = blocks.equations.data_names, blocks.equations.stops
        limits = blocks.equations.limits
        self._limits = limits if limits is not None and limits.names else None
        self.logged = len(self._events) + (len(self._limits.names) if self._limits else 0)
        self.functions = self.logged + self._stops

    @property
    def _resets(self) -> list[int]:
        """Indices of the events that reset the state."""
        return [i for i, e in enumerate(self._events) if e.crossing.action == "reset"]

    def cells(self) -> list[Cell]:
        """Return the cells of the search; those of `kept` are part of the state of a run."""
        count = self.functions
        flags = [Cell(f"fired {i}", (1,), wide=True) for i in range(count)]
        vectors = ("g end", "g low", "g high", "fired", *NODE_CELLS)
        found = [*flags, *(Cell(name, (count,), wide=True) for name in vectors if count)]
        if not self._called:
            return found
        size = len(self._events)
        for nodes, names in ((NODES, AT_NODES[1:]), (FINE_NODES, AT_FINE_NODES[1:])):
            found += [Cell(name, (len(nodes), size), wide=True) for name in names]
        return [*found, Cell(CALLED, (size,), wide=True)]

    def kept(self) -> list[Cell]:
        """Return the part of the state of a run that belongs to events."""
        found = [Cell(FIRST, (self.logged,), wide=True)] if self.logged else []
        vectors = ["g", "jumped"] if self.functions else []
        vectors += ["rebound"] if self._resets else []
        return [*found, *(Cell(name, (self.functions,), wide=True) for name in vectors)]

    # Events ---------------------------------------------------------------------------------------

    def no_events(self) -> list[Statement]:
        """Return the statement that notes that no event has occurred yet."""
        count = self.logged
        return [wide_run(lambda: np.full(count, NEVER), (), (FIRST,))] if count else []

    def look(self, t: str, suffix: str, to: str) -> list[Statement]:
        """Return the evaluation of the event functions; a run with one that is NaN ends."""
        if not self.functions:
            return []

        def look(t: Array, q: Array, v: Array, x: Array, z: Array, *rest: Array) -> Array:
            return self._values(t, q, v, x, z, rest)

        state = tuple(f"{name}{suffix}" for name in ("q", "v", "x"))
        asked = [Host(EVENTS, (t, *state, "z"), self._called)] if self._called else []

        def ended(g: Array, status: Array) -> Array:
            return select(less(0.5, _lost(g) * flag(less(status, 0.5))), float(BAD_EVENT), status)

        return [
            *asked,
            wide_run(look, (t, *state, "z", *self._touched, *self._names), (to,)),
            wide_run(ended, (to, "status"), ("status",)),
        ]

    def first_look(self) -> list[Statement]:
        """Return the evaluation of the event functions at the start of a phase.

        The function of an event that also occurs at the start gets the other sign where it is
        beyond zero, as after a jump: the first step finds the event. `known` event functions, the
        first, have their values of the end of the last phase in `g`.
        """
        started = self._equations.started
        signs = np.zeros(self.functions)
        for i, event in enumerate(self._events):
            if event.crossing.at_start and event.component in started:
                signs[i] = -event.crossing.direction
        if self._limits is not None and self._limits.at_start:
            signs[len(self._events) : self.logged] = 1.0
        if not self.functions:
            return []
        order = np.arange(float(self.functions))

        def raised(before: Array, g: Array, known: Array) -> tuple[Array, Array]:
            # the first are those of the last phase: they may have jumped through zero since
            jumped = flag(less(order, known)) * self._crossed(before, g)
            beyond = flag(negated(less(0.0, signs * g))) * np.abs(signs)
            g1 = select(less(0.5, beyond), signs * larger(absolute(g), 1e-300), g)
            return select(less(0.5, jumped), before, g1), larger(jumped, beyond)

        seen = self.look("t", "", "g end")
        return [*seen, wide_run(raised, ("g", "g end", "known"), ("g", "jumped"))]

    @property
    def _touched(self) -> tuple[str, ...]:
        """Names of what event functions read besides state and data."""
        begin = ("phase start",) if self._equations.own_clock else ()
        moved = ("momentum",) if self._equations.reduced else ()
        return (*begin, *moved, *(("contact",) if self._stops else ()), *self._called)

    @property
    def _called(self) -> tuple[str, ...]:
        """Name of the functions of events if Python computes them."""
        return (CALLED,) if self._events and "events" in self._equations.hosted else ()

    def _values(
        self, t: Array, q: Array, v: Array, x: Array, z: Array, rest: Sequence[Array],
        limits: bool = True,
    ) -> Array:  # fmt: skip
        """Return the event functions; those of stops fall below zero where contact changes.

        Without `limits` those of limits are left out.
        """
        own = dict(zip(self._touched, rest, strict=False))
        data, begin = rest[len(own) :], own.get("phase start")
        if self._equations.reduced:  # within a step, the base's speeds are those of its start
            v = self._equations.with_momentum(q, v, own["momentum"], *data)
        parts: list[Array] = []
        if self._called:
            parts.append(own[CALLED])
        elif self._events:
            parts.append(self._equations.instant(t, q, v, x, z, data, begin).crossings())
        if self._limits is not None and limits:
            parts.append(self._limits.values(q, v) + self._limits.rounding)
        if self._stops:
            parts.append((2.0 * own["contact"] - 1.0) * stop_overlaps(self._robot, q))
        return concatenate(parts)

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

        def settled(
            g: Array, now: Array, fired: Array, before: Array, *rest: Array
        ) -> tuple[Array, ...]:
            jumped = self._crossed(g, now) * (1.0 - fired)
            after = select(less(0.5, jumped), g, now)
            if not rest:  # an event that changes nothing leaves its function beyond zero
                return select(less(0.5, fired), g, after), jumped
            # see `inside`; before the event, the function was on the side of g low
            own = np.zeros(self.functions)
            own[self._resets] = 1.0
            same = flag(negated(less(0.0, absolute(now - g)))) * fired * own * (1.0 - before)
            way = select(less(0.0, rest[1]), -1.0, 1.0)
            reset = largest([fired[i : i + 1] for i in self._resets])
            after = select(less(0.5, fired * (1.0 - reset)), g, after)
            # twice if its event occurs again before it has left zero: then it does not go on
            way = way * (1.0 + flag(less(0.5, absolute(rest[0]))))
            return after, jumped, select(less(0.5, same), way, 0.0)

        more = ("rebound", "g low") if self._resets else ()
        reads = ("g", "g end", "fired", "jumped", *more)
        writes = ("g", "jumped", *more[:1])
        return [*self.look("t", "", "g end"), wide_run(settled, reads, writes)]

    def commit(self) -> list[Statement]:
        """Return the statements that take the event functions at the end of a step over."""
        if not self.functions:
            return []

        def taken(g_end: Array, fired: Array, *kept: Array) -> tuple[Array, ...]:
            some = largest(each(fired))  # `settled` looks at what led to an event
            return g_end, *(part * some for part in kept)

        kept = ("jumped", *(("rebound",) if self._resets else ()))
        return [wide_run(taken, ("g end", "fired", *kept), ("g", *kept))]

    def near(self) -> list[Statement]:
        """Return the check whether the inside of the step is searched for events: sets `nodes`.

        A distance to a limit changes at a nearly constant rate. Where it is larger, at both ends of
        the step, than four times what the rates in the stages show of the rest, it does not come to
        zero within, and the step costs nothing more. Other functions are always searched. Within
        the bracket of an event nothing is: its ends show it.
        """
        limits, nv = self._limits, self._robot.nv
        if limits is None or self._events or self._stops:
            always = float(self.functions > 0)

            def outside(high: Array) -> Array:
                return select(less(0.0, high), 0.0, always)

            return [wide_run(outside, ("high bracket",), ("nodes",))]
        near, fast = limits.ranges, limits.speeds
        places = np.concatenate([near.speed, nv + fast.speed, nv + fast.speed])
        slopes = np.concatenate([-near.sign * near.ratio, -fast.ratio, fast.ratio])
        hosted = self._blocks.tableau.hosted  # the only rate is the largest absolute one

        def searched(
            g: Array, jumped: Array, length: Array, high: Array, change: Array, *rates: Array
        ) -> Array:
            moved = change[places]
            bend = 0.0 * moved
            for rate in rates:
                way = length * rate[places]
                off = absolute(way) + absolute(moved) if hosted else absolute(way - moved)
                bend = larger(bend, off)
            least = smaller(absolute(g), absolute(g + slopes * moved))
            apart = flag(less(4.0 * np.abs(slopes) * bend, least))
            apart = apart * flag(less(0.0, g * (g + slopes * moved))) * flag(less(jumped, 0.5))
            return select(less(0.0, high), 0.0, largest(each(1.0 - apart)))

        reads = ("g", "jumped", "length", "high bracket", "change", *self._rates)
        return [wide_run(searched, reads, ("nodes",))]

    def looking(self) -> list[Statement]:
        """Return the check whether the step may hold an event: sets `looking`.

        Also after a step that was cut, or is in the bracket of an event: `bracket` goes on with it.
        """

        def looking(
            accept: Array, g: Array, g_end: Array, nodes: Array, high: Array, cut: Array
        ) -> Array:
            shown = accept * largest(each(self._crossed(g, g_end)))
            going = larger(flag(less(0.0, high)), flag(less(0.0, cut)))
            return larger(larger(nodes, shown), going)

        reads = ("accept", "g", "g end", "nodes", "high bracket", "cut")
        return [wide_run(looking, reads, ("looking",))]

    def inside(self) -> list[Statement]:
        """Return the search for zero crossings that the ends of a step do not show.

        Between nodes, event functions are taken to be cubics; their extrema are the points where
        they may have changed sign. The state between the ends is the dense output of the method,
        with the coefficients `dense trial`.
        """
        count, resets, called = self.functions, bool(self._resets), bool(self._called)

        def inside(row: Array, g: Array, g_end: Array, *rest: Array) -> tuple[Array, ...]:
            made, step = len(NODE_CELLS) + 1, len(STEP_CELLS)
            seen, within = _Nodes(*rest[:made]), _Step(*rest[made : made + step])
            rest = rest[made + step :]
            node, width, first, last, third, fine = (row[i : i + 1] for i in range(6))
            here, slope = self._at_node(row, within, rest[1:] if resets else rest)
            # a slope may not exist, as that of a norm at zero
            slope = select(less(absolute(slope), 1e300), slope, 0.0)
            here = select(less(0.5, last), g_end, here)
            is_first = less(0.5, first)
            returned: list[Array] = []
            if resets:
                # where a reset left the function of its event at zero, its slope says whether it
                # goes on, and has crossed zero, or turns back or stays, and has not
                way = rest[0]
                goes_on = flag(less(0.0, slope * way)) * flag(less(absolute(way), 1.5))
                side = select(less(0.5, goes_on), way, -way) * 1e-300
                known = select(less(0.5, absolute(way)), side, g)
                g = select(is_first, known, g)
                here = select(less(0.5, _still(way, here)), g, here)
                returned = [g]
            # a function that has just jumped through zero may return before the end of the step
            begin = select(less(0.5, within.jumped), here, g)
            found, apart, new = self._first_crossing(
                seen.g, width * seen.slope, here, width * slope, node - width, width
            )
            known = less(seen.hidden, 1.5)
            found, apart = select(known, seen.hidden, found), select(known, seen.later, apart)
            hidden, later = select(is_first, 2.0, found), select(is_first, 0.0, apart)
            changes = select(is_first, 0.0, seen.changes + new)
            middle = 0.5 * (seen.older + here) + 0.25 * width * (seen.slope_older - slope)
            size = absolute(seen.older) + absolute(seen.g) + absolute(here)
            off = flag(less(ROUGH * size, absolute(seen.g - middle))) * third
            if called:  # one that is constant may be a step function
                still = negated(less(0.0, absolute(seen.older - seen.g) + absolute(seen.g - here)))
                own = np.arange(count) < len(self._events)
                off = larger(off, flag(still) * third * own)
            rough = larger(select(is_first, seen.rough * fine, seen.rough), largest(each(off)))
            now = select(is_first, begin, here)
            return now, slope, seen.g, seen.slope, hidden, later, changes, rough, *returned

        made = (*NODE_CELLS, "rough")
        more = ("rebound",) if resets else ()
        reads = ("node", "g", "g end", *made, *STEP_CELLS, *more, *self._touched, *self._names)
        writes = (*made, *(("g",) if resets else ()))
        if called:  # Python computes the functions at all nodes at once
            found: list[Statement] = []
            for name, *values in (AT_NODES, AT_FINE_NODES):
                nodes, fine = (NODES, 0.0) if name == AT_NODES[0] else (FINE_NODES, 1.0)
                rows = np.concatenate([_node_rows(nodes, fine), np.eye(len(nodes))], axis=1)
                look = wide_run(inside, (*reads, *values), writes)
                asked = [Host(name, STEP_CELLS[1:], values), For(rows, [look], "node")]
                found += [If("rough", asked)] if fine else asked
            return found
        rows = np.concatenate([_node_rows(NODES, 0.0), _node_rows(FINE_NODES, 1.0)])

        def used(row: Array, rough: Array) -> Array:
            return select(less(0.5, row[5:6]), rough, 1.0)

        # a loop: the functions and their slopes are long, and compiled once
        search = [
            wide_run(used, ("node", "rough"), ("use node",)),
            If("use node", [wide_run(inside, reads, writes)]),
        ]
        return [For(rows, search, "node")]

    def _at_node(
        self, row: Array, step: _Step, others: Sequence[Array]
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return the event functions and their slopes by θ at a node of a step, `(n,)` each.

        Args:
            row: of the node, see `_node_rows`.
            step: the step.
            others: what event functions read besides time and state; if Python computes them, then
                their values and slopes at all nodes, which the rest of the row selects from.
        """
        nv, events, limits = self._robot.nv, len(self._events), self._limits
        node, called = row[:1], list[Array]()
        if self._called:
            called = [np.sum(row[6:, None] * part, axis=0) for part in others[-2:]]
            others = others[:-2]
        y, rate = dense_output(step.dense, node)
        near = [] if limits is None else limits.along(step.q, step.v, y, rate)
        curved, bent = np.zeros(0), np.zeros(0)
        if called and not self._stops:
            curved, bent = called
        elif not near or self.functions > near[0].shape[0]:
            symbol = casadi.SX.sym("ahead")
            ahead = asarray(symbol).reshape((1,))
            nx, there = step.x.shape[0], y + ahead * rate
            state = (
                integrate(self._robot, step.q, there[:nv]), step.v + there[nv : 2 * nv],
                step.x + there[2 * nv : 2 * nv + nx],
            )  # fmt: skip
            now = step.t + (node + ahead) * step.length
            values = self._values(now, *state, step.z, others, limits=False)
            expression = casadi.vertcat(*values.tolist())

            def at_node(found: Any) -> Array:
                placed = casadi.densify(casadi.substitute(found, symbol, 0.0))
                return asarray(placed).reshape((-1,))

            curved, bent = at_node(expression), at_node(casadi.jacobian(expression, symbol))
            if called:  # these do not depend on `ahead`
                curved, bent = (
                    concatenate([own, part[events:]])
                    for own, part in zip(called, (curved, bent), strict=True)
                )
        if not near:
            return curved, bent
        here, slope = (
            concatenate([a[:events], b, a[events:]])
            for a, b in zip((curved, bent), near, strict=True)
        )
        return here, slope

    def _first_crossing(
        self, f0: Array, s0: Array, f1: Array, s1: Array, start: Array, width: Array
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Return where cubics first cross zero in an interval, see `inside`.

        Args:
            f0: values at its start, `(n,)`.
            s0: slopes there, times its width.
            f1: values at its end.
            s1: slopes there, times its width.
            start: its start, as a fraction of the step, `(1,)`.
            width: its width, `(1,)`.

        Returns:
            The fraction of the step after which the crossing shows, or 2; 1 if it is not at the
            start of the step; the number of changes of sign.
        """
        (low, f_low), (high, f_high) = _extrema(f0, s0, f1, s1)
        here = 0.0 * f0
        seen = [(start + here, f0), (start + width * low, f_low), (start + width * high, f_high),
                (start + width + here, f1)]  # fmt: skip
        found, apart, changes = here + 2.0, here, here
        for (place, f), (after, f_after) in zip(seen[-2::-1], seen[:0:-1], strict=True):
            crossed = less(0.5, self._crossed(f, f_after))
            found = select(crossed, select(less(1e-12, place), place, after), found)
            apart = select(crossed, flag(less(1e-12, place)), apart)
            changes = changes + flag(less(f * f_after, 0.0))
        return found, apart, changes

    def bracket(self) -> list[Statement]:
        """Return the location of events; sets `accept` to whether the step is final."""
        crossed = self._crossed
        finest = float(np.finfo(self._blocks.dtype).eps) if self._blocks.dtype == "float32" else 0.0

        def locate(
            accept: Array, t: Array, length: Array, g: Array, g_end: Array, jumped: Array,
            nodes: Array, hidden: Array, changes: Array, *rest: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            bracket, rest = _Bracket(*rest[: len(BRACKET_CELLS)]), rest[len(BRACKET_CELLS) :]
            searched = less(0.5, nodes)
            hidden, changes = select(searched, hidden, 2.0), select(searched, changes, 0.0)
            close = LOCATED * _EPS * (absolute(t) + length) + finest * length
            close = larger(close, SHORTEST)
            hit = crossed(g, g_end)
            if rest:  # what has not left zero has not come back to it
                hit = hit * (1.0 - _still(rest[0], g_end))
            any_hit, inside = largest(each(hit)), less(0.0, bracket.high)
            # crossings within the step that its ends do not show: a shorter step makes them visible
            hidden = select(less(0.5, jumped), SHORT, hidden)
            shown = hit * flag(less(changes, 1.5))  # the only one
            if rest:  # a function that is zero at the start first leaves it
                rebound, later = rest
                shown = shown * (1.0 - later * flag(less(0.5, absolute(rebound))))
            part = smallest(each(select(less(0.5, shown), 2.0, hidden)))
            bulge = flag(less(part, 1.0)) * flag(less(64.0 * close, length))
            bulge = select(inside, 0.0, bulge)
            any_hit = any_hit * (1.0 - bulge)
            searching = select(less(0.5, any_hit), 1.0, select(inside, 1.0, 0.0))
            first = less(0.5, flag(negated(inside)) * any_hit)
            bracket = bracket._replace(
                low=select(first, 0.0, bracket.low), g_low=select(first, g, bracket.g_low)
            )
            is_hit = less(0.5, any_hit)
            new = bracket.narrowed(is_hit, length, g_end)
            done = new.is_narrow(close)
            again = select(done, new.high, self._tried(new, bracket.g_low, close))
            # outcome
            search = less(0.5, searching)
            finished = select(done, flag(is_hit), 0.0)
            finished = select(less(0.5, bracket.final), 1.0, finished)
            take = accept * select(search, finished, 1.0 - bulge)
            fired = hit * take * accept
            keep = accept * select(search, 1.0 - finished, 0.0)  # another try in the bracket
            going = less(0.5, keep)
            cut = select(less(0.5, bulge * accept), part * length, 0.0)
            kept = (new.low, new.high, new.side, flag(done), bracket.tries + 1.0)
            after = (*(select(going, x, 0.0) for x in kept), new.g_low, new.g_high)
            return (take, select(going, again, length), cut, fired, *each(fired), *after)

        flags = [f"fired {i}" for i in range(self.functions)]
        reads = ("accept", "t", "length", "g", "g end", "jumped", "nodes", "hidden", "changes")
        more = ("rebound", "later") if self._resets else ()
        writes = ("accept", "length", "cut", "fired", *flags, *BRACKET_CELLS)
        return [wide_run(locate, (*reads, *BRACKET_CELLS, *more), writes)]

    def _tried(self, bracket: _Bracket, g_low: Array, close: Array) -> Array:
        """Return a length in a bracket, `(1,)`: the earliest zero of the secants, or the middle.

        Args:
            bracket: the bracket.
            g_low: event functions after the shorter length, as they are, `(n,)`.
            close: least distance from the ends of the bracket, `(1,)`, s.
        """
        low, high, _, _, tries, left, right = bracket
        where = self._crossed(g_low, right) + self._crossed(left, right)
        slope = left - right
        zeros = left / select(less(0.0, absolute(slope)), slope, 1.0)
        zeros = select(less(0.5, where), zeros, 2.0)
        theta = larger(smaller(smallest(each(zeros)), 1.0), 0.0)
        # from the ninth try on every third time the middle, which also gets over plateaus
        third = tries - 3.0 * floor(tries / 3.0)
        secant = less(select(less(tries, 8.5), 0.0, third), 1.5)
        guess = low + select(secant, theta, 0.5) * (high - low)
        return larger(smaller(guess, high - 0.5 * close), low + 0.5 * close)

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
        limit or a stop, when it becomes negative.
        """
        count = len(self._events)
        directions = np.array([float(e.crossing.direction) for e in self._events])
        parts: list[Array] = []
        if count:
            b, a = before[:count], after[:count]
            up = flag(less(b, 0.0)) * flag(negated(less(a, 0.0))) * (directions >= 0.0)
            down = flag(less(0.0, b)) * flag(negated(less(0.0, a))) * (directions <= 0.0)
            parts.append(up + down)
        if self.functions > count:
            b, a = before[count:], after[count:]
            parts.append(flag(negated(less(b, 0.0))) * flag(less(a, 0.0)))
        return concatenate(parts)

    def fire(self) -> list[Statement]:
        """Return the statements for events that occurred at the end of the step."""
        if not self.functions:
            return []
        count = self.logged
        actions = [e.crossing.action for e in self._events]
        if self._limits is not None:
            actions += [self._limits.action] * len(self._limits.names)
        stops, nexts = (np.array([a == x for a in actions], float) for x in ("stop", "next"))
        more = self._blocks.bounded  # single runs also store the state

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

        def log(t: Array, begin: Array, fired: Array, *state: Array) -> tuple[Array, ...]:
            return reported(t, begin), fired[:count], *state

        def earliest(t: Array, begin: Array, fired: Array, first: Array) -> Array:
            return smaller(first, select(less(0.5, fired[:count]), reported(t, begin), NEVER))

        found: list[Statement] = [wide_run(_any, ("fired",), ("any",))]
        inner: list[Statement] = []
        if count:
            reads = ("fired", "t", "status", "recent", "recent time")
            state = ("q", "v") if more else ()
            stored = ("event t", "event fired", *(f"event {name}" for name in state))
            inner += [
                wide_run(status, reads, ("logged", "status", "recent", "recent time")),
                If("logged", [
                    Record(Block(log, ("t", "phase start", "fired", *state), stored, wide=True),
                           "event row", "events"),
                    wide_run(plus_one, ("events",), ("events",)),
                    wide_run(plus_one, ("event row",), ("event row",)),
                    wide_run(earliest, ("t", "phase start", "fired", FIRST), (FIRST,)),
                ]),
            ]  # fmt: skip
        inner += self._note(reported)
        resets = self._resets
        for i in resets:
            inner.append(If(f"fired {i}", self._reset(i)))
        if resets:
            inner += self._blocks.place_held("t")
            if self._blocks.bounded:
                writes = ("was reset",)
                own = [f"fired {i}" for i in resets]
                inner.append(wide_run(lambda *flags: largest(flags), own, writes))
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
        places, all_names = system.event_places, all_event_names(self._equations)
        names: dict[str, list[int]] = {}
        for i, name in enumerate(all_names):
            if event_key(name) in places:
                names.setdefault(name, []).append(i)
        if not names:
            return []

        def note(t: Array, begin: Array, z: Array, fired: Array) -> Array:
            now = {n: largest([fired[i : i + 1] for i in own]) for n, own in names.items()}
            return occurred(places, z, now, reported(t, begin))

        return [wide_run(note, ("t", "phase start", "z", "fired"), ("z",))]

    def _reset(self, i: int) -> list[Statement]:
        """Return the statements of a reset; a run in which it is not valid ends."""
        event, robot = self._events[i], self._robot
        if "system" in self._equations.hosted:
            changed = ("q", "v", "x", "z", "work")
            rests = [f"rest {name}" for name in (*changed[:3], "work")]

            def forgotten(*rests: Array) -> tuple[Array, ...]:
                return tuple(0.0 * rest for rest in rests)

            return [Host(f"{RESET} {i}", ("t", *changed), changed),
                    Run(Block(forgotten, rests, rests))]  # fmt: skip

        def reset(
            t: Array, q: Array, v: Array, x: Array, z: Array, *data: Array
        ) -> tuple[Array, ...]:
            now = self._equations.instant(t, q, v, x, z, data)
            q1, v1, x1, z1 = now.reset(event.component, event.name)
            sizes = [np.sum(absolute(part), keepdims=True) for part in (q1, v1, x1, z1)]
            fault = larger(_defect(robot, q1), flag(negated(less(sum(sizes), np.inf))))
            after = q1 if q1 is q else normalize(robot, q1)
            return after, v1, x1, z1, 0.0 * q, 0.0 * v, 0.0 * x, fault

        def gained(
            q: Array, v: Array, q0: Array, v0: Array, work: Array, *data: Array
        ) -> tuple[Array, Array]:
            # the change of energy counts as work of external forces
            own = self._equations.changed(data).robot
            gain = _energy(own, q, v) - _energy(own, q0, v0)
            return work + gain * np.array([0.0, 1.0, 0.0]), 0.0 * work

        def ended(fault: Array, status: Array) -> Array:
            wrong = flag(negated(less(fault, UNIT[self._blocks.dtype])))
            return select(less(0.5, wrong * flag(less(status, 2.5))), float(BAD_RESET), status)

        state = ("q", "v", "x", "z")
        writes = (*state, "rest q", "rest v", "rest x", "reset fault")
        before = ("q end", "v end")
        keep: list[Statement] = [Run(Block(unchanged, ("q", "v"), before))]
        reads = ("q", "v", *before, "work", *self._names)
        count = [Run(Block(gained, reads, ("work", "rest work")))]
        works = bool(self._blocks.works)
        return [
            *(keep if works else []),
            Run(Block(reset, ("t", *state, *self._names), writes)),
            *(count if works else []),
            wide_run(ended, ("reset fault", "status"), ("status",)),
        ]


def dense_output(coefficients: Array, theta: Array) -> tuple[Array, Array]:
    """Return y(t + θh) - y(t) and its derivative by θ, each `(ny,)`, see `tableaus`.

    Args:
        coefficients: F₁, F₂, ..., `(r, ny)`.
        theta: `(1,)`.
    """
    y, rate = 0.0 * coefficients[0], 0.0 * coefficients[0]
    for i in reversed(range(len(coefficients))):
        inner = coefficients[i] + y
        if i % 2 == 0:
            y, rate = inner * theta, rate * theta + inner
        else:
            y, rate = inner * (1.0 - theta), rate * (1.0 - theta) - inner
    return y, rate


def _node_rows(nodes: Sequence[float], fine: float) -> Array:
    """Return per node: place, distance from the last, whether it is first, last, or has two before.

    Args:
        nodes: places as fractions of a step.
        fine: 1 for nodes that are used only where functions are rough.
    """
    place = np.array(nodes)
    rows = np.zeros((len(nodes), 6))
    rows[:, 0], rows[:, 1], rows[:, 5] = place, np.diff(place, prepend=place[0]), fine
    rows[0, 2] = rows[-1, 3] = 1.0
    rows[2:, 4] = 1.0 - fine
    return rows


def _energy(robot: Robot, q: Array, v: Array) -> Array:
    return asarray(kinetic_energy(robot, q, v) + potential_energy(robot, q)).reshape((1,))


def all_event_names(equations: RunEquations) -> list[str]:
    """Return the names of all events that are recorded: of components, conditions, limits."""
    limits = () if equations.limits is None else equations.limits.names
    return [*event_names(equations.system), *limits]


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


def _still(rebound: Array, g: Array) -> Array:
    """Return 1 for functions that a reset left at zero, and that are still there."""
    return flag(less(0.5, absolute(rebound))) * flag(negated(less(0.0, absolute(g))))


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
