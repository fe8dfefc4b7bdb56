"""Lowering of a prepared graph to LLVM IR, one SIMD lane per state of the batch.

    void NAME(const T* a0, i64 s0, ..., T* o0, i64 t0, ..., i64 n)

Argument k of state b is at `ak + b·sk`, its numbers contiguous; a stride of zero passes the same
values to every state. States are processed `lanes` at a time; in the last group, unused lanes
repeat the last state, so that a result depends on its own arguments only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from remora.codegen.ir.graph import ELEMENTARY, Graph

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "rounded_mul": "fmul", "div": "fdiv"}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_LOGIC = {"and": "and", "or": "or"}
_INTRINSIC = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"}
SCALARS = {"float64": "double", "float32": "float"}
SUFFIX = {"float64": "f64", "float32": "f32"}


@dataclass
class Writer:
    """Lines of IR with numbered names.

    Attributes:
        lines: the lines so far.
        count: number of names.
        block: label of the current basic block.
    """

    lines: list[str] = field(default_factory=list[str])
    count: int = 0
    block: str = "entry"

    def emit(self, text: str) -> str:
        """Emit `%n = text` and return the name."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def put(self, text: str) -> None:
        """Emit a line without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{name}:")
        self.block = name

    @contextmanager
    def loop(
        self, name: str, count: int | str, stop: Callable[[], str] | None = None
    ) -> Generator[str]:
        """Emit the enclosed code as a loop; yields the counter.

        Args:
            name: label of the loop.
            count: number of iterations.
            stop: emits the test whether to leave the loop after an iteration.
        """
        before, i = self.block, f"%{name}.i"
        some = self.emit(f"icmp sgt i64 {count}, 0")
        self.put(f"br i1 {some}, label %{name}, label %{name}.done")
        self.label(name)
        self.put(f"{i} = phi i64 [0, %{before}], [%{name}.next, %{name}.last]")
        yield i
        self.put(f"br label %{name}.last")
        self.label(f"{name}.last")
        self.put(f"%{name}.next = add i64 {i}, 1")
        more = self.emit(f"icmp slt i64 %{name}.next, {count}")
        if stop is not None:
            more = self.emit(f"select i1 {stop()}, i1 false, i1 {more}")
        self.put(f"br i1 {more}, label %{name}, label %{name}.done")
        self.label(f"{name}.done")


def lower(graph: Graph, name: str, dtype: str, lanes: int) -> str:
    """Return the LLVM IR of a kernel, without the declarations of functions (see `declared`).

    Args:
        graph: prepared by `graph_passes.prepared`.
        name: name of the function.
        dtype: `float64` or `float32`.
        lanes: number of states computed at once, a power of two.
    """
    w, scalar, values = Writer(), SCALARS[dtype], dict[int, str]()

    def emit() -> None:
        rows_of(w, lanes)
        for k, (signature, used) in enumerate(zip(graph.inputs, used_inputs(graph), strict=True)):
            if used:
                columns = load(w, f"a{k}", signature.size, scalar, lanes)
                values.update((graph.input(k, j), column) for j, column in enumerate(columns))
        operations(w, graph, values, dtype, lanes)
        for k, result in enumerate(graph.results):
            store(w, f"o{k}", [values[i] for i in result], scalar, lanes)

    arrays = [*(f"a{k}" for k in range(len(graph.inputs)))]
    arrays += [f"o{k}" for k in range(len(graph.outputs))]
    return rows_function(w, name, arrays, lanes, emit)


def rows_function(
    w: Writer,
    name: str,
    arrays: Sequence[str],
    lanes: int,
    emit: Callable[[], None],
    more: str = "",
) -> str:
    """Return the IR of a function on rows of states, `lanes` at a time.

    Args:
        w: an empty writer.
        name: name of the function.
        arrays: names of its arrays, each a pointer and a stride.
        lanes: number of states computed at once.
        emit: emits into `w` what is done with the states from number `%b` on.
        more: its other parameters after the number of states, and its attributes.
    """
    w.put("%last = sub i64 %n, 1")
    w.put("%any = icmp sgt i64 %n, 0")
    w.put("br i1 %any, label %group, label %done")
    w.label("group")
    w.put("%b = phi i64 [0, %entry], [%next, %group.end]")
    emit()
    w.put("br label %group.end")
    w.label("group.end")
    w.put(f"%next = add i64 %b, {lanes}")
    w.put("%more = icmp slt i64 %next, %n")
    w.put("br i1 %more, label %group, label %done")
    w.label("done")
    w.put("ret void")
    parameters = ", ".join(f"ptr noalias %{a}, i64 %s_{a}" for a in arrays)
    head = f"define void @{name}({parameters}, i64 %n{more or ')'} {{"
    return "\n".join([head, "entry:", *w.lines, "}\n"])


def used_inputs(graph: Graph) -> list[bool]:
    """Return for each input whether the graph uses any of its elements."""
    used = [False] * len(graph.inputs)
    for op, a in graph.nodes:
        if op == "input":
            used[a[0]] = True
    return used


def vector(scalar: str, lanes: int) -> str:
    """Return the IR type of `lanes` numbers."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def constant(value: float, dtype: str, lanes: int) -> str:
    """Return a number as an IR literal."""
    if dtype == "float32":
        value = float(np.float32(value))
    text = "0x" + struct.pack(">d", value).hex().upper()
    if lanes == 1:
        return text
    return "<" + ", ".join([f"{SCALARS[dtype]} {text}"] * lanes) + ">"


