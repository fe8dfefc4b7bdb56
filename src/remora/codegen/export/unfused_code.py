"""Graphs as machine code of this computer, with the bits of the exported C."""

from __future__ import annotations

import ctypes

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.export import c_module, c_statements, objects
from remora.codegen.ir.graph import Graph
from remora.codegen.llvm import host


class UnfusedCode:
    """A graph compiled for this computer without fused multiply-adds.

    The operations and their order are those of the exported C, so the bits are the same. (Kernels
    fuse products and sums where the processor can.)
    """

    def __init__(self, graph: Graph, dtype: str) -> None:
        """Compile."""
        self._graph, self._dtype = graph, np.dtype(dtype)
        text = objects.ir(c_statements.prepared(graph, dtype), "unfused", dtype)
        self._code = host.LoadedCode(host.to_object(text, host.host()), ("unfused",))
        count = len(graph.inputs) + len(graph.outputs)
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)
        self._function = prototype(self._code.address["unfused"])

    def __call__(self, *arrays: Array) -> list[Array]:
        """Return the results for one state."""
        given = [
            np.ascontiguousarray(a, dtype=self._dtype).reshape(s.shape)
            for a, s in zip(arrays, self._graph.inputs, strict=True)
        ]
        results = [np.empty(s.shape, self._dtype) for s in self._graph.outputs]
        self._function(*(a.ctypes.data for a in (*given, *results)))
        return results


class ModuleState:
    """The structs of a module as arrays, on which its functions are called as in C.

    Attributes:
        values: by role and member.
    """

    def __init__(self, module: c_module.Module) -> None:
        """Start with zeros, and with the initial values of structs that have them."""
        kinds = {"": module.dtype, "double": "float64"}
        self._module = module
        self.values: dict[str, dict[str, Array]] = {}
        for struct in module.structs:
            own = {m.name: np.zeros(m.shape, kinds.get(m.c_type, m.c_type.removesuffix("_t")))
                   for m in struct.members}  # fmt: skip
            for name, value in (struct.initial or {}).items():
                own[name] = np.asarray(value, own[name].dtype)
            self.values[struct.role] = own
        self._code = {
            f.name: (f.graph, UnfusedCode(f.graph, module.dtype))
            for f in module.functions
            if f.graph is not None
        }

    def call(self, function: str) -> None:
        """Call a function that has a graph."""
        graph, code = self._code[function]
        given: list[Array] = []
        for signature in graph.inputs:
            role, _, name = signature.name.partition(".")
            own = self.values.get(role, {})
            # members that nothing reads are left out of the structs
            given.append(own.get(name, np.zeros(signature.shape)))
        for signature, result in zip(graph.outputs, code(*given), strict=True):
            role, _, name = signature.name.partition(".")
            self.values[role][name] = result

    def copy(self, role: str) -> dict[str, Array]:
        """Return a copy of the members of a struct."""
        return {name: np.array(value) for name, value in self.values[role].items()}
