"""`rm.analyze`: analyse a robot, and write a page with pictures and data.

Here are workspace, manipulability and coupling, and the table of all analyses; those along a path
are in `path_analyses`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.analysis.arm import check_base, last_moved_frame, moving_joints
from remora.analysis.base_coupling import coupling, coupling_map
from remora.analysis.cells import surface_library
from remora.analysis.checkpoints import Progress
from remora.analysis.manipulability import manipulability
from remora.analysis.measures import manipulability_map
from remora.analysis.sampling import JointRange, joint_ranges
from remora.analysis.workspace import workspace
from remora.errors import InvalidValue, RemoraError, UnknownName
from remora.model.joints import kind
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.model.takes_robot import takes_robot
from remora.viewer.figures.analysis_figures import bar_figure, map_figure
from remora.viewer.figures.figures import library
from remora.viewer.figures.workspace_figures import LABELS
from remora.viewer.report.analysis_page import AnalysisPage
from remora.viewer.report.path_analyses import (
    conditioning_page,
    payload_page,
    sensitivity_page,
    wheels_page,
)

#: Positions per joint of a map.
POINTS = 200
#: A coverage below this is noted on the page.
COVERED = 0.9


@takes_robot
def analyze(
    robot: Robot,
    analysis: str,
    folder: str | os.PathLike[str],
    frame: str | None = None,
    **options: Any,
) -> Path:
    """Analyse a robot and write one HTML page, its pictures (PNG) and its data (NPZ, CSV).

    | analysis | options |
    | --- | --- |
    | `workspace` | `plane`, `measure`, `samples`, `cells`, `threads`, `progress` |
    | `manipulability` | `base`, `plane`, `measure`, `over`, `threads` |
    | `coupling` | `over`, `threads` |
    | `wheels` | `run`, `capacity` |
    | `conditioning` | `base`, `plane`, `run` |
    | `sensitivity` | `base`, `error`, `samples`, `run`, `progress` |
    | `payload` | `run` |

    A workspace or a sensitivity that was interrupted is resumed by the same call.

    Args:
        robot: the robot.
        analysis: name of the analysis.
        folder: folder for the files; created if missing.
        frame: frame or body; default: the last frame that the arm moves.
        options: options of the analysis, as on the command line; see docs/cli.md. `run` is the
            folder of a recorded run, `error` maps names to standard deviations, and `progress` is
            called with the samples done and all samples.

    Returns:
        path of the page.

    Raises:
        RemoraError: if the analysis, an option or the frame is unknown or has an invalid value,
            a library is missing, or the files cannot be written.

    Example:
        >>> rm.analyze(rm.load("servicer"), "coupling", "analysis").name
        'coupling.html'
    """
    if not isinstance(analysis, str) or analysis not in ANALYSES:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownName("analysis", analysis, ANALYSES)
    known = [p.name for p in inspect.signature(ANALYSES[analysis]).parameters.values()][3:]
    for name in options:
        if name not in known:
            raise UnknownName(f"option of {analysis}", name, known)
    target = frame or last_moved_frame(robot)
    moving_joints(robot, target)
    library("matplotlib")
    if analysis == "workspace" and not options.get("plane"):
        surface_library()
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RemoraError(f"{out}: cannot be created: {error.strerror}") from None
    checkpoint = out / f"{analysis}.checkpoint.npz"
    return ANALYSES[analysis](robot, target, checkpoint, **options).write(out, analysis)


def workspace_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    plane: str | None = None,
    measure: str = "volume",
    samples: int = 1_000_000,
    cells: int = 100,
    threads: int = 0,
    progress: Progress | None = None,
) -> AnalysisPage:
    """Return the page of what a frame reaches with a fixed base."""
    found = workspace(
        robot, target, plane=plane, samples=samples, cells=cells, measure=measure,
        threads=threads, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    figures = [(found.plot(), "Workspace", f"Colour: best {LABELS[found.measure]} in each cell.")]
    if not plane:
        middle = 0.5 * sum(found.grid.extent()[-1])
        cut = found.slice(z=middle)
        title = f"slice at z = {middle:.2f} m, {cut.volume:.2f} m²"
        figures.append((cut.plot(title=title), "Slice", "One layer of cells, middle height."))
    notices = _defaults(found.ranges)
    if found.coverage < COVERED:
        notices.append(
            f"Samples reach about {found.coverage:.0%} of the cells: the region may have holes. "
            "Take more samples or fewer cells."
        )
    return AnalysisPage(
        f"{robot.name}: workspace of {target}", "Reachable with a fixed base",
        [(f"{found.volume:.3f} {'m²' if plane else 'm³'}", "area" if plane else "volume"),
         (f"{found.samples:,}", "samples"), (f"{1e3 * found.grid.spacing:.1f} mm", "cells"),
         (f"{found.coverage:.1%}", "coverage before refinement")],
        figures, _settings(robot, target, found.ranges), notices,
        {"reached": found.reached, "counts": found.counts, "best": found.best,
         "origin": found.grid.origin, "spacing": found.grid.spacing, "axes": list(found.axes),
         "volume": found.volume},
    )  # fmt: skip


def manipulability_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    base: str = "floating",
    plane: str | None = None,
    measure: str = "volume",
    over: Sequence[str] | None = None,
    threads: int = 0,
) -> AnalysisPage:
    """Return the page of the manipulability over two joints."""
    base, subspace, q = check_base(robot, base), plane or "translation", _bent(robot, target)

    def values(grid: dict[str, Array]) -> Array:
        return manipulability_map(
            robot, target, grid, measure, base, subspace=subspace, threads=threads, q=q
        )

    ranges, grid, found = _map(robot, target, over, values)
    here = manipulability(robot, q, target, base, subspace=subspace)
    finite = np.where(np.isfinite(found), found, np.nan)
    least = measure == "condition"  # of all measures the only one that is best where it is small
    best = np.nanargmin(finite) if least else np.nanargmax(finite)
    at = np.unravel_index(best, found.shape)
    axes, units = _shown(robot, grid)
    return AnalysisPage(
        f"{robot.name}: manipulability of {target}", f"Kinematic, {base} base, {subspace}",
        [(f"{found[at]:.4g}", f"{'smallest' if least else 'largest'} {measure}"),
         *((f"{axis[k]:.4g} {unit}", f"{name} there")
           for (name, axis), k, unit in zip(axes.items(), at, units, strict=True)),
         (", ".join(f"{x:.2f}" for x in here.semi_axes), "semi-axes at a quarter of all ranges")],
        [(map_figure(axes, found, LABELS[measure], units, "manipulability"), "Map",
          "The other joints are a quarter of their range from its lower end.")],
        _settings(robot, target, ranges), _defaults(ranges),
        {**grid, "values": found}, _columns(grid, found, measure),
    )  # fmt: skip


def coupling_page(
    robot: Robot,
    target: str,
    checkpoint: Path,
    over: Sequence[str] | None = None,
    threads: int = 0,
) -> AnalysisPage:
    """Return the page of the rotation of a floating base by the joints."""
    q = _bent(robot, target)

    def values(grid: dict[str, Array]) -> Array:
        return coupling_map(robot, grid, q=q, threads=threads)[..., 0]

    ranges, grid, found = _map(robot, target, over, values)
    here = coupling(robot, q)
    names = [joint.name for joint in robot.joints[1:] if joint.mimic is None and kind(joint).nv]
    names = [n for n in names for _ in range(kind(robot.joints[n]).nv)]
    axes, units = _shown(robot, grid)
    label = "coupling factor, rad/s per rad/s"
    return AnalysisPage(
        f"{robot.name}: coupling of base and arm", "Rotation of the floating base",
        [(f"{found.min():.3f}", "smallest coupling factor"),
         (f"{found.max():.3f}", "largest"),
         (names[int(here.per_joint.argmax())], "disturbs most")],
        [(map_figure(axes, found, label, units, "coupling factor"), "Map",
          "Fastest rotation of the base for joint speeds of unit norm."),
         (bar_figure(names, here.per_joint, "rad/s of the base per unit joint speed",
                     "reaction to each joint"), "Joints",
          "All joints a quarter of their range from its lower end.")],
        _settings(robot, target, ranges), _defaults(ranges),
        {**grid, "factor": found, "per_joint": here.per_joint}, _columns(grid, found, "factor"),
    )  # fmt: skip


#: Analyses by name: the function that returns the page, of robot, frame, checkpoint and options.
ANALYSES: dict[str, Callable[..., AnalysisPage]] = {
    "workspace": workspace_page,
    "manipulability": manipulability_page,
    "coupling": coupling_page,
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
    robot: Robot,
    target: str,
    over: Sequence[str] | None,
    values: Callable[[dict[str, Array]], Array],
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
        raise InvalidValue("a map needs two joints: name two with `over`")
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


def _columns(grid: dict[str, Array], values: Array, name: str) -> dict[str, Array]:
    sides = np.meshgrid(*grid.values(), indexing="ij")
    return {**dict(zip(grid, sides, strict=True)), name: values}


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
