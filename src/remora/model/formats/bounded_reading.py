"""Files that a robot description may open: below an allowed root, regular, of bounded size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from remora.errors import Fault, ModelError

#: Size of a chunk, bytes.
CHUNK = 2**18


def chunks(path: str | os.PathLike[str], largest: int) -> Iterator[bytes]:
    """Yield a file in pieces of `CHUNK` bytes.

    The size is checked before reading and, since it may change, counted while reading.

    Args:
        path: the file.
        largest: maximum size, bytes.

    Raises:
        ModelError: if it cannot be read, is not a regular file or is larger.
    """
    source = os.fspath(path)
    too_large = ModelError(source, [Fault("file", f"is larger than {largest // 2**20} MiB")])
    try:
        status = os.stat(source)
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
            raise ModelError(source, [Fault("file", "is not a regular file")])
        if status.st_size > largest:
            raise too_large
        size = 0
        with open(source, "rb", opener=_open) as file:
            while chunk := file.read(CHUNK):
                size += len(chunk)
                if size > largest:
                    raise too_large
                yield chunk
    except (OSError, ValueError) as error:  # a ValueError: the path has a null character
        reason = getattr(error, "strerror", None) or error
        raise ModelError(source, [Fault("file", f"cannot be read: {reason}")]) from None


def _open(path: str, flags: int) -> int:
    """Open without blocking: the file may have been replaced by a pipe without a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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
