"""Labels in the scene: names of tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.viewer.scene.overlays import OVERLAY
from remora.viewer.scene.scene import clean, fine


class FrameLabels:
    """The names of frames, which move with the robot."""

    def __init__(self, server: Any, robot: Robot, names: Sequence[str]) -> None:
        """Add a label for each frame or body."""
        self.visible = True
        self._frames = [robot.frame(name) for name in names]
        self._nodes = [
            server.scene.add_label(
                f"{OVERLAY}/label_{clean(name)}", name, anchor="bottom-left", font_screen_scale=0.9
            )
            for name in names
        ]

    def move(self, x: Array, grain: float = 0.0) -> None:
        """Move the labels with the bodies at the poses x `(nb, 8)`, rounded to the grain."""
        for frame, node in zip(self._frames, self._nodes, strict=True):
            node.visible = self.visible
            if self.visible:
                tip = pose.transform_point(x[frame.body], pose.translation(frame.placement))
                node.position = fine(tip, grain)
