"""The page of a run: timeline, robot, arrows of loads and momentum, and plots."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.dynamics.kernels.size_policy import compiles_quickly
from remora.errors import RemoraError
from remora.simulation.recording.quantities import QUANTITIES
from remora.simulation.recording.recording import Recording
from remora.viewer.interpolation import configurations
from remora.viewer.load_words import short
from remora.viewer.page.analysis_folder import AnalysisFolder
from remora.viewer.page.floating_drag import floats
from remora.viewer.page.page import on, plain
from remora.viewer.page.plots import ChosenPlot, Plot, offered, plot_of
from remora.viewer.page.timed_page import TimedPage
from remora.viewer.page.timeline import timeline_html
from remora.viewer.run_tables import described_phases, phase_starts
from remora.viewer.scene.backdrops import SPACE
from remora.viewer.scene.constraint_marks import active_intervals
from remora.viewer.scene.overlays import (
    MASS_COLOR,
    OVERLAY,
    TRAIL_COLORS,
    Arrows,
    OverlaySample,
    Trail,
    center_of_mass,
    external_loads,
    joint_loads,
    largest,
    positions,
    thinned,
)
from remora.viewer.scene.scene import end_effectors, extent

#: Updates per second of the plot legends.
PLOTS_PER_SECOND = 12.0
#: Maximum number of switches of constraints in the list.
MOST_SWITCHES = 12

#: Arrows: quantity, colour names and units.
_ARROWS: dict[str, tuple[str, tuple[str, str], tuple[str, str]]] = {
    "momentum": (
        "Of the whole robot, at its centre of mass; angular about it. Rounding noise is left out.",
        ("blue linear", "purple angular"),
        ("N s", "N m s"),
    ),
    "reactions": (
        "What each joint's constraint does to the body that it carries.",
        ("yellow force", "pink torque"),
        ("N", "N m"),
    ),
    "wrenches": (
        "External wrenches, at the origins of the bodies.",
        ("red force", "dark red torque"),
        ("N", "N m"),
    ),
}


class RunPage(TimedPage):
    """A run in the browser.

    Attributes:
        run: the run shown.
    """

    def __init__(
        self,
        run: Recording,
        port: int = 8080,
        scene: str = SPACE,
        mesh_root: str | os.PathLike[str] | None = None,
    ) -> None:
        """Build the page."""
        if len(run) == 0:
            raise RemoraError(
                f"the run of {run.robot.name!r} has no samples yet (status: {run.status}); "
                "there is nothing to show"
            )
        super().__init__(run.robot, port, scene, mesh_root, run.switches)
        try:
            self._build(run)
        except BaseException:
            self.close()
            raise

    def _build(self, run: Recording) -> None:
        self.run = run
        self._thin = thinned(run)
        self._shown: list[ChosenPlot] = []
        self._intervals = active_intervals(run.robot, run.switches)
        x = self.poses(run.q[0])
        _, radius = extent(self.scene.cloud(x))
        state = "" if run.status == "complete" else f", {run.status}"
        self.add_timeline(run.t, f"{len(run)} samples, {run.duration:.6g} s{state}")
        self._add_switches()
        self.server.gui.add_html(timeline_html(run, self.seek_id, self.button_id))
        self._add_plots()
        self._add_show(radius)
        self._analysis = AnalysisFolder(self.server, self.fast, radius, self.redraw)
        self.toggles |= self._analysis.toggles
        self.add_look(radius, ghost=True)
        self.aim(*self._thin.q[:: max(1, len(self._thin) // 12)])
        self.redraw()
        self.start_clock()

    @property
    def q(self) -> Array:
        """The displayed configuration, `(nq,)`; geodesic interpolation between samples."""
        return configurations(self.run, np.array([self.time]))[0]

    # Controls -----------------------------------------------------------------------------------

    def _add_switches(self) -> None:
        """Add the phase and the constraints at the current time, and a list of switches."""
        gui = self.server.gui
        self._acting = gui.add_markdown("", visible=False)
        if self.run.switches:
            with gui.add_folder("Switched constraints"):
                gui.add_markdown(_switched(self.run))

    def _add_plots(self) -> None:
        small = compiles_quickly(self.robot)
        source = self.run if small else self._thin
        names = offered(self.run)

        def made(name: str) -> Plot:
            return plot_of(source, name)

        with self.server.gui.add_folder("Plots"):
            for k in range(min(2, len(names))):
                self._shown.append(ChosenPlot(self.server, made, names, names[k], self.redraw))
        self._plots_at = 0.0

    def _add_show(self, radius: float) -> None:
        gui, server, thin = self.server.gui, self.server, self._thin
        tips = end_effectors(self.robot)[:4]
        base = self.robot.bodies[0].name
        ways = positions(thin, [*tips, base]) | {"centre of mass": thin.com}
        self._trails: list[Trail] = []
        unit = 0.4 * radius
        self._momentum = Arrows(server, "momentum", ((30, 120, 255), (160, 60, 230)), unit,
                                ("p", "h"), ("N s", "N m s"))  # fmt: skip
        self._reactions = Arrows(server, "reactions", ((255, 165, 0), (225, 30, 150)), unit)
        self._external = Arrows(server, "external", ((220, 30, 30), (150, 20, 90)), unit)
        self._most: dict[str, tuple[float, float]] = {}
        self._mass = server.scene.add_icosphere(
            f"{OVERLAY}/centre_of_mass", 0.022 * radius, MASS_COLOR, subdivisions=2
        )
        with gui.add_folder("Show"):
            for k, (name, way) in enumerate(ways.items()):
                color = TRAIL_COLORS[k % len(TRAIL_COLORS)]
                trail = Trail(server, name, thin.t, way, color, 0.0035 * radius)
                trail.visible = name in tips
                box = gui.add_checkbox(f"trail: {name}", trail.visible)
                _bind(box, trail, self.redraw)
                self.toggles[f"trail: {name}"] = box
                self._trails.append(trail)
            mass = gui.add_checkbox("centre of mass", True)
            self.toggles["centre of mass"] = mass
            on(mass.on_update, lambda: setattr(self._mass, "visible", mass.value))
            rows = {"momentum": self._momentum, "reactions": self._reactions}
            if self.run.wrenches is not None:
                rows["wrenches"] = self._external
                self._external.visible = True
            for name, arrows in rows.items():
                box = gui.add_checkbox(name, arrows.visible, hint=_ARROWS[name][0])
                _bind(box, arrows, self.redraw)
                self.toggles[name] = box
                self._most[name] = (-1.0, -1.0)
            self._legend = gui.add_markdown("", visible=False)

    # Drawing ------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw the robot, overlays and plots at the current time."""
        with self._lock:
            if self._closed.is_set():
                return
            q, i = self.q, self.index
            x = self.poses(q)
            sample = {name: values[i : i + 1] for name, values in self.run.columns.items()}
            with self.server.atomic():
                self.draw_robot(q, x, self.time)
                self._draw_beside(OverlaySample(self.time, q, x, sample))
                self.show_time()
                self._tell_acting()
            now = time.perf_counter()
            if not self.playing or now - self._plots_at > 1.0 / PLOTS_PER_SECOND:
                self._plots_at = now
                for shown in self._shown:
                    shown.move(self.time)
                phase = int(self.run.phase[i]) if len(self.run.phase) else 0
                base = "floating" if floats(self.robot) else "fixed"
                self._analysis.draw(self.run.robot_in_phase(phase), q, x, base)

    def _draw_beside(self, now: OverlaySample) -> None:
        for trail in self._trails:
            trail.show(now.t)
        com = center_of_mass(self.fast, now.q)
        self._mass.position = com
        for arrows in (self._reactions, self._external, self._momentum):
            arrows.labels = bool(self.toggles["labels"].value)
        if self._reactions.visible:
            self._reactions.show(
                *joint_loads(self.fast, now.sample, now.poses), self._largest("reactions")
            )
        if self._external.visible:
            self._external.show(*external_loads(now.sample, now.poses), self._largest("wrenches"))
        if self._momentum.visible:
            h = QUANTITIES["centroidal_momentum"].of(self.fast, now.sample)
            self._momentum.show(com[None], h[:, :3], h[:, 3:], self._largest("momentum"))
        for arrows in (self._reactions, self._external, self._momentum):
            if not arrows.visible:
                arrows.hide()
        self._describe()

    def _largest(self, quantity: str) -> tuple[float, float]:
        """Return the largest force and torque (or momenta) of the run; noise counts as zero."""
        if self._most[quantity][0] < 0.0:
            if quantity == "wrenches":
                wrenches = self.run.wrenches
                most = (0.0, 0.0) if wrenches is None else largest(wrenches)
            elif quantity == "momentum":
                most = largest(self._thin.centroidal_momentum)
                speed = float(np.abs(self._thin.v).max(initial=0.0))
                noise = 1e-9 * float(self.robot.mass) * max(speed, 1e-12)
                most = (most[0] if most[0] > noise else 0.0, most[1] if most[1] > noise else 0.0)
            else:
                inner = [k for k, joint in enumerate(self.robot.joints) if joint.parent >= 0]
                most = largest(self._thin.reactions[:, inner])
            self._most[quantity] = most
        return self._most[quantity]

    def _tell_acting(self) -> None:
        """Write the phase, and the constraints that act, at the current time."""
        text = "  \n".join(filter(None, (_phase(self.run, self.time), self._constraints())))
        if text != self._acting.content:
            self._acting.content = text
            self._acting.visible = bool(text)

    def _constraints(self) -> str:
        if not self.run.switches:
            return ""
        names = [x.constraint.name for x in self._intervals if x.start <= self.time < x.stop]
        return f"constraints: {', '.join(map(plain, names)) or 'none'}"

    def _describe(self) -> None:
        """Write the values that the longest arrows represent."""
        lines: list[str] = []
        for name, most in self._most.items():
            if most[0] < 0.0 or not self.toggles[name].value:
                continue
            _, colors, units = _ARROWS[name]
            parts = [
                f"{color}, longest {size:.4g} {unit}" if size > 0.0 else f"{color}: none"
                for color, size, unit in zip(colors, most, units, strict=True)
            ]
            lines.append(f"{name}: {'; '.join(parts)}")
        text = "  \n".join(lines)
        if text != self._legend.content:
            self._legend.content = text
            self._legend.visible = bool(text)


def _bind(box: Any, shown: Trail | Arrows, redraw: Any) -> None:
    def update() -> None:
        shown.visible = bool(box.value)
        redraw()

    on(box.on_update, update)


def _phase(run: Recording, t: float) -> str:
    """Return number and name of the phase at a time; empty if there is only one without a name."""
    starts, given = phase_starts(run), described_phases(run)
    k = max(int(np.searchsorted(starts, t, side="right")) - 1, 0)
    name = str(given[k].get("name") or "") if k < len(given) else ""
    if len(given) < 2 and not name:
        return ""
    return f"phase {k + 1} of {len(given)}" + (f": {plain(short(name))}" if name else "")


def _switched(run: Recording) -> str:
    """Return a list of the switches of constraints, with impulses and energies."""
    lines = [f"**{s.t:.4g} s** {plain(str(s))}" for s in run.switches[:MOST_SWITCHES]]
    more = len(run.switches) - len(lines)
    return "  \n".join([*lines, *([f"and {more} more"] if more else [])])
