"""Solution of M v̇ + bias = τ for accelerations and forces, with any joints prescribed."""

from __future__ import annotations

from collections.abc import Mapping

from remora.algebra import linear, vector
from remora.algebra.array_ops import Array, stack
from remora.dynamics.joint_arrays import batch_shape, with_batch
from remora.model.robot import Robot


def solve_prescribed(
    robot: Robot,
    M: Array,
    bias: Array,
    tau: Array,
    prescribed: Mapping[int, Array],
    size: Array | None = None,
) -> tuple[Array, Array]:
    """Return vdot and tau of M v̇ + bias = τ with prescribed accelerations of some joints.

    Args:
        robot: the robot.
        M: mass matrix, `(..., nv, nv)`.
        bias: all forces at v̇ = 0, `(..., nv)`.
        tau: generalized forces, `(..., nv)`; ignored for prescribed joints.
        prescribed: accelerations `(..., nv_i)` by joint index.
        size: magnitude of M's diagonal before cancellation, to decide whether M is singular.
    """
    held = [i for j in prescribed for i in range(robot.nv)[robot.joints[j].v]]
    free = [i for i in range(robot.nv) if i not in held]
    batch = batch_shape(M[..., 0, :], tau, bias)
    values = [with_batch(prescribed[j], batch, trailing=1) for j in prescribed]
    given = {
        place: values[k][..., n]
        for k, j in enumerate(prescribed)
        for n, place in enumerate(range(robot.nv)[robot.joints[j].v])
    }
    rest = tau - bias
    if given:
        known = stack([given[i] for i in held])
        rest = rest - vector.apply(M[..., :, held], known)
    entries: dict[int, Array] = dict(given)
    if free:
        right = stack([rest[..., i] for i in free])
        block = M[..., free, :][..., :, free]
        size = None if size is None else size[..., free, :][..., :, free]
        found = linear.ldl_solve(linear.ldl(block, size), right[..., None], size)[..., 0]
        entries |= {place: found[..., n] for n, place in enumerate(free)}
    vdot = with_batch(stack([entries[i] for i in range(robot.nv)]), batch, trailing=1)
    force = vector.apply(M, vdot) + bias
    parts = [force[..., i] if i in given else tau[..., i] for i in range(robot.nv)]
    return vdot, with_batch(stack(parts), batch, trailing=1)
