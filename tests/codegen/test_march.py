"""Marches: a state carried through many steps, against plain loops and the interpreter."""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from ptx_machine import launched
from remora.algebra.array_ops import asarray, concatenate, cos, less, select, sin, stack
from remora.algebra.vector import cross
from remora.codegen.gpu import cuda_kernel, ptx
from remora.codegen.integration.step_loop import Block, StepLoop
from remora.codegen.integration.step_loop_cpu import StepLoopKernel
from remora.codegen.integration.step_loop_ptx import CudaStepLoop
from remora.codegen.ir.graph import Graph, Signature
from remora.codegen.llvm import thread_team
from remora.codegen.llvm.host import host
from remora.simulation.batch.batch_inputs import batch_inputs
from remora.simulation.batch.batch_loop import Forces, step_loop
from remora.simulation.engine.simulate import model_of
from remora.simulation.integrators import tableaus

#: a_s, b_{s-1}, c_s of the classical method of fourth order, in its form with little memory.
RK4 = [[0.0, 0.0, 0.0], [0.5, 1 / 6, 0.5], [0.5, 1 / 3, 0.5], [1.0, 1 / 3, 1.0]]
TIMES = {"starts": [0.3, 1.1, 1.1, 1.4], "steps": [0.1, 0.2, 0.05, 0.01], "counts": [3, 0, 1, 4]}
DTYPES = ["float64", "float32"]


def gpu():
    try:
        return cuda_kernel.cupy_with_device()
    except rm.RemoraError:
        return None


CUPY = gpu()
on_gpu = pytest.mark.skipif(CUPY is None, reason="needs CuPy and a GPU")


def rk4(rate, size, *parameters, **changes):
    """Return the march of ẏ = rate(t, y, *parameters), with samples of y and of the time."""
    names = [s.name for s in parameters]

    def start(y, *p):
        zero = np.zeros(size)
        return (y, zero, zero, zero, *p)

    def prepare(y, k, total, clock, row):
        h = clock[1]
        return y + (row[0] * h) * k, total + (row[1] * h) * k

    def evaluate(stage, clock, row, *p):
        return rate(asarray(clock[0] + row[2] * clock[1]), stage, *p)

    def finish(y, k, total, clock):
        return y + (total + clock[1] / 6.0 * k), 0.0 * total

    y = Signature("y", (size,))
    work = [Signature(name, (size,)) for name in ("k", "total", "stage")]
    blocks = {
        "start": Block(start, ("y", *names), ("y", "k", "total", "stage", *names)),
        "prepare": Block(prepare, ("y", "k", "total", "clock", "row"), ("stage", "total")),
        "evaluate": Block(evaluate, ("stage", "clock", "row", *names), ("k",)),
        "finish": Block(finish, ("y", "k", "total", "clock"), ("y", "total")),
        "sample": Block(lambda y, clock: (y, clock[0]), ("y", "clock"), ("y", "t")),
    }
    return StepLoop.traced([y, *parameters], [y, *work, *parameters], RK4, **(blocks | changes))


def pendulum(t, y, p):
    """Driven, with its own frequency and drive in each run."""
    return stack([y[..., 1], p[..., 1] * cos(t) - p[..., 0] * sin(y[..., 0])])


def euler(t, w, inertia, torque):
    """Euler's equations of a rigid body in its principal axes."""
    return (torque - cross(w, inertia * w)) / inertia


def plain(rate, y, parameters, starts, steps, counts):
    """An ordinary loop in NumPy."""
    samples = []
    for begin, h, count in zip(starts, steps, counts, strict=True):
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


def arguments(march, batch, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 2.0, (*batch, *s.shape)) for s in march.inputs]


def whole(march, dtype="float64"):
    return march.prepared(dtype, fma=host().fma)


