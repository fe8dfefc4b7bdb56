"""The loads of a phase that users give as numbers, functions, profiles and controllers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from remora.algebra.array_ops import Array, concatenate
from remora.errors import RemoraError, SimulationError
from remora.model.robot import Robot
from remora.simulation.inputs.loads import HeldValue, frozen_view
from remora.simulation.inputs.phases import Phase
from remora.simulation.inputs.pure_functions import CapturedNumbers
from remora.simulation.inputs.robot_loads import load_of
from remora.simulation.inputs.segment_loads import SegmentLoad

#: Discontinuous loads are evaluated this many units in the last place of the time before or after
#: the jump; times closer than half of that are considered equal.
MARGIN = 16.0


class PhaseLoads:
    """Drive forces and external wrenches of a phase, and their clock.

    Attributes:
        breaks: times at which a load is not smooth, on the clock of the phase, s.
        controllers: sampled controllers.
        sees_state: whether a load depends on q or v other than through a controller.
        pushes: whether there are external wrenches.
        offset: time of the run at which the clock of the phase is zero, s.
    """

    def __init__(self, robot: Robot, phase: Phase, start: float) -> None:
        """Convert the loads of a phase that begins at `start`, s."""
        self.offset = start if phase.own_clock else 0.0
        self._duration, self._end = phase.duration, start + phase.duration
        self._torque = load_of(robot, "torque", phase.torque)
        self._base = load_of(robot, "base_wrench", phase.base_wrench)
        self._wrenches = load_of(robot, "wrenches", phase.wrenches)
        loads = self._loads = (self._torque, self._base, self._wrenches)
        self.pushes = phase.base_wrench is not None or phase.wrenches is not None
        self.breaks = [t for load in loads for t in load.breaks]
        self.controllers: list[HeldValue] = [c for load in loads for c in load.controllers]
        self.sees_state = any(load.function for load in loads)
        self._low, self._high, self._entered = -np.inf, np.inf, True
        self._ends = -np.inf, np.inf  # of the segment

    def __call__(self, t: float, q: Array, v: Array) -> tuple[Array, Array | None]:
        """Return drive forces `(nv,)`, and external wrenches `(nb, 6)` if there are any."""
        seen = self.clock(t)
        if self.sees_state:
            q, v = frozen_view(q), frozen_view(v)
        return self.torque(seen, q, v), self.wrenches(seen, q, v) if self.pushes else None

    def torque(self, seen: float, q: Array, v: Array) -> Array:
        """Return drive forces `(nv,)` at a time of the clock, s."""
        try:
            if not self._entered:
                self._enter_loads()
            return self._torque(seen, q, v)
        except RemoraError as error:
            raise SimulationError(str(error), self._time(seen)) from error

    def wrenches(self, seen: float, q: Array, v: Array) -> Array:
        """Return external wrenches `(nb, 6)` at a time of the clock, s."""
        try:
            if not self._entered:
                self._enter_loads()
            found = self._wrenches(seen, q, v).copy()
            found[0] += self._base(seen, q, v)
        except RemoraError as error:
            raise SimulationError(str(error), self._time(seen)) from error
        return found

    def _time(self, seen: float) -> float:
        """Return the time of the run at a time of the clock, s; at the ends, that of the ends."""
        t = seen + self.offset
        return self._ends[0] if t <= self._low else self._ends[1] if t >= self._high else t

    def controllers_of(self, what: str) -> list[HeldValue]:
        """Return the sampled controllers of one of the loads, see `robot_loads`."""
        return [c for load in self._loads if load.what == what for c in load.controllers]

    @property
    def called(self) -> dict[str, Callable[[Array, Array, Array], Array]]:
        """The loads as functions that a program calls, by what they return, see `Forces`."""

        def torque(clock: Array, q: Array, v: Array) -> Array:
            q.flags.writeable = v.flags.writeable = False
            return self.torque(clock.item(), q, v)

        def wrenches(clock: Array, q: Array, v: Array) -> Array:
            q.flags.writeable = v.flags.writeable = False
            return self.wrenches(clock.item(), q, v)

        found = {} if self._torque.given is None else {"torque": torque}
        return found | ({"wrenches": wrenches} if self.pushes else {})

    @functools.cached_property
    def smooth(self) -> SmoothLoads | None:
        """The loads as polynomials and traced functions of time; None where they are not."""
        loads = [SegmentLoad(load) for load in self._loads]
        if not all(load.smooth for load in loads):
            return None
        return SmoothLoads(*loads, pushes=self.pushes)

    @property
    def bounds(self) -> tuple[float, float]:
        """Times between which loads are evaluated, see `enter`, s."""
        return self._low, self._high

    @property
    def clocks(self) -> tuple[float, float]:
        """The same times on the clock of the loads, s."""
        return self._low - self.offset, self._high - self.offset

    def enter(self, start: float, stop: float) -> None:
        """Restrict evaluation times to the inside of a smooth segment.

        At its ends, discontinuous loads take their values just inside.
        """
        self._low, self._high = self.inner(start, stop)
        self._ends = start, stop
        self._entered = False  # the loads are prepared on first use

    def inner(self, start: float, stop: float) -> tuple[float, float]:
        """Return the first and the last time at which loads of a segment are evaluated, s."""
        margin = max(self.margin(start), self.margin(stop))
        middle = 0.5 * (start + stop)
        return min(start + margin, middle), max(stop - margin, middle)

    def _enter_loads(self) -> None:
        for load in self._loads:
            load.enter(*self.clocks)
        self._entered = True

    def margin(self, t: float) -> float:
        """Return how far from a jump at t discontinuous functions are evaluated, s."""
        return MARGIN * math.ulp(max(abs(t), abs(self.offset)))

    def inside(self, t: float) -> float:
        """Return a time of the run, moved inside the smooth segment."""
        return float(min(max(t, self._low), self._high))

    def clock(self, t: float) -> float:
        """Return the time passed to functions and profiles."""
        return self.inside(t) - self.offset

    def time_of_phase(self, t: float) -> float:
        """Return the time passed to the phase's event conditions; at its end, its duration."""
        return self._duration if self.offset and t == self._end else t - self.offset

    def sample(self, controller: HeldValue, t: float, q: Array, v: Array) -> None:
        """Sample a controller (zero-order hold)."""
        controller.sample(t - self.offset, q, v)


