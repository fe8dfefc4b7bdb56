"""Programs as PTX for NVIDIA GPUs, one thread per run.

    .entry NAME(a0, s0, r0, ..., o0, t0, ..., n, M, table0, ..., capacity0, ...)

Number j of argument k of run b is at `ak + b·rk + j·sk`; number j of output k in row m is at
`ok + m·n + b + j·tk`, so that writes are coalesced. A thread holds its cells in local memory, which
the GPU caches in L1. Every block loads its inputs where they are used, and stores a result as soon
as the old value of the cell is no longer needed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.atomic_files import write_text
from remora.codegen.gpu import cuda_kernel, ptx
from remora.codegen.gpu.schedule import ahead, positive, slots_of
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_code import ProgramCode
from remora.codegen.integration.program_cpu import CompiledProgram
from remora.codegen.integration.program_interface import entries_of
from remora.codegen.integration.program_plan import ProgramPlan, planned
from remora.codegen.integration.statements import GraphBlock
from remora.codegen.ir.arguments import listed, ordered
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm.lowering import SCALARS, constant

_GLOBAL = "ptr addrspace(1)"
_LOCAL = "ptr addrspace(5)"


def write_program(program: Program, name: str, dtype: str) -> ptx.Ptx:
    """Return the PTX of a program.

    Args:
        program: as traced.
        name: name of the entry.
        dtype: `float64` or `float32`.
    """
    code = ProgramThreadCode(planned(program, dtype), dtype)
    entry = code.function(name)
    needed = code.declared()
    for precision in {"float64", dtype}:
        needed |= ptx.declared_always(precision, ptx.REGISTERS.values())
    text = ptx.assembled(code.constants() + entry + "\n".join(sorted(needed)))
    return ptx.Ptx(f"// n threads; to launch: {name}\n" + text, [name])


class ProgramThreadCode(ProgramCode):
    """The IR of a program for one GPU thread."""

    pointer = _GLOBAL
    space = "addrspace(1) "
    volatile = "volatile "

    def __init__(self, plan: ProgramPlan, dtype: str) -> None:
        """Place the cells; start with no code."""
        super().__init__(plan, dtype, lanes=1)
        self.w.block = "work"
        self._slots = 0
        #: Numbers of cells in local memory, by precision, and where each cell is.
        self._sizes = {"float64": 0, dtype: 0}
        self._places: dict[str, tuple[str, int]] = {}
        for name, s in plan.cells.items():
            precision = self.precision(s.wide)
            self._places[name] = precision, self._sizes[precision]
            self._sizes[precision] += s.size

    def cell_pointer(self, name: str, j: int = 0) -> str:
        """Return the typed address of an element of a cell."""
        precision, place = self._places[name]
        t, own = SCALARS[precision], _memory(precision)
        return f"{_LOCAL} {self.w.emit(f'getelementptr {t}, {_LOCAL} %{own}, i64 {place + j}')}"

    def start_cell(self, cell: Signature, source: str | None) -> None:
        """Emit the initial value of a cell."""
        wide = self.plan.cells[cell.name].wide
        t = self.type_of(wide)
        start = self.argument(cell.name) if source is not None else ""
        for j in range(cell.size):
            value = constant(0.0, self.precision(wide), 1)
            if source is not None:
                have = self.plan.program.wide_input(cell.name)
                place = self.element(source, start, self.type_of(have), j)
                loaded = self.w.emit(f"load {self.type_of(have)}, {place}")
                value = self.converted(loaded, have, wide)
            self.w.put(f"store volatile {t} {value}, {self.cell_pointer(cell.name, j)}")

    def argument(self, name: str) -> str:
        """Emit the address of the first number of a run's argument."""
        array, t = self.inputs[name], self.type_of(self.plan.program.wide_input(name))
        run = self.w.emit(f"mul i64 %b, %r_{array}")
        return self.w.emit(f"getelementptr {t}, {_GLOBAL} %{array}, i64 {run}")

    def element(self, array: str, start: str, t: str, j: int) -> str:
        """Emit the typed address of a number of an argument or output."""
        past = self.w.emit(f"mul i64 %s_{array}, {j}")
        return f"{_GLOBAL} {self.w.emit(f'getelementptr {t}, {_GLOBAL} {start}, i64 {past}')}"

    def wide_values(self, name: str) -> list[str]:
        """Emit the loads of a wide cell or input; return the names of its numbers."""
        if name in self.plan.cells:
            places = [self.cell_pointer(name, j) for j in range(self.plan.cells[name].size)]
            return [self.w.emit(f"load volatile double, {place}") for place in places]
        (size,) = (s.size for s in self.plan.program.inputs if s.name == name)
        array, start = self.inputs[name], self.argument(name)
        places = [self.element(array, start, "double", j) for j in range(size)]
        return [self.w.emit(f"load double, {place}") for place in places]

    def write_cell(self, name: str, values: Sequence[str], mask: str | None) -> None:
        """Emit the stores of numbers into a cell; threads that do not take part are elsewhere."""
        t = self.type_of(self.plan.cells[name].wide)
        for j, value in enumerate(values):
            self.w.put(f"store volatile {t} {value}, {self.cell_pointer(name, j)}")

    def run(self, block: GraphBlock, mask: str | None) -> None:
        """Emit a block that writes cells."""
        self._block(block, None)

    def output(self, block: GraphBlock, mask: str | None, row: str, index: str | None) -> None:
        """Emit a block that writes outputs."""
        w = self.w
        if index is None:
            self._block(block, row)
            return
        wide = self.plan.cells[index].wide
        loaded = w.emit(f"load volatile {self.type_of(wide)}, {self.cell_pointer(index)}")
        value = self.converted(loaded, wide, True)
        _, about = self.outputs[block.graph.outputs[0].name]
        buffer = self.plan.program.buffers.index(about.buffer)
        end = w.emit(f"sitofp i64 %capacity{buffer} to double")
        low = w.emit(f"fcmp oge double {value}, {constant(0.0, 'float64', 1)}")
        inside = w.emit(f"and i1 {low}, {w.emit(f'fcmp olt double {value}, {end}')}")
        then = self.label("record")
        w.put(f"br i1 {inside}, label %{then}, label %{then}.done")
        w.label(then)
        self._block(block, w.emit(f"fptosi double {value} to i64"))
        w.put(f"br label %{then}.done")
        w.label(f"{then}.done")

    def _block(self, block: GraphBlock, row: str | None) -> None:
        """Emit a block; `row`: that of its outputs, None if it writes cells."""
        graph, precision = block.graph, self.precision(block.wide)
        early = [k for k, s in enumerate(graph.outputs) if s.name in block.first]
        part = ahead(graph, early, ptx.MEMORY[precision])
        double = precision != self.dtype  # a slot then takes the space of two numbers
        self._slots = max(self._slots, slots_of(part) * (2 if double else 1))
        BlockLines(self, block, ptx.Piece(graph, part, [], []), row)

    def function(self, name: str) -> str:
        """Return the IR of the entry."""
        self.write()
        program = self.plan.program
        arrays = [f"{_GLOBAL} %{a}, i64 %s_{a}, i64 %r_{a}" for a in self.inputs.values()]
        arrays += [f"{_GLOBAL} %{a}, i64 %s_{a}" for a, _ in self.outputs.values()]
        shared = [f"{_GLOBAL} %table{k}" for k in range(len(program.tables))]
        shared += [f"i64 %capacity{k}" for k in range(len(program.buffers))]
        parameters = ", ".join([*arrays, "i64 %n", "i64 %entries", *shared])
        start = [ptx.special(own, register) for own, register in ptx.REGISTERS.items()]
        memory = [(_memory(p), size, SCALARS[p]) for p, size in self._sizes.items()]
        for own, size, t in (*memory, ("slots", self._slots, self.scalar)):
            if size:
                start.append(f"  %generic_{own} = alloca [{size} x {t}], align 8")
                start.append(f"  %local_{own} = addrspacecast ptr %generic_{own} to {_LOCAL}")
                # an opaque address: otherwise LLVM holds one address per number in registers
                opaque = f'asm "mov.b64 $0, $1;", "=l,l"({_LOCAL} %local_{own})'
                start.append(f"  %{own} = call {_LOCAL} {opaque}")
        return ptx.kernel_text(name, parameters, start, self.w.lines)


