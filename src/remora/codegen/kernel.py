"""CPU kernels: compiled functions on NumPy arrays of any batch shape."""

from __future__ import annotations

import importlib
import math
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen import kernel_cache
from remora.codegen.ir import graph_passes
from remora.codegen.ir.arguments import listed, ordered
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.llvm import fast_call, host, lowering
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.row_calls import (
    IN_ROWS,
    WRITEABLE,
    apart,
    chunk_ir,
    in_rows,
    plain_rows,
    results_for,
    run,
    scratch_for,
    thread_count,
)
from remora.codegen.traced_function import TracedFunction, nothing_to_run
from remora.codegen.tree_loops import loop_lowering
from remora.codegen.tree_loops.loops import Loops
from remora.identity.digest import code_key

llvmlite: Any = importlib.import_module("llvmlite")

#: Minimum number of states per thread; below this, waking a thread does not pay.
SMALLEST_CHUNK = 1024
#: States that a kernel computes one by one before code for SIMD lanes pays for its compilation.
FEW_STATES = 20_000
#: Functions of each piece of code of a kernel: for one state after the other, for SIMD lanes.
_PIECES = {"alone": ("chunk", "fast"), "lanes": ("chunk",)}
#: Kernels of loops are one piece.
_LOOPS = {"loops": ("chunk", "fast")}
_compiling = threading.RLock()


