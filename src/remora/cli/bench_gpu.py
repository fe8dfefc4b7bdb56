"""`remora bench --gpu`: benchmark of the CUDA kernels, in evaluations per second."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from remora.codegen.gpu.cuda_kernel import CudaKernel, cupy_with_device
from remora.dynamics.kernels.compiled import FUNCTIONS, compile_function
from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.model.state import random_state

#: The timed functions and their names in the tables.
TIMED = {
    "forward_dynamics": "forward dynamics",
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "jacobian": "Jacobian",
    "forward_dynamics_derivatives": "derivatives",
}
#: Maximum number of states in a batch, and maximum bytes of a batch.
MOST_STATES, MOST_BYTES = 1 << 22, 2 << 30
_CHECKED = 16
_DISTINCT = 256


@dataclass(frozen=True)
class Rate:
    """The measured throughput of a kernel.

    Attributes:
        function: key of TIMED.
        dtype: floating-point type.
        layout: memory layout of all arrays, "rows" or "columns".
        states: number of states in the batch.
        per_second: evaluations per second.
        bytes: bytes read and written per evaluation.
        entries: kernel launches per call.
        registers: maximum registers per thread.
        local_bytes: maximum local memory per thread (register spills).
        first_s: time from robot to first result, s.
        deviation: from the NumPy function, relative to the largest value.
    """

    function: str
    dtype: str
    layout: str
    states: int
    per_second: float
    bytes: int
    entries: int
    registers: int
    local_bytes: int
    first_s: float
    deviation: float


def functions(robot: Robot) -> list[str]:
    """Return the functions timed for a robot; for a large one, those compiled as loops."""
    if len(robot.bodies) > 60:
        return ["forward_dynamics", "inverse_dynamics"]
    if len(robot.bodies) > 10:  # compiling the derivatives would take minutes
        return ["forward_dynamics", "inverse_dynamics", "mass_matrix", "jacobian"]
    return list(TIMED)


def cuda_kernel(robot: Robot, function: str, dtype: str) -> CudaKernel:
    """Return the kernel of a function in TIMED; the Jacobian is that of the last body."""
    fixed = {"frame": robot.bodies[-1].name} if function == "jacobian" else None
    return compile_function(FUNCTIONS[function], robot, dtype, fixed=fixed, target="cuda")


def some_states(robot: Robot, kernel: CudaKernel) -> list[Any]:
    """Return random states and forces for a kernel, as host arrays."""
    q, v = random_state(robot, 0, (_DISTINCT,))
    made = {"q": q, "v": v}
    rest = np.random.default_rng(1).normal(size=v.shape)
    return [made.get(s.name, rest).astype(kernel.dtype) for s in kernel.inputs]


def rate(
    robot: Robot,
    function: str,
    dtype: str,
    layout: str = "rows",
    states: int | None = None,
    seconds: float = 0.5,
) -> Rate:
    """Time a function on the current GPU: the minimum over many launches with a full batch."""
    cupy = cupy_with_device()
    start = time.perf_counter()
    kernel = cuda_kernel(robot, function, dtype)
    numbers = sum(s.size for s in (*kernel.inputs, *kernel.outputs))
    size = numbers * np.dtype(dtype).itemsize
    n = states or min(MOST_STATES, MOST_BYTES // size)
    host = some_states(robot, kernel)
    order = "C" if layout == "rows" else "F"
    few = kernel(*(cupy.asarray(a[:_CHECKED], order=order) for a in host))
    cupy.cuda.Device().synchronize()
    first = time.perf_counter() - start
    repeat = cupy.arange(n) % _DISTINCT
    arrays = [cupy.asarray(cupy.asarray(a)[repeat], order=order) for a in host]
    out = kernel(*arrays)
    if layout == "rows":
        made = [cupy.ascontiguousarray(r) for r in _listed(out)]
        out = made[0] if len(made) == 1 else tuple(made)
    kernel(*arrays, out=out)
    shortest, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        kernel(*arrays, out=out)
        after.record()
        after.synchronize()
        shortest = min(shortest, cupy.cuda.get_elapsed_time(before, after) * 1e-3)
    entries = kernel.loaded(layout).entries
    registers = max(entry.num_regs for entry in entries)
    local = max(entry.local_size_bytes for entry in entries)
    return Rate(
        function, dtype, layout, n, n / shortest, size, len(entries), registers, local,
        first, _deviation(robot, function, host, few),
    )  # fmt: skip


def _deviation(robot: Robot, function: str, host: list[Any], few: Any) -> float:
    extra = {"frame": robot.bodies[-1].name} if function == "jacobian" else {}
    arguments = [np.asarray(a[:_CHECKED], float) for a in host]
    wanted = _listed(FUNCTIONS[function](robot, *arguments, **extra))
    return max(
        float(np.max(np.abs(a.get() - b)) / np.max(np.abs(b))) if np.any(b) else 0.0
        for a, b in zip(_listed(few), wanted, strict=True)
    )


def _listed(results: Any) -> list[Any]:
    return [results] if hasattr(results, "shape") else list(results)


def device_name() -> str:
    """Return the name of the current GPU."""
    cupy = cupy_with_device()
    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return properties["name"].decode()


def print_rates(title: str, rates: list[Rate], console: Console) -> None:
    """Print a row per function, precision and layout."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("on the GPU", no_wrap=True)
    for name in ("per second", "TB/s", "regs", "spilled", "first, s", "off by"):
        table.add_column(name, justify="right", no_wrap=True)
    both = len({r.layout for r in rates}) > 1
    for r in rates:
        table.add_row(
            f"{TIMED[r.function]}, {r.dtype}" + (f", {r.layout}" if both else ""),
            f"{r.per_second:.3g}", f"{r.per_second * r.bytes / 1e12:.2f}", str(r.registers),
            f"{r.local_bytes} B", f"{r.first_s:.2f}", f"{r.deviation:.0e}",
        )  # fmt: skip
    console.print(table)
    console.print(
        "derivatives: of forward dynamics; TB/s: arguments and results; spilled: what a thread's "
        "registers do not hold; off by: from the NumPy functions"
    )


def bench_gpu(
    robot: Robot, batch: int | None, seconds: float, title: str, console: Console
) -> None:
    """Time a robot's functions on the current GPU and print the rates and any refusals."""
    device = device_name()  # raises an error if there is no GPU, before anything is compiled
    rates: list[Rate] = []
    refused: list[str] = []
    bar = Progress(TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True))
    with bar as progress:
        chosen = functions(robot)
        for function in chosen:
            task = progress.add_task(TIMED[function], total=2)
            for dtype in ("float64", "float32"):
                each = seconds / 2 / len(chosen)
                try:
                    rates.append(rate(robot, function, dtype, "columns", batch, each))
                except RemoraError as error:
                    refused.append(f"{TIMED[function]}, {dtype}: {error}")
                progress.advance(task)
    console.print(escape(device))
    print_rates(title, rates, console)
    for line in refused:
        console.print(f"[yellow]not timed:[/] {escape(line)}")
