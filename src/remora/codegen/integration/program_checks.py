"""Checks of programs: blocks are traced, names, shapes and precisions must fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.integration import random_words
from remora.codegen.integration.rolls import LEAST_ELEMENTS
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Output,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    unchanged,
    whole_block,
)
from remora.codegen.ir import philox
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.ir.trace import trace, with_symbols
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName


def as_cells(what: str, signatures: Sequence[Signature]) -> dict[str, Cell]:
    """Return inputs or cells by name, or raise if two have the same."""
    found: dict[str, Cell] = {}
    for s in signatures:
        if s.name in found:
            raise RemoraError(f"{what} of a program: {s.name!r} is named twice")
        found[s.name] = Cell(s.name, tuple(s.shape), isinstance(s, Cell) and s.wide)
    return found


class ProgramChecker:
    """Traces the blocks of a body and collects its outputs.

    Attributes:
        outputs: outputs of the program by name.
    """

    def __init__(
        self, inputs: Mapping[str, Cell], cells: Mapping[str, Cell], tables: Sequence[str]
    ) -> None:
        """Start without outputs.

        Args:
            inputs: inputs of the program by name.
            cells: its cells.
            tables: names of its tables.
        """
        self._inputs, self._cells, self._tables = inputs, cells, tables
        self.outputs: dict[str, Output] = {}

    def new_name(self, what: str, name: str, others: Sequence[str]) -> None:
        """Raise if a name of a loop's value has another meaning."""
        if name in self._inputs or name in self._cells or name in others:
            raise RemoraError(f"{what} {name!r} of a program has the same name as another element")

    def body(
        self, body: Sequence[Statement], provided: Mapping[str, Signature], certain: bool
    ) -> tuple[Statement, ...]:
        """Return the statements with traced blocks.

        Args:
            body: the statements.
            provided: what the loops around them provide.
            certain: whether they are always executed, for every entry of the tables.
        """
        return tuple(self._statement(s, provided, certain) for s in body)

    def _statement(
        self, s: Statement, provided: Mapping[str, Signature], certain: bool
    ) -> Statement:
        each = bool(self._tables) and self._tables[0] in provided
        match s:
            case Run():
                return Run(self._block(s.block, provided, self._cells))
            case Random():
                self._random(s)
                return s
            case Host():
                return self._host(s, provided)
            case Sample():
                block = self._block(s.block, provided)
                self._output(block, "entry" if each else "run", "", certain)
                return Sample(block)
            case Record():
                block = self._block(s.block, provided)
                self._single("Record", s.index)
                self._output(block, "record", s.buffer, False)
                return replace(s, block=block)
            case For():
                rows = _rows(s.rows)
                self.new_name("row", s.name, [*provided, *self._tables])
                inner = {**provided, s.name: Signature(s.name, rows.shape[1:])}
                return replace(s, rows=rows, body=self.body(s.body, inner, certain))
            case ForEach():
                if not self._tables or each:
                    reason = "cannot be nested" if each else "needs at least one table"
                    raise RemoraError(f"ForEach {reason}")
                inner = {**provided, **{n: Signature(n, (1,)) for n in self._tables}}
                return ForEach(self.body(s.body, inner, certain))
            case Repeat():
                if not each or s.count not in self._tables:
                    known = self._tables if each else ()
                    raise UnknownName("table that counts a Repeat", s.count, known)
                self.new_name("counter", s.index, [*provided, *self._tables])
                inner = {**provided, s.index: Signature(s.index, (1,))}
                return replace(s, body=self.body(s.body, inner, certain=False))
            case While() | If():
                self._single(type(s).__name__, s.cell)
                return replace(s, body=self.body(s.body, provided, certain=False))

    def _host(self, s: Host, provided: Mapping[str, Signature]) -> Host:
        """Return a Host, or raise unless what it reads and writes exists."""
        known: dict[str, Signature] = {**self._inputs, **self._cells, **provided}
        for name in s.reads:
            if name not in known:
                raise UnknownName(f"value that host function {s.function!r} reads", name, known)
        for k, name in enumerate(s.writes):
            if name not in self._cells:
                raise UnknownName(
                    f"cell that host function {s.function!r} writes", name, self._cells
                )
            if name in s.writes[:k]:
                raise RemoraError(f"host function {s.function!r} writes {name!r} twice")
        return replace(s, reads=tuple(s.reads), writes=tuple(s.writes))

    def _random(self, s: Random) -> None:
        """Raise unless the parts of a Random exist, are of the right shapes and in range."""
        if s.cell not in self._cells:
            raise UnknownName("cell of a Random", s.cell, self._cells)
        if s.kind not in random_words.NUMBERS:
            raise UnknownName("kind of random numbers", s.kind, random_words.NUMBERS)
        known = {**self._inputs, **self._cells}
        parts = {"seed": (s.seed, (2,)), "run": (s.run, (1,)), "tick": (s.tick, (1,))}
        for what, (name, shape) in parts.items():
            if name not in known:
                raise UnknownName(f"cell or input that is the {what} of a Random", name, known)
            if known[name].shape != shape or not known[name].wide:
                width = "wide" if known[name].wide else "not wide"
                raise ShapeError(
                    f"the {what} of a Random must be wide and of shape {shape}: {name!r} is "
                    f"{width} and of shape {known[name].shape}"
                )
        size, each = self._cells[s.cell].size, philox.NUMBERS_PER_PAIR
        if s.kind == "normal" and size % each:
            raise ShapeError(
                f"cell {s.cell!r} of a Random must hold {each} numbers for each pair of normals, "
                f"not {size}"
            )
        most = random_words.PER_BLOCK[s.kind] << philox.BLOCK_BITS
        if size > most:
            raise ShapeError(f"cell {s.cell!r} of a Random has {size} numbers, more than {most}")
        if not 0 <= s.stream < 1 << philox.STREAM_BITS:
            raise InvalidValue(
                f"stream of a Random must be a whole number from 0 to 2^{philox.STREAM_BITS} - 1, "
                f"not {s.stream}"
            )

    def _single(self, what: str, name: str) -> None:
        if name not in self._cells:
            raise UnknownName(f"cell of a {what}", name, self._cells)
        if self._cells[name].size != 1:
            shape = self._cells[name].shape
            raise ShapeError(f"cell {name!r} of a {what} must be one number, not of shape {shape}")

    def _block(
        self,
        block: Block | GraphBlock,
        provided: Mapping[str, Signature],
        written: Mapping[str, Cell] | None = None,
    ) -> GraphBlock:
        """Return the traced block, which writes `written`, or outputs if that is None."""
        known: dict[str, Signature] = {**self._inputs, **self._cells, **provided}
        name = block.name if isinstance(block, GraphBlock) else _name(block.function)
        what = f"block {name!r} of a program"
        new = block if isinstance(block, GraphBlock) else _traced(block, known, written, what)
        graph = new.graph
        for s in graph.inputs:
            if s.name not in known:
                raise UnknownName(f"value that {what} reads", s.name, known)
            if new.shape(s) != known[s.name].shape:
                raise ShapeError(
                    f"{what} reads {s.name!r} of shape {new.shape(s)}, which has shape "
                    f"{known[s.name].shape}"
                )
        names = [s.name for s in graph.outputs]
        twice = [n for k, n in enumerate(names) if n in names[:k]]
        if twice:
            raise RemoraError(f"{what} writes {twice[0]!r} twice")
        for s in graph.outputs:
            if written is None:
                break
            if s.name not in written:
                raise UnknownName(f"cell that {what} writes", s.name, written)
            if new.shape(s) != written[s.name].shape:
                raise ShapeError(
                    f"{what} writes {s.name!r} of shape {new.shape(s)}, which has shape "
                    f"{written[s.name].shape}"
                )
            if written[s.name].wide and not block.wide:
                raise RemoraError(f"{what} writes the wide cell {s.name!r}: make the block wide")
        return new

    def _output(self, block: GraphBlock, per: str, buffer: str, certain: bool) -> None:
        for s in block.graph.outputs:
            new = Output(s.name, s.shape, block.wide, per, buffer, certain)
            old = self.outputs.get(s.name, new)
            if replace(old, complete=certain) != new:
                raise ShapeError(
                    f"output {s.name!r} of a program is written in two ways: {old} and {new}"
                )
            self.outputs[s.name] = replace(new, complete=certain or old.complete)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "block")