class Kernel(TracedFunction):
    """A function compiled for this machine.

    Call it like the function: `kernel(q, v, tau)`, with arrays `(..., n)` of any batch shape (they
    broadcast), or by name. A result depends on its own arguments only: it is bitwise identical for
    a single state, in any batch, at any position in it, and for any number of threads. Values are
    not checked: NaN in, NaN out.

    There is code for one state and code for SIMD lanes, and each is compiled when it is first
    needed: small batches are computed state by state. `ready` compiles both.

    Attributes:
        name: name of the function that was compiled.
        inputs: names and shapes of the arguments.
        outputs: names and shapes of the results.
        dtype: `float64` or `float32`.
        fast: low-overhead call for a single state: returns None unless every argument is a
            contiguous array of the kernel's dtype and shape. None until the code for one state is
            compiled, and if this Python does not support it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Signature],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
        loops: Callable[[], Loops] | None = None,
    ) -> None:
        """Trace and compile, or load from the cache.

        Args:
            function: takes one array per input.
            inputs: names and shapes of the arguments.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            key: cache key that changes whenever the function does, if the caller has one;
                otherwise the traced graph is hashed.
            loops: builds the same function as tree loops, which are compiled instead of the graph;
                requires a key.
        """
        super().__init__(function, inputs, name, dtype)
        self._loops, self.rolled, self._fused = loops, loops is not None, True
        self._begin(key)

    @classmethod
    def from_graph(
        cls, graph: Graph, name: str, dtype: str = "float64", fma: bool = True
    ) -> Kernel:
        """Return the kernel of an existing graph.

        Args:
            graph: as traced.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            fma: whether products and sums are fused if the processor can; without, the bits are
                those of exported C.
        """
        kernel = cls.__new__(cls)
        kernel.name, kernel.dtype, kernel.inputs = name, dtype, graph.inputs
        kernel.__dict__["graph"] = graph
        kernel._function, kernel._loops, kernel._fused = nothing_to_run, None, fma
        kernel._begin(None)
        return kernel

    def ready(self) -> Self:
        """Return the kernel with all of its code compiled, so that no call compiles any."""
        for piece in self._pieces:
            self._code(piece)
        return self

    def jacobian(self, argument: str, output: str | None = None) -> Self:
        """Return the kernel of a derivative, ready to be called; see `TracedFunction.jacobian`."""
        return super().jacobian(argument, output).ready()

    def __call__(self, *arguments: ArrayLike, **options: Any) -> Any:
        """Evaluate.

        Args:
            *arguments: in the order of `inputs`.
            **options: arguments by name; `out`, a contiguous array (or tuple of arrays) of the
                result's shape and the kernel's dtype that receives the result; `threads`, the
                number of threads that share a batch: 1 by default, 0 for one per processor.
        """
        if not options and self.fast is not None:  # kept short: the overhead of a single state
            result = self.fast(*arguments)
            if result is not None:
                return result
        out, threads = options.pop("out", None), options.pop("threads", 1)
        if options or len(arguments) != len(self.inputs):
            arguments = tuple(ordered(self.name, self.inputs, arguments, options))
        return self._general(arguments, out, threads)

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"Kernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, {self.dtype}, "
            f"{self._host.cpu}, {self._host.lanes(self.dtype)} lanes"
        )

    @property
    def chunk_address(self) -> int:
        """Address of its function of `row_calls`, for `kernel_sequence`; valid while it lives.

        Kernels of loops need scratch memory and have none (0).
        """
        return 0 if self._scratch else self._code("lanes").address["chunk"]

    def identity_parts(self) -> tuple[Any, ...]:
        """Return the parts of its identity by value, see `TracedFunction.identity_parts`."""
        if self._function is not nothing_to_run:
            return super().identity_parts()
        return self.name, self.dtype, self.inputs, self.graph.nodes, self.graph.results

    # Compilation -----------------------------------------------------------------------------

    def _begin(self, key: str | None) -> None:
        """Get what the code is made of, from the cache or by tracing."""
        self._host = host.host()
        target = *self._host.code, self.dtype, self._fma
        entry = None
        if key:
            entry = kernel_cache.entry_key("given", key, self._loops is not None, *target)
        elif self._loops is None:
            entry = kernel_cache.entry_key("graph", self.graph.content(), *target)
        stored = None if entry is None else kernel_cache.load(entry)
        if stored is not None:
            (self._scratch, outputs), self._source = kernel_cache.unpacked(stored)
            self.outputs = tuple(Signature(n, tuple(shape)) for n, shape in outputs)
        else:
            self._source = self._straight() if self._loops is None else self._rolled()
            if entry is not None:
                about = self._scratch, [(s.name, s.shape) for s in self.outputs]
                kernel_cache.save(entry, kernel_cache.packed(about, self._source))
        self._entry = entry
        self._images: dict[str, bytes] = {}
        self._start()

    @property
    def _fma(self) -> bool:
        """Whether products and sums are fused."""
        return self._fused and self._host.fma

    def _straight(self) -> bytes:
        """Return the prepared graph, the source of straight-line code; sets outputs and scratch."""
        self.outputs, self._scratch = self.graph.outputs, 0
        return graph_passes.prepared(self.graph, self.dtype, fma=self._fma).to_bytes()

    def _rolled(self) -> bytes:
        """Return the LLVM IR of the tree loops; sets outputs and scratch."""
        assert self._loops is not None
        loops = self._loops()
        lanes, item = self._host.lanes(self.dtype), np.dtype(self.dtype).itemsize
        text, (room, room_alone) = loop_lowering.module(
            loops, {"kernel": lanes, "alone": 1}, self.dtype, self._fma
        )
        text += fast_call.ir(
            self.inputs, len(loops.outputs), "alone", "fast", self.dtype, item * room_alone
        )
        arrays = len(self.inputs) + len(loops.outputs)
        text += chunk_ir(arrays, "kernel", "chunk", self.dtype, scratch=True)
        self.outputs, self._scratch = loops.outputs, item * lanes * room
        return zlib.compress(text.encode(), 1)

    def _text(self, piece: str) -> str:
        """Return the LLVM IR of a piece of code."""
        if piece == "loops":
            return zlib.decompress(self._source).decode()
        prepared, results = Graph.from_bytes(self._source), len(self.outputs)
        # one lane: the same operations in the same order
        lanes = 1 if piece == "alone" else self._host.lanes(self.dtype)
        text = lowering.lower(prepared, "kernel", self.dtype, lanes)
        if piece == "alone":
            text += fast_call.ir(self.inputs, results, "kernel", "fast", self.dtype)
        text += chunk_ir(len(self.inputs) + results, "kernel", "chunk", self.dtype)
        return text + "\n".join(lowering.declared(prepared, self.dtype, lanes))

    def _stored(self, piece: str) -> bytes | None:
        """Return the object code of a piece, if there is any so far."""
        if piece not in self._images and self._entry is not None:
            found = kernel_cache.load(kernel_cache.entry_key("piece", self._entry, piece))
            if found is not None:
                self._images[piece] = found
        return self._images.get(piece)

    def _code(self, piece: str) -> host.LoadedCode:
        """Return a piece of code in memory, compiled or from the cache."""
        with _compiling:
            if piece in self._loaded:
                return self._loaded[piece]
            image = self._stored(piece)
            if image is None:
                image = self._images[piece] = host.to_object(self._text(piece), self._host)
                if self._entry is not None:
                    kernel_cache.save(kernel_cache.entry_key("piece", self._entry, piece), image)
            code = host.LoadedCode(image, self._pieces[piece])
            if (
                "fast" in code.address
                and fast_call.available()
                and all(s.size for s in self.outputs)
            ):
                shapes = [s.shape for s in self.outputs]
                self.fast = fast_call.builtin(code.address["fast"], shapes, self.dtype, code)
            self._loaded[piece] = code
            return code

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state: the code so far and its source, and the function."""
        names = ("outputs", "rolled", "_scratch", "_host", "_source", "_entry", "_images")
        portable = self._portable()
        compiled = {n: getattr(self, n) for n in (*names, "_loops", "_fused")}
        return portable | compiled | {"made with": _made_with(portable, self._loops)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle; recompile for another processor or library version."""
        made_with = state.pop("made with")
        same = state["_host"] == host.host() and made_with is not None
        same = same and made_with == _made_with(state, state["_loops"])
        vars(self).update(state)
        self._start() if same else self._begin(None)

    def _start(self) -> None:
        """Set up a kernel of which no code has been loaded."""
        self._pieces = _PIECES if self._loops is None else _LOOPS
        self._loaded: dict[str, host.LoadedCode] = {}
        self._states = 0  # of batches, computed one by one
        self._rows = [(s.shape, s.size) for s in (*self.inputs, *self.outputs)]
        self.fast: Any = None

    # Calling ---------------------------------------------------------------------------------

    def _general(self, arguments: Sequence[ArrayLike], out: Any, threads: int) -> Any:
        plain = self._plain(arguments, out)
        if plain is not None:
            n, call, results = plain
            self._run(call, n, threads)
            return results[0] if len(results) == 1 else tuple(results)
        batch, call, kept = in_rows(self.name, self.inputs, arguments, self.dtype)
        results = results_for(out, [batch + s.shape for s in self.outputs], self.dtype)
        if out is not None:
            call, kept = apart(self.name, self.inputs, call, kept, results)
        for r, s in zip(results, self.outputs, strict=True):
            call += [address(r), s.size]
        n = math.prod(batch)
        if n:
            self._run(call, n, threads)
        del kept  # the arrays that `call` points into
        return results[0] if len(results) == 1 else tuple(results)

    def _plain(
        self, arguments: Sequence[Any], out: Any
    ) -> tuple[int, list[int], list[Array]] | None:
        """Return number of states, call and results of a batch that needs no conversion.

        The short way of `_general`, which decides about everything else: arrays in rows along one
        batch axis, one result at most in an array of the caller's, apart from the arguments in
        memory. Otherwise returns None.
        """
        if not arguments or type(arguments[0]) is not np.ndarray or not arguments[0].shape:
            return None
        n, outputs = arguments[0].shape[0], len(self.outputs)
        call = plain_rows(arguments, self._rows[: len(self.inputs)], n, self.dtype, IN_ROWS)
        if call is None or not n:
            return None
        results: list[Any] = [out]
        if out is None:
            results = [
                np.empty((n, *shape), self.dtype) for shape, _ in self._rows[len(self.inputs) :]
            ]
        elif outputs > 1:
            return None
        rows = plain_rows(
            results, self._rows[len(self.inputs) :], n, self.dtype, IN_ROWS | WRITEABLE
        )
        if rows is None:
            return None
        if out is not None:
            start, end = rows[0], rows[0] + out.nbytes
            for a, x in zip(arguments, call[::2], strict=True):
                if start < x + a.nbytes and x < end:
                    return None
        return n, call + rows, results

    def _run(self, call: list[int], n: int, threads: int) -> None:
        """Run the kernel over all states, in chunks if several threads share them."""
        count = thread_count(threads, n // SMALLEST_CHUNK)
        piece = self._piece(n, shared=count > 1)
        code = self._loaded.get(piece) or self._code(piece)
        room, scratch = scratch_for(count, self._scratch)
        run(code, call, n, count, scratch, self._host.lanes(self.dtype))
        del room

    def _piece(self, n: int, shared: bool) -> str:
        """Return which code computes n states.

        Their bits are the same. Lanes are faster, but few states do not make up for the time that
        their compilation takes.
        """
        if self._loops is not None:
            return "loops"
        if shared or "lanes" in self._loaded:
            return "lanes" if n > 1 or "alone" not in self._loaded else "alone"
        if n == 1:
            return "alone"
        self._states += n
        known = self._states == n and self._stored("lanes") is not None  # looks once
        return "lanes" if known or self._states > FEW_STATES else "alone"


def _made_with(portable: Mapping[str, Any], loops: Callable[[], Loops] | None) -> str | None:
    """Return the key of what pickled machine code was made of; None: it must be made anew.

    Args:
        portable: the pickled function, or its graph.
        loops: builds the tree loops that are compiled instead.
    """
    if "graph" in portable:
        return kernel_cache.entry_key("graph", portable["graph"].content())
    function = portable["_function"]
    parts = getattr(function, "identity_parts", None)  # without what differs by process
    key = code_key(function if parts is None else (type(function), parts()), loops)
    return None if key is None else kernel_cache.entry_key("given", key)
