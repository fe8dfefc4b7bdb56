"""Time the CUDA kernels on the GPU at hand, beside frax, MJX and adam where they run.

    python benchmarks/gpu.py [--json FILE] [--no-peers]

Evaluations per second of forward and inverse dynamics, mass matrix, Jacobian and forward dynamics'
derivatives, in float64 and float32, with arrays in columns and (for the servicer) in rows: the
shortest of many launches over a batch that fills the GPU, by CUDA events. The peers run in the same
process on the same GPU. Every result is compared with the NumPy functions first.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

import dynamics
import remora as rm
from remora.cli import bench, gpu
from remora.compile.cuda import cupy_with_device
from remora.errors import RemoraError

#: How far a kernel may be from the NumPy function.
ALLOWED = {"float64": 1e-10, "float32": 1e-2}
#: States in a batch of the peers: they need kilobytes for each.
PEER_STATES = 1 << 18
COMPARED = ("forward_dynamics", "inverse_dynamics", "mass_matrix")


def robots() -> dict[str, rm.Robot]:
    made = dynamics.robots()
    made["snake, 100 joints"] = bench.chain(100)
    made["snake, 1,000 joints"] = bench.chain(1000)
    return made


def functions(robot: rm.Robot) -> list[str]:
    if len(robot.bodies) > 60:
        return ["forward_dynamics", "inverse_dynamics"]
    if len(robot.bodies) > 10:
        return ["forward_dynamics", "inverse_dynamics", "mass_matrix"]
    return list(gpu.TIMED)


def copy_bandwidth() -> float:
    """Return bytes per second, read and written, of copying from device memory to itself."""
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


def rates(robot: rm.Robot, seconds: float, both: bool, console: Console) -> list[gpu.Rate]:
    found: list[gpu.Rate] = []
    for function in functions(robot):
        for dtype in ("float64", "float32"):
            for layout in ("columns", "rows") if both else ("columns",):
                try:
                    r = gpu.rate(robot, function, dtype, layout, seconds=seconds)
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

    states = bench.random_states(robot, PEER_STATES)
    rows: list[dict[str, Any]] = []
    for dtype in ("float64", "float32"):
        peers, missing = gpu_peers.present(robot, dtype)
        for name, reason in missing.items():
            console.print(f"not compared: {name}: {reason}")
        for peer in peers:
            made = gpu_peers.cases(peer, states, COMPARED, console)
            for result in bench.measure(list(made), seconds):
                case = result.case
                rows.append({
                    "function": case.function, "library": case.library, "call": case.call,
                    "dtype": case.dtype, "states": case.states,
                    "per_second": float(f"{1.0 / result.seconds:.4g}"),
                    "deviation": float(f"{case.deviation:.1e}"),
                })  # fmt: skip
                console.print(rows[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="for each kernel")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--no-peers", action="store_true", help="Remora alone")
    parser.add_argument("--only", action="append", help="robots whose names hold this")
    options = parser.parse_args()
    console = Console(width=120, highlight=False)
    about = bench.machine()
    about["gpu"] = gpu.device_name()
    for name in ("cupy-cuda13x", "cupy-cuda12x", "jax", "frax", "mujoco-mjx", "adam-robotics"):
        if bench.installed(name):
            about["versions"][name] = bench.installed(name)
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
        gpu.print_rates(f"\n{name}: nv = {robot.nv}", found, console)
        data["robots"][name] = [_rounded(dataclasses.asdict(r)) for r in found]
        _save(data, options.json)
    if not options.no_peers:
        data["peers"] = peer_rows(made[first], options.seconds, console)
        _save(data, options.json)


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in values.items()}


def _save(data: dict[str, Any], file: Path | None) -> None:
    """Keep what there is so far."""
    if file:
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
