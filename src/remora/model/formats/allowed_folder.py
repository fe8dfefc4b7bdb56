"""The allowed root folder for files that a robot file refers to."""

from __future__ import annotations

from pathlib import Path

#: Files that mark a folder as a ROS package or an SDF model.
_MARKS = ("package.xml", "model.config")
_PYTHON = "__init__.py"


def default_root(file: Path) -> Path:
    """Return the nearest parent folder that is a package; the folder of the file if none is.

    A package has a `package.xml` (ROS), a `model.config` (SDF), or is a Python package, the
    outermost of those nested. Robot files refer to meshes relative to their package
    (`../meshes/arm.stl`). A file outside any package, such as a download, may not refer to files
    outside its own folder.
    """
    folder = file.resolve().parent
    for parent in (folder, *folder.parents):
        if parent == Path(parent.anchor):
            break
        if is_package(parent):
            return parent
        if (parent / _PYTHON).is_file():
            while (parent.parent / _PYTHON).is_file() and parent.parent != parent:
                parent = parent.parent
            return parent
    return folder


def is_package(folder: Path) -> bool:
    """Tell whether a folder is a ROS package or an SDF model."""
    return any((folder / mark).is_file() for mark in _MARKS)


def allowed_root(file: Path, root: str | Path | None) -> Path:
    """Return the folder allowed by the user, or the default, links resolved."""
    return default_root(file) if root is None else Path(root).resolve()


def located(root: Path, folders: list[Path], name: str) -> tuple[Path | None, str]:
    """Return the path of a named file, or None if it must not be opened; and what is wrong.

    Args:
        root: the folder that must contain it after links are resolved.
        folders: where to search, best first.
        name: the path as the file gives it.
    """
    if "://" in name:
        return None, "is an address, not a path"
    inside: list[Path] = []
    try:
        for folder in folders:
            path = (folder / name.replace("\\", "/")).resolve()
            if path.is_relative_to(root):
                inside.append(path)
                if path.is_file():
                    return path, ""
    except (OSError, ValueError, RuntimeError):  # too long a name, a null, a loop of links
        return None, "is not a path that can be followed"
    if len(inside) < len(folders):
        return None, f"leads out of the folder {root}; allow another mesh_root for it"
    return inside[0], "is not found"
