"""Random words: the published vectors, and the same bits in NumPy, machine code, PTX and C."""

import ctypes
import subprocess

import numpy as np
import pytest

import needs
import ptx_machine
import remora as rm
from remora.codegen.export.random_c import write_random_c
from remora.codegen.gpu import ptx
from remora.codegen.integration import random_words
from remora.codegen.ir import philox
from remora.codegen.llvm import host
from remora.codegen.llvm.lowering import SCALARS, Writer, load, rows_of, store

#: Random123's known answers for `philox4x32 10`: counter, key, words.
KNOWN = (
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
)  # fmt: skip
STREAM, BLOCK = 0xC0FFEE01, 0xABCD
KINDS = {"normal": philox.normal_numbers, "uniform": philox.uniform_numbers}


def of_hex(text):
    return [int(x, 16) for x in text.split()]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_published_vectors(counter, key, expected):
    got = philox.philox4x32(of_hex(counter), of_hex(key))
    assert [int(x) for x in got] == of_hex(expected)


def test_every_bit_of_the_counter_counts():
    """Each bit of run, tick, stream and block is one bit of the counter, and none is used twice."""
    places = [("run", 32), ("stream", 32), ("tick", 48), ("block", 16)]
    zero = dict.fromkeys((name for name, _ in places), 0)
    seen = set()
    for name, bits in places:
        for bit in range(bits):
            words = philox.counter_words(**(zero | {name: 1 << bit}))
            seen.add(sum(int(x) << (32 * k) for k, x in enumerate(words)))
    assert seen == {1 << k for k in range(128)}


def places(n=37):
    """Return seeds, runs and ticks: corners, then random ones."""
    rng = np.random.default_rng(3)
    corners = [
        (0, 0, 0),
        (2**64 - 1, 2**32 - 1, 2**48 - 1),
        (1, 2**31, 2**32),
        (2**32, 1, 2**32 - 1),
    ]
    drawn = [rng.integers(0, 2**b, n, dtype=np.uint64) for b in (64, 32, 48)]
    for column, values in zip(drawn, zip(*corners, strict=True), strict=True):
        column[: len(corners)] = values
    return drawn


def numbers(kind, seed, run, tick):
    key = [seed & np.uint64(2**32 - 1), seed >> np.uint64(32)]
    block = np.stack(philox.philox4x32(philox.counter_words(run, STREAM, tick, BLOCK), key), -1)
    return KINDS[kind](block)


def cells(seed, run, tick):
    """Return the arguments of the machine code: two halves of the seed, run and tick as floats."""
    halves = [seed & np.uint64(2**32 - 1), seed >> np.uint64(32)]
    return np.stack([*halves, run, tick], -1).astype(float)


