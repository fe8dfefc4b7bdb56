"""`remora analyze`: workspace, manipulability, coupling and more, as pictures and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import remora as rm
from remora.cli.robot_options import Inertia, MeshRoot
from remora.errors import UnknownName


def analyze(
    robot: Annotated[
        str, typer.Argument(metavar="ROBOT", help="A robot file or the name of a bundled robot.")
    ],
    what: Annotated[
        str,
        typer.Argument(
            metavar="ANALYSIS",
            help="workspace, manipulability, coupling, wheels, conditioning, sensitivity or "
            "payload.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder for the page, the pictures and the data; created if missing.",
        ),
    ],
    frame: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Frame or body; default: the last frame that the arm moves."
        ),
    ] = None,
    base: Annotated[
        str,
        typer.Option(
            metavar="BASE",
            help="manipulability, conditioning, sensitivity: fixed, flying (actuated) or floating.",
        ),
    ] = "floating",
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="wheels, conditioning, sensitivity, payload: folder of a recorded run; default: a "
            "path through the joints' ranges (payload needs a run).",
        ),
    ] = None,
    error: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="sensitivity: a standard deviation, as a fraction (mass, inertia) or in m (com, "
            "length), such as mass=0.01 or arm.com=0.002; repeat it for several.",
        ),
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(
            metavar="NMS",
            help="wheels: momentum capacity of each wheel, N m s; default: by its speed limit.",
        ),
    ] = None,
    plane: Annotated[
        str | None,
        typer.Option(metavar="PLANE", help="workspace: xy, xz or yz; default: in space."),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="MEASURE",
            help="workspace, manipulability: volume, condition, smallest or largest.",
        ),
    ] = "volume",
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of samples; default: workspace 1,000,000, sensitivity 500."
        ),
    ] = None,
    cells: Annotated[int, typer.Option(metavar="N", help="workspace: cells per side.")] = 100,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT",
            help="manipulability, coupling: joint of the map, twice; default: the two with the "
            "largest effect.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="CPU threads; 0: one per processor.")
    ] = 0,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Analyse a robot: one HTML page, its pictures (PNG) and its data (NPZ, CSV).

    After an interruption, the same command resumes a workspace or a sensitivity.

    Example: remora analyze servicer workspace --out analysis
    """
    from remora.cli.robot_analyses import ANALYSES, write_analysis  # late: help is quick

    if what not in ANALYSES:
        raise UnknownName("analysis", what, ANALYSES)
    options: dict[str, Any] = {
        "base": base, "plane": plane, "measure": measure, "cells": cells, "over": over,
        "samples": 1_000_000 if samples is None else samples,
        "samples_given": samples is not None,
        "threads": threads, "quiet": quiet, "out": out, "run": run, "error": error,
        "capacity": capacity,
    }  # fmt: skip
    loaded = rm.load(robot, mesh_root=mesh_root, inertia=inertia)
    typer.echo(write_analysis(loaded, what, frame, options))
