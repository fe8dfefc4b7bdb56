"""Geometric primitives that a robot is drawn with."""

from __future__ import annotations

from dataclasses import dataclass

from remora.algebra.array_ops import Array
from remora.viewer.scene.materials import FINISHES, Finish


@dataclass(frozen=True, eq=False)
class Primitive:
    """A shape fixed to a body.

    Attributes:
        body: index of the body that carries it.
        kind: `box`, `cylinder`, `cone`, `sphere`, `capsule`, `ellipsoid`, `cells` or `mesh`.
        size: as in `Geometry`, m; cone (a tapered boom): radius at its start, radius at its end,
            length along z; cells (both faces of a solar panel): full lengths x, y, z, and number
            of cells along x and y.
        placement: pose in the body's frame, `(8,)`; cones and cylinders are centred.
        finish: its material.
        mesh: path of the mesh file, or None.
    """

    body: int
    kind: str
    size: tuple[float, ...]
    placement: Array
    finish: Finish
    mesh: str | None = None


def panel(body: int, size: tuple[float, float, float], placement: Array) -> list[Primitive]:
    """Return a solar panel, thin along z: a frame with cells on both faces."""
    x, y, z = size
    cell = min(x, y) / 4.0
    nx, ny = (max(1, min(24, round(length / cell))) for length in (x, y))
    frame = Primitive(body, "box", size, placement, FINISHES["aluminium"])
    return [frame, Primitive(body, "cells", (x, y, z, nx, ny), placement, FINISHES["cells"])]