def body(w, inputs, dtype, kind, lanes):
    return random_words.emit(w, lanes, dtype, kind, inputs[:2], inputs[2], STREAM, inputs[3], BLOCK)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_machine_code(kind, dtype, lanes):
    w = Writer()
    rows_of(w, lanes)
    names = body(w, load(w, "a0", 4, "double", lanes), dtype, kind, lanes)
    store(w, "o0", names, SCALARS[dtype], lanes)
    lines = "\n".join(w.lines)
    text = f"""
define void @drawn(ptr noalias %a0, i64 %s_a0, ptr noalias %o0, i64 %s_o0, i64 %n) {{
entry:
  %last = sub i64 %n, 1
  br label %loop
loop:
  %b = phi i64 [0, %entry], [%next, %loop]
{lines}
  %next = add i64 %b, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
{chr(10).join(random_words.declared(lanes))}
"""
    code = host.LoadedCode(host.to_object(text, host.host()), ("drawn",))
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(None, pointer, integer, pointer, integer, integer)
    at = places()
    given, expected = cells(*at), numbers(kind, *at)
    got = np.full(expected.shape, np.nan, dtype)
    prototype(code.address["drawn"])(given.ctypes.data, 4, got.ctypes.data, got.shape[1], len(got))
    assert np.array_equal(got, expected)  # exact in float32, too


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_ptx(kind, dtype):
    w = Writer()
    scalar, size = SCALARS[dtype], {"normal": 3, "uniform": 4}[kind]

    def place(array, scalar, width, j):
        offset = w.emit(f"add i64 {w.emit(f'mul i64 %b, {width}')}, {j}")
        return w.emit(f"getelementptr {scalar}, ptr addrspace(1) %{array}, i64 {offset}")

    inputs = [
        w.emit(f"load double, ptr addrspace(1) {place('a', 'double', 4, j)}") for j in range(4)
    ]
    for j, name in enumerate(body(w, inputs, dtype, kind, 1)):
        w.put(f"store {scalar} {name}, ptr addrspace(1) {place('o', scalar, size, j)}")
    start = "\n".join(ptx.special(own, register) for own, register in ptx.REGISTERS.items())
    needed = sorted(ptx.declared_always(dtype, ptx.REGISTERS.values()))
    text = ptx.assembled(f"""
define ptx_kernel void @drawn(ptr addrspace(1) %a, ptr addrspace(1) %o, i64 %n) {{
entry:
{start}
  %first = mul i64 %ctaid, %ntid
  %b = add i64 %first, %tid
  %any = icmp slt i64 %b, %n
  br i1 %any, label %work, label %done
work:
{chr(10).join(w.lines)}
  br label %done
done:
  ret void
}}
{chr(10).join([*needed, *random_words.declared(1)])}
""")
    at = places()
    expected = numbers(kind, *at)
    got = np.full(expected.shape, np.nan, dtype)
    ptx_machine.run(text, "drawn", [cells(*at), got, len(got)], 2, 32)
    assert np.array_equal(got, expected)


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_c(dtype, tmp_path):
    header = write_random_c(tmp_path, dtype)
    scalar = {"float64": "double", "float32": "float"}[dtype]
    place = "uint64_t seed, uint32_t run, uint32_t stream, uint64_t tick, uint32_t block"
    functions = "".join(
        f"void {kind}({place}, {scalar} *out);\n"
        f"void {kind}({place}, {scalar} *out)\n"
        f"{{ remora_{kind}_numbers(seed, run, stream, tick, block, out); }}\n"
        for kind in KINDS
    )
    (tmp_path / "one.c").write_text(f'#include "{header.name}"\n{functions}')
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC"]
    done = subprocess.run(
        [needs.CC, *strict, tmp_path / "one.c", "-o", tmp_path / "one.so"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    library = ctypes.CDLL(str(tmp_path / "one.so"))
    at = places()
    for kind in KINDS:
        expected = numbers(kind, *at)
        got = np.full(expected.shape, np.nan, dtype)
        for row, seed, run, tick in zip(got, *at, strict=True):
            out = ctypes.c_void_p(row.ctypes.data)
            library[kind](
                ctypes.c_uint64(int(seed)), ctypes.c_uint32(int(run)), ctypes.c_uint32(STREAM),
                ctypes.c_uint64(int(tick)), ctypes.c_uint32(BLOCK), out,
            )  # fmt: skip
        assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("block", "zeros"),
    [
        ((0xFFFFFFFF, 0), 0), ((0x80000000, 5), 0), ((1, 0xFFFFFFFF), 31), ((0, 0xFFFFFFFF), 32),
        ((0, 1), 63), ((0, 0), 64),
    ],
)  # fmt: skip
def test_leading_zeros_go_on_in_the_second_word(block, zeros):
    words = np.array([*block, 0, 0xFFFFFFFF], np.uint64)
    e, f, w = philox.normal_numbers(words)
    assert (e, f, w) == (zeros, 1 + 2.0**-23, 1 - 2.0**-24)
    assert np.float32(f) == f
    assert np.float32(w) == w


def test_a_kind_that_does_not_exist():
    with pytest.raises(
        rm.errors.UnknownName, match="no kind of random numbers named 'gamma'; known: nor"
    ):
        random_words.emit(Writer(), 1, "float64", "gamma", ["%a", "%b"], "%c", 0, "%d", 0)
