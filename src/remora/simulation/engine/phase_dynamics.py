"""Equations of motion of a robot with its loads: the right-hand side for the integrators.

The state of a step is y = [u, v, work] about the configuration at its start, see `step_result`.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array
from remora.codegen.kernel import Kernel
from remora.dynamics.forces.equations_of_motion import (
    PassiveParameters,
    actuation,
    passive_loads,
    state_derivative,
    state_derivative_near,
)
from remora.dynamics.forces.stops import stop_overlaps, stop_rates
from remora.dynamics.formulations import mass_matrix
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.dynamics.kernels.tree_recursions import RECURSIONS, uses_loops
from remora.dynamics.state_layout import layout_of
from remora.errors import RemoraError, SimulationError
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import increment, integrate, log_rate
from remora.simulation.engine.prescribed_motion_check import check_joined, check_step
from remora.simulation.engine.stiffness import Stiffest, stiffest
from remora.simulation.inputs.held_joints import HeldJoint
from remora.simulation.inputs.loads import HeldValue, Load, frozen_view
from remora.simulation.inputs.phases import Phase, held_joints
from remora.simulation.robot_kernels import kernel

#: Discontinuous loads are evaluated this many units in the last place of the time before or after
#: the jump; times closer than half of that are considered equal.
MARGIN = 16.0
#: A joint is at a stop if it moves there within this many units in the last place of the time.
AT_STOP = 16.0


class RunSettings(NamedTuple):
    """Constant settings of a run.

    Attributes:
        robot: the robot.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        saturate: whether drives are limited to the joints' effort limits.
        momentum: [linear, angular] that determines the base velocity; None: it is a state.
    """

    robot: Robot
    formulation: str
    passive: PassiveParameters
    saturate: bool
    momentum: tuple[float, ...] | None = None


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
        held: names of the joints that are prescribed or locked.
        breaks: times at which the loads or motions are not smooth, s.
        controllers: sampled controllers.
        stops: number of stops.
        contact: 1 for each stop that is touched during a step, 0 otherwise, `(stops,)`.
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
        self.robot, self.q, self._model = robot, q, model
        self.rest = np.zeros(robot.nq)
        self._layout = layout_of(robot)
        self._offset = start if phase.own_clock else 0.0
        self._duration, self._end = phase.duration, start + phase.duration
        self._torque = Load("torque", phase.torque, (robot.nv,), functools.partial(_joint, robot))
        self._base = Load("base_wrench", phase.base_wrench, (6,), None)
        self._wrenches = Load(
            "wrenches", phase.wrenches, (len(robot.bodies), 6), functools.partial(_body, robot)
        )
        self._pushed = phase.base_wrench is not None or phase.wrenches is not None
        self._held = {
            name: HeldJoint(robot.joints[name], kind(robot.joints[name]), motion)
            for name, motion in held_joints(robot, phase, q).items()
        }
        self.held = tuple(self._held)
        self._prescribed = tuple(phase.prescribed)
        loads = self._loads = (self._torque, self._base, self._wrenches)
        parts = [
            *(load.breaks for load in loads),
            *(own.motion.breaks for own in self._held.values()),
        ]
        self.breaks = sorted({self._offset + t for part in parts for t in part})
        self.controllers: list[HeldValue] = [c for load in loads for c in load.controllers]
        self._sees_state = any(load.function for load in loads)
        self._low, self._high = -np.inf, np.inf
        self._effort = _effort_limits(robot) if model.saturate else None
        self.stops = stop_overlaps(robot, q).size if model.passive.stiffness > 0.0 else 0
        self.contact = np.zeros(self.stops)
        self._frozen = {"contact": (self.stops,)} if self.stops else {}
        self._fast = CompiledRobot(robot)
        # large robots: only functions with tree loops compile quickly
        self._large = not self.held and _is_large(model)
        # if no load depends on the state, the configuration need not leave the machine code
        self._blind = not (self.held or self._large or self._sees_state)

    def _compiled(
        self,
        function: Any,
        arguments: tuple[str, ...],
        shapes: dict[str, tuple[int, ...]] | None = None,
    ) -> Kernel:
        model = self._model
        more = (
            *(["wrenches"] if self._pushed else []),
            *(["vdot"] if self.held else []),
            *self._frozen,
        )
        fixed = {
            "held": self.held, "formulation": model.formulation, "passive": model.passive
        }  # fmt: skip
        names = (*arguments, *more)
        return kernel(function, model.robot, names, {**(shapes or {}), **self._frozen}, **fixed)

    def stiffest(self) -> Stiffest | None:
        """Return the joint whose damping or friction makes the equations stiffest at q."""
        return stiffest(self.robot, self.q, self._model.passive.slip_speed, self.held)

    # Time ---------------------------------------------------------------------------------------

    def enter(self, start: float, stop: float) -> None:
        """Restrict evaluation times to the inside of a smooth segment.

        At its ends, discontinuous loads take their values just inside.
        """
        margin = MARGIN * np.spacing(max(abs(start), abs(stop), abs(self._offset)))
        middle = 0.5 * (start + stop)
        self._low, self._high = min(start + margin, middle), max(stop - margin, middle)
        for load in self._loads:
            load.enter(self._low - self._offset, self._high - self._offset)

    def clock(self, t: float) -> float:
        """Return the time passed to functions and profiles."""
        return float(min(max(t, self._low), self._high)) - self._offset

    def time_of_phase(self, t: float) -> float:
        """Return the time passed to the phase's event conditions; at its end, its duration."""
        return self._duration if self._offset and t == self._end else t - self._offset

    def sample(self, controller: HeldValue, t: float, q: Array, v: Array) -> None:
        """Sample a controller (zero-order hold)."""
        controller.sample(t - self._offset, q, v)

    # Held joints --------------------------------------------------------------------------------

    def motion(self, name: str, t: float) -> tuple[Array, Array, Array]:
        """Return q, v and v̇ of a held joint, checked."""
        own = self._held[name]
        try:
            return own.checked(*own.motion(self.clock(t)))
        except RemoraError as error:
            raise SimulationError(str(error), t) from error
        except Exception as error:
            why = f"the motion of joint {name!r} raised {type(error).__name__}: {error}"
            raise SimulationError(why, t) from error

    def set_held(self, t: float, q: Array, v: Array) -> None:
        """Set held joints to their motion at t, in place."""
        for name, own in self._held.items():
            q[own.joint.q], v[own.joint.v], _ = self.motion(name, t)

    def check_motions(self, start: float, stop: float) -> None:
        """Raise if a prescribed motion is inconsistent or jumps in a step, see `motion_check`."""
        for name in self._prescribed:
            check_step(self._held[name], functools.partial(self.motion, name), start, stop)

    def check_joined(self, t: float, q: Array, v: Array) -> None:
        """Raise if a prescribed motion jumps between a state and its continuation."""
        for name in self._prescribed:
            own, after = self._held[name], self.motion(name, t)
            check_joined(own, t, (q[own.joint.q], v[own.joint.v], after[2]), after)

    def look_ahead(self, start: float, stop: float) -> None:
        """Raise if a prescribed motion jumps at a break, or is wrong midway between two breaks.

        Motions are checked completely during the run; this finds obvious faults before it starts.
        """
        breaks = [t for t in self.breaks if start < t < stop]
        for name in self._prescribed:
            own, at = self._held[name], functools.partial(self.motion, name)
            for t in breaks:
                margin = MARGIN * np.spacing(max(abs(t), abs(self._offset)))
                check_joined(own, t, at(t - margin), at(t + margin))
            for a, b in itertools.pairwise([start, *breaks, stop]):
                middle, half = 0.5 * (a + b), 1e-4 * min(1.0, b - a)
                if half > 0.0:
                    check_step(own, at, middle - half, middle + half)

    def _with_held(self, t: float, u: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return u, v and accelerations with those of the held joints inserted."""
        u, v, vdot = u.copy(), v.copy(), np.zeros(self.robot.nv)
        for name, own in self._held.items():
            place = own.joint.v
            q, v[place], vdot[place] = self.motion(name, t)
            u[place] = own.row.difference(self.q[own.joint.q], q)
        return u, v, vdot

    # Stops --------------------------------------------------------------------------------------

    @property
    def _touched(self) -> tuple[Array, ...]:
        """Contact flags, if there are stops: the last argument of kernels."""
        return (self.contact,) if self.stops else ()

    @functools.cached_property
    def _stop_map(self) -> tuple[Array, Array, Array, Array]:
        """Indices of the stops' coordinates and speeds, their factors, and δ at q = 0."""
        nothing, still = np.zeros(self.robot.nq), np.zeros(self.robot.nv)
        offset = stop_overlaps(self.robot, nothing)
        by_q = stop_overlaps(self.robot, np.eye(self.robot.nq)) - offset
        by_v = stop_rates(self.robot, np.eye(self.robot.nv)) - stop_rates(self.robot, still)
        places, speeds = np.argmax(np.abs(by_q), axis=0), np.argmax(np.abs(by_v), axis=0)
        return places, speeds, by_v[speeds, np.arange(self.stops)], offset

    def overlaps(self, q: Array) -> Array:
        """Return the penetration of each stop, `(..., stops)`; positive beyond the limit."""
        places, _, factor, offset = self._stop_map
        return factor * q[..., places] + offset

    def overlap_rates(self, v: Array) -> Array:
        """Return the rates of the penetrations, `(..., stops)`."""
        _, speeds, factor, _ = self._stop_map
        return factor * v[..., speeds]

    def touch(self, t: float, q: Array, v: Array) -> bool:
        """Update which stops are in contact; return whether that changed.

        In contact are stops beyond which a joint is, and of those it is just at, the ones it moves
        or is pushed into. "Just at" means within the rounding of time and coordinate.
        """
        if not self.stops:
            return False
        over, rate = self.overlaps(q), self.overlap_rates(v)
        size = np.abs(self._stop_map[3]) + np.abs(over)
        band = AT_STOP * (np.spacing(abs(t)) * np.abs(rate) + np.spacing(size))
        at, before = np.abs(over) <= band, self.contact
        contact = np.where(at, rate > 0.0, over > 0.0)
        undecided = at & (rate == 0.0)
        self.contact = contact.astype(float)
        if np.any(undecided):
            self.q = q
            rates = self.rates(t, self._layout.at_start(v))
            pushed = self.overlap_rates(rates[self._layout.v])
            self.contact = np.where(undecided, pushed > 0.0, contact).astype(float)
        return not np.array_equal(self.contact, before)

    def clear_of_stops(self, q: Array, fastest: Array, h: float) -> bool:
        """Return whether no joint can reach or leave a stop in a step, see `Watch.far`."""
        if not self.stops:
            return True
        way = 4.0 * h * np.abs(self.overlap_rates(fastest))
        return bool(np.all(np.abs(self.overlaps(q)) > way))

    def stop_frequency(self, q: Array) -> float:
        """Return the highest frequency of the robot on the stops that it touches, rad/s.

        ω² is the largest eigenvalue of k J H⁻¹ Jᵀ, with δ̇ = J v, over what is not held.
        """
        touched = np.flatnonzero(self.contact)
        _, speeds, factor, _ = self._stop_map
        J = np.zeros((touched.size, self.robot.nv))
        J[np.arange(touched.size), speeds[touched]] = factor[touched]
        held = [i for name in self.held for i in range(self.robot.nv)[self.robot.joints[name].v]]
        H: Array = kernel(mass_matrix, self.robot, ("q",))(q)
        H, J = np.delete(np.delete(H, held, 0), held, 1), np.delete(J, held, 1)
        felt = J @ np.linalg.solve(H, J.T)
        return float(np.sqrt(self._model.passive.stiffness * np.linalg.eigvalsh(felt)[-1]))

    def room_to_stops(self, q: Array) -> Array:
        """Return functions that fall below zero where contact begins or ends, `(..., stops)`."""
        return (2.0 * self.contact - 1.0) * self.overlaps(q)

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
        return kernel(integrate, self.robot, ("q", "dq"))

    def arrival(self, u: Array) -> Array:
        """Return the configuration at the start of the next step, exact to the last bit."""
        return self.q + (self._increment(self.q, u) + self.rest)

    def rates(self, t: float, y: Array) -> Array:
        """Return the rate of y, `(2 nv + 3,)`."""
        if self._blind:
            tau, wrenches = self._given(t, self.q, y)
            pushed = () if wrenches is None else (wrenches,)
            return self._rates_near(self.q, y, tau, *pushed, *self._touched)
        u, v = y[self._layout.u], y[self._layout.v]
        more: list[Array] = []
        if self.held:
            u, v, vdot = self._with_held(t, u, v)
            more = [vdot]
        q = self._move(self.q, u)
        tau, wrenches = self._given(t, q, v)
        if self._large:
            return self._by_parts(q, u, v, tau, wrenches)
        if wrenches is not None:
            more = [wrenches, *more]
        return self._rates(q, u, v, tau, *more, *self._touched)

    def _by_parts(self, q: Array, u: Array, v: Array, tau: Array, wrenches: Array | None) -> Array:
        """Return the result of `state_derivative`, computed from kernels of its parts."""
        lost = self._losses(q, v, *self._touched)
        pushed = [] if wrenches is None else [wrenches]
        vdot = self._fast.forward_dynamics(q, v, tau + lost, *pushed)
        outside = 0.0
        if wrenches is not None:
            outside = np.sum(screw.power(self._fast.twists(q, v), wrenches))
        powers = np.array([v @ tau, outside, v @ lost])
        return np.concatenate([self._log_rate(u, v), vdot, powers])

    def _given(self, t: float, q: Array, v: Array) -> tuple[Array, Array | None]:
        """Return the drive forces of joints that are not held, and the external wrenches."""
        seen = self.clock(t)
        if self._sees_state:
            q, v = frozen_view(q), frozen_view(v)
        try:
            tau = self._torque(seen, q, v)
            if self._effort is not None:
                tau = np.clip(tau, -self._effort, self._effort)
            if not self._pushed:
                return tau, None
            wrenches = self._wrenches(seen, q, v).copy()
            wrenches[0] += self._base(seen, q, v)
        except RemoraError as error:
            raise SimulationError(str(error), t) from error
        return tau, wrenches

    def loads(self, t: float, q: Array, v: Array) -> EvaluatedLoads:
        """Return all loads, including the drive forces of held joints."""
        tau, wrenches = self._given(t, q, v)
        lost = self._losses(q, v, *self._touched)
        if self.held:
            vdot = np.zeros(self.robot.nv)
            for name in self.held:
                vdot[self.robot.joints[name].v] = self.motion(name, t)[2]
            pushed = [] if wrenches is None else [wrenches]
            tau = self._actuation(q, v, tau, *pushed, vdot, *self._touched)[1]
        return EvaluatedLoads(tau, lost, wrenches)

    def loads_seen(self, t: float, q: Array, v: Array) -> EvaluatedLoads:
        """Return all loads at a state, with contact determined from that state alone."""
        during = self.contact
        if self.stops:
            self.contact = (self.overlaps(q) > 0.0).astype(float)
        try:
            return self.loads(t, q, v)
        finally:
            self.contact = during

    @functools.cached_property
    def _rates_near(self) -> Kernel:
        size = {"y": (self._layout.size,)}
        return self._compiled(state_derivative_near, ("q", "y", "tau"), size)

    @functools.cached_property
    def _rates(self) -> Kernel:
        return self._compiled(state_derivative, ("q", "dq", "v", "tau"))

    @functools.cached_property
    def _log_rate(self) -> Kernel:
        return kernel(log_rate, self.robot, ("dq", "v"))

    @functools.cached_property
    def _increment(self) -> Kernel:
        return kernel(increment, self.robot, ("q", "dq"))

    @functools.cached_property
    def _actuation(self) -> Kernel:
        return self._compiled(actuation, ("q", "v", "tau"))

    @functools.cached_property
    def _losses(self) -> Kernel:
        names = ("q", "v", *self._frozen)
        return kernel(passive_loads, self.robot, names, self._frozen, passive=self._model.passive)

    # The Jacobian, for implicit methods ---------------------------------------------------------

    def jacobian(self, t: float, y: Array) -> Array:
        """Return the derivatives of the rates with respect to y at u = 0, `(n, n)`.

        Dynamics: analytic derivatives. Damping, friction, springs and stops: CasADi. User functions
        of the state: finite differences.
        """
        nv = self.robot.nv
        layout = self._layout
        q, v = self.q, y[layout.v]
        tau, lost, wrenches = self.loads(t, q, v)
        pushed = [] if wrenches is None else [wrenches]
        dq: Array
        dv: Array
        inverse: Array
        dq, dv, inverse = self._fast.forward_dynamics_derivatives(q, v, tau + lost, *pushed)
        by_u, by_v = self._loss_slopes
        still = np.zeros(nv)
        force_u, force_v = (slope(q, still, v, *self._touched) for slope in (by_u, by_v))
        if self._sees_state:
            seen_u, seen_v = self._seen(t, v)
            force_u, force_v = force_u + seen_u, force_v + seen_v
        below_u, below_v = dq + inverse @ force_u, dv + inverse @ force_v
        above_u = 0.5 * self._bracket(v)
        above_v: Array = np.eye(nv)
        places = [i for name in self.held for i in range(nv)[self.robot.joints[name].v]]
        if places:  # drives of held joints react so that these follow their motion; their part of
            # y is ignored
            felt: Array = inverse[places][:, places]
            answer: Array = inverse[:, places] @ np.linalg.inv(felt)
            below_u = below_u - answer @ below_u[places]
            below_v = below_v - answer @ below_v[places]
            for block in (below_u, below_v, above_u, above_v):
                block[:, places] = 0.0
                block[places] = 0.0
        J = np.zeros((layout.size, layout.size))
        J[layout.u, layout.u], J[layout.u, layout.v] = above_u, above_v
        J[layout.v, layout.u], J[layout.v, layout.v] = below_u, below_v
        return J

    @functools.cached_property
    def _loss_slopes(self) -> tuple[Kernel, Kernel]:
        names, passive = ("q", "dq", "v", *self._frozen), self._model.passive
        near = kernel(_losses_near, self.robot, names, self._frozen, passive=passive)
        return near.jacobian("dq"), near.jacobian("v")

    def _bracket(self, v: Array) -> Array:
        """Return the matrix of u -> u×v, joint by joint: twice the slope of T(u)v at u = 0."""
        matrix = np.zeros((self.robot.nv, self.robot.nv))
        for joint in self.robot.joints:
            if joint.mimic is None and kind(joint).quaternion is not None:
                cross = screw.cross if kind(joint).nv == 6 else vector.cross
                matrix[joint.v, joint.v] = cross(np.eye(kind(joint).nv), v[joint.v]).T
        return matrix

    def _seen(self, t: float, v: Array) -> tuple[Array, Array]:
        """Return the derivatives of the user functions' generalized forces by u and by v."""
        nv = self.robot.nv
        step = np.sqrt(np.finfo(float).eps)

        rest = np.zeros(nv)

        def forces(u: Array, v: Array) -> Array:
            tau, wrenches = self._given(t, self.place(u), v)
            if wrenches is None:
                return tau
            needed, q = self._fast.inverse_dynamics, self.q  # with the wrenches at this state
            return tau + needed(q, rest, rest) - needed(q, rest, rest, wrenches)

        here = forces(rest, v)
        by_u = [(forces(step * e, v) - here) / step for e in np.eye(nv)]
        by_v = [(forces(rest, v + step * e) - here) / step for e in np.eye(nv)]
        return np.array(by_u).T, np.array(by_v).T


def _losses_near(
    robot: Robot,
    q: Array,
    dq: Array,
    v: Array,
    passive: PassiveParameters,
    contact: Array | None = None,
) -> Array:
    return passive_loads(robot, integrate(robot, q, dq), v, passive, contact)


def _is_large(model: RunSettings) -> bool:
    """Return whether forward dynamics of the robot is compiled as tree loops."""
    usual = model.formulation == "articulated"
    return usual and uses_loops(model.robot, RECURSIONS["forward_dynamics"].straight)


def _joint(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    joint = robot.joints[robot.joint_index(name)]
    if joint.mimic is not None:
        leader = robot.joints[joint.mimic.joint].name
        raise RemoraError(f"joint {name!r} mimics {leader!r}: give the torque to that one")
    return joint.v, (joint.v.stop - joint.v.start,)


def _body(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    return robot.body_index(name), (6,)


def _effort_limits(robot: Robot) -> Array:
    limits = np.full(robot.nv, np.inf)
    for joint in robot.joints:
        if joint.mimic is None:
            limits[joint.v] = joint.limits.effort
    return limits
