"""GPU kernels: the PTX, run by a small machine here; on a GPU where there is one."""

import inspect

import numpy as np
import pytest

import needs
import ptx_machine
import remora as rm
from benchmark_scripts import chain
from kernels import SOLVING, arguments_for
from numeric import assert_close
from public_names import public
from remora.algebra.array_ops import less, select
from remora.codegen.gpu import cuda_kernel, ptx, ptx_loops, schedule
from remora.codegen.ir import graph_passes
from remora.codegen.ir.graph import Graph, Signature, interpret
from remora.dynamics.kernels.compiled import FUNCTIONS
from remora.dynamics.kernels.tree_recursions import loops
from trees import Case

ROBOT = rm.load("servicer")


def launched(kernel, arguments, layout="rows", block=32):
    """Run a kernel's PTX on the small machine."""
    pairs = list(zip(arguments, kernel.inputs, strict=True))
    batch = np.broadcast_shapes(*(np.shape(a)[: np.ndim(a) - len(s.shape)] for a, s in pairs))
    n = int(np.prod(batch))
    code = kernel.code((layout,) * (len(kernel.inputs) + len(kernel.outputs)))
    call, results = [], []
    for a, s in pairs:
        rows = np.broadcast_to(np.asarray(a, kernel.dtype), batch + s.shape).reshape(n, s.size)
        call += [np.ascontiguousarray(rows if layout == "rows" else rows.T)]
        call += [s.size if layout == "rows" else n]
    if code.waist:
        call += [np.full((code.waist, n), np.nan, kernel.dtype), n]
    for s in kernel.outputs:
        shape = (n, s.size) if layout == "rows" else (s.size, n)
        results.append(np.full(shape, np.nan, kernel.dtype))
        call += [results[-1], s.size if layout == "rows" else n]
    for entry in code.entries:
        ptx_machine.run(code.text, entry, [*call, n], -(-n // block), block)
    results = [r if layout == "rows" else r.T for r in results]
    results = [r.reshape(batch + s.shape) for r, s in zip(results, kernel.outputs, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_the_library(name):
    rng = np.random.default_rng(3)
    robot = rm.random_robot(5, bodies=4)
    arguments = arguments_for(name, robot, rng, (3,))
    fixed = {}
    if "frame" in inspect.signature(FUNCTIONS[name]).parameters:
        fixed["frame"] = arguments.pop()
    kernel = rm.compile(public(name), robot, fixed=fixed, target="cuda")
    got = launched(kernel, arguments)
    expected = public(name)(robot, *arguments, **fixed)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for a, b in pairs:
        assert_close(a, b, rtol=1e-11 if name in SOLVING else 1e-13)


@pytest.mark.parametrize("layout", ptx.LAYOUTS)
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "poses", "accelerations"])
@pytest.mark.parametrize("seed", range(2))
def test_loops(name, layout, seed):
    """As loops over the bodies: all kinds of joints and bases, two states for each thread."""
    c = Case(seed, largest=9)
    rng = np.random.default_rng(seed)
    signatures = rm.compile(public(name), c.robot, target="cuda").inputs
    made = loops(c.robot, name, signatures)
    arguments = arguments_for(name, c.robot, rng, (64,))
    code = ptx_loops.write_loops(made, name, "float64", (layout,) * (len(signatures) + 1))
    call = []
    for a, s in zip(arguments, signatures, strict=True):
        rows = a.reshape(64, s.size)
        call += [np.ascontiguousarray(rows if layout == "rows" else rows.T)]
        call += [s.size if layout == "rows" else 64]
    size = made.outputs[0].size
    out = np.full((64, size) if layout == "rows" else (size, 64), np.nan)
    call += [out, size if layout == "rows" else 64, 64, np.empty(code.scratch * 32)]
    ptx_machine.run(code.text, name, call, 1, 32)
    expected = public(name)(c.robot, *arguments)
    got = (out if layout == "rows" else out.T).reshape(expected.shape)
    assert_close(got, expected, rtol=1e-11 if name in SOLVING else 1e-13)


def test_large_robots_are_loops():
    robot = chain(300)
    kernel = rm.compile(rm.forward_dynamics, robot, target="cuda")
    assert kernel.ptx().startswith("// any number of threads")
    with pytest.raises(rm.RemoraError, match="no GPU code yet"):
        rm.compile(rm.mass_matrix, robot, target="cuda").ptx()


@pytest.mark.parametrize("layout", ptx.LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_bits_as_the_definition(layout, dtype):
    """Without a division every rounding is spelled out: inverse dynamics, all bits."""
    c = Case(2, largest=6)
    q, v = rm.random_state(c.robot, 1, (35,))
    vdot = np.random.default_rng(2).normal(size=v.shape)
    kernel = rm.compile(rm.inverse_dynamics, c.robot, target="cuda", dtype=dtype)
    prepared = graph_passes.prepared(kernel.graph, dtype)
    assert prepared.count().get("div", 0) == 0
    (expected,) = interpret(prepared, [q, v, vdot], dtype)
    np.testing.assert_array_equal(launched(kernel, [q, v, vdot], layout), expected)


def test_one_argument_for_all_states():
    kernel = rm.compile(rm.twists, ROBOT, target="cuda")
    q, v = rm.random_state(ROBOT, 1, (5,))
    out = np.empty((5, 48))
    ptx_machine.run(kernel.ptx(), kernel.name, [q[:1], 0, v, 13, out, 48, 5], 1, 32)
    assert_close(out.reshape(5, 8, 6), rm.twists(ROBOT, q[0], v))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quotients(dtype):
    """x/d to two units in the last place, and what it is at zero, infinity and not-a-number."""
    kernel = cuda_kernel.CudaKernel(
        lambda x, d: x / d, [Signature("x", ()), Signature("d", ())], "f", dtype
    )
    rng = np.random.default_rng(0)
    x, d = (rng.normal(size=500) * 10.0 ** rng.uniform(-8, 8, 500) for _ in range(2))
    x, d = x.astype(dtype), d.astype(dtype)
    np.testing.assert_allclose(launched(kernel, [x, d]), x / d, rtol=2.1 * np.finfo(dtype).eps)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(launched(kernel, [np.ones(6), special]), 1.0 / special)


def test_numbers_that_pass_through():
    """An output may be an input or a constant, and an input may be used by nothing else."""
    kernel = cuda_kernel.CudaKernel(
        lambda x, y: (x, np.array([1.5, -2.0])), [Signature("x", (3,)), Signature("y", (2,))], "f"
    )
    x = np.arange(6.0).reshape(2, 3)
    same, constant = launched(kernel, [x, np.ones((2, 2))])
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(constant, [[1.5, -2.0]] * 2)


@pytest.mark.parametrize(
    ("array", "trailing", "layout", "stride"),
    [
        (np.zeros((5, 7)), 1, "rows", 7),
        (np.zeros((7, 5)).T, 1, "columns", 5),
        (np.zeros((4, 3, 7)), 1, "rows", 7),
        (np.zeros((7, 4, 3)).transpose(1, 2, 0), 1, "columns", 12),
        (np.zeros((6, 6, 5)).transpose(2, 0, 1), 2, "columns", 5),
        (np.zeros((5, 9))[:, 1:8], 1, "rows", 9),
        (np.zeros((10, 7))[::2], 1, "rows", 14),
        (np.zeros((5, 7))[:1], 1, "rows", 0),
        (np.zeros(7), 1, "rows", 0),
        (np.zeros((5, 1)), 1, "rows", 1),
        (np.zeros(5), 0, "rows", 1),
    ],
)
def test_how_arrays_lie(array, trailing, layout, stride):
    view = cuda_kernel._view(array, trailing)
    assert (view.layout, view.stride) == (layout, stride)


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.zeros(1), (5, 7)),
        np.broadcast_to(np.zeros((5, 1)), (5, 7)),
        np.zeros((5, 14))[:, ::2],
        np.zeros((5, 7))[:, ::-1],
        np.zeros((3, 9, 7))[:, ::2],
    ],
)
def test_what_no_single_stride_tells_is_copied(array):
    assert cuda_kernel._view(array, 1) is None


