"""Benchmark of the first result: how long a user waits for it, with and without kernels in a cache.

    python benchmarks/first_result.py [--src PATH ...] [--only CASE ...] [--repeats 3] [--json FILE]

Every case runs in fresh processes with a kernel cache of their own, first empty (cold), then filled
by the first process. `process` is from the start of Python to the first result, imports included,
`call` the first call alone, `again` a later call in the same process. CPU time includes children
and all threads: it exceeds wall time where several cores work. The minimum of all repeats is
reported. `--src` measures other checkouts, which take turns; this one by default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

#: What is measured: each defines the function `work`.
CASES = {
    "demo": """
def work():
    import io, pathlib, tempfile
    from rich.console import Console
    from remora.cli.capture_demo import demonstrated
    folder = pathlib.Path(tempfile.mkdtemp())
    demonstrated(Console(file=io.StringIO(), width=100), folder)
""",
    "capture run": """
def work():
    import remora as rm
    run = rm.load_scenario("capture").run(progress=False)
    run.conservation()
""",
    "capture batch": """
def work():
    import remora as rm
    from remora.campaigns.blocks import run_block
    run_block(rm.load_study("rigid_capture", runs=4), 0, 4)
""",
    "simulate": """
def work():
    import numpy as np
    import remora as rm
    global robot
    robot = globals().get("robot") or rm.load("servicer")
    rm.simulate(robot, rm.neutral(robot), np.full(robot.nv, 0.01), 2.0,
                record=rm.Record(progress=False))
""",
    "batch of one": """
def work():
    import numpy as np
    import remora as rm
    global robot
    robot = globals().get("robot") or rm.load("servicer")
    q, v = rm.neutral(robot)[None], np.full((1, robot.nv), 0.01)
    rm.simulate_batch(robot, q, v, 2.0, integrator=rm.Integrator(step=0.01),
                      record=rm.Record(0.1, progress=False))
""",
}
#: How often a case is called again; others once.
AGAIN = {"simulate": 50, "batch of one": 200}
#: Code of a process around a case; prints wall and CPU seconds as JSON.
AROUND = """
import json, resource, sys, time
def cpu():
    both = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in both)
def timed():
    wall, used = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - wall, cpu() - used
{case}
first = timed()
whole = time.time() - float(sys.argv[1]), cpu()
again = [min(x) for x in zip(*(timed() for _ in range({again})))]
print(json.dumps({{"process": whole, "call": first, "again": again}}))
"""


def measured(src: Path, case: str, cache: str) -> dict[str, list[float]]:
    """Return wall and CPU seconds of a new process, of its first call, and of later calls."""
    environment = {k: x for k, x in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    code = AROUND.format(case=CASES[case], again=AGAIN.get(case, 1))
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"PYTHONPATH": str(src / "src"), "REMORA_CACHE": cache, "TMPDIR": folder}
        done = subprocess.run(
            [sys.executable, "-c", code, str(time.time())], env=environment, check=True,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def measure(src: Path, case: str) -> dict[str, list[float]]:
    """Return wall and CPU seconds of all columns of a case."""
    with tempfile.TemporaryDirectory() as cache:
        cold = measured(src, case, cache)
        filled = measured(src, case, cache)
    return {
        "cold process": cold["process"], "cold call": cold["call"],
        "filled process": filled["process"], "filled call": filled["call"],
        "again": filled["again"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--src", type=Path, action="append", help="checkout to measure")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    checkouts: list[Path] = options.src or [here]
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    console = Console(width=110, highlight=False)
    for src in checkouts:  # bytecode and the pages of libraries, as after an installation
        measured(src, "simulate", os.environ.get("REMORA_CACHE", tempfile.mkdtemp()))
    for case in options.only:
        own = found.setdefault(case, {})
        for _ in range(options.repeats):
            for src in checkouts:
                for column, both in measure(src, case).items():
                    kept = own.setdefault(str(src), {}).setdefault(column, both)
                    own[str(src)][column] = [min(x) for x in zip(kept, both, strict=True)]
        table = Table(title=f"{case}: wall (CPU), s", title_justify="left")
        table.add_column("checkout")
        for column in own[str(checkouts[0])]:
            table.add_column(column, justify="right")
        for src, columns in own.items():
            table.add_row(src, *(f"{wall:.4g} ({used:.4g})" for wall, used in columns.values()))
        console.print(table)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
