"""Projection of the end of an integration step onto the constraints, without changing momentum.

The integrator satisfies G v̇ = γ, so position and velocity drift off the constraints by the error of
a step. After each step one Newton step of q and one of v along M⁻¹Gᵀ remove that drift. Both are
motions that internal forces cause, so they have no momentum; but v is kept while q moves, which
changes the momentum by the drift times v. A rigid motion of the whole robot restores it. There is
no gain to choose.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from remora.algebra import linear, orthogonal, screw, vector
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.dynamics.constraints.loop_kinematics import (
    active_constraints,
    constraint_jacobian,
    constraint_residual,
)
from remora.dynamics.constraints.projection import row_response
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import poses
from remora.dynamics.momentum import center_of_mass, locked_inertia, momentum
from remora.model import joints
from remora.model.constraint import GEAR
from remora.model.robot import Robot
from remora.model.state import integrate


def step_projection(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...] = ()
) -> tuple[Array, Array]:
    """Return the changes of a state that put it onto the active constraints, `(..., nv)` each.

    dq = -M⁻¹Gᵀ(G M⁻¹Gᵀ)⁺ φ at q, then dv likewise from G v at integrate(q, dq). Held joints do not
    move. What is left is of second order in the drift.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        held: names of joints that are prescribed or locked.
    """
    batch = batch_shape(q, v)
    rows, motion = row_response(robot, q, held)
    dq = motion(orthogonal.minimum_norm(rows, -constraint_residual(robot, q))[0])
    after = integrate(robot, q, dq)
    shift = _restored(robot, q, after, v) if conserves_momentum(robot, held) else np.zeros(robot.nv)
    slip = vector.apply(constraint_jacobian(robot, after), v + shift)
    # the metric of q serves at the new configuration, too: the difference is of second order
    dv = shift + motion(orthogonal.minimum_norm(rows, -slip)[0])
    return with_batch(dq, batch, 1), with_batch(dv, batch, 1)


class StartCorrection(NamedTuple):
    """How a state violates the active constraints, and what puts it onto them.

    Attributes:
        residual: φ(q), `(..., m)`, m or rad.
        slip: G v, `(..., m)`, m/s or rad/s.
        q: configuration after one Newton step, `(..., nq)`.
        dq: that step, `(..., nv)`.
        v: velocity without its part that the constraints at the given q forbid, `(..., nv)`.
        misfit: what of G v no impulse can remove, `(..., m)`.
    """

    residual: Array
    slip: Array
    q: Array
    dq: Array
    v: Array
    misfit: Array


def start_correction(
    robot: Robot, q: Array, v: Array, held: tuple[str, ...] = ()
) -> StartCorrection:
    """Return how a state violates the active constraints, and one Newton step onto them.

    Corrections are along M⁻¹Gᵀ, see `step_projection`; that of v is at q itself.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        held: names of joints that are prescribed or locked.
    """
    batch = batch_shape(q, v)
    rows, motion = row_response(robot, q, held)
    residual = constraint_residual(robot, q)
    dq = motion(orthogonal.minimum_norm(rows, -residual)[0])
    slip = vector.apply(constraint_jacobian(robot, q), v)
    x, _, misfit = orthogonal.minimum_norm(rows, -slip)
    return StartCorrection(
        with_batch(residual, batch, 1), with_batch(slip, batch, 1),
        with_batch(integrate(robot, q, dq), batch, 1), with_batch(dq, batch, 1),
        with_batch(v + motion(x), batch, 1), with_batch(misfit, batch, 1),
    )  # fmt: skip


def conserves_momentum(robot: Robot, held: Collection[str] = ()) -> bool:
    """Return whether forces of joints and constraints cannot change the momentum of a robot.

    All trees must float freely, and no active constraint may act on the inertial frame. A rotor of
    a free base would resist its motion relative to the inertial frame.
    """
    roots = [joint for joint in robot.joints if joint.parent < 0]
    if any(j.kind != "free" or j.name in held or joints.has_rotor(j) for j in roots):
        return False
    return all(
        c.kind == GEAR or (c.parent >= 0 and c.child >= 0) for c in active_constraints(robot)
    )


def _restored(robot: Robot, before: Array, after: Array, v: Array) -> Array:
    """Return the rigid motion `(..., nv)` with which v has the momentum after that it had before.

    The same twist of all trees: Δv = M⁻¹Aᵀ(A M⁻¹Aᵀ)⁻¹ Δh, with A the momentum matrix.
    """
    lost = momentum(robot, before, v) - momentum(robot, after, v)
    c = center_of_mass(robot, after)
    P, L = lost[..., :3], lost[..., 3:] - vector.cross(c, lost[..., :3])
    omega = linear.solve(locked_inertia(robot, after), L[..., None])[..., 0]
    twist = concatenate([omega, P / asarray(robot.mass)[..., None] + vector.cross(c, omega)])
    x = poses(robot, after)
    parts: list[Array] = []
    for i, joint in enumerate(robot.joints):
        if joint.mimic is not None:
            continue
        if joint.parent < 0:
            parts.append(screw.adjoint_inverse(x[..., i, :], twist))
        else:
            parts.append(np.zeros_like(v[..., joint.v]))
    return concatenate(parts)
