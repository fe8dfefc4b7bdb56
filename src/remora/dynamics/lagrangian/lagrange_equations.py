"""Lagrange's equations on the robot's configuration manifold: M v̇ + C v = τ [FPG11, eqs. 6, 20].

The base needs no coordinates other than its pose, which only gravity uses. There is no singularity.
"""

from __future__ import annotations

from remora.algebra import vector
from remora.algebra.array_ops import Array, is_symbolic
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.lagrangian.link_jacobians import Links, links_of
from remora.dynamics.lagrangian.matrices import (
    applied_force_of,
    bracket_of,
    mass_matrix_of,
    momentum_partials_of,
)
from remora.dynamics.prescribed_solve import solve_prescribed
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_size
from remora.model.robot import Robot


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
    """Return vdot and tau with prescribed accelerations of some joints [FPG11, eq. 11]."""
    q, v, tau, wrenches, prescribed = state
    if robot.nv == 0:
        return 0.0 * v, 0.0 * tau
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    bias = velocity_force(robot, q, v, M, links) - applied_force_of(robot, q, wrenches, links)
    size = None if is_symbolic(M) else mass_matrix_size(robot, q)
    return solve_prescribed(robot, M, bias, tau, prescribed, size)


def inverse(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return the generalized forces M v̇ + C v less those of gravity and wrenches, `(..., nv)`."""
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    bias = velocity_force(robot, q, v, M, links) - applied_force_of(robot, q, wrenches, links)
    return vector.apply(M, vdot) + bias


def velocity_force(robot: Robot, q: Array, v: Array, M: Array, links: Links) -> Array:
    """Return C v `(..., nv)` without forming C: Ṁv = Dᵀv, so C v = Dᵀv - ½ D v + B(Mv) v."""
    D = momentum_partials_of(robot, q, v, links)
    turned = vector.apply(bracket_of(robot, vector.apply(M, v)), v)
    return vector.apply(vector.transpose(D), v) - 0.5 * vector.apply(D, v) + turned
