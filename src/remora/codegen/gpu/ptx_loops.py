"""PTX of loops over a tree, for robots too large for straight-line code.

    .entry NAME(a0, s0, ..., o0, t0, ..., n, scratch)

Grid-stride loop: a thread starts at the state of its own index and advances by the number of
threads. Scratch memory is interleaved between threads, so that accesses are coalesced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remora.codegen.gpu import ptx
from remora.codegen.llvm.lowering import Writer
from remora.codegen.tree_loops.item_classes import LoopPlan, classed
from remora.codegen.tree_loops.loop_lowering import constants, sweeps
from remora.codegen.tree_loops.loops import Loops
from remora.codegen.tree_loops.memory import LaneMemory
from remora.codegen.tree_loops.step_code import StepCode
from remora.codegen.tree_loops.tables import tables
from remora.errors import RemoraError

_GLOBAL = "ptr addrspace(1)"


def write_loops(loops: Loops, name: str, dtype: str, layouts: Sequence[str]) -> ptx.Ptx:
    """Return the PTX of a kernel.

    Args:
        loops: the computation.
        name: name of the entry.
        dtype: `float64` or `float32`.
        layouts: "rows" or "columns" for each input, then for each output.
    """
    if loops.rows:
        raise RemoraError(f"{name} of so large a robot has no GPU code yet: compile for the CPU")
    plan = classed(loops)
    layout = tables(plan)
    code = LoopThreadCode(plan, layout, ThreadMemory(plan, dtype, layouts), dtype, fma=True)
    text = constants(layout, dtype, "addrspace(1) ") + _function(code, name)
    registers = ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")
    needed = {*code.needed, *ptx.declared_always(dtype, registers)}
    note = f"// any number of threads; to launch: {name}\n"
    note += f"// last argument: {layout.size} numbers of scratch memory a thread\n"
    ir = text + "\n".join(sorted(needed))
    return ptx.Ptx(note + ptx.assembled(ir), [name], waist=0, scratch=layout.size)


@dataclass
class LoopThreadCode(StepCode):
    """IR of one GPU thread, with branch-free division."""

    def operation(self, op: str, arguments: Sequence[str]) -> str:
        """Emit one operation and return the name of its result."""
        if op == "div":
            return ptx.quotient(self.w, arguments[0], arguments[1], self.dtype)
        return super().operation(op, arguments)


class ThreadMemory(LaneMemory):
    """Memory as accessed by a GPU thread."""

    def __init__(self, plan: LoopPlan, dtype: str, layouts: Sequence[str]) -> None:
        """Lay out the arguments of a plan."""
        super().__init__(plan, dtype, lanes=1)
        self._layout = dict(zip((*self.arrays, *self.results), layouts, strict=True))

    def begin(self, w: Writer) -> None:
        """Emit the setup of state `%b`."""
        for array, layout in self._layout.items():
            offset = w.emit(f"mul i64 %b, %s_{array}") if layout == "rows" else "%b"
            w.put(f"%{array}.row0 = getelementptr {self.scalar}, {_GLOBAL} %{array}, i64 {offset}")
        self.clear_shared(w)

    def row(self, w: Writer, array: str, lane: int, start: str, k: int = 0) -> str:
        """Return the address of number `start + k` of an array."""
        offset = w.emit(f"add i64 {start}, {k}") if k else start
        if self._layout[array] == "columns":
            offset = w.emit(f"mul i64 {offset}, %s_{array}")
        return w.emit(f"getelementptr {self.scalar}, {_GLOBAL} %{array}.row0, i64 {offset}")

    def table(self, w: Writer, name: str, kind: str, index: str, k: int) -> str:
        """Return an entry of a constant table."""
        start = w.emit(f"getelementptr {kind}, {_GLOBAL} @{name}, i64 {index}")
        place = w.emit(f"getelementptr {kind}, {_GLOBAL} {start}, i64 {k}")
        return w.emit(f"load {kind}, {_GLOBAL} {place}")

    def _scratch(self, w: Writer, place: str, k: int) -> str:
        index = w.emit(f"add i64 {place}, {k}")
        offset = w.emit(f"mul i64 {index}, %threads")
        return w.emit(f"getelementptr {self.scalar}, {_GLOBAL} %own, i64 {offset}")

    def _get(self, w: Writer, place: str) -> str:
        return w.emit(f"load {self.vector}, {_GLOBAL} {place}")

    def _put(self, w: Writer, place: str, value: str) -> None:
        w.put(f"store {self.vector} {value}, {_GLOBAL} {place}")


def _function(code: StepCode, name: str) -> str:
    w, memory = code.w, code.memory
    arrays = (*memory.arrays, *memory.results)
    parameters = ", ".join(f"{_GLOBAL} %{a}, i64 %s_{a}" for a in arrays)
    registers = {"tid": "tid.x", "ctaid": "ctaid.x", "ntid": "ntid.x", "nctaid": "nctaid.x"}
    w.lines += [ptx.special(own, register) for own, register in registers.items()]
    w.put("%before = mul i64 %ctaid, %ntid")
    w.put("%thread = add i64 %before, %tid")
    w.put("%threads = mul i64 %nctaid, %ntid")
    w.put(f"%own = getelementptr {memory.scalar}, {_GLOBAL} %scratch, i64 %thread")
    w.put("%any = icmp slt i64 %thread, %n")
    w.put("br i1 %any, label %state, label %done")
    w.label("state")
    w.put("%b = phi i64 [%thread, %entry], [%next, %state.end]")
    memory.begin(w)
    sweeps(code)
    w.put("br label %state.end")
    w.label("state.end")
    w.put("%next = add i64 %b, %threads")
    w.put("%more = icmp slt i64 %next, %n")
    w.put("br i1 %more, label %state, label %done")
    w.label("done")
    w.put("ret void")
    head = f"define ptx_kernel void @{name}({parameters}, i64 %n, {_GLOBAL} %scratch)"
    return "\n".join([head + " {", "entry:", *w.lines, "}\n"])
