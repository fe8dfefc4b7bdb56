"""The folder that the files a robot file names must lie in."""

from __future__ import annotations

from pathlib import Path

#: What marks a folder as a package: of ROS, of SDF models, of Python.
MARKS = ("package.xml", "model.config", "__init__.py")


def default_root(file: Path) -> Path:
    """Return the nearest parent folder that is a package; the folder of the file if none is.

    Robot files name their meshes relative to the package they come in (`../meshes/arm.stl`). A
    file that is in no package, one just downloaded say, has no business outside its own folder.
    """
    folder = file.resolve().parent
    for parent in (folder, *folder.parents):
        if parent != Path(parent.anchor) and any((parent / mark).is_file() for mark in MARKS):
            return parent
    return folder


def allowed_root(file: Path, root: str | Path | None) -> Path:
    """Return the folder allowed by the user, or the default, links resolved."""
    return default_root(file) if root is None else Path(root).resolve()


def located(root: Path, folders: list[Path], name: str) -> tuple[Path | None, str]:
    """Return where a named file lies, or None and why it is not used.

    Args:
        root: the folder it must lie in once links are resolved.
        folders: where to look, best first.
        name: the path as the file gives it.
    """
    if "://" in name:
        return None, "is an address, not a path"
    outside = False
    try:
        for folder in folders:
            path = (folder / name.replace("\\", "/")).resolve()
            if not path.is_relative_to(root):
                outside = True
            elif path.is_file():
                return path, ""
    except (OSError, ValueError, RuntimeError):  # too long a name, a null, a loop of links
        return None, "is not a path that can be followed"
    if outside:
        return None, f"leads out of the folder {root}; allow another mesh_root for it"
    return None, "is not found"
