"""The page of a batch: one or several runs in one scene, with a plot that compares them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, asarray
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kernels.parameters import parameter
from remora.dynamics.kinematics import frame_pose, poses
from remora.errors import InvalidValue, RemoraError
from remora.model.robot import Robot
from remora.simulation.batch.host_arrays import to_host
from remora.simulation.batch.result import Batch
from remora.viewer.figures.percentile_bands import batch_columns
from remora.viewer.interpolation import interpolated
from remora.viewer.page.page import on
from remora.viewer.page.plots import COLORS, ChosenPlot, Plot
from remora.viewer.page.run_page import PLOTS_PER_SECOND
from remora.viewer.page.timed_page import TimedPage
from remora.viewer.page.timeline import span_html
from remora.viewer.scene.backdrops import STUDIO, chosen_scene
from remora.viewer.scene.gltf import to_glb
from remora.viewer.scene.materials import Finish
from remora.viewer.scene.overlays import THIN, Trail
from remora.viewer.scene.scene import WORLD, clean, end_effectors, extent
from remora.viewer.scene.shapes import shapes

#: Runs that are shown if none are named, and at most.
DEFAULT, MOST = 8, len(COLORS)
#: Opacity of ghosts.
OPACITY = 0.35


@dataclass(frozen=True, eq=False)
class ShownRun:
    """One run on the page.

    Attributes:
        index: its index in the batch, counted through.
        rows: number of samples until its end.
        t: times of its samples, `(rows,)`, s.
        q: configurations, `(rows, nq)`.
        color: red, green, blue.
    """

    index: int
    rows: int
    t: Array
    q: Array
    color: tuple[int, int, int]


class BatchPage(TimedPage):
    """Runs of a batch in the browser: the first as it is, the others as ghosts of one colour each.

    Attributes:
        batch: the batch.
        runs: the runs shown.
    """

    def __init__(
        self,
        batch: Batch,
        runs: Sequence[int] = (),
        port: int = 8080,
        dark: bool = False,
        mesh_root: str | os.PathLike[str] | None = None,
    ) -> None:
        """Build the page."""
        self.batch = batch
        self.runs = _chosen(batch, runs)
        self._values = [batch.run_parameters(run.index) for run in self.runs]
        names = tuple(self._values[0])
        self._poses = compile_function(poses, batch.robot, arguments=["q"], parameters=names)
        robot = batch.robot
        for name, value in self._values[0].items():
            robot = parameter(robot, name)[1](robot, asarray(value))
        super().__init__(robot, port, chosen_scene(None, dark, STUDIO), mesh_root)
        try:
            self._build(mesh_root)
        except BaseException:
            self.close()
            raise

    def _build(self, mesh_root: str | os.PathLike[str] | None) -> None:
        batch, first = self.batch, self.runs[0]
        _, radius = extent(self.scene.cloud(self.poses(first.q[0])))
        count = f"{len(self.runs)} of {len(batch)} runs"
        self.add_timeline(batch.t, f"{count}, {batch.t.size} samples")
        self.server.gui.add_html(span_html(batch.t, self.seek_id, self.button_id))
        self._ghosts = [
            _ghost(self.server, self.robot, run, mesh_root) for run in self.runs[1:]
        ]  # fmt: skip
        self._columns = batch_columns(batch)
        names = [_shown_name(n, unit) for n, (_, unit) in self._columns.items()]
        self._by_name = dict(zip(names, self._columns, strict=True))
        joints = [n for n in names if n.startswith("q.") and n.endswith("°")]
        joints.sort(key=self._spread, reverse=True)
        with self.server.gui.add_folder("Compare"):
            self._plots = [
                ChosenPlot(self.server, self._plot, names, name, self.redraw)
                for name in joints[:2] or names[:2]
            ]
        self._plots_at = 0.0
        self._add_show(radius)
        self.add_look(radius)
        self.aim(*(run.q[i] for run in self.runs for i in {0, run.rows // 2, run.rows - 1}))
        self.redraw()
        self.start_clock()

    def _add_show(self, radius: float) -> None:
        gui = self.server.gui
        tip = next(iter(end_effectors(self.robot)), self.robot.bodies[0].name)
        self._trails: list[Trail] = []
        self._visible = [True] * len(self.runs)
        path = self._path_kernel(tip)
        with gui.add_folder("Runs"):
            for k, run in enumerate(self.runs):
                rows = np.unique(np.linspace(0, run.rows - 1, min(THIN, run.rows)).astype(int))
                values = [v[None] for v in self._values[k].values()]
                points = pose.translation(path(run.q[rows], *values))
                name = f"run {run.index}"
                trail = Trail(
                    self.server, name, run.t[rows], points, run.color, 0.0035 * radius
                )  # fmt: skip
                trail.visible = True
                self._trails.append(trail)
                ok = "" if np.ravel(self.batch.ok)[run.index] else ", failed"
                outcome = np.ravel(self.batch.outcome)
                end = f", {outcome[run.index]} at {run.t[-1]:.6g} s" if outcome.size else ""
                box = gui.add_checkbox(name, True, hint=f"path of {tip}{end}{ok}")
                self.toggles[name] = box
                on(box.on_update, lambda k=k, box=box: self._show(k, bool(box.value)))

    def _path_kernel(self, tip: str) -> Any:
        return compile_function(
            frame_pose, self.batch.robot, arguments=["q"], fixed={"frame": tip},
            parameters=tuple(self._values[0]),
        )  # fmt: skip

    def _show(self, k: int, visible: bool) -> None:
        self._visible[k] = visible
        self._trails[k].visible = visible
        for node in self.scene.nodes if k == 0 else self._ghosts[k - 1]:
            node.visible = visible
        self.redraw()

    def _plot(self, name: str) -> Plot:
        values, unit = self._columns[self._by_name[name]]
        chosen = values[[run.index for run in self.runs]].T
        turned = unit in ("rad", "rad/s")
        lines = np.degrees(chosen) if turned else np.asarray(chosen, float)
        named = [f"run {run.index}" for run in self.runs]
        return Plot(_unit(unit), named, self.batch.t, lines)

    def _spread(self, name: str) -> float:
        """Return how much the runs shown differ in a quantity, while all of them last."""
        values, _ = self._columns[self._by_name[name]]
        rows = min(run.rows for run in self.runs)
        return float(np.ptp(values[[run.index for run in self.runs], :rows], axis=0).max())

    def poses(self, q: Array) -> Array:
        """Return the poses of the first run's bodies at q, `(nb, 8)`."""
        return self._poses(q[None], *(v[None] for v in self._values[0].values()))[0]

    @property
    def q(self) -> Array:
        """The displayed configuration of the first run, `(nq,)`."""
        return self.configuration(0)

    def configuration(self, k: int) -> Array:
        """Return the displayed configuration of the k-th shown run; after its end, its last one."""
        run = self.runs[k]
        return interpolated(self.batch.robot, run.t, run.q, np.array([self.time]))[0]

    def redraw(self) -> None:
        """Draw all runs at the current time."""
        with self._lock:
            if self._closed.is_set():
                return
            q = np.stack([self.configuration(k) for k in range(len(self.runs))])
            own = [np.stack([v[n] for v in self._values]) for n in self._values[0]]
            x = self._poses(q, *own)
            with self.server.atomic():
                self.draw_robot(q[0], x[0])
                for nodes, there in zip(self._ghosts, x[1:], strict=True):
                    for node, r, p in zip(
                        nodes, there[:, :4], pose.translation(there), strict=True
                    ):
                        node.wxyz, node.position = r, p
                for trail in self._trails:
                    trail.show(self.time)
                self.show_time()
            now = time.perf_counter()
            if not self.playing or now - self._plots_at > 1.0 / PLOTS_PER_SECOND:
                self._plots_at = now
                for shown in self._plots:
                    shown.move(self.time)


