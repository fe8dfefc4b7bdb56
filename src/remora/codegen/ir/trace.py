"""Tracing: evaluate a function once on CasADi symbols and record its operations as a graph."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from remora.algebra.array_ops import Array, asarray, casadi, is_array, noting_waypoints
from remora.codegen.ir.graph import CONDITIONS, Graph, Signature
from remora.codegen.ir.trace_errors import explained
from remora.errors import RemoraError

#: CasADi operations that correspond to one of ours with the same arguments.
_SAME = {
    casadi.OP_ADD: "add", casadi.OP_SUB: "sub", casadi.OP_MUL: "mul", casadi.OP_DIV: "div",
    casadi.OP_NEG: "neg", casadi.OP_SQRT: "sqrt", casadi.OP_FABS: "abs", casadi.OP_FLOOR: "floor",
    casadi.OP_SIN: "sin", casadi.OP_COS: "cos", casadi.OP_TAN: "tan", casadi.OP_ASIN: "asin",
    casadi.OP_ACOS: "acos", casadi.OP_ATAN: "atan", casadi.OP_ATAN2: "atan2",
    casadi.OP_SINH: "sinh", casadi.OP_COSH: "cosh", casadi.OP_TANH: "tanh",
    casadi.OP_EXP: "exp", casadi.OP_LOG: "log", casadi.OP_POW: "pow", casadi.OP_CONSTPOW: "pow",
    casadi.OP_FMIN: "min", casadi.OP_FMAX: "max",
    casadi.OP_LT: "lt", casadi.OP_LE: "le", casadi.OP_EQ: "eq", casadi.OP_NE: "ne",
}  # fmt: skip
_LOGIC = {casadi.OP_AND: "and", casadi.OP_OR: "or", casadi.OP_NOT: "not"}


def trace(
    function: Callable[..., Any], inputs: Sequence[Signature], names: Sequence[str] | None = None
) -> Graph:
    """Return the graph of a function written on arrays.

    Args:
        function: takes one array per input and returns an array or a tuple of arrays.
        inputs: names and shapes of the arguments.
        names: names of the outputs; `out`, or `out0`, `out1`, ... by default.
    """
    symbols, arrays = symbols_of(inputs)
    with noting_waypoints() as waypoints, warnings.catch_warnings(), explained():
        # NumPy functions on a single symbol return a symbol, which is intended
        warnings.filterwarnings("ignore", "\\s*casadi: a numpy function", FutureWarning)
        returned: Any = function(*arrays)
    results = returned_arrays(returned)
    if names is None:
        names = ["out"] if len(results) == 1 else [f"out{i}" for i in range(len(results))]
    # dense: the tape of a sparse column numbers its nonzeros only
    columns = [casadi.densify(casadi.vertcat(*_elements(r))) for r in (*results, *waypoints)]
    tape = casadi.Function("f", symbols, casadi.cse(columns), {"allow_free": False})
    outputs = tuple(Signature(n, r.shape) for n, r in zip(names, results, strict=True))
    return _from_tape(tape, tuple(inputs), outputs)


def with_symbols(graph: Graph) -> Graph:
    """Return the graph, or raise if a number in it is NaN, the trace of a lost symbol.

    Raises:
        RemoraError: says what to do instead.
    """
    if any(op == "const" and math.isnan(a[0]) for op, a in graph.nodes):
        raise RemoraError(
            "the function does not keep its symbols: one of its numbers is NaN for all arguments; "
            "use NumPy's functions or rm.algebra (math.sin or float() of a symbol is NaN)"
        )
    return graph


def symbols_of(inputs: Sequence[Signature]) -> tuple[list[Any], list[Array]]:
    """Return a CasADi column for each input, and the same symbols as arrays of the input shapes."""
    symbols = [casadi.SX.sym(s.name, s.size) for s in inputs]
    arrays = [
        asarray(x).reshape(s.shape) if s.size else np.zeros(s.shape)
        for x, s in zip(symbols, inputs, strict=True)
    ]
    return symbols, arrays


def returned_arrays(returned: Any) -> list[Array]:
    """Return what a traced function returned as arrays, or raise."""
    parts = list(returned) if is_tuple(returned) else [returned]
    if not parts or not all(
        is_array(p) or isinstance(p, (int, float, np.number)) or _is_symbol(p) for p in parts
    ):
        kind = type(returned).__name__
        reason = "a function to compile must return an array or a tuple of arrays"
        raise RemoraError(f"{reason}, not {kind}")
    return [asarray(p) for p in parts]


def is_tuple(x: object) -> TypeGuard[tuple[Any, ...]]:
    """Return whether a function returned several arrays."""
    return isinstance(x, tuple)


def _is_symbol(x: object) -> bool:
    return isinstance(x, casadi.SX)


def _elements(array: Array) -> list[Any]:
    elements = [e.item() if is_array(e) else e for e in array.reshape(-1).tolist()]
    return [e if _is_symbol(e) else casadi.SX(float(e)) for e in elements]


def _from_tape(tape: Any, inputs: tuple[Signature, ...], outputs: tuple[Signature, ...]) -> Graph:
    """Convert CasADi's instructions, which reuse registers, to nodes, which do not."""
    graph = Graph(inputs, outputs)
    graph.results = [[0] * s.size for s in outputs]
    place: dict[int, int] = {}
    for k in range(tape.n_instructions()):
        op, i, o = tape.instruction_id(k), tape.instruction_input(k), tape.instruction_output(k)
        if op == casadi.OP_INPUT:
            place[o[0]] = graph.input(i[0], i[1])
        elif op == casadi.OP_CONST:
            place[o[0]] = graph.const(tape.instruction_constant(k))
        elif op == casadi.OP_OUTPUT and o[0] < len(outputs):
            graph.results[o[0]][o[1]] = _number(graph, place[i[0]])
        elif op == casadi.OP_OUTPUT:
            graph.waist.append(place[i[0]])
        else:
            place[o[0]] = _operation(graph, op, [place[n] for n in i])
    return graph.rebuilt(_merge_selects)


