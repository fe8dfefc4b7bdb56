"""`remora compile`: compile a function of a robot to machine code, C, an object file or PTX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import remora as rm
from remora.cli.options import Inertia, MeshRoot, NoDynamics, RobotFile

#: Names of `remora.codegen.export.objects.TARGETS`, for the help.
TRIPLES = (
    "riscv64",
    "riscv32",
    "cortex-r5",
    "cortex-r5-big",
    "cortex-r52",
    "cortex-m7",
    "aarch64",
    "leon",
    "ppc",
    "x86_64",
)


def compile(
    robot: RobotFile,
    function: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A function of the library, such as inverse_dynamics, mass_matrix or jacobian; an "
            "unknown name prints all.",
        ),
    ] = "forward_dynamics",
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="cpu: machine code for this computer, stored in the cache. c: C99 source and a "
            "header. object: an object file for another processor, see --triple. cuda: PTX for "
            "NVIDIA GPUs.",
        ),
    ] = "cpu",
    triple: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"The processor of an object file: {', '.join(TRIPLES)}, or the LLVM name of "
            "another.",
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="float64 or float32.")] = "float64",
    frame: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Body or frame of functions such as jacobian."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the files of c, object and cuda; created if missing."
        ),
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
    from remora.cli.robot_kernels import check_options, compile_robot  # late: help is quick

    check_options(function, target, triple, dtype, out)
    loaded = rm.load(robot, mesh_root=mesh_root, inertia=inertia, dynamics=not no_dynamics)
    compile_robot(loaded, function, target, triple, dtype, frame, out)
