"""Classes of orientations that the dexterous workspace counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Plane: the column of the rotation matrix, its two rows, and the sign of the angle.
_PLANES = {"xy": (0, 0, 1), "xz": (0, 2, 0), "yz": (1, 1, 2)}


def count_of(orientations: int, plane: str | None) -> int:
    """Return the number of classes: angles in a plane; in space 6 b² directions, at least asked.

    Args:
        orientations: number asked for.
        plane: "xy", "xz", "yz" or None for space.
    """
    if plane is not None:
        return orientations
    return 6 * math.ceil(math.sqrt(orientations / 6.0)) ** 2


def bins_of(R: Any, plane: str | None, bins: int) -> Any:
    """Return the class of each rotation matrix R `(n, 3, 3)`, `(n,)`.

    In a plane the angle of one axis of the frame, in equal parts. In space the direction of the
    frame's z axis, by the face of a cube that it points through and equal angles on the face.
    """
    if plane is not None:
        column, a, b = _PLANES[plane]
        turn = np.arctan2(R[:, b, column], R[:, a, column]) / (2.0 * math.pi) + 0.5
        return (turn * bins).astype(np.int64).clip(0, bins - 1)
    b = math.isqrt(bins // 6)
    axis = R[:, :, 2]
    main = np.abs(axis).argmax(axis=1)
    along = np.take_along_axis(axis, main[:, None], axis=1)[:, 0]
    number = 2 * main + (along < 0.0)
    for k in (1, 2):
        side = np.take_along_axis(axis, ((main + k) % 3)[:, None], axis=1)[:, 0]
        angle = np.arctan2(side, np.abs(along)) / (0.5 * math.pi) + 0.5
        number = number * b + (angle * b).astype(np.int64).clip(0, b - 1)
    return number
