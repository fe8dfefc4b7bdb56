"""Integration by programs: many steps of a state, against plain loops and the interpreter."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import needs
import remora as rm
from numeric import assert_close
from ptx_machine import launched
from remora.algebra.array_ops import asarray, concatenate, cos, less, select, sin, stack
from remora.algebra.vector import cross
from remora.codegen.gpu import ptx
from remora.codegen.integration.program import Program
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.codegen.integration.program_interpreter import interpret
from remora.codegen.integration.program_ptx import CudaProgram
from remora.codegen.integration.statements import (
    Block,
    Cell,
    For,
    ForEach,
    Repeat,
    Run,
    Sample,
    While,
)
from remora.codegen.ir.graph import Signature
from remora.codegen.llvm import thread_team
from remora.codegen.llvm.host import host
from remora.simulation.batch.batch_loads import BatchLoads
from remora.simulation.batch.lockstep_program import lockstep_program
from remora.simulation.engine.simulate import model_of
from remora.simulation.integrators import tableaus
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import Forces, RunEquations

#: a_s, b_{s-1}, c_s of the classical method of fourth order, in its form with little memory.
RK4 = [[0.0, 0.0, 0.0], [0.5, 1 / 6, 0.5], [0.5, 1 / 3, 0.5], [1.0, 1 / 3, 1.0]]
TIMES = {"start": [0.3, 1.1, 1.1, 1.4], "h": [0.1, 0.2, 0.05, 0.01], "count": [3, 0, 1, 4]}
DTYPES = ["float64", "float32"]


def rk4(rate, size, *parameters, rows=RK4):
    """Return the program of ẏ = rate(t, y, *parameters), with samples of y and of the time."""
    names = [s.name for s in parameters]

    def prepare(y, k, total, h, row):
        return y + (row[0] * h) * k, total + (row[1] * h) * k

    def evaluate(stage, start, h, i, row, *p):
        return rate(asarray(start[0] + i[0] * h[0] + row[2] * h[0]), stage, *p)

    def finish(y, k, total, h):
        return y + (total + h / 6.0 * k), 0.0 * total

    y = Cell("y", (size,))
    work = [Cell(name, (size,)) for name in ("k", "total", "stage")]
    step = [
        For(rows, [
            Run(Block(prepare, ("y", "k", "total", "h", "row"), ("stage", "total"))),
            Run(Block(evaluate, ("stage", "start", "h", "i", "row", *names), ("k",))),
        ]),
        Run(Block(finish, ("y", "k", "total", "h"), ("y", "total"))),
    ]  # fmt: skip
    body = [
        ForEach([
            Repeat("count", step, index="i"),
            Sample(Block(lambda y: y, ("y",), ("y",))),
            Sample(Block(lambda s, n, h: (s + n * h)[0], ("start", "count", "h"), ("t",))),
        ]),
    ]  # fmt: skip
    return Program([y, *parameters], [y, *work], body, ["start", "h", "count"])


def pendulum(t, y, p):
    """Driven, with its own frequency and drive in each run."""
    return stack([y[..., 1], p[..., 1] * cos(t) - p[..., 0] * sin(y[..., 0])])


def euler(t, w, inertia, torque):
    """Euler's equations of a rigid body in its principal axes."""
    return (torque - cross(w, inertia * w)) / inertia


def plain(rate, y, parameters, **tables):
    """An ordinary loop in NumPy."""
    samples = []
    for begin, h, count in zip(*tables.values(), strict=True):
        for i in range(count):
            t = np.asarray(begin + i * h)
            k1 = rate(t, y, *parameters)
            k2 = rate(t + h / 2, y + h / 2 * k1, *parameters)
            k3 = rate(t + h / 2, y + h / 2 * k2, *parameters)
            k4 = rate(t + h, y + h * k3, *parameters)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        samples.append(y)
    return np.stack(samples, axis=-2)


PENDULUM = rk4(pendulum, 2, Signature("p", (2,)))
BODY = rk4(euler, 3, Signature("inertia", (3,)), Signature("torque", (3,)))
CASES = {"pendulum": (PENDULUM, pendulum), "body": (BODY, euler)}


