"""The decoupled Newton-Euler formulation (after Stoneking), VT18's reference for comparison.

Rotation and translation are separate, in three-vectors. The unknowns are the acceleration r̈ of
each centre of mass in inertial axes, the angular acceleration ω̇ of each body in its own axes, and
the reaction force and torque of each joint. The equations are Newton's and Euler's for every body,

    m r̈ = Σ F + m g,    I ω̇ + ω × I ω = Σ (τ + r × F),

and for every joint the relative acceleration of its two sides along the constrained directions. The
results equal those of the dual-quaternion form; the arithmetic differs.
"""

from __future__ import annotations

import numpy as np

from remora.algebra import linear, vector
from remora.algebra.array_ops import Array, asarray, concatenate
from remora.dynamics.joint_arrays import LoadedState, batch_shape, gather
from remora.dynamics.maximal import saddle_point
from remora.dynamics.maximal.joint_maps import (
    JointMaps,
    MaximalSolution,
    collected,
    constraint,
    joint_maps,
    mass_properties,
    refuse_unfit,
)
from remora.dynamics.recursive.outward_pass import Link, accelerations_of, moving_links
from remora.model import joints
from remora.model.robot import Robot

_cross, _apply, _T = vector.cross, vector.apply, vector.transpose


def solve_decoupled(robot: Robot, state: LoadedState) -> MaximalSolution:
    """Return accelerations, reactions and the forces of prescribed joints."""
    links = moving_links(robot, state.q, state.v)
    maps = joint_maps(robot, state.q, state.prescribed)
    R = _rotations(robot, state.q)
    y, T = saddle_point.solve(assembled(robot, state, links, maps, R))
    across: list[Array] = []
    for j, link in enumerate(links):
        side = _side(robot, links, R, j, j, y[j])
        if link.parent >= 0:
            side = side - _side(robot, links, R, j, link.parent, y[link.parent])
        across.append(side + _centripetal(robot, links, j) - _relative_rates(links, j))
    a = [_twist_rate(robot, links, R, j, y[j]) for j in range(len(links))]
    return collected(robot, state, maps, links, T, across, a)


def inverse_decoupled(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Array | None
) -> Array:
    """Return tau with every joint prescribed: accelerations outward, then forces inward."""
    links = moving_links(robot, q, v)
    held = {i: vdot[..., joint.v] for i, joint in enumerate(robot.joints)}
    own = [_apply(link.S, held[i]) for i, link in enumerate(links)]
    a = accelerations_of(links, own, root=np.zeros(6))
    y: list[Array] = []
    for body, link, turn, rate in zip(robot.bodies, links, _rotations(robot, q), a, strict=True):
        omega, velocity, omega_rate = link.twist[..., :3], link.twist[..., 3:], rate[..., :3]
        origin = rate[..., 3:] + _cross(omega, velocity)
        spin = _cross(omega_rate, body.com) + _cross(omega, _cross(omega, body.com))
        y.append(concatenate([_apply(turn, origin + spin), omega_rate]))
    maps, R = joint_maps(robot, q, held), _rotations(robot, q)
    state = LoadedState(q, v, 0.0 * v, wrenches, held)
    T = saddle_point.solve_known(assembled(robot, state, links, maps, R), y)
    taus = [t[..., 6 - link.S.shape[-1] :] for t, link in zip(T, links, strict=True)]
    return gather(robot, taus, batch_shape(q, v, vdot))


def assembled(
    robot: Robot, state: LoadedState, links: list[Link], maps: list[JointMaps], R: list[Array]
) -> saddle_point.SaddlePointSystem:
    """Assemble Newton's and Euler's equations and the joints' constraints."""
    refuse_unfit(robot, "decoupled")
    prescribed = state.prescribed
    numbers = mass_properties(robot)
    S12: dict[tuple[int, int], Array] = {}
    B1 = [_known(robot, links, R, i, state.wrenches) for i in range(len(links))]
    for j, (joint, link) in enumerate(zip(robot.joints, links, strict=True)):
        drive = maps[j].V_act @ state.tau[..., joint.v, None]
        sides = [(j, 1.0)] if link.parent < 0 else [(j, 1.0), (link.parent, -1.0)]
        for i, sign in sides:
            if j not in prescribed:
                B1[i] = B1[i] + sign * _on_body(robot, links, R, j, i, drive)[..., 0]
            if maps[j].V.shape[-1] > 0:
                S12[i, j] = -sign * _on_body(robot, links, R, j, i, maps[j].V)
    B2: list[Array] = []
    for j, link in enumerate(links):
        known = _relative_rates(links, j) - _centripetal(robot, links, j)
        if j in prescribed:
            known = known + _apply(link.S, prescribed[j])
        B2.append(_apply(constraint(maps[j].V), known))
    return saddle_point.SaddlePointSystem(
        S11=[_inertia(mass, inertia) for mass, inertia in numbers],
        S11_inverse=[_inertia(1.0 / mass, linear.inverse(inertia)) for mass, inertia in numbers],
        S12=S12,
        S21={(j, i): -_T(block) for (i, j), block in S12.items()},
        B1=B1,
        B2=B2,
    )


