"""Centre of mass, momentum, locked inertia and energy of the whole robot."""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, pose, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray
from remora.dynamics.joint_arrays import batch_shape, columns
from remora.dynamics.kinematics import poses, twists
from remora.dynamics.recursive.composite_rigid_body import body_inertias, composite_inertias
from remora.dynamics.refusals import needs_dynamics
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot


@takes_robot
@needs_dynamics
def center_of_mass(robot: Robot, q: ArrayLike) -> Array:
    """Return the centre of mass in the inertial frame, `(..., 3)`, m [SPART17, eq. 7].

    r_c = Σ m_i r_i / Σ m_i.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    x = poses(robot, q)
    moment = sum(
        asarray(b.mass)[..., None] * pose.transform_point(x[..., i, :], b.com)
        for i, b in enumerate(robot.bodies)
    )
    return asarray(moment) / _total_mass(robot)[..., None]


@takes_robot
@needs_dynamics
def center_of_mass_jacobian(robot: Robot, q: ArrayLike) -> Array:
    """Return J `(..., 3, nv)` with the centre of mass's velocity J v, inertial axes.

    The total momentum is the total mass times that velocity.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    return momentum_matrix(robot, q)[..., :3, :] / _total_mass(robot)[..., None, None]


@takes_robot
@needs_dynamics
def momentum(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return [linear, angular about the inertial origin], inertial axes, `(..., 6)` [VT18, eq. 30].

    H = Σ x_i (M_i ⋆ ω_iˢ) x_i*.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.

    Returns:
        Linear momentum in N s, angular momentum in N m s.
    """
    x, xi = poses(robot, q), twists(robot, q, v)
    parts = [
        screw.adjoint(x[..., i, :], screw.momentum(M, xi[..., i, :]))
        for i, M in enumerate(body_inertias(robot))
    ]
    return asarray(sum(parts[1:], parts[0]))


@takes_robot
@needs_dynamics
def centroidal_momentum(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return [linear, angular about the centre of mass], inertial axes, `(..., 6)`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    return screw.shift(momentum(robot, q, v), -center_of_mass(robot, q))


@takes_robot
@needs_dynamics
def centroidal_momentum_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Return A_G `(..., 6, nv)` with centroidal_momentum(robot, q, v) = A_G v.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    A = vector.transpose(momentum_matrix(robot, q))
    return vector.transpose(screw.shift(A, -center_of_mass(robot, q)[..., None, :]))


@takes_robot
@needs_dynamics
def locked_inertia(robot: Robot, q: ArrayLike) -> Array:
    """Return the inertia of the whole robot with locked joints, about its centre of mass.

    Inertial axes, `(..., 3, 3)`, kg m². The angular momentum about the centre of mass is this
    times the mean angular velocity.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    x = poses(robot, q)
    to_center = pose.from_translation(-center_of_mass(robot, q))
    parts = [
        screw.transform_inertia(
            screw.transform(dual_quaternion.mul(to_center, x[..., i, :])), M
        ).about_origin
        for i, M in enumerate(body_inertias(robot))
    ]
    return asarray(sum(parts[1:], parts[0]))


@takes_robot
@needs_dynamics
def momentum_matrix(robot: Robot, q: ArrayLike) -> Array:
    """Return A `(..., 6, nv)` with momentum(robot, q, v) = A v.

    The block of joint j is x_j (M̃_j S_j) x_j*, M̃_j the composite inertia of joint j's subtree.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    x = poses(robot, q)
    h = momentum_per_speed(robot, q)
    blocks = {
        j: screw.columns_to_outer(screw.transform(x[..., j, :]), block) for j, block in enumerate(h)
    }
    return columns(robot, blocks, batch_shape(q))


@takes_robot
@needs_dynamics
def kinetic_energy(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return ½ Σ ω_iˢ ∘ (M_i ⋆ ω_iˢ) and the rotors' energy, ½ vᵀ H v, `(...)`, J [VT18, eq. 31].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    xi, v = twists(robot, q, v), velocity(robot, v)
    parts = [
        screw.kinetic_energy(M, xi[..., i, :])[..., None]
        for i, M in enumerate(body_inertias(robot))
    ]
    for joint in robot.joints:
        own = v[..., joint.v]
        parts.append(0.5 * vector.dot(joints.rotor_inertia(joint) * own, own))
    return asarray(sum(parts[1:], parts[0]))[..., 0]


@takes_robot
@needs_dynamics
def potential_energy(robot: Robot, q: ArrayLike) -> Array:
    """Return -m g·r_c, `(...)`, J: zero where the centre of mass is at the inertial origin.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    weight = _total_mass(robot)[..., None] * asarray(robot.gravity)
    return vector.dot(-weight, center_of_mass(robot, q))[..., 0]


def momentum_per_speed(robot: Robot, q: Array) -> list[Array]:
    """Return M̃_j S_j `(..., 6, nv_j)` for every joint, in its body's frame."""
    screws = [joints.motion_subspace(joint, q) for joint in robot.joints]
    return [
        screw.inertia_matrix(M) @ S
        for M, S in zip(composite_inertias(robot, q), screws, strict=True)
    ]


def _total_mass(robot: Robot) -> Array:
    mass = asarray(robot.mass)
    if mass.dtype != object and np.any(mass == 0.0):
        raise InvalidValue(f"robot {robot.name!r} has no mass")
    return mass
