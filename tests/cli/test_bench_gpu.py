"""`remora bench --gpu` where there is none: its sums, with NumPy in the place of the GPU."""

import io
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import remora as rm
from arms import arm
from remora.cli import bench_gpu
from remora.dynamics.kernels.compiled import FUNCTIONS

ROBOT = arm(1)
LAST = ROBOT.bodies[-1].name


class OnDevice(np.ndarray):
    """An array that is read as those of a GPU."""

    def get(self):
        return np.asarray(self)


class Kernel:
    """A function in the place of its kernel: off by a part of its values, with all calls kept."""

    def __init__(self, name, dtype, off=1e-3):
        self.function, self.dtype, self.off, self.calls = FUNCTIONS[name], np.dtype(dtype), off, []
        self.fixed = {"frame": LAST} if name == "jacobian" else {}
        names = {"inverse_dynamics": "q v vdot", "jacobian": "q"}.get(name, "q v tau").split()
        states = rm.random_state(ROBOT, 0)
        taken = [states[0] if x == "q" else states[1] for x in names]
        self.inputs = [
            SimpleNamespace(name=n, size=x.size) for n, x in zip(names, taken, strict=True)
        ]
        made = self.function(ROBOT, *taken, **self.fixed)
        self.listed = made if isinstance(made, tuple) else (made,)
        self.outputs = [SimpleNamespace(size=x.size) for x in self.listed]

    def __call__(self, *arrays, out=None):
        self.calls.append((arrays, out))
        made = self.function(ROBOT, *map(np.asarray, arrays), **self.fixed)
        made = made if isinstance(made, tuple) else (made,)
        made = tuple(((1.0 + self.off) * x).view(OnDevice) for x in made)
        return made if len(made) > 1 else made[0]

    def loaded(self, layout):
        sizes = ((40, 8), (64, 0), (32, 24))
        return SimpleNamespace(
            entries=[SimpleNamespace(num_regs=a, local_size_bytes=b) for a, b in sizes]
        )


@pytest.fixture
def device(monkeypatch):
    """Put NumPy in the place of the GPU; each launch takes 4 ms, one of them 2 ms."""
    took = itertools.chain([4.0, 2.0], itertools.repeat(4.0))

    def asarray(a, order="C"):
        return np.asarray(a, order=order).view(OnDevice)

    cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(synchronize=lambda: None, id=3),
        Event=lambda: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
        get_elapsed_time=lambda before, after: next(took),
        runtime=SimpleNamespace(getDeviceProperties=lambda k: {"name": f"device {k}".encode()}),
    )
    cupy = SimpleNamespace(
        asarray=asarray, arange=np.arange, ascontiguousarray=np.ascontiguousarray, cuda=cuda
    )
    monkeypatch.setattr(bench_gpu, "cupy_with_device", lambda: cupy)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize(
    "function", ["inverse_dynamics", "jacobian", "forward_dynamics_derivatives"]
)
def test_rates_are_states_over_the_shortest_launch(device, monkeypatch, function, layout):
    kernel = Kernel(function, "float64")
    size = 8 * sum(x.size for x in (*kernel.inputs, *kernel.outputs))
    monkeypatch.setattr(bench_gpu, "cuda_kernel", lambda *_: kernel)
    monkeypatch.setattr(bench_gpu, "MOST_BYTES", 300 * size + 5)
    found = bench_gpu.rate(ROBOT, function, "float64", layout, seconds=0.5)
    assert (found.states, found.bytes, found.entries) == (300, size, 3)
    assert found.per_second == pytest.approx(300 / 2e-3)
    assert (found.registers, found.local_bytes) == (64, 24)
    assert found.deviation == pytest.approx(1e-3, rel=1e-6)
    (few, _), (many, _), *timed = kernel.calls
    assert {len(x) for x in few} == {16}
    for x in many:
        assert len(x) == 300
        assert np.array_equal(x[256:], x[:44])
        assert x.flags["C_CONTIGUOUS" if layout == "rows" else "F_CONTIGUOUS"]
    assert np.array_equal(few[0], many[0][:16])
    for _, out in timed:
        assert isinstance(out, tuple) == (len(kernel.outputs) > 1)
        listed = out if isinstance(out, tuple) else (out,)
        assert [x[0].size for x in listed] == [x.size for x in kernel.outputs]
    assert bench_gpu.rate(ROBOT, function, "float64", layout, 7, 0.01).states == 7


def test_kernels_and_states_are_of_the_function_that_is_timed(monkeypatch):
    asked = []
    monkeypatch.setattr(bench_gpu, "compile_function", lambda *a, **b: asked.append((a, b)))
    bench_gpu.cuda_kernel(ROBOT, "jacobian", "float32")
    bench_gpu.cuda_kernel(ROBOT, "mass_matrix", "float64")
    assert asked == [
        ((FUNCTIONS["jacobian"], ROBOT, "float32"), {"fixed": {"frame": LAST}, "target": "cuda"}),
        ((FUNCTIONS["mass_matrix"], ROBOT, "float64"), {"fixed": None, "target": "cuda"}),
    ]
    q, v, tau = bench_gpu.some_states(ROBOT, Kernel("forward_dynamics", "float32"))
    assert (q.dtype, q.shape, v.shape, tau.shape) == (np.float32, (256, 9), (256, 7), (256, 7))
    assert np.allclose(np.linalg.norm(q[:, :4], axis=1), 1.0, atol=1e-6)
    assert not np.array_equal(v, tau)
    sizes = {n: len(bench_gpu.functions(SimpleNamespace(bodies=[0] * n))) for n in (10, 11, 60, 61)}
    assert sizes == {10: 5, 11: 4, 60: 4, 61: 2}


def test_rates_and_refusals_are_printed(device, monkeypatch):
    asked = []

    def rate(robot, function, dtype, layout, states, seconds):
        asked.append((function, dtype, layout, states, seconds))
        if (function, dtype) == ("mass_matrix", "float32"):
            raise rm.RemoraError("too large")
        return bench_gpu.Rate(function, dtype, layout, 9, 2.5e8, 800, 2, 64, 24, 1.234, 3e-15)

    monkeypatch.setattr(bench_gpu, "rate", rate)
    out = io.StringIO()
    bench_gpu.bench_gpu(ROBOT, 9, 5.0, "a robot", Console(file=out, width=100))
    assert [x[:2] for x in asked] == list(
        itertools.product(bench_gpu.TIMED, ("float64", "float32"))
    )
    assert {x[2:] for x in asked} == {("columns", 9, 0.5)}
    lines = [re.sub(" +", " ", line).strip() for line in out.getvalue().splitlines()]
    assert lines[:2] == ["device 3", "a robot"]
    assert "inverse dynamics, float32 2.5e+08 0.20 64 24 B 1.23 3e-15" in lines
    assert lines[-1] == "not timed: mass matrix, float32: too large"
    made = [rate(None, "jacobian", "float64", layout, 9, 1.0) for layout in ("rows", "columns")]
    out = io.StringIO()
    bench_gpu.print_rates("both", made, Console(file=out, width=100))
    assert "Jacobian, float64, rows " in out.getvalue()
