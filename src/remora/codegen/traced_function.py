"""Base class of all kernels: a function, its traced graph, its Jacobian and its exports."""

from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from remora.algebra.array_ops import Array, casadi
from remora.codegen.export import c, objects
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import is_tuple, trace, with_symbols
from remora.errors import RemoraError, UnknownName


class TracedFunction:
    """A function on arrays with names and shapes for its arguments.

    Attributes:
        name: name of the function.
        inputs: names and shapes of the arguments.
        dtype: `float64` or `float32`.
        rolled: whether it is compiled as tree loops instead of straight-line code.
    """

    rolled: bool = False

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Signature], name: str, dtype: str
    ) -> None:
        """Store the function; it is traced when its graph is first needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self.inputs = name, dtype, tuple(inputs)
        self._function = function

    def identity_parts(self) -> tuple[Any, ...]:
        """Return the parts that identify it by value; machine code differs from host to host."""
        return self.name, self.dtype, self.inputs, self._function

    def __copy__(self) -> Self:
        """Return itself: kernels are immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: kernels are immutable."""
        return self

    def _portable(self) -> dict[str, Any]:
        """Return the pickled state of any kernel: the function, or its graph if not picklable."""
        state: dict[str, Any] = {"name": self.name, "dtype": self.dtype, "inputs": self.inputs}
        try:
            pickle.dumps(self._function)
        except Exception:  # a lambda or a closure: pickle its traced graph instead
            state["_function"] = nothing_to_run
        else:
            state["_function"] = self._function
        if state["_function"] is nothing_to_run:
            state["graph"] = self.graph
        return state

    @functools.cached_property
    def graph(self) -> Graph:
        """The traced expression graph."""
        return with_symbols(trace(self._function, self.inputs))

    @functools.cached_property
    def outputs(self) -> tuple[Signature, ...]:
        """Names and shapes of the results."""
        return self.graph.outputs

    def jacobian(self, argument: str, output: str | None = None) -> Self:
        """Return the kernel of ∂output/∂argument, `(..., *output shape, *argument shape)`.

        By components, with CasADi's sparse differentiation: for a quaternion, the derivatives with
        respect to its four components, not along the tangent space.

        Args:
            argument: name of an input.
            output: name of an output; the first by default.
        """
        names = [s.name for s in self.inputs]
        if argument not in names:
            raise UnknownName("argument", argument, names)
        outputs = [s.name for s in self.outputs]
        which = 0 if output is None else outputs.index(output) if output in outputs else -1
        if which < 0:
            raise UnknownName("output", output, outputs)
        place = names.index(argument)
        shape = self.outputs[which].shape + self.inputs[place].shape

        def derivative(*arrays: Array) -> Array:
            returned: Any = self._function(*arrays)
            value: Array = returned[which] if is_tuple(returned) else returned
            numerator = casadi.vertcat(*value.reshape(-1).tolist())
            denominator = casadi.vertcat(*arrays[place].reshape(-1).tolist())
            dense = casadi.densify(casadi.jacobian(numerator, denominator))
            flat = np.empty(math.prod(shape), dtype=object)
            rows, columns = dense.shape
            for i in range(rows):
                for j in range(columns):
                    flat[i * columns + j] = dense[i, j]
            return flat.reshape(shape)

        return type(self)(derivative, self.inputs, f"d{self.name}_d{argument}", self.dtype)

    def save_c(self, directory: str | Path, name: str | None = None) -> list[Path]:
        """Write the function as C99: header, source and a test program.

        Args:
            directory: output folder; created if missing.
            name: name of the C function; the kernel's name by default.
        """
        return c.write_c(self.graph, name or self.name, self.dtype, directory)

    def save_object(
        self,
        directory: str | Path,
        triple: str,
        cpu: str = "",
        features: str = "",
        name: str | None = None,
    ) -> list[Path]:
        """Write the function as an object file for another processor, with header and test program.

        Args:
            directory: output folder; created if missing.
            triple: a name of `remora.codegen.export.objects.TARGETS`, or an LLVM triple.
            cpu: LLVM's name of the processor.
            features: processor features in LLVM's notation.
            name: name of the C function; the kernel's name by default.
        """
        called = name or self.name
        return objects.write_object(
            self.graph, called, self.dtype, triple, directory, cpu, features
        )


def nothing_to_run(*arrays: Array) -> Array:
    """Raise: a function restored from its graph cannot be traced again."""
    raise RemoraError(
        "this kernel was made of a graph, or came from a pickle without its function: there is no "
        "function to differentiate"
    )
