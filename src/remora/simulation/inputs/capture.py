"""Capture events: a grapple frame that reaches its fixture, or misses it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from remora.algebra import dual_quaternion, screw
from remora.algebra.array_ops import Array, asarray, is_symbolic
from remora.dynamics.kernels.kernel_memory import kernel
from remora.dynamics.kinematics import poses, twists
from remora.errors import UnknownName
from remora.model.robot import Robot
from remora.model.takes_robot import takes_robot
from remora.simulation.inputs.events import Event, RobotCondition
from remora.world.bushing import refuse_same_body
from remora.world.capture_conditions import capture_margin, check_limits, reach_margin
from remora.world.relative_motion import RelativeMotion, relative_motion

#: What the run does when the fixture leaves the reach of the grapple.
MISSED = ("record", "next", "stop")


@takes_robot
def capture_events(
    robot: Robot,
    grapple: str,
    fixture: str,
    *,
    distance: float,
    angle: float = np.pi,
    speed: float,
    missed: Literal["record", "next", "stop"] = "record",
    name: str = "",
) -> tuple[Event, Event]:
    """Return the events of a capture, for the phase in which a grapple approaches its fixture.

    `captured` starts the next phase, which activates a constraint; it occurs when the fixture is
    within the distance, the angle and the relative speed of the grapple, or is so when the phase
    starts. `missed` occurs when the fixture leaves the distance again.

    Args:
        robot: the robot.
        grapple: name of a body or frame.
        fixture: name of a body or frame.
        distance: largest distance of both origins, m.
        angle: largest angle between both frames, rad.
        speed: largest relative speed of both origins, m/s.
        missed: what the run does then: `record` logs it, `next` starts the next phase, `stop` ends
            the run.
        name: put in front of the events' names.
    """
    limits = check_limits("a capture", distance, angle, speed)
    for frame in (grapple, fixture):
        robot.frame(frame)
    refuse_same_body(robot, grapple, fixture)
    if missed not in MISSED:
        raise UnknownName("action of a missed capture", missed, MISSED)
    before = f"{name} " if name else ""
    near = CaptureCondition(robot, grapple, fixture, *limits, "reach")
    return (
        Event(replace(near, which="capture"), f"{before}captured", "next", -1, at_start=True),
        Event(near, f"{before}missed", missed, 1),
    )


@dataclass(frozen=True)
class CaptureCondition(RobotCondition):
    """A condition (t, q, v) -> number that is negative where a fixture is in reach.

    Attributes:
        robot: the robot.
        grapple: name of a body or frame.
        fixture: name of a body or frame.
        distance: m.
        angle: rad.
        speed: m/s.
        which: `capture`: distance, angle and speed; `reach`: distance only.
    """

    grapple: str
    fixture: str
    distance: float
    angle: float
    speed: float
    which: Literal["capture", "reach"]

    @property
    def told(self) -> dict[str, Any]:
        """Plain description, for the settings of a run."""
        return {
            "condition": self.which, "grapple": self.grapple, "fixture": self.fixture,
            "distance": self.distance, "angle": self.angle, "speed": self.speed,
        }  # fmt: skip

    def __call__(self, t: float | Array, q: Array, v: Array) -> Any:
        """Return the margin, `(...)`."""
        if is_symbolic(asarray(q)) or is_symbolic(asarray(v)):
            return self.margin(self.robot, q, v)
        return kernel(margin_between, self.robot, ("q", "v"), **self._numbers)(q, v)

    def margin(self, robot: Robot, q: Array, v: Array) -> Array:
        """Return the margin of a robot whose numbers may be symbolic, `(...)`."""
        return margin_between(robot, q, v, **self._numbers)

    @property
    def _numbers(self) -> dict[str, Any]:
        return {
            "grapple": self.grapple, "fixture": self.fixture, "which": self.which,
            "limits": (self.distance, self.angle, self.speed),
        }  # fmt: skip


def margin_between(
    robot: Robot,
    q: Array,
    v: Array,
    grapple: str,
    fixture: str,
    limits: tuple[float, float, float],
    which: str,
) -> Array:
    """Return the margin of a capture, `(...)`; see `capture_margin` and `reach_margin`."""
    motion = motion_of(robot, q, v, grapple, fixture)
    if which == "reach":
        return reach_margin(motion, limits[0])
    return capture_margin(motion, *limits)


def motion_of(robot: Robot, q: Array, v: Array, a: str, b: str) -> RelativeMotion:
    """Return the motion of frame b relative to frame a at a state."""
    x, xi = poses(robot, q), twists(robot, q, v)
    parts: list[Array] = []
    for name in (a, b):
        own = robot.frame(name)
        if own.body < 0:
            parts += [own.placement, np.zeros(6)]
        else:
            parts.append(dual_quaternion.mul(x[..., own.body, :], own.placement))
            parts.append(screw.adjoint_inverse(own.placement, xi[..., own.body, :]))
    return relative_motion(*parts)
