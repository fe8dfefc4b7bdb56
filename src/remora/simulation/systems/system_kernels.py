"""Kernels of functions of a system, compiled once and reused from run to run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.components.system import System
from remora.dynamics.kernels.cache_keys import value_key
from remora.dynamics.kernels.kernel_memory import remembered


class SystemKernel:
    """A compiled function of a system; arguments without elements are left out of the kernel."""

    def __init__(
        self,
        function: Callable[..., Any],
        system: System,
        shapes: Mapping[str, tuple[int, ...]],
        fixed: Mapping[str, Any],
        parameters: Mapping[str, tuple[int, ...]],
    ) -> None:
        """Trace and compile.

        Args:
            function: f(system, ...) on arrays.
            system: the system; all of its components can be traced.
            shapes: names and shapes of the arguments, in order.
            fixed: values of its other parameters, compiled in.
            parameters: numbers of the robot that are arguments, after the others, with shapes.
        """
        shapes = {**shapes, **parameters}
        names = tuple(shapes)
        self._taken = [k for k, name in enumerate(names) if 0 not in shapes[name]]
        inputs = [Signature(names[k], shapes[names[k]]) for k in self._taken]
        empty = {name: np.zeros(shape) for name, shape in shapes.items() if 0 in shape}

        def on_arrays(*arrays: Array) -> Any:
            given = {s.name: x for s, x in zip(inputs, arrays, strict=True)}
            own = system
            if parameters:
                own = own.acting_with({name: given[name] for name in parameters})
            read = {n: (empty | given)[n] for n in names if n not in parameters}
            return function(own, **read, **fixed)

        self.kernel = Kernel(on_arrays, inputs, function.__name__)

    def __call__(self, *arrays: Any) -> Any:
        """Evaluate."""
        return self.kernel(*(arrays[k] for k in self._taken))

    @functools.cached_property
    def slope(self) -> Callable[..., Array]:
        """Function of the same arguments: the derivative with respect to `y`."""
        slope, taken = self.kernel.jacobian("y"), self._taken
        return lambda *arrays: slope(*(arrays[k] for k in taken))


class BoundSystemKernel(NamedTuple):
    """A kernel of a system with the numbers of its robot that are arguments.

    Attributes:
        kernel: the kernel.
        numbers: its last arguments.
    """

    kernel: SystemKernel
    numbers: tuple[Array, ...]

    def __call__(self, *arrays: Any) -> Any:
        """Evaluate."""
        return self.kernel(*arrays, *self.numbers)

    def slope(self, *arrays: Any) -> Array:
        """Return the derivative with respect to `y`."""
        return self.kernel.slope(*arrays, *self.numbers)


def system_kernel(
    function: Callable[..., Any],
    system: System,
    shapes: Mapping[str, tuple[int, ...]],
    parameters: Mapping[str, tuple[int, ...]] | None = None,
    **fixed: Any,
) -> SystemKernel:
    """Return a function compiled for a system, from the cache if it is there.

    Systems are told apart by value: robot, components (with the code of their classes),
    connections and order of evaluation. On disk, kernels are found by the traced graph.

    Args:
        function: f(system, ...) on arrays.
        system: the system.
        shapes: names and shapes of the arguments, in order.
        parameters: numbers of the robot that are arguments, after the others, with shapes.
        **fixed: values to compile in.
    """
    parts = system.kernel_parts()
    open_numbers = dict(parameters or {})
    names = list(shapes.items()), list(open_numbers.items())
    values = sorted(fixed.items())
    return remembered(
        "system", None, None,
        lambda: value_key(function, system.robot, parts, names, values),
        lambda _: SystemKernel(function, system, shapes, fixed, open_numbers),
    )  # fmt: skip
