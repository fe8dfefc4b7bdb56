"""Folders of results on disk: how runs, batches and campaigns open and check them.

The arrays of a result are one zarr group (format 3), readable by zarr alone. The attributes of the
group of a run or a batch name the kind of result and the version of its format, hold what is no
array, and have a checksum.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import json
import os
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from remora.algebra.array_ops import Array
from remora.atomic_files import UNFINISHED
from remora.errors import RemoraError
from remora.identity.json_seal import unsealed


class Kind(NamedTuple):
    """What a folder holds.

    Attributes:
        noun: of messages.
        version: of the format that this Remora writes and reads.
        reader: the function that opens it.
    """

    noun: str
    version: int
    reader: str

    @property
    def attribute(self) -> str:
        """Name of the attribute of the group that holds the version."""
        return f"remora_{self.noun}"

    def heading(self) -> dict[str, Any]:
        """Return the attributes that name the kind, its version and that of Remora."""
        return {
            self.attribute: self.version,
            "remora": importlib.import_module("remora").__version__,
        }

    def check_version(self, folder: Path, version: Any, writer: Any) -> None:
        """Raise if a folder has another version of the format."""
        if version != self.version:
            raise RemoraError(
                f"{folder}: is a {self.noun} in format {version!r}, this Remora reads "
                f"{self.version}; it was written by Remora {writer}"
            )


RUN = Kind("run", 3, "rm.open_run")
BATCH = Kind("batch", 4, "rm.open_batch")
CAMPAIGN = Kind("campaign", 3, "rm.open_campaign")


def zarr() -> Any:
    """Return zarr, or raise an error that names what to install."""
    try:
        return importlib.import_module("zarr")
    except ModuleNotFoundError:
        raise RemoraError("results on disk need zarr: python3 -m pip install zarr") from None


def occupied(folder: Path) -> bool:
    """Return whether a folder has files, except those of a process that was killed at its start."""
    killed = f"{UNFINISHED}*", "zarr.*.partial"
    return not all(any(fnmatch(f.name, x) for x in killed) for f in folder.iterdir())


def holds(kind: Kind, path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a result of that kind."""
    try:
        group = json.loads((Path(path) / "zarr.json").read_text(encoding="utf-8"))
        return kind.attribute in group["attributes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def opened(kind: Kind, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return the group in a folder and its attributes.

    Raises:
        RemoraError: if there is no result of that kind, or its attributes are damaged.
    """
    noun = kind.noun
    with readable(folder):
        if not folder.exists():
            raise RemoraError(f"{folder}: there is no such folder")
        if not folder.is_dir():
            raise RemoraError(f"{folder}: is a file; a {noun} is a folder")
        if not (folder / "zarr.json").is_file():
            raise RemoraError(f"{folder}: there is no {noun} in this folder (no zarr.json)")
    with readable(folder / "zarr.json"):
        group = zarr().open_group(folder, mode="r", zarr_format=3)
        attributes: dict[str, Any] = dict(group.attrs)
    if kind.attribute not in attributes:
        others = (k for k in (RUN, BATCH) if k.attribute in attributes)
        hint = "".join(f"; it is a {other.noun}: {other.reader}" for other in others)
        raise RemoraError(f"{folder}: is zarr data, but no {noun} of Remora{hint}")
    kind.check_version(folder, attributes[kind.attribute], attributes.get("remora"))
    with readable(folder / "zarr.json"):
        return group, unsealed(attributes)


def array_digest(x: Array) -> str:
    """Return the digest of an array: of its data type, its shape and its numbers."""
    return hashlib.sha256(f"{x.dtype.name} {x.shape}".encode() + x.tobytes()).hexdigest()


@contextlib.contextmanager
def readable(place: Path) -> Generator[None]:
    """Convert errors of zarr about damaged data to an error that names the file."""
    try:
        yield
    except RemoraError:
        raise
    except Exception as error:  # of any type: JSON, shapes, compression, the disk
        why = str(error) or type(error).__name__
        raise RemoraError(f"{place}: cannot be read, or is damaged: {why}") from error


@contextlib.contextmanager
def writable(place: Path, hint: str = "") -> Generator[None]:
    """Convert an error of the disk to one that says what to do.

    Args:
        place: the folder.
        hint: what to do besides making room.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "make room, or write elsewhere" if full else "write into a folder of your own"
        why = error.strerror or str(error)
        raise RemoraError(
            f"{place}: cannot be written: {why}; {advice}{f'; {hint}' if hint else ''}"
        ) from error
