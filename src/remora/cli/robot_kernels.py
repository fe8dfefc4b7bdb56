"""The work of `remora compile`: compile a function of a robot and write its files."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from remora.codegen import kernel_cache
from remora.codegen.export.objects import TARGETS as TRIPLES
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.traced_function import TracedFunction
from remora.dynamics.kernels.compiled import FUNCTIONS, compile_function
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Robot

TARGETS = ("cpu", "c", "object", "cuda")
#: Names of operations in the output; other operations keep their own names.
_KINDS = {
    "add": "additions", "sub": "additions", "mul": "multiplications",
    "rounded_mul": "multiplications", "div": "divisions",
}  # fmt: skip


def compile_robot(
    robot: Robot,
    function: str,
    target: str,
    triple: str | None,
    dtype: str,
    frame: str | None,
    out: Path | None,
) -> None:
    """Compile a function of a robot, write its files and print what was made.

    Args:
        robot: the robot.
        function: name of the function.
        target: `cpu`, `c`, `object` or `cuda`.
        triple: processor of an object file.
        dtype: `float64` or `float32`.
        frame: body or frame of functions that have a target.
        out: folder for the files; None: the current one.
    """
    fixed = _fixed(robot, function, frame)
    start = time.perf_counter()
    where = "cuda" if target == "cuda" else "cpu"
    kernel = compile_function(FUNCTIONS[function], robot, dtype, fixed=fixed, target=where)
    if target == "cpu":
        kernel.ready()
    elapsed = time.perf_counter() - start
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    if target == "cpu":
        console.print(escape(repr(kernel)))
        console.print(_operations(kernel))
        console.print(f"ready in {elapsed:.3f} s; kept in {escape(str(kernel_cache.folder()))}")
        return
    folder = out or Path.cwd()
    written = _written(kernel, target, folder, triple)
    console.print(_operations(kernel))
    for path in written:
        console.print(escape(str(path)))


def _written(kernel: Any, target: str, folder: Path, triple: str | None) -> list[Path]:
    if target == "cuda":
        folder.mkdir(parents=True, exist_ok=True)
        return [kernel.save_ptx(folder / f"{kernel.name}.ptx")]
    return kernel.save_object(folder, triple) if triple else kernel.save_c(folder)


def check_options(
    function: str, target: str, triple: str | None, dtype: str, out: Path | None
) -> None:
    """Check the options before anything is loaded or compiled.

    Args:
        function: name of the function.
        target: `cpu`, `c`, `object` or `cuda`.
        triple: processor of an object file.
        dtype: `float64` or `float32`.
        out: folder for the files.
    """
    for what, name, known in (
        ("function to compile", function, FUNCTIONS),
        ("target", target, TARGETS),
        ("dtype of a kernel", dtype, DTYPES),
    ):
        if name not in known:
            raise UnknownName(what, name, known)
    if target == "object" and triple is None:
        raise InvalidValue(
            f"--target object needs --triple, the processor: {', '.join(TRIPLES)}, or LLVM's "
            "name of another, such as riscv64-unknown-elf"
        )
    if target != "object" and triple is not None:
        raise InvalidValue(f"--triple {triple} goes with --target object, not {target}")
    if target == "cpu" and out is not None:
        raise InvalidValue("--out goes with --target c, object or cuda; cpu fills the cache")


def _fixed(robot: Robot, function: str, frame: str | None) -> dict[str, Any]:
    """Return the frame as a fixed argument of the function, checked against the robot."""
    wants = "frame" in inspect.signature(FUNCTIONS[function]).parameters
    known = (*robot.bodies.names, *robot.frames.names)
    if not wants and frame is not None:
        raise InvalidValue(f"{function} is not about a frame: leave out --frame {frame}")
    if not wants:
        return {}
    if frame is None:
        raise InvalidValue(f"{function} needs --frame, one of {', '.join(known)}")
    if frame not in known:
        raise UnknownName(f"body or frame of {robot.name}", frame, known)
    return {"frame": frame}


def _operations(kernel: TracedFunction) -> str:
    """Return the operation counts by kind, most frequent first; loops are not counted."""
    if kernel.rolled:
        return "compiled as loops over the bodies"
    counts: dict[str, int] = {}
    for op, n in kernel.graph.count().items():
        kind = _KINDS.get(op, op)
        counts[kind] = counts.get(kind, 0) + n
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{n:,} {kind}" for kind, n in ordered)
    return f"operations: {sum(counts.values()):,} ({listed})"
