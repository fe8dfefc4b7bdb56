"""Folder of a campaign: study, results block by block, and a summary in Parquet.

    DIR/study.yaml         the file as it was
    DIR/campaign.json      format, digests of what results depend on, sizes
    DIR/results.zarr       one array per column, one shard per block; bands `(runs, samples)`
    DIR/blocks/000042.json written last, when a block is complete: its digest
    DIR/summary.parquet    one row per run, when all blocks are complete

A block counts only if its marker exists and its numbers have the marker's digest, so that a crash
at any moment loses at most the blocks in work. One process writes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns.blocks import REASONS, Block
from remora.campaigns.study import Study
from remora.errors import RemoraError

#: Version of the folder's format.
FORMAT = 1
#: Rows of a chunk, several of which make a shard.
ROWS = 1024


class CampaignFolder:
    """The files of a campaign.

    Attributes:
        path: the folder.
        info: content of campaign.json.
    """

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        """Use an existing folder; see `create` and `existing`."""
        self.path, self.info = path, info
        self._arrays: dict[tuple[str, str], Any] = {}

    @property
    def runs(self) -> int:
        """Number of runs of the study."""
        return int(self.info["runs"])

    @property
    def block(self) -> int:
        """Number of runs of a block."""
        return int(self.info["block"])

    def spans(self) -> list[tuple[int, int]]:
        """Return first and last run (exclusive) of all blocks."""
        return [(a, min(a + self.block, self.runs)) for a in range(0, self.runs, self.block)]

    # Writing ------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, study: Study, block: int, again: bool = False) -> CampaignFolder:
        """Create a folder, or raise if it exists and is not empty.

        Args:
            path: the folder.
            study: the study.
            block: runs of a block.
            again: whether to remove what was left by a creation that was interrupted.
        """
        if again and path.is_dir():
            _remove_unfinished(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RemoraError(
                f"{path}: exists and is not empty; continue it with resume=True (--resume), or "
                "name another folder"
            )
        info: dict[str, Any] = {
            "format": FORMAT,
            "name": study.name,
            "source": str(study.source.resolve()),
            "runs": study.runs,
            "seed": study.seed,
            "block": block,
            "times": study.options["sample"].tolist(),
            "identity": study.identity(),
            "columns": {
                "dispersions": list(study.targets),
                "outputs": list(study.outputs),
                "success": list(study.success),
                "bands": list(study.bands),
            },
            "version": importlib.import_module("remora").__version__,
        }
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "blocks").mkdir()
            _write(path / "study.yaml", study.text)
            group: Any = _zarr().create_group(path / "results.zarr")
            names = [*study.targets, *study.outputs, *study.success]
            for name in (*names, "ok", "outcome", "end", "success"):
                _array(group, name, (study.runs,), block)
            for name in study.bands:
                _array(group, f"bands/{name}", (study.runs, len(info["times"])), block)
            _write(path / "campaign.json", json.dumps(info, indent=1))
        except OSError as error:
            raise RemoraError(f"{path}: cannot be written: {error.strerror or error}") from error
        return cls(path, info)

    def write(self, block: Block) -> None:
        """Write a block, then its marker.

        Raises:
            RemoraError: if it cannot be written, such as on a full disk; nothing is corrupt then.
        """
        stop = block.start + next(iter(block.columns.values())).size
        try:
            for name, values in _named(block).items():
                whole = np.full((self.block, *values.shape[1:]), np.nan)  # a shard is written whole
                whole[: len(values)] = values
                self._array(name, "r+")[block.start : block.start + self.block] = whole
            told = {"start": block.start, "stop": stop, "digest": _digest(_named(block)),
                    "processor": block.processor}  # fmt: skip
            _write(self._marker(block.start), json.dumps(told))
        except OSError as error:
            raise RemoraError(
                f"{self.path}: cannot be written: {error.strerror or error}; what is complete is "
                "kept, and --resume continues"
            ) from error

    def write_summary(self) -> Path:
        """Write summary.parquet, one row per run, and return its path."""
        file = self.path / "summary.parquet"
        handle, other = tempfile.mkstemp(".parquet", ".summary-", self.path)
        os.close(handle)
        try:
            self.frame().to_parquet(other, index=False)
            Path(other).chmod(0o644)
            Path(other).replace(file)
        except OSError as error:
            Path(other).unlink(missing_ok=True)
            raise RemoraError(f"{file}: cannot be written: {error.strerror or error}") from error
        return file

    # Reading ------------------------------------------------------------------------------------

    @classmethod
    def existing(cls, path: Path) -> CampaignFolder:
        """Return the folder of a campaign, or raise."""
        try:
            info = json.loads((path / "campaign.json").read_text(encoding="utf-8"))
            known = info["format"] == FORMAT and (path / "results.zarr").is_dir()
        except (OSError, ValueError, KeyError, TypeError):
            raise RemoraError(f"{path}: is not the folder of a campaign") from None
        if not known:
            raise RemoraError(f"{path}: has another format, or lacks results.zarr")
        return cls(path, info)

    def complete_blocks(self) -> set[int]:
        """Return the first runs of all blocks that are complete and undamaged."""
        found: set[int] = set()
        for start, stop in self.spans():
            try:
                told = json.loads(self._marker(start).read_text(encoding="utf-8"))
                values = {name: self.column(name, start, stop) for name in self.names()}
            except (OSError, ValueError, RuntimeError):
                continue
            if told.get("digest") == _digest(values):
                found.add(start)
        return found

    def names(self) -> list[str]:
        """Return the names of all stored arrays."""
        own = self.info["columns"]
        columns = [*own["dispersions"], *own["outputs"], *own["success"]]
        bands = [f"bands/{name}" for name in own["bands"]]
        return [*columns, "ok", "outcome", "end", "success", *bands]

    def column(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Return numbers of runs, NaN where they are not computed yet."""
        return np.asarray(self._array(name, "r")[start : self.runs if stop is None else stop])

    def _array(self, name: str, mode: str) -> Any:
        """Return an array of the results; opening one takes longer than reading a block of it."""
        if (name, mode) not in self._arrays:
            group: Any = _zarr().open_group(self.path / "results.zarr", mode=mode)
            self._arrays[name, mode] = group[name]
        return self._arrays[name, mode]

    def processors(self) -> dict[int, str]:
        """Return which processor computed each stored block, by its first run."""
        found: dict[int, str] = {}
        for start, _ in self.spans():
            try:
                told = json.loads(self._marker(start).read_text(encoding="utf-8"))
                found[start] = str(told.get("processor", "cpu"))
            except (OSError, ValueError, AttributeError):
                continue
        return found

    def frame(self) -> Any:
        """Return a pandas data frame, one row per computed run."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise RemoraError(
                "this needs pandas: pip install '.[campaign]' in Remora's folder"
            ) from None
        plain = [name for name in self.names() if not name.startswith("bands/")]
        table = {name: self.column(name) for name in plain}
        done = np.isfinite(table["ok"])
        columns: dict[str, Any] = {"run": np.flatnonzero(done)}
        for name, values in table.items():
            own = values[done]
            if name == "outcome":
                columns[name] = np.array(REASONS, dtype=object)[own.astype(int)]
            elif name in (*self.info["columns"]["success"], "ok", "success"):
                columns[name] = own == 1.0
            else:
                columns[name] = own
        by_block = self.processors()
        runs = columns["run"] // self.block * self.block
        columns["processor"] = [by_block.get(int(start), "cpu") for start in runs]
        return pandas.DataFrame(columns)

    def _marker(self, start: int) -> Path:
        return self.path / "blocks" / f"{start // self.block:06d}.json"


def differences(folder: CampaignFolder, study: Study) -> list[str]:
    """Return the parts in which a study differs from that of a folder."""
    own, other = study.identity(), folder.info["identity"]
    return [name for name in own if own[name] != other.get(name)]


def _zarr() -> Any:
    return importlib.import_module("zarr")  # imported late, which keeps `import remora` short


def _array(group: Any, name: str, shape: tuple[int, ...], block: int) -> None:
    """Create an array with one shard per block; rows beyond the last run stay NaN.

    Compression would save a seventh of the bytes and take as long as all the rest of writing.
    """
    rows = next(block // k for k in range(-(-block // ROWS), block + 1) if block % k == 0)
    padded = (-(-shape[0] // block) * block, *shape[1:])
    group.create_array(
        name, shape=padded, dtype="float64", fill_value=float("nan"),
        chunks=(rows, *shape[1:]), shards=(block, *shape[1:]), compressors=None,
    )  # fmt: skip


def _named(block: Block) -> dict[str, Array]:
    return {**block.columns, **{f"bands/{name}": x for name, x in block.bands.items()}}


def _digest(arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + b"\0" + np.ascontiguousarray(arrays[name], float).tobytes())
    return found.hexdigest()


def _remove_unfinished(path: Path) -> None:
    """Remove the files of a creation that did not get as far as campaign.json."""
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".campaign.json-")}
    own = {"blocks", "results.zarr", "study.yaml"}
    hidden = {name for name in names if name.startswith(".study.yaml-")}
    if "campaign.json" in names or names - own - hidden or any((path / "blocks").glob("*")):
        return  # not ours, or complete
    for entry in path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, other = tempfile.mkstemp("", f".{file.name}-", file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(other).chmod(0o644)
        Path(other).replace(file)
    except BaseException:
        Path(other).unlink(missing_ok=True)
        raise
