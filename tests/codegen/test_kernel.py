"""Kernels against the NumPy reference, and the promises they make."""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import remora as rm
from kernels import HEAVY, SOLVING, arguments_for
from numeric import assert_close
from public_names import public
from remora.codegen import kernel as kernel_module
from remora.codegen.kernel import SMALLEST_CHUNK
from remora.codegen.llvm import host, thread_team
from remora.dynamics.kernels.compiled import FUNCTIONS, CompiledRobot, compile_function
from remora.errors import RemoraError
from trees import EVERY_KIND, Case

ROBOT = rm.load("servicer")
Q, V = rm.random_state(ROBOT, 0, (37,))
TAU = np.random.default_rng(1).normal(size=(37, ROBOT.nv))
FD = rm.forward_dynamics, ROBOT


@pytest.fixture(scope="module")
def fd():
    return rm.compile(rm.forward_dynamics, ROBOT)


@pytest.mark.timeout(400)  # LLVM takes half a minute of processor time for the largest
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_the_library(name):
    """On a tree with every kind of joint (fewer where it takes long), to 1e-13."""
    rng = np.random.default_rng(3)
    robot = rm.random_robot(*((5, 5) if name in HEAVY else (EVERY_KIND, 10)))
    fast = rm.compile(robot)
    for batch in ((), (5,)):
        arguments = arguments_for(name, robot, rng, batch)
        got = getattr(fast, name)(*arguments)
        expected = public(name)(robot, *arguments)
        parts = (
            zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
        )
        for a, b in parts:
            # functions that solve with the inertia magnify rounding by its condition
            rtol = 1e-11 if name in SOLVING else 1e-13
            assert_close(a, b, rtol=rtol)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed):
    c = Case(seed, largest=10)
    for name, third in (("forward_dynamics", c.tau), ("inverse_dynamics", c.vdot)):
        function = public(name)
        expected = function(*c.state, third)
        size = np.abs(expected).max(initial=1.0)
        kernel = rm.compile(function, c.robot)
        if name == "inverse_dynamics":
            assert_close(kernel(c.q, c.v, third), expected, rtol=1e-13, scale=size)
        else:
            # the reference itself is good to what FD∘ID leaves
            back = function(*c.state, rm.inverse_dynamics(*c.state, expected))
            noise = np.abs(back - expected).max(initial=0.0) / size
            assert_close(kernel(c.q, c.v, third), expected, rtol=max(1e-13, 10 * noise), scale=size)
        single = rm.compile(function, c.robot, dtype="float32")
        arrays = [np.asarray(a, dtype=np.float32) for a in (c.q, c.v, third)]
        exact = function(
            c.robot, rm.normalize(c.robot, arrays[0]), *(a.astype(float) for a in arrays[1:])
        )
        if name == "inverse_dynamics":
            assert_close(single(*arrays), exact, rtol=1e-5, scale=np.abs(exact).max(initial=1.0))


def test_single_precision_forward_dynamics():
    single = rm.compile(rm.forward_dynamics, ROBOT, dtype="float32")
    q, v, tau = (a.astype(np.float32) for a in (Q, V, TAU))
    expected = rm.forward_dynamics(
        ROBOT, rm.normalize(ROBOT, q), v.astype(float), tau.astype(float)
    )
    result = single(q, v, tau)
    assert result.dtype == np.float32
    # H of the servicer has a condition of about 1e3 in float32's 6e-8
    assert_close(result, expected, rtol=1e-4)


