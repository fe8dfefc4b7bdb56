"""`rm.campaign`: thousands to millions of dispersed runs, in blocks, on one or many machines."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import math
import os
import pickle
import queue
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from remora.campaigns.blocks import CHOICES, Block, block_size, run_block
from remora.campaigns.result import Campaign
from remora.campaigns.storage import CampaignFolder, differences
from remora.campaigns.study import Study, load_study
from remora.errors import RemoraError, UnknownName
from remora.simulation.engine.progress import campaign_bar
from remora.simulation.inputs.move_starts import with_started_moves
from remora.simulation.inputs.start_limits import warn_of_starts_beyond_limits

#: Blocks in the hands of the scheduler, per worker.
BLOCKS_PER_WORKER = 3
#: How often a block is given to the scheduler again after several workers died of it.
MOST_DEATHS = 20
#: How long the number of workers is taken for granted, s.
COUNT_SECONDS = 2.0
#: Memory of a worker; a worker that takes more is started anew.
MEMORY = "2 GiB"
#: Number of workers that a scheduler is expected to have, for the size of blocks.
MANY = 64
#: How long to wait for the first or another worker, s.
PATIENCE = 60.0
#: Packages of the extra `campaign` that every campaign needs.
PACKAGES = ("scipy", "pandas", "pyarrow")
LOST = "the scheduler is gone; what is complete is kept, and resume continues"


def campaign(
    study: Study | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    runs: int | None = None,
    resume: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    block: int | None = None,
    target: str = "auto",
    progress: Any = None,
) -> Campaign:
    """Simulate all runs of a study and store their results in a folder.

    Run i depends on the study's seed and on i alone, wherever and in whichever block it is
    computed. Results are written block by block; after a crash, `resume` computes what is missing.

    Args:
        study: a study, its file, or the name of a bundled one.
        out: folder of the results.
        runs: number of runs, overrides the file.
        resume: continue the campaign in `out`.
        workers: worker processes on this machine; 0: none, all runs in this process on all cores;
            default: one per core.
        scheduler: address of a running dask scheduler, `tcp://host:8786`, instead of own workers.
        block: runs of a block; default: as many as fit into 320 MiB with all their samples, fewer
            if workers would get less than five blocks each.
        target: `cpu`, `cuda`, or `auto`: each worker uses the GPU of its machine if there is one.
            Bits differ between them, so the results say which computed a run.
        progress: True for a progress bar, False for none; None: a bar on a terminal.

    Returns:
        The results; see `rm.open_campaign`.

    Raises:
        RemoraError: if the folder holds another campaign, or the study differs from its own.

    Example:
        >>> study = rm.load_study("reach_payload", runs=16)
        >>> results = rm.campaign(study, "reach", workers=0, progress=False)
        >>> results.runs
        16
    """
    if not isinstance(study, Study):
        study = load_study(study, runs)
    elif runs is not None and runs != study.runs:
        raise RemoraError("runs cannot be changed in a loaded study: load it with runs=")
    _check_options(workers, block, target)
    _check_starts(study)
    count = MANY if scheduler else workers if workers is not None else os.cpu_count() or 1
    folder = _folder(Path(out), study, resume, block_size(study, block, count), block)
    done = folder.complete_blocks() if resume else set[int]()
    missing = [span for span in folder.spans() if span[0] not in done]
    before = sum(stop - start for start, stop in folder.spans() if start in done)
    with campaign_bar(folder.runs, before, progress) as advance:

        def keep(block: Block) -> None:
            folder.write(block)
            ok = block.columns["ok"]
            advance(ok.size, int(ok.size - np.count_nonzero(ok)))

        if workers == 0 and scheduler is None:
            for start, stop in missing:
                keep(run_block(study, start, stop, threads=0, target=target))
        elif missing:
            with _client(workers, scheduler) as client:
                _distribute(client, study, missing, target, keep)
    folder.write_summary()
    return Campaign(folder)


def _check_options(workers: Any, block: Any, target: str) -> None:
    """Raise before anything is computed, also if a package of the extra `campaign` is missing."""
    for name, value, least in (("workers", workers, 0), ("block", block, 1)):
        if value is not None and (not isinstance(value, int) or value < least):
            raise RemoraError(f"{name} must be a whole number, {least} or more, not {value!r}")
    if target not in CHOICES:
        raise UnknownName("target", target, CHOICES)
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise RemoraError(
            f"campaigns need {', '.join(missing)}: install the extra `campaign`, "
            "python3 -m pip install '.[campaign]' in Remora's folder"
        )


def _check_starts(study: Study) -> None:
    """Raise if a move of the scenario starts where runs differ; warn of starts beyond limits."""
    scenario = study.scenario
    q = study.inputs(0, min(study.runs, 2))[1].q
    try:
        with_started_moves(scenario.robot, scenario.phases, lambda: np.asarray(q), 0.0, False)
    except RemoraError as error:
        raise RemoraError(f"scenario {scenario.name!r}: {error}") from error
    warn_of_starts_beyond_limits(scenario.robot, np.asarray(q), stacklevel=3)


def _folder(path: Path, study: Study, resume: bool, size: int, block: int | None) -> CampaignFolder:
    if not resume or not (path / "campaign.json").exists():
        return CampaignFolder.create(path, study, size)
    folder = CampaignFolder.existing(path)
    changed = differences(folder, study)
    if changed:
        raise RemoraError(
            f"{path}: holds another study; {', '.join(changed)} differ"
            f"{'s' if len(changed) == 1 else ''}. Use another folder"
        )
    if block is not None and block != folder.block:
        raise RemoraError(f"{path}: has blocks of {folder.block} runs, not {block}")
    folder.prepare(study)
    return folder


# dask --------------------------------------------------------------------------------------------


def _dask(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise RemoraError(
            "workers need dask.distributed: pip install '.[campaign]' in Remora's folder; "
            "or workers=0 for this process alone"
        ) from None


@contextmanager
def _client(workers: int | None, scheduler: str | None) -> Generator[Any]:
    """Yield a client of own workers, or of a running scheduler."""
    distributed = _dask("distributed")
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise RemoraError(f"no dask scheduler answers at {scheduler!r}: {error}") from None
        with client:
            yield client
        return
    count = os.cpu_count() or 1 if workers is None else workers
    # Workers are started as commands, so a script needs no `if __name__ == "__main__"`. The
    # scheduler lives in this process, and workers end soon after it.
    address = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    own = {"nthreads": 1, "memory_limit": MEMORY, "death_timeout": "60 s", "host": "127.0.0.1"}
    worker = {"cls": _dask("distributed.deploy.subprocess").SubprocessWorker,
              "options": {"worker_kwargs": {**own, "silence_logs": logging.CRITICAL}}}  # fmt: skip
    cluster = distributed.SpecCluster(
        scheduler={"cls": distributed.Scheduler, "options": address},
        workers=dict.fromkeys(range(count), worker),
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def _distribute(
    client: Any,
    study: Study,
    missing: list[tuple[int, int]],
    target: str,
    keep: Callable[[Block], None],
) -> None:
    """Compute blocks on the workers of a client, a few ahead of what is written."""
    distributed = _dask("distributed")
    packed = _dask("cloudpickle").dumps(study)
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise RemoraError(f"the scheduler has no workers after {PATIENCE:g} s") from None
    # The study is a task of its own: blocks refer to it by name, workers fetch it once, and it is
    # computed again where its workers died.
    shared = client.submit(as_it_is, packed, key=f"study-{hashlib.sha256(packed).hexdigest()}")
    watch = _Watch(client)
    waiting, spans = list(reversed(missing)), dict[Any, tuple[int, int]]()
    deaths: Counter[tuple[int, int]] = Counter()
    try:
        while waiting or spans:
            while waiting and len(spans) < BLOCKS_PER_WORKER * watch.workers():
                start, stop = waiting.pop()
                future = client.submit(compute, shared, start, stop, target, pure=False)
                spans[future] = (start, stop)
                future.add_done_callback(watch.done.put)
            future = watch.next()
            span = spans.pop(future)
            try:
                found = future.result()
            except distributed.KilledWorker:
                deaths[span] += 1
                if deaths[span] > MOST_DEATHS:
                    raise RemoraError(
                        f"workers died again and again at the runs {span[0]} to {span[1] - 1}; "
                        "smaller blocks need less memory (block=)"
                    ) from None
                waiting.append(span)
                continue
            except distributed.CancelledError:
                raise RemoraError(LOST) from None
            keep(found)
    except OSError as error:
        raise RemoraError(f"{LOST} ({error})") from None


class _Watch:
    """Waits for futures, and notices when workers or the scheduler are gone.

    Attributes:
        done: futures that are done, put there by their callbacks.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._count, self._asked, self._seen = 1, -math.inf, time.monotonic()

    def workers(self) -> int:
        """Return the number of workers, at least 1."""
        now = time.monotonic()
        if now - self._asked > COUNT_SECONDS:
            if self._client.status not in ("running", "connecting"):
                raise RemoraError(LOST)
            try:
                count = len(self._client.nthreads())
            except (OSError, TimeoutError):
                raise RemoraError(LOST) from None
            self._asked = now
            self._count = count
            if count:
                self._seen = now
            elif now - self._seen > PATIENCE:
                raise RemoraError(
                    f"there have been no workers for {PATIENCE:g} s; resume continues"
                )
        return max(1, self._count)

    def next(self) -> Any:
        """Return the next future that is done."""
        while True:
            try:
                return self.done.get(timeout=0.5)
            except queue.Empty:
                self.workers()


_STUDIES: dict[bytes, Study] = {}


def as_it_is(packed: bytes) -> bytes:
    """Return the study, packed, as the result of a task."""
    return packed


def compute(packed: bytes, start: int, stop: int, target: str) -> Block:
    """Compute a block on a worker, which keeps the study between blocks."""
    if packed not in _STUDIES:
        _STUDIES.clear()
        _STUDIES[packed] = pickle.loads(packed)
    return run_block(_STUDIES[packed], start, stop, threads=1, target=target)
