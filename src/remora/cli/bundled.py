"""`remora robots` and `remora scenarios`: list what is bundled, or print one as a template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import remora as rm
from remora.cli.options import complete_robot, complete_scenario
from remora.errors import UnknownName

#: The comment at the start of a file: of YAML lines with #, of XML.
_COMMENT = re.compile(r"\A(?:<\?xml[^>]*>\s*<!--(?P<xml>.*?)-->|(?P<yaml>(?:#[^\n]*\n)+))", re.S)


def robots(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A bundled robot, whose file is printed as a template.",
            autocompletion=complete_robot,
        ),
    ] = None,
) -> None:
    """List the bundled robots, or print the file of one.

    Example: remora robots servicer > mine.urdf
    """
    files = rm.bundled("robots")
    if name is not None:
        _print_file("robot", name, files)
        return
    rows: list[tuple[str, ...]] = []
    for own, file in files.items():
        robot = rm.load(own)
        rows.append((own, file.suffix, str(robot.nv), f"{float(robot.mass):.4g}", summary(file)))
    _print_table(("robot", "file", "#nv", "#kg", "what it is"), rows)


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A bundled scenario, whose file is printed as a template.",
            autocompletion=complete_scenario,
        ),
    ] = None,
) -> None:
    """List the bundled scenarios, or print the file of one.

    Example: remora scenarios unfold > mine.yaml
    """
    if name is not None:
        _print_file("scenario", name, rm.bundled("scenarios"))
        return
    print_scenarios()


def print_scenarios() -> None:
    """Print the table of bundled scenarios."""
    rows: list[tuple[str, ...]] = []
    for own in rm.bundled("scenarios"):
        scenario = rm.load_scenario(own)
        rows.append((own, scenario.robot.name, f"{scenario.duration:g}", scenario.description))
    _print_table(("scenario", "robot", "#s", "what happens"), rows)


def summary(file: Path) -> str:
    """Return the first sentence of the comment that a file begins with; empty if it has none."""
    found = _COMMENT.match(file.read_text(encoding="utf-8"))
    if found is None:
        return ""
    text = found["xml"] or re.sub(r"^#", "", found["yaml"], flags=re.M)
    sentence, _, _ = " ".join(text.split()).partition(". ")
    return sentence if sentence.endswith(".") else f"{sentence}."


def _print_file(what: str, name: str, files: Mapping[str, Path]) -> None:
    if name not in files:
        raise UnknownName(f"bundled {what}", name, files)
    typer.echo(files[name].read_text(encoding="utf-8"), nl=False)


def _print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table; `#` before a title: the column holds numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in head:
        table.add_column(title.lstrip("#"), justify="right" if title.startswith("#") else "left")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, emoji=False).print(table)
