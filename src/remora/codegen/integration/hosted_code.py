"""Code of programs that call Python: parts in machine code, and the loops around the calls.

Statements without `Host` that follow each other are one *part*, a function of the cells of a run:

    void part(ptr cells)

A loop or condition with a `Host` inside is no part: Python executes it, between parts. What such a
loop provides (rows, entries of tables, counters) is a wide cell. Behind the cells are the words
that parts need besides: addresses of the outputs, M, addresses of the tables, capacities, m.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.integration.lane_code import LaneCode
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_plan import ProgramPlan, planned, read_names
from remora.codegen.integration.statements import (
    Cell,
    For,
    ForEach,
    Host,
    If,
    Loop,
    Repeat,
    Statement,
    While,
    hosts,
)
from remora.codegen.llvm import fast_call
from remora.codegen.llvm.row_calls import WIDEST

#: Bytes of a word behind the cells.
WORD = 8


class CellPlace(NamedTuple):
    """Where a cell is.

    Attributes:
        start: in the memory of a run, in bytes.
        shape: of the cell.
        dtype: of its numbers.
    """

    start: int
    shape: tuple[int, ...]
    dtype: str


class HostedCode(NamedTuple):
    """A program that calls Python, ready to be compiled.

    Attributes:
        cells: places of the cells by name.
        size: bytes of the memory of a run.
        words: where the words behind the cells begin, in bytes.
        parts: number of parts.
        steps: what Python does, as nested lists (JSON): `["part", k]`,
            `["host", function, reads, writes, batched]`, `["for", name, rows, steps]`,
            `["each", steps]`, `["repeat", count, index, steps]`, `["while", cell, steps]`,
            `["if", cell, steps]`.
    """

    cells: dict[str, CellPlace]
    size: int
    words: int
    parts: int
    steps: list[Any]


def hosted_code(program: Program, dtype: str, fma: bool) -> tuple[str, HostedCode]:
    """Return the module of the parts of a program, and what Python does between them.

    Args:
        program: as traced.
        dtype: `float64` or `float32`.
        fma: whether the processor has a fused multiply-add.
    """
    plan = planned(program, dtype, fma, in_parts=True, roll=True)
    provided: dict[str, Cell] = {}
    for cell in _provided(plan.body, program.tables):  # rows of several loops may share a name
        known = provided.setdefault(cell.name, cell)
        provided[cell.name] = cell if cell.size > known.size else known
    read = read_names(plan.body)
    cells = plan.cells | {n: c for n, c in provided.items() if n in read and n not in plan.cells}
    code = _PartsCode(replace(plan, cells=cells), dtype)
    steps = code.steps(plan.body, inside=False)
    return code.all_parts(), HostedCode(code.places(), code.size, code.words, code.count, steps)


def part_names(parts: int) -> tuple[str, ...]:
    """Return the names of the functions of a module."""
    return tuple(f"{kind}{k}" for k in range(parts) for kind in ("many", "fast"))


def _provided(body: Sequence[Statement], tables: Sequence[str]) -> Iterable[Cell]:
    """Yield what loops that Python executes provide, as wide cells."""
    for s in body:
        if not isinstance(s, Loop) or not hosts(s.body):
            continue
        if isinstance(s, For):
            rows: Array = np.asarray(s.rows)
            yield Cell(s.name, rows.shape[1:], wide=True)
        elif isinstance(s, ForEach):
            yield from (Cell(name, (1,), wide=True) for name in tables)
        elif isinstance(s, Repeat):
            yield Cell(s.index, (1,), wide=True)
        yield from _provided(s.body, tables)


class _PartsCode(LaneCode):
    """The IR of the parts of a program, for one run.

    Attributes:
        words: where the words behind the cells begin, in bytes.
        count: number of parts.
    """

    def __init__(self, plan: ProgramPlan, dtype: str) -> None:
        """Place the cells, then the words; start with no code."""
        super().__init__(plan, dtype, lanes=1)
        own = plan.program
        self.words = self.size
        self.size += WORD * (len(own.outputs) + 1 + len(own.tables) + len(own.buffers) + 1)
        self.count = 0
        self._functions: list[str] = []

    def places(self) -> dict[str, CellPlace]:
        """Return the places of the cells."""
        return {
            name: CellPlace(self.place(name), s.shape, self.precision(s.wide))
            for name, s in self.plan.cells.items()
        }

    def steps(self, body: Sequence[Statement], inside: bool) -> list[Any]:
        """Emit the parts of a body; return what Python does.

        Args:
            body: the statements.
            inside: whether Python executes a `ForEach` around them.
        """
        found: list[Any] = []
        waiting: list[Statement] = []

        def emitted() -> None:
            if waiting:
                found.append(["part", self._part(waiting, inside)])
                waiting.clear()

        for s in body:
            if not hosts([s]):
                waiting.append(s)
                continue
            emitted()
            match s:
                case Host():
                    found.append(["host", s.function, [*s.reads], [*s.writes], s.batched])
                case For():
                    rows = np.asarray(s.rows).tolist()
                    found.append(["for", s.name, rows, self.steps(s.body, inside)])
                case ForEach():
                    found.append(["each", self.steps(s.body, inside=True)])
                case Repeat():
                    found.append(["repeat", s.count, s.index, self.steps(s.body, inside)])
                case While() | If():
                    kind = "while" if isinstance(s, While) else "if"
                    found.append([kind, s.cell, self.steps(s.body, inside)])
                case _:
                    raise AssertionError(s)
        emitted()
        return found

    def _part(self, body: Sequence[Statement], inside: bool) -> int:
        """Emit the function of a part; return its number."""
        w, own = self.w, self.plan.program
        before, w.lines, w.block = w.lines, list[str](), "entry"
        w.put("%row0 = add i64 0, 0")
        names = [f"ptr %{array}" for array, _ in self.outputs.values()]
        names += ["i64 %entries", *(f"ptr %table{k}" for k in range(len(own.tables)))]
        names += [*(f"i64 %capacity{k}" for k in range(len(own.buffers))), "i64 %m"]
        for k, name in enumerate(names):
            kind, value = name.split()
            place = w.emit(f"getelementptr i8, ptr %cells, i64 {self.words + WORD * k}")
            w.put(f"{value} = load {kind}, ptr {place}")
            if kind == "ptr":
                w.put(f"%s_{value[1:]} = add i64 0, 0")
        self._entry = "%m" if inside else ""
        self.body(body, None)
        w.put("ret void")
        head = f"define void @part{self.count}(ptr noalias %cells) alignstack({WIDEST}) {{"
        self._functions += [head, "entry:", *w.lines, "}", _called(self.count)]
        w.lines = before
        self.count += 1
        return self.count - 1

    def all_parts(self) -> str:
        """Return the whole module."""
        needed = {*self.declared(), "declare void @Py_IncRef(ptr)"}
        return "\n".join([self.constants(), *self._functions, *sorted(needed)]) + "\n"


def _called(k: int) -> str:
    """Return the IR of how a part is called.

    `many` calls it for runs that are given by their indices. `fast` has the calling convention of a
    function of CPython whose `self` is the array of the cells; it returns `self`.
    """
    return f"""
define void @many{k}(ptr %memory, i64 %stride, ptr %runs, i64 %n) {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %each, label %done
each:
  %i = phi i64 [0, %entry], [%next, %each]
  %at = getelementptr i64, ptr %runs, i64 %i
  %run = load i64, ptr %at
  %start = mul i64 %run, %stride
  %cells = getelementptr i8, ptr %memory, i64 %start
  call void @part{k}(ptr %cells)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %each, label %done
done:
  ret void
}}
define ptr @fast{k}(ptr %self, ptr %unused) {{
  %at = getelementptr i8, ptr %self, i64 {fast_call.DATA}
  %cells = load ptr, ptr %at
  call void @part{k}(ptr %cells)
  call void @Py_IncRef(ptr %self)
  ret ptr %self
}}
"""
