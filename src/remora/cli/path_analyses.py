"""Analyses of `remora analyze` along a run: conditioning, sensitivity of the miss, a payload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from remora.algebra.array_ops import Array
from remora.analysis.arm import check_base
from remora.analysis.jacobian_conditioning import conditioning
from remora.analysis.payload import identify_payload
from remora.analysis.sampling import joint_ranges
from remora.analysis.sensitivity import miss_sensitivity
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.simulation.storage.reading import open_run
from remora.viewer.figures.map_figures import interval_figure
from remora.viewer.report.analysis_page import AnalysisPage

#: Page, data, and a table of header and rows.
Result = tuple[AnalysisPage, dict[str, Any], tuple[list[str], Array] | None]
#: Standard deviations where none are given: parts of masses and inertias, m.
USUAL_ERRORS = {"mass": 0.01, "inertia": 0.02, "com": 0.002, "length": 0.0005}
#: Configurations of a path without a run, and most that are taken from one.
POINTS, MOST_POINTS = 101, 400
_PARAMETERS = ["mass", "m x", "m y", "m z", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"]
_UNITS = ["kg", *["kg m"] * 3, *["kg m²"] * 6]


def conditioning_page(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    """Return the conditioning along a run, or along the default path."""
    base = check_base(robot, options["base"])
    q, t, source = _path(robot, target, options["run"])
    subspace = options["plane"] or "twist"
    found = conditioning(robot, q, target, base, subspace, t=t)
    worst = int(np.argmax(found.condition))
    nearest = float(np.nanmin(found.limit_share)) if found.joints else np.nan
    page = AnalysisPage(
        f"{robot.name}: conditioning of {found.frame}", f"{subspace}, {base} base, {source}",
        [(f"{found.condition[worst]:.4g}", "largest condition number"),
         (f"{found.smallest.min():.4g}", "smallest singular value"),
         (f"{np.min(found.joint_distance):.3g} rad", "nearest singularity, estimated"),
         *([(f"{100.0 * nearest:.1f} %", "of a range from the nearest limit")]
           if np.isfinite(nearest) else [])],
        [(found.plot(), "Conditioning",
          f"Angular rates are multiplied by {found.length:.3g} m. Shaded: near.")],
        [("robot", robot.name), ("frame", found.frame), ("path", source)],
        [text[:1].upper() + text[1:] + "." for text in found.warnings()],
    )  # fmt: skip
    data = {
        "t": found.t, "singular_values": found.singular_values, "condition": found.condition,
        "joint_distance": found.joint_distance, "limit_distance": found.limit_distance,
        "limit_joints": np.array(found.joints),
    }  # fmt: skip
    header = ["t", *(f"sigma{k + 1}" for k in range(found.singular_values.shape[1])), "condition"]
    rows = np.column_stack([found.t, found.singular_values, found.condition])
    return page, data, (header, rows)


def sensitivity_page(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    """Return the sensitivity of the miss at the end of a run or of the default path."""
    base = check_base(robot, options["base"])
    errors = _errors(options["error"]) or USUAL_ERRORS
    q, _, source = _path(robot, target, options["run"])
    found = miss_sensitivity(robot, q, target, errors, base)
    samples = options["samples"] if options["samples_given"] else 500
    console = Console(stderr=True)
    with Progress(console=console, disable=options["quiet"], transient=True) as bar:
        task = bar.add_task("Monte Carlo", total=samples)
        x, misses = found.monte_carlo(
            samples, checkpoint=options["out"] / "sensitivity.checkpoint.npz",
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    drawn = float(np.linalg.norm(misses)) / samples**0.5
    worst = int(np.argmax(found.contributions))
    page = AnalysisPage(
        f"{robot.name}: sensitivity of {found.frame.name}", f"{base} base, {source}",
        [(f"{1e3 * found.rms:.3g} mm", "rms miss by derivatives"),
         (f"{1e3 * drawn:.3g} mm", f"rms miss of {samples:,} robots"),
         (found.labels[worst], f"matters most, {1e3 * found.contributions[worst]:.3g} mm")],
        [(found.plot(misses=misses), "Miss",
          "Left: derivative times standard deviation. Right: robots drawn at random, and the "
          "distribution that the derivatives predict.")],
        [("robot", robot.name), ("frame", found.frame.name), ("path", source),
         *((f"standard deviation, {k}", f"{v:g}") for k, v in errors.items())],
    )  # fmt: skip
    data = {
        "labels": np.array(found.labels), "deviations": found.deviations,
        "jacobian": found.jacobian, "covariance": found.covariance, "errors": x, "misses": misses,
    }  # fmt: skip
    columns = [found.deviations, *found.jacobian, found.contributions]
    header = ["standard deviation", "dx", "dy", "dz", "miss"]
    return page, data, (header, np.column_stack(columns))


def payload_page(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    """Return the payload that a run was made with; the robot is the one without it."""
    if options["run"] is None:
        raise InvalidValue("payload needs a recorded manoeuvre: --run DIR")
    run = open_run(options["run"])
    if run.robot.nq != robot.nq or run.robot.joints.names != robot.joints.names:
        raise RemoraError(
            f"{options['run']}: was made with other joints than those of {robot.name!r}"
        )
    found = identify_payload(robot, run.q, run.v, target, momentum=None)
    half = 0.5 * np.diff(found.intervals, axis=1)[:, 0]
    rows = [
        (f"{name}, {unit}", f"{x:.6g} ± {h:.2g}")
        for name, unit, x, h in zip(_PARAMETERS, _UNITS, found.parameters, half, strict=True)
    ]
    notices = [] if found.consistent else [
        "The parameters that fit best belong to no body; shown are the nearest that do."
    ]  # fmt: skip
    com = ", ".join(f"{round(1e3 * x)}" for x in found.com)
    page = AnalysisPage(
        f"{robot.name}: payload at {target}", f"identified from {options['run']}",
        [(f"{found.mass:.4g} kg", f"mass, ± {half[0]:.2g} kg"), (com, "centre of mass, mm"),
         (f"{found.samples:,}", "samples"), (f"{found.residual:.2g}", "relative residual")],
        [(interval_figure(_PARAMETERS, found.parameters, half), "Parameters",
          f"{100.0 * found.confidence:.0f} % intervals, relative to the estimates.")],
        [("robot", robot.name), ("frame", target), *rows], notices,
    )  # fmt: skip
    data = {
        "parameters": found.parameters, "covariance": found.covariance,
        "intervals": found.intervals, "consistent": found.consistent,
    }  # fmt: skip
    return page, data, (["parameter", "low", "high"],
                        np.column_stack([found.parameters, found.intervals]))  # fmt: skip


def _path(robot: Robot, target: str, folder: Path | None) -> tuple[Array, Array | None, str]:
    """Return configurations, times and a description: of a run, or through the joints' ranges."""
    if folder is None:
        q = np.repeat(neutral(robot)[None], POINTS, axis=0)
        way = np.linspace(0.25, 0.75, POINTS)[:, None]
        for r in joint_ranges(robot, target):
            if r.lower:
                low, high = np.array(r.lower), np.array(r.upper)
                q[:, r.q : r.q + len(low)] = low + way * (high - low)
        return q, None, "all joints from a quarter to three quarters of their ranges"
    run = open_run(folder)
    if run.robot.nq != robot.nq or run.robot.joints.names != robot.joints.names:
        raise RemoraError(f"{folder}: was made with other joints than those of {robot.name!r}")
    every = np.unique(np.linspace(0, len(run) - 1, min(len(run), MOST_POINTS)).astype(int))
    q = np.array(run.q[every])
    return q, run.t[every], f"run {folder}"


def _errors(given: list[str] | None) -> dict[str, float]:
    """Return the standard deviations of `--error NAME=VALUE`."""
    found: dict[str, float] = {}
    for text in given or []:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidValue(f"--error {text!r} must be NAME=VALUE, such as mass=0.01") from None
    return found
