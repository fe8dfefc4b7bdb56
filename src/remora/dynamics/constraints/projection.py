"""Projection of configurations and velocities onto the constraints, and the impulse of a capture.

Corrections are along M⁻¹Gᵀ, the motions that the constraints' own forces cause. Therefore they do
not change the momentum of a free-floating robot, and are the smallest ones in the metric of the
mass matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import orthogonal, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.algebra.orthogonal import Orthogonal, SemiNormal
from remora.dynamics.constraints import articulated_loops, dense_loops
from remora.dynamics.constraints.loop_kinematics import (
    active_constraints,
    constraint_jacobian,
    constraint_residual,
)
from remora.dynamics.joint_arrays import batch_shape, gather, with_batch
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_of
from remora.dynamics.refusals import needs_dynamics
from remora.model.robot import Robot
from remora.model.state import configuration, integrate, velocity
from remora.model.takes_robot import takes_robot

Motion = Callable[[Array], Array]


class ConstraintImpulse(NamedTuple):
    """The velocity after constraints act at once, and the impulse that they transmit.

    Attributes:
        v: velocity after, `(..., nv)`.
        impulse: multipliers λ of the active constraints, `(..., m)`, N s or N m s: M Δv = Gᵀλ.
        energy_loss: kinetic energy lost, `(...)`, J: ½ Δvᵀ M Δv.
    """

    v: Array
    impulse: Array
    energy_loss: Array


@takes_robot
@needs_dynamics
def project_configuration(robot: Robot, q: ArrayLike) -> Array:
    """Return q after one Newton step towards φ(q) = 0, `(..., nq)`.

    q ⊕ dq with dq = -M⁻¹Gᵀ (G M⁻¹ Gᵀ)⁺ φ: the smallest dqᵀ M dq with G dq = -φ. What is left is
    of second order in φ; `close_loops` iterates.

    Args:
        robot: the robot; without active constraints q is returned.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    if not active_constraints(robot):
        return q
    rows, motion = row_response(robot, q)
    x = orthogonal.minimum_norm(rows, -constraint_residual(robot, q))[0]
    return integrate(robot, q, motion(x))


@takes_robot
@needs_dynamics
def project_velocity(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return v - M⁻¹Gᵀ (G M⁻¹ Gᵀ)⁺ G v `(..., nv)`: the closest velocity with G v = 0.

    Args:
        robot: the robot; without active constraints v is returned.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    batch = batch_shape(q, v)
    if not active_constraints(robot):
        return with_batch(v, batch, trailing=1)
    rows, motion = row_response(robot, q)
    x = orthogonal.minimum_norm(rows, -vector.apply(constraint_jacobian(robot, q), v))[0]
    return with_batch(v + motion(x), batch, trailing=1)


def closing_momentum(robot: Robot, q: ArrayLike, gap: ArrayLike) -> Array:
    """Return Δp = -Gᵀ (G M⁻¹ Gᵀ)⁺ gap `(..., nv)`: changes the rate of φ by -gap.

    Args:
        robot: the robot, with active constraints.
        q: configuration, `(..., nq)`.
        gap: rate of φ to remove, `(..., m)`.
    """
    q = configuration(robot, q)
    rows, motion = row_response(robot, q)
    x = orthogonal.minimum_norm(rows, -asarray(gap))[0]
    return vector.apply(mass_matrix_of(robot, q), motion(x))


@takes_robot
@needs_dynamics
def constraint_impulse(robot: Robot, q: ArrayLike, v: ArrayLike) -> ConstraintImpulse:
    """Return what happens when the active constraints start to act on a moving robot.

    The relative velocity that they forbid is removed by the impulse λ that they transmit,
    λ = -(G M⁻¹ Gᵀ)⁺ G v and M Δv = Gᵀλ: a rigid capture. Momentum is conserved, and the kinetic
    energy falls by ½ Δvᵀ M Δv. Of dependent constraints the impulse of smallest Euclidean norm in
    SI units is returned.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity before, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    batch = batch_shape(q, v)
    if not active_constraints(robot):
        zero = np.zeros(batch)
        return ConstraintImpulse(with_batch(v, batch, 1), np.zeros((*batch, 0)), zero)
    rows, motion = row_response(robot, q)
    Gv = vector.apply(constraint_jacobian(robot, q), v)
    x, mu, _ = orthogonal.minimum_norm(rows, -Gv)
    loss = asarray((0.5 * vector.dot(rows.w * x, x))[..., 0])  # ½ λᵀ G M⁻¹ Gᵀ λ
    lam = orthogonal.smallest_multipliers(rows.R, rows.kept, mu)
    return ConstraintImpulse(
        with_batch(v + motion(x), batch, 1), with_batch(lam, batch, 1), with_batch(loss, batch, 0)
    )


def row_response(
    robot: Robot, q: Array, prescribed: Mapping[int, Array] | None = None
) -> tuple[Orthogonal | SemiNormal, Motion]:
    """Return the orthogonalized rows of G in the metric of M⁻¹, and the map x -> M⁻¹Gᵀλ.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        prescribed: joints that do not yield, by index, with zeros `(nv_i,)`.
    """
    held = prescribed or {}
    if any(joint.mimic is not None for joint in robot.joints):
        dense = dense_loops.response(robot, q, held)
        return dense.rows, dense.motion
    rest = np.zeros(robot.nv)
    with np.errstate(invalid="ignore"):  # CasADi folds 0 · inf where forces are not needed
        of = articulated_loops.response(robot, q, rest, rest, None, held)
    batch = batch_shape(q)
    return of.rows, lambda x: gather(robot, of.motion(x)[0], batch)
