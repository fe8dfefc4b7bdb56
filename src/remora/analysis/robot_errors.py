"""Errors of a robot's numbers: which ones, how large, and the robot that has them.

| key | error | unit |
| --- | --- | --- |
| `mass`, `BODY.mass` | mass times 1 + x | part of the mass |
| `inertia`, `BODY.inertia` | inertia about the centre of mass times 1 + x | part of the inertia |
| `com`, `BODY.com` | centre of mass moved by x, body axes | m |
| `length`, `JOINT.length`, `FRAME.length` | placement moved by x, axes of the carrying body | m |

A key without a name stands for all bodies, or for all joints but the base's and the frame.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from remora.algebra import pose
from remora.algebra.array_ops import Array, asarray
from remora.errors import InvalidValue, UnknownName
from remora.model.robot import Frame, Robot

#: Kinds of errors, and how many numbers one has.
SIZES = {"mass": 1, "inertia": 1, "com": 3, "length": 3}
_AXES = ("x", "y", "z")


class RobotError(NamedTuple):
    """An error of one part of a robot.

    Attributes:
        kind: a key of SIZES.
        part: name of the body, joint or frame.
        deviation: standard deviation of each of its numbers.
    """

    kind: str
    part: str
    deviation: float

    @property
    def labels(self) -> list[str]:
        """Names of its numbers."""
        name = f"{self.part}.{self.kind}"
        return [name] if SIZES[self.kind] == 1 else [f"{name}.{axis}" for axis in _AXES]


def robot_errors(robot: Robot, errors: Mapping[str, float], frame: Frame) -> tuple[RobotError, ...]:
    """Return the errors by part; those of single parts replace those of all.

    Args:
        robot: the robot.
        errors: standard deviations by key, see the module's table.
        frame: the frame that may have a length.

    Raises:
        UnknownName: for an unknown key or part.
        InvalidValue: if there is no error, or one is not a positive number.
    """
    if not errors:
        raise InvalidValue('errors is empty: give standard deviations, {"mass": 0.01, ...}')
    bodies = [body.name for body in robot.bodies if float(body.mass) > 0.0]
    placed = [joint.name for joint in robot.joints if joint.parent >= 0]
    own = [frame.name] if frame.name in robot.frames.names else []
    of = {"mass": bodies, "inertia": bodies, "com": bodies, "length": [*placed, *own]}
    found: dict[tuple[str, str], RobotError] = {}
    for key in sorted(errors, key=lambda name: "." in name):  # those of single parts come last
        part, _, kind = key.rpartition(".")
        if kind not in SIZES:
            raise UnknownName("kind of error", key, [*SIZES, *(f"PART.{k}" for k in SIZES)])
        if part and part not in of[kind]:
            raise UnknownName(f"part with a {kind}", part, of[kind])
        x = float(errors[key])
        if not (np.isfinite(x) and x > 0.0):
            raise InvalidValue(f"errors[{key!r}] = {x!r} must be a positive standard deviation")
        for name in [part] if part else of[kind]:
            found[kind, name] = RobotError(kind, name, x)
    return tuple(found.values())


def deviated(
    robot: Robot, frame: Frame, errors: tuple[RobotError, ...], x: Array
) -> tuple[Robot, Frame]:
    """Return robot and frame with errors, on floats and symbols.

    Args:
        robot: the robot.
        frame: the frame.
        errors: which numbers have errors.
        x: the errors, `(..., p)`, in order; a batch shape becomes that of the robot's numbers.
    """
    at = 0
    for error in errors:
        own = x[..., at : at + SIZES[error.kind]]
        at += SIZES[error.kind]
        if error.kind == "length" and error.part in robot.joints:
            placement = _moved(robot.joints[error.part].placement, own)
            robot = robot.replace_joint(error.part, placement=placement)
        elif error.kind == "length":
            frame = dataclasses.replace(frame, placement=_moved(frame.placement, own))
        else:
            body = robot.bodies[error.part]
            changed = {
                "mass": lambda b=body, x=own: asarray((b.mass * (1.0 + x))[..., 0]),
                "inertia": lambda b=body, x=own: b.inertia * (1.0 + x[..., None]),
                "com": lambda b=body, x=own: b.com + x,
            }[error.kind]()
            robot = robot.replace_body(error.part, **{error.kind: changed})
    return robot, frame


def _moved(placement: Array, by: Array) -> Array:
    rotation, p = pose.rotation(placement), pose.translation(placement) + by
    return pose.from_parts(rotation * np.ones((*p.shape[:-1], 1)), p)
