"""The variational midpoint rule: its equations against the derivatives of the discrete action."""

import inspect

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion, traced
from remora.algebra import dual_quaternion, screw, vector
from remora.algebra.array_ops import asarray
from remora.dynamics import variational_midpoint
from remora.errors import ShapeError
from remora.model import state
from remora.model.joints import kind
from trees import Case

H = 0.05


def symbols(name, n):
    symbol = casadi.SX.sym(name, n)
    return symbol, asarray(symbol).reshape(-1)


def lagrangian(robot, q, v):
    return rm.kinetic_energy(robot, q, v) - rm.potential_energy(robot, q)


def wrench_force(robot, q, wrenches):
    """Σ JᵀW."""
    zero = np.zeros(robot.nv)
    still = rm.inverse_dynamics(robot, q, zero, zero)
    return still - rm.inverse_dynamics(robot, q, zero, zero, wrenches)


def with_rotors(robot, rng, everywhere=False):
    """The robot with random rotors, only where speeds are rates of coordinates or everywhere."""
    joints = [
        rm.Joint(**{**vars(j), "rotor_inertia": rng.uniform(0, 0.5, kind(j).nv)})
        if everywhere or kind(j).quaternion is None
        else j
        for j in robot.joints
    ]
    return robot.replace(joints=joints)


def with_follower():
    builder = rm.Builder("gripper", gravity=(1, 2, -9)).body("bus", mass=10, inertia=(1, 1, 1))
    for name, mimic in (("left", None), ("right", ("left_joint", -1.5, 0.1))):
        builder.body(name, mass=1, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.2))
        builder.joint(
            f"{name}_joint", "revolute", "bus", name, xyz=(0.5, 0, 0), axis=(0, 0.6, 0.8),
            mimic=mimic, rotor_inertia=0.4,
        )  # fmt: skip
    return builder.build()


def cases(count, largest):
    """Random trees with every kind of base and joint, rotors, gravity; and a follower."""
    made = [Case(seed, largest) for seed in range(count)]
    for c in made[::2]:
        c.robot = with_rotors(c.robot, c.rng)
    follower = Case(0)
    follower.robot = with_follower()
    follower.q, follower.v = rm.random_state(follower.robot, 3)
    follower.tau = follower.rng.normal(size=follower.robot.nv)
    follower.wrenches = follower.rng.normal(size=(len(follower.robot.bodies), 6))
    return [c for c in (*made, follower) if c.robot.nv]


CASES = cases(24, 8)
FOLLOWER = CASES[-1].robot


def coadjoint(robot, v, p):
    """ad*_v p with <ad*_v p, η> = <p, [v, η]>, joint by joint."""
    out = np.zeros(robot.nv)
    for joint in robot.joints:
        own, force = v[joint.v], p[joint.v]
        if joint.kind == "free":
            swapped = dual_quaternion.swap(force)
            out[joint.v] = dual_quaternion.swap(-screw.cross(own, swapped))
        elif joint.kind == "spherical":
            out[joint.v] = -vector.cross(own, force)
    return out


# The Lagrangian ----------------------------------------------------------------------------------


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.robot.joints[0].kind)
def test_slopes_are_the_derivatives_of_the_lagrangian(c):
    robot, n = c.robot, c.robot.nv
    (D, d), (V, v) = symbols("d", n), symbols("v", n)
    L = lagrangian(robot, rm.integrate(robot, c.q, d), v)
    exact = casadi.Function("f", [D, V], [casadi.gradient(L, V), casadi.gradient(L, D)])
    by_v, by_q = (np.array(x)[:, 0] for x in exact(np.zeros(n), c.v))
    ours = variational_midpoint.lagrangian_slopes(robot, c.q, c.v)
    assert_close(ours[0], by_v, 1e-13)
    assert_close(ours[1], by_q, 1e-13)
    loaded = variational_midpoint.lagrangian_slopes(robot, c.q, c.v, c.wrenches)
    assert_close(loaded[1], by_q + wrench_force(robot, c.q, c.wrenches), 1e-12)
    assert_close(variational_midpoint.velocity_of(robot, c.q, by_v), c.v, 1e-10)


