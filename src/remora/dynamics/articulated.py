"""Forward and hybrid dynamics in O(n): the articulated-body algorithm.

Inward, the inertia that each joint feels when everything beyond it is free to move; outward, the
accelerations. A joint whose acceleration is prescribed is passed over as if it were rigid, and
the force it needs comes out [VT18, eqs. 61-76 give the same in maximal coordinates].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.namespace import Array, concatenate, is_symbolic
from remora.algebra.screw import Inertia, Transform
from remora.dynamics.composite import body_inertias
from remora.dynamics.maximal import refuse_followers
from remora.dynamics.motion import Link, batch_shape, gather, moving_links
from remora.dynamics.recursive import minus_gravity
from remora.errors import ValueRefused
from remora.model import joints
from remora.model.robot import Joint, Robot


class Articulated(NamedTuple):
    """An articulated inertia, [τ, f] = [A B; Bᵀ C] [ω, v]: `(..., 3, 3)`, A and C symmetric."""

    A: Array
    B: Array
    C: Array


def hybrid(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> tuple[Array, Array]:
    """Return vdot and tau, both `(..., nv)`: where a joint is prescribed its tau is found.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: forces, `(..., nv)`; those of prescribed joints are not looked at.
        wrenches: external, `(..., nb, 6)`, or None.
        prescribed: accelerations `(..., nv_i)` by index of the joint.
    """
    refuse_followers(robot, "articulated")
    links = moving_links(robot, q, v)
    bodies = body_inertias(robot)
    I = [_rigid(M) for M in bodies]
    p = [
        screw.cross(link.twist, screw.momentum(M, link.twist))
        for link, M in zip(links, bodies, strict=True)
    ]
    if wrenches is not None:
        p = [bias - wrenches[..., i, :] for i, bias in enumerate(p)]
    steps: dict[int, _Step] = {}
    for i in reversed(range(len(links))):
        link, joint = links[i], robot.joints[i]
        given = _given(link, prescribed.get(i))
        if given is None:
            steps[i] = _free_step(joint, link, I[i], p[i], tau)
            carried = _carried(link, steps[i], I[i], p[i])
        else:  # moves with its parent, but for what is given
            carried = I[i], p[i] + _apply(I[i], link.c + vector.apply(link.S, given))
        if link.parent >= 0:
            I[link.parent] = _add(I[link.parent], _to_outer(link.X, carried[0]))
            p[link.parent] = p[link.parent] + screw.to_outer(link.X, carried[1])
    a: list[Array] = []
    vdots: list[Array] = []
    taus: list[Array] = []
    for i, (link, joint) in enumerate(zip(links, robot.joints, strict=True)):
        before = minus_gravity(robot) if link.parent < 0 else a[link.parent]
        moved = screw.to_inner(link.X, before) + link.c
        given = _given(link, prescribed.get(i))
        vdot = steps[i].acceleration(moved) if given is None else given
        a.append(moved + vector.apply(link.S, vdot))
        vdots.append(vdot)
        if given is None:
            taus.append(tau[..., joint.v])
        else:
            load = _apply(I[i], a[i]) + p[i]
            force = vector.apply(vector.transpose(link.S), dual_quaternion.swap(load))
            taus.append(force + joints.rotor_inertia(joint) * vdot)
    batch = batch_shape(q, v, tau)
    return gather(robot, vdots, batch), gather(robot, taus, batch)


class _Step(NamedTuple):
    """What the inward pass leaves at a joint that moves by its force.

    Attributes:
        U: the articulated inertia's answer to the screws, [τ, f], `(..., 6, nv_i)`.
        factors: LDLᵀ of D = Sᵀ I S and the rotor.
        u: the force left for acceleration, `(..., nv_i)`.
    """

    U: Array
    factors: tuple[Array, Array]
    u: Array

    def acceleration(self, moved: Array) -> Array:
        """Return vdot = D⁻¹(u - Uᵀ a), a the acceleration with the joint at rest."""
        rest = self.u - vector.apply(vector.transpose(self.U), moved)
        return linear.ldl_solve(self.factors, rest[..., None])[..., 0]


def _free_step(joint: Joint, link: Link, I: Articulated, p: Array, tau: Array) -> _Step:
    S, St = link.S, vector.transpose(link.S)
    U = concatenate(
        [
            I.A @ S[..., :3, :] + I.B @ S[..., 3:, :],
            vector.transpose(I.B) @ S[..., :3, :] + I.C @ S[..., 3:, :],
        ],
        trailing=2,
    )
    nv = S.shape[-1]
    rotor = joints.rotor_inertia(joint)[..., None] * np.eye(nv)
    D = linear.mirror(St @ U) + rotor
    u = tau[..., joint.v] - vector.apply(St, dual_quaternion.swap(p))
    try:
        return _Step(U, linear.ldl(D, None if is_symbolic(D) else _size(I, S) + rotor), u)
    except ValueRefused:
        raise ValueRefused(
            f"joint {joint.name!r} ({joint.kind}) has nothing to move: what it carries has no "
            "inertia along its freedoms"
        ) from None


def _size(I: Articulated, S: Array) -> Array:
    """Return |S|ᵀ|I||S|: what D would be if nothing in it cancelled."""
    A, B, C, a, b = (np.abs(x) for x in (*I, S[..., :3, :], S[..., 3:, :]))
    upper = A @ a + B @ b
    return vector.transpose(a) @ upper + vector.transpose(b) @ (vector.transpose(B) @ a + C @ b)


def _carried(link: Link, step: _Step, I: Articulated, p: Array) -> tuple[Articulated, Array]:
    """Return the inertia and bias that the parent feels: I - U D⁻¹ Uᵀ and p + I' c + U D⁻¹ u."""
    U, Ua, Ub = step.U, step.U[..., :3, :], step.U[..., 3:, :]
    K = linear.ldl_solve(step.factors, vector.transpose(U))  # D⁻¹ Uᵀ
    Ka, Kb = K[..., :, :3], K[..., :, 3:]
    left = Articulated(linear.mirror(I.A - Ua @ Ka), I.B - Ua @ Kb, linear.mirror(I.C - Ub @ Kb))
    pushed = dual_quaternion.swap(vector.apply(vector.transpose(K), step.u))
    return left, p + _apply(left, link.c) + pushed


