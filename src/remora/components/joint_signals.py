"""Signals and actions of a list of joints: shapes, units and forces in the order of the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from remora.algebra.array_ops import Array
from remora.components.actions import Action, JointForce
from remora.components.component import Component
from remora.components.parameter import declared
from remora.components.signals import Signal
from remora.errors import ShapeError
from remora.model.joints import kind
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
