"""Step loops: fixed-step time integration of many runs, with the whole loop in machine code.

    cells = start(inputs)
    for m in range(M):                          # intervals, each with a sample at its end
        for i in range(counts[m]):
            clock = starts[m] + i steps[m], steps[m]
            for row in rows:                    # the stages of a step
                cells = prepare(cells, clock, row)
                cells = timed(cells, clock, row)        # in double precision; may be missing
                cells = evaluate(cells, clock, row)
            cells = finish(cells, clock)
            # with `again`, the name of a cell: repeat stages and finish until it is 0 in all runs
        outputs[m] = sample(cells, clock)

Each block is a graph whose inputs and outputs are named cells, so that the largest block,
`evaluate`, occurs once in the code regardless of the number of stages. A block reads all of its
inputs before it writes.

Times are computed in double precision. In single precision a time of 1e6 s is resolved to 0.06 s
only, so everything that depends on time is a block of its own, `timed`. It is computed in double
precision throughout and its results are then rounded. The other blocks receive a rounded clock, of
which they need the step size only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.ir import graph_passes
from remora.codegen.ir.arguments import batch_of, common_batch
from remora.codegen.ir.graph import Graph, Signature, interpret
from remora.codegen.ir.trace import trace, with_symbols
from remora.codegen.llvm.lowering import used_inputs
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName

#: Inputs of a block besides cells: `[t, h]`, time and step size, and the stage's coefficients.
CLOCK, ROW = "clock", "row"
#: The additional inputs that each block may read.
_EXTRAS = {
    "prepare": (CLOCK, ROW),
    "timed": (CLOCK, ROW),
    "evaluate": (CLOCK, ROW),
    "finish": (CLOCK,),
    "sample": (CLOCK,),
}


class Block(NamedTuple):
    """A block to be traced.

    Attributes:
        function: maps one array per name read to one array per name written.
        reads: names of inputs for `start`, otherwise of cells, "clock" or "row".
        writes: names of cells; for `sample`, of the step loop's outputs.
    """

    function: Callable[..., Any]
    reads: Sequence[str]
    writes: Sequence[str]


@dataclass(frozen=True, eq=False)
class StepLoop:
    """The blocks of a step loop; see the module docstring.

    Attributes:
        inputs: arguments of a run.
        cells: variables that a run carries from block to block.
        outputs: arrays of one sample.
        rows: coefficients, `(stages, R)`.
        start: initializes all cells.
        prepare: first block of a stage.
        evaluate: second block, which writes no cell that it reads.
        finish: end of a step.
        sample: computes the outputs.
        timed: computes what depends on time, between `prepare` and `evaluate`, in double precision.
        again: name of a scalar cell that is 1 at the start of a step; stages and `finish` are
            repeated while it is positive in any of the runs processed together. Where it is 0 they
            must not change anything. None: no repetition.
    """

    inputs: tuple[Signature, ...]
    cells: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    rows: Array
    start: Graph
    prepare: Graph
    evaluate: Graph
    finish: Graph
    sample: Graph
    timed: Graph | None = None
    again: str | None = None

    def __post_init__(self) -> None:
        """Raise if the blocks do not fit together."""
        rows = np.array(self.rows, dtype=float)
        if rows.ndim != 2 or not len(rows):
            raise ShapeError(f"rows of a march must be (stages, coefficients), not {rows.shape}")
        if not np.isfinite(rows).all():
            raise InvalidValue("rows of a march must be finite")
        rows.flags.writeable = False
        object.__setattr__(self, "rows", rows)
        _unlike("inputs", self.inputs)
        _unlike("outputs", self.outputs)
        known = _unlike("cells", self.cells) | _given(rows)
        if len(known) < len(self.cells) + 2:
            raise RemoraError(f"no cell of a march may be called {CLOCK!r} or {ROW!r}")
        if self.again is not None and known.get(self.again) != Signature(self.again, (1,)):
            raise RemoraError(f"cell {self.again!r}, which repeats steps, must have shape (1,)")
        _matched("start", "reads", self.start.inputs, self.inputs)
        _matched("start", "writes", self.start.outputs, self.cells, complete=True)
        for name, graph in self.blocks().items():
            if name == "start":
                continue
            extras = _EXTRAS[name]
            allowed = [*self.cells, *(known[e] for e in extras)]
            _matched(name, "reads", graph.inputs, allowed)
            last = name == "sample"
            written = self.outputs if last else self.cells
            _matched(name, "writes", graph.outputs, written, complete=last)
        for name in ("timed", "evaluate"):
            block = self.blocks().get(name)
            if block is None:
                continue
            both = {s.name for s in block.inputs} & {s.name for s in block.outputs}
            if both:
                raise RemoraError(
                    f"block {name!r} of a march reads and writes {', '.join(sorted(both))}: "
                    "let 'prepare' or 'finish' do that"
                )

    @classmethod
    def traced(
        cls,
        inputs: Sequence[Signature],
        cells: Sequence[Signature],
        rows: ArrayLike,
        *,
        start: Block,
        prepare: Block,
        evaluate: Block,
        finish: Block,
        sample: Block,
        timed: Block | None = None,
        again: str | None = None,
    ) -> StepLoop:
        """Return the step loop of five or six functions on arrays.

        Args:
            inputs: names and shapes of the arguments of a run.
            cells: names and shapes of the variables that it carries.
            rows: coefficients, `(stages, R)`.
            start: reads inputs and writes all cells.
            prepare: reads and writes cells.
            evaluate: reads cells and writes other cells.
            finish: reads and writes cells.
            sample: reads cells and writes the outputs.
            timed: reads cells and writes other cells, in double precision.
            again: name of the cell that controls whether a step is repeated.
        """
        rows = np.array(rows, dtype=float)
        given = {s.name: s for s in inputs}
        known = {s.name: s for s in cells} | _given(rows)

        def graph(role: str, block: Block, known: Mapping[str, Signature]) -> Graph:
            for name in block.reads:
                if name not in known:
                    raise UnknownName(f"cell that block {role!r} reads", name, known)
            made = with_symbols(trace(block.function, [known[name] for name in block.reads]))
            if len(made.outputs) != len(block.writes):
                count = f"{len(made.outputs)} arrays for {', '.join(block.writes)}"
                raise ShapeError(f"block {role!r} of a march returns {count}")
            pairs = zip(block.writes, made.outputs, strict=True)
            made.outputs = tuple(Signature(name, s.shape) for name, s in pairs)
            return made

        sampled = graph("sample", sample, known)
        return cls(
            tuple(inputs), tuple(cells), sampled.outputs, rows,
            graph("start", start, given), graph("prepare", prepare, known),
            graph("evaluate", evaluate, known), graph("finish", finish, known), sampled,
            timed=None if timed is None else graph("timed", timed, known), again=again,
        )  # fmt: skip

    def prepared(self, dtype: str, fma: bool = True) -> StepLoop:
        """Return the step loop with all blocks ready for lowering, see `graph_passes.prepared`."""
        made = {
            name: graph_passes.prepared(graph, "float64" if name == "timed" else dtype, fma=fma)
            for name, graph in self.blocks().items()
        }
        return replace(self, **made)

    def blocks(self) -> dict[str, Graph]:
        """Return the graphs by name, in the order of execution."""
        named: dict[str, Graph | None] = {n: getattr(self, n) for n in ("start", *_EXTRAS)}
        return {name: graph for name, graph in named.items() if graph is not None}

    def interpret(
        self,
        arguments: Sequence[ArrayLike],
        starts: ArrayLike,
        steps: ArrayLike,
        counts: ArrayLike,
        dtype: str = "float64",
    ) -> list[Array]:
        """Perform all runs in NumPy, operation by operation: the reference for kernels.

        For a step loop `prepared` for a processor, the kernel's results are bitwise identical.

        Args:
            arguments: one array per input, batch shape in front.
            starts: time at the start of each interval.
            steps: step size in each interval.
            counts: number of steps in each interval.
            dtype: precision of all numbers except times.
        """
        starts, steps, counts = timetable(starts, steps, counts)
        arrays = [np.asarray(a, dtype) for a in arguments]
        batches = [batch_of("march", s, a.shape) for a, s in zip(arrays, self.inputs, strict=True)]
        batch = common_batch(self.inputs, batches)
        runs = math.prod(batch)
        named: dict[str, Array] = {}
        for a, s in zip(arrays, self.inputs, strict=True):
            named[s.name] = np.broadcast_to(a, batch + s.shape).reshape(runs, *s.shape)

        def everywhere(numbers: Sequence[float], dtype: str) -> Array:
            return np.broadcast_to(np.asarray(numbers, dtype), (runs, len(numbers)))

        def run(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
            made = interpret(graph, [values[s.name] for s in graph.inputs], dtype)
            return {s.name: x for s, x in zip(graph.outputs, made, strict=True)}

        def run_timed(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
            wide = [np.asarray(values[s.name], "float64") for s in graph.inputs]
            made = interpret(graph, wide, "float64")
            return {s.name: x.astype(dtype) for s, x in zip(graph.outputs, made, strict=True)}

        cells = run(self.start, named)
        samples: dict[str, list[Array]] = {s.name: [] for s in self.outputs}
        for begin, h, count in zip(starts, steps, counts, strict=True):
            for i in range(count):
                clock = [begin + float(i) * h, h]
                cells[CLOCK] = everywhere(clock, dtype)
                if self.again is not None:
                    cells[self.again] = np.ones((runs, 1), dtype)
                while True:
                    for row in self.rows:
                        cells[ROW] = everywhere(row, dtype)
                        cells |= run(self.prepare, cells)
                        if self.timed is not None:
                            exact = {**cells, CLOCK: everywhere(clock, "float64")}
                            cells |= run_timed(self.timed, exact)
                        cells |= run(self.evaluate, cells)
                    cells |= run(self.finish, cells)
                    if self.again is None or not np.any(cells[self.again] > 0.0):
                        break
            cells[CLOCK] = everywhere([begin + float(count) * h, h], dtype)
            for name, value in run(self.sample, cells).items():
                samples[name].append(value)
        results: list[Array] = []
        for s in self.outputs:
            made = np.empty((runs, len(counts), *s.shape), dtype)
            for m, value in enumerate(samples[s.name]):
                made[:, m] = value
            results.append(made.reshape(*batch, *made.shape[1:]))
        return results


def _given(rows: Array) -> dict[str, Signature]:
    width = rows.shape[-1] if rows.ndim else 0
    return {CLOCK: Signature(CLOCK, (2,)), ROW: Signature(ROW, (width,))}


def _unlike(what: str, signatures: Iterable[Signature]) -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for s in signatures:
        if s.name in found:
            raise RemoraError(f"{what} of a march: {s.name!r} is named twice")
        found[s.name] = s
    return found


def _matched(
    block: str,
    does: str,
    own: Sequence[Signature],
    allowed: Iterable[Signature],
    complete: bool = False,
) -> None:
    """Raise if a block has unknown or missing names, or other shapes."""
    known = {s.name: s for s in allowed}
    for name, s in _unlike(f"block {block!r}", own).items():
        if name not in known:
            raise UnknownName(f"cell that block {block!r} {does}", name, known)
        if s.shape != known[name].shape:
            raise ShapeError(
                f"block {block!r} of a march {does} {name!r} of shape {s.shape}, "
                f"which has shape {known[name].shape}"
            )
    missing = [name for name in known if name not in {s.name for s in own}]
    if complete and missing:
        raise RemoraError(f"block {block!r} of a march must set {', '.join(missing)}")


def timetable(starts: ArrayLike, steps: ArrayLike, counts: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the intervals of a step loop as contiguous arrays, or raise if they are invalid."""
    given = np.asarray(counts)
    if given.size and given.dtype.kind not in "iu":
        raise ShapeError(f"counts must be whole numbers of steps, not {given.dtype}")
    begin, step = (np.ascontiguousarray(x, dtype=float) for x in (starts, steps))
    number = np.ascontiguousarray(given, dtype=np.int64)
    shapes = [x.shape for x in (begin, step, number)]
    if len(shapes[0]) != 1 or len(set(shapes)) != 1:
        raise ShapeError(f"starts, steps and counts must be of one length, not {shapes}")
    if not (np.isfinite(begin).all() and np.isfinite(step).all()):
        raise InvalidValue("starts and steps must be finite")
    if (number < 0).any():
        raise InvalidValue(f"counts must not be negative: {number.min()}")
    return begin, step, number


