"""VT18's framework: every body's dual acceleration and every joint's reaction as unknowns.

    [S11 S12; S21 0] [ẏ; T] = [B1; B2]    [VT18, eqs. 50-60]

Written as in the paper, in the eight components of dual quaternions and about the centres of
mass. VT18's joint frame i is our body frame i, in which the joint's maps V, Λ = Vᵀ(·)ˢ, V_act and
L are given for all ten kinds; the base is a joint like any other. A prescribed joint is one whose
constraint also holds its own freedoms: its map is [V, V_act], and what it passes on along V_act
is the actuation that VT18 solve for in eqs. 61-76.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw, vector
from remora.algebra.namespace import Array, asarray, concatenate
from remora.dynamics.joint_arrays import batch_shape, gather
from remora.dynamics.maximal import saddle_point
from remora.dynamics.maximal.joint_maps import (
    Maps,
    Solution,
    collected,
    constraint,
    joint_maps,
    mass_properties,
    refuse_unfit,
)
from remora.dynamics.recursive.outward_pass import Link, accelerations_of, moving_links
from remora.model import joints
from remora.model.robot import Robot
from remora.model.topology import incidence_matrix, negatives, positives


def solve_maximal(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> Solution:
    """Return accelerations, reactions and the forces of prescribed joints [VT18, eqs. 57-76]."""
    links = moving_links(robot, q, v)
    maps = joint_maps(robot, q, prescribed)
    ydot, T = saddle_point.solve(_assembled(robot, q, links, maps, tau, wrenches, prescribed))
    # from the centre of mass, in eight components, to the body frame's origin, in six
    a = [
        screw.adjoint(pose.from_translation(body.com), dq.vec6(y))
        for body, y in zip(robot.bodies, ydot, strict=True)
    ]
    across: list[Array] = []
    for i, link in enumerate(links):
        before = np.zeros(6) if link.parent < 0 else a[link.parent]
        across.append(a[i] - screw.to_inner(link.X, before) - link.c)  # S v̇ [VT18, eq. 48]
    batch = batch_shape(q, v, tau)
    return collected(robot, maps, links, tau, T, across, a, prescribed, batch)


def inverse_maximal(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None) -> Array:
    """Return tau with every joint prescribed: accelerations by eq. 64, wrenches by eq. 68."""
    links = moving_links(robot, q, v)
    held = {i: vdot[..., joint.v] for i, joint in enumerate(robot.joints)}
    own = [vector.apply(link.S, held[i]) for i, link in enumerate(links)]
    a = accelerations_of(links, own, root=np.zeros(6))
    ydot = [
        dq.pure(screw.adjoint_inverse(pose.from_translation(body.com), ai))
        for body, ai in zip(robot.bodies, a, strict=True)
    ]
    maps = joint_maps(robot, q, held)
    known = _assembled(robot, q, links, maps, 0.0 * v, wrenches, held)
    T = saddle_point.solve_known(known, ydot)
    taus = [t[..., 6 - link.S.shape[-1] :] for t, link in zip(T, links, strict=True)]
    return gather(robot, taus, batch_shape(q, v, vdot))


def system(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> saddle_point.Saddle:
    """Return S11, S12, S21, B1 and B2 at a state [VT18, eqs. 51-56]."""
    links, maps = moving_links(robot, q, v), joint_maps(robot, q, prescribed)
    return _assembled(robot, q, links, maps, tau, wrenches, prescribed)


def _assembled(
    robot: Robot,
    q: Array,
    links: list[Link],
    maps: list[Maps],
    tau: Array,
    wrenches: Array | None,
    prescribed: Mapping[int, Array],
) -> saddle_point.Saddle:
    """Assemble the blocks from the incidence matrix [VT18, eqs. 51-56]."""
    refuse_unfit(robot, "newton_euler")
    C = incidence_matrix(robot)
    to_com = [pose.from_translation(body.com) for body in robot.bodies]
    # q_{joint/body}: the joint's frame seen from a body's centre of mass
    seen: dict[tuple[int, int], Array] = {}
    for j, joint in enumerate(robot.joints):
        for i in positives(C[j]):
            seen[j, i] = dq.conjugate(to_com[i])
        for k in negatives(C[j]):
            seen[j, k] = dq.mul(dq.conjugate(to_com[k]), joints.relative_pose(joint, q))

    omega = [
        dq.pure(screw.adjoint_inverse(x, link.twist)) for x, link in zip(to_com, links, strict=True)
    ]
    numbers = mass_properties(robot)
    M = [screw.dual_inertia(mass, inertia) for mass, inertia in numbers]
    drive = [
        dq.pure(vector.apply(maps[j].V_act, tau[..., joint.v]))
        for j, joint in enumerate(robot.joints)
    ]
    gravity: list[Array] = []  # in each body's axes
    for link in links:
        before = asarray(robot.gravity) if link.parent < 0 else gravity[link.parent]
        gravity.append(vector.apply(vector.transpose(link.X.R), before))
    S12: dict[tuple[int, int], Array] = {}
    S21: dict[tuple[int, int], Array] = {}
    B1: list[Array] = []
    for i in range(len(robot.bodies)):
        b = -dq.cross(omega[i], vector.apply(M[i], dq.swap(omega[i])))
        b = b + _body_wrench(robot, gravity[i], i, to_com[i], wrenches)
        for j in negatives(C[:, i]) + positives(C[:, i]):
            sign = 1.0 if C[j, i] == 1 else -1.0
            x = seen[j, i]
            sandwich = dq.left(x) @ dq.right(dq.conjugate(x))  # ⟦q⟧L⟦q*⟧R
            if j not in prescribed:
                b = b + sign * vector.apply(sandwich, drive[j])  # eq. 55
            if maps[j].V.shape[-1] == 0:
                continue
            back = dq.left(dq.conjugate(x)) @ dq.right(x)
            S12[i, j] = -sign * (sandwich @ _eight(maps[j].V))  # eq. 53
            S21[j, i] = sign * (dq.pure(constraint(maps[j].V)) @ back)  # eq. 54
        B1.append(b)
    B2 = [
        vector.apply(constraint(maps[j].V), _joint_rate(link, prescribed.get(j)))
        for j, link in enumerate(links)
    ]
    return saddle_point.Saddle(
        S11=[screw.H(Mi) for Mi in M],
        S11_inverse=[screw.H_inverse(mass, inertia) for mass, inertia in numbers],
        S12=S12,
        S21=S21,
        B1=B1,
        B2=B2,
    )


def _joint_rate(link: Link, held: Array | None) -> Array:
    """Return what eq. 56 puts through Λ: the cross term, Ṡ v, and the prescribed S q̈."""
    return link.c if held is None else link.c + vector.apply(link.S, held)


def _body_wrench(
    robot: Robot, gravity: Array, i: int, to_com: Array, wrenches: Array | None
) -> Array:
    """Return gravity and the external wrench about the centre of mass, `(..., 8)`."""
    weight = asarray(robot.bodies[i].mass)[..., None] * gravity
    total = concatenate([weight, np.zeros_like(weight)])
    if wrenches is not None:
        total = total + screw.adjoint_inverse(to_com, wrenches[..., i, :])
    return dq.pure(total)


def _eight(V: Array) -> Array:
    """Return V with the empty rows of the two scalar parts, `(..., 8, r)`."""
    return vector.transpose(dq.pure(vector.transpose(V)))
