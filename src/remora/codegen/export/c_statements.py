"""Graphs as C statements, one operation per line, in the order of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from remora.codegen.export.c_text import SCALARS, number
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import CONDITIONS, ELEMENTARY, Graph

#: Operations that are C expressions; the others are functions of <math.h>.
_WRITTEN = {
    "neg": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0}*{1}", "div": "{0}/{1}",
    "rounded_mul": "{0}*{1}",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}",
    "and": "{0} && {1}", "or": "{0} || {1}", "not": "!{0}", "select": "{0} ? {1} : {2}",
    "min": "({0} < {1} || {0} != {0}) ? {0} : {1}",  # NaN wins, as in the reference
    "max": "({0} > {1} || {0} != {0}) ? {0} : {1}",
}  # fmt: skip
_MATH = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"} | {e: e for e in ELEMENTARY}


def prepared(graph: Graph, dtype: str) -> Graph:
    """Return a graph as it is written in C: elementary functions expanded, nothing fused."""
    return without_floor(graph_passes.prepared(graph, dtype, fma=False), dtype)


def without_floor(graph: Graph, dtype: str) -> Graph:
    """Return a prepared graph with floor replaced by additions, for targets where it is a call.

    Adding and subtracting 2⁵² (2²³) rounds |x| to the nearest integer; 1 is subtracted if that is
    above x; larger numbers are integers already. Bitwise identical except for the sign of zero.
    """
    limit = 2.0 ** {"float64": 52, "float32": 23}[dtype]

    def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], _: int) -> int:
        if op != "floor":
            return new.op(op, *a)
        x, large, size = a[0], new.const(limit), new.op("abs", a[0])
        near = new.op("sub", new.op("add", size, large), large)
        near = new.op("select", new.op("lt", x, new.const(0.0)), new.op("neg", near), near)
        less = new.op("sub", near, new.const(1.0))
        below = new.op("select", new.op("lt", x, near), less, near)
        return new.op("select", new.op("lt", size, large), below, x)

    return graph.rebuilt(rewrite)


def statements(
    graph: Graph,
    dtype: str,
    place: Callable[[int, int], str],
    stores: Sequence[tuple[str, int]],
) -> tuple[list[str], set[int], set[str]]:
    """Return a prepared graph as C statements: one operation per line, in the order of the graph.

    All inputs are read before the first result is stored.

    Args:
        graph: prepared by `graph_passes.prepared`, without floor.
        dtype: `float64` or `float32`.
        place: (input array, element) -> the C expression that reads it.
        stores: (assignment of a result `{}`, node) for each result: `out[0] = {};`.

    Returns:
        The statements, the indices of the inputs that are read, and what <math.h> must provide.
    """
    scalar, body = SCALARS[dtype], list[str]()
    needed = Graph(graph.inputs, (), graph.nodes, [[i for _, i in stores]]).needed()
    values: dict[int, str] = {}
    used: set[int] = set()
    math_used: set[str] = set()
    for i, (op, a) in enumerate(graph.nodes):
        if not needed[i]:
            continue
        if op == "const":
            values[i] = number(a[0], dtype)
            if not math.isfinite(a[0]):
                math_used.add("NAN or INFINITY")
            continue
        if op == "input":
            used.add(a[0])
            text = place(a[0], a[1])
        elif op in _WRITTEN:
            text = _WRITTEN[op].format(*(values[k] for k in a))
        else:
            function = _MATH[op] + ("f" if dtype == "float32" else "")
            math_used.add(function)
            text = f"{function}({', '.join(values[k] for k in a)})"
        values[i] = f"t{i}"
        body.append(f"const {'int' if op in CONDITIONS else scalar} t{i} = {text};")
    body += [assignment.format(values[i]) for assignment, i in stores]
    return body, used, math_used
