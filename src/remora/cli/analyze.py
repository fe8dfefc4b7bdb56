"""`remora analyze`: one command for each analysis of `rm.analyze`, with the options it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

import remora as rm
from remora.cli.console import Command, Group
from remora.cli.options import Inertia, MeshRoot, Quiet, RobotFile
from remora.errors import InvalidValue, UnknownName

_Out: TypeAlias = Annotated[
    Path,
    typer.Option(
        metavar="DIR", help="Folder for the page, the pictures and the data; created if missing."
    ),
]
_Frame: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Frame or body; default: the last frame that the arm moves."),
]
_Base: TypeAlias = Annotated[
    str, typer.Option(metavar="BASE", help="fixed, flying (actuated) or floating.")
]
_Plane: TypeAlias = Annotated[
    str | None, typer.Option(metavar="PLANE", help="xy, xz or yz; default: in space.")
]
_Measure: TypeAlias = Annotated[
    str, typer.Option(metavar="MEASURE", help="volume, condition, smallest or largest.")
]
_Over: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JOINT",
        help="Joint of the map, twice; default: the two with the largest effect.",
    ),
]
_Run: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of a recorded run; default: a path through the joints' ranges.",
    ),
]
_Samples: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Number of samples.")]
_Threads: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="CPU threads; 0: one per processor.")
]


class _Analyses(Group):
    """The analyses; another name is refused with the list of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the analysis."""
        if args[0] not in self.commands:
            raise UnknownName("analysis", args[0], self.commands)
        return super().resolve_command(ctx, args)


analyze = typer.Typer(
    cls=_Analyses, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@analyze.callback()
def _described() -> None:
    """Analyse a robot: one HTML page, its pictures (PNG) and its data (NPZ, CSV).

    Example: remora analyze workspace servicer --out analysis
    """


@analyze.command(cls=Command)
def workspace(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    plane: _Plane = None,
    measure: _Measure = "volume",
    samples: _Samples = 1_000_000,
    cells: Annotated[int, typer.Option(metavar="N", help="Cells per side.")] = 100,
    threads: _Threads = 0,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    quiet: Quiet = False,
) -> None:
    """Compute what a frame reaches with a fixed base; repeat the command to resume."""
    _write("workspace", **locals())


@analyze.command(cls=Command)
def manipulability(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    base: _Base = "floating",
    plane: _Plane = None,
    measure: _Measure = "volume",
    over: _Over = None,
    threads: _Threads = 0,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Map the manipulability over two joints."""
    _write("manipulability", **locals())


@analyze.command(cls=Command)
def coupling(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    over: _Over = None,
    threads: _Threads = 0,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Map how fast a floating base rotates when two joints move."""
    _write("coupling", **locals())


@analyze.command(cls=Command)
def wheels(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    run: _Run = None,
    capacity: Annotated[
        float | None,
        typer.Option(
            metavar="NMS",
            help="Momentum capacity of each wheel, N m s; default: by its speed limit.",
        ),
    ] = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Compare the momentum envelope of the wheels with the demand of the arm."""
    _write("wheels", **locals())


@analyze.command(cls=Command)
def conditioning(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    base: _Base = "floating",
    plane: _Plane = None,
    run: _Run = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Find singularities and joint limits that a path comes close to."""
    _write("conditioning", **locals())


@analyze.command(cls=Command)
def sensitivity(
    robot: RobotFile,
    out: _Out,
    frame: _Frame = None,
    base: _Base = "floating",
    error: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A standard deviation, as a fraction (mass, inertia) or in m (com, length), such "
            "as mass=0.01 or arm.com=0.002; repeat it for several.",
        ),
    ] = None,
    samples: _Samples = 500,
    run: _Run = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    quiet: Quiet = False,
) -> None:
    """Compute how errors of the model move the end of a path; repeat it to resume."""
    options: dict[str, Any] = {**locals(), "error": deviations(error or [])}
    _write("sensitivity", **options)


@analyze.command(cls=Command)
def payload(
    robot: RobotFile,
    out: _Out,
    run: Annotated[Path, typer.Option(metavar="DIR", help="Folder of a recorded run.")],
    frame: _Frame = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
) -> None:
    """Identify what a run carried at a frame; the robot is the one without it."""
    _write("payload", **locals())


def deviations(texts: list[str]) -> dict[str, float]:
    """Return the standard deviations of `--error NAME=VALUE`."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidValue(f"--error {text!r} must be NAME=VALUE, such as mass=0.01") from None
    return found


def _write(
    analysis: str,
    robot: str,
    out: Path,
    frame: str | None,
    mesh_root: Path | None,
    inertia: str | None,
    quiet: bool | None = None,
    **options: Any,
) -> None:
    """Analyse a robot and print the path of the page; those with `quiet` have a progress bar."""
    loaded = rm.load(robot, mesh_root=mesh_root, inertia=inertia)
    if quiet is None:
        typer.echo(rm.analyze(loaded, analysis, out, frame, **options))
        return
    from rich.console import Console  # late, so that help is quick
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as bar:
        task = bar.add_task(analysis, total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        page = rm.analyze(loaded, analysis, out, frame, progress=progress, **options)
    typer.echo(page)
