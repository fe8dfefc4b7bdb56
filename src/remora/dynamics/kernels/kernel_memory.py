"""In-memory cache of a robot's kernels, reused from call to call and from run to run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remora.codegen.kernel import Kernel
from remora.dynamics.formulations import FORMULATIONS, forward_dynamics
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kernels.composed_robot import ComposedRobot
from remora.identity.recent import Recent
from remora.identity.table import Table
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Robot

#: Maximum number of cached kernels.
MOST_KEPT = 256


def kernel(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    parameters: tuple[str, ...] = (),
    **fixed: Any,
) -> Kernel:
    """Return a function compiled for a robot; see `rm.compile`.

    Args:
        function: a function of the library.
        robot: the robot.
        arguments: names of its arguments.
        shapes: shapes of arguments that cannot be inferred from their names.
        parameters: numbers of the robot that are arguments, after the others.
        **fixed: values to compile in.
    """
    if isinstance(robot, ComposedRobot) and function is forward_dynamics:
        made: Any = compile_function(function, robot)  # a function, which has no value
        return made
    sizes = dict(shapes or {})
    short = _short_key(function, robot, (*arguments, None, *parameters), sizes, fixed)
    known = _recent.get(short)
    if known is not None:
        return known[0]
    found = _by_value(function, robot, arguments, sizes, parameters, fixed)
    return _recent.keep(short, (found, robot))[0]


def _short_key(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str | None],
    sizes: Mapping[str, tuple[int, ...]],
    fixed: Mapping[str, Any],
) -> tuple[Any, ...] | None:
    """Return a key that holds for the same robot object; None: only values can be compared."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    name = getattr(function, "__name__", "")
    if getattr(module, "__name__", "").split(".")[0] != "remora":
        return None  # a user's function may change at any time
    if getattr(module, name, None) is not function:
        return None
    return identity_key(robot, function, *arguments, *sizes.items(), *fixed.items())


def identity_key(robot: Robot, *parts: Any) -> tuple[Any, ...] | None:
    """Return a key of a robot by its identity and of hashable parts by value, or None.

    It holds while the robot lives, so it is stored with it, and as long as no user's row is in a
    table, whose functions may change at any time.

    Args:
        robot: the robot.
        *parts: other values, of the library's own types.
    """
    if FORMULATIONS.replaced() or JOINT_TYPES.replaced():
        return None
    key = (id(robot), Table.changes, *parts)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _by_value(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str],
    sizes: Mapping[str, tuple[int, ...]],
    parameters: tuple[str, ...],
    fixed: Mapping[str, Any],
) -> Kernel:
    names = tuple(arguments), parameters
    key = value_key(function, robot, names, sorted(sizes.items()), sorted(fixed.items()))
    known = _kept.get(key)
    if known is not None:
        return known
    made: Kernel = compile_function(
        function, robot, arguments=tuple(arguments), fixed=fixed, shapes=sizes,
        parameters=parameters,
    )  # fmt: skip
    return _kept.keep(key, made)


_kept: Recent[str, Kernel] = Recent(MOST_KEPT)
#: By the identity of the robot, which is stored, too, so that no other has its identity.
_recent: Recent[tuple[Any, ...], tuple[Kernel, Robot]] = Recent(MOST_KEPT)
