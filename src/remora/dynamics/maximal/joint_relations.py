"""Joint velocities and accelerations from body twists, by the incidence matrix [VT18, 3.2].

VT18 integrate every body's twist as a state. A joint's motion is then the difference of the twists
on its two sides. VT18's joint frame i is our body frame.

The generalized coordinates Γ of [VT18, eq. 42, Table 3] are those of q, but for spherical joints,
which have Euler angles 3-2-1 [φ, θ, ψ]: roll, pitch, yaw.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import linear, quaternion, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, is_symbolic, stack
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.lagrangian.euler_angles import SINGULAR, body_to_euler_rates
from remora.dynamics.maximal.joint_maps import constraint
from remora.dynamics.refusals import refuse_mimic_joints
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Joint, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import incidence_matrix, negatives, positives


@takes_robot
def joint_twists(robot: Robot, q: ArrayLike, twists: ArrayLike) -> Array:
    """Return each joint's dual velocity, `(..., nj, 6)`, in the frame of the body it carries.

    ω_{i/k} = ω_i - x* ω_k x with k = N(C(i, :)) the body it is mounted on [VT18, eq. 46].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        twists: of all bodies in their own frames, `(..., nb, 6)`.
    """
    q = configuration(robot, q)
    xi = finite("twists", twists, len(robot.bodies), 6)
    batch_shape(q, xi[..., 0, :])
    return stack(_across(robot, q, xi), axis=-2)


@takes_robot
def joint_speeds(robot: Robot, q: ArrayLike, twists: ArrayLike) -> Array:
    """Return v `(..., nv)` from the twists of all bodies: L_J ω_{i/k} [VT18, eq. 47].

    L is the left inverse of the motion subspace, (SᵀS)⁻¹Sᵀ.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        twists: of all bodies in their own frames, `(..., nb, 6)`.
    """
    q = configuration(robot, q)
    xi = finite("twists", twists, len(robot.bodies), 6)
    batch_shape(q, xi[..., 0, :])
    parts = [
        _coordinates_along(joints.motion_subspace(joint, q), relative)
        for joint, relative in zip(robot.joints, _across(robot, q, xi), strict=True)
        if joint.mimic is None and joints.kind(joint).nv > 0
    ]
    return concatenate(parts) if parts else xi[..., 0, :0]


@takes_robot
def joint_accelerations(
    robot: Robot, q: ArrayLike, twists: ArrayLike, accelerations: ArrayLike
) -> Array:
    """Return each joint's dual acceleration, `(..., nj, 6)` [VT18, eq. 48].

    ω̇_{i/k} = ω̇_i - x* ω̇_k x - (x* ω_k x) × ω_{i/k}.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        twists: of all bodies in their own frames, `(..., nb, 6)`.
        accelerations: rates of the twists' components, `(..., nb, 6)`.
    """
    q = configuration(robot, q)
    xi = finite("twists", twists, len(robot.bodies), 6)
    batch_shape(q, xi[..., 0, :])
    a = finite("accelerations", accelerations, len(robot.bodies), 6)
    result: list[Array] = []
    C = incidence_matrix(robot)
    velocities = _across(robot, q, xi)
    for i, difference in enumerate(_across(robot, q, a)):
        for k in negatives(C[i]):
            x = joints.relative_pose(robot.joints[i], q)
            carried = screw.adjoint_inverse(x, xi[..., k, :])
            difference = difference - screw.cross(carried, velocities[i])
        result.append(difference)
    return stack(result, axis=-2)


@takes_robot
def constraint_violation(
    robot: Robot, q: ArrayLike, v: ArrayLike, twists: ArrayLike, accelerations: ArrayLike
) -> Array:
    """Return the part of each joint's acceleration that the joint forbids, `(..., nj, 6)`.

    It is zero for every admissible motion: Λ_i (ω̇_{i/k} - Ṡ v) = 0, with Λ_i as the projection 1 -
    S L onto the complement of the motion subspace [VT18, eq. 49].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        twists: of all bodies in their own frames, `(..., nb, 6)`.
        accelerations: rates of the twists' components, `(..., nb, 6)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    relative = joint_accelerations(robot, q, twists, accelerations)
    result: list[Array] = []
    for i, joint in enumerate(robot.joints):
        S, dS = joints.motion_subspace(joint, q), joints.motion_subspace_rate(joint, q, v)
        part = relative[..., i, :]
        if dS is not None:
            part = part - vector.apply(dS, v[..., joint.v])
        if joints.kind(joint).nv > 0:
            part = part - vector.apply(S, _coordinates_along(S, part))
        result.append(part)
    return stack(result, axis=-2)


