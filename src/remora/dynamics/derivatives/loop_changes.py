"""Derivatives of the constraints along the tangent: of G v̇ - γ and of Gᵀλ by q and v.

All screws of a constraint are in one frame, the root's of one of the trees that it connects. With F
its wrenches, V and A the twists and accelerations of child and parent, ξ = V_c - V_p, and N(ξ) the
rate of F in the child's frame (`constraint_types`),

    α = G v̇ - γ = ⟨A_c - A_p - V_p × ξ, F⟩ + ⟨ξ, N(ξ)⟩.

A motion dq of joint k with motion subspace S changes, seen from the child, ξ by D = ±(E + S × V_p)
and F by N(±S), + on the child's branch and - on the parent's, so that

    ∂α/∂q_k = ±⟨K + S × A_p + E × V_p - V_c × (E + S × V_p), F⟩ + terms in N,
    ∂α/∂v_k = ±⟨E + Ṡ + S × (V_p + V_c), F⟩ + terms in N,

with the E and K of `tree_changes`. Joints that carry both bodies change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, screw, vector
from remora.algebra.array_ops import Array, concatenate, stack
from remora.algebra.screw import Transform
from remora.dynamics.constraints.constraint_types import constraint_type
from remora.dynamics.constraints.loop_kinematics import Loop, branches
from remora.dynamics.derivatives.root_frame import (
    Accelerations,
    RootFrameLink,
    as_row,
    as_rows,
    chained,
)
from remora.dynamics.derivatives.tree_changes import Change, work
from remora.model.robot import Robot
from remora.model.topology import ancestors

_REST = np.zeros(6)


class Branch(NamedTuple):
    """One side of a constraint.

    Attributes:
        body: the body on this side, -1 for the inertial frame.
        sign: 1.0 on the child's side, -1.0 on the parent's.
        joints: those that carry only this side's body, without rigid ones.
        X: from this tree's root frame to the constraint's common frame; None if they are the same.
        twist: of the body, `(..., 6)`, common frame.
    """

    body: int
    sign: float
    joints: list[int]
    X: Transform | None
    twist: Array

    def seen(self, rows: Array) -> Array:
        """Return rows of screws `(..., n, 6)` of this side's tree in the common frame."""
        if self.X is None:
            return rows
        return screw.to_outer(Transform(self.X.R[..., None, :, :], self.X.p[..., None, :]), rows)


class PlacedLoop(NamedTuple):
    """An active constraint between two frames at a state, in one frame.

    Attributes:
        loop: the constraint.
        Z: the child's constraint frame in the common frame.
        F: its wrenches on the child as rows, `(..., m_c, 6)`.
        child: the child's side.
        parent: the parent's side.
        root: the joint whose root frame is the common frame.
        shared: joints that carry both bodies.
    """

    loop: Loop
    Z: Transform
    F: Array
    child: Branch
    parent: Branch
    root: int
    shared: list[int]

    @property
    def slip(self) -> Array:
        """ξ, the child's twist relative to the parent, `(..., 6)`."""
        return self.child.twist - self.parent.twist

    def sides(self) -> tuple[Branch, Branch]:
        """Return both sides."""
        return self.child, self.parent

    def turned(self, rows: Array) -> Array | None:
        """Return N of rows of twists `(..., n, 6)` as wrenches `(..., n, m_c, 6)`; None: zero."""
        constraint = self.loop.constraint
        rate = constraint_type(constraint).rate
        if rate is None:
            return None
        inner = _rows_to_inner(self.Z, rows)
        found = [rate(constraint, self.loop.X, inner[..., k, :]) for k in range(rows.shape[-2])]
        return stack([as_rows(self.Z, N) for N in found], axis=-3)

    def bent(self, rows: Array) -> Array | None:
        """Return the change of N(ξ) when the child moves along rows of twists, as `turned`."""
        constraint = self.loop.constraint
        bend = constraint_type(constraint).bend
        if bend is None:
            return None
        xi = screw.to_inner(self.Z, self.slip)
        inner = _rows_to_inner(self.Z, rows)
        found = [bend(constraint, self.loop.X, xi, inner[..., k, :]) for k in range(rows.shape[-2])]
        return stack([as_rows(self.Z, N) for N in found], axis=-3)


def placed_loops(
    robot: Robot, loops: Sequence[Loop], links: list[RootFrameLink]
) -> list[PlacedLoop | None]:
    """Return every active constraint in one frame at the state of the links; None for gears."""
    return [None if loop.to_joint else _placed(robot, loop, links) for loop in loops]


