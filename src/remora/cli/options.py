"""Arguments and options of several commands, and shell completion of bundled names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from remora.errors import InvalidValue

_PACKAGE = Path(__file__).resolve().parents[1]


def complete_robot(incomplete: str) -> list[str]:
    """Return the bundled robots that begin as typed; the shell completes files."""
    return _begun("robots", incomplete)


def complete_scenario(incomplete: str) -> list[str]:
    """Return the bundled scenarios that begin as typed; the shell completes files."""
    return _begun("scenarios", incomplete)


def _begun(folder: str, incomplete: str) -> list[str]:
    names = sorted(file.stem for file in (_PACKAGE / folder).iterdir() if file.is_file())
    return [name for name in names if name.startswith(incomplete)]


#: ROBOT: the robot of a command.
RobotFile: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A robot file (.urdf, .xacro, .xml, .sdf, .yaml) or the name of a bundled robot.",
        autocompletion=complete_robot,
    ),
]
#: `--mesh-root`: as in `rm.load`.
MeshRoot: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder that contains the meshes and included files. Default: the package that "
        "contains the robot file, otherwise its folder.",
    ),
]
#: `--inertia`: as in `rm.load`.
Inertia: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="Treatment of physically impossible inertias: warn uses them (default), strict "
        "refuses the robot, repair uses the nearest possible ones.",
    ),
]
#: `--no-dynamics`: as `rm.load(..., dynamics=False)`.
NoDynamics: TypeAlias = Annotated[
    bool,
    typer.Option("--no-dynamics", help="Kinematics only, for files without masses."),
]
#: `--force`.
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
#: `--quiet`.
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


def refuse_existing(file: Path, force: bool) -> None:
    """Raise if a file exists, unless `--force` is given."""
    if file.is_file() and not force:  # not a device such as /dev/stdout
        raise InvalidValue(f"{file}: exists already; --force replaces it, or name another")


def print_written(file: Path, what: str = "") -> None:
    """Print the path and the size of a file that was written."""
    typer.echo(f"{file}: {file.stat().st_size / 1e6:.2f} MB{what}")
