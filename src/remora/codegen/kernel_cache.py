"""Compiled objects on disk, so that the next process need not compile again.

An entry is loaded as code, so it must be ours: the folder and every folder above it may be written
by nobody but us (or root), and an entry that is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

_MAGIC = b"remora kernel 1\n"


def folder() -> Path:
    """Return where entries are kept: `$REMORA_CACHE`, else the user's cache folder."""
    named = os.environ.get("REMORA_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "remora"


def load(key: str) -> bytes | None:
    """Return an entry, or None where there is none that is whole and safe."""
    place = folder()
    try:
        if not _safe(place):
            return None
        file = place / key
        with file.open("rb") as stream:
            if not _ours(os.fstat(stream.fileno())):
                return None
            data = stream.read()
    except OSError:
        return None
    head, rest = data[: len(_MAGIC)], data[len(_MAGIC) :]
    digest, payload = rest[:32], rest[32:]
    if head != _MAGIC or hashlib.sha256(payload).digest() != digest:
        return None
    return payload


def save(key: str, payload: bytes) -> None:
    """Keep an entry; where that cannot be done safely, do without.

    Written aside and moved into place, so that a reader sees a whole entry or none.
    """
    place = folder()
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _safe(place):
            return
        number, name = tempfile.mkstemp(dir=place, prefix=".making-")
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(name, place / key)
        except OSError:
            os.unlink(name)


def _safe(place: Path) -> bool:
    """Tell whether nobody else can put anything at `place`."""
    if os.name != "posix":
        return True  # user folders are private there by default
    real = place.resolve()
    if not _ours(real.stat()):
        return False
    return all(_ours(above.stat(), shared=True) for above in real.parents)


def _ours(status: os.stat_result, shared: bool = False) -> bool:
    """Tell whether only we (or root) can write; a folder above may be open if it is sticky."""
    if os.name != "posix":
        return True
    if status.st_uid not in (os.geteuid(), 0):
        return False
    open_to_others = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return not open_to_others or (shared and bool(status.st_mode & stat.S_ISVTX))
