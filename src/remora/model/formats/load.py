"""`rm.load`: a robot from a file by its format, or a bundled robot by name."""

from __future__ import annotations

import importlib
import os
import warnings
from pathlib import Path
from typing import Any

from remora.algebra.array_ops import ArrayLike
from remora.errors import Fault, InvalidValue, ModelError, ModelWarning, UnknownName
from remora.model.building.builder import Builder
from remora.model.building.inertia_consistency import treatment
from remora.model.building.joint_kinds import base_kind
from remora.model.building.validate import Place
from remora.model.formats.bundled import bundled
from remora.model.robot import Robot

#: One reader per file format, module and function (file, mesh_root) -> builder; imported when it
#: is needed.
READERS = {
    ".urdf": ("urdf.urdf", "read_urdf"),
    ".xacro": ("urdf.xacro", "read_xacro"),
    ".xml": ("mjcf.mjcf", "read_mjcf"),
    ".sdf": ("sdf.sdf", "read_sdf"),
    ".yaml": ("yaml.yaml", "read_yaml"),
    ".yml": ("yaml.yaml", "read_yaml"),
}

#: Formats with strict inertia checks by default: Remora's own.
_STRICT = (".yaml", ".yml")


def load(
    path: str | os.PathLike[str],
    base: str | None = None,
    merge_fixed: bool = True,
    gravity: ArrayLike | None = None,
    mesh_root: str | os.PathLike[str] | None = None,
    inertia: str | None = None,
    dynamics: bool = True,
) -> Robot:
    """Load a robot from a file, or a bundled one by name.

    URDF (`.urdf`, `.urdf.xacro`), MJCF (`.xml`), SDF (`.sdf`) and Remora's own `.yaml` are read.

    Files are untrusted input: all faults are reported in one error, with their lines.

    Args:
        path: the file, or the name of a bundled robot (no suffix, no folder).
        base: type of the joint between the inertial frame and the robot, such as `free` or `fixed`;
            default: from the file; if it does not specify one (URDF), `free`, or `fixed` for a
            massless root.
        merge_fixed: merge each body on a fixed joint into its parent; its frame is kept.
        gravity: acceleration in the inertial frame, `(3,)`, m/s²; default: from the file, else
            zero.
        mesh_root: the folder that must contain all referenced files: meshes, and the files that
            MJCF and SDF include. Default: the nearest parent folder that is a package (with a
            `package.xml`, a `model.config` or an `__init__.py`), else the folder of the file.
        inertia: treatment of a physically inconsistent inertia: `strict` refuses it; `warn`
            computes with it as long as the mass matrix stays positive definite; `repair` replaces
            it by the nearest consistent one (in the Frobenius norm of the second-moment matrix,
            with the same mass and centre of mass) and reports the change. Default: `warn`; for YAML
            `strict`.
        dynamics: False for a kinematics-only model: masses are not checked, and functions that need
            them refuse the robot.

    Returns:
        The robot; accepted irregularities are in its `warnings`. Those that affect results are also
        issued as a `ModelWarning`.

    Raises:
        ModelError: if the file or the robot in it is refused.
        UnknownName: if the bundled robot or the treatment of inertia is unknown.
        InvalidValue: if an option is invalid, such as a `base` that is not a joint type.

    Example:
        >>> load("servicer").joints[0].kind
        'free'
    """
    if base is not None:
        base = base_kind(base)
    if inertia is not None:
        inertia = treatment(inertia)
    file = _located(path)
    suffix = file.suffix.lower()
    if suffix not in READERS:
        raise ModelError(os.fspath(path), [Fault("file", _no_format(file))])
    module, name = READERS[suffix]
    read: Any = getattr(importlib.import_module(f"remora.model.formats.{module}"), name)
    builder: Builder = read(file, _folder(mesh_root))
    if file in bundled("robots").values():
        builder.source = f"bundled robot {file.stem!r}"
    if gravity is not None:
        builder.gravity(gravity)
    if base is not None:
        builder.base(base)
    elif builder.has_massless_root():
        base = "fixed"
        reason = "the root has no mass: mounted on the ground; base='free' lets it float"
        builder.warn(Place("base"), reason, loud=True)
    how = inertia or ("strict" if suffix in _STRICT else "warn")
    robot = builder.build(base or "free", merge_fixed, how, dynamics and builder.dynamics)
    for text in builder.loud:
        warnings.warn(f"{builder.source}: {text}", ModelWarning, stacklevel=2)
    return robot


def _located(path: str | os.PathLike[str]) -> Path:
    if isinstance(path, str) and not Path(path).suffix and Path(path).name == path:
        robots = bundled("robots")
        if path and path not in robots and Path(path).is_dir():
            raise InvalidValue(f"{path}: is a folder; name a robot file, {', '.join(READERS)}")
        if path not in robots:
            raise UnknownName("bundled robot", path, robots)
        return robots[path]
    return _path(path)


def _no_format(file: Path) -> str:
    what = f"the suffix {file.suffix!r} is no known format" if file.suffix else "has no suffix"
    hint = (
        f"; for the bundled robot say {file.stem!r} alone" if file.stem in bundled("robots") else ""
    )
    return f"{what}; known: {', '.join(READERS)}{hint}"


def _folder(mesh_root: str | os.PathLike[str] | None) -> Path | None:
    if mesh_root is None:
        return None
    folder = _path(mesh_root)
    if not folder.is_dir():
        raise InvalidValue(f"mesh_root {os.fspath(folder)!r} is not a folder")
    return folder


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InvalidValue(f"a path is needed, not {path!r}") from None
