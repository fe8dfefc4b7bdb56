"""Lowering of tree loops to LLVM IR, `lanes` states at once.

    void NAME(const T* a0, i64 s0, ..., T* o0, i64 t0, ..., i64 n, T* scratch)

The signature is that of `lower` plus vector-aligned scratch memory. A sweep is a loop over the rows
of a table with the class and the offsets of each item. Offsets are counted in vectors of lanes, so
that one table serves any number of lanes.
"""

from __future__ import annotations

import numpy as np

from remora.codegen.llvm.lowering import SCALARS, constant, rows_function
from remora.codegen.tree_loops.ancestor_loops import ancestor_rows, mirror
from remora.codegen.tree_loops.item_classes import ItemClass, classed
from remora.codegen.tree_loops.loops import Loops
from remora.codegen.tree_loops.memory import LaneMemory
from remora.codegen.tree_loops.step_code import StepCode
from remora.codegen.tree_loops.tables import Tables, tables


def module(loops: Loops, functions: dict[str, int], dtype: str, fma: bool) -> tuple[str, list[int]]:
    """Return loops as IR functions, one for each name and number of lanes.

    Returns:
        The IR, and for each function its scratch memory in vectors of lanes.
    """
    plan = classed(loops)
    layout = tables(plan)
    text, needed, rooms = constants(layout, dtype), set[str](), list[int]()
    if loops.rows and not loops.shared:
        text += mirror(loops.outputs[0].shape[0], dtype, max(functions.values()))
    for name, lanes in functions.items():
        code = StepCode(plan, layout, LaneMemory(plan, dtype, lanes), dtype, fma)
        text += _function(code, name)
        needed.update(code.needed)
        rooms.append(code.memory.size + layout.size)
    return text + "\n".join(sorted(needed)) + "\n", rooms


def constants(layout: Tables, dtype: str, space: str = "") -> str:
    """Return the constant tables, shared by all functions of a module.

    Args:
        layout: the tables.
        dtype: dtype of the numbers.
        space: LLVM address space, if not the default.
    """
    scalar = SCALARS[dtype]
    values = ", ".join(f"{scalar} {constant(x, dtype, 1)}" for x in layout.numbers)
    lines = [f"@numbers = internal {space}constant [{len(layout.numbers)} x {scalar}] [{values}]"]
    named = {f"sweep{s}": columns for s, columns in enumerate(layout.sweeps)}
    for name, columns in (named | {"climb": layout.climb}).items():
        rows = np.array(list(columns.values()), dtype=np.int64).T
        entries = ", ".join(f"i32 {x}" for x in rows.reshape(-1))
        lines.append(f"@{name} = internal {space}constant [{rows.size} x i32] [{entries}]")
    return "\n".join(lines) + "\n"


def _function(code: StepCode, name: str) -> str:
    memory = code.memory

    def emit() -> None:
        memory.begin(code.w)
        sweeps(code)
        memory.end(code.w)

    arrays = [*memory.arrays, *memory.results]
    return rows_function(code.w, name, arrays, memory.lanes, emit, ", ptr noalias %scratch)")


def sweeps(code: StepCode) -> None:
    """Emit all sweeps for one group of states that `Memory.begin` has set up."""
    with code.w.loop("zeros", code.layout.zeros) as i:
        code.memory.store(code.w, i, 0, "zeroinitializer")
    for s, sweep in enumerate(code.plan.loops.sweeps):
        if sweep.climbs:
            ancestor_rows(code, s)
        else:
            _sweep(code, s)


def _sweep(code: StepCode, s: int) -> None:
    w, columns = code.w, code.layout.sweeps[s]
    with w.loop(f"sweep{s}", len(columns["class"])) as item:
        kind = code.row(f"sweep{s}", list(columns), item)("class")
        code.switch(f"sweep{s}", w.emit(f"trunc i64 {kind} to i32"))
        for k, item_class in enumerate(code.plan.classes):
            w.label(f"sweep{s}.c{k}")
            first = {f for f, c in zip(columns["first"], columns["class"], strict=True) if c == k}
            _step(code, item_class, s, item, first)
            w.put(f"br label %sweep{s}.joined")
        w.label(f"sweep{s}.joined")


def _step(code: StepCode, item_class: ItemClass, s: int, item: str, first: set[int]) -> None:
    """Emit the step of one class and the stores of its results."""
    w, memory, plan = code.w, code.memory, code.plan
    place = code.row(f"sweep{s}", list(code.layout.sweeps[s]), item)
    graph, name = code.step(item_class, s, place)
    left, passed, result = graph.results
    for node, k in zip(left, item_class.leaves[s], strict=True):
        memory.store(w, place("kept"), k, name(node))
    for k, node in enumerate(result):
        if plan.loops.rows:
            memory.store(w, place("rows"), k, name(node))
        else:
            memory.write(w, "o0", place("at out"), k, name(node))
    inward = plan.loops.sweeps[s].inward
    if not passed or (not inward and item_class.ends and plan.kept_at[s] is None):
        return
    values, target = [name(node) for node in passed], place("passed")
    if not inward or 0 not in first:
        memory.store_all(w, target, values)
        return
    label = w.block
    empty = w.emit(f"icmp ne i64 {place('first')}, 0")
    w.put(f"br i1 {empty}, label %{label}.first, label %{label}.more")
    w.label(f"{label}.first")
    memory.store_all(w, target, values)
    w.put(f"br label %{label}.end")
    w.label(f"{label}.more")
    sums = [
        w.emit(f"fadd {memory.vector} {memory.load(w, target, k)}, {x}")
        for k, x in enumerate(values)
    ]
    memory.store_all(w, target, sums)
    w.put(f"br label %{label}.end")
    w.label(f"{label}.end")
