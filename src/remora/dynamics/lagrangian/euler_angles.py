"""Lagrange's equations in Euler angles, singular at a pitch of ±90° [FPG11, eqs. 12-17].

For comparison only: no other formulation has a singularity.

Orientations of free and spherical joints are expressed as roll, pitch and yaw, positions of free
joints in the frame they are mounted in. All nv numbers χ are then generalized coordinates, and v =
T(χ) χ̇ [FPG11, eqs. 16, 17]. The equations are the standard ones:

    M_χ χ̈ + Ṁ_χ χ̇ - ½ ∂(χ̇ᵀ M_χ χ̇)/∂χ = Tᵀ τ,    M_χ = Tᵀ M T.

At a pitch of ±90° T has no inverse. Near it rounding errors grow as 1/cos² of the pitch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from remora.algebra import pose, quaternion, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, cos, is_symbolic, sin, stack
from remora.dynamics.joint_arrays import LoadedState, batch_shape, gather
from remora.dynamics.lagrangian.lagrange_equations import (
    applied_force_of,
    mass_matrix_of,
    momentum_partials_of,
)
from remora.dynamics.lagrangian.link_jacobians import links_of
from remora.dynamics.prescribed_solve import solve_prescribed
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_size, square
from remora.dynamics.refusals import needs_dynamics
from remora.errors import InvalidValue
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration, velocity

#: A pitch whose cosine is smaller than this is refused: fewer than six digits would be correct.
SINGULAR = 1e-5


def euler_coordinates(robot: Robot, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return χ and χ̇ = T⁻¹ v, both `(..., nv)`, for a state [FPG11, eq. 16].

    A spherical joint has roll, pitch, yaw; a free one these and its position in the frame it is
    mounted in, m; all others have their own coordinates.

    Raises:
        InvalidValue: at a pitch of ±90°.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    chi = _coordinates(robot, q)
    _refuse_singular(robot, chi)
    return chi, vector.apply(rate_matrix_inverse(robot, chi), v)


def euler_state(robot: Robot, chi: ArrayLike, chidot: ArrayLike) -> tuple[Array, Array]:
    """Return q `(..., nq)` and v = T χ̇ `(..., nv)` for Euler angles and their rates."""
    chi, chidot = velocity(robot, chi, "chi"), velocity(robot, chidot, "chidot")
    parts: list[Array] = []
    for joint in robot.joints:
        own = chi[..., joint.v]
        if joint.mimic is not None or own.shape[-1] == 0:
            continue
        if not joints.in_coordinates(joint):
            r = quaternion.from_rpy(own[..., :3])
            own = r if own.shape[-1] == 3 else pose.from_parts(r, own[..., 3:])
        parts.append(own)
    q = concatenate(parts) if parts else np.zeros((*chi.shape[:-1], 0))
    return q, vector.apply(rate_matrix(robot, chi), chidot)


@needs_dynamics
def euler_acceleration(robot: Robot, chi: ArrayLike, chidot: ArrayLike, tau: ArrayLike) -> Array:
    """Return χ̈ `(..., nv)` for generalized forces tau that do work on v, as everywhere.

    Args:
        robot: the robot.
        chi: Euler-angle coordinates, `(..., nv)`.
        chidot: their rates, `(..., nv)`.
        tau: generalized forces, `(..., nv)`.

    Raises:
        InvalidValue: at a pitch of ±90°.
    """
    tau = velocity(robot, tau, "tau")
    q, _ = euler_state(robot, chi, chidot)
    chi, chidot = velocity(robot, chi, "chi"), velocity(robot, chidot, "chidot")
    _refuse_singular(robot, chi)
    M, bias, _ = _equations(robot, q, chi, chidot, None)
    T = rate_matrix(robot, chi)
    return solve_prescribed(robot, M, bias, vector.apply(vector.transpose(T), tau), {})[0]


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
    """Return vdot and tau with prescribed accelerations of some joints."""
    q, v, tau, wrenches, prescribed = state
    if robot.nv == 0:
        return 0.0 * v, 0.0 * tau
    chi, chidot = euler_coordinates(robot, q, v)
    M, bias, turned = _equations(robot, q, chi, chidot, wrenches)
    T, inverted = rate_matrix(robot, chi), rate_matrix_inverse(robot, chi)
    given: dict[int, Array] = {}
    for j, value in prescribed.items():
        own = robot.joints[j].v
        given[j] = vector.apply(inverted[..., own, own], value - turned[..., own])
    force = vector.apply(vector.transpose(T), tau)
    size = None
    if not is_symbolic(M):
        size = vector.transpose(np.abs(T)) @ mass_matrix_size(robot, q) @ np.abs(T)
    chiddot, force = solve_prescribed(robot, M, bias, force, given, size)
    found = vector.apply(vector.transpose(inverted), force)
    held = {i for j in prescribed for i in range(robot.nv)[robot.joints[j].v]}
    forces = [found[..., i] if i in held else tau[..., i] for i in range(robot.nv)]
    return vector.apply(T, chiddot) + turned, stack(forces)


def inverse(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return the generalized forces `(..., nv)` for the accelerations vdot."""
    if robot.nv == 0:
        return 0.0 * vdot
    chi, chidot = euler_coordinates(robot, q, v)
    M, bias, turned = _equations(robot, q, chi, chidot, wrenches)
    inverted = rate_matrix_inverse(robot, chi)
    force = vector.apply(M, vector.apply(inverted, vdot - turned)) + bias
    return vector.apply(vector.transpose(inverted), force)


