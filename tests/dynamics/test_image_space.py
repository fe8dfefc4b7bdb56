"""DM93: the eight coordinates of every body, their constraints, multipliers, and long runs."""

import runpy
from pathlib import Path

import casadi
import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint
from numeric import assert_close, traced
from peers import PINOCCHIO_KINDS, pinocchio_model
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion, screw
from remora.algebra.array_ops import asarray
from remora.dynamics.maximal import image_space, joint_equations
from remora.errors import RemoraError
from remora.model import joints
from trees import Case, relative_error

KINDS = list(rm.JOINT_TYPES)


def coordinates(c):
    return rm.papers.dm93.image_coordinates(c.robot, c.q), rm.papers.dm93.image_rates(*c.state)


def random_body(rng, off=0.0):
    A = rng.normal(size=(3, 3))
    Q = pose.from_parts(quaternion.normalize(rng.normal(size=4)), rng.normal(size=3))
    return np.asarray(2.3), A @ A.T + np.eye(3), Q + off * rng.normal(size=8)


# One body ---------------------------------------------------------------------------------------


def paper_order(Q):
    """(vector, scalar; vector, scalar), as DM93 number Q1 to Q8."""
    return Q[[1, 2, 3, 0, 5, 6, 7, 4]]


def plus(g):
    """[g⁺], eq. 6."""
    a, b, c, d = g
    return np.array([[d, -c, b, a], [c, d, -a, b], [-b, a, d, c], [-a, -b, -c, d]])


def minus(h):
    """[h⁻], eq. 7."""
    a, b, c, d = h
    return np.array([[d, c, -b, a], [-c, d, a, b], [b, -a, d, c], [-a, -b, -c, d]])


def test_matrices_of_the_paper(rng):
    """(19)-(25) in the paper's own order, with the corrections of docs/dm93.md."""
    mass, J, Q = random_body(rng)
    rate = 0.5 * dq.mul(Q, dq.pure(rng.normal(size=6)))
    R, n = rng.normal(size=3), rng.normal(size=3)
    body = image_space.body_equations(mass, J, Q, rate, R, n)

    def parts(Q):
        q, o = np.split(paper_order(Q), 2)
        G, E = minus(q).T, plus(q).T  # [G] of the paper, and what rotations need in its place
        a, b, c, d = o
        G_o = np.array([[-d, c, -b, a], [-c, -d, a, b], [b, -a, -d, c], [a, b, c, d]])
        return q, o, G, E, G_o

    q, o, G, E, G_o = parts(Q)
    dq_, do, dG, dE, dG_o = parts(rate)
    J4 = np.zeros((4, 4))
    J4[:3, :3] = J
    M = np.block(
        [
            [4 * mass * np.eye(4) * (o @ o) + 4 * E.T @ J4 @ E, 4 * mass * G_o.T @ G],
            [4 * mass * G.T @ G_o, 4 * mass * np.eye(4)],
        ]
    )
    h = np.concatenate(
        [
            8 * dE.T @ J4 @ dE @ q - 8 * mass * G_o.T @ dG_o @ dq_,
            -8 * mass * G.T @ dG @ do,
        ]
    )
    F = 2 * np.concatenate([G_o.T @ [*R, 0] + E.T @ [*n, 0], G.T @ [*R, 0]])
    order = [1, 2, 3, 0, 5, 6, 7, 4]
    assert_close(body.M[np.ix_(order, order)], M)
    assert_close(paper_order(body.h), h)
    assert_close(paper_order(body.F), F)
    # (8)-(10), and 2 [q⁺]ᵀ q̇ = ω' in body axes where (11) prints [q⁻]ᵀ q̇
    assert_close(2 * (G @ o)[:3], pose.translation(Q))
    assert_close(2 * (E @ dq_)[:3], 2 * dq.vec6(dq.mul(dq.conjugate(Q), rate))[:3])
    assert np.abs(2 * (G @ dq_)[:3] - 2 * (E @ dq_)[:3]).max() > 0.1


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_ten_equations_of_a_body_and_their_inverse(rng, off):
    """M has rank 7; with the unit conditions the matrix is regular, its inverse in closed form."""
    mass, J, Q = random_body(rng, off)
    body = image_space.body_equations(mass, J, Q, rng.normal(size=8), np.zeros(3), np.zeros(3))
    assert np.linalg.matrix_rank(body.M) == 7
    whole = np.block([[body.M, body.unit.T], [body.unit, np.zeros((2, 2))]])
    assert_close(whole @ body.inverse, np.eye(10), rtol=1e-13)


