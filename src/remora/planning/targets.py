"""The `targets` of inverse kinematics as tasks, and their errors by target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from remora.algebra.array_ops import Array
from remora.errors import InvalidValue, ShapeError
from remora.model.numbers import finite
from remora.model.robot import Robot
from remora.planning.result import TargetError
from remora.planning.task_equations import equation
from remora.planning.tasks import BoundTask, FrameTask, PositionTask, Task

#: Goals that may stand for a task, by the shape of the array.
SHORT = {(8,): FrameTask, (3,): PositionTask}
#: Kinds of tasks that only velocities can meet.
OF_VELOCITIES = ("base at rest", "base does not turn")


def bound_targets(robot: Robot, targets: Any) -> list[BoundTask]:
    """Return the targets as tasks of the robot, or raise.

    Args:
        robot: the robot.
        targets: frame -> pose `(8,)` or position `(3,)`; or a task, or several.
    """
    tasks = [task.bind(robot) for task in as_tasks(targets)]
    if len({task.priority for task in tasks}) > 1:
        raise InvalidValue(
            "the tasks have several priorities: inverse_kinematics weighs targets by `weight`; "
            "strict priorities are for rm.tasks.solve_tasks, step by step"
        )
    for task in tasks:
        if task.spec.kind in OF_VELOCITIES:
            raise InvalidValue(
                f"task {task.name!r} is about velocities: it has no configuration to solve for; "
                "see rm.tasks.solve_tasks"
            )
    return named_apart(tasks)


def as_tasks(targets: Any) -> list[Task]:
    """Return the tasks meant by a mapping, a task, or a sequence of tasks."""
    if isinstance(targets, Mapping):
        given = cast(Mapping[Any, Any], targets)
        return [_from_goal(frame, goal) for frame, goal in given.items()]
    if isinstance(targets, Task):
        return [targets]
    if isinstance(targets, Sequence) and not isinstance(targets, str):
        listed = cast(Sequence[Any], targets)
        for task in listed:
            if not isinstance(task, Task):
                raise InvalidValue(f"a target is a task, such as rm.tasks.FrameTask, not {task!r}")
        return list(listed)
    raise InvalidValue(
        "targets are {frame: pose (8,) or position (3,)}, or tasks such as "
        f"rm.tasks.FrameTask(frame, pose), not {type(targets).__name__}"
    )


def _from_goal(frame: Any, goal: Any) -> Task:
    if isinstance(goal, Task):
        raise InvalidValue(f"target {frame!r}: give tasks as a list, not by name")
    array = finite(f"target {frame!r}", goal)
    if array.shape not in SHORT:
        raise ShapeError(
            f"target {frame!r} must be a pose (8,) or a position (3,), not of shape {array.shape}"
        )
    return SHORT[array.shape](frame, array, name=str(getattr(frame, "name", frame)))


def named_apart(tasks: list[BoundTask]) -> list[BoundTask]:
    """Return the tasks; raise if two have one name, for results are found by it."""
    names = [task.name for task in tasks]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidValue(f"several tasks are called {', '.join(map(repr, twice))}; name them")
    return tasks


def row_groups(robot: Robot, tasks: Sequence[BoundTask]) -> Array:
    """Return S `(2 t, m)`: S e² are the squared errors of each task, angles and lengths apart."""
    angular = [np.array(equation(task.spec).angular(robot), dtype=bool) for task in tasks]
    count, at, rows = sum(a.size for a in angular), 0, list[Array]()
    for task, kinds in zip(tasks, angular, strict=True):
        for wanted in (True, False):
            row = np.zeros(count)
            row[at : at + kinds.size] = (kinds == wanted) & (task.weights > 0.0)
            rows.append(row)
        at += kinds.size
    return np.array(rows).reshape(len(rows), count)


def target_errors(
    tasks: Sequence[BoundTask], groups: Array, errors: Array
) -> dict[str, TargetError]:
    """Return the errors by the target's name; chords of directions as angles."""
    size = np.sqrt(groups @ errors**2)
    found: dict[str, TargetError] = {}
    for i, task in enumerate(tasks):
        angle, length = (
            float(size[2 * i + k]) if groups[2 * i + k].any() else None for k in (0, 1)
        )
        if task.spec.kind == "direction" and angle is not None:
            angle = 2.0 * float(np.arcsin(min(1.0, 0.5 * angle)))
        found[task.name] = TargetError(length, angle)
    return found
