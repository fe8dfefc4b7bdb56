"""Noise of flight software: the exported C and objects have the bits of Python, under emulators."""

import platform
import subprocess

import numpy as np
import pytest

import needs
import remora as rm
from remora.codegen.export.random_c import write_random_c
from remora.codegen.ir.graph import Signature
from remora.components import noise

SEED, RUN, STREAM, TICKS = 2**63 + 7, 2**32 - 3, noise.stream_number("imu"), 40
FIRST = 2**32 - 20  # ticks on both sides of 2³²
MAIN = f"""
#include <stdio.h>
#include "remora_random.h"
#include "normals.h"
int main(void)
{{
    double numbers[3], z[2];
    uint32_t k;
    for (k = 0; k < {TICKS}; ++k) {{
        const uint64_t tick = UINT64_C({FIRST}) + k;
        remora_normal_numbers(UINT64_C({SEED}), UINT32_C({RUN}), UINT32_C({STREAM}), tick, 0,
                              numbers);
        normals(numbers, z);
        printf("%a %a\\n", z[0], z[1]);
    }}
    return 0;
}}
"""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")
#: Target, compiler and emulator: with and without fused products, of both byte orders.
MACHINES = [
    ("x86_64", "gcc", None),
    ("riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64"),
    ("ppc", "powerpc-linux-gnu-gcc", "qemu-ppc"),
    ("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64"),
    ("cortex-r5", "arm-linux-gnueabihf-gcc", "qemu-arm"),
]


@pytest.mark.parametrize("form", ["c", "object"])
@pytest.mark.parametrize(("name", "compiler", "emulator"), MACHINES)
def test_same_bits(name, compiler, emulator, form, tmp_path):
    needs.programs(*filter(None, (compiler, emulator)))
    if emulator is None and platform.machine() != name:
        pytest.skip(f"not an {name}")
    kernel = rm.Kernel(noise.standard_normals, [Signature("numbers", (3,))], "normals")
    if form == "c":
        _, code, _ = kernel.save_c(tmp_path)
    else:
        _, code, _ = kernel.save_object(tmp_path, name)
    write_random_c(tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    # the linkers are Linux's: they are told not to mind that the object is for bare metal
    files = [tmp_path / "main.c", code, "-lm", "-o", tmp_path / "main"]
    command = [compiler, *STRICT, "-static", "-Wl,--no-warn-mismatch", *files]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    run = subprocess.run(
        [*filter(None, [emulator]), tmp_path / "main"], capture_output=True, text=True, check=True
    )
    got = np.array([float.fromhex(x) for x in run.stdout.split()]).reshape(TICKS, 2)
    assert np.array_equal(got, noise.normals(SEED, RUN, STREAM, FIRST + np.arange(TICKS), 2))
