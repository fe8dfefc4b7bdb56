"""Folder of a campaign: study, results block by block, and a summary in Parquet.

    DIR/campaign.json      version of the format, digests, sizes; written first
    DIR/study.yaml         the file as it was
    DIR/results.zarr       one array per column, one shard per block; bands `(runs, samples)`
    DIR/blocks/000042.json written last, when a block is complete: the digests of its columns
    DIR/summary.parquet    one row per run, when all blocks are complete

A block counts only if its marker exists and its numbers have the marker's digests, so that a crash
at any moment loses at most the blocks in work. The JSON files have checksums. One process writes.
Nothing but a damaged shard is ever removed, and that when its block is written again: campaign.json
is written into an empty folder only, and a folder without it is not ours.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.atomic_files import replacing, write_text
from remora.campaigns.blocks import REASONS, Block
from remora.campaigns.study import Study
from remora.errors import RemoraError
from remora.identity.json_seal import sealed, unsealed
from remora.simulation.recording.export import pandas
from remora.simulation.storage.stored_folder import (
    CAMPAIGN,
    array_digest,
    occupied,
    readable,
    writable,
    zarr,
)

#: What becomes of a campaign whose folder cannot be written any more.
KEPT = "what is complete is kept, and --resume continues"
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
    def create(cls, path: Path, study: Study, block: int) -> CampaignFolder:
        """Create a folder, or raise if it exists and is not empty.

        Args:
            path: the folder.
            study: the study.
            block: runs of a block.
        """
        if path.exists() and (not path.is_dir() or occupied(path)):
            ours = (path / "campaign.json").exists()
            advice = "continue it with resume=True (--resume), or " if ours else ""
            raise RemoraError(
                f"{path}: exists and is not empty; {advice}name "
                f"{'another' if ours else 'a new'} folder"
            )
        info: dict[str, Any] = {
            **CAMPAIGN.heading(),
            "name": study.name,
            "source": str(study.source.resolve()),
            "runs": study.runs,
            "seed": study.seed,
            "block": block,
            "times": study.times.tolist(),
            "identity": study.identity(),
            "columns": {
                "dispersions": list(study.targets),
                "outputs": list(study.outputs),
                "success": list(study.success),
                "bands": list(study.bands),
            },
        }
        write_text(path / "campaign.json", json.dumps(sealed(info), indent=1), parents=True)
        folder = cls(path, info)
        folder.prepare(study)
        return folder

    def prepare(self, study: Study) -> None:
        """Create what is missing of the folder, also after a creation that was interrupted."""
        path = self.path
        with writable(path):
            (path / "blocks").mkdir(exist_ok=True)
            if not (path / "study.yaml").exists():
                write_text(path / "study.yaml", study.text)
            with _openable(path / "results.zarr" / "zarr.json"):
                group: Any = zarr().open_group(path / "results.zarr", mode="a", zarr_format=3)
            for name in self.names():
                if not (path / "results.zarr" / name / "zarr.json").exists():
                    wide = (len(self.info["times"]),) if name.startswith("bands/") else ()
                    _array(group, name, (self.runs, *wide), self.block)

    def write(self, block: Block) -> None:
        """Write a block, then its marker.

        Raises:
            RemoraError: if it cannot be written, such as on a full disk; nothing is corrupt then.
        """
        stop = block.start + next(iter(block.columns.values())).size
        with writable(self.path, KEPT):
            for name, values in _named(block).items():
                whole = np.full((self.block, *values.shape[1:]), np.nan)  # a shard is written whole
                whole[: len(values)] = values
                self._replace(name, block.start, whole)
            digests = {name: array_digest(values) for name, values in _named(block).items()}
            marker = {"start": block.start, "stop": stop, "digests": digests,
                    "processor": block.processor}  # fmt: skip
            write_text(self._marker_path(block.start), json.dumps(sealed(marker)))

    def _replace(self, name: str, start: int, values: Array) -> None:
        """Write a shard; zarr would read the one that is there, which may be damaged."""
        place = self.path / "results.zarr" / name
        with _openable(place):
            array = self._array(name, "r+")
            key = array.metadata.encode_chunk_key((start // self.block,) + (0,) * (array.ndim - 1))
        (place / key).unlink(missing_ok=True)
        array[start : start + self.block] = values

    def write_summary(self) -> Path:
        """Write summary.parquet, one row per run, and return its path."""
        file = self.path / "summary.parquet"
        with replacing(file) as part:
            self.frame().to_parquet(part, index=False)
        return file

    # Reading ------------------------------------------------------------------------------------

    @classmethod
    def existing(cls, path: Path) -> CampaignFolder:
        """Return the folder of a campaign, or raise."""
        file = path / "campaign.json"
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
            version = info[CAMPAIGN.attribute]
        except (OSError, ValueError, KeyError, TypeError):
            raise RemoraError(f"{path}: is not the folder of a campaign") from None
        CAMPAIGN.check_version(path, version, info.get("remora"))
        try:
            return cls(path, unsealed(info))
        except ValueError as error:
            raise RemoraError(f"{file}: is damaged: {error}") from None

    def complete_blocks(self) -> set[int]:
        """Return the first runs of all blocks that are complete and undamaged."""
        found: set[int] = set()
        for start, stop in self.spans():
            try:
                marker = self._marker(start)
                for name in self.names() if marker else ():
                    self._checked(name, start, stop, marker)
            except RemoraError:
                continue
            if marker:
                found.add(start)
        return found

    def names(self) -> list[str]:
        """Return the names of all stored arrays."""
        named = self.info["columns"]
        columns = [*named["dispersions"], *named["outputs"], *named["success"]]
        bands = [f"bands/{name}" for name in named["bands"]]
        return [*columns, "ok", "outcome", "end", "success", *bands]

    def column(self, name: str) -> Array:
        """Return the numbers of all runs, NaN where they are not computed yet.

        Raises:
            RemoraError: if numbers of a complete block are not those that were written.
        """
        wide = (len(self.info["times"]),) if name.startswith("bands/") else ()
        found = np.full((self.runs, *wide), np.nan)
        for start, stop in self.spans():
            marker = self._marker(start)
            if marker:
                found[start:stop] = self._checked(name, start, stop, marker)
        return found

    def _marker(self, start: int) -> dict[str, Any]:
        """Return the content of the marker of a block, nothing if it is not complete yet."""
        file = self._marker_path(start)
        with readable(file):
            try:
                return unsealed(json.loads(file.read_bytes()))
            except FileNotFoundError:
                return {}

    def _checked(self, name: str, start: int, stop: int, marker: Mapping[str, Any]) -> Array:
        """Return the numbers of a complete block after comparing them with its marker."""
        place = self.path / "results.zarr" / name
        with readable(place):
            values = np.asarray(self._array(name, "r")[start:stop])
        if marker["digests"].get(name) != array_digest(values):
            raise RemoraError(
                f"{place}: the numbers of the runs {start} to {stop - 1} have changed since they "
                "were written; the campaign is damaged, and resume computes them again"
            )
        return values

    def _array(self, name: str, mode: str) -> Any:
        """Return an array of the results; opening one takes longer than reading a block of it."""
        if (name, mode) not in self._arrays:
            group: Any = zarr().open_group(self.path / "results.zarr", mode=mode)
            self._arrays[name, mode] = group[name]
        return self._arrays[name, mode]

    def processors(self) -> dict[int, str]:
        """Return which processor computed each stored block, by its first run."""
        found: dict[int, str] = {}
        for start, _ in self.spans():
            marker = self._marker(start)
            if marker:
                found[start] = str(marker["processor"])
        return found

    def frame(self) -> Any:
        """Return a pandas data frame, one row per computed run."""
        plain = [name for name in self.names() if not name.startswith("bands/")]
        table = {name: self.column(name) for name in plain}
        done = np.isfinite(table["ok"])
        columns: dict[str, Any] = {"run": np.flatnonzero(done)}
        for name, column in table.items():
            values = column[done]
            if name == "outcome":
                columns[name] = np.array(REASONS, dtype=object)[values.astype(int)]
            elif name in (*self.info["columns"]["success"], "ok", "success"):
                columns[name] = values == 1.0
            else:
                columns[name] = values
        by_block = self.processors()
        runs = columns["run"] // self.block * self.block
        columns["processor"] = [by_block.get(int(start), "cpu") for start in runs]
        return pandas().DataFrame(columns)

    def _marker_path(self, start: int) -> Path:
        return self.path / "blocks" / f"{start // self.block:06d}.json"


def differences(folder: CampaignFolder, study: Study) -> list[str]:
    """Return the parts in which a study differs from that of a folder."""
    here, other = study.identity(), folder.info["identity"]
    return [name for name in here if here[name] != other.get(name)]


@contextlib.contextmanager
def _openable(place: Path) -> Generator[None]:
    """Convert errors of zarr about damaged metadata to an error that tells what to do."""
    try:
        yield
    except OSError:  # reported as what cannot be written
        raise
    except Exception as error:  # of any type: JSON, names, shapes
        raise RemoraError(
            f"{place}: is damaged ({error}): remove it, and resume computes what it held again"
        ) from error


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
