"""What a compiled program takes and returns: arguments, tables, capacities and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.integration.program import Program
from remora.codegen.integration.statements import Cell, Output, Repeat, walked
from remora.codegen.ir.trace import is_tuple
from remora.errors import InvalidValue, RemoraError, ShapeError, UnknownName

#: The largest count of a table: beyond, `float64` skips whole numbers.
_LARGEST = 2.0**53


class ProgramInterface(NamedTuple):
    """Names and shapes of everything that a call passes.

    Attributes:
        inputs: arguments of a run.
        outputs: results, in order.
        tables: names of the tables.
        counts: tables that count a `Repeat`.
        buffers: names of the capacities.
    """

    inputs: tuple[Cell, ...]
    outputs: tuple[Output, ...]
    tables: tuple[str, ...]
    counts: tuple[str, ...]
    buffers: tuple[str, ...]

    @classmethod
    def of(cls, program: Program) -> ProgramInterface:
        """Return the interface of a program."""
        inputs = [Cell(s.name, s.shape, program.wide_input(s.name)) for s in program.inputs]
        counts = [s.count for s in walked(program.body) if isinstance(s, Repeat)]
        return cls(
            tuple(inputs), program.outputs, tuple(program.tables), tuple(dict.fromkeys(counts)),
            program.buffers,
        )  # fmt: skip

    def to_json(self) -> str:
        """Return it as text, for the kernel cache."""
        arrays = [[list(vars(s).values()) for s in x] for x in (self.inputs, self.outputs)]
        return json.dumps([*arrays, self.tables, self.counts, self.buffers])

    @classmethod
    def from_json(cls, text: str) -> ProgramInterface:
        """Return what `to_json` wrote."""
        inputs, outputs, *names = json.loads(text)
        return cls(
            tuple(Cell(name, tuple(shape), *rest) for name, shape, *rest in inputs),
            tuple(Output(name, tuple(shape), *rest) for name, shape, *rest in outputs),
            *(tuple(own) for own in names),
        )

    def dtypes(self, dtype: str) -> tuple[list[str], list[str]]:
        """Return the dtypes of the arguments and of the results in a kernel of this precision."""
        inputs, outputs = (
            ["float64" if s.wide else dtype for s in x] for x in (self.inputs, self.outputs)
        )
        return inputs, outputs

    def axis(self, output: Output, entries: int, capacity: Mapping[str, int]) -> tuple[int, ...]:
        """Return the axis of an output between batch and shape: none, `(M,)` or `(capacity,)`."""
        if output.per == "run":
            return ()
        return (entries,) if output.per == "entry" else (capacity[output.buffer],)

    def tables_of(self, given: Mapping[str, ArrayLike] | None) -> list[Array]:
        """Return the tables of a call, contiguous and of one length, in order; or raise."""
        given = given or {}
        for name in given:
            if name not in self.tables:
                raise UnknownName("table of a program", name, self.tables)
        missing = [name for name in self.tables if name not in given]
        if missing:
            raise RemoraError(f"tables of a program: {', '.join(missing)} missing")
        found = [_numbers(name, given[name]) for name in self.tables]
        shapes = [x.shape for x in found]
        if found and (len(shapes[0]) != 1 or len(set(shapes)) != 1):
            shown = ", ".join(f"{n} {s}" for n, s in zip(self.tables, shapes, strict=True))
            raise ShapeError(f"tables must be of one length, (M,), not {shown}")
        for name, x in zip(self.tables, found, strict=True):
            if not np.isfinite(x).all():
                raise InvalidValue(f"table {name} must be finite")
            bad = x[(x < 0.0) | (x != np.floor(x)) | (x > _LARGEST)]
            if name in self.counts and bad.size:
                raise InvalidValue(f"table {name} must hold whole numbers from 0 on, not {bad[0]}")
        return found

    def check_arrays(
        self, name: str, dtype: str, arrays: Sequence[Array], entries: int, rows: Mapping[str, int]
    ) -> None:
        """Raise unless arrays are what a single run reads and writes in place.

        Args:
            name: name of the kernel.
            dtype: its precision.
            arrays: those of the inputs, then those of the outputs.
            entries: length M of the tables.
            rows: number of rows of each buffer.
        """
        wanted = [s.shape for s in self.inputs]
        wanted += [(*self.axis(o, entries, rows), *o.shape) for o in self.outputs]
        dtypes = [own for names in self.dtypes(dtype) for own in names]
        for array, shape, own in zip(arrays, wanted, dtypes, strict=True):
            if array.shape != shape or array.dtype != own or not array.flags.c_contiguous:
                raise ShapeError(
                    f"{name}: a contiguous array {shape} of {own} is needed, not "
                    f"{array.shape} of {array.dtype}"
                )

    def capacities(self, given: int | Mapping[str, int]) -> dict[str, int]:
        """Return the number of rows of each buffer, from one for all or those by name; or raise."""
        if isinstance(given, Mapping):
            for name in given:
                if name not in self.buffers:
                    raise UnknownName("buffer of a program", name, self.buffers)
            missing = [name for name in self.buffers if name not in given]
            if missing:
                raise RemoraError(f"capacity of {', '.join(missing)} missing")
            by_name: dict[str, Any] = dict(given)
        else:
            by_name = dict.fromkeys(self.buffers, given)
        for name, rows in by_name.items():
            if not isinstance(rows, int | np.integer) or rows < 0:
                raise InvalidValue(f"capacity of {name} must be a number of rows, not {rows!r}")
        return {name: int(by_name[name]) for name in self.buffers}


def _numbers(name: str, given: ArrayLike) -> Array:
    try:
        return np.ascontiguousarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"table {name} must be numbers (M,)") from None


def entries_of(tables: Sequence[Array]) -> int:
    """Return the length M of the tables."""
    return len(tables[0]) if tables else 0


def host_values(name: str, returned: Any, writes: Sequence[str]) -> Sequence[Any]:
    """Return what a function of a `Host` statement returned, one array per cell, or raise.

    Args:
        name: name of the function.
        returned: what it returned.
        writes: names of the cells.
    """
    if len(writes) == 1:
        return (returned,)
    values: object = () if returned is None else returned
    if not is_tuple(values) or len(values) != len(writes):
        raise RemoraError(
            f"host function {name!r} must return a tuple of {len(writes)} arrays "
            f"({', '.join(writes)})"
        )
    return values
