"""A prepared graph as PTX, the assembly language of NVIDIA's GPUs: a thread for each state.

    .entry NAME(a0, s0, ..., o0, t0, ..., n)

Array k of state b is laid out in one of two ways, chosen when the code is made: in "rows", number
j stands at `ak + b·sk + j`, so that the numbers of a state are next to each other (a stride of
zero gives every state the same); in "columns" at `ak + b + j·sk`, so that neighbouring threads
read neighbouring numbers.

A large graph becomes several entries, NAME_1, NAME_2, ..., to be launched one after the other with
the same arguments. Each makes some of the outputs; where the graph has a waist, the first make
that, in an array of columns that stands between inputs and outputs, and the others start from it.

LLVM's NVPTX back end writes the text; the machine code is made of it by the driver that runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from remora.codegen.gpu.schedule import Memory, Part, accesses, cost, parts, positive, slots_of
from remora.codegen.ir.graph import ELEMENTARY, Graph
from remora.codegen.llvm.host import llvm
from remora.codegen.llvm.lowering import SCALARS, SUFFIX, Writer, constant, declared, operation
from remora.errors import RemoraError

LAYOUTS = ("rows", "columns")
TRIPLE = "nvptx64-nvidia-cuda"
#: PTX runs on this generation and every later one; and needs a driver of CUDA 11 or later.
ARCHITECTURE, VERSION = "sm_70", "+ptx70"
#: A thread has 255 registers of 32 bits, some of them for addresses; accesses as on an H200.
MEMORY = {
    "float64": Memory(registers=100, access=9.0, item=8),
    "float32": Memory(registers=220, access=20.0, item=4),
}


class Ptx(NamedTuple):
    """Code for a GPU.

    Attributes:
        text: the PTX.
        entries: names of what to launch, in order.
        waist: how many numbers of a state the array between inputs and outputs holds; 0: none.
        scratch: how many numbers of memory a thread needs, in an array after `n`; 0: none.
    """

    text: str
    entries: list[str]
    waist: int = 0
    scratch: int = 0


class Piece(NamedTuple):
    """An entry to be written: some outputs of a graph, whose arrays have these names."""

    graph: Graph
    part: Part
    inputs: list[str]
    outputs: list[str]


def write_ptx(graph: Graph, name: str, dtype: str, layouts: Sequence[str]) -> Ptx:
    """Return the PTX of a kernel.

    Args:
        graph: prepared by `expand.prepared`.
        name: of the entry.
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


def _pieces(graph: Graph, memory: Memory) -> tuple[list[Piece], int]:
    """Return what to write, in the cheaper of two ways: as it is, or divided at the waist."""
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
    """Return a kernel's name as PTX allows it."""
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


#: Special registers that say which state a thread has.
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
    return f"""
define ptx_kernel void @{name}({arrays}, i64 %n) {{
entry:
{chr(10).join(start)}
  %first = mul i64 %ctaid, %ntid
  %b = add i64 %first, %tid
  %any = icmp slt i64 %b, %n
  br i1 %any, label %work, label %done
work:
{chr(10).join(lines.w.lines)}
  br label %done
done:
  ret void
}}
"""


def special(name: str, register: str) -> str:
    """Return what reads a special register, such as `tid.x`, as a number of 64 bits."""
    read = f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()"
    return f"  %{name}32 = {read}\n  %{name} = zext i32 %{name}32 to i64"


def declared_always(dtype: str, registers: Iterable[str]) -> set[str]:
    """Return the declarations of what every kernel may call."""
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
#: Newton steps from the processor's estimate (20 bits, 23 bits) to the whole precision.
_NEWTON = {"float64": 2, "float32": 1}


def quotient(w: Writer, x: str, d: str, dtype: str) -> str:
    """Write x/d to about one unit in the last place, without a branch; return its name.

    The processor's estimate r of 1/d, made better by r (1 + e + e²...), e = 1 - d r. Where d is
    zero or infinite e is not a number, and r is what it should be.
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
        w: where it is written.
    """

    def __init__(
        self, piece: Piece, dtype: str, layout: dict[str, str], w: Writer | None = None
    ) -> None:
        """Begin, after what `w` holds already."""
        self.w = Writer() if w is None else w
        self._piece, self._graph, self._dtype, self._layout = piece, piece.graph, dtype, layout
        self._type = SCALARS[dtype]
        self._value: dict[int, str] = {}
        self._start: dict[str, str] = {}

    def write(self) -> None:
        """Write all steps; a result is stored as soon as it is there."""
        graph, part = self._graph, self._piece.part
        # by the value that it is, or is the negative of
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
        for i, places in results.items():  # inputs and constants that come out as they are
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
