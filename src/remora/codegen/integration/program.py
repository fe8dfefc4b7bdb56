"""Programs: control flow around traced blocks, one run per SIMD lane or GPU thread.

A program is written for one run. It has *inputs* (arguments), *cells* (variables) and a *body* of
statements:

    Run(block)              evaluate a function of cells and write cells
    Random(cell, ...)       draw random numbers into a cell
    Host(function, ...)     call a Python function that reads and writes cells
    For(rows, body)         repeat for each row of a table of coefficients
    ForEach(body)           repeat for each entry m = 0..M-1 of the tables given at the call
    Repeat(count, body)     repeat; a table holds the counts
    While(cell, body)       repeat while a cell is positive, tested at the head
    If(cell, body)          do the body if a cell is positive
    Sample(block)           write outputs, those of entry m inside a ForEach
    Record(block, index)    write outputs at a row that a cell names

Newton's iteration for √a until it converges, a different number of times in every run:

    a, x, error = (Cell(name, (1,)) for name in ("a", "x", "error"))

    def begin(a):
        return a, np.ones(1)

    def improve(a, x):
        better = 0.5 * (x + a / x)
        return better, absolute(better - x) - 1e-12

    Program(
        inputs=[a],
        cells=[x, error],
        body=[
            Run(Block(begin, reads=["a"], writes=["x", "error"])),
            While("error", [Run(Block(improve, reads=["a", "x"], writes=["x", "error"]))]),
            Sample(Block(lambda x: x, reads=["x"], writes=["root"])),
        ],
    )

**Cells** start at zero, or at the value of the input of the same name. A block reads everything
before it writes. It may read cells, inputs, and what the loops around it provide: the row of a
`For`, the entries of all tables in a `ForEach`, the counter of a `Repeat`. A name that is both an
input and a cell means the cell. Single numbers are best arrays `(1,)`, as those of loops are:
arithmetic on symbolic arrays `()` leaves arrays.

**Precision.** The kernel's precision is chosen when a program is compiled. A *wide* cell, input or
block is `float64` in every kernel: in `float32`, a time of 1e6 s would be resolved to 0.06 s only.
A wide block reads other cells without loss and rounds what it writes to them; coefficients and
tables are exact in it. A block that is not wide reads wide cells rounded, and cannot write them.
Outputs of a wide block are `float64`.

`program_interpreter.interpret` defines the meaning in NumPy; `ProgramKernel` and `CudaProgram` are
the compiled forms, `HostedProgram` that of programs with `Host` statements;
`program_c.ProgramText` writes C99.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from remora.codegen.integration.program_checks import ProgramChecker, as_cells
from remora.codegen.integration.statements import (
    Cell,
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
    hosts,
    walked,
)
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature
from remora.errors import ShapeError


@dataclass(frozen=True, eq=False)
class Program:
    """A program; see the module docstring. Its blocks are traced when it is built.

    Attributes:
        inputs: arguments of a run.
        cells: variables of a run.
        body: statements.
        tables: names of the arrays `(M,)`, `float64`, that all runs share and `ForEach` reads.
        outputs: what `Sample` and `Record` write, in the order of the statements.
    """

    inputs: Sequence[Signature]
    cells: Sequence[Signature]
    body: Sequence[Statement]
    tables: Sequence[str] = ()
    outputs: tuple[Output, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Trace the blocks; raise if the parts do not fit together."""
        inputs, cells = as_cells("inputs", self.inputs), as_cells("cells", self.cells)
        for name, cell in cells.items():
            if name in inputs and inputs[name].shape != cell.shape:
                raise ShapeError(
                    f"cell {name!r} of a program has shape {cell.shape}, the input of this name "
                    f"{inputs[name].shape}"
                )
        tables = tuple(self.tables)
        check = ProgramChecker(inputs, cells, tables)
        for k, name in enumerate(tables):
            check.new_name("table", name, tables[:k])
        object.__setattr__(self, "inputs", tuple(inputs.values()))
        object.__setattr__(self, "cells", tuple(cells.values()))
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "body", check.body(self.body, {}, certain=True))
        object.__setattr__(self, "outputs", tuple(check.outputs.values()))

    def wide(self, name: str) -> bool:
        """Return whether a cell is `float64` in every kernel."""
        return any(isinstance(s, Cell) and s.wide for s in self.cells if s.name == name)

    def wide_input(self, name: str) -> bool:
        """Return whether an input is `float64` in every kernel."""
        return any(isinstance(s, Cell) and s.wide for s in self.inputs if s.name == name)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the capacities."""
        return tuple(dict.fromkeys(o.buffer for o in self.outputs if o.per == "record"))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the Python functions that it calls."""
        return tuple(dict.fromkeys(s.function for s in hosts(self.body)))

    def blocks(self) -> list[GraphBlock]:
        """Return all blocks, in the order of the statements."""
        return [graph_block(s) for s in walked(self.body) if isinstance(s, Run | Sample | Record)]

    def prepared(self, dtype: str, fma: bool = True) -> Program:
        """Return the program with all blocks ready for lowering, see `graph_passes.prepared`.

        Args:
            dtype: `float64` or `float32`.
            fma: whether the target has a fused multiply-add.
        """

        def ready(block: GraphBlock) -> GraphBlock:
            precision = "float64" if block.wide else dtype
            return replace(block, graph=graph_passes.prepared(block.graph, precision, fma=fma))

        return self.mapped(ready)

    def mapped(self, change: Callable[[GraphBlock], GraphBlock]) -> Program:
        """Return the program with each of its blocks changed."""
        return replace(self, body=_mapped(self.body, change))

    def content(self) -> tuple[Any, ...]:
        """Return everything that the machine code depends on, to be hashed by value."""
        return self.inputs, self.cells, self.tables, self.outputs, _content(self.body)


