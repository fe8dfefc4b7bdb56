"""Plans of programs: what code generation needs to know beyond the statements.

- Adjacent blocks of one precision are joined, so that what passes between them needs no memory.
- Liveness: a cell is live where its value may still be read. Writes to cells that are not live are
  dropped, and cells that are never live get no memory.
- Divergence: a cell is uniform if it has the same value in all runs, because it depends on tables,
  coefficients and other uniform cells only. `While` and `If` on uniform cells are plain branches on
  SIMD lanes, too. On others, lanes part: the body is executed while any lane takes part, and
  the cells of the other lanes must survive if they are live where those lanes go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from remora.codegen.integration.program import Program
from remora.codegen.integration.rolls import STAGED, rolled, rolls_of_each, staged
from remora.codegen.integration.statements import (
    Cell,
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Loop,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    graph_block,
    hosts,
    walked,
    whole_block,
)
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.llvm.lowering import used_inputs

_Names = frozenset[str]


@dataclass(frozen=True)
class ProgramPlan:
    """A program ready for code generation.

    Attributes:
        program: as described, for its inputs, tables and outputs.
        body: the statements to be generated.
        cells: the cells that need memory, by name; inputs read in loops are cells, too.
        starting: the cells whose initial values are read.
        divergent: the cells that may differ from run to run.
    """

    program: Program
    body: tuple[Statement, ...]
    cells: dict[str, Cell]
    starting: tuple[str, ...]
    divergent: frozenset[str]

    def input(self, name: str) -> Signature:
        """Return an input of the program."""
        return next(s for s in self.program.inputs if s.name == name)


def planned(
    program: Program,
    dtype: str,
    fma: bool = True,
    lanes: int = 1,
    in_parts: bool = False,
    roll: bool = False,
) -> ProgramPlan:
    """Return the plan of a program.

    Args:
        program: as traced.
        dtype: `float64` or `float32`.
        fma: whether the target has a fused multiply-add.
        lanes: number of runs that are processed together; a single one never parts.
        in_parts: whether the code is in several parts, which read inputs from cells only.
        roll: whether copies of one computation become loops, see `rolls`.
    """
    inputs = {s.name: cast(Cell, s) for s in program.inputs}
    cells = {s.name: cast(Cell, s) for s in program.cells}
    prepared = program.prepared(dtype, fma)
    if not roll:
        prepared = prepared.mapped(whole_block)
    ready = _joined_in(prepared.body, cells, single=dtype == "float32")
    vectors = {n for s in walked(ready) if isinstance(s, Run) for n in graph_block(s).vectors}
    read = read_names(ready) if in_parts else _read_in_loops(ready) | vectors
    cells |= {n: s for n, s in inputs.items() if n in read and n not in cells}
    divergent = _divergent(ready, cells, inputs) if lanes > 1 else frozenset[str]()
    pruner = _Pruner(frozenset(cells), divergent)
    body, start = pruner.body(ready, frozenset(), frozenset())
    needed = (read_names(body) | _written(body) | start) & set(cells)
    cells = {n: s for n, s in cells.items() if n in needed}
    if roll:
        body, cells = _with_rolls(body, cells, lanes)
    return ProgramPlan(
        program, body, cells,
        tuple(n for n in cells if n in start), divergent,
    )  # fmt: skip


def carried(program: Program) -> frozenset[str]:
    """Return the cells whose values pass from one entry of the tables to the next.

    Args:
        program: one that ends with a `ForEach`.
    """
    last = program.body[-1]
    assert isinstance(last, ForEach)
    cells = frozenset(s.name for s in program.cells)
    return _Pruner(cells, frozenset()).live_at_end(last, frozenset())


def read_names(body: Sequence[Statement]) -> set[str]:
    """Return all names that statements read."""
    found: set[str] = set()
    for s in walked(body):
        if isinstance(s, While | If):
            found.add(s.cell)
        if isinstance(s, Record):
            found.add(s.index)
        if isinstance(s, Random | Host):
            found |= set(s.reads)
        if isinstance(s, Run | Sample | Record):
            graph = graph_block(s).graph
            used = zip(graph.inputs, used_inputs(graph), strict=True)
            found |= {signature.name for signature, is_used in used if is_used}
    return found


def _written(body: Sequence[Statement]) -> set[str]:
    """Return all cells that statements write."""
    runs = (graph_block(s).graph for s in walked(body) if isinstance(s, Run))
    found = {signature.name for graph in runs for signature in graph.outputs}
    return found | {name for s in hosts(body) for name in s.writes}


def _read_in_loops(body: Sequence[Statement]) -> set[str]:
    found: set[str] = set()
    for s in body:
        if isinstance(s, If):
            found |= _read_in_loops(s.body)
        elif isinstance(s, Loop):
            found |= read_names(s.body)
    return found


# Dependencies of a block ------------------------------------------------------------------------


def _dependencies(graph: Graph) -> dict[str, frozenset[str]]:
    """Return for each output the names of the inputs it depends on."""
    sets: list[int] = []  # bit k: depends on input k
    for op, a in graph.nodes:
        bits = 0
        if op == "input":
            bits = 1 << int(a[0])
        elif op != "const":
            for i in a:
                bits |= sets[int(i)]
        sets.append(bits)
    found: dict[str, frozenset[str]] = {}
    for s, result in zip(graph.outputs, graph.results, strict=True):
        bits = 0
        for i in result:
            bits |= sets[i]
        names = (x.name for k, x in enumerate(graph.inputs) if bits >> k & 1)
        found[s.name] = frozenset(names)
    return found


class _Known:
    """Dependencies of graphs, each computed once."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Graph, dict[str, frozenset[str]]]] = {}

    def of(self, graph: Graph) -> dict[str, frozenset[str]]:
        if id(graph) not in self._found:
            self._found[id(graph)] = graph, _dependencies(graph)
        return self._found[id(graph)][1]


