"""Programs compiled for the host CPU, one SIMD lane per run, see `lane_code`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen import kernel_cache
from remora.codegen.integration.lane_code import STOP, LaneCode
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_interface import ProgramInterface, entries_of
from remora.codegen.integration.program_plan import planned
from remora.codegen.integration.statements import Cell, Output
from remora.codegen.integration.stop_request import StopRequest
from remora.codegen.ir.arguments import DTYPES, listed, ordered
from remora.codegen.llvm import host
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.row_calls import (
    apart,
    in_rows,
    results_for,
    run,
    scratch_for,
    thread_count,
)
from remora.errors import UnknownName


class CompiledProgram:
    """Base class of compiled programs for all machines.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
    """

    def __init__(self, program: Program | Callable[[], Program], name: str, dtype: str) -> None:
        """Store the program, or the function that builds it when it is needed."""
        if dtype not in DTYPES:
            raise UnknownName("dtype of a kernel", dtype, DTYPES)
        self.name, self.dtype, self._source = name, dtype, program

    @functools.cached_property
    def program(self) -> Program:
        """The program that is compiled."""
        return self._source if isinstance(self._source, Program) else self._source()

    def entry(self, kind: str, key: str | None, target: Sequence[Any]) -> str:
        """Return the key of its machine code.

        Args:
            kind: kind of the code.
            key: that of the function that builds the program; None: its graphs are hashed.
            target: what else the code depends on.
        """
        if key is None:
            return kernel_cache.entry_key(kind, self.program.content(), *target)
        return kernel_cache.entry_key(f"given {kind}", key, *target)

    @functools.cached_property
    def interface(self) -> ProgramInterface:
        """What a call passes and returns."""
        return ProgramInterface.of(self.program)

    @property
    def inputs(self) -> tuple[Cell, ...]:
        """Names and shapes of the arguments."""
        return self.interface.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Names and shapes of the results."""
        return self.interface.outputs


