"""Robot parameters as kernel arguments, by name: `mass`, `arm.mass`, `elbow.placement`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.model.robot_fields import rows

Change = Callable[[Robot, Array], Robot]
_OF_BODY = {name: row.shape or () for name, row in rows("body", only="open").items()}
_OF_JOINT = {name: row.shape for name, row in rows("joint", only="open").items()}
_OF_CONSTRAINT = {name: row.shape or () for name, row in rows("constraint", only="open").items()}


def parameter(robot: Robot, name: str) -> tuple[Signature, Change]:
    """Return the shape of a parameter, and the function that replaces its value in a robot."""
    owner, _, number = name.rpartition(".")
    if number in _OF_BODY and not owner:
        shape = (len(robot.bodies), *_OF_BODY[number])

        def all_bodies(robot: Robot, value: Array) -> Robot:
            for i, body in enumerate(robot.bodies):
                robot = robot.replace_body(body.name, **{number: _item(value, i)})
            return robot

        return Signature(name, shape), all_bodies
    if number in _OF_BODY and owner in robot.bodies:
        return Signature(name, _OF_BODY[number]), lambda r, x: r.replace_body(owner, **{number: x})
    if number == "placement" and not owner:

        def all_joints(robot: Robot, value: Array) -> Robot:
            for i, joint in enumerate(robot.joints):
                robot = robot.replace_joint(joint.name, placement=_item(value, i))
            return robot

        return Signature(name, (len(robot.joints), 8)), all_joints
    if number in _OF_JOINT and owner in robot.joints:
        shape = _OF_JOINT[number]
        if shape is None:
            shape = robot.joints[owner].damping.shape
        return Signature(name, shape), lambda r, x: r.replace_joint(owner, **{number: x})
    if number in _OF_CONSTRAINT and owner in robot.constraints:
        shape = _OF_CONSTRAINT[number]
        return Signature(name, shape), lambda r, x: r.replace_constraint(owner, **{number: x})
    of_one = [f"BODY.{n}" for n in _OF_BODY] + [f"JOINT.{n}" for n in _OF_JOINT]
    of_one += [f"CONSTRAINT.{n}" for n in _OF_CONSTRAINT] if robot.constraints else []
    raise UnknownName("parameter", name, (*_OF_BODY, "placement", *of_one))


def value_of(robot: Robot, name: str) -> Array:
    """Return the value of a parameter; its numbers must be plain."""
    parameter(robot, name)  # raises for unknown names
    owner, _, number = name.rpartition(".")
    if not owner:
        every = robot.joints if number == "placement" else robot.bodies
        return np.stack([np.asarray(getattr(item, number), float) for item in every])
    for items in (robot.bodies, robot.joints, robot.constraints):
        if owner in items and hasattr(items[owner], number):
            return np.asarray(getattr(items[owner], number), float)
    raise UnknownName("number of a robot", name, ("BODY.mass", "JOINT.damping", "..."))


def of_constraint(robot: Robot, name: str) -> bool:
    """Return whether a parameter is one of a constraint, not of a body or joint."""
    owner, _, number = name.rpartition(".")
    of_body = number in _OF_BODY and owner in robot.bodies
    of_joint = number in _OF_JOINT and owner in robot.joints
    return owner in robot.constraints and not (of_body or of_joint)


def with_values(robot: Robot, values: Mapping[str, Array]) -> Robot:
    """Return the robot with other values of parameters, by name; they may be symbolic."""
    for name, value in values.items():
        robot = parameter(robot, name)[1](robot, value)
    return robot


def _item(value: Array, i: int) -> Array:
    return value[i : i + 1].reshape(value.shape[1:])  # still an array if a row is one number
