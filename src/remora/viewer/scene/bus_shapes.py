"""Generated shapes of bases: a bus of the size of its inertia with its equipment, or a pedestal."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.robot import Frame, Robot
from remora.model.topology import children
from remora.viewer.scene.equipment_shapes import wing
from remora.viewer.scene.link_roles import (
    ANTENNA,
    BOOM,
    PANEL,
    ROLES,
    TOOL,
    WHEEL,
    named_role,
    role_of,
)
from remora.viewer.scene.materials import is_cell_blue
from remora.viewer.scene.primitives import Primitive, along, block, boom

#: Mean density for the size of a base without inertia, kg/m³.
_DENSITY = 500.0
#: Shortest side of a bus relative to its longest; a mount farther from the inertia box than this
#: part of a side stands on a mast.
_SHORTEST, _NEAR = 0.3, 0.3


def mounts(robot: Robot, i: int) -> list[Array]:
    """Return the positions of the child joints on a body, in the body frame."""
    return [pose.translation(robot.joints[k].placement) for k in children(robot, i)]


def _mounts_of(robot: Robot, i: int, roles: Collection[str]) -> list[Array]:
    """Return the mounts of the children that have one of these roles."""
    found = [k for k in children(robot, i) if role_of(robot, k) in roles]
    return [pose.translation(robot.joints[k].placement) for k in found]


def _outer_mounts(robot: Robot, i: int) -> list[Array]:
    """Return the mounts of what stands on a bus: all but reaction wheels, which are inside."""
    return _mounts_of(robot, i, [role for role in ROLES if role != WHEEL])


def _load(points: list[Array], half: Array) -> Array:
    """Return how far points reach towards the faces of a box, relative to it, `(3,)`."""
    return np.max([np.abs(p) / half for p in points], axis=0)


def bus_size(robot: Robot, i: int) -> tuple[tuple[float, float, float], Array]:
    """Return the full lengths and the centre of the box that represents a base.

    It contains the box of uniform density with the body's inertia. A face just below a mount is
    moved out to it.
    """
    body = robot.bodies[i]
    centre = np.array(body.com, dtype=float)
    points = _outer_mounts(robot, i)
    moments = np.diagonal(np.array(body.inertia, dtype=float))
    squares = 6.0 * (moments.sum() - 2.0 * moments) / (float(body.mass) or 1.0)
    lengths = np.sqrt(np.maximum(squares, 1e-12))
    if lengths.max() < 1e-3:  # no inertia: a cube up to the nearest mount
        solid = max(1.5 * (float(body.mass) / _DENSITY) ** (1.0 / 3.0), 1e-2)
        sizes = [2.0 * float(np.abs(p - centre).max()) for p in points]
        lengths = np.full(3, min((s for s in sizes if s > 0.15 * solid), default=solid))
    lengths = np.maximum(lengths, _SHORTEST * lengths.max())
    low, high = centre - 0.5 * lengths, centre + 0.5 * lengths
    for p in points:
        over = np.maximum(p - high, low - p)
        k = int(np.argmax(over))
        if 0.0 < over[k] <= _NEAR * lengths[k]:
            low[k], high[k] = min(low[k], p[k]), max(high[k], p[k])
    size = high - low
    return (float(size[0]), float(size[1]), float(size[2])), 0.5 * (low + high)


def has_wings(robot: Robot, root: int) -> bool:
    """Return whether a spacecraft has solar panels of its own: a link, a frame or a blue plate."""
    tree = set(_tree(robot, root))
    if any(role_of(robot, k) == PANEL or named_role(robot.bodies[k].name) == PANEL for k in tree):
        return True
    if any(f.body in tree and named_role(f.name) == PANEL for f in robot.frames):
        return True
    return any(is_cell_blue(shape.color) for k in tree for shape in robot.bodies[k].geometry)


def bus(robot: Robot, i: int) -> list[Primitive]:
    """Return a bus in foil with deck, radiators, adapter ring, nozzle, antenna and solar wings."""
    size, centre = bus_size(robot, i)
    half = 0.5 * np.array(size)
    unit = float(np.cbrt(np.prod(size)))
    arms = [p - centre for p in _mounts_of(robot, i, (BOOM, TOOL))]
    load = _load(arms, half) if arms else np.array([0.0, 0.0, 0.5])
    deck = int(np.argmax(load))
    panels = [p - centre for p in _mounts_of(robot, i, (PANEL,))]
    away = -_load(panels, half) if panels else load
    side, third = sorted((k for k in range(3) if k != deck), key=lambda k: float(away[k]))
    up = float(np.sign(np.sum([p[deck] for p in arms]))) or 1.0
    e = np.eye(3)
    made = [block(i, np.array(size), centre, "foil")]
    # Radiators: plates on the two faces without arm or wings.
    for way in (-1.0, 1.0):
        plate = np.array(size) * 0.62
        plate[third] = 0.02 * unit
        made.append(
            block(i, plate, centre + way * (half[third] + 0.004 * unit) * e[third], "white")
        )
    # The deck below the arm, and the launch adapter ring on the opposite face.
    deck_plate = np.array(size) * 0.94
    deck_plate[deck] = 0.03 * unit
    made.append(block(i, deck_plate, centre + up * half[deck] * e[deck], "aluminium"))
    back, out = centre - up * half[deck] * e[deck], -up * e[deck]
    radius = 0.34 * min(size[side], size[third])
    made.append(along(i, "cylinder", (radius, 0.10 * unit), back, out, 0.03 * unit, "aluminium"))
    nozzle, bell = back + out * 0.08 * unit, (0.3 * radius, 0.62 * radius, 0.22 * unit)
    made.append(along(i, "cone", bell, nozzle, out, 0.11 * unit, "graphite"))
    if ANTENNA not in (role_of(robot, k) for k in children(robot, i)):
        made += _dish(i, centre, half, unit, e[third], -up * e[deck] * half[deck])
    made += _masts(robot, i, centre, half, unit)
    made += _wings(robot, i, centre, half, unit, e[side], e[third])
    return made


def _dish(
    i: int, centre: Array, half: Array, unit: float, out: Array, down: Array
) -> list[Primitive]:
    """Return an antenna on the face towards `out`, a quarter below its middle."""
    foot = centre + float(half @ np.abs(out)) * out * 1.02 + 0.25 * down
    cup = (0.03 * unit, 0.2 * unit, 0.08 * unit)
    return [
        along(i, "cylinder", (0.018 * unit, 0.16 * unit), foot, out, 0.08 * unit, "steel"),
        along(i, "cone", cup, foot, out, 0.18 * unit, "white"),
        along(i, "cone", (0.025 * unit, 0.01 * unit, 0.1 * unit), foot, out, 0.27 * unit, "steel"),
    ]


def _masts(robot: Robot, i: int, centre: Array, half: Array, unit: float) -> list[Primitive]:
    """Return masts from the faces to mounts that are far from the box."""
    made: list[Primitive] = []
    for p in _outer_mounts(robot, i):
        inside = np.clip(p, centre - half, centre + half)
        if np.linalg.norm(p - inside) > 0.02 * unit:
            made += boom(i, inside, p, 0.06 * unit, 0.045 * unit)
    return made


def _wings(
    robot: Robot, i: int, centre: Array, half: Array, unit: float, side: Array, across: Array
) -> list[Primitive]:
    """Return wings at panels that are merged into the bus, otherwise two if it has none."""
    made: list[Primitive] = []
    for frame in _panel_frames(robot, i):
        at = pose.translation(frame.placement)
        k = int(np.argmax(np.abs(at - centre) / half))
        out = np.eye(3)[k] * (np.sign(at[k] - centre[k]) or 1.0)
        wide = across if abs(float(across @ out)) < 0.5 else side
        made += wing(i, at, out, wide, unit)
    if not made and not has_wings(robot, i):
        for way in (-1.0, 1.0):
            root = centre + way * float(half @ np.abs(side)) * side
            made += wing(i, root, way * side, across, unit)
    return made


def _panel_frames(robot: Robot, i: int) -> Iterator[Frame]:
    """Yield the frames of panels that were merged into body i, away from its origin."""
    for frame in robot.frames:
        away = float(np.linalg.norm(pose.translation(frame.placement)))
        if frame.body == i and named_role(frame.name) == PANEL and away > 1e-6:
            yield frame


def _tree(robot: Robot, root: int) -> Iterator[int]:
    yield root
    for k in children(robot, root):
        yield from _tree(robot, k)


def pedestal(robot: Robot, i: int, reach: float) -> list[Primitive]:
    """Return the pedestal of a robot with a fixed base."""
    size = 0.5 * min(max(bus_size(robot, i)[0]), 0.4 * reach)
    made = [block(i, np.array([size, size, 0.25 * size]), np.zeros(3), "graphite")]
    for p in mounts(robot, i):
        made += boom(i, np.zeros(3), p, 0.2 * size, 0.16 * size)
    return made
