"""Kernels of a robot's functions, kept from run to run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remora.codegen.kernel import Kernel
from remora.dynamics.kernels.compiled import compile_function
from remora.model.robot import Robot


def kernel(
    function: Callable[..., Any],
    robot: Robot,
    arguments: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    **fixed: Any,
) -> Kernel:
    """Return a function as machine code; see `rm.compile`.

    Args:
        function: a function of the library.
        robot: the robot.
        arguments: names of its arguments.
        shapes: of arguments whose names say nothing.
        **fixed: values to compile in, such as can be keys of a dictionary.
    """
    sizes = tuple(sorted((shapes or {}).items()))
    return _made(function, robot, tuple(arguments), sizes, tuple(sorted(fixed.items())))


@functools.lru_cache(maxsize=256)
def _made(
    function: Callable[..., Any],
    robot: Robot,
    arguments: tuple[str, ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    fixed: tuple[tuple[str, Any], ...],
) -> Kernel:
    return compile_function(
        function, robot, arguments=arguments, fixed=dict(fixed), shapes=dict(shapes)
    )
