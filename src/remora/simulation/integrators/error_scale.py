"""Error scale of a step: the magnitudes to which its relative error tolerance applies."""

from __future__ import annotations

import math

import numpy as np

from remora.algebra.array_ops import Array, concatenate, sqrt
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot


class ErrorScale:
    """Magnitude of the coordinate along each speed: coordinates, 1 for rotations, distances."""

    def __init__(self, robot: Robot) -> None:
        """Store the indices into q."""
        own = [j for j in robot.joints if j.mimic is None]
        plain = [j for j in own if in_coordinates(j)]
        self._q = [i for j in plain for i in range(robot.nq)[j.q]]
        self._v = [i for j in plain for i in range(robot.nv)[j.v]]
        self._free = [j for j in own if kind(j).dual is not None]
        self._size = np.ones(robot.nv)

    def __call__(self, q: Array) -> Array:
        """Return the magnitudes `(nv,)`; with signs for scalar coordinates."""
        size = self._size.copy()
        size[self._v] = q[self._q]
        for joint in self._free:
            d = q[joint.q][4:]
            size[joint.v][3:] = 2.0 * math.sqrt(d @ d)  # distance from the origin
        return size


def coordinate_magnitudes(robot: Robot, q: Array) -> Array:
    """Return the magnitude of the coordinate along each speed, as `ErrorScale`, on any scalar.

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
