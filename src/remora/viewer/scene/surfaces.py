"""Triangulation of the primitives: positions, normals and faces, with bevelled edges."""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.viewer.scene.primitives import Primitive

#: Number of sides of a round shape.
SIDES = 32


class Surface(NamedTuple):
    """A triangle mesh.

    Attributes:
        points: positions, `(n, 3)`, m.
        normals: unit normals, `(n, 3)`.
        faces: indices of the points, counterclockwise as seen from outside, `(k, 3)`.
    """

    points: Array
    normals: Array
    faces: NDArray[np.int64]


def surface(shape: Primitive) -> Surface:
    """Return the triangles of a primitive in its body's frame."""
    own = SURFACES[shape.kind](shape)
    R, p = pose.to_rotation_matrix(shape.placement), pose.translation(shape.placement)
    return Surface(own.points @ R.T + p, own.normals @ R.T, own.faces)


def joined(parts: Sequence[Surface]) -> Surface:
    """Concatenate surfaces into one."""
    starts = np.cumsum([0, *(len(s.points) for s in parts)])
    return Surface(
        np.concatenate([s.points for s in parts]),
        np.concatenate([s.normals for s in parts]),
        np.concatenate([s.faces + start for s, start in zip(parts, starts, strict=False)]),
    )


# Flat faces --------------------------------------------------------------------------------------


def _box(shape: Primitive) -> Surface:
    half = 0.5 * np.array(shape.size)
    bevel = 0.06 * float(half.min())
    inner = half - bevel
    signs = [np.array(s) for s in itertools.product((-1.0, 1.0), repeat=3)]
    # Three points per corner, one on each adjacent face.
    corner = {
        (tuple(s), k): s * np.where(np.arange(3) == k, half, inner) for s in signs for k in range(3)
    }
    polygons: list[list[Array]] = []
    for k in range(3):
        a, b = (k + 1) % 3, (k + 2) % 3
        for side in (-1.0, 1.0):
            ring: list[Array] = []
            for u, w in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
                s = np.zeros(3)
                s[k], s[a], s[b] = side, u, w
                ring.append(corner[tuple(s), k])
            polygons.append(ring)
        for u, w in itertools.product((-1.0, 1.0), repeat=2):  # the edges along k
            ends: list[tuple[float, ...]] = []
            for side in (-1.0, 1.0):
                s = np.zeros(3)
                s[k], s[a], s[b] = side, u, w
                ends.append(tuple(s))
            low, high = ends
            polygons.append([corner[low, a], corner[high, a], corner[high, b], corner[low, b]])
    polygons += [[corner[tuple(s), k] for k in range(3)] for s in signs]
    return _flat(polygons)


def _cells(shape: Primitive) -> Surface:
    x, y, z, nx, ny = shape.size
    nx, ny = int(nx), int(ny)
    edge = 0.035 * min(x, y)
    gap = 0.05 * min((x - 2 * edge) / nx, (y - 2 * edge) / ny)
    dx, dy = (x - 2 * edge) / nx, (y - 2 * edge) / ny
    height = 0.5 * z + 0.2 * z  # far enough apart to avoid z-fighting of the two faces
    polygons: list[list[Array]] = []
    for i, j, side in itertools.product(range(nx), range(ny), (-1.0, 1.0)):
        x0, y0 = -0.5 * x + edge + i * dx + gap, -0.5 * y + edge + j * dy + gap
        x1, y1 = x0 + dx - 2 * gap, y0 + dy - 2 * gap
        ring = [
            np.array([u, w, side * height]) for u, w in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))
        ]
        polygons.append(ring)
    return _flat(polygons)


def _flat(polygons: Sequence[Sequence[Array]]) -> Surface:
    """Return convex polygons as a surface, each oriented away from the origin."""
    parts: list[Surface] = []
    for ring in polygons:
        points = np.array(ring)
        normal = np.cross(points[1] - points[0], points[2] - points[0])
        normal = normal / max(float(np.linalg.norm(normal)), 1e-300)
        if normal @ points.mean(axis=0) < 0.0:
            points, normal = points[::-1], -normal
        faces = np.array([(0, k, k + 1) for k in range(1, len(points) - 1)])
        parts.append(Surface(points, np.tile(normal, (len(points), 1)), faces))
    return joined(parts)


# Round faces -------------------------------------------------------------------------------------


