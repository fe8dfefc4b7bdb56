"""Checkpoints of long computations: arrays in one file, written whole or not at all."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from remora.atomic_files import replacing
from remora.errors import RemoraError
from remora.identity.digest import digest

#: Seconds between two checkpoints.
INTERVAL = 5.0

#: Called in the course of a long analysis with the samples done and all samples.
Progress = Callable[[int, int], object]


class Checkpoint:
    """What a computation has done so far, kept in a file.

    A checkpoint belongs to one computation: that of other settings is refused.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: Any) -> None:
        """Name the file and the settings that the arrays depend on; without a path nothing is kept.

        Args:
            path: the file, `.npz`, or None.
            settings: anything with an identity by value.
        """
        self._path = None if path is None else Path(path)
        self._key = "" if path is None else digest(settings)
        self._kept_at = time.monotonic()

    def restore(self, arrays: dict[str, Any]) -> int:
        """Fill the arrays from the file, if there is one, and return how much was done.

        Raises:
            RemoraError: if the file belongs to another computation or is damaged.
        """
        if self._path is None or not self._path.exists():
            return 0
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                if str(stored["key"]) != self._key:
                    raise RemoraError(
                        f"{self._path}: is the checkpoint of another computation; delete it, or "
                        "name another file"
                    )
                for name, array in arrays.items():
                    _fill(array, stored[name])
                return int(stored["done"])
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise RemoraError(
                f"{self._path}: is not a checkpoint, or is damaged: {error}"
            ) from error

    def keep(self, done: int, arrays: dict[str, Any], now: bool = False) -> None:
        """Write the arrays if the last time is long enough ago, or `now`."""
        if self._path is None or (not now and time.monotonic() - self._kept_at < INTERVAL):
            return
        held: dict[str, Any] = {"key": self._key, "done": done}
        for name, array in arrays.items():
            held[name] = array.get() if hasattr(array, "get") else array
        with replacing(self._path, parents=True) as part, open(part, "wb") as opened:
            np.savez(opened, **held)
        self._kept_at = time.monotonic()

    def done(self) -> None:
        """Delete the file: the computation is complete."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _fill(array: Any, stored: Any) -> None:
    """Write stored numbers into an array on the processor or the GPU."""
    if stored.shape != array.shape:
        raise ValueError(f"shape {stored.shape} instead of {array.shape}")
    if isinstance(array, np.ndarray):
        array[...] = stored
    else:
        array.set(stored)
