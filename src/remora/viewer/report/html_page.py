"""A self-contained HTML page: head and style, tiles, sections, tables, figures, footer.

Reports of runs and campaigns and the pages of analyses are made from these parts. All text is
escaped, and the page makes no network requests.
"""

from __future__ import annotations

import base64
import importlib
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from remora.atomic_files import replacing
from remora.viewer.figures.figures import COLOURS, FAINT, INK, MUTED
from remora.viewer.run_tables import TextTable

#: Content security policy: only what is in the file; with scripts, also the animation's page.
_POLICY = "default-src data: 'unsafe-inline'"
_SCRIPTS = "default-src data: blob: 'unsafe-inline' 'unsafe-eval'"


def page_text(
    title: str,
    parts: Iterable[str],
    units: str,
    heading: str | None = None,
    scripts: bool = False,
) -> str:
    """Return a page as HTML.

    Args:
        title: title of the window.
        parts: the body, as HTML; empty parts are left out.
        units: sentence of the footer about the units.
        heading: heading of the page; default: the title.
        scripts: whether the page runs scripts.
    """
    style = (
        resources.files("remora.viewer.report").joinpath("report.css").read_text(encoding="utf-8")
    )
    version: str = importlib.import_module("remora").__version__
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_SCRIPTS if scripts else _POLICY}">',
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
        f"<h1>{escape(title if heading is None else heading)}</h1>",
        *parts,
        f"<footer>Written by Remora {escape(version)} on {now}. {escape(units)}</footer>",
        "</body>\n</html>\n",
    ]
    return "\n".join(line for line in lines if line)


def write_page(path: str | os.PathLike[str], text: Callable[[], str]) -> Path:
    """Write a page, whole or not at all, and return its path.

    Args:
        path: the file; an existing file is replaced, missing folders are created.
        text: makes the page; called only if the file can be written.

    Raises:
        RemoraError: if the file cannot be written.
    """
    with replacing(path, parents=True) as part:
        part.write_text(text(), encoding="utf-8", newline="\n")
    return Path(path)


def paragraph(text: str, look: str) -> str:
    """Return a paragraph of a class of the style: lead, muted, notice; nothing without text."""
    return f'<p class="{look}">{escape(text)}</p>' if text else ""


def section(title: str, content: str, key: str = "") -> str:
    """Return a section with a heading; nothing if it has no content."""
    name = f' id="{key}"' if key else ""
    return f"<section{name}>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a row of tiles, each a value and what it is."""
    made = (
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in pairs
    )
    return f'<div class="tiles">{"".join(made)}</div>'


def named_values(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values."""
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs)
    return f'<table class="words">{"".join(rows)}</table>'


def table(rows: TextTable) -> str:
    """Return a table without its empty columns; nothing if it has no rows."""
    if not rows.rows:
        return ""
    filled = [k for k in range(len(rows.head)) if any(row[k] for row in rows.rows)]
    names = [rows.head[k] for k in filled]
    head = "".join(_cell("th", name, name.lstrip("#$")) for name in names)
    body = "\n".join(
        f"<tr>{''.join(_cell('td', rows.head[k], row[k]) for k in filled)}</tr>"
        for row in rows.rows
    )
    more = f'<p class="small muted">and {rows.more} more</p>' if rows.more > 0 else ""
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'
        f"</div>{more}"
    )


def _cell(tag: str, column: str, text: str) -> str:
    look = ' class="n"' if column.startswith("#") else ""
    content = escape(text)
    code = tag == "td" and column.startswith("$") and content
    return f"<{tag}{look}>{f'<code>{content}</code>' if code else content}</{tag}>"


def figure(picture: Any, title: str = "", caption: str = "") -> str:
    """Return a matplotlib figure with its title and caption."""
    text = " ".join([f"<b>{escape(title)}.</b>"] * bool(title) + [escape(caption)] * bool(caption))
    return f"<figure>{drawing(picture)}<figcaption>{text}</figcaption></figure>"


def figures(shown: Sequence[tuple[Any, str, str]]) -> str:
    """Return matplotlib figures, each with a title and a caption."""
    return "\n".join(figure(*each) for each in shown)


#: An SVG with more bytes than this becomes a PNG.
LARGEST_DRAWING = 350_000


def drawing(figure: Any) -> str:
    """Return a figure as HTML: an SVG in the page's own colours, or a PNG if the SVG is large."""
    matplotlib: Any = importlib.import_module("matplotlib")
    label = "; ".join(escape(ax.get_title(loc="left")) for ax in figure.axes)
    buffer = io.StringIO()
    salt = base64.b32encode(os.urandom(5)).decode()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", transparent=True)
    svg = _cleaned(buffer.getvalue(), label)
    if len(svg) <= LARGEST_DRAWING:
        return svg
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130, facecolor="white")
    data = base64.b64encode(picture.getvalue()).decode()
    return f'<img alt="{label}" src="data:image/png;base64,{data}">'


def _cleaned(svg: str, label: str) -> str:
    """Prepare an SVG for embedding: no addresses, short numbers, the page's colours."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    size = re.search(r'viewBox="[^"]*"', body)
    start = body.index(">") + 1
    body = body[start:]
    used = {*re.findall(r"url\(#([^)]+)\)", body), *re.findall(r'href="#([^"]+)"', body)}
    body = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", body)
    body = re.sub(r'(?<= d=")[^"]*', _rounded, body)
    colours = {INK: "--ink", MUTED: "--muted", FAINT: "--line"}
    colours |= {colour: f"--c{k}" for k, colour in enumerate(COLOURS)}
    body = re.sub(
        r"(?<=[:=] )#[0-9a-f]{6}", lambda m: f"var({colours[m[0]]})" if m[0] in colours else m[0],
        body,
    )  # fmt: skip
    body = body.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    return f'<svg role="img" aria-label="{label}" {size[0] if size else ""}>{body}'


def _rounded(path: re.Match[str]) -> str:
    text = re.sub(r"-?\d+\.\d+", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), path[0])
    return " ".join(text.split())
