"""Programs as C99: blocks become static functions, other statements become control flow.

Every array of a program (cells, inputs, tables, values of loops, outputs) has *places*: one C
expression per element, such as `state->q[3]`. The caller places what is to be a member of its own
structs; what remains becomes a member of the struct `work`, a variable of the function that holds
the control flow. There is no dynamic memory.

Operations, their order and their roundings are those of `program_interpreter.interpret` of the
program `prepared` without fused multiply-adds; compiled without contraction, the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from remora.codegen.export.c_module import Function, Member
from remora.codegen.export.c_statements import statements, without_floor
from remora.codegen.export.c_text import SCALARS, identifier, number
from remora.codegen.export.random_c import random_functions
from remora.codegen.integration import random_words
from remora.codegen.integration.program_plan import ProgramPlan
from remora.codegen.integration.statements import (
    Cell,
    For,
    ForEach,
    GraphBlock,
    Host,
    If,
    Output,
    Random,
    Record,
    Repeat,
    Run,
    Sample,
    Statement,
    While,
    graph_block,
)
from remora.errors import RemoraError

#: Role of the struct of what the caller does not place.
WORK = "work"
#: Rounding to single precision. Where gcc 12 at -O2 computes two of `(double)(float)x` as a vector,
#: it leaves out the rounding; a volatile number is always rounded.
_ROUNDED = """/* Rounded to single precision, whatever the compiler does with pairs of casts. */
static float {name}_rounded(double x)
{{
    volatile float y = (float)x;
    return y;
}}"""
#: (output, number of the row as a C expression, empty if it has none) -> its places there.
OutputPlaces = Callable[[Output, str], Sequence[str]]


def member_places(role: str, own: str, size: int, single: bool = False) -> list[str]:
    """Return the places of a member of a struct.

    Args:
        role: role of the struct.
        own: identifier of the member.
        size: number of elements.
        single: whether it is a number, not an array.
    """
    return [f"{role}->{own}"] if single else [f"{role}->{own}[{j}]" for j in range(size)]


class ProgramText:
    """Text of the statements of a program.

    Attributes:
        functions: the blocks of the statements so far, as static functions.
        members: members of the struct `work` that they use.
    """

    def __init__(
        self,
        plan: ProgramPlan,
        name: str,
        dtype: str,
        roles: Sequence[str],
        places: Mapping[str, Sequence[str]],
        outputs: OutputPlaces | None = None,
        entries: int = 1,
        capacity: Mapping[str, int] | None = None,
    ) -> None:
        """Place the cells.

        Args:
            plan: from `planned` with one lane and without fused multiply-adds.
            name: prefix of all names.
            dtype: `float64` or `float32`.
            roles: roles of the structs, in the order of the arguments; `WORK` among them.
            places: places of cells, inputs and tables by name, the entry of a table being
                `work->entry`. Those of wide cells and inputs and of tables are doubles.
            outputs: places of the outputs; may be missing if none is written.
            entries: number of entries of the tables.
            capacity: number of rows of the buffers by name.
        """
        self._plan, self._name, self._dtype, self._roles = plan, name, dtype, tuple(roles)
        self._outputs, self._entries, self._capacity = outputs, entries, capacity or {}
        self.functions: list[Function] = []
        self.members: list[Member] = []
        self._random_used = self._rounding_used = False
        self._taken = {"entry"}
        self._places = dict(places)
        self._wide = dict.fromkeys(plan.program.tables, True)
        inputs = {s.name: cast(Cell, s) for s in plan.program.inputs}
        for s in (inputs | plan.cells).values():
            self._wide[s.name] = s.wide
        for s in plan.cells.values():
            if s.name not in self._places:
                self._places[s.name] = self._new(s.name, s.size, s.wide)
        for table in plan.program.tables:
            if table not in self._places:
                self._places[table] = self._new(table, 1, True)
        self._loops = 0

    # Places ---------------------------------------------------------------------------------------

    def _new(self, name: str, size: int, wide: bool) -> list[str]:
        """Return the places of a new member of `work`."""
        if not size:
            return []
        own = identifier(name, self._taken)
        self._taken.add(own)
        self.members.append(Member(own, (size,), "", "double" if wide else ""))
        return member_places(WORK, own, size)

    def places(self, name: str) -> Sequence[str]:
        """Return the places of a cell, input or table."""
        return self._places[name]

    def _counter(self, what: str) -> str:
        self._loops += 1
        return f"{what}_{self._loops}"

    def _reading(self, name: str, element: int, wide: bool) -> str:
        """Return the expression that reads an element in a block that is wide or not."""
        return self._converted(self._places[name][element], self._wide[name], wide)

    def _writing(self, place: str, have: bool, wide: bool) -> str:
        """Return the assignment of a result of a block, `{}`, to a place."""
        return f"{place} = {self._converted('{}', have, wide)};"

    def _converted(self, value: str, have: bool, wide: bool) -> str:
        if self._dtype == "float64" or have == wide:
            return value
        if wide:
            return f"(double){value}"
        self._rounding_used = True
        return f"{self._name}_rounded({value})"

    @property
    def support(self) -> str:
        """Text of the functions that the blocks call."""
        parts = [_ROUNDED.format(name=self._name)] if self._rounding_used else []
        parts += [random_functions(self._dtype)] if self._random_used else []
        return "\n\n".join(parts)

    def _positive(self, cell: str) -> str:
        dtype = "float64" if self._wide[cell] else self._dtype
        return f"{self._places[cell][0]} > {number(0.0, dtype)}"

    # Statements -----------------------------------------------------------------------------------

    def lines(self, body: Sequence[Statement], entry: str = "") -> list[str]:
        """Return the C text of statements; `entry`: number of the entry of the tables, if any."""
        found: list[str] = []
        for s in body:
            found += self._statement(s, entry)
        return found

    def _statement(self, s: Statement, entry: str) -> list[str]:
        match s:
            case Run():
                block = self._ready(s)
                pairs = zip(block.graph.outputs, block.graph.results, strict=True)
                stores = [
                    (self._writing(place, block.wide, self._wide[signature.name]), i)
                    for signature, result in pairs
                    for place, i in zip(self._places[signature.name], result, strict=True)
                ]
                return self._called(block, stores)
            case Random():
                return self._random(s)
            case Host():
                raise RemoraError(f"C cannot call the Python function {s.function!r}")
            case Sample():
                block = self._ready(s)
                return self._called(block, self._stores(block, entry))
            case Record():
                return self._record(s)
            case For():
                return self._for(s, entry)
            case ForEach():
                i = f"{WORK}->entry"
                self.members.append(Member("entry", (), "", "uint32_t"))
                head = f"for ({i} = 0u; {i} < {self._entries}u; {i}++)"
                return _braced(head, self.lines(s.body, i))
            case Repeat():
                i, count = self._counter("repeat"), self._places[s.count][0]
                self._given(s.index, self._new(s.index, 1, True))
                inner = [f"{self._places[s.index][0]} = (double){i};", *self.lines(s.body, entry)]
                return _braced(f"for (uint32_t {i} = 0; (double){i} < {count}; {i}++)", inner)
            case While():
                return _braced(f"while ({self._positive(s.cell)})", self.lines(s.body, entry))
            case If():
                return _braced(f"if ({self._positive(s.cell)})", self.lines(s.body, entry))

    def _given(self, name: str, places: Sequence[str]) -> None:
        """Place a value of a loop, in double precision."""
        self._places[name], self._wide[name] = places, True

    def _for(self, s: For, entry: str) -> list[str]:
        rows, table, i = np.asarray(s.rows), self._counter("rows"), self._counter("row")
        count, width = rows.shape
        listed = ", ".join(
            "{" + ", ".join(number(float(x), "float64") for x in row) + "}" for row in rows
        )
        self._given(s.name, self._new(s.name, width, True))
        copied = [f"{place} = {table}[{i}][{j}];" for j, place in enumerate(self._places[s.name])]
        return [
            "{",
            f"    static const double {table}[{count}][{width}] = {{{listed}}};",
            *_indented(_braced(f"for (int {i} = 0; {i} < {count}; {i}++)",
                               [*copied, *self.lines(s.body, entry)])),
            "}",
        ]  # fmt: skip

    def _random(self, s: Random) -> list[str]:
        self._random_used = True
        (low, high), (run,), (tick,) = (self._places[name] for name in (s.seed, s.run, s.tick))
        seed = f"(uint64_t)(uint32_t){low} | (uint64_t)(uint32_t){high} << 32"
        per, places = random_words.PER_BLOCK[s.kind], self._places[s.cell]
        lines = [f"{SCALARS[self._dtype]} numbers[{per}];"]
        for first in range(0, len(places), per):
            arguments = f"{seed}, (uint32_t){run}, {s.stream}u, (uint64_t){tick}, {first // per}u"
            lines.append(f"remora_{s.kind}_numbers({arguments}, numbers);")
            lines += [
                self._writing(place, False, self._wide[s.cell]).format(f"numbers[{j}]")
                for j, place in enumerate(places[first : first + per])
            ]
        return _braced("", lines)

    def _record(self, s: Record) -> list[str]:
        """Return the text of a Record; the number of the row is a member of `work`."""
        block, index = self._ready(s), self._reading(s.index, 0, True)
        row = self._counter("record")
        self.members.append(Member(row, (), "", "uint32_t"))
        lines = [
            f"{WORK}->{row} = (uint32_t){index};",
            *self._called(block, self._stores(block, f"{WORK}->{row}")),
        ]
        inside = f"{index} >= 0.0 && {index} < {number(float(self._capacity[s.buffer]), 'float64')}"
        return _braced(f"if ({inside})", lines)

    def _stores(self, block: GraphBlock, row: str) -> list[tuple[str, int]]:
        """Return the assignments of a block that writes outputs."""
        assert self._outputs is not None
        known = {o.name: o for o in self._plan.program.outputs}
        found: list[tuple[str, int]] = []
        for signature, result in zip(block.graph.outputs, block.graph.results, strict=True):
            output = known[signature.name]
            places = self._outputs(output, "" if output.per == "run" else row)
            for place, i in zip(places, result, strict=True):
                found.append((self._writing(place, block.wide, output.wide), i))
        return found

    # Blocks ---------------------------------------------------------------------------------------

    def _ready(self, s: Run | Sample | Record) -> GraphBlock:
        """Return the block of a statement without floor."""
        block = graph_block(s)
        dtype = "float64" if block.wide else self._dtype
        return replace(block, graph=without_floor(block.graph, dtype))

    def _called(self, block: GraphBlock, stores: Sequence[tuple[str, int]]) -> list[str]:
        """Return the call of a block, whose function is added."""
        dtype = "float64" if block.wide else self._dtype
        graph = block.graph
        body, _, math_used = statements(
            graph, dtype, lambda k, j: self._reading(graph.inputs[k].name, j, block.wide), stores
        )
        text = "\n".join(body)
        roles = tuple(role for role in self._roles if f"{role}->" in text)
        own = f"block_{len(self.functions)}"
        written = tuple(r for r in roles if any(f"{r}->" in s for s, _ in stores))
        self.functions.append(
            Function(own, roles, written, None, tuple(body), local=True, uses=tuple(math_used),
                     notes=(block.name[:90],))
        )  # fmt: skip
        return [f"{self._name}_{own}({', '.join(roles)});"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _braced(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{head} {{".lstrip(), *_indented(lines), "}"]
