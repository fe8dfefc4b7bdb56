"""Links, inertias and loads of all bodies of a tree in one frame, that of its root body.

In one common frame, twists, wrenches and inertias of different bodies add without transformation,
and the motion subspace of a free base is the identity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import linear, screw, vector
from remora.algebra.array_ops import Array, asarray, concatenate, stack
from remora.algebra.screw import Inertia, Transform
from remora.dynamics.recursive.recursive_newton_euler import minus_gravity
from remora.model import joints
from remora.model.robot import Body, Joint, Robot

_REST = np.zeros(6)


class RootFrameLink(NamedTuple):
    """A body and its joint at one state, in the root's frame.

    Attributes:
        parent: index of the body it is mounted on, -1 for the inertial frame.
        X: transform from its own frame to the root's.
        S: the joint's motion subspace as rows, `(..., nv_i, 6)`.
        rate: its rate Ṡ in the inertial frame, `(..., nv_i, 6)`.
        own_rate: the part of Ṡ relative to the body's frame; None if S is constant there.
        carried: change of the subtree's twist by moving the joint, `(..., nv_i, 6)`.
        before: the parent's twist, `(..., 6)`.
        twist: the body's twist, `(..., 6)`.
    """

    parent: int
    X: Transform
    S: Array
    rate: Array
    own_rate: Array | None
    carried: Array
    before: Array
    twist: Array


class Accelerations(NamedTuple):
    """Accelerations in the root's frame, each `(..., 6)`.

    Attributes:
        before: of each body's parent; of the inertial frame, minus gravity.
        own: of each body.
    """

    before: list[Array]
    own: list[Array]


class RootFrameBody(NamedTuple):
    """A moving body or composite body: its inertia and the terms of its Coriolis forces.

    Attributes:
        inertia: about the root's origin.
        momentum: P = ∫ ṙ dm, `(..., 3)`.
        turning: T with T e = ∫ r × (e × ṙ) dm, `(..., 3, 3)`.
    """

    inertia: Inertia
    momentum: Array
    turning: Array

    def coriolis(self, e: Array) -> Array:
        """Return ∫ e × ṙ dm as a wrench `(..., n, 6)`, for rows e of angular velocities."""
        return concatenate(
            [vector.cross(e, as_row(self.momentum)), e @ vector.transpose(self.turning)]
        )

    def coriolis_work(self, S: Array) -> Array:
        """Return the work of that wrench on the rows S, per unit of e: `(..., n, 3)`."""
        return vector.cross(as_row(self.momentum), S[..., 3:]) + S[..., :3] @ self.turning

    def inertia_times(self, S: Array) -> Array:
        """Return the momenta M ⋆ S of rows of twists, `(..., n, 6)`."""
        m, mc, I = self.inertia
        return screw.momentum(Inertia(asarray(m)[..., None], as_row(mc), I[..., None, :, :]), S)


def links_of(robot: Robot, q: Array, v: Array) -> list[RootFrameLink]:
    """Return every link at the state q, v, outward from the root."""
    links: list[RootFrameLink] = []
    for joint in robot.joints:
        X, before = Transform(np.eye(3), np.zeros(3)), _REST
        if joint.parent >= 0:
            X = chained(links[joint.parent].X, joints.relative_transform(joint, q))
            before = links[joint.parent].twist
        S = as_rows(X, joints.motion_subspace(joint, q))
        twist = before + along(S, v[..., joint.v])
        own = joints.motion_subspace_rate(joint, q, v)
        if own is not None:
            own = as_rows(X, own)
            rate = carried = screw.cross(as_row(twist), S) + own
        else:
            rate = carried = screw.cross(as_row(before), S)
            if not joints.in_coordinates(joint):
                rate = screw.cross(as_row(twist), S)
        links.append(RootFrameLink(joint.parent, X, S, rate, own, carried, before, twist))
    return links


def accelerations_of(
    robot: Robot, links: list[RootFrameLink], q: Array, v: Array, vdot: Array
) -> Accelerations:
    """Return A_i = A_parent + S_i v̇_i + Ṡ_i v_i of every body, and of every body's parent.

    The acceleration of the inertial frame, in the axes of the root that it carries, is minus
    gravity.
    """
    before: list[Array] = []
    A: list[Array] = []
    for link, joint in zip(links, robot.joints, strict=True):
        before.append(A[link.parent] if link.parent >= 0 else _minus_gravity_in(joint, robot, q))
        own = along(link.S, vdot[..., joint.v]) + along(link.rate, v[..., joint.v])
        A.append(before[-1] + own)
    return Accelerations(before, A)


def _minus_gravity_in(root: Joint, robot: Robot, q: Array) -> Array:
    """Return the acceleration of the inertial frame that acts like gravity, `(..., 6)`."""
    return screw.to_inner(joints.relative_transform(root, q), minus_gravity(robot))


def as_rows(X: Transform, S: Array) -> Array:
    """Transform columns in a body's frame to rows in the root's frame, `(..., n, 6)`."""
    return vector.transpose(screw.columns_to_outer(X, S))


def as_row(a: Array) -> Array:
    """Return a vector as a matrix of one row."""
    return a[..., None, :]


def along(rows: Array, x: Array) -> Array:
    """Return Σ_k x_k rows_k, `(..., n, 6), (..., n) -> (..., 6)`."""
    return vector.apply(vector.transpose(rows), x)


def moving_bodies(robot: Robot, links: list[RootFrameLink]) -> list[RootFrameBody]:
    """Return every body in motion, in the root's frame."""
    return [_moving(body, link) for body, link in zip(robot.bodies, links, strict=True)]