def test_one_state_may_lie_anyhow():
    assert cuda_kernel._view(np.zeros((7, 5)).T[:1], 1) is None  # one for all states: in rows only
    assert cuda_kernel._view(np.zeros((7, 5)).T[:1], 1, alone=True).layout == "columns"


def test_conditions_are_never_put_away():
    """They have registers of their own kind; everything else of this function is."""

    def function(x):
        condition = less(x[0], x[1])
        total, parts = x[2], []
        for k in range(400):
            total = total * x[k % 30] + 1.0
            parts.append(total)
        late = sum(parts[i] * parts[-1 - i] for i in range(200))
        return select(condition, late, x[3])

    kernel = cuda_kernel.CudaKernel(function, [Signature("x", (40,))], "f")
    steps = schedule.parts(graph_passes.prepared(kernel.graph, "float64"), ptx.MEMORY["float64"])[
        0
    ].steps
    assert any(step.what == "put" for step in steps)
    x = np.random.default_rng(0).uniform(-1, 1, (3, 40))
    (expected,) = interpret(graph_passes.prepared(kernel.graph, "float64"), [x])
    np.testing.assert_array_equal(launched(kernel, [x]), expected)


def test_names_that_ptx_does_not_know():
    kernel = rm.compile(lambda robot, q: 2.0 * q, ROBOT, target="cuda", shapes={"q": (15,)})
    assert ".entry kernel__lambda_(" in kernel.ptx()


