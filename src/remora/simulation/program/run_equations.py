"""Equations of motion of one run of a batch: a system, the loads, and what differs by run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from remora.algebra import screw
from remora.algebra.array_ops import (
    Array,
    absolute,
    concatenate,
    lasting,
    less,
    select,
)
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import trace
from remora.codegen.llvm.lowering import used_inputs
from remora.components.actions import Wrench
from remora.components.evaluation import Instant
from remora.components.system import System
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.constraints.reactions import constraint_multipliers, loop_loads
from remora.dynamics.constraints.step_projection import step_projection
from remora.dynamics.forces.equations_of_motion import (
    PassiveParameters,
    actuation,
    passive_loads,
    state_derivative,
)
from remora.dynamics.forces.passive_forces import stop_overlaps
from remora.dynamics.formulations import forward_dynamics
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.lagrangian.reduced import base_velocity
from remora.dynamics.state_layout import WORKS
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import compensated_sum, log_rate
from remora.simulation.inputs.events import JointLimits
from remora.simulation.inputs.profiles import Motion
from remora.simulation.systems.system_equations import limited

#: Name of the forward dynamics of large robots among the functions that programs call.
FORWARD_DYNAMICS = "forward dynamics"
#: (t, q, v, others by name) -> a load, on arrays of numbers or symbols.
Law = Callable[..., Array]
#: What Python computes: `dynamics`: the forward dynamics of large robots, a kernel of its own made
#: of loops over the bodies. In single runs also `system`: loads, updates, resets and records, where
#: components cannot be traced or the robot is large; `events`: the functions of events; `motions`:
#: the motions of held joints; `stability`: whether a fixed step on the stops is stable.
HostedPart: TypeAlias = str


class Break(NamedTuple):
    """A time at which loads are not smooth: a step ends there.

    Attributes:
        time: s.
        of_phase: whether it is the time since the start of the phase, not that of the run.
    """

    time: float
    of_phase: bool = False


@dataclass(frozen=True, eq=False)
class Forces:
    """Loads that act in every run besides components.

    Attributes:
        torque: generalized forces of the drives as a function, `(nv,)`, or None.
        wrenches: external wrenches as a function, `(nb, 6)`, or None.
        inputs: arrays that differ from run to run and are passed to the functions by name.
        called: loads that Python computes, since they cannot be traced: functions of the clock
            `(1,)`, q and v, by what they return, `torque` `(nv,)` or `wrenches` `(nb, 6)`.
    """

    torque: Law | None
    wrenches: Law | None
    inputs: tuple[Signature, ...] = ()
    called: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False)
class RunEquations:
    """The equations of one run.

    The state of a run is q, v, the continuous states x and the discrete states z of the components.

    Attributes:
        system: the robot and its components.
        forces: other loads.
        parameters: names of the robot's and the components' parameters that differ by run, among
            them the numbers of constraints that have latched.
        formulation: forward-dynamics formulation.
        passive: passive joint forces.
        held: motions of the joints that are prescribed, by name; None for a locked joint.
        reduced: whether the speeds of the free base are no states but follow from the momentum of
            the run [FPG11, eqs. 18, 19].
        pieces: those of the held joints whose motions are polynomials in time that are passed to
            each call; their motions in `held` are None.
        own_clock: whether loads and motions, unlike components, receive the time since the start of
            the phase.
        started: components whose events may occur at the start of the phase.
        effort: limits of the drives' forces, `nv` numbers; None: no limits.
        limits: limits of the joints that are watched as events; None: none.
        works: whether the work of drives, wrenches and passive forces is integrated.
        hosted: what Python computes, see `HostedPart`.
    """

    system: System
    forces: Forces
    parameters: tuple[str, ...]
    formulation: str
    passive: PassiveParameters
    held: Mapping[str, Motion | None]
    own_clock: bool = False
    started: frozenset[str] = frozenset()
    effort: tuple[float, ...] | None = None
    limits: JointLimits | None = None
    works: bool = False
    pieces: tuple[str, ...] = ()
    reduced: bool = False
    hosted: frozenset[HostedPart] = frozenset()

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.system.robot

    @property
    def unloaded(self) -> bool:
        """Whether only the robot moves: no components, no loads of phases, no held joints."""
        forces = self.forces
        loads = forces.torque is not None or forces.wrenches is not None or bool(forces.inputs)
        loads = loads or bool(forces.called)
        return not (self.system.components or loads or self.held)

    @property
    def stops(self) -> int:
        """Number of stops at joint limits."""
        if self.passive.stiffness == 0.0:
            return 0
        return stop_overlaps(self.robot, np.zeros(self.robot.nq)).size

    @property
    def data(self) -> list[Signature]:
        """Arguments of a run besides its state: inputs of the loads, then parameters.

        Their names, `input NAME` and `parameter NAME`, differ from those of all cells.
        """
        inputs = [Signature(input_name(s.name), s.shape) for s in self.forces.inputs]
        return [*inputs, *self.parameter_signatures]

    @property
    def parameter_signatures(self) -> list[Signature]:
        """Arguments of a run that are parameters."""
        return [self._parameter(name) for name in self.parameters]

    @property
    def data_names(self) -> list[str]:
        """Names of `data`."""
        return [s.name for s in self.data]

    def _parameter(self, name: str) -> Signature:
        return Signature(parameter_name(name), self.system.shape_of(name))

    def changed(self, data: Sequence[Array]) -> System:
        """Return the system with the parameters of a run."""
        values = data[len(self.forces.inputs) :]
        return self.system.acting_with(dict(zip(self.parameters, values, strict=True)))

    def instant(
        self, t: Array, q: Array, v: Array, x: Array, z: Array, data: Sequence[Array],
        begin: Array | None = None,
    ) -> Instant:  # fmt: skip
        """Return the system of a run at a state.

        Args:
            t: time, `(1,)`, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states, `(nx,)`.
            z: discrete states, `(nz,)`.
            data: see `data`.
            begin: start of the phase, `(1,)`, s; needed where its conditions and sampled loads are
                evaluated.
        """
        now = t.reshape(())
        clock = now - begin.reshape(()) if self.own_clock and begin is not None else None
        return Instant(self.changed(data), now, q, v, x, z, clock)

    def loads(
        self, t: Array, clock: Array, q: Array, v: Array, x: Array, z: Array,
        data: Sequence[Array], called: Sequence[Array] = (),
    ) -> tuple[Array, Array | None, Array]:  # fmt: skip
        """Return generalized forces, wrenches (or None), and the rates of x.

        Args:
            t: time, `(1,)`, s.
            clock: time that loads receive, `(1,)`, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states, `(nx,)`.
            z: discrete states, `(nz,)`.
            data: see `data`.
            called: the loads that Python computed, in the order of `called_shapes`.
        """
        now = self.instant(t, q, v, x, z, data)
        tau, wrenches = now.loads()
        given = {s.name: lasting(x) for s, x in zip(self.forces.inputs, data, strict=False)}
        seen = lasting(clock.reshape(()))
        if self.forces.torque is not None:
            own = self.forces.torque(seen, q, v, **given)
            tau = own if tau is None else tau + own
        if self.forces.wrenches is not None:
            own = self.forces.wrenches(seen, q, v, **given)
            wrenches = own if wrenches is None else wrenches + own
        for what, own in zip(self.forces.called, called, strict=True):
            if what == "torque":
                tau = own if tau is None else tau + own
            else:
                wrenches = own if wrenches is None else wrenches + own
        tau = np.zeros(self.robot.nv) if tau is None else limited(tau, self.effort)
        return tau, wrenches, now.derivative()

    @property
    def pushed(self) -> bool:
        """Whether there are wrenches."""
        if self.forces.wrenches is not None or "wrenches" in self.forces.called:
            return True
        actions = (a for layout in self.system.layouts.values() for a in layout.actions)
        return any(isinstance(action, Wrench) for action in actions)

    # Calls of Python ----------------------------------------------------------------------------

    @property
    def called_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the loads that Python computes, by what they are."""
        shapes = {"torque": (self.robot.nv,), "wrenches": (len(self.robot.bodies), 6)}
        return {name: shapes[name] for name in self.forces.called}

    @property
    def large(self) -> bool:
        """Whether forward dynamics is a kernel of its own."""
        return "dynamics" in self.hosted

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that programs of batches call, see `Host`."""
        found = dict(self.forces.called)
        if self.large:
            pushed = ("wrenches",) if self.pushed else ()
            driven = kernel(forward_dynamics, self.robot, ("q", "v", "tau", *pushed))
            lost = kernel(passive_loads, self.robot, ("q", "v"), passive=self.passive)
            found[FORWARD_DYNAMICS] = LargeDynamics(driven, lost, self.pushed)
        return found

    def without_functions(self) -> RunEquations:
        """Return the equations as programs know them: by the names of the functions they call."""
        names: dict[str, Any] = dict.fromkeys(self.forces.called)
        return replace(self, forces=replace(self.forces, called=names))

    def rates(
        self, q: Array, u: Array, v: Array, tau: Array, wrenches: Array | None,
        accelerations: Array | None, contact: Array | None, data: Sequence[Array],
    ) -> tuple[Array, Array]:  # fmt: skip
        """Return the rates of [u, v] `(2 nv,)` and of the works `(3,)`, empty without these.

        In the reduced model v is that of `with_momentum`, and the rates of its base part are zero:
        the joints' accelerations of the full model at this v are those of [FPG11, eq. 18].
        """
        robot = self.changed(data).robot
        given = (
            wrenches, accelerations, tuple(self.held), self.formulation, self.passive, contact
        )  # fmt: skip
        if self.works:
            found = state_derivative(robot, q, u, v, tau, *given)
            motion, works = found[:-WORKS], found[-WORKS:]
        else:
            vdot, _ = actuation(robot, q, v, tau, *given)
            motion, works = concatenate([log_rate(self.robot, u, v), vdot]), np.zeros(0)
        if not self.reduced:
            return motion, works
        nv = robot.nv
        # forces on the base would change the momentum: such a run ends
        driven = select(less(0.0, np.sum(absolute(tau[:6]), keepdims=True)), 1e308, 0.0)
        return concatenate([motion[:nv], np.zeros(6), motion[nv + 6 :] + driven]), works

    def with_momentum(self, q: Array, v: Array, momentum: Array, *data: Array) -> Array:
        """Return v `(nv,)` with the base's twist that the momentum demands [FPG11, eq. 19]."""
        robot = self.changed(data).robot
        return concatenate([base_velocity(robot, q, v[6:], momentum), v[6:]])

    @property
    def load_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the loads of a record."""
        nv = self.robot.nv
        shapes: dict[str, tuple[int, ...]] = {"tau": (nv,), "passive": (nv,)}
        return shapes | ({"wrenches": (len(self.robot.bodies), 6)} if self.pushed else {})

    def recorded_loads(
        self, t: Array, clock: Array, q: Array, v: Array, x: Array, z: Array,
        accelerations: Array | None, data: Sequence[Array], called: Sequence[Array] = (),
    ) -> list[Array]:  # fmt: skip
        """Return the loads of a record, see `load_shapes`; stops are in contact as q says.

        Args:
            t: time, `(1,)`, s.
            clock: time that loads receive, `(1,)`, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states, `(nx,)`.
            z: discrete states, `(nz,)`.
            accelerations: of held joints, `(nv,)`; None: no joint is held.
            data: see `data`.
            called: see `loads`.
        """
        robot = self.changed(data).robot
        tau, wrenches, _ = self.loads(t, clock, q, v, x, z, data, called)
        passive = passive_loads(robot, q, v, self.passive)
        if accelerations is not None:
            _, tau = actuation(
                robot, q, v, tau, wrenches, vdot=accelerations, held=tuple(self.held),
                formulation=self.formulation, passive=self.passive,
            )  # fmt: skip
        return [tau, passive, *([] if wrenches is None else [wrenches.reshape((-1,))])]

    def with_motion(
        self, t: Array, clock: Array, q: Array, v: Array, x: Array, z: Array,
        accelerations: Array | None, data: Sequence[Array], called: Sequence[Array] = (),
    ) -> Array:  # fmt: skip
        """Return z with the true motion that components measure, see `MotionSignals`.

        Args:
            t: time, `(1,)`, s.
            clock: time that loads receive, `(1,)`, s.
            q: configuration, `(nq,)`.
            v: velocity, `(nv,)`.
            x: continuous states, `(nx,)`.
            z: discrete states, `(nz,)`.
            accelerations: of held joints, `(nv,)`; None: no joint is held.
            data: see `data`.
            called: see `loads`.
        """
        tau, wrenches, _ = self.loads(t, clock, q, v, x, z, data, called)
        robot = self.changed(data).robot
        vdot, tau = actuation(
            robot, q, v, tau, wrenches, vdot=accelerations, held=tuple(self.held),
            formulation=self.formulation, passive=self.passive,
        )  # fmt: skip
        return with_motion(
            self.system.motion_place, robot, z, vdot, q, v, tau, wrenches, self.passive
        )

    # Constraints --------------------------------------------------------------------------------

    @property
    def constrained(self) -> bool:
        """Whether constraints act."""
        return bool(active_constraints(self.robot))

    def projected(
        self, q: Array, v: Array, rest_q: Array, rest_v: Array, *data: Array
    ) -> tuple[Array, ...]:
        """Return the end of a step with the constraints satisfied, see `step_projection`.

        Args:
            q: configuration, held joints in their places, `(nq,)`.
            v: velocity, `(nv,)`.
            rest_q: compensation term of q.
            rest_v: compensation term of v.
            *data: see `data`.
        """
        robot = self.changed(data).robot
        dq, dv = step_projection(robot, q, v, tuple(self.held))
        return compensated_sum(robot, concatenate([dq, dv]), (q, v), (rest_q, rest_v))

    # Held joints --------------------------------------------------------------------------------

    def motions(self, t: Array, anchor: Array, *moved: Array) -> tuple[Array, Array, Array]:
        """Return coordinates `(nq,)`, speeds and accelerations `(nv,)` with those of held joints.

        Args:
            t: time, s.
            anchor: configuration in which joints are locked, `(nq,)`.
            *moved: with `pieces`, the coefficients of the polynomials, `(DEGREE + 1, nv)`, and the
                time from which they count, `(1,)`, s.
        """
        parts = list[tuple[Array, Array, Array]]()
        for joint in self.robot.joints:
            if joint.mimic is not None or joint.v.stop == joint.v.start:
                continue
            motion = self.held.get(joint.name)
            if joint.name in self.pieces:
                parts.append(piece(t - moved[1], moved[0][:, joint.v]))
            elif motion is None:
                still = np.zeros(joint.v.stop - joint.v.start)
                parts.append((anchor[joint.q], still, still))
            else:
                parts.append(motion.traced(t.reshape(())))
        q, v, a = (concatenate([part[i] for part in parts]) for i in range(3))
        return q, v, a

    def with_held(
        self, q: Array, u: Array, v: Array, held: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return u and v with those of the held joints in their places.

        Args:
            q: configuration at the start of the step, `(nq,)`.
            u: tangent vector from there, `(nv,)`.
            v: velocity, `(nv,)`.
            held: coordinates `(nq,)` and speeds `(nv,)` of the held joints, see `motions`.
        """
        parts = list[tuple[Array, Array]]()
        for joint in self.robot.joints:
            if joint.mimic is not None or joint.v.stop == joint.v.start:
                continue
            if joint.name in self.held:
                own = kind(joint).difference(q[joint.q], held[0][joint.q])
                parts.append((own, held[1][joint.v]))
            else:
                parts.append((u[joint.v], v[joint.v]))
        return concatenate([p[0] for p in parts]), concatenate([p[1] for p in parts])


