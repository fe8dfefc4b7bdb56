"""Error scale of a step: the magnitudes to which its relative error tolerance applies."""

from __future__ import annotations

import math

import numpy as np

from remora.algebra.array_ops import Array
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
