"""A page of an analysis as one self-contained HTML file, in the style of the reports of runs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from remora.atomic_files import replacing
from remora.viewer.report.drawing import drawing


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


def page_text(page: AnalysisPage) -> str:
    """Return the page as HTML; all text is escaped, and no network requests are made."""
    style = (
        resources.files("remora.viewer.report").joinpath("report.css").read_text(encoding="utf-8")
    )
    version: str = importlib.import_module("remora").__version__
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    tiles = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in page.tiles
    )
    figures = "\n".join(
        f"<figure>{drawing(figure)}<figcaption><b>{escape(name)}.</b> {escape(caption)}"
        "</figcaption></figure>"
        for figure, name, caption in page.figures
    )
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in page.settings
    )
    files = ", ".join(f"<code>{escape(name)}</code>" for name in page.files)
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta http-equiv="Content-Security-Policy" content="default-src data: '
        "'unsafe-inline'\">",
        f"<title>{escape(page.title)}</title>\n<style>{style}</style>\n</head>\n<body>",
        f'<h1>{escape(page.title)}</h1>\n<p class="muted">{escape(page.subtitle)}</p>',
        *(f'<p class="notice">{escape(text)}</p>' for text in page.notices),
        f'<div class="tiles">{tiles}</div>',
        f"<section><h2>Figures</h2>\n{figures}\n</section>",
        f'<section><h2>Settings</h2>\n<table class="words">{rows}</table>',
        f'<p class="small muted">Data beside this page: {files}</p></section>' if files else
        "</section>",
        f"<footer>Written by Remora {escape(version)} on {now}. SI units; angles in degrees."
        "</footer>\n</body>\n</html>\n",
    ]  # fmt: skip
    return "\n".join(parts)


def write_page(page: AnalysisPage, file: Path) -> Path:
    """Write the page, whole or not at all, and return its path."""
    with replacing(file, parents=True) as part:
        part.write_text(page_text(page), encoding="utf-8", newline="\n")
    return file