def _memory(precision: str) -> str:
    return f"cells_{precision}"


class BlockLines(ptx.Lines):
    """The IR of one block."""

    def __init__(
        self, code: ProgramThreadCode, block: GraphBlock, piece: ptx.Piece, row: str | None
    ) -> None:
        """Emit the block.

        Args:
            code: the program so far.
            block: the block.
            piece: its graph, scheduled.
            row: row of its outputs; empty: they have none; None: it writes cells.
        """
        super().__init__(piece, code.precision(block.wide), {}, code.w)
        self._code, self._wide, self._row = code, block.wide, row
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
        return self._graph.inputs[int(array)].name, int(j)

    def _fetched(self, i: int, slot: int) -> str:
        if slot >= 0:
            return super()._fetched(i, slot)
        name, j = own = self._own(i)
        self._fetches[own] -= 1
        code = self._code
        if name in code.loop_values:
            numbers = code.loop_values[name]
            return (numbers.wide if self._wide else numbers.narrow)[j]
        if name in code.plan.cells:
            have = code.plan.cells[name].wide
            value = self.w.emit(f"load volatile {code.type_of(have)}, {code.cell_pointer(name, j)}")
        else:
            have = code.plan.program.wide_input(name)
            array, t = code.inputs[name], code.type_of(have)
            if array not in self._start:
                self._start[array] = code.argument(name)
            place = code.element(array, self._start[array], t, j)
            value = self.w.emit(f"load {t}, {place}")
        value = code.converted(value, have, self._wide)
        if not self._fetches[own] and own in self._waiting:
            self._write(own, self._waiting.pop(own))
        return value

    def _store(self, places: Sequence[tuple[int, int]]) -> None:
        for k, j in places:
            own = self._graph.outputs[k].name, j
            value = self._number(self._graph.results[k][j])
            if self._row is not None:
                self._write_output(*own, value)
            elif self._fetches.get(own):
                self._waiting[own] = value
            else:
                self._write(own, value)

    def _write(self, own: tuple[str, int], value: str) -> None:
        want = self._code.plan.cells[own[0]].wide
        value = self._code.converted(value, self._wide, want)
        t = self._code.type_of(want)
        self.w.put(f"store volatile {t} {value}, {self._code.cell_pointer(*own)}")

    def _write_output(self, name: str, j: int, value: str) -> None:
        w, (array, _) = self.w, self._code.outputs[name]
        if array not in self._start:
            place = "%b"
            if self._row:
                before = w.emit(f"mul i64 {self._row}, %n")
                place = w.emit(f"add i64 {before}, %b")
            start = f"getelementptr {self._type}, {_GLOBAL} %{array}, i64 {place}"
            self._start[array] = w.emit(start)
        place = self._code.element(array, self._start[array], self._type, j)
        w.put(f"store {self._type} {value}, {place}")


