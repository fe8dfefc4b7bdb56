"""Roles of links, from names and inertias: panel, wheel, antenna, thruster, tool or boom.

A body without geometry is drawn by its role. A name decides first; without a telling name, a flat
inertia on the bus is a solar panel, and a body that spins about its own centre is a wheel.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.model.joints import is_free, kind, turns_about_axis
from remora.model.robot import Body, Robot
from remora.model.topology import children

BUS, PEDESTAL, BOOM = "bus", "pedestal", "boom"
PANEL, WHEEL, ANTENNA, THRUSTER, TOOL = "panel", "wheel", "antenna", "thruster", "tool"

#: Words in the name of a link that decide its role, without digits and in lower case.
WORDS: dict[str, tuple[str, ...]] = {
    PANEL: ("panel", "panels", "wing", "wings", "array", "arrays", "solar", "solarpanel"),
    WHEEL: ("wheel", "wheels", "rw", "rwa", "flywheel", "cmg"),
    ANTENNA: ("antenna", "antennas", "dish", "hga", "reflector"),
    THRUSTER: ("thruster", "thrusters", "nozzle", "rcs", "engine"),
    TOOL: ("tool", "gripper", "hand", "effector", "claw", "tcp"),
}
#: A box is flat if its thickness relative to its width is less, and its width is not less than
#: this part of its length.
FLAT, WIDE = 0.12, 0.15


class InertiaBox(NamedTuple):
    """The box of uniform density with the mass properties of a body.

    Attributes:
        size: full lengths along its axes, in descending order, `(3,)`, m.
        axes: its axes as columns, in the body's frame, `(3, 3)`, right-handed.
        centre: the centre of mass, `(3,)`.
    """

    size: Array
    axes: Array
    centre: Array


def inertia_box(body: Body) -> InertiaBox:
    """Return the box of uniform density that has a body's mass and inertia.

    With principal moments I, l_k² = 6 (I_1 + I_2 + I_3 - 2 I_k) / m. A body without mass has a box
    of size zero.
    """
    mass = float(body.mass)
    if mass <= 0.0:
        return InertiaBox(np.zeros(3), np.eye(3), np.array(body.com, dtype=float))
    moments, axes = np.linalg.eigh(np.array(body.inertia, dtype=float))  # ascending
    squares = 6.0 * (moments.sum() - 2.0 * moments) / mass
    axes = axes * np.where(np.linalg.det(axes) < 0.0, -1.0, 1.0)
    return InertiaBox(np.sqrt(np.maximum(squares, 0.0)), axes, np.array(body.com, dtype=float))


def named_role(name: str) -> str | None:
    """Return the role that a name implies, or None."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    words = set(re.findall(r"[a-z]+", spaced.lower()))
    return next((role for role, known in WORDS.items() if words.intersection(known)), None)


def is_flat(body: Body) -> bool:
    """Return whether a body's inertia is that of a plate."""
    a, b, c = inertia_box(body).size
    return bool(a > 0.0 and c < FLAT * b and b > WIDE * a)


def role_of(robot: Robot, i: int) -> str:
    """Return the role of body i: a value of `ROLES`."""
    joint, body = robot.joints[i], robot.bodies[i]
    is_end = not children(robot, i)
    if joint.parent < 0 and (i == 0 or not is_end or is_free(joint)):
        return BUS if joint.kind != "fixed" else PEDESTAL
    named = named_role(body.name)
    if named == PANEL and (is_end or is_flat(body)):
        return PANEL
    if named is not None and named != PANEL and is_end:
        return BOOM if named == WHEEL and not turns_about_axis(joint) else named
    on_bus = joint.parent >= 0 and robot.joints[joint.parent].parent < 0
    if is_end and on_bus and named is None:
        if _spins_in_place(robot, i):
            return WHEEL
        if is_flat(body):
            return PANEL
    return BOOM


def _spins_in_place(robot: Robot, i: int) -> bool:
    """Return whether a body spins about an axis through its own centre and normal to its disc."""
    joint, body = robot.joints[i], robot.bodies[i]
    if not (turns_about_axis(joint) and kind(joint).nv == 1):
        return False
    if any(frame.body == i for frame in robot.frames):
        return False
    box, axis = inertia_box(body), np.array(joint.axes[0], dtype=float)
    across = box.centre - axis * float(axis @ box.centre)
    off = float(np.linalg.norm(across))
    if is_flat(body):
        return off < 0.1 * box.size[0] and abs(float(axis @ box.axes[:, 2])) > 0.9
    return float(np.linalg.norm(box.centre)) < 0.1 * max(float(box.size[0]), 1e-9)


#: All roles.
ROLES = (BUS, PEDESTAL, BOOM, PANEL, WHEEL, ANTENNA, THRUSTER, TOOL)
