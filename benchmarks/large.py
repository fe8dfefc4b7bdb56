"""Benchmark of robots with 7 to 1,000 joints: growth of compile time and of cost per body.

    python benchmarks/large.py [--json FILE]

Chains of equal modules (revolute joints alternately about y and z) and random trees (general axes
and placements, a branch at about every third body), on a free base. Compile time is measured in
fresh processes with an empty cache. Run time is that of a batch on one thread in float64; rounds
are interleaved, and the minimum is reported. The batch size is chosen so that its arguments fit
into the processor's caches (except for mass matrices, which are 8 MB each at 1,000 joints).
Pinocchio is timed with one state per call; not at 1,000 joints, where its `Data`, which grows with
nv³, would take about 32 GB.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from peer_libraries import Pinocchio, chain
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.cli import kernel_timing
from remora.cli.kernel_timing import Case

SIZES = (7, 14, 30, 56, 100, 300, 1000)
LARGEST_PEER = 300
FUNCTIONS = {
    "forward_dynamics": ("forward dynamics", "pin.aba"),
    "inverse_dynamics": ("inverse dynamics", "pin.rnea"),
    "poses": ("poses", "pin.forwardKinematics"),
    "mass_matrix": ("mass matrix", "pin.crba"),
}


def tree(joints: int) -> rm.Robot:
    """Return a random tree of revolute joints on a free base."""
    return rm.random_robot(joints, bodies=joints + 1, kinds=("revolute",))


ROBOTS = {"chain": chain, "tree": tree}


def peer_of(robot: rm.Robot, joints: int) -> Any:
    """Return Pinocchio with this robot, or None if it is missing or needs too much memory."""
    try:
        return Pinocchio(robot, 1) if joints <= LARGEST_PEER else None
    except ImportError:
        return None


def cases(robot: rm.Robot, function: str, joints: int, peer: Any) -> tuple[list[Case], float]:
    """Return the kernel on a batch and Pinocchio's call, and the divisor for the cost per body."""
    entries = robot.nv**2 if function == "mass_matrix" else len(robot.bodies)
    fit = 1e6 / entries if function == "mass_matrix" else 64e3 / joints
    states = 8 * int(np.clip(fit / 8, 1, 512))
    made = kernel_timing.random_states(robot, states)
    kernel = kernel_timing.kernel_of(robot, function)
    given = [getattr(made, {"tau": "x", "vdot": "x"}.get(s.name, s.name)) for s in kernel.inputs]
    out = kernel(*given)

    def batch(*arrays: Any) -> Any:
        return kernel(*arrays, out=out)

    nan = float("nan")
    result = [Case(function, "Remora", "", states, 1, "float64", batch, tuple(given), nan)]
    if peer is not None:
        q, v, x = made.q[0], made.v[0], made.x[0]
        calls = {
            "forward_dynamics": (peer.pin.aba, (peer.layout.v_to(q, v), peer.layout.tau_to(q, x))),
            "inverse_dynamics": (
                peer.pin.rnea, (peer.layout.v_to(q, v), peer.layout.vdot_to(q, v, x)),
            ),
            "poses": (peer.pin.forwardKinematics, ()),
            "mass_matrix": (peer.pin.crba, ()),
        }  # fmt: skip
        run, more = calls[function]
        arguments = (peer.model, peer.data, peer.layout.q_to(q), *more)
        result.append(Case(function, "Pinocchio", "", 1, 1, "float64", run, arguments, nan))
    return result, entries


def rows(seconds: float, repeats: int, console: Console) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for joints in SIZES:
        for kind, make in ROBOTS.items():
            robot = make(joints)
            found: list[tuple[str, list[Case], float]] = []
            with console.status(f"{kind} of {joints} joints"):
                peer = peer_of(robot, joints)
                for function in FUNCTIONS:
                    found.append((function, *cases(robot, function, joints, peer)))
                measured = kernel_timing.measure([c for _, cs, _ in found for c in cs], seconds)
            times = {(r.case.function, r.case.library): r.seconds for r in measured}
            for function, _, entries in found:
                first, again = kernel_timing.compile_times(robot, function, repeats)
                ours = times[function, "Remora"]
                theirs = times.get((function, "Pinocchio"))
                line = {
                    "robot": kind, "joints": joints, "nv": robot.nv, "function": function,
                    "first_s": round(first, 3), "cached_ms": round(1e3 * again, 2),
                    "us": float(f"{1e6 * ours:.4g}"), "ns": float(f"{1e9 * ours / entries:.4g}"),
                    "Pinocchio_us": None if theirs is None else float(f"{1e6 * theirs:.4g}"),
                }  # fmt: skip
                result.append(line)
                console.print(line)
    return result


def print_tables(data: dict[str, Any], console: Console) -> None:
    for function, (label, peer) in FUNCTIONS.items():
        per = "ns per entry" if function == "mass_matrix" else "ns per body"
        table = Table(title=label, title_justify="left")
        for name in ("robot", "joints", "µs per state", per, peer, "ratio", "first, s", "cached"):
            table.add_column(name, justify="left" if name == "robot" else "right")
        for r in data["rows"]:
            if r["function"] == function:
                theirs = r["Pinocchio_us"]
                table.add_row(
                    r["robot"], str(r["joints"]), f"{r['us']:.3f}", f"{r['ns']:.2f}",
                    "-" if theirs is None else f"{theirs:.2f}",
                    "-" if theirs is None else f"{theirs / r['us']:.1f}x",
                    f"{r['first_s']:.2f}", f"{r['cached_ms']:.1f} ms",
                )  # fmt: skip
        console.print(table)
    console.print("most over least ns per body:", data["spread"])


def spread(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Return the ratio of largest to smallest cost per body, for each function and robot type."""
    result: dict[str, float] = {}
    for function in FUNCTIONS:
        for kind in ROBOTS:
            ns = [r["ns"] for r in lines if (r["function"], r["robot"]) == (function, kind)]
            result[f"{function}, {kind}"] = round(max(ns) / min(ns), 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="for each robot")
    parser.add_argument("--repeats", type=int, default=2, help="processes for each compile time")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    console = Console(width=110, highlight=False)
    about = kernel_timing.machine()
    console.print(kernel_timing.described(about))
    lines = rows(options.seconds, options.repeats, console)
    data = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": about,
        "rows": lines,
        "spread": spread(lines),
    }
    print_tables(data, console)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
