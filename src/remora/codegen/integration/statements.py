"""Statements of programs, and what they are about: cells, blocks and outputs; see `program`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.integration.rolls import Rolls
from remora.codegen.ir.graph import Graph, Signature


@dataclass(frozen=True)
class Cell(Signature):
    """A variable or an input of a run.

    Attributes:
        wide: whether it is `float64` in kernels of every precision.
    """

    wide: bool = False


@dataclass(frozen=True)
class Output(Signature):
    """An array that a program returns.

    Attributes:
        wide: whether it is `float64` in kernels of every precision.
        per: "run": shape `batch + shape`; "entry": `batch + (M,) + shape`, for the M entries of the
            tables; "record": `batch + (capacity,) + shape`.
        buffer: name of its capacity, if it is recorded.
        complete: whether every element is written whatever the conditions; elements that are not
            written are NaN.
    """

    wide: bool = False
    per: str = "run"
    buffer: str = ""
    complete: bool = True


@dataclass(frozen=True, eq=False)
class Block:
    """A function to be traced.

    Attributes:
        function: maps one array per name read to one array per name written.
        reads: names of cells, inputs, or values of the loops around it.
        writes: names of cells; of outputs for `Sample` and `Record`.
        wide: whether it is computed in `float64` in kernels of every precision.
        each: whether it does the same for each element along the last axis, whose length all that
            is written and some of what is read share. The function is traced for one element: it
            receives `(..., 1)` of arrays of this length, and all others whole.
    """

    function: Callable[..., Any]
    reads: Sequence[str]
    writes: Sequence[str]
    wide: bool = False
    each: bool = False


def unchanged(*cells: Array) -> tuple[Array, ...]:
    """Return the arguments: the function of a block that copies cells."""
    return cells


@dataclass(frozen=True, eq=False)
class GraphBlock:
    """A traced block.

    Attributes:
        graph: its inputs and outputs are named as in `Block`.
        wide: as in `Block`.
        name: name of the function.
        first: outputs that a GPU thread computes before the others.
        masked: cells whose old values must survive in lanes that do not take part.
        each: number of elements for which the graph is executed, each with its element of
            `vectors` and of what is written; 0: once.
        vectors: names of the inputs that are read element by element.
        rolls: what is emitted as loops, if anything is.
    """

    graph: Graph
    wide: bool = False
    name: str = "block"
    first: frozenset[str] = frozenset()
    masked: frozenset[str] = frozenset()
    each: int = 0
    vectors: frozenset[str] = frozenset()
    rolls: Rolls | None = None

    def shape(self, signature: Signature) -> tuple[int, ...]:
        """Return the whole shape of an input or output."""
        one = not self.each or (
            signature not in self.graph.outputs and signature.name not in self.vectors
        )
        return signature.shape if one else (*signature.shape[:-1], self.each)


@dataclass(frozen=True, eq=False)
class Run:
    """Evaluate a block, which writes cells."""

    block: Block | GraphBlock


def wide_run(function: Callable[..., Any], reads: Sequence[str], writes: Sequence[str]) -> Run:
    """Return the statement of a block that is computed in double precision."""
    return Run(Block(function, reads, writes, wide=True))


@dataclass(frozen=True, eq=False)
class For:
    """Repeat the body for each row of a constant table.

    Attributes:
        rows: coefficients, `(n, R)`, at least one row.
        body: statements; their blocks may read the row, `(R,)`, by `name`.
        name: name of the row.
    """

    rows: ArrayLike
    body: Sequence[Statement]
    name: str = "row"


@dataclass(frozen=True, eq=False)
class ForEach:
    """Repeat the body for each entry of the program's tables, whose length M is that of the call.

    Attributes:
        body: statements; their blocks may read the m-th number of each table, `(1,)`, by its name.
    """

    body: Sequence[Statement]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Repeat the body, the count given by a table, within a `ForEach`.

    Attributes:
        count: name of the table; its numbers are whole and not negative.
        body: statements; their blocks may read the counter 0, 1, ..., `(1,)`, by `index`.
        index: name of the counter.
    """

    count: str
    body: Sequence[Statement]
    index: str = "index"


@dataclass(frozen=True, eq=False)
class While:
    """Repeat the body while the cell, a single number, is positive in this run (not if NaN)."""

    cell: str
    body: Sequence[Statement]


