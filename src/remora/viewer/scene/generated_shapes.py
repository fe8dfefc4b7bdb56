"""Generated shapes for bodies without geometry: bus with solar panels, booms, joints, tools.

Sizes follow from joint offsets, centres of mass, masses and inertias, so that any robot looks like
a spacecraft with an arm. The shapes are for display only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.joints import is_free, is_rigid, kind, slides_only, turns_about_axis
from remora.model.robot import Robot
from remora.model.topology import children
from remora.viewer.scene.materials import FINISHES
from remora.viewer.scene.primitives import Primitive, panel

#: Mean density for computing thicknesses from masses, kg/m³; low, since bodies are mostly hollow.
_DENSITY = 500.0
#: Minimum and maximum radius of a boom relative to the reach of the arm.
_SLENDER, _STOUT = 0.014, 0.034


def generated(robot: Robot, bodies: Sequence[int]) -> dict[int, list[Primitive]]:
    """Return generated shapes for the bodies with these indices."""
    reach = arm_reach(robot)
    made: dict[int, list[Primitive]] = {}
    for i in bodies:
        if robot.joints[i].parent < 0 and (
            i == 0 or children(robot, i) or is_free(robot.joints[i])
        ):
            made[i] = _bus(robot, i) if robot.joints[i].kind != "fixed" else _pedestal(robot, i)
        elif is_wheel(robot, i, reach):
            made[i] = _wheel(robot, i)
        else:
            made[i] = _link(robot, i, reach)
    return made


def arm_reach(robot: Robot) -> float:
    """Return the longest path along joint offsets from a mount on a base to a tip, m; positive."""
    way = np.zeros(len(robot.bodies))
    for i, joint in enumerate(robot.joints):
        on_arm = joint.parent >= 0 and robot.joints[joint.parent].parent >= 0
        step = float(np.linalg.norm(pose.translation(joint.placement))) if on_arm else 0.0
        way[i] = step + (way[joint.parent] if joint.parent >= 0 else 0.0)
    ends = [
        way[i] + max((float(np.linalg.norm(p)) for p in _tips(robot, i)), default=0.0)
        for i, joint in enumerate(robot.joints)
        if joint.parent >= 0
    ]
    size = max(ends, default=0.0)
    return size if size > 1e-3 else max(bus_size(robot, 0)[0])


# The base ----------------------------------------------------------------------------------------


def bus_size(robot: Robot, i: int) -> tuple[tuple[float, float, float], Array]:
    """Return the full lengths and the centre of the box that represents a base.

    It is the box of uniform density with the body's inertia, scaled so that the first mount is on
    its surface.
    """
    body = robot.bodies[i]
    moments = np.diagonal(body.inertia)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / (float(body.mass) or 1.0)
    lengths = np.sqrt(np.maximum(squares, 1e-12))
    lengths = np.maximum(lengths, 0.45 * lengths.max())
    solid = 1.5 * (float(body.mass) / _DENSITY) ** (1.0 / 3.0)
    if lengths.max() < 1e-3:
        lengths = np.full(3, max(solid, 1e-2))
    centre = np.array(body.com)
    mounts = [p - centre for p in _mounts(robot, i)]
    scales = [float(np.max(2.0 * np.abs(p) / lengths)) for p in mounts]
    scales = [s for s in scales if s > 0.15]
    if scales:
        lengths = lengths * min(scales)
    return (float(lengths[0]), float(lengths[1]), float(lengths[2])), centre


def _bus(robot: Robot, i: int) -> list[Primitive]:
    size, centre = bus_size(robot, i)
    half = 0.5 * np.array(size)
    mounts = [p - centre for p in _mounts(robot, i)]
    unit = float(np.cbrt(np.prod(size)))
    used = [np.abs(p) / half for p in mounts]
    load = np.max(used, axis=0) if used else np.array([0.0, 0.0, 0.5])
    deck = int(np.argmax(load))
    wing, third = sorted((k for k in range(3) if k != deck), key=lambda k: float(load[k]))
    up = float(np.sign(np.sum([p[deck] for p in mounts]))) or 1.0
    e = np.eye(3)
    made = [Primitive(i, "box", size, pose.from_translation(centre), FINISHES["foil"])]
    # Radiators: plates on the two faces without arm or wings.
    for side in (-1.0, 1.0):
        plate = np.array(size) * 0.74
        plate[third] = 0.02 * unit
        at = centre + side * (half[third] + 0.004 * unit) * e[third]
        made.append(_box(i, plate, at, "white"))
    # The deck below the arm, and the launch adapter ring on the opposite face.
    deck_plate = np.array(size) * 0.94
    deck_plate[deck] = 0.03 * unit
    made.append(_box(i, deck_plate, centre + up * half[deck] * e[deck], "aluminium"))
    back = centre - up * half[deck] * e[deck]
    out = -up * e[deck]
    radius = 0.34 * min(size[wing], size[third])
    made.append(_along(i, "cylinder", (radius, 0.10 * unit), back, out, 0.03 * unit, "aluminium"))
    nozzle = back + out * 0.08 * unit
    made.append(
        _along(i, "cone", (0.3 * radius, 0.62 * radius, 0.22 * unit), nozzle, out, 0.11 * unit,
               "graphite")
    )  # fmt: skip
    made += _dish(i, centre, half, unit, third, wing, deck, up)
    made += _wings(i, centre, half, unit, wing, third)
    return made


def _dish(
    i: int, centre: Array, half: Array, unit: float, third: int, wing: int, deck: int, up: float
) -> list[Primitive]:
    """Return an antenna on a face beside the arm."""
    e = np.eye(3)
    foot = centre + half[third] * e[third] * 1.02 - up * 0.25 * half[deck] * e[deck]
    mast = _along(i, "cylinder", (0.018 * unit, 0.2 * unit), foot, e[third], 0.1 * unit, "steel")
    cup = _along(
        i, "cone", (0.03 * unit, 0.24 * unit, 0.1 * unit), foot, e[third], 0.22 * unit, "white"
    )
    feed = _along(i, "cone", (0.03 * unit, 0.012 * unit, 0.12 * unit), foot, e[third],
                  0.33 * unit, "accent")  # fmt: skip
    return [mast, cup, feed]


def _wings(
    i: int, centre: Array, half: Array, unit: float, wing: int, third: int
) -> list[Primitive]:
    """Return two solar wings along ±`wing`, with their width along `third`."""
    e = np.eye(3)
    wide, long, thick = 0.95 * unit, 1.15 * unit, 0.022 * unit
    gap, between = 0.34 * unit, 0.04 * unit
    made: list[Primitive] = []
    for side in (-1.0, 1.0):
        out = side * e[wing]
        root = centre + half[wing] * out
        turn = np.column_stack([e[third], out, np.cross(e[third], out)])
        made.append(_along(i, "cylinder", (0.03 * unit, gap), root, out, 0.5 * gap, "steel"))
        for k in range(2):
            at = root + out * (gap + (0.5 + k) * long + k * between)
            made += panel(i, (wide, long, thick), pose.from_rotation_matrix(turn, at))
            if k == 0:
                hinge = root + out * (gap + long)
                made.append(
                    _along(i, "cylinder", (0.02 * unit, between), hinge, out, 0.5 * between,
                           "steel")
                )  # fmt: skip
    return made


def _pedestal(robot: Robot, i: int) -> list[Primitive]:
    """Return the pedestal of a robot with a fixed base."""
    size = 0.5 * min(max(bus_size(robot, i)[0]), 0.4 * arm_reach(robot))
    made = [_box(i, np.array([size, size, 0.25 * size]), np.zeros(3), "graphite")]
    for p in _mounts(robot, i):
        made += _boom(i, np.zeros(3), p, 0.2 * size, 0.16 * size)
    return made


# Arms --------------------------------------------------------------------------------------------


def _link(robot: Robot, i: int, reach: float) -> list[Primitive]:
    r = boom_radius(robot, i, reach)
    made = _joint(robot, i, r, reach)
    tips = _tips(robot, i)
    ends = children(robot, i)
    for p in tips:
        made += _boom(i, np.zeros(3), p, r, 0.82 * r)
    if not ends:
        made += _tool(robot, i, tips, r)
    return made


def boom_radius(robot: Robot, i: int, reach: float) -> float:
    """Return the radius of a body's boom from its mass and length, clipped to the limits, m."""
    length = max((float(np.linalg.norm(p)) for p in _tips(robot, i)), default=0.0)
    length = max(length, 0.1 * reach)
    solid = math.sqrt(float(robot.bodies[i].mass) / (math.pi * _DENSITY * length))
    return min(max(solid, _SLENDER * reach), _STOUT * reach)


