"""Sections of a report as HTML: stills, commands, tools, captures, peaks, figures, settings."""

from __future__ import annotations

import base64
import gzip
import math
import warnings
from collections.abc import Sequence
from html import escape

import numpy as np

from remora.analysis.jacobian_conditioning import Conditioning
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.simulation.recording.recording import Recording
from remora.viewer import run_tables
from remora.viewer.command_words import commanded
from remora.viewer.component_words import component_table
from remora.viewer.figures.figures import figure_of_panels, panels_of
from remora.viewer.figures.panels import Panel
from remora.viewer.load_words import LONGEST, short
from remora.viewer.report import tool_story
from remora.viewer.report.animation_html import html_of
from remora.viewer.report.conditioning_rows import conditioning_table
from remora.viewer.report.conservation_words import conservation_table, conserved_line
from remora.viewer.report.html_page import figure, named_values, paragraph, table
from remora.viewer.report.peak_loads import NEAR, OVER, JointPeaks, Peak
from remora.viewer.report.stills import stills

#: Maximum number of characters of a function's source.
LONGEST_SOURCE = 5000
#: The figures: title, quantities, explanation.
FIGURES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("Joint positions", ("q",), "Limits are shown if a joint comes near them."),
    ("Velocities", ("v",), "Joints, and floating bodies in their own axes."),
    ("Drive torques and forces", ("tau",),
     "They include the loads that prescribed and locked joints need. Effort limits are shown if a "
     "drive comes near them."),
    ("Damping, friction and stops", ("passive",), "Passive torques and forces in the joints."),
    ("Attitude and position", ("attitude", "position"),
     "Roll, pitch and yaw relative to the axes at the start."),
    ("Reactions", ("reactions",),
     "Loads on the bearings of a joint, about the origin of its child body. The torque of the "
     "drive is not included."),
    ("External wrenches", ("wrenches",), "About the origin of the body."),
    ("Component signals", ("signals",),
     "Outputs and states. Sampled components hold their outputs between updates."),
    ("Momentum", ("momentum",), "If the total is zero, the axis has the size of the sum over the "
                                "bodies."),
    ("Centre of mass", ("com",), "A straight line without external forces."),
    ("Energy", ("energy",), "Its change equals the work done. The rest is numerical error."),
    ("Conservation errors", ("drift",), "Relative, as in the conservation table."),
)  # fmt: skip
#: Figures that show nothing new where momentum and energy are kept.
_FLAT_BY_DESIGN = ("momentum", "com", "drift")
#: Script that unpacks the animation into an iframe, with the page's theme.
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


def strip(run: Recording) -> str:
    """Return stills of the run side by side; a line that says why where there are none."""
    try:
        taken = stills(run)
    except RemoraError as error:
        return paragraph(f"No stills: {shown(str(error), LONGEST)}", "muted small")
    pictures: list[str] = []
    for still in taken:
        data = base64.b64encode(still.jpeg).decode()
        words = f"{still.t:.4g} s" + (f": {still.caption}" if still.caption else "")
        pictures.append(
            f'<figure><img alt="{escape(f"the robot at {words}", quote=True)}" '
            f'src="data:image/jpeg;base64,{data}"><figcaption><b>{still.t:.4g} s</b> '
            f"{escape(still.caption)}</figcaption></figure>"
        )
    return (
        f'<div class="strip">{"".join(pictures)}</div>\n<p class="small muted">Lines: path of '
        "the tool until then. Blue: base and panels at the start.</p>"
    )


