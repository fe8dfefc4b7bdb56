"""The equations of motion as a first-order ODE, for integrators.

A step of an integrator describes configurations near q₀ as q = integrate(q₀, u). Its state is the
vector y = [u, v, work], with the rate

    u̇ = T(u) v,    v̇ = forward dynamics,    (d/dt) work = [actuation, external wrenches, losses].

The reduced model has the same layout: the base's part of v is not integrated, but computed from
momentum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.forces.passive_forces import (
    contact_forces,
    friction_forces,
    has_spring,
    spring_forces,
    stop_forces,
)
from remora.dynamics.formulations import hybrid_dynamics
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import twists
from remora.dynamics.lagrangian.reduced import reduced_flow
from remora.dynamics.state_layout import layout_of
from remora.model.robot import Robot
from remora.model.state import integrate, log_rate


class PassiveParameters(NamedTuple):
    """Passive loads at the joints.

    Attributes:
        slip_speed: of dry friction, see `friction_forces`, rad/s or m/s.
        stiffness: of the stops at joint limits, N m/rad or N/m; 0: no stops.
        damping: of the stops, s/rad or s/m.
    """

    slip_speed: float = 1e-3
    stiffness: float = 0.0
    damping: float = 0.0


#: The robot's own damping, friction and springs, no stops.
NO_STOPS = PassiveParameters()


def passive_loads(
    robot: Robot,
    q: Array,
    v: Array,
    passive: PassiveParameters = NO_STOPS,
    contact: Array | None = None,
) -> Array:
    """Return the generalized forces `(..., nv)` of damping, friction, springs and stops.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        passive: passive loads at the joints.
        contact: which stops are in contact, see `contact_forces`; None: determined from q.
    """
    forces = friction_forces(robot, v, passive.slip_speed)
    if any(has_spring(joint) for joint in robot.joints):
        forces = forces + spring_forces(robot, q)
    if passive.stiffness == 0.0:
        return forces
    if contact is not None:
        push = contact_forces(robot, q, v, contact, passive.stiffness, passive.damping)
        return forces + push
    return forces + stop_forces(robot, q, v, passive.stiffness, passive.damping)


def actuation(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None = None,
    vdot: Array | None = None,
    held: tuple[str, ...] = (),
    formulation: str | None = None,
    passive: PassiveParameters = NO_STOPS,
    contact: Array | None = None,
) -> tuple[Array, Array]:
    """Return vdot and the actuation forces, both `(..., nv)`; see `state_derivative`."""
    given: Mapping[str, Array] = {}
    if held and vdot is not None:
        given = {name: vdot[..., robot.joints[name].v] for name in held}
    lost = passive_loads(robot, q, v, passive, contact)
    found, force = hybrid_dynamics(robot, q, v, tau + lost, given, wrenches, formulation)
    return found, force - lost


def state_derivative_near(
    robot: Robot,
    q: Array,
    y: Array,
    tau: Array,
    wrenches: Array | None = None,
    vdot: Array | None = None,
    held: tuple[str, ...] = (),
    formulation: str | None = None,
    passive: PassiveParameters = NO_STOPS,
    contact: Array | None = None,
) -> Array:
    """Return the rate of y about the configuration q₀ = `q`; see `state_derivative`."""
    layout = layout_of(robot)
    u, v = y[..., layout.u], y[..., layout.v]
    here = integrate(robot, q, u)
    return state_derivative(
        robot, here, u, v, tau, wrenches, vdot, held, formulation, passive, contact
    )


def state_derivative(
    robot: Robot,
    q: Array,
    dq: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None = None,
    vdot: Array | None = None,
    held: tuple[str, ...] = (),
    formulation: str | None = None,
    passive: PassiveParameters = NO_STOPS,
    contact: Array | None = None,
) -> Array:
    """Return the rate of y = [u, v, work], `(..., 2 nv + 3)`.

    Args:
        robot: the robot; its damping, dry friction and springs are included.
        q: configuration, integrate(q₀, u), `(..., nq)`.
        dq: u, `(..., nv)`.
        v: velocity, `(..., nv)`.
        tau: actuation forces, `(..., nv)`; ignored for joints in `held`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        vdot: prescribed accelerations, used for joints in `held`, `(..., nv)`.
        held: joints with prescribed motion.
        formulation: of forward dynamics.
        passive: passive loads at the joints.
        contact: which stops are in contact, see `contact_forces`; None: determined from q.
    """
    rate, given = actuation(robot, q, v, tau, wrenches, vdot, held, formulation, passive, contact)
    lost = passive_loads(robot, q, v, passive, contact)
    outside = np.zeros(1)
    if wrenches is not None:
        each = screw.power(twists(robot, q, v), wrenches)
        outside = np.sum(each, axis=-1, keepdims=True)
    powers = [vector.dot(v, given), outside, vector.dot(v, lost)]
    batch = batch_shape(q, dq, v, tau)
    return with_batch(concatenate([log_rate(robot, dq, v), rate, *powers]), batch, trailing=1)


def reduced_rates_near(
    robot: Robot,
    q: Array,
    y: Array,
    tau: Array,
    momentum: Array,
    passive: PassiveParameters = NO_STOPS,
) -> Array:
    """Return the rate of y = [u, v, work] about the configuration q₀ = `q`, `(..., 2 nv + 3)`.

    u̇ = T(u) v with v = [V, q̇] and the base's twist V from momentum; q̈ by the reduced model; the
    rows of the base's velocity are zero.

    Args:
        robot: a robot with a free base without external loads.
        q: configuration q₀, `(..., nq)`.
        y: [u, v, work], `(..., 2 nv + 3)`; the base's part of v is ignored.
        tau: actuation forces, `(..., nv)`; the base's part is ignored.
        momentum: [linear, angular about the inertial origin], inertial axes, `(..., 6)`.
        passive: passive loads at the joints.
    """
    layout = layout_of(robot)
    u, v = y[..., layout.u], y[..., layout.v]
    here = integrate(robot, q, u)
    lost = passive_loads(robot, here, v, passive)[..., 6:]
    given = tau[..., 6:]
    speeds = v[..., 6:]
    V, rate = reduced_flow(robot, here, speeds, given + lost, momentum)
    none = np.zeros(1)
    parts = [
        log_rate(robot, u, concatenate([V, speeds])),
        np.zeros(6),
        rate,
        vector.dot(speeds, given),
        none,
        vector.dot(speeds, lost),
    ]
    return with_batch(concatenate(parts), batch_shape(q, y, tau), trailing=1)
