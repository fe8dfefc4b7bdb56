"""The results of a campaign: `rm.campaign` returns them, `rm.open_campaign` reads them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.campaigns import blocks
from remora.campaigns.statistics import first_order_index, rank_correlation, wilson
from remora.campaigns.storage import CampaignFolder, differences
from remora.campaigns.study import Study, load_study
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.estimation.filter_consistency import Consistency, consistency
from remora.simulation.recording.recording import Recording


class Campaign:
    """The runs of a campaign, read from its folder when they are needed.

    Attributes:
        folder: its files.
    """

    def __init__(self, folder: CampaignFolder) -> None:
        """Read from a folder."""
        self.folder = folder

    @property
    def name(self) -> str:
        """Name of the study."""
        return str(self.folder.info["name"])

    @property
    def runs(self) -> int:
        """Number of runs of the study."""
        return self.folder.runs

    @property
    def dispersions(self) -> list[str]:
        """Names of the dispersed numbers."""
        return list(self.folder.info["columns"]["dispersions"])

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return list(self.folder.info["columns"]["outputs"])

    @property
    def criteria(self) -> list[str]:
        """Names of the success criteria."""
        return list(self.folder.info["columns"]["success"])

    @property
    def bands(self) -> list[str]:
        """Names of the quantities that are stored over time."""
        return list(self.folder.info["columns"]["bands"])

    @property
    def t(self) -> Array:
        """Times of the samples of bands, s."""
        return np.array(self.folder.info["times"])

    @property
    def processors(self) -> dict[str, int]:
        """How many runs each kind of processor computed: `cpu`, or the name of a GPU.

        The numbers of a run have the same bits on processors of the same kind.
        """
        found: dict[str, int] = {}
        stops = dict(self.folder.spans())
        for start, name in self.folder.processors().items():
            found[name] = found.get(name, 0) + stops[start] - start
        return found

    def __getitem__(self, name: str) -> Array:
        """Return a column, `(runs,)`, or a band, `(runs, samples)`; NaN where not computed yet."""
        if name in self.bands:
            return self.folder.column(f"bands/{name}")
        if name not in self.folder.names():
            raise UnknownName("column", name, [*self.folder.names(), *self.bands])
        return self.folder.column(name)

    def __len__(self) -> int:
        """Return the number of computed runs."""
        return int(np.count_nonzero(np.isfinite(self["ok"])))

    def consistency(self, name: str) -> Consistency:
        """Return whether a band is that of a consistent filter: NIS or NEES with its `freedoms`.

        Times at which it is zero in all runs are left out: nothing was measured there.

        Args:
            name: of a band with `freedoms` in the study.
        """
        own = self.study().bands
        known = {key: band.freedoms for key, band in own.items() if band.freedoms is not None}
        if name not in known:
            raise UnknownName("band with freedoms", name, known)
        values, seen = self._measured(name)
        return consistency(values[:, seen], known[name])

    def consistency_times(self, name: str) -> Array:
        """Return the times of the means of `consistency`, s."""
        return self.t[self._measured(name)[1]]

    def _measured(self, name: str) -> tuple[Array, Array]:
        """Return a band of the runs that reached the end, and at which samples it is not zero."""
        values = self[name]
        values = values[np.all(np.isfinite(values), axis=1)]
        if not len(values):
            raise RemoraError(f"band {name!r}: no run has reached the end")
        return values, np.any(values != 0.0, axis=0)

    def to_pandas(self) -> Any:
        """Return a data frame with one row per computed run."""
        return self.folder.frame()

    def success_rate(self, criterion: str | None = None) -> tuple[float, float, float]:
        """Return the success rate and its 95 % interval (Wilson).

        Args:
            criterion: of one criterion; default: of all together.
        """
        if criterion is not None and criterion not in self.criteria:
            raise UnknownName("success criterion", criterion, self.criteria)
        held = self[criterion or "success"]
        held = held[np.isfinite(held)]
        if not held.size:
            return math.nan, 0.0, 1.0
        count = int(held.sum())
        return count / held.size, *wilson(count, held.size)

    def drivers(self, output: str) -> dict[str, tuple[float, float]]:
        """Return which dispersions drive an output or the success, strongest first.

        Args:
            output: name of an output or of a criterion, or `success`.

        Returns:
            By dispersion: rank correlation (Spearman), and first-order Sobol index.
        """
        known = [*self.outputs, *self.criteria, "success"]
        if output not in known:
            raise UnknownName("output", output, known)
        y = self[output]
        found = {d: (rank_correlation(self[d], y), first_order_index(self[d], y))
                 for d in self.dispersions}  # fmt: skip

        def strength(name: str) -> float:
            return max((abs(x) for x in found[name] if not math.isnan(x)), default=0.0)

        return {name: found[name] for name in sorted(found, key=strength, reverse=True)}

    def study(self) -> Study:
        """Load the study again, from where it was; refuse one that has changed.

        Raises:
            RemoraError: if the file is not there any more, or differs.
        """
        source = Path(self.folder.info["source"])
        if not source.exists():
            raise RemoraError(f"{self.folder.path}: its study {source} is not there any more")
        study = load_study(source, self.runs)
        changed = differences(self.folder, study)
        if changed:
            raise RemoraError(f"{source}: has changed since the campaign: {', '.join(changed)}")
        return study

    def replay(self, run: int, sample: float | None = None) -> Recording:
        """Simulate one run again, as an ordinary recording.

        Args:
            run: index of the run.
            sample: s between samples; default: as in the scenario.
        """
        if not isinstance(run, int) or not 0 <= run < self.runs:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"run must be a whole number from 0 to {self.runs - 1}, not {run!r}")
        return blocks.replay(self.study(), run, sample)

    def __repr__(self) -> str:
        """Return a summary."""
        done, (rate, low, high) = len(self), self.success_rate()
        failed = int(np.count_nonzero(self["ok"] == 0.0))
        text = f"Campaign {self.name!r}: {done:,} of {self.runs:,} runs"
        if self.criteria and done:
            text += f", success {100 * rate:.4g} % ({100 * low:.4g} to {100 * high:.4g} %)"
        return text + (f", {failed:,} failed" if failed else "")


def open_campaign(path: str | os.PathLike[str]) -> Campaign:
    """Open the folder of a campaign, also while it is being computed.

    Args:
        path: the folder.

    Raises:
        RemoraError: if it is no folder of a campaign.
    """
    return Campaign(CampaignFolder.existing(Path(path)))