@pytest.mark.parametrize("name", CASES)
class TestEquations:
    def test_as_an_ordinary_loop(self, name):
        march, rate = CASES[name]
        y, *p = arguments(march, (21,))
        got, times = StepLoopKernel(march, name)(y, *p, **TIMES)
        assert_close(got, plain(rate, y, p, **TIMES), rtol=1e-13)
        assert_close(times[5], [0.6, 1.1, 1.15, 1.44], rtol=1e-15)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_interpreter_has_the_same_bits(self, name, dtype):
        march, _ = CASES[name]
        given = [a.astype(dtype) for a in arguments(march, (19,))]
        got = StepLoopKernel(march, name, dtype)(*given, **TIMES)
        expected = whole(march, dtype).interpret(given, **TIMES, dtype=dtype)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == dtype
            np.testing.assert_array_equal(a, b)

    def test_order_four(self, name):
        """Half the step, a sixteenth of the error."""
        march, _ = CASES[name]
        kernel, given = StepLoopKernel(march, name), arguments(march, (8,))

        def end(count):
            return kernel(*given, starts=[0.0], steps=[2.0 / count], counts=[count])[0]

        exact = end(4000)
        errors = [np.abs(end(count) - exact).max() for count in (20, 40, 80)]
        assert 12.0 < errors[0] / errors[1] < 22.0
        assert 12.0 < errors[1] / errors[2] < 22.0

    def test_single_precision(self, name):
        march, rate = CASES[name]
        given = [a.astype(np.float32) for a in arguments(march, (5,))]
        got, _ = StepLoopKernel(march, name, "float32")(*given, **TIMES)
        y, *p = (a.astype(float) for a in given)
        assert_close(got, plain(rate, y, p, **TIMES), rtol=1e-6)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("registers", [100, 4])
    def test_ptx(self, name, dtype, registers, monkeypatch):
        """Also with so few registers that values must be put away."""
        monkeypatch.setitem(ptx.MEMORY, dtype, ptx.MEMORY[dtype]._replace(registers=registers))
        march, _ = CASES[name]
        given = [a.astype(dtype) for a in arguments(march, (7,))]
        got = launched(CudaStepLoop(march, name, dtype), given, **TIMES)
        expected = march.prepared(dtype).interpret(given, **TIMES, dtype=dtype)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, rtol=1e-12 if dtype == "float64" else 1e-6)


LATE = 1e6  # s, where float32 is 0.06 s apart


def late(load, dtype):
    """A march with loads that depend on the time, and its arguments."""
    robot = rm.random_robot(3, bodies=2, kinds=("revolute",), base="fixed")
    q, v = rm.random_state(robot, 0, 5)
    nv, nb = robot.nv, len(robot.bodies)
    torque = {
        "with inputs": lambda t, q, v, rate: 4.0 * np.sin(rate * t) * np.ones(nv),
        "pulse": {robot.joints[1].name: rm.Pulse(LATE + 0.013, LATE + 0.02, 5.0)},
    }.get(load)
    wrenches = (lambda t, q, v: np.cos(7.0 * t) * np.ones((nb, 6))) if load == "wrenches" else None
    inputs = {"rate": np.linspace(3.0, 9.0, 5)} if load == "with inputs" else {}
    own = batch_inputs(robot, q, v, torque, wrenches, inputs, {}, dtype)
    forces = Forces(own.torque, own.wrenches, own.inputs)
    model = model_of(robot, None, 1e-3, None, saturate=False)
    settings = model.formulation, model.passive, 3.6e-15, dtype
    return step_loop(robot, tableaus.RK4, forces, (), *settings), own.arrays


LATE_TIMES = {"starts": [LATE, LATE], "steps": [0.01, 0.0065], "counts": [0, 4]}


