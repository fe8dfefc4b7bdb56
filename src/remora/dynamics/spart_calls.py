"""The calls of the toolkit SPART, in its conventions, for scripts that are ported line by line.

Twists are [ω, ṙ] and wrenches [torque, force], in inertial axes, of the links' frames L_i: the
`<inertial>` frames of the file (`Body.inertial_placement`). The base has u_0 = [ω in the axes of
L_0, ṙ_0 in inertial axes] and τ_0 likewise. Links are the robot's bodies: 0 is the base, and the
link i of SPART is body i of a robot that was loaded with `merge_fixed=False`. `state` turns SPART's
state into q and v, which the functions take; gravity is that of the robot, on top of the wrenches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, stack
from remora.dynamics.floating import floating_inverse_dynamics
from remora.dynamics.formulations import forward_dynamics, inverse_dynamics
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.kinematics import frame_twist, poses
from remora.dynamics.kinematics import jacobian as _jacobian
from remora.dynamics.recursive.composite_rigid_body import composite_inertias
from remora.dynamics.refusals import needs_dynamics
from remora.dynamics.spart import joint_axes
from remora.model.layouts.libraries import spart as spart_layout
from remora.model.numbers import finite
from remora.model.robot import Frame, Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot

_T, _apply, _cross = vector.transpose, vector.apply, vector.cross


class Kinematics(NamedTuple):
    """Poses of joints and links; joint i, without the base, carries link i [SPART17, eqs. 2-8].

    Attributes:
        RJ: axes of the joint frames J_i before they move, `(..., n, 3, 3)`.
        RL: axes of the link frames L_i, `(..., n, 3, 3)`.
        rJ: origins of the joint frames, `(..., n, 3)`.
        rL: origins of the link frames, `(..., n, 3)`.
        e: axes of the joints, zero where a joint is fixed, `(..., n, 3)`.
        g: rL - rJ, `(..., n, 3)`.
    """

    RJ: Array
    RL: Array
    rJ: Array
    rL: Array
    e: Array
    g: Array


@takes_robot
def state(
    robot: Robot, R0: ArrayLike, r0: ArrayLike, qm: ArrayLike, u0: ArrayLike, um: ArrayLike
) -> tuple[Array, Array]:
    """Return q and v of SPART's R0, r0, qm, u0, um; see `rm.layouts.spart` for the way back.

    Args:
        robot: the robot, on a free base, with revolute and prismatic joints.
        R0: axes of the base's inertial frame in the inertial frame, `(..., 3, 3)`.
        r0: its origin, `(..., 3)`, m.
        qm: joint coordinates, `(..., n)`.
        u0: [ω in the axes of L_0, ṙ_0 in inertial axes], `(..., 6)`.
        um: joint speeds, `(..., n)`.
    """
    layout = spart_layout(robot)
    r = pose.from_rotation_matrix(finite("R0", R0, 3, 3))[..., :4]
    xyzw = concatenate([r[..., 1:], r[..., :1]])
    q = layout.q_from(concatenate([finite("r0", r0, 3), xyzw, asarray(qm)]))
    return q, layout.v_from(q, concatenate([finite("u0", u0, 6), asarray(um)]))


@takes_robot
def kinematics(robot: Robot, q: ArrayLike) -> Kinematics:
    """Return RJ, RL, rJ, rL, e and g: SPART's `Kinematics` [SPART17, eqs. 2-8].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    x, n = poses(robot, q), len(robot.joints) - 1
    J = _stacked([_joint_frame(robot, x, i) for i in range(1, n + 1)], q, 8)
    L = _stacked([_link_frame(robot, x, i) for i in range(1, n + 1)], q, 8)
    rJ, rL = pose.translation(J), pose.translation(L)
    rotations = pose.to_rotation_matrix(J), pose.to_rotation_matrix(L)
    return Kinematics(*rotations, rJ, rL, joint_axes(robot, q), rL - rJ)


@takes_robot
def velocities(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return t_0 `(..., 6)` and t_L `(..., n, 6)`: SPART's `Velocities` [SPART17, eqs. 10, 11, 21].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    twists = [
        frame_twist(robot, q, v, Frame("L", i, body.inertial_placement), axes="world")
        for i, body in enumerate(robot.bodies)
    ]
    return twists[0], _stacked(twists[1:], q, 6)


@takes_robot
def jacobians(robot: Robot, q: ArrayLike, point: ArrayLike, link: str | int) -> tuple[Array, Array]:
    """Return J_0 `(..., 6, 6)` and J_m `(..., 6, n)` of a point: SPART's `Jacob`.

    t_x = J_0 u_0 + J_m u_m, [ω, ẋ] in inertial axes [SPART17, eqs. 25-28].

    Args:
        robot: the robot, on a free base.
        q: configuration, `(..., nq)`.
        point: of the link, in inertial axes, `(..., 3)`, m.
        link: the link, by name or index; 0 is the base.
    """
    q, p = configuration(robot, q), finite("point", point, 3)
    x = poses(robot, q)
    i = robot.body_index(link)
    local = pose.transform_point(dual_quaternion.conjugate(x[..., i, :]), p)
    frame = Frame("point", i, pose.from_translation(local))
    J = _jacobian(robot, q, frame, axes="world")
    base = _link_frame(robot, x, 0)
    R0, lever = pose.to_rotation_matrix(base), pose.translation(base) - p
    turned = vector.skew(lever) @ R0
    top = concatenate([R0, np.zeros((3, 3))])
    J0 = concatenate([top, concatenate([turned, np.eye(3)])], trailing=2)
    batch = batch_shape(q, p)
    return with_batch(J0, batch, trailing=2), with_batch(J[..., 6:], batch, trailing=2)


