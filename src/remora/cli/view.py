"""`remora view`: show a run, a batch or a robot in the browser, or write an HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import remora as rm
from remora.cli.options import Force, Inertia, MeshRoot, NoDynamics, print_written, refuse_existing
from remora.errors import InvalidValue


def view(
    thing: Annotated[
        str,
        typer.Argument(
            metavar="RUN|BATCH|ROBOT",
            help="The folder of a run or a batch, a robot file (.urdf, .xacro, .xml, .sdf, .yaml) "
            "or the name of a bundled robot.",
        ),
    ],
    run: Annotated[
        list[int] | None,
        typer.Option(
            metavar="I", help="Index of a run of a batch; repeat the option for several runs."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", help="Port of the page; 0: any free port.")
    ] = 8080,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address without opening the browser.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a run as one HTML file that plays from disk, and exit."
        ),
    ] = None,
    force: Force = False,
    scene: Annotated[
        str | None,
        typer.Option(
            metavar="SCENE",
            help="space, studio or dark; default: space for runs, studio for robots.",
        ),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="The same as --scene dark.")] = False,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    no_dynamics: NoDynamics = False,
) -> None:
    """View a run or runs of a batch, or move a robot's joints and see its base recoil.

    The page is served on 127.0.0.1 only.

    A run: remora view runs/first

    Runs of a batch, in one scene: remora view batches/first --run 3 --run 7

    A robot: remora view servicer

    A stand-alone file: remora view runs/first --html first.html
    """
    from remora.viewer.report.animation_html import save_html  # late, so that help is quick
    from remora.viewer.view import viewable

    shown = viewable(thing, mesh_root, inertia, not no_dynamics)
    if html is not None:
        if not isinstance(shown, rm.Recording):
            what = "a batch" if isinstance(shown, rm.Batch) else "a robot"
            raise InvalidValue(f"--html is for runs; {thing} is {what}: leave it out")
        refuse_existing(html, force)
        file = save_html(shown, html, scene=scene, dark=dark, mesh_root=mesh_root)
        print_written(file, ", a stand-alone page")
        return
    if run and not isinstance(shown, rm.Batch):
        raise InvalidValue(f"--run is for batches; {thing} is not one: leave it out")
    if isinstance(shown, rm.Batch):
        chosen = run or ()
        shown.view(*chosen, port=port, open=not no_open, dark=dark, mesh_root=mesh_root).wait()
        return
    rm.view(shown, port, not no_open, scene=scene, dark=dark, mesh_root=mesh_root).wait()
