"""A target that is dragged in the scene: a tool follows it, and a floating base recoils."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.planning.result import InverseKinematicsResult
from remora.planning.solve import inverse_kinematics
from remora.viewer.scene.link_roles import PANEL, WHEEL, role_of
from remora.viewer.scene.scene import WORLD

#: Distance, m, and angle, rad, that count as reached; steps per call, few enough for dragging.
TOLERANCE, STEPS = 1e-6, 40
_PATH = f"{WORLD}/drag_target"


def reached(
    robot: Robot, q: Array, tool: str, target: Array, floating: bool, turn: bool
) -> InverseKinematicsResult:
    """Return the configuration near q in which a tool is at a target, or as close as it gets.

    Reaction wheels and solar panels do not move.

    Args:
        robot: the robot.
        q: the current configuration, `(nq,)`.
        tool: name of a frame or a body.
        target: pose in the inertial frame, `(8,)`.
        floating: whether the base recoils; otherwise it stays.
        turn: whether the orientation of the target counts, too.
    """
    still = [
        joint.name for i, joint in enumerate(robot.joints) if role_of(robot, i) in (WHEEL, PANEL)
    ]
    goal = target if turn else pose.translation(target)
    return inverse_kinematics(
        robot, {tool: goal}, q, "floating" if floating else "fixed", tolerance=TOLERANCE,
        locked=still, starts=1, max_iterations=STEPS,
    )  # fmt: skip


class DragTarget:
    """A handle in the scene; while it is dragged, the latest place is given to `follow`.

    Attributes:
        node: viser's handle.
    """

    def __init__(self, server: Any, size: float, follow: Callable[[Array], None]) -> None:
        """Add the handle, invisible.

        Args:
            server: the viser server.
            size: length of its axes, m.
            follow: called with the pose of the target, `(8,)`, in the inertial frame.
        """
        self._follow, self._waiting = follow, threading.Event()
        self._busy = threading.Lock()
        self.node = server.scene.add_transform_controls(
            _PATH, scale=size, depth_test=False, visible=False, line_width=3.0
        )
        self.node.on_update(self._moved)

    def show(self, x: Array | None) -> None:
        """Show the handle at a pose `(8,)`, or hide it."""
        self.node.visible = x is not None
        if x is not None:
            self.node.wxyz, self.node.position = x[:4], pose.translation(x)

    @property
    def pose(self) -> Array:
        """The handle's pose in the inertial frame, `(8,)`."""
        return pose.from_parts(np.array(self.node.wxyz), np.array(self.node.position))

    def _moved(self, _: Any) -> None:
        """Follow the handle; places that it has left meanwhile are skipped."""
        self._waiting.set()
        if not self._busy.acquire(blocking=False):
            return
        try:
            while self._waiting.is_set():
                self._waiting.clear()
                self._follow(self.pose)
        finally:
            self._busy.release()
