"""Generated textures: crinkled foil as a normal map, encoded as PNG."""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

#: Width and height of a normal map, px; number of facets of crinkled foil; their largest slope.
_SIZE, _FACETS, _SLOPE = 160, 240, 0.17


def png(image: NDArray[np.uint8]) -> bytes:
    """Return an RGB image `(h, w, 3)` as PNG."""
    high, wide, _ = image.shape
    rows = np.concatenate([np.zeros((high, 1), np.uint8), image.reshape(high, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


@functools.cache
def crinkled() -> bytes:
    """Return the normal map of crinkled foil, a PNG that tiles: flat facets at random slopes.

    A facet is the Voronoi cell of a random point on the torus.
    """
    random = np.random.default_rng(7)
    points = random.uniform(0.0, 1.0, (_FACETS, 2))
    slopes = random.uniform(-_SLOPE, _SLOPE, (_FACETS, 2))
    grid = (np.arange(_SIZE) + 0.5) / _SIZE
    x, y = np.meshgrid(grid, grid)
    away = np.stack([x, y], axis=-1)[:, :, None] - points
    away = np.abs(away - np.round(away)) * np.array([1.0, 0.55])  # creases are long
    facet = np.argmin(np.sum(away**2, axis=-1), axis=-1)
    normal = np.concatenate([slopes[facet], np.ones((_SIZE, _SIZE, 1))], axis=-1)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return png(np.asarray(np.round(255.0 * (0.5 * normal + 0.5)), dtype=np.uint8))


#: Normal maps by the name that a finish has.
RELIEFS: dict[str, Callable[[], bytes]] = {"crinkled": crinkled}
