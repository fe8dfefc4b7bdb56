"""Lagrange's equations on the configuration manifold, M v̇ + C v = τ [FPG11, eqs. 6, 20].

The base needs no coordinates other than its pose, which only gravity uses; there is no singularity.
M(q), its derivatives and C(Q, v) are in closed form, for any tree [FPG11, sections 2 and 4].

M = Σ_i [H J_i]ᵀ Ad_ibᵀ I_i Ad_ib [H J_i] [FPG11, eqs. 9, 10]. Let G_n be the composite inertia of
joint n and c_n its columns, both in the root body's frame. If m carries n, the block is M_mn = c_mᵀ
G_n c_n. Most terms of ∂M/∂q_k [FPG11, eq. A.1] then cancel, since all bodies on one side of joint k
move together. The remaining terms are

    ∂M_mn/∂q_k = 0                                               k carries m
               = -(c_k × c_m)ᵀ G_n c_n                           m carries k, k carries n
               = -(c_k × c_m)ᵀ G_k c_n - c_mᵀ G_k (c_k × c_n)    n carries k

and, where S depends on the joint's own coordinates, c' = Ad ∂S/∂q in place of c. C needs only two
contractions of it, each as cheap as M itself:

    C(Q, v) = Ṁ - ½ ∂(Mv)/∂q + B(Mv)    [FPG11, eqs. 7, 22-26, 30, corrected]

Row k of ∂(Mv)/∂q is the derivative by q_k. B is skew-symmetric and has a block for every joint
whose speeds are not rates of coordinates, built from their conjugate momentum: -p̂ on SO(3), and
-[l̂ p̂; p̂ 0] on SE(3) for twists [ω, v].
"""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate, constant, is_symbolic
from remora.dynamics.joint_arrays import LoadedState, batch_shape, gather
from remora.dynamics.lagrangian.link_jacobians import (
    Links,
    bracket_matrix,
    cross_matrix,
    links_of,
    screw_partials,
)
from remora.dynamics.prescribed_solve import solve_prescribed
from remora.dynamics.recursive.composite_rigid_body import mass_matrix_size, square
from remora.dynamics.refusals import needs_dynamics
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors


def mass_matrix_of(robot: Robot, q: Array, links: Links | None = None) -> Array:
    """Return M `(..., nv, nv)` [FPG11, eqs. 9-11]; rotor inertias are on the diagonal."""
    _, c, _, G = links or links_of(robot, q)
    blocks: dict[tuple[int, int], Array] = {}
    for n, joint in enumerate(robot.joints):
        if c[n].shape[-1] == 0:
            continue
        F = G[n] @ c[n]
        rotor = joints.rotor_inertia(joint)[..., None] * np.eye(c[n].shape[-1])
        blocks[n, n] = linear.mirror(vector.transpose(c[n]) @ F) + rotor
        for m in ancestors(robot, n)[1:]:
            if c[m].shape[-1]:
                blocks[m, n] = vector.transpose(c[m]) @ F
                blocks[n, m] = vector.transpose(blocks[m, n])
    return square(robot, blocks, batch_shape(q))


def mass_matrix_rate_of(robot: Robot, q: Array, v: Array, links: Links | None = None) -> Array:
    """Return Ṁ = Σ_k ∂M/∂q_k v_k `(..., nv, nv)` while the robot moves with the velocity v."""
    links = links or links_of(robot, q)
    c, G = links.c, links.G
    rates = _column_rates(robot, q, v, links)
    own = [vector.apply(c[k], v[..., j.v]) for k, j in enumerate(robot.joints)]
    turned: list[Array] = []  # twist of each link relative to the root body, in its frame
    changing: list[Array] = [np.zeros((6, 6)) for _ in c]  # rate of G due to joints of the subtree
    for k, joint in enumerate(robot.joints):
        turned.append(np.zeros(6) if joint.parent < 0 else turned[joint.parent] + own[k])
    for k in reversed(range(len(c))):
        parent = robot.joints[k].parent
        if parent >= 0:
            moved = G[k] @ cross_matrix(own[k])
            changing[parent] = changing[parent] + changing[k] - moved - vector.transpose(moved)
    blocks: dict[tuple[int, int], Array] = {}
    for n in range(len(c)):
        if c[n].shape[-1] == 0:
            continue
        F, change = G[n] @ c[n], changing[n] @ c[n]
        change = change if rates[n] is None else change + G[n] @ rates[n]
        for m in ancestors(robot, n):
            if c[m].shape[-1] == 0:
                continue
            ad = cross_matrix(turned[n] - turned[m])
            block = vector.transpose(c[m]) @ change - vector.transpose(ad @ c[m]) @ F
            rate = rates[m]
            block = block if rate is None else block + vector.transpose(rate) @ F
            blocks[m, n] = block
            if m != n:
                blocks[n, m] = vector.transpose(block)
    return square(robot, blocks, batch_shape(q, v))


