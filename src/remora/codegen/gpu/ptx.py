"""PTX (the assembly language of NVIDIA GPUs) of a prepared graph, one thread per state.

    .entry NAME(a0, s0, ..., o0, t0, ..., n)

Each array k has one of two layouts, chosen when the code is generated. In "rows", number j of state
b is at `ak + b·sk + j`: the numbers of a state are contiguous, and a stride of zero passes the same
values to every state. In "columns" it is at `ak + b + j·sk`: neighbouring threads access
neighbouring addresses (coalesced).

A large graph is split into several entries, NAME_1, NAME_2, ..., to be launched in order with the
same arguments. Each computes some of the outputs. If the graph has a waist, the first entries
compute it into an array of columns, passed between inputs and outputs, and the others start there.

LLVM's NVPTX back end generates the text; the CUDA driver compiles it to machine code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from remora.codegen.gpu.schedule import (
    SchedulePart,
    ThreadCost,
    accesses,
    cost,
    parts,
    positive,
    slots_of,
)
from remora.codegen.ir.graph import ELEMENTARY, Graph
from remora.codegen.llvm.host import llvm
from remora.codegen.llvm.lowering import SCALARS, SUFFIX, Writer, constant, declared, operation
from remora.errors import RemoraError

LAYOUTS = ("rows", "columns")
TRIPLE = "nvptx64-nvidia-cuda"
#: Minimum compute capability and PTX version; requires a driver for CUDA 11 or later.
ARCHITECTURE, VERSION = "sm_70", "+ptx70"
#: A thread has 255 32-bit registers, some used for addresses; access cost as measured on an H200.
MEMORY = {
    "float64": ThreadCost(registers=100, access=9.0, item=8),
    "float32": ThreadCost(registers=220, access=20.0, item=4),
}


class Ptx(NamedTuple):
    """PTX of a kernel.

    Attributes:
        text: the PTX.
        entries: names of the entries, in launch order.
        waist: numbers per state in the array between inputs and outputs; 0: no such array.
        scratch: numbers of scratch memory per thread, in an array after `n`; 0: none.
    """

    text: str
    entries: list[str]
    waist: int = 0
    scratch: int = 0


class Piece(NamedTuple):
    """An entry to be generated: some outputs of a graph, and the names of its arrays."""

    graph: Graph
    part: SchedulePart
    inputs: list[str]
    outputs: list[str]


def write_ptx(graph: Graph, name: str, dtype: str, layouts: Sequence[str]) -> Ptx:
    """Return the PTX of a kernel.

    Args:
        graph: prepared by `graph_passes.prepared`.
        name: name of the entry.
        dtype: `float64` or `float32`.
        layouts: "rows" or "columns" for each input, then for each output.
    """
    pieces, waist = _pieces(graph, MEMORY[dtype])
    inputs = [f"a{k}" for k in range(len(graph.inputs))]
    outputs = [f"o{k}" for k in range(len(graph.outputs))]
    layout = dict(zip([*inputs, *outputs], layouts, strict=True))
    arrays = [*inputs, *outputs]
    if waist:
        arrays, layout["w"] = [*inputs, "w", *outputs], "columns"
    entries = [name] if len(pieces) == 1 else [f"{name}_{k + 1}" for k in range(len(pieces))]
    needed = declared_always(dtype, REGISTERS.values())
    text = ""
    for entry, piece in zip(entries, pieces, strict=True):
        text += _entry(piece, entry, dtype, {a: layout[a] for a in arrays})
        needed.update(declared(piece.graph, dtype, 1))
    note = f"// n threads; to launch: {', '.join(entries)}\n"
    if waist:
        note += f"// between inputs and outputs: {waist} numbers a state, in columns\n"
    return Ptx(note + assembled(text + "\n".join(sorted(needed))), entries, waist)


def _pieces(graph: Graph, memory: ThreadCost) -> tuple[list[Piece], int]:
    """Return the entries, by the cheaper of two ways: undivided, or divided at the waist."""
    inputs = [f"a{k}" for k in range(len(graph.inputs))]
    outputs = [f"o{k}" for k in range(len(graph.outputs))]
    direct = parts(graph, memory)
    if graph.waist and any(accesses(part) for part in direct):
        before, after = graph.at_waist()
        first, then = parts(before, memory), parts(after, memory)
        if cost(first, memory) + cost(then, memory) < cost(direct, memory):
            pieces = [Piece(before, part, inputs, ["w"]) for part in first]
            pieces += [Piece(after, part, [*inputs, "w"], outputs) for part in then]
            return pieces, len(graph.waist)
    return [Piece(graph, part, inputs, outputs) for part in direct], 0


def entry_name(name: str) -> str:
    """Return a kernel's name as a valid PTX identifier."""
    entry = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return entry if entry[:1].isalpha() else f"kernel_{entry}"