@pytest.mark.parametrize("load", ["with inputs", "pulse", "wrenches"])
class TestLateTimes:
    """The time, and what depends on it, is of double precision in marches of single precision."""

    def test_on_the_processor(self, load):
        march, given = late(load, "float32")
        assert march.timed is not None
        got = StepLoopKernel(march, "late", "float32")(*given, **LATE_TIMES)
        expected = whole(march, "float32").interpret(given, **LATE_TIMES, dtype="float32")
        double, same = late(load, "float64")
        assert double.timed is None
        exact = double.interpret(same, **LATE_TIMES)
        for a, b, c in zip(got, expected, exact, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_array_equal(a, b)
            assert np.abs(a - c).max() < 1e-5

    @pytest.mark.parametrize("registers", [100, 4])
    def test_in_ptx(self, load, registers, monkeypatch):
        for dtype in DTYPES:
            own = ptx.MEMORY[dtype]._replace(registers=registers)
            monkeypatch.setitem(ptx.MEMORY, dtype, own)
        march, given = late(load, "float32")
        kernel = CudaStepLoop(march, "late", "float32")
        got = launched(kernel, given, **LATE_TIMES)
        exact = march.prepared("float32").interpret(given, **LATE_TIMES, dtype="float32")
        for a, b in zip(got, exact, strict=True):
            assert_close(a, b, rtol=3e-6)
        assert "cvt.f64.f32" in kernel.ptx()  # into the block and out of it
        assert re.search(r"cvt.rn.f32.f64\s", kernel.ptx())

    def test_without_the_time_all_is_single(self, load):
        robot = rm.random_robot(3, bodies=2, kinds=("revolute",), base="fixed")
        q, v = rm.random_state(robot, 0, 5)
        own = batch_inputs(robot, q, v, lambda t, q, v: -v, None, {}, {}, "float32")
        model = model_of(robot, None, 1e-3, None, saturate=False)
        forces = Forces(own.torque, own.wrenches, own.inputs)
        march = step_loop(
            robot, tableaus.RK4, forces, (), model.formulation, model.passive, 0.0, "float32"
        )
        assert march.timed is None


class TestSameBits:
    """A run depends on nothing but its own arguments."""

    kernel = StepLoopKernel(PENDULUM, "pendulum")

    def test_alone_in_batches_and_on_any_number_of_threads(self):
        n = 16 * host().lanes("float64") + 3
        y, p = arguments(PENDULUM, (n,))
        got, _ = self.kernel(y, p, **TIMES)
        for k in range(0, n, 7):
            assert np.array_equal(self.kernel(y[k], p[k], **TIMES)[0], got[k])
        for start, stop in ((0, 1), (3, 12), (n - 9, n), (1, n)):
            part = self.kernel(y[start:stop], p[start:stop], **TIMES)[0]
            assert np.array_equal(part, got[start:stop])
        for threads in (2, 3, 50, 0):
            assert np.array_equal(self.kernel(y, p, **TIMES, threads=threads)[0], got)
            one = self.kernel(y, p[0], **TIMES, threads=threads)[0]
            assert np.array_equal(one[4], self.kernel(y[4], p[0], **TIMES)[0])
        order = np.random.default_rng(0).permutation(n)
        assert np.array_equal(self.kernel(y[order], p[order], **TIMES)[0], got[order])

    def test_cut_anywhere_it_goes_on_where_it_was(self):
        """Samples on the way change nothing."""
        y, p = arguments(PENDULUM, (5,))
        h = 0.125  # so that all times are exact
        often = self.kernel(y, p, starts=h * np.arange(9), steps=[h] * 9, counts=[1] * 9)[0]
        once = self.kernel(y, p, starts=[0.0], steps=[h], counts=[9])[0]
        assert np.array_equal(often[:, -1], once[:, 0])

    def test_any_batch_shape(self):
        y, p = arguments(PENDULUM, (6,))
        got, times = self.kernel(y, p, **TIMES)
        shaped, _ = self.kernel(y.reshape(2, 3, 2), p.reshape(2, 3, 2), **TIMES)
        assert np.array_equal(shaped.reshape(6, 4, 2), got)
        grid, when = self.kernel(y[:4, None], p[None, :3], **TIMES)
        assert grid.shape == (4, 3, 4, 2)
        assert when.shape == (4, 3, 4)
        assert np.array_equal(grid[2, 1], self.kernel(y[2], p[1], **TIMES)[0])
        assert self.kernel(y[:0], p[:0], **TIMES)[0].shape == (0, 4, 2)
        for a, b in zip(PENDULUM.interpret([y[0], p[0]], **TIMES), (got, times), strict=True):
            assert_close(a, b[0])
        none = {"starts": [], "steps": [], "counts": []}
        assert self.kernel(y, p, **none)[0].shape == (6, 0, 2)
        assert PENDULUM.interpret([y, p], **none)[0].shape == (6, 0, 2)
        assert np.array_equal(self.kernel(y[::-1], p=p[::-1], **TIMES)[0], got[::-1])

    def test_chunks_are_whole_vectors(self, monkeypatch):
        shared, real = [], thread_team.run_shared
        monkeypatch.setattr(
            thread_team, "run_shared", lambda *a: (shared.append(a[2:]), real(*a))[1]
        )
        lanes = host().lanes("float64")
        y, p = arguments(PENDULUM, (5 * lanes + 1,))
        self.kernel(y, p, **TIMES, threads=3)
        self.kernel(y, p, **TIMES, threads=50)
        assert [(n, threads, whole) for n, threads, _, whole in shared] == [
            (5 * lanes + 1, 3, lanes),
            (5 * lanes + 1, 6, lanes),
        ]
        shared.clear()
        self.kernel(y, p, **TIMES)
        assert not shared

    def test_out(self):
        y, p = arguments(PENDULUM, (6,))
        expected = self.kernel(y, p, **TIMES)
        out = (np.empty((6, 4, 2)), np.empty((6, 4)))
        got = self.kernel(y, p, **TIMES, out=out)
        assert got[0] is out[0]
        np.testing.assert_array_equal(out[0], expected[0])
        with pytest.raises(rm.RemoraError, match="out must be"):
            self.kernel(y, p, **TIMES, out=out[::-1])


def swapping():
    """Each block writes what it reads, the one over the other."""
    x, y, z = (Signature(name, (2,)) for name in "xyz")
    return StepLoop.traced(
        [x, y],
        [x, y, z],
        [[1.0], [2.0], [4.0]],
        start=Block(lambda x, y: (x, y, x), ("x", "y"), ("x", "y", "z")),
        prepare=Block(
            lambda x, y, z, row: (y, x + row[0] * z, -z[::-1]), ("x", "y", "z", "row"), "xyz"
        ),
        evaluate=Block(lambda x, y: x * y, ("x", "y"), ("z",)),
        finish=Block(lambda x, y: (-y[::-1], x), ("x", "y"), ("x", "y")),
        sample=Block(lambda x, y, z: concatenate([x, y, z]), ("x", "y", "z"), ("out",)),
    )


@pytest.mark.parametrize("registers", [100, 3])
def test_a_block_reads_before_it_writes(registers, monkeypatch):
    march, times = swapping(), {"starts": [0.0, 0.0], "steps": [1.0, 1.0], "counts": [1, 2]}
    given = [a - 1.2 for a in arguments(march, (9,))]
    (expected,) = march.interpret(given, **times)
    (exact,) = whole(march).interpret(given, **times)
    assert_close(exact, expected)
    x, y, z = given[0], given[1], given[0]
    for row in (1.0, 2.0, 4.0):
        x, y = y, x + row * z
        z = x * y
    assert_close(expected[:, 0], np.concatenate([-y[:, ::-1], x, z], axis=-1))
    np.testing.assert_array_equal(StepLoopKernel(march, "swap")(*given, **times), exact)
    monkeypatch.setitem(ptx.MEMORY, "float64", ptx.MEMORY["float64"]._replace(registers=registers))
    for columns in (False, True):
        got = launched(CudaStepLoop(march, "swap"), given, **times, columns=columns)
        assert_close(got[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_are_repeated_as_each_run_demands(dtype):
    """In each step a run takes passes of its own length until the step is covered."""
    x, p, left = (Signature(name, (1,)) for name in ("x", "p", "left"))
    count = Signature("count", (1,))

    def finish(x, p, left, count, clock):
        length = select(less(left, p), left, p)
        rest = select(less(p, left), left - p, 0.0)
        return x + length * clock[1:], rest, count + select(less(0.0, left), 1.0, 0.0)

    march = StepLoop.traced(
        [x, p],
        [x, p, left, count, Signature("unused", (1,))],
        [[0.0]],
        start=Block(
            lambda x, p: (x, p, 0.0 * p, 0.0 * p, x),
            ("x", "p"),
            ("x", "p", "left", "count", "unused"),
        ),
        prepare=Block(lambda x: x, ("x",), ("x",)),
        evaluate=Block(lambda x: 2.0 * x, ("x",), ("unused",)),
        finish=Block(finish, ("x", "p", "left", "count", "clock"), ("x", "left", "count")),
        sample=Block(lambda x, count: (x, count), ("x", "count"), ("x", "count")),
        again="left",
    )
    n = 2 * host().lanes(dtype) + 3
    given = [np.arange(n, dtype=dtype)[:, None], (0.5 ** (np.arange(n, dtype=dtype) % 6))[:, None]]
    times = {"starts": [0.0, 0.4], "steps": [0.25, 0.5], "counts": [4, 3]}
    expected = march.prepared(dtype, host().fma).interpret(given, **times, dtype=dtype)
    np.testing.assert_array_equal(expected[1][:, 0, 0], 4 * 2.0 ** (np.arange(n) % 6))
    np.testing.assert_allclose(expected[0][:, 1, 0], np.arange(n) + 2.5, rtol=1e-6)
    for a, b in zip(StepLoopKernel(march, "again", dtype)(*given, **times), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(
        launched(CudaStepLoop(march, "again", dtype), given, **times, block=1),
        expected,
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(rm.RemoraError, match=r"must have shape \(1,\)"):
        replace(march, again="nothing")


def test_cells_that_look_like_arguments():
    """Names are the march's own: an argument may be called clock, a cell a0 or o0."""
    a, o, clock = Signature("a0", ()), Signature("o0", ()), Signature("clock", ())
    march = StepLoop.traced(
        [clock],
        [a, o],
        [[0.0]],
        start=Block(lambda c: (c, c + 1.0), ("clock",), ("a0", "o0")),
        prepare=Block(lambda a: a + 1.0, ("a0",), ("a0",)),
        evaluate=Block(lambda a: 2.0 * a, ("a0",), ("o0",)),
        finish=Block(lambda o: o, ("o0",), ("a0",)),
        sample=Block(lambda a, o: (a, a + o), ("a0", "o0"), ("row", "a0")),
    )
    times = {"starts": [0.0], "steps": [0.1], "counts": [2]}
    for got in (StepLoopKernel(march, "f")(np.ones(3), **times),
                launched(CudaStepLoop(march, "f"), [np.ones(3)], **times)):  # fmt: skip
        np.testing.assert_array_equal(got[0], [[10.0]] * 3)
        np.testing.assert_array_equal(got[1], [[20.0]] * 3)


def test_arrays_without_numbers():
    """No arguments, no coefficients, an empty cell and an empty output."""
    x, none = Signature("x", (1,)), Signature("none", (0,))
    march = StepLoop.traced(
        [],
        [x, none],
        np.zeros((3, 0)),
        start=Block(lambda: (np.ones(1), np.zeros(0)), (), ("x", "none")),
        prepare=Block(lambda x: 2.0 * x, ("x",), ("x",)),
        evaluate=Block(lambda x: np.zeros(0), ("x",), ("none",)),
        finish=Block(lambda x: x + 1.0, ("x",), ("x",)),
        sample=Block(lambda x, none: (x, none), ("x", "none"), ("x", "none")),
    )
    times = {"starts": [0.0, 0.0], "steps": [0.1, 0.1], "counts": [1, 1]}
    for got in (StepLoopKernel(march, "f")(**times), march.interpret([], **times)):
        np.testing.assert_array_equal(got[0], [[9.0], [73.0]])
        assert got[1].shape == (2, 0)
    assert ".entry f(" in CudaStepLoop(march, "f").ptx()


def test_the_code_does_not_grow_with_the_stages():
    many = StepLoop(**{**vars(PENDULUM), "rows": np.vstack([RK4, RK4])})
    once, again = (CudaStepLoop(m, "pendulum").ptx().splitlines() for m in (PENDULUM, many))
    assert len(once) == len(again)


def test_forward_dynamics_of_a_robot():
    """A block of 1,700 operations, on both machines."""
    robot = rm.load("servicer")
    march = rk4(
        lambda t, v, q, tau: rm.forward_dynamics(robot, q, v, tau),
        13, Signature("q", (15,)), Signature("tau", (13,)),
    )  # fmt: skip
    q, v = rm.random_state(robot, 0, (3,))
    tau = np.random.default_rng(1).normal(size=v.shape)
    times = {"starts": [0.0], "steps": [0.01], "counts": [2]}

    def rate(t, v, q, tau):
        return rm.forward_dynamics(robot, q, v, tau)

    expected = plain(rate, v, (q, tau), **times)
    assert_close(StepLoopKernel(march, "servicer")(v, q, tau, **times)[0], expected, rtol=1e-12)
    assert_close(launched(CudaStepLoop(march, "servicer"), [v, q, tau], **times)[0], expected)


class TestRefused:
    def test_timetables(self):
        kernel, (y, p) = StepLoopKernel(PENDULUM, "pendulum"), arguments(PENDULUM, (2,))
        for bad, reason in (
            ({"counts": [1, 1, 1, -1]}, "counts must not be negative: -1"),
            ({"counts": [1.0] * 4}, "whole numbers"),
            ({"counts": [1, 1]}, "of one length"),
            ({"starts": [[0.0] * 4]}, "of one length"),
            ({"steps": [0.1, 0.1, np.nan, 0.1]}, "must be finite"),
            ({"starts": [0.1, 0.1, np.inf, 0.1]}, "must be finite"),
        ):
            with pytest.raises(rm.RemoraError, match=reason):
                kernel(y, p, **(TIMES | bad))
            with pytest.raises(rm.RemoraError, match=reason):
                PENDULUM.interpret([y, p], **(TIMES | bad))

    def test_arguments(self):
        kernel, (y, p) = StepLoopKernel(PENDULUM, "pendulum"), arguments(PENDULUM, (3,))
        for bad, reason in (
            ((y[:, :1], p), "y of kernel pendulum must have shape"),
            ((y,), "p missing"),
            ((y, p[:2]), "do not broadcast"),
            ((y + 0j, p), "y of kernel pendulum is complex128"),
        ):
            with pytest.raises(rm.RemoraError, match=reason):
                kernel(*bad, **TIMES)
        with pytest.raises(rm.RemoraError, match="threads must be"):
            kernel(y, p, **TIMES, threads=-1)
        with pytest.raises(rm.RemoraError, match="named 'z'"):
            kernel(y, z=p, **TIMES)
        with pytest.raises(rm.RemoraError, match="float64, float32"):
            StepLoopKernel(PENDULUM, "pendulum", "float16")
        with pytest.raises(rm.RemoraError, match="y of kernel pendulum is float64"):
            StepLoopKernel(PENDULUM, "pendulum", "float32")(y, p, **TIMES)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"prepare": Block(lambda x: x, ("x",), ("stage",))}, "reads named 'x'; known: y, k"),
            ({"prepare": Block(lambda y: y, ("y",), ("x",))}, "'prepare' writes named 'x'"),
            ({"finish": Block(lambda r: r, ("row",), ("y",))}, "'finish' reads named 'row'"),
            ({"start": Block(lambda y, p: y, ("y", "p"), ("y",))}, "must set k, total, stage, p"),
            ({"evaluate": Block(lambda k: k, ("k",), ("k",))}, "reads and writes k"),
            ({"evaluate": Block(lambda c: c[0], ("clock",), ("k",))}, r"of shape \(\)"),
            ({"finish": Block(lambda y: (y, y), ("y",), ("y", "y"))}, "'y' is named twice"),
            ({"finish": Block(lambda y: (y, y), ("y",), ("y",))}, "'finish' .* 2 arrays for y"),
        ],
    )
    def test_blocks_that_do_not_fit(self, changes, reason):
        with pytest.raises(rm.RemoraError, match=reason):
            rk4(pendulum, 2, Signature("p", (2,)), **changes)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"rows": [1.0]}, "rows of a march"),
            ({"rows": np.zeros((0, 3))}, "rows of a march"),
            ({"rows": np.full((4, 3), np.nan)}, "rows of a march must be finite"),
            ({"rows": np.zeros((4, 2))}, "'row' of shape"),
            ({"cells": PENDULUM.cells + PENDULUM.cells[:1]}, "cells .* 'y' is named twice"),
            ({"cells": (*PENDULUM.cells, Signature("row", (3,)))}, "may be called"),
            ({"outputs": (*PENDULUM.outputs, Signature("z", ()))}, "'sample' .* must set z"),
            ({"start": Graph(())}, "'start' .* must set y"),
        ],
    )
    def test_marches_that_do_not_fit(self, changes, reason):
        with pytest.raises(rm.RemoraError, match=reason):
            StepLoop(**{**vars(PENDULUM), **changes})