def rate_matrix(robot: Robot, chi: Array) -> Array:
    """Return T `(..., nv, nv)` with v = T χ̇: the inverse of FPG11's T [FPG11, eq. 17]."""
    return _by_joint(robot, chi, _forward)


def rate_matrix_inverse(robot: Robot, chi: Array) -> Array:
    """Return T⁻¹ `(..., nv, nv)`, FPG11's matrix [FPG11, eq. 17]: infinite at ±90° of pitch."""
    return _by_joint(robot, chi, body_to_euler_rates)


def _coordinates(robot: Robot, q: Array) -> Array:
    parts: list[Array] = []
    for joint in robot.joints:
        own = q[..., joint.q]
        if joint.mimic is not None:
            own = 0.0 * own  # its leader's
        elif not joints.in_coordinates(joint):
            rpy = quaternion.to_rpy(own[..., :4])
            own = rpy if joints.kind(joint).nv == 3 else concatenate([rpy, pose.translation(own)])
        parts.append(own)
    return gather(robot, parts, batch_shape(q))


def _equations(
    robot: Robot, q: Array, chi: Array, chidot: Array, wrenches: Array | None
) -> tuple[Array, Array, Array]:
    """Return M_χ, all generalized forces at χ̈ = 0 but tau's, and Ṫ χ̇.

    ∂(M_χχ̇)_m/∂χ_k = (∂T/∂χ_k)_m·p + (Tᵀ D T)_km + (∂T/∂χ_k χ̇)·(M T)_m, p = M v, D the same of M.
    """
    T = rate_matrix(robot, chi)
    v = vector.apply(T, chidot)
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    p, Tt = vector.apply(M, v), vector.transpose(T)
    turned: dict[tuple[int, int], Array] = {}
    weighed: dict[tuple[int, int], Array] = {}
    for i, joint in enumerate(robot.joints):
        if not joints.in_coordinates(joint):
            dT = _partials(chi[..., joint.v])  # (..., k, n, n)
            turned[i, i] = vector.apply(dT, chidot[..., None, joint.v])
            weighed[i, i] = vector.apply(vector.transpose(dT), p[..., None, joint.v])
    batch = batch_shape(chi, chidot)
    E, W = square(robot, turned, batch), square(robot, weighed, batch)
    D = W + Tt @ momentum_partials_of(robot, q, v, links) @ T + E @ M @ T
    bias = vector.apply(vector.transpose(D), chidot) - 0.5 * vector.apply(D, chidot)
    applied = vector.apply(Tt, applied_force_of(robot, q, wrenches, links))
    return Tt @ M @ T, bias - applied, vector.apply(vector.transpose(E), chidot)