def _joint(robot: Robot, i: int, r: float, reach: float) -> list[Primitive]:
    joint = robot.joints[i]
    origin = np.zeros(3)
    if turns_about_axis(joint):
        axis = np.array(joint.axes[0])
        drum = _along(i, "cylinder", (1.45 * r, 2.7 * r), origin, axis, 0.0, "steel")
        ring = _along(i, "cylinder", (1.52 * r, 0.45 * r), origin, axis, 0.0, "accent")
        return [drum, ring]
    if slides_only(joint):
        made = [_box(i, np.full(3, 2.8 * r), origin, "steel")]
        if joint.parent >= 0 and kind(joint).nv == 1:
            low, high = float(joint.limits.lower[0]), float(joint.limits.upper[0])
            span = high - low if math.isfinite(high - low) else 0.3 * reach
            axis = np.array(joint.axes[0])
            made.append(_along(i, "cylinder", (0.55 * r, span), origin, axis, -0.5 * span, "shell"))
        return made
    if is_rigid(joint) or is_free(joint):
        return []
    return [
        Primitive(i, "sphere", (1.6 * r,), pose.from_translation(origin), FINISHES["steel"]),
        _along(i, "cylinder", (1.66 * r, 0.35 * r), origin, np.array([0.0, 0.0, 1.0]), 0.0,
               "accent"),
    ]  # fmt: skip


