"""A report of a run as one self-contained HTML file.

The file holds style, figures and the animation, which is unpacked on demand. It makes no network
requests. All text from files is escaped.
"""

from __future__ import annotations

import base64
import gzip
import importlib
import io
import os
import re
import tempfile
import warnings
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from remora.analysis.conditioning import Conditioning
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.simulation.recording.recording import Recording
from remora.viewer import run_tables
from remora.viewer.component_table import components
from remora.viewer.figures.figures import COLOURS, FAINT, INK, MUTED, figure_of
from remora.viewer.load_words import LONGEST, short
from remora.viewer.report.animation_html import html_of
from remora.viewer.report.conditioning_rows import (
    conditioning_of,
    conditioning_table,
    conditioning_warnings,
)

#: An SVG with more bytes than this becomes a PNG.
LARGEST_DRAWING = 350_000
#: Maximum number of characters of a function's source.
LONGEST_SOURCE = 5000
#: The figures: title, quantities, explanation.
FIGURES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Joint positions", ("q",), "Limits are drawn where they are near."),
    ("Speeds", ("v",), "Of the joints, and of what floats in its own axes."),
    ("Torques and forces of the drives", ("tau",),
     "With what prescribed and locked joints need. Effort limits are drawn where they are near."),
    ("Damping, friction and stops", ("passive",), "A joint feels these and its drive."),
    ("Attitude and position", ("attitude", "position"),
     "Roll, pitch and yaw are seen from the axes at the start."),
    ("Reactions", ("reactions",),
     "What the joint's bearings carry, about the origin of the body it carries; without the "
     "drive's own torque."),
    ("External wrenches", ("wrenches",), "About the body's origin."),
    ("Signals of the components", ("signals",),
     "Outputs and states; those of sampled components are held between ticks."),
    ("Momentum", ("momentum",), "Where it stays zero, the axis is as large as the sum of the "
                                "bodies' own momenta."),
    ("Centre of mass", ("com",), "On a straight line where nothing pushes from outside."),
    ("Energy", ("energy",), "It changes by the work that is done: what is left over is drift."),
    ("Drift of what must be kept", ("drift",), "Relative, as in the table of conservation."),
)  # fmt: skip
#: Script that unpacks the animation into an iframe.
_SCRIPT = """
document.getElementById("play").onclick = async function () {
  const text = document.getElementById("packed").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const page = new Blob([await new Response(plain).arrayBuffer()], { type: "text/html" });
  const frame = document.createElement("iframe");
  frame.title = "animation of the run";
  frame.src = URL.createObjectURL(page);
  this.replaceWith(frame);
};
"""