@pytest.mark.parametrize("c", CASES[::2], ids=lambda c: c.robot.joints[0].kind)
def test_slopes_by_the_coriolis_matrix_and_the_equation_of_motion(c):
    """∂L/∂q = Cᵀv - G - ad*_v(Hv), and d/dt(Hv) = ad*_v(Hv) + ∂L/∂q + τ along the motion."""
    robot = c.robot if c.robot is FOLLOWER else with_rotors(c.robot, c.rng, everywhere=True)
    p, slope = variational_midpoint.lagrangian_slopes(robot, c.q, c.v)
    C = rm.coriolis_matrix(robot, c.q, c.v)
    G = rm.bias_force(robot, c.q, np.zeros(robot.nv))
    assert_close(slope, C.T @ c.v - G - coadjoint(robot, c.v, p), 1e-12)
    vdot = rm.forward_dynamics(robot, c.q, c.v, c.tau, formulation="composite")
    if robot is FOLLOWER:
        rate = rm.mass_matrix(robot, c.q) @ vdot + (C + C.T) @ c.v
    else:
        rate = rate_along_motion(robot, lambda q, v: rm.mass_matrix(robot, q) @ v, c.q, c.v, vdot)
    assert_close(rate, coadjoint(robot, c.v, p) + slope + c.tau, 1e-11)


# The step ----------------------------------------------------------------------------------------


def transposed(robot, function, dq, p):
    """Aᵀp of the linear map A x = function(robot, dq, x), by its matrix."""
    return function(robot, dq, np.eye(robot.nv)) @ p  # rows are columns of A


def discrete_momenta(robot, q, w, tau, wrenches=None):
    """p0 and p1 of a step, as they stand at the head of the file, by matrices."""
    dq, T, D = H * w, state.log_rate, state.log_velocity
    p, g = variational_midpoint.lagrangian_slopes(
        robot, rm.integrate(robot, q, 0.5 * dq), w, wrenches
    )
    g = g + tau
    p0 = transposed(robot, T, -dq, p - 0.5 * H * transposed(robot, D, -0.5 * dq, g))
    p1 = transposed(robot, T, dq, p + 0.5 * H * transposed(robot, D, 0.5 * dq, g))
    return p0, p1, p, g


def derivatives_of_action(robot, q0, w):
    """-∂L_d/∂q0 and ∂L_d/∂q1 of L_d = h L(q_m, difference(q0, q1)/h), by CasADi."""
    n = robot.nv
    (A, a), (B, b) = symbols("a", n), symbols("b", n)
    start, end = rm.integrate(robot, q0, a), rm.integrate(robot, rm.integrate(robot, q0, H * w), b)
    u = rm.difference(robot, start, end)
    action = H * lagrangian(robot, rm.integrate(robot, start, 0.5 * u), u / H)
    f = casadi.Function("f", [A, B], [-casadi.gradient(action, A), casadi.gradient(action, B)])
    return [np.array(x)[:, 0] for x in f(np.zeros(n), np.zeros(n))]


@pytest.mark.parametrize("fast", [1.0, 12.0])
@pytest.mark.parametrize("c", CASES, ids=lambda c: c.robot.joints[0].kind)
def test_momenta_are_the_derivatives_of_the_action(c, fast):
    """Without forces; with fast = 12 the joints turn by one or two radians a step."""
    robot, w = c.robot, fast * c.v
    p0, p1 = derivatives_of_action(robot, c.q, w)
    ours = discrete_momenta(robot, c.q, w, np.zeros(robot.nv))
    assert_close(ours[0], p0, 2e-12)
    assert_close(ours[1], p1, 2e-12)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.robot.joints[0].kind)
def test_forces_do_their_work_in_the_middle(c):
    """p1·η1 - p0·η0 has the forces' h f·η_m for all motions of the ends [HLW06, section VI.6].

    η_m, the middle's motion, is differentiated by CasADi.
    """
    robot, n, w = c.robot, c.robot.nv, c.v
    (A, a), (B, b) = symbols("a", n), symbols("b", n)
    q1 = rm.integrate(robot, c.q, H * w)
    start, end = rm.integrate(robot, c.q, a), rm.integrate(robot, q1, b)
    u = rm.difference(robot, start, end)
    q_m = rm.integrate(robot, c.q, 0.5 * H * w)
    moved = rm.difference(robot, q_m, rm.integrate(robot, start, 0.5 * u))
    moved = casadi.vertcat(*moved.tolist())
    f = casadi.Function("f", [A, B], [casadi.jacobian(moved, A), casadi.jacobian(moved, B)])
    by_start, by_end = (np.array(x) for x in f(np.zeros(n), np.zeros(n)))
    force = c.tau + wrench_force(robot, q_m, c.wrenches)
    loaded = discrete_momenta(robot, c.q, w, c.tau, c.wrenches)
    free = discrete_momenta(robot, c.q, w, 0.0 * c.tau)
    assert_close(free[0] - loaded[0], H * by_start.T @ force, 1e-11)
    assert_close(loaded[1] - free[1], H * by_end.T @ force, 1e-11)


