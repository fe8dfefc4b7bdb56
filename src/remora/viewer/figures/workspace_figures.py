"""Matplotlib figures of workspaces and of ellipsoids, with the robot drawn in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, ArrayLike
from remora.analysis.free_floating_workspace import FloatingWorkspace
from remora.analysis.manipulability import Manipulability
from remora.analysis.straight_path import SINGULAR, StraightPathWorkspace
from remora.analysis.workspace import PLANES, Workspace
from remora.dynamics.kinematics import poses
from remora.dynamics.momentum import center_of_mass
from remora.errors import InvalidValue
from remora.model.robot import Geometry, Robot
from remora.model.state import configuration
from remora.viewer.figures.figures import COLOURS, INK, MUTED, STYLE, library

#: What the measures are called.
LABELS = {
    "volume": "manipulability measure √det(J Jᵀ)", "condition": "condition number of J",
    "smallest": "smallest singular value of J", "largest": "largest singular value of J",
}  # fmt: skip
#: Colours: of path-independent and path-dependent regions.
INDEPENDENT, DEPENDENT = "#009e73", "#d55e00"
SIZE = (4.6, 4.0)


def new_axes(size: tuple[float, float] = SIZE, projection: str | None = None) -> tuple[Any, Any]:
    """Return a new figure in the house style, and its axes."""
    with library("matplotlib").rc_context(STYLE):
        figure = library("matplotlib.figure").Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot(projection=projection)
    return figure, ax


def label_plane(ax: Any, names: Sequence[str]) -> None:
    """Label the axes of a plane in m, with equal scales."""
    ax.set_aspect("equal")
    ax.set_xlabel(f"{names[0]}, m")
    ax.set_ylabel(f"{names[1]}, m")


def workspace_figure(
    found: Workspace, robot: Robot | None = None, q: ArrayLike | None = None, title: str = ""
) -> Any:
    """Return a figure of a workspace: cells in a plane, or its surface in space.

    Args:
        found: the workspace.
        robot: drawn in the plane if given.
        q: its configuration, `(nq,)`.
        title: heading.
    """
    if len(found.axes) == 3:
        return _surface_figure(found, title)
    figure, ax = new_axes()
    with library("matplotlib").rc_context(STYLE):
        shown = np.where(found.mask, found.best, np.nan)
        if found.dexterity is not None:
            ax.contourf(
                *(found.grid.centers(k) for k in (0, 1)), found.reached.T.astype(float),
                levels=[0.5, 1.5], colors=["#dfe3e8"], zorder=1,
            )  # fmt: skip
        (left, right), (low, high) = found.grid.extent()
        picture = ax.imshow(
            shown.T, origin="lower", extent=(left, right, low, high), cmap="viridis",
            interpolation="nearest", zorder=2,
        )  # fmt: skip
        ax.grid(visible=False)
        bar = figure.colorbar(picture, ax=ax, shrink=0.85)
        bar.set_label(LABELS[found.measure])
        bar.outline.set_linewidth(0.4)
        if robot is not None and q is not None:
            draw_robot(ax, robot, q, found.axes)
            ax.autoscale()
            ax.margins(0.03)
        label_plane(ax, found.axes)
        ax.set_title(title or f"{found.kind} workspace, {found.volume:.3f} m²")
    return figure


def _surface_figure(found: Workspace, title: str) -> Any:
    figure, ax = new_axes((5.4, 4.6), "3d")
    vertices, faces, values = found.surface()
    with library("matplotlib").rc_context(STYLE):
        collection: Any = library("mpl_toolkits.mplot3d.art3d").Poly3DCollection
        colormap: Any = library("matplotlib").colormaps["viridis"]
        low, high = float(values.min()), float(values.max())
        at = (values[faces].mean(axis=1) - low) / max(high - low, 1e-300)
        corners = vertices[faces]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)
        light = 0.62 + 0.38 * np.abs(normal @ np.array([0.35, -0.55, 0.76]))
        colours = colormap(at)
        colours[:, :3] *= light[:, None]
        ax.add_collection3d(collection(corners, facecolors=colours, linewidths=0.0))
        for k, name in enumerate("xyz"):
            getattr(ax, f"set_{name}lim")(vertices[:, k].min(), vertices[:, k].max())
            getattr(ax, f"set_{name}label")(f"{name}, m")
        ax.set_box_aspect(np.ptp(vertices, axis=0))
        scale: Any = library("matplotlib.cm").ScalarMappable(
            library("matplotlib.colors").Normalize(low, high), colormap
        )
        bar = figure.colorbar(scale, ax=ax, shrink=0.7, pad=0.1)
        bar.set_label(LABELS[found.measure])
        bar.outline.set_linewidth(0.4)
        ax.set_title(title or f"{found.kind} workspace, {found.volume:.2f} m³")
    return figure


def straight_path_figure(
    found: StraightPathWorkspace,
    robot: Robot | None = None,
    q: ArrayLike | None = None,
    title: str = "",
) -> Any:
    """Return a figure of a straight-path workspace in a plane, its boundary coloured by reason."""
    if found.plane is None:
        raise InvalidValue("a straight-path workspace in space has no figure: give plane='xy', ...")
    figure, ax = new_axes()
    a, b = PLANES[found.plane]
    edge = found.boundary
    with library("matplotlib").rc_context(STYLE):
        ax.fill(edge[:, a], edge[:, b], color=COLOURS[4], alpha=0.25, linewidth=0.0)
        reasons = [SINGULAR, *sorted(set(found.reason) - {SINGULAR})]
        for k, reason in enumerate(reasons):
            these = np.array([r == reason for r in found.reason])
            label = SINGULAR if reason == SINGULAR else f"limit of {reason}"
            ax.plot(
                *_runs(edge[:, a], edge[:, b], these), color=COLOURS[(1, 0, 2, 3, 5)[k % 5]],
                label=label,
            )  # fmt: skip
        if robot is not None and q is not None:
            draw_robot(ax, robot, q, [found.plane[0], found.plane[1]])
        ax.plot(found.start[a], found.start[b], "o", color=INK, markersize=3.5, label="start")
        label_plane(ax, found.plane)
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        ax.set_title(title or f"straight paths, {found.base} base, {found.volume:.3f} m²")
    return figure


def _runs(x: Array, y: Array, these: Any) -> tuple[Array, Array]:
    """Return a closed curve with gaps where neither a point nor the one before it is marked."""
    closed = np.append(np.arange(len(x)), 0)
    keep = these | np.roll(these, 1) | np.roll(these, -1)
    return np.where(keep, x, np.nan)[closed], np.where(keep, y, np.nan)[closed]


def floating_workspace_figure(
    found: FloatingWorkspace,
    robot: Robot | None = None,
    q: ArrayLike | None = None,
    title: str = "",
) -> Any:
    """Return a figure of path-independent and path-dependent regions around the centre of mass."""
    figure, ax = new_axes()
    patches: Any = library("matplotlib.patches")
    plane = found.plane or "xy"
    center = np.zeros(3)
    if robot is not None and q is not None:
        center = center_of_mass(robot, q)
    a, b = PLANES[plane]
    regions = (
        (found.path_independent, INDEPENDENT, "path-independent"),
        (found.path_dependent, DEPENDENT, "path-dependent"),
    )
    with library("matplotlib").rc_context(STYLE):
        for shells, colour, label in regions:
            for k, (low, high) in enumerate(shells):
                ax.add_patch(
                    patches.Annulus(
                        (center[a], center[b]), high, max(high - low, 1e-9) * (1 - 1e-12),
                        facecolor=colour, alpha=0.28, edgecolor=colour, linewidth=0.8,
                        label=label if k == 0 else None,
                    )
                )  # fmt: skip
        if robot is not None and q is not None:
            draw_robot(ax, robot, q, [plane[0], plane[1]])
        ax.plot(center[a], center[b], "+", color=INK, label="centre of mass")
        reach = 1.05 * float(found.reachable[-1, 1])
        ax.set_xlim(center[a] - reach, center[a] + reach)
        ax.set_ylim(center[b] - reach, center[b] + reach)
        label_plane(ax, [plane[0], plane[1]] if found.plane else ["radius", "radius"])
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        ax.set_title(title or "free-floating workspace")
    return figure


def draw_ellipse(
    ax: Any, ellipsoid: Manipulability, names: Sequence[str], scale: float, colour: str, label: str
) -> None:
    """Draw an ellipse of two coordinates at its frame.

    Args:
        ax: the axes.
        ellipsoid: of the subspace that `names` span, one configuration.
        names: the two axes, such as "xy".
        scale: metres drawn for a unit of the semi-axes.
        colour: colour of its line.
        label: in the legend, or "".
    """
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    round_ = np.stack([np.cos(angle), np.sin(angle)])
    curve = ellipsoid.axes @ (scale * ellipsoid.semi_axes[:, None] * round_)
    at = ellipsoid.center[["xyz".index(name) for name in names]]
    ax.plot(at[0] + curve[0], at[1] + curve[1], color=colour, linewidth=1.0, label=label or None)


def draw_robot(
    ax: Any, robot: Robot, q: ArrayLike, names: Sequence[str], alpha: float = 0.85
) -> None:
    """Draw the boxes and cylinders of a robot, projected to a plane."""
    span = ["xyz".index(name) for name in names]
    x = poses(robot, configuration(robot, q))
    patches: Any = library("matplotlib.patches")
    hull: Any = _hull
    for body, at in zip(robot.bodies, x, strict=True):
        for shape in body.geometry:
            corners = _corners(shape)
            if corners is None:
                continue
            placed = pose.compose(at, shape.placement)
            outline = hull(pose.transform_point(placed, corners)[:, span])
            colour = shape.color[:3] if shape.color else MUTED
            ax.add_patch(
                patches.Polygon(
                    outline, closed=True, facecolor=colour, edgecolor=INK, linewidth=0.5,
                    alpha=alpha, zorder=3,
                )
            )  # fmt: skip


def _corners(shape: Geometry) -> Array | None:
    """Return the corners of the box around a shape in its own frame, `(8, 3)`."""
    if shape.kind == "box":
        half = 0.5 * np.array(shape.size)
    elif shape.kind in ("cylinder", "capsule"):
        half = np.array([shape.size[0], shape.size[0], 0.5 * shape.size[1]])
    else:
        return None
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return signs * half


def _hull(points: Array) -> Array:
    """Return the convex hull of points `(n, 2)`, counter-clockwise (Andrew's monotone chain)."""
    ordered = np.unique(np.round(points, 12), axis=0)

    def chain(rows: Array) -> list[Array]:
        kept: list[Array] = []
        for p in rows:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0.0:
                kept.pop()
            kept.append(p)
        return kept

    return np.array(chain(ordered)[:-1] + chain(ordered[::-1])[:-1])


def _turn(a: Array, b: Array, c: Array) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
