"""Evaluation of the components of a system during a run: compiled, or in NumPy.

Where all continuous components can be traced, their functions are kernels, and so are ticks of
sampled components that can be traced. Otherwise (a component calls other libraries, say, or the
robot is too large to be compiled quickly) they are evaluated on floats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.components.actions import Wrench
from remora.components.component import Component
from remora.components.evaluation import Instant
from remora.components.system import ScheduledUpdate, System
from remora.dynamics.kernels.tree_recursions import RECURSIONS, uses_loops
from remora.dynamics.state_layout import layout_of
from remora.errors import RemoraError, SimulationError
from remora.model.robot import Robot
from remora.simulation.inputs.loads import frozen_view
from remora.simulation.phase.latched_numbers import LatchedNumbers
from remora.simulation.systems.component_faults import (
    name_in_memory,
    name_of_largest,
    name_of_nan,
)
from remora.simulation.systems.system_equations import (
    component_loads,
    crossing_values,
    signal_values,
    ticked,
)
from remora.simulation.systems.system_kernels import (
    BoundSystemKernel,
    SystemKernel,
    system_kernel,
)


class ComponentEvaluator:
    """The components of a system as functions of time and state.

    Attributes:
        system: the system.
        compiled: whether its functions are kernels, apart from what Python calls at ticks.
        acts: whether a component acts on the robot.
        pushes: whether a component exerts a wrench.
        shapes: shapes of the arguments q, v, x, z and t.
    """

    def __init__(self, system: System, latched: LatchedNumbers) -> None:
        """Look up what the components do; nothing is compiled yet.

        Args:
            system: the system.
            latched: what kernels are compiled for, and numbers that they take as arguments.
        """
        self.system, robot = system, system.robot
        self._latched, self._open = latched, system.acting_on(latched.robot)
        self.compiled = not (system.called_in_between or _is_large(robot))
        actions = [a for layout in system.layouts.values() for a in layout.actions]
        self.acts = any(type(c).act is not Component.act for c in system.components.values())
        self.pushes = any(isinstance(a, Wrench) for a in actions)
        self.shapes: dict[str, tuple[int, ...]] = {
            "q": (robot.nq,), "v": (robot.nv,), "x": (system.nx,), "z": (system.nz,), "t": ()
        }  # fmt: skip

    def loads(self, t: float, q: Array, v: Array, x: Array, z: Array) -> tuple[Array, Array]:
        """Return generalized forces `(nv,)` and wrenches `(nb, 6)`, zero where there are none."""
        if not self.acts:
            robot = self.system.robot
            return np.zeros(robot.nv), np.zeros((len(robot.bodies), 6))
        return self._evaluated(component_loads, t, q, v, x, z)

    def derivative(self, t: float, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return the rate of x, `(nx,)`, in NumPy."""
        return self._on_floats(lambda now: now.derivative(), t, q, v, x, z)

    def signals(self, t: float, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return all signals and states as one vector, in the order of `System.signals`."""
        if not self.system.signals:
            return np.zeros(0)
        values: Array = self._evaluated(signal_values, t, q, v, x, z)
        if not np.all(np.isfinite(values)):
            self.refuse_nan(t, q, v, x, z)
        return values

    def crossings(self, t: float, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return the event functions, `(ne,)`."""
        values: Array = self._evaluated(crossing_values, t, q, v, x, z)
        if np.any(np.isnan(values)):
            event = self.system.events[int(np.flatnonzero(np.isnan(values))[0])]
            self.refuse_nan(t, q, v, x, z)
            raise SimulationError(
                f"the function of event {event.name!r} of component {event.component!r} is NaN", t
            )
        return values

    def updated(
        self,
        update: ScheduledUpdate,
        t: float,
        q: Array,
        v: Array,
        x: Array,
        z: Array,
        noise: Array,
    ) -> Array:
        """Return z after a scheduled update, `(nz,)`."""
        if update.kind == "release":
            return self._on_floats(lambda now: now.released(update.names), t, q, v, x, z)
        compiled = self.compiled and self.system.called_at_ticks.isdisjoint(update.names)
        if compiled:
            after: Array = self._kernel_of_tick(update.names)(
                q, v, x, z, np.asarray(t, dtype=float), noise
            )
        else:
            after = self._on_floats(lambda now: now.ticked(update.names, noise), t, q, v, x, z)
        if not np.all(np.isfinite(after)):
            if compiled:  # in NumPy a component says why, such as that a matrix is singular
                self._on_floats(lambda now: now.ticked(update.names, noise), t, q, v, x, z)
            self.refuse_nan(t, q, v, x, z)
            raise SimulationError(name_in_memory(self.system, after), t)
        return after

    def reset(
        self, component: str, event: str, t: float, q: Array, v: Array, x: Array, z: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return q, v, x and z after an event of a component, not checked."""
        return self._on_floats(lambda now: now.reset(component, event), t, q, v, x, z)

    def refuse_nan(self, t: float, q: Array, v: Array, x: Array, z: Array) -> None:
        """Raise if a component returns NaN or infinity at a state; the message names it."""
        found = self._on_floats(name_of_nan, t, q, v, x, z)
        if found:
            raise SimulationError(found, t)

    def largest(self, t: float, q: Array, v: Array, x: Array, z: Array) -> str:
        """Return which component exerts the largest force at a state, or an empty string."""
        try:
            return self._on_floats(name_of_largest, t, q, v, x, z)
        except SimulationError as error:  # a component cannot be evaluated there
            return str(error)

    def kernel(
        self, function: Callable[..., Any], shapes: dict[str, tuple[int, ...]], **fixed: Any
    ) -> SystemKernel | BoundSystemKernel:
        """Return a kernel of a function of the system."""
        made = system_kernel(function, self._open, shapes, self._latched.shapes, **fixed)
        return BoundSystemKernel(made, self._latched.values) if self._latched.values else made

    @functools.cached_property
    def y_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments q, y, z, t and tau."""
        robot, system = self.system.robot, self.system
        size = layout_of(robot, system.nx).size
        return {"q": (robot.nq,), "y": (size,), "z": (system.nz,), "t": (), "tau": (robot.nv,)}

    def _evaluated(self, function: Callable[..., Any], t: float, *state: Array) -> Any:
        if self.compiled:
            return self._kernel_of(function)(*state, np.asarray(t, dtype=float))
        return self._on_floats(
            lambda now: function(self.system, now.q, now.v, now.x, now.z, now.t), t, *state
        )

    def _on_floats(self, function: Callable[[Instant], Any], t: float, *state: Array) -> Any:
        now = Instant(self.system, t, *(frozen_view(part) for part in state))
        try:
            with np.errstate(all="ignore"):  # what is not finite is reported with its name
                return function(now)
        except SimulationError:
            raise
        except RemoraError as error:
            raise SimulationError(str(error), t) from error

    @functools.cached_property
    def _kernels(self) -> dict[Any, SystemKernel | BoundSystemKernel]:
        return {}

    def _kernel_of(self, function: Callable[..., Any]) -> SystemKernel | BoundSystemKernel:
        if function not in self._kernels:
            self._kernels[function] = self.kernel(function, self.shapes)
        return self._kernels[function]

    def _kernel_of_tick(self, names: tuple[str, ...]) -> SystemKernel | BoundSystemKernel:
        if names not in self._kernels:
            shapes = {**self.shapes, "noise": (self.system.noise_size,)}
            self._kernels[names] = self.kernel(ticked, shapes, names=names)
        return self._kernels[names]


def _is_large(robot: Robot) -> bool:
    """Return whether forward dynamics of the robot is compiled as tree loops."""
    return uses_loops(robot, RECURSIONS["forward_dynamics"].straight)