# Compilation -------------------------------------------------------------------------------------


class StepLoopPlan(NamedTuple):
    """A step loop prepared for code generation.

    Attributes:
        start: initializes the cells.
        stages: the graphs of a stage by name, in order: `stage`, which is `prepare` and `evaluate`
            joined; or `prepare`, `timed` and `evaluate`.
        ahead: which outputs of `stage` come from `prepare`.
        finish: end of a step.
        sample: computes the outputs.
        places: offsets of the cells that are stored in memory.
        size: total size of these cells, in numbers.
    """

    start: Graph
    stages: dict[str, Graph]
    ahead: frozenset[str]
    finish: Graph
    sample: Graph
    places: dict[str, int]
    size: int

    @property
    def graphs(self) -> dict[str, Graph]:
        """All graphs by name."""
        own = {"start": self.start, "finish": self.finish, "sample": self.sample}
        return {**own, **self.stages}


def planned(march: StepLoop, dtype: str, fma: bool = True) -> StepLoopPlan:
    """Return the plan of a step loop; cells used only within a stage need no memory."""
    ready = march.prepared(dtype, fma)
    if ready.timed is None:
        stages = {"stage": _joined(ready.prepare, ready.evaluate)}
        first = frozenset(s.name for s in ready.prepare.outputs)
        ahead = first - {s.name for s in ready.evaluate.outputs}
    else:
        blocks = ready.blocks()
        stages = {name: blocks[name] for name in ("prepare", "timed", "evaluate")}
        ahead = frozenset[str]()
    read = {
        s.name
        for g in (*stages.values(), ready.finish, ready.sample)
        for s, used in zip(g.inputs, used_inputs(g), strict=True)
        if used
    }
    places: dict[str, int] = {}
    size = 0
    for s in march.cells:
        if s.name in read:
            places[s.name] = size
            size += s.size
    return StepLoopPlan(
        _kept(ready.start, places), {n: _kept(g, places) for n, g in stages.items()}, ahead,
        _kept(ready.finish, places), ready.sample, places, size,
    )  # fmt: skip


def _joined(first: Graph, then: Graph) -> Graph:
    """Return two blocks joined into one graph: the second reads the outputs of the first."""
    made = {s.name for s in first.outputs}
    inputs = {s.name: s for s in (*first.inputs, *(s for s in then.inputs if s.name not in made))}
    order = list(inputs)
    new = Graph(tuple(inputs.values()))

    def copied(graph: Graph, source: Callable[[str, int], int]) -> dict[Signature, list[int]]:
        place: list[int] = []
        for op, a in graph.nodes:
            if op == "const":
                place.append(new.const(a[0]))
            elif op == "input":
                place.append(source(graph.inputs[int(a[0])].name, int(a[1])))
            else:
                place.append(new.op(op, *(place[int(i)] for i in a)))
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


def _kept(graph: Graph, names: Iterable[str]) -> Graph:
    """Return a graph reduced to some of its outputs and their dependencies."""
    chosen = [k for k, s in enumerate(graph.outputs) if s.name in set(names)]
    outputs = tuple(graph.outputs[k] for k in chosen)
    less = Graph(graph.inputs, outputs, graph.nodes, [graph.results[k] for k in chosen])
    return less.rebuilt(lambda old, new, op, a, i: new.op(op, *a))
