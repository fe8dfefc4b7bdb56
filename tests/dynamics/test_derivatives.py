"""Derivatives of dynamics: against CasADi's of the equations, Pinocchio, and identities."""

import casadi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import remora as rm
from numeric import assert_close
from peers import PINOCCHIO_KINDS, pinocchio_model
from remora.algebra import linear, pose, vector
from remora.algebra.array_ops import asarray
from remora.errors import RemoraError
from remora.model import joints
from trees import BASES, Case, relative_error

BOTH = {
    "inverse": (rm.inverse_dynamics, rm.dynamics.inverse_dynamics_derivatives),
    "forward": (rm.forward_dynamics, rm.dynamics.forward_dynamics_derivatives),
}


def symbols(name, n):
    symbol = casadi.SX.sym(name, n)
    return symbol, asarray(symbol).reshape(-1)


def by_casadi(function, robot, q, v, x, wrenches=None):
    """∂/∂dq, ∂/∂v and ∂/∂x of function(robot, q ⊕ dq, v, x, wrenches), of the traced equations."""
    n = robot.nv
    if n == 0:
        return [np.zeros((0, 0))] * 3
    (D, d), (V, vs), (X, xs) = (symbols(name, n) for name in "dvx")
    y = function(robot, rm.integrate(robot, q, d), vs, xs, wrenches)
    y = casadi.vertcat(*y.tolist())
    f = casadi.Function("f", [D, V, X], [casadi.jacobian(y, s) for s in (D, V, X)])
    return [np.array(part) for part in f(np.zeros(n), v, x)]


def compare(actual, expected, rtol):
    for ours, theirs in zip(actual, expected, strict=True):
        assert_close(ours, theirs, rtol)


# Against the equations, differentiated by CasADi -------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_inverse_on_random_trees(seed):
    """Every kind of joint and of base, with gravity, wrenches and rotors."""
    c = Case(seed, largest=9, rotors=True)
    expected = by_casadi(rm.inverse_dynamics, c.robot, c.q, c.v, c.vdot, c.wrenches)
    compare(
        rm.dynamics.inverse_dynamics_derivatives(c.robot, c.q, c.v, c.vdot, c.wrenches),
        expected,
        1e-13,
    )


@pytest.mark.parametrize("seed", range(20))
def test_forward_on_random_trees(seed):
    c = Case(seed, largest=7, rotors=True)
    expected = by_casadi(rm.forward_dynamics, c.robot, c.q, c.v, c.tau, c.wrenches)
    # solving with H magnifies rounding by its condition
    compare(
        rm.dynamics.forward_dynamics_derivatives(c.robot, c.q, c.v, c.tau, c.wrenches),
        expected,
        1e-11,
    )


@pytest.mark.parametrize("kind", rm.JOINT_TYPES)
def test_a_chain_of_each_kind(kind):
    """Joints of one kind behind each other, on a base of that kind, too."""
    robot = rm.random_robot(7, bodies=4, kinds=(kind,), base=kind, gravity=True)
    q, v = rm.random_state(robot, 1)
    x = np.random.default_rng(2).normal(size=robot.nv)
    for function, derivatives in BOTH.values():
        compare(derivatives(robot, q, v, x), by_casadi(function, robot, q, v, x), 1e-12)


def test_screws_turn_a_second_time():
    """d²S/dt² along q̇ = v, v̇, for the kinds whose screws depend on q; None for the others."""
    for name, row in rm.JOINT_TYPES.items():
        assert (row.second_rate is None) == (row.rate is None)
        if row.rate is None:
            continue
        assert row.nq == row.nv  # what `derivatives` relies on
        robot = rm.random_robot(3, bodies=2, kinds=(name,))
        joint = robot.joints[1]
        (Q, q), (V, v), (A, _) = (
            symbols(s, n) for s, n in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv))
        )
        rate = joints.motion_subspace_rate(joint, q, v)
        flat = casadi.vertcat(*rate.reshape(-1).tolist())
        dq = casadi.vertcat(casadi.SX(8, 1), *v[joint.v].tolist())
        second = casadi.jtimes(flat, casadi.vertcat(Q, V), casadi.vertcat(dq, A))
        q1, v1 = rm.random_state(robot, 5)
        a1 = np.random.default_rng(6).normal(size=robot.nv)
        expected = np.array(casadi.Function("f", [Q, V, A], [second])(q1, v1, a1)).reshape(6, -1)
        assert_close(joints.motion_subspace_second_rate(joint, q1, v1, a1), expected, rtol=1e-14)


