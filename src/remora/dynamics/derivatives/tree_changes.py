"""What a change at one joint does to the tree: displaced, sped up, for every pair of joints.

All quantities are in the root body's frame (`root_frame`). A motion dq of joint k moves its subtree
along δ = S_k dq. It changes the subtree's twists by δ × V + E_k dq and accelerations by δ × A + E_k
dq × V + K_k dq, hence the wrench through a joint j beyond it by

    δ × F_j + M̃_j ⋆ K_k dq + 2 C̃_j E_k dq,

with M̃_j the composite inertia of joint j and C̃_j e = ∫ [e × ṙ, r × (e × ṙ)] dm, the Coriolis
forces on its subtree. For a joint j that carries k, use F_k, M̃_k and C̃_k instead. A change of v
has the same form with S_k for E_k and E_k + Ṡ_k for K_k, and no displacement. Each pair of joints
then costs a few dot products; docs/derivatives.md has the derivation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, stack
from remora.dynamics.derivatives.root_frame import (
    Accelerations,
    RootFrameBody,
    RootFrameLink,
    as_row,
    as_rows,
    carried_by,
    links_of,
    loads_of,
    moving_bodies,
)
from remora.dynamics.joint_arrays import gather
from remora.dynamics.recursive.composite_rigid_body import square
from remora.model import joints
from remora.model.robot import Joint, Robot
from remora.model.topology import ancestors

Blocks = dict[tuple[int, int], Array]
"""A matrix as blocks by joint pair (row, column); missing blocks are zero."""


# Changes at a joint ------------------------------------------------------------------------------


class Tree(NamedTuple):
    """A robot at one state, with the composite body of every joint.

    Attributes:
        robot: the robot.
        links: all links in the root's frame.
        bodies: the single bodies.
        carried: the composite body of each joint.
        momenta: M̃_i ⋆ S_i for every joint as rows, `(..., nv_i, 6)`.
        batch: the state's batch shape.
    """

    robot: Robot
    links: list[RootFrameLink]
    bodies: list[RootFrameBody]
    carried: list[RootFrameBody]
    momenta: list[Array]
    batch: tuple[int, ...]

    def matrix(self, blocks: Blocks) -> Array:
        """Return a matrix `(..., nv, nv)` from its blocks."""
        return square(self.robot, blocks, self.batch)


def tree_at(robot: Robot, q: Array, v: Array) -> Tree:
    """Return a robot at the state q, v."""
    links = links_of(robot, q, v)
    bodies = moving_bodies(robot, links)
    carried = carried_by(links, bodies)
    momenta = [body.inertia_times(link.S) for link, body in zip(links, carried, strict=True)]
    return Tree(robot, links, bodies, carried, momenta, q.shape[:-1])


class Change(NamedTuple):
    """The effect of a unit change at one joint on its subtree, as rows.

    Attributes:
        acceleration: K, added to the whole subtree, `(..., n, 6)`.
        turning: 2 e, for the Coriolis forces on the subtree, `(..., n, 3)`.
        wrench: change of the required wrench by displacement, `(..., n, 6)`; None: no displacement.
        own: change of the joint's forces by the change of its own S, `(..., n, n)`.
    """

    acceleration: Array
    turning: Array
    wrench: Array | None = None
    own: Array | None = None


def displacement_changes(
    tree: Tree, q: Array, v: Array, vdot: Array, A: Accelerations, wrenches: Array | None
) -> list[Change]:
    """Return the effect of displacing each joint.

    E = V_parent × S and K = A_parent × S + V_parent × E if S is constant in the body's frame.
    Otherwise v = q̇, and E = Ṡ and K = S̈.

    Args:
        tree: the robot at q, v.
        q: configuration, `(..., nq)`.
        v: velocity, `(..., nv)`.
        vdot: rate of v, `(..., nv)`.
        A: accelerations of all bodies, from `root_frame.accelerations_of`.
        wrenches: on each body in its own frame, which they move with, `(..., nb, 6)`, or None.
    """
    loads = loads_of(tree.links, tree.bodies, A.own, wrenches)
    changes: list[Change] = []
    for i, (link, joint) in enumerate(zip(tree.links, tree.robot.joints, strict=True)):
        S, E, own = link.S, link.carried, None
        second = joints.motion_subspace_second_rate(joint, q, v, vdot)
        if second is None or link.own_rate is None:
            K = screw.cross(as_row(A.before[i]), S) + screw.cross(as_row(link.before), E)
        else:
            turned = screw.cross(as_row(link.twist), E + link.own_rate)
            K = screw.cross(as_row(A.own[i]), S) + turned + as_rows(link.X, second)
            own = _work_of_own_screws(tree.robot, joint, q, screw.to_inner(link.X, loads[i]))
        displaced = screw.cross(S, as_row(loads[i]))
        changes.append(Change(K, E[..., :3] + E[..., :3], displaced, own))
    return changes


def _work_of_own_screws(robot: Robot, joint: Joint, q: Array, load: Array) -> Array:
    """Return (∂S/∂q_k)ᵀ Fˢ as column k, `(..., n, n)`, in the body's frame."""
    units = np.eye(robot.nv)[joint.v]
    rates = [joints.motion_subspace_rate(joint, q, unit) for unit in units]
    F = dual_quaternion.swap(load)
    return stack([vector.apply(vector.transpose(dS), F) for dS in rates if dS is not None])