def _placed(robot: Robot, loop: Loop, links: list[RootFrameLink]) -> PlacedLoop:
    c = loop.constraint
    up, down = branches(robot, c)
    roots = [ancestors(robot, body)[-1] if body >= 0 else -1 for body in (c.child, c.parent)]
    places = [
        None if body < 0 else chained(links[body].X, to_body)
        for body, to_body in ((c.child, loop.to_child), (c.parent, loop.to_parent))
    ]
    at = 0 if places[0] is not None else 1
    Z = places[at]
    assert Z is not None
    sides: list[Branch] = []
    for k, (body, sign, branch) in enumerate(((c.child, 1.0, down), (c.parent, -1.0, up))):
        place, X = places[k], None
        joints = [j for j in branch if links[j].S.shape[-2]]
        if place is not None and roots[k] != roots[at]:
            R = Z.R @ vector.transpose(place.R)
            X = Transform(R, Z.p - vector.apply(R, place.p))
        side = Branch(body, sign, joints, X, _REST)
        if body >= 0:
            side = side._replace(twist=side.seen(as_row(links[body].twist))[..., 0, :])
        sides.append(side)
    shared = [j for j in ancestors(robot, c.child) if j not in down]
    return PlacedLoop(loop, Z, as_rows(Z, loop.V), sides[0], sides[1], roots[at], shared)


# Rows of all constraints --------------------------------------------------------------------------


def jacobian_of(
    robot: Robot,
    loops: Sequence[Loop],
    placed: Sequence[PlacedLoop | None],
    links: list[RootFrameLink],
) -> Array:
    """Return G `(..., m, nv)`."""
    parts: list[Array] = []
    for loop, at in zip(loops, placed, strict=True):
        blocks = {j: force[..., None] for j, force in loop.to_joint.items()}
        if at is not None:
            for side in at.sides():
                for j in side.joints:
                    blocks[j] = side.sign * work(at.F, side.seen(links[j].S))
        parts.append(_across(robot, blocks, loop.V.shape[-1]))
    return _joined(parts)


def rates_of(
    robot: Robot,
    loops: Sequence[Loop],
    placed: Sequence[PlacedLoop | None],
    A: Accelerations,
    vdot: Array,
) -> Array:
    """Return α = G v̇ - γ `(..., m)` at the accelerations A of all bodies and vdot of all joints."""
    parts: list[Array] = []
    for loop, at in zip(loops, placed, strict=True):
        if at is None:
            row = np.zeros(1)
            for j, force in loop.to_joint.items():
                row = row + force * vdot[..., robot.joints[j].v]
            parts.append(row[..., None])
            continue
        Vp, xi = at.parent.twist, at.slip
        a = _relative(at, A) - screw.cross(Vp, xi)
        row = work(at.F, as_row(a))
        N = at.turned(as_row(xi))
        parts.append(row if N is None else row + work(N[..., 0, :, :], as_row(xi)))
    return _joined(parts)[..., 0]


def bias_slopes(
    robot: Robot,
    loops: Sequence[Loop],
    placed: Sequence[PlacedLoop | None],
    links: list[RootFrameLink],
    A: Accelerations,
    displaced: Sequence[Change],
) -> tuple[Array, Array]:
    """Return ∂α/∂q along the tangent and ∂α/∂v, `(..., m, nv)` each, at fixed v̇.

    Args:
        robot: the robot.
        loops: the active constraints.
        placed: the same in one frame each.
        links: all links in the root's frame.
        A: accelerations of all bodies at v̇.
        displaced: the effect of displacing each joint, from `tree_changes`.
    """
    by_q: list[Array] = []
    by_v: list[Array] = []
    for loop, at in zip(loops, placed, strict=True):
        dq, dv = ({}, {}) if at is None else _own_bias_slopes(at, links, A, displaced)
        by_q.append(_across(robot, dq, loop.V.shape[-1]))
        by_v.append(_across(robot, dv, loop.V.shape[-1]))
    return _joined(by_q), _joined(by_v)