def test_equations_are_lagranges_on_and_off_the_manifold(rng):
    """M Q̈ - h is the Euler-Lagrange expression of ½m|ḋ|² + ½ω'·J'ω' in all eight components."""
    mass, J, Q = random_body(rng, off=0.2)
    rate, second = rng.normal(size=8), rng.normal(size=8)
    x, dx = casadi.SX.sym("x", 8), casadi.SX.sym("dx", 8)
    X, dX = asarray(x).reshape(-1), asarray(dx).reshape(-1)
    place = 2.0 * quaternion.mul(X[4:], quaternion.conjugate(X[:4]))
    velocity = casadi.jtimes(casadi.vertcat(*place.tolist()), x, dx)
    omega = (2.0 * quaternion.mul(quaternion.conjugate(X[:4]), dX[:4]))[1:]
    T = 0.5 * float(mass) * casadi.sumsqr(velocity) + 0.5 * omega @ J @ omega
    p = casadi.gradient(T, dx)
    force = casadi.jtimes(p, x, dx) + casadi.jacobian(p, dx) @ casadi.DM(second)
    force = force - casadi.gradient(T, x)
    expected = np.array(casadi.Function("f", [x, dx], [force])(Q, rate)).reshape(-1)
    body = image_space.body_equations(mass, J, Q, rate, np.zeros(3), np.zeros(3))
    assert_close(body.M @ second - body.h, expected, rtol=1e-13)


def test_as_printed_eq_25_is_not_lagranges(rng):
    """8[Ġ][J'][Ġ]ᵀq in place of 8[Ġ]ᵀ[J'][Ġ]q changes the motion, not a multiplier alone."""
    mass, J, Q = random_body(rng)
    rate = 0.5 * dq.mul(Q, dq.pure(rng.normal(size=6)))
    body = image_space.body_equations(mass, J, Q, rate, np.zeros(3), np.zeros(3))
    J4 = np.zeros((4, 4))
    J4[1:, 1:] = J
    dE = quaternion.left(rate[:4]).T
    printed = np.concatenate([8 * dE @ J4 @ dE.T @ Q[:4] - 8 * dE.T @ J4 @ dE @ Q[:4], 0 * Q[4:]])
    assert np.abs(image_space.motions(Q).T @ printed).max() > 0.1
    assert np.abs(body.inverse[:8, :8] @ printed).max() > 0.01


# Joints -----------------------------------------------------------------------------------------


def test_every_kind_of_joint_has_equations():
    assert list(joint_equations.EQUATIONS) == KINDS


@pytest.mark.parametrize("kind_name", KINDS)
def test_equations_of_a_joint(kind_name, rng):
    """They hold where the joint can be, have full rank there, and their rates are exact."""
    for seed in range(6):
        robot = rm.random_robot(seed, bodies=3, kinds=(kind_name,), base=kind_name)
        q, _ = rm.random_state(robot, seed)
        q = q * (4.0 if kind_name in ("revolute", "helical", "universal") else 1.0)  # many turns
        joint = robot.joints[1]
        row = joints.kind(joint)
        X = row.pose(joint, joints.coordinates(joint, q))
        g = joint_equations.values(joint, X)
        assert g.shape == (6 - row.nv,)
        assert_close(g, np.zeros_like(g), rtol=1e-13)
        along = 0.5 * dq.left(X)[:, (1, 2, 3, 5, 6, 7)]  # δX of unit twists
        G = joint_equations.jacobian(joint, X) @ along
        if row.nv < 6:
            assert np.linalg.svd(G, compute_uv=False).min() > 1e-2
        S = joints.motion_subspace(joint, q)
        assert_close(G @ S, np.zeros((6 - row.nv, row.nv)), rtol=1e-13)
        # first and second derivative along a straight line through X, off the variety
        Y, t = rng.normal(size=8), casadi.SX.sym("t")
        line = X + asarray(t) * Y
        values = casadi.vertcat(*joint_equations.values(joint, line).tolist(), 0 * t)
        if kind_name == "helical":  # its value is a sine of the equation: the same at zero only
            continue
        first, second = casadi.jacobian(values, t), casadi.jacobian(casadi.jacobian(values, t), t)
        ours = joint_equations.jacobian(joint, X) @ Y, joint_equations.curvature(joint, X, Y)
        for expression, own in zip((first, second), ours, strict=True):
            exact = np.array(casadi.Function("f", [t], [expression])(0.0)).reshape(-1)[:-1]
            assert_close(own, exact, rtol=1e-13)