class ProgramKernel(CompiledProgram):
    """A program compiled for this machine.

    A run depends on its own arguments only: it is bitwise identical alone, in any batch, at any
    position in it, for any number of threads, and for any number of lanes. Arguments are not
    checked: NaN in, NaN out. A program that does not end in one run never returns.

    Attributes:
        name: name of the kernel.
        dtype: `float64` or `float32`.
        lanes: runs that are processed together.
    """

    def __init__(
        self,
        program: Program | Callable[[], Program],
        name: str,
        dtype: str = "float64",
        key: str | None = None,
        lanes: int | None = None,
        fma: bool = True,
    ) -> None:
        """Begin to compile, or load from the cache; a call waits until the code is there.

        Args:
            program: the program, or a function that builds it; with a key, that function is called
                only on a cache miss.
            name: name of the kernel.
            dtype: `float64` or `float32`.
            key: cache key that changes whenever the program does, if the caller has one; otherwise
                its graphs are hashed.
            lanes: 1 for scalar code, fastest for single runs; None: as many as the processor has.
            fma: whether products and sums are fused if the processor can; without, the bits are
                those of exported C.
        """
        super().__init__(program, name, dtype)
        self._host = host.host()
        most = self._host.lanes(dtype)
        if lanes not in (None, 1, most):
            raise UnknownName("number of lanes", lanes, map(str, sorted({1, most})))
        self.lanes = lanes or most
        fused = fma and self._host.fma
        target = (*self._host.code, dtype, self.lanes, fused)
        self._stored = host.StoredCode(
            self.entry("program", key, target), functools.partial(self._made, fused)
        )
        self._scratch, interface = self._stored.about
        self.interface = ProgramInterface.from_json(interface)
        if not isinstance(program, Program):
            self.__dict__.pop("program", None)  # large; built again when it is read

    def _made(self, fused: bool) -> tuple[str, Any]:
        code = LaneCode(
            planned(self.program, self.dtype, fused, self.lanes, roll=True), self.dtype, self.lanes
        )
        return code.module(), (code.size, ProgramInterface.of(self.program).to_json())

    @functools.cached_property
    def _loaded(self) -> host.LoadedCode:
        """The code in memory; waits for its compilation."""
        return self._stored.loaded(("chunk",))

    def __call__(
        self,
        *arguments: ArrayLike,
        tables: Mapping[str, ArrayLike] | None = None,
        capacity: int | Mapping[str, int] = 0,
        threads: int = 1,
        out: Any = None,
        stop: StopRequest | None = None,
        **named: ArrayLike,
    ) -> Any:
        """Perform all runs and return the outputs: an array, or a tuple if there are several.

        Args:
            *arguments: in the order of `inputs`, `(..., *shape)`; batch shapes broadcast.
            tables: the tables by name, all of one length M.
            capacity: rows of the records, of each buffer by name or of all.
            threads: number of threads that share the runs; 0 for one per processor.
            out: contiguous array (or tuple of arrays) of the outputs' shapes and dtypes that
                receives them.
            stop: ends the call early; what runs have not come to is NaN then.
            **named: arguments by name.
        """
        own = self.interface
        passed = ordered(self.name, own.inputs, arguments, named)
        entries, rows = own.tables_of(tables), own.capacities(capacity)
        taken, returned = own.dtypes(self.dtype)
        batch, call, kept = in_rows(self.name, own.inputs, passed, taken)
        n, length = math.prod(batch), entries_of(entries)
        count = thread_count(threads, -(-n // self.lanes))
        axes = [own.axis(o, length, rows) for o in own.outputs]
        shapes = [(*batch, *axis, *o.shape) for axis, o in zip(axes, own.outputs, strict=True)]
        results = results_for(out, shapes, returned)
        if out is not None:
            call, kept = apart(self.name, own.inputs, call, kept, results)
        for r, axis, o in zip(results, axes, own.outputs, strict=True):
            call += [address(r), math.prod(axis) * o.size]
            if not o.complete or stop is not None:
                r.fill(np.nan)
        if n:
            call += [length, *(address(x) for x in entries), *rows.values()]
            self._run(call, n, count, stop)
        del kept, entries  # the arrays that `call` points into
        return results[0] if len(results) == 1 else tuple(results)

    def single_run(
        self,
        arguments: Sequence[Array],
        outputs: Sequence[Array],
        capacity: int | Mapping[str, int] = 0,
        tables: Sequence[Array] = (),
    ) -> Callable[..., None]:
        """Return a function that performs one run on fixed arrays, with little overhead.

        Each call reads the arguments and writes the outputs, in place; records that the program
        does not write keep their values.

        Args:
            arguments: in the order of `inputs`, contiguous arrays of the kernel's dtypes.
            outputs: in the order of `outputs`; records have `capacity` rows.
            capacity: rows of the records, of each buffer by name or of all.
            tables: in the order of `interface.tables`, contiguous arrays of one length. The
                function takes the number of entries that are used; 0 by default.
        """
        rows = self.interface.capacities(capacity)
        arrays = [*arguments, *outputs]
        self.interface.check_arrays(self.name, self.dtype, arrays, entries_of(tables), rows)
        room, scratch = scratch_for(1, self._scratch)
        self._stops(room, scratch, 1)[:] = 0
        places = [x for array in arrays for x in (address(array), 0)]
        call = np.array([*places, 0, *map(address, tables), *rows.values()], np.int64)
        function = self._loaded.chunk
        count, fixed = len(places), (address(call), 0, 1, scratch[0])
        kept = (self._loaded, arrays, tuple(tables), room, call)

        def run(entries: int = 0) -> None:
            call[count] = entries
            function(*fixed)

        run.kept = kept  # pyright: ignore[reportFunctionMemberAccess]
        return run

    def _run(self, call: list[int], n: int, threads: int, stop: StopRequest | None) -> None:
        """Perform all runs; `stop` ends them early."""
        room, scratch = scratch_for(threads, self._scratch)
        stops = self._stops(room, scratch, threads)
        stops[:] = 0
        perform = functools.partial(run, self._loaded, call, n, threads, scratch, self.lanes)
        if stop is None:
            perform()
        else:
            stop.watch(perform, stops)
        del room

    def _stops(self, room: Array, scratch: tuple[int, int], threads: int) -> Array:
        """Return the numbers that end a call early, one of each thread, in its scratch memory."""
        first, each = scratch[0] - address(room) + self._scratch - STOP, scratch[1]
        step = each // STOP
        return room[first : first + (threads - 1) * each + STOP].view(np.int64)[::step]

    def __repr__(self) -> str:
        """Return the signature."""
        return (
            f"ProgramKernel {self.name}({listed(self.inputs)}) -> {listed(self.outputs)}, "
            f"{self.dtype}, {self._host.cpu}, {self.lanes} lanes"
        )
