"""The page of a robot: a slider per degree of freedom; a floating base recoils."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, UnknownName
from remora.model.joints import in_coordinates, is_free, kind
from remora.model.robot import Joint, Robot
from remora.model.state import difference, integrate, neutral
from remora.simulation.recording.quantities import evaluated
from remora.viewer.page.analysis_folder import AnalysisFolder
from remora.viewer.page.drag_target import DragTarget, reached
from remora.viewer.page.floating_drag import drag_joint, floats
from remora.viewer.page.page import BASE, MASS, Page, on, plain
from remora.viewer.page.timeline import units_html
from remora.viewer.run_tables import short
from remora.viewer.scene.backdrops import STUDIO
from remora.viewer.scene.generated_shapes import arm_reach
from remora.viewer.scene.overlays import MASS_COLOR, OVERLAY, center_of_mass, has_mass
from remora.viewer.scene.scene import end_effectors, extent

FLOATING, HELD = "floating", "held"


@dataclass(frozen=True)
class Slider:
    """The degree of freedom that one slider moves.

    Attributes:
        name: name of the joint, and of its degree of freedom if it has several.
        v: index in `v`.
        unit: displayed unit, `°` or `m`.
        scale: the displayed unit in rad or m.
        low: minimum, rad or m.
        high: maximum, rad or m.
        start: initial value, rad or m.
    """

    name: str
    v: int
    unit: str
    scale: float
    low: float
    high: float
    start: float


def freedoms(robot: Robot) -> list[Slider]:
    """Return a slider for each degree of freedom, except those of free bases and mimic joints."""
    found: list[Slider] = []
    rest, reach = neutral(robot), arm_reach(robot)
    for joint in robot.joints:
        if joint.mimic is not None or is_free(joint):
            continue
        for k, freedom in enumerate(kind(joint).freedoms):
            turns = freedom.angular
            low, high = _limits(joint, k, math.pi if turns else reach)
            start = float(rest[joint.q.start + k]) if in_coordinates(joint) else 0.0
            start = min(max(start, low), high)
            name = f"{joint.name} {freedom.name}".rstrip()
            scale, unit = (math.pi / 180.0, "°") if turns else (1.0, "m")
            found.append(Slider(name, joint.v.start + k, unit, scale, low, high, start))
    return found


def _limits(joint: Joint, k: int, most: float) -> tuple[float, float]:
    low, high = float(joint.limits.lower[k]), float(joint.limits.upper[k])
    low = low if math.isfinite(low) else (min(-most, high - most) if math.isfinite(high) else -most)
    high = high if math.isfinite(high) else max(most, low + most)
    return low, high


class RobotPage(Page):
    """A robot in the browser, with sliders for its joints."""

    def __init__(
        self,
        robot: Robot,
        port: int = 8080,
        scene: str = STUDIO,
        mesh_root: str | os.PathLike[str] | None = None,
    ) -> None:
        """Build the page."""
        super().__init__(robot, port, scene, mesh_root)
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        self.freedoms = freedoms(self.robot)
        self._q = self._wanted([f.start for f in self.freedoms])
        _, radius = extent(self.scene.cloud(self.poses(self._q)))
        self._add_joints()
        self._add_target(radius)
        self._mass = self.server.scene.add_icosphere(
            f"{OVERLAY}/centre_of_mass",
            0.022 * radius,
            MASS_COLOR,
            subdivisions=2,
            visible=has_mass(self.robot),
        )
        self._analysis = AnalysisFolder(self.server, self.fast, radius, self.redraw)
        self.toggles |= self._analysis.toggles
        self.add_look(radius)
        self.aim(self._q)
        self.redraw()

    @property
    def q(self) -> Array:
        """The displayed configuration, `(nq,)`."""
        with self._lock:
            return self._q.copy()

    @property
    def base(self) -> str:
        """Whether the base is `floating` or `held`; can be set."""
        return HELD if self._carried is None else self._carried.value

    @base.setter
    def base(self, how: str) -> None:
        if how not in (FLOATING, HELD):
            raise UnknownName("way to carry a base", how, (FLOATING, HELD))
        if self._carried is None and how == FLOATING:
            raise InvalidValue(f"the base of {self.robot.name!r} is not free; it cannot float")
        if self._carried is not None:
            self._carried.value = how

    def move(self, **values: float) -> None:
        """Move sliders together along a straight line: `page.move(elbow=0.5)`, rad or m.

        Raises:
            UnknownName: for an unknown slider; the message lists the sliders.
        """
        names = [f.name for f in self.freedoms]
        for name in values:
            if name not in names:
                raise UnknownName("slider", name, names)
        with self._lock:
            self._busy = True
            try:
                for freedom, slider in zip(self.freedoms, self._sliders, strict=True):
                    if freedom.name in values:
                        value = min(max(values[freedom.name], freedom.low), freedom.high)
                        slider.value = value / freedom.scale
            finally:
                self._busy = False
            self._drag()
            if not self.server.get_clients():  # connected clients keep their cameras
                self.aim(self._q)

    def reach(self, tool: str, target: Array, turn: bool = True) -> str:
        """Move a tool to a pose `(8,)` in the inertial frame; return how close it came.

        The base recoils if it floats. An unreachable target is approached.

        Raises:
            RemoraError: for an unknown tool.
        """
        with self._lock:
            found = reached(self.robot, self._q, tool, target, self.base == FLOATING, turn)
            self._q = found.q
            self._show_sliders()
            self.redraw()
        at = self.robot.frame(tool)
        tip = pose.compose(self.poses(found.q)[at.body], at.placement)
        off = float(np.linalg.norm(pose.translation(tip) - pose.translation(target)))
        return "reached" if found.success else f"{1e3 * off:.1f} mm short of it"

    def _show_sliders(self) -> None:
        """Put the sliders where the joints are."""
        way = difference(self.robot, neutral(self.robot), self._q)
        at = self._coordinates()
        self._busy = True
        try:
            for freedom, slider in zip(self.freedoms, self._sliders, strict=True):
                value = (at.get(freedom.v, 0.0) + float(way[freedom.v])) / freedom.scale
                slider.value = min(max(value, slider.min), slider.max)
        finally:
            self._busy = False

    def _coordinates(self) -> dict[int, float]:
        """Return the neutral values of joints that are coordinates, by their index in v."""
        rest = neutral(self.robot)
        return {
            joint.v.start + k: float(rest[joint.q.start + k])
            for joint in self.robot.joints
            if in_coordinates(joint) and joint.mimic is None
            for k in range(joint.v.stop - joint.v.start)
        }

    def reset(self) -> None:
        """Reset joints and base to the initial configuration."""
        with self._lock:
            self._busy = True
            try:
                for freedom, slider in zip(self.freedoms, self._sliders, strict=True):
                    slider.value = freedom.start / freedom.scale
            finally:
                self._busy = False
            self._q = self._wanted([f.start for f in self.freedoms])
            self.redraw()

    def redraw(self) -> None:
        """Draw the robot in the current configuration."""
        with self._lock:
            if self._closed.is_set():
                return
            x = self.poses(self._q)
            with self.server.atomic():
                self.draw_robot(self._q, x)
                self._mass.position = center_of_mass(self.fast, self._q)
                base = "floating" if floats(self.robot) and self.base == FLOATING else "fixed"
                self._analysis.draw(self.robot, self._q, x, base)
            self._readout.content = _readout(x[0])

    # The joints ---------------------------------------------------------------------------------

    def _add_joints(self) -> None:
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.main_panel.set_width(400)
        gui.add_markdown(
            f"**{plain(self.robot.name)}** · {len(self.robot.bodies)} bodies · "
            f"{float(self.robot.mass):.5g} kg · {self.robot.nv} DOF"
        )
        self._busy, self._carried = False, None
        self._sliders: list[Any] = []
        if floats(self.robot):
            with gui.add_folder("Base"):
                self._carried = gui.add_dropdown(
                    "base", (FLOATING, HELD), initial_value=FLOATING,
                    hint="Floating: it turns so that the momentum stays zero. Held: it stays.",
                )  # fmt: skip
                self._readout = gui.add_markdown("")
        else:
            self._readout = gui.add_markdown("", visible=False)
        with gui.add_folder("Joints"):
            for freedom in self.freedoms:
                digits = 1 if freedom.unit == "°" else 3
                low, high = (x / freedom.scale for x in (freedom.low, freedom.high))
                # Round numbers, within the limits.
                ends = (
                    round(low + 0.4999 * 0.1**digits, digits),
                    round(high - 0.4999 * 0.1**digits, digits),
                )
                ends = ends if ends[0] < ends[1] else (low, high)
                slider = gui.add_slider(
                    short(freedom.name, 20), *ends, 0.1**digits,
                    min(max(freedom.start / freedom.scale, ends[0]), ends[1]),
                    hint=f"{freedom.name}: {low:.4g} to {high:.4g} {freedom.unit}",
                )  # fmt: skip
                on(slider.on_update, self._drag)
                self._sliders.append(slider)
            reset = gui.add_button("reset", color="gray")
        pairs = zip(self.freedoms, self._sliders, strict=True)
        gui.add_html(units_html({str(slider._impl.uuid): f.unit for f, slider in pairs}))
        on(reset.on_click, self.reset)

    def _add_target(self, radius: float) -> None:
        """Add the handle that a tool follows, and its controls."""
        gui, tips = self.server.gui, end_effectors(self.robot)[:12]
        self._target = DragTarget(self.server, 0.3 * radius, self._follow_target)
        if not tips or not self.freedoms:
            return
        with gui.add_folder("Target"):
            self._drags = gui.add_checkbox(
                "drag a tool", False, hint="A handle in the scene that the tool follows."
            )
            self._tool = gui.add_dropdown("tool", tips, initial_value=tips[-1])
            self._turns = gui.add_checkbox("orientation, too", True)
            self._outcome = gui.add_markdown("", visible=False)
        on(self._drags.on_update, self._show_target)
        on(self._tool.on_update, self._show_target)

    def _show_target(self) -> None:
        """Show the handle at the tool, or hide it; the camera then follows what does not recoil."""
        wanted = bool(self._drags.value)
        at = self.robot.frame(str(self._tool.value))
        tip = pose.compose(self.poses(self._q)[at.body], at.placement)
        self._target.show(tip if wanted else None)
        self._outcome.visible = wanted
        self._outcome.content = "Drag the arrows and rings at the tool."
        self.follow.value = MASS if wanted and self.base == FLOATING else BASE
        self.redraw()

    def _follow_target(self, target: Array) -> None:
        outcome = self.reach(str(self._tool.value), target, bool(self._turns.value))
        self._outcome.content = f"{self._tool.value}: {outcome}"

    def _wanted(self, values: list[float]) -> Array:
        """Return the configuration of slider values in rad or m, with the base at rest."""
        rest = neutral(self.robot)
        way = np.zeros(self.robot.nv)
        at = self._coordinates()
        for freedom, value in zip(self.freedoms, values, strict=True):
            way[freedom.v] = value - at.get(freedom.v, 0.0)
        return integrate(self.robot, rest, way)

    def _drag(self) -> None:
        """Follow the sliders; a floating base recoils along the path."""
        with self._lock:
            if self._busy:
                return
            pairs = zip(self.freedoms, self._sliders, strict=True)
            target = self._wanted([s.value * f.scale for f, s in pairs])
            if floats(self.robot):
                target = (
                    drag_joint(self.robot, self._response, self._q, target)
                    if self.base == FLOATING
                    else np.concatenate([self._q[:8], target[8:]])
                )
            self._q = target
            self.redraw()

    def _response(self, q: Array) -> Array:
        return evaluated(self.fast, "base_response", q)


def _readout(x: Array) -> str:
    """Return position and attitude of the base as a small table."""
    roll, pitch, yaw = np.degrees(pose.to_rpy(x)) + 0.0
    px, py, pz = pose.translation(x) + 0.0
    return (
        "| | x / roll | y / pitch | z / yaw |\n|---|---:|---:|---:|\n"
        f"| position, m | {px:.4f} | {py:.4f} | {pz:.4f} |\n"
        f"| attitude, ° | {roll:.3f} | {pitch:.3f} | {yaw:.3f} |"
    )