def _tool(robot: Robot, i: int, tips: Sequence[Array], r: float) -> list[Primitive]:
    """Return a gripper at the end of a branch: a palm and two fingers."""
    tip = max(tips, key=lambda p: float(np.linalg.norm(p)), default=np.zeros(3))
    length = float(np.linalg.norm(tip))
    out = tip / length if length > 1e-9 else _free_axis(robot, i)
    turn = _frame_along(out)
    palm = _along(i, "cylinder", (1.25 * r, 0.9 * r), tip, out, -2.0 * r, "graphite")
    made = [palm]
    for side in (-1.0, 1.0):
        across = side * turn[:, 0]
        knuckle = tip + across * 1.15 * r - out * 1.2 * r
        made.append(
            Primitive(i, "box", (0.5 * r, 0.9 * r, 1.5 * r),
                      pose.from_rotation_matrix(turn, knuckle), FINISHES["steel"])
        )  # fmt: skip
        finger = tip + across * 0.95 * r - out * 0.05 * r
        made.append(
            Primitive(i, "box", (0.34 * r, 0.7 * r, 1.3 * r),
                      pose.from_rotation_matrix(turn, finger), FINISHES["accent"])
        )  # fmt: skip
    return made


def is_wheel(robot: Robot, i: int, reach: float) -> bool:
    """Return whether a body is a reaction wheel: it spins about an axis through its own centre."""
    joint = robot.joints[i]
    if (
        not (turns_about_axis(joint) and kind(joint).nv == 1)
        or children(robot, i)
        or joint.parent < 0
    ):
        return False
    on_base = robot.joints[joint.parent].parent < 0
    has_frame = any(frame.body == i for frame in robot.frames)
    return on_base and not has_frame and float(np.linalg.norm(robot.bodies[i].com)) < 0.02 * reach


