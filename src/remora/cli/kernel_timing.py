"""The work of `remora bench`: time the compiled functions of a robot on this machine.

Timings are interleaved, and the minimum over all rounds is reported, since it is the least
disturbed by other load on the machine. The comparison with other libraries in `benchmarks/` of the
repository times with the same functions.
"""

from __future__ import annotations

import gc
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
from remora.codegen.kernel import Kernel
from remora.codegen.llvm import host as cpu
from remora.dynamics.kernels.compiled import FUNCTIONS, compile_function
from remora.model.robot import Robot
from remora.model.state import random_state

#: The timed functions and their names in the tables.
TIMED = {
    "forward_dynamics": "forward dynamics",
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "jacobian": "Jacobian",
}


SLOT = 0.01  # s, for one case in one round


@dataclass(frozen=True)
class Case:
    """One case to time.

    Attributes:
        function: key of TIMED.
        library: name of the library.
        call: name of the library's function.
        states: evaluations per call.
        threads: number of threads.
        dtype: floating-point type.
        run: the callable.
        arguments: its arguments.
        deviation: from Remora's NumPy reference, relative; NaN if it was not compared.
    """

    function: str
    library: str
    call: str
    states: int
    threads: int
    dtype: str
    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    deviation: float = math.nan


@dataclass(frozen=True)
class States:
    """A batch of states of a robot; x is tau or vdot."""

    q: Array
    v: Array
    x: Array

    def arguments(self, function: str, alone: bool = False) -> tuple[Array, ...]:
        """Return a function's arguments as contiguous arrays; `alone`: the first state only."""
        count = {"forward_dynamics": 3, "inverse_dynamics": 3}.get(function, 1)
        chosen = (self.q, self.v, self.x)[:count]
        return tuple(np.ascontiguousarray(a[0] if alone else a) for a in chosen)


def random_states(robot: Robot, n: int) -> States:
    """Return n random states with random forces (or accelerations)."""
    q, v = random_state(robot, 0, (n,))
    return States(q, v, np.random.default_rng(1).normal(size=(n, robot.nv)))


def reference(robot: Robot, function: str, states: States) -> Array:
    """Return the result of the uncompiled function for the first state."""
    extra = {"frame": robot.bodies[-1].name} if function == "jacobian" else {}
    return FUNCTIONS[function](robot, *states.arguments(function, alone=True), **extra)


def relative(value: Array, wanted: Array) -> float:
    """Return the largest difference relative to the largest value."""
    return float(np.max(np.abs(value - wanted)) / np.max(np.abs(wanted)))


@dataclass(frozen=True)
class Result:
    """A case and the shortest time per evaluation, in seconds."""

    case: Case
    seconds: float


def kernel_of(robot: Robot, function: str, dtype: str = "float64") -> Kernel:
    """Return the kernel of a function in TIMED; the Jacobian is that of the last body."""
    fixed = {"frame": robot.bodies[-1].name} if function == "jacobian" else None
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
from remora.cli.kernel_timing import kernel_of
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


# The command -------------------------------------------------------------------------------------


def benchmark(robot: Robot, batch: int | None, threads: int, seconds: float, on_gpu: bool) -> None:
    """Measure a robot's functions and print the times.

    Args:
        robot: the robot.
        batch: states in a batch; None: 4096, or as many as fill the GPU.
        threads: threads for the batch, beside one; 0: one per processor.
        seconds: approximate duration.
        on_gpu: whether CUDA kernels are measured instead.
    """
    console = Console(highlight=False, emoji=False)
    title = escape(f"{robot.name}: {len(robot.bodies)} bodies, nv = {robot.nv}")
    if on_gpu:
        bench_gpu.bench_gpu(robot, batch, seconds, title, console)
        return
    console.print(escape(described(machine())))
    counts = sorted({1, threads or os.cpu_count() or 1})
    states = random_states(robot, batch or 4096)
    table = Table(title=f"{title}, float64", title_justify="left", box=None, pad_edge=False)
    table.add_column("µs per evaluation", no_wrap=True)
    batches = (f"batch of {len(states.q)},\n{n} thread{'s' * (n > 1)}" for n in counts)
    for name in ("one call", *batches):
        table.add_column(name, justify="right", no_wrap=True)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True))
    with bar as progress:
        for function, label in TIMED.items():
            task = progress.add_task(f"{label}: compiling", total=None)
            cases = list(remora_cases(robot, function, states, counts))
            progress.update(task, description=f"{label}: measuring")
            results = measure(cases, seconds / len(TIMED))
            table.add_row(label, *(f"{1e6 * result.seconds:.3f}" for result in results))
            progress.update(task, description=label, total=1, completed=1)
        task = progress.add_task("from robot to machine code", total=None)
        first, again = compile_times(robot, repeats=1)
        progress.update(task, total=1, completed=1)
    console.print(table)
    console.print(
        f"\nfrom robot to machine code (forward dynamics): first {first:.2f} s, "
        f"from the cache {1e3 * again:.1f} ms"
    )