def test_the_thread_of_a_helical_joint(rng):
    """Its equation vanishes after any number of turns; the derivatives are those of s - hθ."""
    robot = rm.random_robot(3, bodies=2, kinds=("helical",), base="free")
    joint = robot.joints[1]
    row = joints.kind(joint)
    for angle in (0.3, 2 * np.pi + 0.3, -14.0, 40.0):
        X = row.pose(joint, np.array([angle]))
        assert_close(joint_equations.values(joint, X), np.zeros(5), rtol=1e-13)
        assert_close(joint_equations.coordinates(joint, X), [angle], rtol=1e-12)
    flat = robot.replace_joint(joint.name, pitch=np.asarray(0.0)).joints[1]
    X = dq.mul(row.pose(flat, np.array([0.4])), pose.from_translation(0.1 * flat.axes[0]))
    assert_close(joint_equations.values(flat, X)[-1], 0.1)
    a, h = joint.axes[0], float(joint.pitch)
    X, Y, t = row.pose(joint, np.array([0.7])) + 0.1, rng.normal(size=8), casadi.SX.sym("t")
    line = X + asarray(t) * Y
    travel = (2.0 * quaternion.mul(line[4:], quaternion.conjugate(line[:4])))[1:] @ a
    equation = travel - h * 2.0 * casadi.atan2(line[1:4] @ a, line[0])
    derivatives = [casadi.jacobian(equation, t)]
    derivatives.append(casadi.jacobian(derivatives[0], t))
    first, second = (float(casadi.Function("f", [t], [d])(0.0)) for d in derivatives)
    assert_close(joint_equations.jacobian(joint, X)[-1] @ Y, first, rtol=1e-13)
    assert_close(joint_equations.curvature(joint, X, Y)[-1], second, rtol=1e-12)


# Whole robots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_there_and_back(seed):
    c = Case(seed, largest=12)
    Q, rate = coordinates(c)
    g = rm.papers.dm93.image_space_constraints(c.robot, Q)
    assert_close(g.unit, np.zeros((len(c.robot.bodies), 2)), rtol=1e-14)
    assert_close(g.joints, np.zeros_like(g.joints), rtol=1e-13)
    q, v = rm.papers.dm93.from_image_coordinates(c.robot, Q, rate)
    assert_close(v, c.v)
    again = rm.papers.dm93.image_coordinates(c.robot, q)
    sign = np.sign(np.sum(again * Q, axis=-1, keepdims=True))  # Q and -Q are one pose
    assert_close(sign * again, Q, rtol=1e-13)


