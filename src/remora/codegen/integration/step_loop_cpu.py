"""Step loops compiled for the host CPU, one SIMD lane per run.

    void march(const T* a0, i64 s0, ..., T* o0, i64 t0, ...,
               i64 n, i64 M, const double* starts, const double* steps, const i64* counts, T* cells)

Arguments and samples are rows of runs as in `lower`; cells are vectors of lanes in memory that the
caller allocates. Each group of `lanes` runs is taken through all steps; in the last group, unused
lanes repeat the last run.
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

from remora.algebra.array_ops import ArrayLike
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
    address,
    apart,
    check_threads,
    entry_key,
    in_rows,
    packed,
    results_for,
    scratch_for,
    unpacked,
)
from remora.codegen.llvm import chunk_call, host, lowering, thread_team
from remora.codegen.llvm.lowering import SCALARS, constant, vector
from remora.codegen.tree_loops.memory import Blocks
from remora.errors import UnknownName


class BlockCode:
    """The IR of a step loop; subclasses define where the blocks read and write.

    Attributes:
        w: the IR so far.
    """

    #: IR type of pointers to the timetable and to the coefficients.
    pointer = "ptr"

    def __init__(self, march: StepLoop, plan: StepLoopPlan, dtype: str, lanes: int) -> None:
        """Start with no code."""
        self.w = Blocks()
        self.march, self.plan, self.dtype, self.lanes = march, plan, dtype, lanes
        self.scalar = SCALARS[dtype]
        self.vector = vector(self.scalar, lanes)
        self._given: dict[str, list[str]] = {}
        #: The same in double precision, as scalars.
        self._exact: dict[str, list[str]] = {}

    def precision(self, name: str) -> str:
        """Return the precision in which a block is computed."""
        return "float64" if name == "timed" else self.dtype

    def block(self, name: str, graph: Graph) -> None:
        """Emit one block."""
        raise NotImplementedError

    def loops(self) -> None:
        """Emit the loops of a run."""
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
        """Emit the enclosed code in a loop that repeats while a run requests it, see `StepLoop`."""
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
        """Return the typed address of the first element of a cell."""
        raise NotImplementedError

    def rows(self, space: str = "") -> str:
        """Return the table of coefficients, in LLVM's address space `space`."""
        numbers = self.march.rows.reshape(-1).tolist()
        values = ", ".join(f"{self.scalar} {constant(x, self.dtype, 1)}" for x in numbers)
        return f"@rows = internal {space}constant [{len(numbers)} x {self.scalar}] [{values}]\n"

    def declared(self) -> set[str]:
        """Return the declarations of all functions that the blocks call."""
        graphs = self.plan.graphs.items()
        found = [lowering.declared(g, self.precision(n), self.lanes) for n, g in graphs]
        return {line for lines in found for line in lines}

    def _number(self, array: str, kind: str, index: str) -> str:
        place = self.w.emit(f"getelementptr {kind}, {self.pointer} {array}, i64 {index}")
        size = 4 if kind == "float" else 8  # explicit: LLVM's default for an i64 is 4
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
        """Return a number broadcast to all lanes; by default in the step loop's precision."""
        if self.lanes == 1:
            return x
        scalar = scalar or self.scalar
        t = vector(scalar, self.lanes)
        one = self.w.emit(f"insertelement {t} poison, {scalar} {x}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.w.emit(f"shufflevector {t} {one}, {t} poison, {zeros}")


class LaneCode(BlockCode):
    """The IR of a step loop on SIMD lanes of a CPU."""

    def block(self, name: str, graph: Graph) -> None:
        """Emit one block: its loads, its operations, its stores."""
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
        """Return the typed address of the first element of a cell."""
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
        others = ("i64", "ptr", "ptr", "ptr")
        chunk = chunk_call.ir(len(arrays), "march", "chunk", self.dtype, others, scratch=True)
        return self.rows() + body + chunk + "\n".join(sorted(self.declared())) + "\n"


class CompiledStepLoop:
    """Base class of compiled step loops for all machines.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
    """

    def __init__(self, march: StepLoop | Callable[[], StepLoop], name: str, dtype: str) -> None:
        """Store the step loop, or the function that builds it when it is needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self._source = name, dtype, march

    @functools.cached_property
    def march(self) -> StepLoop:
        """The step loop that is compiled."""
        return self._source if isinstance(self._source, StepLoop) else self._source()

    @functools.cached_property
    def inputs(self) -> tuple[Signature, ...]:
        """Names and shapes of the arguments."""
        return self.march.inputs

    @functools.cached_property
    def outputs(self) -> tuple[Signature, ...]:
        """Names and shapes of the arrays of a sample."""
        return self.march.outputs


class StepLoopKernel(CompiledStepLoop):
    """A step loop compiled for this machine.

    A run depends on its own arguments only: it is bitwise identical alone, in any batch, at any
    position in it, and for any number of threads. Arguments are not checked: NaN in, NaN out.

    Attributes:
        name: name of the kernel.
        inputs: names and shapes of the arguments of a run.
        outputs: names and shapes of the arrays of a sample.
        dtype: `float64` or `float32`.
    """

    def __init__(
        self,
        march: StepLoop | Callable[[], StepLoop],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
    ) -> None:
        """Compile, or load from the cache.

        Args:
            march: the step loop, or a function that builds it; with a key, that function is called
                only on a cache miss.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            key: cache key that changes whenever the step loop does, if the caller has one;
                otherwise its graphs are hashed.
        """
        super().__init__(march, name, dtype)
        self._host = host.host()
        image = self._image(key)
        self._loaded = host.LoadedCode(image, ("march", "chunk"))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        arrays = [pointer, number] * (len(self.inputs) + len(self.outputs))
        more = [number, number, pointer, pointer, pointer, pointer]
        self._function = ctypes.CFUNCTYPE(None, *arrays, *more)(self._loaded.address["march"])

    def _image(self, key: str | None) -> bytes:
        """Return the object code, compiled or cached; sets the metadata stored with it."""
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
        """Perform all runs and return their samples, `batch + (M,) + shape`.

        Args:
            *arguments: in the order of `inputs`, `(..., *shape)`; batch shapes broadcast.
            starts: time at the start of each of M intervals.
            steps: step size in each interval.
            counts: number of steps in each interval; a sample is taken after the last.
            threads: number of threads that share the runs; 0 for one per processor.
            out: contiguous array (or tuple of arrays) of the samples' shape and the kernel's dtype
                that receives them.
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
        """Perform all runs, in chunks of whole vectors if several threads share them."""
        threads = (os.cpu_count() or 1) if threads == 0 else threads
        lanes = self._host.lanes(self.dtype)
        count = min(threads, -(-n // lanes))
        room, scratch = scratch_for(count, self._scratch)
        if count > 1:
            chunk = self._loaded.address["chunk"]
            thread_team.run_shared(chunk, [*call, *times], n, count, scratch, lanes)
        else:
            self._function(*call, n, *times, scratch[0])
        del room

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"MarchKernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self._host.cpu}, {self._host.lanes(self.dtype)} lanes"
        )
