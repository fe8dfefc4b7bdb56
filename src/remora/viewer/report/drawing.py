"""A matplotlib figure as HTML: an SVG in the colours of the page."""

from __future__ import annotations

import base64
import importlib
import io
import os
import re
from html import escape
from typing import Any

from remora.viewer.figures.figures import COLOURS, FAINT, INK, MUTED

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
