"""Composite bodies: everything that a joint carries, moving as one."""

from __future__ import annotations

from remora.algebra import screw
from remora.algebra.namespace import Array
from remora.algebra.screw import Inertia
from remora.model import joints
from remora.model.robot import Robot


def body_inertias(robot: Robot) -> list[Inertia]:
    """Return every body's inertia about its frame's origin, in its frame."""
    return [screw.inertia(b.mass, b.com, b.inertia) for b in robot.bodies]


def composite_inertias(robot: Robot, q: Array) -> list[Inertia]:
    """Return for every joint the inertia of all it carries, in its body's frame."""
    composite = body_inertias(robot)
    for i in reversed(range(len(robot.joints))):
        joint = robot.joints[i]
        if joint.parent >= 0:
            X = joints.relative_transform(joint, q)
            carried = screw.transform_inertia(X, composite[i])
            composite[joint.parent] = screw.add_inertia(composite[joint.parent], carried)
    return composite
