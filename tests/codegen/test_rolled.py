"""Loops over bodies against the straight line, NumPy and Pinocchio, and what they promise."""

import dataclasses
import platform
import time

import numpy as np
import pytest

import remora as rm
from benchmark_scripts import chain
from numeric import assert_close
from peers import pinocchio_model
from public_names import public
from remora.codegen.ir.graph import Signature
from remora.codegen.kernel import SMALLEST_CHUNK
from remora.codegen.llvm import host as cpu
from remora.codegen.tree_loops.item_classes import MOST_CLASSES, classed
from remora.dynamics.kernels import tree_recursions
from remora.dynamics.kernels.size_policy import LARGEST_STRAIGHT_LINE
from remora.dynamics.kernels.tree_recursions import RECURSIONS
from remora.errors import RemoraError
from trees import BASES, EVERY_KIND, Case

ARGUMENTS = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "vdot"),
    "bias_force": ("q", "v"),
    "mass_matrix": ("q",),
    "poses": ("q",),
    "twists": ("q", "v"),
    "accelerations": ("q", "v", "vdot"),
}


@pytest.fixture
def loops_always(monkeypatch):
    for name, row in RECURSIONS.items():
        monkeypatch.setitem(RECURSIONS, name, dataclasses.replace(row, straight=0))


@pytest.fixture
def loops_never(monkeypatch):
    for name, row in RECURSIONS.items():
        monkeypatch.setitem(RECURSIONS, name, dataclasses.replace(row, straight=10**6))


def is_rolled(kernel):
    return kernel._scratch > 0


def arguments(robot, names, rng, batch=(11,)):
    q, v = rm.random_state(robot, rng, batch)
    made = {
        "q": q, "v": v, "tau": rng.normal(size=v.shape), "vdot": rng.normal(size=v.shape),
        "wrenches": rng.normal(size=(*batch, len(robot.bodies), 6)),
    }  # fmt: skip
    return [made[name] for name in names]


def compare(name, robot, names, rng, rtol=1e-12):
    kernel = rm.compile(public(name), robot, arguments=names)
    assert is_rolled(kernel)
    given = arguments(robot, names, rng)
    expected = public(name)(robot, **dict(zip(names, given, strict=True)))
    size = np.abs(expected).max(initial=1e-300)
    assert_close(kernel(*given), expected, rtol=rtol, scale=size)
    return kernel, given


def test_the_table_says_which_functions():
    assert set(RECURSIONS) == set(ARGUMENTS)


@pytest.mark.parametrize("seed", range(len(BASES)))
def test_random_trees_of_every_kind_on_every_base(seed, loops_always):
    """With gravity; forces with wrenches too. Forward dynamics as far as the inertia allows."""
    c = Case(seed, largest=7)
    rng = np.random.default_rng(seed)
    for name, names in ARGUMENTS.items():
        solving = name == "forward_dynamics"
        compare(name, c.robot, names, rng, rtol=1e-11 if solving else 1e-12)
    compare("inverse_dynamics", c.robot, ("q", "v", "vdot", "wrenches"), rng)
    compare("forward_dynamics", c.robot, ("q", "v", "tau", "wrenches"), rng, rtol=1e-11)


def test_arguments_in_another_order(loops_always):
    robot = rm.random_robot(3, bodies=6)
    compare("forward_dynamics", robot, ("tau", "wrenches", "v", "q"), np.random.default_rng(0))


def followers(joints=20):
    """A tree in which every third joint follows an earlier one, on the same branch or another."""
    rng = np.random.default_rng(5)
    builder = rm.Builder("followers", gravity=(0.0, 0.0, -9.81))
    builder.body("body_0", 3.0, (0.1, 0.0, 0.2), (0.3, 0.4, 0.5))
    for k in range(1, joints):
        builder.body(f"body_{k}", 1.0 + 0.1 * k, (0.1, 0.02 * k, 0.0), (0.03, 0.04, 0.05))
        leader = int(rng.integers(1, k)) if k > 1 else 0
        while leader % 3 == 0 and leader:
            leader -= 1
        builder.joint(
            f"joint_{k}", "revolute", f"body_{int(rng.integers(max(0, k - 3), k))}", f"body_{k}",
            xyz=(0.3, 0.1, 0.0), axis=(0, k % 2, 1), rotor_inertia=0.01 * k,
            mimic=(f"joint_{leader}", 0.5 + 0.1 * k, 0.2) if k % 3 == 0 else None,
        )  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("name", [n for n in ARGUMENTS if n != "forward_dynamics"])