def wheels_among(robot: Robot, joints: Sequence[int]) -> set[int]:
    """Return which of some joints are those of reaction wheels; none if all inner ones are."""
    reach = arm_reach(robot)
    inner = [i for i in joints if robot.joints[i].parent >= 0]
    wheels = {i for i in inner if is_wheel(robot, i, reach)}
    return wheels if len(wheels) < len(inner) else set()


def _wheel(robot: Robot, i: int) -> list[Primitive]:
    body, axis = robot.bodies[i], np.array(robot.joints[i].axes[0])
    about = float(axis @ body.inertia @ axis)
    radius = math.sqrt(max(2.0 * about / (float(body.mass) or 1.0), 1e-6))
    radius = min(radius, 0.3 * max(bus_size(robot, robot.joints[i].parent)[0]))
    rim = _along(i, "cylinder", (radius, 0.3 * radius), np.array(body.com), axis, 0.0, "steel")
    hub = _along(i, "cylinder", (0.3 * radius, 0.5 * radius), np.array(body.com), axis, 0.0,
                 "accent")  # fmt: skip
    return [rim, hub]


# Geometry of the tree ----------------------------------------------------------------------------


def _mounts(robot: Robot, i: int) -> list[Array]:
    """Return the positions of the child joints on a body, in the body frame."""
    return [pose.translation(robot.joints[k].placement) for k in children(robot, i)]


def _tips(robot: Robot, i: int) -> list[Array]:
    """Return the far ends of a body: child joints, else frames, else beyond its centre of mass."""
    if children(robot, i):
        return _mounts(robot, i)
    own = [pose.translation(frame.placement) for frame in robot.frames if frame.body == i]
    away = [p for p in own if np.linalg.norm(p) > 1e-6]
    return [max(away, key=lambda p: float(np.linalg.norm(p)))] if away else [
        2.0 * np.array(robot.bodies[i].com)
    ]  # fmt: skip


def _free_axis(robot: Robot, i: int) -> Array:
    axes = robot.joints[i].axes
    return np.array(axes[0]) if len(axes) else np.array([0.0, 0.0, 1.0])


def _boom(i: int, a: Array, b: Array, start: float, end: float) -> list[Primitive]:
    """Return a tapered tube between two points with a cuff at its start; empty if too short."""
    length = float(np.linalg.norm(b - a))
    if length < 0.5 * start:
        return []
    out = (b - a) / length
    tube = _along(i, "cone", (start, end, length), a, out, 0.5 * length, "white")
    if length < 5.0 * start:
        return [tube]
    cuff = _along(i, "cylinder", (1.12 * start, 0.5 * start), a, out, 2.2 * start, "graphite")
    far = _along(i, "cylinder", (1.14 * end, 0.5 * end), a, out, length - 2.2 * end, "graphite")
    return [tube, cuff, far]


def _along(
    i: int, kind: str, size: tuple[float, ...], start: Array, out: Array, shift: float, look: str
) -> Primitive:
    """Return an axisymmetric shape along `out`, centred at `start` plus `shift` along the axis."""
    x = pose.from_rotation_matrix(_frame_along(out), start + shift * out)
    return Primitive(i, kind, size, x, FINISHES[look])


def _box(i: int, size: Array, at: Array, look: str) -> Primitive:
    lengths = (float(size[0]), float(size[1]), float(size[2]))
    return Primitive(i, "box", lengths, pose.from_translation(np.asarray(at)), FINISHES[look])


def _frame_along(out: Array) -> Array:
    """Return a rotation matrix whose z axis is the unit vector `out`."""
    helper = np.eye(3)[int(np.argmin(np.abs(out)))]
    x = np.cross(helper, out)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(out, x), out])
