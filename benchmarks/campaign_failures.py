"""Failures of campaigns: workers, scheduler and client are killed, the disk is full.

    python benchmarks/campaign_failures.py [--kills 24] [--runs 1600] [--only kills|disk] [--json F]

A small study is computed undisturbed in one process. Then a dask scheduler and workers compute it
while workers are killed with SIGKILL again and again, the scheduler once, and the client once; each
time the client is started again with `resume`. At the end every run must be present exactly once,
with the bits of the undisturbed study. Then a study is written to a file system that is too small
(a tmpfs of 600 kB, which needs root), which is then made larger; without root, files are limited by
RLIMIT_FSIZE.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

import remora as rm

SCENARIO = """
scenario: 1
robot: vt18_satellite
seed: 3
start: {{speeds: {{J1: 0.1}}}}
components:
  - {{type: rate_gyro, name: gyro, frame: body_1, sample_time: 0.1, noise: 1.0e-4}}
phases:
  - name: spin
    duration: {duration}
    torque: {{J2: {{pulse: {{start: 0.5, stop: 1, value: 0.2}}}}}}
integrator: {{name: rk4, step: 0.01}}
output: {{sample: {sample}}}
"""
STUDY = """
campaign: 1
scenario: small.yaml
runs: {runs}
seed: 9
disperse:
  body_2.mass: {{uniform: {{low: 5, high: 15}}}}
  gyro.noise: {{log_normal: {{sigma: 0.5}}}}
  start.speeds.J1: {{normal: {{std: 0.02}}}}
outputs:
  angle: {{joint: J1, unit: deg}}
  rate: {{signal: gyro.rate, element: 1, take: mean}}
bands:
  elbow: {{joint: J2, unit: deg}}
success:
  positive: {{output: rate, above: 0}}
"""
CLIENT = """
import sys, remora as rm
try:
    rm.campaign(sys.argv[1], sys.argv[2], block=int(sys.argv[3]), resume=True, workers=0 if
                len(sys.argv) < 5 else None, scheduler=sys.argv[4] if len(sys.argv) > 4 else None,
                target="cpu", progress=False)
except rm.RemoraError as error:
    sys.exit(f"stopped: {error}")
"""


def study_in(folder: Path, runs: int, duration: float, sample: float) -> Path:
    """Write a study and return its file."""
    text = SCENARIO.format(duration=duration, sample=sample)
    (folder / "small.yaml").write_text(text, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY.format(runs=runs), encoding="utf-8")
    return folder / "study.yaml"


def check_equal(one: rm.Campaign, other: rm.Campaign) -> None:
    """Raise unless both campaigns have every run exactly once, with the same bits."""
    for made in (one, other):
        table = made.to_pandas()
        assert table["run"].tolist() == list(range(made.runs)), "a run is missing or twice there"
        assert len(markers(made.folder.path)) == len(made.folder.spans())
        assert made.folder.complete_blocks() == {start for start, _ in made.folder.spans()}
    for name in [*one.folder.names()]:
        a, b = one.folder.column(name), other.folder.column(name)
        assert a.tobytes() == b.tobytes(), f"{name} differs"


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, int, int]]:
    """Start a scheduler and workers; yield the address and the two process ids."""
    file = folder / f"scheduler-{time.monotonic_ns()}.json"
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options |= {"start_new_session": True, "cwd": folder}
    dask = [sys.executable, "-m", "dask"]
    own = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
           "--scheduler-file", str(file)]  # fmt: skip
    started = [subprocess.Popen(own, **options)]
    try:
        until = time.monotonic() + 60.0
        while not file.exists() or not file.read_text():
            assert time.monotonic() < until, "the scheduler does not start"
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        own = [*dask, "worker", address, "--nworkers", str(workers), "--nthreads", "1",
               "--no-dashboard", "--memory-limit", "2GiB"]  # fmt: skip
        started.append(subprocess.Popen(own, **options))
        yield address, started[0].pid, started[1].pid
    finally:
        for process in reversed(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def computing(nanny: int) -> list[int]:
    """Return the worker processes, which the nannies of this process have started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            child.pid
            for child in psutil.Process(nanny).children()
            if any("spawn_main" in word for word in child.cmdline())
        ]
    return []


def disturbed(
    study: Path, out: Path, block: int, kills: int, workers: int, age: float
) -> dict[str, Any]:
    """Compute a study under fire and return what was killed."""
    rng = random.Random(1)
    said: list[str] = []
    counts = {"workers killed": 0, "scheduler killed": 0, "client killed": 0, "clients": 0}
    log = out.parent / "client.log"
    complete = False
    while not complete:
        with cluster(out.parent, workers) as (address, scheduler, nanny):
            while not complete:
                counts["clients"] += 1
                assert counts["clients"] < 12, f"the study does not get done: {said}"
                command = [sys.executable, "-c", CLIENT, str(study), str(out), str(block), address]
                with log.open("w") as stream:
                    client = subprocess.Popen(command, stderr=stream, start_new_session=True)
                try:
                    _under_fire(client, scheduler, nanny, out, kills, counts, rng, age)
                finally:
                    client.kill()
                    client.wait()
                told = log.read_text()
                complete = client.returncode == 0
                if client.returncode not in (0, -signal.SIGKILL):
                    assert "stopped: " in told, told
                    said.append(told[told.index("stopped: ") :].strip().splitlines()[0])
                    break  # the scheduler is gone: start another
    return {**counts, "client said": said}


