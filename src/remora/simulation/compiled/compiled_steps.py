"""Steps of a run in machine code, between two calls of Python: see `advance_program`.

A phase can be compiled if its integrator is an explicit Runge-Kutta method, its loads are numbers,
profiles, pulses, and commands of sampled controllers, its components can be traced, no joint is
held, and no event condition must be called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.components.system import System
from remora.dynamics.kernels.cache_keys import tables_digest, value_key
from remora.identity.digest import code_key
from remora.identity.recent import Recent
from remora.model.robot import Robot
from remora.simulation.compiled.advance_equations import (
    CHAINED,
    KEPT,
    LINKS,
    MADE,
    AdvanceEquations,
    component_graph,
    inputs_of,
    places,
    recorded_by,
    returned_by,
    size_of,
)
from remora.simulation.compiled.advance_program import advance_program
from remora.simulation.compiled.step_block import StepBlock
from remora.simulation.phase.phase_loads import SmoothLoads
from remora.simulation.phase.run_state import RunState

#: A call makes fewer steps if the last one took longer than this, s: Ctrl-C waits for its end.
LONGEST_CALL = 0.03
#: Steps of the first call, and the largest number of bytes of the records of a call.
FIRST_STEPS, MOST_BYTES = 256, 4 * 1024 * 1024
#: Maximum number of kernels that are kept.
MOST_KEPT = 32
_COUNT = len(KEPT) + len(MADE)


class SegmentNumbers(NamedTuple):
    """Inputs of the program that are constant in a segment, in the order of `NUMBERS`.

    Attributes:
        stop: end of the segment, s.
        low: earliest time at which loads are evaluated, s.
        high: latest one, s.
        offset: start of the clock of the loads, s.
        rtol: relative error tolerance.
        atol: absolute error tolerance.
        max_step: s.
        first: start of the segment, s.
        steps: number of fixed steps in it.
    """

    stop: float
    low: float
    high: float
    offset: float
    rtol: float
    atol: float
    max_step: float
    first: float
    steps: float


class NextStep(NamedTuple):
    """State of the step size control between two steps.

    Attributes:
        h: next step size, s.
        refused: whether the last try was rejected.
        tries: number of tries left.
        rate: rate of y, `(ny,)`; None: not known.
        number: number of the next fixed step of the segment.
    """

    h: float
    refused: bool
    tries: int
    rate: Array | None
    number: int = 1


class Advance(NamedTuple):
    """Result of a call.

    Attributes:
        block: the steps that were made; None: none.
        after: the step size control after the last of them.
        next: the step size control now, after tries that were rejected.
        trouble: whether the next step must be made by the run loop.
        link: how many of the following segments were entered.
    """

    block: StepBlock | None
    after: NextStep
    next: NextStep
    trouble: bool
    link: int


class CompiledSteps:
    """The compiled steps of a phase, with and without dense output."""

    def __init__(
        self,
        equations: Callable[[bool], AdvanceEquations],
        robot: Robot,
        system: System | None,
        settings: tuple[Any, ...],
        loads: SmoothLoads,
        place: Callable[[Array, Array], Array],
        numbers: tuple[Array, ...] = (),
    ) -> None:
        """Initialize; nothing is compiled yet.

        Args:
            equations: whether dense output is recorded -> what is compiled.
            robot: the robot.
            system: its components.
            settings: everything else in the equations, to compare.
            loads: the loads of the phase.
            place: (q, u) -> configurations, in batches.
            numbers: of the robot that are inputs, see `AdvanceEquations`.
        """
        self._equations, self._settings = equations, settings
        self._robot, self._system = robot, system
        self._loads, self._place, self._robot_numbers = loads, place, numbers
        self._bound: dict[bool, _BoundKernel] = {}
        self._room = FIRST_STEPS

    @property
    def current(self) -> bool:
        """Whether the numbers that compiled functions capture are still the same."""
        return self._loads.is_current

    def enter(self, segments: Sequence[SegmentNumbers]) -> None:
        """Start a segment.

        Args:
            segments: its constant inputs, and those of the segments that follow it, at most
                `LINKS`; they are entered in the same call if no samples lie within steps.
        """
        self._numbers = segments[0]
        first, *rest = self._loads.enter([(s.low - s.offset, s.high - s.offset) for s in segments])
        self._values = first[0].ravel(), first[1].ravel()
        self._chain = np.zeros((LINKS, len(CHAINED) + sum(x.size for x in first)))
        for row, own, loads in zip(self._chain, segments[1:], rest, strict=False):
            row[: len(CHAINED)] = own.stop, own.low, own.high, own.first, own.steps
            row[len(CHAINED) : len(CHAINED) + loads[0].size] = loads[0].ravel()
            row[len(CHAINED) + loads[0].size :] = loads[1].ravel()
        self._links = len(rest)

    def begin(self, dense: bool) -> None:
        """Begin to compile what `advance` will need; it waits for it.

        Args:
            dense: whether there are samples within steps.
        """
        if dense not in self._bound:
            self._bound[dense] = _BoundKernel(self._kernel(dense))

    def advance(self, state: RunState, step: NextStep, dense: bool) -> Advance:
        """Make steps until the end of the segment, or until the run loop is needed.

        Args:
            state: state of the run; it is advanced.
            step: the step size control.
            dense: whether there are samples within steps.
        """
        self.begin(dense)
        bound = self._bound[dense]
        room = bound.prepare(self._room)
        begun = time.perf_counter()
        more = (*self._values, *(() if dense else (self._chain.ravel(),)), *self._robot_numbers)
        bound.fill(state, step, (*self._numbers, room, 0 if dense else self._links), more)
        bound.run()
        took = time.perf_counter() - begun
        if took > LONGEST_CALL:
            self._room = max(1, self._room // 2)
        done = bound.result(state, step, self._place)
        if done.block is not None and len(done.block.t) > room and took < 0.3 * LONGEST_CALL:
            self._room *= 2
        return done

    def _kernel(self, dense: bool) -> _AdvanceKernel:
        """Return the kernel, from memory if it was compiled before.

        Robots are immutable and compared by identity. Components are compared by value: a global or
        an array that their methods read may have changed since.
        """
        parts = None if self._system is None else self._system.kernel_parts()
        tables, system = tables_digest(), code_key(parts) if parts else ""
        if tables is None or system is None:
            return _AdvanceKernel(self._equations(dense))
        key = (tables, system, dense, self._loads.captured, id(self._robot), *self._settings)
        known = _kept.get(key)
        if known is not None:
            return known[0]
        return _kept.keep(key, (_AdvanceKernel(self._equations(dense)), self._robot))[0]


class _AdvanceKernel:
    """A compiled program, and where its parts are in the vectors."""

    def __init__(self, own: AdvanceEquations) -> None:
        self.inputs, self.returned = places(inputs_of(own)), places(returned_by(own))
        self.recorded, self.shapes = places(recorded_by(own)), recorded_by(own)
        self.ends = [self.returned[n] for n in ("q", "w", "rest q", "rest w", "rate")]
        self.states = self.recorded["w"].stop
        self.more = {n: p for n, p in self.recorded.items() if n not in ("t", "q", "w")}
        self.sizes = size_of(inputs_of(own)), size_of(self.shapes), size_of(returned_by(own))
        self.layout = own.layout
        settings = (own.formulation, own.passive, own.effort, own.stops, own.loads.degree,
                    own.loads.pushes, own.dense, own.bounds, own.parameters)  # fmt: skip
        computed = None if own.system is None else component_graph(own).content()
        key = value_key(
            advance_program, own.robot, computed, settings, vars(own.tableau), own.loads.placed
        )
        self.kernel = ProgramKernel(lambda: advance_program(own), "advance", key=key, lanes=1)


#: Compiled programs by their settings, with the robot whose identity is in the key.
_kept: Recent[tuple[Any, ...], tuple[_AdvanceKernel, Robot]] = Recent(MOST_KEPT)


class _BoundKernel:
    """A kernel with its vectors and its table of records."""

    def __init__(self, kernel: _AdvanceKernel) -> None:
        self._own = kernel
        size, self._width, returned = kernel.sizes
        self._state, self._end = np.zeros(size), np.zeros(returned)
        self._capacity, self._records = 0, np.zeros((0, self._width))
        self._most = max(1, MOST_BYTES // (8 * self._width))

    def prepare(self, room: int) -> int:
        """Make room for the records of a call; return the number of steps that it may make."""
        room = min(room, self._most)
        if room > self._capacity:
            self._capacity, self._records = room, np.empty((room, self._width))
            names = [o.name for o in self._own.kernel.outputs]
            arrays = {"records": self._records, "end": self._end}
            self.run = self._own.kernel.single_run(
                [self._state], [arrays[n] for n in names], self._capacity
            )
        return room

    def fill(
        self,
        state: RunState,
        step: NextStep,
        numbers: tuple[float, ...],
        loads: tuple[Array, ...],
    ) -> None:
        """Write the inputs of a call."""
        rest_q, *rest = state.carried()
        rate = np.zeros(self._own.layout.size) if step.rate is None else step.rate
        scalars = (
            *numbers,
            state.t, step.h, float(step.refused), float(step.tries), float(step.rate is None),
            float(step.number), 0.0,
        )  # fmt: skip
        np.concatenate([
            scalars, state.q, state.v, state.work, state.x, rest_q, *rest, rate, state.z, *loads,
        ], out=self._state)  # fmt: skip
        first = self._own.inputs["w"]
        self._first = state.t, state.q, self._state[first].copy()

    def result(
        self, state: RunState, step: NextStep, place: Callable[[Array, Array], Array]
    ) -> Advance:
        """Advance the state and return the steps."""
        own, end = self._own, self._end
        numbers = end[:_COUNT].tolist()
        t, h, refused, tries, fresh, index, link, steps, trouble, h_kept, tries_kept = numbers
        rate, block, after, count = step.rate, None, step, int(steps)
        if count:
            q, w, rest_q, rest_w, known = (end[place].copy() for place in own.ends)
            rate = None if fresh > 0.5 else known  # unknown at the start of a segment
            block = self._block(count, place)
            state.moved(t, q, w, rest_q, rest_w)
            after = NextStep(h_kept, False, int(tries_kept), rate, int(index))
        now = NextStep(h, refused > 0.5, int(tries), rate, int(index))
        return Advance(block, after, now, trouble > 0.5, int(link))

    def _block(self, count: int, place: Callable[[Array, Array], Array]) -> StepBlock:
        own, (t, q, w), records = self._own, self._first, self._records[:count]
        rows = np.empty((count + 1, own.states))
        rows[0, 0], rows[0, own.recorded["q"]], rows[0, own.recorded["w"]] = t, q, w
        rows[1:] = records[:, : own.states]
        more = {n: records[:, p].reshape(-1, *own.shapes[n]) for n, p in own.more.items()}
        dense = more.pop("dense", None)
        return StepBlock(
            rows[:, 0], rows[:, own.recorded["q"]], rows[:, own.recorded["w"]], dense, more,
            own.layout, place,
        )  # fmt: skip
