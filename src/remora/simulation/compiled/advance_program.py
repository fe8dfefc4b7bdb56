"""Program that advances a run by many steps in machine code.

From the complete state between two steps it makes the steps of the run loop, with the same
formulas, until it reaches the end of the segment, its records are full, or a step needs the run
loop:

    while the segment is not finished and there is room:
        choose the length of the step; stages; error
        rejected: try a shorter step
        no limit and no stop can be reached in it: accept it, record its end

A step that may reach a limit or a stop, is not finite, or is too short, is not made: the state
returned is that before it, and the run loop makes that step, which locates the event or raises the
error.

All numbers that go in are one vector, and all that come out are one vector and one table of
records, because a call from Python takes a time proportional to the number of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remora.algebra.array_ops import (
    Array,
    absolute,
    concatenate,
    less,
    select,
    sqrt,
    total_and_rest,
)
from remora.algebra.selections import flag, larger, smaller
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import (
    Block,
    For,
    If,
    Record,
    Run,
    Sample,
    Statement,
    While,
)
from remora.codegen.ir.graph import Signature
from remora.components.actions import Wrench
from remora.components.system import System
from remora.dynamics.forces.equations_of_motion import (
    PassiveParameters,
    passive_loads,
    state_derivative_near,
)
from remora.dynamics.state_layout import WORKS, StateLayout, layout_of
from remora.model.robot import Robot
from remora.model.state import increment
from remora.simulation.integrators.error_scale import coordinate_magnitudes
from remora.simulation.integrators.step_control import GROW, SAFETY, SHRINK
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.phase.phase_loads import SmoothLoads
from remora.simulation.systems.system_equations import (
    component_loads,
    limited,
    signal_values,
    system_rates,
)


@dataclass(frozen=True, eq=False)
class AdvanceEquations:
    """Everything that is compiled into a program.

    Attributes:
        robot: the robot.
        system: the robot with its components; None: it has none.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        effort: limits of the drives, `nv` numbers; None: no limits.
        stops: number of stops at joint limits; none of them is in contact.
        loads: loads that are given besides components.
        tableau: the method.
        dense: whether the coefficients of the dense output are recorded.
        bounds: limits that no step may come near.
    """

    robot: Robot
    system: System | None
    formulation: str
    passive: PassiveParameters
    effort: tuple[float, ...] | None
    stops: int
    loads: SmoothLoads
    tableau: Tableau
    dense: bool
    bounds: Bounds

    @property
    def layout(self) -> StateLayout:
        """Layout of y."""
        return layout_of(self.robot, 0 if self.system is None else self.system.nx)

    @property
    def nz(self) -> int:
        """Number of discrete states."""
        return 0 if self.system is None else self.system.nz

    def rates(
        self, q: Array, y: Array, z: Array, t: Array, low: Array, offset: Array, torque: Array,
        wrenches: Array,
    ) -> Array:  # fmt: skip
        """Return the rate of y about the configuration q, `(ny,)`; see `system_rates`.

        Args:
            q: configuration at the start of the step, `(nq,)`.
            y: `(ny,)`.
            z: discrete states of the components, `(nz,)`.
            t: time, inside the segment, `(1,)`, s.
            low: time at which the polynomials of the loads begin, `(1,)`, s.
            offset: start of the clock of the loads, `(1,)`, s.
            torque: coefficients of the generalized forces, `(degree + 1, nv)`.
            wrenches: coefficients of the wrenches, `(degree + 1, nb, 6)`; empty without.
        """
        tau, push = self._given(t, low, offset, torque, wrenches)
        if self.system is None:
            return state_derivative_near(
                self.robot, q, y, limited(tau, self.effort), push, formulation=self.formulation,
                passive=self.passive, contact=self._contact,
            )  # fmt: skip
        return system_rates(
            self.system, q, y, z, t.reshape(()), tau, push, contact=self._contact,
            formulation=self.formulation, passive=self.passive, effort=self.effort,
        )  # fmt: skip

    @property
    def _contact(self) -> Array | None:
        return np.zeros(self.stops) if self.stops else None

    def _given(
        self, t: Array, low: Array, offset: Array, torque: Array, wrenches: Array
    ) -> tuple[Array, Array | None]:
        """Return the drive forces and wrenches besides those of components."""
        clock, since = (t - offset).reshape(()), t - low
        tau = _added(horner(since, torque), self.loads.torque(clock))
        if not self.loads.pushes:
            return tau, None
        return tau, _added(horner(since, wrenches), self.loads.wrenches(clock))

    @property
    def load_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what is recorded of loads and components."""
        nv, bodies = self.robot.nv, len(self.robot.bodies)
        shapes: dict[str, tuple[int, ...]] = {"tau": (nv,), "passive": (nv,)}
        actions = []
        if self.system is not None:
            actions = [a for layout in self.system.layouts.values() for a in layout.actions]
        if self.loads.pushes or any(isinstance(a, Wrench) for a in actions):
            shapes["wrenches"] = (bodies, 6)
        if self.system is not None and self.system.signals:
            sizes = [int(np.prod(shape)) for shape, _ in self.system.signals.values()]
            shapes["signals"] = (sum(sizes),)
        return shapes

    def recorded_loads(
        self, q: Array, w: Array, z: Array, t: Array, low: Array, offset: Array, torque: Array,
        wrenches: Array,
    ) -> Array:  # fmt: skip
        """Return the loads and signals at a state as one vector, see `load_shapes`.

        The arguments are those of `rates`, with w = [v, work, x].
        """
        nv = self.robot.nv
        v, x = w[:nv], w[nv + WORKS :]
        tau, push = self._given(t, low, offset, torque, wrenches)
        if self.system is not None:
            force, own = component_loads(self.system, q, v, x, z, t.reshape(()))
            tau = tau + force
            push = own if push is None else push + own
        passive = passive_loads(self.robot, q, v, self.passive, self._contact)
        parts = [limited(tau, self.effort), passive]
        shapes = self.load_shapes
        if "wrenches" in shapes and push is not None:
            parts.append(push.reshape((-1,)))
        if "signals" in shapes and self.system is not None:
            parts.append(signal_values(self.system, q, v, x, z, t.reshape(())))
        return concatenate(parts)