def arguments(program, batch, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2.0, (*batch, *s.shape)) for s in program.inputs]


def whole(program, dtype="float64"):
    return program.prepared(dtype, fma=host().fma)


@pytest.mark.parametrize("name", CASES)
class TestEquations:
    def test_as_an_ordinary_loop(self, name):
        program, rate = CASES[name]
        y, *p = arguments(program, (21,))
        got, times = ProgramKernel(program, name)(y, *p, tables=TIMES)
        assert_close(got, plain(rate, y, p, **TIMES), rtol=1e-13)
        assert_close(times[5], [0.6, 1.1, 1.15, 1.44], rtol=1e-15)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_interpreter_has_the_same_bits(self, name, dtype):
        program, _ = CASES[name]
        given = [a.astype(dtype) for a in arguments(program, (19,))]
        got = ProgramKernel(program, name, dtype)(*given, tables=TIMES)
        expected = interpret(whole(program, dtype), given, TIMES, dtype=dtype)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == dtype
            np.testing.assert_array_equal(a, b)

    def test_order_four(self, name):
        """Half the step, a sixteenth of the error."""
        program, _ = CASES[name]
        kernel, given = ProgramKernel(program, name), arguments(program, (8,))

        def end(count):
            tables = {"start": [0.0], "h": [2.0 / count], "count": [count]}
            return kernel(*given, tables=tables)[0]

        exact = end(4000)
        errors = [np.abs(end(count) - exact).max() for count in (20, 40, 80)]
        assert 12.0 < errors[0] / errors[1] < 22.0
        assert 12.0 < errors[1] / errors[2] < 22.0

    def test_single_precision(self, name):
        program, rate = CASES[name]
        given = [a.astype(np.float32) for a in arguments(program, (5,))]
        got, _ = ProgramKernel(program, name, "float32")(*given, tables=TIMES)
        y, *p = (a.astype(float) for a in given)
        assert_close(got, plain(rate, y, p, **TIMES), rtol=1e-6)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("registers", [100, 4])
    def test_ptx(self, name, dtype, registers, monkeypatch):
        """Also with so few registers that values must be put away."""
        monkeypatch.setitem(ptx.MEMORY, dtype, ptx.MEMORY[dtype]._replace(registers=registers))
        program, _ = CASES[name]
        given = [a.astype(dtype) for a in arguments(program, (7,))]
        got = launched(CudaProgram(program, name, dtype), given, tables=TIMES)
        expected = interpret(program.prepared(dtype), given, TIMES, dtype=dtype)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, rtol=1e-12 if dtype == "float64" else 1e-6)


LATE = 1e6  # s, where float32 is 0.06 s apart


def late(load, dtype):
    """A program with loads that depend on the time, and its arguments."""
    robot = rm.random_robot(3, bodies=2, kinds=("revolute",), base="fixed")
    q, v = rm.random_state(robot, 0, 5)
    nv, nb = robot.nv, len(robot.bodies)
    torque = {
        "with inputs": lambda t, q, v, rate: 4.0 * np.sin(rate * t) * np.ones(nv),
        "pulse": {robot.joints[1].name: rm.Pulse(LATE + 0.013, LATE + 0.02, 5.0)},
    }.get(load)
    wrenches = (lambda t, q, v: np.cos(7.0 * t) * np.ones((nb, 6))) if load == "wrenches" else None
    inputs = {"rate": np.linspace(3.0, 9.0, 5)} if load == "with inputs" else {}
    return motion(robot, q, v, torque, wrenches, inputs, 3.6e-15, dtype)


