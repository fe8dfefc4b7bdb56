"""Joint velocities and accelerations from body twists, by the incidence matrix [VT18, 3.2].

VT18 integrate every body's twist as a state. A joint's motion is then the difference of the twists
on its two sides. VT18's joint frame i is our body frame.
"""

from __future__ import annotations

from remora.algebra import linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.dynamics.joint_arrays import batch_shape
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Robot
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