def _own_bias_slopes(
    at: PlacedLoop, links: list[RootFrameLink], A: Accelerations, displaced: Sequence[Change]
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return the slopes of one constraint by joint, `(..., m_c, nv_j)`."""
    Vc, Vp = as_row(at.child.twist), as_row(at.parent.twist)
    Ap = as_row(_acceleration(at, at.parent, A))
    dq: dict[int, Array] = {}
    dv: dict[int, Array] = {}
    for side in at.sides():
        for j in side.joints:
            rows = links[j].S, links[j].carried, links[j].rate, displaced[j].acceleration
            S, E, rate, K = map(side.seen, rows)
            D = E + screw.cross(S, Vp)
            z = K + screw.cross(S, Ap) + screw.cross(E, Vp) - screw.cross(Vc, D)
            y = E + rate + screw.cross(S, Vp + Vc)
            turned_q, turned_v = _slopes_of_turning_wrenches(at, A, S, D)
            dq[j] = side.sign * (work(at.F, z) + turned_q)
            dv[j] = side.sign * (work(at.F, y) + turned_v)
    return dq, dv


def _slopes_of_turning_wrenches(
    at: PlacedLoop, A: Accelerations, S: Array, D: Array
) -> tuple[Array, Array]:
    """Return the terms in N of the slopes, `(..., m_c, n)` each, zero for a constant F.

    ⟨A_c - A_p - V_c × ξ, N(S)⟩ + ⟨D, N(ξ)⟩ + ⟨ξ, N(D)⟩ + ⟨ξ, ∂N(ξ) S⟩ and ⟨S, N(ξ)⟩ + ⟨ξ, N(S)⟩.
    """
    xi = as_row(at.slip)
    still, N, ND, bent = at.turned(xi), at.turned(S), at.turned(D), at.bent(S)
    if still is None or N is None or ND is None or bent is None:
        return np.zeros(()), np.zeros(())
    felt = as_row(_relative(at, A)) - screw.cross(as_row(at.child.twist), xi)
    by_q = _paired(N, felt) + work(still[..., 0, :, :], D) + _paired(ND + bent, xi)
    return by_q, work(still[..., 0, :, :], S) + _paired(N, xi)


def jacobian_slopes(
    robot: Robot,
    loops: Sequence[Loop],
    placed: Sequence[PlacedLoop | None],
    links: list[RootFrameLink],
) -> Array:
    """Return ∂(G y)/∂q along the tangent at fixed y, `(..., m, nv)`, for links that move with y."""
    parts: list[Array] = []
    for loop, at in zip(loops, placed, strict=True):
        blocks = {} if at is None else _own_jacobian_slopes(at, links)
        parts.append(_across(robot, blocks, loop.V.shape[-1]))
    return _joined(parts)


def _own_jacobian_slopes(at: PlacedLoop, links: list[RootFrameLink]) -> dict[int, Array]:
    blocks: dict[int, Array] = {}
    for side in at.sides():
        for j in side.joints:
            S, E = side.seen(links[j].S), side.seen(links[j].carried)
            block = work(at.F, E + screw.cross(S, as_row(at.parent.twist)))
            N = at.turned(S)
            block = block if N is None else block + _paired(N, as_row(at.slip))
            blocks[j] = side.sign * block
    return blocks


def force_slopes(
    robot: Robot, placed: Sequence[PlacedLoop | None], links: list[RootFrameLink], lam: Array
) -> dict[tuple[int, int], Array]:
    """Return what ∂(Gᵀλ)/∂q has besides wrenches that move with their bodies, by joint pair.

    The wrench Fᵀλ moves with the child. A motion of the child relative to the parent turns the
    wrench on the parent, which `tree_changes` lets move with the parent; and F itself may turn in
    the child's frame.
    """
    blocks: dict[tuple[int, int], Array] = {}
    for at, own in zip(placed, _split(placed, lam), strict=True):
        if at is None:
            continue
        w = as_row(vector.apply(vector.transpose(at.F), own))
        for side in at.sides():
            for k in side.joints:
                S = side.seen(links[k].S)
                moved, N = screw.cross(S, w), at.turned(S)
                rates = None if N is None else np.sum(N * own[..., None, :, None], axis=-2)
                for j, rows, wrench in _felt(at, links, moved, rates):
                    block = side.sign * work(rows, wrench)
                    blocks[j, k] = blocks[j, k] + block if (j, k) in blocks else block
    return blocks


def _felt(
    at: PlacedLoop, links: list[RootFrameLink], moved: Array, rates: Array | None
) -> Iterable[tuple[int, Array, Array]]:
    """Yield the joints that feel the wrenches of `force_slopes`, their S and the wrenches."""
    for j in at.child.joints:
        if rates is not None:
            yield j, at.child.seen(links[j].S), rates
    for j in at.parent.joints:
        yield j, at.parent.seen(links[j].S), -moved if rates is None else -moved - rates
    for j in at.shared:
        yield j, links[j].S, -moved


def _split(placed: Sequence[PlacedLoop | None], lam: Array) -> list[Array]:
    """Return every constraint's part of the multipliers; a gear has one."""
    parts: list[Array] = []
    start = 0
    for at in placed:
        count = 1 if at is None else at.F.shape[-2]
        parts.append(lam[..., start : start + count])
        start += count
    return parts


def _acceleration(at: PlacedLoop, side: Branch, A: Accelerations) -> Array:
    """Return the acceleration of the body on a side, of the inertial frame for -1, `(..., 6)`."""
    if side.body < 0:
        return A.before[at.root]
    return side.seen(as_row(A.own[side.body]))[..., 0, :]


def _relative(at: PlacedLoop, A: Accelerations) -> Array:
    return _acceleration(at, at.child, A) - _acceleration(at, at.parent, A)


def _paired(N: Array, xi: Array) -> Array:
    """Return ⟨ξ, N⟩ `(..., m_c, n)` for N `(..., n, m_c, 6)` and one row ξ `(..., 1, 6)`."""
    return vector.transpose(np.sum(N * dual_quaternion.swap(xi)[..., None, :], axis=-1))


def _rows_to_inner(X: Transform, rows: Array) -> Array:
    return screw.to_inner(Transform(X.R[..., None, :, :], X.p[..., None, :]), rows)


def _across(robot: Robot, blocks: dict[int, Array], count: int) -> Array:
    """Return rows `(..., count, nv)` from blocks `(..., count, nv_j)` by joint."""
    columns: list[Array] = [np.zeros(count)] * robot.nv
    for j, block in blocks.items():
        for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
            columns[place] = columns[place] + block[..., :, k]
    return stack(columns, axis=-1)


def _joined(parts: list[Array]) -> Array:
    return concatenate(parts, trailing=2)
