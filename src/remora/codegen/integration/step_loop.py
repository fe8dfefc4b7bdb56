"""A march: a state carried through many steps, the whole loop inside the machine code.

    cells = start(inputs)
    for m in range(M):                          # intervals, each with a sample at its end
        for i in range(counts[m]):
            clock = starts[m] + i steps[m], steps[m]
            for row in rows:                    # the stages of a step
                cells = prepare(cells, clock, row)
                cells = timed(cells, clock, row)        # in double precision; may be missing
                cells = evaluate(cells, clock, row)
            cells = finish(cells, clock)
            # with `again`, the name of a cell: from the stages on, until it is 0 in all runs
        outputs[m] = sample(cells, clock)

Each block is a graph whose inputs and outputs are cells by name, so that the large one, `evaluate`,
stands in the code once however many stages a step has. A block reads all that it needs before it
writes.

Times are made in double precision. In single precision a time of 1e6 s is known to 0.06 s only, so
whatever depends on the time is a block of its own, `timed`, which is computed in double precision
throughout and whose results are then rounded; to the other blocks the clock is rounded, of which
they need the step alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.namespace import Array, ArrayLike
from remora.codegen.ir import graph_passes
from remora.codegen.ir.arguments import batch_of, common_batch
from remora.codegen.ir.graph import Graph, Signature, interpret
from remora.codegen.ir.trace import trace, with_symbols
from remora.codegen.llvm.lowering import used_inputs
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName

#: What a block may read beside cells: `[t, h]`, time and step, and the stage's row of coefficients.
CLOCK, ROW = "clock", "row"
#: What each block may read beside the cells.
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
        function: takes an array for each name that is read and returns one for each written.
        reads: names of inputs for `start`, else of cells, "clock" or "row".
        writes: names of cells, for `sample` those of the march's outputs.
    """

    function: Callable[..., Any]
    reads: Sequence[str]
    writes: Sequence[str]


@dataclass(frozen=True, eq=False)
class StepLoop:
    """What is done for one run; see the equations above.

    Attributes:
        inputs: arguments of a run.
        cells: what a run carries from block to block.
        outputs: what one sample holds.
        rows: coefficients, `(stages, R)`.
        start: sets all cells.
        prepare: the first block of a stage.
        evaluate: the second, which writes no cell that it reads.
        finish: the end of a step.
        sample: makes the outputs.
        timed: what depends on the time, between `prepare` and `evaluate`, in double precision.
        again: name of a cell with one number that is 1 where a step begins; stages and `finish` are
            repeated while it is positive in one of the runs that are done together. Where it is 0
            they must change nothing. None: once.
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
        """Refuse what does not fit together."""
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
        """Return the march of five or six functions on arrays.

        Args:
            inputs: names and shapes of the arguments of a run.
            cells: names and shapes of what it carries.
            rows: coefficients, `(stages, R)`.
            start: reads inputs and writes all cells.
            prepare: reads and writes cells.
            evaluate: reads and writes other cells.
            finish: reads and writes cells.
            sample: reads cells and writes the outputs.
            timed: reads and writes other cells, in double precision.
            again: name of the cell that says whether a step is to be repeated.
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
        """Return the march with all blocks ready to be lowered, see `expand.prepared`."""
        made = {
            name: graph_passes.prepared(graph, "float64" if name == "timed" else dtype, fma=fma)
            for name, graph in self.blocks().items()
        }
        return replace(self, **made)

    def blocks(self) -> dict[str, Graph]:
        """Return the graphs by name, in the order they are done."""
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
        """Do all runs in NumPy, operation by operation: what a kernel must compute.

        Of a march that is `prepared` for a processor its kernel has the same bits.

        Args:
            arguments: one array per input, batch shape in front.
            starts: time at the start of each interval.
            steps: of each interval.
            counts: how many of them.
            dtype: the precision of every number but the times.
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
    """Refuse a block with names that there are not, of other shapes, or not all that must be."""
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
    """Return the intervals of a march as contiguous arrays, or refuse them."""
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


# For compiling -----------------------------------------------------------------------------------


class StepLoopPlan(NamedTuple):
    """A march as it is compiled.

    Attributes:
        start: sets the cells.
        stages: by name what is done in a stage, in order: `stage`, which is `prepare` and
            `evaluate` as one graph; or `prepare`, `timed` and `evaluate`.
        ahead: which outputs of `stage` come from `prepare`.
        finish: the end of a step.
        sample: makes the outputs.
        places: where the cells that have a place in memory start.
        size: how many numbers these are.
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
    """Return what is to be written for a march: what only a stage passes on needs no memory."""
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
    """Return two blocks as one graph: the second takes what the first makes."""
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
    """Return a graph with some of its outputs and what they need."""
    chosen = [k for k, s in enumerate(graph.outputs) if s.name in set(names)]
    outputs = tuple(graph.outputs[k] for k in chosen)
    less = Graph(graph.inputs, outputs, graph.nodes, [graph.results[k] for k in chosen])
    return less.rebuilt(lambda old, new, op, a, i: new.op(op, *a))
