"""`remora render`: write a film or a still of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

import remora as rm
from remora.cli.options import Force, MeshRoot, print_written, refuse_existing
from remora.errors import InvalidValue


def render(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Films (.mp4, .gif) and stills (.png) to write, by suffix."
        ),
    ],
    at: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time of the still, s; default: middle of the run."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Length of the film, s; default: that of the run, at most 12 s."
        ),
    ] = None,
    fps: Annotated[int, typer.Option(metavar="N", help="Frames per second.")] = 20,
    size: Annotated[str, typer.Option(metavar="WxH", help="Width and height, px.")] = "1280x720",
    camera: Annotated[
        str, typer.Option(metavar="PATH", help="Camera path: still, sweep, approach or orbit.")
    ] = "sweep",
    scene: Annotated[str, typer.Option(metavar="SCENE", help="space, studio or dark.")] = "space",
    caption: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Text at the bottom; default: the robot's name."),
    ] = None,
    no_clock: Annotated[bool, typer.Option("--no-clock", help="Hide the time.")] = False,
    show: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OVERLAY",
            help="Overlay to show: momentum, reactions, wrenches, ...; repeat it for several.",
        ),
    ] = None,
    browser: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Executable of Chromium or Chrome; default: searched on PATH."
        ),
    ] = None,
    force: Force = False,
    mesh_root: MeshRoot = None,
) -> None:
    """Write a film (.mp4, .gif) or a still (.png) of a run, without a window.

    The pictures are drawn by Chromium or Chrome, which must be installed; nothing is downloaded.

    A film: remora render runs/first first.mp4

    A still: remora render runs/first first.png --at 2.5
    """
    from remora.viewer.film.render import writer_of  # late, so that help is quick
    from remora.viewer.page.server import viser_module

    viser_module()
    for file in files:
        writer_of(file)
        refuse_existing(file, force)
    found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", size)
    if found is None:
        raise InvalidValue(f"--size {size}: width and height as in 1280x720")
    recording = rm.open_run(run, mesh_root)
    for file in files:
        rm.render(
            recording, file, at=at, seconds=seconds, fps=fps, camera=camera, caption=caption,
            size=(int(found[1]), int(found[2])), clock=not no_clock, scene=scene,
            show=tuple(show or ()), browser=browser, mesh_root=mesh_root,
        )  # fmt: skip
        print_written(file)
