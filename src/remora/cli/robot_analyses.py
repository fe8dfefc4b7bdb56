"""The analyses of `remora analyze`: workspace, manipulability, coupling; table of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from remora.algebra.array_ops import Array
from remora.analysis.arm import check_base, last_moved_frame, moving_joints
from remora.analysis.cells import surface_library
from remora.analysis.coupling import coupling, coupling_map
from remora.analysis.manipulability import manipulability
from remora.analysis.measures import check_measure, manipulability_map
from remora.analysis.sampling import JointRange, joint_ranges
from remora.analysis.workspace import workspace
from remora.atomic_files import replacing
from remora.cli.path_analyses import (
    Result,
    conditioning_page,
    payload_page,
    sensitivity_page,
)
from remora.cli.wheel_analysis import wheels_page
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.viewer.figures.figures import library
from remora.viewer.figures.map_figures import bar_figure, map_figure
from remora.viewer.figures.workspace_figures import LABELS
from remora.viewer.report.analysis_page import AnalysisPage, analysis_page
from remora.viewer.report.html_page import write_page

#: Positions per joint of a map.
POINTS = 200
#: A coverage below this is noted on the page.
COVERED = 0.9


def write_analysis(robot: Robot, what: str, frame: str | None, options: dict[str, Any]) -> Path:
    """Analyse a robot, write pictures, data and page into a folder, and return the page.

    Args:
        robot: the robot.
        what: name of an analysis in ANALYSES.
        frame: frame or body; None: the last frame that the arm moves.
        options: those of the command line, by name; `out` is the folder.
    """
    check_measure(options["measure"])
    target = frame or last_moved_frame(robot)
    moving_joints(robot, target)
    library("matplotlib")
    if what == "workspace" and not options["plane"]:
        surface_library()
    out: Path = options["out"]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RemoraError(f"{out}: cannot be created: {error.strerror}; see --out") from None
    page, data, table = ANALYSES[what](robot, target, options)
    files = [f"{what}.npz"]
    with replacing(out / files[0]) as part:
        np.savez_compressed(part, **data)
    if table is not None:
        files.append(f"{what}.csv")
        header, rows = table
        with replacing(out / files[1]) as part:
            np.savetxt(part, rows, "%.9g", ",", header=",".join(header), comments="")
    for k, (figure, _, _) in enumerate(page.figures):
        files.append(f"{what}_{k + 1}.png")
        with replacing(out / files[-1]) as part:
            figure.savefig(part, dpi=150, facecolor="white")
    page = replace(page, files=files)
    return write_page(out / f"{what}.html", lambda: analysis_page(page))


def _workspace(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    console = Console(stderr=True)
    with Progress(console=console, disable=options["quiet"], transient=True) as bar:
        task = bar.add_task("workspace", total=options["samples"])
        found = workspace(
            robot, target, plane=options["plane"], samples=options["samples"],
            cells=options["cells"], measure=options["measure"], threads=options["threads"],
            checkpoint=options["out"] / "workspace.checkpoint.npz",
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    unit = "m²" if options["plane"] else "m³"
    middle = 0.5 * sum(found.grid.extent()[-1])
    figures = [(found.plot(), "Workspace", f"Colour: best {LABELS[found.measure]} in each cell.")]
    if not options["plane"]:
        cut = found.slice(z=middle)
        title = f"slice at z = {middle:.2f} m, {cut.volume:.2f} m²"
        figures.append((cut.plot(title=title), "Slice", "One layer of cells, middle height."))
    notices = _defaults(found.ranges)
    if found.coverage < COVERED:
        notices.append(
            f"Samples reach about {found.coverage:.0%} of the cells: the region may have holes. "
            "Take more samples or fewer cells."
        )
    page = AnalysisPage(
        f"{robot.name}: workspace of {target}", "Reachable with a fixed base",
        [(f"{found.volume:.3f} {unit}", "area" if options["plane"] else "volume"),
         (f"{found.samples:,}", "samples"), (f"{1e3 * found.grid.spacing:.1f} mm", "cells"),
         (f"{found.coverage:.1%}", "coverage before refinement")],
        figures, _settings(robot, target, found.ranges), notices,
    )  # fmt: skip
    data = {
        "reached": found.reached, "counts": found.counts, "best": found.best,
        "origin": found.grid.origin, "spacing": found.grid.spacing, "axes": list(found.axes),
        "volume": found.volume,
    }  # fmt: skip
    return page, data, None


def _manipulability(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    base, measure = check_base(robot, options["base"]), options["measure"]
    subspace = options["plane"] or "translation"

    def values(grid: dict[str, Array]) -> Array:
        return manipulability_map(
            robot, target, grid, measure, base, subspace=subspace, threads=options["threads"],
            q=_bent(robot, target),
        )  # fmt: skip

    ranges, grid, found = _map(robot, target, options["over"], values)
    here = manipulability(robot, _bent(robot, target), target, base, subspace=subspace)
    finite = np.where(np.isfinite(found), found, np.nan)
    least = measure == "condition"  # of all measures the only one that is best where it is small
    best = np.nanargmin(finite) if least else np.nanargmax(finite)
    at = np.unravel_index(best, found.shape)
    shown = _shown(robot, grid)
    page = AnalysisPage(
        f"{robot.name}: manipulability of {target}", f"Kinematic, {base} base, {subspace}",
        [(f"{found[at]:.4g}", f"{'smallest' if least else 'largest'} {measure}"),
         *((f"{axis[k]:.4g} {unit}", f"{name} there")
           for (name, axis), k, unit in zip(shown[0].items(), at, shown[1], strict=True)),
         (", ".join(f"{x:.2f}" for x in here.semi_axes), "semi-axes at a quarter of all ranges")],
        [(map_figure(shown[0], found, LABELS[measure], shown[1], "manipulability"), "Map",
          "The other joints are a quarter of their range from its lower end.")],
        _settings(robot, target, ranges), _defaults(ranges),
    )  # fmt: skip
    return page, {**grid, "values": found}, _table(grid, found, measure)


def _coupling(robot: Robot, target: str, options: dict[str, Any]) -> Result:
    q = _bent(robot, target)

    def values(grid: dict[str, Array]) -> Array:
        return coupling_map(robot, grid, q=q, threads=options["threads"])[..., 0]

    ranges, grid, found = _map(robot, target, options["over"], values)
    here = coupling(robot, q)
    names = [joint.name for joint in robot.joints[1:] if joint.mimic is None and kind(joint).nv]
    names = [n for n in names for _ in range(kind(robot.joints[n]).nv)]
    shown = _shown(robot, grid)
    label = "coupling factor, rad/s per rad/s"
    page = AnalysisPage(
        f"{robot.name}: coupling of base and arm", "Rotation of the floating base",
        [(f"{found.min():.3f}", "smallest coupling factor"),
         (f"{found.max():.3f}", "largest"),
         (names[int(here.per_joint.argmax())], "disturbs most")],
        [(map_figure(shown[0], found, label, shown[1], "coupling factor"), "Map",
          "Fastest rotation of the base for joint speeds of unit norm."),
         (bar_figure(names, here.per_joint, "rad/s of the base per unit joint speed",
                     "reaction to each joint"), "Joints",
          "All joints a quarter of their range from its lower end.")],
        _settings(robot, target, ranges), _defaults(ranges),
    )  # fmt: skip
    return (
        page,
        {**grid, "factor": found, "per_joint": here.per_joint},
        _table(grid, found, "factor"),
    )


#: Analyses by name.
ANALYSES: dict[str, Callable[[Robot, str, dict[str, Any]], Result]] = {
    "workspace": _workspace,
    "manipulability": _manipulability,
    "coupling": _coupling,
    "wheels": wheels_page,
    "conditioning": conditioning_page,
    "sensitivity": sensitivity_page,
    "payload": payload_page,
}


def _bent(robot: Robot, target: str) -> Array:
    """Return a configuration that is rarely singular: each joint at a quarter of its range."""
    q = neutral(robot)
    for r in joint_ranges(robot, target):
        for k, (low, high) in enumerate(zip(r.lower, r.upper, strict=True)):
            q[r.q + k] = low + 0.25 * (high - low)
    return q


def _map(
    robot: Robot, target: str, over: list[str] | None, values: Callable[[dict[str, Array]], Array]
) -> tuple[tuple[JointRange, ...], dict[str, Array], Array]:
    """Return ranges, grid and values over two joints: those named, or that change it most."""
    ranges = joint_ranges(robot, target)
    single = {r.name: r for r in ranges if len(r.lower) == 1}
    if over is None:
        sweeps = {
            n: values({n: np.linspace(r.lower[0], r.upper[0], 25)}) for n, r in single.items()
        }
        order = sorted(sweeps, key=lambda n: -float(np.ptp(np.nan_to_num(sweeps[n], posinf=0.0))))
        over = [n for n in single if n in order[:2]]
    if len(over) != 2:
        raise InvalidValue("a map needs two joints: --over NAME --over NAME")
    for name in over:
        if name not in single:
            raise UnknownName("joint of a map", name, single)
    grid = {n: np.linspace(single[n].lower[0], single[n].upper[0], POINTS) for n in over}
    return ranges, grid, values(grid)


def _shown(robot: Robot, grid: dict[str, Array]) -> tuple[dict[str, Array], tuple[str, str]]:
    """Return the grid in degrees or m, and the two units."""
    turns = [kind(robot.joints[name]).freedoms[0].angular for name in grid]
    axes = {
        name: np.degrees(axis) if turn else axis
        for (name, axis), turn in zip(grid.items(), turns, strict=True)
    }
    one, two = ("°" if turn else "m" for turn in turns)
    return axes, (one, two)


def _table(grid: dict[str, Array], values: Array, name: str) -> tuple[list[str], Array]:
    a, b = np.meshgrid(*grid.values(), indexing="ij")
    return [*grid, name], np.stack([a.ravel(), b.ravel(), values.ravel()], axis=-1)


def _defaults(ranges: tuple[JointRange, ...]) -> list[str]:
    names = ", ".join(r.name for r in ranges if r.default)
    return [f"Joints without limits are taken to turn once around: {names}."] if names else []


def _settings(robot: Robot, target: str, ranges: tuple[JointRange, ...]) -> list[tuple[str, str]]:
    rows = [("robot", f"{robot.name}, {float(robot.mass):.6g} kg"), ("frame", target)]
    for r in ranges:
        turns = kind(robot.joints[r.name]).freedoms[0].angular
        scale, unit = (180.0 / np.pi, "°") if turns else (1.0, " m")
        spans = [
            f"{scale * low:.4g}{unit} to {scale * high:.4g}{unit}"
            for low, high in zip(r.lower, r.upper, strict=True)
        ]
        rows.append((r.name, "; ".join(spans) or "every orientation"))
    return rows