def _traced(
    block: Block, known: Mapping[str, Signature], written: Mapping[str, Cell] | None, what: str
) -> GraphBlock:
    """Return a block as a graph; short ones for each element as a whole."""
    for name in block.reads:
        if name not in known:
            raise UnknownName(f"value that {what} reads", name, known)
    shapes = {name: known[name].shape for name in block.reads}
    each, vectors = 0, frozenset[str]()
    if block.each:
        each = _length(block, shapes, written or {}, what)
        vectors = frozenset(name for name, shape in shapes.items() if shape[-1:] == (each,))
        shapes |= {name: (*shapes[name][:-1], 1) for name in vectors}
    inputs = [Signature(known[name].name, shapes[name]) for name in block.reads]
    if block.function is unchanged:
        graph = Graph(tuple(inputs), tuple(inputs))
        graph.results = [[graph.input(k, j) for j in range(s.size)] for k, s in enumerate(inputs)]
    else:
        graph = with_symbols(trace(block.function, inputs))
    if len(graph.outputs) != len(block.writes):
        count = f"{len(graph.outputs)} arrays for {', '.join(block.writes)}"
        raise ShapeError(f"{what} returns {count}")
    pairs = zip(block.writes, graph.outputs, strict=True)
    graph.outputs = tuple(Signature(name, s.shape) for name, s in pairs)
    made = GraphBlock(graph, block.wide, _name(block.function), each=each, vectors=vectors)
    return made if each >= LEAST_ELEMENTS else whole_block(made)


def _length(
    block: Block, shapes: Mapping[str, tuple[int, ...]], written: Mapping[str, Cell], what: str
) -> int:
    """Return the length of the last axis of all that a block for each element writes."""
    ends = {name: written[name].shape[-1:] for name in block.writes if name in written}
    lengths = set(ends.values())
    if len(ends) < len(block.writes) or len(lengths) != 1 or lengths == {()}:
        raise ShapeError(f"{what}, for each element, must write cells of one length")
    (length,) = lengths.pop()
    if (length,) not in (shape[-1:] for shape in shapes.values()):
        raise ShapeError(f"{what}, for each element, must read an array of length {length}")
    return length


def _rows(table: ArrayLike) -> Array:
    rows = np.array(table, dtype=float)
    if rows.ndim != 2 or not len(rows):
        raise ShapeError(f"rows of a For must be (n, coefficients), n > 0, not {rows.shape}")
    if not np.isfinite(rows).all():
        raise InvalidValue("rows of a For must be finite")
    rows.flags.writeable = False
    return rows
