"""VT18's Newton-Euler formulation: body dual accelerations and joint reactions as unknowns.

    [S11 S12; S21 0] [ẏ; T] = [B1; B2]    [VT18, eqs. 50-60]

Equations are as in the paper, in the eight components of dual quaternions, about the centres of
mass. VT18's joint frame i is our body frame i, in which the joint's maps V, Λ = Vᵀ(·)ˢ, V_act and L
are defined for all ten joint types; the base is a joint like any other. For a prescribed joint the
constraint includes its degrees of freedom: its map is [V, V_act], and its reaction along V_act is
the actuation that VT18 solve for in eqs. 61-76.

A closed loop is to S what a joint is: the wrench V λ acts on its child, -V λ on its parent, and
Λ = Vᵀ(·)ˢ of the relative acceleration is zero. A gear acts along V_act of its joints [VT18, Table
5].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw, vector
from remora.algebra.array_ops import Array, ArrayLike, asarray, concatenate
from remora.dynamics.constraints.contradictions import satisfying
from remora.dynamics.constraints.loop_kinematics import Loop, loops_at
from remora.dynamics.joint_arrays import (
    LoadedState,
    batch_shape,
    external_wrenches,
    gather,
    prescribed_by_index,
    with_batch,
)
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
from remora.dynamics.maximal.saddle_point import LoopRows
from remora.dynamics.recursive import articulated_body
from remora.dynamics.recursive.outward_pass import Link, accelerations_of, moving_links
from remora.model import joints
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.model.state import configuration, velocity
from remora.model.takes_robot import takes_robot
from remora.model.topology import incidence_matrix, negatives, positives


def solve_maximal(robot: Robot, state: LoadedState) -> MaximalSolution:
    """Return accelerations, reactions and the forces of prescribed joints [VT18, eqs. 57-76]."""
    return _solution(robot, state)[0]


def solve_closed(robot: Robot, state: LoadedState) -> tuple[MaximalSolution, Array]:
    """Return the solution with active constraints, and their multipliers `(..., m)`."""
    solution, lam = _solution(robot, state)
    free = articulated_body.hybrid(robot, state)[0]
    vdot = satisfying(robot, state.q, state.v, solution.vdot, free)
    return solution._replace(vdot=vdot), lam


def _solution(robot: Robot, state: LoadedState) -> tuple[MaximalSolution, Array]:
    links = moving_links(robot, state.q, state.v)
    maps = joint_maps(robot, state.q, state.prescribed)
    system = _assembled(robot, state, links, maps)
    ydot, T, lam = saddle_point.solve_with_loops(system, loop_rows(robot, links, maps))
    # from eight components at the centre of mass to six at the body frame's origin
    a = [
        screw.adjoint(pose.from_translation(body.com), dq.vec6(y))
        for body, y in zip(robot.bodies, ydot, strict=True)
    ]
    across: list[Array] = []
    for i, link in enumerate(links):
        before = np.zeros(6) if link.parent < 0 else a[link.parent]
        across.append(a[i] - screw.to_inner(link.X, before) - link.c)  # S v̇ [VT18, eq. 48]
    return collected(robot, state, maps, links, T, across, a), lam


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
    known = _assembled(robot, LoadedState(q, v, 0.0 * v, wrenches, held), links, maps)
    T = saddle_point.solve_known(known, ydot)
    taus = [t[..., 6 - link.S.shape[-1] :] for t, link in zip(T, links, strict=True)]
    return gather(robot, taus, batch_shape(q, v, vdot))


def system(
    robot: Robot, state: LoadedState, twists: Array | None = None
) -> saddle_point.SaddlePointSystem:
    """Return S11, S12, S21, B1 and B2 at a state [VT18, eqs. 51-56].

    `twists` `(..., nb, 6)`, if given, replace the body twists that follow from v.
    """
    links = _links(robot, state, twists)
    return _assembled(robot, state, links, joint_maps(robot, state.q, state.prescribed))


def _links(robot: Robot, state: LoadedState, twists: Array | None) -> list[Link]:
    """Return all bodies at a state, with other twists if there are any."""
    links = moving_links(robot, state.q, state.v)
    if twists is None:
        return links
    links = [replace(link, twist=twists[..., i, :]) for i, link in enumerate(links)]
    return [replace(link, c=_relative_rate(links, i)) for i, link in enumerate(links)]


def _relative_rate(links: list[Link], i: int) -> Array:
    """Return (x* ω_parent x) × ω_{i/parent} + Ṡ v from the bodies' own twists [VT18, eq. 48]."""
    link = links[i]
    rate = np.zeros(6) if link.rate is None else link.rate
    if link.parent < 0:
        return rate
    carried = screw.to_inner(link.X, links[link.parent].twist)
    return rate + screw.cross(carried, link.twist - carried)


