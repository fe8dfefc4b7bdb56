"""The loads on a robot by name: torque, base_wrench, wrenches; their shapes and their parts."""

from __future__ import annotations

import functools
from typing import Any

from remora.errors import RemoraError
from remora.model.robot import Robot
from remora.simulation.inputs.loads import Load

#: Names of the loads.
LOADS = ("torque", "base_wrench", "wrenches")


def load_shape(robot: Robot, what: str) -> tuple[int, ...]:
    """Return the shape of a load."""
    return {"torque": (robot.nv,), "base_wrench": (6,)}.get(what, (len(robot.bodies), 6))


def load_of(robot: Robot, what: str, given: Any) -> Load:
    """Return a user's load, parsed.

    Args:
        robot: the robot.
        what: one of `LOADS`.
        given: in any accepted form; torques also by joint, wrenches by body.
    """
    parts = {
        "torque": functools.partial(_joint, robot),
        "wrenches": functools.partial(_body, robot),
    }
    return Load(what, given, load_shape(robot, what), parts.get(what))


def _joint(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    joint = robot.joints[robot.joint_index(name)]
    if joint.mimic is not None:
        leader = robot.joints[joint.mimic.joint].name
        raise RemoraError(f"joint {name!r} mimics {leader!r}: give the torque to that one")
    return joint.v, (joint.v.stop - joint.v.start,)


def _body(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    return robot.body_index(name), (6,)
