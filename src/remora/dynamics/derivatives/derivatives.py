"""Derivatives of inverse and forward dynamics by q, v, vdot and tau, from composite inertias.

Those of inverse dynamics are in `tree_changes`. Forward dynamics is solved with the factors of H:
∂v̇ = -H⁻¹ ∂τ. With active constraints see `constrained_derivatives`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from remora.algebra import linear
from remora.algebra.array_ops import Array, ArrayLike, is_symbolic, sqrt, waypoint
from remora.dynamics.constraints.actuation import (
    checked_weights,
    constrained_inverse_dynamics,
    idle_speeds,
)
from remora.dynamics.constraints.loop_kinematics import active_constraints, constraint_residual
from remora.dynamics.derivatives import constrained_derivatives, sharing_derivatives
from remora.dynamics.derivatives.root_frame import accelerations_of
from remora.dynamics.derivatives.tree_changes import (
    displacement_changes,
    mass_blocks,
    mass_matrix_scale,
    required_forces,
    responses,
    speed_changes,
    tree_at,
    without_free_base,
)
from remora.dynamics.joint_arrays import checked_arguments
from remora.dynamics.refusals import finite_result, needs_dynamics, refuse_undefined
from remora.model.robot import Robot
from remora.model.takes_robot import takes_robot


class InverseDerivatives(NamedTuple):
    """Derivatives of inverse dynamics, each `(..., nv, nv)`.

    Attributes:
        dq: ∂τ/∂q along the tangent: of τ at `integrate(robot, q, dq)` by dq, at dq = 0.
        dv: ∂τ/∂v.
        dvdot: ∂τ/∂v̇: H, the mass matrix, where no constraints are active.
    """

    dq: Array
    dv: Array
    dvdot: Array


class ForwardDerivatives(NamedTuple):
    """Derivatives of forward dynamics, each `(..., nv, nv)`.

    Attributes:
        dq: ∂v̇/∂q along the tangent: of v̇ at `integrate(robot, q, dq)` by dq, at dq = 0.
        dv: ∂v̇/∂v.
        dtau: ∂v̇/∂τ: H⁻¹ where no constraints are active.
    """

    dq: Array
    dv: Array
    dtau: Array


class MultiplierDerivatives(NamedTuple):
    """Derivatives of the multipliers of the active constraints, each `(..., m, nv)`.

    Attributes:
        dq: ∂λ/∂q along the tangent.
        dv: ∂λ/∂v.
        dtau: ∂λ/∂τ.
    """

    dq: Array
    dv: Array
    dtau: Array


@takes_robot
@needs_dynamics
def inverse_dynamics_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, wrenches: ArrayLike | None = None
) -> InverseDerivatives:
    """Return ∂τ/∂q, ∂τ/∂v and ∂τ/∂v̇ of `inverse_dynamics`.

    With active constraints τ has the smallest norm of all that cause vdot; constraints that depend
    on each other are treated as in `forward_dynamics_derivatives`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`;
            they move with the body.
    """
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    if active_constraints(robot):
        closed = constrained_derivatives.inverse(robot, q, v, vdot, w)
        return InverseDerivatives(*map(finite_result, closed))
    tree = tree_at(robot, q, v)
    A = accelerations_of(robot, tree.links, q, v, vdot)
    moved = displacement_changes(tree, q, v, vdot, A, w)
    return InverseDerivatives(
        finite_result(tree.matrix(responses(tree, moved))),
        finite_result(tree.matrix(responses(tree, speed_changes(tree)))),
        finite_result(tree.matrix(mass_blocks(tree))),
    )


@takes_robot
@needs_dynamics
def constrained_inverse_dynamics_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    wrenches: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    unactuated: Iterable[str] = (),
) -> InverseDerivatives:
    """Return ∂τ/∂q, ∂τ/∂v and ∂τ/∂v̇ of `constrained_inverse_dynamics`.

    δτ + Gᵀδλ = δf, δτ_u = 0, G_d W δτ_d + G_u δμ = -∂(G u), with f the inverse dynamics of the
    tree less Gᵀλ, d the actuated and u the unactuated joints. Where unactuated joints cannot be
    relieved of all forces, they hold along changes of the motion that need none there. Constraints
    that depend on each other are treated as in `forward_dynamics_derivatives`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`;
            they move with the body.
        weights: positive, `(nv,)`; ones by default.
        unactuated: joints, by name, whose forces are zero.

    Raises:
        InvalidValue: if the actuated joints cannot cause this motion; in compiled code the result
            is then not finite.
    """
    q, v, vdot, w = checked_arguments(robot, q, v, vdot, wrenches, "vdot")
    root, idle = sqrt(checked_weights(robot, weights)), idle_speeds(robot, unactuated)
    if active_constraints(robot):
        closed = sharing_derivatives.inverse(robot, q, v, vdot, w, root, idle)
        return InverseDerivatives(*map(finite_result, closed))
    constrained_inverse_dynamics(robot, q, v, vdot, w, weights, unactuated)  # refuses
    found = inverse_dynamics_derivatives(robot, q, v, vdot, w)
    return InverseDerivatives(*(_without_rows(part, idle) for part in found))


def _without_rows(matrix: Array, idle: list[int]) -> Array:
    """Return a matrix `(..., nv, nv)` with zeros in some rows."""
    kept = np.ones(matrix.shape[-1])
    kept[idle] = 0.0
    return matrix * kept[:, None]


@takes_robot
@needs_dynamics
def forward_dynamics_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> ForwardDerivatives:
    """Return ∂v̇/∂q, ∂v̇/∂v and ∂v̇/∂τ of `forward_dynamics`.

    ∂v̇/∂q = -H⁻¹ ∂τ/∂q and ∂v̇/∂v = -H⁻¹ ∂τ/∂v, with the derivatives of inverse dynamics at that
    v̇. With active constraints M δv̇ - Gᵀδλ and G δv̇ follow from the derivatives of the equations
    of motion; equations that depend on others at q are left out, and stay so.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`;
            they move with the body.
    """
    q, v, tau, w = checked_arguments(robot, q, v, tau, wrenches, "tau")
    if is_symbolic(q) or is_symbolic(v):
        refuse_undefined(robot)
    if robot.nv == 0:
        return ForwardDerivatives(*[np.zeros((*q.shape[:-1], 0, 0))] * 3)
    if active_constraints(robot):
        closed = constrained_derivatives.forward(robot, q, v, tau, w)
        return ForwardDerivatives(*map(finite_result, closed))
    tree = tree_at(robot, q, v)
    size = mass_matrix_scale(tree)
    L, d = factors = linear.ltdl(tree.matrix(mass_blocks(tree)), size)
    sped, dv_base = without_free_base(speed_changes(tree))
    dv = tree.matrix(responses(tree, sped))
    at_rest = accelerations_of(robot, tree.links, q, v, 0.0 * v)
    forces = tau - required_forces(tree, at_rest, w)
    vdot = waypoint(linear.ltdl_solve(factors, forces[..., None], size)[..., 0])
    A = accelerations_of(robot, tree.links, q, v, vdot)
    moved, dq_base = without_free_base(displacement_changes(tree, q, v, vdot, A, w))
    dq = tree.matrix(responses(tree, moved))
    return ForwardDerivatives(
        finite_result(linear.ltdl_solve((L, -d), dq, size) - tree.matrix(dq_base)),
        finite_result(linear.ltdl_solve((L, -d), dv, size) - tree.matrix(dv_base)),
        finite_result(linear.ltdl_inverse(factors, size)),
    )


@takes_robot
@needs_dynamics
def constraint_multiplier_derivatives(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> MultiplierDerivatives:
    """Return ∂λ/∂q, ∂λ/∂v and ∂λ/∂τ of `constraint_multipliers`, `(..., m, nv)` each.

    Where constraints depend on each other, along motions that keep them so: then λ, of the smallest
    norm, has a derivative.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`;
            they move with the body.
    """
    q, v, tau, w = checked_arguments(robot, q, v, tau, wrenches, "tau")
    if is_symbolic(q) or is_symbolic(v):
        refuse_undefined(robot)
    if robot.nv == 0 or not active_constraints(robot):
        m = constraint_residual(robot, q).shape[-1]
        return MultiplierDerivatives(*[np.zeros((*q.shape[:-1], m, robot.nv))] * 3)
    found = constrained_derivatives.multipliers(robot, q, v, tau, w)
    return MultiplierDerivatives(*map(finite_result, found))