def everywhere(w: Writer, x: str, scalar: str, lanes: int) -> str:
    """Emit a number broadcast to all lanes."""
    if lanes == 1:
        return x
    t = vector(scalar, lanes)
    one = w.emit(f"insertelement {t} poison, {scalar} {x}, i32 0")
    return w.emit(f"shufflevector {t} {one}, {t} poison, <{lanes} x i32> zeroinitializer")


def operations(w: Writer, graph: Graph, values: dict[int, str], dtype: str, lanes: int) -> None:
    """Emit the operations that results depend on, e.g. no product that was fused with a sum.

    `values` maps inputs to names and receives the rest.
    """
    needed = graph.needed()
    for i, (op, a) in enumerate(graph.nodes):
        if not needed[i]:
            continue
        if op == "const":
            values[i] = constant(a[0], dtype, lanes)
        elif op != "input":
            values[i] = operation(w, op, [values[k] for k in a], dtype, lanes)


def operation(w: Writer, op: str, a: Sequence[str], dtype: str, lanes: int) -> str:
    """Emit one operation of a graph and return the name of its result."""
    t = vector(SCALARS[dtype], lanes)
    bits = vector("i1", lanes)
    if op in _BINARY:
        return w.emit(f"{_BINARY[op]} {t} {a[0]}, {a[1]}")
    if op in _COMPARE:
        return w.emit(f"fcmp {_COMPARE[op]} {t} {a[0]}, {a[1]}")
    if op in _LOGIC:
        return w.emit(f"{_LOGIC[op]} {bits} {a[0]}, {a[1]}")
    if op == "not":
        ones = "true" if lanes == 1 else "<" + ", ".join(["i1 true"] * lanes) + ">"
        return w.emit(f"xor {bits} {a[0]}, {ones}")
    if op == "neg":
        return w.emit(f"fneg {t} {a[0]}")
    if op == "select":
        return w.emit(f"select {bits} {a[0]}, {t} {a[1]}, {t} {a[2]}")
    if op in ("min", "max"):  # NaN if either is NaN, as in NumPy; processors differ on this
        smaller = w.emit(f"fcmp {'olt' if op == 'min' else 'ogt'} {t} {a[0]}, {a[1]}")
        picked = w.emit(f"select {bits} {smaller}, {t} {a[0]}, {t} {a[1]}")
        missing = w.emit(f"fcmp uno {t} {a[0]}, {a[0]}")
        return w.emit(f"select {bits} {missing}, {t} {a[0]}, {t} {picked}")
    if op in _INTRINSIC:
        arguments = ", ".join(f"{t} {x}" for x in a)
        return w.emit(f"call {t} @llvm.{_intrinsic(op, dtype, lanes)}({arguments})")
    assert op in ELEMENTARY, op
    return _call_per_lane(w, op, a, dtype, lanes)


def _intrinsic(op: str, dtype: str, lanes: int) -> str:
    width = "" if lanes == 1 else f"v{lanes}"
    return f"{_INTRINSIC[op]}.{width}{SUFFIX[dtype]}"


def _call_per_lane(w: Writer, op: str, a: Sequence[str], dtype: str, lanes: int) -> str:
    """Call the C library's function lane by lane: only for operations in user functions."""
    scalar, t = SCALARS[dtype], vector(SCALARS[dtype], lanes)
    name = op if dtype == "float64" else op + "f"
    if lanes == 1:
        return w.emit(f"call {scalar} @{name}({', '.join(f'{scalar} {x}' for x in a)})")
    result = "poison"
    for k in range(lanes):
        parts = [w.emit(f"extractelement {t} {x}, i32 {k}") for x in a]
        value = w.emit(f"call {scalar} @{name}({', '.join(f'{scalar} {x}' for x in parts)})")
        result = w.emit(f"insertelement {t} {result}, {scalar} {value}, i32 {k}")
    return result


