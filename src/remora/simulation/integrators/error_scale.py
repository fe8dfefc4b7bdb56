"""Error scale of a step: the magnitudes to which its relative error tolerance applies."""

from __future__ import annotations

import numpy as np

from remora.algebra.array_ops import Array, concatenate, sqrt
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot


def coordinate_magnitudes(robot: Robot, q: Array) -> Array:
    """Return the magnitude of the coordinate along each speed: 1 for rotations, and distances.

    Args:
        robot: the robot.
        q: configuration, `(nq,)`.

    Returns:
        `(nv,)`.
    """
    parts: list[Array] = []
    for joint in robot.joints:
        if joint.mimic is not None or joint.v.stop == joint.v.start:
            continue
        own, row = q[joint.q], kind(joint)
        if in_coordinates(joint):
            parts.append(own)
            continue
        ones = np.ones(joint.v.stop - joint.v.start)
        if row.dual is None:
            parts.append(ones)
        else:
            d = own[row.dual]
            distance = 2.0 * sqrt(np.sum(d * d, keepdims=True))
            parts.append(concatenate([ones[:3], distance, distance, distance]))
    return concatenate(parts)
