"""In-memory cache of a robot's kernels, reused from run to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remora.codegen.kernel import Kernel
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.compiled import compile_function
from remora.model.robot import Robot

#: Maximum number of cached kernels.
MOST_KEPT = 256


def kernel(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    **fixed: Any,
) -> Kernel:
    """Return a function compiled for a robot; see `rm.compile`.

    Args:
        function: a function of the library.
        robot: the robot.
        arguments: names of its arguments.
        shapes: shapes of arguments that cannot be inferred from their names.
        **fixed: values to compile in.
    """
    sizes = dict(shapes or {})
    key = value_key(function, robot, tuple(arguments), sorted(sizes.items()), sorted(fixed.items()))
    if key is not None and key in _kept:
        _kept[key] = _kept.pop(key)  # most recently used: dropped last
        return _kept[key]
    made: Kernel = compile_function(
        function, robot, arguments=tuple(arguments), fixed=fixed, shapes=sizes
    )
    if key is not None:
        _kept[key] = made
        while len(_kept) > MOST_KEPT:
            _kept.pop(next(iter(_kept)))
    return made


_kept: dict[str, Kernel] = {}
