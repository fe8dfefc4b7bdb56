"""The shortest way from Python to a kernel: one state in, one array out, no conversions.

A function of CPython's own calling convention, generated with the kernel. It looks at each
argument as NumPy lays it out in memory; if all are plain arrays of the right shape it calls the
kernel on them, otherwise it returns None and the general way is taken.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np

from remora.compile.graph import Graph

# Where things stand in a PyArrayObject on a 64-bit CPython (checked by `available`).
_TYPE, _DATA, _NDIM, _DIMS, _STRIDES, _DESCR, _FLAGS = 8, 16, 24, 32, 40, 56, 64
_ALIGNED = 0x0100
_METH_FASTCALL = 0x0080
_ITEM = {"float64": 8, "float32": 4}


@functools.cache
def available() -> bool:
    """Tell whether this Python and NumPy lay out arrays as this file says."""
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    probe = np.arange(12.0).reshape(3, 4)[:, 1:3]

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(probe) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(_DIMS))
    strides = (ctypes.c_int64 * 2).from_address(word(_STRIDES))
    return (
        word(_TYPE) == id(np.ndarray)
        and word(_DATA) == probe.ctypes.data
        and ctypes.c_int32.from_address(id(probe) + _NDIM).value == 2
        and (dims[0], dims[1]) == probe.shape
        and (strides[0], strides[1]) == probe.strides
        and word(_DESCR) == id(probe.dtype)
        and id(np.dtype("float64")) == id(probe.dtype)
        and bool(ctypes.c_int32.from_address(id(probe) + _FLAGS).value & _ALIGNED)
    )


def ir(graph: Graph, kernel: str, name: str, dtype: str) -> str:
    """Return the IR of the calling function of a kernel with one output."""
    lines: list[str] = []
    count = 0

    def emit(text: str) -> str:
        nonlocal count
        count += 1
        lines.append(f"  %f{count} = {text}")
        return f"%f{count}"

    def field(base: str, offset: int, kind: str = "ptr") -> str:
        place = emit(f"getelementptr i8, ptr {base}, i64 {offset}")
        return emit(f"load {kind}, ptr {place}")

    def demand(condition: str) -> None:
        lines.append(f"  br i1 {condition}, label %ok{count}, label %other\nok{count}:")

    table = field("%self", _DATA)
    array_type, descr = field(table, 0), field(table, 8)
    item = _ITEM[dtype]
    demand(emit(f"icmp eq i64 %count, {len(graph.inputs)}"))
    data: list[str] = []
    for k, signature in enumerate(graph.inputs):
        argument = emit(f"load ptr, ptr {emit(f'getelementptr ptr, ptr %args, i64 {k}')}")
        demand(emit(f"icmp eq ptr {field(argument, _TYPE)}, {array_type}"))
        demand(emit(f"icmp eq ptr {field(argument, _DESCR)}, {descr}"))
        ndim = field(argument, _NDIM, "i32")
        demand(emit(f"icmp eq i32 {ndim}, {len(signature.shape)}"))
        flag = emit(f"and i32 {field(argument, _FLAGS, 'i32')}, {_ALIGNED}")
        demand(emit(f"icmp ne i32 {flag}, 0"))
        dims, strides = field(argument, _DIMS), field(argument, _STRIDES)
        expected = item
        for axis in reversed(range(len(signature.shape))):
            demand(emit(f"icmp eq i64 {field(dims, 8 * axis, 'i64')}, {signature.shape[axis]}"))
            demand(emit(f"icmp eq i64 {field(strides, 8 * axis, 'i64')}, {expected}"))
            expected *= signature.shape[axis]
        data.append(field(argument, _DATA))
    empty, shape = field(table, 24), emit(f"getelementptr i8, ptr {table}, i64 32")
    given = 1 if dtype == "float64" else 2  # np.empty(shape), or np.empty(shape, dtype)
    out = emit(f"call ptr @PyObject_Vectorcall(ptr {empty}, ptr {shape}, i64 {given}, ptr null)")
    made = emit(f"icmp ne ptr {out}, null")
    lines.append(f"  br i1 {made}, label %run, label %failed\nrun:")
    target = field(out, _DATA)
    arguments = ", ".join(f"ptr {d}, i64 0" for d in [*data, target])
    lines.append(f"  call void @{kernel}({arguments}, i64 1)")
    body = "\n".join(lines)
    return f"""
define ptr @{name}(ptr %self, ptr %args, i64 %count) {{
{body}
  ret ptr {out}
failed:
  ret ptr null
other:
  %table = getelementptr i8, ptr %self, i64 {_DATA}
  %data = load ptr, ptr %table
  %place = getelementptr i8, ptr %data, i64 16
  %none = load ptr, ptr %place
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
"""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Table(np.ndarray[Any, np.dtype[np.int64]]):
    """The addresses a calling function needs, and the objects that must live as long as it."""

    kept: tuple[Any, ...]


def builtin(address: int, shape: tuple[int, ...], dtype: str, code: object) -> Any:
    """Return the generated function at an address as a Python builtin.

    Args:
        address: of the function made by `ir`.
        shape: of the kernel's output.
        dtype: of the kernel.
        code: what holds the machine code; it lives as long as the builtin.
    """
    kind = np.dtype(dtype)
    looked_at = (np.ndarray, kind, None, np.empty, shape, kind)
    table = np.array([id(x) for x in looked_at], dtype=np.int64).view(_Table)
    definition = _MethodDef(b"kernel", address, _METH_FASTCALL, None)
    table.kept = (looked_at, definition, code)
    make: Any = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.addressof(definition), table, None)
