"""SPART17's own quantities against SPART's numbers, and on every kind of joint."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion, traced
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.errors import RemoraError
from trees import Case


@pytest.mark.parametrize("k", range(8))
def test_against_spart(unmerged, k):
    """Axes, inertias, N and its rate, H, C and H* of the toolkit itself."""
    reference = unmerged
    robot = reference.robot
    q, v = reference.state(k)
    state = reference.data["states"][k]
    kinematics, dynamics = state["kinematics"], state["dynamics"]
    axes = rm.papers.spart17.joint_axes(robot, q)
    for own, joint, n in zip(axes, robot.joints[1:], reference.numbers[1:], strict=True):
        if joint.kind == "fixed":
            assert not np.any(own)
        else:
            assert_close(own, kinematics["e"][n - 1])
    inertias = rm.papers.spart17.link_inertias(robot, q)
    theirs = np.array([dynamics["I0"], *dynamics["Im"]])
    for body, n in reference.massless:  # without mass, yet some have an inertia
        theirs[reference.numbers[body]] += theirs[n]
    assert_close(inertias, theirs[reference.numbers])
    found = rm.papers.spart17.natural_orthogonal_complement(robot, q)
    assert_close(found.N, reference.rows(kinematics["N"]))
    assert_close(found.N_l @ found.N_d, found.N)
    rate = rm.papers.spart17.natural_orthogonal_complement_rate(robot, q, v)
    assert_close(rate, reference.rows(kinematics["Ndot"]))
    u = np.concatenate([state["inputs"]["u0"], state["inputs"]["um"]])
    twists = np.array([kinematics["t0"], *kinematics["tL"]])[reference.numbers]
    assert_close(found.N @ u, twists.reshape(-1))
    H, C = (
        rm.papers.spart17.generalized_inertia(robot, q),
        rm.papers.spart17.convective_inertia(robot, q, v),
    )
    for part, name in zip(H, ("H0", "H0m", None, "Hm"), strict=True):
        assert_close(part, np.transpose(dynamics["H0m"]) if name is None else dynamics[name])
    for part, name in zip(C, ("C0", "C0m", "Cm0", "Cm"), strict=True):
        assert_close(part, dynamics[name])
    assert_close(rm.papers.spart17.floating_inertia(robot, q), dynamics["H_star"])


@pytest.mark.parametrize("k", range(8))
def test_the_calls_against_spart(unmerged, k):
    """Kinematics, Velocities, Jacob, MCB, FD, ID and Floating_ID of the toolkit itself."""
    spart, robot = rm.papers.spart17, unmerged.robot
    state = unmerged.data["states"][k]
    given = {key: np.array(x, dtype=float) for key, x in state["inputs"].items()}
    kinematics, dynamics = state["kinematics"], state["dynamics"]
    links = [n - 1 for n in unmerged.numbers[1:]]
    R0 = pose.to_rotation_matrix(pose.from_quaternion(np.roll(given["base_quat_xyzw"], 1)))
    q, v = spart.state(robot, R0, *(given[key] for key in ("r0", "qm", "u0", "um")))
    found = spart.kinematics(robot, q)
    for name, ours in found._asdict().items():
        theirs = np.array(kinematics[name])[links]
        if name == "e":  # of a fixed joint the toolkit has any axis
            moving = [i for i, joint in enumerate(robot.joints[1:]) if joint.kind != "fixed"]
            ours, theirs = ours[moving], theirs[moving]
        assert_close(ours, theirs)
    t0, tL = spart.velocities(robot, q, v)
    assert_close(t0, kinematics["t0"])
    assert_close(tL, np.array(kinematics["tL"])[links])
    M0, Mm = spart.composite_body_masses(robot, q)
    assert_close(M0, dynamics["M0_tilde"])
    assert_close(Mm, np.array(dynamics["Mm_tilde"])[links])
    for end in state["end_links"]:
        if end["link_id"] in unmerged.numbers:
            body = unmerged.numbers.index(end["link_id"])
            J0, Jm = spart.jacobians(robot, q, np.array(end["rp"]), body)
            assert_close(J0, end["J0p"])
            assert_close(Jm, np.array(end["Jmp"]).reshape(6, -1))
    w = np.array([given["wF0"], *given["wFm"][links]])
    centres = np.array([given["r0"], *kinematics["rL"]])
    for body, n in unmerged.massless:  # its wrench acts on the body that carries it
        lever, load = centres[n] - centres[unmerged.numbers[body]], given["wFm"][n - 1]
        w[body] += np.concatenate([load[:3] + np.cross(lever, load[3:]), load[3:]])
    fd = spart.flying_forward_dynamics(robot, q, v, given["tau0"], given["taum"], w[0], w[1:])
    assert_close(np.concatenate(fd), np.r_[dynamics["FD_u0dot"], dynamics["FD_umdot"]])
    own = spart.flying_inverse_dynamics(robot, q, v, given["u0dot"], given["umdot"], w[0], w[1:])
    assert_close(np.concatenate(own), np.r_[dynamics["ID_tau0"], dynamics["ID_taum"]])
    taum, u0dot = spart.floating_base_inverse_dynamics(robot, q, v, given["umdot"], w[0], w[1:])
    assert_close(taum, np.array(dynamics["FloatID_taum"]).reshape(-1))
    assert_close(u0dot, dynamics["FloatID_u0dot"])
    free = spart.flying_forward_dynamics(robot, q, v, np.zeros(6), given["taum"])
    assert_close(np.concatenate(free), np.r_[dynamics["FD_free_u0dot"], dynamics["FD_free_umdot"]])


# Every kind of joint ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_joint(seed):
    """t = N q̇, ṫ = N q̈ + Ṅ q̇ by differentiation, B_ij B_jk = B_ik, H and C of the robot."""
    c = Case(seed, largest=8, base="free")
    robot, q, v = c.state
    nb = len(robot.bodies)
    noc = rm.papers.spart17.natural_orthogonal_complement(robot, q)
    speeds = spart_speeds(robot, q) @ v
    twists = (noc.N @ speeds).reshape(nb, 6)
    for i, body in enumerate(robot.bodies):
        frame = rm.Frame("com", i, pose.from_translation(body.com))
        x, xi = rm.frame_pose(robot, q, frame), rm.frame_twist(robot, q, v, frame)
        R = pose.to_rotation_matrix(x)
        assert_close(twists[i], np.concatenate([R @ xi[:3], R @ xi[3:]]))
    # Ṅ is the derivative of N along the motion, exactly
    rate = rm.papers.spart17.natural_orthogonal_complement_rate(robot, q, v)
    exact = rate_along_motion(
        robot,
        lambda q, v: rm.papers.spart17.natural_orthogonal_complement(robot, q).N,
        q,
        v,
        0.0 * v,
    )
    assert_close(rate, exact, rtol=1e-12)
    B = rm.papers.spart17.twist_propagation(robot, q)
    assert B.shape == (nb, nb, 6, 6)
    for i in range(nb):
        carriers = list(rm.topology.ancestors(robot, i))
        for j in range(nb):
            if j in carriers:
                for k in rm.topology.ancestors(robot, j):
                    assert_close(B[i, j] @ B[j, k], B[i, k], rtol=1e-13)
            elif j != i:
                assert not np.any(B[i, j])
    blocks = noc.N_l.reshape(nb, 6, nb, 6).transpose(0, 2, 1, 3)
    assert_close(blocks, B, rtol=1e-15)
    T = spart_speeds(robot, q)  # q̇ = T v
    H = whole(rm.papers.spart17.generalized_inertia(robot, q))
    assert_close(T.T @ H @ T, rm.mass_matrix(robot, q))
    # H q̈ + C q̇ is what v̇ needs: T⁻ᵀ(H v̇ + bias)
    C = whole(rm.papers.spart17.convective_inertia(robot, q, v))
    vdot = c.vdot
    T_rate = rate_along_motion(robot, lambda q, v: spart_speeds(robot, q), q, v, vdot)
    needed = T.T @ (H @ (T @ vdot + T_rate @ v) + C @ speeds)
    still = robot.replace(gravity=np.zeros(3))
    expected = rm.inverse_dynamics(still, q, v, vdot)
    assert_close(needed, expected, rtol=1e-11)


def whole(partition):
    base, coupling, back, manipulator = partition
    return np.block([[base, coupling], [back, manipulator]])


def spart_speeds(robot, q):
    """T with q̇ = T v: ṙ0 = R (v + ω × c) in inertial axes; works on symbols."""
    placed = dq.mul(robot.joints[0].placement, q[:8])
    R = pose.to_rotation_matrix(placed)
    top = np.concatenate([np.eye(3), np.zeros((3, robot.nv - 3))], axis=1)
    lever = rm.algebra.vector.skew(robot.bodies[0].com)
    middle = np.concatenate([-R @ lever, R, np.zeros((3, robot.nv - 6))], axis=1)
    bottom = np.eye(robot.nv)[6:]
    return np.concatenate([top, middle, bottom], axis=0)


@pytest.mark.parametrize("seed", range(0, 20, 4))
def test_floating_matrices(seed):
    """H* q̈m + C* q̇m are the torques of a robot without momentum whose base nothing drives."""
    c = Case(seed, largest=7, base="free")
    robot = c.robot.replace(gravity=np.zeros(3))
    q, n = c.q, robot.nv - 6
    speeds, rates = c.rng.normal(size=n), c.rng.normal(size=n)
    v = np.concatenate([rm.dynamics.base_response(robot, q) @ speeds, speeds])
    assert_close(rm.momentum(robot, q, v), np.zeros(6), rtol=1e-11)
    H, C = (
        rm.papers.spart17.floating_inertia(robot, q),
        rm.papers.spart17.floating_convective_inertia(robot, q, speeds),
    )
    tau, _ = rm.dynamics.floating_inverse_dynamics(robot, q, v, rates)
    assert_close(H @ rates + C @ speeds, tau, rtol=1e-11)


def test_batches_and_symbols():
    robot = rm.random_robot(3, bodies=4, kinds=("revolute", "prismatic", "helical"), base="free")
    q, v = rm.random_state(robot, 0, (2, 3))

    def functions(q, v):
        return (
            rm.papers.spart17.joint_axes(robot, q),
            rm.papers.spart17.link_inertias(robot, q),
            rm.papers.spart17.twist_propagation(robot, q),
            *rm.papers.spart17.natural_orthogonal_complement(robot, q),
            rm.papers.spart17.natural_orthogonal_complement_rate(robot, q, v),
            *rm.papers.spart17.generalized_inertia(robot, q),
            *rm.papers.spart17.convective_inertia(robot, q, v),
            rm.papers.spart17.floating_inertia(robot, q),
            rm.papers.spart17.floating_convective_inertia(robot, q, v[..., 6:]),
        )

    many, one = functions(q, v), functions(q[1, 2], v[1, 2])
    for all_of_them, single in zip(many, one, strict=True):
        assert all_of_them.shape == (2, 3, *single.shape)
        assert_close(all_of_them[1, 2], single, rtol=1e-12)
    for expression, single in zip(traced(functions, [q[1, 2], v[1, 2]]), one, strict=True):
        assert_close(expression, single, rtol=1e-12)
    kernel = rm.compile(rm.papers.spart17.floating_inertia, robot)
    assert_close(kernel(q), many[-2], rtol=1e-12)


def test_refusals():
    robot = rm.load("vt18_two_arm")
    q, v = rm.random_state(robot, 0)
    with pytest.raises(RemoraError, match="kind 'spherical' has no single axis"):
        rm.papers.spart17.joint_axes(robot, q)
    with pytest.raises(RemoraError, match=r"joint_speeds must have shape"):
        rm.papers.spart17.floating_convective_inertia(robot, q, v)
    fixed = rm.load("servicer", base="fixed", merge_fixed=False)
    with pytest.raises(RemoraError, match="must be free, not 'fixed'"):
        rm.papers.spart17.generalized_inertia(fixed, rm.neutral(fixed))
