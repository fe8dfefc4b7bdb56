"""A small machine that runs PTX on NumPy arrays, a block's threads at once: a GPU for the tests.

It knows the instructions that Remora's kernels are made of, with the meaning that NVIDIA's "PTX
ISA" gives them, and refuses every other. Threads of a block may part only where some leave.
"""

import math
import re

import numpy as np

from remora.codegen.ir.graph import fused_multiply_add

_COMPARE = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
    "ltu": lambda a, b: ~(a >= b), "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b), "geu": lambda a, b: ~(a < b),
    "neu": lambda a, b: ~((a == b) & ~np.isnan(a) & ~np.isnan(b)),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip
_TYPES = {
    "f64": np.float64, "f32": np.float32, "s64": np.int64, "u64": np.uint64, "b64": np.uint64,
    "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "pred": np.bool_, "b16": np.uint16,
}  # fmt: skip
#: The upper 32 bits of a 64-bit register; the lower ones go to a register of their own.
_UPPER_HALF = r"\{ ?\.reg \.b32 tmp; mov\.b64 \{tmp, (%r\d+)\}, (%rd\d+); \}"


def run(text, entry, arguments, blocks, block):
    """Launch an entry.

    Args:
        text: the PTX.
        entry: its name.
        arguments: NumPy arrays (pointers) and integers.
        blocks: how many blocks.
        block: threads of a block.
    """
    body = text[text.index(f".entry {entry}(") :]
    body = body[body.index("{") + 1 :]
    code, labels = [], {}
    for name, targets in re.findall(r"(\$\w+): \.branchtargets\s+(.*?);", body, re.S):
        labels[name] = [target.strip() for target in targets.split(",")]
    body = re.sub(r"\$\w+: \.branchtargets\s+.*?;", "", body, flags=re.S)
    for line in body[: body.index("\n}")].splitlines():
        line = line.split("//")[0].strip()
        if not line or line.startswith("."):
            continue
        if line.endswith(":"):
            labels[line[:-1]] = len(code)
        else:
            code.append(line.rstrip(";"))
    tables = {}
    for name, size, values in re.findall(r"\.global .*?\.b8 (\w+)\[(\d+)\] = \{(.*?)\}", text):
        tables[name] = np.zeros(int(size), np.uint8)  # zeros at the end are not written
        given = np.array(values.split(","), np.uint8)
        tables[name][: len(given)] = given
    for number in range(blocks):
        _Machine(entry, arguments, tables, number, blocks, block).execute(code, labels)