@dataclass(frozen=True)
class Bounds:
    """Values a·q + b, and a·v + b, that must stay away from zero within a step.

    A step stays away if |a·q + b| is more than four times the change at the largest rate found in
    the stages, see `EventMonitor.far`.

    Attributes:
        positions: for each, index of q, index of v, a and b.
        speeds: for each, index of v, a and b.
    """

    positions: tuple[tuple[int, int, float, float], ...]
    speeds: tuple[tuple[int, float, float], ...]

    def clear(self, nv: int, q: Array, v: Array, h: Array, K: Sequence[Array]) -> Array:
        """Return 1 if a step of length h with the stages K stays away from all, otherwise 0."""

        def fastest(i: int) -> Array:
            most = absolute(K[0][i : i + 1])
            for k in K[1:]:
                most = larger(most, absolute(k[i : i + 1]))
            return most

        free: Array = np.ones(1)
        for place, speed, a, b in self.positions:
            room, way = absolute(a * q[place : place + 1] + b), 4.0 * abs(a) * h * fastest(speed)
            free = free * flag(less(way, room))
        for speed, a, b in self.speeds:
            room = b - absolute(a * v[speed : speed + 1])
            free = free * flag(less(4.0 * abs(a) * h * fastest(nv + speed), room))
        return free