def _by_joint(robot: Robot, chi: Array, block: Callable[[Array], Array]) -> Array:
    blocks: dict[tuple[int, int], Array] = {}
    for i, joint in enumerate(robot.joints):
        if not joints.in_coordinates(joint):
            blocks[i, i] = block(chi[..., joint.v])
        elif joint.mimic is None:
            blocks[i, i] = np.eye(joint.v.stop - joint.v.start)
    return square(robot, blocks, batch_shape(chi))


def _forward(chi: Array) -> Array:
    """Return body rates per Euler-angle rate; of a free joint, velocities in body axes too."""
    (sr, sp), (cr, cp) = _sines(chi)
    zero, one = np.zeros_like(sr), np.ones_like(sr)
    B = _matrix([[one, zero, -sp], [zero, cr, sr * cp], [zero, -sr, cr * cp]])
    return B if chi.shape[-1] == 3 else _diagonal(B, vector.transpose(_rotation(chi)))


def body_to_euler_rates(chi: Array) -> Array:
    """Return the inverse of `_forward`, T⁻¹ `(..., n, n)` of one joint [FPG11, eq. 17].

    Args:
        chi: roll, pitch, yaw, and for a free joint its position, `(..., n)`.
    """
    (sr, sp), (cr, cp) = _sines(chi)
    zero, one = np.zeros_like(sr), np.ones_like(sr)
    t = sp / cp
    A = _matrix([[one, sr * t, cr * t], [zero, cr, -sr], [zero, sr / cp, cr / cp]])
    return A if chi.shape[-1] == 3 else _diagonal(A, _rotation(chi))


def _partials(chi: Array) -> Array:
    """Return the derivatives of `_forward` by each coordinate, `(..., k, n, n)`."""
    (sr, sp), (cr, cp) = _sines(chi)
    zero = np.zeros_like(sr)
    none = [zero, zero, zero]
    roll = _matrix([none, [zero, -sr, cr * cp], [zero, -cr, -sr * cp]])
    pitch = _matrix([[zero, zero, -cp], [zero, zero, -sr * sp], [zero, zero, -cr * sp]])
    turns = [roll, pitch, 0.0 * roll]
    if chi.shape[-1] == 3:
        return stack(turns, axis=-3)
    Rt = vector.transpose(_rotation(chi))
    rates = vector.transpose(_forward(chi[..., :3]))
    parts = [_diagonal(d, -(vector.skew(rates[..., k, :]) @ Rt)) for k, d in enumerate(turns)]
    return stack([*parts, *[0.0 * parts[0]] * 3], axis=-3)


def _sines(chi: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    s, c = sin(chi[..., :2]), cos(chi[..., :2])
    return (s[..., 0], s[..., 1]), (c[..., 0], c[..., 1])


def _rotation(chi: Array) -> Array:
    return quaternion.to_matrix(quaternion.from_rpy(chi[..., :3]))


def _matrix(rows: list[list[Array]]) -> Array:
    return stack([stack(row) for row in rows], axis=-2)


def _diagonal(A: Array, B: Array) -> Array:
    zero = np.zeros_like(A)
    return concatenate([concatenate([A, zero]), concatenate([zero, B])], trailing=2)


def _refuse_singular(robot: Robot, chi: Array) -> None:
    if is_symbolic(chi):
        return
    for joint in robot.joints:
        if joints.in_coordinates(joint):
            continue
        pitch = chi[..., joint.v][..., 1]
        if np.any(np.abs(np.cos(pitch)) < SINGULAR):
            raise InvalidValue(
                f"Euler angles are singular at a pitch of ±90°, and joint {joint.name!r} of robot "
                f"{robot.name!r} is within {SINGULAR:g} rad of it; take another formulation, "
                "such as 'lagrangian', which has no singularity"
            )