class SmoothLoads:
    """The loads of a phase between two of their breaks.

    Attributes:
        pushes: whether there are external wrenches.
        degree: largest degree of the polynomials.
        placed: what is traced: the load, the places in its value, and the pulse.
        captured: numbers that traced functions captured from outside.
    """

    def __init__(
        self, torque: SegmentLoad, base: SegmentLoad, wrenches: SegmentLoad, pushes: bool
    ) -> None:
        """Store the loads."""
        self._torque, self._base, self._wrenches, self.pushes = torque, base, wrenches, pushes
        self.degree = max(load.degree for load in (torque, base, wrenches))
        loads = {"torque": torque, "base": base, "wrenches": wrenches}
        self.placed = tuple((name, *own) for name, load in loads.items() for own in load.placed)
        self._captured = [CapturedNumbers(pulse.value) for _, _, pulse in self.placed]
        self.captured = tuple(numbers() for numbers in self._captured)
        self._acting: list[int] = []  # pulses that act in these segments

    @property
    def is_current(self) -> bool:
        """Whether the numbers that traced functions capture are as they were when traced."""
        return all(self._captured[k]() == self.captured[k] for k in self._acting)

    @property
    def torque_shape(self) -> tuple[int, ...]:
        """Shape of the drive forces."""
        return self._torque.shape

    @property
    def wrench_shape(self) -> tuple[int, ...]:
        """Shape of the wrenches."""
        return self._wrenches.shape

    def enter(self, spans: Sequence[tuple[float, float]]) -> list[tuple[Array, Array]]:
        """Return the polynomials in several segments, see `coefficients`.

        Args:
            spans: start and end of each segment on the clock of the loads, s.
        """
        self._acting = [
            k for k, (_, _, pulse) in enumerate(self.placed)
            if any(pulse.constant(*span) is None for span in spans)
        ]  # fmt: skip
        return [self.coefficients(*span) for span in spans]

    def coefficients(self, low: float, high: float) -> tuple[Array, Array]:
        """Return the polynomials in t - low of drive forces and wrenches.

        Args:
            low: start of the segment, on the clock of the loads, s.
            high: its end, s.

        Returns:
            `(degree + 1, nv)`, and `(degree + 1, nb, 6)`; without wrenches the second is empty.
        """
        torque = self._torque.coefficients(low, high, self.degree)
        if not self.pushes:
            return torque, np.zeros(0)
        wrenches = self._wrenches.coefficients(low, high, self.degree)
        wrenches[:, 0] += self._base.coefficients(low, high, self.degree)
        return torque, wrenches

    def torque(self, t: Array) -> Array | None:
        """Return the traced drive forces at a symbolic time `()`, `(nv,)`, or None."""
        return self._torque.function(t)

    def wrenches(self, t: Array) -> Array | None:
        """Return the traced wrenches at a symbolic time `()`, `(nb, 6)`, or None."""
        own, base = self._wrenches.function(t), self._base.function(t)
        if base is None:
            return own
        placed = concatenate([base[None], np.zeros((self._wrenches.shape[0] - 1, 6))], trailing=2)
        return placed if own is None else own + placed