@pytest.mark.parametrize("seed", range(40))
def test_system_and_solution(seed):
    """Equation (30) row by row; the multipliers are the reactions, the unit ones do no work."""
    c = Case(seed, largest=12)
    robot = c.robot
    Q, rate = coordinates(c)
    system = rm.papers.dm93.image_space_system(robot, Q, rate, c.tau, c.wrenches)
    found = rm.papers.dm93.image_space_solution(robot, Q, rate, c.tau, c.wrenches)
    second, size = found.acceleration.reshape(-1), np.abs(system.F + system.h).max()
    assert_close(system.Phi @ rate.reshape(-1), np.zeros(len(system.gamma)), rtol=1e-13)
    left = system.M @ second + system.Phi.T @ found.multipliers
    assert_close(left, system.F + system.h, rtol=1e-12, scale=size)
    scale = max(1.0, np.abs(second).max(), np.abs(system.gamma).max())
    assert_close(system.Phi @ second, system.gamma, rtol=1e-11, scale=scale)
    assert np.linalg.matrix_rank(system.Phi) == len(system.gamma) == 8 * len(Q) - robot.nv
    reactions = rm.reaction_wrenches(*c.state, c.tau, c.wrenches)
    assert_close(found.reactions, reactions, rtol=1e-11)
    # the accelerations are those of the recursive algorithm
    vdot = rm.forward_dynamics(*c.state, c.tau, c.wrenches)
    a = rm.dynamics.accelerations(*c.state, vdot)
    for i, body in enumerate(robot.bodies):
        own = 2.0 * dq.vec6(dq.mul(dq.conjugate(Q[i]), found.acceleration[i]))
        expected = [*a[i, :3], *(a[i, 3:] + np.cross(a[i, :3], body.com))]
        assert_close(own, expected, rtol=1e-11, scale=max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("seed", [1, 4])
def test_batches_and_symbols_of_the_coordinates(seed):
    c = Case(seed, largest=2)
    robot = c.robot
    q, v = rm.random_state(robot, c.rng, (2, 3))
    Q, rate = rm.papers.dm93.image_coordinates(robot, q), rm.papers.dm93.image_rates(robot, q, v)
    tau, w = c.rng.normal(size=(2, 3, robot.nv)), c.rng.normal(size=(2, 3, len(robot.bodies), 6))

    def functions(Q, rate, tau, w):
        return (
            *rm.papers.dm93.image_space_system(robot, Q, rate, tau, w),
            *rm.papers.dm93.image_space_solution(robot, Q, rate, tau, w, stabilization=2.0),
            *rm.papers.dm93.image_space_constraints(robot, Q),
            *rm.papers.dm93.project_image_coordinates(robot, Q, rate, iterations=1),
            *rm.papers.dm93.from_image_coordinates(robot, Q, rate),
        )

    many, one = functions(Q, rate, tau, w), functions(Q[1, 2], rate[1, 2], tau[1, 2], w[1, 2])
    for all_of_them, single in zip(many, one, strict=True):
        assert_close(all_of_them[1, 2], single, rtol=1e-11, scale=np.abs(single).max(initial=1.0))
    symbolic = traced(functions, [Q[1, 2], rate[1, 2], tau[1, 2], w[1, 2]])
    for expression, single in zip(symbolic, one, strict=True):
        assert_close(expression, single, rtol=1e-11, scale=np.abs(single).max(initial=1.0))
    kernel = rm.compile(
        rm.forward_dynamics, robot, fixed={"formulation": "image_space"},
        arguments=("q", "v", "tau", "wrenches"),
    )  # fmt: skip
    expected = rm.forward_dynamics(robot, q, v, tau, w)
    assert relative_error(kernel(q, v, tau, w), expected) < 1e-11
    kernel = rm.compile(
        rm.inverse_dynamics,
        robot,
        fixed={"formulation": "image_space"},
        arguments=("q", "v", "vdot"),
    )
    assert relative_error(kernel(q, v, tau), rm.inverse_dynamics(robot, q, v, tau)) < 1e-12


# Off the manifold, and long runs ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_projection(seed):
    """Newton's steps reach the manifold from a drift of 1e-4, and leave what is on it alone."""
    c = Case(seed, largest=10)
    Q, rate = coordinates(c)
    same, same_rate = rm.papers.dm93.project_image_coordinates(c.robot, Q, rate)
    assert_close(same, Q, rtol=1e-13)
    assert_close(same_rate, rate, rtol=1e-12)
    drift = 1e-4 * c.rng.normal(size=(2, *Q.shape))
    Q, rate = rm.papers.dm93.project_image_coordinates(c.robot, Q + drift[0], rate + drift[1])
    g = rm.papers.dm93.image_space_constraints(c.robot, Q)
    assert max(np.abs(g.unit).max(), np.abs(g.joints).max(initial=0.0)) < 1e-13
    Phi = rm.papers.dm93.image_space_system(c.robot, Q, rate, c.tau).Phi
    assert_close(Phi @ rate.reshape(-1), np.zeros(len(Phi)), rtol=1e-13)


@pytest.mark.parametrize("kinds", [(), ("rod", "spherical", "gear")])
def test_projection_of_rates_conserves_momentum(kinds, rng):
    """Taking Q̇ back to the manifold is an impulse of joints and constraints."""
    robot = rm.load("vt18_two_arm")
    q, v = rm.random_state(robot, 3)
    made = []
    for kind_name in kinds:
        ends = (2, 3) if kind_name == "gear" else (3, len(robot.bodies) - 1)
        made.append(constraint(kind_name, robot, q, *ends, rng))
    robot = closed(robot, *made)
    v = rm.loops.project_velocity(robot, q, v)
    Q, rate = rm.papers.dm93.image_coordinates(robot, q), rm.papers.dm93.image_rates(robot, q, v)
    off = [dq.mul(x, dq.pure(1e-3 * rng.normal(size=6))) for x in Q]  # twists the joints forbid

    def momentum(rate):
        P, L = np.zeros(3), np.zeros(3)
        for body, x, own in zip(robot.bodies, Q, rate, strict=True):
            twist = 2.0 * dq.vec6(dq.mul(dq.conjugate(x), own))
            p = body.mass * quaternion.rotate(x[:4], twist[3:])
            P = P + p
            spin = quaternion.rotate(x[:4], body.inertia @ twist[:3])
            L = L + spin + np.cross(pose.translation(x), p)
        return np.concatenate([P, L])

    _, back = rm.papers.dm93.project_image_coordinates(robot, Q, rate + off)
    assert np.abs(back - rate - off).max() > 1e-4
    assert_close(momentum(back), momentum(rate + off), rtol=1e-13)


def test_coordinates_off_the_manifold_are_refused():
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 0)
    Q, rate, tau = (
        rm.papers.dm93.image_coordinates(robot, q),
        rm.papers.dm93.image_rates(robot, q, v),
        np.zeros(robot.nv),
    )
    long, apart, mixed, fast = Q.copy(), Q.copy(), Q.copy(), rate.copy()
    long[2] *= 1.1
    mixed[1, 4:] += 0.5 * Q[1, :4]
    apart[3] = dq.mul(Q[3], pose.from_translation(np.array([0, 1.0, 0])))
    fast[3] += 0.5 * dq.mul(Q[3], dq.pure(np.array([0, 0, 0, 0, 0, 9.0])))
    joint = robot.joints[3].name
    for bad, reason in (
        ((long, rate), rf"body '{robot.bodies[2].name}' violates q·q = 1 .*eq. 3.* by 0.105"),
        ((mixed, rate), rf"body '{robot.bodies[1].name}' violates q·q_o = 0 .*eq. 4"),
        ((apart, rate), f"Q violates the equations of joint '{joint}'.*project_image_coordinates"),
        ((Q, fast), f"Q_rate leaves the equations of joint '{joint}'"),
        ((Q, rate + Q), "rate of .* leaves the unit conditions"),
        ((Q[:2], rate), r"Q must have shape"),
        ((Q * np.nan, rate), "Q holds values that are not finite"),
    ):
        with pytest.raises(RemoraError, match=reason):
            rm.papers.dm93.image_space_solution(robot, *bad, tau)
        with pytest.raises(RemoraError, match=reason):
            rm.papers.dm93.from_image_coordinates(robot, *bad)
    wild = Q + np.random.default_rng(0).normal(size=Q.shape)
    with pytest.raises(RemoraError, match="these steps do not reach the manifold"):
        rm.papers.dm93.project_image_coordinates(robot, wild, rate)