@dataclass(frozen=True)
class LargeDynamics:
    """The forward dynamics of a large robot, from kernels of its parts.

    Attributes:
        driven: (q, v, tau, wrenches if there are any) -> vdot.
        lost: (q, v, contact if there are stops) -> passive forces.
        pushed: whether there are wrenches.
        twists: (q, v) -> twists of the bodies; None: works are not integrated.
    """

    driven: Callable[..., Array]
    lost: Callable[..., Array]
    pushed: bool
    twists: Callable[..., Array] | None = None

    def __call__(self, q: Array, v: Array, tau: Array, *rest: Array) -> tuple[Array, Array]:
        """Return vdot `(..., nv)` and the rates of the works `(..., 3)`, or `(..., 0)`."""
        pushes, contact = (rest[:1], rest[1:]) if self.pushed else ((), rest)
        lost = self.lost(q, v, *contact)
        vdot = self.driven(q, v, tau + lost, *pushes)
        if self.twists is None:
            return vdot, np.zeros((*q.shape[:-1], 0))
        outside = np.zeros(q.shape[:-1])
        if pushes:
            outside = np.sum(screw.power(self.twists(q, v), pushes[0]), axis=-1)
        return vdot, np.stack([np.sum(v * tau, -1), outside, np.sum(v * lost, -1)], axis=-1)


