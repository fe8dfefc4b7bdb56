"""Dynamics with the translation of the centre of mass decoupled from the rest [FPG11, eq. 15].

With the velocity w = [ω, ċ, q̇], ċ that of the centre of mass of the whole robot in inertial axes,
the mass matrix of a free robot has two diagonal blocks, m 1 for ċ and M_s for the rest s = [ω, q̇]:

    M_s = M_ss - M_sv M_vs / m.

M_s does not depend on the pose of the base, so it is the mass matrix of a robot on SO(3) with
C_s = Ṁ_s - ½ ∂(M_s s)/∂q + B(M_s s) [FPG11, eq. 30]. A robot pinned at its base frame, as in
FPG11's eqs. 27 and 28, has a different one. The equivalent manipulator has M_s.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import quaternion, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, constant
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.lagrangian.lagrange_equations import (
    bracket_of,
    mass_matrix_of,
    mass_matrix_rate_of,
    momentum_partials_of,
)
from remora.dynamics.lagrangian.link_jacobians import Links, links_of
from remora.dynamics.refusals import needs_dynamics, require_free_base
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

_TRAVEL = slice(3, 6)


@takes_robot
@needs_dynamics
def separated_velocity(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return w = [ω, ċ, q̇] `(..., nv)`: v with the centre of mass's velocity in inertial axes.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    require_free_base(robot)
    q, v = configuration(robot, q), velocity(robot, v)
    batch = batch_shape(q, v)
    M = mass_matrix_of(robot, q)
    mean = vector.apply(M[..., _TRAVEL, :], v) / asarray(robot.mass)[..., None]
    attitude = joints.relative_pose(robot.joints[0], q)[..., :4]
    parts = [v[..., :3], quaternion.rotate(attitude, mean), v[..., 6:]]
    return with_batch(concatenate(parts), batch, trailing=1)


@takes_robot
@needs_dynamics
def separated_mass_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Return M of the kinetic energy ½ wᵀ M w, w = [ω, ċ, q̇], `(..., nv, nv)` [FPG11, eq. 15].

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
    """
    require_free_base(robot)
    q = configuration(robot, q)
    M = mass_matrix_of(robot, q)
    W = _spread(robot, M)
    rest = vector.transpose(W) @ M @ W
    travel = asarray(robot.mass)[..., None, None] * constant(np.eye(3), like=rest)
    return _with_travel(rest, travel)


@takes_robot
@needs_dynamics
def separated_coriolis_matrix(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return C `(..., nv, nv)` of M ẇ + C w = f, w = [ω, ċ, q̇]; the rows of ċ are zero.

    The forces f are the moments about the centre of mass in body axes, the forces in inertial axes,
    and the joints' own.

    Args:
        robot: a robot with a free base.
        q: configuration, `(..., nq)`.
        v: velocity of the robot, `(..., nv)`; its translation has no effect.
    """
    require_free_base(robot)
    q, v = configuration(robot, q), velocity(robot, v)
    links = links_of(robot, q)
    return with_batch(_coriolis(robot, q, v, links), batch_shape(q, v), trailing=2)


def _coriolis(robot: Robot, q: Array, v: Array, links: Links) -> Array:
    M = mass_matrix_of(robot, q, links)
    W = _spread(robot, M)
    Wt = vector.transpose(W)
    s = concatenate([v[..., :3], v[..., 6:]])
    still = vector.apply(W, s)  # velocity with the centre of mass at rest
    rate = Wt @ mass_matrix_rate_of(robot, q, still, links) @ W
    D = momentum_partials_of(robot, q, still, links)
    D = _rows(D) @ W
    p = vector.apply(M, still)  # its linear part is zero
    B = bracket_of(robot, p)
    B = vector.transpose(_rows(vector.transpose(_rows(B))))
    return _with_travel(rate - 0.5 * D + B, np.zeros((3, 3)))


def _spread(robot: Robot, M: Array) -> Array:
    """Return W `(..., nv, nv - 3)` with v = W [ω, q̇] while the centre of mass is at rest."""
    lever = _rows(vector.transpose(M[..., _TRAVEL, :]))
    lever = -vector.transpose(lever) / asarray(robot.mass)[..., None, None]
    one = np.eye(robot.nv - 3)
    return concatenate([one[:3], lever, one[3:]], trailing=2)


def _rows(A: Array) -> Array:
    """Return A without the rows of the base's translation."""
    return concatenate([A[..., :3, :], A[..., 6:, :]], trailing=2)


def _with_travel(rest: Array, travel: Array) -> Array:
    """Return the blocks of [ω, q̇] and of ċ in one matrix, ordered [ω, ċ, q̇]."""
    n = rest.shape[-1] - 3
    wide = concatenate([rest[..., :3], np.zeros((n + 3, 3)), rest[..., 3:]])
    middle = concatenate([np.zeros((3, 3)), travel, np.zeros((3, n))])
    return concatenate([wide[..., :3, :], middle, wide[..., 3:, :]], trailing=2)