def commands(run: Recording) -> str:
    """Return the phases with what was commanded in words, components, and events."""
    made: list[str] = []
    for k, phase in enumerate(commanded(run)):
        span = "not reached" if phase.start is None else f"{phase.start:.6g} s to {phase.end:.6g} s"
        lines = "".join(f"<li>{escape(shown(line, 1500))}</li>" for line in phase.lines)
        made.append(
            f'<li><h3>{k + 1}. {escape(phase.name)} <span class="muted">{span}</span></h3>'
            f"<ul>{lines}</ul></li>"
        )
    parts = [f'<ol class="phases">{"".join(made)}</ol>'] if made else []
    acting = component_table(run)
    if acting.rows:
        parts.append(
            "<h3>Components</h3>\n<p>Active in all phases, on joints that are neither "
            "prescribed nor locked.</p>\n" + table(acting)
        )
    events = run_tables.events(run)
    if events.rows:
        parts.append(f"<h3>Events</h3>\n{table(events)}")
    for name, source in run_tables.sources(run).items():
        cut = source[:LONGEST_SOURCE] + ("\n..." if len(source) > LONGEST_SOURCE else "")
        parts.append(
            f'<details class="screen"><summary class="small">Source of <code>'
            f"{escape(shown(name))}</code></summary><pre>{escape(cut)}</pre></details>"
        )
    return "\n".join(parts)


def tool(run: Recording) -> str:
    """Return the paths of the tools, and how far they were from their targets."""
    paths, targets = tool_story.tool_table(run), tool_story.target_table(run)
    if not paths.rows:
        return ""
    parts = [table(paths)]
    if targets.rows:
        parts.append(f"<h3>Distance from the target</h3>\n{table(targets)}")
    picture = figure_of_panels(run, tool_story.tool_panels(run))
    caption = "Its position in the inertial frame"
    caption += ", and how far it is from its target." if targets.rows else "."
    parts.append(figure(picture, "Tool", caption) if picture is not None else "")
    return "\n".join(parts)


def captures(run: Recording) -> str:
    """Return what was captured and released, with impulses and energies."""
    rows = tool_story.capture_rows(run)
    if not rows.rows:
        return ""
    text = (
        "A rigid capture removes the relative velocity by equal and opposite impulses: momentum is "
        "conserved, kinetic energy is lost. Impulses act on the child of the constraint, about "
        "its frame."
    )
    return f"<p>{text}</p>\n{table(rows)}"


