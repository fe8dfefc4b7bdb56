"""The reduced model of a free-floating robot: joint dynamics for any momentum [FPG11, 18-32].

There are no external loads, and the base is not actuated. The momentum [linear, angular] about the
inertial origin is then constant. With p the momentum about the base's origin, in its axes, ordered
as its twist V, the base's motion follows from the joints' [FPG11, eq. 19]:

    V = M_VV⁻¹ p - N q̇,    N = M_VV⁻¹ M_Vq.

Substituted into Lagrange's equations, this leaves one equation per joint speed (Routh reduction):

    M_r q̈ + C_r q̇ + e = τ,    M_r = M_qq - M_qV N [FPG11, eq. 31].

C_r of FPG11 (eqs. 18, 32) is for zero momentum. Nonzero momentum adds to it a skew-symmetric
matrix, the curvature of the connection N paired with p, and a force e that does not vanish at rest:

    C_r = Ṁ_r - ½ ∂(M_r q̇)/∂q + B(M_r q̇) + Γ,
    Γ_kl = p·(∂N_k/∂q_l - ∂N_l/∂q_k + N_k × N_l) + B(Nᵀp)_kl,
    e_k = ½ ∂(pᵀ M_VV⁻¹ p)/∂q_k + p·((M_VV⁻¹ p) × N_k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, constant
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.lagrangian.lagrange_equations import (
    bracket_of,
    mass_matrix_of,
    mass_matrix_rate_of,
    momentum_partials_of,
)
from remora.dynamics.lagrangian.link_jacobians import Links, bracket_matrix, links_of
from remora.dynamics.refusals import needs_dynamics, require_free_base
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot


class Reduction(NamedTuple):
    """The relation between base and joint velocities at one configuration.

    Attributes:
        links: all links in the base's frame.
        M: the mass matrix, `(..., nv, nv)`.
        N: the connection M_VV⁻¹ M_Vq, `(..., 6, nv - 6)`.
        W: [-N; 1], `(..., nv, nv - 6)`: the velocity per joint speed at zero momentum.
        spin: M_VV⁻¹ p, `(..., 6)`: the base's twist with locked joints; None: zero momentum.
        p: momentum about the base's origin, its axes, [angular, linear], `(..., 6)`; None: zero.
    """

    links: Links
    M: Array
    N: Array
    W: Array
    spin: Array | None
    p: Array | None


@takes_robot
@needs_dynamics
def base_velocity(
    robot: Robot, q: ArrayLike, joint_speeds: ArrayLike, momentum: ArrayLike | None = None
) -> Array:
    """Return the base's twist [ω, v] `(..., 6)` from conservation of momentum [FPG11, eq. 19].

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        joint_speeds: v without the base's, `(..., nv - 6)`.
        momentum: [linear, angular about the inertial origin], inertial axes, `(..., 6)`, as
            `rm.momentum` returns it; None: zero.
    """
    q, speeds, h = _checked(robot, q, joint_speeds, momentum)
    return _base_velocity(reduction(robot, q, h), speeds, batch_shape(q, speeds))


@takes_robot
@needs_dynamics
def reduced_mass_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Return M_r = M_qq - M_qV M_VV⁻¹ M_Vq, `(..., nv - 6, nv - 6)` [FPG11, eq. 31].

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
    """
    require_free_base(robot)
    q = configuration(robot, q)
    return _mass_matrix(reduction(robot, q, None))


@takes_robot
@needs_dynamics
def reduced_coriolis_matrix(
    robot: Robot, q: ArrayLike, joint_speeds: ArrayLike, momentum: ArrayLike | None = None
) -> Array:
    """Return C_r `(..., nv - 6, nv - 6)`: q̇ᵀ(Ṁ_r - 2C_r)q̇ = 0 [FPG11, eq. 32, for any momentum].

    With nonzero momentum, `reduced_momentum_force` acts in addition; it is nonzero for joints at
    rest and cannot be written as a matrix times q̇.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        joint_speeds: v without the base's, `(..., nv - 6)`.
        momentum: [linear, angular about the inertial origin], `(..., 6)`, inertial axes; None: 0.
    """
    q, speeds, h = _checked(robot, q, joint_speeds, momentum)
    r = reduction(robot, q, h)
    Wt = vector.transpose(r.W)
    v = vector.apply(r.W, speeds)  # at zero momentum
    rate = Wt @ mass_matrix_rate_of(robot, q, v, r.links) @ r.W
    D = momentum_partials_of(robot, q, v, r.links)[..., 6:, :] @ r.W
    C = rate - 0.5 * D + _joint_bracket(robot, vector.apply(_mass_matrix(r), speeds))
    if r.p is not None:
        C = C + _curvature(robot, q, r)
    return with_batch(C, batch_shape(q, speeds), trailing=2)


@takes_robot
@needs_dynamics
def reduced_momentum_force(robot: Robot, q: ArrayLike, momentum: ArrayLike) -> Array:
    """Return e `(..., nv - 6)` of M_r q̈ + C_r q̇ + e = τ: the force of momentum at rest.

    e_k = ½ ∂(pᵀ M_VV⁻¹ p)/∂q_k + p·((M_VV⁻¹ p) × N_k), the centrifugal forces of the spinning
    robot.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        momentum: [linear, angular about the inertial origin], inertial axes, `(..., 6)`.
    """
    require_free_base(robot)
    q = configuration(robot, q)
    h = finite("momentum", momentum, 6)
    return _momentum_force(robot, q, reduction(robot, q, h), batch_shape(q, h))


