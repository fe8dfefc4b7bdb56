"""Where a mesh named in a robot file lies: below an allowed folder, and nowhere else.

Allowed are the root that the user names or, by default, the nearest parent folder that is a
package (`roots`); and without a root of the user's, the package that a `package://` address names,
where that is a parent folder of the file or lies beside one and is a package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

from remora.model.formats.allowed_folder import allowed_root, is_package

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
#: Addresses that name a package or model and a path in it.
_PACKAGES = ("package", "model")
#: What a warning says of a mesh that is left out because it lies outside.
_OUTSIDE = "allow another mesh_root for it"


def meshes_outside(warnings: Iterable[str]) -> int:
    """Return how many meshes were left out, by a robot's warnings, because they lie outside."""
    return sum(_OUTSIDE in text for text in warnings)


class Meshes:
    """Finds the meshes of one robot file; none is ever opened."""

    def __init__(self, file: Path, root: str | Path | None = None) -> None:
        """Look for the meshes of `file` below `root`, by default the package it lies in."""
        self._folder = file.parent.resolve()
        self._root = allowed_root(file, root)
        self._given = root is not None

    def find(self, name: str) -> Path | None:
        """Return the absolute path of a mesh, None for an address that is no path.

        Args:
            name: a path, relative to the file's folder or absolute; `file://` and a path; or
                `package://name/path` (`model://` likewise), sought in the root, from the file's
                folder upwards, and in the package of that name.

        Raises:
            ValueError: if the path, links followed, leaves the root, or cannot be followed.
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
        """Return the absolute path of a mesh as text, None where it is refused or left out.

        Args:
            name: as `find` takes it.
            quoted: the name as the reports should quote it.
            fault: takes what is wrong.
            warn: takes what is odd: an address, a file that is not there.
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
            warn(f"{quoted}: there is no such file (mesh_root says where meshes lie); kept")
        return str(path)

    def _candidates(self, name: str) -> list[tuple[Path, Path]]:
        """Return where a mesh may lie, best first, each with the folder it must lie in."""
        match = _SCHEME.fullmatch(name)
        if match is None:
            return [(self._folder / name.replace("\\", "/"), self._root)]
        scheme, rest = match.groups()
        if scheme == "file":
            return [(self._folder / unquote(rest), self._root)]
        if scheme not in _PACKAGES:
            return []
        package, _, inside = rest.partition("/")
        inside = inside.lstrip("/")  # else a second slash would make it absolute
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
        """Return the folders of that name above the file, and the packages beside those above it.

        A folder beside is taken for the package only if it says that it is one: any file could
        name `package://etc`; and one at the top of the file system, such as `home`, never.
        """
        above = [f for f in folders if f.name == package and f.parent != Path(f.anchor)]
        beside = [f / package for f in folders if is_package(f / package)]
        return [*above, *(f.resolve() for f in beside if f.resolve().name == package)]
