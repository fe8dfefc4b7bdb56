"""Step loops as PTX for NVIDIA GPUs, one thread per run through all its steps.

    .entry NAME(a0, s0, r0, ..., o0, t0, ..., n, M, starts, steps, counts)

Number j of argument k of run b is at `ak + b·rk + j·sk`; number j of output k of sample m is at
`ok + m·n + b + j·tk`, so that writes are coalesced. A thread holds its cells in local memory, which
the GPU caches in L1. Every block loads its inputs where they are used, and stores a result as soon
as the old value of the cell is no longer needed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.gpu import cuda_kernel, ptx
from remora.codegen.gpu.schedule import ahead, positive, slots_of
from remora.codegen.integration.step_loop import StepLoop, StepLoopPlan, planned, timetable
from remora.codegen.integration.step_loop_cpu import BlockCode, CompiledStepLoop
from remora.codegen.ir.arguments import listed, ordered
from remora.codegen.ir.graph import Graph
from remora.codegen.llvm.lowering import SCALARS, Writer

_GLOBAL = "ptr addrspace(1)"
_LOCAL = "ptr addrspace(5)"


def write_step_loop(march: StepLoop, name: str, dtype: str) -> ptx.Ptx:
    """Return the PTX of a step loop.

    Args:
        march: as traced.
        name: name of the entry.
        dtype: `float64` or `float32`.
    """
    code = ThreadCode(march, planned(march, dtype), dtype)
    ir = code.rows("addrspace(1) ") + code.function(name)
    needed = code.declared()
    for precision in {code.precision(name) for name in code.plan.graphs}:
        needed |= ptx.declared_always(precision, ptx.REGISTERS.values())
    text = ptx.assembled(ir + "\n".join(sorted(needed)))
    return ptx.Ptx(f"// n threads; to launch: {name}\n" + text, [name])


class ThreadCode(BlockCode):
    """The IR of a step loop for one GPU thread."""

    pointer = _GLOBAL

    def __init__(self, march: StepLoop, plan: StepLoopPlan, dtype: str) -> None:
        """Start with no code."""
        super().__init__(march, plan, dtype, lanes=1)
        self.w.block = "work"
        self._slots = 0

    def block(self, name: str, graph: Graph) -> None:
        """Emit one block."""
        first = self.plan.ahead if name == "stage" else ()
        early = [k for k, s in enumerate(graph.outputs) if s.name in first]
        precision = self.precision(name)
        part = ahead(graph, early, ptx.MEMORY[precision])
        wide = precision != self.dtype  # a slot then takes the space of two numbers
        self._slots = max(self._slots, slots_of(part) * (2 if wide else 1))
        given = self._exact if wide else self._given
        names = {s.name: s.name if s.name in given else _cell(s.name) for s in graph.inputs}
        if name == "start":
            names = {s.name: f"a{k}" for k, s in enumerate(self.march.inputs)}
        made = {s.name: _cell(s.name) for s in graph.outputs}
        if name == "sample":
            made = {s.name: f"o{k}" for k, s in enumerate(self.march.outputs)}
        inputs = [names[s.name] for s in graph.inputs]
        outputs = [made[s.name] for s in graph.outputs]
        places = {_cell(cell): place for cell, place in self.plan.places.items()}
        piece = ptx.Piece(graph, part, inputs, outputs)
        BlockLines(self.w, piece, precision, places, given, self.dtype)

    def cell_pointer(self, name: str) -> str:
        """Return the typed address of the first element of a cell."""
        place = self.plan.places[name]
        address = self.w.emit(f"getelementptr {self.scalar}, {_LOCAL} %cells, i64 {place}")
        return f"{_LOCAL} {address}"

    def function(self, name: str) -> str:
        """Return the IR of the entry."""
        self.loops()
        march = self.march
        arrays = [f"{_GLOBAL} %a{k}, i64 %s_a{k}, i64 %r_a{k}" for k in range(len(march.inputs))]
        arrays += [f"{_GLOBAL} %o{k}, i64 %s_o{k}" for k in range(len(march.outputs))]
        times = [f"{_GLOBAL} %{x}" for x in ("starts", "steps", "counts")]
        parameters = ", ".join([*arrays, "i64 %n", "i64 %intervals", *times])
        start = [ptx.special(own, register) for own, register in ptx.REGISTERS.items()]
        for own, size in (("cells", self.plan.size), ("slots", self._slots)):
            if size:
                start.append(f"  %generic_{own} = alloca [{size} x {self.scalar}], align 8")
                start.append(f"  %local_{own} = addrspacecast ptr %generic_{own} to {_LOCAL}")
                # an opaque address: otherwise LLVM holds one address per number in registers
                opaque = f'asm "mov.b64 $0, $1;", "=l,l"({_LOCAL} %local_{own})'
                start.append(f"  %{own} = call {_LOCAL} {opaque}")
        return f"""
