"""Object files for other processors: the function of `c.py`, compiled without a C compiler.

    void NAME(const double q[15], ..., double out[13]);

LLVM contains the back ends of common flight processors. `TARGETS` names some of them; specify any
other by its LLVM triple, processor and features.
"""

from __future__ import annotations

import functools
import json
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from remora.atomic_files import write_bytes
from remora.codegen.export import c, c_module, c_statements, c_test_program, c_text
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.llvm import lowering
from remora.errors import RemoraError, UnknownName


@dataclass(frozen=True)
class Target:
    """A processor as LLVM names it.

    Attributes:
        triple: architecture, vendor, system and calling convention.
        cpu: processor; empty for the architecture's baseline.
        features: additional features in LLVM's notation: `+f,+d`.
        pic: whether to compile position-independent code: free on these targets, costly on others.
        meant: intended use.
    """

    triple: str
    cpu: str = ""
    features: str = ""
    pic: bool = False
    meant: str = ""


#: Targets by short name.
TARGETS: dict[str, Target] = {
    "riscv64": Target(
        "riscv64-unknown-none-elf", "generic-rv64", "+m,+a,+f,+d,+c", pic=True,
        meant="RV64GC, lp64d: NOEL-V, PolarFire SoC, HPSC",
    ),
    "riscv32": Target(
        "riscv32-unknown-none-elf", "generic-rv32", "+m,+a,+f,+d,+c", pic=True,
        meant="RV32GC, ilp32d",
    ),
    "cortex-r5": Target(
        "armv7r-unknown-none-eabihf", "cortex-r5", meant="ARM Cortex-R5F, little-endian"
    ),
    "cortex-r5-big": Target(
        "armebv7r-unknown-none-eabihf", "cortex-r5", meant="ARM Cortex-R5F, big-endian"
    ),
    "cortex-r52": Target("armv8r-unknown-none-eabihf", "cortex-r52", meant="ARM Cortex-R52"),
    "cortex-m7": Target(
        "thumbv7em-unknown-none-eabihf", "cortex-m7", meant="ARM Cortex-M7: SAMRH71"
    ),
    "aarch64": Target(
        "aarch64-unknown-none-elf", "cortex-a53", pic=True, meant="ARM Cortex-A53 and later"
    ),
    "leon": Target(
        "sparc-unknown-none-elf", "leon3", meant="SPARC V8: LEON3, LEON4, GR712RC, GR740"
    ),
    "ppc": Target("powerpc-unknown-none-eabi", "750", meant="PowerPC 750: RAD750"),
    "x86_64": Target("x86_64-unknown-none-elf", "x86-64", pic=True, meant="any 64-bit PC"),
}  # fmt: skip


def target(triple: str, cpu: str = "", features: str = "") -> Target:
    """Return the processor of a short name or of an LLVM triple.

    Args:
        triple: one of `TARGETS`, or an LLVM triple.
        cpu: LLVM's name of the processor; overrides the table.
        features: override those in the table. A bare triple takes the features of the first row
            with its architecture: plain RISC-V, for example, has no floating point.
    """
    if triple in TARGETS:
        own = TARGETS[triple]
        return Target(own.triple, cpu or own.cpu, features or own.features, own.pic)
    parts = triple.split("-")
    if len(parts) == 3 and parts[1] in ("none", "linux", "rtems"):
        parts.insert(1, "unknown")  # otherwise LLVM reads the system as the vendor
    if not cpu and not features:
        for own in TARGETS.values():
            if own.triple.split("-")[0] == parts[0]:
                cpu, features = own.cpu, own.features
                break
    return Target("-".join(parts), cpu, features, parts[0] in ("riscv64", "aarch64", "x86_64"))


def write_object(
    graph: Graph,
    name: str,
    dtype: str,
    triple: str,
    directory: str | Path,
    cpu: str = "",
    features: str = "",
    notes: Mapping[str, Sequence[str]] | None = None,
) -> list[Path]:
    """Write `NAME.h`, `NAME.o` for a processor, and the test program `NAME_test.c`.

    Products and sums are fused if the processor has such an instruction, and `floor` is replaced by
    additions if it has none, so that almost no calls into the C library remain.

    Args:
        graph: as traced.
        name: name of the function; converted to an identifier.
        dtype: `float64` (double) or `float32` (float).
        triple: one of `TARGETS`, or an LLVM triple.
        directory: output folder; created if missing.
        cpu: LLVM's name of the processor.
        features: processor features in LLVM's notation.
        notes: header comments on an argument or result (units, order), by its name.

    Returns:
        The files.
    """
    name = c_text.identifier(name)
    machine = target(triple, cpu, features)
    fma = has(machine, "fma", dtype)
    prepared = graph_passes.prepared(graph, dtype, fma=fma)
    if "floor" in prepared.count() and not has(machine, "floor", dtype):
        prepared = c_statements.without_floor(prepared, dtype)
    image = compiled(ir(prepared, name, dtype), machine)
    needs = ", ".join(undefined(image)) or "nothing"
    remarks = [
        f"{name}.o: {' '.join(filter(None, (machine.triple, machine.cpu, machine.features)))}",
        f"{'fused' if fma else 'no fused'} multiply-add; the linker must find: {needs}.",
    ]
    texts = {
        f"{name}.h": c_module.header(c.module_of(graph, name, dtype, notes, remarks)),
        f"{name}_test.c": c.vector_test(graph, name, dtype),
    }
    header, test = c_test_program.write_files(directory, texts)
    return [header, write_bytes(Path(directory) / f"{name}.o", image), test]


