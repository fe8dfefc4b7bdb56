"""Generated shapes for bodies without geometry, by their role: bus, panels, booms, joints, tools.

Sizes follow from joint offsets, centres of mass, masses and inertias, so that any robot looks like
the spacecraft that it describes. The shapes are for display only, and are marked as generated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array
from remora.model.joints import is_free, is_rigid, kind, slides_only, turns_about_axis
from remora.model.robot import Robot
from remora.model.topology import children
from remora.viewer.scene.bus_shapes import bus, bus_size, mounts, pedestal
from remora.viewer.scene.equipment_shapes import antenna, solar_panel, thruster, wheel
from remora.viewer.scene.link_roles import (
    ANTENNA,
    BOOM,
    BUS,
    PANEL,
    PEDESTAL,
    THRUSTER,
    TOOL,
    WHEEL,
    role_of,
)
from remora.viewer.scene.materials import FINISHES
from remora.viewer.scene.primitives import Primitive, along, block, boom, frame_along

#: Mean density for computing thicknesses from masses, kg/m³; low, since bodies are mostly hollow.
_DENSITY = 500.0
#: Minimum and maximum radius of a boom relative to the reach of the arm.
_SLENDER, _STOUT = 0.014, 0.034


def generated(robot: Robot, bodies: Sequence[int]) -> dict[int, list[Primitive]]:
    """Return generated shapes for the bodies with these indices."""
    reach = arm_reach(robot)
    made = {i: SHAPES[role_of(robot, i)](robot, i, reach) for i in bodies}
    return {i: [replace(shape, generated=True) for shape in own] for i, own in made.items()}


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
        if joint.parent >= 0 and role_of(robot, i) not in (PANEL, WHEEL)
    ]
    size = max(ends, default=0.0)
    return size if size > 1e-3 else max(bus_size(robot, 0)[0])


# Arms --------------------------------------------------------------------------------------------


def _link(robot: Robot, i: int, reach: float) -> list[Primitive]:
    r = boom_radius(robot, i, reach)
    made = _joint(robot, i, r, reach)
    tips = _tips(robot, i)
    ends = children(robot, i)
    for p in tips:
        made += boom(i, np.zeros(3), p, r, 0.82 * r)
    if not ends and _ends_an_arm(robot, i):
        made += _tool(robot, i, tips, r)
    return made


def _ends_an_arm(robot: Robot, i: int) -> bool:
    """Return whether a gripper is drawn at a leaf: named so, with a frame, or beyond two joints."""
    parent = robot.joints[i].parent
    return (
        role_of(robot, i) == TOOL
        or any(frame.body == i for frame in robot.frames)
        or (parent >= 0 and robot.joints[parent].parent >= 0)
    )


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
        drum = along(i, "cylinder", (1.45 * r, 2.7 * r), origin, axis, 0.0, "steel")
        ring = along(i, "cylinder", (1.52 * r, 0.45 * r), origin, axis, 0.0, "accent")
        return [drum, ring]
    if slides_only(joint):
        made = [block(i, np.full(3, 2.8 * r), origin, "steel")]
        if joint.parent >= 0 and kind(joint).nv == 1:
            low, high = float(joint.limits.lower[0]), float(joint.limits.upper[0])
            span = high - low if math.isfinite(high - low) else 0.3 * reach
            axis = np.array(joint.axes[0])
            made.append(along(i, "cylinder", (0.55 * r, span), origin, axis, -0.5 * span, "shell"))
        return made
    if is_rigid(joint) or is_free(joint):
        return []
    return [
        Primitive(i, "sphere", (1.6 * r,), pose.from_translation(origin), FINISHES["steel"]),
        along(i, "cylinder", (1.66 * r, 0.35 * r), origin, np.array([0.0, 0.0, 1.0]), 0.0,
               "accent"),
    ]  # fmt: skip


def _tool(robot: Robot, i: int, tips: Sequence[Array], r: float) -> list[Primitive]:
    """Return a gripper at the end of a branch: a palm and two fingers."""
    tip = max(tips, key=lambda p: float(np.linalg.norm(p)), default=np.zeros(3))
    length = float(np.linalg.norm(tip))
    out = tip / length if length > 1e-9 else _free_axis(robot, i)
    turn = frame_along(out)
    palm = along(i, "cylinder", (1.25 * r, 0.9 * r), tip, out, -2.0 * r, "graphite")
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


def _tips(robot: Robot, i: int) -> list[Array]:
    """Return the far ends of a body: child joints, else frames, else beyond its centre of mass."""
    if children(robot, i):
        return mounts(robot, i)
    own = [pose.translation(frame.placement) for frame in robot.frames if frame.body == i]
    away = [p for p in own if np.linalg.norm(p) > 1e-6]
    return [max(away, key=lambda p: float(np.linalg.norm(p)))] if away else [
        2.0 * np.array(robot.bodies[i].com)
    ]  # fmt: skip


def _free_axis(robot: Robot, i: int) -> Array:
    axes = robot.joints[i].axes
    return np.array(axes[0]) if len(axes) else np.array([0.0, 0.0, 1.0])


#: One entry per role: (robot, body, reach of the arm) -> shapes.
SHAPES: dict[str, Callable[[Robot, int, float], list[Primitive]]] = {
    BUS: lambda robot, i, reach: bus(robot, i),
    PEDESTAL: pedestal,
    BOOM: _link,
    TOOL: _link,
    PANEL: solar_panel,
    WHEEL: lambda robot, i, reach: wheel(robot, i),
    ANTENNA: antenna,
    THRUSTER: thruster,
}
