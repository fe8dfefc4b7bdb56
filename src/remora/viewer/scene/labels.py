"""Labels in the scene: names of tools and frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.viewer.scene.overlays import OVERLAY
from remora.viewer.scene.scene import clean, fine

#: Most labels of frames.
MOST = 60


class FrameLabels:
    """The names of frames, which move with the robot."""

    def __init__(
        self, server: Any, robot: Robot, names: Sequence[str], kind: str = "label",
        scale: float = 0.9,
    ) -> None:  # fmt: skip
        """Add a label for each frame or body.

        Args:
            server: the viser server.
            robot: the robot.
            names: of frames or bodies.
            kind: what the labels are for; labels of one kind have different names.
            scale: size of the letters.
        """
        self.visible = True
        self._frames = [robot.frame(name) for name in names]
        self._nodes = [
            server.scene.add_label(
                f"{OVERLAY}/{kind}_{clean(name)}",
                name,
                anchor="bottom-left",
                font_screen_scale=scale,
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


def frame_names(robot: Robot, labelled: Sequence[str]) -> list[str]:
    """Return the bodies and the frames on them that get labels with their axes, at most 60.

    A frame at the origin of its body, or at a labelled one, is left out: labels would overlap.
    """
    taken = [robot.frame(name) for name in labelled]
    names: list[str] = []
    for name in [*(b.name for b in robot.bodies), *(f.name for f in robot.frames if f.body >= 0)]:
        frame = robot.frame(name)
        at = pose.translation(frame.placement)
        near = (
            np.allclose(pose.translation(other.placement), at, atol=1e-3)
            for other in taken
            if other.body == frame.body
        )
        if not any(near) and len(names) < MOST:
            names.append(name)
            taken.append(frame)
    return names
