"""Code of one step: emits the graph of an item class with its inputs loaded from memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph
from remora.codegen.llvm import lowering
from remora.codegen.llvm.lowering import Writer, constant
from remora.codegen.tree_loops.item_classes import ItemClass, LoopPlan
from remora.codegen.tree_loops.loops import LEFT, NUMBERS, RECEIVED
from remora.codegen.tree_loops.memory import LaneMemory
from remora.codegen.tree_loops.tables import Tables


@dataclass
class StepCode:
    """A kernel under construction.

    Attributes:
        plan: the loops and their item classes.
        layout: tables of offsets.
        memory: memory access.
        dtype: `float64` or `float32`.
        fma: whether the processor has a fused multiply-add.
        w: the IR so far.
        needed: declarations of called functions.
    """

    plan: LoopPlan
    layout: Tables
    memory: LaneMemory
    dtype: str
    fma: bool
    w: Writer = field(default_factory=Writer)
    needed: set[str] = field(default_factory=set[str])

    def switch(self, name: str, kind: str) -> None:
        """Branch to the block `name.ck` of class k."""
        cases = " ".join(f"i32 {k}, label %{name}.c{k}" for k in range(len(self.plan.classes)))
        self.w.put(f"switch i32 {kind}, label %{name}.c0 [{cases}]")

    def row(self, table: str, columns: Sequence[str], index: str) -> Callable[[str], str]:
        """Return a function that reads a column of a table row, each once, as i64."""
        start = self.w.emit(f"mul i64 {index}, {len(columns)}")
        values: dict[str, str] = {}

        def column(name: str) -> str:
            if name not in values:
                x = self.memory.table(self.w, table, "i32", start, list(columns).index(name))
                values[name] = self.w.emit(f"sext i32 {x} to i64")
            return values[name]

        return column

    def step(
        self,
        item_class: ItemClass,
        s: int,
        place: Callable[[str], str],
        received: Sequence[str] | None = None,
    ) -> tuple[Graph, Callable[[int], str]]:
        """Emit the operations of a class's step.

        Args:
            item_class: the class.
            s: index of the sweep.
            place: offset of the item's data, by column of the table.
            received: the numbers received, if they are in registers.

        Returns:
            The graph as emitted, and the name of each of its nodes.
        """
        graph = graph_passes.prepared(item_class.steps[s], self.dtype, fma=self.fma)
        self.needed.update(lowering.declared(graph, self.dtype, self.memory.lanes))
        names: dict[int, str] = {}

        def name(i: int) -> str:
            if i not in names:  # inputs are loaded where they are first used
                names[i] = self._source(*graph.nodes[i], place, received)
            return names[i]

        for i, (op, a) in enumerate(graph.nodes):
            if op not in ("const", "input"):
                arguments = [name(k) for k in a]
                names[i] = self.operation(op, arguments)
        return graph, name

    def operation(self, op: str, arguments: Sequence[str]) -> str:
        """Emit one operation and return the name of its result."""
        return lowering.operation(self.w, op, arguments, self.dtype, self.memory.lanes)

    def _source(
        self,
        op: str,
        a: tuple[float, ...],
        place: Callable[[str], str],
        received: Sequence[str] | None,
    ) -> str:
        w, memory = self.w, self.memory
        if op == "const":
            return constant(a[0], self.dtype, memory.lanes)
        array, element = int(a[0]), int(a[1])
        if array == NUMBERS:
            return memory.number(w, place("numbers"), element)
        if array == LEFT:
            return memory.load(w, place("kept"), element)
        if array == RECEIVED and received is not None:
            return received[element]
        if array == RECEIVED:
            return memory.load(w, place("received"), element)
        argument = array - RECEIVED - 1
        signature = self.plan.loops.inputs[argument]
        return memory.read(w, f"a{argument}", place(f"at {signature.name}"), element)
