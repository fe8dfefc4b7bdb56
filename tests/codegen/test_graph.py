"""The expression graph: what it folds, what it shares, and what its operations mean."""

import itertools

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra.array_ops import less, rounded, select
from remora.codegen.ir.graph import OPS, Graph, Signature, interpret
from remora.codegen.ir.graph_passes import prepared
from remora.codegen.ir.trace import trace
from remora.errors import RemoraError

X2 = (Signature("x", ()), Signature("y", ()))


def graph_of(build):
    g = Graph(X2, (Signature("out", ()),))
    g.results = [[build(g, g.input(0, 0), g.input(1, 0))]]
    return g


def test_zeros_and_ones_vanish_and_constants_fold():
    g = Graph(X2)
    x, y, zero, one = g.input(0, 0), g.input(1, 0), g.const(0.0), g.const(1.0)
    assert g.op("add", x, zero) == g.op("mul", one, x) == g.op("sub", x, zero) == x
    assert g.op("div", x, one) == x
    assert g.nodes[g.op("mul", x, zero)] == ("const", (0.0,))
    assert g.nodes[g.op("add", g.const(2.0), g.const(3.0))] == ("const", (5.0,))
    assert g.op("neg", g.op("neg", x)) == x
    assert g.op("add", x, y) == g.op("add", y, x)
    assert g.nodes[g.op("add", x, g.op("neg", y))][0] == "sub"
    assert g.const(0.0) != g.const(-0.0)


def test_the_same_operation_is_one_node():
    g = graph_of(lambda g, x, y: g.op("mul", g.op("add", x, y), g.op("add", y, x)))
    assert g.count() == {"add": 1, "mul": 1}


def test_rounded_products_are_never_fused(rng):
    def function(x, y):
        return rounded(x * y) + rounded(x * x) - rounded(-x * 3.0) - y * 7.0

    g = trace(function, (Signature("x", (1,)), Signature("y", (1,))))
    fused = prepared(g, "float64", fma=True)
    assert fused.count()["rounded_mul"] == 3
    assert fused.count()["fma"] == 1  # y * 7.0
    x, y = rng.normal(size=(2, 50, 1))
    unfused = prepared(g, "float64", fma=False)
    assert np.array_equal(interpret(unfused, [x, y])[0], function(x, y))


def test_rounded_products_are_simplified_as_products_are():
    g = Graph(X2)
    x, y = g.input(0, 0), g.input(1, 0)
    assert g.op("rounded_mul", x, g.const(1.0)) == x
    assert g.nodes[g.op("rounded_mul", x, g.const(0.0))] == ("const", (0.0,))
    assert g.nodes[g.op("rounded_mul", x, g.const(-1.0))] == ("neg", (x,))
    assert g.nodes[g.op("rounded_mul", g.const(2.0), g.const(3.0))] == ("const", (6.0,))
    assert g.op("rounded_mul", x, y) == g.op("rounded_mul", y, x) != g.op("mul", x, y)


def test_tracing_keeps_what_a_function_does(rng):
    def function(x, y):
        return (x * x + y * y) * x - y / x

    g = trace(function, X2)
    x, y = rng.normal(size=(2, 5))
    assert_close(interpret(g, [x, y])[0], function(x, y), rtol=1e-15)


def test_tracing_conditions(rng):
    """CasADi writes a choice as two products; the graph has one select again."""

    def function(x, y):
        return select(less(x, y), x * 2.0, y / 3.0)

    g = trace(function, X2)
    assert g.count()["select"] == 1
    assert g.count()["lt"] == 1
    x, y = rng.normal(size=(2, 50))
    assert_close(interpret(g, [x, y])[0], np.where(x < y, 2 * x, y / 3), rtol=1e-15)


