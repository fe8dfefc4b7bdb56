"""Closed chains in the image space: (30) with the rows of loops, rods and gears."""

import runpy
from pathlib import Path

import casadi
import numpy as np
import pytest

import remora as rm
from closed_loops import KINDS, closed, constraint, random_loops
from mechanisms import four_bar, four_bar_angles
from numeric import assert_close, traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion
from remora.model.joints import kind

EVERY = [*KINDS, "rod", "gear"]
dm93 = rm.papers.dm93


def case(seed, bodies=7, kinds=(), count=2):
    """A random robot with random loops, gravity, a state, forces and external wrenches."""
    base = ("free", "fixed", "planar")[seed % 3]
    robot, q, v = random_loops(seed, bodies, kinds, count, base)
    for joint in robot.joints:
        robot = robot.replace_joint(joint.name, rotor_inertia=np.zeros_like(joint.rotor_inertia))
    rng = np.random.default_rng(seed)
    robot = robot.replace(gravity=rng.normal(size=3))
    v = rm.loops.project_velocity(robot, q, v)
    return robot, q, v, 3.0 * rng.normal(size=robot.nv), rng.normal(size=(len(robot.bodies), 6))


def coordinates(robot, q, v):
    return dm93.image_coordinates(robot, q), dm93.image_rates(robot, q, v)


def accelerations(robot, q, v, vdot):
    """Q̈ of every body from v̇: ½ Q ω̇ + ½ Q̇ ω, about the centres of mass."""
    Q, rate = coordinates(robot, q, v)
    a = rm.dynamics.accelerations(robot, q, v, vdot)
    result = []
    for body, x, dx, own in zip(robot.bodies, Q, rate, a, strict=True):
        at_com = np.r_[own[:3], own[3:] + np.cross(own[:3], body.com)]
        twist = 2.0 * dq.mul(dq.conjugate(x), dx)
        result.append(0.5 * dq.mul(x, dq.pure(at_com)) + 0.5 * dq.mul(dx, twist))
    return np.array(result)


# The equations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind_name", EVERY)
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_are_the_derivatives_of_the_equations(kind_name, seed):
    """Φ = ∂g/∂Q and γ = -Φ̇ Q̇, exactly, for all eight components of every body."""
    robot, q, v, tau, _ = case(seed, bodies=4, kinds=[kind_name])
    Q, rate = coordinates(robot, q, v)
    assert np.abs(dm93.image_space_constraints(robot, Q).loops).max() < 1e-13
    system = dm93.image_space_system(robot, Q, rate, tau)
    x, dx = (casadi.SX.sym(name, Q.size) for name in ("x", "dx"))
    at = np.array(casadi.vertsplit(x), dtype=object).reshape(Q.shape)
    g = casadi.vertcat(*dm93.image_space_constraints(robot, at).loops.tolist())
    G = casadi.jacobian(g, x)
    rows = casadi.Function("g", [x, dx], [G, casadi.jtimes(G @ dx, x, dx)])
    Phi, bend = (np.array(y) for y in rows(Q.reshape(-1), rate.reshape(-1)))
    m = len(Phi)
    assert_close(system.Phi[-m:], Phi, rtol=1e-12)
    assert_close(system.gamma[-m:], -bend[:, 0], rtol=1e-11)
    assert_close(Phi @ rate.reshape(-1), np.zeros(m), rtol=1e-11)


@pytest.mark.parametrize("kind_name", EVERY)
@pytest.mark.parametrize("seed", range(4))
def test_every_kind_of_constraint(kind_name, seed):
    compare(*case(seed, kinds=[kind_name]))


@pytest.mark.parametrize("seed", range(20))
def test_several_loops(seed):
    compare(*case(100 + seed, bodies=9, count=2 + seed % 2))


