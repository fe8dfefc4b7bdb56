"""Conversion of a robot to a list of primitives, each fixed to a body.

A body is drawn with its own geometry. A body without geometry, or only with missing meshes, gets
shapes generated from its role, joint offsets, mass and inertia (`generated_shapes`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, is_symbolic
from remora.errors import RemoraError
from remora.model.formats.mesh_paths import meshes_outside
from remora.model.robot import Body, Geometry, Robot
from remora.simulation.storage.reading import MESHES_LEFT_OUT
from remora.viewer.scene.generated_shapes import generated
from remora.viewer.scene.materials import finish_of, is_cell_blue
from remora.viewer.scene.primitives import Primitive, panel
from remora.viewer.scene.surfaces import mesh_surface

#: Supported mesh formats, and the maximum file size.
MESHES = (".stl", ".obj", ".ply", ".off", ".glb", ".dae")
LARGEST_MESH = 64 << 20
#: A box with a smaller ratio of thickness to width is a plate.
_THIN = 0.06


def shapes(robot: Robot, mesh_root: str | os.PathLike[str] | None = None) -> list[Primitive]:
    """Return the primitives of a robot, in the order of its bodies.

    Args:
        robot: a robot with numeric parameters.
        mesh_root: meshes outside this folder are left out; default: all meshes of the robot, which
            for a loaded robot are below the folder it was loaded with.

    Raises:
        RemoraError: if the robot's numbers are symbols or batches.
    """
    _check_numbers(robot)
    root = None if mesh_root is None else Path(mesh_root).resolve()
    own = [list(_drawable(i, body, root)) for i, body in enumerate(robot.bodies)]
    bare = [i for i, found in enumerate(own) if not found]
    made = generated(robot, bare)
    return [item for i, found in enumerate(own) for item in found or made[i]]


def generated_note(robot: Robot, drawn: Sequence[Primitive]) -> str | None:
    """Return a message about bodies with generated shapes; None if there are none.

    Args:
        robot: the robot.
        drawn: the result of `shapes`.
    """
    count = len({shape.body for shape in drawn if shape.generated})
    if not count:
        return None
    return (
        f"{count} of {len(robot.bodies)} bodies have no geometry: their shapes are generated from "
        "names, masses and inertias"
    )


def missing_meshes(robot: Robot, drawn: Sequence[Primitive]) -> str | None:
    """Return a message about meshes that are not drawn; None if all are drawn.

    Args:
        robot: the robot.
        drawn: the result of `shapes`.
    """
    left_out = [text for text in robot.warnings if text.startswith(MESHES_LEFT_OUT)]
    if left_out:
        return left_out[-1]
    named = [shape.mesh for body in robot.bodies for shape in body.geometry if shape.mesh]
    outside = meshes_outside(robot.warnings)
    gone = outside + sum(not os.path.isfile(mesh) for mesh in named)
    shown = sum(shape.kind == "mesh" for shape in drawn)
    total = len(named) + outside
    if gone:
        return f"{gone} of {total} meshes not found: use --mesh-root (mesh_root= in Python)"
    if shown < total:
        return (
            f"{total - shown} of {total} meshes cannot be read; known formats: "
            f"{', '.join(MESHES)} (.dae through pycollada, in the extra `view`)"
        )
    return None


def _drawable(i: int, body: Body, root: Path | None) -> Iterator[Primitive]:
    for shape in body.geometry:
        if shape.kind == "mesh":
            if shape.mesh is not None and _readable(shape.mesh, root):
                look = finish_of(shape.color)
                yield Primitive(i, "mesh", shape.size, shape.placement, look, shape.mesh)
            continue
        flat = _as_panel(shape)
        if flat is not None:
            yield from panel(i, *flat)
        else:
            yield Primitive(i, shape.kind, shape.size, shape.placement, finish_of(shape.color))


def _as_panel(shape: Geometry) -> tuple[tuple[float, float, float], Array] | None:
    """Return size and placement of a solar panel (a thin, dark blue box), thin along z; or None."""
    if shape.kind != "box" or not is_cell_blue(shape.color):
        return None
    thin = int(np.argmin(shape.size))
    if shape.size[thin] > _THIN * sorted(shape.size)[1]:
        return None
    turn = np.roll(np.eye(3), 2 - thin, axis=1)  # columns: the panel's x, y, z in the box's axes
    size = tuple(float(np.abs(turn[:, k]) @ np.array(shape.size)) for k in range(3))
    turned = pose.compose(shape.placement, pose.from_rotation_matrix(turn))
    return (size[0], size[1], size[2]), turned


def _readable(mesh: str, root: Path | None) -> bool:
    """Return whether a mesh is below the root, has a supported format and size, and can be read."""
    path = Path(mesh)
    try:
        real = path.resolve()
        inside = root is None or real.is_relative_to(root)
        return (
            inside
            and real.suffix.lower() in MESHES
            and real.is_file()
            and real.stat().st_size <= LARGEST_MESH
            and len(mesh_surface(mesh).faces) > 0
        )
    except (OSError, RuntimeError, ValueError):
        return False


def _check_numbers(robot: Robot) -> None:
    for body, joint in zip(robot.bodies, robot.joints, strict=True):
        numbers = (body.mass, body.com, body.inertia, joint.placement)
        if any(is_symbolic(x) for x in numbers) or np.ndim(body.mass):
            raise RemoraError(
                f"body {body.name!r} of robot {robot.name!r} has numbers that are symbols or "
                "batches: only one robot with numbers can be drawn"
            )
