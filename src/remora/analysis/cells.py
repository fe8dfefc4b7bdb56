"""Cells of a regular grid in the plane or in space: which are reached, their area or volume.

Also classes of orientations, which the dexterous workspace counts in each cell.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, RemoraError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """A regular grid of square or cubic cells.

    Attributes:
        origin: corner of the first cell, m.
        spacing: edge of a cell, m.
        shape: number of cells along each axis.
    """

    origin: tuple[float, ...]
    spacing: float
    shape: tuple[int, ...]

    def centers(self, axis: int) -> Array:
        """Return the centres of the cells along one axis, m."""
        return self.origin[axis] + self.spacing * (np.arange(self.shape[axis]) + 0.5)

    def extent(self) -> list[tuple[float, float]]:
        """Return lowest and highest coordinate along each axis, m."""
        return [
            (low, low + n * self.spacing) for low, n in zip(self.origin, self.shape, strict=True)
        ]

    def cells_of(self, points: Any) -> Any:
        """Return the numbers of the cells that hold points `(n, d)`, all of them inside."""
        number: Any = 0
        for axis, (low, n) in enumerate(zip(self.origin, self.shape, strict=True)):
            along = ((points[:, axis] - low) * (1.0 / self.spacing)).astype(np.int64)
            number = number * n + along.clip(0, n - 1)
        return number

    def cropped(self, mask: Mask) -> tuple[Grid, tuple[slice, ...]]:
        """Return the part that holds all cells of the mask with a margin of one empty cell."""
        slices: list[slice] = []
        for axis in range(mask.ndim):
            others = tuple(a for a in range(mask.ndim) if a != axis)
            along = np.flatnonzero(mask.any(axis=others))
            first, last = int(along[0]), int(along[-1])
            slices.append(slice(max(0, first - 1), min(mask.shape[axis], last + 2)))
        origin = tuple(
            low + self.spacing * part.start for low, part in zip(self.origin, slices, strict=True)
        )
        shape = tuple(part.stop - part.start for part in slices)
        return Grid(origin, self.spacing, shape), tuple(slices)


def ball_grid(center: Array, radius: float, cells: int) -> Grid:
    """Return a grid around a disk or ball, with `cells` cells along each axis.

    Raises:
        InvalidValue: if there are no cells.
    """
    if cells < 1:
        raise InvalidValue(f"cells={cells!r}: the grid is empty; give a number of cells per side")
    spacing = 2.0 * radius * (1.0 + 1e-9) / cells
    origin = tuple(float(x) - 0.5 * cells * spacing for x in center)
    return Grid(origin, spacing, (cells,) * len(origin))


def measure_of(mask: Mask, spacing: float) -> float:
    """Return the area or volume of the region whose points are in the cells of a mask, m² or m³.

    A cell is in the mask if a part of it is reached, so their sum is too large by about half of
    the cells that the boundary passes through. Those are the cells with an empty neighbour, corners
    included: h^d (N - ½ N_boundary), of second order in the spacing where the boundary is smooth.
    Cells of which only a corner is reached are missed by samples; in space this makes the volume
    of 10⁶ samples some percent too small.
    """
    return float(spacing**mask.ndim * (mask.sum() - 0.5 * boundary(mask).sum()))


def boundary(mask: Mask) -> Mask:
    """Return the cells of the mask that have a neighbour outside it, corners included."""
    return mask & ~eroded(mask)


def eroded(mask: Mask) -> Mask:
    """Return the cells of the mask all of whose neighbours, corners included, are in it."""
    result = mask
    for axis in range(mask.ndim):
        before = (slice(None),) * axis
        inner = result[(*before, slice(1, -1))]  # the cells at both ends have no neighbour beyond
        inner = inner & result[(*before, slice(None, -2))] & result[(*before, slice(2, None))]
        result = result & False
        result[(*before, slice(1, -1))] = inner
    return result


def smoothed(values: NDArray[Any]) -> Array:
    """Return the mean of values over each cell and its neighbours, with a margin of two cells."""
    result = np.pad(values, 2).astype(float)
    for axis in range(values.ndim):
        ahead, behind = (np.roll(result, k, axis=axis) for k in (1, -1))
        result = (ahead + result + behind) / 3.0
    return result


def surface_library() -> Any:
    """Return scikit-image's module of surfaces; raise an error that names the extra to install."""
    try:
        return importlib.import_module("skimage.measure")
    except ModuleNotFoundError as error:
        raise RemoraError(
            "the surface of a workspace needs scikit-image: install the extra `analysis`, "
            "python3 -m pip install '.[analysis]' in Remora's folder"
        ) from error


def surface(mask: Mask, grid: Grid, smooth: bool = True) -> tuple[Array, NDArray[np.int64]]:
    """Return vertices `(n, 3)`, m, and triangles `(m, 3)` of the region's surface.

    Marching cubes of scikit-image (extra `analysis`).

    Args:
        mask: the cells, three axes.
        grid: where they are.
        smooth: whether to average over neighbours first, against steps.
    """
    if mask.ndim != 3:
        raise InvalidValue("a region in the plane has no surface: use its mask or contour")
    if not mask.any():
        raise InvalidValue("the workspace is empty: there is no surface")
    measure = surface_library()
    field = smoothed(mask) if smooth else np.pad(mask, 2).astype(float)
    vertices, faces, _, _ = measure.marching_cubes(field, 0.5)
    # voxel k of the padded field is centred at cell k - 2
    points = np.asarray(grid.origin) + grid.spacing * (np.asarray(vertices, float) - 1.5)
    return points, np.asarray(faces, dtype=np.int64)


def nearest_values(values: Array, mask: Mask, grid: Grid, points: Sequence[Any] | Array) -> Array:
    """Return the value of the nearest cell of the mask for points near it, `(n,)`."""
    at = np.clip(
        np.floor((np.asarray(points) - np.asarray(grid.origin)) / grid.spacing).astype(int),
        0, np.array(grid.shape) - 1,
    )  # fmt: skip
    filled, known = np.where(mask, values, 0.0), mask.astype(float)
    spread, weight = _box(filled), _box(known)
    wide, wide_weight = _box(spread), _box(weight)
    index = tuple(at.T)
    near = np.where(weight[index] > 0.0, spread[index] / np.maximum(weight[index], 1e-300), 0.0)
    far = wide[index] / np.maximum(wide_weight[index], 1e-300)
    return np.where(weight[index] > 0.0, near, far)


def _box(x: Array) -> Array:
    """Return sums over each cell and its neighbours."""
    result = np.pad(x, 1)
    for axis in range(x.ndim):
        result = np.roll(result, 1, axis) + result + np.roll(result, -1, axis)
    return result[tuple(slice(1, -1) for _ in range(x.ndim))]


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
