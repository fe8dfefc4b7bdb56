"""The report of a campaign: one self-contained HTML page."""

from __future__ import annotations

import importlib
import math
import os
from datetime import UTC, datetime
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np

from remora.atomic_files import write_text
from remora.campaigns import figures
from remora.campaigns.blocks import REASONS
from remora.campaigns.figures import short_name
from remora.campaigns.result import Campaign
from remora.campaigns.study import Study
from remora.errors import RemoraError
from remora.viewer.report.drawing import drawing

#: Worst cases that are listed for each output.
WORST = 3
#: Failed runs that are listed.
FAILED = 10
#: Rank correlation and Sobol index from which on an influence is listed.
WEAK = 0.1


def campaign_report(campaign: Campaign, path: str | os.PathLike[str]) -> Path:
    """Write the report of a campaign into one HTML file and return its path.

    It has the success rate with Wilson's interval, distributions of the outputs, percentile bands
    over time, which dispersion drives which output, convergence, worst cases and failed runs with
    the commands that replay them. It makes no network requests.

    Args:
        campaign: the campaign.
        path: the file.

    Raises:
        RemoraError: if there are no runs yet, the study has changed, or the file cannot be written.
    """
    if not len(campaign):
        raise RemoraError("the campaign has no runs yet: there is nothing to report")
    return write_text(path, _html(campaign, campaign.study()))


def _html(campaign: Campaign, study: Study) -> str:
    css = resources.files("remora.viewer.report").joinpath("report.css").read_text(encoding="utf-8")
    version: str = importlib.import_module("remora").__version__
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    pictures = (
        ("Distributions", figures.distributions(campaign, study),
         "Solid line: median; dashed: 95th percentile; orange: bound of a success criterion."),
        ("Over time", figures.bands(campaign, study),
         "Median, and bands of 50, 90 and 98 % of the runs."),
        ("What drives what", figures.drivers(campaign),
         "Spearman's rank correlation: +1 and \N{MINUS SIGN}1 are monotonic relations."),
        ("Convergence", figures.convergence(campaign),
         "The rate after the first n runs; runs are independent of each other."),
    )  # fmt: skip
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta http-equiv="Content-Security-Policy" content="default-src data: \'unsafe-inline\'">',
        f"<title>{escape(study.name)}: campaign</title>\n<style>{css}</style>\n</head>\n<body>",
        f"<h1>{escape(study.name)}</h1>",
        f'<p class="muted">{escape(study.description)}</p>',
        _tiles(campaign),
        _section("Success", _success(campaign, study)) if study.success else "",
        _section("Outputs", _outputs(campaign, study)),
        *(
            _section(title, f"<figure>{drawing(figure)}<figcaption>{text}</figcaption></figure>")
            for title, figure, text in pictures
            if figure is not None
        ),
        _section("Dispersions and their influence", _influence(campaign)),
        _section("Worst cases", _worst(campaign, study)),
        _section("Runs that failed", _failed(campaign)),
        f"<footer>Written by Remora {escape(version)} on {now}. SI units unless a unit is given."
        "</footer>\n</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>" if content else ""


