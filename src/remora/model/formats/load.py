"""Load a robot from a file, or one of Remora's own by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from remora.algebra.namespace import ArrayLike
from remora.errors import Fault, InvalidValue, ModelError, UnknownName
from remora.model.building.builder import Builder, base_kind
from remora.model.formats.mjcf import read_mjcf
from remora.model.formats.urdf import read_urdf
from remora.model.formats.yaml import read_yaml
from remora.model.robot import Robot


def _read_mjcf(file: Path, mesh_root: Path | None) -> Builder:
    if mesh_root is not None:
        reason = "mesh_root is for URDF and YAML; MuJoCo's meshes lie below the folder of the file"
        raise InvalidValue(f"{file}: {reason}")
    return read_mjcf(file)


#: One reader per file format: (file, mesh_root) -> builder.
READERS: dict[str, Callable[[Path, Path | None], Builder]] = {
    ".urdf": read_urdf,
    ".xml": _read_mjcf,
    ".yaml": read_yaml,
    ".yml": read_yaml,
}

_BUNDLED = Path(__file__).parents[2] / "robots"


def load(
    path: str | os.PathLike[str],
    base: str | None = None,
    merge_fixed: bool = True,
    gravity: ArrayLike | None = None,
    mesh_root: str | os.PathLike[str] | None = None,
) -> Robot:
    """Load a robot from a `.urdf`, `.xml` (MJCF) or `.yaml` file, or a bundled one by name.

    Nothing in the file is trusted: every fault found is reported with its line in one error.

    Args:
        path: the file; or, without suffix and folder, the name of a bundled robot.
        base: kind of the joint between the inertial frame and the robot, such as `free` or
            `fixed`; default: as the file says, and `free` where it says nothing (URDF).
        merge_fixed: make each body on a fixed joint part of its parent; it stays a frame.
        gravity: acceleration in the inertial frame, `(3,)`, m/s²; default: as the file says, and
            zero where it says nothing.
        mesh_root: the folder that the meshes of a URDF or YAML file must lie in; default: that of
            the file. Meshes are only named, never opened.

    Returns:
        The robot; what was odd but acceptable is in its `warnings`.

    Raises:
        ModelError: if the file or the robot in it is refused.
        UnknownName: if there is no bundled robot of that name.
        InvalidValue: if an option is out of its domain, such as a `base` that is no kind of joint.

    Example:
        >>> load("servicer").joints[0].kind
        'free'
    """
    if base is not None:
        base = base_kind(base)
    file = _located(path)
    suffix = file.suffix.lower()
    if suffix not in READERS:
        raise ModelError(os.fspath(path), [Fault("file", _no_format(file))])
    builder = READERS[suffix](file, None if mesh_root is None else _path(mesh_root))
    if file.parent == _BUNDLED:
        builder.source = f"bundled robot {file.stem!r}"
    if gravity is not None:
        builder.gravity(gravity)
    if base is not None:
        builder.base(base)
    return builder.build(base=base or "free", merge_fixed=merge_fixed)


def bundled_robots() -> dict[str, Path]:
    """Return the files of the robots that come with Remora, by name."""
    files = (path for path in sorted(_BUNDLED.glob("*")) if path.suffix in READERS)
    return {path.stem: path for path in files}


def _located(path: str | os.PathLike[str]) -> Path:
    if isinstance(path, str) and not Path(path).suffix and Path(path).name == path:
        robots = bundled_robots()
        if path not in robots:
            raise UnknownName("bundled robot", path, robots)
        return robots[path]
    return _path(path)


def _no_format(file: Path) -> str:
    what = f"the suffix {file.suffix!r} is no known format" if file.suffix else "has no suffix"
    hint = (
        f"; for the bundled robot say {file.stem!r} alone" if file.stem in bundled_robots() else ""
    )
    return f"{what}; known: {', '.join(READERS)}{hint}"


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InvalidValue(f"a path is needed, not {path!r}") from None
