"""Calls of machine code on rows of states: arguments, results, scratch memory and threads.

    void chunk(ptr call, i64 start, i64 count, ptr scratch)

Whatever is compiled for a batch has this function: it computes a part of the batch, and is what a
thread of `thread_team` runs. `call` holds a pointer and a stride per array, then the other
arguments, 64 bits each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from remora.algebra.array_ops import Array, ArrayLike, is_array, refuse_other_arrays
from remora.codegen.ir.arguments import batch_of, common_batch, wrong_dtype
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import thread_team
from remora.codegen.llvm.fast_call import address
from remora.codegen.llvm.host import LoadedCode
from remora.errors import ShapeError

#: Size of the widest vector register, in bytes.
WIDEST = 64
#: NumPy's flags of an array that is contiguous and aligned.
IN_ROWS = 0x0101
WRITEABLE = 0x0400


def thread_count(threads: int, most: int) -> int:
    """Return the number of threads of a call, 0 meaning one per processor, and `most` at most."""
    if not isinstance(threads, int) or threads < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(f"threads must be a number of threads, or 0, not {threads!r}")
    return min(threads or os.cpu_count() or 1, max(1, most))


def run(
    code: LoadedCode,
    call: Sequence[int],
    states: int,
    threads: int,
    scratch: tuple[int, int],
    lanes: int,
) -> None:
    """Compute all states, in chunks of whole vectors if several threads share them.

    Args:
        code: has a function `chunk`.
        call: the numbers that it reads.
        states: number of states.
        threads: number of threads.
        scratch: address and bytes per thread of the scratch memory, see `scratch_for`.
        lanes: states that are computed at once.
    """
    if threads > 1:
        thread_team.run_shared(code.address["chunk"], call, states, threads, scratch, lanes)
    else:
        numbers = np.array(call, np.int64)
        code.chunk(address(numbers), 0, states, scratch[0])


def chunk_ir(
    arrays: int,
    kernel: str,
    name: str,
    dtype: str | Sequence[str],
    others: Sequence[str] = (),
    scratch: bool = False,
) -> str:
    """Return the IR of the function.

    Args:
        arrays: number of arrays of the kernel, arguments and results.
        kernel: name of the kernel; it takes the arrays, the number of states, the other arguments
            and the scratch memory.
        name: name of the function.
        dtype: dtype of all arrays, or of each.
        others: IR types of the other arguments.
        scratch: whether the kernel takes scratch memory.
    """
    dtypes = [dtype] * arrays if isinstance(dtype, str) else dtype
    items = [np.dtype(d).itemsize for d in dtypes]
    lines: list[str] = []
    passed: list[str] = []

    def read(slot: int, kind: str) -> str:
        lines.append(f"  %at{slot} = getelementptr i64, ptr %call, i64 {slot}")
        lines.append(f"  %x{slot} = load {kind}, ptr %at{slot}")
        return f"%x{slot}"

    for k in range(arrays):
        first, stride = read(2 * k, "ptr"), read(2 * k + 1, "i64")
        lines.append(f"  %numbers{k} = mul i64 %start, {stride}")
        lines.append(f"  %bytes{k} = mul i64 %numbers{k}, {items[k]}")
        lines.append(f"  %array{k} = getelementptr i8, ptr {first}, i64 %bytes{k}")
        passed += [f"ptr %array{k}", f"i64 {stride}"]
    passed.append("i64 %count")
    passed += [f"{kind} {read(2 * arrays + k, kind)}" for k, kind in enumerate(others)]
    passed += ["ptr %scratch"] * scratch
    body = "\n".join(lines)
    return f"""
