"""The Coriolis matrix C: C v are the velocity-dependent forces, and Ḣ - 2C is skew-symmetric.

With J_i the Jacobian of body i, H = Σ J_iᵀ M_i J_i. In body axes M_i is constant, and

    C = Σ J_iᵀ (M_i J̇_i + B_i J_i),    B_i [ω, v] = [f, τ] = [-P × ω, -L × ω - P × v]

has this property: B_i, built from the body's momentum [P, L], is skew-symmetric as a bilinear form
on twists, and B_i ω_i = ω_i × (M_i ⋆ ω_i). Column k of J̇_i is Ṡ_k - (ω_i - ω_k) × S_k, so the sum
over the bodies beyond a joint needs only two matrices per joint, M̃ = Σ M_i and K̃ = Σ (B_i - M_i
[ω_i ×]), and the cost grows like that of the mass matrix.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, concatenate
from remora.dynamics.joint_arrays import batch_shape
from remora.dynamics.recursive.composite_rigid_body import body_inertias, paired, square
from remora.dynamics.recursive.outward_pass import moving_links
from remora.model.robot import Robot
from remora.model.topology import ancestors


def coriolis_matrix_of(robot: Robot, q: Array, v: Array) -> Array:
    """Return C `(..., nv, nv)` with H v̇ + C v = τ where there is no gravity."""
    links = moving_links(robot, q, v)
    bodies = body_inertias(robot)
    M = [screw.inertia_matrix(inertia) for inertia in bodies]
    K = [
        _momentum_matrix(screw.momentum(inertia, link.twist)) - Mi @ _cross_matrix(link.twist)
        for link, inertia, Mi in zip(links, bodies, M, strict=True)
    ]
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent >= 0:
            outer = screw.transform_matrix(links[i].X)
            inner = _inverse_matrix(links[i].X)
            M[parent] = M[parent] + outer @ M[i] @ inner
            K[parent] = K[parent] + outer @ K[i] @ inner

    blocks: dict[tuple[int, int], Array] = {}
    for i, link in enumerate(links):
        S = link.S
        if S.shape[-1] == 0:
            continue
        # column block of joint i, for its ancestors
        F = M[i] @ _turning(link.twist, S, link.dS) + K[i] @ S
        # row block of joint i, for its ancestors: the wrenches' response, transposed
        left = vector.transpose(vector.transpose(_swapped(S)) @ M[i])
        right = vector.transpose(vector.transpose(_swapped(S)) @ K[i])
        here = i
        for j in ancestors(robot, i):
            Sj = links[j].S
            if j != here:
                X = links[here].X
                F = screw.columns_to_outer(X, F)
                back = vector.transpose(_inverse_matrix(X))
                left, right = back @ left, back @ right
                here = j
            if Sj.shape[-1] == 0:
                continue
            blocks[j, i] = paired(Sj, F)
            if j != i:
                turned = _turning(links[j].twist, Sj, links[j].dS)
                blocks[i, j] = vector.transpose(left) @ turned + vector.transpose(right) @ Sj
    return square(robot, blocks, batch_shape(q, v))


def _turning(twist: Array, S: Array, dS: Array | None) -> Array:
    """Return Ṡ + ω × S: the rate of the motion subspace in the inertial frame."""
    turned = vector.transpose(screw.cross(twist[..., None, :], vector.transpose(S)))
    return turned if dS is None else turned + dS


def _cross_matrix(twist: Array) -> Array:
    """Return [ω×] with [ω×] s = ω × s, `(..., 6, 6)`."""
    w, v = vector.skew(twist[..., :3]), vector.skew(twist[..., 3:])
    return concatenate([concatenate([w, np.zeros_like(w)]), concatenate([v, w])], trailing=2)


def _momentum_matrix(h: Array) -> Array:
    """Return B with B ω = ω × h for the momentum h = [P, L]: f = -P×ω, τ = -L×ω - P×v."""
    P, L = vector.skew(h[..., :3]), vector.skew(h[..., 3:])
    return concatenate([concatenate([-P, np.zeros_like(P)]), concatenate([-L, -P])], trailing=2)


def _inverse_matrix(X: screw.Transform) -> Array:
    """Return the 6x6 matrix of `screw.to_inner`."""
    Rt = vector.transpose(X.R)
    return screw.transform_matrix(screw.Transform(Rt, -vector.apply(Rt, X.p)))


def _swapped(S: Array) -> Array:
    return concatenate([S[..., 3:, :], S[..., :3, :]], trailing=2)
