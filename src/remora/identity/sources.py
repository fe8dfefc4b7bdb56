"""A digest of Remora's own source files, so that an edited equation changes the kernel key."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
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
    made, top = hashlib.sha256(), os.path.normpath(root)
    for place in places:
        found = os.path.normpath(os.path.join(top, place))
        for file in sorted(_python_files(found)) if os.path.isdir(found) else [found]:
            with open(file, "rb", buffering=0) as stream:
                content = stream.read()
            name = file[len(top) + 1 :]
            made.update(f"{name.replace(os.sep, '/')}\0{len(content)}\0".encode())
            made.update(content)
    return made.hexdigest()


def _python_files(folder: str) -> Iterator[str]:
    """Yield the Python files below a folder, without the cost of a `Path` for each."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _python_files(entry.path)
            elif entry.name.endswith(".py") and entry.is_file():
                yield entry.path
