"""Signals and actions of a list of joints: shapes, units and forces in the order of the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from remora.algebra.array_ops import Array
from remora.components.actions import Action, JointForce
from remora.components.component import Component
from remora.components.parameter import declared
from remora.components.signals import Signal
from remora.errors import InvalidValue, RemoraError, ShapeError
from remora.model.joints import in_coordinates, kind
from remora.model.robot import Robot

Quantity = Literal["coordinate_unit", "speed_unit", "acceleration_unit", "force_unit"]


def joint_signal(
    robot: Robot, joints: Sequence[str], quantity: Quantity, default: float | None = None
) -> Signal:
    """Return the signal of a quantity of joints; the unit of a mix of units is empty."""
    freedoms = [f for name in joints for f in kind(robot.joints[name]).freedoms]
    units = [str(getattr(f, quantity)) for f in freedoms]
    unit = units[0] if len(set(units)) == 1 else ""
    return Signal(len(freedoms), unit, default)


def check_joint_numbers(component: Component, size: int) -> None:
    """Raise if numbers by joint of a component are neither one nor `size`."""
    for name, own in declared(type(component)).items():
        value = getattr(component, name)
        if own.kind == "by joint" and value is not None and value.shape not in ((1,), (size,)):
            raise ShapeError(f"{name} must be one number or {size}, not of shape {value.shape}")


def joint_forces(robot: Robot, joints: Sequence[str], tau: Array) -> list[Action]:
    """Return forces `(..., k)` as actions on the joints."""
    found: list[Action] = []
    start = 0
    for name in joints:
        own = robot.joints[name].v
        stop = start + own.stop - own.start
        found.append(JointForce(name, tau[..., start:stop]))
        start = stop
    return found


def joint_names(robot: Robot, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the controlled joints; all joints after the base if none are given."""
    if not joints:
        joints = [j.name for j in robot.joints[1:] if kind(j).nv > 0 and j.mimic is None]
    for name in joints:
        joint = robot.joints[robot.joint_index(name)]
        if joint is robot.joints[0]:
            raise RemoraError(f"joint {name!r} carries the base: control it with a law of the base")
        if not in_coordinates(joint) or joint.mimic is not None or kind(joint).nv == 0:
            raise RemoraError(f"joint {name!r} ({joint.kind}) has no coordinates of its own")
    if len(set(joints)) != len(joints):
        raise InvalidValue("a joint is listed twice")
    return tuple(joints)


def speed_places(robot: Robot, joints: Sequence[str]) -> list[int]:
    """Return the indices of the joints' speeds in v."""
    return [i for name in joints for i in range(robot.nv)[robot.joints[name].v]]


def coordinate_places(robot: Robot, joints: Sequence[str]) -> list[int]:
    """Return the indices of the joints' coordinates in q."""
    return [i for name in joints for i in range(robot.nq)[robot.joints[name].q]]
