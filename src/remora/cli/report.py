"""`remora report`: write a report of a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import remora as rm
from remora.cli.options import Force, MeshRoot, refuse_existing


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="The file to write; default: the name of the folder with .html, beside it.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the report; default: the robot's name."),
    ] = None,
    no_animation: Annotated[
        bool, typer.Option("--no-animation", help="Omit the animation.")
    ] = False,
    force: Force = False,
    mesh_root: MeshRoot = None,
) -> None:
    """Write a report of a run: one HTML file with tables, figures and the animation.

    The file is self-contained: it makes no network requests and can be opened from disk.

    Example: remora report run.zarr --out report.html
    """
    recording = rm.open_run(run, mesh_root)
    folder = run.resolve()
    beside = folder.with_name(folder.name.removesuffix(".zarr") + ".html")
    file = out or beside
    refuse_existing(file, force)
    typer.echo(rm.report(recording, file, title, not no_animation))