@takes_robot
@needs_dynamics
def composite_body_masses(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Return M̃_0 `(..., 6, 6)` and M̃_m `(..., n, 6, 6)`: SPART's `MCB`.

    M̃_i = M_i + Σ B_ji^T M̃_j B_ji over the links j on link i: the mass matrix of all that link i
    carries, on twists [ω, ṙ] of L_i in inertial axes.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    x = poses(robot, q)
    masses: list[Array] = []
    for i, M in enumerate(composite_inertias(robot, q)):
        body = x[..., i, :]
        lever = pose.translation(body) - pose.translation(_link_frame(robot, x, i))
        X = screw.transform(pose.from_parts(body[..., :4], lever))
        A = screw.inertia_matrix(screw.transform_inertia(X, M))  # to [P, L]
        masses.append(concatenate([A[..., 3:, :], A[..., :3, :]], trailing=2))
    return masses[0], _stacked(masses[1:], q, 6, 6)


@takes_robot
def flying_forward_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau0: ArrayLike,
    taum: ArrayLike,
    wF0: ArrayLike | None = None,
    wFm: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return u̇_0 `(..., 6)` and u̇_m `(..., n)`: SPART's `FD` [SPART17, section 2.2, eq. 38].

    Args:
        robot: the robot, on a free base, with revolute and prismatic joints.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau0: [torque in the axes of L_0, force in inertial axes] on the base, `(..., 6)`.
        taum: joint forces, `(..., n)`.
        wF0: external wrench on the base, `(..., 6)`.
        wFm: external wrenches on the links, `(..., n, 6)`; SPART's columns are rows.
    """
    layout = spart_layout(robot)
    tau = layout.tau_from(q, _joined("tau0", tau0, "taum", taum))
    vdot = forward_dynamics(robot, q, v, tau, _wrenches(robot, q, wF0, wFm))
    return _parted(layout.vdot_to(q, v, vdot))


@takes_robot
def flying_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    u0dot: ArrayLike,
    umdot: ArrayLike,
    wF0: ArrayLike | None = None,
    wFm: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return τ_0 `(..., 6)` and τ_m `(..., n)`: SPART's `ID` [SPART17, section 2.2, eq. 38].

    Args:
        robot: the robot, on a free base, with revolute and prismatic joints.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        u0dot: u̇_0, `(..., 6)`.
        umdot: u̇_m, `(..., n)`.
        wF0: external wrench on the base, `(..., 6)`.
        wFm: external wrenches on the links, `(..., n, 6)`.
    """
    layout = spart_layout(robot)
    vdot = layout.vdot_from(q, v, _joined("u0dot", u0dot, "umdot", umdot))
    tau = inverse_dynamics(robot, q, v, vdot, _wrenches(robot, q, wF0, wFm))
    return _parted(layout.tau_to(q, tau))


@takes_robot
def floating_base_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    umdot: ArrayLike,
    wF0: ArrayLike | None = None,
    wFm: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return τ_m `(..., n)` and u̇_0 `(..., 6)` with τ_0 = 0: SPART's `Floating_ID`.

    Args:
        robot: the robot, on a free base, with revolute and prismatic joints.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        umdot: u̇_m, `(..., n)`.
        wF0: external wrench on the base, `(..., 6)`.
        wFm: external wrenches on the links, `(..., n, 6)`.
    """
    layout = spart_layout(robot)
    taum, base = floating_inverse_dynamics(robot, q, v, umdot, _wrenches(robot, q, wF0, wFm))
    umdot = with_batch(finite("umdot", umdot), base.shape[:-1], trailing=1)
    return taum, layout.vdot_to(q, v, concatenate([base, umdot]))[..., :6]


def _joint_frame(robot: Robot, x: Array, i: int) -> Array:
    """Return J_i in the inertial frame, `(..., 8)`."""
    joint = robot.joints[i]
    return dual_quaternion.mul(x[..., joint.parent, :], joint.placement)


def _link_frame(robot: Robot, x: Array, i: int) -> Array:
    """Return L_i in the inertial frame, `(..., 8)`."""
    return dual_quaternion.mul(x[..., i, :], robot.bodies[i].inertial_placement)


def _stacked(rows: list[Array], q: Array, *shape: int) -> Array:
    joined = stack(rows, axis=-len(shape) - 1) if rows else np.zeros((0, *shape))
    return with_batch(joined, q.shape[:-1], trailing=len(shape) + 1)


def _joined(base_name: str, base: ArrayLike, rest_name: str, rest: ArrayLike) -> Array:
    a, b = finite(base_name, base, 6), finite(rest_name, rest)
    return concatenate([a, b])


def _parted(x: Array) -> tuple[Array, Array]:
    return x[..., :6], x[..., 6:]


def _wrenches(
    robot: Robot, q: ArrayLike, wF0: ArrayLike | None, wFm: ArrayLike | None
) -> Array | None:
    """Return wrenches [f, τ] on the bodies about their origins, from SPART's on the links."""
    if wF0 is None and wFm is None:
        return None
    n = len(robot.bodies) - 1
    on_base = np.zeros((1, 6)) if wF0 is None else finite("wF0", wF0, 6)[..., None, :]
    on_links = np.zeros((n, 6)) if wFm is None else finite("wFm", wFm, n, 6)
    w = concatenate([on_base, on_links], trailing=2)
    R = pose.to_rotation_matrix(poses(robot, configuration(robot, q)))
    torque, force = _apply(_T(R), w[..., :3]), _apply(_T(R), w[..., 3:])
    lever = stack([pose.translation(b.inertial_placement) for b in robot.bodies], axis=-2)
    return concatenate([force, torque + _cross(lever, force)])