def test_joints_that_mimic_others(name, loops_always):
    robot = followers()
    kernel, given = compare(name, robot, ARGUMENTS[name], np.random.default_rng(0))
    whole = kernel(*given)
    assert np.array_equal(kernel(*(a[2] for a in given)), whole[2])
    assert np.array_equal(kernel(*(a[:3] for a in given)), whole[:3])
    if name == "mass_matrix":
        assert np.array_equal(whole, np.swapaxes(whole, -1, -2))


def test_articulated_bodies_refuse_joints_that_mimic_others(loops_always):
    robot = followers()
    with pytest.raises(RemoraError, match="does not support mimic joints"):
        rm.compile(rm.forward_dynamics, robot, fixed={"formulation": "articulated"})
    (q, v), tau = rm.random_state(robot, 1), np.ones(robot.nv)
    expected = rm.forward_dynamics(robot, q, v, tau, formulation="composite")
    assert_close(rm.compile(rm.forward_dynamics, robot)(q, v, tau), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_same_bits_alone_in_any_batch_on_any_threads(name, loops_always):
    """Batches of 1 to 17 states leave over any number of lanes."""
    robot = rm.random_robot(8, bodies=9, gravity=True)
    rng = np.random.default_rng(0)
    kernel = rm.compile(public(name), robot)
    n = 2 * SMALLEST_CHUNK + 3
    given = arguments(robot, ARGUMENTS[name], rng, (n,))
    whole = kernel(*given)
    for k in (0, 1, 7, 8, n - 1):
        assert np.array_equal(kernel(*(a[k] for a in given)), whole[k])
    for size in range(1, 18):
        assert np.array_equal(kernel(*(a[5 : 5 + size] for a in given)), whole[5 : 5 + size])
    for threads in (2, 3):
        assert np.array_equal(kernel(*given, threads=threads), whole)
    out = np.full_like(whole, np.nan)
    assert kernel(*given, out=out) is out
    assert np.array_equal(out, whole)
    if len(given) > 1:  # one argument for all states
        one = kernel(given[0], *(a[0] for a in given[1:]))
        assert np.array_equal(one[3], kernel(given[0][3], *(a[0] for a in given[1:])))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="processors of x86-64")
@pytest.mark.parametrize(("cpu_name", "bytes_"), [("haswell", 32), ("nehalem", 16)])
def test_older_processors(cpu_name, bytes_, loops_always, monkeypatch):
    """Fewer lanes, and no fused products."""
    robot = rm.random_robot(8, bodies=9, gravity=True)
    other = cpu.Host(cpu.host().triple, cpu_name, "", bytes_, fma=False)
    monkeypatch.setattr(cpu, "host", lambda: other)
    for name in ("forward_dynamics", "mass_matrix"):
        rtol = 1e-11 if name == "forward_dynamics" else 1e-12
        kernel, given = compare(name, robot, ARGUMENTS[name], np.random.default_rng(2), rtol)
        assert np.array_equal(kernel(*(a[4] for a in given)), kernel(*given)[4])


def test_a_matrix_is_symmetric_bit_by_bit(loops_always):
    for bodies in (2, 5, 9, 20):
        robot = rm.random_robot(bodies, bodies=bodies)
        q, _ = rm.random_state(robot, 0, (3,))
        H = rm.compile(rm.mass_matrix, robot)(q)
        assert np.array_equal(H, np.swapaxes(H, -1, -2))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_single_precision(name, loops_always):
    robot = rm.random_robot(4, bodies=8, kinds=("revolute", "prismatic"), gravity=True)
    kernel = rm.compile(public(name), robot, dtype="float32")
    given = [
        a.astype(np.float32) for a in arguments(robot, ARGUMENTS[name], np.random.default_rng(1))
    ]
    result = kernel(*given)
    assert result.dtype == np.float32
    exact = [a.astype(float) for a in given]
    exact[0] = rm.normalize(robot, given[0])
    expected = public(name)(robot, *exact)
    # forward dynamics magnifies float32's 6e-8 by the inertia's condition
    rtol = 1e-2 if name == "forward_dynamics" else 1e-5
    assert_close(result, expected, rtol=rtol, scale=np.abs(expected).max())
    assert np.array_equal(kernel(*(a[3] for a in given)), result[3])


