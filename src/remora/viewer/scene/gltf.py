"""Export of shapes to binary glTF (GLB) with physically based or unlit materials."""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remora.algebra.array_ops import Array
from remora.viewer.scene.materials import Finish
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.surfaces import Surface, joined, surface

_FLOAT, _UINT, _BYTE = 5126, 5125, 5121
_VERTICES, _INDICES = 34962, 34963
_WIDTHS = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
#: Number of tiles of a normal map along the longest side of a part.
_TILES = 1.6


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a mesh with one material.

    Attributes:
        surface: its triangles.
        finish: its material.
        unlit: whether it is drawn in its own colours, without lights.
        colors: colour per vertex, RGBA in 0 to 255, `(n, 4)`, or None.
        uv: texture coordinates, `(n, 2)`, or None.
        image: JPEG of its colours, or None.
    """

    surface: Surface
    finish: Finish
    unlit: bool = False
    colors: NDArray[np.uint8] | None = None
    uv: Array | None = None
    image: bytes | None = None


def to_glb(shapes: Sequence[Primitive], alpha: float = 1.0) -> bytes:
    """Return the primitives of one body as one mesh with one part per finish.

    Args:
        shapes: the primitives.
        alpha: opacity of all materials.
    """
    by_finish: dict[Finish, list[Surface]] = {}
    for shape in shapes:
        found = surface(shape)
        if len(found.faces):
            by_finish.setdefault(shape.finish, []).append(found)
    return packed_glb([_part(finish, joined(s), alpha) for finish, s in by_finish.items()])


def _part(finish: Finish, whole: Surface, alpha: float) -> Part:
    color = (*finish.color[:3], finish.color[3] * alpha)
    look = replace(finish, color=color)
    return Part(whole, look, uv=_box_projected(whole) if finish.relief else None)


def _box_projected(whole: Surface) -> Array:
    """Return texture coordinates: the point projected along the largest component of its normal."""
    tile = float(np.ptp(whole.points, axis=0).max()) / _TILES or 1.0
    main = np.argmax(np.abs(whole.normals), axis=1)
    pick = np.array([[1, 2], [2, 0], [0, 1]])[main]
    return np.take_along_axis(whole.points, pick, axis=1) / tile


def packed_glb(parts: Sequence[Part]) -> bytes:
    """Return one mesh of several parts as GLB."""
    tree: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "Remora"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}] if parts else [{}],
    }
    if not parts:
        return _packed(tree, b"")
    file = _Buffer()
    primitives: list[dict[str, Any]] = []
    materials: list[dict[str, Any]] = []
    for k, part in enumerate(parts):
        points = part.surface.points.astype("<f4")
        attributes = {"POSITION": file.array(points, _FLOAT, bounds=True)}
        if not part.unlit:
            attributes["NORMAL"] = file.array(part.surface.normals.astype("<f4"), _FLOAT)
        if part.uv is not None:
            attributes["TEXCOORD_0"] = file.array(part.uv.astype("<f4"), _FLOAT)
        if part.colors is not None:
            attributes["COLOR_0"] = file.array(part.colors, _BYTE, normalized=True)
        faces = file.array(part.surface.faces.astype("<u4").reshape(-1, 1), _UINT, _INDICES)
        primitives.append({"attributes": attributes, "indices": faces, "material": k})
        materials.append(_material(part, file))
    tree |= {"meshes": [{"primitives": primitives}], "materials": materials, **file.tables()}
    if any(part.unlit for part in parts):
        tree["extensionsUsed"] = ["KHR_materials_unlit"]
    return _packed(tree, bytes(file.data))


class _Buffer:
    """The binary chunk of a file, and the tables that describe it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._views: list[dict[str, Any]] = []
        self._accessors: list[dict[str, Any]] = []
        self._images: list[tuple[bytes, dict[str, Any]]] = []

    def array(
        self,
        array: NDArray[Any],
        component: int,
        target: int = _VERTICES,
        *,
        bounds: bool = False,
        normalized: bool = False,
    ) -> int:
        """Add an array `(n, k)`; return the index of its accessor."""
        row: dict[str, Any] = {
            "bufferView": self._view(array.tobytes(), target),
            "componentType": component,
            "count": len(array),
            "type": _WIDTHS[array.shape[1]],
        }
        if bounds:
            row |= {"min": array.min(axis=0).tolist(), "max": array.max(axis=0).tolist()}
        if normalized:
            row["normalized"] = True
        self._accessors.append(row)
        return len(self._accessors) - 1

    def image(self, data: bytes, kind: str) -> int:
        """Add an image once; return the index of its texture."""
        for k, (known, _) in enumerate(self._images):
            if known == data:
                return k
        self._images.append((data, {"bufferView": self._view(data, None), "mimeType": kind}))
        return len(self._images) - 1

    def tables(self) -> dict[str, Any]:
        """Return the tables of the file's JSON chunk."""
        found: dict[str, Any] = {
            "buffers": [{"byteLength": len(self.data)}],
            "bufferViews": self._views,
            "accessors": self._accessors,
        }
        if self._images:
            found["images"] = [row for _, row in self._images]
            found["samplers"] = [{"magFilter": 9729, "minFilter": 9987}]  # linear, with mipmaps
            found["textures"] = [{"source": k, "sampler": 0} for k in range(len(self._images))]
        return found

    def _view(self, payload: bytes, target: int | None) -> int:
        row = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(payload)}
        self._views.append(row if target is None else row | {"target": target})
        self.data.extend(payload + bytes(-len(payload) % 4))
        return len(self._views) - 1


def _material(part: Part, file: _Buffer) -> dict[str, Any]:
    finish = part.finish
    shine: dict[str, Any] = {
        "baseColorFactor": [*(_linear(c) for c in finish.color[:3]), finish.color[3]],
        "metallicFactor": finish.metal,
        "roughnessFactor": finish.rough,
    }
    if part.image is not None:
        shine["baseColorTexture"] = {"index": file.image(part.image, "image/jpeg")}
    look: dict[str, Any] = {"pbrMetallicRoughness": shine}
    if finish.relief is not None and part.uv is not None:
        look["normalTexture"] = {"index": file.image(RELIEFS[finish.relief](), "image/png")}
    if part.unlit:
        look["extensions"] = {"KHR_materials_unlit": {}}
    fades = part.colors is not None and bool(np.any(part.colors[:, 3] < 255))
    return look | ({"alphaMode": "BLEND"} if finish.color[3] < 1.0 or fades else {})


def _linear(channel: float) -> float:
    """Convert a colour channel from sRGB to linear, as glTF requires."""
    c = min(max(channel, 0.0), 1.0)
    return c / 12.92 if c <= 0.04045 else float(np.power((c + 0.055) / 1.055, 2.4))


def _packed(tree: dict[str, Any], data: bytes) -> bytes:
    text = json.dumps(tree, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if data:
        chunks += struct.pack("<II", len(data), 0x004E4942) + data
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


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