def _lathe(profile: Sequence[tuple[float, float]], smooth: bool = False) -> Surface:
    """Return the surface of revolution of a profile (radius, z), from bottom to top, about z."""
    line = np.array(profile)
    steps = np.diff(line, axis=0)
    across = np.column_stack([steps[:, 1], -steps[:, 0]])
    across = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    if smooth:  # a point's normal is the mean of the adjacent segments' normals
        padded = np.concatenate([across[:1], across, across[-1:]])
        at = padded[:-1] + padded[1:]
        at[0], at[-1] = (0.0, -1.0), (0.0, 1.0)
        at = at / np.linalg.norm(at, axis=1, keepdims=True)
        ends = [(k, k + 1, at[k], at[k + 1]) for k in range(len(steps))]
    else:
        ends = [(k, k + 1, across[k], across[k]) for k in range(len(steps))]
    angle = np.linspace(0.0, 2.0 * math.pi, SIDES + 1)
    c, s = np.cos(angle), np.sin(angle)
    quads = np.array(
        [(k, k + 1, SIDES + 2 + k, SIDES + 1 + k) for k in range(SIDES)], dtype=np.int64
    )
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    parts: list[Surface] = []
    for a, b, na, nb in ends:
        points = [np.column_stack([line[k, 0] * c, line[k, 0] * s, np.full_like(c, line[k, 1])])
                  for k in (a, b)]  # fmt: skip
        normals = [np.column_stack([n[0] * c, n[0] * s, np.full_like(c, n[1])]) for n in (na, nb)]
        parts.append(Surface(np.concatenate(points), np.concatenate(normals), faces))
    return joined(parts)


def _tube(bottom: float, top: float, length: float) -> Surface:
    h = 0.5 * length
    b = 0.08 * min(max(bottom, 1e-9), max(top, 1e-9), h)
    return _lathe(
        [(0.0, -h), (bottom - b, -h), (bottom, b - h), (top, h - b), (top - b, h), (0.0, h)]
    )


def _ball(radius: float, length: float = 0.0) -> Surface:
    """Return a sphere, or a capsule whose cylindrical part has the given length."""
    angles = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 20 + 1)
    profile = [
        (radius * math.cos(a), radius * math.sin(a) + math.copysign(0.5 * length, a))
        for a in angles
        if length == 0.0 or abs(a) > 1e-9
    ]
    if length > 0.0:
        profile += [(radius, -0.5 * length), (radius, 0.5 * length)]
        profile.sort(key=lambda rz: rz[1])
    return _lathe(profile, smooth=True)


def _ellipsoid(shape: Primitive) -> Surface:
    unit, radii = _ball(1.0), np.array(shape.size)
    normals = unit.normals / radii
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return Surface(unit.points * radii, normals, unit.faces)


@functools.lru_cache(maxsize=64)
def mesh_surface(file: str) -> Surface:
    """Return the triangles of a mesh file; empty if it cannot be read."""
    try:
        trimesh: Any = importlib.import_module("trimesh")
        options = {"force": "mesh", "resolver": None, "process": False, "skip_materials": True}
        if file.lower().endswith(".dae"):
            loaded = trimesh.load(_collada(file), file_type="dae", **options)
        else:
            loaded = trimesh.load(file, **options)
        points = np.asarray(loaded.vertices, dtype=float) * _unit(loaded)
        normals = np.asarray(loaded.vertex_normals, dtype=float)
        faces = np.asarray(loaded.faces, dtype=np.int64)
        if not (len(faces) and np.all(np.isfinite(points)) and np.all(np.isfinite(normals))):
            raise ValueError("nothing in it")
    except Exception:  # meshes are for display only, and readers fail in many ways
        return Surface(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
    return Surface(points, normals, faces)


def _collada(file: str) -> io.BytesIO:
    """Return a COLLADA file without references to materials: a broken one would hide its mesh.

    A document type declaration is refused: the reader would expand entities.
    """
    text = Path(file).read_bytes()
    if b"\0" in text or b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise ValueError("declares a document type")
    return io.BytesIO(re.sub(rb"<bind_material\b.*?</bind_material>", b"", text, flags=re.DOTALL))


def _unit(mesh: Any) -> float:
    """Return the unit of a mesh, m; COLLADA files specify it."""
    found = re.match(r"([0-9.eE+-]+) \* meters", str(mesh.units or ""))
    return float(found.group(1)) if found else 1.0


def _mesh(shape: Primitive) -> Surface:
    own, scale = mesh_surface(shape.mesh or ""), np.array(shape.size)
    normals = own.normals / scale
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    faces = own.faces[:, ::-1] if np.prod(scale) < 0 else own.faces
    return Surface(own.points * scale, normals, faces)


#: One entry per kind of primitive.
SURFACES: dict[str, Callable[[Primitive], Surface]] = {
    "box": _box,
    "cells": _cells,
    "cylinder": lambda s: _tube(s.size[0], s.size[0], s.size[1]),
    "cone": lambda s: _tube(s.size[0], s.size[1], s.size[2]),
    "sphere": lambda s: _ball(s.size[0]),
    "capsule": lambda s: _ball(s.size[0], s.size[1]),
    "ellipsoid": _ellipsoid,
    "mesh": _mesh,
}