def _operation(graph: Graph, op: int, a: list[int]) -> int:
    if op in _SAME:
        return graph.op(_SAME[op], *(_number(graph, i) for i in a))
    if op in _LOGIC:
        return graph.op(_LOGIC[op], *(_condition(graph, i) for i in a))
    match op:
        case casadi.OP_SQ:
            return graph.op("mul", a[0], a[0])
        case casadi.OP_TWICE:
            return graph.op("add", a[0], a[0])
        case casadi.OP_COPYSIGN if a[0] == a[1]:  # see `rounded`
            return _never_fused(graph, a[0])
        case casadi.OP_INV:
            return graph.op("div", graph.const(1.0), a[0])
        case casadi.OP_IF_ELSE_ZERO:
            return graph.op("select", _condition(graph, a[0]), _number(graph, a[1]), graph.const(0))
        case casadi.OP_SIGN:
            zero, one = graph.const(0.0), graph.const(1.0)
            negative = graph.op("select", graph.op("lt", a[0], zero), graph.const(-1.0), zero)
            return graph.op("select", graph.op("lt", zero, a[0]), one, negative)
        case _:
            raise RemoraError(f"CasADi's operation {op} cannot be compiled yet")


def _never_fused(graph: Graph, i: int) -> int:
    """Return a product, or minus a product, as one that is never fused; other nodes unchanged."""
    op, a = graph.nodes[i]
    if op == "neg":
        return graph.op("neg", _never_fused(graph, a[0]))
    return graph.op("rounded_mul", *a) if op == "mul" else i


def _number(graph: Graph, i: int) -> int:
    """Return a condition as 0 or 1; a number unchanged."""
    if graph.nodes[i][0] in CONDITIONS:
        return graph.op("select", i, graph.const(1.0), graph.const(0.0))
    return i


def _condition(graph: Graph, i: int) -> int:
    """Return whether a number is nonzero; a condition unchanged."""
    op, a = graph.nodes[i]
    if op in CONDITIONS:
        return i
    if op == "select" and [graph.nodes[k] for k in a[1:]] == [("const", (1.0,)), ("const", (0.0,))]:
        return a[0]
    return graph.op("ne", i, graph.const(0.0))


def _merge_selects(old: Graph, new: Graph, op: str, a: tuple[int, ...], _: int) -> int:
    """Merge CasADi's if_else, (c ? x : 0) + (not c ? y : 0), into one select."""
    if op == "add" and all(new.nodes[i][0] == "select" for i in a):
        (c, x, zero), (d, y, other) = (new.nodes[i][1] for i in a)
        if new.nodes[zero] == new.nodes[other] == ("const", (0.0,)):
            if new.nodes[d] == ("not", (c,)):
                return new.op("select", c, x, y)
            if new.nodes[c] == ("not", (d,)):
                return new.op("select", d, y, x)
    return new.op(op, *a)
