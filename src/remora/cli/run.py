"""`remora run`: simulate a scenario file."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import remora as rm
from remora.cli.bundled import print_scenarios
from remora.cli.options import Inertia, MeshRoot, Quiet, complete_scenario
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown

if TYPE_CHECKING:
    from remora.simulation.recording.conservation import Conservation
    from remora.simulation.recording.recording import Recording
    from remora.simulation.scenario.scenario import Scenario

#: Maximum number of events printed.
MOST_EVENTS = 12


def run(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="A scenario file (.yaml) or the name of a bundled scenario.",
            autocompletion=complete_scenario,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder to save the run in.", metavar="DIR")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the stopped run in the folder --out.")
    ] = False,
    sample: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Time between samples, s, instead of that in the file."
        ),
    ] = None,
    mesh_root: MeshRoot = None,
    inertia: Inertia = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code", help="Run Python components that the file names; read them first."
        ),
    ] = False,
    quiet: Quiet = False,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the bundled scenarios and exit.")
    ] = False,
    print_schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of scenario files.")
    ] = False,
    print_components: Annotated[
        bool,
        typer.Option("--components", help="Print the settings of all components, in Markdown."),
    ] = False,
) -> None:
    """Simulate a scenario file: robot, initial state, inputs and phases.

    Example: remora run unfold --out unfold.run

    Resume a stopped run: remora run unfold --out unfold.run --resume
    """
    console = Console(highlight=False, emoji=False)
    if print_components:
        from remora.simulation.scenario.component_table import settings_page  # late: only here

        typer.echo(settings_page(), nl=False)
        return
    if print_schema:
        typer.echo(schema_text(), nl=False)
        return
    if list_them:
        print_scenarios()
        return
    if scenario is None:
        raise RemoraError("name a scenario file, or a bundled one; remora run --list shows those")
    if resume and out is None:
        raise RemoraError("--resume continues the run in a folder: name it with --out DIR")
    loaded = rm.load_scenario(scenario, inertia, mesh_root, allow_code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an interrupt is reported below
        made = loaded.run(out, progress=False if quiet else None, resume=resume, sample=sample)
    _report(console, loaded, made, out)
    if made.status == "interrupted":
        if out is not None:
            code = " --allow-code" if allow_code else ""
            again = f"remora run {scenario} --out {out} --resume{code}"
            console.print(f"[yellow]interrupted[/]; to resume: {_text(again)}")
        raise typer.Exit(130)


def schema_text() -> str:
    """Return the JSON schema of scenario files as text."""
    from remora.simulation.scenario.file_schema import schema  # late: only this option needs it

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _report(console: Console, loaded: Scenario, made: Recording, out: Path | None) -> None:
    """Print a summary of the run."""
    console.print(f"[bold]{_text(loaded.name)}[/]: {_text(loaded.description)}")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    why = f": {made.message}" if made.message else ""
    table.add_row("status", _text(f"{made.status}{why}"))
    table.add_row("robot", _text(f"{made.robot.name}, {made.robot.nv} degrees of freedom"))
    asked = made.settings["duration"]
    early = (
        ""
        if math.isclose(made.duration, asked, rel_tol=1e-5, abs_tol=1e-8)
        else f" of at most {asked:.6g} s"
    )
    settings = f"{made.settings['integrator']}, rtol {made.settings['rtol']:g}"
    table.add_row("simulated", f"{made.duration:.6g} s{early}; {len(made)} samples, {settings}")
    for k, start in enumerate(made.phase_starts):
        end = made.phase_starts[k + 1] if k + 1 < len(made.phase_starts) else made.t[-1]
        name = loaded.phases[k].name or f"phase {k + 1}"
        table.add_row("phases" if k == 0 else "", _text(f"{start:9.4f} to {end:9.4f} s  {name}"))
    for k, switch in enumerate(made.switches[:MOST_EVENTS]):
        table.add_row("switched" if k == 0 else "", _text(f"{switch.t:9.4f} s  {switch}"))
    for k, event in enumerate(made.events[:MOST_EVENTS]):
        line = f"{event.t:9.4f} s  {event.name} ({event.action})"
        table.add_row("events" if k == 0 else "", _text(line))
    if len(made.events) > MOST_EVENTS:
        table.add_row("", f"... and {len(made.events) - MOST_EVENTS} more")
    if len(made):
        _add_drifts(table, made.conservation())
    table.add_row("saved in", "nowhere: --out DIR saves it" if out is None else _text(str(out)))
    console.print(table)


def _add_drifts(table: Table, kept: Conservation) -> None:
    for name, drift in kept.drifts.items():
        if drift.broken_by:
            text = f"not conserved: {drift.broken_by}"
        else:
            text = f"drift {drift.absolute:.1e} {drift.unit}, relative {drift.relative:.1e}"
        table.add_row(name, text)
    if kept.constraint is not None:
        table.add_row("constraints", f"violated by at most {kept.constraint:.1e} m or rad")


def _text(text: str) -> str:
    """Escape text from a file: rich markup and terminal control sequences."""
    return escape(shown(text, 1000))
