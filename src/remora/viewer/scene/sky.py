"""The sky of the scene `space`: stars, the Earth with its limb, all generated, as GLB.

Seen from the robot the Earth covers a cone of half angle `asin(EARTH / AWAY)` around `NADIR`. The
sun stands in the direction `SUN`. Lengths are multiples of the robot's size.
"""

from __future__ import annotations

import functools
import importlib
import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remora.algebra.array_ops import Array
from remora.viewer.scene.gltf import Part, packed_glb
from remora.viewer.scene.materials import Finish
from remora.viewer.scene.primitives import frame_along
from remora.viewer.scene.surfaces import Surface

#: Direction of the Earth's centre and of the sun, inertial axes, not normalized.
NADIR, SUN = (-0.13, 0.33, -0.92), (0.45, -0.85, 0.62)
#: Radius of the sphere of stars, distance of the Earth's centre, and the Earth's radius.
STARS_AT, AWAY, EARTH = 180.0, 120.0, 78.0
_STARS = 1000
#: Coordinates are multiples of this.
_GRAIN = 2.0**-6
#: Part of the Earth's radius that is seen from the robot, up to just beyond the horizon.
_SEEN = 1.02 * math.sqrt(1.0 - (EARTH / AWAY) ** 2)
#: Width of the Earth's picture, px; quality of its JPEG.
_PIXELS, _QUALITY = 512, 58
#: Thickness of the atmosphere relative to the Earth's radius; exaggerated, so that it is seen.
_AIR = 0.035
_BLACK = Finish((0.0, 0.0, 0.0, 1.0), 0.0, 1.0)
_WHITE = Finish((1.0, 1.0, 1.0, 1.0), 0.0, 1.0)


@functools.cache
def sky_glb() -> bytes:
    """Return the sky around a robot of size 1 m as GLB; scale it with the robot."""
    return packed_glb([_rounded(part) for part in (_dome(), _stars(), _earth(), _air())])


def _rounded(part: Part) -> Part:
    """Return a part with coarser coordinates, which make a smaller file."""
    points = np.round(part.surface.points / _GRAIN) * _GRAIN
    uv = None if part.uv is None else np.round(part.uv * 2048.0) / 2048.0
    return replace(part, surface=part.surface._replace(points=points), uv=uv)


def unit(direction: tuple[float, float, float]) -> Array:
    """Return a direction as a unit vector."""
    return np.array(direction) / np.linalg.norm(direction)


def _dome() -> Part:
    """Return a black sphere seen from inside."""
    points, faces = _sphere(24, 12)
    return Part(Surface(1.1 * STARS_AT * points, -points, faces[:, ::-1]), _BLACK, unlit=True)


