"""The ghost: base and panels as they were at the start, so that recoil is visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.viewer.scene.gltf import to_glb
from remora.viewer.scene.link_roles import PANEL, named_role, role_of
from remora.viewer.scene.materials import Finish
from remora.viewer.scene.primitives import Primitive
from remora.viewer.scene.surfaces import surface

_LOOK = Finish((0.35, 0.80, 1.0, 0.30), 0.0, 0.9)
#: Shapes smaller than this part of the largest one are left out.
_SMALL = 0.3


def ghost_bodies(robot: Robot) -> list[int]:
    """Return the bases that can move, and the panels on them."""
    bases = {
        i for i, joint in enumerate(robot.joints) if joint.parent < 0 and joint.kind != "fixed"
    }
    panels = {
        i
        for i, joint in enumerate(robot.joints)
        if joint.parent in bases and PANEL in (role_of(robot, i), named_role(robot.bodies[i].name))
    }
    return sorted(bases | panels)


def add_ghost(server: Any, robot: Robot, drawn: Sequence[Primitive], x: Array, world: str) -> Any:
    """Add the ghost at the poses x `(nb, 8)`; return its node, or None if nothing can recoil.

    Args:
        server: the viser server.
        robot: the robot.
        drawn: its shapes.
        x: poses of the bodies at the start.
        world: path of the node that the ghost belongs to.
    """
    bodies = ghost_bodies(robot)
    if not bodies:
        return None
    parent = server.scene.add_frame(f"{world}/ghost", show_axes=False)
    for i in bodies:
        own = [shape for shape in drawn if shape.body == i and shape.kind != "cells"]
        sizes = [float(np.ptp(surface(shape).points, axis=0).max()) for shape in own]
        large = [
            replace(shape, finish=_LOOK)
            for shape, size in zip(own, sizes, strict=True)
            if size > _SMALL * max(sizes)
        ]
        server.scene.add_glb(
            f"{world}/ghost/{i}", to_glb(large), wxyz=x[i, :4], position=pose.translation(x[i]),
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
    return parent
