"""VT18's own system and tables."""

import numpy as np
import pytest

import remora as rm
from closed_loops import random_loops
from numeric import assert_close, rate_along_motion, traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, screw
from remora.dynamics.joint_arrays import LoadedState
from remora.dynamics.maximal.newton_euler import system
from remora.errors import RemoraError
from remora.model import joints
from trees import Case

FORWARD = [name for name, row in rm.dynamics.FORMULATIONS.items() if row.hybrid is not None]


def test_dense_system_is_vt18s(rng):
    """S of [VT18, eq. 50] for the satellite: its size, its empty corner, its solution."""
    robot = rm.load("vt18_satellite")
    q, v = rm.random_state(robot, rng)
    tau = rng.normal(size=9)
    S, B = system(robot, LoadedState(q, v, tau)).dense()
    assert S.shape == (8 * 4 + 3 * 5,) * 2  # three revolute joints, five reactions each
    assert not np.any(S[32:, 32:])
    solution = np.linalg.solve(S, B)
    reference = rm.papers.vt18.newton_euler_solution(robot, q, v, tau)
    base = screw.adjoint_inverse(
        rm.algebra.pose.from_translation(robot.bodies[0].com), reference.accelerations[0]
    )
    assert_close(dq.vec6(solution[:8]), base, rtol=1e-11)


@pytest.mark.parametrize(
    ("kind_name", "V", "V_act"),
    [
        ("revolute", [2, 3, 4, 6, 7], [8]),
        ("prismatic", [2, 3, 6, 7, 8], [4]),
        ("spherical", [2, 3, 4], [6, 7, 8]),
        ("cylindrical", [2, 3, 6, 7], [8, 4]),
        ("cartesian", [6, 7, 8], [2, 3, 4]),
    ],
)
def test_maps_are_vt18s_tables_4_and_5(kind_name, V, V_act):
    """For joints about z: V = Eᵀ keeps the rows named in Table 4, V_act those of Table 5.

    VT18 order a cylindrical joint's forces [f, τ]; ours are ordered as its speeds, [τ, f].
    """
    axis = {"axis": (0, 0, 1)} if rm.JOINT_TYPES[kind_name].axes else {}
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .joint("j", kind_name, None, "a", **axis)
        .build(base=None)
    )
    q = rm.neutral(robot)
    ours = joints.reaction_basis(robot.joints[0], q)
    eight = np.insert(np.insert(ours, 3, 0.0, axis=0), 0, 0.0, axis=0)
    assert_close(eight, np.eye(8)[:, [i - 1 for i in V]])
    act = joints.actuation_basis(robot.joints[0], q)
    eight = np.insert(np.insert(act, 3, 0.0, axis=0), 0, 0.0, axis=0)
    assert_close(eight, np.eye(8)[:, [i - 1 for i in V_act]])


# Table 4: rows of the dual velocity that Λ keeps; Table 6: those that are the joint's speeds.
LAMBDA = {
    "revolute": [2, 3, 6, 7, 8],  # E145
    "prismatic": [2, 3, 4, 6, 7],  # E158
    "spherical": [6, 7, 8],  # E12345
    "cylindrical": [2, 3, 6, 7],  # E1458
    "cartesian": [2, 3, 4],  # E15678
}
SPEEDS = {
    "revolute": [4],
    "prismatic": [8],
    "cylindrical": [4, 8],
    "cartesian": [6, 7, 8],
    "spherical": [2, 3, 4],  # the angular velocity itself; Table 6 has Euler angles
}


@pytest.mark.parametrize("kind_name", LAMBDA)
def test_lambda_and_l_are_vt18s_tables_4_and_6(kind_name):
    """Through `newton_euler_system`: the tables' rows, ours in the order of V's columns."""
    axis = {"axis": (0, 0, 1)} if rm.JOINT_TYPES[kind_name].axes else {}
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=1, inertia=(1, 1, 1))
        .joint("j", kind_name, "a", "b", **axis)
        .build()
    )
    q, v = rm.random_state(robot, 0)
    found = rm.papers.vt18.newton_euler_system(robot, q, v)
    kept = [int(np.flatnonzero(row)[0]) + 1 for row in found.Lambda[1]]
    assert sorted(kept) == LAMBDA[kind_name]
    assert_close(found.Lambda[1], np.eye(8)[[n - 1 for n in kept]])
    assert_close(found.L[1], np.eye(8)[[n - 1 for n in SPEEDS[kind_name]]])
    # row n of Λ is column n of V with real and dual part exchanged
    assert_close(found.Lambda[1], dq.swap(found.V[1].T))
    assert found.Lambda[0].shape == (0, 8)
    assert found.L[0].shape == (6, 8)