def _tiles(campaign: Campaign) -> str:
    done = len(campaign)
    failed = int(np.count_nonzero(campaign["ok"] == 0.0))
    tiles = [(f"{done:,}", f"runs of {campaign.runs:,}" if done < campaign.runs else "runs")]
    if campaign.criteria:
        rate, low, high = campaign.success_rate()
        tiles.append((f"{100 * rate:.4g} %", "success"))
        tiles.append((f"{100 * low:.4g} to {100 * high:.4g} %", "95 % interval (Wilson)"))
    tiles.append((f"{failed:,}", "could not be finished"))
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'
        for value, what in tiles
    ) + "</div>"  # fmt: skip


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table; columns whose name begins with # are numbers."""
    look = [' class="n"' if name.startswith("#") else "" for name in head]
    top = "".join(f"<th{x}>{escape(name.removeprefix('#'))}</th>"
                  for name, x in zip(head, look, strict=True))  # fmt: skip
    body = "\n".join(
        "<tr>" + "".join(f"<td{x}>{c}</td>" for c, x in zip(row, look, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _success(campaign: Campaign, study: Study) -> str:
    rows: list[list[str]] = []
    for name, criterion in study.success.items():
        rate, low, high = campaign.success_rate(name)
        rows.append([escape(name), escape(criterion.described(study.outputs)), f"{100 * rate:.4g}",
                     f"{100 * low:.4g} to {100 * high:.4g}"])  # fmt: skip
    return _table(["criterion", "holds if", "#%", "#95 % interval"], rows)


def _outputs(campaign: Campaign, study: Study) -> str:
    """Return one row per output: its numbers, and what drives it most."""
    rows: list[list[str]] = []
    for name, own in study.outputs.items():
        x = own.quantity.shown(campaign[name])
        x = x[np.isfinite(x)]
        if not x.size:
            continue
        shown = [_number(float(p)) for p in np.percentile(x, [5, 50, 95])]
        extremes = f"{_number(float(x.min()))} to {_number(float(x.max()))}"
        found = next(iter(campaign.drivers(name).items()), None)
        driver = "\N{EN DASH}"
        if found is not None and _strength(*found[1]) >= WEAK:
            driver = escape(short_name(found[0]))
        unit = escape(own.quantity.shown_unit)
        rows.append([escape(name), unit, *shown, extremes, f"{x.size:,}", driver])
    head = ["output", "unit", "#5 %", "#median", "#95 %", "#extremes", "#runs", "driven most by"]
    return _table(head, rows) if rows else ""


def _number(x: float) -> str:
    return "\N{EN DASH}" if math.isnan(x) else f"{x:.4g}".replace("-", "\N{MINUS SIGN}")


def _influence(campaign: Campaign) -> str:
    rows: list[list[str]] = []
    shown = [*campaign.outputs, *(["success"] if campaign.criteria else [])]
    for output in shown:
        for dispersion, (rank, index) in list(campaign.drivers(output).items())[:5]:
            if _strength(rank, index) >= WEAK:
                rows.append([escape(output), escape(short_name(dispersion)), _share(rank),
                             _share(index)])  # fmt: skip
    if not rows:
        return ""
    note = (
        '<p class="small muted">The Sobol index is the part of an output\'s variance that one '
        "dispersion explains alone, estimated from these runs. Up to five dispersions of each "
        f"output, the strongest first; those below {WEAK:g} in both are left out.</p>"
    )
    return _table(["output", "dispersion", "#rank correlation", "#Sobol index"], rows) + note


def _strength(*numbers: float) -> float:
    return max((abs(x) for x in numbers if not math.isnan(x)), default=0.0)


def _share(x: float) -> str:
    return "\N{EN DASH}" if math.isnan(x) else f"{x:.2f}".replace("-", "\N{MINUS SIGN}")


def _worst(campaign: Campaign, study: Study) -> str:
    rows: list[list[str]] = []
    for name, own in study.outputs.items():
        x = campaign[name]
        known = np.flatnonzero(np.isfinite(x))
        if not known.size:
            continue
        far = np.abs(x[known] - np.median(x[known]))
        for run in known[np.argsort(-far)[:WORST]]:
            value = f"{_number(float(own.quantity.shown(x[run])))} {own.quantity.shown_unit}"
            rows.append([escape(name), f"{run}", escape(value), _command(campaign, int(run))])
    note = '<p class="small muted">The runs farthest from the median of each output.</p>'
    return note + _table(["output", "#run", "#value", "replay"], rows)


def _failed(campaign: Campaign) -> str:
    runs = np.flatnonzero(campaign["ok"] == 0.0)
    if not runs.size:
        return ""
    codes, ends = campaign["outcome"], campaign["end"]
    rows = [
        [f"{run}", escape(REASONS[int(codes[run])]), _number(float(ends[run])),
         _command(campaign, int(run))]
        for run in runs[:FAILED]
    ]  # fmt: skip
    more = f'<p class="small muted">and {runs.size - FAILED} more</p>' if runs.size > FAILED else ""
    return _table(["#run", "reason", "#at, s", "replay"], rows) + more


def _command(campaign: Campaign, run: int) -> str:
    return f"<code>remora campaign replay {escape(campaign.folder.path.name)} {run}</code>"