def compare(robot, q, v, tau, w, rtol=1e-10):
    """(30) row by row; accelerations, multipliers and wrenches as by articulated bodies."""
    Q, rate = coordinates(robot, q, v)
    system = dm93.image_space_system(robot, Q, rate, tau, w)
    found = dm93.image_space_solution(robot, Q, rate, tau, w)
    second, load = found.acceleration.reshape(-1), system.F + system.h
    left = system.M @ second + system.Phi.T @ found.multipliers
    loads = max(1.0, np.abs(load).max(), np.abs(found.multipliers).max())
    assert_close(left, load, rtol=1e-11, scale=loads)
    size = max(1.0, np.abs(second).max())
    assert_close(system.Phi @ second, system.gamma, rtol=1e-10, scale=size)
    for formulation in ("articulated", "composite"):
        vdot = rm.forward_dynamics(robot, q, v, tau, w, formulation)
        expected = accelerations(robot, q, v, vdot)
        assert_close(found.acceleration, expected, rtol=1e-10, scale=size)
    ours = rm.forward_dynamics(robot, q, v, tau, w, "image_space")
    assert_close(ours, vdot, rtol=1e-10)
    reactions = rm.reaction_wrenches(robot, q, v, tau, w)
    force = max(1.0, np.abs(reactions).max())
    assert_close(found.reactions, reactions, rtol=rtol, scale=force)
    wrenches = rm.constraint_wrenches(robot, q, v, tau, w)
    assert_close(found.constraint_wrenches, wrenches, rtol=rtol, scale=force)
    by_image = rm.reaction_wrenches(robot, q, v, tau, w, "image_space")
    assert_close(by_image, reactions, rtol=rtol, scale=force)


@pytest.mark.parametrize("seed", range(12))
def test_prescribed_joints(seed):
    """As `hybrid_dynamics`: with loops, whose remaining freedoms are enough, and without."""
    robot, q, v, tau, w = case(seed, kinds=["spherical"] if seed % 2 else ["rod", "gear"])
    rng = np.random.default_rng(seed)
    free = [j.name for j in robot.joints if kind(j).nv > 0]
    chosen = rng.choice(free, size=2, replace=False)
    given = {str(n): rng.normal(size=kind(robot.joints[n]).nv) for n in chosen}
    for on in (True, False):
        robot = robot if on else robot.with_active(off=[c.name for c in robot.constraints])
        try:
            vdot, force = rm.hybrid_dynamics(robot, q, v, tau, given, w)
        except rm.RemoraError:  # the motion contradicts the loop
            continue
        Q, rate = coordinates(robot, q, v)
        found = dm93.image_space_solution(robot, Q, rate, tau, w, prescribed=given)
        expected = accelerations(robot, q, v, vdot)
        assert_close(found.acceleration, expected, rtol=1e-10)
        assert_close(found.tau, force, rtol=1e-10)
        system = dm93.image_space_system(robot, Q, rate, tau, w, given)
        second, size = found.acceleration.reshape(-1), max(1.0, np.abs(found.multipliers).max())
        left = system.M @ second + system.Phi.T @ found.multipliers
        assert_close(left, system.F + system.h, rtol=1e-11, scale=size)
        assert_close(system.Phi @ second, system.gamma, rtol=1e-10)


def test_batches_and_symbols():
    robot, q, v, tau, w = case(3, bodies=5, kinds=["rod", "revolute", "gear"])
    Q, rate = coordinates(robot, q, v)
    many = [np.broadcast_to(x, (2, 3, *x.shape)) for x in (Q, rate, tau, w)]

    def functions(Q, rate, tau, w):
        return (
            *dm93.image_space_system(robot, Q, rate, tau, w),
            *dm93.image_space_solution(robot, Q, rate, tau, w, stabilization=2.0),
            *dm93.image_space_constraints(robot, Q),
            *dm93.project_image_coordinates(robot, Q, rate, iterations=1),
        )

    one = functions(Q, rate, tau, w)
    for several, single in zip(functions(*many), one, strict=True):
        assert_close(several[1, 2], single, rtol=1e-12)
    for expression, single in zip(traced(functions, [Q, rate, tau, w]), one, strict=True):
        assert_close(expression, single, rtol=1e-11)
    kernel = rm.compile(
        rm.forward_dynamics, robot, fixed={"formulation": "image_space"},
        arguments=("q", "v", "tau", "wrenches"),
    )  # fmt: skip
    expected = rm.forward_dynamics(robot, q, v, tau, w)
    assert_close(kernel(q, v, tau, w), expected, rtol=1e-11)