def motion(robot, q, v, torque, wrenches, inputs, nudge, dtype):
    """The program of a batch of this robot, and its arguments."""
    loads = BatchLoads(robot, ())
    loads.add("torque", torque)
    loads.add("wrenches", wrenches)
    model = model_of(robot, rm.Physics())
    data = tuple(Signature(name, x.shape[1:]) for name, x in inputs.items())
    equations = RunEquations(
        rm.System(robot), Forces(loads.torque, loads.wrenches, data), (), model.formulation,
        model.passive, {},
    )  # fmt: skip
    program = lockstep_program(RunBlocks(equations, tableaus.RK4, dtype, nudge), ())
    given = {**inputs, "q": q, "v": v}
    arrays = [given.get(s.name, np.zeros(s.shape)).astype(dtype) for s in program.inputs]
    return program, [np.broadcast_to(x, (5, *s.shape)).copy() if x.ndim == len(s.shape) else x
                     for x, s in zip(arrays, program.inputs, strict=True)]  # fmt: skip


def states(program, results):
    """The final q and v among the results of a program."""
    pairs = zip(results, program.outputs, strict=True)
    return [result for result, output in pairs if output.name in ("final q", "final v")]


LATE_TIMES = {"start": [LATE, LATE], "step": [0.01, 0.0065], "count": [0, 4], "keep": [0, 0]}


def is_wide(program):
    """Whether the loads are a block of their own, in double precision."""
    return any(cell.name == "load tau" for cell in program.cells)