def _chosen(batch: Batch, runs: Sequence[int]) -> list[ShownRun]:
    """Return the runs to show, or raise."""
    count = len(batch)
    given = list(runs) or np.unique(np.linspace(0, count - 1, min(DEFAULT, count)).astype(int))
    if len(given) > MOST:
        raise InvalidValue(f"at most {MOST} runs are shown at once, not {len(given)}")
    q = np.asarray(to_host(batch.q), float)
    q = q.reshape(count, batch.t.size, -1)
    found: list[ShownRun] = []
    for k, index in enumerate(given):
        whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or not 0 <= index < count:
            raise InvalidValue(f"a batch of {count} runs has no run {index!r}")
        known = np.isfinite(q[index]).all(axis=-1)
        rows = int(np.argmin(known)) if not known.all() else known.size
        if not rows:
            raise RemoraError(f"run {index} has no samples: {np.ravel(batch.outcome)[index]}")
        color = COLORS[k].lstrip("#")
        rgb = int(color[:2], 16), int(color[2:4], 16), int(color[4:], 16)
        found.append(ShownRun(int(index), rows, batch.t[:rows], q[index, :rows], rgb))
    return found


def _ghost(
    server: Any, robot: Robot, run: ShownRun, mesh_root: str | os.PathLike[str] | None
) -> list[Any]:
    """Add a translucent robot in the colour of a run; return one node per body."""
    red, green, blue = (c / 255.0 for c in run.color)
    finish = Finish((red, green, blue, OPACITY))
    drawn = [replace(shape, finish=finish) for shape in shapes(robot, mesh_root)]
    return [
        server.scene.add_glb(
            f"{WORLD}/run_{run.index}/{i}_{clean(body.name)}",
            to_glb([shape for shape in drawn if shape.body == i]),
            cast_shadow=False,
        )
        for i, body in enumerate(robot.bodies)
    ]


def _unit(unit: str) -> str:
    return unit.replace("rad", "°") if unit in ("rad", "rad/s") else unit


def _shown_name(name: str, unit: str) -> str:
    return f"{name}, {_unit(unit)}" if unit else name
