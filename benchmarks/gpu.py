"""Benchmark of the CUDA kernels on the current GPU against frax, MJX and adam.

    python benchmarks/gpu.py [--json FILE] [--no-peers]

Evaluations per second of forward and inverse dynamics, mass matrix, Jacobian and derivatives of
forward dynamics, in float64 and float32, with arrays in columns and (for the servicer) in rows: the
minimum over many launches with a batch that fills the GPU, timed with CUDA events. The peers run in
the same process on the same GPU. Every result is compared with the NumPy functions first.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from peer_libraries import chain
from rich.console import Console

import dynamics
import remora as rm
from remora.cli import bench_gpu, kernel_timing
from remora.codegen.gpu.cuda_kernel import cupy_with_device
from remora.errors import RemoraError

#: Tolerated deviation of a kernel from the NumPy function.
ALLOWED = {"float64": 1e-10, "float32": 1e-2}
#: States in a batch of the peers, which need kilobytes per state.
PEER_STATES = 1 << 18
COMPARED = ("forward_dynamics", "inverse_dynamics", "mass_matrix")


def robots() -> dict[str, rm.Robot]:
    made = dynamics.robots()
    made["snake, 100 joints"] = chain(100)
    made["snake, 1,000 joints"] = chain(1000)
    return made


def copy_bandwidth() -> float:
    """Return the bandwidth (read and write) of a device-to-device copy, bytes per second."""
    cupy = cupy_with_device()
    a = cupy.ones(1 << 29, "float64")
    b = cupy.empty_like(a)
    best = 0.0
    for _ in range(10):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        cupy.copyto(b, a)
        after.record()
        after.synchronize()
        best = max(best, 2e3 * a.nbytes / cupy.cuda.get_elapsed_time(before, after))
    return best


def rates(robot: rm.Robot, seconds: float, both: bool, console: Console) -> list[bench_gpu.Rate]:
    found: list[bench_gpu.Rate] = []
    for function in bench_gpu.functions(robot):
        for dtype in ("float64", "float32"):
            for layout in ("columns", "rows") if both else ("columns",):
                try:
                    r = bench_gpu.rate(robot, function, dtype, layout, seconds=seconds)
                except RemoraError as error:
                    console.print(f"not timed: {function}, {dtype}: {error}")
                    continue
                if not r.deviation <= ALLOWED[dtype]:
                    console.print(f"{function}, {dtype} is off by {r.deviation:.1e}: not counted")
                    continue
                found.append(r)
    return found


def peer_rows(robot: rm.Robot, seconds: float, console: Console) -> list[dict[str, Any]]:
    import gpu_peers

    states = kernel_timing.random_states(robot, PEER_STATES)
    rows: list[dict[str, Any]] = []
    for dtype in ("float64", "float32"):
        peers, missing = gpu_peers.present(robot, dtype)
        for name, reason in missing.items():
            console.print(f"not compared: {name}: {reason}")
        for peer in peers:
            made = gpu_peers.cases(peer, states, COMPARED, console)
            for result in kernel_timing.measure(list(made), seconds):
                case = result.case
                rows.append({
                    "function": case.function, "library": case.library, "call": case.call,
                    "dtype": case.dtype, "states": case.states,
                    "per_second": float(f"{1.0 / result.seconds:.4g}"),
                    "deviation": float(f"{case.deviation:.1e}"),
                })  # fmt: skip
                console.print(rows[-1])
    return rows


def plot(data: dict[str, Any], file: Path) -> None:
    """Plot evaluations per second with the peers, and time per body of larger robots."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colors = {"Remora": "#0b6e99", "frax": "#d9822b", "MJX": "#8a8a8a", "adam": "#b0a160"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 5.4), width_ratios=(2.2, 1))
    servicer = next(iter(data["robots"].values()))
    groups = [(f, d) for f in COMPARED for d in ("float64", "float32")]
    for g, (function, dtype) in enumerate(groups):
        ours = max(
            r["per_second"] for r in servicer if (r["function"], r["dtype"]) == (function, dtype)
        )
        bars = {"Remora": ours} | {
            r["library"]: r["per_second"]
            for r in data["peers"]
            if (r["function"], r["dtype"]) == (function, dtype)
        }
        for k, (library, value) in enumerate(bars.items()):
            x = g + (k - (len(bars) - 1) / 2) * 0.21
            left.bar(x, value, 0.19, color=colors[library], zorder=3)
            left.text(
                x, value * 1.15, f"{value:.1e}", rotation=90, fontsize=8, ha="center", va="bottom"
            )
    left.set_yscale("log")
    left.set_ylim(3e6, 3e11)
    labels = [f"{bench_gpu.TIMED[f]}\n{d}" for f, d in groups]
    left.set_xticks(range(len(groups)), labels, fontsize=9)
    left.set_ylabel("evaluations per second")
    left.set_title("servicer, 13 degrees of freedom, same GPU, same process")
    handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in colors.values()]
    left.legend(handles, list(colors), frameon=False, ncols=4, loc="upper left")
    joints = {"servicer": 7, "snake, 30": 30, "snake, 100": 100, "snake, 1,000": 1000}
    for dtype, style in (("float64", "o-"), ("float32", "s--")):
        times = {
            n: 1e9 / r["per_second"] / (n + 1)
            for start, n in joints.items()
            for name, rows in data["robots"].items()
            for r in rows
            if name.startswith(start)
            and (r["function"], r["dtype"], r["layout"]) == ("forward_dynamics", dtype, "columns")
        }
        right.plot(list(times), list(times.values()), style, color=colors["Remora"], label=dtype)
    right.set_xscale("log")
    right.set_ylim(bottom=0)
    right.set_xticks(list(joints.values()), [f"{n:,}" for n in joints.values()])
    right.minorticks_off()
    right.set_xlabel("joints on a free base")
    right.set_ylabel("ns per state and body")
    right.set_title("forward dynamics, chains")
    right.legend(frameon=False)
    for ax in (left, right):
        ax.grid(axis="y", color="0.85", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    versions = data["machine"]["versions"]
    names = ("cupy-cuda13x", "jax", "frax", "mujoco-mjx", "adam-robotics")
    shown = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
    figure.suptitle(f"{data['machine']['gpu']}; {shown}", fontsize=11)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="for each kernel")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--no-peers", action="store_true", help="Remora alone")
    parser.add_argument("--only", action="append", help="robots whose names hold this")
    parser.add_argument("--plot", type=Path, help="draw the results into this file (matplotlib)")
    parser.add_argument("--from-json", type=Path, help="draw a saved file; time nothing")
    options = parser.parse_args()
    if options.from_json:
        plot(json.loads(options.from_json.read_text(encoding="utf-8")), options.plot)
        return
    console = Console(width=120, highlight=False)
    about = kernel_timing.machine()
    about["gpu"] = bench_gpu.device_name()
    for name in ("cupy-cuda13x", "cupy-cuda12x", "jax", "frax", "mujoco-mjx", "adam-robotics"):
        if kernel_timing.installed(name):
            about["versions"][name] = kernel_timing.installed(name)
    data: dict[str, Any] = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": about,
        "copy_bytes_per_second": float(f"{copy_bandwidth():.4g}"),
        "robots": {},
        "peers": [],
    }
    console.print(f"{about['gpu']}, copies at {data['copy_bytes_per_second'] / 1e12:.2f} TB/s")
    made = robots()
    first = next(iter(made))
    for name, robot in made.items():
        if options.only and not any(part in name for part in options.only):
            continue
        found = rates(robot, options.seconds, name == first, console)
        bench_gpu.print_rates(f"\n{name}: nv = {robot.nv}", found, console)
        data["robots"][name] = [_rounded(dataclasses.asdict(r)) for r in found]
        _save(data, options.json)
    if not options.no_peers:
        data["peers"] = peer_rows(made[first], options.seconds, console)
        _save(data, options.json)
    if options.plot:
        plot(data, options.plot)


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in values.items()}


def _save(data: dict[str, Any], file: Path | None) -> None:
    """Save the results so far."""
    if file:
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
