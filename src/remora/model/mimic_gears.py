"""Mimic joints as gears: coordinates of their own, coupled by constraints."""

from __future__ import annotations

import dataclasses

import numpy as np

from remora.algebra import dual_quaternion
from remora.model.constraint import GEAR, Constraint
from remora.model.joints import kind
from remora.model.named import Named
from remora.model.numbers import frozen
from remora.model.robot import Joint, Robot
from remora.model.takes_robot import takes_robot


@takes_robot
def mimic_to_gears(robot: Robot) -> Robot:
    """Return the robot with a gear in place of every mimic joint's relation.

    A mimic joint has no coordinate of its own, which is exact and cheap, but its forces act on the
    leading joint and `articulated`, `newton_euler`, `decoupled` and `image_space` do not support
    it. With gears every joint has its own coordinates, all formulations apply, and the gear's
    multiplier is the load of the transmission. nq and nv grow by one per mimic joint; a gear has
    the name of its driven joint.

    Args:
        robot: the robot; without mimic joints it is returned as it is.
    """
    if all(joint.mimic is None for joint in robot.joints):
        return robot
    joints: list[Joint] = []
    gears: list[Constraint] = []
    taken = set(robot.constraints.names)
    nq = nv = 0
    for i, joint in enumerate(robot.joints):
        row = kind(joint)
        q, v = slice(nq, nq + row.nq), slice(nv, nv + row.nv)
        nq, nv = q.stop, v.stop
        joints.append(dataclasses.replace(joint, q=q, v=v, mimic=None))
        if joint.mimic is not None:
            name = joint.name
            while name in taken:
                name = f"{name}_gear"
            taken.add(name)
            gears.append(_gear(name, joint.mimic.joint, i, joint.mimic.ratio, joint.mimic.offset))
    return dataclasses.replace(
        robot,
        joints=Named(joints, "joint"),
        constraints=Named([*robot.constraints, *gears], "constraint"),
    )


def _gear(name: str, leading: int, driven: int, ratio: float, offset: float) -> Constraint:
    here, zero = frozen(dual_quaternion.identity()), frozen(np.zeros(()))
    return Constraint(
        name=name,
        kind=GEAR,
        parent=leading,
        child=driven,
        parent_placement=here,
        child_placement=here,
        axes=frozen(np.zeros((0, 3))),
        pitch=zero,
        length=zero,
        ratio=frozen(np.asarray(ratio)),
        offset=frozen(np.asarray(offset)),
    )
