"""Generated shapes of a spacecraft's equipment: solar panels, wheels, antennas, thrusters."""

from __future__ import annotations

import math

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Robot
from remora.viewer.scene.link_roles import inertia_box
from remora.viewer.scene.materials import FINISHES
from remora.viewer.scene.primitives import Primitive, along, frame_along, panel, rod

#: In-plane moments closer than this (relative) leave the directions of a plate's edges open.
_ROUND = 0.03


def solar_panel(robot: Robot, i: int, reach: float) -> list[Primitive]:
    """Return a solar panel with the plate of the body's inertia, and a yoke from its joint."""
    (width, length, thick), turn, centre = _plate(robot, i, reach)
    count = max(1, min(6, round(length / (1.15 * width))))
    gap = 0.02 * length if count > 1 else 0.0
    part = (length - gap * (count - 1)) / count
    made: list[Primitive] = []
    for k in range(count):
        shift = -0.5 * length + (k + 0.5) * part + k * gap
        x = pose.from_rotation_matrix(turn, centre + shift * turn[:, 1])
        made += panel(i, (width, part, thick), x)
    for k in range(1, count):
        at = centre + (-0.5 * length + k * (part + gap) - 0.5 * gap) * turn[:, 1]
        across = 0.3 * width * turn[:, 0]
        for side in (-1.0, 1.0):
            hinge = at + side * across
            ends = (hinge - gap * turn[:, 1], hinge + gap * turn[:, 1])
            made += rod(i, *ends, 0.9 * thick, "steel")
    return made + _yoke(i, width, length, thick, turn, centre)


def _yoke(
    i: int, width: float, length: float, thick: float, turn: Array, centre: Array
) -> list[Primitive]:
    """Return two rods from the joint to the near edge; empty if the joint is within the plate."""
    local = turn.T @ (-centre)  # the joint's origin in the plate's axes
    if abs(local[1]) <= 0.5 * length or abs(local[0]) > width:
        return []
    edge = math.copysign(0.5 * length, float(local[1]))
    radius = max(0.8 * thick, 0.008 * width)
    made: list[Primitive] = []
    for side in (-1.0, 1.0):
        foot = centre + turn @ np.array([side * 0.32 * width, edge, 0.0])
        made += rod(i, np.zeros(3), foot, radius, "steel")
    hub = (2.2 * radius, 5.0 * radius)
    made.append(along(i, "cylinder", hub, np.zeros(3), turn[:, 1], 0.0, "graphite"))
    return made


def _plate(robot: Robot, i: int, reach: float) -> tuple[tuple[float, float, float], Array, Array]:
    """Return width, length and thickness of a panel, its axes as columns, and its centre."""
    box, centre = inertia_box(robot.bodies[i]), np.array(robot.bodies[i].com, dtype=float)
    length, width, thick = (float(s) for s in box.size)
    turn = box.axes[:, [1, 0, 2]] * np.array([1.0, 1.0, -1.0])
    away = float(np.linalg.norm(centre))
    if width < 1e-3 * reach:  # no inertia to speak of: a plate from the joint outwards
        length = 2.0 * away if away > 1e-3 * reach else 0.6 * reach
        width = 0.4 * length
        centre = centre if away > 1e-3 * reach else np.array([0.0, 0.5 * length, 0.0])
        turn = _edges(robot, i, np.array([0.0, 0.0, 1.0]), centre)
    elif length - width < _ROUND * length:
        turn = _edges(robot, i, box.axes[:, 2], centre)
    thick = min(max(thick, 0.012 * width), 0.04 * width)
    return (width, length, thick), turn, centre


def _edges(robot: Robot, i: int, normal: Array, centre: Array) -> Array:
    """Return axes of a square plate: its length away from the joint, otherwise along an axis."""
    axes = robot.joints[i].axes
    choices = [centre, *(np.array(axis, dtype=float) for axis in axes), *np.eye(3)]
    for choice in choices:
        y = choice - normal * float(normal @ choice)
        size = float(np.linalg.norm(y))
        if size > 0.1 * max(float(np.linalg.norm(choice)), 1e-9):
            y = y / size
            return np.column_stack([np.cross(y, normal), y, normal])
    return np.eye(3)