@pytest.mark.parametrize(("kind_name", "number"), [("rod", "length"), ("gear", "ratio")])
def test_numbers_of_constraints_as_parameters(kind_name, number):
    """A kernel takes the length of a rod, or the ratio of a gear, with each call."""
    robot, q, v, tau, _ = case(4, bodies=4, kinds=[kind_name])
    name = robot.constraints[0].name
    kernel = rm.compile(
        rm.forward_dynamics, robot, fixed={"formulation": "image_space"},
        parameters=[f"{name}.{number}"],
    )  # fmt: skip
    value = float(getattr(robot.constraints[0], number))
    expected = rm.forward_dynamics(robot, q, v, tau)
    assert_close(kernel(q, v, tau, value), expected, rtol=1e-11)


# The paper's rod (29), and mechanisms by hand ---------------------------------------------------

m, j, L, g = 2.0, 0.3, 1.5, 9.81
THETA, RATE = np.array([0.2, 0.5]), np.array([5.5, -9.0])


def paper_pendulum():
    """Link 2 in the plane; the massless link 1 is the rod from O to its centre of mass."""
    make = rm.Builder("pendulum", gravity=(0, -g, 0)).body("link 2", m, (0, 0, 0), (0.2, 0.25, j))
    make.joint("plane", "planar", None, "link 2", axis=(0, 0, 1))
    return make.rod("link 1", None, "link 2", L).build(base=None)


def test_double_pendulum_with_its_rod():
    """mL θ̈1 = W cos θ1, (θ1 + θ2)¨ = 0: in the plane, Φ and γ are those of (32)."""
    robot = paper_pendulum()
    along = np.array([np.cos(THETA[0]), np.sin(THETA[0])])
    across = np.array([-along[1], along[0]])
    Q = pose.from_parts(
        quaternion.from_axis_angle(np.array([0, 0, 1.0]), np.asarray(THETA.sum())),
        np.r_[L * along, 0.0],
    )
    twist = np.r_[0, 0, RATE.sum(), quaternion.rotate(
        quaternion.conjugate(Q[:4]), np.r_[L * RATE[0] * across, 0.0])]  # fmt: skip
    rate = 0.5 * dq.mul(Q, dq.pure(twist))
    found = dm93.image_space_solution(robot, Q[None], rate[None], np.zeros(3))
    system = dm93.image_space_system(robot, Q[None], rate[None], np.zeros(3))
    assert_close(system.Phi[-1], [0, 0, 0, 0, *Q[4:]])  # (32): [0 0 Q5 Q6]
    assert_close(system.gamma[-1], -rate[4:] @ rate[4:])
    # acceleration of the centre of mass, d̈ of d = 2 q_o q*
    q, o, dq_, do, ddq, ddo = (
        *np.split(Q, 2),
        *np.split(rate, 2),
        *np.split(found.acceleration[0], 2),
    )
    back = quaternion.conjugate
    acceleration = 2.0 * (
        quaternion.mul(ddo, back(q)) + 2.0 * quaternion.mul(do, back(dq_))
        + quaternion.mul(o, back(ddq))
    )  # fmt: skip
    spin = -g * np.cos(THETA[0]) / L
    expected = L * (spin * across - RATE[0] ** 2 * along)
    assert_close(acceleration, [0.0, *expected, 0.0])
    assert_close(expected, [-42.56, -18.44], rtol=1e-4)
    # the force of the pin on link 2 is -(λ2/4) d, along the rod
    pin = m * (expected + np.array([0, g]))
    assert_close(-found.multipliers[-1] / 4.0 * L * along, pin)
    wrench = found.constraint_wrenches[0]
    assert_close(quaternion.rotate(q, wrench[:3]), [*pin, 0.0])
    assert_close(wrench[3:], np.zeros(3))


def test_integrated_double_pendulum_is_that_of_the_example():
    """Runge-Kutta steps of all eight components end where the example's four do."""
    path = Path(__file__).resolve().parents[2] / "examples" / "13_dm93_double_pendulum.py"
    planar = runpy.run_path(str(path))
    robot = paper_pendulum()
    four, rates = planar["image_point"](planar["START"][0], planar["START"][1])
    x = np.zeros((2, 1, 8))
    x[:, 0, [3, 0, 5, 6]] = four, rates

    def slope(x):
        return np.stack([x[1], dm93.image_space_solution(robot, *x, np.zeros(3)).acceleration])

    h, steps = 1e-3, 100
    for _ in range(steps):
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
    expected, _ = planar["integrated"](np.array([0.0, h * steps]))
    assert_close(x[0, 0, [3, 0, 5, 6]], expected[:, -1], rtol=1e-8)


