"""An assembly of robots as one robot, for functions that take a robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from remora.algebra import dual_quaternion
from remora.algebra.array_ops import Array
from remora.dynamics.assembly.placed_parts import Part
from remora.errors import RemoraError
from remora.model.robot import Body, Frame, Joint, Named, Robot


def joined_robot(parts: Sequence[Part], gravity: Array, name: str, boxes: bool = False) -> Robot:
    """Return the robots of an assembly as one robot with the same state layout.

    Bodies, joints and frames are named `subsystem/name`.

    Args:
        parts: of the assembly.
        gravity: `(3,)`.
        name: of the robot.
        boxes: whether black boxes are left out; what they carry is a tree of its own, whose place
            in the inertial frame is not known. Otherwise they are refused.
    """
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames: list[Frame] = []
    for part in parts:
        if boxes and part.black_box is not None:
            continue
        if part.module is None:
            what = "a black box" if part.black_box is not None else "not a robot"
            raise RemoraError(f"subsystem {part.name!r} is {what}: no robot can be made of it")
        robot, ground = part.module.robot, mounted_on(parts, part)
        for body, joint in zip(robot.bodies, robot.joints, strict=True):
            bodies.append(dataclasses.replace(body, name=f"{part.name}/{body.name}"))
            joints.append(_joined(joint, part, ground))
        for frame in robot.frames:
            on, x = frame.body + part.bodies.start, frame.placement
            if frame.body < 0:
                on, x = ground.body, dual_quaternion.mul(ground.placement, x)
            frames.append(Frame(f"{part.name}/{frame.name}", on, x))
    return Robot(
        name, Named(bodies, "body"), Named(joints, "joint"), Named(frames, "frame"), gravity
    )


def _joined(joint: Joint, part: Part, ground: Frame) -> Joint:
    first = part.bodies.start
    parent, placement, mimic = joint.parent + first, joint.placement, joint.mimic
    if joint.parent < 0:
        parent, placement = ground.body, dual_quaternion.mul(ground.placement, placement)
    if mimic is not None:
        mimic = dataclasses.replace(mimic, joint=mimic.joint + first)
    return dataclasses.replace(
        joint,
        name=f"{part.name}/{joint.name}",
        parent=parent,
        placement=placement,
        q=slice(joint.q.start + part.q.start, joint.q.stop + part.q.start),
        v=slice(joint.v.start + part.v.start, joint.v.stop + part.v.start),
        mimic=mimic,
    )


def mounted_on(parts: Sequence[Part], part: Part) -> Frame:
    """Return body (by its index in the joined robot) and placement of what a part is mounted on.

    For robots, whose modules contain their placement, it is that of their base frame.
    """
    x = dual_quaternion.identity()
    while part.parent >= 0:
        above = parts[part.parent]
        if above.module is None:  # a black box, which is nowhere
            break
        point = above.module.points[part.slot]
        x = dual_quaternion.mul(point.placement, x)
        if point.body >= 0:
            return Frame("", point.body + above.bodies.start, x)
        part = above
    return Frame("", -1, x)