def _divergent(
    body: Sequence[Statement], cells: Mapping[str, Cell], inputs: Mapping[str, Cell]
) -> frozenset[str]:
    """Return the names that may differ from run to run: the least fixed point."""
    known, found = _Known(), set(inputs)

    def visit(body: Sequence[Statement], apart: bool) -> None:
        for s in body:
            if isinstance(s, Run):
                for name, sources in known.of(graph_block(s).graph).items():
                    if apart or sources & found:
                        found.add(name)
            elif isinstance(s, Random):
                if apart or s.reads & found:
                    found.add(s.cell)
            elif isinstance(s, Host):
                found.update(s.writes)
            elif isinstance(s, Loop):
                visit(s.body, apart or (isinstance(s, While | If) and s.cell in found))

    before = -1
    while len(found) > before:
        before = len(found)
        visit(body, apart=False)
    return frozenset(found & set(cells))


# Liveness ----------------------------------------------------------------------------------------


class _Pruner:
    """Drops dead writes and marks the writes to be masked."""

    def __init__(self, cells: _Names, divergent: _Names) -> None:
        self._cells, self._divergent, self._known = cells, divergent, _Known()

    def body(
        self, body: Sequence[Statement], after: _Names, kept: _Names
    ) -> tuple[tuple[Statement, ...], _Names]:
        """Return the statements that remain, and the cells that are live before them.

        Args:
            body: the statements.
            after: cells that are live after them.
            kept: cells that are live where lanes that do not take part go on.
        """
        found: list[Statement] = []
        for s in reversed(body):
            new, after = self._statement(s, after, kept)
            if new is not None:
                found.append(new)
        return tuple(found[::-1]), after

    def _live(self, body: Sequence[Statement], after: _Names) -> _Names:
        """Return the cells that are live before some statements."""
        for s in reversed(body):
            after = self._before(s, after)
        return after

    def _before(self, s: Statement, after: _Names) -> _Names:
        match s:
            case Run():
                found = self._known.of(graph_block(s).graph)
                live = [sources for name, sources in found.items() if name in after]
                return (after - set(found)) | self._own(live)
            case Random():
                return (after - {s.cell}) | self._own([s.reads]) if s.cell in after else after
            case Host():
                return (after - set(s.writes)) | self._own([frozenset(s.reads)])
            case Sample():
                return after | self._own(self._known.of(graph_block(s).graph).values())
            case Record():
                return after | self._own(self._known.of(graph_block(s).graph).values()) | {s.index}
            case If():
                return after | {s.cell} | self._live(s.body, after)
            case For() | ForEach() | Repeat() | While():
                at_end = self.live_at_end(s, after)
                first = self._live(s.body, at_end)
                return first if isinstance(s, For) else at_end | first

    def live_at_end(self, s: For | ForEach | Repeat | While, after: _Names) -> _Names:
        """Return the cells that are live at the end of a loop's body."""
        live = after | {s.cell} if isinstance(s, While) else after
        while True:
            more = live | self._live(s.body, live)
            if more == live:
                return live
            live = more

    def _own(self, sources: Iterable[_Names]) -> _Names:
        return frozenset[str]().union(*sources) & self._cells

    def _statement(
        self, s: Statement, after: _Names, kept: _Names
    ) -> tuple[Statement | None, _Names]:
        before = self._before(s, after)
        match s:
            case Run():
                block = graph_block(s)
                less = _kept(block.graph, after)
                written = frozenset(x.name for x in less.outputs)
                if not written:
                    return None, before
                made = replace(
                    block, graph=less, first=block.first & written, masked=written & kept
                )
                return Run(made), before
            case Random():
                drawn = replace(s, masked=s.cell in kept)
                return drawn if s.cell in after else None, before
            case Sample() | Record() | Host():
                return s, before
            case If():
                inner = kept | after if s.cell in self._divergent else kept
                body, _ = self.body(s.body, after, inner)
                return replace(s, body=body), before
            case For() | ForEach() | Repeat() | While():
                inner = kept
                if isinstance(s, While) and s.cell in self._divergent:
                    inner = kept | after | {s.cell}  # or a lane that has left would come back
                body, _ = self.body(s.body, self.live_at_end(s, after), inner)
                return replace(s, body=body), before


