"""The magnitude of the rows of G before cancellation, to tell small rows from rounding errors."""

from __future__ import annotations

import numpy as np

from remora.algebra import screw, vector
from remora.algebra.array_ops import Array, stack
from remora.algebra.screw import Transform
from remora.dynamics.constraints.loop_kinematics import Loop
from remora.model.robot import Robot
from remora.model.topology import ancestors


def row_sizes(
    robot: Robot, loops: list[Loop], X: list[Transform], S: list[Array], w: Array
) -> Array:
    """Return the squared length of every row in the metric of M⁻¹ before cancellation, `(..., m)`.

    A unit force moves a joint with the reach of the whole branch as lever, a unit torque without.

    Args:
        robot: the robot.
        loops: the active constraints at the state.
        X: transforms of all bodies to their parents.
        S: motion subspaces of all joints.
        w: weights of the speeds, 1/d of M = L d Lᵀ, `(..., nv)`; zero for prescribed joints.
    """
    return stack([part for loop in loops for part in _sizes(robot, loop, X, S, w)])


def _sizes(robot: Robot, loop: Loop, X: list[Transform], S: list[Array], w: Array) -> list[Array]:
    c = loop.constraint
    if loop.to_joint:
        total = np.zeros(())
        for j, force in loop.to_joint.items():
            total = total + (force * force * w[..., robot.joints[j].v])[..., 0]
        return [total]
    carriers = set(ancestors(robot, c.parent)) | set(ancestors(robot, c.child))
    ends = [screw.transform(x).p for x in (c.parent_placement, c.child_placement)]
    reach = np.zeros(1)
    for p in (*ends, *(X[j].p for j in sorted(carriers))):
        reach = reach + vector.dot(p, p)
    turning, sliding = np.zeros(1), np.zeros(1)
    for j in sorted(carriers):
        for k, place in enumerate(range(robot.nv)[robot.joints[j].v]):
            column, weight = S[j][..., :, k], w[..., place : place + 1]
            turning = turning + weight * vector.dot(column[..., :3], column[..., :3])
            sliding = sliding + weight * vector.dot(column[..., 3:], column[..., 3:])
    by_force = turning * reach + sliding
    sizes: list[Array] = []
    for i in range(loop.V.shape[-1]):
        f, tau = loop.V[..., :3, i], loop.V[..., 3:, i]
        size = by_force * vector.dot(f, f) + turning * vector.dot(tau, tau)
        sizes.append(size[..., 0])
    return sizes