def test_symbolic_numbers_of_the_robot():
    """A mass left open: the derivative comes as an expression of it."""
    robot = rm.load("vt18_satellite")
    name = robot.bodies[1].name
    mass = casadi.SX.sym("m")
    q, v = rm.random_state(robot, 0)
    tau = np.ones(robot.nv)
    opened = robot.replace_body(name, mass=asarray(mass))
    result = rm.dynamics.forward_dynamics_derivatives(opened, q, v, tau)
    heavier = robot.replace_body(name, mass=np.asarray(3.0))
    for ours, expected in zip(
        result, rm.dynamics.forward_dynamics_derivatives(heavier, q, v, tau), strict=True
    ):
        flat = casadi.vertcat(*ours.reshape(-1).tolist())
        value = np.array(casadi.Function("f", [mass], [flat])(3.0)).reshape(expected.shape)
        assert_close(value, expected)


# Against Pinocchio -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_pinocchio(seed):
    """Its velocities are T v, its tangent T dq, with a T that no kind here makes depend on q."""
    pin = pytest.importorskip("pinocchio")
    kinds = tuple(k for k in PINOCCHIO_KINDS if k != "planar")  # where T turns with q
    base = ("free", "fixed", "spherical", "revolute")[seed % 4]
    c = Case(seed, largest=15, kinds=kinds, base=base)
    robot, q, v = c.state
    model, ids, _ = pinocchio_model(robot)
    data = model.createData()
    layout = rm.layouts.pinocchio(robot, model)
    T = np.stack([layout.v_to(q, e) for e in np.eye(robot.nv)], axis=-1)
    qp, vp, ap = layout.q_to(q), layout.v_to(q, v), layout.vdot_to(q, v, c.vdot)
    external = pin.StdVec_Force()
    for _ in range(model.njoints):
        external.append(pin.Force.Zero())
    for i, w in zip(ids, c.wrenches, strict=True):
        if i > 0:
            external[i] = pin.Force(w[:3], w[3:])

    theirs = pin.computeRNEADerivatives(model, data, qp, vp, ap, external)
    H = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    expected = [T.T @ part @ T for part in (theirs[0], theirs[1], H)]
    compare(
        rm.dynamics.inverse_dynamics_derivatives(robot, q, v, c.vdot, c.wrenches), expected, 1e-12
    )

    tau = layout.tau_to(q, c.tau)
    theirs = pin.computeABADerivatives(model, data, qp, vp, tau, external)
    inverse = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    back = np.linalg.inv(T)
    expected = [back @ theirs[0] @ T, back @ theirs[1] @ T, back @ inverse @ back.T]
    compare(
        rm.dynamics.forward_dynamics_derivatives(robot, q, v, c.tau, c.wrenches), expected, 1e-10
    )


def test_pose_of_the_offsets_is_none():
    """The comparison above takes body frames for Pinocchio's joint frames: they are."""
    kinds = tuple(k for k in PINOCCHIO_KINDS if k != "planar")
    _, _, offsets = pinocchio_model(Case(0, kinds=kinds, base="free").robot)
    assert all(np.allclose(pose.translation(x), 0.0) for x in offsets)


# Identities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_forward_undoes_inverse(seed):
    """∂v̇/∂· = -H⁻¹ ∂τ/∂· at the same motion; H symmetric and as everywhere else."""
    c = Case(seed, largest=20)
    robot, q, v = c.state
    if robot.nv == 0:
        return
    vdot = rm.forward_dynamics(robot, q, v, c.tau, c.wrenches)
    inverse = rm.dynamics.inverse_dynamics_derivatives(robot, q, v, vdot, c.wrenches)
    forward = rm.dynamics.forward_dynamics_derivatives(robot, q, v, c.tau, c.wrenches)
    assert np.array_equal(inverse.dvdot, inverse.dvdot.T)
    assert np.array_equal(forward.dtau, forward.dtau.T)
    assert relative_error(inverse.dvdot, rm.mass_matrix(robot, q)) < 1e-13
    for there, back in ((inverse.dq, forward.dq), (inverse.dv, forward.dv)):
        assert relative_error(inverse.dvdot @ back, -there) < 1e-11
    assert relative_error(inverse.dvdot @ forward.dtau, np.eye(robot.nv)) < 1e-11


