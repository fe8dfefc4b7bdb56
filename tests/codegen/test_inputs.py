"""What goes into kernels: arrays that mean something else, out that overlaps, pickles."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import remora as rm
from remora.codegen.gpu.cuda_kernel import CudaKernel
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import Kernel
from remora.errors import ShapeError
from remora.identity import digest as digest_module

ROBOT = rm.load("servicer")
Q, V = rm.random_state(ROBOT, 0, (20,))
TAU = np.random.default_rng(1).normal(size=(20, ROBOT.nv))


@pytest.fixture(scope="module")
def fd():
    return rm.compile(rm.forward_dynamics, ROBOT)


@pytest.fixture(scope="module")
def fast():
    return rm.compile(ROBOT)


OTHER = {
    "matrix": (lambda x: x.view(np.matrix), "np.matrix"),
    "masked": (lambda x: np.ma.masked_array(x, x > 0.5), "masked array"),
    "masked nowhere": (np.ma.masked_array, "masked array"),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("kind", OTHER)
def test_matrices_and_masked_arrays_are_refused(fast, place, kind):
    other, message = OTHER[kind]
    for rows in (slice(0, 5), 0):
        arguments = [x[rows] for x in (Q, V, TAU)]
        arguments[place] = other(arguments[place])
        for function in (fast.forward_dynamics, fast.inverse_dynamics):
            with pytest.raises(ShapeError, match=message):
                function(*arguments)
        with pytest.raises(ShapeError, match=message):
            rm.forward_dynamics(ROBOT, *arguments)


@pytest.mark.parametrize("kind", OTHER)
def test_they_are_refused_in_robots_and_batches(kind):
    other, message = OTHER[kind]
    with pytest.raises(rm.RemoraError, match=message):
        ROBOT.replace_body(1, inertia=other(np.eye(3)))
    with pytest.raises(rm.RemoraError, match=message):
        rm.Builder("a").body("b", mass=1.0, com=other(np.zeros(3)), inertia=np.ones(3)).build()
    with pytest.raises(rm.RemoraError, match=message):
        rm.simulate_batch(ROBOT, Q, V, 0.1, integrator=rm.Integrator(step=0.05), torque=other(TAU))


def test_other_subclasses_are_taken(fd, tmp_path):
    file = np.memmap(tmp_path / "q", float, "w+", shape=Q.shape)
    file[:] = Q
    assert np.array_equal(fd(file, V, TAU), fd(Q, V, TAU))
    assert type(fd(file, V, TAU)) is np.ndarray
    assert np.array_equal(rm.mass_matrix(ROBOT, file[0]), rm.mass_matrix(ROBOT, Q[0]))


def test_out_that_overlaps_an_argument_in_part_is_refused(fd):
    memory = np.zeros((21, ROBOT.nv))
    memory[:20] = TAU
    with pytest.raises(ShapeError, match="shares a part of its memory with the argument tau"):
        fd(Q, V, memory[:20], out=memory[1:])
    memory[:20] = V
    with pytest.raises(ShapeError, match="with the argument v"):
        fd(Q, memory[:20], TAU, out=memory[1:])
    with pytest.raises(ShapeError, match="with the argument tau"):  # one for all states
        fd(Q, V, memory[3], out=memory[:20])
    assert np.array_equal(memory[:20], V)


def test_out_that_is_an_argument_is_right(fd):
    expected = fd(Q, V, TAU)
    given = TAU.copy()
    assert fd(Q, V, given, out=given) is given
    assert np.array_equal(given, expected)
    single = TAU[0].copy()
    fd(Q[0], V[0], single, out=single)
    assert np.array_equal(single, expected[0])
    large = rm.random_robot(1, bodies=70)  # compiled as loops
    q, v = rm.random_state(large, 0, (5,))
    bias = rm.compile(rm.bias_force, large)
    assert bias.rolled
    written = v.copy()
    assert np.array_equal(bias(q, written, out=written), bias(q, v))


def test_out_beside_an_argument_is_right(fd):
    memory = np.zeros((40, ROBOT.nv))
    memory[:20] = TAU
    fd(Q, V, memory[:20], out=memory[20:])
    assert np.array_equal(memory[20:], fd(Q, V, TAU))


def test_results_that_overlap_are_refused():
    kernel = rm.compile(rm.dynamics.forward_dynamics_derivatives, ROBOT)
    n = ROBOT.nv
    memory = np.zeros((3 * n, n))
    own = memory.reshape(3, n, n)
    kernel(Q[0], V[0], TAU[0], out=(own[0], own[1], own[2]))
    with pytest.raises(ShapeError, match="two arrays of out"):
        kernel(Q[0], V[0], TAU[0], out=(memory[:n], memory[1 : n + 1], own[2]))


# Pickles and copies -------------------------------------------------------------------------------


def twice(x):
    return 2.0 * x


def test_a_used_kernel_can_be_copied_and_pickled(fd):
    expected = fd(Q, V, TAU)
    for other in (copy.copy(fd), copy.deepcopy(fd), pickle.loads(pickle.dumps(fd))):
        assert np.array_equal(other(Q, V, TAU), expected)
        assert np.array_equal(other(Q[0], V[0], TAU[0]), expected[0])
        assert (other.name, other.inputs, other.outputs) == (fd.name, fd.inputs, fd.outputs)
    back = pickle.loads(pickle.dumps(fd))
    point = Q[0], V[0], TAU[0]
    assert np.array_equal(back.jacobian("tau")(*point), fd.jacobian("tau")(*point))


def test_a_kernel_of_loops_can_be_pickled():
    large = rm.random_robot(1, bodies=70)
    q, v = rm.random_state(large, 0, (5,))
    bias = rm.compile(rm.bias_force, large)
    assert np.array_equal(pickle.loads(pickle.dumps(bias))(q, v), bias(q, v))


def test_a_kernel_of_a_lambda_is_pickled_by_its_graph():
    kernel = rm.compile(lambda robot, q: 3.0 * rm.center_of_mass(robot, q), ROBOT)
    other = pickle.loads(pickle.dumps(kernel))
    assert np.array_equal(other(Q), kernel(Q))
    with pytest.raises(rm.RemoraError, match="without its function"):
        other.jacobian("q")


def test_for_another_processor_the_code_is_made_anew(fd):
    kernel = Kernel(twice, [Signature("x", (3,))], "twice")
    state = kernel.__getstate__()
    state["made with"], state["_source"] = "something else", b"for another machine"
    other = Kernel.__new__(Kernel)
    other.__setstate__(state)
    assert np.array_equal(other(np.arange(3.0)), [0.0, 2.0, 4.0])


def test_pickled_code_of_an_equation_that_was_edited_is_made_anew(monkeypatch):
    """By its key: the pickle does not say what the equation was."""
    kernel = rm.compile(rm.center_of_mass, ROBOT)
    data = pickle.dumps(kernel)
    made = []
    monkeypatch.setattr(Kernel, "_begin", lambda self, key: made.append(key) or begin(self, key))
    assert np.array_equal(pickle.loads(data)(Q), kernel(Q))
    assert not made
    monkeypatch.setattr(digest_module, "source_digest", lambda *places: "edited")
    assert np.array_equal(pickle.loads(data)(Q), kernel(Q))
    assert made == [None]


def test_a_kernel_of_a_graph_can_be_pickled():
    kernel = Kernel.from_graph(Kernel(twice, [Signature("x", (3,))], "twice").graph, "twice")
    for _ in range(2):
        kernel = pickle.loads(pickle.dumps(kernel))
        assert np.array_equal(kernel(np.arange(3.0)), [0.0, 2.0, 4.0])


begin = Kernel._begin


def test_a_used_compiled_robot_can_be_copied_and_pickled(fast):
    expected = fast.forward_dynamics(Q, V, TAU)
    alone = fast.forward_dynamics(Q[0], V[0], TAU[0])
    for other in (copy.copy(fast), copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert np.array_equal(other.forward_dynamics(Q, V, TAU), expected)
        assert np.array_equal(other.forward_dynamics(Q[0], V[0], TAU[0]), alone)
        assert (other.robot, other.dtype, other.target) == (ROBOT, "float64", "cpu")
    method = pickle.loads(pickle.dumps(fast.forward_dynamics))
    assert np.array_equal(method(Q, V, TAU), expected)


def test_a_cuda_kernel_can_be_pickled():
    kernel = rm.compile(rm.mass_matrix, ROBOT, target="cuda")
    text = kernel.ptx()
    other = pickle.loads(pickle.dumps(kernel))
    assert isinstance(other, CudaKernel)
    assert other.ptx() == text
    assert copy.deepcopy(kernel) is kernel


def test_another_process_takes_it(fd, tmp_path):
    (tmp_path / "kernel").write_bytes(pickle.dumps((fd, Q, V, TAU)))
    program = (
        "import pickle, sys\n"
        f"fd, q, v, tau = pickle.load(open({str(tmp_path / 'kernel')!r}, 'rb'))\n"
        "sys.stdout.write(fd(q, v, tau).tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == fd(Q, V, TAU).tobytes().hex()


# Arguments in the wrong order ---------------------------------------------------------------------


def test_compile_says_what_it_takes():
    with pytest.raises(rm.RemoraError, match="takes a function first"):
        rm.compile(ROBOT, rm.mass_matrix)
    with pytest.raises(rm.RemoraError, match="the robot is missing"):
        rm.compile(rm.mass_matrix, Q)
    with pytest.raises(rm.RemoraError, match="takes a function first"):
        rm.compile("mass_matrix", ROBOT)


def test_rows_of_different_lengths_and_a_single_out_are_refused(fd):
    with pytest.raises(ShapeError, match="q of kernel forward_dynamics is no array"):
        fd([[1.0, 2.0], [3.0]], V[0], TAU[0])
    kernel = Kernel(lambda x: (x, 2.0 * x), [Signature("x", (3,))], "two")
    with pytest.raises(ShapeError, match="out must be 2 arrays, not int"):
        kernel(np.zeros(3), out=5)


ONE = ROBOT.bodies[1].name


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"foo": 1}, "no option of rm.compile named 'foo'; known: dtype, arguments"),
        ({"shapes": {"q": 3}}, r"shapes\['q'\] must be a tuple"),
        ({"shapes": {"q": (-3,)}}, r"shapes\['q'\] must be a tuple"),
        ({"shapes": {"nope": (3,)}}, "no argument to give the shape of named 'nope'"),
        ({"shapes": [3]}, "shapes must be a dictionary"),
        ({"fixed": [1]}, "fixed must be a dictionary"),
        ({"arguments": 5}, "arguments must be several names"),
        ({"arguments": ("q", "v", "tau"), "fixed": {"q": Q[0]}}, "'q' is both in arguments and"),
        ({"parameters": "mass"}, "parameters must be several names"),
        ({"parameters": ("mass", "mass")}, "'mass' and 'mass' are the same number twice"),
        ({"parameters": (f"{ONE}.mass", "mass")}, "are the same number twice"),
    ],
)
def test_wrong_options_of_compile_are_refused(options, text):
    with pytest.raises(rm.RemoraError, match=text):
        rm.compile(rm.forward_dynamics, ROBOT, **options)


@pytest.mark.parametrize(
    "function", [int, lambda: 1.0, lambda robot, *q: q], ids=["int", "none", "star"]
)
def test_functions_without_named_arguments_are_refused(function):
    with pytest.raises(rm.RemoraError, match=r"f\(robot, q\)"):
        rm.compile(function, ROBOT)
    with pytest.raises(rm.RemoraError, match=r"no option of rm\.compile named 'foo'"):
        rm.compile(ROBOT, foo=1)
