"""The report of a campaign: one self-contained HTML page."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np

from remora.campaigns import figures
from remora.campaigns.blocks import REASONS
from remora.campaigns.figures import short_name
from remora.campaigns.result import Campaign
from remora.campaigns.study import Study
from remora.errors import RemoraError
from remora.viewer.report.html_page import (
    figure,
    page_text,
    paragraph,
    section,
    table,
    tiles,
    write_page,
)
from remora.viewer.run_tables import TextTable

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
    study = campaign.study()
    return write_page(path, lambda: _html(campaign, study))


def _html(campaign: Campaign, study: Study) -> str:
    pictures = (
        ("Distributions", figures.distributions(campaign, study),
         "Solid line: median; dashed: 95th percentile; orange: bound of a success criterion."),
        ("Over time", figures.bands(campaign, study),
         "Median, and bands of 50, 90 and 98 % of the runs."),
        ("Consistency of filters", figures.consistency(campaign, study),
         "Blue: bounds in which the mean lies with 95 % probability at each time if the "
         "covariance of the filter is right. " + _consistency(campaign, study)),
        ("What drives what", figures.drivers(campaign),
         "Spearman's rank correlation: +1 and \N{MINUS SIGN}1 are monotonic relations."),
        ("Convergence", figures.convergence(campaign),
         "The rate after the first n runs; runs are independent of each other."),
    )  # fmt: skip
    parts = [
        paragraph(study.description, "muted"),
        tiles(_tiles(campaign)),
        section("Success", _success(campaign, study)),
        section("Outputs", _outputs(campaign, study)),
        *(
            section(title, figure(drawn, caption=text))
            for title, drawn, text in pictures
            if drawn is not None
        ),
        section("Dispersions and their influence", _influence(campaign)),
        section("What control laws know", _known(study)),
        section("Worst cases", _worst(campaign, study)),
        section("Failed runs", _failed(campaign)),
    ]
    units = "SI units unless a unit is given."
    return page_text(f"{study.name}: campaign", parts, units, study.name)


def _consistency(campaign: Campaign, study: Study) -> str:
    """Return the verdict on each filter, in words."""
    if not np.any(campaign["ok"] == 1.0):
        return ""
    names = [name for name, band in study.bands.items() if band.freedoms is not None]
    return " ".join(f"{name}: {campaign.consistency(name)}." for name in names)


def _tiles(campaign: Campaign) -> list[tuple[str, str]]:
    done = len(campaign)
    failed = int(np.count_nonzero(campaign["ok"] == 0.0))
    made = [(f"{done:,}", f"runs of {campaign.runs:,}" if done < campaign.runs else "runs")]
    if campaign.criteria:
        rate, low, high = campaign.success_rate()
        made.append((f"{100 * rate:.4g} %", "success"))
        made.append((f"{100 * low:.4g} to {100 * high:.4g} %", "95 % interval (Wilson)"))
    made.append((f"{failed:,}", "could not be finished"))
    return made


def _success(campaign: Campaign, study: Study) -> str:
    rows: list[tuple[str, ...]] = []
    for name, criterion in study.success.items():
        rate, low, high = campaign.success_rate(name)
        rows.append((name, criterion.described(study.outputs), f"{100 * rate:.4g}",
                     f"{100 * low:.4g} to {100 * high:.4g}"))  # fmt: skip
    return table(TextTable(("criterion", "holds if", "#%", "#95 % interval"), rows))


def _outputs(campaign: Campaign, study: Study) -> str:
    """Return one row per output: its numbers, and what drives it most."""
    rows: list[tuple[str, ...]] = []
    for name, output in study.outputs.items():
        x = output.quantity.shown(campaign[name])
        x = x[np.isfinite(x)]
        if not x.size:
            continue
        shown = [_number(float(p)) for p in np.percentile(x, [5, 50, 95])]
        extremes = f"{_number(float(x.min()))} to {_number(float(x.max()))}"
        found = next(iter(campaign.drivers(name).items()), None)
        driver = "\N{EN DASH}"
        if found is not None and _strength(*found[1]) >= WEAK:
            driver = short_name(found[0])
        rows.append((name, output.quantity.shown_unit, *shown, extremes, f"{x.size:,}", driver))
    head = ("output", "unit", "#5 %", "#median", "#95 %", "#extremes", "#runs", "driven most by")
    return table(TextTable(head, rows))


def _number(x: float, digits: str = ".4g") -> str:
    return "\N{EN DASH}" if math.isnan(x) else f"{x:{digits}}".replace("-", "\N{MINUS SIGN}")


def _influence(campaign: Campaign) -> str:
    rows: list[tuple[str, ...]] = []
    shown = [*campaign.outputs, *(["success"] if campaign.criteria else [])]
    for output in shown:
        for dispersion, (rank, index) in list(campaign.drivers(output).items())[:5]:
            if _strength(rank, index) >= WEAK:
                rows.append(
                    (output, short_name(dispersion), _number(rank, ".2f"), _number(index, ".2f"))
                )
    if not rows:
        return ""
    note = (
        "The Sobol index is the part of an output's variance that one dispersion explains alone, "
        "estimated from these runs. Up to five dispersions of each output, the strongest first; "
        f"those below {WEAK:g} in both are left out."
    )
    head = ("output", "dispersion", "#rank correlation", "#Sobol index")
    return table(TextTable(head, rows)) + paragraph(note, "small muted")


def _known(study: Study) -> str:
    """Return what control laws know: whose numbers differ by run, and the true state they read."""
    system, made = study.system, ""
    if system.designed:
        made = _numbers_known(study)
    truth = [(law, ", ".join(parts)) for law, parts in system.truth_read_by().items()]
    if truth:
        made += table(TextTable(("law", "parts of the true state that no sensor measures"), truth))
    return made


def _numbers_known(study: Study) -> str:
    """Return which numbers are dispersed, of the robot and of the design."""
    system = study.system
    owned: dict[str, list[str]] = {"robot": [], "design": []}
    for name, target in study.targets.items():
        if target.part == "parameter":
            owned.setdefault(system.owner_of(target.key), []).append(name)
    rows = [
        ("robot: what moves, actuators, sensors, environment", owned["robot"]),
        (f"design, with which control laws compute: {', '.join(system.designed)}", owned["design"]),
    ]
    told = [(what, ", ".join(names) or "none") for what, names in rows]
    note = (
        "Control laws compute with the design, the numbers that were known when they were made, "
        "and not with those of a run."
    )
    made = table(TextTable(("numbers of", "dispersed in this study"), told))
    return made + paragraph(note, "small muted")


def _strength(*numbers: float) -> float:
    return max((abs(x) for x in numbers if not math.isnan(x)), default=0.0)


def _worst(campaign: Campaign, study: Study) -> str:
    rows: list[tuple[str, ...]] = []
    for name, output in study.outputs.items():
        x = campaign[name]
        known = np.flatnonzero(np.isfinite(x))
        if not known.size:
            continue
        far = np.abs(x[known] - np.median(x[known]))
        for run in known[np.argsort(-far)[:WORST]]:
            value = f"{_number(float(output.quantity.shown(x[run])))} {output.quantity.shown_unit}"
            rows.append((name, f"{run}", value, _command(campaign, int(run))))
    note = paragraph("The runs farthest from the median of each output.", "small muted")
    made = table(TextTable(("output", "#run", "#value", "$replay"), rows))
    return note + made if made else ""


def _failed(campaign: Campaign) -> str:
    runs = np.flatnonzero(campaign["ok"] == 0.0)
    codes, ends = campaign["outcome"], campaign["end"]
    rows = [
        (f"{run}", REASONS[int(codes[run])], _number(float(ends[run])),
         _command(campaign, int(run)))
        for run in runs[:FAILED]
    ]  # fmt: skip
    head = ("#run", "reason", "#at, s", "$replay")
    return table(TextTable(head, rows, runs.size - len(rows)))


def _command(campaign: Campaign, run: int) -> str:
    return f"remora campaign replay {campaign.folder.path.name} {run}"
