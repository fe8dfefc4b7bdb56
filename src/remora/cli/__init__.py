"""The command line: `remora demo`, `info`, `run`, `robots`, `view`, `report`, `analyze`, ..."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

from remora import __version__
from remora.cli.console import Group, placeholder, trimmed_output
from remora.errors import RemoraError
from remora.simulation.engine.interrupts import interruptible

app = typer.Typer(
    name="remora",
    help="Robots mounted on spacecraft: inspect, simulate, view and compile models.",
    no_args_is_help=True,
    cls=Group,
    pretty_exceptions_enable=False,
)
#: The commands in the order of the help: the file in `cli/`, and the first line of the docstring.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "demo",
        "Simulate the capture of a tumbling satellite, and write a report and an animation.",
    ),
    "robots": ("bundled", "List the bundled robots, or print the file of one."),
    "scenarios": ("bundled", "List the bundled scenarios, or print the file of one."),
    "info": ("info", "Print a robot's tree, joints, masses, limits, totals and warnings."),
    "run": ("run", "Simulate a scenario file: robot, initial state, inputs and phases."),
    "view": (
        "view",
        "View a run or runs of a batch, or move a robot's joints and see its base recoil.",
    ),
    "render": (
        "render",
        "Write a film (.mp4, .gif) or a still (.png) of a run, without a window.",
    ),
    "report": (
        "report",
        "Write a report of a run: one HTML file with tables, figures and the animation.",
    ),
    "analyze": (
        "analyze",
        "Analyse a robot: one HTML page, its pictures (PNG) and its data (NPZ, CSV).",
    ),
    "campaign": ("campaign", "Simulate a Monte Carlo study: dispersed runs of a scenario."),
    "compile": (
        "compile",
        "Compile a function of a robot to machine code, C, an object file or a GPU kernel.",
    ),
    "bench": ("bench", "Time the compiled functions of a robot on this machine."),
}
for _name, (_file, _help) in COMMANDS.items():
    app.command(_name, help=_help, cls=placeholder(f"{__name__}.{_file}"))(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remora {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Robots mounted on spacecraft: inspect, simulate, view and compile models."""


def _show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning on one line, without its source location."""
    typer.echo(f"warning: {message}", err=True)


def main() -> None:
    """Run the command line; bad input gives an error message and exit code 2.

    Ctrl-C also works in commands that a script started in the background. Unless a command sets
    another exit code, it is then 130, as in shells.
    """
    warnings.showwarning = _show
    try:
        with interruptible(), trimmed_output():
            app()
    except RemoraError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
