"""Code of programs for SIMD lanes of a CPU, one lane per run.

    void program(const T* a0, i64 s0, ..., O* o0, i64 t0, ..., i64 n,
                 i64 M, const double* table0, ..., i64 capacity0, ..., void* cells)

Arguments and outputs are rows of runs as in `lower`. Cells are vectors of lanes in memory that the
caller allocates, wide ones first. Each group of `lanes` runs is taken through the whole program; in
the last group, unused lanes repeat the last run. A lane that writes no output writes to a place
after the cells instead. The last eight bytes of the memory are zero; whoever sets them during the
call makes all loops end, see `StopRequest`.

A block with rolls is a loop for each of them, and straight-line code for the rest. It reads
everything before it writes: new values of cells that it reads wait in a cell of their own until its
end, and so do values of copies that straight-line code reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.program_code import ProgramCode
from remora.codegen.integration.program_interface import ProgramInterface
from remora.codegen.integration.program_plan import ProgramPlan
from remora.codegen.integration.rolls import STAGED, Roll, Rolls, Staging, staged
from remora.codegen.integration.statements import GraphBlock, Output
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import lowering
from remora.codegen.llvm.lowering import SCALARS, constant
from remora.codegen.llvm.row_calls import (
    WIDEST,
    chunk_ir,
)

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


class RolledBlock:
    """Emits a block with rolls."""

    def __init__(
        self,
        code: LaneCode,
        block: GraphBlock,
        rolls: Rolls,
        mask: str | None,
        rows: Mapping[int, str] | None = None,
    ) -> None:
        """Initialize.

        Args:
            code: the code of the program.
            block: the block.
            rolls: its rolls.
            mask: lanes that take part.
            rows: where each output begins; None: outputs are cells.
        """
        self._code, self._block, self._graph, self._rolls = code, block, block.graph, rolls
        self._mask, self._rows, self._w = mask, rows, code.w
        cells = (
            {}
            if rows is not None or block.each
            else {n: s.wide for n, s in code.plan.cells.items()}
        )
        self._waiting = staged(rolls, block.graph, block.wide, cells)
        self._values: dict[int, str] = {}

    def write(self) -> None:
        """Emit the block."""
        self._operations(self._rolls.before, self._values)
        for r, roll in enumerate(self._rolls.rolls):
            self._loop(roll, [s for s in self._waiting if s.roll == r])
        for s in self._waiting:
            if s.output is None:
                for k, i in enumerate(self._rolls.rolls[s.roll].keeps[:, s.column].tolist()):
                    self._values[i] = self._load(STAGED[s.wide], f"{s.start + k}", s.wide)
        self._operations(self._rolls.after, self._values)
        for k, j, i in self._rolls.results:
            self._write(k, f"{j}", self._value(i, self._values))
        for s in self._waiting:
            if s.output is not None:
                self._move(s)

    def _loop(self, roll: Roll, waiting: Sequence[Staging]) -> None:
        """Emit the loop over the copies of a roll."""
        block, stages = self._block, {(s.output, s.column): s for s in waiting}
        with self._w.loop(self._code.label("roll"), roll.copies) as i:
            own = dict(self._values)
            for node, column in zip(roll.reads, roll.sources.T, strict=True):
                name = self._graph.inputs[int(self._graph.nodes[node][1][0])].name
                own[node] = self._load(name, self._element(column, i), block.wide)
            self._operations(roll.nodes, own)
            for c, (k, node) in enumerate(roll.writes):
                value, s = self._value(node, own), stages.get((k, c))
                if s is None:
                    self._write(k, self._element(roll.targets[:, c], i), value)
                else:
                    self._stage(s, i, self._code.converted(value, block.wide, s.wide))
            for c, node in enumerate(roll.kept):
                self._stage(stages[None, c], i, own[node])

    def _stage(self, s: Staging, i: str, value: str) -> None:
        place = self._w.emit(f"add i64 {i}, {s.start}") if s.start else i
        self._store(STAGED[s.wide], place, value)

    def _move(self, s: Staging) -> None:
        """Emit the loop that writes what has waited to its cell."""
        assert s.output is not None
        roll = self._rolls.rolls[s.roll]
        with self._w.loop(self._code.label("moved"), roll.copies) as i:
            place = self._w.emit(f"add i64 {i}, {s.start}") if s.start else i
            value = self._load(STAGED[s.wide], place, s.wide)
            self._write(s.output, self._element(roll.targets[:, s.column], i), value, s.wide)

    # Numbers --------------------------------------------------------------------------------------

    def _operations(self, nodes: Sequence[int], values: dict[int, str]) -> None:
        dtype, lanes = self._code.precision(self._block.wide), self._code.lanes
        for i in nodes:
            op, a = self._graph.nodes[i]
            if op in ("input", "const"):
                self._value(i, values)
            else:
                given = [self._value(k, values) for k in a]
                values[i] = lowering.operation(self._w, op, given, dtype, lanes)

    def _value(self, i: int, values: dict[int, str]) -> str:
        """Return the value of a node; an element of an input is loaded when it is first needed."""
        if i not in values:
            op, a = self._graph.nodes[i]
            if op == "const":
                values[i] = constant(a[0], self._code.precision(self._block.wide), self._code.lanes)
            else:
                values[i] = self._input(self._graph.inputs[int(a[0])].name, int(a[1]))
        return values[i]

    def _input(self, name: str, j: int) -> str:
        code, wide = self._code, self._block.wide
        if name in code.loop_values:
            return (code.loop_values[name].wide if wide else code.loop_values[name].narrow)[j]
        if name in code.plan.cells:
            return self._load(name, f"{j}", wide)
        return code.columns(code.plan.input(name), wide)[j]

    # Memory ---------------------------------------------------------------------------------------

    def _element(self, column: Array, i: str) -> str:
        """Emit the element that copy `i` reads or writes: from a table if it is no line."""
        w, first, step = self._w, int(column[0]), int(column[1] - column[0])
        if not np.array_equal(column, first + step * np.arange(len(column))):
            return self._code.number(self._code.whole_numbers(column), "i64", i)
        value = i if step == 1 else w.emit(f"mul i64 {i}, {step}")
        return w.emit(f"add i64 {value}, {first}") if first else value

    def _load(self, name: str, j: str, wide: bool) -> str:
        code, have = self._code, self._code.plan.cells[name].wide
        t = code.type_of(have)
        loaded = self._w.emit(f"load {t}, {code.cell_element(name, j)}{code.aligned(t)}")
        return code.converted(loaded, have, wide)

    def _store(self, name: str, j: str, value: str) -> None:
        code = self._code
        t = code.type_of(code.plan.cells[name].wide)
        self._w.put(f"store {t} {value}, {code.cell_element(name, j)}{code.aligned(t)}")

    def _write(self, k: int, j: str, value: str, wide: bool | None = None) -> None:
        """Emit the store of an element of an output.

        Args:
            k: number of the output.
            j: the element.
            value: the value.
            wide: whether it is wide; None: as the block is.
        """
        code, name = self._code, self._graph.outputs[k].name
        have = self._block.wide if wide is None else wide
        if self._rows is not None:
            t = code.type_of(have)
            place = self._w.emit(f"getelementptr {t}, ptr {self._rows[k]}, i64 {j}")
            self._w.put(f"store {t} {value}, ptr {place}")
            return
        want = code.plan.cells[name].wide
        value = code.converted(value, have, want)
        if self._mask is not None and name in self._block.masked:
            t, bits = code.type_of(want), f"<{code.lanes} x i1>"
            old = self._load(name, j, want)
            value = self._w.emit(f"select {bits} {self._mask}, {t} {value}, {t} {old}")
        self._store(name, j, value)
