"""Camera paths of films: pose of the camera over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array


class CameraPose(NamedTuple):
    """Where the camera is.

    Attributes:
        position: `(3,)`, m.
        wxyz: orientation, z forward and y down, `(4,)`.
    """

    position: Array
    wxyz: Array


def _around(turn: float, closer: float) -> Callable[[float, Array], Array]:
    """Return a path that turns by an angle, rad, and shortens the distance by a factor."""

    def path(s: float, away: Array) -> Array:
        smooth = s * s * (3.0 - 2.0 * s)
        angle, factor = turn * (s - 0.5), 1.0 + (closer - 1.0) * smooth
        c, d = math.cos(angle), math.sin(angle)
        x, y, z = away
        return factor * np.array([c * x - d * y, d * x + c * y, z])

    return path


#: Paths by name: (part of the film from 0 to 1, offset of a still camera) -> offset of the camera.
CAMERA_PATHS: dict[str, Callable[[float, Array], Array]] = {
    "still": _around(0.0, 1.0),
    "sweep": _around(math.radians(35.0), 1.0),
    "approach": _around(math.radians(25.0), 0.72),
    "orbit": _around(2.0 * math.pi, 1.0),
}


def camera_pose(path: str, s: float, position: Array, look_at: Array) -> CameraPose:
    """Return the camera's pose at part s of a film, for a still camera at `position`."""
    there = look_at + CAMERA_PATHS[path](s, position - look_at)
    z = look_at - there
    z = z / np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x = x / np.linalg.norm(x)
    turn = np.column_stack([x, np.cross(z, x), z])
    return CameraPose(there, pose.from_rotation_matrix(turn, np.zeros(3))[:4])
