"""A report of a run as one self-contained HTML file.

It tells the story first: what was simulated, stills, what was commanded, where the tool went, what
was captured, peaks against limits; then figures, the animation and the settings. The file holds
style, pictures and the animation, which is unpacked on demand. It makes no network requests, and no
browser is needed to write it. All text from files is escaped.
"""

from __future__ import annotations

import importlib
import os
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path

from remora.atomic_files import replacing
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.simulation.recording.recording import Recording
from remora.viewer import run_tables
from remora.viewer.load_words import LONGEST
from remora.viewer.report import report_sections as parts
from remora.viewer.report.conditioning_rows import conditioning_of, conditioning_warnings
from remora.viewer.report.peak_loads import exceeded, joint_peaks
from remora.viewer.report.trust import violations

#: Maximum number of notices of one kind.
MOST_NOTICES = 8


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

    Example:
        >>> robot = rm.load("servicer")
        >>> q, v = rm.neutral(robot), np.zeros(robot.nv)
        >>> run = rm.simulate(robot, q, v, 1.0, record=0.1)
        >>> rm.report(run, "report.html", animation=False).name
        'report.html'
    """
    file = Path(path)
    if file.is_dir():
        raise RemoraError(f"{file}: is a folder; name a file, such as report.html")
    with replacing(file, parents=True) as part:  # a folder that cannot be written is found first
        part.write_text(html(run, title, animation), encoding="utf-8", newline="\n")
    return file


def html(run: Recording, title: str | None = None, animation: bool = True) -> str:
    """Return the report as text; see `report`."""
    if len(run) == 0:
        raise RemoraError("the run has no samples yet: there is nothing to report")
    told = run_tables.note_of(run)
    name = shown(told.title or run.robot.name if title is None else title, LONGEST)
    near, peaks, broken = conditioning_of(run), joint_peaks(run), violations(run.conservation())
    sections = [
        ("commanded", "Commands", parts.commands(run)),
        ("tool", "Tool and target", parts.tool(run)),
        ("captures", "Captures", parts.captures(run)),
        ("loads", "Peaks against limits", parts.peaks(peaks, bool(run.switches))),
        ("trust", "Conservation checks", parts.trust(run, broken)),
        ("near", "Singularities and limits", "" if near is None else parts.conditioning(near)),
        ("animation", "Animation", parts.animation(run) if animation else ""),
        ("figures", "Figures", parts.figures(run, bool(broken))),
        ("settings", "Settings of the simulation", parts.settings(run)),
        ("robot", "Robot", parts.robot(run)),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{key}">{label}</a>' for key, label, _ in sections)
    style = (
        resources.files("remora.viewer.report").joinpath("report.css").read_text(encoding="utf-8")
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    version: str = importlib.import_module("remora").__version__
    lines = [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Content security policy: only what is in the file; the animation's page inherits it.
        '<meta http-equiv="Content-Security-Policy" content="default-src data: blob: '
        "'unsafe-inline' 'unsafe-eval'\">",
        f"<title>{escape(name)}: report of a run</title>\n<style>{style}</style>\n</head>\n<body>",
        f"<h1>{escape(name)}</h1>",
        f'<p class="lead">{escape(shown(told.description, 2000))}</p>' if told.description else "",
        f'<p class="muted">{escape(_subtitle(run))}</p>',
        f"<nav>{links}</nav>",
        _notices(run, exceeded(peaks), [] if near is None else conditioning_warnings(near)),
        parts.strip(run),
        _tiles(run),
        *(f'<section id="{k}">\n<h2>{name}</h2>\n{x}\n</section>' for k, name, x in sections),
        f"<footer>Report written by Remora {escape(version)} on {now}. "
        "SI units; angles in degrees, wheel speeds in rpm.</footer>",
        "</body>\n</html>\n",
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)


def _subtitle(run: Recording) -> str:
    phases = len(run_tables.described_phases(run))
    text = f"{run.robot.name}: a run of {run.duration:.6g} s"
    text += f" in {phases} phases" if phases > 1 else ""
    return shown(f"{text}, {run_tables.time_text(run.started)}" if run.started else text, 600)


def _notices(run: Recording, passed: list[str], near: list[str]) -> str:
    said: list[str] = []
    if run.status == "running":
        said.append(
            f"This run was not finished when the report was made: it was still going on, or was "
            f"killed. What follows is what it had recorded, up to {run.t[-1]:.6g} s."
        )
    elif run.status != "complete":
        said.append(f"This run ended before its time: {run.status}. {run.message}")
    said += [f"The robot: {warning}" for warning in run.robot.warnings[:MOST_NOTICES]]
    said += [f"{text}." for text in passed[:MOST_NOTICES]]
    said += [f"{text[:1].upper()}{text[1:]}." for text in near]
    return "\n".join(f'<p class="notice">{escape(shown(x, 600))}</p>' for x in said)


def _tiles(run: Recording) -> str:
    tiles = (
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in run_tables.tiles(run)
    )
    return f'<div class="tiles">{"".join(tiles)}</div>'
