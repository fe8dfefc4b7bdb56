"""Equations of a robot with components, on numbers or symbols.

The state of a step about the configuration q₀ is y = [u, v, work, x], with the continuous states x
of the components; their discrete states z are constant during a step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, concatenate, less, select, stack
from remora.components.evaluation import Instant
from remora.components.layout import packed
from remora.components.system import System
from remora.dynamics.forces.equations_of_motion import (
    NO_STOPS,
    PassiveParameters,
    state_derivative,
)
from remora.dynamics.formulations import inverse_dynamics
from remora.dynamics.state_layout import layout_of
from remora.model.state import integrate


def limited(tau: Array, effort: tuple[float, ...] | None) -> Array:
    """Return the forces of drives `(..., nv)`, limited to ±effort; None: no limits."""
    if effort is None:
        return tau
    parts: list[Array] = []
    for i, most in enumerate(effort):
        force = tau[..., i]
        if math.isfinite(most):
            force = select(less(most, force), most, select(less(force, -most), -most, force))
        parts.append(force)
    return stack(parts)


def component_loads(
    system: System, q: Array, v: Array, x: Array, z: Array, t: Any
) -> tuple[Array, Array]:
    """Return the components' generalized forces `(..., nv)` and wrenches `(..., nb, 6)`."""
    tau, wrenches = Instant(system, t, q, v, x, z).loads()
    robot = system.robot
    tau = np.zeros(robot.nv) if tau is None else tau
    return tau, np.zeros((len(robot.bodies), 6)) if wrenches is None else wrenches


def system_rates(
    system: System,
    q: Array,
    y: Array,
    z: Array,
    t: Any,
    tau: Array,
    wrenches: Array | None = None,
    vdot: Array | None = None,
    contact: Array | None = None,
    held: tuple[str, ...] = (),
    formulation: str | None = None,
    passive: PassiveParameters = NO_STOPS,
    effort: tuple[float, ...] | None = None,
) -> Array:
    """Return the rate of y = [u, v, work, x] about the configuration q₀, `(..., 2 nv + 3 + nx)`.

    Args:
        system: the robot and its components.
        q: configuration q₀, `(..., nq)`.
        y: the state, `(..., 2 nv + 3 + nx)`.
        z: discrete states of the components, `(..., nz)`.
        t: time, s.
        tau: actuation forces besides those of the components, `(..., nv)`.
        wrenches: external, besides those of the components, `(..., nb, 6)`.
        vdot: prescribed accelerations of the joints in `held`, `(..., nv)`.
        contact: which stops are in contact, see `contact_forces`.
        held: joints with prescribed motion.
        formulation: of forward dynamics.
        passive: passive loads at the joints.
        effort: limits of the drives' forces, `nv` numbers; None: no limits.
    """
    robot, layout = system.robot, layout_of(system.robot, system.nx)
    u, v, x = y[..., layout.u], y[..., layout.v], y[..., layout.extra]
    here = integrate(robot, q, u)
    now = Instant(system, t, here, v, x, z)
    force, push = now.loads()
    force = limited(tau if force is None else tau + force, effort)
    if push is not None:
        wrenches = push if wrenches is None else wrenches + push
    rate = state_derivative(
        robot, here, u, v, force, wrenches, vdot, held, formulation, passive, contact
    )
    return concatenate([rate, now.derivative()]) if system.nx else rate


def component_response(
    system: System,
    q: Array,
    y: Array,
    z: Array,
    t: Any,
    tau: Array,
    effort: tuple[float, ...] | None = None,
) -> Array:
    """Return the generalized forces of all drives and wrenches, and the rate of x.

    Wrenches on the bodies are mapped to generalized forces at q₀, not at integrate(q₀, u): the
    derivatives of forward dynamics account for the rest. See `system_rates` for the arguments.

    Returns:
        `(..., nv + nx)`.
    """
    robot, layout = system.robot, layout_of(system.robot, system.nx)
    u, v, x = y[..., layout.u], y[..., layout.v], y[..., layout.extra]
    now = Instant(system, t, integrate(robot, q, u), v, x, z)
    force, push = now.loads()
    total = limited(tau if force is None else tau + force, effort)
    if push is not None:
        total = total + wrench_forces(system, q, push)
    return concatenate([total, now.derivative()]) if system.nx else total


def wrench_forces(system: System, q: Array, wrenches: Array) -> Array:
    """Return the generalized forces Σ Jᵢᵀ wᵢ of wrenches on the bodies, `(..., nv)`."""
    robot, rest = system.robot, np.zeros(system.robot.nv)
    without = inverse_dynamics(robot, q, rest, rest)
    return without - inverse_dynamics(robot, q, rest, rest, wrenches)


def signal_values(system: System, q: Array, v: Array, x: Array, z: Array, t: Any) -> Array:
    """Return all signals and states in the order of `System.signals`, as one vector."""
    now, parts = Instant(system, t, q, v, x, z), list[Array]()
    for name, layout in system.layouts.items():
        shapes = layout.output_shapes
        parts.append(packed(shapes, {key: now.signals[f"{name}.{key}"] for key in shapes}))
        parts += [x[..., layout.x], z[..., layout.discrete]]
    return concatenate(parts)


def crossing_values(system: System, q: Array, v: Array, x: Array, z: Array, t: Any) -> Array:
    """Return the event functions in the order of `System.events`, `(..., ne)`."""
    return Instant(system, t, q, v, x, z).crossings()


def ticked(
    system: System,
    q: Array,
    v: Array,
    x: Array,
    z: Array,
    t: Any,
    noise: Array,
    names: tuple[str, ...] = (),
) -> Array:
    """Return z after a tick of some components, `(..., nz)`; see `Instant.ticked`."""
    return Instant(system, t, q, v, x, z).ticked(names, noise)