def speed_changes(tree: Tree) -> list[Change]:
    """Return the effect of changing the speed of each joint."""
    return [Change(link.carried + link.rate, 2.0 * link.S[..., :3]) for link in tree.links]


def without_free_base(changes: list[Change]) -> tuple[list[Change], Blocks]:
    """Return the changes without the part that a free base alone takes up, and that part: -v̇.

    The base's S is the identity: if all accelerations are to change by K, the base's v̇ changes by
    -K, and nothing else changes.
    """
    K = changes[0].acceleration
    if K.shape[-2] < 6:
        return changes, {}
    first = changes[0]._replace(acceleration=np.zeros((6, 6)))
    return [first, *changes[1:]], {(0, 0): vector.transpose(K)}


# Pairs of joints ---------------------------------------------------------------------------------


def responses(tree: Tree, changes: list[Change]) -> Blocks:
    """Return the response of every joint's forces (row) to a change at every joint (column)."""
    blocks: Blocks = {}
    for i, (link, carried, change) in enumerate(
        zip(tree.links, tree.carried, changes, strict=True)
    ):
        wrench = carried.inertia_times(change.acceleration) + carried.coriolis(change.turning)
        if change.wrench is not None:
            wrench = wrench + change.wrench
        turned = carried.coriolis_work(link.S)
        for j in ancestors(tree.robot, i):
            if j != i:
                blocks[j, i] = work(tree.links[j].S, wrench)
            answer = work(tree.momenta[i], changes[j].acceleration)
            blocks[i, j] = answer + turned @ vector.transpose(changes[j].turning)
        if change.own is not None:
            blocks[i, i] = blocks[i, i] + change.own
    return blocks


def mass_blocks(tree: Tree) -> Blocks:
    """Return H: S_jᵀ (M̃_i ⋆ S_i)ˢ where joint j carries joint i, plus rotor inertias."""
    blocks: Blocks = {}
    for i, joint in enumerate(tree.robot.joints):
        for j in ancestors(tree.robot, i):
            blocks[j, i] = work(tree.links[j].S, tree.momenta[i])
            blocks[i, j] = vector.transpose(blocks[j, i])
        if tree.links[i].S.shape[-2]:
            blocks[i, i] = linear.mirror(blocks[i, i]) + _rotor(joint)
    return blocks


def required_forces(tree: Tree, A: Accelerations, wrenches: Array | None) -> Array:
    """Return the forces `(..., nv)` for accelerations of all bodies, without rotors."""
    loads = loads_of(tree.links, tree.bodies, A.own, wrenches)
    parts = [
        work(link.S, as_row(load))[..., 0] for link, load in zip(tree.links, loads, strict=True)
    ]
    return gather(tree.robot, parts, tree.batch)


def mass_matrix_scale(tree: Tree) -> Array:
    """Return the magnitude of H's diagonal before cancellation, to judge its rounding."""
    blocks: Blocks = {}
    for i, (joint, link) in enumerate(zip(tree.robot.joints, tree.links, strict=True)):
        S, diagonal = vector.transpose(link.S), screw.inertia_diagonal(tree.carried[i].inertia)
        size = linear.uncancelled(S, diagonal)[..., None] * np.eye(S.shape[-1])
        blocks[i, i] = size + _rotor(joint)
    return tree.matrix(blocks)


def _rotor(joint: Joint) -> Array:
    rotor = joints.rotor_inertia(joint)
    return rotor[..., None] * np.eye(rotor.shape[-1])


def work(S: Array, F: Array) -> Array:
    """Return the work of rows of wrenches on rows of twists, `(..., m, 6), (..., n, 6) -> mn`."""
    return S @ vector.transpose(dual_quaternion.swap(F))