def momentum_partials_of(robot: Robot, q: Array, x: Array, links: Links | None = None) -> Array:
    """Return D `(..., nv, nv)`, D_km = Σ_n ∂M_mn/∂q_k x_n for a constant x [FPG11, eqs. C.1-C.7].

    With ξ the twists for the velocity x, ĥ_k the momentum of joint k's subtree and p(k) the body
    that joint k is mounted on, D_km = -Y_kᵀ G_m c_m for k that carries m (or is m), and -Y_kᵀ G_k
    c_m - c_kᵀ B(ĥ_k) c_m for m that carries k, where Y_k = c_k × ξ_p(k).
    """
    links = links or links_of(robot, q)
    c, G = links.c, links.G
    twist: list[Array] = []
    h: list[Array] = []
    Y: list[Array] = []
    blocks: dict[tuple[int, int], Array] = {}
    for k, joint in enumerate(robot.joints):
        before = np.zeros(6) if joint.parent < 0 else twist[joint.parent]
        own = vector.apply(c[k], x[..., joint.v])
        twist.append(before + own)
        h.append(vector.apply(G[k], own))
        Y.append(-(cross_matrix(before) @ c[k]))
    for k in reversed(range(len(c))):
        parent = robot.joints[k].parent
        if parent >= 0:
            h[parent] = h[parent] + h[k]
            h[k] = h[k] + vector.apply(G[k], twist[parent])
    for k, joint in enumerate(robot.joints):
        partials = screw_partials(robot, q, k)
        if partials is not None:
            seen = screw.transform_matrix(links.X[k])[..., None, :, :] @ partials
            moved = vector.apply(seen, x[..., None, joint.v])  # (..., α, 6)
            Y[k] = Y[k] - vector.transpose(moved)
            blocks[k, k] = vector.apply(vector.transpose(seen), h[k][..., None, :])
    for n in range(len(c)):
        if c[n].shape[-1] == 0:
            continue
        F = G[n] @ c[n]
        outward = vector.transpose(G[n] @ Y[n]) + vector.transpose(c[n]) @ bracket_matrix(h[n])
        own = -(vector.transpose(Y[n]) @ F)
        blocks[n, n] = blocks[n, n] + own if (n, n) in blocks else own
        for m in ancestors(robot, n)[1:]:
            if c[m].shape[-1]:
                blocks[m, n] = -(vector.transpose(Y[m]) @ F)
                blocks[n, m] = -(outward @ c[m])
    return square(robot, blocks, batch_shape(q, x))


def bracket_of(robot: Robot, momentum: Array) -> Array:
    """Return B(p) `(..., nv, nv)`, B_ij = p·[e_i, e_j]: skew-symmetric, one block per joint.

    Only joints whose speeds are not rates of coordinates contribute: -p̂ for a spherical joint,
    -[l̂ p̂; p̂ 0] for a free one [FPG11, eqs. 22, 30, corrected].

    Args:
        robot: the robot.
        momentum: conjugate to v, `(..., nv)`.
    """
    blocks: dict[tuple[int, int], Array] = {}
    for i, joint in enumerate(robot.joints):
        if not joints.in_coordinates(joint):
            own = momentum[..., joint.v]
            blocks[i, i] = bracket_matrix(own) if own.shape[-1] == 6 else -vector.skew(own)
    return square(robot, blocks, batch_shape(momentum))


