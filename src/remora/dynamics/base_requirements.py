"""Whether a robot has one base that floats, for functions of floating robots."""

from __future__ import annotations

from remora.errors import InvalidValue
from remora.model.robot import Robot


def floats(robot: Robot) -> bool:
    """Tell whether the robot has exactly one base that floats: free, and held by nothing."""
    return _why_not(robot) is None


def require_free_base(robot: Robot) -> None:
    """Raise if the robot does not have exactly one base that floats: free, and held by nothing."""
    reason = _why_not(robot)
    if reason is not None:
        raise InvalidValue(f"robot {robot.name!r} {reason}")


def _why_not(robot: Robot) -> str | None:
    """Return what keeps the robot from floating, or None."""
    if sum(j.parent < 0 for j in robot.joints) > 1:
        return "must have one base, not several"
    if robot.joints[0].kind != "free":
        return f"must have its base on a free joint, not on a {robot.joints[0].kind} one"
    held = [repr(c.name) for c in robot.constraints if c.active and min(c.parent, c.child) < 0]
    if held:
        return (
            f"does not float: {', '.join(held)} "
            f"{'connects' if len(held) == 1 else 'connect'} it to the inertial frame, through "
            "which its momentum changes; switch them off: robot.with_active(off=[...])"
        )
    return None
