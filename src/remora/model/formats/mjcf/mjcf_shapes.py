"""Visual shapes of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.model.formats.mjcf.mjcf_includes import MeshFile, Source
from remora.model.numbers import frozen
from remora.model.robot import Geometry

#: Groups that MuJoCo's viewer shows by default.
_SHOWN = 3
#: MuJoCo's shape type numbers, and the conversion of their sizes `(3,)` to Remora's.
_SOLIDS: dict[int, tuple[str, Callable[[float, float, float], tuple[float, ...]]]] = {
    2: ("sphere", lambda a, b, c: (a,)),
    3: ("capsule", lambda a, b, c: (a, 2.0 * b)),
    4: ("ellipsoid", lambda a, b, c: (a, b, c)),
    5: ("cylinder", lambda a, b, c: (a, 2.0 * b)),
    6: ("box", lambda a, b, c: (2.0 * a, 2.0 * b, 2.0 * c)),
}
_MESH = 7


def body_shapes(
    source: Source,
    model: Any,
    body: int,
    back: Array,
    warn: Callable[[str], None],
    fault: Callable[[str], None],
) -> Iterator[Geometry]:
    """Yield the shapes of a body that MuJoCo's viewer shows: groups 0 to 2.

    Args:
        source: the file of the model.
        model: MuJoCo's model.
        body: index of the body.
        back: pose of MuJoCo's body frame in Remora's, `(8,)`.
        warn: callback for omitted shapes.
        fault: callback for non-finite values, which MuJoCo would silently omit from the mass.
    """
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    for g in range(first, first + count):
        if int(model.geom_group[g]) >= _SHOWN:
            continue
        name = f"geom {str(model.geom(g).name or g)!r}"
        kind = int(model.geom_type[g])
        x, mesh = pose_of(model.geom_pos[g], model.geom_quat[g]), None
        if kind in _SOLIDS:
            what, size_of = _SOLIDS[kind]
            size = size_of(*(float(s) for s in model.geom_size[g]))
        elif kind == _MESH:
            found = source.meshes.get(model.mesh(int(model.geom_dataid[g])).name)
            if found is None or found.path is None:
                why = "has no file" if found is None else f"{found.file!r} {found.why}"
                warn(f"{name}: its mesh {why}; the shape is left out")
                continue
            if found.why:
                warn(f"{name}: its mesh {found.file!r} {found.why}; kept all the same")
            what, mesh = "mesh", str(found.path)
            size = tuple(float(s) for s in model.mesh_scale[int(model.geom_dataid[g])])
            x = _of_file(model, int(model.geom_dataid[g]), found, x)
        else:
            continue  # a plane or a height field
        material = int(model.geom_matid[g])
        rgba = model.geom_rgba[g] if material < 0 else model.mat_rgba[material]
        red, green, blue, alpha = (float(np.clip(c, 0.0, 1.0)) for c in rgba)
        x = frozen(dual_quaternion.mul(back, x))
        if not np.all(np.isfinite([*size, *x, *rgba])):
            fault(f"{name} is not finite")
            continue
        yield Geometry(what, size, x, (red, green, blue, alpha), mesh)


def pose_of(p: Array, r: Array) -> Array:
    """Return the pose of MuJoCo's position and quaternion."""
    return pose.from_parts(quaternion.normalize(np.array(r)), np.array(p))


def _of_file(model: Any, mesh: int, found: MeshFile, x: Array) -> Array:
    """Return the pose of the frame of the mesh's file.

    MuJoCo transforms a mesh by refpos and refquat, then to its centre and principal axes.
    """
    own = pose_of(model.mesh_pos[mesh], model.mesh_quat[mesh])
    x = dual_quaternion.mul(x, dual_quaternion.conjugate(own))
    given = found.node.attributes
    if "refpos" not in given and "refquat" not in given:
        return x
    p = np.array([float(w) for w in given.get("refpos", "0 0 0").split()])
    r = np.array([float(w) for w in given.get("refquat", "1 0 0 0").split()])
    return dual_quaternion.mul(x, dual_quaternion.conjugate(pose_of(p, r)))