def wing(i: int, root: Array, out: Array, across: Array, unit: float) -> list[Primitive]:
    """Return a solar wing of two panels from `root` along `out`, with its width along `across`."""
    wide, long, thick = 0.95 * unit, 1.15 * unit, 0.022 * unit
    gap, between = 0.34 * unit, 0.04 * unit
    turn = np.column_stack([across, out, np.cross(across, out)])
    made = rod(i, root, root + gap * out, 0.03 * unit, "steel")
    for k in range(2):
        at = root + out * (gap + (0.5 + k) * long + k * between)
        made += panel(i, (wide, long, thick), pose.from_rotation_matrix(turn, at))
    hinge = root + out * (gap + long)
    return made + rod(i, hinge, hinge + between * out, 0.02 * unit, "steel")


def wheel(robot: Robot, i: int) -> list[Primitive]:
    """Return a disc with the body's moment of inertia, and spokes that show its turn."""
    body, axis = robot.bodies[i], np.array(robot.joints[i].axes[0], dtype=float)
    mass, centre = float(body.mass), np.array(body.com, dtype=float)
    inertia = np.array(body.inertia, dtype=float)
    about = float(axis @ inertia @ axis)
    across = 0.5 * (float(np.trace(inertia)) - about)
    radius = math.sqrt(max(2.0 * about / mass, 1e-6)) if mass > 0.0 else 0.1
    height = math.sqrt(max(12.0 * across / mass - 3.0 * radius**2, 0.0)) if mass > 0.0 else 0.0
    height = min(max(height, 0.25 * radius), 0.9 * radius)
    frame = frame_along(axis)
    rim = along(i, "cylinder", (radius, height), centre, axis, 0.0, "steel")
    hub = along(i, "cylinder", (0.25 * radius, 1.12 * height), centre, axis, 0.0, "accent")
    made = [rim, hub]
    for k in range(2):
        spoke = np.array([1.7 * radius, 0.12 * radius, 1.05 * height])
        turn = np.column_stack([frame[:, k], np.cross(axis, frame[:, k]), axis])
        x = pose.from_rotation_matrix(turn, centre)
        size = (float(spoke[0]), float(spoke[1]), float(spoke[2]))
        made.append(Primitive(i, "box", size, x, FINISHES["white"]))
    return made


def antenna(robot: Robot, i: int, reach: float) -> list[Primitive]:
    """Return a dish of the size of the body's inertia that looks away from its joint."""
    out, foot, size = _outwards(robot, i, reach)
    r = 0.5 * size
    cup, feed = (0.12 * r, r, 0.4 * r), (0.06 * r, 0.03 * r, 0.6 * r)
    return [
        *rod(i, np.zeros(3), foot, 0.05 * r, "steel"),
        along(i, "cone", cup, foot, out, 0.0, "white"),
        along(i, "cone", feed, foot, out, 0.4 * r, "steel"),
    ]


def thruster(robot: Robot, i: int, reach: float) -> list[Primitive]:
    """Return a thruster whose nozzle opens away from its joint."""
    out, foot, size = _outwards(robot, i, reach)
    r = 0.3 * size
    return [
        along(i, "cylinder", (0.7 * r, r), foot, out, -0.5 * r, "steel"),
        along(i, "cone", (0.35 * r, r, 1.6 * r), foot, out, 0.8 * r, "graphite"),
    ]


def _outwards(robot: Robot, i: int, reach: float) -> tuple[Array, Array, float]:
    """Return the direction away from the joint, the centre of mass, and the size of a body."""
    body = robot.bodies[i]
    centre = np.array(body.com, dtype=float)
    away = float(np.linalg.norm(centre))
    axes = robot.joints[i].axes
    aside = np.array(axes[0], dtype=float) if len(axes) else np.array([0.0, 0.0, 1.0])
    size = float(inertia_box(body).size[0])
    return (
        centre / away if away > 1e-6 else aside,
        centre,
        size if size > 0.01 * reach else 0.15 * reach,
    )
