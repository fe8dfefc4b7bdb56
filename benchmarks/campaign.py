"""Benchmark of campaigns: runs per second on a local cluster beside one batch call.

    python benchmarks/campaign.py [--runs 20000] [--reference 20000] [--rounds 3] [--json FILE]
    python benchmarks/campaign.py --runs 1000000 --reference 100000 --rounds 1 --json FILE

The bundled study `reach_payload`: the servicer (13 degrees of freedom), 20 s in closed loop. The
batch is one call of rm.simulate_batch with the same inputs and samples in memory, without dask,
outputs and storage, on all cores. Both take turns. The time of a campaign counts from the call to
its end, with the start of its workers, which import and load kernels; `steady` leaves that start
out: runs per second between the first and the last block that was written. The memory is the
largest resident set of a worker. With --gpu, blocks are computed in this process on the GPU at
hand, which needs no dask, and compared with the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import remora as rm
from remora.campaigns.blocks import run_block


def batch_seconds(study: rm.Study, threads: int = 0) -> float:
    """Return the time of one batch call, s."""
    _, inputs = study.inputs(0, study.runs)
    start = time.perf_counter()
    rm.simulate_batch(
        study.system, inputs.q, inputs.v, study.scenario.phases, integrator=study.integrator,
        physics=study.physics,
        record=rm.Record(study.times, signals=[], failures="keep", progress=False),
        runs=rm.Runs(
            parameters=inputs.parameters, seed=study.seed, index=np.arange(study.runs)
        ),
        target=rm.Target(dtype=study.dtype, threads=threads),
    )  # fmt: skip
    return time.perf_counter() - start


class Memory:
    """The largest resident set of the worker processes of this process, bytes."""

    def __init__(self) -> None:
        self.largest, self._over = 0, threading.Event()

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        while not self._over.wait(0.25):
            for child in psutil.Process().children(recursive=True):
                try:
                    self.largest = max(self.largest, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue


def campaign_seconds(study: rm.Study, workers: int | None) -> dict[str, float]:
    """Return times and memory of a campaign."""
    with tempfile.TemporaryDirectory() as folder, Memory() as memory:
        out = Path(folder) / "out"
        start = time.perf_counter()
        made = rm.campaign(study, out, workers=workers, target="cpu", progress=False)
        whole = time.perf_counter() - start
        written = sorted(file.stat().st_mtime for file in (out / "blocks").iterdir())
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        files = sum(1 for file in out.rglob("*") if file.is_file())
        assert len(made) == study.runs
    runs = study.runs - made.folder.block
    steady = runs / (written[-1] - written[0]) if len(written) > 2 else float("nan")
    return {"s": whole, "runs per s": study.runs / whole, "steady runs per s": steady,
            "block": made.folder.block, "worker MiB": memory.largest / 2**20,
            "MB": size / 1e6, "files": files}  # fmt: skip


def on_cpu(given: argparse.Namespace) -> dict[str, Any]:
    """Return rates of the batch and the campaign, measured in turns."""
    study = rm.load_study("reach_payload", given.runs)
    reference = rm.load_study("reach_payload", given.reference)
    batch_seconds(rm.load_study("reach_payload", 256))  # compiles
    batches: list[float] = []
    campaigns: list[dict[str, float]] = []
    for _ in range(given.rounds):
        batches.append(given.reference / batch_seconds(reference))
        campaigns.append(campaign_seconds(study, given.workers))
        batches.append(given.reference / batch_seconds(reference))
        print(f"batch {batches[-2]:.0f} and {batches[-1]:.0f} runs/s, campaign {campaigns[-1]}",
              flush=True)  # fmt: skip
    batch = float(np.median(batches))
    whole, steady = (float(np.median([c[k] for c in campaigns]))
                     for k in ("runs per s", "steady runs per s"))  # fmt: skip
    return {
        "runs": given.runs, "reference runs": given.reference, "workers": given.workers,
        "cores": os.cpu_count(), "batch runs per s": batch, "campaign runs per s": whole,
        "steady runs per s": steady, "campaign / batch": whole / batch,
        "steady / batch": steady / batch,
        "worker MiB": max(c["worker MiB"] for c in campaigns), "rounds": campaigns,
    }  # fmt: skip


def on_gpu(given: argparse.Namespace) -> dict[str, Any]:
    """Return the rate of blocks on the GPU, and how far they are from the processor's."""
    study = rm.load_study("reach_payload", given.runs)
    few = rm.load_study("reach_payload", 64)
    own, other = (run_block(few, 0, 64, 0, target) for target in ("cpu", "cuda"))
    off: dict[str, float] = {}
    for name, x in {**own.columns, **own.bands}.items():
        y = {**other.columns, **other.bands}[name]
        assert np.array_equal(np.isnan(x), np.isnan(y)), name
        off[name] = float(np.nanmax(np.abs(x - y)) / max(np.nanmax(np.abs(x)), 1e-300))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        made = rm.campaign(study, Path(folder) / "a", workers=0, target="auto", progress=False,
                           block=given.block)  # fmt: skip
        seconds = time.perf_counter() - start
        assert made.processors == {other.processor: study.runs}, made.processors
        again = rm.campaign(study, Path(folder) / "b", workers=0, target="cuda", progress=False,
                            block=given.block)  # fmt: skip
        same = all(np.array_equal(made[n], again[n], equal_nan=True) for n in made.outputs)
        replayed = (
            made.replay(0).joint("elbow_pitch").q[-1] + np.radians(70) - made["elbow error"][0]
        )
    return {
        "gpu": other.processor, "runs": given.runs, "s": seconds,
        "runs per s": given.runs / seconds,
        "largest relative difference from cpu": max(off.values()), "same bits again": same,
        "replay on the processor off by": float(replayed), "block": made.folder.block,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--reference", type=int, default=20_000, help="runs of the batch call")
    parser.add_argument("--workers", type=int, help="default: one per core")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--block", type=int, help="with --gpu: runs of a block")
    parser.add_argument("--gpu", action="store_true", help="measure on the GPU at hand instead")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    found |= on_gpu(given) if given.gpu else on_cpu(given)
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
