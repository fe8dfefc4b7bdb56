"""In-memory cache of kernels and programs, reused from call to call and from run to run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from remora.codegen.kernel import Kernel
from remora.dynamics.formulations import FORMULATIONS, forward_dynamics
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.compiled import compile_function
from remora.dynamics.kernels.composed_robot import ComposedRobot
from remora.identity.recent import Recent
from remora.identity.table import Table
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Robot

T = TypeVar("T")
#: Maximum number of keys: most kernels have one by identity and one by value.
MOST_KEPT = 256


def remembered(
    kind: str,
    identity: tuple[Any, ...] | None,
    alive: object,
    value: Callable[[], Hashable],
    made: Callable[[Any], T],
) -> T:
    """Return a kernel or program from memory; it is made if there is none.

    Args:
        kind: of the kernels, to tell equal keys of different kinds apart.
        identity: a key that is quick to compare, see `identity_key`; None: there is none.
        alive: the objects whose identities are in that key; they are kept with the kernel, so that
            no others have them.
        value: returns the key by value; None: there is none.
        made: (key by value) -> the kernel.
    """
    short = None if identity is None else (kind, identity)
    known = _memory.get(short)
    if known is None:
        key = value()
        whole = None if key is None else (kind, "value", key)
        known = _memory.get(whole) or _memory.keep(whole, (made(key), None))
        _memory.keep(short, (known[0], alive))
    return known[0]


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

    def value() -> str | None:
        names = tuple(arguments), parameters
        return value_key(function, robot, names, sorted(sizes.items()), sorted(fixed.items()))

    def compiled(_: str | None) -> Kernel:
        return compile_function(
            function, robot, arguments=tuple(arguments), fixed=fixed, shapes=sizes,
            parameters=parameters,
        )  # fmt: skip

    short = _short_key(function, robot, (*arguments, None, *parameters), sizes, fixed)
    return remembered("function", short, robot, value, compiled)


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


#: Kernels by their keys, with the objects whose identities are in these.
_memory: Recent[tuple[Any, ...], tuple[Any, object]] = Recent(MOST_KEPT)
