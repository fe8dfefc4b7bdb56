"""Programs compiled for the host CPU, one SIMD lane per run.

    void program(const T* a0, i64 s0, ..., O* o0, i64 t0, ..., i64 n,
                 i64 M, const double* table0, ..., i64 capacity0, ..., void* cells)

Arguments and outputs are rows of runs as in `lower`. Cells are vectors of lanes in memory that the
caller allocates, wide ones first. Each group of `lanes` runs is taken through the whole program; in
the last group, unused lanes repeat the last run. A lane that writes no output writes to a place
after the cells instead. The last eight bytes of the memory are zero; whoever sets them during the
call makes all loops end, see `StopRequest`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen import kernel_cache
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_code import ProgramCode
from remora.codegen.integration.program_interface import ProgramInterface, entries_of
from remora.codegen.integration.program_plan import ProgramPlan, planned
from remora.codegen.integration.roll_code import RolledBlock
from remora.codegen.integration.statements import Cell, GraphBlock, Output
from remora.codegen.integration.stop_request import StopRequest
from remora.codegen.ir.arguments import DTYPES, listed, ordered
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import host, lowering
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.lowering import SCALARS, constant
from remora.codegen.llvm.row_calls import (
    WIDEST,
    apart,
    chunk_ir,
    in_rows,
    results_for,
    run,
    scratch_for,
    thread_count,
)
from remora.errors import UnknownName

#: Bytes of the number that ends a call early, at the end of its scratch memory.
STOP = 8


class LaneCode(ProgramCode):
    """The IR of a program on SIMD lanes of a CPU."""

    stoppable = True

    def __init__(self, plan: ProgramPlan, dtype: str, lanes: int) -> None:
        """Place the cells; start with no code."""
        super().__init__(plan, dtype, lanes)
        self._places: dict[str, int] = {}  # in bytes
        self.size: int = 0
        for wide in (True, False):  # those of the larger alignment first
            for name, s in plan.cells.items():
                if s.wide == wide:
                    self._places[name] = self.size
                    self.size += s.size * lanes * self._item(wide)
        self._aside = self.size = -(-self.size // 8) * 8
        self.size += max((o.size * self._item(o.wide) for o in plan.program.outputs), default=0)
        self._stop = -(-self.size // STOP) * STOP
        self.size = self._stop + STOP

    def _item(self, wide: bool) -> int:
        return np.dtype(self.precision(wide)).itemsize

    def aligned(self, t: str) -> str:
        """Return the alignment of an element of a cell."""
        item = 8 if "double" in t else 4
        return f", align {min(WIDEST, item * self.lanes)}"

    def place(self, name: str) -> int:
        """Return where a cell begins in the memory of a group, in bytes."""
        return self._places[name]

    def cell_pointer(self, name: str, j: int = 0) -> str:
        """Return the typed address of an element of a cell."""
        place = self._places[name] + j * self.lanes * self._item(self.plan.cells[name].wide)
        return f"ptr {self.w.emit(f'getelementptr i8, ptr %cells, i64 {place}')}"

    def cell_element(self, name: str, j: str) -> str:
        """Return the typed address of an element of a cell, whose number is a value."""
        item = self.lanes * self._item(self.plan.cells[name].wide)
        if j.isdecimal():
            return self.cell_pointer(name, int(j))
        start = self.w.emit(f"getelementptr i8, ptr %cells, i64 {self._places[name]}")
        past = self.w.emit(f"mul i64 {j}, {item}")
        return f"ptr {self.w.emit(f'getelementptr i8, ptr {start}, i64 {past}')}"

    def whole_numbers(self, numbers: Array) -> str:
        """Emit a table of whole numbers; return its name."""
        name, values = f"@whole{len(self._constants)}", ", ".join(f"i64 {x}" for x in numbers)
        text = f"internal constant [{len(numbers)} x i64] [{values}]"
        self._constants.append(f"{name} = {text}\n")
        return name

    def stopped(self) -> str:
        """Emit the test whether the call is to end early."""
        place = self.w.emit(f"getelementptr i8, ptr %cells, i64 {self._stop}")
        asked = self.w.emit(f"load volatile i64, ptr {place}, align {STOP}")
        return self.w.emit(f"icmp ne i64 {asked}, 0")

    def start_cell(self, cell: Signature, source: str | None) -> None:
        """Emit the initial value of a cell."""
        wide = self.plan.cells[cell.name].wide
        values = [constant(0.0, self.precision(wide), self.lanes)] * cell.size
        if source is not None:
            values = [self.converted(x, *z) for x, *z in self._argument(cell, wide)]
        for j, value in enumerate(values):
            self._store(cell.name, j, value)

    def _argument(self, s: Signature, want: bool) -> list[tuple[str, bool, bool]]:
        have = self.plan.program.wide_input(s.name)
        scalar = SCALARS[self.precision(have)]
        columns = lowering.load(self.w, self.inputs[s.name], s.size, scalar, self.lanes)
        return [(column, have, want) for column in columns]

    def _load(self, name: str, j: int) -> str:
        t = self.type_of(self.plan.cells[name].wide)
        return self.w.emit(f"load {t}, {self.cell_pointer(name, j)}{self.aligned(t)}")

    def _store(self, name: str, j: int, value: str) -> None:
        t = self.type_of(self.plan.cells[name].wide)
        self.w.put(f"store {t} {value}, {self.cell_pointer(name, j)}{self.aligned(t)}")

    def _values(self, block: GraphBlock) -> dict[int, str]:
        """Emit the loads and operations of a block; return the values of its nodes."""
        graph, values = block.graph, dict[int, str]()
        for k, (s, used) in enumerate(zip(graph.inputs, lowering.used_inputs(graph), strict=True)):
            if not used:
                continue
            if s.name in self.loop_values:
                numbers = self.loop_values[s.name]
                columns = numbers.wide if block.wide else numbers.narrow
            else:
                columns = self.columns(s, block.wide)
            values |= {graph.input(k, j): column for j, column in enumerate(columns)}
        lowering.operations(self.w, graph, values, self.precision(block.wide), self.lanes)
        return values

    def columns(self, s: Signature, wide: bool) -> list[str]:
        """Emit the loads of a cell, or of an argument, in double precision if `wide`."""
        if s.name not in self.plan.cells:
            return [self.converted(x, *z) for x, *z in self._argument(s, wide)]
        have = self.plan.cells[s.name].wide
        loaded = [self._load(s.name, j) for j in range(s.size)]
        return [self.converted(x, have, wide) for x in loaded]

    def wide_values(self, name: str) -> list[str]:
        """Emit the loads of a wide cell or input; return the names of its numbers."""
        inputs = {s.name: s for s in self.plan.program.inputs}
        return self.columns(self.plan.cells.get(name) or inputs[name], wide=True)

    def write_cell(self, name: str, values: Sequence[str], mask: str | None) -> None:
        """Emit the stores of numbers into a cell; lanes outside of the mask keep theirs."""
        t, bits = self.type_of(self.plan.cells[name].wide), f"<{self.lanes} x i1>"
        for j, value in enumerate(values):
            if mask is not None:
                old = self._load(name, j)
                value = self.w.emit(f"select {bits} {mask}, {t} {value}, {t} {old}")
            self._store(name, j, value)

    def run(self, block: GraphBlock, mask: str | None) -> None:
        """Emit a block: its loads, its operations, its stores."""
        if block.rolls is not None:
            RolledBlock(self, block, block.rolls, mask).write()
            return
        values = self._values(block)
        for s, result in zip(block.graph.outputs, block.graph.results, strict=True):
            wide = self.plan.cells[s.name].wide
            numbers = [self.converted(values[i], block.wide, wide) for i in result]
            self.write_cell(s.name, numbers, mask if s.name in block.masked else None)

    def output(self, block: GraphBlock, mask: str | None, row: str, index: str | None) -> None:
        """Emit a block that writes outputs."""
        w, rolls, starts = self.w, block.rolls, dict[int, str]()
        values = self._values(block) if rolls is None else {}
        scalar = SCALARS[self.precision(block.wide)]
        for k, (s, result) in enumerate(zip(block.graph.outputs, block.graph.results, strict=True)):
            array, about = self.outputs[s.name]
            rows = lowering.row_pointers(w, array, scalar, self.lanes)
            inside = [None] * self.lanes if mask is None else self._lanes_of(mask)
            if index is not None:
                rows, inside = self._indexed(rows, about, scalar, index, mask)
            elif row:
                past = w.emit(f"mul i64 {row}, {s.size}")
                rows = [w.emit(f"getelementptr {scalar}, ptr {r}, i64 {past}") for r in rows]
            if any(inside):
                aside = w.emit(f"getelementptr i8, ptr %cells, i64 {self._aside}")
                rows = [
                    w.emit(f"select i1 {yes}, ptr {r}, ptr {aside}")
                    for r, yes in zip(rows, inside, strict=True)
                ]
            if rolls is None:
                lowering.store_in_rows(w, rows, [values[i] for i in result], scalar, self.lanes)
            starts[k] = rows[0]
        if rolls is not None:
            RolledBlock(self, block, rolls, mask, starts).write()

    def _lanes_of(self, vector: str, kind: str = "i1") -> list[str | None]:
        if self.lanes == 1:
            return [vector]
        t = f"<{self.lanes} x {kind}>"
        return [self.w.emit(f"extractelement {t} {vector}, i32 {k}") for k in range(self.lanes)]

    def _indexed(
        self, rows: list[str], output: Output, scalar: str, index: str, mask: str | None
    ) -> tuple[list[str], list[str | None]]:
        """Return the address of each lane's record, and whether it is within the buffer."""
        w, t = self.w, self.type_of(wide=True)
        bits, whole = lowering.vector("i1", self.lanes), lowering.vector("i64", self.lanes)
        buffer = self.plan.program.buffers.index(output.buffer)
        value = self.converted(self._load(index, 0), self.plan.cells[index].wide, True)
        zero = constant(0.0, "float64", self.lanes)
        end = self.everywhere(w.emit(f"sitofp i64 %capacity{buffer} to double"), "double")
        low = w.emit(f"fcmp oge {t} {value}, {zero}")
        inside = w.emit(f"and {bits} {low}, {w.emit(f'fcmp olt {t} {value}, {end}')}")
        if mask is not None:
            inside = w.emit(f"and {bits} {inside}, {mask}")
        safe = w.emit(f"select {bits} {inside}, {t} {value}, {t} {zero}")
        places = self._lanes_of(w.emit(f"fptosi {t} {safe} to {whole}"), "i64")
        found: list[str] = []
        for r, place in zip(rows, places, strict=True):
            past = w.emit(f"mul i64 {place}, {output.size}")
            found.append(w.emit(f"getelementptr {scalar}, ptr {r}, i64 {past}"))
        return found, self._lanes_of(inside)

    def module(self) -> str:
        """Return the whole module."""
        w, program = self.w, self.plan.program
        arrays = [*self.inputs.values(), *(array for array, _ in self.outputs.values())]
        more = ["", "i64 %entries"]
        more += [f"ptr noalias %table{k}" for k in range(len(program.tables))]
        more += [f"i64 %capacity{k}" for k in range(len(program.buffers))]
        # an aligned stack: spilled vectors do not straddle cache lines
        rest = f"{', '.join(more)}, ptr noalias %cells) alignstack({WIDEST})"

        def emit() -> None:
            lowering.rows_of(w, self.lanes)
            self.write()

        body = lowering.rows_function(w, "program", arrays, self.lanes, emit, rest)
        taken, returned = ProgramInterface.of(program).dtypes(self.dtype)
        others = ["i64", *["ptr"] * len(program.tables), *["i64"] * len(program.buffers)]
        chunk = chunk_ir(len(arrays), "program", "chunk", [*taken, *returned], others, scratch=True)
        return self.constants() + body + chunk + "\n".join(sorted(self.declared())) + "\n"


