"""`remora info`: print the contents of a robot file."""

from __future__ import annotations

import json
import warnings
from typing import Annotated

import typer
from rich.console import Console

import remora as rm
from remora.cli.options import Inertia, MeshRoot, NoDynamics, RobotFile
from remora.errors import ModelWarning


def info(
    file: RobotFile,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="JOINT",
            help="Joint type of the base: free, fixed, planar, spherical, ...; default: that of "
            "the file.",
        ),
    ] = None,
    keep_fixed: Annotated[
        bool, typer.Option("--keep-fixed", help="Keep links on fixed joints as bodies.")
    ] = False,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    no_dynamics: NoDynamics = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all parameters except shapes, as JSON.")
    ] = False,
) -> None:
    """Print a robot's tree, joints, masses, limits, totals and warnings.

    Example: remora info servicer

    On a fixed base: remora info arm.urdf --base fixed
    """
    from remora.cli import robot_tables  # late, so that help and completion are quick

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # all warnings are printed below
        robot = rm.load(
            file,
            base,
            not keep_fixed,
            mesh_root=mesh_root,
            inertia=inertia,
            dynamics=not no_dynamics,
        )
    if as_json:
        typer.echo(json.dumps(robot_tables.as_dictionary(robot), indent=2))
        return
    robot_tables.print_robot(robot, Console(highlight=False, emoji=False))