class TestSameBits:
    """A result depends on nothing but its own arguments."""

    def test_alone_in_batches_at_any_place_and_on_any_number_of_threads(self, fd):
        rng = np.random.default_rng(0)
        n = 3 * SMALLEST_CHUNK + 5  # enough for three threads
        q, v = rm.random_state(ROBOT, rng, (n,))
        tau = rng.normal(size=(n, ROBOT.nv))
        whole = fd(q, v, tau)
        for k in range(0, n, 37):
            assert np.array_equal(fd(q[k], v[k], tau[k]), whole[k])
        for start, stop in ((0, 1), (3, 12), (5, 6), (n - 9, n), (1, n)):
            assert np.array_equal(
                fd(q[start:stop], v[start:stop], tau[start:stop]), whole[start:stop]
            )
        for threads in (2, 3, 0):
            assert np.array_equal(fd(q, v, tau, threads=threads), whole)
        assert np.array_equal(fd(q, v[0], tau[0], threads=3), fd(q, v[0], tau[0]))
        order = rng.permutation(n)
        assert np.array_equal(fd(q[order], v[order], tau[order]), whole[order])
        assert np.array_equal(fd(q, v, tau), whole)

    def test_any_batch_shape_and_stride(self, fd):
        whole = fd(Q, V, TAU)
        shaped = fd(Q[:36].reshape(4, 9, -1), V[:36].reshape(4, 9, -1), TAU[:36].reshape(4, 9, -1))
        assert np.array_equal(shaped.reshape(36, -1), whole[:36])
        wide = np.zeros((37, 30))
        wide[:, ::2] = Q
        assert np.array_equal(fd(wide[:, ::2], np.asfortranarray(V), TAU), whole)
        assert np.array_equal(fd(Q[::-1], V[::-1], TAU[::-1]), whole[::-1])
        assert np.array_equal(fd(Q[::3], V[::3], TAU[::3]), whole[::3])
        one = fd(Q[0], V, TAU[0])
        assert np.array_equal(one[5], fd(Q[0], V[5], TAU[0]))
        grid = fd(Q[:4, None], V[None, :3], TAU[0])
        assert grid.shape == (4, 3, ROBOT.nv)
        assert np.array_equal(grid[2, 1], fd(Q[2], V[1], TAU[0]))
        assert fd(Q[:0], V[:0], TAU[:0]).shape == (0, ROBOT.nv)

    def test_read_only_and_unaligned_arguments(self, fd):
        whole = fd(Q, V, TAU)
        locked = Q.copy()
        locked.flags.writeable = False
        assert np.array_equal(fd(locked, V, TAU), whole)
        raw = np.zeros(Q.nbytes + 1, dtype=np.uint8)
        unaligned = raw[1:].view(float).reshape(Q.shape)
        unaligned[:] = Q
        assert np.array_equal(fd(unaligned, V, TAU), whole)
        assert np.array_equal(fd(unaligned[3], V[3], TAU[3]), whole[3])


def test_a_large_batch_is_shared_by_the_threads(fd, monkeypatch):
    """A thread has enough states to pay for waking it."""
    runs = []
    real = thread_team.run_shared
    monkeypatch.setattr(
        thread_team, "run_shared", lambda *a: (runs.append((a[2], a[3])), real(*a))[1]
    )
    n = 4 * SMALLEST_CHUNK
    q, v, tau = (np.resize(a, (n, a.shape[1])) for a in (Q, V, TAU))
    fd(q, v, tau, threads=4)
    fd(q[: n - 1], v[: n - 1], tau[: n - 1], threads=4)
    fd(q, v, tau, threads=2)
    assert runs == [(n, 4), (n - 1, 3), (n, 2)]
    fd(q[:SMALLEST_CHUNK], v[:SMALLEST_CHUNK], tau[:SMALLEST_CHUNK], threads=4)
    fd(q, v, tau)
    assert len(runs) == 3