class CompiledProgram:
    """Base class of compiled programs for all machines.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
    """

    def __init__(self, program: Program | Callable[[], Program], name: str, dtype: str) -> None:
        """Store the program, or the function that builds it when it is needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self._source = name, dtype, program

    @functools.cached_property
    def program(self) -> Program:
        """The program that is compiled."""
        return self._source if isinstance(self._source, Program) else self._source()

    def entry(self, kind: str, key: str | None, target: Sequence[Any]) -> str:
        """Return the key of its machine code.

        Args:
            kind: kind of the code.
            key: that of the function that builds the program; None: its graphs are hashed.
            target: what else the code depends on.
        """
        if key is None:
            return kernel_cache.entry_key(kind, self.program.content(), *target)
        return kernel_cache.entry_key(f"given {kind}", key, *target)

    @functools.cached_property
    def interface(self) -> ProgramInterface:
        """What a call passes and returns."""
        return ProgramInterface.of(self.program)

    @property
    def inputs(self) -> tuple[Cell, ...]:
        """Names and shapes of the arguments."""
        return self.interface.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Names and shapes of the results."""
        return self.interface.outputs


class ProgramKernel(CompiledProgram):
    """A program compiled for this machine.

    A run depends on its own arguments only: it is bitwise identical alone, in any batch, at any
    position in it, for any number of threads, and for any number of lanes. Arguments are not
    checked: NaN in, NaN out. A program that does not end in one run never returns.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
        lanes: runs that are processed together.
    """

    def __init__(
        self,
        program: Program | Callable[[], Program],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
        lanes: int | None = None,
        fma: bool = True,
    ) -> None:
        """Begin to compile, or load from the cache; a call waits until the code is there.

        Args:
            program: the program, or a function that builds it; with a key, that function is called
                only on a cache miss.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            key: cache key that changes whenever the program does, if the caller has one; otherwise
                its graphs are hashed.
            lanes: 1 for scalar code, fastest for single runs; None: as many as the processor has.
            fma: whether products and sums are fused if the processor can; without, the bits are
                those of exported C.
        """
        super().__init__(program, name, dtype)
        self._host = host.host()
        most = self._host.lanes(dtype)
        if lanes not in (None, 1, most):
            raise UnknownName("number of lanes", lanes, map(str, sorted({1, most})))
        self.lanes = lanes or most
        fused = fma and self._host.fma
        target = (*self._host.code, dtype, self.lanes, fused)
        self._stored = host.StoredCode(
            self.entry("program", key, target), functools.partial(self._made, fused)
        )
        self._scratch, interface = self._stored.about
        self.interface = ProgramInterface.from_json(interface)
        if not isinstance(program, Program):
            self.__dict__.pop("program", None)  # large; built again when it is read

    def _made(self, fused: bool) -> tuple[str, Any]:
        code = LaneCode(
            planned(self.program, self.dtype, fused, self.lanes, roll=True), self.dtype, self.lanes
        )
        return code.module(), (code.size, ProgramInterface.of(self.program).to_json())

    @functools.cached_property
    def _loaded(self) -> host.LoadedCode:
        """The code in memory; waits for its compilation."""
        return self._stored.loaded(("chunk",))

    def __call__(
        self,
        *arguments: ArrayLike,
        tables: Mapping[str, ArrayLike] | None = None,
        capacity: int | Mapping[str, int] = 0,
        threads: int = 1,
        out: Any = None,
        stop: StopRequest | None = None,
        **named: ArrayLike,
    ) -> Any:
        """Perform all runs and return the outputs: an array, or a tuple if there are several.

        Args:
            *arguments: in the order of `inputs`, `(..., *shape)`; batch shapes broadcast.
            tables: the tables by name, all of one length M.
            capacity: rows of the records, of each buffer by name or of all.
            threads: number of threads that share the runs; 0 for one per processor.
            out: contiguous array (or tuple of arrays) of the outputs' shapes and dtypes that
                receives them.
            stop: ends the call early; what runs have not come to is NaN then.
            **named: arguments by name.
        """
        own = self.interface
        passed = ordered(self.name, own.inputs, arguments, named)
        entries, rows = own.tables_of(tables), own.capacities(capacity)
        taken, returned = own.dtypes(self.dtype)
        batch, call, kept = in_rows(self.name, own.inputs, passed, taken)
        n, length = math.prod(batch), entries_of(entries)
        count = thread_count(threads, -(-n // self.lanes))
        axes = [own.axis(o, length, rows) for o in own.outputs]
        shapes = [(*batch, *axis, *o.shape) for axis, o in zip(axes, own.outputs, strict=True)]
        results = results_for(out, shapes, returned)
        if out is not None:
            call, kept = apart(self.name, own.inputs, call, kept, results)
        for r, axis, o in zip(results, axes, own.outputs, strict=True):
            call += [address(r), math.prod(axis) * o.size]
            if not o.complete or stop is not None:
                r.fill(np.nan)
        if n:
            call += [length, *(address(x) for x in entries), *rows.values()]
            self._run(call, n, count, stop)
        del kept, entries  # the arrays that `call` points into
        return results[0] if len(results) == 1 else tuple(results)

    def single_run(
        self,
        arguments: Sequence[Array],
        outputs: Sequence[Array],
        capacity: int | Mapping[str, int] = 0,
        tables: Sequence[Array] = (),
    ) -> Callable[..., None]:
        """Return a function that performs one run on fixed arrays, with little overhead.

        Each call reads the arguments and writes the outputs, in place; records that the program
        does not write keep their values.

        Args:
            arguments: in the order of `inputs`, contiguous arrays of the kernel's dtypes.
            outputs: in the order of `outputs`; records have `capacity` rows.
            capacity: rows of the records, of each buffer by name or of all.
            tables: in the order of `interface.tables`, contiguous arrays of one length. The
                function takes the number of entries that are used; 0 by default.
        """
        rows = self.interface.capacities(capacity)
        arrays = [*arguments, *outputs]
        self.interface.check_arrays(self.name, self.dtype, arrays, entries_of(tables), rows)
        room, scratch = scratch_for(1, self._scratch)
        self._stops(room, scratch, 1)[:] = 0
        places = [x for array in arrays for x in (address(array), 0)]
        call = np.array([*places, 0, *map(address, tables), *rows.values()], np.int64)
        function = self._loaded.chunk
        count, fixed = len(places), (address(call), 0, 1, scratch[0])
        kept = (self._loaded, arrays, tuple(tables), room, call)

        def run(entries: int = 0) -> None:
            call[count] = entries
            function(*fixed)

        run.kept = kept  # pyright: ignore[reportFunctionMemberAccess]
        return run

    def _run(self, call: list[int], n: int, threads: int, stop: StopRequest | None) -> None:
        """Perform all runs; `stop` ends them early."""
        room, scratch = scratch_for(threads, self._scratch)
        stops = self._stops(room, scratch, threads)
        stops[:] = 0
        perform = functools.partial(run, self._loaded, call, n, threads, scratch, self.lanes)
        if stop is None:
            perform()
        else:
            stop.watch(perform, stops)
        del room

    def _stops(self, room: Array, scratch: tuple[int, int], threads: int) -> Array:
        """Return the numbers that end a call early, one of each thread, in its scratch memory."""
        first, each = scratch[0] - address(room) + self._scratch - STOP, scratch[1]
        step = each // STOP
        return room[first : first + (threads - 1) * each + STOP].view(np.int64)[::step]

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"ProgramKernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self._host.cpu}, {self.lanes} lanes"
        )
