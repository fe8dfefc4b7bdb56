"""A report of a run as one self-contained HTML file.

It tells the story first: what was simulated, stills, what was commanded, where the tool went, what
was captured, peaks against limits; then figures, the animation and the settings. The file holds
style, pictures and the animation, which is unpacked on demand. It makes no network requests, and no
browser is needed to write it. All text from files is escaped.
"""

from __future__ import annotations

import os
from pathlib import Path

from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.simulation.recording.recording import Recording
from remora.viewer import run_tables
from remora.viewer.load_words import LONGEST
from remora.viewer.report import html_page as page
from remora.viewer.report import report_sections as parts
from remora.viewer.report.conditioning_rows import conditioning_of, conditioning_warnings
from remora.viewer.report.conservation_words import violations
from remora.viewer.report.peak_loads import exceeded, joint_peaks

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
    return page.write_page(path, lambda: html(run, title, animation))


def html(run: Recording, title: str | None = None, animation: bool = True) -> str:
    """Return the report as text; see `report`."""
    if len(run) == 0:
        raise RemoraError("the run has no samples yet: there is nothing to report")
    note = run_tables.note_of(run)
    name = shown(note.title or run.robot.name if title is None else title, LONGEST)
    near, peaks, broken = conditioning_of(run), joint_peaks(run), violations(run.conservation())
    sections = [
        ("commanded", "Commands", parts.commands(run)),
        ("tool", "Tool and target", parts.tool(run)),
        ("captures", "Captures", parts.captures(run)),
        ("loads", "Peaks against limits", parts.peaks(peaks, bool(run.switches))),
        ("conservation", "Conservation checks", parts.conservation(run, broken)),
        ("near", "Singularities and limits", "" if near is None else parts.conditioning(near)),
        ("animation", "Animation", parts.animation(run) if animation else ""),
        ("figures", "Figures", parts.figures(run, bool(broken))),
        ("settings", "Settings of the simulation", parts.settings(run)),
        ("robot", "Robot", parts.robot(run)),
    ]
    sections = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{key}">{label}</a>' for key, label, _ in sections)
    body = [
        page.paragraph(shown(note.description, 2000), "lead"),
        page.paragraph(_subtitle(run), "muted"),
        f"<nav>{links}</nav>",
        _notices(run, exceeded(peaks), [] if near is None else conditioning_warnings(near)),
        parts.strip(run),
        page.tiles(run_tables.tiles(run)),
        *(page.section(label, content, key) for key, label, content in sections),
    ]
    units = "SI units; angles in degrees, wheel speeds in rpm."
    return page.page_text(f"{name}: report of a run", body, units, name, scripts=True)


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
    return "\n".join(page.paragraph(shown(text, 600), "notice") for text in said)
