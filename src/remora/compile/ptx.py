"""A prepared graph as PTX, the assembly language of NVIDIA's GPUs: a thread or a few per state.

    .entry NAME(a0, s0, ..., o0, t0, ..., n)

Array k of state b is laid out in one of two ways, chosen when the code is made: in "rows", number
j stands at `ak + b·sk + j`, so that the numbers of a state are next to each other (a stride of
zero gives every state the same); in "columns" at `ak + b + j·sk`, so that neighbouring threads
read neighbouring numbers.

LLVM's NVPTX back end writes the text; the machine code is made of it by the driver that runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from remora.compile.cpu import llvm
from remora.compile.graph import ELEMENTARY, Graph
from remora.compile.lower import SCALARS, SUFFIX, Writer, constant, declared, operation
from remora.compile.schedule import Memory, Part, parts, positive
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
        threads: how many threads share a state: the height of the grid. (Blocks with different
            work side by side would fight for the instruction cache.)
    """

    text: str
    threads: int


def write_ptx(graph: Graph, name: str, dtype: str, layouts: Sequence[str]) -> Ptx:
    """Return the PTX of a kernel.

    Args:
        graph: prepared by `expand.prepared`.
        name: of the entry.
        dtype: `float64` or `float32`.
        layouts: "rows" or "columns" for each input, then for each output.
    """
    shared = parts(graph, MEMORY[dtype])
    note = f"// a grid of n / ntid times {len(shared)} blocks\n"
    return Ptx(note + assembled(lower(graph, shared, name, dtype, layouts)), len(shared))


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


def lower(
    graph: Graph, shared: Sequence[Part], name: str, dtype: str, layouts: Sequence[str]
) -> str:
    """Return the LLVM IR of a kernel whose states are shared by so many threads."""
    w = Writer()
    bodies: list[str] = []
    for number, part in enumerate(shared):
        first = len(w.lines)
        _Lines(w, graph, dtype, layouts).write(part)
        bodies.append(f"part{number}:\n" + "\n".join(w.lines[first:]) + "\n  br label %done")
    scalar = SCALARS[dtype]
    names = [*(f"a{k}" for k in range(len(graph.inputs)))]
    names += [f"o{k}" for k in range(len(graph.outputs))]
    arrays = ", ".join(f"ptr addrspace(1) %{a}, i64 %s_{a}" for a in names)
    registers = {
        "tid": "tid.x", "group": "ctaid.x", "ntid": "ntid.x", "part": "ctaid.y", "zero": "ctaid.z",
    }  # fmt: skip
    calls = "\n".join(special(name, r) for name, r in registers.items())
    slots = 1 + max((step.slot for part in shared for step in part.steps), default=-1)
    room = f"""  %generic = alloca [{slots} x {scalar}]
  %slots = addrspacecast ptr %generic to ptr addrspace(5)
"""
    chosen = "".join(
        f"""  %is{k} = icmp eq i64 %part, {k}
  br i1 %is{k}, label %part{k}, label %not{k}
not{k}:
"""
        for k in range(len(shared) - 1)
    )
    needed = {*declared(graph, dtype, 1), *declared_always(dtype, registers.values())}
    return f"""
define ptx_kernel void @{name}({arrays}, i64 %n) {{
entry:
{room if slots else ""}{calls}
  %first = mul i64 %group, %ntid
  %b = add i64 %first, %tid
  %again = add i64 %b, %zero
  %any = icmp slt i64 %b, %n
  br i1 %any, label %work, label %done
work:
{chosen}  br label %part{len(shared) - 1}
{chr(10).join(bodies)}
done:
  ret void
}}
{chr(10).join(sorted(needed))}
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


class _Lines:
    """The IR of one thread."""

    def __init__(self, w: Writer, graph: Graph, dtype: str, layouts: Sequence[str]) -> None:
        arrays = [f"a{k}" for k in range(len(graph.inputs))]
        arrays += [f"o{k}" for k in range(len(graph.outputs))]
        self._w, self._graph, self._dtype = w, graph, dtype
        self._type = SCALARS[dtype]
        self._layout = dict(zip(arrays, layouts, strict=True))
        self._value: dict[int, str] = {}
        self._start: dict[str, str] = {}
        self._state = "%b"

    def write(self, part: Part) -> None:
        """Write all steps; a result is stored as soon as it is there."""
        graph, w = self._graph, self._w
        # by the value that it is, or is the negative of
        results: dict[int, list[tuple[int, int]]] = {}
        for k, j in part.results:
            results.setdefault(positive(graph, graph.results[k][j]), []).append((k, j))
        for what, i, slot in part.steps:
            if what == "fetch":
                self._value[i] = self._fetched(i, slot)
            elif what == "forget":
                # later loads come from another address, as far as a compiler can tell: else it
                # would see that all is made again, and keep it after all
                self._value.clear()
                self._start.clear()
                self._state = "%again"
            elif what == "put":
                w.put(f"store volatile {self._type} {self._value[i]}, {self._slot(slot)}")
            else:
                self._operation(i)
                self._store(results.pop(i, ()))
        for i, places in results.items():  # inputs and constants that come out as they are
            if graph.nodes[i][0] == "input":
                self._value[i] = self._fetched(i, -1)
            self._store(places)

    def _fetched(self, i: int, slot: int) -> str:
        if slot >= 0:
            return self._w.emit(f"load volatile {self._type}, {self._slot(slot)}")
        array, j = self._graph.nodes[i][1]
        return self._w.emit(f"load {self._type}, {self._place(f'a{array}', j)}")

    def _store(self, places: Sequence[tuple[int, int]]) -> None:
        for k, j in places:
            value = self._number(self._graph.results[k][j])
            self._w.put(f"store {self._type} {value}, {self._place(f'o{k}', j)}")

    def _operation(self, i: int) -> None:
        op, a = self._graph.nodes[i]
        values = [self._number(k) for k in a]
        if op in ELEMENTARY:
            raise RemoraError(f"there is no GPU code for {op!r} yet: compile for the CPU")
        if op == "div":
            self._value[i] = quotient(self._w, values[0], values[1], self._dtype)
        else:
            self._value[i] = operation(self._w, op, values, self._dtype, 1)

    def _number(self, i: int) -> str:
        op, a = self._graph.nodes[i]
        if op == "const":
            return constant(a[0], self._dtype, 1)
        if op == "neg":
            return operation(self._w, "neg", [self._number(a[0])], self._dtype, 1)
        return self._value[i]

    # Memory ----------------------------------------------------------------------------------

    def _slot(self, slot: int) -> str:
        place = self._w.emit(f"getelementptr {self._type}, ptr addrspace(5) %slots, i64 {slot}")
        return f"ptr addrspace(5) {place}"

    def _place(self, array: str, j: int) -> str:
        w, t = self._w, self._type
        rows = self._layout[array] == "rows"
        if array not in self._start:
            offset = w.emit(f"mul i64 {self._state}, %s_{array}") if rows else self._state
            self._start[array] = w.emit(
                f"getelementptr {t}, ptr addrspace(1) %{array}, i64 {offset}"
            )
        offset = str(j) if rows else w.emit(f"mul i64 %s_{array}, {j}")
        place = w.emit(f"getelementptr {t}, ptr addrspace(1) {self._start[array]}, i64 {offset}")
        return f"ptr addrspace(1) {place}"
