"""The loads on a robot by name: torque, base_wrench, wrenches; their shapes and their parts."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import numpy as np

from remora.errors import RemoraError
from remora.model.arguments import real_numbers
from remora.model.robot import Robot
from remora.simulation.inputs.loads import Load, Sum, is_mapping

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


def refuse_torque_of_held(robot: Robot, held: Collection[str], torque: Any) -> None:
    """Raise if a torque acts on a joint whose motion is given, as far as it is known beforehand.

    Args:
        robot: the robot.
        held: names of the prescribed and locked joints.
        torque: in any accepted form; functions are not asked.
    """
    for part in torque.parts if isinstance(torque, Sum) else (torque,):
        named = part if is_mapping(part) else ()
        numbers = real_numbers(part) if isinstance(part, (list, tuple, np.ndarray)) else None
        for name in held:
            place = robot.joints[name].v
            own = () if numbers is None else np.atleast_1d(numbers)[..., place]
            if np.any(own) or name in named:
                raise RemoraError(
                    f"contradiction: joint {name!r} is prescribed or locked, so its torque is "
                    "computed and cannot be an input"
                )


def _joint(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    joint = robot.joints[robot.joint_index(name)]
    if joint.mimic is not None:
        leader = robot.joints[joint.mimic.joint].name
        raise RemoraError(f"joint {name!r} mimics {leader!r}: give the torque to that one")
    return joint.v, (joint.v.stop - joint.v.start,)


def _body(robot: Robot, name: str) -> tuple[Any, tuple[int, ...]]:
    return robot.body_index(name), (6,)
