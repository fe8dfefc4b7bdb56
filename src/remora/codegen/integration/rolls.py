"""Rolls: copies of one computation within a block, for which code generation emits a loop.

Most blocks of a run do the same for every coordinate, joint or module: for a robot with a thousand
of them, straight-line code would repeat every operation a thousand times. A node of a graph is

- *uniform* if it depends on single numbers only, such as the step size;
- *local* if it depends on at most `MOST_LOCAL` elements of cells;
- *shared* otherwise, such as a sum over all coordinates.

Local nodes that depend on each other are a *piece*. Pieces that are equal but for the elements they
read and write make a roll. First come the uniform nodes, then the rolls, then everything else as
straight-line code. Each number is the result of the same operations as before, so it has the same
bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import CONDITIONS, Graph

#: Elements of an array that a block with rolls reads, at least: short loops are no faster to
#: compile, and slower.
LEAST_ELEMENTS = 200
#: Elements of cells on which a local node depends, at most.
MOST_LOCAL = 64
#: Operations, loads and stores that the rolls of a block save, at least, to be worth their loops.
LEAST_SAVED = 2000
#: Copies of a piece that make a roll, at least.
FEWEST_COPIES = 4
#: Operations whose first two arguments can be exchanged.
_SYMMETRIC = frozenset(("add", "mul", "rounded_mul", "fma", "and", "or", "eq", "ne"))
_UNIFORM, _LOCAL, _SHARED = range(3)


class Roll(NamedTuple):
    """A piece and its copies.

    Attributes:
        nodes: the operations of the first copy, in order.
        reads: the elements that it reads, as nodes.
        sources: elements that each copy reads, `(copies, reads)`.
        writes: number of an output, and node of the first copy that it receives.
        targets: elements that each copy writes, `(copies, writes)`.
        kept: nodes of the first copy that straight-line code reads.
        keeps: the corresponding nodes of each copy, `(copies, kept)`.
    """

    nodes: tuple[int, ...]
    reads: tuple[int, ...]
    sources: Array
    writes: tuple[tuple[int, int], ...]
    targets: Array
    kept: tuple[int, ...]
    keeps: Array

    @property
    def copies(self) -> int:
        """Number of copies."""
        return len(self.sources)


class Rolls(NamedTuple):
    """How the code of a graph is arranged.

    Attributes:
        before: the uniform nodes, in order.
        rolls: the rolls.
        after: operations that are straight-line code, in order.
        results: output, element and node of the numbers that they and `before` write.
    """

    before: tuple[int, ...]
    rolls: tuple[Roll, ...]
    after: tuple[int, ...]
    results: tuple[tuple[int, int, int], ...]


class Staging(NamedTuple):
    """Numbers that wait in memory until a block has read everything.

    Attributes:
        roll: number of the roll.
        output: number of the output that it writes, or None for nodes that are kept.
        column: of `targets` or `keeps`.
        wide: whether they are in double precision.
        start: first place in the cell of this precision, see `STAGED`.
    """

    roll: int
    output: int | None
    column: int
    wide: bool
    start: int


#: Cells of the numbers that wait, by whether they are wide.
STAGED = {False: "rolled", True: "rolled, wide"}


class _Piece(NamedTuple):
    """A piece: its operations and reads in the order of all equal pieces, and what it writes."""

    nodes: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[tuple[int, int, int]]
    kept: Sequence[int]

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.reads) + len(self.writes) + len(self.kept)


def rolled(graph: Graph, varying: Collection[str]) -> Rolls | None:
    """Return the rolls of a graph; None: they would save too little.

    Args:
        graph: as prepared for lowering.
        varying: names of the inputs that a loop can read element by element.
    """
    if max((s.size for s in graph.inputs if s.name in varying), default=0) < LEAST_ELEMENTS:
        return None
    return _Rolling(graph, varying).rolls()


def rolls_of_each(graph: Graph, vectors: Collection[str], count: int) -> Rolls:
    """Return the rolls of a graph that is executed for each of `count` elements.

    Args:
        graph: for one element.
        vectors: names of the inputs that are read element by element.
        count: number of elements.
    """
    needed, varies = graph.needed(), [False] * len(graph.nodes)
    nodes, reads, before = list[int](), list[int](), list[int]()
    for i, (op, a) in enumerate(graph.nodes):
        if op == "input":
            varies[i] = graph.inputs[int(a[0])].name in vectors
        elif op != "const":
            varies[i] = any(varies[int(k)] for k in a)
        if needed[i]:
            (before if not varies[i] else reads if op == "input" else nodes).append(i)
    writes = [(k, e, i) for k, result in enumerate(graph.results) for e, i in enumerate(result)]
    element = np.arange(count)[:, None]
    sources = count * np.array([[graph.nodes[i][1][1] for i in reads]], np.int64) + element
    targets = count * np.array([[e for _, e, _ in writes]], np.int64) + element
    none = np.zeros((count, 0), np.int64)
    roll = Roll(
        tuple(nodes), tuple(reads), sources, tuple((k, i) for k, _, i in writes), targets, (), none
    )
    return Rolls(tuple(before), (roll,), (), ())


def staged(rolls: Rolls, graph: Graph, wide: bool, widths: Mapping[str, bool]) -> list[Staging]:
    """Return what waits in memory: what is kept, and new values of cells that the block reads.

    Args:
        rolls: of the graph.
        graph: of a block.
        wide: whether the block is.
        widths: whether each cell that it writes is; outputs that are no cells do not wait.
    """
    names = {graph.inputs[int(a[0])].name for op, a in graph.nodes if op == "input"}
    used = {False: 0, True: 0}
    found = list[Staging]()
    for r, roll in enumerate(rolls.rolls):
        own: list[tuple[int | None, int, bool]] = [(None, c, wide) for c in range(len(roll.kept))]
        for c, (k, _) in enumerate(roll.writes):
            name = graph.outputs[k].name
            if name in widths and name in names:
                own.append((k, c, widths[name]))
        for output, column, width in own:
            found.append(Staging(r, output, column, width, used[width]))
            used[width] += roll.copies
    return found


class _Rolling:
    """Finds the rolls of a graph."""

    def __init__(self, graph: Graph, varying: Collection[str]) -> None:
        """Find out of which kind each node is.

        Args:
            graph: the graph.
            varying: as in `rolled`.
        """
        self._graph, self._needed = graph, graph.needed()
        self._kind = [_UNIFORM] * len(graph.nodes)
        #: The same number for nodes that are equal but for the elements they read.
        self._alike = [0] * len(graph.nodes)
        support: dict[int, frozenset[int]] = {}
        forms: dict[Any, int] = {}
        for i, (op, a) in enumerate(graph.nodes):
            if not self._needed[i]:
                continue
            kind, form = _UNIFORM, (op, i)
            if op == "input":
                signature = graph.inputs[int(a[0])]
                if signature.name in varying and signature.size > 1:
                    kind, form, support[i] = _LOCAL, ("each", a[0]), frozenset((i,))
            elif op != "const":
                parts = [support[k] for k in a if self._kind[k] == _LOCAL]
                if _SHARED in (self._kind[int(k)] for k in a):
                    kind = _SHARED
                elif parts:
                    support[i] = parts[0].union(*parts[1:])
                    kind = _LOCAL if len(support[i]) <= MOST_LOCAL else _SHARED
                    form = (op, -1, *(self._alike[k] for k in self._arguments(i)))
            self._kind[i], self._alike[i] = kind, forms.setdefault(form, len(forms))

    def rolls(self) -> Rolls | None:
        """Return the rolls if they save enough."""
        groups, straight = self._pieces()
        rolls = list[Roll]()
        after = [i for i, needed in enumerate(self._needed) if needed and self._kind[i] == _SHARED]
        saved = 0
        for pieces in groups.values():
            if len(pieces) < FEWEST_COPIES:
                after += [i for piece in pieces for i in piece.nodes]
                straight += [write for piece in pieces for write in piece.writes]
                continue
            saved += (len(pieces) - 1) * pieces[0].size
            rolls.append(self._roll(pieces))
        if saved < LEAST_SAVED:
            return None
        before = [
            i for i, needed in enumerate(self._needed) if needed and self._kind[i] == _UNIFORM
        ]
        return Rolls(tuple(before), tuple(rolls), tuple(sorted(after)), tuple(sorted(straight)))

    # Pieces ---------------------------------------------------------------------------------------

    def _pieces(self) -> tuple[dict[Any, list[_Piece]], list[tuple[int, int, int]]]:
        """Return equal pieces, by what they have in common, and the results of shared nodes."""
        owner = self._owners()
        members: dict[int, list[int]] = defaultdict(list)
        writes: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        kept: dict[int, set[int]] = defaultdict(set)
        groups: dict[Any, list[_Piece]] = defaultdict(list)
        straight = list[tuple[int, int, int]]()
        for i, own in owner.items():
            members[own].append(i)
        for i, (_, a) in enumerate(self._graph.nodes):
            if self._needed[i] and self._kind[i] == _SHARED and self._computed(i):
                for k in a:
                    if k in owner:
                        kept[owner[k]].add(k)
        for k, result in enumerate(self._graph.results):
            for j, i in enumerate(result):
                if i in owner:
                    writes[owner[i]].append((k, j, i))
                elif self._kind[i] == _SHARED:
                    straight.append((k, j, i))
                else:  # an element of an input, or a number that is the same in all copies
                    reads = (i,) if self._kind[i] == _LOCAL else ()
                    groups["copied", k, self._alike[i]].append(_Piece((), reads, ((k, j, i),), ()))
        for own, nodes in members.items():
            if any(self._graph.nodes[i][0] in CONDITIONS for i in kept[own]):
                groups["with a condition", own].append(_Piece(nodes, (), writes[own], ()))
            else:
                piece, key = self._in_order(writes[own], kept[own])
                groups[key].append(piece)
        return groups, straight

    def _owners(self) -> dict[int, int]:
        """Return the piece of each local operation, as one of its nodes."""
        parent: dict[int, int] = {}

        def root(i: int) -> int:
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        for i, (_, a) in enumerate(self._graph.nodes):
            if self._needed[i] and self._kind[i] == _LOCAL and self._computed(i):
                parent[i] = i
                for k in a:
                    if k in parent:
                        parent[root(k)] = i
        return {i: root(i) for i in parent}

    def _in_order(
        self, writes: Sequence[tuple[int, int, int]], kept: Collection[int]
    ) -> tuple[_Piece, Any]:
        """Return a piece in the order that equal pieces share, and what they have in common."""
        results = sorted(writes, key=lambda w: (w[0], self._alike[w[2]], w[1]))
        keeps = sorted(kept, key=lambda i: (self._alike[i], i))
        number: dict[int, int] = {}
        nodes, reads, form = list[int](), list[int](), list[Any]()

        def visit(start: int) -> None:
            waiting = [start]
            while waiting:
                i = waiting[-1]
                if i in number:
                    waiting.pop()
                    continue
                if self._kind[i] == _UNIFORM:
                    number[i] = -1 - i
                    continue
                if not self._computed(i):
                    number[i] = len(number)
                    reads.append(i)
                    form.append(self._graph.nodes[i][1][0])
                    continue
                arguments = self._arguments(i)
                missing = [k for k in arguments if k not in number]
                if missing:
                    waiting += reversed(missing)
                    continue
                form.append((self._graph.nodes[i][0], *(number[k] for k in arguments)))
                number[i] = len(number)
                nodes.append(i)

        for i in (*(w[2] for w in results), *keeps):
            visit(i)
        key = (
            tuple(form), tuple((k, number[i]) for k, _, i in results),
            tuple(number[i] for i in keeps),
        )  # fmt: skip
        return _Piece(nodes, reads, results, keeps), key

    def _computed(self, i: int) -> bool:
        return self._graph.nodes[i][0] not in ("input", "const")

    def _arguments(self, i: int) -> Sequence[int]:
        """Return the arguments of an operation, in the order that equal pieces share."""
        op, a = self._graph.nodes[i]
        if op in _SYMMETRIC and self._alike[a[1]] < self._alike[a[0]]:
            return (a[1], a[0], *a[2:])
        return a

    def _roll(self, pieces: Sequence[_Piece]) -> Roll:
        first, nodes = pieces[0], self._graph.nodes

        def table(rows: Sequence[Sequence[int]]) -> Array:
            return np.array(rows, dtype=np.int64).reshape(len(pieces), -1)

        return Roll(
            tuple(first.nodes), tuple(first.reads),
            table([[nodes[i][1][1] for i in piece.reads] for piece in pieces]),
            tuple((k, i) for k, _, i in first.writes),
            table([[j for _, j, _ in piece.writes] for piece in pieces]),
            tuple(first.kept), table([piece.kept for piece in pieces]),
        )  # fmt: skip
