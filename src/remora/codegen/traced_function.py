"""What kernels for all machines have in common: the function, its graph, what follows from it."""

from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from remora.algebra.namespace import Array, casadi
from remora.codegen.export import c, objects
from remora.codegen.ir.arguments import DTYPES
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import is_tuple, trace, with_symbols
from remora.errors import RemoraError, UnknownName


class TracedFunction:
    """A function on arrays with names and shapes for its arguments.

    Attributes:
        name: what it was made of.
        inputs: names and shapes of the arguments.
        dtype: `float64` or `float32`.
        rolled: whether it is compiled as loops rather than as a straight line.
    """

    rolled: bool = False

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[Signature], name: str, dtype: str
    ) -> None:
        """Keep the function; it is traced when its graph is needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self.inputs = name, dtype, tuple(inputs)
        self._function = function

    def identity_parts(self) -> tuple[Any, ...]:
        """Return what it is by value: not the machine code, which differs from host to host."""
        return self.name, self.dtype, self.inputs, self._function

    def __copy__(self) -> Self:
        """Return itself: it cannot change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: it cannot change."""
        return self

    def _portable(self) -> dict[str, Any]:
        """Return what a pickle holds of any kernel: the function, or its graph where it must."""
        told: dict[str, Any] = {"name": self.name, "dtype": self.dtype, "inputs": self.inputs}
        try:
            pickle.dumps(self._function)
        except Exception:  # a lambda, a closure: what was traced of it stands for it
            told |= {"_function": nothing_to_run, "graph": self.graph}
        else:
            told["_function"] = self._function
        return told

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

        By components, through CasADi's sparse differentiation: for a quaternion these are the
        derivatives by its four numbers, not along the tangent.

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
            directory: where to; made if there is none.
            name: of the C function; the kernel's by default.
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
            directory: where to; made if there is none.
            triple: a name of `remora.codegen.export.objects.TARGETS`, or an LLVM triple.
            cpu: LLVM's name of the processor.
            features: what it has, as LLVM writes it.
            name: of the C function; the kernel's by default.
        """
        called = name or self.name
        return objects.write_object(
            self.graph, called, self.dtype, triple, directory, cpu, features
        )


def nothing_to_run(*arrays: Array) -> Array:
    """Refuse to trace what is known by its graph alone."""
    raise RemoraError(
        "this kernel was made of a graph, or came from a pickle without its function: there is no "
        "function to differentiate"
    )