define void @{name}(ptr %call, i64 %start, i64 %count, ptr %scratch) {{
{body}
  call void @{kernel}({", ".join(passed)})
  ret void
}}
"""


def plain_rows(
    arrays: Sequence[Any],
    rows: Sequence[tuple[tuple[int, ...], int]],
    n: int,
    dtype: str,
    flags: int,
) -> list[int] | None:
    """Return a pointer and stride per array, or None unless all are plain arrays of n rows.

    Args:
        arrays: any objects.
        rows: shape and size of a row of each.
        n: number of rows.
        dtype: dtype that they must have.
        flags: NumPy's flags that they must have.
    """
    call: list[int] = []
    for a, (shape, size) in zip(arrays, rows, strict=True):
        if (
            type(a) is not np.ndarray
            or a.dtype != dtype
            or a.flags.num & flags != flags
            or a.shape != (n, *shape)
        ):
            return None
        call.append(address(a))
        call.append(size)
    return call


def scratch_for(threads: int, size: int) -> tuple[Array, tuple[int, int]]:
    """Return scratch memory, its first vector-aligned address, and the bytes of each thread.

    Args:
        threads: number of threads.
        size: bytes that a thread needs.
    """
    each = -(-size // WIDEST) * WIDEST
    room: Array = np.empty(threads * each + WIDEST * (size > 0), np.uint8)
    return room, (-(-address(room) // WIDEST) * WIDEST, each)


def in_rows(
    kernel: str,
    inputs: Sequence[Signature],
    arguments: Sequence[ArrayLike],
    dtype: str | Sequence[str],
) -> tuple[tuple[int, ...], list[int], list[Array]]:
    """Return the batch shape, a pointer and stride per argument, and the arrays they point into.

    Args:
        kernel: name of the kernel, for error messages.
        inputs: names and shapes of the arguments.
        arguments: as passed by the caller.
        dtype: dtype of all arguments, or of each.
    """
    dtypes = [dtype] * len(inputs) if isinstance(dtype, str) else dtype
    arrays: list[Array] = []
    batches: list[tuple[int, ...]] = []
    for argument, s, own in zip(arguments, inputs, dtypes, strict=True):
        a = _taken(kernel, argument, s, own)
        arrays.append(a)
        batches.append(batch_of(kernel, s, a.shape))
    batch = batches[0] if batches else ()
    if batches.count(batch) < len(batches):
        batch = common_batch(inputs, batches)
    call: list[int] = []
    kept: list[Array] = []
    for a, own, s in zip(arrays, batches, inputs, strict=True):
        if own == batch:
            rows, stride = a, s.size
        elif math.prod(own) == 1:
            rows, stride = a, 0  # shared by all states
        else:
            rows, stride = np.ascontiguousarray(np.broadcast_to(a, batch + s.shape)), s.size
        kept.append(rows)
        call += [address(rows), stride]
    return batch, call, kept


def _taken(kernel: str, argument: ArrayLike, signature: Signature, dtype: str) -> Array:
    """Return an argument as a contiguous, aligned array of the kernel's dtype."""
    if type(argument) is np.ndarray:
        if argument.dtype == dtype and argument.flags.num & IN_ROWS == IN_ROWS:
            return argument
    else:
        refuse_other_arrays(argument, f"{signature.name} of kernel {kernel}")
    try:
        a: Array = np.asarray(argument)
    except ValueError as error:  # rows of different lengths
        raise ShapeError(f"{signature.name} of kernel {kernel} is no array: {error}") from None
    if a.dtype != dtype and not np.can_cast(a.dtype, dtype, "safe"):
        raise ShapeError(wrong_dtype(f"{signature.name} of kernel {kernel}", a.dtype, dtype))
    batch_of(kernel, signature, a.shape)  # before a copy is made
    return np.require(a, dtype, ["C", "A"])


def results_for(
    out: Any, shapes: Sequence[tuple[int, ...]], dtype: str | Sequence[str]
) -> list[Array]:
    """Return arrays for the results: those passed as `out`, if they fit, or new ones.

    Args:
        out: as passed by the caller.
        shapes: shapes of the results.
        dtype: dtype of all results, or of each.
    """
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    if out is None:
        return [np.empty(shape, d) for shape, d in zip(shapes, dtypes, strict=True)]
    given: list[Any] = [out]
    if len(shapes) > 1:
        try:
            given = list(out)
        except TypeError:
            name = type(out).__name__
            raise ShapeError(f"out must be {len(shapes)} arrays, not {name}") from None
    if len(given) != len(shapes):
        raise ShapeError(f"out must be {len(shapes)} arrays, not {len(given)}")
    for r, shape, d in zip(given, shapes, dtypes, strict=True):
        fits = (
            is_array(r)
            and r.shape == shape
            and r.dtype == d
            and r.flags.c_contiguous
            and r.flags.aligned
            and r.flags.writeable
        )
        if not fits:
            raise ShapeError(f"out must be a contiguous, writeable {d} array of shape {shape}")
    return given


def apart(
    kernel: str,
    inputs: Sequence[Signature],
    call: Sequence[int],
    kept: Sequence[Array],
    results: Sequence[Array],
) -> tuple[list[int], list[Array]]:
    """Return a call whose arguments do not overlap its results.

    An argument that is the same array as a result is copied. An argument that partly overlaps a
    result is refused, and so are two results that overlap.

    Args:
        kernel: name of the kernel, for error messages.
        inputs: names and shapes of the arguments.
        call: a pointer and a stride for each argument.
        kept: the contiguous arrays they point into.
        results: output arrays.
    """
    call, kept = list(call), list(kept)
    for k, one in enumerate(results):
        if any(np.may_share_memory(one, other) for other in results[:k]):
            raise ShapeError(f"two arrays of out of kernel {kernel} share memory")
        for i, (rows, s) in enumerate(zip(kept, inputs, strict=True)):
            if not rows.size or not one.size or not np.may_share_memory(rows, one):
                continue
            if address(rows) != address(one) or rows.nbytes != one.nbytes:
                raise ShapeError(
                    f"out of kernel {kernel} shares a part of its memory with the argument "
                    f"{s.name}: give an array of its own, or exactly that of the argument"
                )
            kept[i] = rows.copy()
            call[2 * i] = address(kept[i])
    return call, kept
