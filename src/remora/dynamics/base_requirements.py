"""The check that a robot has one base that floats, for functions of floating robots."""

from __future__ import annotations

from remora.errors import InvalidValue
from remora.model.robot import Robot


def require_free_base(robot: Robot) -> None:
    """Raise if the robot does not have exactly one base that floats: free, and held by nothing."""
    if sum(j.parent < 0 for j in robot.joints) > 1:
        raise InvalidValue(f"robot {robot.name!r} must have one base, not several")
    if robot.joints[0].kind != "free":
        raise InvalidValue(
            f"robot {robot.name!r} must have its base on a free joint, not on a "
            f"{robot.joints[0].kind} one"
        )
    held = [repr(c.name) for c in robot.constraints if c.active and min(c.parent, c.child) < 0]
    if held:
        raise InvalidValue(
            f"robot {robot.name!r} does not float: {', '.join(held)} "
            f"{'connects' if len(held) == 1 else 'connect'} it to the inertial frame, through "
            "which its momentum changes; switch them off: robot.with_active(off=[...])"
        )