def test_small_and_odd_robots(loops_always):
    """One body, no freedoms at all, nothing but ends."""
    one = rm.Builder().body("a", mass=1, inertia=(1, 1, 1)).build(base="free")
    compare("forward_dynamics", one, ("q", "v", "tau"), np.random.default_rng(0))
    compare("mass_matrix", one, ("q",), np.random.default_rng(0))
    none = rm.Builder().body("a", mass=1, inertia=(1, 1, 1)).build(base="fixed")
    empty = np.zeros(0)
    fast = rm.compile(none)
    assert fast.forward_dynamics(empty, empty, empty).shape == (0,)
    assert fast.mass_matrix(empty).shape == (0, 0)
    assert_close(fast.poses(empty), rm.poses(none, empty))
    star = rm.Builder().body("hub", 5.0, (0, 0, 0), (1, 1, 1))
    for k in range(9):
        star.body(f"arm_{k}", 1.0, (0.1, 0.2, 0.3), (0.1, 0.1, 0.1))
        kind, axis = (("revolute", (0, 0, 1)), ("fixed", None), ("spherical", None))[k % 3]
        star.joint(f"j{k}", kind, "hub", f"arm_{k}", axis=axis)
    robot = star.build(base="free")
    compare("forward_dynamics", robot, ("q", "v", "tau"), np.random.default_rng(0))
    compare("mass_matrix", robot, ("q",), np.random.default_rng(0))


def test_the_straight_line_gives_the_same(monkeypatch):
    robot = rm.random_robot(EVERY_KIND, bodies=10, gravity=True)
    for name, row in RECURSIONS.items():
        monkeypatch.setitem(RECURSIONS, name, dataclasses.replace(row, straight=10**6))
    straight = {name: rm.compile(public(name), robot) for name in ARGUMENTS}
    for name, row in RECURSIONS.items():
        monkeypatch.setitem(RECURSIONS, name, dataclasses.replace(row, straight=0))
    for name, names in ARGUMENTS.items():
        given = arguments(robot, names, np.random.default_rng(4))
        kernel = rm.compile(public(name), robot)
        assert is_rolled(kernel)
        assert not is_rolled(straight[name])
        expected = straight[name](*given)
        rtol = 1e-11 if name == "forward_dynamics" else 1e-12
        assert_close(kernel(*given), expected, rtol=rtol, scale=np.abs(expected).max())


class TestTheSwitch:
    def test_is_by_the_number_of_bodies(self, monkeypatch):
        row = dataclasses.replace(RECURSIONS["twists"], straight=10)
        monkeypatch.setitem(RECURSIONS, "twists", row)
        assert not is_rolled(rm.compile(rm.twists, rm.random_robot(0, bodies=5)))
        assert is_rolled(rm.compile(rm.twists, rm.random_robot(0, bodies=6)))
        assert not is_rolled(rm.compile(rm.twists, chain(9)))  # and a base: ten, whose numbers fold
        assert is_rolled(rm.compile(rm.twists, chain(10)))

    def test_what_cannot_be_rolled_stays_straight(self, loops_always):
        robot = rm.random_robot(1, bodies=4)
        twice = rm.compile(rm.inverse_dynamics, robot, shapes={"vdot": (2, robot.nv)})
        assert not is_rolled(twice)
        assert twice.outputs[0].shape == (2, robot.nv)
        assert not is_rolled(rm.compile(rm.inverse_dynamics, robot, parameters=["mass"]))
        other = {"formulation": "composite"}
        assert not is_rolled(rm.compile(rm.forward_dynamics, robot, fixed=other))
        usual = {"formulation": "articulated"}
        assert is_rolled(rm.compile(rm.forward_dynamics, robot, fixed=usual))
        assert not is_rolled(rm.compile(rm.jacobian, robot, fixed={"frame": 3}))

        def own(robot, q):
            return rm.poses(robot, q)[..., -1, :]

        assert not is_rolled(rm.compile(own, robot))

    def test_all_functions_of_a_large_robot(self):
        robot = chain(60)
        fast = rm.compile(robot)
        q, v = rm.random_state(robot, 0, (9,))
        tau = np.random.default_rng(0).normal(size=v.shape)
        back = fast.inverse_dynamics(q, v, fast.forward_dynamics(q, v, tau))
        assert_close(back, tau, rtol=1e-8)  # through the inertia of a long chain and back
        wrenches = np.zeros((9, 61, 6))
        assert_close(fast.inverse_dynamics(q, v, tau, wrenches), fast.inverse_dynamics(q, v, tau))

    def test_what_is_made_of_a_straight_line(self, loops_always, monkeypatch):
        robot = rm.random_robot(1, bodies=4, kinds=("revolute",))
        kernel = rm.compile(rm.inverse_dynamics, robot)
        q, v = rm.random_state(robot, 0)
        H = kernel.jacobian("vdot")(q, v, v)
        assert_close(H, rm.mass_matrix(robot, q))
        assert len(kernel.graph.nodes) > 100
        monkeypatch.setattr("remora.dynamics.kernels.size_policy.LARGEST_STRAIGHT_LINE", 3)
        large = rm.compile(rm.inverse_dynamics, robot)
        with pytest.raises(RemoraError, match="compiled as loops over its 4 bodies"):
            large.save_c("nowhere")