def test_four_bar_differs_from_its_open_tree():
    """One freedom: the crank's acceleration by Eksergian's equation, in plain numbers."""
    a, b, c, theta, rate, torque = 1.0, 2.5, 2.0, 0.9, 1.7, 2.0
    robot = four_bar()
    theta3, theta4 = four_bar_angles(theta)
    q = np.array([theta, theta3 - theta, theta4])

    def speeds(t):
        t3, t4 = four_bar_angles(t)
        return (
            a * np.sin(t4 - t) / (b * np.sin(t3 - t4)),
            a * np.sin(t - t3) / (c * np.sin(t4 - t3)),
        )

    def inertia(t):
        t3, _ = four_bar_angles(t)
        w3, w4 = speeds(t)
        middle = a * np.array([-np.sin(t), np.cos(t)])
        middle = middle + 0.5 * b * w3 * np.array([-np.sin(t3), np.cos(t3)])
        ends = 0.3 + 1.5 * (0.5 * a) ** 2 + w4**2 * (0.3 + 1.5 * (0.5 * c) ** 2)
        return ends + 0.3 * w3**2 + 1.5 * middle @ middle

    w3, w4 = speeds(theta)
    v = rate * np.array([1.0, w3 - 1.0, w4])
    Q, dQ = coordinates(robot, q, v)
    found = dm93.image_space_solution(robot, Q, dQ, (torque, 0.0, 0.0))
    d = 1e-4  # fourth-order difference
    slope = (8 * (inertia(theta + d) - inertia(theta - d))
             - inertia(theta + 2 * d) + inertia(theta - 2 * d)) / (12 * d)  # fmt: skip
    expected = (torque - 0.5 * slope * rate**2) / inertia(theta)
    spin = 2.0 * dq.vec6(dq.mul(dq.conjugate(Q[1]), found.acceleration[1]))[:3]
    assert_close(np.linalg.norm(spin), abs(expected), rtol=1e-10)
    tree = robot.replace(constraints=())
    free = dm93.image_space_solution(tree, Q, dQ, (torque, 0.0, 0.0))
    assert np.abs(free.acceleration - found.acceleration).max() > 0.1


def test_two_arms_and_a_workpiece_by_plane_mechanics():
    """Figure 3 with a second arm: Newton and Euler for five bars in (x, y, θ), six pins."""
    path = Path(__file__).resolve().parents[2] / "examples" / "46_dm93_cooperating_arms.py"
    example = runpy.run_path(str(path))
    robot, q = example["robot"], example["q"]
    rng = np.random.default_rng(5)
    v = rm.loops.project_velocity(robot, q, rng.normal(size=robot.nv))
    tau = np.r_[rng.normal(size=4), 0.0, 0.0, 0.0]
    Q, rate = coordinates(robot, q, v)
    found = dm93.image_space_solution(robot, Q, rate, tau)

    bars = [example["UPPER"], example["LOWER"]] * 2 + [example["WORK"]]
    angle = np.array([q[0], q[0] + q[1], q[2], q[2] + q[3], q[6]])
    spin = np.array([v[0], v[0] + v[1], v[2], v[2] + v[3], v[6]])
    pins = ((None, 0), (0, 1), (None, 2), (2, 3), (1, 4), (3, 4))  # the last one at its far end
    G, gamma = np.zeros((12, 15)), np.zeros(12)
    for k, pin in enumerate(pins):
        for sign, i in zip((-1.0, 1.0), pin, strict=True):
            if i is None:
                continue
            end = 0.5 if sign < 0 or k == 5 else -0.5  # of the bar's length from its centre
            u = end * bars[i][0] * np.array([np.cos(angle[i]), np.sin(angle[i])])
            G[2 * k : 2 * k + 2, 3 * i : 3 * i + 2] = sign * np.eye(2)
            G[2 * k : 2 * k + 2, 3 * i + 2] = sign * np.array([-u[1], u[0]])
            gamma[2 * k : 2 * k + 2] += sign * spin[i] ** 2 * u
    mass = np.concatenate([[m, m, m * length**2 / 12] for length, m in bars])
    force = np.concatenate([[0.0, -g * m, 0.0] for _, m in bars])
    force[2::3] += [tau[0] - tau[1], tau[1], tau[2] - tau[3], tau[3], 0.0]
    S = np.block([[np.diag(mass), G.T], [G, np.zeros((12, 12))]])
    x = np.linalg.solve(S, np.r_[force, gamma])
    for i in range(5):
        at_com = 2.0 * dq.vec6(dq.mul(dq.conjugate(Q[i]), found.acceleration[i]))
        assert_close(at_com[2], x[3 * i + 2], rtol=1e-12, scale=np.abs(x).max())
    for grip, k in ((0, 4), (1, 5)):  # on the workpiece, in its axes
        wrench = quaternion.rotate(Q[4, :4], found.constraint_wrenches[grip, :3])
        expected = [*-x[15 + 2 * k : 17 + 2 * k], 0.0]
        assert_close(wrench, expected, rtol=1e-11, scale=np.abs(x).max())


