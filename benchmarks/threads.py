"""Benchmark of batches that two threads share.

    python benchmarks/threads.py [--json FILE]

Forward dynamics of a free base with seven revolute joints, float64, results into a given array: the
servicer, whose frames are aligned, and a robot with oblique frames. Batches on one and two threads
take turns, 10 ms each, so that both see the same machine; the shortest mean of a turn counts.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import remora as rm
from remora.cli import kernel_timing
from remora.model.formats.random_robot import random_robot

SIZES = (2048, 4096, 16384)
THREADS = (1, 2)


def robots() -> dict[str, rm.Robot]:
    return {
        "servicer, aligned frames": rm.load("servicer"),
        "random, oblique frames": random_robot(1, 8, kinds=("revolute",)),
    }


def measured(robot: rm.Robot, states: int, seconds: float) -> dict[str, Any]:
    drawn = kernel_timing.random_states(robot, states)
    cases = [
        c
        for c in kernel_timing.remora_cases(robot, "forward_dynamics", drawn, THREADS)
        if c.states > 1
    ]
    one, two = kernel_timing.measure(cases, seconds)
    return {
        "states": states,
        "one_us": float(f"{1e6 * states * one.seconds:.4g}"),
        "two_us": float(f"{1e6 * states * two.seconds:.4g}"),
        "ratio": round(one.seconds / two.seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each robot and batch")
    parser.add_argument("--states", type=int, nargs="+", default=SIZES, help="sizes of batches")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    console = Console(width=110, highlight=False)
    about = kernel_timing.machine()
    console.print(kernel_timing.described(about))
    table = Table("robot", "states", "one thread, µs", "two threads, µs", "ratio", box=None)
    data: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]), "machine": about, "robots": {},
    }  # fmt: skip
    for name, robot in robots().items():
        rows = data["robots"][name] = []
        for states in options.states:
            with console.status(f"{name}: {states} states"):
                rows.append(measured(robot, states, options.seconds))
            cells = rows[-1]
            table.add_row(
                name, f"{states:,}", f"{cells['one_us']:.0f}", f"{cells['two_us']:.0f}",
                f"{cells['ratio']:.2f}x",
            )  # fmt: skip
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