class TestClasses:
    def plan(self, robot, name="forward_dynamics", **options):
        sizes = {"q": robot.nq, "v": robot.nv, "tau": robot.nv, "vdot": robot.nv}
        inputs = [Signature(n, (sizes[n],)) for n in ARGUMENTS[name]]
        return classed(tree_recursions.loops(robot, name, inputs), **options)

    def test_a_chain_of_equal_modules_costs_what_the_straight_line_costs(self, loops_never):
        """Per body, operations of the steps and of the straight line; few numbers are stored."""
        plan = self.plan(chain(20))
        assert len(plan.classes) == 4  # the base, two modules by turns, the end
        inner = max(plan.classes, key=lambda own: len(own.members))
        steps = sum(sum(g.count().values()) for g in inner.steps)
        counts = [
            sum(rm.compile(rm.forward_dynamics, chain(n)).graph.count().values()) for n in (8, 10)
        ]
        assert steps <= 1.05 * (counts[1] - counts[0]) / 2
        # twist, sine and cosine; of K the entry along the axis is 1; k
        assert inner.size == 6 + 2 + 5 + 1

    def test_many_patterns_are_merged(self):
        robot = rm.random_robot(0, bodies=120)
        plan = self.plan(robot)
        assert len(plan.classes) <= MOST_CLASSES
        assert sorted(i for own in plan.classes for i in own.members) == list(range(120))
        few = self.plan(robot, most=1)  # a class a sort at least
        assert len({own.sort for own in few.classes}) == len(few.classes)


class TestLargeRobots:
    def test_against_pinocchio(self):
        pin = pytest.importorskip("pinocchio")
        kinds = (*("revolute", "prismatic", "helical") * 2, "spherical")
        robot = rm.random_robot(
            7, bodies=LARGEST_STRAIGHT_LINE + 4, kinds=kinds, branching=0.5, gravity=True
        )
        assert robot.nv < 300  # Pinocchio's data hold four arrays of nv³ numbers: 0.9 GB for 300
        model, _, _ = pinocchio_model(robot)
        data = pin.Data(model)  # createData() makes them twice
        layout = rm.layouts.pinocchio(robot, model)
        rng = np.random.default_rng(0)
        q, v, tau, vdot = arguments(robot, ("q", "v", "tau", "vdot"), rng, ())
        qp, vp = layout.q_to(q), layout.v_to(q, v)
        fast = rm.compile(robot)

        found = fast.inverse_dynamics(q, v, vdot)
        expected = pin.rnea(model, data, qp, vp, layout.vdot_to(q, v, vdot))
        assert_close(layout.tau_to(q, found), expected)

        found = fast.forward_dynamics(q, v, tau)
        expected = pin.aba(model, data, qp, vp, layout.tau_to(q, tau))
        # what 200 bodies make of rounding: the two libraries' own FD∘ID miss by as much
        size = np.abs(expected).max()
        assert_close(layout.vdot_to(q, v, found), expected, rtol=1e-10, scale=size)

        H = pin.crba(model, data, qp)
        H = np.triu(H) + np.triu(H, 1).T
        B = np.stack([layout.v_to(q, e) for e in np.eye(robot.nv)], axis=-1)
        assert_close(fast.mass_matrix(q), B.T @ H @ B)

    def test_a_thousand_bodies_compile_in_seconds(self, tmp_path, monkeypatch):
        monkeypatch.setenv("REMORA_CACHE", str(tmp_path))
        robot = chain(999)
        start = time.process_time()
        kernel = rm.compile(rm.forward_dynamics, robot)
        assert time.process_time() - start < 10.0  # about half a second
        q, v = rm.random_state(robot, 0)
        tau = np.zeros(robot.nv)
        expected = rm.forward_dynamics(robot, q, v, tau)
        assert_close(kernel(q, v, tau), expected, rtol=1e-9, scale=np.abs(expected).max())
        entries = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
        again = rm.compile(rm.forward_dynamics, robot)  # from the cache, without tracing
        assert entries == {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
        assert len(entries) == 2  # its source and its code
        assert np.array_equal(again(q, v, tau), kernel(q, v, tau))
