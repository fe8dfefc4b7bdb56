"""`remora bench`: its options."""

from __future__ import annotations

import math
from typing import Annotated

import typer

import remora as rm
from remora.cli.options import Inertia, MeshRoot, RobotFile
from remora.errors import InvalidValue


def bench(
    robot: RobotFile = "servicer",
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="States in a batch; default: 4096, on a GPU as many as fill it."
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            metavar="N", help="Threads of a second measurement of the batch; 0: one per processor."
        ),
    ] = 0,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="Approximate duration, s.")
    ] = 10.0,
    on_gpu: Annotated[
        bool, typer.Option("--gpu", help="Measure CUDA kernels on the GPU instead; needs CuPy.")
    ] = False,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Time the compiled functions of a robot on this machine.

    Times are in microseconds per evaluation in float64. Close other programs, and increase
    --seconds for more stable results.

    Example: remora bench servicer --threads 2 --seconds 20

    On a GPU: remora bench servicer --gpu
    """
    if batch is not None and batch < 2:
        raise InvalidValue(f"--batch {batch}: a batch has at least 2 states")
    if threads < 0 or seconds <= 0 or not math.isfinite(seconds):
        raise InvalidValue("--threads must be 0 or more, --seconds more than 0")
    if on_gpu and threads:
        raise InvalidValue("--threads is for the CPU: leave it out with --gpu")
    from remora.cli.kernel_timing import benchmark  # late, so that help is quick

    loaded = rm.load(robot, mesh_root=mesh_root, inertia=inertia)
    benchmark(loaded, batch, threads, seconds, on_gpu)
