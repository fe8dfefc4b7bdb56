"""`remora bench`: benchmark of compiled kernels against the installed peer libraries.

The peers, Pinocchio and MuJoCo, are built from the robot's own data, joint by joint. They must give
the same results before they are timed. Timings are interleaved, and the minimum over all rounds is
reported, since it is the least disturbed by other load on the machine.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import math
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from remora.algebra.array_ops import Array
from remora.cli import bench_gpu
from remora.cli.bench_peers import (
    PEERS,
    TIMED,
    Case,
    MuJoCo,
    Pinocchio,
    States,
    random_states,
    reference,
    relative,
)
from remora.codegen.kernel import Kernel
from remora.codegen.llvm import host as cpu
from remora.dynamics.kernels.compiled import FUNCTIONS, compile_function
from remora.errors import RemoraError
from remora.model.building.builder import Builder
from remora.model.robot import Robot

SLOT = 0.01  # s, for one case in one round


@dataclass(frozen=True)
class Result:
    """A case and the shortest time per evaluation, in seconds."""

    case: Case
    seconds: float


# Remora ------------------------------------------------------------------------------------------


def kernel_of(robot: Robot, function: str, dtype: str = "float64") -> Kernel:
    """Return the kernel of a function in TIMED; the Jacobian is that of the last body."""
    fixed = {"target": robot.bodies[-1].name} if function == "jacobian" else None
    return compile_function(FUNCTIONS[function], robot, dtype, fixed=fixed).ready()


def remora_cases(
    robot: Robot, function: str, states: States, threads: Sequence[int], dtype: str = "float64"
) -> Iterator[Case]:
    """Yield the compiled function as a single call with NumPy arrays, and as a batch."""
    kernel = kernel_of(robot, function, dtype)
    n = len(states.q)
    alone = tuple(a.astype(dtype) for a in states.arguments(function, alone=True))
    many = tuple(a.astype(dtype) for a in states.arguments(function))
    error = relative(kernel(*alone), reference(robot, function, states))
    yield Case(function, "Remora", "kernel(...)", 1, 1, dtype, kernel, alone, error)
    out = np.empty((n, *kernel.outputs[0].shape), dtype)
    for count in threads:

        def batch(*arrays: Array, count: int = count) -> Array:
            return kernel(*arrays, out=out, threads=count)

        yield Case(function, "Remora", "kernel(batch)", n, count, dtype, batch, many, error)


# Timing ------------------------------------------------------------------------------------------


def measure(
    cases: Sequence[Case], seconds: float, tick: Callable[[], object] = lambda: None
) -> list[Result]:
    """Time all cases in interleaved rounds and return the shortest time of each.

    Args:
        cases: the cases to time.
        seconds: approximate total duration; there are at least three rounds.
        tick: callback after each round.
    """
    timers: list[tuple[timeit.Timer, int]] = []
    for case in cases:
        names = [f"a{k}" for k in range(len(case.arguments))]
        scope = dict(zip(names, case.arguments, strict=True)) | {"f": case.run}
        timer = timeit.Timer(f"f({', '.join(names)})", globals=scope)
        timer.timeit(1)  # warms up caches, thread pools and compilers
        loops = max(1, min(100_000, int(SLOT / max(timer.timeit(1), 1e-7))))
        timers.append((timer, loops))
    best = [math.inf] * len(cases)
    end, rounds = time.perf_counter() + seconds, 0
    collecting = gc.isenabled()
    gc.disable()
    try:
        while rounds < 3 or time.perf_counter() < end:
            for k, (timer, loops) in enumerate(timers):
                best[k] = min(best[k], timer.timeit(loops) / loops / cases[k].states)
            rounds += 1
            tick()
    finally:
        if collecting:
            gc.enable()
    return [Result(case, t) for case, t in zip(cases, best, strict=True)]


_FRESH = """
import os, pickle, sys, time
from remora.cli.bench import kernel_of
robot = pickle.load(sys.stdin.buffer)
start = time.perf_counter()
kernel_of(robot, {function!r})
print(time.perf_counter() - start)
"""


def compile_times(
    robot: Robot, function: str = "forward_dynamics", repeats: int = 2
) -> tuple[float, float]:
    """Return the compile time and the load time from the cache, s, each in a new process."""
    first: list[float] = []
    again: list[float] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for times in (first, again, again):
                done = subprocess.run(
                    [sys.executable, "-c", _FRESH.format(function=function)],
                    input=pickle.dumps(robot), capture_output=True, check=True,
                    env={**os.environ, "REMORA_CACHE": folder},
                )  # fmt: skip
                times.append(float(done.stdout))
    return min(first), min(again)


# Robots ------------------------------------------------------------------------------------------


def chain(joints: int) -> Robot:
    """Return a free base with a chain of revolute joints, alternately about y and z."""
    builder = Builder(f"chain of {joints} joints")
    builder.body("bus", 400.0, (0.05, 0.0, 0.02), (60.0, 70.0, 80.0))
    for k in range(joints):
        parent, here = ("bus" if k == 0 else f"link_{k}"), f"link_{k + 1}"
        builder.body(here, 5.0, (0.2, 0.01, -0.02), (0.02, 0.08, 0.09))
        builder.joint(
            f"joint_{k + 1}", "revolute", parent, here,
            xyz=(0.8 if k == 0 else 0.4, 0.0, 0.0), axis=(0, 1, 0) if k % 2 else (0, 0, 1),
        )  # fmt: skip
    return builder.build()


# The machine -------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Return a description of the machine: processor, SIMD lanes, versions."""
    host = cpu.host()
    names = ("remora", "numpy", "llvmlite", "casadi", "pin", "mujoco-core", "mujoco")
    versions = {name: v for name in names if (v := installed(name)) is not None}
    return {
        "processor": _processor(),
        "llvm_name": host.cpu,
        "cores": os.cpu_count(),
        "lanes_float64": host.lanes("float64"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def installed(package: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def described(about: dict[str, Any]) -> str:
    """Return the description of the machine on one line."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return (
        f"{about['processor']} ({about['llvm_name']}), {about['cores']} cores, "
        f"{about['lanes_float64']} lanes of float64; Python {about['python']}, {versions}"
    )


# The table ---------------------------------------------------------------------------------------


def print_results(title: str, results: Sequence[Result], console: Console) -> None:
    """Print a row per function and mode, with the ratio of each library's time to Remora's."""
    libraries = list(dict.fromkeys(r.case.library for r in results if r.case.library != "Remora"))
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("µs per evaluation", no_wrap=True)
    for name in ("Remora", *(word for library in libraries for word in (library, "ratio"))):
        table.add_column(name, justify="right", no_wrap=True)
    without_loop = False
    for label, ours, others in compared(results):
        cells = [f"{1e6 * ours.seconds:.3f}"]
        for library in libraries:
            peer = others.get(library)
            borrowed = peer is not None and peer.case.states != ours.case.states
            without_loop |= borrowed
            cells += ["-", ""] if peer is None else [
                f"{1e6 * peer.seconds:.2f}{'*' if borrowed else ''}",
                f"{peer.seconds / ours.seconds:.1f}x",
            ]  # fmt: skip
        table.add_row(label, *cells)
    console.print(table)
    if without_loop:
        console.print("* its call for one state: it has no loop over a batch for this")
    for library in libraries:
        calls = dict.fromkeys(r.case.call for r in results if r.case.library == library)
        console.print(f"{library}: {', '.join(calls)}", soft_wrap=True)


def compared(results: Sequence[Result]) -> Iterator[tuple[str, Result, dict[str, Result]]]:
    """Yield, function by function, Remora's results and the peers' results for the same work.

    If a peer has no loop over a batch, the batch is compared with its call for one state. A peer
    that was timed on one thread only is compared on one thread.
    """
    for ours in sorted(
        (r for r in results if r.case.library == "Remora"),
        key=lambda r: list(TIMED).index(r.case.function),
    ):
        own = ours.case
        others: dict[str, Result] = {}
        for r in results:
            case = r.case
            if case.library == "Remora" or (case.function, case.dtype) != (own.function, own.dtype):
                continue
            same = (case.states, case.threads) == (own.states, own.threads)
            alone = case.states == 1 and not any(
                o.case.states > 1 and o.case.library == case.library for o in results
                if o.case.function == own.function
            )  # fmt: skip
            if same or (own.states > 1 and alone):
                others[case.library] = r
        label = TIMED[own.function] + ", one call"
        if own.states > 1:
            label = f"  batch of {own.states}, {own.threads} thread{'s' * (own.threads > 1)}"
        label += "" if own.dtype == "float64" else f", {own.dtype}"
        yield label, ours, others


# The command -------------------------------------------------------------------------------------


def benchmark(
    robot: Robot, batch: int | None, threads: int, seconds: float, growth: bool, on_gpu: bool
) -> None:
    """Measure a robot's functions and print the results.

    Args:
        robot: the robot.
        batch: states in a batch; None: 4096, or as many as fill the GPU.
        threads: threads for the batch, beside one; 0: one per processor.
        seconds: approximate duration.
        growth: whether chains of 7 to 56 joints are measured, too.
        on_gpu: whether CUDA kernels are measured instead.
    """
    console = Console(highlight=False, emoji=False)
    title = f"{robot.name}: {len(robot.bodies)} bodies, nv = {robot.nv}"
    if on_gpu:
        bench_gpu.bench_gpu(robot, batch, seconds, escape(title), console)
        return
    console.print(escape(described(machine())))
    counts = sorted({1, threads or os.cpu_count() or 1})
    states = random_states(robot, batch or 4096)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True))
    with bar as progress:
        results, missing = _measured(robot, states, counts, seconds, progress)
        first, again = _timed_compile(robot, progress)
        sizes = (7, 14, 28, 56) if growth else ()
        steps = [_per_body(n, seconds / 10, progress) for n in sizes]
    print_results(escape(f"{title}, float64"), results, console)
    for line in missing:
        console.print(f"[yellow]not compared:[/] {escape(line)}")
    console.print(
        f"\nfrom robot to machine code (forward dynamics): first {first:.2f} s, "
        f"from the cache {1e3 * again:.1f} ms"
    )
    if steps:
        console.print("growth with bodies (forward dynamics, batch of 4096, one thread):")
        for n, t in zip(sizes, steps, strict=True):
            each = f"{1e6 * t:6.3f} µs, {1e9 * t / (n + 1):5.1f} ns per body"
            console.print(f"  {n:2} joints and a base  {each}")


def _measured(
    robot: Robot, states: States, threads: Sequence[int], seconds: float, progress: Progress
) -> tuple[list[Result], list[str]]:
    """Return the results of Remora and of all available peers, and why others are missing."""
    peers, missing = present(robot, max(threads))
    results: list[Result] = []
    for function, label in TIMED.items():
        task = progress.add_task(f"{label}: compiling", total=None)
        cases = list(remora_cases(robot, function, states, threads))
        for peer in peers:
            cases += peer.cases(function, states, threads)
        progress.update(task, description=f"{label}: measuring")
        results += measure(cases, seconds / len(TIMED))
        progress.update(task, description=label, total=1, completed=1)
    for r in results:
        if r.case.deviation > 1e-8:
            missing.append(
                f"{r.case.library} {r.case.call} differs from Remora by {r.case.deviation:.1e}"
            )
    return results, missing


def present(robot: Robot, threads: int) -> tuple[list[Pinocchio | MuJoCo], list[str]]:
    """Return the installed peers that support the robot's joints, and why others are missing."""
    peers: list[Pinocchio | MuJoCo] = []
    missing: list[str] = []
    for kind, package in zip(PEERS, ("pin", "mujoco-core"), strict=True):
        try:
            peers.append(kind(robot, threads))
        except ImportError:
            missing.append(f"{kind.name} is not installed (pip install {package})")
        except RemoraError as error:
            missing.append(f"{kind.name}: {error}")
    return peers, missing


def _timed_compile(robot: Robot, progress: Progress) -> tuple[float, float]:
    task = progress.add_task("from robot to machine code", total=None)
    times = compile_times(robot, repeats=1)
    progress.update(task, total=1, completed=1)
    return times


def _per_body(joints: int, seconds: float, progress: Progress) -> float:
    task = progress.add_task(f"chain of {joints} joints", total=None)
    robot = chain(joints)
    cases = list(remora_cases(robot, "forward_dynamics", random_states(robot, 4096), (1,)))
    (result,) = measure([case for case in cases if case.states > 1], seconds)
    progress.update(task, total=1, completed=1)
    return result.seconds
