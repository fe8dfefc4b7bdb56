"""Bounded reading of untrusted files: in chunks, up to a size limit, regular files only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

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
