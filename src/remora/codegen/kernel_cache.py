"""On-disk cache of compiled kernels.

An entry is loaded as code, so only this user (or root) may be able to write to its folder and to
every folder above it. An entry contains its own key; one that is damaged or has another key is
recompiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import casadi
from remora.identity.digest import digest
from remora.identity.sources import CODEGEN, source_digest

llvmlite: Any = importlib.import_module("llvmlite")

#: Format of an entry: this line, the key, the hash of key and payload, the payload.
_MAGIC = b"remora kernel 2\n"
_KEY, _HASH = 64, 32
_warned: set[Path] = set()


def entry_key(*parts: Any) -> str:
    """Return the key of a cache entry: a digest by value of everything its content depends on.

    Args:
        *parts: a graph or program, or a key of the function that it is made of; the processor.
    """
    return digest(source_digest(*CODEGEN), _libraries(), *parts)


def _libraries() -> list[str]:
    """Return the versions of the libraries that determine the machine code."""
    return [np.__version__, str(casadi.__version__), str(llvmlite.__version__)]


def folder() -> Path:
    """Return the cache folder: `$REMORA_CACHE`, otherwise the user's cache folder."""
    named = os.environ.get("REMORA_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "remora"


def load(key: str) -> bytes | None:
    """Return the entry of a key, or None if it is missing, damaged, unsafe or of another key.

    Args:
        key: a digest, 64 hexadecimal digits.
    """
    place = folder()
    try:
        if not _is_safe(place):
            return None
        with (place / key).open("rb") as stream:
            if not _is_ours(os.fstat(stream.fileno())):
                return None
            data = stream.read()
    except OSError:
        return None
    return unpacked_entry(key, data)


def save(key: str, payload: bytes) -> None:
    """Store an entry; skip it if that cannot be done safely.

    Written to a temporary file and renamed, so that a reader sees a complete entry or none.

    Args:
        key: a digest, 64 hexadecimal digits.
        payload: what `load` returns.
    """
    place = folder()
    with contextlib.suppress(OSError):
        _make_private(place)
        if not _is_safe(place):
            return
        number, name = tempfile.mkstemp(dir=place, prefix=".making-")
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(packed_entry(key, payload))
            os.replace(name, place / key)
        except OSError:
            os.unlink(name)


def packed(about: Any, code: bytes) -> bytes:
    """Return code with what must be known of it, JSON values, as one payload."""
    head = json.dumps(about).encode()
    return len(head).to_bytes(8, "little") + head + code


def unpacked(payload: bytes) -> tuple[Any, bytes]:
    """Return the parts of a payload made by `packed`."""
    end = 8 + int.from_bytes(payload[:8], "little")
    return json.loads(payload[8:end]), payload[end:]


def packed_entry(key: str, payload: bytes) -> bytes:
    """Return the file content of an entry."""
    named = key.encode()
    assert len(named) == _KEY
    return _MAGIC + named + hashlib.sha256(named + payload).digest() + payload


def unpacked_entry(key: str, data: bytes) -> bytes | None:
    """Return the payload of an entry, or None if it is damaged or has another key."""
    head, rest = data[: len(_MAGIC)], data[len(_MAGIC) :]
    named, found, payload = rest[:_KEY], rest[_KEY : _KEY + _HASH], rest[_KEY + _HASH :]
    if head != _MAGIC or named != key.encode():
        return None
    return payload if hashlib.sha256(named + payload).digest() == found else None


def _make_private(place: Path) -> None:
    """Create a folder and its missing parents, private to this user regardless of the umask."""
    for above in (*reversed(place.parents), place):
        with contextlib.suppress(FileExistsError):
            if not above.exists():
                above.mkdir(mode=0o700)


def _is_safe(place: Path) -> bool:
    """Return whether no other user can write to `place`; warn once if one can."""
    if os.name != "posix":
        return True  # user folders are private there by default
    real = place.resolve()
    status = real.stat()
    unsafe = [real] if not _is_ours(status) else []
    unsafe += [above for above in real.parents if not _is_ours(above.stat(), shared=True)]
    if not unsafe:
        return True
    if place not in _warned:
        _warned.add(place)
        warnings.warn(
            f"compiled kernels are not kept in {place}: others can write to {unsafe[0]}. Make it "
            f"private (chmod go-w {unsafe[0]}) or set REMORA_CACHE to a folder of your own",
            RuntimeWarning,
            stacklevel=2,
        )
    return False


def _is_ours(status: os.stat_result, shared: bool = False) -> bool:
    """Return whether only this user (or root) can write; a parent folder may be sticky."""
    if os.name != "posix":
        return True
    if status.st_uid not in (os.geteuid(), 0):
        return False
    open_to_others = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return not open_to_others or (shared and bool(status.st_mode & stat.S_ISVTX))