class NewtonEulerSystem(NamedTuple):
    """VT18's linear system S [ẏ; T] = B and the maps of its joints [VT18, eqs. 50-57, 71-76].

    ẏ stacks every body's dual acceleration about its centre of mass, eight components each; T the
    reduced reaction wrenches of all joints, in order, then the multipliers of the active
    constraints. With prescribed joints the unknowns are [ŷ; T; W], without the accelerations of the
    bodies that these joints carry, and with the actuation W of these joints, in the robot's order.
    With r reactions and m multipliers in all, n = 8 nb + r + m; every prescribed joint with d
    degrees of freedom makes it smaller by 8 - d, as in eq. 76.

    Attributes:
        S: `(..., n, n)` [VT18, eqs. 50-54, 57; 71-76, corrected: all six rows of the distal body
            are kept, in place of the joint's r constraint rows].
        B: `(..., n)` [VT18, eqs. 55, 56, 74].
        V: for every joint, from its reduced reaction to its wrench, `(..., 8, r_j)` [Table 4].
        V_act: for every joint, from its generalized forces to its wrench, `(..., 8, d_j)` [Table
            5].
        Lambda: for every joint, Λ = Vᵀ(·)ˢ, from its dual velocity to the constrained part,
            `(..., r_j, 8)` [Table 4]; row n belongs to column n of V.
        L: for every joint, from its dual velocity to its speeds, `(..., d_j, 8)` [Table 6].
        P: ẏ = P ŷ + p [VT18, eq. 64]; the identity without prescribed joints, `(..., 8 nb, ·)`.
        p: `(..., 8 nb)`; zero without prescribed joints.
    """

    S: Array
    B: Array
    V: tuple[Array, ...]
    V_act: tuple[Array, ...]
    Lambda: tuple[Array, ...]
    L: tuple[Array, ...]
    P: Array
    p: Array


@takes_robot
def newton_euler_system(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    twists: ArrayLike | None = None,
    prescribed: Mapping[str, ArrayLike] | None = None,
) -> NewtonEulerSystem:
    """Return S, B and the joints' maps V, V_act, Λ and L of VT18's framework at a state.

    The maps are in the joint's frame, which is the frame of the body it carries. A joint that
    constrains nothing (a free base) has maps without columns or rows. Redundant constraints make S
    singular; `newton_euler_solution` takes them.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; zero by default, ignored for prescribed joints.
        wrenches: external, [f, τ] on each body in its own frame about its origin, `(..., nb, 6)`.
        twists: of all bodies in their own frames about their origins, `(..., nb, 6)`, in place of
            those that follow from v: VT18 integrate them as states, and they may have drifted.
        prescribed: accelerations of joints with prescribed motion, by name, as for
            `rm.hybrid_dynamics`.
    """
    q, v = configuration(robot, q), velocity(robot, v)
    forces = 0.0 * v if tau is None else velocity(robot, tau, "tau")
    w = external_wrenches(robot, wrenches)
    xi = None if twists is None else finite("twists", twists, len(robot.bodies), 6)
    batch = batch_shape(q, v, forces, *(x[..., 0, :] for x in (w, xi) if x is not None))
    held = dict(sorted(prescribed_by_index(robot, prescribed or {}, batch).items()))
    idle = {i for j in held for i in range(robot.nv)[robot.joints[j].v]}
    state = LoadedState(q, v, forces * np.array([i not in idle for i in range(robot.nv)]), w)
    links, maps = _links(robot, state, xi), joint_maps(robot, q, {})
    S, B = _dense(_assembled(robot, state, links, maps), loop_rows(robot, links, maps))
    S, B, P, p = _substituted(robot, q, links, maps, held, S, B)
    return NewtonEulerSystem(
        with_batch(S, batch, trailing=2),
        with_batch(B, batch, trailing=1),
        tuple(_eight(m.V) for m in maps),
        tuple(_eight(m.V_act) for m in maps),
        tuple(dq.pure(constraint(m.V)) for m in maps),
        tuple(dq.pure(m.L) for m in maps),
        with_batch(P, batch, trailing=2),
        with_batch(p, batch, trailing=1),
    )