@pytest.mark.parametrize("seed", range(10))
def test_nothing_depends_on_where_a_free_base_is(seed):
    """Exactly, by structure; with gravity v̇ of the base alone does, and of nothing else."""
    c = Case(seed, largest=10, base="free")
    floating = c.robot.replace(gravity=np.zeros(3))
    moved = rm.dynamics.forward_dynamics_derivatives(floating, c.q, c.v, c.tau, c.wrenches).dq
    assert np.all(moved[:, :6] == 0.0)
    needed = rm.dynamics.inverse_dynamics_derivatives(floating, c.q, c.v, c.vdot, c.wrenches).dq
    assert np.all(needed[:, :6] == 0.0)
    falling = rm.dynamics.forward_dynamics_derivatives(c.robot, c.q, c.v, c.tau, c.wrenches).dq
    assert np.all(falling[6:, :6] == 0.0)
    assert np.all(falling[:, 3:6] == 0.0)
    assert np.any(falling[3:6, :3] != 0.0)


def test_forces_of_velocity_are_quadratic():
    """τ is quadratic in v without gravity: (∂τ/∂v) v = 2 (τ - τ at rest) [Euler's theorem]."""
    c = Case(3, base="free")
    robot, q, v = c.state
    zero = 0.0 * v
    D = rm.dynamics.inverse_dynamics_derivatives(robot, q, v, zero)
    bias = rm.bias_force(robot, q, v) - rm.inverse_dynamics(robot, q, zero, zero)
    assert_close(D.dv @ v, 2.0 * bias, rtol=1e-12, scale=np.abs(bias).max())


def test_followers_count_for_their_leaders():
    robot = (
        rm.Builder("gripper")
        .body("palm", mass=3, com=(0.1, 0, 0), inertia=(1, 1, 1))
        .body("left", mass=0.5, com=(0.1, 0.02, 0), inertia=(0.1, 0.1, 0.1))
        .body("right", mass=0.4, com=(0.1, 0.01, 0), inertia=(0.1, 0.1, 0.1))
        .body("tip", mass=0.2, com=(0.05, 0.01, 0), inertia=(0.01, 0.01, 0.01))
        .joint("lead", "revolute", "palm", "left", xyz=(0.2, 0.1, 0), rotor_inertia=0.01)
        .joint("follow", "revolute", "palm", "right", xyz=(0.2, -0.1, 0), mimic=("lead", -1.5, 0.1))
        .joint(
            "beyond",
            "revolute",
            "left",
            "tip",
            xyz=(0.1, 0, 0),
            axis=(0, 1, 0),
            mimic=("lead", 0.7, 0.0),
        )
        .build(base="free")
    )
    q, v = rm.random_state(robot, 3)
    x = np.random.default_rng(1).normal(size=robot.nv)

    def composite(*arguments):
        return rm.forward_dynamics(*arguments, formulation="composite")

    expected = by_casadi(rm.inverse_dynamics, robot, q, v, x)
    compare(rm.dynamics.inverse_dynamics_derivatives(robot, q, v, x), expected, 1e-13)
    expected = by_casadi(composite, robot, q, v, x)
    compare(rm.dynamics.forward_dynamics_derivatives(robot, q, v, x), expected, 1e-12)


# Inertial parameters -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_regressor_times_parameters_is_the_force(seed):
    c = Case(seed, largest=12)
    robot = c.robot
    rotors = np.zeros(robot.nv)
    for joint in robot.joints:
        rotors[joint.v] += joints.rotor_inertia(joint) * c.vdot[joint.v]
    Y = rm.dynamics.inertia_regressor(robot, c.q, c.v, c.vdot)
    assert Y.shape == (robot.nv, 10 * len(robot.bodies))
    tau = rm.inverse_dynamics(robot, c.q, c.v, c.vdot)
    assert_close(Y @ rm.dynamics.inertia_parameters(robot) + rotors, tau, rtol=1e-13)


