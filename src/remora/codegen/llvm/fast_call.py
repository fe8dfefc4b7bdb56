"""Low-overhead calls from Python to a kernel for a single state, without conversions.

A function with CPython's own calling convention, generated with the kernel. It reads each argument
as a NumPy array struct in memory; if all are plain arrays of the right shape it calls the kernel on
them, otherwise it returns None and the general call is used.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.ir.graph import Signature

# Offsets in a PyArrayObject on a 64-bit CPython (verified by `available`).
_TYPE, DATA, _NDIM, _DIMS, _STRIDES, _DESCR, _FLAGS = 8, 16, 24, 32, 40, 56, 64
_ALIGNED = 0x0100
_METH_FASTCALL, _METH_O = 0x0080, 0x0008
_word_at = ctypes.c_int64.from_address
_ITEM = {"float64": 8, "float32": 4}


@functools.cache
def available() -> bool:
    """Return whether this Python and NumPy have the array struct assumed in this file."""
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
        and word(DATA) == probe.ctypes.data
        and ctypes.c_int32.from_address(id(probe) + _NDIM).value == 2
        and (dims[0], dims[1]) == probe.shape
        and (strides[0], strides[1]) == probe.strides
        and word(_DESCR) == id(probe.dtype)
        and id(np.dtype("float64")) == id(probe.dtype)
        and bool(ctypes.c_int32.from_address(id(probe) + _FLAGS).value & _ALIGNED)
    )


def address(a: Array) -> int:
    """Return the address of an array's data; `a.ctypes.data` takes 1 µs, this 0.1 µs."""
    if available():
        return _word_at(id(a) + DATA).value
    return a.__array_interface__["data"][0]


def ir(
    inputs: Sequence[Signature], outputs: int, kernel: str, name: str, dtype: str, scratch: int = 0
) -> str:
    """Return the IR of the wrapper function of a kernel.

    Args:
        inputs: signatures of the kernel's inputs.
        outputs: number of outputs; several are returned as a tuple.
        kernel: name of the function to call.
        name: name of the wrapper.
        dtype: dtype of the kernel.
        scratch: bytes of scratch memory that the kernel takes as its last argument, if any.
    """
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

    table = field("%self", DATA)
    array_type, descr = field(table, 0), field(table, 8)
    item = _ITEM[dtype]
    demand(emit(f"icmp eq i64 %count, {len(inputs)}"))
    data: list[str] = []
    for k, signature in enumerate(inputs):
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
        data.append(field(argument, DATA))
    empty = field(table, 24)
    given = 1 if dtype == "float64" else 2  # np.empty(shape), or np.empty(shape, dtype)
    made: list[str] = []
    failures: list[str] = []

    def demand_object(found: str) -> None:
        """Continue if there is an object; otherwise release those created so far and fail."""
        label = f"failed{len(failures)}"
        there = emit(f"icmp ne ptr {found}, null")
        lines.append(f"  br i1 {there}, label %ok{count}, label %{label}\nok{count}:")
        dropped = [f"  call void @Py_DecRef(ptr {x})" for x in made]
        failures.append("\n".join([f"{label}:", *dropped, "  ret ptr null"]))

    for k in range(outputs):
        shape = emit(f"getelementptr i8, ptr {table}, i64 {32 + 16 * k}")
        call = f"(ptr {empty}, ptr {shape}, i64 {given}, ptr null)"
        array = emit(f"call ptr @PyObject_Vectorcall{call}")
        demand_object(array)
        made.append(array)
    arrays = list(made)
    if outputs > 1:
        result = emit(f"call ptr @PyTuple_New(i64 {outputs})")
        demand_object(result)
        for k, array in enumerate(arrays):  # the tuple owns them from now on
            emit(f"call i32 @PyTuple_SetItem(ptr {result}, i64 {k}, ptr {array})")
        made = [result]
    arguments = ", ".join(f"ptr {d}, i64 0" for d in [*data, *(field(x, DATA) for x in arrays)])
    if scratch:
        room = emit(f"call ptr @PyMem_RawMalloc(i64 {scratch})")
        found = emit(f"icmp ne ptr {room}, null")
        lines.append(f"  br i1 {found}, label %roomy, label %full\nroomy:")
        lines.append(f"  call void @{kernel}({arguments}, i64 1, ptr {room})")
        lines.append(f"  call void @PyMem_RawFree(ptr {room})")
    else:
        lines.append(f"  call void @{kernel}({arguments}, i64 1)")
    end = "\n".join(failures)
    body = "\n".join(lines)
    return f"""
define ptr @{name}(ptr %self, ptr %args, i64 %count) {{
{body}
  ret ptr {made[0]}
full:
  call void @Py_DecRef(ptr {made[0]})
  %error = call ptr @PyErr_NoMemory()
  ret ptr null
{end}
other:
  %table = getelementptr i8, ptr %self, i64 {DATA}
  %data = load ptr, ptr %table
  %place = getelementptr i8, ptr %data, i64 16
  %none = load ptr, ptr %place
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
"""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_new_function: Any = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)


class _Table(np.ndarray[Any, np.dtype[Any]]):
    """Addresses that a wrapper needs, and the objects that must live as long as it."""

    kept: tuple[Any, ...]


def builtin(address: int, shapes: Sequence[tuple[int, ...]], dtype: str, code: object) -> Any:
    """Return the generated function at an address as a Python builtin.

    Args:
        address: address of the function generated by `ir`.
        shapes: shapes of the kernel's outputs.
        dtype: dtype of the kernel.
        code: owner of the machine code; it lives as long as the builtin.
    """
    kind = np.dtype(dtype)
    looked_at: list[Any] = [np.ndarray, kind, None, np.empty]
    for shape in shapes:
        looked_at += [shape, kind]  # np.empty's arguments
    table = np.array([id(x) for x in looked_at], dtype=np.int64).view(_Table)
    definition = _MethodDef(b"kernel", address, _METH_FASTCALL, None)
    table.kept = (tuple(looked_at), definition, code)
    return _new_function(ctypes.addressof(definition), table, None)


def bound_call(address: int, array: Array, code: object) -> Any:
    """Return a generated function of one argument, which it ignores, as a Python builtin.

    Args:
        address: address of the function, which takes a PyArrayObject and returns it.
        array: the array that it is called on.
        code: owner of the machine code; it lives as long as the builtin.
    """
    definition = _MethodDef(b"part", address, _METH_O, None)
    own = array.view(_Table)
    own.kept = (array, definition, code)
    return _new_function(ctypes.addressof(definition), own, None)