def pendulum():
    """Two links on the ground, turning about y: a chain that folds over fully."""
    return (
        rm.Builder("pendulum", gravity=(0, 0, -9.81))
        .body("upper", 1.0, (0.5, 0, 0), (0.02, 0.1, 0.1))
        .body("lower", 0.7, (0.4, 0, 0), (0.02, 0.05, 0.05))
        .joint("shoulder", "revolute", None, "upper", axis=(0, 1, 0))
        .joint("elbow", "revolute", "upper", "lower", axis=(0, 1, 0), xyz=(1.0, 0, 0))
        .build(base=None)
    )


def run(robot, Q, rate, h, steps, project=0, stabilization=0.0):
    """Classical Runge-Kutta steps in all eight coordinates of every body, compiled."""

    def acceleration(robot, Q, rate):
        tau = np.zeros(robot.nv)
        solution = rm.papers.dm93.image_space_solution(
            robot, Q, rate, tau, stabilization=stabilization
        )
        return solution.acceleration

    shapes = {"Q": Q.shape, "rate": Q.shape}
    second = rm.compile(acceleration, robot, shapes=shapes)

    def slope(x):
        return np.stack([x[1], second(x[0], x[1])])

    x = np.stack([Q, rate])
    for n in range(steps):
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
        if project and (n + 1) % project == 0:
            x = np.stack(rm.papers.dm93.project_image_coordinates(robot, x[0], x[1], iterations=2))
    return x