def with_motion(
    place: tuple[slice, tuple[str, ...]] | None, robot: Robot, z: Array, vdot: Array, q: Array,
    v: Array, tau: Array, wrenches: Array | None, passive: PassiveParameters,
) -> Array:  # fmt: skip
    """Return z with an acceleration, and the wrenches from outside and of constraints.

    Args:
        place: see `System.motion_place`.
        robot: the robot.
        z: discrete states, `(nz,)`.
        vdot: acceleration, `(nv,)`.
        q: configuration, `(nq,)`.
        v: velocity, `(nv,)`.
        tau: generalized forces of the drives, those of held joints, too, `(nv,)`.
        wrenches: from outside, `(nb, 6)`; None: there are none.
        passive: passive loads at the joints.
    """
    assert place is not None
    own, keys = place
    parts = [z[: own.start]]
    if "acceleration" in keys:
        parts.append(vdot)
    if "wrenches" in keys:
        total = np.zeros((len(robot.bodies), 6)) if wrenches is None else wrenches
        if active_constraints(robot):
            driven = tau + passive_loads(robot, q, v, passive)
            lam = constraint_multipliers(robot, q, v, driven, wrenches)
            total = total + loop_loads(robot, q, lam)
        parts.append(total.reshape((-1,)))
    return concatenate([*parts, z[own.stop :]])


def piece(s: Array, coefficients: Array) -> tuple[Array, Array, Array]:
    """Return Σ cₖ sᵏ and its first two derivatives, each `(n,)`.

    Args:
        s: `(1,)`.
        coefficients: `(degree + 1, n)`, from the constant term on.
    """
    q, v, a = (0.0 * coefficients[0] for _ in range(3))
    for row in coefficients[::-1]:
        q, v, a = q * s + row, v * s + q, a * s + 2.0 * v
    return q, v, a


def input_name(name: str) -> str:
    """Return the name of an input of the loads among the arguments of a run."""
    return f"input {name}"


def parameter_name(name: str) -> str:
    """Return the name of a parameter among the arguments of a run."""
    return f"parameter {name}"


def reads(function: Callable[..., Any], inputs: Sequence[Signature], name: str) -> bool:
    """Return whether a traced function depends on an input."""
    graph: Graph = trace(function, inputs)
    return used_inputs(graph)[[s.name for s in inputs].index(name)]