def test_functions_without_gpu_code_are_refused():
    import casadi

    kernel = cuda_kernel.CudaKernel(
        lambda x: np.array([casadi.exp(x[0])], dtype=object), [Signature("x", (1,))], "f"
    )
    with pytest.raises(rm.RemoraError, match="no GPU code for 'exp'"):
        kernel.ptx()


@needs.no_gpu
def test_without_a_gpu(tmp_path):
    """The code can be made and saved; running it says what is missing."""
    kernel = rm.compile(rm.forward_dynamics, ROBOT, target="cuda", dtype="float32")
    path = kernel.save_ptx(tmp_path / "fd.ptx")
    assert ".entry forward_dynamics(" in path.read_text()
    q, v = rm.random_state(ROBOT, 0)
    with pytest.raises(rm.RemoraError, match="CuPy"):
        kernel(q, v, v)
    with pytest.raises(rm.RemoraError, match="CuPy"):
        rm.compile(ROBOT, target="cuda").poses(q)


def test_wrong_names():
    with pytest.raises(rm.RemoraError, match="cpu, cuda"):
        rm.compile(rm.poses, ROBOT, target="gpu")
    with pytest.raises(rm.RemoraError, match="cpu, cuda"):
        rm.compile(ROBOT, target="gpu")
    kernel = rm.compile(rm.poses, ROBOT, target="cuda")
    with pytest.raises(rm.RemoraError, match="rows, columns"):
        kernel.ptx("diagonal")
    with pytest.raises(rm.RemoraError, match="float64, float32"):
        rm.compile(rm.poses, ROBOT, target="cuda", dtype="float16")


@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_one_and_keeps_fewer_values_alive(seed):
    c = Case(seed, largest=12)
    graph = graph_passes.prepared(
        rm.compile(rm.forward_dynamics, c.robot, target="cuda").graph, "float64"
    )
    traced = schedule.needed_for(graph, graph.results[0])
    order = schedule.from_the_end(graph, traced)
    assert sorted(order) == traced
    place = {i: k for k, i in enumerate(order)}
    for i in order:
        assert all(place.get(k, -1) < place[i] for k in graph.nodes[i][1])
    # the scheduler takes the better of both; on large trees with many checks either may be it
    assert schedule.most_alive(graph, order) <= 1.25 * schedule.most_alive(graph, traced)


def test_how_many_are_alive():
    g = Graph((Signature("x", (2,)),), (Signature("out", ()),))
    x, y = g.input(0, 0), g.input(0, 1)
    a, b = g.op("add", x, y), g.op("mul", x, y)
    g.results = [[g.op("sub", a, g.op("neg", g.op("mul", b, b)))]]
    assert schedule.most_alive(g, schedule.needed_for(g, g.results[0])) == 2


# On a GPU ---------------------------------------------------------------------------------------


def states(n):
    q, v = rm.random_state(ROBOT, 0, (n,))
    return q, v, np.random.default_rng(1).normal(size=v.shape)


@needs.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gpu_against_cpu(dtype):
    arrays = [a.astype(dtype) for a in states(1000)]
    expected = rm.compile(rm.forward_dynamics, ROBOT, dtype=dtype)(*arrays)
    kernel = rm.compile(rm.forward_dynamics, ROBOT, dtype=dtype, target="cuda")
    device = [needs.CUPY.asarray(a) for a in arrays]
    got = kernel(*device)
    assert_close(got.get(), expected, rtol=1e-12 if dtype == "float64" else 1e-4)
    np.testing.assert_array_equal(kernel(*device).get(), got.get())  # every run the same bits
    np.testing.assert_array_equal(kernel(*[a[7] for a in device]).get(), got[7].get())
    columns = [needs.CUPY.asfortranarray(a) for a in device]
    np.testing.assert_array_equal(kernel(*columns).get(), got.get())
    out = needs.CUPY.empty_like(got, order="F")
    assert kernel(*columns, out=out) is out
    np.testing.assert_array_equal(out.get(), got.get())


@needs.gpu
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gpu_every_function(name):
    robot = rm.random_robot(5, bodies=6)
    arguments = arguments_for(name, robot, np.random.default_rng(3), (33,))
    fixed = {}
    if "frame" in inspect.signature(FUNCTIONS[name]).parameters:
        fixed["frame"] = arguments.pop()
    fast = rm.compile(robot, target="cuda")
    got = getattr(fast, name)(*map(needs.CUPY.asarray, arguments), **fixed)
    expected = getattr(rm.compile(robot), name)(*arguments, **fixed)
    pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
    for a, b in pairs:
        assert_close(a.get(), b, rtol=1e-11 if name in SOLVING else 1e-12)