def peaks(found: Sequence[JointPeaks], switched: bool = False) -> str:
    """Return peaks of efforts, speeds and positions, with bars that show the share of the limit.

    Args:
        found: the peaks.
        switched: whether constraints were switched in the run, with impulses.
    """
    if not found:
        return ""
    rows = "\n".join(
        f"<tr><td>{escape(short(own.name, 40))}</td>"
        + "".join(_peak(peak) for peak in (own.effort, own.speed, own.travel))
        + "</tr>"
        for own in found
    )
    head = (
        "<th>joint</th><th>largest drive torque or force</th><th>largest speed</th><th>range</th>"
    )
    note = (
        "Bars show the share of the limit; for the range, the distance from its middle (a full bar "
        "is at an end). Drive loads include those of prescribed and locked joints."
    )
    if switched:
        note += (
            " Impulses at captures and releases are not included, here and in the tiles above; for "
            "peak loads simulate a compliant capture."
        )
    return (
        f'<p class="small muted">{note}</p>\n<div class="wide"><table class="peaks"><thead><tr>'
        f"{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _peak(peak: Peak) -> str:
    if not peak.text:
        return "<td></td>"
    text = escape(peak.text)
    if peak.limit:
        text += f' <span class="muted">of {escape(peak.limit)}</span>'
    if math.isnan(peak.share):
        return f"<td>{text}</td>"
    look = "over" if peak.share > OVER else "near" if peak.share > NEAR else "ok"
    percent = f"{100.0 * peak.share:.0f}" if peak.share >= 0.01 else f"{100.0 * peak.share:.1f}"
    bar = f'<i class="bar {look}" style="--w:{min(max(peak.share, 0.0), 1.0):.3f}"></i>'
    return f'<td title="{percent} % at {peak.t:.6g} s">{text}{bar}</td>'


def conservation(run: Recording, broken: Sequence[str]) -> str:
    """Return one line where all is well, with the numbers folded; otherwise what is wrong."""
    numbers = table(conservation_table(run.conservation()))
    if not broken:
        line = f'<p><b class="good">✓</b> {escape(conserved_line(run.conservation()))}</p>'
        return f'{line}\n<details><summary class="small">Numbers</summary>{numbers}</details>'
    said = "".join(f"<li>{escape(text)}</li>" for text in broken)
    text = (
        "Without external forces, momentum is constant, the centre of mass moves on a straight "
        "line, and the change of energy equals the work done. In this run:"
    )
    advice = "Smaller tolerances (rtol, atol) or steps usually help."
    return (
        f'<div class="notice"><p>{text}</p><ul>{said}</ul><p>{advice}</p></div>\n<p>Largest '
        f"errors over all samples:</p>\n{numbers}"
    )


def conditioning(found: Conditioning) -> str:
    """Return what came near to a singularity or a limit; folded where nothing did."""
    text = (
        "The Jacobian maps the speeds of the joints to the velocity of the frame. A condition "
        "number needs all rows in one unit, so the rows of the angular velocity are multiplied by "
        f"the length of the arm, {found.length:.3g} m, which makes them m/s. Directions in which "
        "the arm cannot move in any configuration are not counted."
    )
    rows = f"<p>{text}</p>\n{table(conditioning_table(found))}"
    if not found.warnings():
        worst = float(found.condition.max())
        line = (
            "No singularity or limit is near: the condition number of the Jacobian is at most "
            f"{worst:.4g}."
        )
        return f'<p>{line}</p>\n<details><summary class="small">Numbers</summary>{rows}</details>'
    picture = figure(found.plot(), "Conditioning", "Shaded: near a singularity, or a limit.")
    return f"{rows}\n{picture}"


def settings(run: Recording) -> str:
    """Return robot, integrator, tolerances and versions."""
    return named_values(run_tables.setup(run))


def robot(run: Recording) -> str:
    """Return the bodies and joints, folded if they are many."""
    frames = ", ".join(short(frame.name) for frame in run.robot.frames[:50])
    note = paragraph(f"Frames: {frames}", "small muted") if frames else ""
    return table(run_tables.robot_table(run.robot)) + note


def animation(run: Recording) -> str:
    """Return a button that loads the animation, which is packed in the page."""
    try:
        page = html_of(run)
    except RemoraError as error:
        return paragraph(f"Left out: {shown(str(error), LONGEST)}", "muted")
    packed = base64.b64encode(gzip.compress(page.encode(), 6, mtime=0)).decode()
    return (
        '<div class="screen"><button id="play" type="button">Load the animation</button>'
        "<noscript> (needs JavaScript)</noscript>\n"
        f'<script type="text/plain" id="packed">{packed}</script>\n'
        f"<script>{_SCRIPT}</script></div>"
    )


def figures(run: Recording, broken: bool) -> str:
    """Return the figures; those that are flat by design are folded away.

    Args:
        run: the run.
        broken: whether something is not kept that should be: then its figures are not folded.
    """
    shown_, folded = list[str](), list[str]()
    conserved = not broken and not run.conservation().linear_momentum.broken_by
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in other scripts
        for title, quantities, caption in FIGURES:
            if quantities == ("passive",) and not run.passive.any():
                continue
            found = panels_of(run, *quantities)
            if not found:
                continue
            text = caption
            varying = [panel for panel in found if not is_flat(panel)]
            flat = not varying or (conserved and quantities[0] in _FLAT_BY_DESIGN)
            flat = flat or (quantities == ("drift",) and not broken)
            if not flat and len(varying) < len(found):
                constant = ", ".join(panel.title for panel in found if is_flat(panel))
                text += f" Constant and not shown: {constant}."
            picture = figure_of_panels(run, found if flat else varying)
            (folded if flat else shown_).append(figure(picture, title, text))
    if folded:
        what = (
            "1 figure that is flat" if len(folded) == 1 else f"{len(folded)} figures that are flat"
        )
        shown_.append(
            f'<details><summary class="small">{what} by design: conserved or constant '
            f"quantities</summary>{''.join(folded)}</details>"
        )
    return "\n".join(shown_)


#: Variation relative to the size of the values that is none.
NONE = 1e-9


def is_flat(panel: Panel) -> bool:
    """Return whether no line of a panel changes by more than rounding, or it has no line."""
    for line in panel.lines:
        values = line.values[np.isfinite(line.values)]
        if not values.size:
            continue
        size = max(panel.scale, float(np.abs(values).max()))
        if float(np.ptp(values)) > NONE * size:
            return False
    return True
