"""What `rm.compile` may be asked for: options checked by name, type and against each other."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from remora.dynamics.kernels.parameters import parameter
from remora.errors import RemoraError, UnknownName
from remora.model.robot import Robot


def check_names(options: Mapping[str, Any], callable_: Callable[..., Any]) -> None:
    """Refuse options that do not exist.

    Args:
        options: options by name.
        callable_: what takes them, after its first parameters.
    """
    kinds = inspect.signature(callable_).parameters
    known = [name for name in kinds if name not in ("self", "function", "robot")]
    for name in options:
        if name not in known:
            raise UnknownName("option of rm.compile", name, known)


def check_options(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Any = None,
    fixed: Any = None,
    shapes: Any = None,
    parameters: Any = (),
) -> None:
    """Refuse options of the wrong type, or that contradict each other; see `rm.compile`."""
    try:
        taken = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise RemoraError(f"{function!r} has no signature to compile: write f(robot, q)") from None
    if not taken or any(p.kind is p.VAR_POSITIONAL for p in taken):
        raise RemoraError(
            f"a function to compile takes the robot and arrays by name, f(robot, q), not "
            f"({', '.join(map(str, taken))})"
        )
    _names("arguments", () if arguments is None else arguments, '("q", "v")')
    _names("parameters", parameters, '("mass", "elbow.placement")')
    given = _mapping("fixed", fixed, '{"frame": "tool"}')
    both = [name for name in arguments or () if name in given]
    if both:
        raise RemoraError(f"{both[0]!r} is both in arguments and in fixed: choose one")
    _check_shapes(_mapping("shapes", shapes, '{"x": (3,)}'), [p.name for p in taken[1:]])
    _check_apart(robot, parameters)


def _check_shapes(shapes: Mapping[str, Any], known: Sequence[str]) -> None:
    for name, shape in shapes.items():
        if name not in known:
            raise UnknownName("argument to give the shape of", name, known)
        if not _is_shape(shape):
            raise RemoraError(f"shapes[{name!r}] must be a tuple such as (3,), not {shape!r}")


def _is_shape(given: Any) -> bool:
    try:
        return all(operator.index(n) >= 0 for n in given)
    except TypeError:
        return False


def _check_apart(robot: Robot, parameters: Sequence[str]) -> None:
    """Refuse one number of the robot under two names: one of them would be ignored."""
    for k, name in enumerate(parameters):
        parameter(robot, name)  # refuses what there is not
        owner, _, number = name.rpartition(".")
        for other in parameters[:k]:
            other_owner, _, other_number = other.rpartition(".")
            if number == other_number and (owner == other_owner or not owner or not other_owner):
                raise RemoraError(f"parameters {other!r} and {name!r} are the same number twice")


def _is_names(given: Any) -> bool:
    try:
        return not isinstance(given, str) and all(isinstance(name, str) for name in given)
    except TypeError:
        return False


def _names(option: str, given: Any, example: str) -> None:
    if not _is_names(given):
        raise RemoraError(f"{option} must be several names, such as {example}, not {given!r}")


def _mapping(option: str, given: Any, example: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not _is_mapping(given):
        raise RemoraError(f"{option} must be a dictionary such as {example}, not {given!r}")
    return given


def _is_mapping(x: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(x, Mapping)