def _moving(body: Body, link: RootFrameLink) -> RootFrameBody:
    """Return a body from its second moments J = ∫ r rᵀ dm: with N = ∫ ṙ rᵀ dm, T = tr(N) 1 - N."""
    R, p = link.X
    m = asarray(body.mass)[..., None]
    c = p + vector.apply(R, asarray(body.com))
    mc = m * c
    about_com = 0.5 * _trace(body.inertia) * np.eye(3) - body.inertia
    J = linear.mirror(linear.congruence(vector.transpose(R), about_com) + _outer(mc, c))
    omega, v = link.twist[..., :3], link.twist[..., 3:]
    N = vector.skew(omega) @ J + _outer(v, mc)
    inertia = Inertia(asarray(body.mass), mc, _complement(J))
    return RootFrameBody(inertia, m * v + vector.cross(omega, mc), _complement(N))


def carried_by(links: list[RootFrameLink], bodies: list[RootFrameBody]) -> list[RootFrameBody]:
    """Return the composite moving body of every joint."""
    fields = [(*b.inertia, b.momentum, b.turning) for b in bodies]
    m, mc, I, P, T = (summed(links, list(parts)) for parts in zip(*fields, strict=True))
    return [RootFrameBody(Inertia(*own[:3]), *own[3:]) for own in zip(m, mc, I, P, T, strict=True)]


def loads_of(
    links: list[RootFrameLink], bodies: list[RootFrameBody], A: list[Array], wrenches: Array | None
) -> list[Array]:
    """Return the wrench through every joint, Σ M ⋆ A + ω × (M ⋆ ω) - W_ext over its subtree."""
    loads: list[Array] = []
    for i, (link, body) in enumerate(zip(links, bodies, strict=True)):
        omega = link.twist[..., :3]
        turning = concatenate(
            [vector.cross(omega, body.momentum), vector.apply(body.turning, omega)]
        )
        load = screw.momentum(body.inertia, A[i]) + turning
        if wrenches is not None:
            load = load - screw.to_outer(link.X, wrenches[..., i, :])
        loads.append(load)
    return summed(links, loads)


def summed(links: list[RootFrameLink], parts: list[Array]) -> list[Array]:
    """Return for every joint the sum over its subtree."""
    total = list(parts)
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent >= 0:
            total[parent] = total[parent] + total[i]
    return total


def chained(X: Transform, Y: Transform) -> Transform:
    """Return the product of two transforms, Y the inner one."""
    return Transform(X.R @ Y.R, X.p + vector.apply(X.R, Y.p))


def _outer(a: Array, b: Array) -> Array:
    return a[..., :, None] * b[..., None, :]


def _trace(A: Array) -> Array:
    return (A[..., 0, 0] + A[..., 1, 1] + A[..., 2, 2])[..., None, None]


def _complement(A: Array) -> Array:
    """Return tr(A) 1 - A, `(..., 3, 3)`."""
    a, b, c = A[..., 0, 0], A[..., 1, 1], A[..., 2, 2]
    rows = [
        [b + c, -A[..., 0, 1], -A[..., 0, 2]],
        [-A[..., 1, 0], a + c, -A[..., 1, 2]],
        [-A[..., 2, 0], -A[..., 2, 1], a + b],
    ]
    return stack([stack(row) for row in rows], axis=-2)