def report(
    run: Recording,
    path: str | os.PathLike[str],
    title: str | None = None,
    animation: bool = True,
) -> Path:
    """Write a report of a run into one HTML file and return its path.

    Args:
        run: the run.
        path: the file; an existing file is replaced.
        title: heading; default: the note of the run, such as its scenario's name, or the robot's.
        animation: whether to include the animation, if the viewer is installed.

    Raises:
        RemoraError: if the run has no samples, matplotlib is not installed, or the file cannot be
            written.
    """
    file = Path(path)
    if file.is_dir():
        raise RemoraError(f"{file}: is a folder; name a file, such as report.html")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, other = tempfile.mkstemp(".html", ".report-", file.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(html(run, title, animation))
            Path(other).chmod(0o666 & ~umask())
            Path(other).replace(file)
        except BaseException:
            Path(other).unlink(missing_ok=True)
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise RemoraError(f"{file}: cannot be written: {why}") from error
    return file


def html(run: Recording, title: str | None = None, animation: bool = True) -> str:
    """Return the report as text; see `report`."""
    if len(run) == 0:
        raise RemoraError("the run has no samples yet: there is nothing to report")
    given = str(run.settings.get("note") or run.robot.name) if title is None else title
    name = shown(given, LONGEST)
    near = conditioning_of(run)
    sections = [
        ("simulated", "What was simulated", _simulated(run)),
        ("kept", "How far to trust it", _kept(run)),
        ("near", "Singularities and limits", "" if near is None else _near(near)),
        ("animation", "Animation", _animation(run) if animation else ""),
        ("figures", "Figures", _figures(run)),
        ("robot", "Robot", _robot(run)),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{key}">{label}</a>' for key, label, _ in sections)
    style = (
        resources.files("remora.viewer.report").joinpath("report.css").read_text(encoding="utf-8")
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    version: str = importlib.import_module("remora").__version__
    parts = [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Content security policy: only what is in the file; the animation's page inherits it.
        '<meta http-equiv="Content-Security-Policy" content="default-src data: blob: '
        "'unsafe-inline' 'unsafe-eval'\">",
        f"<title>{escape(name)}: report of a run</title>\n<style>{style}</style>\n</head>\n<body>",
        f"<h1>{escape(name)}</h1>",
        f'<p class="muted">{escape(_subtitle(run))}</p>',
        f"<nav>{links}</nav>",
        _notices(run, [] if near is None else conditioning_warnings(near)),
        _tiles(run),
        *(f'<section id="{k}">\n<h2>{name}</h2>\n{x}\n</section>' for k, name, x in sections),
        f"<footer>Report written by Remora {escape(version)} on {now}. "
        "SI units; angles in degrees.</footer>",
        "</body>\n</html>\n",
    ]  # fmt: skip
    return "\n".join(parts)


# Sections ---------------------------------------------------------------------------------------


def _subtitle(run: Recording) -> str:
    phases = len(run_tables.described_phases(run))
    text = f"A run of {run.duration:.6g} s" + (f" in {phases} phases" if phases > 1 else "")
    return f"{text}, {run_tables.time_text(run.started)}" if run.started else text


def _notices(run: Recording, warnings: list[str]) -> str:
    said: list[str] = []
    if run.status == "running":
        said.append(
            f"This run was not finished when the report was made: it was still going on, or was "
            f"killed. What follows is what it had recorded, up to {run.t[-1]:.6g} s."
        )
    elif run.status != "complete":
        said.append(f"This run ended before its time: {run.status}. {run.message}")
    said += [f"The robot: {warning}" for warning in run.robot.warnings[:10]]
    said += [f"{text[:1].upper()}{text[1:]}." for text in warnings]
    return "\n".join(f'<p class="notice">{escape(shown(x, 600))}</p>' for x in said)


def _tiles(run: Recording) -> str:
    tiles = (
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in run_tables.tiles(run)
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _simulated(run: Recording) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in run_tables.setup(run)
    )
    parts = [f'<table class="words">{rows}</table>']
    phases, events = run_tables.phases(run), run_tables.events(run)
    if phases.rows:
        parts.append(f"<h3>Phases</h3>\n{_table(phases)}")
    parts_of_system = components(run)
    if parts_of_system.rows:
        parts.append(f"<h3>Components</h3>\n{_table(parts_of_system)}")
    switches = run_tables.switches(run)
    if switches.rows:
        parts.append(f"<h3>Constraints switched</h3>\n{_table(switches)}")
    parts.append("<h3>Events</h3>")
    parts.append(_table(events) if events.rows else '<p class="muted">None.</p>')
    for name, source in run_tables.sources(run).items():
        cut = source[:LONGEST_SOURCE] + ("\n..." if len(source) > LONGEST_SOURCE else "")
        parts.append(
            f'<details class="screen"><summary class="small">Source of <code>'
            f"{escape(shown(name))}</code></summary><pre>{escape(cut)}</pre></details>"
        )
    return "\n".join(parts)


def _kept(run: Recording) -> str:
    text = (
        "A run without forces from outside keeps its momentum whatever its joints do, its centre "
        "of mass stays on a line, and energy changes by the work done. The largest distances from "
        "that over all samples:"
    )
    return f"<p>{text}</p>\n{_table(run_tables.conservation_table(run))}"


def _near(found: Conditioning) -> str:
    text = (
        "The twist of the frame by the speeds of the joints, angular rates times "
        f"{found.length:.3g} m; directions in which the arm never moves are left out."
    )
    parts = [f"<p>{text}</p>", _table(conditioning_table(found))]
    if found.warnings():
        caption = "<b>Conditioning.</b> Shaded: near a singularity, or a limit."
        parts.append(f"<figure>{drawing(found.plot())}<figcaption>{caption}</figcaption></figure>")
    return "\n".join(parts)


def _robot(run: Recording) -> str:
    frames = ", ".join(short(frame.name) for frame in run.robot.frames[:50])
    note = f'<p class="small muted">Frames: {escape(frames)}</p>' if frames else ""
    return _table(run_tables.robot_table(run.robot)) + note


def _table(table: run_tables.TextTable) -> str:
    numbers = [name.startswith("#") for name in table.head]
    looks = [' class="n"' if number else "" for number in numbers]
    head = "".join(
        f"<th{look}>{escape(name.removeprefix('#'))}</th>"
        for name, look in zip(table.head, looks, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{x}>{escape(cell)}</td>" for cell, x in zip(row, looks, strict=True))
        + "</tr>"
        for row in table.rows
    )
    more = f'<p class="small muted">and {table.more} more</p>' if table.more > 0 else ""
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>'
        f"</div>{more}"
    )


def _animation(run: Recording) -> str:
    try:
        page = html_of(run)
    except RemoraError as error:
        return f'<p class="muted">Left out: {escape(shown(str(error), LONGEST))}</p>'
    packed = base64.b64encode(gzip.compress(page.encode(), 6, mtime=0)).decode()
    return (
        '<div class="screen"><button id="play" type="button">Load the animation</button>'
        "<noscript> (needs JavaScript)</noscript>\n"
        f'<script type="text/plain" id="packed">{packed}</script>\n'
        f"<script>{_SCRIPT}</script></div>"
    )


# Figures ----------------------------------------------------------------------------------------


def _figures(run: Recording) -> str:
    parts: list[str] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in other scripts
        for title, quantities, caption in FIGURES:
            if quantities == ("passive",) and not run.passive.any():
                continue
            figure = figure_of(run, *quantities)
            if figure is None:
                continue
            text = f"<figcaption><b>{escape(title)}.</b> {escape(caption)}</figcaption>"
            parts.append(f"<figure>{drawing(figure)}{text}</figure>")
    return "\n".join(parts)


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


def umask() -> int:
    """Return the process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
