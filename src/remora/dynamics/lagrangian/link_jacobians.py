"""Adjoints and Jacobians of links in the root body's frame, and their derivatives [FPG11].

All quantities of a tree are in the frame b of its root body, which only the root joint moves. With
S_m the motion subspace of joint m and Ad the adjoint of a pose, the columns of joint m are

    c_m = Ad_bm S_m,    c_root = H,

so that link i has the twist [H J_i] v in the frame b, with J_i the columns of the joints that carry
i [FPG11, eqs. 3, 4, B.1]. H is the selection matrix: the identity for a free base, its last or
first rows for a spherical one, and likewise for every joint type. A joint k moves its subtree along
its own columns [FPG11, eqs. A.2, A.3, B.2]:

    ∂Ad_ib/∂q_k = -Ad_ib ad(c_k),    ∂c_m/∂q_k = ad(c_k) c_m (+ Ad_bm ∂S_m/∂q_k for k = m).

The derivative is along the tangent of the joint: by a coordinate if the speeds are rates of
coordinates, otherwise by a small twist of the body. The root joint moves b itself: its only
contribution is ∂H/∂q_k = ∂S_root/∂q_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, ArrayLike, concatenate, stack
from remora.algebra.screw import Inertia, Transform
from remora.dynamics.joint_arrays import batch_shape, columns, with_batch
from remora.model import joints
from remora.model.robot import Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot
from remora.model.topology import ancestors


class Links(NamedTuple):
    """Every link of a robot in the frame of its root body.

    Attributes:
        X: transform from the body's frame to the root body's.
        c: the columns of the joint that carries it, `(..., 6, nv_i)`.
        carried: the joint's composite inertia.
        G: the same as a symmetric matrix on twists, `(..., 6, 6)`.
    """

    X: list[Transform]
    c: list[Array]
    carried: list[Inertia]
    G: list[Array]


def links_of(robot: Robot, q: Array) -> Links:
    """Return adjoints, columns and composite inertias, from which M(q) is computed."""
    X: list[Transform] = []
    c: list[Array] = []
    carried: list[Inertia] = []
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        S = joints.motion_subspace(joint, q)
        here = Transform(np.eye(3), np.zeros(3))
        if joint.parent >= 0:
            outer, inner = X[joint.parent], joints.relative_transform(joint, q)
            here = Transform(outer.R @ inner.R, outer.p + vector.apply(outer.R, inner.p))
            S = screw.columns_to_outer(here, S)
        X.append(here)
        c.append(S)
        own = screw.inertia(body.mass, body.com, body.inertia)
        carried.append(screw.transform_inertia(here, own) if joint.parent >= 0 else own)
    for i in reversed(range(len(X))):
        parent = robot.joints[i].parent
        if parent >= 0:
            carried[parent] = screw.add_inertia(carried[parent], carried[i])
    return Links(X, c, carried, [energy_matrix(M) for M in carried])


def energy_matrix(M: Inertia) -> Array:
    """Return G `(..., 6, 6)`, symmetric: the kinetic energy of a twist ξ is ½ ξᵀ G ξ."""
    matrix = screw.inertia_matrix(M)
    return concatenate([matrix[..., 3:, :], matrix[..., :3, :]], trailing=2)


def cross_matrix(twist: Array) -> Array:
    """Return ad(ξ) `(..., 6, 6)` with ad(ξ) η = ξ × η [FPG11, eq. 21, for twists [ω, v]]."""
    w, v = vector.skew(twist[..., :3]), vector.skew(twist[..., 3:])
    return concatenate([concatenate([w, np.zeros_like(w)]), concatenate([v, w])], trailing=2)


def bracket_matrix(h: Array) -> Array:
    """Return B(h) `(..., 6, 6)` with aᵀ B(h) b = h·(a × b) for a momentum h = [l, p].

    B = -[l̂ p̂; p̂ 0], skew-symmetric: the term that FPG11 print as -ad(x), which for [v, ω] must read
    -[0 p̂; p̂ l̂] [FPG11, eqs. 22, 26, C.5 corrected].
    """
    angular, linear = vector.skew(h[..., :3]), vector.skew(h[..., 3:])
    top = concatenate([-angular, -linear])
    return concatenate([top, concatenate([-linear, np.zeros_like(linear)])], trailing=2)


def screw_partials(robot: Robot, q: Array, joint: int) -> Array | None:
    """Return ∂S/∂q_α of a joint, `(..., nv_i, 6, nv_i)` by α; None where S is constant."""
    own = robot.joints[joint]
    if joints.kind(own).rate is None:
        return None
    places = range(robot.nv)[own.v]
    rates = [joints.motion_subspace_rate(own, q, np.eye(robot.nv)[place]) for place in places]
    return stack([rate for rate in rates if rate is not None], axis=-3)


@takes_robot
def link_adjoint(robot: Robot, q: ArrayLike, body: str | int) -> Array:
    """Return Ad_ib `(..., 6, 6)`: twists of the root body's frame b in the frame of link i.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        body: the link i, by name or index.
    """
    q = configuration(robot, q)
    X = links_of(robot, q).X[robot.body_index(body)]
    return with_batch(_inverse(X), batch_shape(q), trailing=2)


@takes_robot
def link_jacobian(robot: Robot, q: ArrayLike, body: str | int) -> Array:
    """Return [H J_i] `(..., 6, nv)`: the twist of link i in the frame b [FPG11, eqs. 4, B.1].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        body: the link i, by name or index.
    """
    q = configuration(robot, q)
    c = links_of(robot, q).c
    path = ancestors(robot, robot.body_index(body))
    return columns(robot, {j: c[j] for j in path}, batch_shape(q))


@takes_robot
def link_adjoint_partials(robot: Robot, q: ArrayLike, body: str | int) -> Array:
    """Return ∂Ad_ib/∂q_k `(..., nv, 6, 6)`, k first [FPG11, appendix A].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        body: the link i, by name or index.
    """
    q = configuration(robot, q)
    links, i = links_of(robot, q), robot.body_index(body)
    Ad = _inverse(links.X[i])
    parts: dict[int, Array] = {}
    for k in ancestors(robot, i)[:-1]:  # the root joint moves b and i together
        parts[k] = -(Ad[..., None, :, :] @ _cross_matrices(links.c[k]))
    return _by_speed(robot, parts, (6, 6), batch_shape(q))


@takes_robot
def link_jacobian_partials(robot: Robot, q: ArrayLike, body: str | int) -> Array:
    """Return ∂[H J_i]/∂q_k `(..., nv, 6, nv)`, k first [FPG11, eq. B.2].

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        body: the link i, by name or index.
    """
    q = configuration(robot, q)
    links, i = links_of(robot, q), robot.body_index(body)
    path = ancestors(robot, i)
    batch = batch_shape(q)
    parts: dict[int, Array] = {}
    for place, k in enumerate(path):
        ad = _cross_matrices(links.c[k])
        root = place == len(path) - 1
        moved = {} if root else {m: ad @ links.c[m][..., None, :, :] for m in path[: place + 1]}
        own = screw_partials(robot, q, k)
        if own is not None:
            seen = screw.transform_matrix(links.X[k])[..., None, :, :] @ own
            moved[k] = seen if root else moved[k] + seen
        nv_k = links.c[k].shape[-1]
        parts[k] = columns(robot, moved, (*batch, nv_k))
    return _by_speed(robot, parts, (6, robot.nv), batch)


def _inverse(X: Transform) -> Array:
    Rt = vector.transpose(X.R)
    return screw.transform_matrix(Transform(Rt, -vector.apply(Rt, X.p)))


def _cross_matrices(c: Array) -> Array:
    """Return ad of every column, `(..., 6, n) -> (..., n, 6, 6)`."""
    return cross_matrix(vector.transpose(c))


def _by_speed(
    robot: Robot, parts: dict[int, Array], shape: tuple[int, int], batch: tuple[int, ...]
) -> Array:
    """Place each joint's derivatives `(..., nv_k, *shape)` at its speeds; mimic joints add up."""
    placed: list[Array] = [np.zeros(shape)] * robot.nv
    for k, part in parts.items():
        for n, place in enumerate(range(robot.nv)[robot.joints[k].v]):
            placed[place] = placed[place] + part[..., n, :, :]
    joined = stack(placed, axis=-3) if placed else np.zeros((0, *shape))
    return with_batch(joined, batch, trailing=3)