def with_parameters(robot, parameters):
    """The robot with other inertial parameters, symbols too."""
    for body, own in zip(robot.bodies, parameters.reshape(-1, 10), strict=True):
        m, c = own[:1], own[1:4] / own[:1]
        about_origin = own[4:][[[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        inertia = about_origin + m * (vector.skew(c) @ vector.skew(c))
        robot = robot.replace_body(body.name, mass=m.reshape(()), com=c, inertia=inertia)
    return robot


@pytest.mark.parametrize("base", BASES)
def test_derivatives_by_inertial_parameters(base):
    c = Case(4, largest=5, base=base)
    robot, q, v = c.state
    if robot.nv == 0:
        return
    P, p = symbols("p", 10 * len(robot.bodies))
    vdot = rm.forward_dynamics(with_parameters(robot, p), q, v, c.tau, c.wrenches)
    y = casadi.vertcat(*vdot.tolist())
    jacobian = casadi.Function("f", [P], [casadi.jacobian(y, P)])
    expected = np.array(jacobian(rm.dynamics.inertia_parameters(robot)))
    actual = rm.dynamics.inertia_derivatives(robot, q, v, c.tau, c.wrenches)
    assert relative_error(actual, expected) < 1e-11


# Compiled, in batches, at the edges --------------------------------------------------------------


@pytest.mark.parametrize("which", BOTH)
def test_kernels_and_batches(which):
    robot = rm.load("vt18_two_arm")
    _, function = BOTH[which]
    q, v = rm.random_state(robot, 0, (2, 5))
    x = np.random.default_rng(1).normal(size=(5, robot.nv))
    w = np.random.default_rng(2).normal(size=(2, 1, len(robot.bodies), 6))
    many = function(robot, q, v, x, w)
    names = ("q", "v", "tau" if which == "forward" else "vdot", "wrenches")
    kernel = rm.compile(function, robot, arguments=names)
    for k, (ours, compiled) in enumerate(zip(many, kernel(q, v, x, w), strict=True)):
        assert ours.shape == (2, 5, robot.nv, robot.nv)
        assert relative_error(compiled, ours) < 1e-11  # the condition of H is 2e5
        one = function(robot, q[1, 3], v[1, 3], x[3], w[1, 0])[k]
        assert relative_error(ours[1, 3], one) < 1e-13


def test_kernels_of_the_regressor():
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 0, 3)
    x = np.ones((3, robot.nv))
    for function in (rm.dynamics.inertia_regressor, rm.dynamics.inertia_derivatives):
        expected = function(robot, q, v, x)
        assert relative_error(rm.compile(function, robot)(q, v, x), expected) < 1e-12


def test_operations_stay_few():
    """The structure's whole point: CasADi's derivatives of the same equations take 22,700."""
    from remora.codegen.ir import graph_passes

    kernel = rm.compile(rm.dynamics.forward_dynamics_derivatives, rm.load("servicer"))
    assert sum(graph_passes.prepared(kernel.graph, "float64").count().values()) <= 10_000


@given(
    seed=st.integers(0, 50),
    mass=st.sampled_from([1e-6, 1.0, 1e6]),
    speed=st.sampled_from([0.0, 1.0, 100.0]),
    turned=st.sampled_from(["neutral", "half a turn", "random"]),
)
def test_extremes(seed, mass, speed, turned):
    """Rest, no motion, half turns, light and heavy robots: differences of τ say the same."""
    c = Case(seed, largest=4)
    robot, n = c.robot, c.robot.nv
    for body in robot.bodies:
        robot = robot.replace_body(
            body.name, mass=asarray(mass * body.mass), inertia=mass * body.inertia
        )
    q, v, vdot = c.q, speed * c.v, speed * c.vdot
    if turned != "random":
        q = rm.neutral(robot)
    if turned == "half a turn":
        q = rm.integrate(robot, q, np.full(n, np.pi))
    D = rm.dynamics.inverse_dynamics_derivatives(robot, q, v, vdot)
    h = 1e-5
    step = h * np.eye(n)
    there = rm.inverse_dynamics(robot, rm.integrate(robot, q, step), v, vdot)
    back = rm.inverse_dynamics(robot, rm.integrate(robot, q, -step), v, vdot)
    size = max(np.abs(D.dq).max(initial=0.0), np.abs(there).max(initial=0.0), 1e-300)
    assert np.abs((there - back).T / (2 * h) - D.dq).max(initial=0.0) <= 1e-6 * size


def test_far_from_the_inertial_origin():
    """Where the base is makes no difference to the rounding: all is written in its frame."""
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 0)
    tau = np.ones(robot.nv)
    far = q.copy()
    far[:8] = pose.compose(pose.from_translation(np.array([7e6, 1e6, -2e6])), q[:8])
    for here, there in zip(
        rm.dynamics.forward_dynamics_derivatives(robot, q, v, tau),
        rm.dynamics.forward_dynamics_derivatives(robot, far, v, tau),
        strict=True,
    ):
        assert np.array_equal(here, there)


def test_ltdl_keeps_the_zeros_of_a_tree():
    """Two arms on a base: no entry of L between them, and A = Lᵀ D L."""
    robot = rm.load("vt18_two_arm")
    H = rm.mass_matrix(robot, rm.random_state(robot, 0)[0])
    L, d = linear.ltdl(H)
    assert_close(L.T @ np.diag(d) @ L, H, rtol=1e-14)
    places = [place for j in robot.joints for place in [j] * len(range(robot.nv)[j.v])]
    related = [
        [
            robot.joint_index(b.name) in rm.topology.ancestors(robot, robot.joint_index(a.name))
            for b in places
        ]
        for a in places
    ]
    assert np.all(L[~np.array(related)] == 0.0)
    assert np.sum(~np.array(related)) > robot.nv * (robot.nv - 1) / 2  # more than the upper half
    assert_close(linear.ltdl_inverse((L, d)) @ H, np.eye(robot.nv), rtol=1e-11)


@pytest.mark.parametrize("which", BOTH)
def test_refusals(which):
    robot = rm.random_robot(2, bodies=5)
    q, v = rm.random_state(robot, 0)
    x = np.zeros(robot.nv)
    _, function = BOTH[which]
    name = "tau" if which == "forward" else "vdot"
    for arguments, reason in (
        ((q, v, x[:-1]), f"{name} must have shape"),
        ((q, v, x * np.nan), f"{name} holds values that are not finite"),
        ((q, v[:3], x), "v must have shape"),
        ((1.1 * q, v, x), "not of unit length"),
        ((q, v, x, np.zeros((4, 6))), "wrenches must have shape"),
        ((q, np.stack([v] * 2), np.stack([x] * 3)), "do not broadcast"),
    ):
        with pytest.raises(RemoraError, match=reason):
            function(robot, *arguments)
    with np.errstate(all="ignore"), pytest.raises(RemoraError, match="not finite"):
        function(robot, q, 1e200 * v, x)


def test_nothing_to_move_is_refused():
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=1, inertia=(1, 1, 1))
        .joint("j", "revolute", "a", "b")
        .build()
    )
    hollow = robot.replace_body("b", mass=np.asarray(0.0), inertia=np.zeros((3, 3)))
    q, v = rm.random_state(hollow, 0)
    with pytest.raises(RemoraError, match="singular"):
        rm.dynamics.forward_dynamics_derivatives(hollow, q, v, np.zeros(7))
    rm.dynamics.inverse_dynamics_derivatives(hollow, q, v, np.zeros(7))  # needs no inverse