def declared(graph: Graph, dtype: str, lanes: int) -> list[str]:
    """Return the declarations of the intrinsics and C functions that a graph needs."""
    scalar, t = SCALARS[dtype], vector(SCALARS[dtype], lanes)
    result: list[str] = []
    for op in sorted({op for op, _ in graph.nodes}):
        count = {"fma": 3, "min": 2, "max": 2, "atan2": 2, "pow": 2}.get(op, 1)
        if op in _INTRINSIC:
            arguments = ", ".join([t] * count)
            result.append(f"declare {t} @llvm.{_intrinsic(op, dtype, lanes)}({arguments})")
        elif op in ELEMENTARY:
            name = op if dtype == "float64" else op + "f"
            result.append(f"declare {scalar} @{name}({', '.join([scalar] * count)})")
    return result


# Memory: rows of states to columns of lanes and back ------------------------------------------


def rows_of(w: Writer, lanes: int) -> None:
    """Emit the index of each lane's state, from `%b` on; unused lanes repeat the last."""
    for k in range(lanes):
        row = w.emit(f"add i64 %b, {k}")
        inside = w.emit(f"icmp slt i64 {row}, %last")
        w.put(f"%row{k} = select i1 {inside}, i64 {row}, i64 %last")


def row_pointers(w: Writer, array: str, scalar: str, lanes: int) -> list[str]:
    """Emit the address of each lane's row of an array."""
    pointers: list[str] = []
    for k in range(lanes):
        offset = w.emit(f"mul i64 %row{k}, %s_{array}")
        pointers.append(w.emit(f"getelementptr {scalar}, ptr %{array}, i64 {offset}"))
    return pointers


def load(w: Writer, array: str, size: int, scalar: str, lanes: int) -> list[str]:
    """Return the elements of an argument, each a vector over the lanes."""
    rows = row_pointers(w, array, scalar, lanes)
    t = vector(scalar, lanes)
    columns: dict[int, str] = {}
    if lanes == 1 or size < lanes:
        for j in range(size):
            value = "poison"
            for k, row in enumerate(rows):
                place = w.emit(f"getelementptr {scalar}, ptr {row}, i64 {j}")
                x = w.emit(f"load {scalar}, ptr {place}")
                value = (
                    x if lanes == 1 else w.emit(f"insertelement {t} {value}, {scalar} {x}, i32 {k}")
                )
            columns[j] = value
        return [columns[j] for j in range(size)]
    for start in block_starts(size, lanes):
        block: list[str] = []
        for row in rows:
            place = w.emit(f"getelementptr {scalar}, ptr {row}, i64 {start}")
            block.append(w.emit(f"load {t}, ptr {place}, align {align(scalar)}"))
        for j, column in enumerate(transposed(w, block, scalar, lanes)):
            columns[start + j] = column
    return [columns[j] for j in range(size)]


def store(w: Writer, array: str, columns: Sequence[str], scalar: str, lanes: int) -> None:
    """Store vectors over the lanes as rows of states."""
    store_in_rows(w, row_pointers(w, array, scalar, lanes), columns, scalar, lanes)


def store_in_rows(
    w: Writer, rows: Sequence[str], columns: Sequence[str], scalar: str, lanes: int
) -> None:
    """Store vectors over the lanes, each lane's numbers at an address of its own."""
    t, size = vector(scalar, lanes), len(columns)
    if lanes == 1 or size < lanes:
        for j, column in enumerate(columns):
            for k, row in enumerate(rows):
                x = column if lanes == 1 else w.emit(f"extractelement {t} {column}, i32 {k}")
                place = w.emit(f"getelementptr {scalar}, ptr {row}, i64 {j}")
                w.put(f"store {scalar} {x}, ptr {place}")
        return
    for start in block_starts(size, lanes):
        block = transposed(w, list(columns[start : start + lanes]), scalar, lanes)
        for row, value in zip(rows, block, strict=True):
            place = w.emit(f"getelementptr {scalar}, ptr {row}, i64 {start}")
            w.put(f"store {t} {value}, ptr {place}, align {align(scalar)}")


def align(scalar: str) -> int:
    """Return the alignment of a number in bytes."""
    return 8 if scalar == "double" else 4


def block_starts(size: int, lanes: int) -> list[int]:
    """Return the starts of square blocks that cover all columns; the last may overlap."""
    starts = list(range(0, size - lanes + 1, lanes))
    if size % lanes:
        starts.append(size - lanes)
    return starts


def transposed(w: Writer, rows: list[str], scalar: str, lanes: int) -> list[str]:
    """Transpose a square block in log2(lanes) rounds of shuffles."""
    t = vector(scalar, lanes)
    step = 1
    while step < lanes:
        low = [k if not k & step else k - step + lanes for k in range(lanes)]
        high = [k + step if not k & step else k + lanes for k in range(lanes)]
        result = list(rows)
        for i in range(lanes):
            if i & step:
                continue
            a, b = rows[i], rows[i + step]
            for target, mask in ((i, low), (i + step, high)):
                indices = ", ".join(f"i32 {m}" for m in mask)
                result[target] = w.emit(
                    f"shufflevector {t} {a}, {t} {b}, <{lanes} x i32> <{indices}>"
                )
        rows = result
        step *= 2
    return rows
