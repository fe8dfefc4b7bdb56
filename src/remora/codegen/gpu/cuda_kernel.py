"""CUDA kernels: a graph as PTX, launched through CuPy on arrays in device memory."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, is_array
from remora.atomic_files import write_text
from remora.codegen.gpu import ptx, ptx_loops
from remora.codegen.ir import graph_passes
from remora.codegen.ir.arguments import batch_of, common_batch, listed, ordered, wrong_dtype
from remora.codegen.ir.graph import Signature
from remora.codegen.traced_function import TracedFunction
from remora.codegen.tree_loops.loops import Loops
from remora.errors import RemoraError, ShapeError, UnknownName

#: Threads per block: few, so that blocks with high register pressure fill the multiprocessors.
BLOCK = 64
#: Blocks per multiprocessor if each thread processes several states.
BLOCKS_OF_LOOPS = 8


class CudaKernel(TracedFunction):
    """A function compiled for GPUs.

    Call it like the function, with arrays in device memory: CuPy's, or those of any library that
    supports DLPack (PyTorch, JAX), which are read in place. The result belongs to the same library
    as the first argument. Batch shapes broadcast. A call is asynchronous: it returns when the work
    is queued on `stream`. Results are bitwise reproducible in every run and every batch. Values
    are not checked: NaN in, NaN out.

    An array may be row-major, `(n, 13)` as in NumPy, or "in columns" (the transpose of a
    contiguous `(13, n)`), so that threads access memory coalesced; any other layout is copied
    first. Results are in columns if an argument is, and matrices always: written in rows they
    take more than ten times as long. Pass `out` to choose another layout.

    Building a kernel, `ptx` and `save_ptx` need no GPU.

    Attributes:
        name: name of the function.
        inputs: names and shapes of the arguments.
        outputs: names and shapes of the results.
        dtype: `float64` or `float32`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Signature],
        name: str,
        dtype: str = "float64",
        loops: Callable[[], Loops] | None = None,
    ) -> None:
        """Store the arguments; code is generated on first use.

        Args:
            function: takes one array per input.
            inputs: names and shapes of the arguments.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            loops: builds the same function as tree loops, which are compiled instead of the graph.
        """
        super().__init__(function, inputs, name, dtype)
        self._loops = None if loops is None else loops()
        if self._loops is not None:
            self.outputs, self.rolled = self._loops.outputs, True
        self._made: dict[tuple[int, tuple[str, ...]], LoadedModule] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state, without device modules."""
        own: dict[str, Any] = {"_loops": self._loops, "rolled": self.rolled}
        if self._loops is not None:
            own["outputs"] = self.outputs
        return self._portable() | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle."""
        vars(self).update(state)
        self._made = {}

    def ptx(self, layout: str = "rows") -> str:
        """Return the PTX, with the same layout for all arrays.

        Args:
            layout: "rows" or "columns", see `remora.codegen.gpu.ptx`.
        """
        if layout not in ptx.LAYOUTS:
            raise UnknownName("layout", layout, ptx.LAYOUTS)
        return self.code((layout,) * (len(self.inputs) + len(self.outputs))).text

    def save_ptx(self, path: str | Path, layout: str = "rows") -> Path:
        """Write the PTX to a file; its header comments describe the entries and their arguments.

        Args:
            path: output file.
            layout: "rows" or "columns", see `remora.codegen.gpu.ptx`.
        """
        return write_text(path, self.ptx(layout))

    def loaded(self, layout: str = "rows") -> LoadedModule:
        """Return the module loaded on the current device.

        CuPy's functions expose `num_regs` and `local_size_bytes` and can be launched directly.

        Args:
            layout: "rows" or "columns", see `remora.codegen.gpu.ptx`.
        """
        layouts = (layout,) * (len(self.inputs) + len(self.outputs))
        return self._loaded(cupy_with_device(), layouts)

    def __call__(self, *arguments: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Evaluate asynchronously.

        Args:
            *arguments: device arrays in the order of `inputs`.
            out: array (or tuple of arrays) of the result's shape and the kernel's dtype that
                receives the result.
            stream: a CuPy stream; CuPy's current one by default.
            **named: arguments by name.
        """
        cupy = cupy_with_device()
        given = ordered(self.name, self.inputs, arguments, named)
        with stream or cupy.cuda.get_current_stream():
            arrays = taken(cupy, self.name, self.inputs, given, self.dtype)
            results = self._evaluated(cupy, arrays, out)
            # on this stream, so that the other library waits for it
            examples = given[:1] * len(results) if out is None else _listed(out, len(results))
            returned = [like(x, r) for x, r in zip(examples or results, results, strict=True)]
        if out is not None:
            return out
        return returned[0] if len(returned) == 1 else tuple(returned)

    def __repr__(self) -> str:
        """Return the signature."""
        shown = f"{listed(self.inputs)}) -> {listed(self.outputs)}"
        return f"CudaKernel {self.name}({shown}, {self.dtype}"

    def code(self, layouts: tuple[str, ...]) -> ptx.Ptx:
        """Return the PTX for a layout of each input and then of each output."""
        entry = ptx.entry_name(self.name)
        if self._loops is not None:
            return ptx_loops.write_loops(self._loops, entry, self.dtype, layouts)
        prepared = graph_passes.prepared(self.graph, self.dtype)
        return ptx.write_ptx(prepared, entry, self.dtype, layouts)

    def _loaded(self, cupy: Any, layouts: tuple[str, ...]) -> LoadedModule:
        key = (int(cupy.cuda.Device().id), layouts)
        if key not in self._made:
            code = self.code(layouts)
            self._made[key] = LoadedModule(functions(cupy, code), code.waist, code.scratch)
        return self._made[key]

    def _evaluated(self, cupy: Any, arrays: list[Any], out: Any) -> list[Any]:
        batch, views = device_arrays(cupy, self.name, self.inputs, arrays)
        n = math.prod(batch)
        columns = any(view.layout == "columns" for view in views)
        results = self._results(cupy, out, batch, columns)
        if n == 0:
            return results
        if out is not None:  # results are written while arguments are still being read
            views = [
                _copied(cupy, view.array, len(signature.shape))
                if any(cupy.may_share_memory(view.array, r) for r in results)
                else view
                for view, signature in zip(views, self.inputs, strict=True)
            ]
        for array, signature in zip(results, self.outputs, strict=True):
            view = _view(array, len(signature.shape), n == 1)
            if view is None or (view.stride == 0 and n > 1):
                raise ShapeError("out must hold its states in rows, or be the transpose of that")
            views.append(view)
        loaded = self._loaded(cupy, tuple(view.layout for view in views))
        call: list[tuple[Any, ...]] = [passed(view.array, view.stride) for view in views]
        blocks = -(-n // BLOCK)
        kept: list[Any] = []
        if loaded.waist:
            kept.append(cupy.empty((loaded.waist, n), self.dtype))
            call.insert(len(self.inputs), passed(kept[-1], n))
        call.append((np.int64(n),))
        if loaded.scratch:
            item = np.dtype(self.dtype).itemsize
            blocks = min(blocks, _blocks_with_room(cupy, loaded.scratch * item))
            kept.append(cupy.empty(loaded.scratch * blocks * BLOCK, self.dtype))
            call.append((kept[-1],))
        for entry in loaded.entries:
            entry((blocks,), (BLOCK,), tuple(itertools.chain(*call)))
        return results

    def _results(self, cupy: Any, out: Any, batch: tuple[int, ...], columns: bool) -> list[Any]:
        shapes = [batch + s.shape for s in self.outputs]
        if out is None:
            return [
                _empty(cupy, batch, s.shape, self.dtype, columns or len(s.shape) > 1)
                for s in self.outputs
            ]
        given = _listed(out, len(shapes))
        if len(given) != len(shapes):
            raise ShapeError(f"out must be {len(shapes)} arrays, not {len(given)}")
        results = [_device_array(cupy, r, "out") for r in given]
        for r, shape in zip(results, shapes, strict=True):
            if r.shape != shape or r.dtype != self.dtype:
                raise ShapeError(
                    f"out must be a {self.dtype} array of shape {shape}, not {r.dtype} {r.shape}"
                )
        return results


def _listed(out: Any, count: int) -> list[Any]:
    return list(out) if count > 1 else [out]


class LoadedModule(NamedTuple):
    """A module loaded on a device.

    Attributes:
        entries: CuPy's functions, to be launched in this order.
        waist: numbers per state in the intermediate array between entries.
        scratch: numbers of scratch memory per thread; if any, a thread processes several states.
    """

    entries: list[Any]
    waist: int
    scratch: int


def passed(array: Any, stride: int) -> tuple[Any, Any]:
    """Return an array as kernel arguments: its pointer and a stride."""
    return np.uint64(array.data.ptr), np.int64(stride)


class DeviceArray(NamedTuple):
    """An array as passed to a kernel.

    Attributes:
        array: CuPy's array, kept alive.
        layout: "rows" or "columns".
        stride: between states for rows, between numbers for columns.
    """

    array: Any
    layout: str
    stride: int


def device_arrays(
    cupy: Any, kernel: str, inputs: Sequence[Signature], arrays: Sequence[Any]
) -> tuple[tuple[int, ...], list[DeviceArray]]:
    """Return the batch shape and the layouts of the arguments; unsupported layouts are copied."""
    batches = [batch_of(kernel, s, a.shape) for a, s in zip(arrays, inputs, strict=True)]
    batch = common_batch(inputs, batches)
    views: list[DeviceArray] = []
    for array, own, signature in zip(arrays, batches, inputs, strict=True):
        if own != batch and math.prod(own) != 1:
            array = cupy.broadcast_to(array, batch + signature.shape)
        axes = len(signature.shape)
        views.append(_view(array, axes, math.prod(batch) == 1) or _copied(cupy, array, axes))
    return batch, views


def _view(array: Any, trailing: int, alone: bool = False) -> DeviceArray | None:
    """Return the layout of an array, or None if a single stride cannot describe it.

    One state shared by all (a batch of one) has stride zero.

    Args:
        array: batch axes first.
        trailing: number of axes of a state.
        alone: whether the whole batch is one state, so that its stride does not matter.
    """
    item = array.dtype.itemsize
    split = array.ndim - trailing
    steps = [s // item for s in array.strides]
    states = _single_stride(array.shape[:split], steps[:split])
    numbers = _single_stride(array.shape[split:], steps[split:])
    if states is None or numbers is None:
        return None
    if numbers == 1 or math.prod(array.shape[split:]) <= 1:
        return DeviceArray(array, "rows", states)
    return (
        DeviceArray(array, "columns", numbers) if numbers > 0 and (states == 1 or alone) else None
    )


def _single_stride(shape: Sequence[int], steps: Sequence[int]) -> int | None:
    """Return the step from one element to the next, in C order over all axes; 0 for one element."""
    stride, expected = 0, None
    for length, step in zip(reversed(shape), reversed(steps), strict=True):
        if length == 1:
            continue
        if expected is None:
            stride = step
        elif step != expected:
            return None
        expected = step * length
    return stride


def _empty(
    cupy: Any, batch: tuple[int, ...], shape: tuple[int, ...], dtype: str, columns: bool
) -> Any:
    """Return an uninitialized array for results, in columns or in rows."""
    if not columns:
        return cupy.empty(batch + shape, dtype)
    count = len(batch)
    order = (*range(len(shape), len(shape) + count), *range(len(shape)))
    return cupy.empty(shape + batch, dtype).transpose(order)


def _copied(cupy: Any, array: Any, trailing: int) -> DeviceArray:
    view = _view(cupy.array(array, order="C"), trailing)
    assert view is not None
    return view


def _blocks_with_room(cupy: Any, thread_bytes: int) -> int:
    """Return the number of blocks that fills the GPU with at most half of its free memory."""
    attributes: Any = cupy.cuda.Device().attributes
    free = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    fitting = int(free // 2 // (thread_bytes * BLOCK))
    if not fitting:
        raise RemoraError(f"too little memory on the GPU: a thread needs {thread_bytes} bytes")
    return min(fitting, int(attributes["MultiProcessorCount"]) * BLOCKS_OF_LOOPS)


def cupy_with_device() -> Any:
    """Return CuPy, or raise an error that names what is missing."""
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError:
        raise RemoraError(
            "running on a GPU needs CuPy, which is not installed: pip install cupy-cuda13x (or "
            "the one for your CUDA); the kernel's PTX can be had without: kernel.save_ptx(...)"
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RemoraError(f"CuPy finds no GPU it can use: {error}") from None
    if not count:
        raise RemoraError("CuPy finds no GPU")
    return cupy


def functions(cupy: Any, code: ptx.Ptx) -> list[Any]:
    """Return the entries of a PTX module, loaded on the current device."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(code.text, encoding="utf-8")
        module = cupy.RawModule(path=str(file))
        return [module.get_function(name) for name in code.entries]


def taken(
    cupy: Any, kernel: str, inputs: Sequence[Signature], arguments: Sequence[Any], dtype: str
) -> list[Any]:
    """Return the arguments of a kernel as CuPy arrays, without copying."""
    arrays: list[Any] = []
    for argument, signature in zip(arguments, inputs, strict=True):
        what = f"{signature.name} of kernel {kernel}"
        array = _device_array(cupy, argument, what)
        if array.dtype != dtype:
            raise ShapeError(wrong_dtype(what, array.dtype, dtype))
        batch_of(kernel, signature, array.shape)
        arrays.append(array)
    return arrays


def on_host(x: Any, what: str) -> Array:
    """Return a device array of any library as a NumPy copy."""
    cupy = cupy_with_device()
    return cupy.asnumpy(_device_array(cupy, x, what))


def _device_array(cupy: Any, x: Any, what: str) -> Any:
    """Return a device array of any library as a CuPy array, without copying."""
    if isinstance(x, cupy.ndarray):
        return _on_this_device(cupy, x, what)
    if is_array(x) or not hasattr(x, "__dlpack__"):
        kind = f"{type(x).__module__}.{type(x).__name__}"
        raise ShapeError(
            f"{what} must be an array in device memory (of CuPy, PyTorch, JAX, ...), not {kind}: "
            "move it with cupy.asarray(...)"
        )
    try:
        return _on_this_device(cupy, cupy.from_dlpack(x), what)
    except (BufferError, ValueError, RuntimeError, TypeError) as error:
        raise ShapeError(f"{what} cannot be shared with CuPy: {error}") from None


def _on_this_device(cupy: Any, array: Any, what: str) -> Any:
    here = int(cupy.cuda.Device().id)
    if int(array.device.id) != here:
        raise ShapeError(
            f"{what} is on device {array.device.id}, the current one is {here}: "
            f"with cupy.cuda.Device({array.device.id}): ..."
        )
    return array


def like(example: Any, array: Any) -> Any:
    """Return a CuPy array as an array of the example's library, without copying."""
    root = type(example).__module__.partition(".")[0]
    if root == "cupy":
        return array
    if root in ("jax", "jaxlib"):  # supports rows only
        cupy: Any = sys.modules["cupy"]
        return sys.modules["jax.numpy"].from_dlpack(cupy.ascontiguousarray(array))
    module: Any = sys.modules.get(root)
    return module.from_dlpack(array) if hasattr(module, "from_dlpack") else array