def _kept(graph: Graph, names: Iterable[str]) -> Graph:
    """Return a graph reduced to some of its outputs and their dependencies."""
    wanted = set(names)
    chosen = [k for k, s in enumerate(graph.outputs) if s.name in wanted]
    outputs = tuple(graph.outputs[k] for k in chosen)
    less = Graph(graph.inputs, outputs, graph.nodes, [graph.results[k] for k in chosen])
    return less.rebuilt(lambda old, new, op, a, i: new.op(op, *a))


# Rolls -------------------------------------------------------------------------------------------


def _with_rolls(
    body: Sequence[Statement], cells: dict[str, Cell], lanes: int
) -> tuple[tuple[Statement, ...], dict[str, Cell]]:
    """Return the statements with the rolls of their blocks, and the cells with those they need."""
    widths = {name: s.wide for name, s in cells.items()}
    sizes = {False: 0, True: 0}

    def changed(s: Run | Sample | Record) -> Statement:
        block = graph_block(s)
        if lanes > 1 and not isinstance(s, Run):  # rows of lanes are stored as a whole
            return s
        rolls = (
            rolls_of_each(block.graph, block.vectors, block.each)
            if block.each
            else rolled(block.graph, cells)
        )
        if rolls is None:
            return s
        # the elements of a block for each of them do not read one another
        written = widths if isinstance(s, Run) and not block.each else {}
        for own in staged(rolls, block.graph, block.wide, written):
            stop = own.start + rolls.rolls[own.roll].copies
            sizes[own.wide] = max(sizes[own.wide], stop)
        return replace(s, block=replace(block, rolls=rolls))

    def visited(body: Sequence[Statement]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for s in body:
            if isinstance(s, Loop):
                found.append(replace(s, body=visited(s.body)))
            else:
                found.append(s if isinstance(s, Random | Host) else changed(s))
        return tuple(found)

    done = visited(body)
    more = {STAGED[w]: Cell(STAGED[w], (size,), wide=w) for w, size in sizes.items() if size}
    return done, cells | more


# Joining blocks ----------------------------------------------------------------------------------


def _joined_in(
    body: Sequence[Statement], cells: Mapping[str, Cell], single: bool
) -> tuple[Statement, ...]:
    """Return the statements with adjacent blocks joined where that does not change a rounding."""
    found: list[Statement] = []
    for s in body:
        if isinstance(s, Loop):
            s = replace(s, body=_joined_in(s.body, cells, single))
        last = found[-1] if found else None
        if isinstance(s, Run) and isinstance(last, Run):
            one, two = graph_block(last), graph_block(s)
            passed = {x.name for x in one.graph.outputs} & {x.name for x in two.graph.inputs}
            rounded = single and one.wide and any(not cells[name].wide for name in passed)
            alone = one.each or two.each or rounded
            if not alone and (not single or one.wide == two.wide):
                found[-1] = Run(_both(one, two, single and not one.wide))
                continue
        found.append(s)
    return tuple(found)


def _both(one: GraphBlock, two: GraphBlock, single: bool) -> GraphBlock:
    late = {s.name for s in two.graph.outputs}
    early = {s.name for s in one.graph.outputs}
    return GraphBlock(
        joined(one.graph, two.graph, single), one.wide and two.wide, f"{one.name}, {two.name}",
        frozenset((early | one.first) - late),
    )  # fmt: skip


def joined(first: Graph, then: Graph, single: bool) -> Graph:
    """Return two blocks joined into one graph: the second reads the outputs of the first.

    Args:
        first: a graph.
        then: another.
        single: whether they are computed in single precision. Constants are then rounded, so that
            operations on those that pass from one to the other are folded with the same result.
    """
    made = {s.name for s in first.outputs}
    inputs = {s.name: s for s in (*first.inputs, *(s for s in then.inputs if s.name not in made))}
    order = list(inputs)
    new = Graph(tuple(inputs.values()))

    def rounded(i: int) -> int:
        op, a = new.nodes[i]
        return new.const(float(np.float32(a[0]))) if single and op == "const" else i

    def copied(graph: Graph, source: Callable[[str, int], int]) -> dict[Signature, list[int]]:
        place: list[int] = []
        for op, a in graph.nodes:
            if op == "const":
                place.append(rounded(new.const(a[0])))
            elif op == "input":
                place.append(source(graph.inputs[int(a[0])].name, int(a[1])))
            else:
                place.append(rounded(new.op(op, *(place[int(i)] for i in a))))
        results = ([place[i] for i in result] for result in graph.results)
        return dict(zip(graph.outputs, results, strict=True))

    def read(name: str, j: int) -> int:
        return new.input(order.index(name), j)

    early = copied(first, read)
    passed = {s.name: result for s, result in early.items()}
    late = copied(then, lambda name, j: passed[name][j] if name in passed else read(name, j))
    written = early | late
    new.outputs, new.results = tuple(written), list(written.values())
    return new
