"""Marks of the active constraints in viser's scene: balls at loop joints, thin bars for rods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.robot import Robot

#: Radius of a ball and half the width of a bar relative to the robot's size; their colour.
BALL, BAR, COLOR = 0.03, 0.008, (240, 160, 20)
#: Parallel to the z axis up to this sine, a bar is not tilted.
_ALONG = 1e-9


class ConstraintMark(NamedTuple):
    """The node of a constraint.

    Attributes:
        constraint: the constraint.
        node: moved with the robot: a bar for a rod, otherwise a ball.
    """

    constraint: Constraint
    node: Any


def add_marks(server: Any, robot: Robot, world: str, radius: float) -> list[ConstraintMark]:
    """Add a node for every active constraint between bodies; gears are not drawn.

    Args:
        server: the viser server.
        robot: the robot.
        world: path of the node that the marks belong to.
        radius: size of the robot, m.
    """
    marks: list[ConstraintMark] = []
    for k, c in enumerate(robot.constraints):
        if not c.active or c.kind == GEAR:
            continue
        name = f"{world}/constraint_{k}"
        if c.kind == ROD:
            width = 2.0 * BAR * radius
            size = (width, width, float(c.length))
            node = server.scene.add_box(name, color=COLOR, dimensions=size)
        else:
            node = server.scene.add_icosphere(name, BALL * radius, COLOR)
        marks.append(ConstraintMark(c, node))
    return marks


def marked_at(constraint: Constraint, x: Array) -> tuple[Array, Array]:
    """Return orientation `(4,)` and position `(3,)` of a mark with the bodies at x `(nb, 8)`.

    A rod's bar has its z axis along the rod; a ball is at the child's constraint frame.
    """
    ends = (
        (constraint.parent, constraint.parent_placement),
        (constraint.child, constraint.child_placement),
    )
    a, b = (pose.translation(_placed(x, body, placement)) for body, placement in ends)
    if constraint.kind != ROD:
        return quaternion.identity(), b
    return _turned_to(b - a), 0.5 * (a + b)


def _placed(x: Array, body: int, placement: Array) -> Array:
    return placement if body < 0 else dual_quaternion.mul(x[body], placement)


def _turned_to(d: Array) -> Array:
    """Return the shortest rotation of the z axis to the direction d, `(4,)`."""
    length = float(np.linalg.norm(d))
    if length == 0.0:
        return quaternion.identity()
    x, y, z = d / length
    if np.hypot(x, y) < _ALONG:  # a bar looks the same upside down
        return quaternion.identity()
    return quaternion.normalize(np.array([1.0 + z, -y, x, 0.0]))