def assembled(ir: str) -> str:
    """Return LLVM IR as PTX."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(ir)
    module.triple = TRIPLE
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=ARCHITECTURE, features=VERSION, opt=2
    )
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_assembly(module)


#: Special registers that identify a thread's state.
REGISTERS = {"tid": "tid.x", "ctaid": "ctaid.x", "ntid": "ntid.x"}


def _entry(piece: Piece, name: str, dtype: str, layout: dict[str, str]) -> str:
    """Return the LLVM IR of one entry."""
    lines = Lines(piece, dtype, layout)
    lines.write()
    arrays = ", ".join(f"ptr addrspace(1) %{a}, i64 %s_{a}" for a in layout)
    slots = slots_of(piece.part)
    start = [special(own, register) for own, register in REGISTERS.items()]
    if slots:
        start.append(f"  %generic = alloca [{slots} x {SCALARS[dtype]}]")
        start.append("  %slots = addrspacecast ptr %generic to ptr addrspace(5)")
    return kernel_text(name, f"{arrays}, i64 %n", start, lines.w.lines)


def kernel_text(name: str, parameters: str, start: Iterable[str], lines: Iterable[str]) -> str:
    """Return the LLVM IR of a kernel: `lines` run in the threads of states below `%n`.

    Args:
        name: name of the kernel.
        parameters: its parameters.
        start: instructions before; they read `REGISTERS`.
        lines: instructions for the state `%b`.
    """
    return f"""