class CudaProgram(CompiledProgram):
    """A program compiled for GPUs.

    Call it with arrays in device memory: CuPy's, or those of any library that supports DLPack
    (PyTorch, JAX), which are read in place. The outputs belong to the same library as the first
    argument and are in columns: views of `(numbers, rows, runs)`. A call is asynchronous: it
    returns when the work is queued on `stream`. A run is bitwise identical in every batch.
    Arguments are not checked: NaN in, NaN out.

    Building one, `ptx` and `save_ptx` need no GPU.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
    """

    def __init__(
        self, program: Program | Callable[[], Program], name: str, dtype: str = "float64"
    ) -> None:
        """Store the arguments; code is generated on first use.

        Args:
            program: the program, or a function that builds it.
            name: name of the kernel.
            dtype: `float64` or `float32`.
        """
        super().__init__(program, name, dtype)
        self._made: dict[int, Any] = {}

    @functools.cached_property
    def code(self) -> ptx.Ptx:
        """The PTX and the name of its entry."""
        return write_program(self.program, ptx.entry_name(self.name), self.dtype)

    def ptx(self) -> str:
        """Return the PTX as text."""
        return self.code.text

    def save_ptx(self, path: str | Path) -> Path:
        """Write the PTX to a file.

        Args:
            path: output file.
        """
        return write_text(path, self.ptx())

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
        tables: Mapping[str, ArrayLike] | None = None,
        capacity: int | Mapping[str, int] = 0,
        stream: Any = None,
        **named: Any,
    ) -> Any:
        """Perform all runs asynchronously and return the outputs, see `ProgramKernel`.

        Args:
            *arguments: device arrays in the order of `inputs`, `(..., *shape)`.
            tables: the tables by name, all of one length M, in NumPy.
            capacity: rows of the records, of each buffer by name or of all.
            stream: a CuPy stream; CuPy's current one by default.
            **named: arguments by name.
        """
        cupy = cuda_kernel.cupy_with_device()
        entries = self.interface.tables_of(tables)
        rows = self.interface.capacities(capacity)
        passed = ordered(self.name, self.inputs, arguments, named)
        kinds, _ = self.interface.dtypes(self.dtype)
        with stream or cupy.cuda.get_current_stream():
            arrays: list[Any] = []
            for s, argument, kind in zip(self.inputs, passed, kinds, strict=True):
                arrays += cuda_kernel.taken(cupy, self.name, [s], [argument], kind)
            results = self._evaluated(cupy, arrays, entries, rows)
            examples = passed[:1] * len(results) or results
            returned = [cuda_kernel.like(x, r) for x, r in zip(examples, results, strict=True)]
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _evaluated(
        self, cupy: Any, arrays: list[Any], entries: Sequence[Array], rows: Mapping[str, int]
    ) -> list[Any]:
        batch, views = cuda_kernel.device_arrays(cupy, self.name, self.inputs, arrays)
        n, length = math.prod(batch), entries_of(entries)
        axes = [self.interface.axis(o, length, rows) for o in self.outputs]
        _, kinds = self.interface.dtypes(self.dtype)
        columns: list[Any] = []
        for o, axis, kind in zip(self.outputs, axes, kinds, strict=True):
            shape = (o.size, *axis, n)
            columns.append(
                cupy.empty(shape, kind) if o.complete else cupy.full(shape, np.nan, kind)
            )
        if n:
            # strides between numbers and between runs
            steps = [(1, v.stride) if v.layout == "rows" else (v.stride, 1) for v in views]
            call: list[tuple[Any, ...]] = [
                (*cuda_kernel.passed(v.array, s), np.int64(r))
                for v, (s, r) in zip(views, steps, strict=True)
            ]
            call += [
                cuda_kernel.passed(x, math.prod(axis) * n)
                for x, axis in zip(columns, axes, strict=True)
            ]
            shared = [cupy.asarray(x) for x in entries]
            limits = [np.int64(rows[name]) for name in self.interface.buffers]
            call.append((np.int64(n), np.int64(length), *shared, *limits))
            self.loaded()(
                (-(-n // cuda_kernel.BLOCK),), (cuda_kernel.BLOCK,), tuple(itertools.chain(*call))
            )
        results: list[Any] = []
        for x, o, axis in zip(columns, self.outputs, axes, strict=True):
            count, between = len(o.shape), len(axis)
            shaped = x.reshape(*o.shape, *axis, *batch)
            last = count + between
            order = (*range(last, last + len(batch)), *range(count, last), *range(count))
            results.append(shaped.transpose(order))
        return results

    def __repr__(self) -> str:
        """Return the signature."""
        shown = f"{listed(self.inputs)}) -> {listed(self.outputs)}"
        return f"CudaProgram {self.name}({shown}, {self.dtype}"