@dataclass(frozen=True, eq=False)
class If:
    """Do the body if the cell, a single number, is positive in this run (not if NaN)."""

    cell: str
    body: Sequence[Statement]


@dataclass(frozen=True, eq=False)
class Sample:
    """Write outputs: inside a `ForEach` those of entry m, otherwise the only ones of the run.

    Attributes:
        block: writes outputs instead of cells. Several statements may write the same output.
    """

    block: Block | GraphBlock


@dataclass(frozen=True, eq=False)
class Record:
    """Write outputs at a row of a buffer, whose number of rows (capacity) is that of the call.

    Attributes:
        block: writes outputs instead of cells.
        index: cell with the number of the row, rounded down. Nothing is written if it is not in
            [0, capacity).
        buffer: name of the buffer, for programs with several capacities.
    """

    block: Block | GraphBlock
    index: str
    buffer: str = "records"


@dataclass(frozen=True, eq=False)
class Random:
    """Draw the random numbers of a stream at a tick into a cell, see `ir/philox.py`.

    Attributes:
        cell: receives the numbers: for "normal" three per pair of normals, to be made into normals
            by a block; for "uniform" any number of uniform numbers.
        seed: wide cell or input `(2,)`, the lower and the upper 32 bits of the seed. All three
            hold whole numbers.
        run: wide cell or input `(1,)`, the index of the run.
        tick: wide cell or input `(1,)`, the number of the tick, below 2⁴⁸.
        stream: number of the stream.
        kind: "normal" or "uniform".
        masked: whether old values must survive in lanes that do not take part.
    """

    cell: str
    seed: str
    run: str
    tick: str
    stream: int
    kind: str = "normal"
    masked: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """Names of the cells and inputs it reads."""
        return frozenset((self.seed, self.run, self.tick))


@dataclass(frozen=True, eq=False)
class Host:
    """Call a Python function, which writes cells: one that cannot be traced, or talks to hardware.

    Attributes:
        function: name of the function, which is passed with the call of the program. It maps one
            array per name read to one array per name written.
        reads: names as in `Block`.
        writes: names of cells.
        batched: whether the function takes and returns the arrays of all runs that take part,
            `(runs, *shape)`; otherwise it is called run by run.
    """

    function: str
    reads: Sequence[str]
    writes: Sequence[str]
    batched: bool = False


#: A new kind of statement also needs a case in `program_checks`, `program_interpreter`,
#: `program_plan` (what it reads and writes), `program_code` and `program_c`.
Statement: TypeAlias = Run | Random | Host | For | ForEach | Repeat | While | If | Sample | Record
Loop: TypeAlias = For | ForEach | Repeat | While | If


def graph_block(statement: Run | Sample | Record) -> GraphBlock:
    """Return the traced block of a statement of a program."""
    assert isinstance(statement.block, GraphBlock)
    return statement.block


@functools.lru_cache(maxsize=64)
def whole_block(block: GraphBlock) -> GraphBlock:
    """Return a block as one graph: that of each element, element by element."""
    if not block.each:
        return block
    one, count = block.graph, block.each

    def full(signatures: Sequence[Signature]) -> tuple[Signature, ...]:
        return tuple(Signature(s.name, block.shape(s)) for s in signatures)

    graph = Graph(full(one.inputs), full(one.outputs))
    vector = [s.name in block.vectors for s in one.inputs]
    results: list[list[list[int]]] = [[] for _ in one.results]
    for j in range(count):
        place: list[int] = []
        for op, a in one.nodes:
            if op == "const":
                place.append(graph.const(a[0]))
            elif op == "input":
                k, element = int(a[0]), int(a[1])
                place.append(graph.input(k, element * count + j if vector[k] else element))
            else:
                place.append(graph.op(op, *(place[int(i)] for i in a)))
        for own, result in zip(results, one.results, strict=True):
            own.append([place[i] for i in result])
    graph.results = [[i for row in zip(*own, strict=True) for i in row] for own in results]
    return replace(block, graph=graph, each=0, vectors=frozenset())


def hosts(body: Sequence[Statement]) -> list[Host]:
    """Return the statements that call Python, also those in bodies."""
    return [s for s in walked(body) if isinstance(s, Host)]


def walked(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements, also those in bodies."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walked(statement.body)
