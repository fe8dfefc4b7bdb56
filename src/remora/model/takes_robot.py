"""A decorator that checks that the first argument of a function is a robot."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from remora.algebra.array_ops import is_array
from remora.errors import RemoraError
from remora.model.robot import Robot

F = TypeVar("F", bound=Callable[..., Any])


class NotARobot(RemoraError, TypeError):
    """An argument that should be a robot is something else."""


def takes_robot(function: F) -> F:
    """Decorate a function so that it refuses a first argument that is not a robot."""

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        if arguments or "robot" in named:
            robot = arguments[0] if arguments else named["robot"]
            if not isinstance(robot, Robot):
                check_robot(function.__name__, robot, *arguments[1:], *named.values())
        return function(*arguments, **named)

    return cast(F, checked)


def check_robot(function: str, robot: object, *others: object) -> None:
    """Raise if the argument is not a robot.

    Args:
        function: the name of the called function.
        robot: its first argument.
        *others: its other arguments, among which the robot may be.

    Raises:
        NotARobot: the message says what the function takes.
    """
    if isinstance(robot, Robot):
        return
    given = f"an array of shape {robot.shape}" if is_array(robot) else type(robot).__name__
    later = any(isinstance(x, Robot) for x in others)
    swapped = "; the robot was given later: swap the arguments" if later else ""
    load = f"; load it first: rm.load({robot[:60]!r})" if isinstance(robot, str) else ""
    raise NotARobot(
        f"{function} takes a robot first, {function}(robot, ...), not {given}{swapped}{load}"
    )