def test_table_6_of_the_spherical_joint():
    """Its L as printed: from the body's angular velocity to the rates of Euler angles 3-2-1."""
    rng = np.random.default_rng(3)
    phi, theta, psi = rng.uniform(-1, 1, 3)
    rates = rng.normal(size=3)  # φ̇, θ̇, ψ̇
    h = 1e-6
    quaternion = rm.algebra.quaternion

    def attitude(t):
        angles = np.array([phi, theta, psi]) + t * rates
        return quaternion.from_rpy(angles)

    change = quaternion.mul(quaternion.conjugate(attitude(-h)), attitude(h))
    omega = 2.0 * quaternion.log(change) / (2.0 * h)
    t, c, s = np.tan(theta), np.cos(phi), np.sin(phi)
    L = np.array([[1, t * s, c * t], [0, c, -s], [0, s / np.cos(theta), c / np.cos(theta)]])
    assert_close(L @ omega, rates, rtol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_generalized_coordinates_of_tables_3_and_6(seed):
    """Γ there and back; L ω_{i/k} is the rate of Γ along the motion, to the last digits."""
    c = Case(seed, largest=8)
    robot, q, v = c.state
    vt18 = rm.papers.vt18
    Gamma = vt18.generalized_coordinates(robot, q)
    again = vt18.from_generalized_coordinates(robot, Gamma, q)
    x, y = rm.poses(robot, again), rm.poses(robot, q)
    assert_close(x * np.sign(np.sum(x * y, axis=-1, keepdims=True)), y, rtol=1e-12)
    L, twists = vt18.rate_maps(robot, q), rm.dynamics.joint_twists(robot, q, rm.twists(robot, q, v))
    moved = [i for i, joint in enumerate(robot.joints) if joint.kind != "free"]
    rates = [L[i] @ dq.pure(twists[i]) for i in moved]
    expected = rate_along_motion(
        robot, lambda q, v: vt18.generalized_coordinates(robot, q), q, v, 0.0 * v
    ) if len(Gamma) else np.zeros(0)  # fmt: skip
    assert_close(np.concatenate([np.zeros(0), *rates]), expected, rtol=1e-11)
    for i, joint in enumerate(robot.joints):
        if joint.kind != "spherical":
            assert_close(L[i], vt18.newton_euler_system(robot, q, v).L[i])
    Q, _ = rm.random_state(robot, 1, (2, 3))
    many = vt18.generalized_coordinates(robot, Q)
    assert_close(many[1, 2], vt18.generalized_coordinates(robot, Q[1, 2]))
    assert vt18.from_generalized_coordinates(robot, many, q).shape == (2, 3, robot.nq)


def test_table_6_is_singular_at_a_pitch_of_90_degrees():
    make = rm.Builder().body("a", mass=1, inertia=(1, 1, 1))
    robot = make.joint("wrist", "spherical", None, "a").build(base=None)
    q = rm.papers.vt18.from_generalized_coordinates(robot, [0.2, 0.5 * np.pi, 0.1], [1, 0, 0, 0])
    with pytest.raises(RemoraError, match=r"'wrist' is at a pitch of ±90°.*Table 6"):
        rm.papers.vt18.rate_maps(robot, q)


@pytest.mark.parametrize("seed", range(0, 20, 3))
def test_public_system(seed):
    """S [ẏ; T] = B gives the solution; batches and symbols; twists of v or of one's own."""
    c = Case(seed, largest=5)
    robot, q, v = c.state
    found = rm.papers.vt18.newton_euler_system(robot, q, v, c.tau, c.wrenches)
    x = np.linalg.solve(found.S, found.B)
    solution = rm.papers.vt18.newton_euler_solution(robot, q, v, c.tau, c.wrenches)
    nb = len(robot.bodies)
    size = max(1.0, np.abs(solution.accelerations).max())
    for i, body in enumerate(robot.bodies):
        own = screw.adjoint(pose.from_translation(body.com), dq.vec6(x[8 * i : 8 * i + 8]))
        if robot.joints[i].kind != "fixed" or robot.joints[i].parent >= 0:
            assert_close(own, solution.accelerations[i], rtol=1e-11, scale=size)
    at, loads = 8 * nb, max(1.0, np.abs(solution.reactions).max())
    for i, V in enumerate(found.V):
        T = x[at : at + V.shape[-1]]
        at += V.shape[-1]
        assert_close(dq.vec6(V @ T), solution.reactions[i], rtol=1e-11, scale=loads)
    same = rm.papers.vt18.newton_euler_system(
        robot, q, v, c.tau, c.wrenches, rm.twists(robot, q, v)
    )
    assert_close(same.B, found.B, rtol=1e-12)
    Q, U = rm.random_state(robot, 1, (2,))
    many = rm.papers.vt18.newton_euler_system(robot, Q, U)
    one = rm.papers.vt18.newton_euler_system(robot, Q[1], U[1])
    assert_close(many.S[1], one.S)
    assert_close(many.B[1], one.B)
    if robot.nv:
        S, B = traced(
            lambda q, v: rm.papers.vt18.newton_euler_system(robot, q, v)[:2], [Q[1], U[1]]
        )
        assert_close(S, one.S)
        assert_close(B, one.B)
    with pytest.raises(RemoraError, match="twists must have shape"):
        rm.papers.vt18.newton_euler_system(robot, q, v, twists=np.zeros((nb, 5)))


@pytest.mark.parametrize("seed", range(24))
def test_matrix_of_equation_76(seed):
    """Square, of the size of (76), regular; its solution is that of `hybrid_dynamics`."""
    c = Case(seed, largest=8)
    robot, q, v = c.state
    names = [j.name for j in robot.joints if joints.kind(j).nv > 0 and c.rng.random() < 0.5]
    given = {n: c.rng.normal(size=joints.kind(robot.joints[n]).nv) for n in names}
    found = rm.papers.vt18.newton_euler_system(robot, q, v, c.tau, c.wrenches, prescribed=given)
    nb, indices = len(robot.bodies), [robot.joint_index(n) for n in names]
    R = sum(V.shape[-1] for V in found.V)
    d = sum(joints.kind(robot.joints[i]).nv for i in indices)
    assert found.S.shape == (8 * (nb - len(names)) + R + d,) * 2
    x = np.linalg.solve(found.S, found.B)
    vdot, tau = rm.hybrid_dynamics(robot, q, v, c.tau, given, c.wrenches)
    a = rm.dynamics.accelerations(robot, q, v, vdot)
    ydot = (found.P @ x[: found.P.shape[-1]] + found.p).reshape(nb, 8)
    size = max(1.0, np.abs(a).max())
    for i, body in enumerate(robot.bodies):
        own = screw.adjoint(pose.from_translation(body.com), dq.vec6(ydot[i]))
        assert_close(own, a[i], rtol=1e-10, scale=size)
    needed = np.concatenate([np.zeros(0), *(tau[robot.joints[i].v] for i in sorted(indices))])
    assert_close(x[len(x) - d :], needed, rtol=1e-10)
    at, reactions = found.P.shape[-1], rm.papers.vt18.newton_euler_solution(
        robot, q, v, c.tau, c.wrenches, given).reactions  # fmt: skip
    for i, V in enumerate(found.V):
        T = x[at : at + V.shape[-1]]
        at += V.shape[-1]
        assert_close(dq.vec6(V @ T), reactions[i], rtol=1e-10, scale=max(1, np.abs(x).max()))


@pytest.mark.parametrize("kind_name", ["spherical", "universal", "rod", "gear", "helical"])
def test_system_of_closed_chains(kind_name):
    """Rows and columns of the constraints come last; [ẏ; T; λ] is that of articulated bodies."""
    robot, q, v = random_loops(3, 7, [kind_name], base="free")
    for joint in robot.joints:
        robot = robot.replace_joint(joint.name, rotor_inertia=0.0 * joint.rotor_inertia)
    rng = np.random.default_rng(3)
    v = rm.loops.project_velocity(robot, q, v)
    tau, w = rng.normal(size=robot.nv), rng.normal(size=(7, 6))
    name = next(j.name for j in robot.joints[1:] if joints.kind(j).nv == 1)
    for given in ({}, {name: 0.3}):
        try:
            vdot, force = rm.hybrid_dynamics(robot, q, v, tau, given, w)
        except RemoraError:
            continue
        found = rm.papers.vt18.newton_euler_system(robot, q, v, tau, w, prescribed=given)
        x = np.linalg.solve(found.S, found.B)
        ydot = (found.P @ x[: found.P.shape[-1]] + found.p).reshape(7, 8)
        a = rm.dynamics.accelerations(robot, q, v, vdot)
        for i, body in enumerate(robot.bodies):
            own = screw.adjoint(pose.from_translation(body.com), dq.vec6(ydot[i]))
            assert_close(own, a[i], rtol=1e-10, scale=max(1.0, np.abs(a).max()))
        if given:
            assert_close(x[-1], force[robot.joints[name].v.start], rtol=1e-10)
        else:
            lam = rm.loops.constraint_multipliers(robot, q, v, tau, w)
            assert_close(x[len(x) - len(lam) :], lam, rtol=1e-10)
