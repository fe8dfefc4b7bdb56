"""Inverse dynamics of closed chains: the actuation of smallest norm for given accelerations.

    M v̇ + h = τ + Gᵀλ

A closed chain usually has more actuators than degrees of freedom: τ + Gᵀλ is given, and every λ is
an inner load of the loops. Of all τ that vanish at the unactuated joints, the one of smallest
Σ w_i τ_i² is taken.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from remora.algebra import orthogonal, vector
from remora.algebra.array_ops import (
    Array,
    ArrayLike,
    absolute,
    is_symbolic,
    less,
    select,
    sqrt,
    stack,
)
from remora.algebra.orthogonal import Orthogonal
from remora.dynamics.constraints.force_sharing import force_sharing
from remora.dynamics.constraints.loop_kinematics import active_constraints, constraint_jacobian
from remora.dynamics.joint_arrays import checked_arguments, with_batch
from remora.dynamics.recursive import recursive_newton_euler
from remora.dynamics.refusals import finite_result, needs_dynamics
from remora.errors import InvalidValue
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.takes_robot import takes_robot

#: Force that cannot be provided, relative to all forces, beyond which a motion is refused.
UNSUPPORTED = 1e-9


@takes_robot
@needs_dynamics
def constrained_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    wrenches: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    unactuated: Iterable[str] = (),
) -> Array:
    """Return the forces tau `(..., nv)` of smallest Σ w_i τ_i² for the accelerations vdot.

    The state and vdot must satisfy the active constraints (G v = 0, G v̇ = γ); then
    `forward_dynamics` of the result returns vdot.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        weights: w, positive, `(nv,)`; ones by default: the Euclidean norm in SI units.
        unactuated: joints, by name, whose forces are zero: passive joints, a base without
            thrusters.

    Raises:
        InvalidValue: if the actuated joints cannot cause this motion; in compiled code the result
            is then not finite.
    """
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    root, idle = sqrt(checked_weights(robot, weights)), idle_speeds(robot, unactuated)
    batch = q.shape[:-1]
    needed = recursive_newton_euler.inverse(robot, q, v, vdot, w)
    if not active_constraints(robot):
        off = stack([needed[..., i] for i in idle]) if idle else np.zeros(0)
        return with_batch(supported(robot, needed, idle, off), batch, trailing=1)
    found = force_sharing(constraint_jacobian(robot, q), root, idle).shared(needed[..., None])
    tau = supported(robot, found.tau[..., 0], idle, found.left[..., 0], needed)
    return finite_result(with_batch(tau, batch, trailing=1))


def checked_weights(robot: Robot, weights: ArrayLike | None) -> Array:
    """Return the weights of the forces, `(nv,)`, or raise."""
    weight = np.ones(robot.nv) if weights is None else finite("weights", weights, robot.nv)
    if not is_symbolic(weight) and np.any(weight <= 0.0):
        raise InvalidValue(
            "weights must be positive; for joints without actuator: unactuated=[...]"
        )
    return weight


def idle_speeds(robot: Robot, unactuated: Iterable[str]) -> list[int]:
    """Return the indices of the speeds of joints without actuator."""
    return sorted({
        i for name in unactuated for i in range(robot.nv)[robot.joints[robot.joint_index(name)].v]
    })  # fmt: skip


def force_rows(G: Array) -> Orthogonal:
    """Return the orthogonalized rows of G `(..., m, nv)` in the Euclidean metric of forces."""
    n: int = G.shape[-1]
    return orthogonal.orthogonalize(vector.transpose(G), np.ones(n), _sizes(G))


def _sizes(G: Array) -> Array:
    size = np.sum(np.sum(G * G, axis=-1), axis=-1, keepdims=True)
    return _repeated(size, G.shape[-2])


def smallest_forces(robot: Robot, q: Array, needed: Array) -> Array:
    """Return the forces of smallest norm with the same effect as `needed`, `(..., nv)`."""
    if not active_constraints(robot):
        return needed
    found = orthogonal.closest(force_rows(constraint_jacobian(robot, q)), needed[..., None])[0]
    return found[..., 0]


def _repeated(x: Array, count: int) -> Array:
    return np.broadcast_to(x, (*x.shape[:-1], count))


def supported(
    robot: Robot, tau: Array, idle: list[int], off: Array, needed: Array | None = None
) -> Array:
    """Return the forces, or raise if unactuated joints would have to provide some of them.

    Args:
        robot: the robot.
        tau: the forces, `(..., nv)`.
        idle: indices of the speeds without actuator.
        off: what they would have to provide, `(..., u)`.
        needed: the forces that the motion needs, `(..., nv)`; those returned by default.
    """
    if not idle:
        return tau
    needed = tau if needed is None else needed
    excess = np.sum(absolute(off), axis=-1, keepdims=True) - UNSUPPORTED * np.sum(
        absolute(needed), axis=-1, keepdims=True
    )
    if is_symbolic(excess):
        return select(less(0.0, excess), np.inf, tau)
    if np.any(excess > 0.0):
        names = [
            robot.joints[j].name
            for j in range(len(robot.joints))
            if set(range(robot.nv)[robot.joints[j].v]) & set(idle)
        ]
        raise InvalidValue(
            f"this motion needs forces at the unactuated joints {', '.join(map(repr, names))}, up "
            f"to {np.max(np.abs(off)):.3g} (N or N m), which the others cannot provide"
        )
    return tau
