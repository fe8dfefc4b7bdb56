"""Parts of a program that advances a run: rates, recorded loads, bounds, and its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, absolute, concatenate, less, total_and_rest
from remora.algebra.selections import flag, larger
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import trace
from remora.components.actions import Action, Wrench
from remora.components.evaluation import Instant
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.step_projection import step_projection
from remora.dynamics.forces.equations_of_motion import (
    PassiveParameters,
    passive_loads,
    state_derivative_near,
)
from remora.dynamics.kernels.parameters import parameter, with_values
from remora.dynamics.state_layout import WORKS, StateLayout, layout_of
from remora.model.robot import Robot
from remora.model.state import increment
from remora.simulation.integrators.tableaus import Tableau
from remora.simulation.phase.phase_loads import SmoothLoads
from remora.simulation.systems.system_equations import (
    component_loads,
    limited,
    signal_values,
    system_rates,
)

#: Numbers that go in, and those that also come out.
NUMBERS = ("stop", "low", "high", "offset", "rtol", "atol", "max step", "first", "count", "room",
           "links")  # fmt: skip
KEPT = ("t", "h", "refused", "tries", "fresh", "index", "link")
#: Maximum number of following segments in a call, and the numbers that differ between segments.
LINKS, CHAINED = 8, ("stop", "low", "high", "first", "count")
#: Numbers that come out: how many steps were made, whether the next must be made elsewhere, and
#: step size and tries left after the last step that was made.
MADE = ("steps", "trouble", "h kept", "tries kept")


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
        parameters: numbers of the robot that are inputs, see `parameter`.
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
    parameters: tuple[str, ...] = ()

    @property
    def layout(self) -> StateLayout:
        """Layout of y."""
        return layout_of(self.robot, 0 if self.system is None else self.system.nx)

    @property
    def nz(self) -> int:
        """Number of discrete states."""
        return 0 if self.system is None else self.system.nz

    @property
    def constrained(self) -> bool:
        """Whether constraints act."""
        return bool(active_constraints(self.robot))

    @property
    def parameter_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the parameters."""
        return [parameter(self.robot, name)[0].shape for name in self.parameters]

    def with_numbers(self, numbers: Array) -> AdvanceEquations:
        """Return the equations of a robot with these numbers as parameters, `(n,)`."""
        if not self.parameters:
            return self
        values, start = dict[str, Array](), 0
        for name, shape in zip(self.parameters, self.parameter_shapes, strict=True):
            stop = start + int(np.prod(shape, dtype=int))
            values[name], start = numbers[start:stop].reshape(shape), stop
        robot = with_values(self.robot, values)
        system = None if self.system is None else self.system.acting_on(robot)
        return replace(self, robot=robot, system=system, parameters=())

    def finish(
        self, q: Array, w: Array, rest_q: Array, rest_w: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return the end of a step with the constraints satisfied, see `PhaseDynamics.finish`."""
        nv = self.robot.nv
        dq, dv = step_projection(self.robot, q, w[:nv])
        q, rest_q = total_and_rest(q, increment(self.robot, q, dq) + rest_q)
        v, rest_v = total_and_rest(w[:nv], dv + rest_w[:nv])
        return q, concatenate([v, w[nv:]]), rest_q, concatenate([rest_v, rest_w[nv:]])

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
        """Names and shapes of the recorded loads and signals."""
        nv, bodies = self.robot.nv, len(self.robot.bodies)
        shapes: dict[str, tuple[int, ...]] = {"tau": (nv,), "passive": (nv,)}
        actions = list[Action]()
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


def component_graph(own: AdvanceEquations) -> Graph:
    """Return all that components compute in a program as one graph, which identifies them.

    A component of a user may read anything, such as a file. Its graph says what came of it, and
    takes a small part of the time in which the program is made.
    """
    assert own.system is not None
    robot, system = own.robot, own.system
    sizes = {"q": robot.nq, "v": robot.nv, "x": system.nx, "z": system.nz}
    numbers = size_of(dict(zip(own.parameters, own.parameter_shapes, strict=True)))
    inputs = [Signature(name, (size,)) for name, size in sizes.items()]

    def computed(q: Array, v: Array, x: Array, z: Array, t: Array, numbers: Array) -> Any:
        acting = own.with_numbers(numbers).system
        assert acting is not None
        signals = signal_values(acting, q, v, x, z, t) if acting.signals else np.zeros(0)
        rate = Instant(acting, t, q, v, x, z).derivative()
        return (*component_loads(acting, q, v, x, z, t), signals, rate)

    return trace(computed, [*inputs, Signature("t", ()), Signature("numbers", (numbers,))])


def inputs_of(own: AdvanceEquations) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the parts of the vector that goes in.

    `t` and `stop`: present time and end of the segment; `low` and `high`: times between which loads
    are evaluated; `offset`: of their clock. `h`: next step size; `refused`: whether the last try
    was; `tries`: how many are left. `fresh`: whether `rate` is unknown. `first`, `count`, `index`:
    start of the segment, number of fixed steps in it, and number of the next. `room`: maximum
    number of steps. `w` is [v, work, x]. `chain`: the following segments, each with the numbers
    `CHAINED` and its loads; `links`: how many; `link`: how many of them were entered. `numbers`:
    the parameters of the robot.
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
    loads = size_of({name: shapes[name] for name in ("torque", "wrenches")})
    shapes["chain"] = (0,) if own.dense else (LINKS, len(CHAINED) + loads)
    shapes["numbers"] = (sum(int(np.prod(shape, dtype=int)) for shape in own.parameter_shapes),)
    return shapes


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


def _added(a: Array, b: Array | None) -> Array:
    return a if b is None else a + b


def horner(s: Array, coefficients: Array) -> Array:
    """Return Σ cₖ sᵏ of coefficients `(n, ...)` at s `(1,)`."""
    found: Array = coefficients[-1]
    for row in coefficients[-2::-1] if len(coefficients) > 1 else ():
        found = found * s + row
    return found
