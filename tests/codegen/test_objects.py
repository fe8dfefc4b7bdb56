"""Object files for other processors: made for many, run on some (under an emulator)."""

import functools
import struct
import subprocess
import sys

import numpy as np
import pytest

import needs
import remora as rm
from remora.codegen.export import c, objects
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature, interpret
from remora.codegen.ir.trace import trace
from remora.errors import RemoraError

ROBOT = rm.load("servicer")
TREE = rm.random_robot(5, bodies=10)
X86, PPC, SPARC, ARM, AARCH64, RISCV = 62, 20, 2, 40, 183, 243
#: Name, ELF machine, bits, byte order, and whether it fuses products with sums.
MADE = [
    ("riscv64", RISCV, 64, "little", True),
    ("riscv32", RISCV, 32, "little", True),
    ("cortex-r5", ARM, 32, "little", False),
    ("cortex-r5-big", ARM, 32, "big", False),
    ("cortex-r52", ARM, 32, "little", True),
    ("cortex-m7", ARM, 32, "little", True),
    ("aarch64", AARCH64, 64, "little", True),
    ("leon", SPARC, 32, "big", False),
    ("ppc", PPC, 32, "big", True),
    ("x86_64", X86, 64, "little", False),
]
#: What runs here: cross compiler and emulator. Debian's packages are named in docs/c.md.
RUN = [
    ("riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64"),
    ("ppc", "powerpc-linux-gnu-gcc", "qemu-ppc"),
    ("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64"),
    ("cortex-r5", "arm-linux-gnueabihf-gcc", "qemu-arm"),
    ("cortex-r52", "arm-linux-gnueabihf-gcc", "qemu-arm"),
    ("cortex-m7", "arm-linux-gnueabihf-gcc", "qemu-arm"),
]


@pytest.fixture
def dynamics():
    return graph_of(ROBOT)


@functools.cache
def graph_of(robot):
    inputs = [
        Signature("q", (robot.nq,)),
        Signature("v", (robot.nv,)),
        Signature("tau", (robot.nv,)),
    ]
    return trace(lambda q, v, tau: rm.forward_dynamics(robot, q, v, tau), inputs)


def test_the_table_is_tested():
    assert [name for name, *_ in MADE] == list(objects.TARGETS)