def _mapped(
    body: Sequence[Statement], change: Callable[[GraphBlock], GraphBlock]
) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for s in body:
        if isinstance(s, Loop):
            found.append(replace(s, body=_mapped(s.body, change)))
        elif isinstance(s, Random | Host):
            found.append(s)
        else:
            found.append(replace(s, block=change(graph_block(s))))
    return tuple(found)


def _content(body: Sequence[Statement]) -> tuple[Any, ...]:
    parts: list[Any] = []
    for s in body:
        own = {k: v for k, v in vars(s).items() if k not in ("body", "block")}
        if isinstance(s, Loop):
            inner: Any = _content(s.body)
        elif isinstance(s, Random | Host):
            inner = ()
        else:
            block = graph_block(s)
            inner = block.graph.content(), block.wide, block.each, sorted(block.vectors)
        parts.append((type(s).__name__, own, inner))
    return tuple(parts)


def renamed(body: Sequence[Statement], name: Callable[[str], str]) -> list[Statement]:
    """Return statements that write no outputs, with other names of what they read and write.

    Args:
        body: statements of a program; `Sample` and `Record` are left out, and so is what is empty
            without them.
        name: name -> the new name.
    """
    found: list[Statement] = []
    for s in body:
        match s:
            case Run():
                found.append(Run(_renamed_block(graph_block(s), name)))
            case Random():
                names = {k: name(getattr(s, k)) for k in ("cell", "seed", "run", "tick")}
                found.append(replace(s, **names))
            case Host():
                reads, writes = (tuple(map(name, own)) for own in (s.reads, s.writes))
                found.append(replace(s, reads=reads, writes=writes))
            case Sample() | Record():
                pass
            case For():
                found.append(replace(s, body=renamed(s.body, name), name=name(s.name)))
            case ForEach():
                found.append(ForEach(renamed(s.body, name)))
            case Repeat():
                inner = renamed(s.body, name)
                found.append(Repeat(name(s.count), inner, name(s.index)))
            case While() | If():
                inner = renamed(s.body, name)
                if inner:
                    found.append(replace(s, cell=name(s.cell), body=inner))
    return found


def _renamed_block(block: GraphBlock, name: Callable[[str], str]) -> GraphBlock:
    graph = block.graph
    inputs, outputs = (
        tuple(Signature(name(s.name), s.shape) for s in own)
        for own in (graph.inputs, graph.outputs)
    )
    known = {node: i for i, node in enumerate(graph.nodes) if node[0] == "input"}
    made = Graph(inputs, outputs, graph.nodes, graph.results, graph.waist, known)
    return replace(block, graph=made)