# Off the manifold -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind_name", EVERY)
def test_projection(kind_name):
    """Newton's steps reach the closed chain from a drift of 1e-4, and conserve what is on it."""
    robot, q, v, tau, _ = case(2, kinds=[kind_name])
    Q, rate = coordinates(robot, q, v)
    same, same_rate = dm93.project_image_coordinates(robot, Q, rate)
    assert_close(same, Q, rtol=1e-12)
    assert_close(same_rate, rate, rtol=1e-11)
    drift = 1e-4 * np.random.default_rng(1).normal(size=(2, *Q.shape))
    Q, rate = dm93.project_image_coordinates(robot, Q + drift[0], rate + drift[1])
    assert max(np.abs(x).max() for x in dm93.image_space_constraints(robot, Q)) < 1e-12
    Phi = dm93.image_space_system(robot, Q, rate, tau).Phi
    assert_close(Phi @ rate.reshape(-1), np.zeros(len(Phi)), rtol=1e-11)
    q, v = dm93.from_image_coordinates(robot, Q, rate)
    assert np.abs(rm.loops.constraint_residual(robot, q)).max() < 1e-11
    assert np.abs(rm.loops.constraint_jacobian(robot, q) @ v).max() < 1e-10


@pytest.mark.parametrize("rpy", [(0.0, 0.0, 0.0), (0.3, -0.7, 1.1)])
def test_redundant_loops_off_the_manifold(rpy):
    """A planar linkage closed by a pin: three of its five equations depend on the others.

    Out of the plane by a drift they are independent and contradict each other; they count as
    dependent within the violation, so that the motion stays that of the mechanism.
    """
    robot = four_bar(rpy=rpy)
    theta3, theta4 = four_bar_angles(0.9)
    q = np.array([0.9, theta3 - 0.9, theta4])
    v = rm.loops.project_velocity(robot, q, np.array([1.7, 0.0, 0.0]))
    tau = np.array([2.0, 0.0, 0.0])
    Q, rate = coordinates(robot, q, v)
    exact = dm93.image_space_solution(robot, Q, rate, tau)
    vdot = rm.forward_dynamics(robot, q, v, tau)
    assert_close(exact.acceleration, accelerations(robot, q, v, vdot), rtol=1e-11)
    assert_close(exact.reactions, rm.reaction_wrenches(robot, q, v, tau), rtol=1e-11)
    rng = np.random.default_rng(4)
    for size in (1e-12, 1e-9, 1e-7, 1e-5, 1e-4):
        off = size * rng.normal(size=Q.shape)
        found = dm93.image_space_solution(robot, Q + off, rate, tau, tolerance=0.1)
        assert_close(found.acceleration, exact.acceleration, rtol=1e3 * size + 1e-11)
        back, _ = dm93.project_image_coordinates(robot, Q + off, rate)
        assert max(np.abs(x).max() for x in dm93.image_space_constraints(robot, back)) < 1e-12
        assert_close(back, Q, rtol=1e2 * size + 1e-12)


