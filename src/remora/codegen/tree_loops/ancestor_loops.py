"""Loops over ancestors ("climbs") that fill the rows of a symmetric matrix, as in the CRBA.

Each row of the lower triangle is computed in a buffer of vectors and written state by state; the
upper triangle is its mirror image. If items share rows, every entry is added to the output.
"""

from __future__ import annotations

from collections.abc import Callable

from remora.codegen.llvm.lowering import SCALARS, Writer, align, transposed, vector
from remora.codegen.tree_loops.step_code import StepCode


def ancestor_rows(code: StepCode, s: int) -> None:
    """Emit the loop over all rows."""
    w, memory, columns = code.w, code.memory, code.layout.climb
    size, shared = code.plan.loops.outputs[0].shape[0], code.plan.loops.shared
    if shared:
        _clear(code, size * size)
    with w.loop("climb", len(columns["row"])) as i:
        at = code.row("climb", list(columns), i)
        row, first, count, start, up = (at(name) for name in columns)
        here = w.emit(f"mul i64 {row}, {size}")
        put = _buffered(code, here)
        with w.loop("climb.zero", "0" if shared else first) as k:
            put(k, 0, "zeroinitializer")
        with w.loop("climb.diagonal", count) as k:
            value = memory.load(w, w.emit(f"add i64 {start}, {k}"), code.layout.width)
            column = w.emit(f"add i64 {first}, {k}")
            if shared:
                _add(code, here, column, value)
            else:
                put(column, 0, value)
        begin = [memory.load(w, start, k) for k in code.plan.passed[s]]
        _ancestors(code, s, up, begin, _added(code, row, size) if shared else put)
        if memory.lanes > 1 and not shared:
            wanted = w.emit(f"add i64 {row}, 1")
            for start, width in memory.blocks(w, "climb.out", size, wanted):
                to = w.emit(f"add i64 {here}, {start}")
                rows = [memory.row(w, "o0", k, to) for k in range(memory.lanes)]
                values = [memory.load(w, start, code.layout.buffer + k) for k in range(width)]
                memory.to_rows(w, rows, values)
    for k in range(0 if shared else memory.lanes):
        w.put(f"call void @mirror(ptr %o0.row{k})")


def _clear(code: StepCode, count: int) -> None:
    w, memory = code.w, code.memory
    for k in range(memory.lanes):
        with w.loop(f"clear{k}", count) as i:
            w.put(f"store {memory.scalar} zeroinitializer, ptr {memory.row(w, 'o0', k, i)}")


Put = Callable[[str, int, str], None]


def _ancestors(code: StepCode, s: int, up: str, begin: list[str], put: Put) -> None:
    """Emit the loop over the ancestors of one row's item."""
    w, memory, columns = code.w, code.memory, code.layout.sweeps[s]
    before = w.block
    some = w.emit(f"icmp sge i64 {up}, 0")
    w.put(f"br i1 {some}, label %up, label %up.done")
    w.label("up")
    w.put(f"%up.item = phi i64 [{up}, %{before}], [%up.next, %up.joined]")
    for k, x in enumerate(begin):
        w.put(f"%up.{k} = phi {memory.vector} [{x}, %{before}], [%up.more.{k}, %up.joined]")
    place = code.row(f"sweep{s}", list(columns), "%up.item")
    w.put(f"%up.next = add i64 {place('parent')}, 0")
    code.switch("up", w.emit(f"trunc i64 {place('class')} to i32"))
    ends: list[tuple[str, list[str]]] = []
    for k, item_class in enumerate(code.plan.classes):
        w.label(f"up.c{k}")
        at = code.row(f"sweep{s}", list(columns), "%up.item")
        graph, name = code.step(item_class, s, at, [f"%up.{j}" for j in range(len(begin))])
        _, passed, result = graph.results
        for j, node in enumerate(result):
            put(at("at out"), j, name(node))
        ends.append((w.block, [name(node) for node in passed] or ["poison"] * len(begin)))
        w.put("br label %up.joined")
    w.label("up.joined")
    for k in range(len(begin)):
        sources = ", ".join(f"[{values[k]}, %{block}]" for block, values in ends)
        w.put(f"%up.more.{k} = phi {memory.vector} {sources}")
    more = w.emit("icmp sge i64 %up.next, 0")
    w.put(f"br i1 {more}, label %up, label %up.done")
    w.label("up.done")


