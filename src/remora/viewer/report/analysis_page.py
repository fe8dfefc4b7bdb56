"""The page of an analysis: one self-contained HTML file, with its pictures and data beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.atomic_files import replacing
from remora.viewer.report.html_page import (
    figures,
    named_values,
    page_text,
    paragraph,
    section,
    tiles,
    write_page,
)


@dataclass(frozen=True)
class AnalysisPage:
    """What a page shows, and the data beside it.

    Attributes:
        title: heading.
        subtitle: one line below it.
        tiles: pairs of a value and what it is.
        figures: triples of a matplotlib figure, a title and a caption.
        settings: pairs of a name and its value.
        notices: what a reader must know, such as limits that are missing.
        data: arrays by name, for the NPZ file.
        columns: columns of the CSV file by name, one number per row; empty: no such file.
    """

    title: str
    subtitle: str
    tiles: Sequence[tuple[str, str]]
    figures: Sequence[tuple[Any, str, str]]
    settings: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    columns: Mapping[str, Array] = field(default_factory=dict[str, Array])

    def html(self, files: Sequence[str] = ()) -> str:
        """Return the page as text; it names the data files beside it."""
        named = ", ".join(f"<code>{escape(name)}</code>" for name in files)
        beside = f'\n<p class="small muted">Data beside this page: {named}</p>' if named else ""
        return page_text(
            self.title,
            [
                paragraph(self.subtitle, "muted"),
                *(paragraph(text, "notice") for text in self.notices),
                tiles(self.tiles),
                section("Figures", figures(self.figures)),
                section("Settings", named_values(self.settings) + beside),
            ],
            "SI units; angles in degrees.",
        )

    def write(self, folder: Path, name: str) -> Path:
        """Write page, pictures and data into a folder, and return the path of the page.

        Args:
            folder: an existing folder; files in it are replaced.
            name: of the files, without their suffixes.
        """
        files = [f"{name}.npz"]
        with replacing(folder / files[0]) as part:
            np.savez_compressed(part, **self.data)
        if self.columns:
            files.append(f"{name}.csv")
            rows = np.column_stack([np.ravel(column) for column in self.columns.values()])
            with replacing(folder / files[1]) as part:
                np.savetxt(part, rows, "%.9g", ",", header=",".join(self.columns), comments="")
        for k, (figure, _, _) in enumerate(self.figures):
            files.append(f"{name}_{k + 1}.png")
            with replacing(folder / files[-1]) as part:
                figure.savefig(part, dpi=150, facecolor="white")
        return write_page(folder / f"{name}.html", lambda: self.html(files))
