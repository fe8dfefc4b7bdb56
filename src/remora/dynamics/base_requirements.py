"""The check that a robot has one free base, for functions of floating robots."""

from __future__ import annotations

from remora.errors import InvalidValue
from remora.model.robot import Robot


def require_free_base(robot: Robot) -> None:
    """Raise if the robot does not have exactly one base, on a free joint."""
    if sum(j.parent < 0 for j in robot.joints) > 1:
        raise InvalidValue(f"robot {robot.name!r} must have one base, not several")
    if robot.joints[0].kind != "free":
        raise InvalidValue(
            f"robot {robot.name!r} must have its base on a free joint, not on a "
            f"{robot.joints[0].kind} one"
        )
