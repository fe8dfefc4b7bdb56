"""Kernels: compiled functions that take and return NumPy arrays of any batch shape."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.metadata
import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.namespace import Array, ArrayLike, casadi, is_array
from remora.compile import c, cache, cpu, expand, fastcall, lower, objects
from remora.compile.graph import Graph, Signature
from remora.compile.trace import trace
from remora.errors import RemoraError, ShapeError, UnknownName

DTYPES = ("float64", "float32")
#: A thread gets at least this many states; fewer are not worth waking it for.
SMALLEST_CHUNK = 1024


class Kernel:
    """A function compiled for this machine.

    Call it like the function: `kernel(q, v, tau)`, with arrays `(..., n)` of any batch shape (they
    broadcast), or by name. A result depends on its own arguments only: it has the same bits alone,
    in any batch, at any place in it, on any number of threads. Values are not checked: NaN in,
    NaN out.

    Attributes:
        name: what it was made of.
        inputs: names and shapes of the arguments.
        outputs: names and shapes of the results.
        dtype: `float64` or `float32`.
        fast: the shortest call, for one state: returns None unless every argument is a contiguous
            array of the kernel's dtype and shape. None where there is more than one output.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Signature],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
    ) -> None:
        """Trace and compile, or take from the cache.

        Args:
            function: takes one array per input.
            inputs: names and shapes of the arguments.
            name: what it is called.
            dtype: `float64` or `float32`.
            key: what stands for the function in the cache, if the caller knows something that
                changes whenever the function does; else the traced graph itself.
        """
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype = name, dtype
        self.inputs = tuple(inputs)
        self._function = function
        self._host = cpu.host()
        image, self.outputs = self._image(key)
        self._start(image)

    @classmethod
    def from_graph(cls, graph: Graph, name: str, dtype: str = "float64") -> Kernel:
        """Return the kernel of a graph that is there already."""
        kernel = cls.__new__(cls)
        kernel.name, kernel.dtype, kernel.inputs = name, dtype, graph.inputs
        kernel.__dict__["graph"] = graph
        kernel._function = _nothing_to_run
        kernel._host = cpu.host()
        image, kernel.outputs = kernel._image(None)
        kernel._start(image)
        return kernel

    @functools.cached_property
    def graph(self) -> Graph:
        """The traced expression graph."""
        return trace(self._function, self.inputs)

    def __call__(self, *arguments: ArrayLike, **options: Any) -> Any:
        """Evaluate.

        Args:
            *arguments: in the order of `inputs`.
            **options: arguments by name; `out`, array (or tuple of arrays) to write the result
                into, of the result's shape and the kernel's dtype, contiguous; `threads`, how many
                share a batch: one by default, 0 for one per processor.
        """
        if not options and self.fast is not None:  # kept short: this is what one state pays
            result = self.fast(*arguments)
            if result is not None:
                return result
        out, threads = options.pop("out", None), options.pop("threads", 1)
        if not isinstance(threads, int) or threads < 0:
            raise ShapeError(f"threads must be a number of threads, or 0, not {threads!r}")
        return self._general(self._ordered(arguments, options), out, threads)

    def jacobian(self, argument: str, output: str | None = None) -> Kernel:
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
            value: Array = returned[which] if len(self.outputs) > 1 else returned
            numerator = casadi.vertcat(*value.reshape(-1).tolist())
            denominator = casadi.vertcat(*arrays[place].reshape(-1).tolist())
            dense = casadi.densify(casadi.jacobian(numerator, denominator))
            flat = np.empty(math.prod(shape), dtype=object)
            rows, columns = dense.shape
            for i in range(rows):
                for j in range(columns):
                    flat[i * columns + j] = dense[i, j]
            return flat.reshape(shape)

        return Kernel(derivative, self.inputs, f"d{self.name}_d{argument}", self.dtype)

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
            triple: a name of `remora.compile.objects.TARGETS`, or an LLVM triple.
            cpu: LLVM's name of the processor.
            features: what it has, as LLVM writes it.
            name: of the C function; the kernel's by default.
        """
        called = name or self.name
        return objects.write_object(
            self.graph, called, self.dtype, triple, directory, cpu, features
        )

    def __repr__(self) -> str:
        """Return the signature."""

        def listed(items: Sequence[Signature]) -> str:
            return ", ".join(f"{s.name} (...{''.join(f', {n}' for n in s.shape)})" for s in items)

        return (
            f"Kernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, {self.dtype}, "
            f"{self._host.cpu}, {self._host.lanes(self.dtype)} lanes"
        )

    # Making ----------------------------------------------------------------------------------

    def _image(self, key: str | None) -> tuple[bytes, tuple[Signature, ...]]:
        """Return the object and the outputs' signatures, compiled or from the cache."""
        target = [self._host.triple, self._host.cpu, self._host.features, self.dtype]
        entry = digest("given", key, *target) if key else None
        stored = cache.load(entry) if entry else None
        if stored is None and entry is None:
            graph = self.graph
            entry = digest(
                "graph", graph.inputs, graph.outputs, graph.nodes, graph.results, *target
            )
            stored = cache.load(entry)
        if stored is not None:
            return _unpacked(stored)
        prepared = expand.prepared(self.graph, self.dtype, fma=self._host.fma)
        lanes = self._host.lanes(self.dtype)
        text = lower.lower(prepared, "kernel", self.dtype, lanes)
        needed = lower.declared(prepared, self.dtype, lanes)
        if len(self.graph.outputs) == 1:
            # one state alone: the same operations in the same order, without the other lanes
            text += lower.lower(prepared, "alone", self.dtype, lanes=1)
            text += fastcall.ir(prepared, "alone", "fast", self.dtype)
            needed += lower.declared(prepared, self.dtype, 1)
        text += "\n".join(sorted(set(needed)))
        image = cpu.to_object(text, self._host)
        assert entry is not None
        cache.save(entry, _packed(image, self.graph.outputs))
        return image, self.graph.outputs

    def _start(self, image: bytes) -> None:
        single = len(self.outputs) == 1
        self._loaded = cpu.Loaded(image, ("kernel", "fast") if single else ("kernel",))
        arrays = len(self.inputs) + len(self.outputs)
        prototype = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p, ctypes.c_int64] * arrays, ctypes.c_int64
        )
        self._kernel = prototype(self._loaded.address["kernel"])
        self.fast: Any = None
        if single and fastcall.available() and self.outputs[0].size:
            self.fast = fastcall.builtin(
                self._loaded.address["fast"], self.outputs[0].shape, self.dtype, self._loaded
            )

    # Calling ---------------------------------------------------------------------------------

    def _ordered(
        self, arguments: tuple[ArrayLike, ...], named: dict[str, ArrayLike]
    ) -> list[ArrayLike]:
        names = [s.name for s in self.inputs]
        given = dict(zip(names, arguments, strict=False))
        doubled = [n for n in named if n in given]
        for name in named:
            if name not in names:
                raise UnknownName(f"argument of kernel {self.name}", name, names)
        missing = [n for n in names if n not in given and n not in named]
        if len(arguments) > len(names) or doubled or missing:
            raise ShapeError(
                f"kernel {self.name} takes {', '.join(names)}; "
                + (f"{', '.join(missing)} missing" if missing else f"{len(arguments)} were given")
            )
        return [given[n] if n in given else named[n] for n in names]

    def _general(self, arguments: Sequence[ArrayLike], out: Any, threads: int) -> Any:
        arrays = [self._checked(a, s) for a, s in zip(arguments, self.inputs, strict=True)]
        batches = [
            a.shape[: a.ndim - len(s.shape)] for a, s in zip(arrays, self.inputs, strict=True)
        ]
        batch = batches[0] if batches else ()
        if any(own != batch for own in batches):
            batch = self._common_batch(batches)
        results = self._results(out, batch)
        n = math.prod(batch)
        call: list[int] = []
        kept: list[Array] = []
        for a, own, s in zip(arrays, batches, self.inputs, strict=True):
            if own == batch:
                rows, stride = np.ascontiguousarray(a), s.size
            elif math.prod(own) == 1:
                rows, stride = np.ascontiguousarray(a), 0  # one for all states
            else:
                rows, stride = np.ascontiguousarray(np.broadcast_to(a, batch + s.shape)), s.size
            kept.append(rows)
            call += [_address(rows), stride]
        for r, s in zip(results, self.outputs, strict=True):
            call += [_address(r), s.size]
        if n:
            self._run(call, n, threads)
        return results[0] if len(results) == 1 else tuple(results)

    def _common_batch(self, batches: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(*batches)
        except ValueError:
            shown = ", ".join(f"{s.name} {b}" for s, b in zip(self.inputs, batches, strict=True))
            raise ShapeError(f"batch shapes do not broadcast: {shown}") from None

    def _run(self, call: list[int], n: int, threads: int) -> None:
        """Run the kernel over all states, in chunks where several threads share them."""
        threads = (os.cpu_count() or 1) if threads == 0 else threads
        count = min(threads, max(1, n // SMALLEST_CHUNK))
        if count <= 1:
            self._kernel(*call, n)
            return
        item = np.dtype(self.dtype).itemsize
        bounds = np.linspace(0, n, count + 1).astype(int).tolist()

        def part(start: int, stop: int) -> None:
            moved = [
                x + start * call[k + 1] * item if k % 2 == 0 else x for k, x in enumerate(call)
            ]
            self._kernel(*moved, stop - start)

        list(_pool(count).map(part, bounds[:-1], bounds[1:]))

    def _checked(self, argument: ArrayLike, signature: Signature) -> Array:
        a = argument if is_array(argument) else np.asarray(argument)
        if a.dtype != self.dtype and not np.can_cast(a.dtype, self.dtype, "safe"):
            raise ShapeError(
                f"{signature.name} of kernel {self.name} is {a.dtype}; the kernel is "
                f"{self.dtype}: convert it, or compile with dtype={str(a.dtype)!r}"
            )
        core = a.shape[max(0, a.ndim - len(signature.shape)) :]
        if core != signature.shape:
            wanted = ", ".join(["...", *map(str, signature.shape)])
            raise ShapeError(
                f"{signature.name} of kernel {self.name} must have shape ({wanted}), not {a.shape}"
            )
        fits = a.dtype == self.dtype and a.flags.aligned
        return a if fits else np.require(a, self.dtype, "A")

    def _results(self, out: Any, batch: tuple[int, ...]) -> list[Array]:
        shapes = [batch + s.shape for s in self.outputs]
        if out is None:
            return [np.empty(shape, self.dtype) for shape in shapes]
        given: list[Any] = list(out) if len(shapes) > 1 else [out]
        if len(given) != len(shapes):
            raise ShapeError(f"out must be {len(shapes)} arrays, not {len(given)}")
        for r, shape in zip(given, shapes, strict=True):
            fits = (
                is_array(r)
                and r.shape == shape
                and r.dtype == self.dtype
                and r.flags.c_contiguous
                and r.flags.aligned
                and r.flags.writeable
            )
            if not fits:
                raise ShapeError(
                    f"out must be a contiguous, writeable {self.dtype} array of shape {shape}"
                )
        return given


def _nothing_to_run(*arrays: Array) -> Array:
    raise RemoraError("this kernel was made of a graph: there is no function to differentiate")


def _address(a: Array) -> int:
    return a.__array_interface__["data"][0]


@functools.cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="remora")


if hasattr(os, "register_at_fork"):  # a forked process has the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@functools.cache
def _versions() -> str:
    """Return what else decides the machine code: this room's source and its libraries."""
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(file.read_bytes())
    names = ("numpy", "casadi", "llvmlite")
    return sources.hexdigest() + "".join(importlib.metadata.version(n) for n in names)


def digest(*parts: object) -> str:
    """Return the name of a cache entry for all that decides its content."""
    return hashlib.sha256(repr((_versions(), *parts)).encode()).hexdigest()


def _packed(image: bytes, outputs: Sequence[Signature]) -> bytes:
    head = json.dumps([[s.name, s.shape] for s in outputs]).encode()
    return len(head).to_bytes(4, "little") + head + image


def _unpacked(data: bytes) -> tuple[bytes, tuple[Signature, ...]]:
    size = int.from_bytes(data[:4], "little")
    outputs = json.loads(data[4 : 4 + size])
    return data[4 + size :], tuple(Signature(name, tuple(shape)) for name, shape in outputs)