def violation(robot, Q):
    g = rm.papers.dm93.image_space_constraints(robot, Q)
    return max(np.abs(g.unit).max(), np.abs(g.joints).max())


def test_stabilization_and_projection_hold_the_manifold():
    """Without either the violation grows; the stabilized one stays, the projected one vanishes."""
    robot = pendulum()
    q, v = np.array([0.3, 1.0]), np.array([9.0, -4.0])
    start = rm.papers.dm93.image_coordinates(robot, q), rm.papers.dm93.image_rates(robot, q, v)
    h, steps = 0.005, 300
    plain, held, put_back = (
        run(robot, *start, h, steps, **options)
        for options in ({}, {"stabilization": 20.0}, {"project": 10})
    )
    assert violation(robot, put_back[0]) < 1e-14
    assert violation(robot, held[0]) < 0.2 * violation(robot, plain[0])
    reference = rm.simulate(
        robot, q, v, h * steps, integrator=rm.Integrator(rtol=1e-12, atol=1e-12)
    )
    for end, error in ((plain, 1e-2), (held, 1e-3), (put_back, 1e-3)):  # steps of 5 ms
        Q, rate = rm.papers.dm93.project_image_coordinates(robot, *end)
        _, found = rm.papers.dm93.from_image_coordinates(robot, Q, rate)
        assert_close(found, reference.v[-1], rtol=error)
    assert abs(reference.q[-1, 0]) > 2 * np.pi  # it went over the top


# The double pendulum of section 3 ---------------------------------------------------------------


@pytest.fixture(scope="module")
def planar():
    """What examples/13_dm93_double_pendulum.py has: (26) to (32) in four components."""
    path = Path(__file__).resolve().parents[2] / "examples" / "13_dm93_double_pendulum.py"
    return runpy.run_path(str(path))


def test_double_pendulum_against_its_closed_form(planar, rng):
    """mL θ̈1 = W cos θ1, (θ1 + θ2)¨ = 0; the pin's force is -(λ2/4) d."""
    m, L, W = planar["m"], planar["L"], planar["W"]
    for _ in range(10):
        theta, rate = rng.uniform(-3, 3, 2), 5 * rng.normal(size=2)
        Q, dQ = planar["image_point"](theta, rate)
        second, (_, multiplier) = planar["solution"](Q, dQ)
        # θ̈ from Q̈: Q3 = sin σ, Q4 = cos σ, Q5, Q6 = L/2 (cos δ, sin δ)
        sigma = second[0] * Q[1] - second[1] * Q[0]
        delta = (second[3] * Q[2] - second[2] * Q[3]) / (L / 2) ** 2
        assert_close(sigma + delta, W * np.cos(theta[0]) / (m * L), rtol=1e-11)
        assert_close(2 * sigma, 0.0, rtol=1e-11)
        direction = np.array([np.cos(theta[0]), np.sin(theta[0])])
        across = np.array([-direction[1], direction[0]])
        acceleration = L * (W * np.cos(theta[0]) / (m * L) * across - rate[0] ** 2 * direction)
        pin = m * acceleration - [0, W]
        assert_close(-multiplier / 4 * L * direction, pin, rtol=1e-11)


