"""A digest of Remora's own source files, so that an edited equation changes the kernel key."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def source_digest(*places: str) -> str:
    """Return the digest of the Python files in folders of the package, with their names.

    Args:
        *places: folders or files relative to the package; the whole package by default.
    """
    return digest_of_files(ROOT, places or (".",))


def digest_of_files(root: Path, places: tuple[str, ...]) -> str:
    """Return the digest of the Python files below `root`, with their relative names.

    Args:
        root: the folder.
        places: folders or files in it.
    """
    made = hashlib.sha256()
    for place in places:
        found = root / place
        files = sorted(found.rglob("*.py")) if found.is_dir() else [found]
        for file in files:
            content = file.read_bytes()
            name = file.relative_to(root).as_posix()
            made.update(f"{name}\0{len(content)}\0".encode())
            made.update(content)
    return made.hexdigest()
