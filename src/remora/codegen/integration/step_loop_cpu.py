"""A march as machine code for the processor at hand, one lane per run.

    void march(const T* a0, i64 s0, ..., T* o0, i64 t0, ...,
               i64 n, i64 M, const double* starts, const double* steps, const i64* counts, T* cells)

Arguments and samples stand in rows of runs as `lower` has it; cells are vectors of lanes in memory
that the caller gives. Runs are taken `lanes` at a time through all their steps; in the last group
the lanes that are left over repeat the last run.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from remora.algebra.namespace import ArrayLike
from remora.codegen import kernel_cache
from remora.codegen.integration.step_loop import (
    CLOCK,
    ROW,
    StepLoop,
    StepLoopPlan,
    planned,
    timetable,
)
from remora.codegen.ir.arguments import DTYPES, listed, ordered
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.kernel import (
    WIDEST,
    address,
    aligned,
    apart,
    check_threads,
    entry_key,
    in_rows,
    moved,
    packed,
    pool,
    results_for,
    unpacked,
)
from remora.codegen.llvm import host, lowering
from remora.codegen.llvm.lowering import SCALARS, constant, vector
from remora.codegen.tree_loops.memory import Blocks
from remora.errors import UnknownName

#: Chunks for each thread: one that is held up leaves the rest to the others.
_CHUNKS = 4


class BlockCode:
    """The IR of a march: the loops, with blocks of which a kind of machine says where they read.

    Attributes:
        w: the IR so far.
    """

    #: What points to the timetable and to the rows.
    pointer = "ptr"

    def __init__(self, march: StepLoop, plan: StepLoopPlan, dtype: str, lanes: int) -> None:
        """Begin with nothing written."""
        self.w = Blocks()
        self.march, self.plan, self.dtype, self.lanes = march, plan, dtype, lanes
        self.scalar = SCALARS[dtype]
        self.vector = vector(self.scalar, lanes)
        self._given: dict[str, list[str]] = {}
        #: The same in double precision, one number each.
        self._exact: dict[str, list[str]] = {}

    def precision(self, name: str) -> str:
        """Return the precision that a block is computed in."""
        return "float64" if name == "timed" else self.dtype

    def block(self, name: str, graph: Graph) -> None:
        """Write one block."""
        raise NotImplementedError

    def loops(self) -> None:
        """Write all that is done for a run."""
        w, plan = self.w, self.plan
        self.block("start", plan.start)
        with w.loop("interval", "%intervals") as m:
            w.put(f"%m = add i64 {m}, 0")
            begin, h = (self._number(f"%{x}", "double", m) for x in ("starts", "steps"))
            count = self._number("%counts", "i64", m)
            with w.loop("step", count) as i:
                self._set_clock(begin, h, i)
                with self._repeated():
                    with w.loop("stage", len(self.march.rows)) as s:
                        self._set_row(s)
                        for name, graph in plan.stages.items():
                            self.block(name, graph)
                    self.block("finish", plan.finish)
            self._set_clock(begin, h, count)
            self.block("sample", plan.sample)

    @contextmanager
    def _repeated(self) -> Generator[None]:
        """Write what is inside so that it is done again while a run says so, see `StepLoop`."""
        w, again = self.w, self.march.again
        if again is None:
            yield
            return
        one = constant(1.0, self.dtype, self.lanes)
        w.put(f"store volatile {self.vector} {one}, {self.cell_pointer(again)}")
        w.put("br label %pass")
        w.label("pass")
        yield
        left = w.emit(f"load volatile {self.vector}, {self.cell_pointer(again)}")
        zero = constant(0.0, self.dtype, self.lanes)
        more = w.emit(f"fcmp ogt {self.vector} {left}, {zero}")
        if self.lanes > 1:
            bits = w.emit(f"bitcast <{self.lanes} x i1> {more} to i{self.lanes}")
            more = w.emit(f"icmp ne i{self.lanes} {bits}, 0")
        w.put(f"br i1 {more}, label %pass, label %pass.done")
        w.label("pass.done")

    def cell_pointer(self, name: str) -> str:
        """Return the typed address of the first number of a cell."""
        raise NotImplementedError

    def rows(self, space: str = "") -> str:
        """Return the table of coefficients, in LLVM's address space `space`."""
        numbers = self.march.rows.reshape(-1).tolist()
        values = ", ".join(f"{self.scalar} {constant(x, self.dtype, 1)}" for x in numbers)
        return f"@rows = internal {space}constant [{len(numbers)} x {self.scalar}] [{values}]\n"

    def declared(self) -> set[str]:
        """Return the declarations of what all blocks call."""
        graphs = self.plan.graphs.items()
        found = [lowering.declared(g, self.precision(n), self.lanes) for n, g in graphs]
        return {line for lines in found for line in lines}

    def _number(self, array: str, kind: str, index: str) -> str:
        place = self.w.emit(f"getelementptr {kind}, {self.pointer} {array}, i64 {index}")
        size = 4 if kind == "float" else 8  # said, as LLVM takes 4 for an i64 else
        return self.w.emit(f"load {kind}, {self.pointer} {place}, align {size}")

    def _set_clock(self, begin: str, h: str, i: str) -> None:
        w = self.w
        whole = w.emit(f"sitofp i64 {i} to double")
        past = w.emit(f"fmul double {whole}, {h}")
        times = [w.emit(f"fadd double {begin}, {past}"), h]
        self._exact[CLOCK] = times
        if self.dtype == "float32":
            times = [w.emit(f"fptrunc double {x} to float") for x in times]
        self._given[CLOCK] = [self._everywhere(x) for x in times]

    def _set_row(self, stage: str) -> None:
        width = self.march.rows.shape[1]
        start = self.w.emit(f"mul i64 {stage}, {width}")
        places = [self.w.emit(f"add i64 {start}, {k}") for k in range(width)]
        numbers = [self._number("@rows", self.scalar, p) for p in places]
        self._given[ROW] = [self._everywhere(x) for x in numbers]
        self._exact[ROW] = numbers if self.scalar == "double" else []
        if self.scalar == "float" and "timed" in self.plan.stages:
            self._exact[ROW] = [self.w.emit(f"fpext float {x} to double") for x in numbers]

    def _everywhere(self, x: str, scalar: str = "") -> str:
        """Return a number in every lane; by default one of the march's precision."""
        if self.lanes == 1:
            return x
        scalar = scalar or self.scalar
        t = vector(scalar, self.lanes)
        one = self.w.emit(f"insertelement {t} poison, {scalar} {x}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.w.emit(f"shufflevector {t} {one}, {t} poison, {zeros}")


class LaneCode(BlockCode):
    """The IR for lanes of a processor."""

    def block(self, name: str, graph: Graph) -> None:
        """Write one block: all that it reads, its operations, all that it writes."""
        w, values = self.w, dict[int, str]()
        arguments = [s.name for s in self.march.inputs]
        wide = self.precision(name) != self.dtype
        for k, (s, used) in enumerate(zip(graph.inputs, lowering.used_inputs(graph), strict=True)):
            if not used:
                continue
            if name == "start":
                array = f"a{arguments.index(s.name)}"
                columns = lowering.load(w, array, s.size, self.scalar, self.lanes)
            elif s.name in self._given and wide:
                columns = [self._everywhere(x, "double") for x in self._exact[s.name]]
            elif s.name in self._given:
                columns = self._given[s.name]
            else:
                places = [self._cell(s.name, j) for j in range(s.size)]
                columns = [w.emit(f"load {self.vector}, ptr {place}") for place in places]
                if wide:
                    columns = [w.emit(f"fpext {self.vector} {x} to {self._wide}") for x in columns]
            values |= {graph.input(k, j): column for j, column in enumerate(columns)}
        lowering.operations(w, graph, values, self.precision(name), self.lanes)
        for s, result in zip(graph.outputs, graph.results, strict=True):
            if name == "sample":
                here = f"o{[o.name for o in self.march.outputs].index(s.name)}"
                past = w.emit(f"mul i64 %m, {s.size}")
                w.put(f"%{here}.m = getelementptr {self.scalar}, ptr %{here}, i64 {past}")
                w.put(f"%s_{here}.m = add i64 %s_{here}, 0")
                columns = [values[i] for i in result]
                lowering.store(w, f"{here}.m", columns, self.scalar, self.lanes)
                continue
            for j, i in enumerate(result):
                value = values[i]
                if wide:
                    value = w.emit(f"fptrunc {self._wide} {value} to {self.vector}")
                w.put(f"store {self.vector} {value}, ptr {self._cell(s.name, j)}")

    @property
    def _wide(self) -> str:
        return vector("double", self.lanes)

    def cell_pointer(self, name: str) -> str:
        """Return the typed address of the first number of a cell."""
        return f"ptr {self._cell(name, 0)}"

    def _cell(self, name: str, j: int) -> str:
        place = self.plan.places[name] + j
        return self.w.emit(f"getelementptr {self.vector}, ptr %cells, i64 {place}")

    def module(self) -> str:
        """Return the whole module."""
        w, march = self.w, self.march
        arrays = [f"a{k}" for k in range(len(march.inputs))]
        arrays += [f"o{k}" for k in range(len(march.outputs))]
        parameters = ", ".join(f"ptr noalias %{a}, i64 %s_{a}" for a in arrays)
        w.put("%last = sub i64 %n, 1")
        w.put("%any = icmp sgt i64 %n, 0")
        w.put("br i1 %any, label %group, label %done")
        w.label("group")
        w.put("%b = phi i64 [0, %entry], [%next, %group.end]")
        lowering.rows_of(w, self.lanes)
        self.loops()
        w.put("br label %group.end")
        w.label("group.end")
        w.put(f"%next = add i64 %b, {self.lanes}")
        w.put("%more = icmp slt i64 %next, %n")
        w.put("br i1 %more, label %group, label %done")
        w.label("done")
        w.put("ret void")
        times = "i64 %intervals, ptr noalias %starts, ptr noalias %steps, ptr noalias %counts"
        head = f"define void @march({parameters}, i64 %n, {times}, ptr noalias %cells)"
        body = "\n".join([head + " {", "entry:", *w.lines, "}\n"])
        return self.rows() + body + "\n".join(sorted(self.declared())) + "\n"


class CompiledStepLoop:
    """What kernels of marches have in common on all machines.

    Attributes:
        name: what it is called.
        dtype: `float64` or `float32`.
    """

    def __init__(self, march: StepLoop | Callable[[], StepLoop], name: str, dtype: str) -> None:
        """Keep the march, or what makes it when it is needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self._source = name, dtype, march

    @functools.cached_property
    def march(self) -> StepLoop:
        """What is computed."""
        return self._source if isinstance(self._source, StepLoop) else self._source()

    @functools.cached_property
    def inputs(self) -> tuple[Signature, ...]:
        """Names and shapes of the arguments."""
        return self.march.inputs

    @functools.cached_property
    def outputs(self) -> tuple[Signature, ...]:
        """Names and shapes of what a sample holds."""
        return self.march.outputs


class StepLoopKernel(CompiledStepLoop):
    """A march compiled for this machine.

    A run depends on its own arguments only: it has the same bits alone, in any batch, at any place
    in it, on any number of threads. Values of arguments are not checked: NaN in, NaN out.

    Attributes:
        name: what it is called.
        inputs: names and shapes of the arguments of a run.
        outputs: names and shapes of what a sample holds.
        dtype: `float64` or `float32`.
    """

    def __init__(
        self,
        march: StepLoop | Callable[[], StepLoop],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
    ) -> None:
        """Compile, or take from the cache.

        Args:
            march: what is computed, or a function that makes it: with a key it is called only
                where the cache has nothing.
            name: what it is called.
            dtype: `float64` or `float32`.
            key: what stands for the march in the cache, if the caller knows something that changes
                whenever the march does; else its graphs.
        """
        super().__init__(march, name, dtype)
        self._host = host.host()
        image = self._image(key)
        self._loaded = host.LoadedCode(image, ("march",))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        arrays = [pointer, number] * (len(self.inputs) + len(self.outputs))
        more = [number, number, pointer, pointer, pointer, pointer]
        self._function = ctypes.CFUNCTYPE(None, *arrays, *more)(self._loaded.address["march"])

    def _image(self, key: str | None) -> bytes:
        """Return the object, compiled or from the cache; sets what else is stored with it."""
        target = [self._host.triple, self._host.cpu, self._host.features, self.dtype]
        if key is None:
            march = self.march
            graphs = {name: graph.content() for name, graph in march.blocks().items()}
            about = march.inputs, march.cells, march.outputs, march.rows, march.again
            entry = entry_key("march", *about, graphs, *target)
        else:
            entry = entry_key("given march", key, *target)
        stored = kernel_cache.load(entry)
        if stored is not None:
            image, self._scratch, (self.inputs, self.outputs) = unpacked(stored)
            return image
        lanes = self._host.lanes(self.dtype)
        plan = planned(self.march, self.dtype, fma=self._host.fma)
        image = host.to_object(LaneCode(self.march, plan, self.dtype, lanes).module(), self._host)
        self._scratch = plan.size * lanes * np.dtype(self.dtype).itemsize
        kernel_cache.save(entry, packed(image, self._scratch, self.inputs, self.outputs))
        return image

    def __call__(
        self,
        *arguments: ArrayLike,
        starts: ArrayLike,
        steps: ArrayLike,
        counts: ArrayLike,
        threads: int = 1,
        out: Any = None,
        **named: ArrayLike,
    ) -> Any:
        """Do all runs and return their samples, `batch + (M,) + shape`.

        Args:
            *arguments: in the order of `inputs`, `(..., *shape)`; batch shapes broadcast.
            starts: time at the start of each of M intervals.
            steps: of each interval.
            counts: how many of them; a sample is taken after the last.
            threads: how many share the runs; 0 for one per processor.
            out: array (or tuple of arrays) to write the samples into, of their shape and the
                kernel's dtype, contiguous.
            **named: arguments by name.
        """
        check_threads(threads)
        given = ordered(self.name, self.inputs, arguments, named)
        table = timetable(starts, steps, counts)
        batch, call, kept = in_rows(self.name, self.inputs, given, self.dtype)
        n, intervals = math.prod(batch), len(table[0])
        shapes = [(*batch, intervals, *s.shape) for s in self.outputs]
        results = results_for(out, shapes, self.dtype)
        if out is not None:
            call, kept = apart(self.name, self.inputs, call, kept, results)
        for r, s in zip(results, self.outputs, strict=True):
            call += [address(r), intervals * s.size]
        if n and intervals:
            self._run(call, n, [intervals, *(address(x) for x in table)], threads)
        del kept  # the arrays that `call` points into
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, call: list[int], n: int, times: list[int], threads: int) -> None:
        """Do all runs, in chunks of whole vectors where several threads share them."""
        threads = (os.cpu_count() or 1) if threads == 0 else threads
        lanes, item = self._host.lanes(self.dtype), np.dtype(self.dtype).itemsize
        groups = -(-n // lanes)

        def part(start: int, stop: int) -> None:
            room = np.empty(self._scratch + WIDEST, np.uint8)
            self._function(*moved(call, start, item), stop - start, *times, aligned(room))

        if threads == 1 or groups == 1:
            part(0, n)
            return
        count = min(groups, threads * _CHUNKS)
        bounds = [min(n, lanes * (groups * k // count)) for k in range(count + 1)]
        list(pool(min(threads, groups)).map(part, bounds[:-1], bounds[1:]))

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"MarchKernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self._host.cpu}, {self._host.lanes(self.dtype)} lanes"
        )
