"""Interpreter of programs in NumPy, the reference for the compiled forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike
from remora.codegen.integration import random_words
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_interface import (
    ProgramInterface,
    entries_of,
    host_values,
)
from remora.codegen.integration.statements import (
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    graph_block,
    whole_block,
)
from remora.codegen.ir import philox
from remora.codegen.ir.arguments import batch_of, common_batch
from remora.codegen.ir.graph import interpret as evaluate

#: Kinds of random numbers, see `random_words.NUMBERS`.
NUMBERS = {"normal": philox.normal_numbers, "uniform": philox.uniform_numbers}


def interpret(
    program: Program,
    arguments: Sequence[ArrayLike],
    tables: Mapping[str, ArrayLike] | None = None,
    capacity: int | Mapping[str, int] = 0,
    dtype: str = "float64",
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> list[Array]:
    """Perform all runs, operation by operation, and return the outputs.

    For a program `prepared` for a processor, the kernel's results are bitwise identical.

    Args:
        program: the program.
        arguments: one array per input, batch shape in front.
        tables: the tables by name, all of one length M.
        capacity: rows of the records, of each buffer by name or of all.
        dtype: precision of whatever is not wide.
        functions: the functions of `Host` statements, by name.
    """
    interface = ProgramInterface.of(program)
    found, rows = interface.tables_of(tables), interface.capacities(capacity)
    dtypes, kinds = interface.dtypes(dtype)
    arrays = [np.asarray(a, own) for a, own in zip(arguments, dtypes, strict=True)]
    pairs = list(zip(arrays, program.inputs, strict=True))
    batch = common_batch(program.inputs, [batch_of("program", s, a.shape) for a, s in pairs])
    runs = math.prod(batch)
    named = {s.name: np.broadcast_to(a, batch + s.shape).reshape(runs, *s.shape) for a, s in pairs}
    results: dict[str, Array] = {}
    for o, kind in zip(program.outputs, kinds, strict=True):
        between = interface.axis(o, entries_of(found), rows)
        results[o.name] = np.full((runs, *between, *o.shape), np.nan, kind)
    state = dict(named)
    for s in program.cells:
        kind = "float64" if program.wide(s.name) else dtype
        start = named.get(s.name)
        state[s.name] = np.zeros((runs, *s.shape), kind) if start is None else start.astype(kind)
    entries = dict(zip(program.tables, found, strict=True))
    machine = _Interpreter(state, results, entries, dtype, functions or {})
    machine.body(program.body, np.arange(runs), {})
    return [x.reshape(batch + x.shape[1:]) for x in results.values()]


@dataclass
class _Interpreter:
    """The state of all runs.

    Attributes:
        state: arrays by name, `(runs, ...)`: inputs, and over them the cells.
        results: outputs by name.
        tables: by name.
        dtype: precision of whatever is not wide.
        functions: the functions of `Host` statements, by name.
    """

    state: dict[str, Array]
    results: dict[str, Array]
    tables: dict[str, Array]
    dtype: str
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Any])
    entry: int = 0

    def body(self, body: Sequence[Statement], runs: Array, provided: dict[str, Array]) -> None:
        """Execute statements in some of the runs.

        Args:
            body: the statements.
            runs: indices of the runs that take part.
            provided: what the loops around the statements provide.
        """
        for s in body:
            if runs.size:
                self._statement(s, runs, provided)

    def _statement(self, s: Statement, runs: Array, provided: dict[str, Array]) -> None:
        match s:
            case Run():
                for name, value in self._values(graph_block(s), runs, provided).items():
                    with np.errstate(over="ignore"):
                        self.state[name][runs] = value.astype(self.state[name].dtype)
            case Random():
                self._random(s, runs)
            case Host():
                self._host(s, runs, provided)
            case Sample():
                for name, value in self._values(graph_block(s), runs, provided).items():
                    each = self.results[name].ndim > value.ndim
                    self.results[name][(runs, self.entry) if each else runs] = value
            case Record():
                self._record(s, runs, provided)
            case For():
                for row in np.asarray(s.rows):
                    self.body(s.body, runs, {**provided, s.name: row})
            case ForEach():
                for m in range(len(next(iter(self.tables.values())))):
                    entries = {name: x[m : m + 1] for name, x in self.tables.items()}
                    self.entry = m
                    self.body(s.body, runs, {**provided, **entries})
            case Repeat():
                for i in range(int(provided[s.count][0])):
                    self.body(s.body, runs, {**provided, s.index: np.array([float(i)])})
            case While():
                while runs.size:
                    runs = runs[self.state[s.cell].reshape(-1)[runs] > 0.0]
                    self.body(s.body, runs, provided)
            case If():
                chosen = runs[self.state[s.cell].reshape(-1)[runs] > 0.0]
                self.body(s.body, chosen, provided)

    def _host(self, s: Host, runs: Array, provided: dict[str, Array]) -> None:
        function = self.functions[s.function]
        for chosen in [runs] if s.batched else runs.tolist():
            batch = np.shape(chosen)
            arrays = [
                np.broadcast_to(provided[n], (*batch, *provided[n].shape)).copy() if n in provided
                else self.state[n][chosen].copy()
                for n in s.reads
            ]  # fmt: skip
            values = host_values(s.function, function(*arrays), s.writes)
            for name, value in zip(s.writes, values, strict=True):
                self.state[name][chosen] = value

    def _random(self, s: Random, runs: Array) -> None:
        cell, made = self.state[s.cell], NUMBERS[s.kind]
        seed, run, tick = (
            philox.whole_numbers(self.state[name][runs]) for name in (s.seed, s.run, s.tick)
        )
        low = seed[:, 0] & np.uint64(2**32 - 1)
        seeds, stream = low | (seed[:, 1] << np.uint64(32)), np.asarray(s.stream, np.uint64)
        size = math.prod(cell.shape[1:])
        count = -(-size // random_words.PER_BLOCK[s.kind])
        blocks = philox.blocks_of_words(seeds, run[:, 0], stream, tick[:, 0], count)
        numbers = made(blocks).reshape(len(runs), -1)[:, :size]
        cell[runs] = numbers.reshape(len(runs), *cell.shape[1:])

    def _record(self, s: Record, runs: Array, provided: dict[str, Array]) -> None:
        index = self.state[s.index].reshape(-1)[runs]
        for name, value in self._values(graph_block(s), runs, provided).items():
            inside = (index >= 0.0) & (index < self.results[name].shape[1])
            rows = index[inside].astype(np.int64)
            self.results[name][runs[inside], rows] = value[inside]

    def _values(
        self, block: GraphBlock, runs: Array, provided: dict[str, Array]
    ) -> dict[str, Array]:
        """Return what a block computes, `(runs, ...)` each."""
        block = whole_block(block)
        names = [s.name for s in block.graph.inputs]
        arrays = [provided[n] if n in provided else self.state[n][runs] for n in names]
        values = evaluate(block.graph, arrays, "float64" if block.wide else self.dtype)
        return {
            s.name: np.broadcast_to(x, (len(runs), *s.shape))
            for s, x in zip(block.graph.outputs, values, strict=True)
        }