def _dense(known: saddle_point.SaddlePointSystem, loops: LoopRows | None) -> tuple[Array, Array]:
    """Return S and B with the rows and columns of closed loops, which come last."""
    S, B = known.dense()
    if loops is None:
        return S, B
    m, rest = loops.B2.shape[-1], B.shape[-1] - 8 * len(known.B1)
    bodies = range(len(known.B1))
    right = [loops.S12.get(i, np.zeros((8, m))) for i in bodies]
    below = [loops.S21.get(i, np.zeros((m, 8))) for i in bodies]
    upper = concatenate([S, concatenate([*right, np.zeros((rest, m))], trailing=2)])
    lower = concatenate([*below, np.zeros((m, rest + m))])
    return concatenate([upper, lower], trailing=2), concatenate([B, loops.B2])


def _substituted(
    robot: Robot,
    q: Array,
    links: list[Link],
    maps: list[JointMaps],
    held: Mapping[int, Array],
    S: Array,
    B: Array,
) -> tuple[Array, Array, Array, Array]:
    """Return S and B of [VT18, eqs. 71-76] with eq. 64 substituted, P and p.

    Υ takes the distal body's rows to the joint, along V and V_act. As printed, along V_act alone,
    the equations along V are lost, and the joint's own constraint, which eq. 64 satisfies, stays.
    """
    n = 8 * len(robot.bodies)
    kept = [i for i in range(len(robot.bodies)) if i not in held]
    P, p = _distal_accelerations(robot, q, links, held, kept)
    left, right = concatenate([S[..., :n] @ P, S[..., n:]]), B - vector.apply(S[..., :n], p)
    start = n + np.cumsum([0, *(m.V.shape[-1] for m in maps)])
    dropped = {int(row) for j in held for row in range(start[j], start[j + 1])}
    columns = [_actuation_columns(robot, q, maps, j) for j in held]
    rows: list[Array] = []
    known: list[Array] = []
    for i in range(len(robot.bodies)):
        own = slice(8 * i, 8 * i + 8)
        zero = [np.zeros((8, maps[j].V_act.shape[-1])) for j in held]
        act = [column.get(i, none) for column, none in zip(columns, zero, strict=True)]
        row, b = concatenate([left[..., own, :], *act]), right[..., own]
        if i in held:
            x = pose.from_translation(robot.bodies[i].com)
            V = _eight(concatenate([maps[i].V, maps[i].V_act]))
            upsilon = vector.transpose(V) @ dq.left(x) @ dq.right(dq.conjugate(x))
            row, b = upsilon @ row, vector.apply(upsilon, b)
        rows.append(row)
        known.append(b)
    below = [k for k in range(n, B.shape[-1]) if k not in dropped]
    width = rows[0].shape[-1] - left.shape[-1]
    rows.append(concatenate([left[..., below, :], np.zeros((len(below), width))]))
    return concatenate(rows, trailing=2), concatenate([*known, right[..., below]]), P, p


def _distal_accelerations(
    robot: Robot, q: Array, links: list[Link], held: Mapping[int, Array], kept: list[int]
) -> tuple[Array, Array]:
    """Return P and p of ẏ = P ŷ + p: the accelerations of all bodies by those kept [eq. 64]."""
    to_com = [pose.from_translation(body.com) for body in robot.bodies]
    blocks: list[Array] = []
    known: list[Array] = []
    for i, link in enumerate(links):
        if i not in held:
            places = [np.eye(8) if k == i else np.zeros((8, 8)) for k in kept]
            blocks.append(concatenate(places) if places else np.zeros((8, 0)))
            known.append(np.zeros(8))
            continue
        own = link.c + vector.apply(link.S, held[i])
        b, block = dq.pure(screw.adjoint_inverse(to_com[i], own)), np.zeros((8, 8 * len(kept)))
        if link.parent >= 0:
            x = dq.mul(
                dq.conjugate(to_com[link.parent]),
                dq.mul(joints.relative_pose(robot.joints[i], q), to_com[i]),
            )
            A = dq.left(dq.conjugate(x)) @ dq.right(x)
            block = A @ blocks[link.parent]
            b = b + vector.apply(A, known[link.parent])
        blocks.append(block)
        known.append(b)
    return concatenate(blocks, trailing=2), concatenate(known)


