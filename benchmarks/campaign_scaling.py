"""Scaling of campaigns to 1,000 workers, on paper from measured inputs.

    python benchmarks/campaign_scaling.py [--tasks 400] [--json FILE]

Measured in seconds of processor time, which other programs on the machine disturb little: a run on
a worker; a block of the bundled study written by the process that started the campaign; a task that
does nothing, through dask's scheduler and back with the bytes of a block. From these follows what a
cluster asks of each part, as a fraction of one core or in bytes per second, if no part waits.
"""

from __future__ import annotations

import argparse
import json
import pickle
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

import remora as rm
from remora.campaigns.blocks import run_block
from remora.campaigns.campaign import _client, as_it_is
from remora.campaigns.storage import CampaignFolder

WORKERS = (1, 10, 100, 1000)


def blocks(size: int, repeats: int) -> dict[str, float]:
    """Return times, bytes and files of a block of this many runs."""
    study = rm.load_study("reach_payload", size * (repeats + 1))
    run_block(study, 0, 64)  # compiles
    start = time.process_time()
    block = run_block(study, 0, size)
    computed = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        own = CampaignFolder.create(Path(folder) / "out", study, size)
        own.write(block)  # opens the arrays
        before = {file for file in Path(folder).rglob("*") if file.is_file()}
        start = time.process_time()
        for k in range(repeats):
            own.write(block._replace(start=size * (k + 1)))
        written = (time.process_time() - start) / repeats
        files = [f for f in Path(folder).rglob("*") if f.is_file() and f not in before]
        stored = sum(file.stat().st_size for file in files) / repeats
    return {
        "runs": size, "s of a worker": computed, "s of the writer": written,
        "bytes sent": len(pickle.dumps(block)), "bytes stored": stored,
        "files": len(files) / repeats, "bytes of the study": len(cloudpickle.dumps(study)),
    }  # fmt: skip


def tasks(count: int, size: int) -> dict[str, float]:
    """Return the processor time of scheduler and client for one task that returns so many bytes."""
    with _client(2, None) as client:
        client.wait_for_workers(2)
        found: dict[str, float] = {}
        for name, data in (("empty", b""), ("block", np.random.default_rng(0).bytes(size))):
            shared = client.submit(as_it_is, data, pure=False)
            client.gather([client.submit(as_it_is, shared, pure=False) for _ in range(20)])
            start = time.process_time()
            futures = [client.submit(as_it_is, shared, pure=False) for _ in range(count)]
            for future in futures:
                future.result()
            found[name] = (time.process_time() - start) / count
    return found


def table(block: dict[str, float], task: dict[str, float]) -> list[dict[str, float]]:
    """Return what so many workers ask of scheduler, client and disk."""
    rows: list[dict[str, float]] = []
    for workers in WORKERS:
        rate = workers / block["s of a worker"]  # blocks per second
        rows.append({
            "workers": workers, "runs per s": rate * block["runs"], "blocks per s": rate,
            "scheduler, cores": rate * task["empty"],
            "receiving and writing, cores": rate * (block["s of the writer"] + task["block"]
                                                    - task["empty"]),
            "MB/s received": 1e-6 * rate * block["bytes sent"],
            "MB/s stored": 1e-6 * rate * block["bytes stored"],
            "files per s": rate * block["files"],
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "blocks": []}
    for size in (4096, 16384):
        block = blocks(size, 3)
        task = tasks(given.tasks, int(block["bytes sent"]))
        rows = table(block, task)
        part = ("scheduler, cores", "receiving and writing, cores")
        most = {p: WORKERS[-1] / rows[-1][p] for p in part}  # workers that fill one core
        found["blocks"].append({**block, "task s": task, "table": rows, "workers at most": most})
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
