"""Expression graph: straight-line operations, each on the results of earlier ones.

A node is `(op, arguments)`; its number is its index in the list. Construction is hash-consed: the
same operation on the same arguments is the same node, constants are folded, and trivial operations
(times zero or one, plus zero) are not built. Conditions are nodes of their own type and occur only
in `select`, `and`, `or` and `not`. A `rounded_mul` is a product that is never fused with a sum, so
that it has the same bits on processors with and without a fused multiply-add.
"""

from __future__ import annotations

import json
import marshal
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from remora.algebra.array_ops import Array

Node: TypeAlias = tuple[str, tuple[Any, ...]]


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a b + c with a single rounding."""

    def exact(a: float, b: float, c: float) -> float:
        if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
            return a * b + c
        value = Fraction(a) * Fraction(b) + Fraction(c)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    return np.vectorize(exact, otypes=[float])(a, b, c)


#: Reference semantics of every operation on float arrays, against which all targets are tested.
OPS: dict[str, Callable[..., Array]] = {
    "neg": np.negative,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "rounded_mul": np.multiply,
    "div": np.divide,
    "fma": fused_multiply_add,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "sin": np.sin,
    "cos": np.cos,
    "atan2": np.arctan2,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
CONDITIONS = frozenset(("lt", "le", "eq", "ne", "and", "or", "not"))
#: Operations without a machine instruction; `graph_passes` or the C library implements them.
ELEMENTARY = frozenset(
    ("sin", "cos", "atan2", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log")
) | {"pow"}
_FOLDED = frozenset(("neg", "add", "sub", "mul", "div", "sqrt", "abs", "floor"))
_ARITHMETIC = frozenset(("add", "sub", "mul", "div"))


@dataclass(frozen=True)
class Signature:
    """Name and shape (without the batch) of an array of a kernel.

    Attributes:
        name: as in the function.
        shape: `(n,)`, `(m, n)`, ... or `()`.
    """

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass
class Graph:
    """Inputs, nodes and outputs.

    Attributes:
        inputs: input arrays.
        outputs: output arrays.
        nodes: the operations in order; `("input", (array, element))`, `("const", (value,))`.
        results: for each output, the node of each of its elements.
        waist: nodes marked by `waypoint`: all later nodes depend on them and on little else.
    """

    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...] = ()
    nodes: list[Node] = field(default_factory=list[Node])
    results: list[list[int]] = field(default_factory=list[list[int]])
    waist: list[int] = field(default_factory=list[int])
    _known: dict[Node, int] = field(default_factory=dict[Node, int], repr=False)

    def content(self) -> bytes:
        """Return the computation as text for hashing, numbers by their bits."""
        lines = [json.dumps([[[s.name, s.shape] for s in x] for x in (self.inputs, self.outputs)])]
        lines += (
            f"const {float(a[0]).hex()}" if op == "const" else f"{op} {' '.join(map(str, a))}"
            for op, a in self.nodes
        )
        lines += (f"result {' '.join(map(str, result))}" for result in self.results)
        lines.append(f"waist {' '.join(map(str, self.waist))}")
        return "\n".join(lines).encode()

    def to_bytes(self) -> bytes:
        """Return the inputs, nodes and outputs in a compact form."""
        named = [[(s.name, s.shape) for s in x] for x in (self.inputs, self.outputs)]
        return zlib.compress(marshal.dumps((named, self.nodes, self.results), 4), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Graph:
        """Return the graph that `to_bytes` stored, to be read, not extended."""
        named, nodes, results = marshal.loads(zlib.decompress(data))
        inputs, outputs = (tuple(Signature(n, shape) for n, shape in x) for x in named)
        known = {node: i for i, node in enumerate(nodes) if node[0] == "input"}
        return cls(inputs, outputs, nodes, results, _known=known)

    def const(self, value: float) -> int:
        """Return the node of a constant."""
        return self.node("const", (float(value),))

    def input(self, array: int, element: int) -> int:
        """Return the node of an element of an input."""
        return self.node("input", (array, element))

    def op(self, name: str, *a: int) -> int:
        """Return the node of an operation, simplified where the result stays bitwise identical.

        (Except for the sign of zero, and infinity times zero.)
        """
        nodes = self.nodes
        if name not in _SIMPLIFIED:
            return self.node(name, a)
        if name in _ARITHMETIC and nodes[a[0]][0] != "const" and nodes[a[1]][0] != "const":
            return self._arithmetic(name, *a)
        values = [nodes[i][1][0] if nodes[i][0] == "const" else None for i in a]
        if name in _FOLDED and all(v is not None for v in values):
            with np.errstate(all="ignore"):
                return self.const(float(OPS[name](*values)))
        rule = _SIMPLIFIED[name]
        simpler = None if rule is None else rule(self, values, *a)
        return self.node(name, a) if simpler is None else simpler

    def argument(self, op: str, i: int) -> int | None:
        """Return the first argument of a node, if it is of that operation."""
        found, arguments = self.nodes[i]
        return arguments[0] if found == op else None

    def _arithmetic(self, name: str, x: int, y: int) -> int:
        """Return the node of a sum, difference, product or quotient of two nodes, not constants."""
        if name in ("add", "mul") and y < x:
            x, y = y, x  # so that a b and b a are the same node
        if name in ("add", "sub"):
            if name == "sub" and x == y:
                return self.const(0.0)
            for one, other in ((y, x), (x, y)):
                op, inner = self.nodes[one]
                if op == "neg" and (name == "add" or one == y):
                    return self.op("sub" if name == "add" else "add", other, inner[0])
        return self.node(name, (x, y))

    def node(self, op: str, arguments: tuple[Any, ...]) -> int:
        """Return the node with these contents, as they are."""
        key = (op, arguments) if op != "const" else (op, (repr(arguments[0]),))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.nodes)
            self.nodes.append((op, arguments))
        return known

    def users(self) -> list[int]:
        """Return the number of uses of each node, outputs included."""
        count = [0] * len(self.nodes)
        for op, arguments in self.nodes:
            if op not in ("input", "const"):
                for i in arguments:
                    count[i] += 1
        for result in self.results:
            for i in result:
                count[i] += 1
        return count

    def rebuilt(self, rewrite: Callable[[Graph, Graph, str, tuple[int, ...], int], int]) -> Graph:
        """Return a graph in which each needed node is rebuilt by `rewrite`.

        Args:
            rewrite: (old graph, new graph, op, arguments in the new graph, index in the old) ->
                the new node.
        """
        needed = self.needed()
        new = Graph(self.inputs, self.outputs)
        place = [-1] * len(self.nodes)
        for i, (op, arguments) in enumerate(self.nodes):
            if not needed[i]:
                continue
            if op == "const":
                place[i] = new.const(arguments[0])
            elif op == "input":
                place[i] = new.input(*arguments)
            else:
                place[i] = rewrite(self, new, op, tuple(map(place.__getitem__, arguments)), i)
        new.results = [[place[i] for i in result] for result in self.results]
        new.waist = [place[i] for i in self.waist if place[i] >= 0]
        return new

    def at_waist(self) -> tuple[Graph, Graph]:
        """Split into the graph that computes the waist, and the rest with the waist as an input."""
        name = Signature("waist", (len(self.waist),))
        before = Graph(self.inputs, (name,), self.nodes, [self.waist])
        places = {i: j for j, i in enumerate(self.waist)}

        def rewrite(old: Graph, new: Graph, op: str, a: tuple[int, ...], i: int) -> int:
            return new.input(len(self.inputs), places[i]) if i in places else new.op(op, *a)

        after = self.rebuilt(rewrite)
        after.inputs = (*self.inputs, name)
        return before, after

    def needed(self) -> list[bool]:
        """Return for each node whether an output depends on it (liveness)."""
        needed = [False] * len(self.nodes)
        for result in self.results:
            for i in result:
                needed[i] = True
        for i in reversed(range(len(self.nodes))):
            op, arguments = self.nodes[i]
            if needed[i] and op not in ("input", "const"):
                for k in arguments:
                    needed[k] = True
        return needed

    def count(self) -> dict[str, int]:
        """Return the number of nodes of each operation."""
        result: dict[str, int] = {}
        for (op, _), needed in zip(self.nodes, self.needed(), strict=True):
            if needed and op not in ("input", "const"):
                result[op] = result.get(op, 0) + 1
        return result


# Simplifications of operations on constants, or of one argument ---------------------------------

#: (graph, value of each argument or None, arguments) -> a simpler node; None: there is none.
_Rule: TypeAlias = Callable[..., "int | None"]
_Values: TypeAlias = Sequence["float | None"]


def _sum(graph: Graph, values: _Values, x: int, y: int) -> int | None:
    if y < x:
        return graph.op("add", y, x)  # so that a + b and b + a are the same node
    for one, other, value in ((y, x, values[1]), (x, y, values[0])):
        if value == 0.0:
            return other
        inner = graph.argument("neg", one)
        if inner is not None:
            return graph.op("sub", other, inner)
    return None


def _difference(graph: Graph, values: _Values, x: int, y: int) -> int | None:
    if values[1] == 0.0:
        return x
    if values[0] == 0.0:
        return graph.op("neg", y)
    inner = graph.argument("neg", y)
    return None if inner is None else graph.op("add", x, inner)


def _product(graph: Graph, values: _Values, x: int, y: int) -> int | None:
    if y < x:
        return graph.op("mul", y, x)  # so that a b and b a are the same node
    if 0.0 in values:
        return graph.const(0.0)
    for value, other in ((values[1], x), (values[0], y)):
        if value == 1.0:
            return other
        if value == -1.0:
            return graph.op("neg", other)
    return None


def _quotient(graph: Graph, values: _Values, x: int, y: int) -> int | None:
    return x if values[1] == 1.0 else None


def _negated(graph: Graph, values: _Values, x: int) -> int | None:
    return graph.argument("neg", x)


def _inverted(graph: Graph, values: _Values, x: int) -> int | None:
    return graph.argument("not", x)


def _selected(graph: Graph, values: _Values, condition: int, x: int, y: int) -> int | None:
    return x if x == y else None


def _rounded_product(graph: Graph, values: _Values, x: int, y: int) -> int | None:
    """Simplify as a product."""
    op, arguments = graph.nodes[product := graph.op("mul", x, y)]
    return graph.node("rounded_mul", arguments) if op == "mul" else product


#: Operations that may have a simpler form; None: only if all arguments are constants.
_SIMPLIFIED: dict[str, _Rule | None] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "rounded_mul": _rounded_product,
    "div": _quotient,
    "neg": _negated,
    "not": _inverted,
    "select": _selected,
    "sqrt": None,
    "abs": None,
    "floor": None,
}


def interpret(graph: Graph, arguments: Sequence[Array], dtype: str = "float64") -> list[Array]:
    """Evaluate a graph on float arrays, operation by operation: the reference for kernels.

    Args:
        graph: the graph.
        arguments: one array per input, batch shape in front.
        dtype: the precision of every number, constants included.
    """
    with np.errstate(over="ignore"):
        arguments = [np.asarray(a, dtype) for a in arguments]
    values: list[Array] = []
    batch = np.broadcast_shapes(
        *(a.shape[: a.ndim - len(s.shape)] for a, s in zip(arguments, graph.inputs, strict=True))
    )
    flat: list[Array] = [
        np.broadcast_to(a, batch + s.shape).reshape(*batch, s.size)
        for a, s in zip(arguments, graph.inputs, strict=True)
    ]
    for op, a in graph.nodes:
        if op == "const":
            with np.errstate(over="ignore"):
                values.append(np.asarray(a[0], dtype))
        elif op == "input":
            values.append(flat[int(a[0])][..., int(a[1])])
        else:
            numbers: list[Array] = [values[i] for i in a]
            with np.errstate(all="ignore"):
                value = np.asarray(OPS[op](*numbers))
            values.append(value if value.dtype == bool else value.astype(dtype, copy=False))
    results: list[Array] = []
    for result, signature in zip(graph.results, graph.outputs, strict=True):
        columns = [np.broadcast_to(values[i], batch) for i in result]
        stacked = np.stack(columns, axis=-1) if columns else np.zeros((*batch, 0), dtype)
        results.append(stacked.reshape((*batch, *signature.shape)))
    return results
