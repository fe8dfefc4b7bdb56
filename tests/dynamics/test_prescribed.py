"""Joints that follow a given motion, or are locked [VT18, eqs. 61-76]."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.dynamics.formulations import MAXIMAL
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.maximal.joint_maps import joint_maps
from remora.dynamics.maximal.newton_euler import system
from remora.dynamics.recursive.outward_pass import moving_links
from remora.errors import RemoraError
from remora.model import joints
from remora.model.joints import kind
from trees import Case

FORWARD = [name for name, row in rm.dynamics.FORMULATIONS.items() if row.hybrid is not None]


@pytest.mark.parametrize("seed", range(40))
def test_every_formulation_agrees_for_any_set_of_joints(seed):
    c = Case(seed, largest=14)
    robot, q, v = c.state
    names = [j.name for j in robot.joints if kind(j).nv > 0]
    chosen = [n for n in names if c.rng.random() < 0.5]
    given = {n: c.rng.normal(size=kind(robot.joints[n]).nv) for n in chosen}
    results = {f: rm.hybrid_dynamics(robot, q, v, c.tau, given, c.wrenches, f) for f in FORWARD}
    vdot, tau = results["articulated"]
    for n in chosen:
        assert np.array_equal(vdot[robot.joints[n].v], given[n])
    for other, force in results.values():
        assert_close(other, vdot, rtol=1e-11)
        assert_close(force, tau, rtol=1e-11)
    # what the prescribed joints need makes exactly that motion
    size = np.abs(rm.mass_matrix(robot, q)).max(initial=1.0) * max(
        1.0, np.abs(vdot).max(initial=0.0)
    )
    assert_close(rm.inverse_dynamics(robot, q, v, vdot, c.wrenches), tau, rtol=1e-11, scale=size)
    assert_close(rm.forward_dynamics(robot, q, v, tau, c.wrenches), vdot, rtol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_a_locked_joint_is_a_fixed_one(seed):
    """Accelerations of all else, and the load that the lock carries, as with the joint welded."""
    c = Case(seed, largest=10, base="free")
    robot = c.robot
    if len(robot.joints) < 2:
        return
    joint, v = robot.joints[1], c.v.copy()
    v[joint.v] = 0.0
    zero = np.zeros(kind(joint).nv)
    vdot, _ = rm.hybrid_dynamics(robot, c.q, v, c.tau, {joint.name: zero}, c.wrenches)
    builder = rm.Builder("welded", gravity=robot.gravity)
    for i, (body, old) in enumerate(zip(robot.bodies, robot.joints, strict=True)):
        builder.body(body.name, body.mass, body.com, body.inertia)
        parent = None if old.parent < 0 else robot.bodies[old.parent].name
        given = {} if i == 1 else dict(zip(("axis", "axis2"), old.axes, strict=False))
        if old.kind == "planar" and i != 1:
            given = {"axis": old.axes[2]}
        welded = i == 1
        builder.joint(
            old.name, "fixed" if welded else old.kind, parent, body.name,
            placement=joints.relative_pose(old, c.q) if welded else old.placement,
            pitch=old.pitch, **given,
        )  # fmt: skip
    other = builder.build(base=None)
    keep_v = np.delete(np.arange(robot.nv), np.r_[joint.v])
    keep_q = np.delete(np.arange(robot.nq), np.r_[joint.q])
    alone = rm.forward_dynamics(other, c.q[keep_q], v[keep_v], c.tau[keep_v], c.wrenches)
    assert_close(vdot[keep_v], alone, rtol=1e-11)


@pytest.mark.parametrize("formulation", ["newton_euler", "decoupled", "image_space"])
@pytest.mark.parametrize("seed", range(12))
def test_reactions_with_prescribed_joints(seed, formulation):
    """The same as with the actuation that was found applied as a force."""
    c = Case(seed, largest=10)
    robot, q, v = c.state
    names = [j.name for j in robot.joints if kind(j).nv > 0 and c.rng.random() < 0.5]
    given = {n: c.rng.normal(size=kind(robot.joints[n]).nv) for n in names}
    by_index = {robot.joint_index(name): value for name, value in given.items()}
    found = MAXIMAL[formulation](robot, LoadedState(q, v, c.tau, c.wrenches, by_index))
    expected = rm.reaction_wrenches(robot, q, v, found.tau, c.wrenches)
    assert_close(found.reactions, expected, rtol=1e-11)


def test_one_number_for_every_state_of_a_batch():
    robot = rm.load("vt18_satellite")
    for batch in ((), (5,), (5, 1), (2, 3)):
        q, v = rm.random_state(robot, 0, batch)
        tau = np.zeros(robot.nv)
        value = np.linspace(-1, 1, int(np.prod(batch))).reshape(batch)
        vdot, _ = rm.hybrid_dynamics(robot, q, v, tau, {"J2": value})
        assert vdot.shape == (*batch, robot.nv)
        assert_close(vdot[..., robot.joints["J2"].v.start], value)
        again, _ = rm.hybrid_dynamics(robot, q, v, tau, {"J2": value[..., None]})
        assert np.array_equal(again, vdot)
    with pytest.raises(RemoraError, match="batch shape"):
        rm.hybrid_dynamics(robot, q, v, tau, {"J2": np.zeros(7)})


def test_against_the_reduced_system_of_vt18():
    """One revolute joint prescribed: the distal body's acceleration is struck from the system.

    [VT18, eqs. 61-76] with dense matrices: the unknowns are the other accelerations, all
    reactions, and the joint's actuation.
    """

    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 3)
    tau, j, qdd = np.array([0.0] * 6 + [0.3, -0.2, 0.1]), 2, 0.7
    nb = len(robot.bodies)
    free = np.where(np.arange(9) == robot.joints[j].v.start, 0.0, tau)
    S, B = system(robot, LoadedState(q, v, free)).dense()
    links = moving_links(robot, q, v)
    maps = joint_maps(robot, q, {})
    n, R = 8 * nb, S.shape[0] - 8 * nb
    k = robot.joints[j].parent
    # the distal body's acceleration from its parent's [VT18, eq. 64], affine: ẏ_j = A ẏ_k + b
    to_k, to_j = (pose.from_translation(robot.bodies[i].com) for i in (k, j))
    x = dq.mul(dq.conjugate(to_k), dq.mul(joints.relative_pose(robot.joints[j], q), to_j))
    A = dq.left(dq.conjugate(x)) @ dq.right(x)
    own = links[j].c + links[j].S[:, 0] * qdd
    b = dq.pure(screw.adjoint_inverse(to_j, own))
    keep = [c for c in range(n) if not 8 * j <= c < 8 * j + 8]
    distal = slice(8 * j, 8 * j + 8)
    # actuation columns: on the distal and on the proximal body [VT18, eqs. 68, 69]
    act = np.zeros((n + R, 1))
    V = dq.pure(maps[j].V_act[:, 0])
    for body, x_joint, sign in (
        (j, dq.conjugate(to_j), -1.0),
        (k, dq.mul(dq.conjugate(to_k), joints.relative_pose(robot.joints[j], q)), 1.0),
    ):
        act[8 * body : 8 * body + 8, 0] = (
            sign * dq.left(x_joint) @ dq.right(dq.conjugate(x_joint)) @ V
        )
    columns = np.array(S)
    columns[:, 8 * k : 8 * k + 8] += S[:, distal] @ A
    right = B - S[:, distal] @ b
    unknown = np.hstack([columns[:, keep], S[:, n:], act])
    # the joint's own constraint now holds by itself: least squares drops the empty rows
    found = np.linalg.lstsq(unknown, right, rcond=None)[0]
    _, force = rm.hybrid_dynamics(robot, q, v, tau, {robot.joints[j].name: qdd})
    assert_close(found[-1], force[robot.joints[j].v.start], rtol=1e-11)
    solution = rm.papers.vt18.newton_euler_solution(
        robot, q, v, tau, prescribed={robot.joints[j].name: qdd}
    )
    base = screw.adjoint_inverse(
        pose.from_translation(robot.bodies[0].com), solution.accelerations[0]
    )
    assert_close(dq.vec6(found[:8]), base, rtol=1e-11)


def reduced_system(substituted, rows):
    """Equation 71 for joint J2 of the satellite: matrix, right-hand side, true actuation.

    Args:
        substituted: put eq. 64 in where the distal body's acceleration is struck.
        rows: "reduced" to the actuation's by Υ (75), or all eight of the distal body.
    """
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, 3)
    tau, j, qdd = np.array([0.0] * 6 + [0.3, -0.2, 0.1]), 2, 0.7
    nb, k = len(robot.bodies), robot.joints[j].parent
    idle = np.where(np.arange(9) == robot.joints[j].v.start, 0.0, tau)
    found = rm.papers.vt18.newton_euler_system(robot, q, v, idle)
    S, B, n = found.S, found.B, 8 * nb
    to_k, to_j = (pose.from_translation(robot.bodies[i].com) for i in (k, j))
    joint_pose = joints.relative_pose(robot.joints[j], q)
    distal = slice(8 * j, 8 * j + 8)
    if substituted:
        x = dq.mul(dq.conjugate(to_k), dq.mul(joint_pose, to_j))
        link = moving_links(robot, q, v)[j]
        known = dq.pure(screw.adjoint_inverse(to_j, link.c + link.S[:, 0] * qdd))
        S, B = S.copy(), B - S[:, distal] @ known
        S[:, 8 * k : 8 * k + 8] += S[:, distal] @ dq.left(dq.conjugate(x)) @ dq.right(x)
    act = np.zeros((len(B), 1))
    V = found.V_act[j]
    for body, seen, sign in (
        (j, dq.conjugate(to_j), -1.0),
        (k, dq.mul(dq.conjugate(to_k), joint_pose), 1.0),
    ):
        turn = dq.left(seen) @ dq.right(dq.conjugate(seen))
        act[8 * body : 8 * body + 8] = sign * turn @ V  # (73), with j = i + 1 for the distal body
    keep = [c for c in range(n) if not 8 * j <= c < 8 * j + 8]
    unknown = np.hstack([S[:, keep], S[:, n:], act])
    if rows == "reduced":  # Υ: V_actᵀ ⟦q⟧L ⟦q*⟧R on the distal body's rows (75)
        seen = to_j
        upsilon = V.T @ dq.left(seen) @ dq.right(dq.conjugate(seen))
        unknown = np.vstack([unknown[: 8 * j], upsilon @ unknown[distal], unknown[8 * j + 8 :]])
        B = np.concatenate([B[: 8 * j], upsilon @ B[distal], B[8 * j + 8 :]])
    _, force = rm.hybrid_dynamics(robot, q, v, tau, {robot.joints[j].name: qdd})
    return unknown, B, force[robot.joints[j].v.start]


def test_equation_71_as_printed_is_regular_and_wrong():
    """Struck with its column, the distal body's inertia is lost: square, full rank, wrong."""
    unknown, B, actuation = reduced_system(substituted=False, rows="reduced")
    assert unknown.shape == (40, 40)  # 8(B - 1) + R + d
    assert np.linalg.matrix_rank(unknown) == 40
    found = np.linalg.solve(unknown, B)[-1]
    assert found == pytest.approx(10.3486, rel=1e-4)  # N m
    assert actuation == pytest.approx(12.5190, rel=1e-4)