define ptx_kernel void @{name}({parameters}) {{
entry:
{chr(10).join(start)}
  %first = mul i64 %ctaid, %ntid
  %b = add i64 %first, %tid
  %any = icmp slt i64 %b, %n
  br i1 %any, label %work, label %done
work:
{chr(10).join(self.w.lines)}
  br label %done
done:
  ret void
}}
"""


def _cell(name: str) -> str:
    return f"cell {name}"


class BlockLines(ptx.Lines):
    """The IR of one block on cells, arguments `a0`, ..., and outputs `o0`, ..."""

    def __init__(
        self,
        w: Writer,
        piece: ptx.Piece,
        dtype: str,
        places: dict[str, int],
        given: dict[str, list[str]],
        stored: str,
    ) -> None:
        """Emit the block.

        Args:
            w: destination.
            piece: the graph, and the names of its arrays.
            dtype: `float64` or `float32`, precision of the computation.
            places: offsets of the cells.
            given: values that are already in registers.
            stored: `float64` or `float32`, precision of the cells in memory.
        """
        super().__init__(piece, dtype, {}, w)
        self._stored = SCALARS[stored]
        self._places, self._given = places, given
        #: Remaining loads of each number of a cell, and the value to store after the last.
        self._fetches: dict[tuple[str, int], int] = {}
        self._waiting: dict[tuple[str, int], str] = {}
        graph, part = piece.graph, piece.part
        passed = {positive(graph, graph.results[k][j]) for k, j in part.results}
        read = [step.node for step in part.steps if step.what == "fetch" and step.slot < 0]
        for i in (*read, *(i for i in passed if graph.nodes[i][0] == "input")):
            own = self._own(i)
            self._fetches[own] = self._fetches.get(own, 0) + 1
        self.write()

    def _own(self, i: int) -> tuple[str, int]:
        array, j = self._graph.nodes[i][1]
        return self._piece.inputs[int(array)], int(j)

    def _fetched(self, i: int, slot: int) -> str:
        if slot >= 0:
            return super()._fetched(i, slot)
        array, j = own = self._own(i)
        self._fetches[own] -= 1
        if array in self._given:
            return self._given[array][j]
        volatile = "volatile " if array in self._places else ""
        value = self.w.emit(f"load {volatile}{self._stored}, {self._place(array, j)}")
        if self._stored != self._type:
            value = self.w.emit(f"fpext {self._stored} {value} to {self._type}")
        if not self._fetches[own] and own in self._waiting:
            self._write(own, self._waiting.pop(own))
        return value

    def _store(self, places: Sequence[tuple[int, int]]) -> None:
        for k, j in places:
            own = self._piece.outputs[k], j
            value = self._number(self._graph.results[k][j])
            if self._fetches.get(own):
                self._waiting[own] = value
            else:
                self._write(own, value)

    def _write(self, own: tuple[str, int], value: str) -> None:
        array, j = own
        volatile = "volatile " if array in self._places else ""
        if self._stored != self._type:
            value = self.w.emit(f"fptrunc {self._type} {value} to {self._stored}")
        self.w.put(f"store {volatile}{self._stored} {value}, {self._place(array, j)}")

    def _place(self, array: str, j: int) -> str:
        w, t = self.w, self._stored
        if array in self._places:
            place = self._places[array] + j
            return f"{_LOCAL} {w.emit(f'getelementptr {t}, {_LOCAL} %cells, i64 {place}')}"
        if array not in self._start:
            run = w.emit(f"mul i64 %b, %r_{array}") if array.startswith("a") else self._sampled()
            self._start[array] = w.emit(f"getelementptr {t}, {_GLOBAL} %{array}, i64 {run}")
        past = w.emit(f"mul i64 %s_{array}, {j}")
        return (
            f"{_GLOBAL} {w.emit(f'getelementptr {t}, {_GLOBAL} {self._start[array]}, i64 {past}')}"
        )

    def _sampled(self) -> str:
        before = self.w.emit("mul i64 %m, %n")
        return self.w.emit(f"add i64 {before}, %b")


class CudaStepLoop(CompiledStepLoop):
    """A step loop compiled for GPUs.

    Call it with arrays in device memory: CuPy's, or those of any library that supports DLPack
    (PyTorch, JAX), which are read in place. The samples belong to the same library as the first
    argument and are in columns: views of `(numbers, M, runs)`. A call is asynchronous: it returns
    when the work is queued on `stream`. A run is bitwise identical in every batch. Arguments are
    not checked: NaN in, NaN out.

    Building one, `ptx` and `save_ptx` need no GPU.

    Attributes:
        name: name of the kernel.
        inputs: names and shapes of the arguments of a run.
        outputs: names and shapes of the arrays of a sample.
        dtype: `float64` or `float32`.
    """

    def __init__(
        self, march: StepLoop | Callable[[], StepLoop], name: str, dtype: str = "float64"
    ) -> None:
        """Store the arguments; code is generated on first use.

        Args:
            march: the step loop, or a function that builds it.
            name: name of the kernel.
            dtype: `float64` or `float32`.
        """
        super().__init__(march, name, dtype)
        self._made: dict[int, Any] = {}

    @functools.cached_property
    def code(self) -> ptx.Ptx:
        """The PTX and the name of its entry."""
        return write_step_loop(self.march, ptx.entry_name(self.name), self.dtype)

    def ptx(self) -> str:
        """Return the PTX as text."""
        return self.code.text

    def save_ptx(self, path: str | Path) -> Path:
        """Write the PTX to a file.

        Args:
            path: output file.
        """
        path = Path(path)
        path.write_text(self.ptx(), encoding="utf-8")
        return path

    def loaded(self) -> Any:
        """Return the CuPy function on the current device, with `num_regs` and other attributes."""
        cupy = cuda_kernel.cupy_with_device()
        here = int(cupy.cuda.Device().id)
        if here not in self._made:
            (self._made[here],) = cuda_kernel.functions(cupy, self.code)
        return self._made[here]

    def __call__(
        self,
        *arguments: Any,
        starts: ArrayLike,
        steps: ArrayLike,
        counts: ArrayLike,
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Perform all runs asynchronously and return their samples, `batch + (M,) + shape`.

        Args:
            *arguments: device arrays in the order of `inputs`, `(..., *shape)`.
            starts: time at the start of each of M intervals; this and the next two in NumPy.
            steps: step size in each interval.
            counts: number of steps in each interval; a sample is taken after the last.
            stream: a CuPy stream; CuPy's current one by default.
            **named: arguments by name.
        """
        cupy = cuda_kernel.cupy_with_device()
        table = timetable(starts, steps, counts)
        given = ordered(self.name, self.inputs, arguments, named)
        with stream or cupy.cuda.get_current_stream():
            arrays = cuda_kernel.taken(cupy, self.name, self.inputs, given, self.dtype)
            results = self._evaluated(cupy, arrays, table)
            examples = given[:1] * len(results) or results
            returned = [cuda_kernel.like(x, r) for x, r in zip(examples, results, strict=True)]
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _evaluated(self, cupy: Any, arrays: list[Any], table: Sequence[Array]) -> list[Any]:
        batch, views = cuda_kernel.device_arrays(cupy, self.name, self.inputs, arrays)
        n, intervals = math.prod(batch), len(table[0])
        columns = [cupy.empty((s.size, intervals, n), self.dtype) for s in self.outputs]
        if n and intervals:
            # strides between numbers and between runs
            steps = [(1, v.stride) if v.layout == "rows" else (v.stride, 1) for v in views]
            call = [
                (*cuda_kernel.passed(v.array, s), np.int64(r))
                for v, (s, r) in zip(views, steps, strict=True)
            ]
            call += [cuda_kernel.passed(x, intervals * n) for x in columns]
            times = [cupy.asarray(x) for x in table]
            call.append((np.int64(n), np.int64(intervals), *times))
            self.loaded()(
                (-(-n // cuda_kernel.BLOCK),), (cuda_kernel.BLOCK,), tuple(itertools.chain(*call))
            )
        results: list[Any] = []
        for x, s in zip(columns, self.outputs, strict=True):
            count = len(s.shape)
            shaped = x.reshape(*s.shape, intervals, *batch)
            order = (*range(count + 1, count + 1 + len(batch)), count, *range(count))
            results.append(shaped.transpose(order))
        return results

    def __repr__(self) -> str:
        """Return the signature."""
        shown = f"{listed(self.inputs)}) -> {listed(self.outputs)}"
        return f"CudaMarch {self.name}({shown}, {self.dtype}"