class TestCalls:
    def test_by_name_with_lists_and_integers(self, fd):
        zero = [0] * ROBOT.nv
        expected = rm.forward_dynamics(ROBOT, Q[0], np.zeros(13), np.zeros(13))
        assert_close(fd(tau=zero, q=Q[0].tolist(), v=zero), expected)
        assert_close(fd(Q[0], zero, tau=zero), expected)

    def test_out(self, fd):
        out = np.empty((37, 13))
        assert fd(Q, V, TAU, out=out) is out
        assert np.array_equal(out, fd(Q, V, TAU))
        single = np.empty(13)
        assert fd(Q[0], V[0], TAU[0], out=single) is single
        for bad in (
            np.empty((36, 13)),
            np.empty((37, 13), np.float32),
            np.empty((13, 37)).T,
            [1.0],
        ):
            with pytest.raises(RemoraError, match="out must be"):
                fd(Q, V, TAU, out=bad)

    def test_several_outputs(self):
        kernel = rm.compile(rm.dynamics.floating_inverse_dynamics, ROBOT)
        tau, base = kernel(Q, V, TAU[:, 6:])
        expected = rm.dynamics.floating_inverse_dynamics(ROBOT, Q, V, TAU[:, 6:])
        assert_close(tau, expected[0])
        assert_close(base, expected[1])
        given = (np.empty((37, 7)), np.empty((37, 6)))
        assert kernel(Q, V, TAU[:, 6:], out=given)[0] is given[0]

    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda q, v, tau: (q[:-1], v, tau), r"q of kernel forward_dynamics must have shape"),
            (lambda q, v, tau: (q, v, 3.0), r"tau .* must have shape \(..., 13\), not \(\)"),
            (lambda q, v, tau: (q + 0j, v, tau), "q .* is complex128"),
            (lambda q, v, tau: (q.astype(str), v, tau), "q .* is <U"),
            (lambda q, v, tau: (q.astype(object), v, tau), "q .* is object"),
            (lambda q, v, tau: (q.astype(np.longdouble), v, tau), "q .* is float128"),
            (lambda q, v, tau: (q, v), "takes q, v, tau; tau missing"),
            (lambda q, v, tau: (q, v, tau, tau), "4 were given"),
            (lambda q, v, tau: (np.stack([q, q]), np.stack([v] * 3), tau), "do not broadcast"),
        ],
    )
    def test_wrong_arguments_are_refused(self, fd, spoil, reason):
        with pytest.raises(RemoraError, match=reason):
            fd(*spoil(Q[0], V[0], TAU[0]))

    def test_a_kernel_of_single_precision_takes_no_double(self):
        single = rm.compile(rm.forward_dynamics, ROBOT, dtype="float32")
        with pytest.raises(RemoraError, match="q of kernel forward_dynamics is float64"):
            single(Q[0], V[0], TAU[0])
        with pytest.raises(RemoraError, match="float64, float32"):
            rm.compile(rm.forward_dynamics, ROBOT, dtype="float16")

    @pytest.mark.parametrize("threads", [-1, 1.5, None, "two"])
    def test_threads_that_are_no_number_are_refused(self, fd, threads):
        with pytest.raises(RemoraError, match="threads must be"):
            fd(Q, V, TAU, threads=threads)

    def test_a_kernel_of_a_graph_has_no_function(self, fd):
        again = rm.Kernel.from_graph(fd.graph, "again")
        assert np.array_equal(again(Q, V, TAU), fd(Q, V, TAU))
        with pytest.raises(RemoraError, match="made of a graph"):
            again.jacobian("tau")

    def test_unknown_names(self, fd):
        with pytest.raises(RemoraError, match="no argument of kernel forward_dynamics named 'x'"):
            fd(Q[0], V[0], x=TAU[0])
        with pytest.raises(RemoraError, match="known: q, v, tau"):
            fd.jacobian("x")

    def test_repr_shows_the_signature(self, fd):
        assert "forward_dynamics(q (..., 15), v (..., 13), tau (..., 13))" in repr(fd)


def test_the_shortest_call_outlives_its_kernel():
    alone = rm.compile(rm.center_of_mass, ROBOT).fast
    gc.collect()
    assert_close(alone(Q[0]), rm.center_of_mass(ROBOT, Q[0]))
    assert alone(Q) is None
    assert alone(Q[0].tolist()) is None
    assert alone(Q[0], V[0]) is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that there are threads is meant
