"""The robot in viser's scene: one node per body, moved by poses."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.kinematics import poses
from remora.errors import ModelWarning
from remora.model.robot import Robot
from remora.model.state import neutral
from remora.model.topology import leaves
from remora.simulation.recording.constraint_switch import ConstraintSwitch
from remora.viewer.scene.constraint_marks import ConstraintMark, add_marks
from remora.viewer.scene.gltf import to_glb
from remora.viewer.scene.link_roles import BOOM, TOOL, role_of
from remora.viewer.scene.shapes import missing_meshes, shapes
from remora.viewer.scene.surfaces import surface

WORLD = "/world"
#: Radius of the marker of an inertially fixed frame relative to the robot's size; its colour.
MARK, MARK_COLOR = 0.035, (226, 60, 96)


class Scene:
    """The robot's nodes and the world node, the parent of all others.

    To follow a target, the world node moves instead of the camera, so that the user's camera
    control is not disturbed.
    """

    def __init__(
        self,
        server: Any,
        robot: Robot,
        mesh_root: str | os.PathLike[str] | None,
        switches: Sequence[ConstraintSwitch] = (),
    ) -> None:
        """Add the robot to the scene of a viser server.

        Args:
            server: the viser server.
            robot: the robot.
            mesh_root: meshes outside this folder are left out.
            switches: of the constraints in a run.
        """
        self.server, self.robot = server, robot
        self.drawn = drawn = shapes(robot, mesh_root)
        if note := missing_meshes(robot, drawn):
            warnings.warn(f"{robot.name}: {note}", ModelWarning, stacklevel=2)
        self.generated = {shape.body for shape in drawn if shape.generated}
        self.world = server.scene.add_frame(WORLD, show_axes=False)
        self.nodes: list[Any] = []
        self._corners: list[Array] = []
        for i, body in enumerate(robot.bodies):
            own = [shape for shape in drawn if shape.body == i]
            name = f"{WORLD}/{i}_{clean(body.name)}"
            self.nodes.append(server.scene.add_glb(name, to_glb(own)))
            self._corners.append(_corners([surface(shape).points for shape in own]))
        self.labels: list[Any] = []
        self._mark_places()
        self._marks: list[ConstraintMark] = []
        if robot.constraints:
            _, radius = extent(self.cloud(poses(robot, neutral(robot))))
            self._marks = add_marks(server, robot, WORLD, radius, switches)

    def _mark_places(self) -> None:
        """Mark the inertially fixed frames, such as a target or a station."""
        places = [frame for frame in self.robot.frames if frame.body < 0]
        if not places:
            return
        _, radius = extent(self.cloud(poses(self.robot, neutral(self.robot))))
        scene, size = self.server.scene, MARK * radius
        for frame in places:
            name, at = f"{WORLD}/place_{clean(frame.name)}", pose.translation(frame.placement)
            options = {"wxyz": frame.placement[:4], "position": at}
            scene.add_frame(name, axes_length=3.0 * size, axes_radius=0.12 * size, **options)
            scene.add_icosphere(f"{name}/ball", size, MARK_COLOR, opacity=0.55)
            text = scene.add_label(f"{name}/label", frame.name, anchor="bottom-left")
            self.labels.append(text)

    def set_opacity(self, alpha: float) -> None:
        """Draw all bodies with an opacity from 0 to 1; inner bodies become visible."""
        for i, node in enumerate(self.nodes):
            own = [shape for shape in self.drawn if shape.body == i]
            node.glb_data = to_glb(own, alpha)

    def show_generated(self, visible: bool) -> None:
        """Show or hide the bodies whose shapes are generated."""
        for i in self.generated:
            self.nodes[i].visible = visible

    def move(
        self,
        x: Array,
        follow: Array | None = None,
        grain: float = 0.0,
        t: float | None = None,
    ) -> None:
        """Show the bodies at the poses x `(nb, 8)`, relative to the pose `follow` `(8,)`.

        Args:
            x: poses of the bodies in the inertial frame.
            follow: pose at the centre of the image; None: the inertial origin.
            grain: round transmitted numbers to multiples of this, for small files.
            t: time of the run, s: marks of constraints that do not act then are hidden.
        """
        r, p = fine(x[:, :4], grain), fine(pose.translation(x), grain)
        for node, orientation, position in zip(self.nodes, r, p, strict=True):
            node.wxyz = orientation
            node.position = position
        for mark in self._marks:
            mark.show(t, x, grain)
        away = dual_quaternion.identity() if follow is None else dual_quaternion.conjugate(follow)
        self.world.wxyz = fine(away[:4], grain)
        self.world.position = fine(pose.translation(away), grain)

    def cloud(self, x: Array) -> Array:
        """Return the corners of the bodies' bounding boxes at the poses x, `(n, 3)`."""
        points = [
            quaternion.rotate(x[i, :4], corners) + pose.translation(x[i])
            for i, corners in enumerate(self._corners)
            if len(corners)
        ]
        return np.concatenate(points) if points else np.zeros((1, 3))


def extent(cloud: Array) -> tuple[Array, float]:
    """Return the centre of the bounding box of points `(n, 3)`, and half its diagonal, m."""
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    return 0.5 * (low + high), max(0.5 * float(np.linalg.norm(high - low)), 1e-3)


def seen_from(center: Array, x: Array) -> Array:
    """Return the poses x `(n, 8)` relative to the pose `center` `(8,)`."""
    return dual_quaternion.mul(np.broadcast_to(dual_quaternion.conjugate(center), x.shape), x)


def toward_others(robot: Robot, x: Array) -> Array | None:
    """Return the mean horizontal direction from the base to the bases of other trees, `(2,)`.

    None if there are none, or none in a horizontal direction.

    Args:
        robot: the robot.
        x: poses of the bodies at some times, `(n, nb, 8)`.
    """
    others = [i for i, joint in enumerate(robot.joints) if joint.parent < 0 and i > 0]
    if not others:
        return None
    way = np.mean(pose.translation(x[:, others]) - pose.translation(x[:, :1]), axis=(0, 1))
    size = float(np.hypot(way[0], way[1]))
    return way[:2] / size if size > 0.1 * abs(float(way[2])) + 1e-9 else None


def end_effectors(robot: Robot) -> list[str]:
    """Return the names of the end-effectors: frames at the ends of branches, otherwise bodies.

    Solar panels, wheels, antennas and thrusters are none, unless the robot has nothing else.
    """
    names: list[str] = []
    ends = [i for i in leaves(robot) if i != 0]
    for i in [i for i in ends if role_of(robot, i) in (BOOM, TOOL)] or ends:
        own = [f for f in robot.frames if f.body == i]
        far = max(own, key=lambda f: float(np.linalg.norm(pose.translation(f.placement))),
                  default=None)  # fmt: skip
        names.append(robot.bodies[i].name if far is None else far.name)
    return names


def clean(name: str) -> str:
    """Return a name that is valid as a component of a scene path."""
    return re.sub(r"[^\w.-]", "_", name)[:60]


def fine(values: Array, grain: float) -> Array:
    """Return values rounded to multiples of `grain`; as they are if it is zero."""
    return np.round(values / grain) * grain if grain else values


def _corners(points: list[Array]) -> Array:
    if not any(len(p) for p in points):
        return np.zeros((0, 3))
    cloud = np.concatenate(points)
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    pick = np.array([[k & 1, k >> 1 & 1, k >> 2] for k in range(8)], dtype=float)
    return low + pick * (high - low)