@pytest.mark.parametrize("fast", [1.0, 12.0])
@pytest.mark.parametrize("c", CASES, ids=lambda c: c.robot.joints[0].kind)
def test_start_and_end_of_a_step(c, fast):
    """The step that begins with p0 has no defect and ends with p1."""
    robot, w = c.robot, fast * c.v
    p0, p1, p_m, g = discrete_momenta(robot, c.q, w, c.tau, c.wrenches)
    scale = max(1.0, np.abs(p_m).max())
    defect = variational_midpoint.starting_defect(robot, H * w, p0, p_m, g, H)
    assert_close(defect, np.zeros(robot.nv), 1e-12, scale=scale)
    assert_close(variational_midpoint.ending_momentum(robot, H * w, p0, g, H), p1, 1e-12)


def test_a_free_base_keeps_its_momentum(rng):
    """Whatever w is, solved for or not: p1 is p0 seen from the base as it stands at the end."""
    robot = rm.random_robot(4, bodies=5)
    q, w = rm.random_state(robot, rng)
    p = rng.normal(size=robot.nv)
    _, g = variational_midpoint.lagrangian_slopes(robot, q, w)
    assert np.all(g[:6] == 0.0)
    g[6:] += rng.normal(size=robot.nv - 6)  # forces between the bodies
    p1 = variational_midpoint.ending_momentum(robot, w, p, g, 1.0)
    q1 = rm.integrate(robot, q, w)
    start, end = (screw.adjoint(x[:8], dual_quaternion.swap(m[:6])) for x, m in ((q, p), (q1, p1)))
    assert_close(end, start, 1e-14)


# Any scalar, any batch ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["lagrangian_slopes", "velocity_of", "starting_defect", "ending_momentum"]
)
def test_on_batches_and_symbols(name, rng):
    robot = rm.random_robot(5, bodies=12, gravity=True)
    function, batch = getattr(variational_midpoint, name), (2, 3)
    q, v = rm.random_state(robot, rng, batch)
    p, p_m, g, dq = rng.normal(size=(4, *batch, robot.nv))
    h, wrenches = rng.uniform(0.01, 0.1, batch), rng.normal(size=(*batch, len(robot.bodies), 6))
    known = {
        "q": q, "v": v, "p": p, "p_m": p_m, "g": g, "dq": dq, "h": h, "wrenches": wrenches
    }  # fmt: skip
    given = {k: known[k] for k in list(inspect.signature(function).parameters)[1:]}

    def on(*arrays):
        result = function(robot, *arrays)
        return result if isinstance(result, tuple) else (result,)

    many = on(*given.values())
    for i in np.ndindex(batch):
        for a, b in zip(many, on(*(x[i] for x in given.values())), strict=True):
            assert_close(a[i], b, 1e-13)
    for a, b in zip(many, traced(on, [x[0, 0] for x in given.values()]), strict=True):
        assert_close(b, a[0, 0], 1e-12)


def test_wrong_arguments_are_refused():
    robot = rm.random_robot(5, bodies=3)
    _, v = rm.random_state(robot, 0)
    with pytest.raises(ShapeError, match="g"):
        variational_midpoint.ending_momentum(robot, v, v, v[:-1], H)
    with pytest.raises(ShapeError, match="p_m"):
        variational_midpoint.starting_defect(robot, v, v, v[1:], v, H)


def test_a_robot_that_cannot_move():
    robot = rm.Builder("stone").body("stone", mass=1, inertia=(1, 1, 1)).joint(
        "ground", "fixed", None, "stone"
    ).build()  # fmt: skip
    by_v, by_q = variational_midpoint.lagrangian_slopes(robot, [], [])
    assert by_v.shape == by_q.shape == (0,)
    assert variational_midpoint.velocity_of(robot, [], []).shape == (0,)
    assert variational_midpoint.ending_momentum(robot, [], [], [], H).shape == (0,)
