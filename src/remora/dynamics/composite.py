"""The mass matrix, from composite bodies: everything a joint carries, moving as one."""

from __future__ import annotations

import numpy as np

from remora.algebra import dual_quaternion, linear, screw, vector
from remora.algebra.namespace import Array, stack
from remora.algebra.screw import Inertia
from remora.dynamics.motion import batch_shape, with_batch
from remora.model import joints
from remora.model.robot import Robot
from remora.model.topology import ancestors


def body_inertias(robot: Robot) -> list[Inertia]:
    """Return every body's inertia about its frame's origin, in its frame."""
    return [screw.inertia(b.mass, b.com, b.inertia) for b in robot.bodies]


def composite_inertias(robot: Robot, q: Array) -> list[Inertia]:
    """Return for every joint the inertia of all it carries, in its body's frame."""
    composite = body_inertias(robot)
    for i in reversed(range(len(robot.joints))):
        joint = robot.joints[i]
        if joint.parent >= 0:
            X = joints.relative_transform(joint, q)
            carried = screw.transform_inertia(X, composite[i])
            composite[joint.parent] = screw.add_inertia(composite[joint.parent], carried)
    return composite


def mass_matrix_of(robot: Robot, q: Array) -> Array:
    """Return H `(..., nv, nv)`: H_ji = S_jᵀ (x M̃_i S_i x*)ˢ for j on the way from i to the base."""
    composite = composite_inertias(robot, q)
    X = [joints.relative_transform(joint, q) for joint in robot.joints]
    S = [joints.motion_screws(joint, q) for joint in robot.joints]
    blocks: dict[tuple[int, int], Array] = {}
    for i in range(len(robot.joints)):
        if S[i].shape[-1] == 0:
            continue
        F = screw.inertia_matrix(composite[i]) @ S[i]
        for j in ancestors(robot, i):
            if S[j].shape[-1] > 0:
                blocks[j, i] = paired(S[j], F)
            F = screw.columns_to_outer(X[j], F)
        blocks[i, i] = linear.mirror(blocks[i, i])
    for i, joint in enumerate(robot.joints):
        if (i, i) in blocks:
            rotor = joints.rotor_inertia(joint)[..., None] * np.eye(S[i].shape[-1])
            blocks[i, i] = blocks[i, i] + rotor
    mirrored = {(i, j): vector.transpose(block) for (j, i), block in blocks.items() if i != j}
    return square(robot, blocks | mirrored, batch_shape(q))


def mass_matrix_size(robot: Robot, q: Array) -> Array:
    """Return what H's diagonal would be if nothing in it cancelled, `(..., nv, nv)` diagonal.

    Only for judging whether H is singular to rounding.
    """
    blocks: dict[tuple[int, int], Array] = {}
    for i, (joint, M) in enumerate(zip(robot.joints, composite_inertias(robot, q), strict=True)):
        S = np.abs(joints.motion_screws(joint, q))
        if S.shape[-1]:
            rotor = joints.rotor_inertia(joint)[..., None] * np.eye(S.shape[-1])
            blocks[i, i] = paired(S, np.abs(screw.inertia_matrix(M)) @ S) + rotor
    return square(robot, blocks, batch_shape(q))


def paired(S: Array, F: Array) -> Array:
    """Return SᵀFˢ `(..., m, n)`: the work of the wrenches F `(..., 6, n)` on the screws S."""
    return vector.transpose(S) @ vector.transpose(dual_quaternion.swap(vector.transpose(F)))


def square(robot: Robot, blocks: dict[tuple[int, int], Array], batch: tuple[int, ...]) -> Array:
    """Place blocks by pairs of joints in a matrix `(*batch, nv, nv)`; followers add up."""
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