@needs.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gpu_large_robots(dtype):
    robot = chain(100)
    q, v = rm.random_state(robot, 0, (300,))
    vdot = np.random.default_rng(1).normal(size=v.shape)
    arrays = [a.astype(dtype) for a in (q, v, vdot)]
    for function in (rm.inverse_dynamics, rm.forward_dynamics):
        expected = rm.compile(function, robot, dtype=dtype)(*arrays)
        kernel = rm.compile(function, robot, dtype=dtype, target="cuda")
        got = kernel(*map(needs.CUPY.asarray, arrays))
        assert_close(got.get(), expected, rtol=1e-12 if dtype == "float64" else 1e-4)
        columns = [needs.CUPY.asfortranarray(needs.CUPY.asarray(a)) for a in arrays]
        np.testing.assert_array_equal(kernel(*columns).get(), got.get())


@needs.gpu
def test_gpu_shapes_streams_and_refusals():
    kernel = rm.compile(rm.forward_dynamics, ROBOT, target="cuda")
    q, v, tau = map(needs.CUPY.asarray, states(24))
    whole = kernel(q, v, tau)
    assert kernel(q.reshape(4, 6, 15), v.reshape(4, 6, 13), tau.reshape(4, 6, 13)).shape == (
        4,
        6,
        13,
    )
    np.testing.assert_array_equal(kernel(q[:1], v, tau)[0].get(), whole[0].get())
    np.testing.assert_array_equal(kernel(q[::2], v[::2], tau[::2]).get(), whole[::2].get())
    wide = needs.CUPY.concatenate([q, v, tau], axis=1)  # slices of one array: rows with a gap
    parts = wide[:, :15], wide[:, 15:28], wide[:, 28:]
    np.testing.assert_array_equal(kernel(*parts).get(), whole.get())
    assert kernel(q[:0], v[:0], tau[:0]).shape == (0, 13)
    stream = needs.CUPY.cuda.Stream(non_blocking=True)
    needs.CUPY.cuda.Device().synchronize()
    queued = kernel(q, v, tau, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(queued.get(), whole.get())
    np.testing.assert_array_equal(kernel(q, v, tau, out=tau.copy()).get(), whole.get())
    np.testing.assert_array_equal(kernel(q, v, tau, out=tau).get(), whole.get())  # in place
    with pytest.raises(rm.RemoraError, match="device memory"):
        kernel(q.get(), v, tau)
    with pytest.raises(rm.RemoraError, match="float32"):
        kernel(q.astype("float32"), v, tau)
    with pytest.raises(rm.RemoraError, match="must have shape"):
        kernel(q, v[:, :5], tau)
    with pytest.raises(rm.RemoraError, match="broadcast"):
        kernel(q, v[:7], tau)
    with pytest.raises(rm.RemoraError, match="out must be"):
        kernel(q, v, tau, out=needs.CUPY.empty((24, 12)))


@needs.gpu
def test_gpu_results_over_arguments():
    """Results are stored while arguments are still read: these are copied first."""
    robot = rm.random_robot(2, bodies=16, gravity=True)
    q, v = rm.random_state(robot, 0, (40,))
    vdot = np.random.default_rng(1).normal(size=v.shape)
    kernel = rm.compile(rm.inverse_dynamics, robot, target="cuda")
    expected = kernel(*map(needs.CUPY.asarray, (q, v, vdot))).get()
    for place in (1, 2):
        arrays = list(map(needs.CUPY.asarray, (q, v, vdot)))
        kernel(*arrays, out=arrays[place])
        np.testing.assert_array_equal(arrays[place].get(), expected)


@needs.gpu
def test_gpu_arrays_of_other_libraries():
    arrays = [a.astype("float32") for a in states(50)]
    kernel = rm.compile(rm.forward_dynamics, ROBOT, dtype="float32", target="cuda")
    expected = kernel(*map(needs.CUPY.asarray, arrays)).get()
    torch = pytest.importorskip("torch")
    tensors = [torch.as_tensor(a, device="cuda") for a in arrays]
    got = kernel(*tensors)
    assert isinstance(got, torch.Tensor)
    np.testing.assert_array_equal(got.cpu().numpy(), expected)
    out = torch.empty_like(got)
    assert kernel(*tensors, out=out) is out
    np.testing.assert_array_equal(out.cpu().numpy(), expected)
    jax = pytest.importorskip("jax")
    got = kernel(*map(jax.numpy.asarray, arrays))
    assert isinstance(got, jax.Array)
    np.testing.assert_array_equal(np.asarray(got), expected)
