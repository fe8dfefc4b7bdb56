"""The camera: where it stands so that all points of a cloud are in its image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.viewer.scene.scene import extent

#: Field of view, °, and the aspect ratio of an image beside the controls of a page.
FIELD, ASPECT = 40.0, 1.1
#: Direction from the robot to the camera.
_BACK = (0.74, -0.52, 0.43)
#: Horizontal angle from the direction to another tree to the direction to the camera, rad.
_SIDE = np.radians(-112.0)
#: Half the image relative to half the cloud; steps in which the camera finds its place.
_ROOM, _STEPS = 1.1, 12


class Camera(NamedTuple):
    """A camera, with z of the inertial frame up.

    Attributes:
        position: `(3,)`, m.
        look_at: the point in the middle of the image, `(3,)`, m.
        field: vertical field of view, rad.
    """

    position: Array
    look_at: Array
    field: float

    def axes(self) -> Array:
        """Return the directions right, up and toward the camera as rows, `(3, 3)`."""
        return _axes(self.position - self.look_at)


def framed(cloud: Array, along: Array | None = None, aspect: float = ASPECT) -> Camera:
    """Return a camera with all points `(n, 3)` in view.

    Args:
        cloud: what is to be seen.
        along: horizontal direction `(2,)` from the base to other trees: they are seen side by side,
            the base on the left; None: from the front.
        aspect: width of the image relative to its height.
    """
    middle, radius = extent(cloud)
    back = np.array(_BACK)
    if along is not None:
        turn = np.array([[np.cos(_SIDE), -np.sin(_SIDE)], [np.sin(_SIDE), np.cos(_SIDE)]])
        back[:2] = np.hypot(*back[:2]) * (turn @ along)
    axes = _axes(back)
    half = np.tan(np.radians(0.5 * FIELD)) * np.array([aspect, 1.0])
    seen = (cloud - middle) @ axes.T
    offset, distance = np.zeros(2), float(np.max(seen[:, 2])) + 4.0 * radius
    for _ in range(_STEPS):  # center the image of the cloud, then move until it fits
        flat = (seen[:, :2] - offset) / ((distance - seen[:, 2:]) * half)
        low, high = flat.min(axis=0), flat.max(axis=0)
        offset = offset + 0.5 * (low + high) * half * distance
        fits = np.abs(seen[:, :2] - offset) / half
        distance = max(float(np.max(seen[:, 2:] + _ROOM * fits)), 0.5 * radius)
    middle = middle + offset @ axes[:2]
    return Camera(middle + distance * axes[2], middle, float(np.radians(FIELD)))


def _axes(away: Array) -> Array:
    back = away / np.linalg.norm(away)
    side = np.cross([0.0, 0.0, 1.0], back)
    side = side / np.linalg.norm(side)
    return np.array([side, np.cross(back, side), back])