def inputs_of(own: AdvanceEquations) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the parts of the vector that goes in.

    `t` and `stop`: present time and end of the segment; `low` and `high`: times between which loads
    are evaluated; `offset`: of their clock. `h`: next step size; `refused`: whether the last try
    was; `tries`: how many are left. `fresh`: whether `rate` is unknown. `first`, `count`, `index`:
    start of the segment, number of fixed steps in it, and number of the next. `room`: maximum
    number of steps. `w` is [v, work, x].
    """
    robot, size = own.robot, own.layout.size
    shapes: dict[str, tuple[int, ...]] = {}
    for name in (*NUMBERS, *KEPT):
        shapes[name] = (1,)
    rows = own.loads.degree + 1
    shapes |= {"q": (robot.nq,), "w": (size - robot.nv,), "rest q": (robot.nq,)}
    shapes |= {"rest w": (size - robot.nv,), "rate": (size,)}
    shapes |= {"z": (own.nz,), "torque": (rows, robot.nv)}
    shapes["wrenches"] = (rows, len(robot.bodies), 6) if own.loads.pushes else (0,)
    return shapes


#: Changes and errors beyond this are not finite, or will not be soon.
LARGE = 1e300
#: Numbers that go in, and those that also come out.
NUMBERS = ("stop", "low", "high", "offset", "rtol", "atol", "max step", "first", "count", "room")
KEPT = ("t", "h", "refused", "tries", "fresh", "index")
#: Numbers that come out: how many steps were made, whether the next must be made elsewhere, and
#: step size and tries left after the last step that was made.
MADE = ("steps", "trouble", "h kept", "tries kept")


def returned_by(own: AdvanceEquations) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the parts of the vector that comes out."""
    shapes = inputs_of(own)
    ends = ("q", "w", "rest q", "rest w", "rate")
    return dict.fromkeys((*KEPT, *MADE), (1,)) | {name: shapes[name] for name in ends}


def recorded_by(own: AdvanceEquations) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the parts of a record.

    These are the end of a step, and the coefficients of its dense output or the loads at its end.
    """
    shapes = inputs_of(own)
    found = {"t": (1,), "q": shapes["q"], "w": shapes["w"]}
    if own.dense:
        return found | {"dense": (3 + len(own.tableau.dense_d), own.layout.size)}
    return found | own.load_shapes


def size_of(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return the number of elements of all parts."""
    return sum(int(np.prod(shape)) for shape in shapes.values())


