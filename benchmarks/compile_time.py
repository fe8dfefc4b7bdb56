"""Benchmark of compile time, and of the growth of a kernel's cost with the number of bodies.

    python benchmarks/compile_time.py [--json FILE] [--plot FILE.png]

Compile time is measured in fresh processes, first with an empty cache, then from the cache, without
imports. Growth: chains of 7, 14, 28 and 56 revolute joints on a free base, forward dynamics of a
batch of 4,096 states, one thread, float64. Rounds are interleaved; the minimum is reported.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from peer_libraries import chain, present
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.cli import kernel_timing
from remora.cli.kernel_timing import TIMED, Case

SIZES = (7, 14, 28, 56)
BATCH = 4096


def compile_rows(repeats: int, console: Console) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with console.status("compiling"):
        for function in TIMED:
            first, again = kernel_timing.compile_times(rm.load("servicer"), function, repeats)
            rows.append({
                "robot": "servicer", "function": function, "first_s": round(first, 4),
                "cached_ms": round(1e3 * again, 2),
            })  # fmt: skip
    return rows


def growth_rows(seconds: float, repeats: int, console: Console) -> list[dict[str, Any]]:
    chains = [chain(n) for n in SIZES]
    cases: list[Case] = []
    places: list[tuple[int, str]] = []  # row and library of each case
    with console.status("compiling chains"):
        for k, robot in enumerate(chains):
            states = kernel_timing.random_states(robot, BATCH)
            both = list(kernel_timing.remora_cases(robot, "forward_dynamics", states, (1,)))
            for peer in present(robot, 1)[0]:
                if peer.name == "Pinocchio":
                    both += peer.cases("forward_dynamics", states, (1,))
            both = [case for case in both if case.states > 1]
            cases += both
            places += [(k, case.library) for case in both]
        times = [kernel_timing.compile_times(robot, repeats=repeats) for robot in chains]
    rows: list[dict[str, Any]] = []
    for n, robot, (first, again) in zip(SIZES, chains, times, strict=True):
        count = sum(kernel_timing.kernel_of(robot, "forward_dynamics").graph.count().values())
        rows.append({
            "joints": n, "bodies": n + 1, "nv": robot.nv, "first_s": round(first, 4),
            "cached_ms": round(1e3 * again, 2), "operations": count,
            "operations_per_body": float(f"{count / (n + 1):.4g}"),
        })  # fmt: skip
    with console.status("measuring"):
        results = kernel_timing.measure(cases, seconds)
    for (k, library), result in zip(places, results, strict=True):
        rows[k][f"{library}_us"] = float(f"{1e6 * result.seconds:.4g}")
    for row in rows:
        row["ns_per_body"] = float(f"{1e3 * row['Remora_us'] / row['bodies']:.4g}")
    return rows


def print_tables(data: dict[str, Any], console: Console) -> None:
    table = Table(title="servicer: from robot to machine code", title_justify="left")
    for name in ("function", "first, s", "from the cache, ms"):
        table.add_column(name, justify="left" if name == "function" else "right")
    for row in data["compile"]:
        table.add_row(TIMED[row["function"]], f"{row['first_s']:.3f}", f"{row['cached_ms']:.1f}")
    console.print(table)
    table = Table(title="forward dynamics of chains, batch of 4096", title_justify="left")
    names = (
        "joints", "first, s", "cached, ms", "operations", "per body", "µs", "ns per body",
        "Pinocchio, µs", "ratio",
    )  # fmt: skip
    for name in names:
        table.add_column(name, justify="right")
    for row in data["growth"]:
        peer = row.get("Pinocchio_us")
        table.add_row(
            str(row["joints"]), f"{row['first_s']:.2f}", f"{row['cached_ms']:.1f}",
            f"{row['operations']:,}", f"{row['operations_per_body']:.0f}",
            f"{row['Remora_us']:.3f}", f"{row['ns_per_body']:.2f}",
            "" if peer is None else f"{peer:.2f}",
            "" if peer is None else f"{peer / row['Remora_us']:.1f}x",
        )  # fmt: skip
    console.print(table)
    console.print(f"most over least ns per body: {data['spread']:.2f}")


def plot(data: dict[str, Any], file: Path) -> None:
    """Plot time per state, time per body and compile time against the number of bodies."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = data["growth"]
    n = [row["bodies"] for row in rows]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8))
    own, other = "#0b6e99", "#d9822b"
    axes[0].loglog(n, [row["Remora_us"] for row in rows], "o-", color=own, label="Remora")
    if all("Pinocchio_us" in row for row in rows):
        peer = [row["Pinocchio_us"] for row in rows]
        axes[0].loglog(n, peer, "s-", color=other, label="Pinocchio, abaInParallel")
    axes[0].legend(frameon=False)
    axes[0].set_title("one evaluation in a batch of 4096, one thread")
    axes[0].set_ylabel("µs per state")
    per_body = [row["ns_per_body"] for row in rows]
    axes[1].plot(n, per_body, "o-", color=own)
    low = min(per_body)
    axes[1].axhspan(low, 1.2 * low, color=own, alpha=0.12, label="within 1.2x of the least")
    axes[1].set_ylim(0, 1.5 * max(per_body))
    axes[1].legend(frameon=False)
    axes[1].set_title("cost per body")
    axes[1].set_ylabel("ns per state and body")
    axes[2].loglog(n, [row["first_s"] for row in rows], "o-", color=own, label="first compile")
    axes[2].loglog(
        n, [row["cached_ms"] / 1e3 for row in rows], "o--", color=own, label="from the cache"
    )
    axes[2].legend(frameon=False)
    axes[2].set_title("from robot to machine code, new process")
    axes[2].set_ylabel("s")
    for ax in (axes[0], axes[2]):
        ax.yaxis.set_major_formatter("{x:g}")
    for ax in axes:
        ax.set_xticks(n, [str(k) for k in n])
        ax.minorticks_off()
        ax.set_xlabel("bodies: a free base and a chain of revolute joints")
        ax.grid(color="0.88")
        ax.spines[["top", "right"]].set_visible(False)
    about = data["machine"]
    figure.suptitle(
        f"Forward dynamics, float64; {about['processor']} ({about['llvm_name']}, "
        f"{about['lanes_float64']} lanes)"
    )
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="for the chains")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each compile time")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--plot", type=Path, help="draw the results into this file (matplotlib)")
    options = parser.parse_args()
    console = Console(width=110, highlight=False)
    about = kernel_timing.machine()
    console.print(kernel_timing.described(about))
    growth = growth_rows(options.seconds, options.repeats, console)
    per_body = [row["ns_per_body"] for row in growth]
    data = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": about,
        "compile": compile_rows(options.repeats, console),
        "growth": growth,
        "spread": round(max(per_body) / min(per_body), 3),
    }
    print_tables(data, console)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(data, options.plot)


if __name__ == "__main__":
    main()
