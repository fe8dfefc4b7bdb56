"""Atomic writing of files: written aside and renamed, so that a full disk or Ctrl-C destroys none.

A file appears complete, or the one that was there stays as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

from remora.errors import RemoraError

#: How the name of an unfinished file begins; a killed process may leave one behind.
UNFINISHED = ".remora-"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], parents: bool = False) -> Generator[Path]:
    """Yield the path of a temporary file that takes the place of `path` at the end of the block.

    It is in the same folder and has the same suffix. The permissions of an existing file are kept,
    a link stays a link, and a device such as /dev/stdout is written directly.

    Args:
        path: the file.
        parents: whether to create missing folders.

    Raises:
        RemoraError: if it cannot be written; an existing file is unchanged.
    """
    file = Path(os.path.realpath(path))
    part: Path | None = None
    try:
        mode = _mode(file)
        if mode is not None and not stat.S_ISREG(mode):
            yield file
            return
        if parents:
            file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(file.suffix, UNFINISHED, file.parent)
        os.close(handle)
        part = Path(name)
        yield part
        _flush(part)
        part.chmod(0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        part.replace(file)
        part = None
    except OSError as error:
        why = error.strerror or str(error)
        raise RemoraError(f"{os.fspath(path)}: cannot be written: {why}") from error
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink()


def write_bytes(path: str | os.PathLike[str], content: bytes, parents: bool = False) -> Path:
    """Write a file, whole or not at all, and return its path; see `replacing`."""
    with replacing(path, parents) as part:
        part.write_bytes(content)
    return Path(path)


def write_text(
    path: str | os.PathLike[str], text: str, encoding: str = "utf-8", parents: bool = False
) -> Path:
    r"""Write a text file with `\n` as line ends, whole or not at all, and return its path."""
    return write_bytes(path, text.encode(encoding), parents)


def _mode(file: Path) -> int | None:
    """Return type and permissions of what is at a path, None if nothing; or raise OSError."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file")
    if not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return mode


def _flush(part: Path) -> None:
    """Wait until the content is on the disk: some disks report only then that they are full."""
    with open(part, "rb+") as stream:
        os.fsync(stream.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