def places(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """Return the slices of the parts in their vector."""
    found, start = dict[str, slice](), 0
    for name, shape in shapes.items():
        stop = start + int(np.prod(shape))
        found[name], start = slice(start, stop), stop
    return found


def advance_program(own: AdvanceEquations) -> Program:
    """Return the program; input `state`, outputs `records` and `end`."""
    return _AdvanceProgram(own).program()


class _AdvanceProgram:
    """Builds the program; each method returns the statements of one part."""

    def __init__(self, own: AdvanceEquations) -> None:
        self._own, self._tableau, self._layout = own, own.tableau, own.layout
        self._nv = own.robot.nv
        extra = len(self._tableau.dense_c) if own.dense else 0
        self._stages = len(self._tableau.b)
        self._width = self._stages + 1 + extra
        self._K = ["rate", *(f"k{i}" for i in range(1, self._width))]
        self._shapes = {n: s for n, s in inputs_of(own).items() if 0 not in s}
        self._z = ("z",) if "z" in self._shapes else ()
        self._wrenches = ("wrenches",) if own.loads.pushes else ()

    def program(self) -> Program:
        """Return the program."""
        own, size = self._own, self._layout.size
        cells = [Signature(name, shape) for name, shape in self._shapes.items()]
        cells += [Signature(name, (size,)) for name in (*self._K[1:], "k", "y", "step", "change")]
        numbers = ("active", "accept", "length", "end", "last", "error", "clear", "use", "now")
        cells += [Signature(name, (1,)) for name in (*numbers, *MADE)]
        cells += [Signature(f"at {i}", (1,)) for i in range(self._width)]
        cells += [Signature(f"{n} end", self._shapes[n]) for n in ("q", "w", "rest q", "rest w")]
        body: list[Statement] = [
            self._unpacked(),
            *self._go_on(),
            While("active", [
                self._chosen(), *self._stage_loop(), self._candidate(), self._judged(),
                self._decided(), If("accept", self._committed()), *self._go_on(),
            ]),
            self._packed(),
        ]  # fmt: skip
        return Program([Signature("state", (size_of(inputs_of(own)),))], cells, body)

    # Vectors ------------------------------------------------------------------------------------

    def _unpacked(self) -> Run:
        names, where = list(self._shapes), places(inputs_of(self._own))

        def unpack(state: Array) -> tuple[Array, ...]:
            parts = (state[where[n]].reshape(self._shapes[n]) for n in names)
            start = state[where["h"]], state[where["tries"]]
            return (*parts, *start)

        return Run(Block(unpack, ("state",), (*names, "h kept", "tries kept")))

    def _packed(self) -> Sample:
        names = [n for n, shape in returned_by(self._own).items() if 0 not in shape]

        def pack(*parts: Array) -> Array:
            return concatenate([part.reshape((-1,)) for part in parts])

        return Sample(Block(pack, names, ("end",)))

    def _go_on(self) -> list[Statement]:
        def on(t: Array, stop: Array, steps: Array, room: Array, trouble: Array) -> Array:
            return flag(less(t, stop)) * flag(less(steps, room)) * flag(less(trouble, 0.5))

        return [Run(Block(on, ("t", "stop", "steps", "room", "trouble"), ("active",)))]

    # Steps --------------------------------------------------------------------------------------

    def _chosen(self) -> Run:
        """Return the choice of the length of the step."""

        def adaptive(t: Array, stop: Array, h: Array, most: Array) -> tuple[Array, ...]:
            wanted, left = smaller(h, most), stop - t
            last = 1.0 - flag(less(wanted * (1.0 + 1e-9), left))
            length = select(less(0.5, last), left, smaller(wanted, 0.5 * left))
            return length, select(less(0.5, last), stop, t + length), last

        def fixed(
            t: Array, stop: Array, first: Array, count: Array, index: Array
        ) -> tuple[Array, ...]:
            last = flag(less(count - 0.5, index))
            end = select(less(0.5, last), stop, first + (stop - first) * (index / count))
            return end - t, end, last

        writes = ("length", "end", "last")
        if self._tableau.error_order:
            return Run(Block(adaptive, ("t", "stop", "h", "max step"), writes))
        return Run(Block(fixed, ("t", "stop", "first", "count", "index"), writes))

    def _stage_loop(self) -> list[Statement]:
        """Return the stages: the rates k, and the change of y over the step.

        A row of the loop has the time of its stage and a 1 in the place of its number. Each stage
        sums its own coefficients that are not zero; the rates are evaluated in one place.
        """
        tableau, width, stages = self._tableau, self._width, self._stages
        weights = np.zeros((width, width))
        weights[:stages, :stages], weights[stages, :stages] = tableau.a, tableau.b
        weights[stages + 1 :] = tableau.dense_a[: width - stages - 1, :width]
        rows = np.zeros((width, width + 1))
        rows[:, 0] = [*tableau.c, 1.0, *tableau.dense_c][:width]
        rows[:, 1:] = np.eye(width)
        names, own, nv = self._K, self._own, self._nv
        z, wrenches = self._z, self._wrenches

        def begin(
            t: Array, low: Array, high: Array, length: Array, fresh: Array, row: Array
        ) -> tuple[Array, ...]:
            flags = [row[1 + i : 2 + i] for i in range(width)]
            use = select(less(0.5, flags[0]), fresh, 1.0)
            return smaller(larger(t + row[:1] * length, low), high), use, *flags

        def change_of(i: int) -> Run:
            used = np.flatnonzero(weights[i])

            def moved(w: Array, length: Array, *K: Array) -> tuple[Array, Array]:
                change = length * weighted(weights[i][used], K)
                return change, concatenate([change[:nv], w + change[nv:]])

            written = ("change" if i == stages else "step", "y")
            return Run(Block(moved, ("w", "length", *(names[k] for k in used)), written))

        def rates(
            q: Array, y: Array, now: Array, low: Array, offset: Array, torque: Array, *rest: Array
        ) -> Array:
            parts = list(rest)
            discrete = parts.pop(0) if z else np.zeros(0)
            push = parts.pop(0) if wrenches else np.zeros(0)
            return own.rates(q, y, discrete, now, low, offset, torque, push)

        def at_start(w: Array) -> Array:
            return concatenate([np.zeros(nv), w])

        flags = [f"at {i}" for i in range(width)]
        first = If(flags[0], [Run(Block(at_start, ("w",), ("y",)))])
        return [For(rows, [
            Run(Block(begin, ("t", "low", "high", "length", "fresh", "row"),
                      ("now", "use", *flags))),
            first, *(If(flags[i], [change_of(i)]) for i in range(1, width)),
            If("use", [
                Run(Block(rates, ("q", "y", "now", "low", "offset", "torque", *z, *wrenches),
                          ("k",))),
                *(If(flags[i], [Run(Block(_same, ("k",), (names[i],)))]) for i in range(width)),
            ]),
        ])]  # fmt: skip

    def _candidate(self) -> Run:
        """Return the state at the end of the step, with compensated summation."""
        nv, robot = self._nv, self._own.robot

        def candidate(
            q: Array, w: Array, rest_q: Array, rest_w: Array, change: Array
        ) -> tuple[Array, ...]:
            q1, rest_q1 = total_and_rest(q, increment(robot, q, change[:nv]) + rest_q)
            w1, rest_w1 = total_and_rest(w, change[nv:] + rest_w)
            return q1, w1, rest_q1, rest_w1

        names = ("q", "w", "rest q", "rest w")
        return Run(Block(candidate, (*names, "change"), [f"{n} end" for n in names]))

    def _judged(self) -> Run:
        """Return the error of the step, and whether it is finite and away from all bounds."""
        nv, own, extra = self._nv, self._own, self._layout.extra_size
        weights, size = self._tableau.errors, self._layout.size

        def judge(
            q: Array, w: Array, length: Array, rtol: Array, atol: Array, change: Array, *K: Array
        ) -> tuple[Array, Array]:
            finite = flag(less(np.sum(absolute(change), keepdims=True), LARGE))
            clear = finite * own.bounds.clear(nv, q, w[:nv], length, K)
            if not len(weights):
                return np.zeros(1), clear
            magnitudes = concatenate([coordinate_magnitudes(own.robot, q), w[:nv], w[nv + WORKS :]])
            scale = rtol * absolute(magnitudes) + atol
            free = [*range(2 * nv), *range(2 * nv + WORKS, 2 * nv + WORKS + extra)]
            norms = [
                sqrt(np.sum((length * weighted(row, K)[free] / scale) ** 2, keepdims=True) / size)
                for row in weights
            ]
            if len(norms) == 1:
                return norms[0], clear
            fifth, third = norms
            below = sqrt(fifth * fifth + 0.01 * third * third)
            return fifth * fifth / select(less(0.0, below), below, 1.0), clear

        reads = ("q", "w", "length", "rtol", "atol", "change", *self._K[: self._stages + 1])
        return Run(Block(judge, reads, ("error", "clear")))

    def _decided(self) -> Run:
        """Return the decision whether the step is made, and what is tried next."""
        power = -1.0 / (self._tableau.error_order + 1)

        def adaptive(
            t: Array, error: Array, clear: Array, length: Array, h: Array, refused: Array,
            tries: Array, most: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            good = 1.0 - flag(less(1.0, error))
            finite = flag(less(error, LARGE))
            ratio = SAFETY * larger(error, 1e-300) ** power
            shorter = length * larger(ratio, SHRINK)
            grown = length * smaller(select(less(0.5, refused), 1.0, GROW), larger(ratio, SHRINK))
            wanted = smaller(h, most)
            after = select(less(length, wanted), larger(h, grown), grown)
            long = flag(less(t, t + 0.1 * shorter))
            fine = finite * flag(less(0.5, tries)) * select(less(0.5, good), clear, long)
            trouble = 1.0 - fine
            accept = good * fine
            h1 = select(less(0.5, good), after, shorter)
            return (
                accept, trouble, select(less(0.5, fine), h1, h),
                select(less(0.5, fine), 1.0 - good, refused), tries - fine,
            )  # fmt: skip

        def fixed(clear: Array) -> tuple[Array, Array]:
            return clear, 1.0 - clear

        if not self._tableau.error_order:
            return Run(Block(fixed, ("clear",), ("accept", "trouble")))
        reads = ("t", "error", "clear", "length", "h", "refused", "tries", "max step")
        return Run(Block(adaptive, reads, ("accept", "trouble", "h", "refused", "tries")))

    def _committed(self) -> list[Statement]:
        """Return the statements that make the end of the step the state, and record it."""
        names = ("q", "w", "rest q", "rest w")
        nv, tableau, stages = self._nv, self._tableau, self._stages
        last = self._K[stages]

        def commit(
            q: Array, w: Array, rest_q: Array, rest_w: Array, end: Array, k: Array, steps: Array,
            index: Array, h: Array, tries: Array,
        ) -> tuple[Array, ...]:  # fmt: skip
            rate = concatenate([w[:nv], k[nv:]])
            return q, w, rest_q, rest_w, end, rate, steps + 1.0, index + 1.0, 0.0 * h, h, tries

        def record(q: Array, w: Array, end: Array, *rest: Array) -> Array:
            (change, length), K = rest[:2], rest[2:]
            bend = length * K[0] - change
            parts = [change, bend, change - length * K[stages] - bend]
            parts += [length * weighted(row, K) for row in tableau.dense_d]
            return concatenate([end, q, w, *parts])

        own, z, wrenches = self._own, self._z, self._wrenches

        def record_loads(
            q: Array, w: Array, end: Array, low: Array, high: Array, offset: Array, torque: Array,
            *rest: Array,
        ) -> Array:  # fmt: skip
            parts = list(rest)
            discrete = parts.pop(0) if z else np.zeros(0)
            push = parts.pop(0) if wrenches else np.zeros(0)
            now = smaller(larger(end, low), high)
            loads = own.recorded_loads(q, w, discrete, now, low, offset, torque, push)
            return concatenate([end, q, w, loads])

        if own.dense:
            recorded = Block(record, ("q end", "w end", "end", "change", "length", *self._K),
                             ("records",))  # fmt: skip
        else:
            recorded = Block(
                record_loads,
                ("q end", "w end", "end", "low", "high", "offset", "torque", *z, *wrenches),
                ("records",),
            )
        ends = [f"{name} end" for name in names]
        reads = (*ends, "end", last, "steps", "index", "h", "tries")
        writes = (*names, "t", "rate", "steps", "index", "fresh", "h kept", "tries kept")
        return [
            Record(recorded, "steps"),
            Run(Block(commit, reads, writes)),
        ]


def _same(x: Array) -> Array:
    return x


def _added(a: Array, b: Array | None) -> Array:
    return a if b is None else a + b


def horner(s: Array, coefficients: Array) -> Array:
    """Return Σ cₖ sᵏ of coefficients `(n, ...)` at s `(1,)`."""
    found: Array = coefficients[-1]
    for row in coefficients[-2::-1] if len(coefficients) > 1 else ():
        found = found * s + row
    return found


def weighted(weights: Array, K: Sequence[Array]) -> Array:
    """Return Σ wᵢ Kᵢ; weights that are zero are left out."""
    total: Array | None = None
    for i, k in enumerate(K[: len(weights)]):
        own = weights[i : i + 1]
        if own.dtype != object and own[0] == 0.0:
            continue
        total = own * k if total is None else total + own * k
    assert total is not None
    return total