def _buffered(code: StepCode, here: str) -> Put:
    """Return a function that puts an entry into the row buffer; a single lane writes in place."""
    w, memory = code.w, code.memory

    def put(start: str, k: int, value: str) -> None:
        if memory.lanes > 1:
            memory.store(w, start, code.layout.buffer + k, value)
        else:
            place = memory.row(w, "o0", 0, w.emit(f"add i64 {here}, {start}"), k)
            w.put(f"store {memory.scalar} {value}, ptr {place}")

    return put


def _added(code: StepCode, row: str, size: int) -> Put:
    """Return a function that adds an entry to the output and to its mirror image."""
    w = code.w

    def put(start: str, k: int, value: str) -> None:
        column = w.emit(f"add i64 {start}, {k}")
        _add(code, w.emit(f"mul i64 {row}, {size}"), column, value)
        _add(code, w.emit(f"mul i64 {column}, {size}"), row, value)

    return put


def _add(code: StepCode, start: str, k: str, value: str) -> None:
    """Add to an element of the output in all lanes at once; unused lanes hold equal values."""
    w, memory = code.w, code.memory
    to = w.emit(f"add i64 {start}, {k}")
    rows = [memory.row(w, "o0", lane, to) for lane in range(memory.lanes)]
    total = w.emit(f"fadd {memory.vector} {memory.gathered(w, rows)}, {value}")
    memory.to_rows(w, rows, [total])


def mirror(size: int, dtype: str, lanes: int) -> str:
    """Return the function that copies the lower triangle of a square matrix to the upper."""
    w, scalar = Writer(), SCALARS[dtype]
    t, blocks = vector(scalar, lanes), size // lanes

    def address(row: str, column: str) -> str:
        start = w.emit(f"mul i64 {row}, {size}")
        return w.emit(f"getelementptr {scalar}, ptr %H, i64 {w.emit(f'add i64 {start}, {column}')}")

    def places(row: str, column: str) -> list[str]:
        return [address(w.emit(f"add i64 {row}, {k}"), column) for k in range(lanes)]

    with w.loop("down", blocks) as i:
        row = w.emit(f"mul i64 {i}, {lanes}")
        with w.loop("across", i) as j:
            column = w.emit(f"mul i64 {j}, {lanes}")
            block = [
                w.emit(f"load {t}, ptr {p}, align {align(scalar)}") for p in places(row, column)
            ]
            turned = transposed(w, block, scalar, lanes)
            for p, x in zip(places(column, row), turned, strict=True):
                w.put(f"store {t} {x}, ptr {p}, align {align(scalar)}")
        corner = places(row, row)
        block = [w.emit(f"load {t}, ptr {p}, align {align(scalar)}") for p in corner]
        for k, x in enumerate(transposed(w, block, scalar, lanes)):
            above = ", ".join(f"i1 {str(n > k).lower()}" for n in range(lanes))
            both = w.emit(f"select <{lanes} x i1> <{above}>, {t} {x}, {t} {block[k]}")
            w.put(f"store {t} {both}, ptr {corner[k]}, align {align(scalar)}")
    with w.loop("rest", size - blocks * lanes) as i:
        row = w.emit(f"add i64 {i}, {blocks * lanes}")
        with w.loop("along", row) as column:
            x = w.emit(f"load {scalar}, ptr {address(row, column)}")
            w.put(f"store {scalar} {x}, ptr {address(column, row)}")
    return "\n".join(
        ["define internal void @mirror(ptr %H) {", "entry:", *w.lines, "  ret void\n}\n"]
    )
