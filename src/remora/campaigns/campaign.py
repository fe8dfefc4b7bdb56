"""`rm.campaign`: thousands to millions of dispersed runs, in blocks, on one or many machines."""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from remora.campaigns.blocks import Block, block_size, run_block
from remora.campaigns.result import Campaign
from remora.campaigns.storage import CampaignFolder, differences
from remora.campaigns.study import Study, load_study
from remora.errors import RemoraError
from remora.simulation.engine.progress import campaign_bar

#: Blocks in the hands of the scheduler, per worker.
AHEAD = 3
#: How often a block is computed anew after its worker died.
MOST_DEATHS = 100
#: Memory of a worker; a worker that takes more is started anew.
MEMORY = "2 GiB"
#: How long to wait for the first or another worker, s.
PATIENCE = 60.0
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
    target: str = "cpu",
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
        block: runs of a block; default: as many as fit into 256 MiB with all their samples.
        target: `cpu` or `cuda`, on the machines of the workers.
        progress: True for a progress bar, False for none; None: a bar on a terminal.

    Returns:
        The results; see `rm.open_campaign`.

    Raises:
        RemoraError: if the folder holds another campaign, or the study differs from its own.
    """
    if not isinstance(study, Study):
        study = load_study(study, runs)
    elif runs is not None and runs != study.runs:
        raise RemoraError("runs cannot be changed in a loaded study: load it with runs=")
    for name, value in (("workers", workers), ("block", block)):
        least = 0 if name == "workers" else 1
        if value is not None and (not isinstance(value, int) or value < least):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RemoraError(f"{name} must be a whole number, {least} or more, not {value!r}")
    folder = _folder(Path(out), study, resume, block)
    done = folder.complete_blocks() if resume else set[int]()
    missing = [span for span in folder.spans() if span[0] not in done]
    before = sum(stop - start for start, stop in folder.spans() if start in done)
    with campaign_bar(folder.runs, before, progress) as advance:

        def keep(found: Block) -> None:
            folder.write(found)
            ok = found.columns["ok"]
            advance(ok.size, int(ok.size - np.count_nonzero(ok)))

        if missing:
            if workers == 0 and scheduler is None:
                for start, stop in missing:
                    keep(run_block(study, start, stop, threads=0, target=target))
            else:
                with _client(workers, scheduler) as client:
                    _distribute(client, study, missing, target, keep)
    folder.write_summary()
    return Campaign(folder)


def _folder(path: Path, study: Study, resume: bool, block: int | None) -> CampaignFolder:
    if not resume or not (path / "campaign.json").exists():
        return CampaignFolder.create(path, study, block_size(study, block))
    folder = CampaignFolder.existing(path)
    changed = differences(folder, study)
    if changed:
        raise RemoraError(
            f"{path}: holds another study; {', '.join(changed)} differ"
            f"{'s' if len(changed) == 1 else ''}. Use another folder"
        )
    if block is not None and block != folder.block:
        raise RemoraError(f"{path}: has blocks of {folder.block} runs, not {block}")
    return folder


# dask --------------------------------------------------------------------------------------------


def _dask(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise RemoraError(
            "workers need dask.distributed: pip install 'remora[campaign]'; or workers=0 for this "
            "process alone"
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
    waiting, spans, deaths = list(reversed(missing)), dict[Any, tuple[int, int]](), 0
    while waiting or spans:
        ahead = AHEAD * max(1, len(client.nthreads()))
        while waiting and len(spans) < ahead:
            start, stop = waiting.pop()
            future = client.submit(compute, packed, start, stop, target, pure=False)
            spans[future] = (start, stop)
        for future in _finished(client, spans):
            span = spans.pop(future)
            try:
                keep(future.result())
            except distributed.KilledWorker:
                deaths += 1
                if deaths > MOST_DEATHS:
                    raise RemoraError(
                        f"workers died {deaths} times, last at the runs {span[0]} to "
                        f"{span[1] - 1}; smaller blocks need less memory (block=)"
                    ) from None
                waiting.append(span)
            except distributed.CancelledError:
                raise RemoraError(LOST) from None


def _finished(client: Any, spans: dict[Any, tuple[int, int]]) -> list[Any]:
    """Wait for futures that are done and return them; raise if workers or scheduler are gone."""
    alone = time.monotonic()
    while True:
        if client.status not in ("running", "connecting"):
            raise RemoraError(LOST)
        done = [future for future in spans if future.done()]
        if done:
            return done
        if time.monotonic() - alone > 1.0:  # asking the scheduler takes longer than looking here
            try:
                count = len(client.nthreads())
            except (OSError, TimeoutError):
                raise RemoraError(LOST) from None
            if count:
                alone = time.monotonic()
            elif time.monotonic() - alone > PATIENCE:
                raise RemoraError(
                    f"there have been no workers for {PATIENCE:g} s; resume continues"
                )
        time.sleep(0.005)


_STUDIES: dict[bytes, Study] = {}


def compute(packed: bytes, start: int, stop: int, target: str) -> Block:
    """Compute a block on a worker, which keeps the study between blocks."""
    if packed not in _STUDIES:
        _STUDIES.clear()
        _STUDIES[packed] = pickle.loads(packed)
    return run_block(_STUDIES[packed], start, stop, threads=1, target=target)
