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

from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra import vector
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
from remora.dynamics.state_layout import WORKS
from remora.model.state import increment
from remora.simulation.compiled.advance_equations import (
    CHAINED,
    LINKS,
    MADE,
    AdvanceEquations,
    inputs_of,
    places,
    returned_by,
    size_of,
)
from remora.simulation.integrators.error_scale import coordinate_magnitudes
from remora.simulation.integrators.step_control import GROW, SAFETY, SHRINK

#: Changes and errors beyond this are not finite, or will not be soon.
LARGE = 1e300


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
        self._numbers = ("numbers",) if own.parameters else ()

    def program(self) -> Program:
        """Return the program."""
        own, size = self._own, self._layout.size
        cells = [Signature(name, shape) for name, shape in self._shapes.items()]
        cells += [Signature(name, (size,)) for name in (*self._K[1:], "k", "y", "step", "change")]
        numbers = (
            "active",
            "accept",
            "length",
            "end",
            "last",
            "error",
            "clear",
            "use",
            "now",
            "switch",
        )
        cells += [Signature(name, (1,)) for name in (*numbers, *MADE)]
        cells += [Signature(f"at {i}", (1,)) for i in range(self._width)]
        cells += [Signature(f"{n} end", self._shapes[n]) for n in ("q", "w", "rest q", "rest w")]
        body: list[Statement] = [
            self._unpacked(),
            *self._go_on(),
            While("active", [
                self._chosen(), *self._stage_loop(), self._candidate(), self._judged(),
                self._decided(), If("accept", self._committed()), *self._linked(),
                *self._go_on(),
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

    def _linked(self) -> list[Statement]:
        """Return the statements that enter the next segment at the end of one."""
        if self._own.dense:
            return []
        loads = ("torque", *self._wrenches)
        shapes = [self._shapes[name] for name in loads]
        sizes = [int(np.prod(shape)) for shape in shapes]

        def reached(t: Array, stop: Array, link: Array, links: Array) -> Array:
            return flag(less(link + 0.5, links)) * (1.0 - flag(less(t, stop)))

        def enter(chain: Array, link: Array) -> tuple[Array, ...]:
            row = chain[0]
            for i in range(1, LINKS):
                row = select(less(i - 0.5, link), chain[i], row)
            numbers = [row[i : i + 1] for i in range(len(CHAINED))]
            parts, start = list[Array](), len(CHAINED)
            for shape, size in zip(shapes, sizes, strict=True):
                parts.append(row[start : start + size].reshape(shape))
                start += size
            return (*numbers, *parts, np.ones(1), np.ones(1), link + 1.0)

        writes = (*CHAINED, *loads, "fresh", "index", "link")
        return [
            Run(Block(reached, ("t", "stop", "link", "links"), ("switch",))),
            If("switch", [Run(Block(enter, ("chain", "link"), writes))]),
        ]

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
        z, wrenches, numbers = self._z, self._wrenches, self._numbers

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
            at = own.with_numbers(parts.pop(0)) if numbers else own
            return at.rates(q, y, discrete, now, low, offset, torque, push)

        def at_start(w: Array) -> Array:
            return concatenate([np.zeros(nv), w])

        flags = [f"at {i}" for i in range(width)]
        first = If(flags[0], [Run(Block(at_start, ("w",), ("y",)))])
        return [For(rows, [
            Run(Block(begin, ("t", "low", "high", "length", "fresh", "row"),
                      ("now", "use", *flags))),
            first, *(If(flags[i], [change_of(i)]) for i in range(1, width)),
            If("use", [
                Run(Block(rates, ("q", "y", "now", "low", "offset", "torque", *z, *wrenches,
                                  *numbers), ("k",))),
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
            norms: list[Array] = []
            for row in weights:
                ratio = length * weighted(row, K)[free] / scale
                norms.append(sqrt(vector.dot(ratio, ratio) / size))
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
            # constraints change the state after the last stage, so its rate is not that of the end
            fresh = 0.0 * h + (1.0 if own.constrained else 0.0)
            return q, w, rest_q, rest_w, end, rate, steps + 1.0, index + 1.0, fresh, h, tries

        def record(q: Array, w: Array, end: Array, *rest: Array) -> Array:
            (change, length), K = rest[:2], rest[2:]
            bend = length * K[0] - change
            parts = [change, bend, change - length * K[stages] - bend]
            parts += [length * weighted(row, K) for row in tableau.dense_d]
            return concatenate([end, q, w, *parts])

        own, z, wrenches, numbers = self._own, self._z, self._wrenches, self._numbers

        def record_loads(
            q: Array, w: Array, end: Array, low: Array, high: Array, offset: Array, torque: Array,
            *rest: Array,
        ) -> Array:  # fmt: skip
            parts = list(rest)
            discrete = parts.pop(0) if z else np.zeros(0)
            push = parts.pop(0) if wrenches else np.zeros(0)
            now = smaller(larger(end, low), high)
            at = own.with_numbers(parts.pop(0)) if numbers else own
            loads = at.recorded_loads(q, w, discrete, now, low, offset, torque, push)
            return concatenate([end, q, w, loads])

        if own.dense:
            recorded = Block(record, ("q end", "w end", "end", "change", "length", *self._K),
                             ("records",))  # fmt: skip
        else:
            recorded = Block(
                record_loads,
                (
                    "q end",
                    "w end",
                    "end",
                    "low",
                    "high",
                    "offset",
                    "torque",
                    *z,
                    *wrenches,
                    *numbers,
                ),
                ("records",),
            )
        ends = [f"{name} end" for name in names]
        reads = (*ends, "end", last, "steps", "index", "h", "tries")
        writes = (*names, "t", "rate", "steps", "index", "fresh", "h kept", "tries kept")

        def finish(q: Array, w: Array, rest_q: Array, rest_w: Array, *rest: Array) -> Any:
            at = own.with_numbers(rest[0]) if numbers else own
            return at.finish(q, w, rest_q, rest_w)

        projected = [Run(Block(finish, (*ends, *numbers), ends))] if own.constrained else []
        return [
            *projected,
            Record(recorded, "steps"),
            Run(Block(commit, reads, writes)),
        ]


def _same(x: Array) -> Array:
    return x


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
