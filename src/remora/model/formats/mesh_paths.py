"""Resolution of mesh paths in robot files, restricted to an allowed root folder.

The root is the folder that the user names or, by default, the nearest parent folder that is a
package (`roots`). Without a user's root, the package named in a `package://` URI is also allowed if
it is a parent folder of the file, or is a package beside one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

from remora.model.formats.bounded_reading import allowed_root, is_package

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
#: URI schemes that name a package or model and a path in it.
_PACKAGES = ("package", "model")
#: The text of the warning about a mesh omitted because it is outside the root.
_OUTSIDE = "allow another mesh_root for it"


def meshes_outside(warnings: Iterable[str]) -> int:
    """Return the number of meshes omitted as outside the root, from a robot's warnings."""
    return sum(_OUTSIDE in text for text in warnings)


class Meshes:
    """Finds the mesh files of one robot file, without opening them."""

    def __init__(self, file: Path, root: str | Path | None = None) -> None:
        """Look for the meshes of `file` below `root`, by default the package that contains it."""
        self._folder = file.parent.resolve()
        self._root = allowed_root(file, root)
        self._given = root is not None

    def find(self, name: str) -> Path | None:
        """Return the absolute path of a mesh, or None for a URI that is not a path.

        Args:
            name: a path, relative to the file's folder or absolute; `file://` and a path; or
                `package://name/path` (`model://` likewise), searched in the root, in the file's
                parent folders, and in the package of that name.

        Raises:
            ValueError: if the resolved path is outside the root, or cannot be resolved.
        """
        try:
            tried = [(path.resolve(), root) for path, root in self._candidates(name)]
            inside = [path for path, root in tried if path.is_relative_to(root)]
            there = [path for path in inside if path.exists()]
        except (OSError, RuntimeError, ValueError):  # too long a name, a loop of links, a null
            raise ValueError("is a path that cannot be followed") from None
        if not there and len(inside) < len(tried):
            raise ValueError(f"leads out of {self._root}; {_OUTSIDE}")
        return next(iter([*there, *inside]), None)

    def named(
        self, name: str, quoted: str, fault: Callable[[str], None], warn: Callable[[str], None]
    ) -> str | None:
        """Return the absolute path of a mesh as text, or None if it is refused or omitted.

        Args:
            name: as `find` takes it.
            quoted: the name as quoted in messages.
            fault: callback for faults.
            warn: callback for warnings: an unsupported URI, a missing file.
        """
        try:
            path = self.find(name)
        except ValueError as error:
            fault(f"{quoted} {error}")
            return None
        if path is None:
            warn(f"{quoted} is neither path, file:// nor package://; left out")
            return None
        if not path.exists():
            warn(f"{quoted}: there is no such file (mesh_root: the folder of the meshes); kept")
        return str(path)

    def _candidates(self, name: str) -> list[tuple[Path, Path]]:
        """Return candidate paths of a mesh, best first, each with its allowed root folder."""
        match = _SCHEME.fullmatch(name)
        if match is None:
            return [(self._folder / name.replace("\\", "/"), self._root)]
        scheme, rest = match.groups()
        if scheme == "file":
            return [(self._folder / unquote(rest), self._root)]
        if scheme not in _PACKAGES:
            return []
        package, _, inside = rest.partition("/")
        inside = inside.lstrip("/")  # a second slash would make it absolute
        if package in ("", ".", ".."):
            return [(self._root / package / inside, self._root)]
        folders = [self._folder, *self._folder.parents]
        below = folders[: folders.index(self._root) + 1] if self._root in folders else [self._root]
        parts = (Path(package, inside), Path(inside))
        found = [(f / part, self._root) for f in below for part in parts]
        if self._given:
            return found
        return [*((f / inside, f) for f in self._packages(package, folders)), *found]

    def _packages(self, package: str, folders: list[Path]) -> list[Path]:
        """Return parent folders of that name, and packages of that name beside a parent folder.

        A sibling folder counts only if it is marked as a package: any file could name
            `package://etc`. A folder at the top of the file system, such as `home`, never counts.
        """
        above = [f for f in folders if f.name == package and f.parent != Path(f.anchor)]
        beside = [f / package for f in folders if is_package(f / package)]
        return [*above, *(f.resolve() for f in beside if f.resolve().name == package)]