def test_threads_after_a_fork():
    fd = rm.compile(rm.forward_dynamics, ROBOT)
    count = 2 * SMALLEST_CHUNK // len(Q) + 1  # so that two threads really share it
    q, v, tau = (np.tile(a, (count, 1)) for a in (Q, V, TAU))
    expected = fd(q, v, tau, threads=2)
    child = os.fork()
    if child == 0:
        same = np.array_equal(fd(q, v, tau, threads=2), expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestPieces:
    """Code for one state and code for lanes: compiled when needed, of the same bits."""

    @pytest.fixture
    def compiled(self, monkeypatch, tmp_path):
        """Return the IR of what is compiled from now on, with an empty cache."""
        monkeypatch.setenv("REMORA_CACHE", str(tmp_path))
        texts, original = [], host.to_object
        monkeypatch.setattr(host, "to_object", lambda *a: texts.append(a[0]) or original(*a))
        return texts

    def test_each_is_compiled_when_it_is_needed(self, fd, compiled, monkeypatch):
        monkeypatch.setattr(kernel_module, "FEW_STATES", 2 * len(Q))
        expected = fd(Q, V, TAU)
        kernel = compile_function(*FD)
        assert not compiled
        assert kernel.fast is None
        for _ in range(2):
            assert np.array_equal(kernel(Q, V, TAU), expected)
            assert len(compiled) == 1  # few states: one after the other
        assert "define ptr @fast" in compiled[0]
        assert np.array_equal(kernel(Q[3], V[3], TAU[3]), expected[3])
        assert np.array_equal(kernel.fast(Q[3], V[3], TAU[3]), expected[3])
        assert len(compiled) == 1
        assert np.array_equal(kernel(Q, V, TAU), expected)
        assert len(compiled) == 2  # many states: on lanes
        assert "define ptr @fast" not in compiled[1]
        for again in (pickle.loads(pickle.dumps(kernel)), compile_function(*FD)):
            assert np.array_equal(again(Q, V, TAU), expected)
            assert np.array_equal(again(Q[3], V[3], TAU[3]), expected[3])
        assert len(compiled) == 2

    def test_a_compiled_function_is_ready(self, compiled):
        kernel = rm.compile(rm.center_of_mass, ROBOT)
        assert len(compiled) == 2
        kernel(Q), kernel(Q[0])
        assert len(compiled) == 2
        assert kernel.fast(Q[0]) is not None
        assert len(kernel.jacobian("q")(Q)) == len(Q)
        assert len(compiled) == 4

    def test_threads_share_lanes(self, compiled):
        q = np.tile(Q, (2 * SMALLEST_CHUNK // len(Q) + 1, 1))
        kernel = compile_function(rm.center_of_mass, ROBOT)
        found = kernel(q, threads=2)
        assert np.array_equal(kernel(q[0]), found[0])  # lanes can also compute one state
        own = [text for text in compiled if "@kernel" in text or "@alone" in text]  # not the team
        assert ["define void @kernel" in text for text in own] == [True]

    def test_a_row_replaced_between_the_pieces_changes_nothing(self, compiled, monkeypatch):
        """The second piece is made of the graph that was traced for the first."""
        kernel = compile_function(*FD)
        alone = kernel(Q[0], V[0], TAU[0])
        again = compile_function(*FD)  # its graph is from the cache
        monkeypatch.setitem(
            rm.dynamics.FORMULATIONS, "articulated", rm.dynamics.FORMULATIONS["composite"]
        )
        for own in (kernel, again):
            assert np.array_equal(own(Q[:1], V[:1], TAU[:1], threads=1)[0], alone)
            assert np.array_equal(own.ready()(Q, V, TAU)[0], alone)

    def test_a_method_of_a_compiled_robot(self, compiled):
        fast = CompiledRobot(ROBOT)
        many = fast.center_of_mass(Q)
        assert np.array_equal(fast.center_of_mass(Q[0]), many[0])
        assert np.array_equal(fast.center_of_mass(Q[0]), many[0])
        assert len(compiled) == 1


class TestCompile:
    def test_compiled_robot_is_the_library(self):
        fast = rm.compile(ROBOT)
        w = np.ones((8, 6))
        assert_close(fast.forward_dynamics(Q, V, TAU, w), rm.forward_dynamics(ROBOT, Q, V, TAU, w))
        assert_close(
            fast.forward_dynamics(Q, V, TAU, wrenches=w, formulation="newton_euler"),
            rm.forward_dynamics(ROBOT, Q, V, TAU, w, "newton_euler"),
        )
        assert_close(fast.jacobian(Q, "tool"), rm.jacobian(ROBOT, Q, "tool"))
        point = np.array([0.1, 0.2, 0.3])
        assert_close(fast.jacobian(Q, "tool", point), rm.jacobian(ROBOT, Q, "tool", point))
        assert_close(fast.jacobian(Q[0], "camera"), rm.jacobian(ROBOT, Q[0], "camera"))
        assert "jacobian" in repr(fast)
        assert "poses" in dir(fast)
        with pytest.raises(RemoraError, match="no function to compile named 'fly'"):
            fast.fly(Q)
        with pytest.raises(RemoraError, match="forward_dynamics"):
            fast.forward_dynamics(Q)

    def test_functions_of_ones_own(self):
        def reach(robot, q, goal):
            x = rm.frame_pose(robot, q, "tool")
            return rm.algebra.pose.translation(x) - goal

        kernel = rm.compile(reach, ROBOT, shapes={"goal": (3,)})
        goal = np.array([1.0, 2.0, 3.0])
        assert_close(kernel(Q, goal), reach(ROBOT, Q, goal), rtol=1e-13)
        with pytest.raises(
            RemoraError, match=r"the shape of the argument 'goal' of reach is missing"
        ):
            rm.compile(reach, ROBOT)

    def test_fixed_parameters(self):
        kernel = rm.compile(rm.jacobian, ROBOT, fixed={"frame": "tool"})
        assert_close(kernel(Q), rm.jacobian(ROBOT, Q, "tool"), rtol=1e-13)
        with pytest.raises(RemoraError, match="needs frame"):
            rm.compile(rm.jacobian, ROBOT)
        with pytest.raises(RemoraError, match="no parameter of jacobian named 'target'"):
            rm.compile(rm.jacobian, ROBOT, fixed={"target": "tool"})
        with pytest.raises(RemoraError, match="no body or frame named 'nobody'"):
            rm.compile(rm.jacobian, ROBOT, fixed={"frame": "nobody"})
        with pytest.raises(RemoraError, match="the robot is missing"):
            rm.compile(rm.jacobian)
        with pytest.raises(RemoraError, match="no target named 'abacus'"):
            rm.compile(rm.poses, ROBOT, target="abacus")

    def test_numbers_of_the_robot_as_arguments(self):
        names = ["mass", "com", "inertia", "placement", "flange.mass", "elbow_pitch.placement"]
        kernel = rm.compile(rm.inverse_dynamics, ROBOT, parameters=names[:4])
        numbers = [
            *(np.array([getattr(b, n) for b in ROBOT.bodies]) for n in ("mass", "com", "inertia")),
            np.array([j.placement for j in ROBOT.joints]),
        ]
        expected = rm.inverse_dynamics(ROBOT, Q, V, TAU)
        assert_close(kernel(Q, V, TAU, *numbers), expected, rtol=1e-13)
        # dispersed masses: every state its own
        rng = np.random.default_rng(0)
        masses = numbers[0] * rng.uniform(0.9, 1.1, size=(37, 8))
        many = kernel(Q, V, TAU, masses, *numbers[1:])
        other = ROBOT
        for body, mass in zip(ROBOT.bodies, masses[11], strict=True):
            other = other.replace_body(body.name, mass=np.asarray(mass))
        assert_close(many[11], rm.inverse_dynamics(other, Q[11], V[11], TAU[11]), rtol=1e-13)
        one = rm.compile(rm.mass_matrix, ROBOT, parameters=names[4:])
        x = ROBOT.joints["elbow_pitch"].placement
        heavy = ROBOT.replace_body("flange", mass=np.asarray(9.0))
        assert_close(one(Q, np.asarray(9.0), x), rm.mass_matrix(heavy, Q), rtol=1e-13)
        with pytest.raises(RemoraError, match="no parameter named 'weight'"):
            rm.compile(rm.mass_matrix, ROBOT, parameters=["weight"])

    def test_derivatives_of_anything(self, fd):
        """∂v̇/∂τ is H⁻¹; ∂v̇/∂v by differences; the energy's by v is the momentum H v."""
        H = rm.mass_matrix(ROBOT, Q)
        assert_close(
            fd.jacobian("tau")(Q, V, TAU) @ H, np.broadcast_to(np.eye(13), H.shape), rtol=1e-11
        )
        energy = rm.compile(rm.kinetic_energy, ROBOT)
        gradient = energy.jacobian("v")(Q, V)
        assert_close(gradient, np.einsum("bij,bj->bi", H, V), rtol=1e-12)
        h = 1e-6
        by_v = fd.jacobian("v")(Q[0], V[0], TAU[0])
        for k in range(0, 13, 4):
            step = h * np.eye(13)[k]
            numeric = (fd(Q[0], V[0] + step, TAU[0]) - fd(Q[0], V[0] - step, TAU[0])) / (2 * h)
            assert_close(by_v[:, k], numeric, rtol=1e-7)  # central differences

    def test_a_robot_without_freedoms(self):
        robot = rm.Builder().body("a", mass=1, inertia=(1, 1, 1)).build(base="fixed")
        fast = rm.compile(robot)
        empty = np.zeros(0)
        assert fast.forward_dynamics(empty, empty, empty).shape == (0,)
        assert_close(fast.poses(empty), rm.poses(robot, empty))


CROWDED = """
import mmap
import remora as rm

robot = rm.random_robot(1, bodies=12, kinds=("revolute",))
kept = [rm.compile(rm.forward_dynamics, robot)]
for _ in range(12):
    holes = [mmap.mmap(-1, 16 << 10) for _ in range(40)]
    kept.append(mmap.mmap(-1, 3 << 30))
    for hole in holes[::2]:
        hole.close()
    kept.append(holes[1::2])
    kept.append(rm.compile(rm.forward_dynamics, robot))
print("loaded")
"""


def test_code_can_be_loaded_into_a_crowded_address_space():
    """Small holes and 3 GiB blocks by turns: code and constants must still stand together."""
    done = subprocess.run(
        [sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "loaded", done.stderr[-500:]


def test_other_shapes_are_other_kernels():
    """Also in the cache: a kernel for two forces at once is not the usual one."""
    twice = rm.compile(rm.forward_dynamics, ROBOT, shapes={"tau": (2, ROBOT.nv)})
    assert twice.outputs[0].shape == (2, ROBOT.nv)
    assert rm.compile(rm.forward_dynamics, ROBOT).outputs[0].shape == (ROBOT.nv,)


def test_arguments_that_are_missing_or_doubled():
    with pytest.raises(RemoraError, match="vdot missing"):
        rm.compile(rm.inverse_dynamics, ROBOT, arguments=("q", "v"))
    with pytest.raises(RemoraError, match="named twice"):
        rm.compile(rm.inverse_dynamics, ROBOT, arguments=("q", "v", "vdot", "v"))


def test_derivative_of_a_function_that_returns_one_array_in_a_tuple():
    kernel = rm.compile(lambda robot, q: (q * q,), ROBOT)
    q = np.arange(15.0)
    assert_close(kernel.jacobian("q")(q), np.diag(2.0 * q))


def test_type_checkers_know_every_function_of_a_compiled_robot():
    assert list(CompiledRobot.__annotations__) == list(FUNCTIONS)


def test_hasattr_of_a_compiled_robot_is_false_for_what_it_does_not_have():
    fast = rm.compile(rm.load("servicer"))
    assert hasattr(fast, "forward_dynamics")
    assert not hasattr(fast, "fly")
