"""Code of a block with rolls: uniform nodes, a loop for each roll, straight-line code for the rest.

A block reads everything before it writes. New values of cells that it reads wait in a cell of their
own until its end, and so do values of copies that straight-line code reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.rolls import STAGED, Roll, Rolls, Staging, staged
from remora.codegen.integration.statements import GraphBlock
from remora.codegen.llvm import lowering
from remora.codegen.llvm.lowering import constant

if TYPE_CHECKING:
    from remora.codegen.integration.program_cpu import LaneCode


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
        if name in code.given:
            return (code.given[name].wide if wide else code.given[name].narrow)[j]
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
