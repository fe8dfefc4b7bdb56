"""Marks of the active constraints in viser's scene: balls at loop joints, thin bars for rods.

A constraint that is switched during a run has a mark for every interval in which it acts, at the
place that it latched, visible in that interval only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.model.constraint import GEAR, ROD, Constraint
from remora.model.robot import Robot
from remora.simulation.recording.constraint_switch import ConstraintSwitch

#: Radius of a ball and half the width of a bar relative to the robot's size; their colour.
BALL, BAR, COLOR = 0.018, 0.008, (240, 160, 20)
#: Parallel to the z axis up to this sine, a bar is not tilted.
_ALONG = 1e-9


class ActiveInterval(NamedTuple):
    """A constraint while it acts.

    Attributes:
        constraint: with the numbers that it latched.
        start: time from which it acts, s.
        stop: time at which it is released, s.
    """

    constraint: Constraint
    start: float = -math.inf
    stop: float = math.inf


class ConstraintMark(NamedTuple):
    """The nodes of a constraint while it acts.

    Attributes:
        constraint: the constraint.
        node: moved with the robot: a bar for a rod, otherwise a ball.
        start: time from which it is shown, s.
        stop: time from which it is not shown any more, s.
        label: its name beside the ball; None in a robot's page.
    """

    constraint: Constraint
    node: Any
    start: float = -math.inf
    stop: float = math.inf
    label: Any = None

    def show(self, t: float | None, x: Array, grain: float = 0.0) -> None:
        """Move the mark with the bodies at x `(nb, 8)`; show it if it acts at time t."""
        on = t is None or self.start <= t < self.stop
        orientation, position = (_fine(y, grain) for y in marked_at(self.constraint, x))
        for node in (self.node,) if self.label is None else (self.node, self.label):
            if t is not None:
                node.visible = on
            if on:
                node.wxyz, node.position = orientation, position


def active_intervals(
    robot: Robot, switches: Sequence[ConstraintSwitch] = ()
) -> list[ActiveInterval]:
    """Return when each constraint acts, in order of the beginnings.

    Args:
        robot: the robot at the start of the run.
        switches: those of the run.
    """
    acting = {c.name: ActiveInterval(c) for c in robot.constraints if c.active}
    ended: list[ActiveInterval] = []
    for switch in switches:
        robot = switch.applied(robot)
        ended += [acting.pop(name)._replace(stop=switch.t) for name in switch.released]
        for name in switch.activated:
            acting[name] = ActiveInterval(robot.constraints[name], switch.t)
    return sorted([*ended, *acting.values()], key=lambda interval: interval.start)


def add_marks(
    server: Any,
    robot: Robot,
    world: str,
    radius: float,
    switches: Sequence[ConstraintSwitch] = (),
) -> list[ConstraintMark]:
    """Add nodes for every interval in which a constraint between bodies acts; none for gears.

    Args:
        server: the viser server.
        robot: the robot, at the start of a run.
        world: path of the node that the marks belong to.
        radius: size of the robot, m.
        switches: those of a run; its marks have labels.
    """
    marks: list[ConstraintMark] = []
    for k, (c, start, stop) in enumerate(active_intervals(robot, switches)):
        if c.kind == GEAR:
            continue
        name = f"{world}/constraint_{k}"
        if c.kind == ROD:
            width = 2.0 * BAR * radius
            size = (width, width, float(c.length))
            node = server.scene.add_box(name, color=COLOR, dimensions=size)
        else:
            node = server.scene.add_icosphere(name, BALL * radius, COLOR)
        label = server.scene.add_label(f"{name}_label", c.name) if switches else None
        marks.append(ConstraintMark(c, node, start, stop, label))
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


def _fine(values: Array, grain: float) -> Array:
    return np.round(values / grain) * grain if grain else values