def _rotations(robot: Robot, q: Array) -> list[Array]:
    """Return every body's rotation matrix in the inertial frame."""
    R: list[Array] = []
    for joint in robot.joints:
        turn = joints.relative_transform(joint, q).R
        R.append(turn if joint.parent < 0 else R[joint.parent] @ turn)
    return R


def _inertia(mass: Array, inertia: Array) -> Array:
    """Return diag(m 1, I) `(..., 6, 6)`, for [r̈, ω̇]."""
    m = asarray(mass)[..., None, None] * np.eye(3)
    zero = np.zeros((3, 3))
    return concatenate([concatenate([m, zero]), concatenate([zero, inertia])], trailing=2)


def _known(
    robot: Robot, links: list[Link], R: list[Array], i: int, wrenches: Array | None
) -> Array:
    """Return the known force, inertial axes, and torque about the centre of mass, body axes."""
    body, omega = robot.bodies[i], links[i].twist[..., :3]
    force = asarray(body.mass)[..., None] * asarray(robot.gravity)
    torque = -_cross(omega, _apply(body.inertia, omega))
    if wrenches is not None:
        f, t = wrenches[..., i, :3], wrenches[..., i, 3:]
        force, torque = force + _apply(R[i], f), torque + t - _cross(body.com, f)
    return concatenate([force, torque])


def _lever(robot: Robot, links: list[Link], j: int, i: int) -> tuple[Array, Array]:
    """Return joint j's point relative to body i's centre of mass, and j's axes in i's."""
    com = robot.bodies[i].com
    if i == j:
        return -com, np.eye(3)
    return links[j].X.p - com, links[j].X.R


def _on_body(robot: Robot, links: list[Link], R: list[Array], j: int, i: int, W: Array) -> Array:
    """Return wrenches at joint j, in its axes, as force (inertial) and torque on body i."""
    r, turn = _lever(robot, links, j, i)
    f, t = turn @ W[..., :3, :], turn @ W[..., 3:, :]
    return concatenate([R[i] @ f, t + vector.skew(r) @ f], trailing=2)


def _side(robot: Robot, links: list[Link], R: list[Array], j: int, i: int, y: Array) -> Array:
    """Return [ω̇, r̈ of joint j's point] of body i without ω × (ω × r), in j's axes."""
    r, turn = _lever(robot, links, j, i)
    back, rate = _T(turn), y[..., 3:]
    linear_part = _apply(_T(R[i]), y[..., :3]) + _cross(rate, r)
    return concatenate([_apply(back, rate), _apply(back, linear_part)])


def _centripetal(robot: Robot, links: list[Link], j: int) -> Array:
    """Return the difference across joint j of ω × (ω × r) at its point, as [0, ·], j's axes."""
    link = links[j]
    sides = [(j, 1.0)] if link.parent < 0 else [(j, 1.0), (link.parent, -1.0)]
    total = np.zeros(3)
    for i, sign in sides:
        r, turn = _lever(robot, links, j, i)
        omega = links[i].twist[..., :3]
        total = total + sign * _apply(_T(turn), _cross(omega, _cross(omega, r)))
    return concatenate([np.zeros_like(total), total])


def _relative_rates(links: list[Link], j: int) -> Array:
    """Return the velocity-product terms of joint j: [ω_k × ω_rel, ω_rel × u + 2 ω_k × u] + Ṡ v.

    u is the velocity of the joint's point relative to the body it is mounted on.
    """
    link = links[j]
    if link.parent < 0:
        carried, own = np.zeros(3), link.twist
    else:
        carried = _apply(_T(link.X.R), links[link.parent].twist[..., :3])
        moved = links[link.parent].twist
        at_joint = moved[..., 3:] + _cross(moved[..., :3], link.X.p)
        own = link.twist - concatenate([carried, _apply(_T(link.X.R), at_joint)])
    turn, u = own[..., :3], own[..., 3:]
    rate = concatenate([_cross(carried, turn), _cross(turn, u) + 2.0 * _cross(carried, u)])
    if link.rate is not None:
        rate = rate + link.rate
    return rate


def _twist_rate(robot: Robot, links: list[Link], R: list[Array], i: int, y: Array) -> Array:
    """Return the rate of body i's twist in its own frame: v̇ = r̈ at the origin - ω × v."""
    omega, v = links[i].twist[..., :3], links[i].twist[..., 3:]
    at_origin = _side(robot, links, R, i, i, y)
    spin = _cross(omega, _cross(omega, -robot.bodies[i].com))
    return at_origin + concatenate([np.zeros_like(spin), spin - _cross(omega, v)])