def ir(graph: Graph, name: str, dtype: str) -> str:
    """Return the LLVM IR of a function for one state: a pointer per input and output.

    Args:
        graph: prepared by `graph_passes.prepared`.
        name: C identifier of the function.
        dtype: `float64` or `float32`.
    """
    scalar, w = lowering.SCALARS[dtype], lowering.Writer()
    needed = graph.needed()
    values: dict[int, str] = {}

    def place(array: str, element: int) -> str:
        return w.emit(f"getelementptr {scalar}, ptr %{array}, i32 {element}")

    for i, (op, a) in enumerate(graph.nodes):
        if not needed[i]:
            continue
        if op == "const":
            values[i] = lowering.constant(a[0], dtype, 1)
        elif op == "input":
            values[i] = w.emit(f"load {scalar}, ptr {place(f'a{a[0]}', a[1])}")
        else:
            values[i] = lowering.operation(w, op, [values[k] for k in a], dtype, 1)
    for k, result in enumerate(graph.results):
        for j, i in enumerate(result):
            w.put(f"store {scalar} {values[i]}, ptr {place(f'o{k}', j)}")
    arrays = [f"a{k}" for k in range(len(graph.inputs))]
    arrays += [f"o{k}" for k in range(len(graph.outputs))]
    parameters = ", ".join(f"ptr %{a}" for a in arrays)
    body, declarations = "\n".join(w.lines), "\n".join(lowering.declared(graph, dtype, 1))
    return (
        f"define void @{name}({parameters}) nounwind {{\n{body}\n  ret void\n}}\n{declarations}\n"
    )


@functools.cache
def has(machine: Target, op: str, dtype: str) -> bool:
    """Return whether a processor has instructions for an operation, by test compilation.

    Args:
        machine: the processor.
        op: `fma`, `floor`, `sqrt` or another operation on one to three numbers.
        dtype: `float64` or `float32`.
    """
    graph = Graph((Signature("x", (3,)),), (Signature("out", ()),))
    count = {"fma": 3, "min": 2, "max": 2}.get(op, 1)
    graph.results = [[graph.op(op, *(graph.input(0, k) for k in range(count)))]]
    return not undefined(compiled(ir(graph, "probe", dtype), machine))


# LLVM aborts the process if triple, processor and features contradict each other, and only warns
# about names that it does not know: so it runs in a subprocess.
_CHILD = """
import json, sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
job = json.load(sys.stdin)
try:
    found = llvm.Target.from_triple(job["triple"])
except RuntimeError:
    sys.exit("unknown triple")
machine = found.create_target_machine(
    cpu=job["cpu"], features=job["features"], opt=2, reloc=job["reloc"], codemodel="default"
)
module = llvm.parse_assembly(job["ir"])
module.triple, module.data_layout = job["triple"], str(machine.target_data)
module.verify()
sys.stdout.buffer.write(machine.emit_object(module))
"""


def compiled(text: str, machine: Target) -> bytes:
    """Compile LLVM IR for a processor to a relocatable object."""
    job = {
        "ir": text, "triple": machine.triple, "cpu": machine.cpu, "features": machine.features,
        "reloc": "pic" if machine.pic else "static",
    }  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(job).encode(), capture_output=True, env=environment, check=False,
    )  # fmt: skip
    message = run.stderr.decode(errors="replace").strip()
    if message == "unknown triple":
        known = (*TARGETS, "and LLVM's triples, such as riscv64-none-elf")
        raise UnknownName("target", machine.triple, known)
    if run.returncode or "is not a recognized" in message:
        lines = message.splitlines() or [f"it ended with status {run.returncode}"]
        reason = next((x for x in lines if "ERROR" in x or "not a recognized" in x), lines[-1])
        raise RemoraError(
            f"LLVM cannot compile for {machine.triple}, processor {machine.cpu!r}, features "
            f"{machine.features!r}: {reason}"
        )
    return run.stdout


def undefined(image: bytes) -> list[str]:
    """Return the undefined symbols of an ELF object."""
    if image[:4] != b"\x7fELF":
        raise RemoraError("only targets with ELF objects are supported")
    wide, order = image[4] == 2, "<" if image[5] == 1 else ">"

    def read(form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(order + form, image, at)

    (start,) = read("Q", 40) if wide else read("I", 32)
    size, count = read("HH", 58 if wide else 46)
    # for each section: name, type, flags, address, offset, size, link
    sections = [read("IIQQQQI" if wide else "IIIIIII", start + k * size) for k in range(count)]
    names: list[str] = []
    for _, kind, _, _, offset, length, link in sections:
        if kind != 2:  # not a symbol table
            continue
        step, strings = 24 if wide else 16, sections[link][4]
        for at in range(offset + step, offset + length, step):
            name, section = read("I2xH" if wide else "I10xH", at)
            if section == 0:
                begin = strings + name
                names.append(image[begin : image.index(b"\0", begin)].decode("ascii"))
    return sorted(names)