def test_planar_quaternions_are_the_eight_coordinates_in_the_plane(planar, rng):
    """The planar M and h are rows and columns 3 to 6 of the spatial ones (26, 31)."""
    m, j = planar["m"], planar["j"]
    Q4, dQ4 = planar["image_point"](rng.uniform(-3, 3, 2), rng.normal(size=2))
    places = [3, 0, 5, 6]  # Q3, Q4, Q5, Q6 in Remora's order
    Q, dQ = np.zeros(8), np.zeros(8)
    Q[places], dQ[places] = Q4, dQ4
    inertia = np.diag([1.0, 2.0, j])
    zero = np.zeros(3)
    body = image_space.body_equations(np.asarray(m), inertia, Q, dQ, zero, zero)
    weight = image_space.generalized_force(Q, np.array([0, planar["W"], 0]), zero)
    second, multipliers = planar["solution"](Q4, dQ4)
    Phi = np.array([[Q4[0], Q4[1], 0, 0], [0, 0, Q4[2], Q4[3]]])
    left = body.M[np.ix_(places, places)] @ second + Phi.T @ multipliers
    assert_close(left, (weight + body.h)[places], rtol=1e-12, scale=np.abs(left).max())


# Pinocchio --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    base = ("free", "fixed", "planar", "spherical", "revolute")[seed % 5]
    c = Case(seed, largest=12, kinds=PINOCCHIO_KINDS, base=base)
    model, _, _ = pinocchio_model(c.robot)
    data, layout = model.createData(), rm.layouts.pinocchio(c.robot, model)
    q, v = layout.q_to(c.q), layout.v_to(c.q, c.v)
    vdot = rm.forward_dynamics(*c.state, c.tau, formulation="image_space")
    theirs = pin.aba(model, data, q, v, layout.tau_to(c.q, c.tau))
    assert_close(layout.vdot_to(c.q, c.v, vdot), theirs, scale=np.abs(theirs).max(initial=1.0))
    tau = rm.inverse_dynamics(*c.state, c.vdot, formulation="image_space")
    theirs = pin.rnea(model, data, q, v, layout.vdot_to(c.q, c.v, c.vdot))
    assert_close(layout.tau_to(c.q, tau), theirs)


@pytest.mark.parametrize("seed", range(12))
def test_a_load_is_the_same_as_tau_and_as_wrenches(seed):
    """F of (21) and all multipliers do not depend on how the actuation of the joints is written."""
    c = Case(seed, largest=8)
    robot = c.robot
    Q, rate = coordinates(c)
    wrenches = np.array(c.wrenches)
    for j, joint in enumerate(robot.joints):
        drive = joints.actuation_basis(joint, c.q) @ c.tau[joint.v]
        wrenches[j] += drive
        if joint.parent >= 0:
            x = screw.transform(joints.relative_pose(joint, c.q))
            wrenches[joint.parent] -= screw.columns_to_outer(x, drive[:, None])[:, 0]
    as_tau = rm.papers.dm93.image_space_system(robot, Q, rate, c.tau, c.wrenches)
    as_wrenches = rm.papers.dm93.image_space_system(robot, Q, rate, 0 * c.tau, wrenches)
    assert_close(as_tau.F, as_wrenches.F, rtol=1e-13)
    as_tau = rm.papers.dm93.image_space_solution(robot, Q, rate, c.tau, c.wrenches)
    as_wrenches = rm.papers.dm93.image_space_solution(robot, Q, rate, 0 * c.tau, wrenches)
    assert_close(as_tau.multipliers, as_wrenches.multipliers, rtol=1e-11)
    assert_close(as_tau.acceleration, as_wrenches.acceleration, rtol=1e-11)
