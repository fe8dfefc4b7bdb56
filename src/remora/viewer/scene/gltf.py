"""Export of a body's shapes to binary glTF (GLB) with physically based materials."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.viewer.scene.materials import Finish
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.surfaces import Surface, joined, surface

_FLOAT, _UINT = 5126, 5125
_VERTICES, _INDICES = 34962, 34963


def to_glb(shapes: Sequence[Primitive]) -> bytes:
    """Return the primitives of one body as one mesh with one part per finish."""
    by_finish: dict[Finish, list[Surface]] = {}
    for shape in shapes:
        found = surface(shape)
        if len(found.faces):
            by_finish.setdefault(shape.finish, []).append(found)
    views: list[dict[str, Any]] = []
    accessors: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    data = bytearray()

    def add(array: Any, kind: str, component: int, target: int) -> int:
        payload = array.tobytes()
        views.append(
            {"buffer": 0, "byteOffset": len(data), "byteLength": len(payload), "target": target}
        )
        data.extend(payload)
        flat = array.reshape(-1, 3) if kind == "VEC3" else array.reshape(-1, 1)
        row: dict[str, Any] = {
            "bufferView": len(views) - 1, "componentType": component, "count": len(flat),
            "type": kind,
        }  # fmt: skip
        if kind == "VEC3":
            row |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        accessors.append(row)
        return len(accessors) - 1

    for k, surfaces in enumerate(by_finish.values()):
        whole = joined(surfaces)
        points = add(whole.points.astype("<f4"), "VEC3", _FLOAT, _VERTICES)
        normals = add(whole.normals.astype("<f4"), "VEC3", _FLOAT, _VERTICES)
        faces = add(whole.faces.astype("<u4"), "SCALAR", _UINT, _INDICES)
        attributes = {"POSITION": points, "NORMAL": normals}
        parts.append({"attributes": attributes, "indices": faces, "material": k})
    nodes: list[dict[str, Any]] = [{"mesh": 0}] if parts else [{}]
    tree: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "Remora"},
        "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes,
    }  # fmt: skip
    if parts:
        tree |= {
            "meshes": [{"primitives": parts}],
            "materials": [_material(finish) for finish in by_finish],
            "buffers": [{"byteLength": len(data)}], "bufferViews": views, "accessors": accessors,
        }  # fmt: skip
    return _packed(tree, bytes(data))


def _material(finish: Finish) -> dict[str, Any]:
    look: dict[str, Any] = {
        "pbrMetallicRoughness": {
            "baseColorFactor": [*(_linear(c) for c in finish.color[:3]), finish.color[3]],
            "metallicFactor": finish.metal,
            "roughnessFactor": finish.rough,
        }
    }
    return look | ({"alphaMode": "BLEND"} if finish.color[3] < 1.0 else {})


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