class _Machine:
    def __init__(self, entry, arguments, tables, number, blocks, block):
        self.registers = {
            "%tid.x": np.arange(block, dtype=np.uint32),
            "%ctaid.x": np.full(block, number, np.uint32),
            "%nctaid.x": np.full(block, blocks, np.uint32),
            "%ntid.x": np.full(block, block, np.uint32),
        }
        self.memory, self.parameters, self.local, self.symbols = [], {}, {}, {}
        for name, values in tables.items():
            self.symbols[name] = self._placed(values)
        for k, a in enumerate(arguments):
            value = a
            if isinstance(a, np.ndarray):
                value = self._placed(a)
            self.parameters[f"{entry}_param_{k}"] = np.full(block, value, np.uint64)

    def _placed(self, array):
        """Return an address for an array, far from the others: no offset leads to them."""
        self.memory.append(array)
        return len(self.memory) << 40

    def execute(self, code, labels):
        place = 0
        while place < len(code):
            line = code[place]
            place += 1
            predicate = None
            if line.startswith("@"):
                predicate, line = line[1:].split(None, 1)
            if line.startswith("brx.idx"):
                index, table = _operands(line.split(None, 1)[1])
                (chosen,) = np.unique(self.registers[index])  # all threads go the same way
                place = labels[labels[table][int(chosen)]]
            elif line.startswith("bra"):
                taken = self._condition(predicate)
                target = labels[line.split()[-1]]
                if taken.all():
                    place = target
                elif taken.any():
                    assert code[target] == "ret", "threads part"
                    self._keep(~taken)
            elif line == "ret":
                return
            elif half := re.fullmatch(_UPPER_HALF, line):
                self._set(half[1], (self._value(half[2], "u64") >> np.uint64(32)).astype(np.uint32))
            else:
                assert predicate is None
                name, operands = line.split(None, 1)
                self._instruction(name.split("."), _operands(operands))

    def _condition(self, predicate):
        if predicate is None:
            return np.ones(1, bool)
        value = self.registers[predicate.lstrip("!")]
        return ~value if predicate.startswith("!") else value

    def _keep(self, threads):
        self.registers = {k: v[threads] for k, v in self.registers.items()}
        self.parameters = {k: v[threads] for k, v in self.parameters.items()}
        self.local = {k: v[threads] for k, v in self.local.items()}

    def _value(self, text, kind):
        kind = _TYPES[kind]
        if text.startswith(("0d", "0f")):
            bits = np.array(int(text[2:], 16), np.uint64 if text[1] == "d" else np.uint32)
            return bits.view(kind)
        if text.startswith("-%"):
            raise AssertionError(text)
        if text.startswith("%"):
            value = self.registers[text]
            return value if value.dtype == kind else value.view(kind)
        return np.asarray(int(text, 0)).astype(kind)

    def _instruction(self, name, operands):
        op, kind = name[0], name[-1]
        target, *rest = operands
        if op == "ld" and name[1] == "param":
            self.registers[target] = self.parameters[rest[0].strip("[]")].view(_TYPES[kind])
        elif name[1] == "local":
            self._local(op, target, rest[0], kind)
        elif op == "mov" and rest[0].startswith("__local_depot"):
            self._set(target, np.uint64(0))
        elif op == "mov" and rest[0] in self.symbols:
            self._set(target, np.uint64(self.symbols[rest[0]]))
        elif op == "ld":
            value = self._access(rest[0], kind)
            wide = target.startswith("%rd") and kind in ("s32", "u32")  # a load may widen
            self.registers[target] = value.astype(np.int64) if wide else value
        elif op == "st":
            self._access(target, kind, self._value(rest[0], kind))
        elif op == "setp":
            a, b = (self._value(x, kind) for x in rest)
            self.registers[target] = np.broadcast_arrays(_COMPARE[name[1]](a, b), self._any())[0]
        elif op == "selp":
            a, b = (self._value(x, kind) for x in rest[:2])
            self._set(target, np.where(self.registers[rest[2]], a, b))
        elif op == "cvt" and name[1] == "rmi":
            self._set(target, np.floor(self._value(rest[0], kind)))
        elif op == "cvt":
            self._set(target, self._value(rest[0], kind).astype(_TYPES[name[-2]]))
        elif name[1] == "wide":
            a, b = (self._value(x, kind) for x in rest[:2])
            wide = _TYPES[{"u32": "u64", "s32": "s64"}[kind]]
            result = a.astype(wide) * b.astype(wide)
            if op == "mad":
                result = result + self._value(rest[2], {"u32": "u64", "s32": "s64"}[kind])
            self._set(target, result)
        else:
            values = [self._value(x, kind) for x in rest]
            with np.errstate(all="ignore"):
                self._set(target, np.asarray(_plain(op, name)(*values)).astype(_TYPES[kind]))

    def _any(self):
        return next(iter(self.registers.values()))

    def _set(self, target, value):
        self.registers[target] = np.broadcast_to(value, self._any().shape).copy()

    def _local(self, op, target, other, kind):
        """A thread's own memory: what is kept at an offset, for all threads."""
        address = target if op == "st" else other
        inside = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", address)
        offset = np.unique(self.registers[inside[1]]) + np.uint64(int(inside[2] or 0))
        assert len(offset) == 1
        if op == "st":
            self.local[int(offset[0])] = self._value(other, kind)
        else:
            self.registers[target] = self.local[int(offset[0])].view(_TYPES[kind])

    def _access(self, address, kind, value=None):
        inside = re.fullmatch(r"\[(%?\w+)(?:\+(-?\d+))?\]", address)
        assert inside, address
        if inside[1] in self.symbols:
            start = np.full(self._any().shape, self.symbols[inside[1]], np.uint64)
        else:
            start = self.registers[inside[1]].view(np.uint64)
        start = start + np.uint64(int(inside[2] or 0) % 2**64)
        which = np.unique(start >> np.uint64(40))
        assert len(which) == 1, "an address outside of its array"
        own = self.memory[int(which[0]) - 1].reshape(-1).view(np.uint8)
        own = own[: own.size - own.size % np.dtype(_TYPES[kind]).itemsize].view(_TYPES[kind])
        index = (start & np.uint64((1 << 40) - 1)) // np.uint64(own.itemsize)
        assert index.max() < own.size, "past the end of an array"
        if value is None:
            return own[index]
        own[index] = np.broadcast_to(value, index.shape)
        return None


def _plain(op, name):
    """Return what an instruction computes that has operands and result of one type."""
    if name[1] == "hi":
        return lambda a, b: (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)
    return {
        "max": np.fmax, "min": np.fmin,
        "mov": lambda a: a, "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt,
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "fma": fused_multiply_add,
        "mad": lambda a, b, c: a * b + c, "shl": lambda a, b: a << b.astype(a.dtype),
        "shr": lambda a, b: a >> b.astype(a.dtype),
        "or": np.bitwise_or, "and": np.bitwise_and, "xor": np.bitwise_xor,
        "clz": lambda a: 32 - np.frexp(a.astype(float))[1],
        "not": np.invert, "rcp": _estimate, "div": np.floor_divide, "rem": np.remainder,
    }[op]  # fmt: skip


def _estimate(d):
    """1/d to the 20 bits (of 23 in single precision) that the processor's estimate has."""
    exact = 1.0 / d.astype(np.float64)
    mantissa, exponent = np.frexp(exact)
    return np.ldexp(np.round(mantissa * 2.0**20) / 2.0**20, exponent)


def _operands(text):
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)]


def launched(kernel, arguments, tables=None, capacity=0, columns=False, block=4):
    """Run the PTX of a program, with so many threads in a block."""
    own = kernel.interface
    entries, rows = own.tables_of(tables), own.capacities(capacity)
    n, call, results = len(arguments[0]), [], []
    for a, s in zip(arguments, kernel.inputs, strict=True):
        numbers = a.reshape(n, s.size)
        call += [np.ascontiguousarray(numbers.T), n, 1] if columns else [numbers.copy(), 1, s.size]
    length = len(entries[0]) if entries else 0
    axes = [own.axis(o, length, rows) for o in kernel.outputs]
    for o, axis, kind in zip(kernel.outputs, axes, own.dtypes(kernel.dtype)[1], strict=True):
        results.append(np.full((o.size, math.prod(axis), n), np.nan, kind))
        call += [results[-1], math.prod(axis) * n]
    (entry,) = kernel.code.entries
    call += [n, length, *entries, *rows.values()]
    run(kernel.ptx(), entry, call, -(-n // block), block)
    shapes = [(n, *axis, *o.shape) for axis, o in zip(axes, kernel.outputs, strict=True)]
    return [r.transpose(2, 1, 0).reshape(shape) for r, shape in zip(results, shapes, strict=True)]
