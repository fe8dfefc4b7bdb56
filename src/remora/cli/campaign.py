"""`remora campaign`: a Monte Carlo study; `remora campaign replay`: one of its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from remora.campaigns.campaign import campaign as run_campaign
from remora.campaigns.campaign_report import campaign_report
from remora.campaigns.result import Campaign, open_campaign
from remora.campaigns.study import bundled_studies, load_study
from remora.campaigns.study_schema import schema
from remora.errors import RemoraError


def campaign(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A study file (.yaml) or a bundled study's name; or `replay DIR RUN`, or "
            "`report DIR`.",
        ),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="", hidden=True, help="DIR, and RUN.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the results.")] = None,
    runs: Annotated[int | None, typer.Option(help="Number of runs, instead of the file's.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Compute what is missing in DIR.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Worker processes; 0: none, all in this process. Default: one per core."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A running dask scheduler, tcp://host:8786."),
    ] = None,
    target: Annotated[
        str, typer.Option(help="cpu, cuda, or auto: the GPU of a worker's machine, if any.")
    ] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the bundled studies and exit.")
    ] = False,
    print_schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of study files.")
    ] = False,
) -> None:
    """Simulate a Monte Carlo study: dispersed runs of a scenario.

    Example: remora campaign reach_payload --out reach --runs 10000

    Then: remora campaign replay reach 4711 --out run_4711
    """
    console = Console(highlight=False, emoji=False)
    if print_schema:
        typer.echo(json.dumps(schema(), indent=2, ensure_ascii=False))
        return
    if list_them:
        console.print(_bundled())
        return
    if study is None:
        raise RemoraError("name a study file, or a bundled one; remora campaign --list shows those")
    if study == "replay":
        _replay(console, more or [], out)
        return
    if study == "report":
        _report(console, more or [], out)
        return
    if more:
        raise RemoraError(f"unexpected argument {more[0]!r}; folders are named with --out DIR")
    if out is None:
        raise RemoraError("name the folder of the results with --out DIR")
    made = run_campaign(
        study, out, runs=runs, resume=resume, workers=workers, scheduler=scheduler, target=target,
        progress=False if quiet else None,
    )  # fmt: skip
    page = campaign_report(made, out / "report.html")
    _summary(console, made)
    console.print(f"[dim]report[/]   {page}", soft_wrap=True)


def _summary(console: Console, made: Campaign) -> None:
    console.print(f"[bold]{made.name}[/]: {len(made):,} of {made.runs:,} runs")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "%", "95 % interval"):
        table.add_column(name, justify="left" if not name else "right")
    for name in (None, *made.criteria):
        rate, low, high = made.success_rate(name)
        told = f"{100 * low:.4g} to {100 * high:.4g} %"
        table.add_row("success" if name is None else f"  {name}", f"{100 * rate:.4g}", told)
    if made.criteria:
        console.print(table)


def _bundled() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("study", "scenario", "runs", "question"):
        table.add_column(name, justify="right" if name == "runs" else "left")
    for name in bundled_studies():
        told = load_study(name)
        table.add_row(name, told.scenario.name, f"{told.runs:,}", told.description)
    return table


def _replay(console: Console, words: list[str], out: Path | None) -> None:
    if len(words) != 2 or not words[1].isdigit():
        raise RemoraError("write: remora campaign replay DIR RUN, such as replay reach 4711")
    run = open_campaign(words[0]).replay(int(words[1]))
    folder = out or Path(f"run_{words[1]}")
    run.save(folder)
    console.print(str(run), markup=False)
    console.print(f"[dim]saved in[/] {folder}: remora view {folder}", soft_wrap=True)


def _report(console: Console, words: list[str], out: Path | None) -> None:
    if len(words) != 1:
        raise RemoraError("write: remora campaign report DIR")
    file = campaign_report(open_campaign(words[0]), out or Path(words[0]) / "report.html")
    console.print(str(file), soft_wrap=True)
