"""Projection of configurations and velocities onto the constraints, and the impulse of a capture.

Corrections are along M⁻¹Gᵀ, the motions that the constraints' own forces cause. Therefore they do
not change the momentum of a free-floating robot, and are the smallest ones in the metric of the
mass matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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
from remora.dynamics.joint_arrays import LoadedState, batch_shape, gather, with_batch
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


@takes_robot
@needs_dynamics
def constraint_projector(robot: Robot, q: ArrayLike) -> Array:
    """Return P = 1 - M⁻¹Gᵀ (G M⁻¹ Gᵀ)⁺ G `(..., nv, nv)`: onto the motions that constraints allow.

    P v is `project_velocity` of v; PᵀMP is the mass matrix on the constraint manifold, J P a
    Jacobian on it, and P M⁻¹ the derivative of `forward_dynamics` by tau. Its rank is the number of
    degrees of freedom that remain.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    return vector.transpose(project_velocity(robot, q[..., None, :], np.eye(robot.nv)))


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
    change, lam, _, twice = held_impulse(robot, q, v)
    return ConstraintImpulse(
        with_batch(v + change, batch, 1), with_batch(lam, batch, 1),
        with_batch(asarray(0.5 * twice), batch, 0),
    )  # fmt: skip


def held_impulse(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...] = (), wanted: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return what the impulse of the active constraints changes while joints are held.

    As `constraint_impulse`, but held joints transmit the impulse rigidly and keep their speeds.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity before, `(..., nv)`.
        held: names of joints that are prescribed or locked.
        wanted: G v after the impulse, `(..., m)`; None: zero.

    Returns:
        Change of velocity `(..., nv)`; multipliers `(..., m)`, N s or N m s; the rows' part of G v
        that held joints prescribe and no impulse can remove, `(..., m)`; λᵀ G M⁻¹ Gᵀ λ `(...)`.
    """
    batch = batch_shape(q, v)
    rows, motion = row_response(robot, q, held)
    slip = vector.apply(constraint_jacobian(robot, q), v)
    slip = slip if wanted is None else slip - wanted
    x, mu, misfit = orthogonal.minimum_norm(rows, -slip)
    lam = orthogonal.smallest_multipliers(rows.R, rows.kept, mu)
    twice = asarray(vector.dot(rows.w * x, x)[..., 0])
    return (with_batch(motion(x), batch, 1), with_batch(lam, batch, 1),
            with_batch(misfit, batch, 1), with_batch(twice, batch, 0))  # fmt: skip


def row_response(
    robot: Robot, q: Array, held: Collection[str] = ()
) -> tuple[Orthogonal | SemiNormal, Motion]:
    """Return the orthogonalized rows of G in the metric of M⁻¹, and the map x -> M⁻¹Gᵀλ.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        held: names of joints that do not yield.
    """
    rest = np.zeros(robot.nv)
    rigid = {robot.joint_index(name): rest[robot.joints[name].v] for name in held}
    if any(joint.mimic is not None for joint in robot.joints):
        dense = dense_loops.response(robot, q, rigid)
        return dense.rows, dense.motion
    with np.errstate(invalid="ignore"):  # CasADi folds 0 · inf where forces are not needed
        of = articulated_loops.response(robot, LoadedState(q, rest, rest, None, rigid))
    batch = batch_shape(q)
    return of.rows, lambda x: gather(robot, of.motion(x)[0], batch)