def _given(link: Link, prescribed: Array | None) -> Array | None:
    """Return the acceleration a joint is held to; a fixed joint is held to none at all."""
    if link.S.shape[-1] == 0:
        return np.zeros(0)
    return prescribed


def _rigid(M: Inertia) -> Articulated:
    return Articulated(
        M.about_origin, vector.skew(M.moment), np.asarray(M.mass)[..., None, None] * np.eye(3)
    )


def _apply(I: Articulated, s: Array) -> Array:
    """Return the wrench [f, τ] of an acceleration [ω̇, v̇]."""
    omega, v = s[..., :3], s[..., 3:]
    f = vector.apply(vector.transpose(I.B), omega) + vector.apply(I.C, v)
    return concatenate([f, vector.apply(I.A, omega) + vector.apply(I.B, v)])


def _add(I: Articulated, J: Articulated) -> Articulated:
    return Articulated(*(a + b for a, b in zip(I, J, strict=True)))


def _to_outer(X: Transform, I: Articulated) -> Articulated:
    """Return an articulated inertia given in B's frame as A's.

    Turned to A', B', C'; shifted, with P = [p]×: C' stays, B'' = B' + P C' and
    A'' = A' - B'' P + P B'ᵀ.
    """
    Rt = vector.transpose(X.R)
    P = vector.skew(X.p)
    A, C = linear.congruence(Rt, I.A), linear.congruence(Rt, I.C)
    B = X.R @ I.B @ Rt
    shifted = B + P @ C
    return Articulated(linear.mirror(A - shifted @ P + P @ vector.transpose(B)), shifted, C)
