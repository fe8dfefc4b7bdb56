"""The command line: `remora demo`, `info`, `run`, `robots`, `view`, `report`, `analyze`, ..."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from remora import __version__
from remora.cli import (
    analyze,
    bench,
    bundled,
    campaign,
    compile,
    demo,
    info,
    render,
    report,
    run,
    view,
)
from remora.cli.console import Command, Group, trimmed_output
from remora.errors import RemoraError
from remora.simulation.engine.interrupts import interruptible

app = typer.Typer(
    name="remora",
    help="Robots mounted on spacecraft: look at a model, see it move, make it fast.",
    no_args_is_help=True,
    cls=Group,
    pretty_exceptions_enable=False,
)
#: The commands, in the order of the help.
COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "robots": bundled.robots,
    "scenarios": bundled.scenarios,
    "info": info.info,
    "run": run.run,
    "view": view.view,
    "render": render.render,
    "report": report.report,
    "analyze": analyze.analyze,
    "campaign": campaign.campaign,
    "compile": compile.compile,
    "bench": bench.bench,
}
for _name, _function in COMMANDS.items():
    app.command(_name, cls=Command)(_function)


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