def test_gears_modulo_full_turns():
    """Poses do not determine full turns; the equation is the smallest gap of those they allow."""
    make = rm.Builder("gears", gravity=(0, 0, 0))
    for name, kind_name in (("a", "revolute"), ("b", "revolute"), ("c", "prismatic")):
        make.body(name, 1.0, (0, 0, 0), (1, 1, 1)).joint(
            name, kind_name, None, name, axis=(0, 0, 1)
        )
    robot = make.build(base=None)
    for parent, child, ratio, off in (
        ("a", "b", 2.0, 0.01), ("a", "b", 2 / 7, 0.01), ("a", "b", np.sqrt(0.1), 0.0),
        ("a", "c", 0.3, 0.01), ("c", "b", 0.3, 0.01), ("c", "c", 1.0, 0.0),
    ):  # fmt: skip
        i, k = robot.joint_index(parent), robot.joint_index(child)
        if i == k:
            continue
        one = np.eye(8)[0]
        gear = rm.Constraint("gear", "gear", i, k, one, one, np.zeros((0, 3)),
                             *map(np.array, (0.0, 0.0, ratio, 0.2)))  # fmt: skip
        geared = closed(robot, gear)
        for lead in (0.3, 2.0 * np.pi + 0.3, -20.0):
            q = np.zeros(3)
            q[i], q[k] = lead, ratio * lead + 0.2 + off
            Q = dm93.image_coordinates(geared, q)
            value = dm93.image_space_constraints(geared, Q).loops
            assert_close(value, [off], rtol=1e-5)


def test_open_loops_and_contradictions_are_refused():
    robot, q, v, tau, _ = case(4, kinds=["spherical"])
    Q, rate = coordinates(robot, q, v)
    moved = robot.replace_constraint(
        "spherical0", child_placement=dq.mul(
            pose.from_translation(np.array([0.5, 0, 0])), robot.constraints[0].child_placement)
    )  # fmt: skip
    with pytest.raises(rm.RemoraError, match="Q violates the equations of constraint 'spherical0'"):
        dm93.image_space_solution(moved, Q, rate, tau)
    fast = 30.0 * np.random.default_rng(1).normal(size=robot.nv)
    other = dm93.image_rates(robot, q, v + fast)
    with pytest.raises(rm.RemoraError, match="Q_rate leaves the equations of constraint 'sph"):
        dm93.image_space_solution(robot, Q, other, tau)
    linkage = four_bar()
    theta3, theta4 = four_bar_angles(0.9)
    angles = np.array([0.9, theta3 - 0.9, theta4])
    rest = coordinates(linkage, angles, np.zeros(3))
    names = [j.name for j in linkage.joints if kind(j).nv]
    given = {names[0]: 1.0, names[2]: -3.0}
    with pytest.raises(rm.RemoraError, match="constraint 'pin' contradicts"):
        dm93.image_space_solution(linkage, *rest, np.zeros(3), prescribed=given)


def test_a_massless_link_is_a_rod():
    """A body without inertia is refused, with what to write for it."""
    make = rm.Builder("pendulum").body("link 1", 0.0).body("link 2", m, (0, 0, 0), (0.2, 0.25, j))
    make.joint("O", "revolute", None, "link 1").joint(
        "C", "revolute", "link 1", "link 2", xyz=(L, 0, 0)
    )
    robot = make.build(base=None)
    with pytest.raises(rm.RemoraError, match=r"'link 1' has no mass.*rod"):
        rm.forward_dynamics(robot, np.zeros(2), np.zeros(2), np.zeros(2), formulation="image_space")


def test_one_constraint_of_every_kind_on_one_robot():
    robot, q, _, _, w = case(7, bodies=30, kinds=["spherical"])
    rng = np.random.default_rng(8)
    made = []
    for kind_name in ("rod", "cartesian", "universal", "planar"):
        ends = rng.choice(np.arange(-1, 30), size=2, replace=False)
        made.append(constraint(kind_name, robot, q, *map(int, ends), rng, kind_name))
    robot = closed(robot, *robot.constraints, *made)
    v = rm.loops.project_velocity(robot, q, rng.normal(size=robot.nv))
    compare(robot, q, v, rng.normal(size=robot.nv), w, rtol=1e-8)