def _under_fire(
    client: subprocess.Popen[bytes], scheduler: int, nanny: int, out: Path, kills: int,
    counts: dict[str, int], rng: random.Random, age: float,
) -> None:  # fmt: skip
    """Kill workers while the client runs; once the scheduler, once the client."""
    seen: dict[int, float] = {}
    begun = len(markers(out))
    while client.poll() is None:
        time.sleep(0.05)
        now = time.monotonic()
        alive = computing(nanny)
        for p in alive:  # some are killed while they start, most while they compute
            seen.setdefault(p, now + rng.uniform(0.5, age))
        ready = [p for p in alive if now > seen[p]]
        if len(markers(out)) == begun:
            continue  # let it compute something, so that there is something to lose
        done = counts["workers killed"]
        if done >= kills // 3 and not counts["scheduler killed"]:
            os.kill(scheduler, signal.SIGKILL)
            counts["scheduler killed"] += 1
            client.wait(120)
        elif done >= 2 * kills // 3 and not counts["client killed"]:
            os.kill(client.pid, signal.SIGKILL)
            counts["client killed"] += 1
            client.wait()
        elif done < kills and ready:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(ready), signal.SIGKILL)
                counts["workers killed"] += 1


def markers(out: Path) -> list[Path]:
    return list((out / "blocks").glob("[0-9]*.json"))


def kills(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the result of a study under fire, which equals the undisturbed one.

    A study that was computed before all were killed is too small for the machine: one with twice
    the runs is tried.
    """
    for size in (1, 2, 4, 8):
        place = folder / f"{size}"
        place.mkdir()
        found = _attempt(given, place, size * given.runs)
        if found["workers killed"] >= given.kills and found["client killed"]:
            break
    assert found["workers killed"] >= given.kills, f"only {found} were killed: more runs"
    assert found["scheduler killed"] == found["client killed"] == 1
    return found


def _attempt(given: argparse.Namespace, folder: Path, runs: int) -> dict[str, Any]:
    study = study_in(folder, runs, given.duration, given.duration / 50)
    start = time.perf_counter()
    options: dict[str, Any] = {"workers": 0, "progress": False, "target": "cpu"}
    plain = rm.campaign(study, folder / "undisturbed", block=given.block, **options)
    middle = time.perf_counter()
    found = disturbed(study, folder / "disturbed", given.block, given.kills, given.workers,
                      given.age)  # fmt: skip
    end = time.perf_counter()
    check_equal(plain, rm.open_campaign(folder / "disturbed"))
    return {
        "runs": runs, "blocks": len(plain.folder.spans()), **found,
        "undisturbed s": middle - start, "disturbed s": end - middle, "equal bits": True,
    }  # fmt: skip


# A full disk -------------------------------------------------------------------------------------


def full_disk(folder: Path) -> dict[str, Any]:
    """Return what happened on a file system that is too small, and after it was made larger."""
    study = study_in(folder, 512, 2.0, 0.02)
    plain = rm.campaign(study, folder / "plain", block=16, workers=0, progress=False, target="cpu")
    mount = folder / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(mount)]
    mounted = (
        shutil.which("mount") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )
    client = [sys.executable, "-c", CLIENT, str(study), str(mount / "out"), "16"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    limited = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
    try:
        done = subprocess.run(client, preexec_fn=limited, **options)
        assert done.returncode == 1, f"the disk was not full: {done}"
        assert "stopped: " in done.stderr, done.stderr
        said = done.stderr[done.stderr.index("stopped: ") :].strip().splitlines()[0]
        said = said.replace(str(mount), "DIR")
        before = rm.open_campaign(mount / "out")
        kept = len(before.folder.complete_blocks())
        assert kept == len(markers(mount / "out")), "a block with a marker is damaged"
        if mounted:
            grown = ["mount", "-o", "remount,size=64m", str(mount)]
            subprocess.run(grown, check=True, capture_output=True)
        done = subprocess.run(client, **options)
        assert done.returncode == 0, done.stderr
        check_equal(plain, rm.open_campaign(mount / "out"))
    finally:
        if mounted:
            subprocess.run(["umount", str(mount)], check=True)
    return {
        "file system": "tmpfs of 600 kB" if mounted else "RLIMIT_FSIZE of 8000 bytes",
        "blocks": len(plain.folder.spans()), "complete when full": kept, "equal bits": True,
        "said": said,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=24, help="workers to kill")
    parser.add_argument("--runs", type=int, default=1600)
    parser.add_argument("--block", type=int, default=8, help="runs of a block")
    parser.add_argument("--duration", type=float, default=400.0, help="of a run, s")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--age", type=float, default=10.0, help="at which workers die at most, s")
    parser.add_argument("--only", choices=["kills", "disk"], help="default: both")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    if given.only != "disk":
        with tempfile.TemporaryDirectory() as folder:
            found["kills"] = kills(given, Path(folder))
    if given.only != "kills":
        with tempfile.TemporaryDirectory() as folder:
            found["disk"] = full_disk(Path(folder))
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
