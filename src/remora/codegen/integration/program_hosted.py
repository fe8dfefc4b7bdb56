"""Programs with `Host` statements: Python calls functions, machine code does the rest.

A call has a memory of cells for each run. Python goes through the statements that contain a `Host`;
what lies between them is machine code on that memory, see `hosted_code`. A function is called with
copies of what it reads, so that it may keep them.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.integration.hosted_code import (
    CellPlace,
    HostedCode,
    hosted_code,
    part_names,
)
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import CompiledProgram
from remora.codegen.integration.program_interface import (
    ProgramInterface,
    entries_of,
    host_values,
)
from remora.codegen.integration.stop_request import StopRequest
from remora.codegen.ir.arguments import listed, ordered
from remora.codegen.llvm import fast_call, host
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.row_calls import in_rows, results_for, scratch_for
from remora.errors import ShapeError, UnknownName

#: A step of a call: does something in the runs that take part, an array of their indices.
Step: TypeAlias = Callable[[Array], Any]
#: A function of a `Host` statement.
HostFunction: TypeAlias = Callable[..., Any]


class HostedProgram(CompiledProgram):
    """A program compiled for this machine that calls Python functions.

    It is called as a `ProgramKernel` is, and a run has the same bits as there if the functions
    compute what blocks would. Functions are no part of the machine code: one compiled program
    serves all functions of the same names.

    Attributes:
        name: name of the program.
        dtype: `float64` or `float32`.
        functions: the functions by the names in the statements.
    """

    def __init__(
        self,
        program: Program | Callable[[], Program],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
        functions: Mapping[str, HostFunction] | None = None,
    ) -> None:
        """Begin to compile, or load from the cache; a call waits until the code is there.

        Args:
            program: the program, or a function that builds it; with a key, that function is called
                only on a cache miss.
            name: name of the program.
            dtype: `float64` or `float32`.
            key: cache key that changes whenever the program does, if the caller has one; otherwise
                its graphs are hashed.
            functions: the functions that it calls, by name.
        """
        super().__init__(program, name, dtype)
        self.functions = dict(functions or {})
        entry = self.entry("hosted program", key, (*host.host().code, dtype))
        self._stored = host.StoredCode(entry, self._made)
        interface, cells, *rest = self._stored.about
        self.interface = ProgramInterface.from_json(interface)
        places = {n: CellPlace(at, tuple(shape), d) for n, (at, shape, d) in cells.items()}
        self._code = HostedCode(places, *rest)

    def _made(self) -> tuple[str, Any]:
        text, code = hosted_code(self.program, self.dtype, host.host().fma)
        return text, (ProgramInterface.of(self.program).to_json(), *code)

    def bound(self, functions: Mapping[str, HostFunction]) -> HostedProgram:
        """Return the same program with other functions."""
        other = HostedProgram.__new__(HostedProgram)
        _ = self._loaded  # both share it
        vars(other).update(vars(self))
        other.functions = dict(functions)
        return other

    @functools.cached_property
    def _loaded(self) -> host.LoadedCode:
        """The code in memory; waits for its compilation."""
        return self._stored.loaded(part_names(self._code.parts))

    def __call__(
        self,
        *arguments: ArrayLike,
        tables: Mapping[str, ArrayLike] | None = None,
        capacity: int | Mapping[str, int] = 0,
        threads: int = 1,
        stop: StopRequest | None = None,
        **named: ArrayLike,
    ) -> Any:
        """Perform all runs and return the outputs, see `ProgramKernel`.

        Args:
            *arguments: in the order of `inputs`, `(..., *shape)`; batch shapes broadcast.
            tables: the tables by name, all of one length M.
            capacity: rows of the records, of each buffer by name or of all.
            threads: accepted for the sake of `ProgramKernel`; Python calls from one thread.
            stop: ends the call at the next iteration of a loop with a call of Python in it.
            **named: arguments by name.
        """
        own = self.interface
        entries, rows = own.tables_of(tables), own.capacities(capacity)
        taken, returned = own.dtypes(self.dtype)
        given = ordered(self.name, own.inputs, arguments, named)
        batch, _, kept = in_rows(self.name, own.inputs, given, taken)
        axes = [own.axis(o, entries_of(entries), rows) for o in own.outputs]
        shapes = [(*batch, *axis, *o.shape) for axis, o in zip(axes, own.outputs, strict=True)]
        results = results_for(None, shapes, returned)
        for result in results:
            result.fill(np.nan)
        count = math.prod(batch)
        memory = _Memory(self._code, count, self._loaded)
        for s, array in zip(own.inputs, kept, strict=True):
            if s.name in memory.cells:
                whole = np.broadcast_to(array, (*batch, *s.shape))
                memory.cells[s.name][...] = whole.reshape(count, *s.shape)
        each = [
            (address(r), r.dtype.itemsize * math.prod(axis) * o.size)
            for r, axis, o in zip(results, axes, own.outputs, strict=True)
        ]
        memory.set_words(each, [entries_of(entries), *map(address, entries), *rows.values()])
        call = self._call(entries, stop or StopRequest())
        if count == 1 or not _batched(self._code.steps):
            for run in range(count):
                for step in call.built(self._code.steps, _OneRun(memory, run)):
                    step(memory.all[run : run + 1])
        elif count:
            for step in call.built(self._code.steps, _ManyRuns(memory)):
                step(memory.all)
        return results[0] if len(results) == 1 else tuple(results)

    def _call(self, tables: Sequence[Array], stop: StopRequest) -> _Call:
        for called in _called(self._code.steps):
            if called not in self.functions:
                raise UnknownName(f"Python function of {self.name}", called, self.functions)
        named = dict(zip(self.interface.tables, tables, strict=True))
        return _Call(self.functions, named, stop)

    def single_run(
        self,
        arguments: Sequence[Array],
        outputs: Sequence[Array],
        capacity: int | Mapping[str, int] = 0,
        tables: Sequence[Array] = (),
    ) -> Callable[..., None]:
        """Return a function that performs one run on fixed arrays, see `ProgramKernel`.

        An error in a Python function ends the loop that called it. What follows the outermost loop
        is executed before the error is raised, so that final values are those of the last cells.
        Samples of entries that were not reached are NaN.
        """
        own, rows = self.interface, self.interface.capacities(capacity)
        arrays = [*arguments, *outputs]
        own.check_arrays(self.name, self.dtype, arrays, entries_of(tables), rows)
        memory = _Memory(self._code, 1, self._loaded)
        places = [(address(x), 0) for x in outputs]
        shared = [*map(address, tables), *rows.values()]
        machine, call = _OneRun(memory, 0), self._call(tables, StopRequest())
        copied = [
            (machine.cells[s.name], x)
            for s, x in zip(own.inputs, arguments, strict=True) if s.name in machine.cells
        ]  # fmt: skip
        steps, runs, kept = call.built(self._code.steps, machine), memory.all, arrays
        last = max((i for i, s in enumerate(self._code.steps) if s[0] != "part"), default=-1)
        each = [x for x, o in zip(outputs, own.outputs, strict=True) if o.per == "entry"]

        def run(entries: int = 0) -> None:
            for x in each:
                x[:entries] = np.nan
            memory.clear()
            memory.set_words(places, [entries, *shared])
            call.entries = entries
            for cell, x in copied:
                cell[...] = x
            try:
                for step in steps:
                    step(runs)
            except BaseException:
                for step in steps[last + 1 :]:
                    step(runs)
                raise

        run.kept = kept  # pyright: ignore[reportFunctionMemberAccess]
        return run

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"HostedProgram {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, calls {', '.join(_called(self._code.steps))}"
        )


def _called(steps: Sequence[Any]) -> dict[str, bool]:
    """Return the names of the functions that are called, each with whether it is batched."""
    found: dict[str, bool] = {}
    for kind, *rest in steps:
        if kind == "host":
            found[rest[0]] = rest[3]
        elif kind != "part":
            found |= _called(rest[-1])
    return found


def _batched(steps: Sequence[Any]) -> bool:
    return any(_called(steps).values())


class _Memory:
    """The cells of all runs of a call.

    Attributes:
        cells: views by name, `(runs, *shape)`.
        rows: memory of each run, `(runs, bytes)`.
        all: indices of all runs.
        code: the parts.
        loaded: their machine code.
    """

    def __init__(self, code: HostedCode, runs: int, loaded: host.LoadedCode) -> None:
        room, (start, each) = scratch_for(runs, code.size)
        room.fill(0)
        first = start - address(room)
        self.rows: Array = room[first : first + runs * each].reshape(runs, each)
        self.code, self.loaded, self.all = code, loaded, np.arange(runs)
        self.cells = {name: self._view(*place) for name, place in code.cells.items()}
        self._words = self.rows[:, code.words : code.size].view(np.int64)

    def _view(self, start: int, shape: tuple[int, ...], dtype: str) -> Array:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return self.rows[:, start : start + size].view(dtype).reshape(len(self.rows), *shape)

    def clear(self) -> None:
        """Set all cells to zero."""
        self.rows[:, : self.code.words] = 0

    def set_words(self, outputs: Sequence[tuple[int, int]], shared: Sequence[int]) -> None:
        """Set the words behind the cells.

        Args:
            outputs: address and bytes per run of each output.
            shared: the words that all runs share.
        """
        for k, (start, size) in enumerate(outputs):
            self._words[:, k] = start + size * self.all
        first = len(outputs)
        self._words[:, first : first + len(shared)] = shared

    def set_entry(self, m: int) -> None:
        """Set the number of the entry of the tables."""
        self._words[:, -1] = m


class _OneRun:
    """How the steps of a call are done in one run."""

    def __init__(self, memory: _Memory, run: int) -> None:
        self._memory, self._row = memory, memory.rows[run]
        # views, also of numbers without an axis
        self.cells = {name: cell[run, ...] for name, cell in memory.cells.items()}

    def part(self, k: int) -> Step:
        """Return a part."""
        loaded = self._memory.loaded
        if fast_call.available():
            return fast_call.bound_call(loaded.address[f"fast{k}"], self._row, loaded)
        return _ManyRuns(self._memory).part(k)

    def positive(self, cell: str) -> Callable[[Array], Array | None]:
        """Return the test of a cell: the runs where it is positive, or None."""
        number = self.cells[cell].item

        def positive(runs: Array) -> Array | None:
            return runs if number() > 0.0 else None

        return positive

    def host(
        self, name: str, function: HostFunction, reads: Sequence[str], writes: Sequence[str],
        batched: bool,
    ) -> Step:  # fmt: skip
        """Return the call of a function."""
        given = [self.cells[n][None] if batched else self.cells[n] for n in reads]
        taken = [self.cells[n][None] if batched else self.cells[n] for n in writes]

        def call(runs: Array) -> None:
            values = host_values(name, function(*[x.copy() for x in given]), writes)
            for cell, value, own in zip(taken, values, writes, strict=True):
                cell[...] = _fitting(name, own, value, cell.shape)

        def call_for_one(runs: Array) -> None:  # kept short: the overhead of a load
            value = function(*[x.copy() for x in given])
            if type(value) is not np.ndarray or value.shape != shape:
                value = _fitting(name, writes[0], value, shape)
            only[...] = value

        if len(writes) != 1:
            return call
        only, shape = taken[0], taken[0].shape
        return call_for_one

    def provided(self, cell: str, size: int) -> Array:
        """Return where a loop puts the numbers that it provides."""
        return self.cells[cell].reshape(-1)[:size] if cell in self.cells else np.empty(size)

    def enter(self, m: int) -> None:
        """Note the number of the entry of the tables."""
        self._memory.set_entry(m)


class _ManyRuns:
    """How the steps of a call are done in many runs at once."""

    def __init__(self, memory: _Memory) -> None:
        self._memory, self.cells = memory, memory.cells

    def part(self, k: int) -> Step:
        """Return a part."""
        memory = self._memory
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        prototype = ctypes.CFUNCTYPE(None, pointer, number, pointer, number)
        function = prototype(memory.loaded.address[f"many{k}"])
        start, stride = address(memory.rows), memory.rows.shape[1]

        def part(runs: Array) -> None:
            function(start, stride, address(runs), len(runs))

        return part

    def positive(self, cell: str) -> Callable[[Array], Array | None]:
        """Return the test of a cell: the runs where it is positive, or None."""
        numbers = self.cells[cell].reshape(-1)

        def positive(runs: Array) -> Array | None:
            chosen = runs[numbers[runs] > 0.0]
            return chosen if chosen.size else None

        return positive

    def host(
        self, name: str, function: HostFunction, reads: Sequence[str], writes: Sequence[str],
        batched: bool,
    ) -> Step:  # fmt: skip
        """Return the call of a function."""
        given, taken = [self.cells[n] for n in reads], [self.cells[n] for n in writes]

        def call(runs: Any, arrays: Sequence[Array]) -> None:
            values = host_values(name, function(*arrays), writes)
            for cell, value, own in zip(taken, values, writes, strict=True):
                cell[runs] = _fitting(name, own, value, (*np.shape(runs), *cell.shape[1:]))

        def call_for_all(runs: Array) -> None:
            call(runs, [x[runs] for x in given])

        def call_for_each(runs: Array) -> None:
            for run in runs.tolist():
                call(run, [x[run].copy() for x in given])

        return call_for_all if batched else call_for_each

    def provided(self, cell: str, size: int) -> Array:
        """Return where a loop puts the numbers that it provides."""
        if cell not in self.cells:
            return np.empty(size)
        return self.cells[cell].reshape(len(self._memory.all), -1)[:, :size]

    def enter(self, m: int) -> None:
        """Note the number of the entry of the tables."""
        self._memory.set_entry(m)


class _Call:
    """Builds the steps of a call from their description; see `HostedCode.steps`.

    Attributes:
        entries: number M of entries of the tables.
    """

    def __init__(
        self, functions: Mapping[str, HostFunction], tables: Mapping[str, Array], stop: StopRequest
    ) -> None:
        self._functions, self._tables, self._stop, self._entry = functions, tables, stop, 0
        self.entries = entries_of(list(tables.values()))

    def built(self, steps: Sequence[Any], on: _OneRun | _ManyRuns) -> list[Step]:
        """Return the steps, each a function of the indices of the runs that take part."""
        return [self._step(kind, rest, on) for kind, *rest in steps]

    def _step(self, kind: str, rest: Sequence[Any], on: _OneRun | _ManyRuns) -> Step:
        stop = self._stop
        match kind:
            case "part":
                return on.part(rest[0])
            case "host":
                name, reads, writes, batched = rest
                return on.host(name, self._functions[name], reads, writes, batched)
            case "if" | "while":
                positive, body = on.positive(rest[0]), self.built(rest[1], on)

                def once(runs: Array) -> None:
                    chosen = positive(runs)
                    if chosen is not None:
                        for step in body:
                            step(chosen)

                def repeated(runs: Array) -> None:
                    chosen = positive(runs)
                    while chosen is not None and not stop.made:
                        for step in body:
                            step(chosen)
                        chosen = positive(chosen)

                return once if kind == "if" else repeated
            case _:
                return self._counted(kind, rest, on)

    def _counted(self, kind: str, rest: Sequence[Any], on: _OneRun | _ManyRuns) -> Step:
        """Return a loop over rows, entries or a counter."""
        stop, body = self._stop, self.built(rest[-1], on)
        if kind == "for":
            rows = np.array(rest[1])
            provided = on.provided(rest[0], rows.shape[1])

            def each_row(runs: Array) -> None:
                for row in rows:
                    provided[...] = row
                    for step in body:
                        step(runs)

            return each_row
        if kind == "repeat":
            count, provided = self._tables[rest[0]], on.provided(rest[1], 1)

            def repeated(runs: Array) -> None:
                for i in range(int(count[self._entry])):
                    if stop.made:
                        return
                    provided[...] = i
                    for step in body:
                        step(runs)

            return repeated
        places = [(on.provided(name, 1), x) for name, x in self._tables.items()]

        def each_entry(runs: Array) -> None:
            for m in range(self.entries):
                if stop.made:
                    return
                self._entry = m
                on.enter(m)
                for place, numbers in places:
                    place[...] = numbers[m]
                for step in body:
                    step(runs)

        return each_entry


def _fitting(name: str, cell: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return what a function returned for a cell as an array of its shape, or raise."""
    array = np.asarray(value)
    if array.shape != shape:
        raise ShapeError(
            f"host function {name!r} must return an array {shape} for {cell!r}, not {array.shape}"
        )
    return array
