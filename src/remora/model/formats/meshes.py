"""Where a mesh named in a robot file lies: below one allowed folder, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)


class Meshes:
    """Finds the meshes of one robot file; none is ever opened."""

    def __init__(self, file: Path, root: str | Path | None = None) -> None:
        """Look for the meshes of `file` below `root`, by default the folder of the file."""
        self._folder = file.parent.resolve()
        self._root = self._folder if root is None else Path(root).resolve()

    def find(self, name: str) -> Path | None:
        """Return the absolute path of a mesh, None for an address that is no path.

        Args:
            name: a path, relative to the file's folder or absolute; `file://` and a path; or
                `package://name/path`, sought in the file's folder and upwards to the root.

        Raises:
            ValueError: if the path, links followed, leaves the root, or cannot be followed.
        """
        try:
            tried = [path.resolve() for path in self._candidates(name)]
            inside = all(path.is_relative_to(self._root) for path in tried)
            there = [path for path in tried if inside and path.exists()]
        except (OSError, RuntimeError, ValueError):  # too long a name, a loop of links, a null
            raise ValueError("is a path that cannot be followed") from None
        if not inside:
            raise ValueError(f"leads out of {self._root}; allow another mesh_root for it")
        return next(iter([*there, *tried]), None)

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
            warn(f"{quoted}: there is no such file; kept all the same")
        return str(path)

    def _candidates(self, name: str) -> list[Path]:
        match = _SCHEME.fullmatch(name)
        if match is None:
            return [self._folder / name]
        scheme, rest = match.groups()
        if scheme == "file":
            return [self._folder / unquote(rest)]
        if scheme != "package":
            return []
        package, _, inside = rest.partition("/")
        inside = inside.lstrip("/")  # else a second slash would make it absolute
        folders = [self._folder, *self._folder.parents]
        last = folders.index(self._root) + 1 if self._root in folders else 0
        folders = folders[:last] or [self._root]
        return [f / part for f in folders for part in (Path(package, inside), Path(inside))]
