"""The folder `Analysis` of a page: overlays that move with the robot, and their numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.analysis.arm import moving_joints
from remora.dynamics.constraints.loop_kinematics import active_constraints
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import RemoraError
from remora.model.formats.bounded_xml import shown
from remora.model.robot import Robot
from remora.viewer.load_words import short
from remora.viewer.page.floating_drag import floats
from remora.viewer.page.page import on, plain
from remora.viewer.scene.analysis_shapes import (
    WEAK_TO_STRONG,
    Cloud,
    ToolEllipsoid,
    ellipsoid_faces,
    ellipsoid_points,
    joint_coupling,
    ramp,
    workspace_cloud,
)
from remora.viewer.scene.overlays import OVERLAY
from remora.viewer.scene.scene import WORLD, end_effectors

ELLIPSOID, WORKSPACE, COUPLING = "ellipsoid", "workspace", "coupling"
#: Length of a semi-axis of 1 m/s per rad/s in the scene, m.
SCALE = 0.35
#: Robots with more bodies have no overlays that are computed while they move.
MOST_BODIES = 40
_GREEN = (70, 200, 130)


class AnalysisFolder:
    """Overlays of analysis, switched on and off on a page.

    Kernels and workspaces are made in threads, once each; until then the folder says so.

    Attributes:
        toggles: the checkboxes by name; empty for a robot that has nothing to analyse.
        text: what the folder says.
    """

    def __init__(
        self, server: Any, fast: CompiledRobot, radius: float, redraw: Callable[[], None]
    ) -> None:
        """Add the controls that apply to the robot.

        Args:
            server: the viser server.
            fast: the robot.
            radius: its size, m.
            redraw: called after a change; calls `draw`.
        """
        self._server, self._fast, self._radius, self._redraw = server, fast, radius, redraw
        self.toggles: dict[str, Any] = {}
        self.text = ""
        self._nodes: dict[str, Any] = {}
        self._marks: dict[str, tuple[Any, Any]] = {}
        self._made: dict[tuple[str, ...], Any] = {}
        self._drawn_cloud = ""
        robot = fast.robot
        tools = [tool for tool in end_effectors(robot) if _is_moved(robot, tool)][:12]
        small = len(robot.bodies) <= MOST_BODIES and not active_constraints(robot)
        coupled = floats(robot) and len(robot.joints) > 1
        if not small or not (tools or coupled):
            return
        gui = server.gui
        with gui.add_folder("Analysis", expand_by_default=False):
            if tools:
                self._tool = gui.add_dropdown("of tool", tools, initial_value=tools[-1])
                on(self._tool.on_update, redraw)
                self._add(ELLIPSOID, "Velocities of the tool for joint speeds of unit norm.")
                self._add(WORKSPACE, "Workspace of the tool with a fixed base.")
            if coupled:
                self._add(COUPLING, "How fast the vehicle turns for unit speed of each joint.")
            self._says = gui.add_markdown("", visible=False)

    def _add(self, name: str, hint: str) -> None:
        box = self._server.gui.add_checkbox(name, False, hint=hint)
        self.toggles[name] = box
        on(box.on_update, self._redraw)

    def draw(self, robot: Robot, q: Array, x: Array, base: str) -> None:
        """Draw what is switched on.

        Args:
            robot: the robot, with the constraints that act now.
            q: configuration, `(nq,)`.
            x: poses of the bodies, `(nb, 8)`.
            base: "fixed" or "floating".
        """
        shows = {
            ELLIPSOID: self._ellipsoid, WORKSPACE: self._workspace, COUPLING: self._coupling,
        }  # fmt: skip
        said: list[str] = []
        for name, box in self.toggles.items():
            if not box.value:
                self._hide(name)
                continue
            if active_constraints(robot):
                self._hide(name)
                said.append(f"**{name}**: not while constraints act")
                continue
            said.append(f"**{name}** {shows[name](q, x, base)}")
        text = "  \n".join(said)
        if self.toggles and text != self.text:
            self.text = self._says.content = text
            self._says.visible = bool(text)

    def _hide(self, name: str) -> None:
        nodes = [node for pair in self._marks.values() for node in pair]
        for node in nodes if name == COUPLING else [self._nodes.get(name)]:
            if node is not None and node.visible:
                node.visible = False

    def _prepared(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """Return what `make` returned, or words: that it is being made, or why it failed."""
        if key not in self._made:
            self._made[key] = "is being prepared"

            def run() -> None:
                try:
                    self._made[key] = make()
                except RemoraError as error:
                    self._made[key] = plain(shown(str(error), 200))
                except Exception as error:  # otherwise a thread ends in silence
                    self._made[key] = f"failed: {plain(shown(repr(error), 200))}"
                self._redraw()

            threading.Thread(target=run, name="remora analysis", daemon=True).start()
        return self._made[key]

    # One function for each overlay: it draws, and returns what is written ------------------------

    def _ellipsoid(self, q: Array, x: Array, base: str) -> str:
        tool, robot = str(self._tool.value), self._fast.robot
        made = self._prepared(("ellipsoid", tool, base), lambda: ToolEllipsoid(robot, tool, base))
        if not isinstance(made, ToolEllipsoid):
            self._hide(ELLIPSOID)
            return f"of {plain(short(tool))} {made}"
        found = made.at(q, x)
        points = ellipsoid_points(found, SCALE).astype(np.float32)
        node = self._nodes.get(ELLIPSOID)
        if node is None:
            self._nodes[ELLIPSOID] = self._server.scene.add_mesh_simple(
                f"{OVERLAY}/ellipsoid", points, ellipsoid_faces(), color=_GREEN, opacity=0.4,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        else:
            node.vertices, node.visible = points, True
        sizes = ", ".join(f"{s:.3f}" for s in found.semi_axes)
        held = "base recoils" if base == "floating" else "base held"
        return (
            f"of {plain(short(tool))}, {held}: semi-axes {sizes} m/s per rad/s, volume "
            f"{float(found.volume):.4f}; 1 m/s is drawn as {SCALE:g} m"
        )

    def _workspace(self, q: Array, x: Array, base: str) -> str:
        tool, robot = str(self._tool.value), self._fast.robot
        cloud = self._prepared(("workspace", tool), lambda: workspace_cloud(robot, tool))
        if not isinstance(cloud, Cloud):
            self._hide(WORKSPACE)
            return f"of {plain(short(tool))} {cloud}"
        low, high = (float(v) for v in np.nanpercentile(cloud.values, [2.0, 98.0]))
        if self._drawn_cloud != tool:
            self._drawn_cloud = tool
            self._nodes[WORKSPACE] = self._server.scene.add_point_cloud(
                f"{WORLD}/workspace", cloud.points.astype(np.float32),
                ramp(cloud.values, low, high), point_size=0.15 * cloud.spacing,
                point_shape="circle", precision="float32",
            )  # fmt: skip
        node = self._nodes[WORKSPACE]
        node.visible = True
        if floats(robot):
            node.wxyz, node.position = x[0, :4], pose.translation(x[0])
        return (
            f"of {plain(short(tool))}, base held: {cloud.volume:.3g} m³ in cells of "
            f"{cloud.spacing:.2g} m; manipulability from {low:.3g} (violet) to {high:.3g} (yellow)"
        )

    def _coupling(self, q: Array, x: Array, base: str) -> str:
        found, robot = joint_coupling(self._fast, q), self._fast.robot
        most = max(found.values())
        colors = ramp(np.array(list(found.values())), 0.0, most, WEAK_TO_STRONG)
        for (name, value), color in zip(found.items(), colors, strict=True):
            i = robot.joint_index(name)
            ball, label = self._marks.get(name) or self._new_mark(name, i)
            ball.color = (int(color[0]), int(color[1]), int(color[2]))
            ball.position = label.position = pose.translation(x[i])
            ball.visible = label.visible = True
            label.text = f"{value:.3f}"
        best = max(found, key=lambda name: found[name])
        return (
            "is the turn of the base per turn of a joint (per metre, if it slides): at most "
            f"{most:.3f}, {plain(short(best))}; blue weak, red strong"
        )

    def _new_mark(self, name: str, i: int) -> tuple[Any, Any]:
        scene, size = self._server.scene, 0.024 * self._radius
        ball = scene.add_icosphere(
            f"{OVERLAY}/coupling_{i}", size, _GREEN, subdivisions=2, cast_shadow=False
        )
        label = scene.add_label(
            f"{OVERLAY}/coupling_label_{i}", "", anchor="bottom-left", font_screen_scale=0.8
        )
        self._marks[name] = ball, label
        return ball, label


def _is_moved(robot: Robot, tool: str) -> bool:
    try:
        return bool(moving_joints(robot, tool))
    except RemoraError:
        return False