def test_a_robot_with_a_batch_of_masses():
    robot = rm.load("vt18_satellite")
    name = robot.bodies[-1].name
    masses = np.array([1.0, 5.0, 20.0])
    many = robot.replace_body(name, mass=masses)
    q, v = rm.random_state(robot, 0)
    x = np.ones(robot.nv)
    for k, mass in enumerate(masses):
        one = robot.replace_body(name, mass=np.asarray(mass))
        for _, function in BOTH.values():
            for ours, expected in zip(function(many, q, v, x), function(one, q, v, x), strict=True):
                assert_close(ours[k], expected)
        Y, D = (
            rm.dynamics.inertia_regressor(many, q, v, x),
            rm.dynamics.inertia_derivatives(many, q, v, x),
        )
        assert_close(Y, rm.dynamics.inertia_regressor(one, q, v, x))  # knows no masses
        assert_close(D[k], rm.dynamics.inertia_derivatives(one, q, v, x))
        assert_close(rm.dynamics.inertia_parameters(many)[k], rm.dynamics.inertia_parameters(one))


def test_a_robot_that_cannot_move():
    robot = rm.Builder().body("a", mass=1, inertia=(1, 1, 1)).build(base="fixed")
    nothing = np.zeros((3, 0))
    for _, function in BOTH.values():
        assert [part.shape for part in function(robot, nothing, nothing, nothing)] == [
            (3, 0, 0)
        ] * 3
    assert rm.dynamics.inertia_regressor(robot, nothing, nothing, nothing).shape == (3, 0, 10)
    assert rm.dynamics.inertia_derivatives(robot, nothing, nothing, nothing).shape == (3, 0, 10)
