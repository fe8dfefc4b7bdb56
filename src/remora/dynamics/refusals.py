"""Checks that dynamics is defined: no kinematics-only model, no joint without inertia."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

from remora.errors import InvalidValue
from remora.model.building.mass_matrix_check import undefined_joint
from remora.model.building.physical_checks import cannot_accelerate
from remora.model.robot import Robot

P = ParamSpec("P")
R = TypeVar("R")


def needs_dynamics(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of a robot so that it refuses a kinematics-only model."""

    @functools.wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        robot = arguments[0] if arguments else named.get("robot")
        if isinstance(robot, Robot) and not robot.dynamics:
            refuse_kinematic(robot, function.__name__)
        return function(*arguments, **named)

    checked.__dict__["needs_dynamics"] = True
    return checked


def refuse_kinematic(robot: Robot, what: str) -> None:
    """Raise if a robot is a kinematics-only model, for which `what` is undefined."""
    if not robot.dynamics:
        raise InvalidValue(
            f"{what} needs masses and inertias, and robot {robot.name!r} is a kinematics-only "
            "model: it was loaded with dynamics=False; load it with dynamics=True, which says "
            "what is missing"
        )


def refuse_function(robot: Robot, function: Callable[..., Any]) -> None:
    """Raise if a function marked by `needs_dynamics` cannot be computed for a robot."""
    if getattr(function, "needs_dynamics", False):
        refuse_kinematic(robot, function.__name__)
        if function.__name__.startswith("forward_dynamics"):
            refuse_undefined(robot)


def refuse_undefined(robot: Robot, prescribed: Collection[int] = ()) -> None:
    """Raise if some joint has no inertia to accelerate at any configuration.

    With numeric arguments a singular pivot raises by itself; compiled code must be refused before
    it is generated.

    Args:
        robot: the robot.
        prescribed: joints with prescribed accelerations, by index.
    """
    found = undefined_joint(robot, prescribed)
    if found is not None and found.everywhere:
        hint = "prescribe or lock that joint, or give what it carries a mass and an inertia"
        raise InvalidValue(f"robot {robot.name!r}: {cannot_accelerate(robot, found.joint)}; {hint}")
