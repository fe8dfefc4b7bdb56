"""Joint springs: linear torsion and extension springs as generalized forces."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_symbolic
from remora.dynamics.joint_arrays import batch_shape, gather
from remora.model.joints import coordinates, kind
from remora.model.robot import Joint, Robot
from remora.model.state import configuration
from remora.model.takes_robot import takes_robot


@takes_robot
def spring_forces(robot: Robot, q: ArrayLike) -> Array:
    """Return `-k (q - q_0)`, `(..., nv)`: the forces of the joints' springs.

    The stiffness k and the reference q_0 at which a spring is relaxed are properties of the joint,
    `joint.stiffness` and `joint.spring_reference`.

    Args:
        robot: the robot.
        q: configuration, `(..., nq)`.
    """
    q = configuration(robot, q)
    parts: list[Array] = []
    for joint in robot.joints:
        if not has_spring(joint):
            parts.append(np.zeros(kind(joint).nv))
            continue
        force = -joint.stiffness * (coordinates(joint, q) - joint.spring_reference)
        parts.append(force if joint.mimic is None else joint.mimic.ratio * force)
    return gather(robot, parts, batch_shape(q))


def has_spring(joint: Joint) -> bool:
    """Tell whether a joint has a spring, or may have one: a symbolic stiffness."""
    stiffness = np.asarray(joint.stiffness)
    return is_symbolic(stiffness) or bool(np.any(stiffness != 0.0))
