"""`remora compile`: compile a function of a robot to machine code, C, an object file or PTX."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from remora.cli.completion import complete_robot
from remora.cli.robot_options import Inertia, MeshRoot, NoDynamics
from remora.codegen import kernel_cache
from remora.codegen.export.objects import TARGETS as TRIPLES
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.traced_function import TracedFunction
from remora.dynamics.kernels.compiled import FUNCTIONS, compile_function
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.formats.load import load
from remora.model.robot import Robot

TARGETS = ("cpu", "c", "object", "cuda")
#: Names of operations in the output; other operations keep their own names.
_KINDS = {
    "add": "additions", "sub": "additions", "mul": "multiplications",
    "rounded_mul": "multiplications", "div": "divisions",
}  # fmt: skip


def compile(
    robot: Annotated[
        str,
        typer.Argument(
            help="A robot file (URDF, MJCF, SDF, YAML) or a bundled robot's name.",
            autocompletion=complete_robot,
        ),
    ],
    function: Annotated[
        str, typer.Option(help="A function of the library; a wrong name lists those there are.")
    ] = "forward_dynamics",
    target: Annotated[
        str,
        typer.Option(
            help="cpu: machine code for this computer, kept in the cache. c: C99 source and a "
            "header. object: an object file for another processor, see --triple. cuda: PTX for "
            "NVIDIA GPUs."
        ),
    ] = "cpu",
    triple: Annotated[
        str | None,
        typer.Option(
            help=f"The processor of an object file: {', '.join(TRIPLES)}, or LLVM's name of "
            "another."
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    frame: Annotated[
        str | None,
        typer.Option(help="The body or frame that functions such as jacobian are about."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the files of c, object and cuda; made if missing."),
    ] = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    no_dynamics: NoDynamics = False,
) -> None:
    """Compile a function of a robot to machine code, C, an object file or a GPU kernel.

    The robot's parameters are compiled in as constants. No compiler is needed on this computer.

    For this computer, stored in the cache: remora compile servicer

    For a frame: remora compile servicer --function jacobian --frame tool

    C99 with a test program: remora compile servicer --target c --out build

    For LEON: remora compile servicer --target object --triple leon --out build

    For a GPU (none is needed here): remora compile servicer --target cuda --out build
    """
    _check(function, target, triple, dtype, out)
    loaded = load(robot, mesh_root=mesh_root, inertia=inertia, dynamics=not no_dynamics)
    fixed = _fixed(loaded, function, frame)
    start = time.perf_counter()
    where = "cuda" if target == "cuda" else "cpu"
    kernel = compile_function(FUNCTIONS[function], loaded, dtype, fixed=fixed, target=where)
    elapsed = time.perf_counter() - start
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    if target == "cpu":
        console.print(escape(repr(kernel)))
        console.print(_operations(kernel))
        console.print(f"ready in {elapsed:.3f} s; kept in {escape(str(kernel_cache.folder()))}")
        return
    folder = out or Path.cwd()
    try:
        written = _written(kernel, target, folder, triple)
    except OSError as error:
        raise RemoraError(f"cannot write to {str(folder)!r}: {error.strerror}") from None
    console.print(_operations(kernel))
    for path in written:
        console.print(escape(str(path)))


def _written(kernel: Any, target: str, folder: Path, triple: str | None) -> list[Path]:
    if target == "cuda":
        folder.mkdir(parents=True, exist_ok=True)
        return [kernel.save_ptx(folder / f"{kernel.name}.ptx")]
    return kernel.save_object(folder, triple) if triple else kernel.save_c(folder)


def _check(function: str, target: str, triple: str | None, dtype: str, out: Path | None) -> None:
    """Check the options before anything is loaded or compiled."""
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
    wants = "target" in inspect.signature(FUNCTIONS[function]).parameters
    known = (*robot.bodies.names, *robot.frames.names)
    if not wants and frame is not None:
        raise InvalidValue(f"{function} is not about a frame: leave out --frame {frame}")
    if not wants:
        return {}
    if frame is None:
        raise InvalidValue(f"{function} needs --frame, one of {', '.join(known)}")
    if frame not in known:
        raise UnknownName(f"body or frame of {robot.name}", frame, known)
    return {"target": frame}


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
