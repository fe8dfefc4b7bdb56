"""Control flow of programs in LLVM IR, common to SIMD lanes and GPU threads.

A lane or thread that does not take part in a statement is *masked*. A mask is a vector of i1; None
means that all lanes take part. Where lanes cannot part (one lane, or a condition on a uniform
cell), `While` and `If` are plain branches and masks stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration import random_words
from remora.codegen.integration.program_plan import ProgramPlan
from remora.codegen.integration.statements import (
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Loop,
    Output,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    graph_block,
    walked,
)
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import lowering
from remora.codegen.llvm.lowering import SCALARS, constant, vector
from remora.errors import RemoraError


class LoopNumbers(NamedTuple):
    """Numbers that a loop provides, in all lanes.

    Attributes:
        narrow: in the kernel's precision.
        wide: in double precision.
    """

    narrow: list[str]
    wide: list[str]


class ProgramCode:
    """The IR of a program; subclasses define where the blocks read and write.

    Attributes:
        w: the IR so far.
        plan: the plan of the program.
        dtype: precision of whatever is not wide.
        lanes: runs that are processed together.
    """

    #: IR type of pointers to tables and coefficients.
    pointer = "ptr"
    #: IR address space of constants.
    space = ""
    #: How cells are accessed.
    volatile = ""
    #: Whether a call can be ended early.
    stoppable = False

    def __init__(self, plan: ProgramPlan, dtype: str, lanes: int) -> None:
        """Start with no code."""
        self.w = lowering.Writer()
        self.plan, self.dtype, self.lanes = plan, dtype, lanes
        self.scalar = SCALARS[dtype]
        self.inputs = {s.name: f"a{k}" for k, s in enumerate(plan.program.inputs)}
        self.outputs: dict[str, tuple[str, Output]] = {
            o.name: (f"o{k}", o) for k, o in enumerate(plan.program.outputs)
        }
        self.loop_values: dict[str, LoopNumbers] = {}
        self._entry = ""
        self._constants: list[str] = []
        self._labels = 0

    # Subclasses ------------------------------------------------------------------------------

    def start_cell(self, cell: Signature, source: str | None) -> None:
        """Emit the initial value of a cell: that of the input `source`, or zero."""
        raise NotImplementedError

    def run(self, block: GraphBlock, mask: str | None) -> None:
        """Emit a block that writes cells."""
        raise NotImplementedError

    def output(self, block: GraphBlock, mask: str | None, row: str, index: str | None) -> None:
        """Emit a block that writes outputs.

        Args:
            block: the block.
            mask: lanes that take part.
            row: IR of the number of the row, i64, the same in all lanes; empty if there is none.
            index: cell with the number of the row in each lane.
        """
        raise NotImplementedError

    def wide_values(self, name: str) -> list[str]:
        """Emit the loads of a wide cell or input; return the names of its numbers."""
        raise NotImplementedError

    def write_cell(self, name: str, values: Sequence[str], mask: str | None) -> None:
        """Emit the stores of numbers into a cell, of its precision.

        Args:
            name: name of the cell.
            values: names of the numbers.
            mask: lanes that take part; the others keep their values.
        """
        raise NotImplementedError

    def cell_pointer(self, name: str, j: int = 0) -> str:
        """Return the typed address of an element of a cell."""
        raise NotImplementedError

    def stopped(self) -> str:
        """Emit the test whether the call is to end early; return its name."""
        raise NotImplementedError

    # Statements ------------------------------------------------------------------------------

    def write(self) -> None:
        """Emit the whole program of a run."""
        for name in self.plan.starting:
            self.start_cell(self.plan.cells[name], self.inputs.get(name))
        self.body(self.plan.body, None)

    def body(self, body: Sequence[Statement], mask: str | None) -> None:
        """Emit statements for the lanes that take part."""
        for s in body:
            self._statement(s, mask)

    def _statement(self, s: Statement, mask: str | None) -> None:
        w, stop = self.w, self.stopped if self.stoppable else None
        match s:
            case Run():
                self.run(graph_block(s), mask)
            case Random():
                self._random(s, mask)
            case Host():
                raise RemoraError(
                    f"the program calls the Python function {s.function!r}: it is compiled as a "
                    "HostedProgram, not as a whole"
                )
            case Sample():
                self.output(graph_block(s), mask, self._entry, None)
            case Record():
                self.output(graph_block(s), mask, "", s.index)
            case For():
                rows = np.asarray(s.rows)
                table = self._table(rows)
                with w.loop(self.label("for"), len(rows)) as i:
                    self.loop_values[s.name] = self._row(table, i, rows.shape[1])
                    self.body(s.body, mask)
                del self.loop_values[s.name]
            case ForEach():
                tables = self.plan.program.tables
                with w.loop(self.label("each"), "%entries", stop) as m:
                    self._entry = m
                    for k, name in enumerate(tables):
                        self.loop_values[name] = self._everywhere(
                            [self.number(f"%table{k}", "double", m)]
                        )
                    self.body(s.body, mask)
                self._entry = ""
                for name in tables:
                    del self.loop_values[name]
            case Repeat():
                k = self.plan.program.tables.index(s.count)
                times = self.number(f"%table{k}", "double", self._entry)
                count = w.emit(f"fptosi double {times} to i64")
                with w.loop(self.label("repeat"), count, stop) as i:
                    self.loop_values[s.index] = self._everywhere(
                        [w.emit(f"sitofp i64 {i} to double")]
                    )
                    self.body(s.body, mask)
                del self.loop_values[s.index]
            case While():
                head = self.label("while")
                w.put(f"br label %{head}")
                w.label(head)
                some, inner = self._positive(s.cell, mask)
                if stop is not None:
                    some = w.emit(f"select i1 {stop()}, i1 false, i1 {some}")
                w.put(f"br i1 {some}, label %{head}.body, label %{head}.done")
                w.label(f"{head}.body")
                self.body(s.body, inner)
                w.put(f"br label %{head}")
                w.label(f"{head}.done")
            case If():
                some, inner = self._positive(s.cell, mask)
                then = self.label("if")
                w.put(f"br i1 {some}, label %{then}, label %{then}.done")
                w.label(then)
                self.body(s.body, inner)
                w.put(f"br label %{then}.done")
                w.label(f"{then}.done")

    def _random(self, s: Random, mask: str | None) -> None:
        """Emit the numbers of as many blocks as the cell takes."""
        cell = self.plan.cells[s.cell]
        seed, (run,), (tick,) = (self.wide_values(name) for name in (s.seed, s.run, s.tick))
        values: list[str] = []
        while len(values) < cell.size:
            block = len(values) // random_words.PER_BLOCK[s.kind]
            values += random_words.emit(
                self.w, self.lanes, self.precision(cell.wide), s.kind, seed, run, s.stream, tick,
                block,
            )  # fmt: skip
        self.write_cell(s.cell, values[: cell.size], mask if s.masked else None)

    def _positive(self, name: str, mask: str | None) -> tuple[str, str | None]:
        """Emit the test of a cell; return whether any lane takes part in what follows; which."""
        w, t = self.w, self.type_of(self.plan.cells[name].wide)
        value = w.emit(f"load {self.volatile}{t}, {self.cell_pointer(name)}{self.aligned(t)}")
        zero = constant(0.0, self.precision(self.plan.cells[name].wide), self.lanes)
        positive = w.emit(f"fcmp ogt {t} {value}, {zero}")
        if self.lanes == 1:
            return positive, mask
        bits = f"<{self.lanes} x i1>"
        if name not in self.plan.divergent:
            return w.emit(f"extractelement {bits} {positive}, i32 0"), mask
        taking = positive if mask is None else w.emit(f"and {bits} {positive}, {mask}")
        whole = w.emit(f"bitcast {bits} {taking} to i{self.lanes}")
        return w.emit(f"icmp ne i{self.lanes} {whole}, 0"), taking

    # Numbers ---------------------------------------------------------------------------------

    def precision(self, wide: bool) -> str:
        """Return the precision of a block, cell, input or output."""
        return "float64" if wide else self.dtype

    def type_of(self, wide: bool) -> str:
        """Return the IR type of a number in all lanes."""
        return vector(SCALARS[self.precision(wide)], self.lanes)

    def aligned(self, t: str) -> str:
        """Return the alignment of a cell's element of type `t`, as the end of an IR line."""
        return ""

    def converted(self, value: str, have: bool, want: bool) -> str:
        """Emit the conversion of a value between the kernel's precision and double, if any.

        Args:
            value: name or literal.
            have: whether it is wide.
            want: whether the result is.
        """
        old, new = self.type_of(have), self.type_of(want)
        if old == new:
            return value
        return self.w.emit(f"{'fpext' if want else 'fptrunc'} {old} {value} to {new}")

    def number(self, array: str, kind: str, index: str) -> str:
        """Emit the load of a number of a table."""
        place = self.w.emit(f"getelementptr {kind}, {self.pointer} {array}, i64 {index}")
        size = 4 if kind == "float" else 8  # explicit: LLVM's default for an i64 is 4
        return self.w.emit(f"load {kind}, {self.pointer} {place}, align {size}")

    def constants(self) -> str:
        """Return the tables of coefficients."""
        return "".join(self._constants)

    def declared(self) -> set[str]:
        """Return the declarations of all functions that the blocks call."""
        found: set[str] = set()
        if any(isinstance(s, Random) for s in walked(self.plan.body)):
            found |= set(random_words.declared(self.lanes))
        for block in self._all_blocks(self.plan.body):
            found |= set(lowering.declared(block.graph, self.precision(block.wide), self.lanes))
        return found

    def _all_blocks(self, body: Sequence[Statement]) -> list[GraphBlock]:
        found: list[GraphBlock] = []
        for s in body:
            if isinstance(s, Run | Sample | Record):
                found.append(graph_block(s))
            elif isinstance(s, Loop):
                found += self._all_blocks(s.body)
        return found

    def label(self, what: str) -> str:
        """Return a new label."""
        self._labels += 1
        return f"{what}{self._labels}"

    def _table(self, rows: Array) -> str:
        """Emit a table of coefficients, in each precision; return its name."""
        name, numbers = f"@rows{len(self._constants)}", rows.reshape(-1).tolist()
        for own, dtype in {name: self.dtype, self._exact(name): "float64"}.items():
            t = SCALARS[dtype]
            values = ", ".join(f"{t} {constant(x, dtype, 1)}" for x in numbers)
            text = f"internal {self.space}constant [{len(numbers)} x {t}] [{values}]"
            self._constants.append(f"{own} = {text}\n")
        return name

    def _exact(self, table: str) -> str:
        """Return the name of a table of coefficients in double precision."""
        return table if self.dtype == "float64" else f"{table}_wide"

    def _row(self, table: str, i: str, width: int) -> LoopNumbers:
        start = self.w.emit(f"mul i64 {i}, {width}")
        places = [self.w.emit(f"add i64 {start}, {k}") for k in range(width)]
        narrow = [self.number(table, self.scalar, place) for place in places]
        if self.scalar == "double":
            values = [self.everywhere(x, "double") for x in narrow]
            return LoopNumbers(values, values)
        wide = [self.number(self._exact(table), "double", place) for place in places]
        return LoopNumbers(
            [self.everywhere(x, self.scalar) for x in narrow],
            [self.everywhere(x, "double") for x in wide],
        )

    def _everywhere(self, numbers: Sequence[str]) -> LoopNumbers:
        """Return double-precision numbers as values of a loop."""
        wide = [self.everywhere(x, "double") for x in numbers]
        if self.scalar == "double":
            return LoopNumbers(wide, wide)
        narrow = [self.w.emit(f"fptrunc double {x} to float") for x in numbers]
        return LoopNumbers([self.everywhere(x, "float") for x in narrow], wide)

    def everywhere(self, x: str, scalar: str) -> str:
        """Emit a number broadcast to all lanes."""
        return lowering.everywhere(self.w, x, scalar, self.lanes)