@pytest.mark.parametrize("load", ["with inputs", "pulse", "wrenches"])
class TestLateTimes:
    """The time, and what depends on it, is of double precision in programs of single precision."""

    def test_on_the_processor(self, load):
        program, given = late(load, "float32")
        assert is_wide(program)
        got = ProgramKernel(program, "late", "float32")(*given, tables=LATE_TIMES)
        expected = interpret(whole(program, "float32"), given, LATE_TIMES, dtype="float32")
        double, same = late(load, "float64")
        assert not is_wide(double)
        exact = interpret(double, same, LATE_TIMES)
        parts = (states(program, x) for x in (got, expected, exact))
        for a, b, c in zip(*parts, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_array_equal(a, b)
            assert np.abs(a - c).max() < 1e-5

    @pytest.mark.parametrize("registers", [100, 4])
    def test_in_ptx(self, load, registers, monkeypatch):
        for dtype in DTYPES:
            own = ptx.MEMORY[dtype]._replace(registers=registers)
            monkeypatch.setitem(ptx.MEMORY, dtype, own)
        program, given = late(load, "float32")
        kernel = CudaProgram(program, "late", "float32")
        got = launched(kernel, given, LATE_TIMES)
        exact = interpret(program.prepared("float32"), given, LATE_TIMES, dtype="float32")
        for a, b in zip(states(program, got), states(program, exact), strict=True):
            assert_close(a, b, rtol=3e-6)
        # into the block and out of it; time and coefficients are exact anyway
        assert ("cvt.f64.f32" in kernel.ptx()) == (load == "with inputs")
        assert re.search(r"cvt.rn.f32.f64\s", kernel.ptx())

    def test_without_the_time_all_is_single(self, load):
        robot = rm.random_robot(3, bodies=2, kinds=("revolute",), base="fixed")
        q, v = rm.random_state(robot, 0, 5)
        program, _ = motion(robot, q, v, lambda t, q, v: -v, None, {}, 0.0, "float32")
        assert not is_wide(program)


class TestSameBits:
    """A run depends on nothing but its own arguments."""

    kernel = ProgramKernel(PENDULUM, "pendulum")

    def test_alone_in_batches_and_on_any_number_of_threads(self):
        n = 16 * host().lanes("float64") + 3
        y, p = arguments(PENDULUM, (n,))
        got, _ = self.kernel(y, p, tables=TIMES)
        for k in range(0, n, 7):
            assert np.array_equal(self.kernel(y[k], p[k], tables=TIMES)[0], got[k])
        for start, stop in ((0, 1), (3, 12), (n - 9, n), (1, n)):
            part = self.kernel(y[start:stop], p[start:stop], tables=TIMES)[0]
            assert np.array_equal(part, got[start:stop])
        for threads in (2, 3, 50, 0):
            assert np.array_equal(self.kernel(y, p, tables=TIMES, threads=threads)[0], got)
            one = self.kernel(y, p[0], tables=TIMES, threads=threads)[0]
            assert np.array_equal(one[4], self.kernel(y[4], p[0], tables=TIMES)[0])
        order = np.random.default_rng(0).permutation(n)
        assert np.array_equal(self.kernel(y[order], p[order], tables=TIMES)[0], got[order])

    def test_cut_anywhere_it_goes_on_where_it_was(self):
        """Samples on the way change nothing."""
        y, p = arguments(PENDULUM, (5,))
        h = 0.125  # so that all times are exact
        many = {"start": h * np.arange(9), "h": [h] * 9, "count": [1] * 9}
        often = self.kernel(y, p, tables=many)[0]
        once = self.kernel(y, p, tables={"start": [0.0], "h": [h], "count": [9]})[0]
        assert np.array_equal(often[:, -1], once[:, 0])

    def test_any_batch_shape(self):
        y, p = arguments(PENDULUM, (6,))
        got, times = self.kernel(y, p, tables=TIMES)
        shaped, _ = self.kernel(y.reshape(2, 3, 2), p.reshape(2, 3, 2), tables=TIMES)
        assert np.array_equal(shaped.reshape(6, 4, 2), got)
        grid, when = self.kernel(y[:4, None], p[None, :3], tables=TIMES)
        assert grid.shape == (4, 3, 4, 2)
        assert when.shape == (4, 3, 4)
        assert np.array_equal(grid[2, 1], self.kernel(y[2], p[1], tables=TIMES)[0])
        assert self.kernel(y[:0], p[:0], tables=TIMES)[0].shape == (0, 4, 2)
        for a, b in zip(interpret(PENDULUM, [y[0], p[0]], TIMES), (got, times), strict=True):
            assert_close(a, b[0])
        none = {"start": [], "h": [], "count": []}
        assert self.kernel(y, p, tables=none)[0].shape == (6, 0, 2)
        assert interpret(PENDULUM, [y, p], none)[0].shape == (6, 0, 2)
        assert np.array_equal(self.kernel(y[::-1], p=p[::-1], tables=TIMES)[0], got[::-1])

    def test_chunks_are_whole_vectors(self, monkeypatch):
        shared, real = [], thread_team.run_shared
        monkeypatch.setattr(
            thread_team, "run_shared", lambda *a: (shared.append(a[2:]), real(*a))[1]
        )
        lanes = host().lanes("float64")
        y, p = arguments(PENDULUM, (5 * lanes + 1,))
        self.kernel(y, p, tables=TIMES, threads=3)
        self.kernel(y, p, tables=TIMES, threads=50)
        assert [(n, threads, whole) for n, threads, _, whole in shared] == [
            (5 * lanes + 1, 3, lanes),
            (5 * lanes + 1, 6, lanes),
        ]
        shared.clear()
        self.kernel(y, p, tables=TIMES)
        assert not shared

    def test_out(self):
        y, p = arguments(PENDULUM, (6,))
        expected = self.kernel(y, p, tables=TIMES)
        out = (np.empty((6, 4, 2)), np.empty((6, 4)))
        got = self.kernel(y, p, tables=TIMES, out=out)
        assert got[0] is out[0]
        np.testing.assert_array_equal(out[0], expected[0])
        with pytest.raises(rm.RemoraError, match="out must be"):
            self.kernel(y, p, tables=TIMES, out=out[::-1])


def swapping():
    """Each block writes what it reads, the one over the other."""
    x, y, z = (Signature(name, (2,)) for name in "xyz")
    prepare = Block(
        lambda x, y, z, row: (y, x + row[0] * z, -z[::-1]), ("x", "y", "z", "row"), ("x", "y", "z")
    )
    step = [
        For([[1.0], [2.0], [4.0]], [
            Run(prepare),
            Run(Block(lambda x, y: x * y, ("x", "y"), ("z",))),
        ]),
        Run(Block(lambda x, y: (-y[::-1], x), ("x", "y"), ("x", "y"))),
    ]  # fmt: skip
    sample = Block(lambda x, y, z: concatenate([x, y, z]), ("x", "y", "z"), ("out",))
    return Program(
        [x, y], [x, y, z],
        [
            Run(Block(lambda x: x, ("x",), ("z",))),
            ForEach([Repeat("count", step), Sample(sample)]),
        ],
        ["count"],
    )  # fmt: skip


@pytest.mark.parametrize("registers", [100, 3])
def test_a_block_reads_before_it_writes(registers, monkeypatch):
    program, times = swapping(), {"count": [1, 2]}
    given = [a - 1.2 for a in arguments(program, (9,))]
    (expected,) = interpret(program, given, times)
    (exact,) = interpret(whole(program), given, times)
    assert_close(exact, expected)
    x, y, z = given[0], given[1], given[0]
    for row in (1.0, 2.0, 4.0):
        x, y = y, x + row * z
        z = x * y
    assert_close(expected[:, 0], np.concatenate([-y[:, ::-1], x, z], axis=-1))
    np.testing.assert_array_equal(ProgramKernel(program, "swap")(*given, tables=times), exact)
    monkeypatch.setitem(ptx.MEMORY, "float64", ptx.MEMORY["float64"]._replace(registers=registers))
    for columns in (False, True):
        got = launched(CudaProgram(program, "swap"), given, times, columns=columns)
        assert_close(got[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_are_divided_as_each_run_demands(dtype):
    """In each step a run takes passes of its own length until the step is covered."""
    x, p, left, count = (Cell(name, (1,)) for name in ("x", "p", "left", "passes"))

    def one_pass(x, p, left, count, h):
        length = select(less(left, p), left, p)
        rest = select(less(p, left), left - p, 0.0)
        return x + length * h, rest, count + 1.0

    step = [
        Run(Block(lambda: np.ones(1), (), ("left",))),
        While("left", [
            Run(Block(one_pass, ("x", "p", "left", "passes", "h"), ("x", "left", "passes"))),
        ]),
    ]  # fmt: skip
    sample = Sample(Block(lambda x, n: (x, n), ("x", "passes"), ("x", "passes")))
    body = [ForEach([Repeat("count", step), sample])]
    program = Program([x, p], [x, left, count], body, ["h", "count"])
    n = 2 * host().lanes(dtype) + 3
    given = [np.arange(n, dtype=dtype)[:, None], (0.5 ** (np.arange(n, dtype=dtype) % 6))[:, None]]
    times = {"h": [0.25, 0.5], "count": [4, 3]}
    expected = interpret(program.prepared(dtype, host().fma), given, times, dtype=dtype)
    np.testing.assert_array_equal(expected[1][:, 0, 0], 4 * 2.0 ** (np.arange(n) % 6))
    np.testing.assert_allclose(expected[0][:, 1, 0], np.arange(n) + 2.5, rtol=1e-6)
    made = ProgramKernel(program, "divided", dtype)(*given, tables=times)
    threads = launched(CudaProgram(program, "divided", dtype), given, times, block=1)
    for a, b, c in zip(made, threads, expected, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


def test_cells_that_look_like_arguments():
    """Names are the program's own: a cell may be called a0 or o0, an output like an input."""
    a, o, row = Cell("a0", ()), Cell("o0", ()), Cell("row0", ())
    program = Program(
        [row], [a, o],
        [
            Run(Block(lambda c: (c, c + 1.0), ("row0",), ("a0", "o0"))),
            ForEach([
                Repeat("n", [
                    Run(Block(lambda a: a + 1.0, ("a0",), ("a0",))),
                    Run(Block(lambda a: 2.0 * a, ("a0",), ("o0",))),
                    Run(Block(lambda o: o, ("o0",), ("a0",))),
                ]),
                Sample(Block(lambda a, o: (a, a + o), ("a0", "o0"), ("row0", "a0"))),
            ]),
        ],
        ["n"],
    )  # fmt: skip
    for got in (ProgramKernel(program, "f")(np.ones(3), tables={"n": [2]}),
                launched(CudaProgram(program, "f"), [np.ones(3)], {"n": [2]})):  # fmt: skip
        np.testing.assert_array_equal(got[0], [[10.0]] * 3)
        np.testing.assert_array_equal(got[1], [[20.0]] * 3)


def test_arrays_without_numbers():
    """No arguments, no coefficients, an empty cell and an empty output."""
    x, none = Cell("x", (1,)), Cell("none", (0,))
    stage = [
        Run(Block(lambda x: 2.0 * x, ("x",), ("x",))),
        Run(Block(lambda x: np.zeros(0), ("x",), ("none",))),
    ]
    step = [For(np.zeros((3, 0)), stage), Run(Block(lambda x: x + 1.0, ("x",), ("x",)))]
    program = Program(
        [], [x, none],
        [
            Run(Block(lambda: (np.ones(1), np.zeros(0)), (), ("x", "none"))),
            ForEach([
                Repeat("n", step),
                Sample(Block(lambda x, none: (x, none), ("x", "none"), ("x", "none"))),
            ]),
        ],
        ["n"],
    )  # fmt: skip
    tables = {"n": [1, 1]}
    for got in (ProgramKernel(program, "f")(tables=tables), interpret(program, [], tables)):
        np.testing.assert_array_equal(got[0], [[9.0], [73.0]])
        assert got[1].shape == (2, 0)
    assert ".entry f(" in CudaProgram(program, "f").ptx()


def test_the_code_does_not_grow_with_the_stages():
    many = rk4(pendulum, 2, Signature("p", (2,)), rows=np.vstack([RK4, RK4]))
    once, again = (CudaProgram(m, "pendulum").ptx().splitlines() for m in (PENDULUM, many))
    assert len(once) == len(again)


def test_forward_dynamics_of_a_robot():
    """A block of 1,700 operations, on both machines."""
    robot = rm.load("servicer")
    program = rk4(
        lambda t, v, q, tau: rm.forward_dynamics(robot, q, v, tau),
        13, Signature("q", (15,)), Signature("tau", (13,)),
    )  # fmt: skip
    q, v = rm.random_state(robot, 0, (3,))
    tau = np.random.default_rng(1).normal(size=v.shape)
    times = {"start": [0.0], "h": [0.01], "count": [2]}

    def rate(t, v, q, tau):
        return rm.forward_dynamics(robot, q, v, tau)

    expected = plain(rate, v, (q, tau), **times)
    got = ProgramKernel(program, "servicer")(v, q, tau, tables=times)[0]
    assert_close(got, expected, rtol=1e-12)
    assert_close(launched(CudaProgram(program, "servicer"), [v, q, tau], times)[0], expected)


class TestRefused:
    def test_arguments(self):
        kernel, (y, p) = ProgramKernel(PENDULUM, "pendulum"), arguments(PENDULUM, (3,))
        for bad, reason in (
            ((y[:, :1], p), "y of kernel pendulum must have shape"),
            ((y,), "p missing"),
            ((y, p[:2]), "do not broadcast"),
            ((y + 0j, p), "y of kernel pendulum is complex128"),
        ):
            with pytest.raises(rm.RemoraError, match=reason):
                kernel(*bad, tables=TIMES)
        with pytest.raises(rm.RemoraError, match="threads must be"):
            kernel(y, p, tables=TIMES, threads=-1)
        with pytest.raises(rm.RemoraError, match="named 'z'"):
            kernel(y, z=p, tables=TIMES)
        with pytest.raises(rm.RemoraError, match="float64, float32"):
            ProgramKernel(PENDULUM, "pendulum", "float16")
        with pytest.raises(rm.RemoraError, match="y of kernel pendulum is float64"):
            ProgramKernel(PENDULUM, "pendulum", "float32")(y, p, tables=TIMES)


CACHED = """
import numpy as np
from test_program_integration import PENDULUM, TIMES, arguments
from remora.codegen.integration.program_cpu import ProgramKernel

made = []
kernel = ProgramKernel(lambda: made.append(1) or PENDULUM, "pendulum", key="mine")
print(len(made), kernel(*arguments(PENDULUM, (3,)), tables=TIMES)[0].tobytes().hex())
"""


def test_the_second_process_does_not_trace(tmp_path):
    tmp_path.chmod(0o700)
    here = os.path.dirname(__file__)
    paths = os.pathsep.join([here, os.path.dirname(here), *filter(None, sys.path)])
    env = {**os.environ, "REMORA_CACHE": str(tmp_path), "PYTHONPATH": paths}
    found = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CACHED)],
            env=env, capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert [f[0] for f in found] == ["1", "0"]
    assert found[0][1] == found[1][1]


def test_another_program_is_another_entry():
    """Also where only a number of the table differs."""
    y, p = arguments(PENDULUM, (2,))
    other = rk4(pendulum, 2, Signature("p", (2,)), rows=0.5 * np.array(RK4))
    got = ProgramKernel(other, "pendulum")(y, p, tables=TIMES)[0]
    assert not np.array_equal(got, ProgramKernel(PENDULUM, "pendulum")(y, p, tables=TIMES)[0])
    np.testing.assert_array_equal(got, interpret(whole(other), [y, p], TIMES)[0])


def test_what_they_show(tmp_path):
    kernel = ProgramKernel(PENDULUM, "pendulum")
    assert "pendulum(y (..., 2), p (..., 2)) -> y (..., 2), t (...), float64" in repr(kernel)
    other = CudaProgram(lambda: PENDULUM, "pendulum 2", "float32")
    assert "pendulum 2(y (..., 2), p (..., 2)) -> y (..., 2), t (...), float32" in repr(other)
    assert ".entry pendulum_2(" in other.save_ptx(tmp_path / "program.ptx").read_text()


@needs.no_gpu
def test_without_a_gpu():
    y, p = arguments(PENDULUM, (2,))
    with pytest.raises(rm.RemoraError, match="CuPy"):
        CudaProgram(PENDULUM, "pendulum")(y, p, tables=TIMES)


# On a GPU ---------------------------------------------------------------------------------------


@needs.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_gpu_against_cpu(name, dtype):
    program, _ = CASES[name]
    given = [a.astype(dtype) for a in arguments(program, (300,))]
    expected = ProgramKernel(program, name, dtype)(*given, tables=TIMES)
    kernel = CudaProgram(program, name, dtype)
    device = [needs.CUPY.asarray(a) for a in given]
    got = kernel(*device, tables=TIMES)
    for a, b in zip(got, expected, strict=True):
        assert_close(a.get(), b, rtol=1e-12 if dtype == "float64" else 1e-5)
    others = [
        [needs.CUPY.asfortranarray(a) for a in device],
        [a.reshape(3, 100, -1) for a in device],
        [needs.CUPY.repeat(a, 2, axis=0)[::2] for a in device],
    ]
    for arrays in others:
        again = kernel(*arrays, tables=TIMES)
        for a, b in zip(again, got, strict=True):
            np.testing.assert_array_equal(a.get().reshape(b.shape), b.get())
    one = kernel(device[0], *(a[0] for a in device[1:]), tables=TIMES)[0]
    alone = kernel(device[0][7], *(a[0] for a in device[1:]), tables=TIMES)[0]
    np.testing.assert_array_equal(one[7].get(), alone.get())
    none = kernel(*(a[:0] for a in device), tables=TIMES)[0]
    assert none.shape == (0, 4, program.outputs[0].size)
    with pytest.raises(rm.RemoraError, match="device memory"):
        kernel(*given, tables=TIMES)


@needs.gpu
def test_gpu_arrays_of_other_libraries():
    torch = pytest.importorskip("torch")
    given = arguments(PENDULUM, (50,))
    kernel = CudaProgram(PENDULUM, "pendulum")
    got, _ = kernel(*(torch.as_tensor(a, device="cuda") for a in given), tables=TIMES)
    assert isinstance(got, torch.Tensor)
    expected, _ = kernel(*map(needs.CUPY.asarray, given), tables=TIMES)
    np.testing.assert_array_equal(got.cpu().numpy(), expected.get())
