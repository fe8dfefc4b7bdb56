"""Files that are bundled with Remora: robots, assemblies, scenarios and studies."""

from __future__ import annotations

import os
from pathlib import Path

from remora.errors import InvalidValue, UnknownName

#: Folders of bundled files, and what one file is called in messages.
KINDS = {
    "robots": "robot", "assemblies": "assembly", "scenarios": "scenario", "studies": "study",
}  # fmt: skip
_ROOT = Path(__file__).resolve().parents[2]
_SUFFIXES = (".urdf", ".sdf", ".xml", ".yaml")


def bundled(kind: str) -> dict[str, Path]:
    """Return the files that are bundled with Remora, by name.

    Args:
        kind: `robots`, `assemblies`, `scenarios` or `studies`.

    Example:
        >>> import remora as rm
        >>> "servicer" in rm.bundled("robots")
        True
    """
    if not isinstance(kind, str) or kind not in KINDS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownName("kind of bundled files", kind, KINDS)
    files = (path for path in sorted((_ROOT / kind).glob("*")) if path.suffix in _SUFFIXES)
    return {path.stem: path for path in files}


def named_file(path: str | os.PathLike[str], kind: str) -> Path:
    """Return a file, or the bundled one of that name; a folder does not hide a bundled file.

    Args:
        path: a path; or, without suffix and folder, the name of a bundled file.
        kind: see `bundled`.
    """
    try:
        file = Path(path)
    except TypeError:
        raise InvalidValue(f"a path is needed, not {path!r}") from None
    if isinstance(path, str) and not file.suffix and file.name == path:
        known = bundled(kind)
        if path in known and (file.is_dir() or not file.exists()):
            return known[path]
        if not file.exists():
            raise UnknownName(f"bundled {KINDS[kind]}", path, known)
    return file
