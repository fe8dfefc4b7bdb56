"""Equations of motion of a robot with its loads: the right-hand side for the integrators.

The state of a step is y = [u, v, work, x] about the configuration at its start, see `step_result`;
x are the continuous states of components.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.kernel import Kernel
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.forces.equations_of_motion import (
    PassiveParameters,
    actuation,
    passive_loads,
    state_derivative,
    state_derivative_near,
)
from remora.dynamics.formulations import forward_dynamics, hybrid_dynamics
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.kernels.tree_recursions import RECURSIONS, uses_loops
from remora.dynamics.state_layout import layout_of
from remora.model.robot import Robot
from remora.model.state import increment, integrate, log_rate
from remora.simulation.engine.stiffness import Stiffest, stiffest
from remora.simulation.inputs.loads import HeldValue
from remora.simulation.inputs.phases import Phase
from remora.simulation.integrators.variational_step import LoopEquations, loop_equations
from remora.simulation.phase.held_motions import HeldMotions
from remora.simulation.phase.latched_numbers import LatchedNumbers
from remora.simulation.phase.phase_loads import PhaseLoads
from remora.simulation.phase.rates_jacobian import assembled, finite_differences, losses_near
from remora.simulation.phase.stop_contacts import StopContacts
from remora.simulation.program.run_equations import LargeDynamics, with_motion
from remora.simulation.systems.component_evaluation import ComponentEvaluator
from remora.simulation.systems.system_equations import component_response, system_rates
from remora.simulation.systems.system_kernels import BoundSystemKernel, SystemKernel


class RunSettings(NamedTuple):
    """Constant settings of a run.

    Attributes:
        robot: the robot.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        saturate: whether drives are limited to the joints' effort limits.
        momentum: [linear, angular] that determines the base velocity; None: it is a state.
        system: the robot with its components; None: it has none.
        latched: numbers that kernels take as arguments; None: constraints have their own.
    """

    robot: Robot
    formulation: str
    passive: PassiveParameters
    saturate: bool
    momentum: tuple[float, ...] | None = None
    system: System | None = None
    latched: LatchedNumbers | None = None


class EvaluatedLoads(NamedTuple):
    """Loads at an instant.

    Attributes:
        tau: generalized forces of the drives, `(nv,)`.
        passive: generalized forces of damping, friction, springs and stops, `(nv,)`.
        wrenches: external, `(nb, 6)`, or None.
    """

    tau: Array
    passive: Array
    wrenches: Array | None


class PhaseDynamics:
    """The rates of y in one phase of a run.

    Attributes:
        robot: the robot.
        q: configuration at the start of the step, `(nq,)`: the centre of the chart.
        rest: compensation term of q (Kahan summation), `(nq,)`.
        z: discrete states of the components, `(nz,)`.
        held: names of the joints that are prescribed or locked.
        motions: motions of these joints.
        stops: the stops, and which of them are touched.
        given: loads of the phase.
        breaks: times at which the loads or motions are not smooth, s.
        controllers: sampled controllers.
        components: the components of the system; None: there are none.
        latched: what kernels are compiled for, and numbers that they take as arguments.
        model: constant settings of the run.
        effort: limits of the drives, `(nv,)`; None: no limits.
        large: whether forward dynamics is a kernel of its own, with loops over the bodies.
    """

    def __init__(self, model: RunSettings, phase: Phase, start: float, q: Array) -> None:
        """Initialize and compile.

        Args:
            model: constant settings of the run.
            phase: loads and held joints.
            start: start time of the phase, s.
            q: initial configuration of the phase, `(nq,)`.
        """
        robot = model.robot
        self.robot, self.q, self.model = robot, q, model
        self.rest = np.zeros(robot.nq)
        system = model.system
        self.latched = model.latched or LatchedNumbers(robot)
        self.components = None if system is None else ComponentEvaluator(system, self.latched)
        self.z = np.zeros(0) if system is None else system.initial_z
        self._layout = layout_of(robot, 0 if system is None else system.nx)
        self.given = PhaseLoads(robot, phase, start)
        self._sees_state = self.given.sees_state
        pushing = self.components is not None and self.components.pushes
        self._pushed = self.given.pushes or pushing
        self.motions = HeldMotions(robot, phase, q, self.given.clock)
        self.held = self.motions.names
        parts = (self.given.breaks, self.motions.breaks)
        self.breaks = sorted({self.given.offset + t for part in parts for t in part})
        self.controllers: list[HeldValue] = self.given.controllers
        self.effort = effort_limits(robot) if model.saturate else None
        self.stops = StopContacts(self.latched.robot, model.passive.stiffness, q)
        self._frozen = {"contact": (self.stops.count,)} if self.stops.count else {}
        self._fast = CompiledRobot(self.latched.robot)
        # large robots: only functions with tree loops compile quickly
        self.large = not self.held and _is_large(model)
        # components that are part of the compiled rates
        self._traced = (
            self.components if self.components and self.components.compiled and not self.large
            else None
        )  # fmt: skip
        # if no load depends on the state, the configuration need not leave the machine code
        self._blind = self.traceable and not self.held
        self._watch_for_nan = False

    @property
    def nx(self) -> int:
        """Number of continuous states of the components."""
        return self._layout.extra_size

    @property
    def traceable(self) -> bool:
        """Whether the rates are one function without tree loops and calls of Python."""
        return self.programmable and not self._sees_state

    @property
    def programmable(self) -> bool:
        """Whether Python computes loads at most, and the rates have no tree loops."""
        beside = self.components is not None and self._traced is None
        return not (_is_large(self.model) or beside)

    def _compiled(
        self,
        function: Any,
        arguments: tuple[str, ...],
        shapes: dict[str, tuple[int, ...]] | None = None,
    ) -> Callable[..., Any]:
        more = (
            *(["wrenches"] if self._pushed else []),
            *(["vdot"] if self.held else []),
            *self._frozen,
        )
        names = (*arguments, *more)
        sizes = {**(shapes or {}), **self._frozen}
        return self.latched.kernel(function, names, sizes, **self._equations)

    @property
    def _equations(self) -> Mapping[str, Any]:
        """Values that are compiled into the rates."""
        model = self.model
        return {"held": self.held, "formulation": model.formulation, "passive": model.passive}

    def stiffest(self) -> Stiffest | None:
        """Return the joint whose damping or friction makes the equations stiffest at q."""
        return stiffest(self.robot, self.q, self.model.passive.slip_speed, self.held)

    def set_held(self, t: float, q: Array, v: Array) -> None:
        """Set the speeds and coordinates that are not free to their values at t, in place."""
        self.motions.set(t, q, v)

    def look_ahead(self, start: float, stop: float) -> None:
        """Raise if a prescribed motion is obviously wrong, see `HeldMotions.look_ahead`."""
        self.motions.look_ahead(start, stop, self.breaks, self.given.margin)

    # Stops --------------------------------------------------------------------------------------

    @property
    def _touched(self) -> tuple[Array, ...]:
        """Contact flags, if there are stops: the last argument of kernels."""
        return (self.stops.contact,) if self.stops.count else ()

    # Constraints --------------------------------------------------------------------------------

    @functools.cached_property
    def constrained(self) -> bool:
        """Whether constraints act."""
        return bool(active_constraints(self.robot))

    @property
    def loops(self) -> LoopEquations | None:
        """The equations of active constraints for the variational integrator; None: none act."""
        return self._loops

    @functools.cached_property
    def _loops(self) -> LoopEquations | None:
        return loop_equations(self.robot, self.latched.kernel) if self.constrained else None

    def refuse_contradiction(self, t: float, y: Array) -> None:
        """Raise if the constraints contradict each other at y, the state at the start of a step."""
        layout = self._layout
        v, x = y[layout.v], y[layout.extra]
        if not (self.constrained and np.all(np.isfinite(y))):
            return
        tau, wrenches = self._given(t, self.q, v, x)
        vdot = self.motions.accelerations(t) if self.held else None
        contact = self.stops.contact if self.stops.count else None
        with np.errstate(all="ignore"):
            actuation(
                self.robot, self.q, v, tau, wrenches, vdot=vdot, contact=contact, **self._equations
            )

    # Rates --------------------------------------------------------------------------------------

    def center_chart(self, q: Array, rest: Array | None = None) -> None:
        """Set the centre of the chart to q, with the compensation term of its Kahan sum."""
        self.q = q
        if rest is not None:
            self.rest = rest

    def place(self, u: Array) -> Array:
        """Return the configuration at the tangent vector u from the centre of the chart."""
        return self._move(self.q, u)

    @functools.cached_property
    def _move(self) -> Kernel:
        return kernel(integrate, self.latched.robot, ("q", "dq"))

    def arrival(self, u: Array) -> Array:
        """Return the configuration at the start of the next step, exact to the last bit."""
        return self.q + (self._increment(self.q, u) + self.rest)

    def rates(self, t: float, y: Array) -> Array:
        """Return the rate of y, `(2 nv + 3 + nx,)`."""
        found = self._rates_at(t, y)
        if self._watch_for_nan and not np.all(np.isfinite(found)):
            self._refuse_nan(t, y)
        return found

    def _rates_at(self, t: float, y: Array) -> Array:
        if self._blind:
            tau, wrenches = self._phase_loads(t, self.q, y)
            pushed = () if wrenches is None else (wrenches,)
            if self._traced is not None:
                now = np.asarray(self.given.inside(t))
                return self._system_rates(self.q, y, self.z, now, tau, *pushed, *self._touched)
            return self._rates_near(self.q, y, tau, *pushed, *self._touched)
        layout = self._layout
        u, v, x = y[layout.u], y[layout.v], y[layout.extra]
        more: list[Array] = []
        if self.held:
            u, v, vdot = self.motions.inserted(t, self.q, u, v)
            more = [vdot]
        q = self._move(self.q, u)
        if self._traced is not None:
            tau, wrenches = self._phase_loads(t, q, v)
            more = more if wrenches is None else [wrenches, *more]
            now, y = np.asarray(self.given.inside(t)), layout.join(u, v, y[layout.work], x)
            return self._system_rates(self.q, y, self.z, now, tau, *more, *self._touched)
        tau, wrenches = self._given(t, q, v, x)
        if self.large:
            found = self._by_parts(q, u, v, tau, wrenches)
        else:
            more = more if wrenches is None else [wrenches, *more]
            found = self._rates(q, u, v, tau, *more, *self._touched)
        if not layout.extra_size:
            return found
        assert self.components is not None
        rate = self.components.derivative(self.given.inside(t), q, v, x, self.z)
        return np.concatenate([found, rate])

    def watch_for_nan(self, on: bool) -> None:
        """Raise in `rates` if a component returns NaN; the message names it."""
        self._watch_for_nan = on and self.components is not None

    def largest_action(self, t: float, q: Array, v: Array, x: Array) -> str:
        """Return which component exerts the largest force at a state, or an empty string."""
        if self.components is None:
            return ""
        return self.components.largest(self.given.inside(t), q, v, x, self.z)

    def _refuse_nan(self, t: float, y: Array) -> None:
        layout = self._layout
        u, v, x = y[layout.u], y[layout.v], y[layout.extra]
        if self.held:
            u, v, _ = self.motions.inserted(t, self.q, u, v)
        q = self._move(self.q, u)
        if self.components is not None and np.all(np.isfinite(np.concatenate([q, v, x]))):
            self.components.refuse_nan(t, q, v, x, self.z)

    def _by_parts(self, q: Array, u: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
        """Return the result of `state_derivative`, computed from kernels of its parts."""
        pushed = () if wrenches is None else (wrenches,)
        vdot, works = self.large_dynamics(q, v, tau, *pushed, *self._touched)
        return np.concatenate([self._log_rate(u, v), vdot, works])

    @functools.cached_property
    def large_dynamics(self) -> LargeDynamics:
        """The forward dynamics of a large robot, with the rates of works."""
        return LargeDynamics(self._driven, self._losses, self._pushed, self._fast.twists)

    def _phase_loads(self, t: float, q: Array, v: Array) -> tuple[Array, Array | None]:
        """Return the loads of the phase; drive forces are limited if there are no others."""
        tau, wrenches = self.given(t, q, v)
        if self.effort is not None and self.components is None:
            tau = np.clip(tau, -self.effort, self.effort)
        return tau, wrenches

    def _given(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, Array | None]:
        """Return all drive forces of joints that are not held, and the external wrenches."""
        tau, wrenches = self._phase_loads(t, q, v)
        if self.components is None:
            return tau, wrenches
        force, push = self.components.loads(self.given.inside(t), q, v, x, self.z)
        tau = tau + force
        if self.effort is not None:
            tau = np.clip(tau, -self.effort, self.effort)
        if self.components.pushes:
            wrenches = push if wrenches is None else wrenches + push
        return tau, wrenches

    def loads_and_rates(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, ...]:
        """Return drive forces, external wrenches if there can be any, and the rates of x."""
        tau, wrenches = self._given(t, q, v, x)
        rate = np.zeros(0)
        if self._layout.extra_size:
            assert self.components is not None
            rate = self.components.derivative(self.given.inside(t), q, v, x, self.z)
        if not self._pushed:
            return tau, rate
        return tau, np.zeros((len(self.robot.bodies), 6)) if wrenches is None else wrenches, rate

    def loads(self, t: float, q: Array, v: Array, x: Array | None = None) -> EvaluatedLoads:
        """Return all loads, including the drive forces of held joints."""
        tau, wrenches = self._given(t, q, v, np.zeros(0) if x is None else x)
        lost = self._losses(q, v, *self._touched)
        if self.held:
            pushed = [] if wrenches is None else [wrenches]
            vdot = self.motions.accelerations(t)
            tau = self._actuation(q, v, tau, *pushed, vdot, *self._touched)[1]
        return EvaluatedLoads(tau, lost, wrenches)

    def loads_seen(self, t: float, q: Array, v: Array, x: Array) -> EvaluatedLoads:
        """Return all loads at a state, with contact determined from that state alone."""
        stops, during = self.stops, self.stops.contact
        if stops.count:
            stops.contact = (stops.overlaps(q) > 0.0).astype(float)
        try:
            return self.loads(t, q, v, x)
        finally:
            stops.contact = during

    def with_motion(self, t: float, q: Array, v: Array, x: Array, z: Array) -> Array:
        """Return z `(nz,)` with the true motion at a state, see `RunEquations.with_motion`."""
        assert self.components is not None
        tau, lost, wrenches = self.loads_seen(t, q, v, x)
        model, given = self.model, {}
        if self.held:
            vdot = self.motions.accelerations(t)
            given = {name: vdot[self.robot.joints[name].v] for name in self.held}
        pushed = () if wrenches is None else (wrenches,)
        if self.large:
            rate = self._driven(q, v, tau + lost, *pushed)
        else:
            rate, _ = hybrid_dynamics(
                self.robot, q, v, tau + lost, given, wrenches, model.formulation
            )
        place = self.components.system.motion_place
        return with_motion(place, self.robot, z, rate, q, v, tau, wrenches, model.passive)

    def signals(self, t: float, q: Array, v: Array, x: Array) -> Array:
        """Return all signals and states of the components as one vector."""
        if self.components is None:
            return np.zeros(0)
        return self.components.signals(self.given.inside(t), q, v, x, self.z)

    @functools.cached_property
    def _system_rates(self) -> SystemKernel | BoundSystemKernel:
        assert self._traced is not None
        shapes = {**self._traced.y_shapes}
        if self.given.pushes:
            shapes["wrenches"] = (len(self.robot.bodies), 6)
        if self.held:
            shapes["vdot"] = (self.robot.nv,)
        effort = None if self.effort is None else tuple(self.effort.tolist())
        fixed = {**self._equations, "effort": effort}
        return self._traced.kernel(system_rates, {**shapes, **self._frozen}, **fixed)

    @functools.cached_property
    def _rates_near(self) -> Callable[..., Any]:
        size = {"y": (self._layout.size,)}
        return self._compiled(state_derivative_near, ("q", "y", "tau"), size)

    @functools.cached_property
    def _rates(self) -> Callable[..., Any]:
        return self._compiled(state_derivative, ("q", "dq", "v", "tau"))

    @functools.cached_property
    def _driven(self) -> Callable[..., Any]:
        if not self.latched.values:
            return self._fast.forward_dynamics
        pushed = ("wrenches",) if self._pushed else ()
        return self.latched.kernel(forward_dynamics, ("q", "v", "tau", *pushed))

    @functools.cached_property
    def _log_rate(self) -> Kernel:
        return kernel(log_rate, self.latched.robot, ("dq", "v"))

    @functools.cached_property
    def _increment(self) -> Kernel:
        return kernel(increment, self.latched.robot, ("q", "dq"))

    @functools.cached_property
    def _actuation(self) -> Callable[..., Any]:
        return self._compiled(actuation, ("q", "v", "tau"))

    def losses(self, q: Array, v: Array, contact: Array) -> Array:
        """Return the passive forces `(..., nv)` with these stops in contact, in batches too."""
        return self._losses(q, v, *([contact] if self.stops.count else []))

    @functools.cached_property
    def _losses(self) -> Kernel:
        names = ("q", "v", *self._frozen)
        robot, passive = self.latched.robot, self.model.passive
        return kernel(passive_loads, robot, names, self._frozen, passive=passive)

    # The Jacobian, for implicit methods ---------------------------------------------------------

    def jacobian(self, t: float, y: Array) -> Array:
        """Return the derivatives of the rates with respect to y at u = 0, `(n, n)`."""
        if self.constrained:
            return finite_differences(functools.partial(self.rates, t), y, self._layout)
        nv, layout = self.robot.nv, self._layout
        q, v, x = self.q, y[layout.v], y[layout.extra]
        tau, lost, wrenches = self.loads(t, q, v, x)
        pushed = [] if wrenches is None else [wrenches]
        derivatives = self._fast.forward_dynamics_derivatives(q, v, tau + lost, *pushed)
        slope = np.zeros((nv + layout.extra_size, layout.size))
        by_u, by_v = self._loss_slopes
        still = np.zeros(nv)
        slope[:nv, layout.u] = by_u(q, still, v, *self._touched)
        slope[:nv, layout.v] = by_v(q, still, v, *self._touched)
        if self._traced is not None and not self._sees_state:
            given, _ = self._phase_loads(t, q, v)
            now = np.asarray(self.given.inside(t))
            slope += self._response.slope(self.q, y, self.z, now, given)
        elif self._sees_state or self.components is not None:
            respond = functools.partial(self._responds, t)
            slope += finite_differences(respond, y, layout)
        places = [i for name in self.held for i in range(nv)[self.robot.joints[name].v]]
        return assembled(self.robot, layout, v, derivatives, slope, places)

    def _responds(self, t: float, y: Array) -> Array:
        """Return the forces that depend on the state, and the rate of x, `(nv + nx,)`."""
        layout = self._layout
        v, x = y[layout.v], y[layout.extra]
        q, rest = self.place(np.ascontiguousarray(y[layout.u])), np.zeros(self.robot.nv)
        total, wrenches = self._given(t, q, v, x)
        if wrenches is not None:  # those of this state, at the centre of the chart
            needed = self._fast.inverse_dynamics
            without: Array = needed(self.q, rest, rest)
            total = total + without - needed(self.q, rest, rest, wrenches)
        if not layout.extra_size:
            return total
        assert self.components is not None
        rate = self.components.derivative(self.given.inside(t), q, v, x, self.z)
        return np.concatenate([total, rate])

    @functools.cached_property
    def _response(self) -> SystemKernel | BoundSystemKernel:
        assert self._traced is not None
        effort = None if self.effort is None else tuple(self.effort.tolist())
        return self._traced.kernel(component_response, self._traced.y_shapes, effort=effort)

    @functools.cached_property
    def _loss_slopes(self) -> tuple[Kernel, Kernel]:
        names, passive = ("q", "dq", "v", *self._frozen), self.model.passive
        near = kernel(losses_near, self.latched.robot, names, self._frozen, passive=passive)
        return near.jacobian("dq"), near.jacobian("v")


def _is_large(model: RunSettings) -> bool:
    """Return whether forward dynamics of the robot is compiled as tree loops."""
    usual = model.formulation == "articulated"
    return usual and uses_loops(model.robot, RECURSIONS["forward_dynamics"].straight)


def effort_limits(robot: Robot) -> Array:
    """Return the limits of the drives' forces, `(nv,)`; infinite where there are none."""
    limits = np.full(robot.nv, np.inf)
    for joint in robot.joints:
        if joint.mimic is None:
            limits[joint.v] = joint.limits.effort
    return limits
