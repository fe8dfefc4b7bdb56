"""`remora demo`: a servicer with a floating base captures a tumbling satellite and stops it."""

from __future__ import annotations

import itertools
import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from remora.errors import RemoraError


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="New folder for all files; default: remora-demo, or the next free name.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Whether to open the report in the browser.")
    ] = True,
) -> None:
    """Simulate the capture of a tumbling satellite, and write a report and an animation.

    Example: remora demo --no-open --out demo
    """
    from remora.cli.capture_demo import demonstrated  # late, so that help is quick

    console = Console(highlight=False)
    folder = _new_folder(out)
    try:
        _make(folder)
        written = demonstrated(console, folder)
    except KeyboardInterrupt:
        console.print(f"\n[yellow]interrupted[/]: what was done until then is in {folder}")
        raise typer.Exit(130) from None
    if show and _has_browser():
        webbrowser.open(written.resolve().as_uri())


def _new_folder(out: Path | None) -> Path:
    """Return the path of a folder that does not exist yet."""
    if out is not None:
        if out.exists():
            raise RemoraError(f"{out}: exists already; name a new folder")
        return out
    names = (f"remora-demo-{k}" for k in itertools.count(2))
    return next(
        Path(name)
        for name in ("remora-demo", *itertools.islice(names, 9999))
        if not Path(name).exists()
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise RemoraError(f"{folder}: cannot be created: {error.strerror}; see --out") from None


def _has_browser() -> bool:
    """Return whether a graphical session is available."""
    if not sys.stdout.isatty():
        return False
    screen = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return screen or sys.platform in ("darwin", "win32")