@pytest.mark.parametrize(("name", "machine", "bits", "order", "fma"), MADE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_objects_are_made(name, machine, bits, order, fma, dtype, dynamics, tmp_path):
    header, image, test = objects.write_object(dynamics, "fd", dtype, name, tmp_path)
    data = image.read_bytes()
    assert data[:4] == b"\x7fELF"
    assert {1: 32, 2: 64}[data[4]] == bits
    assert {1: "little", 2: "big"}[data[5]] == order
    kind, found = struct.unpack_from("<HH" if order == "little" else ">HH", data, 16)
    assert (kind, found) == (1, machine)  # relocatable, for that machine
    assert objects.undefined(data) == []  # not even the C library is needed
    assert objects.has(objects.TARGETS[name], "fma", dtype) == fma
    assert "void fd(const" in header.read_text()
    assert "the linker must find: nothing" in header.read_text()
    assert test.name == "fd_test.c"


MAIN = """
#include <stdio.h>
#include "fd.h"
int main(void)
{
    static double q[fd_size_q], v[fd_size_v], tau[fd_size_tau], out[fd_size_out];
    int i;
    for (i = 0; i < fd_size_q; i++) if (scanf("%la", &q[i]) != 1) return 2;
    for (i = 0; i < fd_size_v; i++) if (scanf("%la", &v[i]) != 1) return 2;
    for (i = 0; i < fd_size_tau; i++) if (scanf("%la", &tau[i]) != 1) return 2;
    fd(q, v, tau, out);
    for (i = 0; i < fd_size_out; i++) printf("%a\\n", out[i]);
    return 0;
}
"""


def build(compiler, *arguments):
    # the linkers are Linux's: they are told not to mind that the object is for bare metal
    command = [compiler, "-std=c99", "-static", "-Wl,--no-warn-mismatch", *map(str, arguments)]
    subprocess.run([*command, "-lm"], check=True)


def verdict(emulator, program):
    done = subprocess.run([emulator, program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split()[-1]


@pytest.mark.parametrize(("name", "compiler", "emulator"), RUN)
def test_objects_run_and_agree(name, compiler, emulator, dynamics, tmp_path):
    """The numbers of the reference to 1e-13, and the test program that comes with the object."""
    needs.programs(compiler, emulator)
    _, image, test = objects.write_object(dynamics, "fd", "float64", name, tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    build(compiler, tmp_path / "main.c", image, "-o", tmp_path / "main")
    rng = np.random.default_rng(11)
    for _ in range(3):
        q, v = rm.random_state(ROBOT, rng)
        tau = rng.normal(size=ROBOT.nv)
        given = "\n".join(float(x).hex() for x in (*q, *v, *tau))
        run = subprocess.run(
            [emulator, tmp_path / "main"], input=given, capture_output=True, text=True, check=True
        )
        got = np.array([float.fromhex(line) for line in run.stdout.split()])
        expected = rm.forward_dynamics(ROBOT, q, v, tau)
        assert np.max(np.abs(got - expected)) < 1e-13 * np.max(np.abs(expected))
    build(compiler, test, image, "-o", tmp_path / "test")
    assert verdict(emulator, tmp_path / "test") == (0, "good")


@pytest.mark.parametrize(("name", "compiler", "emulator"), RUN)
def test_single_precision_and_the_c_library_run(name, compiler, emulator, tmp_path):
    """Every joint kind in single precision, and calls into libm by the platform's convention."""
    needs.programs(compiler, emulator)
    x = Graph((Signature("x", (2,)),), (Signature("out", (4,)),))
    a, b = x.input(0, 0), x.input(0, 1)
    x.results = [[x.op("exp", a), x.op("pow", b, a), x.op("max", a, b), x.op("floor", b)]]
    for graph, dtype in ((graph_of(TREE), "float32"), (x, "float64"), (x, "float32")):
        _, image, test = objects.write_object(graph, "f", dtype, name, tmp_path)
        build(compiler, test, image, "-o", tmp_path / "test")
        assert verdict(emulator, tmp_path / "test") == (0, "good")


#: Debian has no C library for 32-bit SPARC: the kernel is asked to write and to exit.
BARE = """
#include "fd.h"
static const unsigned long long given[] = {NUMBERS};
static double out[fd_size_out];
static void ask(long number, long a, long b, long c)
{
    register long g1 __asm__("g1") = number;
    register long o0 __asm__("o0") = a;
    register long o1 __asm__("o1") = b;
    register long o2 __asm__("o2") = c;
    __asm__ volatile("ta 0x10" : "+r"(o0) : "r"(g1), "r"(o1), "r"(o2) : "memory", "cc");
}
void run(void)
{
    const double *q = (const double *)given, *v = q + fd_size_q, *tau = v + fd_size_v;
    fd(q, v, tau, out);
    ask(4, 1, (long)out, sizeof out);
    ask(1, 0, 0, 0);
}
__asm__(".globl _start\\n_start: sub %sp, 96, %sp\\n call run\\n nop\\n");
"""


def test_leon_runs_and_has_the_bits_of_the_graph(dynamics, tmp_path):
    needs.programs("sparc64-linux-gnu-gcc", "qemu-sparc")
    _, image, _ = objects.write_object(dynamics, "fd", "float64", "leon", tmp_path)
    q, v = rm.random_state(ROBOT, 11)
    numbers = ", ".join(f"0x{struct.pack('>d', x).hex()}ULL" for x in (*q, *v, *v))
    (tmp_path / "main.c").write_text(BARE.replace("NUMBERS", numbers))
    flags = ("-m32", "-mcpu=v8", "-O1", "-fno-strict-aliasing", "-ffreestanding", "-nostdlib")
    files = (tmp_path / "main.c", image, "-o", tmp_path / "main")
    subprocess.run(["sparc64-linux-gnu-gcc", "-static", *flags, *map(str, files)], check=True)
    run = subprocess.run(["qemu-sparc", tmp_path / "main"], capture_output=True, check=True)
    got = np.frombuffer(run.stdout, ">f8")
    (defined,) = interpret(graph_passes.prepared(dynamics, "float64", fma=False), [q, v, v])
    assert np.array_equal(got, defined)
    expected = rm.forward_dynamics(ROBOT, q, v, v)
    assert np.max(np.abs(got - expected)) < 1e-13 * np.max(np.abs(expected))


@needs.compiler
@pytest.mark.skipif(sys.platform != "linux", reason="links an ELF object")
def test_the_object_for_a_pc_has_the_bits_of_the_c(dynamics, tmp_path):
    """Without fused products both are the same roundings in the same order."""
    import platform

    if platform.machine() != "x86_64":
        pytest.skip("not a PC")
    _, image, _ = objects.write_object(dynamics, "fd", "float64", "x86_64", tmp_path)
    _, source, _ = c.write_c(dynamics, "fd", "float64", tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    q, v = rm.random_state(ROBOT, 5)
    given = "\n".join(float(x).hex() for x in (*q, *v, *v))
    said = []
    for what in (image, source):
        build("gcc", tmp_path / "main.c", what, "-o", tmp_path / "main")
        run = subprocess.run(
            [tmp_path / "main"], input=given, capture_output=True, text=True, check=True
        )
        said.append(run.stdout)
    assert said[0] == said[1]


def test_a_triple_says_what_the_table_does_not():
    assert objects.target("leon").cpu == "leon3"
    assert objects.target("leon", cpu="gr740").cpu == "gr740"
    # bare-metal and Linux triples of three parts are completed, else LLVM misreads them
    assert objects.target("armv7r-none-eabihf") == objects.Target(
        "armv7r-unknown-none-eabihf", "cortex-r5"
    )
    linux = objects.target("riscv64-linux-gnu")
    assert linux.triple == "riscv64-unknown-linux-gnu"
    assert "+d" in linux.features
    assert objects.has(linux, "fma", "float64")
    assert not objects.has(objects.target("riscv64", features="+m,+a,+f"), "fma", "float64")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (("abacus",), "riscv64, riscv32, cortex-r5"),
        (("abacus-none-elf",), "cortex-m7"),
        (("riscv64", "sifive-e31"), "RV64"),  # ends LLVM, and would end Python with it
        (("riscv64", "no-such"), "no-such"),
        (("riscv64", "", "+no-such"), "no-such"),
        (("x86_64-apple-macosx",), "ELF"),
    ],
)
def test_what_llvm_does_not_know_is_refused(target, said, tmp_path):
    graph = Graph((Signature("x", ()),), (Signature("out", ()),))
    graph.results = [[graph.op("neg", graph.input(0, 0))]]
    triple, *rest = target
    with pytest.raises(RemoraError, match=said):
        objects.write_object(graph, "f", "float64", triple, tmp_path / "out", *rest)
    assert not (tmp_path / "out").exists()
