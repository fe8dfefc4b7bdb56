"""A kernel on a chunk of a batch, called by address with all its arguments in memory.

    void NAME(ptr call, i64 start, i64 count, ptr scratch)

`call` holds a pointer and a stride per array, then the other arguments, 64 bits each. This is what
a thread of `thread_team` runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def ir(
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
