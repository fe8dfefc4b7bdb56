"""Pictures of triangles without a browser: perspective, a depth buffer, and one hard sun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remora.algebra.array_ops import Array
from remora.viewer.scene.camera import Camera
from remora.viewer.scene.sky import NADIR, SUN, unit

#: Triangles nearer to the camera than this part of its distance are left out.
_NEAR = 0.02
#: Largest number of pixels that are looked at together.
_AT_ONCE = 1 << 20
#: Light from everywhere, from the sun and from the Earth.
_AMBIENT, _SUNLIGHT, _EARTHSHINE = 0.20, 0.90, np.array([0.10, 0.14, 0.22])


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles with one colour each.

    Attributes:
        corners: `(k, 3, 3)`, m, counterclockwise as seen from outside.
        normals: mean unit normals, `(k, 3)`.
        colors: red, green, blue in [0, 1], `(k, 3)`.
        shine: strength of the sun's reflection, `(k,)`.
    """

    corners: Array
    normals: Array
    colors: Array
    shine: Array


@dataclass(frozen=True, eq=False)
class DepthImage:
    """Which triangle is seen in which pixel.

    Attributes:
        face: index of the nearest triangle, -1 where there is none, `(h, w)`.
        nearness: reciprocal of its distance along the view, 1/m, zero where there is none.
    """

    face: NDArray[np.int64]
    nearness: Array


def projected(points: Array, camera: Camera, size: tuple[int, int]) -> tuple[Array, Array]:
    """Return pixel coordinates `(..., 2)`, y down, and depths along the view `(...)`, m."""
    wide, high = size
    seen = (points - camera.position) @ camera.axes().T
    depth = -seen[..., 2]
    scale = 0.5 * high / np.tan(0.5 * camera.field)
    safe = np.where(np.abs(depth) > 1e-12, depth, 1e-12)
    flat = scale * seen[..., :2] / safe[..., None]
    return np.stack([0.5 * wide + flat[..., 0], 0.5 * high - flat[..., 1]], axis=-1), depth


def depth_image(corners: Array, camera: Camera, size: tuple[int, int]) -> DepthImage:
    """Return the nearest of triangles `(k, 3, 3)` in each pixel of an image (width, height)."""
    wide, high = size
    at, depth = projected(corners, camera, size)
    near = _NEAR * float(np.linalg.norm(camera.position - camera.look_at))
    low, top = np.floor(at.min(axis=1)), np.ceil(at.max(axis=1))
    low, top = np.maximum(low, 0.0), np.minimum(top, [wide - 1.0, high - 1.0])
    span = np.max(top - low, axis=1) + 1.0
    shown = np.all(depth > near, axis=1) & np.all(top >= low, axis=1)
    found, nearness = np.full(wide * high, -1), np.zeros(wide * high)
    edge = 2
    while edge < 2 * max(size):
        some = np.flatnonzero(shown & (span <= edge) & (span > (edge // 2 if edge > 2 else 0)))
        step = max(1, _AT_ONCE // (edge * edge))
        for first in range(0, len(some), step):
            part = some[first : first + step]
            pixel, close, which = _covered(at[part], depth[part], low[part], edge, size)
            before = nearness[pixel]
            np.maximum.at(nearness, pixel, close)
            seen = (close == nearness[pixel]) & (close > before)
            found[pixel[seen]] = part[which[seen]]
        edge *= 2
    return DepthImage(found.reshape(high, wide), nearness.reshape(high, wide))


def _covered(
    at: Array, depth: Array, low: Array, edge: int, size: tuple[int, int]
) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """Return pixel, nearness and triangle of all that triangles cover in squares of `edge`."""
    wide, high = size
    grid = np.arange(edge)
    x = low[:, None, 0] + grid
    y = low[:, None, 1] + grid
    a, b, c = at[:, 0], at[:, 1], at[:, 2]
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    area = np.where(np.abs(area) > 1e-12, area, np.inf)  # seen edge-on

    def part(p: Array, r: Array) -> Array:
        """Return the share of the corner opposite to the edge from p to r, `(k, edge, edge)`."""
        across = (r[:, 0] - p[:, 0])[:, None, None] * (y + 0.5 - p[:, 1:])[:, :, None]
        along = (r[:, 1] - p[:, 1])[:, None, None] * (x + 0.5 - p[:, :1])[:, None, :]
        return (across - along) / area[:, None, None]

    u, v = part(b, c), part(c, a)
    w = 1.0 - u - v
    inside = (u >= 0.0) & (v >= 0.0) & (w >= 0.0) & np.isfinite(area)[:, None, None]
    inside &= (x < wide)[:, None, :] & (y < high)[:, :, None]
    which, row, column = np.nonzero(inside)
    shares = np.stack([u[inside], v[inside], w[inside]], axis=-1)
    close = np.sum(shares / depth[which], axis=-1)
    pixel = (y[which, row] * wide + x[which, column]).astype(np.int64)
    return pixel, close, which


def shaded(drawn: Triangles, camera: Camera) -> Array:
    """Return the colour of every triangle in sunlight, in [0, 1], `(k, 3)`."""
    sun, down = unit(SUN), unit(NADIR)
    away = camera.position - drawn.corners.mean(axis=1)
    away = away / np.linalg.norm(away, axis=1, keepdims=True)
    facing = np.sign(np.sum(drawn.normals * away, axis=1, keepdims=True))
    normal = drawn.normals * np.where(facing == 0.0, 1.0, facing)  # both sides are seen
    lit = np.maximum(normal @ sun, 0.0)[:, None]
    halfway = sun + away
    halfway = halfway / np.linalg.norm(halfway, axis=1, keepdims=True)
    gloss = drawn.shine * np.maximum(np.sum(normal * halfway, axis=1), 0.0) ** 24
    earth = np.maximum(normal @ down, 0.0)[:, None] * _EARTHSHINE
    color = drawn.colors * (_AMBIENT + _SUNLIGHT * lit + earth) + gloss[:, None] * lit
    return np.clip(color, 0.0, 1.0)
