"""A sequence of kernels over a batch, in machine code: each works on what earlier ones left.

    void chunk(ptr call, i64 start, i64 count, ptr scratch)

The batch is computed in chunks of a few states, each by all kernels in turn, so that intermediate
arrays stay in the cache. The table of a sequence is made once; the arrays of a call are passed
beside it. All numbers are 64 bits wide:

    call:   table, then the address of each array of the call
    table:  number of kernels, states per chunk, then for each kernel:
            address of its `chunk` function, number of arrays, then for each array:
            which (0: scratch, k: the array k of the call), offset in bytes, stride in numbers

See `row_calls`: a `thread_team` can run it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from remora.algebra.array_ops import Array
from remora.codegen.llvm import host
from remora.codegen.llvm.fast_call import address

#: Largest number of arrays of one kernel, arguments and results.
MOST_ARRAYS = 16


class ArrayPlace(NamedTuple):
    """Where a kernel of a sequence finds an array.

    Attributes:
        which: 0 for the scratch memory, k for the k-th array of the call.
        offset: of the array; in scratch memory numbers per state of the chunk, else numbers.
        stride: from one state to the next, in numbers.
        column: first number within a row of the array.
    """

    which: int
    offset: int
    stride: int
    column: int = 0


def entry(function: int, places: Sequence[ArrayPlace], chunk: int = 1, itemsize: int = 8) -> Array:
    """Return the entry of one kernel in a table, 64-bit integers.

    Args:
        function: address of its `chunk` function.
        places: of its arrays.
        chunk: states per chunk.
        itemsize: size of a number in bytes.
    """
    if len(places) > MOST_ARRAYS:
        raise ValueError(f"a kernel with {len(places)} arrays; at most {MOST_ARRAYS}")
    numbers = [function, len(places)]
    for which, offset, stride, column in places:
        first = offset * (chunk if which == 0 else 1) + column
        numbers += [which, first * itemsize, stride]
    return np.array(numbers, dtype=np.int64)


def ir(itemsize: int) -> str:
    """Return the IR of the function for numbers of a size in bytes."""
    return f"""
define void @chunk(ptr %call, i64 %start, i64 %count, ptr %scratch) {{
entry:
  %arguments = alloca [{2 * MOST_ARRAYS} x i64], align 16
  %table = load ptr, ptr %call
  %kernels = load i64, ptr %table
  %p_chunk = getelementptr i64, ptr %table, i64 1
  %chunk = load i64, ptr %p_chunk
  %first = getelementptr i64, ptr %table, i64 2
  %end = add i64 %start, %count
  br label %chunks
chunks:
  %s = phi i64 [ %start, %entry ], [ %next_s, %chunk_done ]
  %more = icmp slt i64 %s, %end
  br i1 %more, label %begin, label %finished
begin:
  %left = sub i64 %end, %s
  %whole = icmp slt i64 %chunk, %left
  %n = select i1 %whole, i64 %chunk, i64 %left
  br label %each
each:
  %k = phi i64 [ 0, %begin ], [ %k1, %called ]
  %at = phi ptr [ %first, %begin ], [ %after, %called ]
  %some = icmp slt i64 %k, %kernels
  br i1 %some, label %kernel, label %chunk_done
kernel:
  %function = load ptr, ptr %at
  %p_arrays = getelementptr i64, ptr %at, i64 1
  %arrays = load i64, ptr %p_arrays
  %places = getelementptr i64, ptr %at, i64 2
  br label %fill
fill:
  %a = phi i64 [ 0, %kernel ], [ %a1, %filled ]
  %any = icmp slt i64 %a, %arrays
  br i1 %any, label %one, label %run
one:
  %i = mul i64 %a, 3
  %p_which = getelementptr i64, ptr %places, i64 %i
  %which = load i64, ptr %p_which
  %p_offset = getelementptr i64, ptr %p_which, i64 1
  %offset = load i64, ptr %p_offset
  %p_stride = getelementptr i64, ptr %p_which, i64 2
  %stride = load i64, ptr %p_stride
  %local = icmp eq i64 %which, 0
  br i1 %local, label %in_scratch, label %in_array
in_scratch:
  %place0 = getelementptr i8, ptr %scratch, i64 %offset
  br label %filled
in_array:
  %p_base = getelementptr i64, ptr %call, i64 %which
  %base = load ptr, ptr %p_base
  %numbers = mul i64 %s, %stride
  %bytes = mul i64 %numbers, {itemsize}
  %here = add i64 %bytes, %offset
  %place1 = getelementptr i8, ptr %base, i64 %here
  br label %filled
filled:
  %place = phi ptr [ %place0, %in_scratch ], [ %place1, %in_array ]
  %slot = mul i64 %a, 2
  %q_place = getelementptr i64, ptr %arguments, i64 %slot
  store ptr %place, ptr %q_place
  %q_stride = getelementptr i64, ptr %q_place, i64 1
  store i64 %stride, ptr %q_stride
  %a1 = add i64 %a, 1
  br label %fill
run:
  call void %function(ptr %arguments, i64 0, i64 %n, ptr %scratch)
  br label %called
called:
  %length = mul i64 %arrays, 3
  %after = getelementptr i64, ptr %places, i64 %length
  %k1 = add i64 %k, 1
  br label %each
chunk_done:
  %next_s = add i64 %s, %chunk
  br label %chunks
finished:
  ret void
}}
"""


@functools.cache
def _code(itemsize: int) -> host.LoadedCode:
    return host.LoadedCode(host.to_object(ir(itemsize), host.host()), ("chunk",))


class KernelSequence:
    """Kernels with the places of their arrays, ready to run.

    Attributes:
        chunk: states per chunk.
        scratch_bytes: scratch memory of a run.
    """

    def __init__(
        self,
        steps: Sequence[tuple[int, Sequence[ArrayPlace]]],
        scratch: int,
        chunk: int,
        itemsize: int = 8,
    ) -> None:
        """Make the table.

        Args:
            steps: address of a kernel's `chunk` function and the places of its arrays, in order.
            scratch: numbers of scratch memory per state.
            chunk: states per chunk.
            itemsize: size of a number in bytes.
        """
        entries = [entry(function, places, chunk, itemsize) for function, places in steps]
        self._start(entries, scratch, chunk, itemsize)

    @classmethod
    def of_entries(cls, entries: Sequence[Array], chunk: int = 1) -> KernelSequence:
        """Return the sequence of entries that were made by `entry`, without scratch memory."""
        sequence = cls.__new__(cls)
        sequence._start(entries, 0, chunk, 8)
        return sequence

    def _start(self, entries: Sequence[Array], scratch: int, chunk: int, itemsize: int) -> None:
        self.chunk, self.scratch_bytes = chunk, scratch * chunk * itemsize
        head: Array = np.array([len(entries), chunk], dtype=np.int64)
        self._table: Array = np.concatenate([head, *entries])
        self._first = address(self._table)
        self._code = _code(itemsize)
        self._local = threading.local()

    def run(self, arrays: Sequence[int], states: int) -> None:
        """Compute all states.

        Args:
            arrays: addresses of the arrays of the call.
            states: number of states.
        """
        scratch = getattr(self._local, "scratch", 0)
        if not scratch:  # one for each thread: fresh memory costs more than a single state
            self._local.room = room = np.empty(self.scratch_bytes + 64, np.uint8)
            self._local.scratch = scratch = -(-address(room) // 64) * 64
        call: Array = np.array([self._first, *arrays], dtype=np.int64)
        self._code.chunk(address(call), 0, states, scratch)
