"""What of each paper is where: equations, tables, figures and algorithms, by their numbers.

A table for each paper, `equations_of_<paper>.py`, is the one source of `rm.papers.index`, of the
pages of the reference and of a test, which resolves all names and looks for missing numbers.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from remora.errors import UnknownName

#: The papers with a table.
PAPERS = ("VT18", "FPG11", "DM93", "SA24", "SPART17")


@dataclass(frozen=True)
class PaperRow:
    """An equation, table, figure or algorithm of a paper.

    Attributes:
        paper: key of the paper, as in docs/references.md.
        number: of the equation, such as "46"; "Table 1", "Figure 4", "section 3".
        what: what it says.
        functions: full names of the functions, `rm...`; empty where there is none.
        test: a test of it, `file::function` in the folder `tests`; "" where there is none.
        note: correction, convention, or why there is no function.
    """

    paper: str
    number: str
    what: str
    functions: tuple[str, ...]
    test: str
    note: str

    @property
    def title(self) -> str:
        """The number as papers refer to it: "(46)", "Table 1"."""
        return self.number if " " in self.number else f"({self.number})"

    @property
    def files(self) -> tuple[str, ...]:
        """Source files of the functions, in the package."""
        root = Path(inspect.getfile(import_module("remora"))).parent
        paths: dict[str, None] = {}
        for name in self.functions:
            value = named(name)
            owner: Any = value.fget if isinstance(value, property) else value
            file = inspect.getfile(inspect.unwrap(owner))
            paths[Path(file).relative_to(root).as_posix()] = None
        return tuple(paths)

    def __str__(self) -> str:
        """Return the row as a few lines of text."""
        lines = [f"{self.paper} {self.title}: {self.what}"]
        for head, text in (
            ("functions", ", ".join(self.functions)), ("files", ", ".join(self.files)),
            ("test", self.test), ("note", self.note),
        ):  # fmt: skip
            if text:
                lines.append(f"    {head}: {text}")
        return "\n".join(lines)


@dataclass(frozen=True)
class PaperIndex:
    """The rows of one paper or several; `index["46"]` are those with a number.

    Attributes:
        rows: in the order of the paper.
    """

    rows: tuple[PaperRow, ...]

    def __getitem__(self, number: str | int) -> PaperIndex:
        """Return the rows with a number: `46`, "46", "(46)", "Table 1"."""
        asked = str(number).removeprefix("eq. ").strip("()")
        rows = tuple(row for row in self.rows if row.number == asked)
        if not rows:
            known = dict.fromkeys(row.number for row in self.rows)
            raise UnknownName("number in the paper", str(number), known)
        return PaperIndex(rows)

    def __iter__(self) -> Iterator[PaperRow]:
        """Iterate over the rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __str__(self) -> str:
        """Return all rows as text."""
        return "\n".join(map(str, self.rows))


def index(paper: str | None = None) -> PaperIndex:
    """Return what of a paper is where: its equations, tables, figures and algorithms by number.

    Args:
        paper: key of the paper, such as "SPART17"; None: all that have a table.
    """
    if paper is not None and paper.upper() not in PAPERS:
        raise UnknownName("paper with an index", paper, PAPERS)
    keys = PAPERS if paper is None else (paper.upper(),)
    return PaperIndex(tuple(row for key in keys for row in _rows(key)))


def _rows(paper: str) -> Iterator[PaperRow]:
    table: Any = import_module(f"remora.papers.equations_of_{paper.lower()}")
    for numbers, what, functions, test, note in table.ROWS:
        for number in _numbers(numbers):
            yield PaperRow(paper, number, what, tuple(functions.split()), test, note)


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of "12-15" or "A.1-A.3", or a single one as it stands."""
    match = re.fullmatch(r"(\w\.)?(\d+)-(?:\w\.)?(\d+)", text)
    if match is None:
        yield text
        return
    part, first, last = match.groups()
    for n in range(int(first), int(last) + 1):
        yield f"{part or ''}{n}"


def named(name: str) -> Any:
    """Return what a full name means: `rm.papers.spart17.state`, `remora.algebra.pose.to_matrix`."""
    first, *rest = name.split(".")
    value: Any = import_module("remora") if first in ("rm", "remora") else None
    path = "remora"
    for part in rest:
        path = f"{path}.{part}"
        value = getattr(value, part) if hasattr(value, part) else import_module(path)
    return value