@takes_robot
def generalized_coordinates(robot: Robot, q: ArrayLike) -> Array:
    """Return Γ `(..., n)` of all joints but free ones, which are the bases [VT18, eq. 42, Table 3].

    Args:
        robot: the robot, without mimic joints.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    parts = [_coordinates(joint, q) for joint in _without_bases(robot)]
    return with_batch(concatenate([np.zeros(0), *parts]), batch_shape(q), trailing=1)


@takes_robot
def from_generalized_coordinates(robot: Robot, Gamma: ArrayLike, q: ArrayLike) -> Array:
    """Return the configuration `(..., nq)` with Γ [VT18, Table 3], and free joints as in q.

    Args:
        robot: the robot, without mimic joints.
        Gamma: generalized coordinates, `(..., n)`, as from `generalized_coordinates`.
        q: configuration, `(..., nq)`; only the coordinates of free joints matter.
    """
    q, moved = configuration(robot, q), _without_bases(robot)
    count = sum(joints.kind(joint).nv for joint in moved)
    Gamma = finite("Gamma", Gamma, count)
    parts: list[Array] = []
    start = 0
    for joint in robot.joints:
        if joints.is_free(joint):
            parts.append(q[..., joint.q])
            continue
        own = Gamma[..., start : start + joints.kind(joint).nv]
        start += joints.kind(joint).nv
        parts.append(own if joints.in_coordinates(joint) else quaternion.from_rpy(own))
    return with_batch(concatenate(parts), batch_shape(q, Gamma), trailing=1)


@takes_robot
def rate_maps(robot: Robot, q: ArrayLike) -> tuple[Array, ...]:
    """Return L_J `(..., d_j, 8)` of every joint, Γ̇_J = L_J ω_{i/k} [VT18, eq. 47, Table 6].

    Those of free joints, which are no part of Γ, map to the twist's components.

    Args:
        robot: the robot, without mimic joints.
        q: configuration, `(..., nq)`.

    Raises:
        InvalidValue: for a spherical joint at a pitch θ of ±90°, where its L is infinite.
    """
    refuse_mimic_joints(robot, "newton_euler")
    q = configuration(robot, q)
    maps: list[Array] = []
    for joint in robot.joints:
        if joints.is_free(joint) or joints.in_coordinates(joint):
            maps.append(dq.pure(constraint(joints.actuation_basis(joint, q))))
            continue
        angles = _coordinates(joint, q)
        if not is_symbolic(angles) and np.any(np.abs(np.cos(angles[..., 1])) < SINGULAR):
            raise InvalidValue(
                f"joint {joint.name!r} is at a pitch of ±90°, where the Euler angles 3-2-1 of "
                "VT18, Table 6, are singular; q has its quaternion"
            )
        L = body_to_euler_rates(angles)
        maps.append(dq.pure(concatenate([L, np.zeros_like(L)])))
    return tuple(with_batch(L, batch_shape(q), trailing=2) for L in maps)


def _without_bases(robot: Robot) -> list[Joint]:
    refuse_mimic_joints(robot, "newton_euler")
    return [joint for joint in robot.joints if not joints.is_free(joint)]


def _coordinates(joint: Joint, q: Array) -> Array:
    own = q[..., joint.q]
    return own if joints.in_coordinates(joint) else quaternion.to_rpy(own)


def _across(robot: Robot, q: Array, s: Array) -> list[Array]:
    """Return, for each joint, s of the body it carries minus s of the one it is mounted on."""
    C = incidence_matrix(robot)
    result: list[Array] = []
    for i, joint in enumerate(robot.joints):
        (distal,) = positives(C[i])
        difference = s[..., distal, :]
        for k in negatives(C[i]):
            x = joints.relative_pose(joint, q)
            difference = difference - screw.adjoint_inverse(x, s[..., k, :])
        result.append(difference)
    return result


def _coordinates_along(S: Array, s: Array) -> Array:
    """Return (SᵀS)⁻¹Sᵀ s, `(..., nv_i)`."""
    St = vector.transpose(S)
    return linear.solve(St @ S, vector.apply(St, s)[..., None])[..., 0]
