"""Base class of the browser pages: viser server on localhost, lights, camera, common controls."""

from __future__ import annotations

import contextlib
import os
import threading
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.dynamics.kernels.compiled import CompiledRobot
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.simulation.engine.interrupts import interruptible
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.simulation.recording.quantities import evaluated
from remora.viewer.page.server import HOST, quiet, start_server
from remora.viewer.scene.backdrops import BACKDROPS, backdrop, set_backdrop
from remora.viewer.scene.camera import framed
from remora.viewer.scene.ghost import add_ghost
from remora.viewer.scene.labels import FrameLabels, frame_names
from remora.viewer.scene.overlays import OVERLAY, axes_poses, center_of_mass
from remora.viewer.scene.scene import WORLD, Scene, end_effectors, extent, seen_from, toward_others
from remora.viewer.scene.shapes import generated_note

#: Opacity of the bodies when one sees through them.
CLEAR = 0.35
FREE, BASE, RIDE, MASS = "free", "base", "base, turning with it", "centre of mass"


class Page:
    """A page that shows a robot; base class of the pages of runs and robots.

    Attributes:
        robot: the robot shown.
        server: viser's server, for adding your own elements.
        scene: the robot's nodes in viser's scene.
        follow: control for the camera's target; its `value` can be set.
        toggles: the page's checkboxes by name, see `show`.
    """

    def __init__(
        self,
        robot: Robot,
        port: int,
        scene: str,
        mesh_root: str | os.PathLike[str] | None,
        switches: Sequence[ConstraintSwitch] = (),
    ) -> None:
        """Start the server and add the robot to its scene."""
        backdrop(scene)
        self.robot = robot
        self.fast = CompiledRobot(robot)
        self.server = start_server(port)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._backdrop = scene
        self._axes: Any = None
        self._ghost: Any = None
        self._labels: FrameLabels | None = None
        self._axes_labels: FrameLabels | None = None
        self.toggles: dict[str, Any] = {}
        try:
            with quiet():
                set_theme(self.server, backdrop(scene).dark)
            self.scene = Scene(self.server, robot, mesh_root, switches)
        except BaseException:
            self.close()
            raise

    @property
    def port(self) -> int:
        """The port that the page is served on."""
        return self.server.get_port()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}"

    @property
    def q(self) -> Array:
        """The displayed configuration, `(nq,)`."""
        raise NotImplementedError

    def show(self, *names: str, visible: bool = True) -> None:
        """Show or hide elements by name, like the checkboxes on the page.

        Raises:
            UnknownName: for a name without a checkbox; the message lists the checkboxes.
        """
        for name in names:
            if name not in self.toggles:
                raise UnknownName("thing to show", name, self.toggles)
        for name in names:
            self.toggles[name].value = visible

    def open(self) -> None:
        """Open the page in the browser."""
        webbrowser.open(self.url)

    def wait(self) -> None:
        """Print the address and serve the page until `close` is called or Ctrl+C is pressed."""
        with contextlib.suppress(KeyboardInterrupt), interruptible():
            # Within the block: whoever reads the address may press Ctrl+C at once.
            print(f"{self.url}  (Ctrl+C ends it)", flush=True)
            while not self._closed.wait(0.2):
                pass
        self.close()

    def close(self) -> None:
        """Stop the server."""
        with self._lock:  # what is being drawn is finished; nothing is drawn afterwards
            open_until_now = not self._closed.is_set()
            self._closed.set()
        if open_until_now:
            with quiet():
                self.server.stop()

    def __enter__(self) -> Page:
        """Return the page."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.close()

    def _repr_html_(self) -> str:
        """Return an iframe with the page, for notebooks."""
        return (
            f'<iframe src="{self.url}" width="100%" height="600" '
            'style="border:1px solid #8884;border-radius:6px"></iframe>'
        )

    def __repr__(self) -> str:
        """Return the robot's name and the page's address."""
        state = "closed" if self._closed.is_set() else self.url
        return f"{type(self).__name__} of {self.robot.name!r}: {state}"

    # For subclasses------------------------------------------------------------------------------

    def poses(self, q: Array) -> Array:
        """Return the poses of the bodies at q, `(nb, 8)`."""
        return evaluated(self.fast, "poses", q[None])[0]

    def aim(self, *moments: Array) -> None:
        """Point the camera of new clients at the robot, in view at all of these q `(nq,)`."""
        clouds: list[Array] = []
        places: list[Array] = []
        for q in moments:
            x = self.poses(q)
            center = self.followed(q, x)
            clouds.append(self.scene.cloud(x if center is None else seen_from(center, x)))
            places.append(x)
        look_at(self.server, np.concatenate(clouds), toward_others(self.robot, np.array(places)))

    def add_look(self, radius: float, ghost: bool = False) -> None:
        """Add the controls of the appearance: scene, camera target, and what is drawn.

        Args:
            radius: size of the robot, m.
            ghost: whether to show at first where base and panels were at the start.
        """
        gui, scene = self.server.gui, self.server.scene
        own = [BASE, MASS, RIDE, FREE]
        tips = [name for name in end_effectors(self.robot) if name not in own]
        names = [BASE, MASS, *tips[:12], RIDE, FREE]
        self._radius = radius
        x = self.poses(self.q)
        self._ghost = add_ghost(self.server, self.robot, self.scene.drawn, x, WORLD)
        self._tips = tips[:12]
        self._labels = FrameLabels(self.server, self.robot, self._tips)
        frames = axes_poses(self.robot, x)
        self._axes = scene.add_batched_axes(
            f"{OVERLAY}/axes", frames[:, :4], pose.translation(frames), axes_length=0.08 * radius,
            axes_radius=0.0028 * radius, visible=False,
        )  # fmt: skip
        with gui.add_folder("Look"):
            self._scene_choice = gui.add_dropdown(
                "scene", tuple(BACKDROPS), initial_value=self._backdrop
            )
            self.follow = gui.add_dropdown(
                "camera follows", names, initial_value=BASE,
                hint="What stays in the middle of the picture; turn and zoom with the mouse.",
            )  # fmt: skip
            self._add_switch(
                "labels",
                True,
                self._set_labels,
                "Names of tools, targets and axes; values of arrows.",
            )
            if self._ghost is not None:
                self._add_switch("ghost", ghost, self._set_ghost, "Base and panels at the start.")
            self._add_switch("see through", False, self._set_opacity, "What is inside the bodies.")
            self._add_switch("frames", False, self._set_axes, "Axes of bodies and frames: x, y, z.")
            self._add_switch("grid", False, self._set_grid, "The inertial x-y plane.")
            self._add_switch("shadows", True, self.set_shadows, "Off: faster without a GPU.")
            if note := generated_note(self.robot, self.scene.drawn):
                show = self.scene.show_generated
                self._add_switch("generated shapes", True, show, f"{note}.")
                gui.add_markdown(f"<small>{note}.</small>")
        self._grid = self._new_grid(False)
        self._set_ghost(ghost)
        set_backdrop(self.server, self._backdrop, radius)
        on(self._scene_choice.on_update, self._set_backdrop)
        on(self.follow.on_update, self.redraw)

    def _add_switch(
        self, name: str, on_first: bool, do: Callable[[bool], object], hint: str
    ) -> None:
        """Add a checkbox that calls `do` with its value, and that `show` knows by name."""
        box = self.server.gui.add_checkbox(name, on_first, hint=hint)
        self.toggles[name] = box
        on(box.on_update, lambda: do(bool(box.value)))

    def _set_backdrop(self) -> None:
        self._backdrop = str(self._scene_choice.value)
        set_theme(self.server, backdrop(self._backdrop).dark)
        set_backdrop(self.server, self._backdrop, self._radius, self.toggles["shadows"].value)
        visible = self._grid.visible
        self._grid.remove()
        self._grid = self._new_grid(visible)

    def _new_grid(self, visible: bool) -> Any:
        dark = backdrop(self._backdrop).dark
        grid = add_grid(self.server, self._radius, self._floor(self._radius), dark)
        grid.visible = visible
        return grid

    def _set_grid(self, visible: bool) -> None:
        self._grid.visible = visible

    def _set_ghost(self, visible: bool) -> None:
        if self._ghost is not None:
            self._ghost.visible = visible

    def _set_axes(self, visible: bool) -> None:
        self._axes.visible = visible
        if visible and self._axes_labels is None:
            names = frame_names(self.robot, self._tips)
            self._axes_labels = FrameLabels(self.server, self.robot, names, "axes_label", 0.75)
        self._show_labels()

    def _set_labels(self, visible: bool) -> None:
        for text in self.scene.labels:
            text.visible = visible
        self._show_labels()

    def _show_labels(self) -> None:
        """Show the labels of tools, and those of axes if there are axes, if labels are wanted."""
        wanted = bool(self.toggles["labels"].value)
        if self._labels is not None:
            self._labels.visible = wanted
        if self._axes_labels is not None:
            self._axes_labels.visible = wanted and self._axes.visible
        self.redraw()

    def _set_opacity(self, clear: bool) -> None:
        self.scene.set_opacity(CLEAR if clear else 1.0)

    def set_shadows(self, cast: bool) -> None:
        """Switch shadows on or off; without a GPU, drawing is faster without them."""
        set_backdrop(self.server, self._backdrop, self._radius, cast)

    def _floor(self, radius: float) -> float:
        """Return the height of the grid below the robot, m."""
        return float(self.scene.cloud(self.poses(self.q))[:, 2].min()) - 0.12 * radius

    def redraw(self) -> None:
        """Redraw the current state."""
        raise NotImplementedError

    def draw_robot(self, q: Array, x: Array, t: float | None = None) -> None:
        """Move the robot to the poses x of q, and the world node for the camera's target.

        Args:
            q: configuration, `(nq,)`.
            x: poses of the bodies, `(nb, 8)`.
            t: time of the run, s; None in a robot's page.
        """
        self.scene.move(x, self.followed(q, x), t=t)
        if self._axes is not None and self._axes.visible:
            frames = axes_poses(self.robot, x)
            self._axes.batched_wxyzs = frames[:, :4].astype(np.float32)
            self._axes.batched_positions = pose.translation(frames).astype(np.float32)
        for labels in (self._labels, self._axes_labels):
            if labels is not None:
                labels.move(x)

    def followed(self, q: Array, x: Array) -> Array | None:
        """Return the pose of the camera's target, with its rotation only if the camera turns."""
        what = self.follow.value
        if what == FREE:
            return None
        if what == RIDE:
            return x[0]
        if what == MASS:
            return pose.from_translation(center_of_mass(self.fast, q))
        if what == BASE:
            return pose.from_translation(pose.translation(x[0]))
        frame = self.robot.frame(what)
        tip = pose.transform_point(x[frame.body], pose.translation(frame.placement))
        return pose.from_translation(tip)