CACHED = """
import numpy as np
from test_march import PENDULUM, TIMES, arguments
from remora.codegen.integration.step_loop_cpu import StepLoopKernel

made = []
kernel = StepLoopKernel(lambda: made.append(1) or PENDULUM, "pendulum", key="mine")
print(len(made), kernel(*arguments(PENDULUM, (3,)), **TIMES)[0].tobytes().hex())
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


def test_another_march_is_another_entry():
    """Also where only a number of the table differs."""
    y, p = arguments(PENDULUM, (2,))
    other = StepLoop(**{**vars(PENDULUM), "rows": 0.5 * np.array(RK4)})
    got = StepLoopKernel(other, "pendulum")(y, p, **TIMES)[0]
    assert not np.array_equal(got, StepLoopKernel(PENDULUM, "pendulum")(y, p, **TIMES)[0])
    np.testing.assert_array_equal(got, whole(other).interpret([y, p], **TIMES)[0])


def test_what_they_show(tmp_path):
    kernel = StepLoopKernel(PENDULUM, "pendulum")
    assert "pendulum(y (..., 2), p (..., 2)) -> y (..., 2), t (...), float64" in repr(kernel)
    other = CudaStepLoop(lambda: PENDULUM, "pendulum 2", "float32")
    assert "pendulum 2(y (..., 2), p (..., 2)) -> y (..., 2), t (...), float32" in repr(other)
    assert ".entry pendulum_2(" in other.save_ptx(tmp_path / "march.ptx").read_text()


@pytest.mark.skipif(CUPY is not None, reason="there is a GPU")
def test_without_a_gpu():
    y, p = arguments(PENDULUM, (2,))
    with pytest.raises(rm.RemoraError, match="CuPy"):
        CudaStepLoop(PENDULUM, "pendulum")(y, p, **TIMES)


# On a GPU ---------------------------------------------------------------------------------------


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_gpu_against_cpu(name, dtype):
    march, _ = CASES[name]
    given = [a.astype(dtype) for a in arguments(march, (300,))]
    expected = StepLoopKernel(march, name, dtype)(*given, **TIMES)
    kernel = CudaStepLoop(march, name, dtype)
    device = [CUPY.asarray(a) for a in given]
    got = kernel(*device, **TIMES)
    for a, b in zip(got, expected, strict=True):
        assert_close(a.get(), b, rtol=1e-12 if dtype == "float64" else 1e-5)
    others = [
        [CUPY.asfortranarray(a) for a in device],
        [a.reshape(3, 100, -1) for a in device],
        [CUPY.repeat(a, 2, axis=0)[::2] for a in device],
    ]
    for arrays in others:
        again = kernel(*arrays, **TIMES)
        for a, b in zip(again, got, strict=True):
            np.testing.assert_array_equal(a.get().reshape(b.shape), b.get())
    one = kernel(device[0], *(a[0] for a in device[1:]), **TIMES)[0]
    alone = kernel(device[0][7], *(a[0] for a in device[1:]), **TIMES)[0]
    np.testing.assert_array_equal(one[7].get(), alone.get())
    assert kernel(*(a[:0] for a in device), **TIMES)[0].shape == (0, 4, march.outputs[0].size)
    with pytest.raises(rm.RemoraError, match="device memory"):
        kernel(*given, **TIMES)


@on_gpu
def test_gpu_arrays_of_other_libraries():
    torch = pytest.importorskip("torch")
    given = arguments(PENDULUM, (50,))
    kernel = CudaStepLoop(PENDULUM, "pendulum")
    got, _ = kernel(*(torch.as_tensor(a, device="cuda") for a in given), **TIMES)
    assert isinstance(got, torch.Tensor)
    expected, _ = kernel(*map(CUPY.asarray, given), **TIMES)
    np.testing.assert_array_equal(got.cpu().numpy(), expected.get())