def _actuation_columns(robot: Robot, q: Array, maps: list[JointMaps], j: int) -> dict[int, Array]:
    """Return by body the columns of a prescribed joint's actuation [VT18, eqs. 68, 69, 73]."""
    k = robot.joints[j].parent
    ends = [(j, dq.identity(), -1.0)] + (
        [(k, joints.relative_pose(robot.joints[j], q), 1.0)] if k >= 0 else []
    )
    columns: dict[int, Array] = {}
    for i, place, sign in ends:
        x = dq.mul(dq.conjugate(pose.from_translation(robot.bodies[i].com)), place)
        columns[i] = sign * (dq.left(x) @ dq.right(dq.conjugate(x)) @ _eight(maps[j].V_act))
    return columns


def _assembled(
    robot: Robot, state: LoadedState, links: list[Link], maps: list[JointMaps]
) -> saddle_point.SaddlePointSystem:
    """Assemble the blocks from the incidence matrix [VT18, eqs. 51-56]."""
    refuse_unfit(robot, "newton_euler")
    q, _, tau, wrenches, prescribed = state
    C = incidence_matrix(robot)
    to_com = [pose.from_translation(body.com) for body in robot.bodies]
    # q_{joint/body}: pose of the joint's frame relative to a body's centre of mass
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
    return saddle_point.SaddlePointSystem(
        S11=[screw.H(Mi) for Mi in M],
        S11_inverse=[screw.H_inverse(mass, inertia) for mass, inertia in numbers],
        S12=S12,
        S21=S21,
        B1=B1,
        B2=B2,
    )


def _joint_rate(link: Link, held: Array | None) -> Array:
    """Return the argument of Λ in eq. 56: the cross term, Ṡ v, and the prescribed S q̈."""
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
    """Return V with zero rows for the two scalar parts, `(..., 8, r)`."""
    return vector.transpose(dq.pure(vector.transpose(V)))


def loop_rows(robot: Robot, links: list[Link], maps: list[JointMaps]) -> LoopRows | None:
    """Return the rows of all active constraints, in eight components about the centres of mass."""
    loops = loops_at(robot, links)
    if not loops:
        return None
    wrenches: dict[int, list[Array]] = {i: [] for i in range(len(robot.bodies))}
    known: list[Array] = []
    touched: set[int] = set()
    for loop in loops:
        on, drift = _gear(loop, links, maps) if loop.to_joint else _between(loop)
        touched |= set(on)
        known.append(-drift)
        none = np.zeros((6, loop.V.shape[-1]))
        for i, columns in wrenches.items():
            columns.append(on.get(i, none))
    S12: dict[int, Array] = {}
    S21: dict[int, Array] = {}
    for i in sorted(touched):
        to_com = screw.transform(pose.from_translation(robot.bodies[i].com))
        V = screw.columns_to_inner(to_com, concatenate(wrenches[i]))
        S12[i] = -_eight(V)
        S21[i] = dq.pure(constraint(V))
    return LoopRows(S12, S21, concatenate(known))


def _between(loop: Loop) -> tuple[dict[int, Array], Array]:
    """Return the wrenches on both bodies, in their frames, and what d/dt(G v) has besides."""
    c = loop.constraint
    on = {c.child: loop.on_child(), c.parent: loop.on_parent()}
    return {i: V for i, V in on.items() if i >= 0}, loop.drift


def _gear(loop: Loop, links: list[Link], maps: list[JointMaps]) -> tuple[dict[int, Array], Array]:
    """Return the wrenches on the bodies on both sides of the joints, and the drift."""
    on: dict[int, Array] = {}
    drift = np.zeros(1)
    for j, force in loop.to_joint.items():
        V = vector.apply(maps[j].V_act, force)[..., None]
        drift = drift - force * vector.apply(maps[j].L, links[j].c)
        sides = [(j, V)]
        if links[j].parent >= 0:
            sides.append((links[j].parent, -screw.columns_to_outer(links[j].X, V)))
        for i, wrench in sides:
            on[i] = on[i] + wrench if i in on else wrench
    return on, drift