define ptx_kernel void @{name}({parameters}) {{
entry:
{chr(10).join(start)}
  %first = mul i64 %ctaid, %ntid
  %b = add i64 %first, %tid
  %any = icmp slt i64 %b, %n
  br i1 %any, label %work, label %done
work:
{chr(10).join(lines)}
  br label %done
done:
  ret void
}}
"""


def special(name: str, register: str) -> str:
    """Return IR that reads a special register, such as `tid.x`, as a 64-bit integer."""
    read = f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()"
    return f"  %{name}32 = {read}\n  %{name} = zext i32 %{name}32 to i64"


def declared_always(dtype: str, registers: Iterable[str]) -> set[str]:
    """Return the declarations of intrinsics that every kernel may call."""
    t, suffix = SCALARS[dtype], SUFFIX[dtype]
    return {
        *(f"declare i32 @llvm.nvvm.read.ptx.sreg.{r}()" for r in registers),
        f"declare {t} @llvm.fma.{suffix}({t}, {t}, {t})",
        f"declare {t} @{_RECIPROCAL[dtype]}({t})",
    }


_RECIPROCAL = {
    "float64": "llvm.nvvm.rcp.approx.ftz.d",
    "float32": "llvm.nvvm.rcp.approx.ftz.f",
}
#: Newton iterations from the hardware estimate (20 bits, 23 bits) to full precision.
_NEWTON = {"float64": 2, "float32": 1}


def quotient(w: Writer, x: str, d: str, dtype: str) -> str:
    """Emit a branch-free x/d accurate to about one unit in the last place; return its name.

    The hardware estimate r of 1/d is refined by r (1 + e + e²...), e = 1 - d r. If d is zero or
    infinite, e is NaN and r is already correct.
    """
    t, one = SCALARS[dtype], constant(1.0, dtype, 1)
    estimate = w.emit(f"call {t} @{_RECIPROCAL[dtype]}({t} {d})")
    minus = operation(w, "neg", [d], dtype, 1)
    r, error = estimate, one
    for _ in range(_NEWTON[dtype]):
        error = operation(w, "fma", [minus, r, one], dtype, 1)
        r = operation(w, "fma", [r, error, r], dtype, 1)
    usual = w.emit(f"fcmp ord {t} {error}, {error}")
    r = w.emit(f"select i1 {usual}, {t} {r}, {t} {estimate}")
    return r if x == one else operation(w, "mul", [x, r], dtype, 1)


class Lines:
    """The IR of one thread.

    Attributes:
        w: destination of the IR.
    """

    def __init__(
        self, piece: Piece, dtype: str, layout: dict[str, str], w: Writer | None = None
    ) -> None:
        """Start after the existing contents of `w`."""
        self.w = Writer() if w is None else w
        self._piece, self._graph, self._dtype, self._layout = piece, piece.graph, dtype, layout
        self._type = SCALARS[dtype]
        self._value: dict[int, str] = {}
        self._start: dict[str, str] = {}

    def write(self) -> None:
        """Emit all steps; a result is stored as soon as it is computed."""
        graph, part = self._graph, self._piece.part
        # keyed by the value, ignoring its sign
        results: dict[int, list[tuple[int, int]]] = {}
        for k, j in part.results:
            results.setdefault(positive(graph, graph.results[k][j]), []).append((k, j))
        for what, i, slot in part.steps:
            if what == "fetch":
                self._value[i] = self._fetched(i, slot)
            elif what == "put":
                self.w.put(f"store volatile {self._type} {self._value[i]}, {self._slot(slot)}")
            else:
                self._operation(i)
                self._store(results.pop(i, ()))
        for i, places in results.items():  # inputs and constants that are outputs unchanged
            if graph.nodes[i][0] == "input":
                self._value[i] = self._fetched(i, -1)
            self._store(places)

    def _fetched(self, i: int, slot: int) -> str:
        if slot >= 0:
            return self.w.emit(f"load volatile {self._type}, {self._slot(slot)}")
        array, j = self._graph.nodes[i][1]
        place = self._place(self._piece.inputs[int(array)], int(j))
        return self.w.emit(f"load {self._type}, {place}")

    def _store(self, places: Sequence[tuple[int, int]]) -> None:
        for k, j in places:
            value = self._number(self._graph.results[k][j])
            place = self._place(self._piece.outputs[k], j)
            self.w.put(f"store {self._type} {value}, {place}")

    def _operation(self, i: int) -> None:
        op, a = self._graph.nodes[i]
        values = [self._number(k) for k in a]
        if op in ELEMENTARY:
            raise RemoraError(f"there is no GPU code for {op!r} yet: compile for the CPU")
        if op == "div":
            self._value[i] = quotient(self.w, values[0], values[1], self._dtype)
        else:
            self._value[i] = operation(self.w, op, values, self._dtype, 1)

    def _number(self, i: int) -> str:
        op, a = self._graph.nodes[i]
        if op == "const":
            return constant(a[0], self._dtype, 1)
        if op == "neg":
            return operation(self.w, "neg", [self._number(a[0])], self._dtype, 1)
        return self._value[i]

    # Memory ----------------------------------------------------------------------------------

    def _slot(self, slot: int) -> str:
        place = self.w.emit(f"getelementptr {self._type}, ptr addrspace(5) %slots, i64 {slot}")
        return f"ptr addrspace(5) {place}"

    def _place(self, array: str, j: int) -> str:
        w, t = self.w, self._type
        rows = self._layout[array] == "rows"
        if array not in self._start:
            offset = w.emit(f"mul i64 %b, %s_{array}") if rows else "%b"
            self._start[array] = w.emit(
                f"getelementptr {t}, ptr addrspace(1) %{array}, i64 {offset}"
            )
        offset = str(j) if rows else w.emit(f"mul i64 %s_{array}, {j}")
        place = w.emit(f"getelementptr {t}, ptr addrspace(1) {self._start[array]}, i64 {offset}")
        return f"ptr addrspace(1) {place}"
