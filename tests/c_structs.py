"""Exported C modules, compiled and called from Python: structs are read off the header."""

import ctypes
import re
import subprocess

import numpy as np

from needs import CC

STRICT = (
    "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wdouble-promotion",
)  # fmt: skip
#: Cross compilers and emulators: little-endian 64 bit, big-endian 32 bit.
CROSS = [
    ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
    ("powerpc-linux-gnu-gcc", "qemu-ppc"),
]
TYPES = {
    "double": ctypes.c_double, "float": ctypes.c_float, "uint64_t": ctypes.c_uint64,
    "uint32_t": ctypes.c_uint32,
}  # fmt: skip


def compile_c(*arguments, compiler=CC):
    command = [compiler, *STRICT, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def built_test(folder, name, *flags, compiler=CC):
    """Build the test program of a module."""
    program = folder / f"{name}_program"
    sources = (folder / f"{name}.c", folder / f"{name}_test.c")
    compile_c(*flags, *sources, "-lm", "-o", program, compiler=compiler)
    return program


def verdict(*command):
    """Run a test program; return its status, how many numbers differ, and its last word."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) of (\d+) numbers differ.*: (\w+)$", done.stdout.strip())
    assert int(found[2]) >= 100
    return done.returncode, int(found[1]), found[3]


class CModule:
    """A module as a shared library; one variable of each struct, set and read as arrays."""

    def __init__(self, folder, name):
        library = folder / f"{name}.so"
        compile_c("-O2", "-shared", "-fPIC", folder / f"{name}.c", "-lm", "-o", library)
        self._library, self._name = ctypes.CDLL(str(library)), name
        header = (folder / f"{name}.h").read_text()
        for body, role in re.findall(rf"typedef struct {{\n(.*?)\n}} {name}_(\w+);", header, re.S):
            members = re.findall(r"^    (\w+) (\w+)(?:\[(\d+)\])?;", body, re.M)
            fields = [(own, TYPES[t] * int(n) if n else TYPES[t]) for t, own, n in members]
            setattr(self, role, type(role, (ctypes.Structure,), {"_fields_": fields})())
        declared = re.findall(rf"^void {name}_(\w+)\((.*?)\);", header, re.M | re.S)
        self.functions = {function: re.findall(r"\*(\w+)", taken) for function, taken in declared}

    def call(self, function, *arrays):
        pointers = [ctypes.byref(getattr(self, role)) for role in self.functions[function]]
        pointers += [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        getattr(self._library, f"{self._name}_{function}")(*pointers)

    def set(self, role, **values):
        struct = getattr(self, role)
        for name, value in values.items():
            own = getattr(struct, name)
            if isinstance(own, ctypes.Array):
                own[:] = np.asarray(value, float).reshape(-1).tolist()
            else:
                setattr(struct, name, value)

    def get(self, role, *names):
        struct = getattr(self, role)
        return np.concatenate([np.ravel(getattr(struct, n)) for n in names])
