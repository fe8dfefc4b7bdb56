"""The composite-rigid-body algorithm (CRBA): the mass matrix from composite inertias."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.array_ops import Array, stack
from remora.algebra.screw import Inertia, Transform
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.dynamics.recursive.tree_passes import JointContext, Pass, added, run
from remora.model import joints
from remora.model.robot import Robot


def body_inertias(robot: Robot) -> list[Inertia]:
    """Return the spatial inertia of every body about its frame's origin, in its frame."""
    return [screw.inertia(b.mass, b.com, b.inertia) for b in robot.bodies]


class PlacedBody(NamedTuple):
    """A body's frame in its parent's, and the joint's motion subspace `(..., 6, nv_i)`."""

    X: Transform
    S: Array


class CompositeBody(NamedTuple):
    """The composite rigid body of a joint: all bodies it carries, with their joints locked.

    Attributes:
        M: its spatial inertia, in the frame of the joint's body.
    """

    M: Inertia


class DiagonalBlock(NamedTuple):
    """A joint's diagonal block of H, and the wrenches its unit accelerations require.

    Attributes:
        D: S_iᵀ (M̃_i S_i)ˢ and the rotor inertia, `(..., nv_i, nv_i)`.
        F: the wrenches M̃_i S_i in the parent's frame, `(..., 6, nv_i)`; None at a root.
    """

    D: Array
    F: Array | None


def _placement_step(at: JointContext, _before: Any, _parent: Any) -> tuple[PlacedBody, tuple[()]]:
    return PlacedBody(
        joints.relative_transform(at.joint, at.q), joints.motion_subspace(at.joint, at.q)
    ), ()


def _composite_step(
    at: JointContext, before: tuple[PlacedBody], beyond: Inertia | None
) -> tuple[CompositeBody, Inertia | None]:
    """Inward pass: the composite inertia; passes it to the parent, in the parent's frame."""
    M = added(beyond, at.inertia)
    return CompositeBody(M), None if at.is_root else screw.transform_inertia(before[0].X, M)


def _block_step(
    at: JointContext, before: tuple[PlacedBody], beyond: Inertia | None
) -> tuple[DiagonalBlock, Inertia | None]:
    """Inward pass: the joint's block of H and the wrenches of its unit accelerations."""
    (here,) = before
    (M,), on = _composite_step(at, before, beyond)
    F = screw.inertia_matrix(M) @ here.S
    rotor = joints.rotor_inertia(at.joint)[..., None] * np.eye(here.S.shape[-1])
    D = linear.mirror(paired(here.S, F)) + rotor if here.S.shape[-1] else np.zeros((0, 0))
    return DiagonalBlock(D, None if at.is_root else screw.columns_to_outer(here.X, F)), on


def ancestor_row(at: JointContext, here: PlacedBody, F: Array) -> tuple[Array, Array]:
    """Return the block S_jᵀFˢ of H, and the wrenches F `(..., 6, n)` in the parent's frame."""
    return paired(here.S, F), F if at.is_root else screw.columns_to_outer(here.X, F)


#: The passes: joint transforms outward; composite inertias and blocks of H inward.
CARRIED = (Pass(inward=False, step=_placement_step), Pass(inward=True, step=_composite_step))
BLOCKS = (Pass(inward=False, step=_placement_step), Pass(inward=True, step=_block_step))


def composite_inertias(robot: Robot, q: Array) -> list[Inertia]:
    """Return the composite inertia of every joint, in its body's frame."""
    return [here.M for here in run(robot, CARRIED, q=q)[1][-1]]


def mass_matrix_of(robot: Robot, q: Array) -> Array:
    """Return H `(..., nv, nv)`: H_ji = S_jᵀ (x M̃_i S_i x*)ˢ for joints j that carry i."""
    sites, (standing, left) = run(robot, BLOCKS, q=q)
    blocks: dict[tuple[int, int], Array] = {}
    for i, (at, (D, F)) in enumerate(zip(sites, left, strict=True)):
        if D.shape[-1] == 0:
            continue
        blocks[i, i] = D
        j = at.joint.parent
        while j >= 0:
            block, F = ancestor_row(sites[j], standing[j], F)
            if block.shape[-2]:
                blocks[j, i] = block
                blocks[i, j] = vector.transpose(block)
            j = sites[j].joint.parent
    return square(robot, blocks, batch_shape(q))


def mass_matrix_size(robot: Robot, q: Array) -> Array:
    """Return the magnitude of H's diagonal before cancellation, `(..., nv, nv)` diagonal.

    Used to decide whether H is singular to rounding.
    """
    blocks: dict[tuple[int, int], Array] = {}
    for i, (joint, M) in enumerate(zip(robot.joints, composite_inertias(robot, q), strict=True)):
        S = joints.motion_subspace(joint, q)
        if S.shape[-1]:
            size = linear.uncancelled(S, screw.inertia_diagonal(M)) + joints.rotor_inertia(joint)
            blocks[i, i] = size[..., None] * np.eye(S.shape[-1])
    return square(robot, blocks, batch_shape(q))


def paired(S: Array, F: Array) -> Array:
    """Return SᵀFˢ `(..., m, n)`: the work of wrenches F `(..., 6, n)` on the motion subspace S."""
    return vector.transpose(S) @ vector.transpose(dual_quaternion.swap(vector.transpose(F)))


def square(robot: Robot, blocks: dict[tuple[int, int], Array], batch: tuple[int, ...]) -> Array:
    """Assemble blocks by joint pair into a matrix `(*batch, nv, nv)`; mimic joints add up."""
    nv = robot.nv
    entries: list[list[Array]] = [[np.zeros(())] * nv for _ in range(nv)]
    for (j, i), block in blocks.items():
        rows, columns = range(nv)[robot.joints[j].v], range(nv)[robot.joints[i].v]
        for a, row in enumerate(rows):
            for b, column in enumerate(columns):
                entries[row][column] = entries[row][column] + block[..., a, b]
    if nv == 0:
        return np.zeros((*batch, 0, 0))
    return with_batch(stack([stack(row) for row in entries], axis=-2), batch, trailing=2)