@pytest.mark.parametrize(
    "name",
    [
        "sign",
        "fmin",
        "fmax",
        "tanh",
        "exp",
        "log",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "floor",
        "fabs",
    ],
)
def test_tracing_elementary_functions(name, rng):
    def function(x, y):
        result = np.empty((), dtype=object)
        two = name in ("fmin", "fmax")
        result[()] = getattr(casadi, name)(x[()], y[()]) if two else getattr(casadi, name)(x[()])
        return result

    g = trace(function, X2)
    x, y = rng.uniform(0.1, 0.9, size=(2, 20))
    renamed = {"fmin": "minimum", "fmax": "maximum", "fabs": "abs", "asin": "arcsin"}
    renamed |= {"acos": "arccos", "atan": "arctan"}
    meaning = getattr(np, renamed.get(name, name))
    expected = meaning(x, y) if name in ("fmin", "fmax") else meaning(x)
    assert_close(interpret(g, [x, y])[0], expected, rtol=1e-15)
    kernel = rm.Kernel(function, X2, name)
    assert_close(kernel(x, y), expected, rtol=1e-15)


def test_what_cannot_be_compiled_is_said():
    with pytest.raises(RemoraError, match="must return an array"):
        trace(lambda x, y: "text", X2)
    with pytest.raises(RemoraError, match="must return an array"):
        trace(lambda x, y: (), X2)


def sample(op, rng):
    """Arguments for one operation, edge cases among them."""
    count = {"fma": 3, "select": 3, "neg": 1, "sqrt": 1, "abs": 1, "floor": 1, "not": 1}.get(op, 2)
    if op in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log"):
        count = 1
    wide = rng.normal(size=(count, 40)) * 10.0 ** rng.integers(-8, 8, size=(count, 40))
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, np.inf, -np.inf, np.nan])
    beside = itertools.cycle((np.repeat(edges, edges.size), np.tile(edges, edges.size)))
    columns = [np.concatenate([w, e]) for w, e in zip(wide, beside, strict=False)]  # every pair
    if op in ("asin", "acos"):
        columns = [np.clip(c, -1, 1) for c in columns]
    if op == "pow":
        columns = [np.abs(columns[0][:40]) + 0.1, np.clip(columns[1][:40], -5, 5)]
    if op in ("sin", "cos"):
        columns = [np.clip(np.nan_to_num(columns[0]), -1e5, 1e5)]
    if op == "atan2":
        columns = [c[:40] for c in columns]
    return columns


@pytest.mark.parametrize("lanes_of", ["batch", "single"])
@pytest.mark.parametrize("op", OPS)
def test_machine_code_does_what_the_interpreter_does(op, lanes_of, rng):
    """Operation by operation, bit for bit (but for the C library's own functions: 2 ulp)."""
    columns = sample(op, rng)
    boolean = op in ("and", "or", "not")
    inputs = tuple(Signature(f"x{k}", ()) for k in range(len(columns)))

    def build(graph):
        a = [graph.input(k, 0) for k in range(len(columns))]
        zero, one = graph.const(0.0), graph.const(1.0)
        if boolean:
            a = [graph.op("lt", zero, i) for i in a]
        if op == "select":
            a[0] = graph.op("lt", zero, a[0])
        result = graph.op(op, *a)
        if op in ("lt", "le", "eq", "ne", "and", "or", "not"):
            result = graph.op("select", result, one, zero)
        return result

    graph = Graph(inputs, (Signature("out", ()),))
    graph.results = [[build(graph)]]
    kernel = rm.Kernel.from_graph(graph, op)
    with np.errstate(all="ignore"):
        expected = interpret(prepared(graph, "float64"), columns)[0]
        meant = interpret(graph, columns)[0]
    if lanes_of == "batch":
        got = kernel(*columns)
    else:
        got = np.array(
            [kernel(*(np.asarray(c[k]) for c in columns)) for k in range(len(columns[0]))]
        )
    library = op in ("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "pow")
    if library:
        np.testing.assert_allclose(got, meant, rtol=5e-16, atol=0, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_allclose(got, meant, rtol=5e-16, atol=0, equal_nan=True)
