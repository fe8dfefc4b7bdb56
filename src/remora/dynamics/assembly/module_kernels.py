"""Kernels of modules, each traced and compiled once in a process and kept in the cache on disk."""

from __future__ import annotations

from collections.abc import Callable

from remora.algebra.array_ops import Array
from remora.codegen.kernel import Kernel
from remora.dynamics.assembly.network import ModulePass
from remora.dynamics.assembly.robot_module import RobotModule
from remora.dynamics.kernels.cache_keys import value_key

#: Kernels of modules in this process, by key.
_KERNELS: dict[str, Kernel] = {}

#: The passes of a module: (module, minus the acceleration of gravity) -> passes.
Passes = Callable[[RobotModule, Array], list[ModulePass]]


def module_kernel(module: RobotModule, way: ModulePass, passes: Passes, ground: Array) -> Kernel:
    """Return the kernel of a pass; equal modules share it.

    Args:
        module: the module with the points that it carries others with.
        way: the pass.
        passes: the function that returned the pass.
        ground: minus the acceleration of gravity, `(6,)`; compiled into a root.
    """
    points = [(f.body, f.placement) for f in module.points]
    given = ground if module.ground else None
    key = value_key(passes, module.robot, way.name, module.ground, points, given)
    kernel = _KERNELS.get(key) if key else None
    if kernel is None:
        kernel = Kernel(way.function, way.signatures(), f"module_{way.name}", "float64", key)
        if key:
            _KERNELS[key] = kernel
    return kernel