def coriolis_matrix_of(robot: Robot, q: Array, v: Array) -> Array:
    """Return FPG11's C `(..., nv, nv)`: vᵀ(Ṁ - 2C)v = 0, but Ṁ - 2C is not skew-symmetric."""
    links = links_of(robot, q)
    rate = mass_matrix_rate_of(robot, q, v, links)
    D = momentum_partials_of(robot, q, v, links)
    return rate - 0.5 * D + bracket_of(robot, vector.apply(mass_matrix_of(robot, q, links), v))


@takes_robot
@needs_dynamics
def mass_matrix_partials(robot: Robot, q: ArrayLike) -> Array:
    """Return ∂M/∂q_k `(..., nv, nv, nv)`, k first, along the tangent of the joints [FPG11, A.1].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    D = momentum_partials_of(robot, q[..., None, :], constant(np.eye(robot.nv), like=q))
    return np.moveaxis(D, -3, -1)


def applied_force_of(
    robot: Robot, q: Array, wrenches: Array | None, links: Links | None = None
) -> Array:
    """Return the generalized forces `(..., nv)` of gravity and of external wrenches: Σ JᵀW."""
    links = links or links_of(robot, q)
    gravity = asarray(robot.gravity)
    loads: list[Array] = []
    down: list[Array] = []
    for i, joint in enumerate(robot.joints):
        if joint.parent < 0:
            R = joints.relative_transform(joint, q).R
            down.append(vector.apply(vector.transpose(R), gravity))
        else:
            down.append(down[joint.parent])
        load = np.zeros(6)
        if wrenches is not None:
            load = screw.to_outer(links.X[i], wrenches[..., i, :])
        loads.append(load)
    for i in reversed(range(len(loads))):
        parent = robot.joints[i].parent
        if parent >= 0:
            loads[parent] = loads[parent] + loads[i]
    parts: list[Array] = []
    for i, (M, load) in enumerate(zip(links.carried, loads, strict=True)):
        force = asarray(M.mass)[..., None] * down[i]
        weight = concatenate([force, vector.cross(M.moment, down[i])])
        work = dual_quaternion.swap(load + weight)
        parts.append(vector.apply(vector.transpose(links.c[i]), work))
    shape = () if wrenches is None else wrenches.shape[:-2]
    return gather(robot, parts, np.broadcast_shapes(batch_shape(q), shape))


def _column_rates(robot: Robot, q: Array, v: Array, links: Links) -> list[Array | None]:
    """Return Ad_bm Ṡ_m for every joint, or None where S is constant."""
    rates: list[Array | None] = []
    for joint, X in zip(robot.joints, links.X, strict=True):
        dS = joints.motion_subspace_rate(joint, q, v)
        rates.append(None if dS is None else screw.columns_to_outer(X, dS))
    return rates


def hybrid(robot: Robot, state: LoadedState) -> tuple[Array, Array]:
    """Return vdot and tau with prescribed accelerations of some joints [FPG11, eq. 11]."""
    q, v, tau, wrenches, prescribed = state
    if robot.nv == 0:
        return 0.0 * v, 0.0 * tau
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    bias = velocity_force(robot, q, v, M, links) - applied_force_of(robot, q, wrenches, links)
    size = None if is_symbolic(M) else mass_matrix_size(robot, q)
    return solve_prescribed(robot, M, bias, tau, prescribed, size)


def inverse(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return the generalized forces M v̇ + C v less those of gravity and wrenches, `(..., nv)`."""
    links = links_of(robot, q)
    M = mass_matrix_of(robot, q, links)
    bias = velocity_force(robot, q, v, M, links) - applied_force_of(robot, q, wrenches, links)
    return vector.apply(M, vdot) + bias


def velocity_force(robot: Robot, q: Array, v: Array, M: Array, links: Links) -> Array:
    """Return C v `(..., nv)` without forming C: Ṁv = Dᵀv, so C v = Dᵀv - ½ D v + B(Mv) v."""
    D = momentum_partials_of(robot, q, v, links)
    turned = vector.apply(bracket_of(robot, vector.apply(M, v)), v)
    return vector.apply(vector.transpose(D), v) - 0.5 * vector.apply(D, v) + turned
