"""Command-line options shared by all commands that load a robot file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

#: `--mesh-root`: as in `rm.load`.
MeshRoot: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="The folder that the meshes, and the files that others include, lie in. Default: the "
        "package that the file is in, else its folder.",
    ),
]
#: `--inertia`: as in `rm.load`.
Inertia: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="An inertia that no body can have: warn (default) uses it, strict refuses the robot, "
        "repair takes the nearest possible one.",
    ),
]
#: `--no-dynamics`: as `rm.load(..., dynamics=False)`.
NoDynamics: TypeAlias = Annotated[
    bool,
    typer.Option("--no-dynamics", help="Kinematics only, for files without masses."),
]