def test_equation_71_with_the_accelerations_put_in_lacks_equations():
    """With eq. 64 put in, Υ leaves r_i = 5 equations too few; all eight rows are right."""
    unknown, _, _ = reduced_system(substituted=True, rows="reduced")
    assert unknown.shape == (40, 40)
    assert np.linalg.matrix_rank(unknown) == 35
    unknown, B, actuation = reduced_system(substituted=True, rows="all")
    assert unknown.shape == (47, 40)
    assert np.linalg.matrix_rank(unknown) == 40
    found = np.linalg.lstsq(unknown, B, rcond=None)[0]
    assert_close(unknown @ found, B, rtol=1e-11)
    assert_close(found[-1], actuation, rtol=1e-11)


def test_the_actuation_replays_the_motion_as_a_torque():
    """Integrate a prescribed motion, then apply the actuation it needed as a torque of time.

    The first run records the actuation at its steps; the second, with steps twice as long, takes
    it as a torque that depends on time only, and must reproduce the motion to the order of the
    method.
    """
    robot = rm.load("vt18_satellite")
    name, j = robot.joints[2].name, robot.joints[2].v.start
    amplitude, rate, h, steps = 0.4, 2.0, 0.005, 200
    torques = {}

    def prescribed(t, q, v):  # q(t) = A (1 - cos ωt): starts at rest
        qdd = amplitude * rate**2 * np.cos(rate * t)
        vdot, tau = rm.hybrid_dynamics(robot, q, v, np.zeros(robot.nv), {name: qdd})
        torques[round(t / h * 2)] = tau[j]  # the last evaluation at a time is at a step's start
        return vdot

    def replayed(t, q, v):
        tau = np.zeros(robot.nv)
        tau[j] = torques[round(t / h * 2)]
        return rm.forward_dynamics(robot, q, v, tau)

    rest = rm.neutral(robot), np.zeros(robot.nv)
    first = integrate(robot, prescribed, *rest, h, steps)
    second = integrate(robot, replayed, *rest, 2 * h, steps // 2)
    assert_close(second[0], first[0], rtol=1e-6)  # fourth order with steps of 0.01 s
    assert_close(second[1], first[1], rtol=1e-6)
    expected = amplitude * (1 - np.cos(rate * h * steps))
    assert_close(second[0][robot.joints[2].q.start], expected, rtol=1e-6)
    assert_close(rm.momentum(robot, *second), np.zeros(6), rtol=1e-6)


def integrate(robot, acceleration, q, v, h, steps):
    """Runge-Kutta-Munthe-Kaas of order four without the bracket corrections of higher order."""
    for n in range(steps):
        t = n * h
        k1 = acceleration(t, q, v)
        k2 = acceleration(t + h / 2, rm.integrate(robot, q, h / 2 * v), v + h / 2 * k1)
        v2 = v + h / 2 * k1
        k3 = acceleration(t + h / 2, rm.integrate(robot, q, h / 2 * v2), v + h / 2 * k2)
        v3 = v + h / 2 * k2
        k4 = acceleration(t + h, rm.integrate(robot, q, h * v3), v + h * k3)
        v4 = v + h * k3
        q = rm.integrate(robot, q, h / 6 * (v + 2 * v2 + 2 * v3 + v4))
        v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return q, v
