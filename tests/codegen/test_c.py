"""The C that is written compiles without a warning and computes what the graph means."""

import ctypes
import functools
import re
import subprocess

import numpy as np
import pytest

import needs
import remora as rm
from public_names import public
from remora.codegen.export import c, c_text
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature, interpret
from remora.codegen.ir.trace import trace
from trees import relative_error

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SERVICER, TREE = rm.load("servicer"), rm.random_robot(5, bodies=16)
FUNCTIONS = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "vdot"),
    "mass_matrix": ("q",),
    "jacobian": ("q",),
    "integrate": ("q", "dq"),
    "difference": ("q0", "q1"),
}


def compile_c(*arguments):
    done = subprocess.run(
        [needs.CC, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Library:
    """What was written, built twice: as a library that Python calls, and as its test program."""

    def __init__(self, graph, name, dtype, folder, *flags):
        _, source, test = c.write_c(graph, name, dtype, folder)
        self.name, self.dtype, self.graph = source.stem, np.dtype(dtype), graph
        self.program = folder / f"{self.name}_test"
        flags = (*STRICT, "-ffp-contract=off", *flags)
        compile_c(*flags, "-fPIC", "-c", source, "-o", folder / "one.o")
        compile_c("-shared", folder / "one.o", "-lm", "-o", folder / "one.so")
        compile_c(*flags, test, folder / "one.o", "-lm", "-o", self.program)
        self.function = getattr(ctypes.CDLL(str(folder / "one.so")), self.name)

    def __call__(self, *arrays):
        given = [np.ascontiguousarray(a, dtype=self.dtype) for a in arrays]
        results = [np.full(s.shape, np.nan, self.dtype) for s in self.graph.outputs]
        self.function(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, *results)))
        return results

    def test(self):
        """Return the status of the test program and its verdict."""
        run = subprocess.run([self.program], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout.split()[-1]


@functools.cache
def graph_of(name, robot):
    fixed = {"frame": len(robot.bodies) - 1} if name == "jacobian" else {}
    inputs = [Signature(a, (robot.nq if a.startswith("q") else robot.nv,)) for a in FUNCTIONS[name]]
    return trace(lambda *arrays: public(name)(robot, *arrays, **fixed), inputs)


def states(name, robot, dtype, count=3):
    rng = np.random.default_rng(7)
    for _ in range(count):
        (q, v), (q1, _) = rm.random_state(robot, rng), rm.random_state(robot, rng)
        made = {"q": q, "q0": q, "q1": q1, "v": v, "dq": 0.3 * v}
        made |= {"tau": rng.normal(size=robot.nv), "vdot": rng.normal(size=robot.nv)}
        yield [made[a].astype(dtype).astype(float) for a in FUNCTIONS[name]]


def expected_of(name, robot, arguments):
    fixed = {"frame": len(robot.bodies) - 1} if name == "jacobian" else {}
    return public(name)(robot, *arguments, **fixed)


@needs.compiler
@pytest.mark.parametrize("robot", [SERVICER, TREE], ids=["servicer", "tree"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_library(name, robot, tmp_path):
    """The bits of the graph's definition, and the reference to 1e-13."""
    graph = graph_of(name, robot)
    built = Library(graph, name, "float64", tmp_path, "-O0" if robot is TREE else "-O2")
    prepared = graph_passes.prepared(graph, "float64", fma=False)
    for arguments in states(name, robot, "float64"):
        (got,) = built(*arguments)
        (defined,) = interpret(prepared, arguments)
        assert np.array_equal(got, defined)
        # what solves with the inertia magnifies rounding by its condition
        rtol = 1e-11 if name == "forward_dynamics" and robot is TREE else 1e-13
        assert relative_error(got, expected_of(name, robot, arguments)) < rtol
    assert built.test() == (0, "good")


@needs.compiler
@pytest.mark.parametrize("robot", [SERVICER, TREE], ids=["servicer", "tree"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision(name, robot, tmp_path):
    graph = graph_of(name, robot)
    built = Library(graph, name, "float32", tmp_path, "-Wdouble-promotion")
    prepared = graph_passes.prepared(graph, "float32", fma=False)
    for arguments in states(name, robot, "float32"):
        (got,) = built(*arguments)
        (defined,) = interpret(prepared, arguments, "float32")
        assert defined.dtype == np.float32
        assert np.array_equal(got, defined)
        rtol = 1e-2 if name == "forward_dynamics" and robot is TREE else 1e-5
        assert relative_error(got, expected_of(name, robot, arguments)) < rtol
    assert built.test() == (0, "good")


@needs.compiler
def test_the_test_program_finds_a_wrong_number(tmp_path):
    graph = graph_of("mass_matrix", SERVICER)
    built = Library(graph, "f", "float64", tmp_path)
    source = (tmp_path / "f.c").read_text()
    wrong = re.sub(r"out\[5\] = (\w+);", r"out[5] = \1 + 1e-6;", source)
    assert wrong != source
    (tmp_path / "f.c").write_text(wrong)
    compile_c(*STRICT, tmp_path / "f.c", tmp_path / "f_test.c", "-lm", "-o", built.program)
    assert built.test() == (1, "WRONG")


#: Every operation, with arguments in its domain.
OPERATIONS = {
    "neg": 1, "add": 2, "sub": 2, "mul": 2, "rounded_mul": 2, "div": 2, "sqrt": 1, "abs": 1,
    "floor": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sin": 1, "cos": 1,
    "sinh": 1, "cosh": 1, "tanh": 1, "exp": 1, "log": 1, "pow": 2, "min": 2, "max": 2,
}  # fmt: skip


def graph_of_operations():
    graph = Graph((Signature("x", (2,)),))
    x = [graph.input(0, k) for k in range(2)]
    results = [graph.op(op, *x[:count]) for op, count in OPERATIONS.items()]
    for op in ("lt", "le", "eq", "ne"):
        results.append(graph.op("select", graph.op(op, *x), *x))
    one, two = graph.op("lt", *x), graph.op("le", x[0], graph.const(0.25))
    for condition in (graph.op("and", one, two), graph.op("or", one, two), graph.op("not", one)):
        results.append(graph.op("select", condition, x[1], graph.const(-1.5)))
    graph.outputs, graph.results = (Signature("out", (len(results),)),), [results]
    return graph


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation(dtype, tmp_path):
    graph = graph_of_operations()
    built = Library(graph, "operations", dtype, tmp_path)
    assert built.test() == (0, "good")
    for x in ([0.3, 0.7], [0.7, 0.3], [0.5, 0.5], [-0.6, 0.2], [np.nan, 0.2], [0.2, np.nan]):
        x = np.array(x, dtype)
        (got,), (expected,) = built(x), interpret(graph, [x.astype(float)])
        tolerance = 1e-14 if dtype == "float64" else 1e-6
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floor_is_exact(dtype, tmp_path):
    graph = Graph((Signature("x", ()),), (Signature("out", ()),))
    graph.results = [[graph.op("floor", graph.input(0, 0))]]
    built = Library(graph, "step", dtype, tmp_path)
    assert "floor" not in (tmp_path / "step.c").read_text()
    digits = np.finfo(dtype).nmant
    large = [2.0**k + d for k in range(digits - 3, digits + 3) for d in (-0.75, -0.5, 0, 0.5, 1)]
    for x in [0, 0.4, 0.5, 0.6, 0.9999999, 1, 1.5, 2.5, 1e30, np.inf, *large]:
        for signed in (x, -x):
            assert built(np.array(signed))[0] == np.floor(np.array(signed, dtype))
    assert np.isnan(built(np.array(np.nan))[0])


@needs.compiler
def test_names_that_are_no_identifiers(tmp_path):
    names = ["arm.mass", "arm_mass", "2x", "t1", "t", "double", "floor", "θ", "", "a*/ x\\", "q[0]"]
    graph = Graph(tuple(Signature(n, (2,)) for n in names))
    graph.outputs = (Signature("arm.mass", ()), Signature("out?/\n", (2,)))
    total = graph.input(0, 0)
    for k in range(len(names)):
        total = graph.op("add", total, graph.op("floor", graph.input(k, 1)))
    graph.results = [[total], [graph.input(3, 0), graph.const(2.0)]]
    for name in ("my robot.fd", "sqrt", "main", "8 legs", "void"):
        folder = tmp_path / c_text.identifier(name)
        built = Library(graph, name, "float64", folder)
        assert re.fullmatch(r"[A-Za-z]\w*", built.name, re.ASCII)
        given = [np.array([k + 0.5, k]) for k in range(len(names))]
        total, pair = built(*given)
        assert total == 0.5 + sum(range(len(names)))
        assert pair.tolist() == [3.5, 2.0]
        assert built.test() == (0, "good")
    assert c_text.arguments(graph, "f")[:2] == ["arm_mass", "arm_mass_"]


@needs.compiler
def test_scalars_empty_arrays_unused_arguments_and_several_outputs(tmp_path):
    def function(t, unused, empty, m):
        return t * m, t, np.zeros((0, 3)), np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324])

    inputs = [Signature("t", ()), Signature("unused", (3,)), Signature("empty", (0,))]
    graph = trace(function, [*inputs, Signature("m", (2, 3))])
    built = Library(graph, "several", "float64", tmp_path)
    m = np.arange(6.0).reshape(2, 3)
    product, t, empty, odd = built(np.array(0.1), np.zeros(3), np.zeros(0), m)
    assert np.array_equal(product, 0.1 * m)
    assert (float(t), t.shape, empty.shape) == (0.1, (), (0, 3))
    np.testing.assert_array_equal(odd, [np.inf, -np.inf, np.nan, 0.0, 5e-324])
    assert built.test() == (0, "good")
    header = (tmp_path / "several.h").read_text()
    assert "(2, 3)  element (i, j) is m[3*i + j]" in header
    assert "#define several_size_m 6" in header


@needs.compiler
def test_a_function_of_nothing(tmp_path):
    graph = Graph((), (Signature("out", (c.CANDIDATES,)),))
    graph.results = [[graph.const(k / 3) for k in range(c.CANDIDATES)]]
    built = Library(graph, "table", "float64", tmp_path)
    assert np.array_equal(built()[0], np.arange(c.CANDIDATES) / 3)
    assert built.test() == (0, "good")


@needs.compiler
def test_an_output_may_be_an_input(tmp_path):
    built = Library(graph_of("integrate", SERVICER), "integrate", "float64", tmp_path)
    q, dq = next(iter(states("integrate", SERVICER, "float64")))
    (expected,) = built(q, dq)
    place = q.copy()
    built.function(*(ctypes.c_void_p(a.ctypes.data) for a in (place, dq, place)))
    assert np.array_equal(place, expected)


@needs.compiler
@needs.cxx
def test_the_header_is_cpp_too(tmp_path):
    c.write_c(graph_of("integrate", SERVICER), "integrate", "float64", tmp_path)
    main = tmp_path / "main.cpp"
    main.write_text('#include "integrate.h"\n#include "integrate.h"\nint main() { return 0; }\n')
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")
    subprocess.run(["g++", *flags, str(main)], check=True)


@needs.compiler
def test_fast_math_is_refused(tmp_path):
    _, source, _ = c.write_c(graph_of("integrate", SERVICER), "integrate", "float64", tmp_path)
    command = [needs.CC, "-ffast-math", "-fsyntax-only", str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "-ffast-math" in run.stderr


def test_what_is_written_needs_nothing(tmp_path):
    """No memory but the stack, no state, no function but the square root and the absolute value."""
    for name in FUNCTIONS:
        _, source, _ = c.write_c(graph_of(name, TREE), name, "float64", tmp_path)
        text = source.read_text()
        body = text[text.index("{") :]
        assert set(re.findall(r"(\w+)\(", body)) <= {"sqrt", "fabs"}
        assert set(re.findall(r"^    (\w+)", body, re.M)) <= {"const", "out"}
        again = c.write_c(graph_of(name, TREE), name, "float64", tmp_path / "again")
        assert again[1].read_text() == text


def test_notes_stand_in_the_header(tmp_path):
    graph = graph_of("integrate", SERVICER)
    notes = {"q": ["0-7 pose of the base, m", "8 shoulder_yaw, rad */"]}
    header, _, _ = c.write_c(graph, "integrate", "float64", tmp_path, notes)
    assert "0-7 pose of the base, m\n" in header.read_text()
    assert "8 shoulder_yaw, rad *_\n" in header.read_text()
