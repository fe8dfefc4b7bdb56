"""Geometric primitives that a robot is drawn with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.viewer.scene.materials import FINISHES, Finish


@dataclass(frozen=True, eq=False)
class Primitive:
    """A shape fixed to a body.

    Attributes:
        body: index of the body that carries it.
        kind: `box`, `cylinder`, `cone`, `sphere`, `capsule`, `ellipsoid`, `cells` or `mesh`.
        size: as in `Geometry`, m; cone (a tapered boom): radius at its start, radius at its end,
            length along z; cells (the sunlit face of a solar panel): full lengths x, y, z, and
            number of cells along x and y.
        placement: pose in the body's frame, `(8,)`; cones and cylinders are centred.
        finish: its material.
        mesh: path of the mesh file, or None.
        generated: whether the viewer made it up for a body without geometry.
    """

    body: int
    kind: str
    size: tuple[float, ...]
    placement: Array
    finish: Finish
    mesh: str | None = None
    generated: bool = False


def panel(body: int, size: tuple[float, float, float], placement: Array) -> list[Primitive]:
    """Return a solar panel, thin along z: a frame with cells on both faces."""
    x, y, z = size
    cell = min(x, y) / 5.0
    nx, ny = (max(1, min(28, round(length / cell))) for length in (x, y))
    frame = Primitive(body, "box", size, placement, FINISHES["frame"])
    return [frame, Primitive(body, "cells", (x, y, z, nx, ny), placement, FINISHES["cells"])]


def along(
    i: int, kind: str, size: tuple[float, ...], start: Array, out: Array, shift: float, look: str
) -> Primitive:
    """Return an axisymmetric shape along `out`, centred at `start` plus `shift` along the axis."""
    x = pose.from_rotation_matrix(frame_along(out), start + shift * out)
    return Primitive(i, kind, size, x, FINISHES[look])


def block(i: int, size: Array, at: Array, look: str) -> Primitive:
    """Return a box with the body's axes, centred at a point."""
    lengths = (float(size[0]), float(size[1]), float(size[2]))
    return Primitive(i, "box", lengths, pose.from_translation(np.asarray(at)), FINISHES[look])


def rod(i: int, a: Array, b: Array, radius: float, look: str) -> list[Primitive]:
    """Return a cylinder between two points; empty if they coincide."""
    length = float(np.linalg.norm(b - a))
    if length < 1e-9:
        return []
    return [along(i, "cylinder", (radius, length), a, (b - a) / length, 0.5 * length, look)]


def boom(i: int, a: Array, b: Array, start: float, end: float) -> list[Primitive]:
    """Return a tapered tube between two points with cuffs at its ends; empty if too short."""
    length = float(np.linalg.norm(b - a))
    if length < 0.5 * start:
        return []
    out = (b - a) / length
    tube = along(i, "cone", (start, end, length), a, out, 0.5 * length, "white")
    if length < 5.0 * start:
        return [tube]
    cuff = along(i, "cylinder", (1.12 * start, 0.5 * start), a, out, 2.2 * start, "graphite")
    far = along(i, "cylinder", (1.14 * end, 0.5 * end), a, out, length - 2.2 * end, "graphite")
    return [tube, cuff, far]


def frame_along(out: Array) -> Array:
    """Return a rotation matrix whose z axis is the unit vector `out`."""
    helper = np.eye(3)[int(np.argmin(np.abs(out)))]
    x = np.cross(helper, out)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(out, x), out])