def on(register: Any, do: Callable[[], object]) -> None:
    """Call `do` on every event of a control, registered by its decorator `register`."""

    def report(_: Any) -> None:
        do()

    register(report)


def plain(text: str) -> str:
    """Escape a name for Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~" else c for c in text)


def set_theme(server: Any, dark: bool) -> None:
    """Set colours and layout, without viser's button for sharing the page on the internet."""
    server.gui.configure_theme(
        dark_mode=dark, show_logo=False, show_share_button=False, control_width="medium",
        brand_color=(236, 112, 20),
    )  # fmt: skip


def look_at(server: Any, cloud: Array, along: Array | None = None) -> None:
    """Place the camera of new clients to show all points `(n, 3)` beside the controls.

    Args:
        server: the viser server.
        cloud: what is to be seen.
        along: horizontal direction `(2,)` from the base to other trees: they are seen side by side,
            the base on the left; None: from the front.
    """
    seen, (_, radius) = framed(cloud, along), extent(cloud)
    camera = server.initial_camera
    camera.fov = seen.field
    camera.look_at = tuple(seen.look_at)
    camera.position = tuple(seen.position)
    camera.near, camera.far = 0.02 * radius, 500.0 * radius


def add_grid(server: Any, radius: float, height: float, dark: bool) -> Any:
    """Add a grid parallel to the inertial x-y plane at height z, with a round cell size."""
    cell = 10.0 ** np.floor(np.log10(radius))
    cell = cell / 2.0 if radius / cell < 3.0 else cell
    line, bold = ((58, 62, 70), (84, 90, 102)) if dark else ((216, 220, 226), (184, 190, 198))
    return server.scene.add_grid(
        f"{WORLD}/grid", infinite_grid=True, cell_size=float(cell), section_size=float(5 * cell),
        cell_color=line, section_color=bold, cell_thickness=0.7, section_thickness=1.0,
        fade_distance=float(7.0 * radius), fade_from="origin", shadow_opacity=0.0,
        position=(0.0, 0.0, float(height)),
    )  # fmt: skip
