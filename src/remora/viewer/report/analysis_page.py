"""A page of an analysis as one self-contained HTML file, in the style of the reports of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from remora.viewer.report.html_page import (
    figures,
    named_values,
    page_text,
    paragraph,
    section,
    tiles,
)


@dataclass(frozen=True)
class AnalysisPage:
    """What a page shows.

    Attributes:
        title: heading.
        subtitle: one line below it.
        tiles: pairs of a value and what it is.
        figures: triples of a matplotlib figure, a title and a caption.
        settings: pairs of a name and its value.
        notices: what a reader must know, such as limits that are missing.
        files: names of the data files beside the page.
    """

    title: str
    subtitle: str
    tiles: Sequence[tuple[str, str]]
    figures: Sequence[tuple[Any, str, str]]
    settings: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()
    files: Sequence[str] = ()


def analysis_page(page: AnalysisPage) -> str:
    """Return the page as HTML."""
    files = ", ".join(f"<code>{escape(name)}</code>" for name in page.files)
    beside = f'\n<p class="small muted">Data beside this page: {files}</p>' if files else ""
    return page_text(
        page.title,
        [
            paragraph(page.subtitle, "muted"),
            *(paragraph(text, "notice") for text in page.notices),
            tiles(page.tiles),
            section("Figures", figures(page.figures)),
            section("Settings", named_values(page.settings) + beside),
        ],
        "SI units; angles in degrees.",
    )