def _stars() -> Part:
    """Return stars as small triangles: many faint ones, few bright ones, some warm, some blue."""
    random = np.random.default_rng(22)
    out = random.normal(size=(_STARS, 3))
    out = out / np.linalg.norm(out, axis=1, keepdims=True)
    bright = np.minimum(1.0, 0.22 * random.pareto(1.6, _STARS) + 0.10)
    warm = random.normal(0.0, 0.10, _STARS)[:, None] * np.array([1.0, 0.2, -1.0])
    tint = 1.0 - np.abs(warm).max(axis=1, keepdims=True) + warm
    colors = np.clip(255.0 * bright[:, None] * tint, 0.0, 255.0)
    size = np.radians(0.05 + 0.07 * np.sqrt(bright))
    helper = np.where(np.abs(out[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    a = np.cross(out, helper)
    a = a / np.linalg.norm(a, axis=1, keepdims=True)
    b = np.cross(out, a)
    corners = [
        out + size[:, None] * (math.cos(t) * a + math.sin(t) * b)
        for t in (0.0, 2.0 * math.pi / 3.0, 4.0 * math.pi / 3.0)
    ]
    points = STARS_AT * np.stack(corners, axis=1).reshape(-1, 3)
    faces = np.arange(3 * _STARS).reshape(-1, 3)[:, ::-1]  # seen from inside
    normals = -np.repeat(out, 3, axis=0)
    full = np.concatenate([colors, np.full((_STARS, 1), 255.0)], axis=1)
    painted = np.asarray(np.repeat(full, 3, axis=0), dtype=np.uint8)
    return Part(Surface(points, normals, faces), _WHITE, unlit=True, colors=painted)


def _earth() -> Part:
    """Return the half of the Earth that faces the robot, with its picture."""
    towards = -unit(NADIR)
    frame = frame_along(towards)
    rings, sides = 20, 64
    polar = np.linspace(0.0, math.asin(_SEEN), rings + 1)
    turn = np.linspace(0.0, 2.0 * math.pi, sides + 1)
    p, t = np.meshgrid(polar, turn, indexing="ij")
    local = np.stack([np.sin(p) * np.cos(t), np.sin(p) * np.sin(t), np.cos(p)], axis=-1)
    local = local.reshape(-1, 3)
    uv = 0.5 + 0.5 / _SEEN * local[:, :2] * np.array([1.0, -1.0])
    normals = local @ frame.T
    points = EARTH * normals - AWAY * towards
    return Part(
        Surface(points, normals, _lattice(rings, sides)), _WHITE, True, uv=uv, image=_picture()
    )


def _air() -> Part:
    """Return the glow above the limb: a ring around the Earth's disc that fades outwards."""
    towards = -unit(NADIR)
    frame = frame_along(towards)
    limb = EARTH * math.sqrt(1.0 - (EARTH / AWAY) ** 2)
    depth = AWAY - EARTH**2 / AWAY
    rows = np.array([0.992, 1.0, 1.006, 1.014, 1.0 + _AIR])
    glow = np.array([[70, 140, 255, 30], [170, 215, 255, 235], [90, 160, 255, 150],
                     [40, 100, 230, 60], [10, 40, 160, 0]], dtype=float)  # fmt: skip
    turn = np.linspace(0.0, 2.0 * math.pi, 97)
    r, t = np.meshgrid(limb * rows, turn, indexing="ij")
    local = np.stack([r * np.cos(t), r * np.sin(t), np.zeros_like(r)], axis=-1).reshape(-1, 3)
    points = local @ frame.T - depth * towards
    lit = np.clip(0.25 + 1.1 * (local @ frame.T / limb) @ unit(SUN), 0.0, 1.0)
    colors = np.repeat(glow, len(turn), axis=0)
    colors = colors * np.column_stack([np.ones((len(lit), 3)), np.maximum(lit, 0.12)])
    surface = Surface(points, np.tile(towards, (len(points), 1)), _lattice(len(rows) - 1, 96))
    return Part(surface, _WHITE, True, colors=np.asarray(colors, dtype=np.uint8))


def _picture() -> bytes:
    """Return the Earth's disc as JPEG: oceans, land, clouds, and night beyond the terminator."""
    n = _PIXELS
    axis = _SEEN * ((np.arange(n) + 0.5) / n * 2.0 - 1.0)
    x, y = np.meshgrid(axis, axis)
    inside = np.clip(1.0 - x**2 - y**2, 0.0, 1.0)
    z = np.sqrt(inside)
    random = np.random.default_rng(12)
    land = _smooth(_noise(random, n, 1.9, 3.0) - 0.5, 0.15)
    dry = _smooth(_noise(random, n, 1.7, 4.0) + 0.3, 1.0)
    system = _smooth(_noise(random, n, 2.4, 5.0) + 0.9, 2.2)  # where it is cloudy
    veil = _noise(random, n, 1.6, 9.0, 1.6)
    cloud = system * _smooth(veil + 0.2, 1.7)
    sea = np.array([0.012, 0.05, 0.16])
    green, sand = np.array([0.05, 0.09, 0.035]), np.array([0.22, 0.16, 0.09])
    ground = green + dry[..., None] * (sand - green)
    color = sea + land[..., None] * (ground - sea)
    color = color + 0.92 * cloud[..., None] * (0.86 - color)
    frame = frame_along(-unit(NADIR))
    sun = frame.T @ unit(SUN)
    lit = np.clip(x * sun[0] + y * sun[1] + z * sun[2], 0.0, 1.0) ** 0.8
    edge = np.sqrt(x**2 + y**2) / _SEEN
    haze = 0.6 * np.clip(edge, 0.0, 1.0)[..., None] ** 9
    color = color + haze * (np.array([0.25, 0.48, 0.85]) - color)
    shown = np.clip(0.62 * color * lit[..., None], 0.0, 1.0) ** (1.0 / 2.2)
    image: Any = importlib.import_module("PIL.Image")
    file = io.BytesIO()
    pixels = np.asarray(255.0 * shown, dtype=np.uint8)
    image.fromarray(pixels).save(file, "JPEG", quality=_QUALITY, optimize=True)
    return file.getvalue()


def _noise(random: Any, n: int, slope: float, least: float, stretch: float = 1.0) -> Array:
    """Return noise `(n, n)` of zero mean and unit variance with a spectrum f^-slope above `least`.

    Its features are longer along x by the factor `stretch`.
    """
    f = np.hypot(np.fft.fftfreq(n)[:, None], stretch * np.fft.rfftfreq(n)[None]) * n
    f[0, 0] = 1.0
    size = f**-slope * (f / (f + least)) ** 3
    spectrum = (random.normal(size=f.shape) + 1j * random.normal(size=f.shape)) * size
    spectrum[0, 0] = 0.0
    field = np.fft.irfft2(spectrum, (n, n))
    return field / field.std()


def _smooth(x: Array, width: float) -> Array:
    """Return a smooth step from 0 to 1 over `width` above zero."""
    s = np.clip(x / width, 0.0, 1.0)
    return s * s * (3.0 - 2.0 * s)


def _lattice(rows: int, columns: int) -> NDArray[np.int64]:
    """Return the triangles of a lattice of (rows + 1) x (columns + 1) points."""
    i, k = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    a = (i * (columns + 1) + k).ravel()
    b, c, d = a + columns + 1, a + columns + 2, a + 1
    return np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])


def _sphere(sides: int, rings: int) -> tuple[Array, NDArray[np.int64]]:
    polar, turn = np.linspace(0.0, math.pi, rings + 1), np.linspace(0.0, 2.0 * math.pi, sides + 1)
    p, t = np.meshgrid(polar, turn, indexing="ij")
    points = np.stack([np.sin(p) * np.cos(t), np.sin(p) * np.sin(t), np.cos(p)], axis=-1)
    return points.reshape(-1, 3), _lattice(rings, sides)
