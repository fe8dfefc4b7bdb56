"""`remora campaign`: a Monte Carlo study; `remora campaign replay`: one of its runs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.cli.options import Quiet
from remora.errors import RemoraError


def campaign(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A study file (.yaml) or the name of a bundled study; or `replay DIR RUN` to "
            "simulate one run again, or `report DIR` to write the report.",
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="DIR RUN", hidden=True, help="Of replay and report."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the results, or of a replayed run."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(metavar="N", help="Number of runs, instead of that in the file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Compute the missing runs of the folder --out.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Worker processes; 0: all in this process. Default: one per core."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Address of a running dask scheduler, such as tcp://host:8786."
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="cpu, cuda, or auto: the GPU of a worker's machine, if it has one.",
        ),
    ] = "auto",
    quiet: Quiet = False,
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
        from remora.campaigns.study_schema import schema  # late: only this option needs it

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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an interrupt is reported below
            made = rm.campaign(
                study, out, runs=runs, resume=resume, workers=workers, scheduler=scheduler,
                target=target, progress=False if quiet else None,
            )  # fmt: skip
    except KeyboardInterrupt:
        more_runs = "" if runs is None else f" --runs {runs}"
        again = f"remora campaign {study} --out {out}{more_runs} --resume"
        console.print("[yellow]interrupted[/]; complete blocks are kept; to resume:")
        console.print(again, markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    page = rm.campaign_report(made, out / "report.html")
    _summary(console, made)
    console.print(f"[dim]report[/]   {page}", soft_wrap=True)


def _summary(console: Console, made: rm.Campaign) -> None:
    console.print(f"[bold]{made.name}[/]: {len(made):,} of {made.runs:,} runs")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "%", "95 % interval"):
        table.add_column(name, justify="left" if not name else "right")
    for name in (None, *made.criteria):
        rate, low, high = made.success_rate(name)
        interval = f"{100 * low:.4g} to {100 * high:.4g} %"
        table.add_row("success" if name is None else f"  {name}", f"{100 * rate:.4g}", interval)
    if made.criteria:
        console.print(table)


def _bundled() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("study", "scenario", "runs", "question"):
        table.add_column(name, justify="right" if name == "runs" else "left")
    for name in rm.bundled("studies"):
        study = rm.load_study(name)
        table.add_row(name, study.scenario.name, f"{study.runs:,}", study.description)
    return table


def _replay(console: Console, words: list[str], out: Path | None) -> None:
    if len(words) != 2 or not words[1].isdigit():
        raise RemoraError("write: remora campaign replay DIR RUN, such as replay reach 4711")
    run = rm.open_campaign(words[0]).replay(int(words[1]))
    folder = out or Path(f"run_{words[1]}")
    run.save(folder)
    console.print(str(run), markup=False)
    console.print(f"[dim]saved in[/] {folder}: remora view {folder}", soft_wrap=True)


def _report(console: Console, words: list[str], out: Path | None) -> None:
    if len(words) != 1:
        raise RemoraError("write: remora campaign report DIR")
    if out is not None and out.exists():
        raise RemoraError(f"{out}: exists already; name another file with --out")
    file = rm.campaign_report(rm.open_campaign(words[0]), out or Path(words[0]) / "report.html")
    console.print(str(file), soft_wrap=True)
