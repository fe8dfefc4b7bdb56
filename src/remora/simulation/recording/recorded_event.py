"""An event that occurred during a run, and the limits that were passed, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remora.algebra.array_ops import Array
from remora.model.robot import Robot

#: How the names of events at limits end, after the name of the joint.
_LIMITS = ("upper limit", "lower limit", "speed limit")


@dataclass(frozen=True, eq=False)
class RecordedEvent:
    """An event that occurred during a run.

    Attributes:
        t: its time, s.
        name: name of the event.
        action: action taken.
        q: configuration at t, `(nq,)`.
        v: velocity at t, `(nv,)`.
    """

    t: float
    name: str
    action: str
    q: Array
    v: Array


def limits_passed(robot: Robot, events: Sequence[RecordedEvent]) -> str:
    """Return the first limit that was passed, its time, and how many more; empty if none was."""
    names = {f"{joint.name} {limit}" for joint in robot.joints for limit in _LIMITS}
    passed = [event for event in events if event.name in names]
    if not passed:
        return ""
    more = f", and {len(passed) - 1:,} more" if len(passed) > 1 else ""
    return f"{passed[0].name} at {passed[0].t:.6g} s{more}"