@takes_robot
@needs_dynamics
def reduced_forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    joint_speeds: ArrayLike,
    joint_forces: ArrayLike,
    momentum: ArrayLike | None = None,
) -> Array:
    """Return q̈ `(..., nv - 6)` of M_r q̈ + C_r q̇ + e = τ for an unactuated base [FPG11, eq. 18].

    Args:
        robot: a robot with a free base; its gravity is ignored.
        q: configuration, `(..., nq)`.
        joint_speeds: v without the base's, `(..., nv - 6)`.
        joint_forces: tau without the base's, `(..., nv - 6)`.
        momentum: [linear, angular about the inertial origin], `(..., 6)`, inertial axes; None: 0.
    """
    return reduced_flow(robot, q, joint_speeds, joint_forces, momentum)[1]


def reduced_flow(
    robot: Robot,
    q: ArrayLike,
    joint_speeds: ArrayLike,
    joint_forces: ArrayLike,
    momentum: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return the base's twist `(..., 6)` and the joints' accelerations `(..., nv - 6)` at once.

    The forces are computed without forming C_r: with D_km(x) = Σ_n ∂M_mn/∂q_k x_n,
    C_r q̇ + e = [-Nᵀ 1](Dᵀ(v) v - ½ D(v) v + B(Mv) v) for v = [V, q̇].

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        joint_speeds: v without the base's, `(..., nv - 6)`.
        joint_forces: tau without the base's, `(..., nv - 6)`.
        momentum: [linear, angular about the inertial origin], `(..., 6)`, inertial axes; None: 0.
    """
    q, speeds, h = _checked(robot, q, joint_speeds, momentum)
    forces = finite("joint_forces", joint_forces, robot.nv - 6)
    r = reduction(robot, q, h)
    batch = batch_shape(q, speeds, forces)
    V = _base_velocity(r, speeds, batch)
    v = concatenate([V, speeds])
    D = momentum_partials_of(robot, q, v, r.links)
    turned = vector.apply(bracket_of(robot, vector.apply(r.M, v)), v)
    bias = vector.apply(vector.transpose(D), v) - 0.5 * vector.apply(D, v) + turned
    rest = forces - vector.apply(vector.transpose(r.W), bias)
    if robot.nv == 6:
        return V, with_batch(rest, batch, trailing=1)
    found = linear.solve(_mass_matrix(r), rest[..., None])[..., 0]
    return V, with_batch(found, batch, trailing=1)


def reduction(robot: Robot, q: Array, h: Array | None) -> Reduction:
    """Return the reduction for the momentum h about the inertial origin."""
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    factors = linear.ldl(M[..., :6, :6])
    N = linear.ldl_solve(factors, M[..., :6, 6:])
    identity = constant(np.eye(robot.nv - 6), like=N)
    W = concatenate([-N, identity], trailing=2)
    if h is None:
        return Reduction(links, M, N, W, None, None)
    base = joints.relative_pose(robot.joints[0], q)
    p = dual_quaternion.swap(screw.adjoint_inverse(base, h))
    spin = linear.ldl_solve(factors, p[..., None])[..., 0]
    return Reduction(links, M, N, W, spin, p)


def _base_velocity(r: Reduction, speeds: Array, batch: tuple[int, ...]) -> Array:
    V = -vector.apply(r.N, speeds)
    return with_batch(V if r.spin is None else r.spin + V, batch, trailing=1)


def _mass_matrix(r: Reduction) -> Array:
    return linear.mirror(r.M[..., 6:, 6:] - vector.transpose(r.M[..., :6, 6:]) @ r.N)


def _curvature(robot: Robot, q: Array, r: Reduction) -> Array:
    """Return Γ `(..., nv - 6, nv - 6)`; p·∂N/∂q_l = (M_VV⁻¹ p)ᵀ (∂M/∂q_l W)_V."""
    assert r.p is not None
    slopes = _locked_partials(robot, q, r)[..., 6:, :] @ r.W
    paired = vector.transpose(r.N) @ bracket_matrix(r.p) @ r.N
    held = _joint_bracket(robot, vector.apply(vector.transpose(r.N), r.p))
    return vector.transpose(slopes) - slopes + paired + held


def _momentum_force(robot: Robot, q: Array, r: Reduction, batch: tuple[int, ...]) -> Array:
    assert r.p is not None
    assert r.spin is not None
    D = _locked_partials(robot, q, r)[..., 6:, :6]
    turned = vector.apply(vector.transpose(bracket_matrix(r.p) @ r.N), r.spin)
    return with_batch(turned - 0.5 * vector.apply(D, r.spin), batch, trailing=1)


def _locked_partials(robot: Robot, q: Array, r: Reduction) -> Array:
    """Return D(x) for x = [M_VV⁻¹ p, 0]: the robot spinning with its joints locked."""
    assert r.spin is not None
    zero = np.zeros((*r.spin.shape[:-1], robot.nv - 6))
    return momentum_partials_of(robot, q, concatenate([r.spin, zero]), r.links)


def _joint_bracket(robot: Robot, momentum: Array) -> Array:
    """Return B for a momentum of the joints alone, `(..., nv - 6) -> (..., nv - 6, nv - 6)`."""
    none = np.zeros((*momentum.shape[:-1], 6))
    return bracket_of(robot, concatenate([none, momentum]))[..., 6:, 6:]


def _checked(
    robot: Robot, q: ArrayLike, joint_speeds: ArrayLike, momentum: ArrayLike | None
) -> tuple[Array, Array, Array | None]:
    """Return the checked arguments, with one batch shape."""
    require_free_base(robot)
    q, speeds = configuration(robot, q), finite("joint_speeds", joint_speeds, robot.nv - 6)
    h = None if momentum is None else finite("momentum", momentum, 6)
    batch = batch_shape(q, speeds, *([] if h is None else [h]))
    h = None if h is None else with_batch(h, batch, 1)
    return with_batch(q, batch, 1), with_batch(speeds, batch, 1), h
