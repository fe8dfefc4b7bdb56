"""`remora report`: write a report of a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remora.cli.robot_options import MeshRoot
from remora.errors import InvalidValue
from remora.simulation.storage.reading import open_run
from remora.viewer.report.report import report as write


def report(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="The file to write; default: beside the folder."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Heading of the report; default: the robot's name.")
    ] = None,
    no_animation: Annotated[
        bool, typer.Option("--no-animation", help="Leave the animation out.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    mesh_root: MeshRoot = None,
) -> None:
    """Write a report of a run: one HTML file with tables, figures and the animation.

    The file is self-contained: it makes no network requests and can be opened from disk.

    Example: remora report run.zarr --out report.html
    """
    recording = open_run(run, mesh_root)
    folder = run.resolve()
    beside = folder.with_name(folder.name.removesuffix(".zarr") + ".html")
    file = out or beside
    if file.is_file() and not force:
        raise InvalidValue(f"{file}: exists already; --force replaces it, --out names another")
    typer.echo(write(recording, file, title, not no_animation))
