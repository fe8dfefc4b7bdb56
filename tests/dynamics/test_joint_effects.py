"""Rotor inertia, joints that follow others, friction."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.errors import RemoraError
from remora.model.joints import kind

FORWARD = [name for name, row in rm.dynamics.FORMULATIONS.items() if row.hybrid is not None]


def geared(rotor=0.0):
    """A robot with a follower, damping, friction and, if asked, rotors."""
    builder = rm.Builder("gripper").body("bus", mass=10, inertia=(1, 1, 1))
    for name, mimic in (("left", None), ("right", ("left_joint", -1.5, 0.1))):
        builder.body(name, mass=1, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.2))
        builder.joint(
            f"{name}_joint", "revolute", "bus", name, xyz=(0.5, 0, 0), axis=(0, 0.6, 0.8),
            mimic=mimic, damping=0.3, friction=0.2, rotor_inertia=rotor,
        )  # fmt: skip
    return builder.build()


def test_rotor_inertia_is_on_the_diagonal():
    for rotor in (0.0, 0.7):
        robot = rm.random_robot(3, bodies=8)
        loaded = robot.replace(
            joints=[
                rm.Joint(**{**vars(j), "rotor_inertia": np.full(kind(j).nv, rotor)})
                for j in robot.joints
            ]
        )
        q, v = rm.random_state(robot, 0)
        H = rm.mass_matrix(loaded, q)
        assert_close(H, rm.mass_matrix(robot, q) + rotor * np.eye(robot.nv))
        tau = np.linspace(-1, 1, robot.nv)
        a, b = (
            rm.forward_dynamics(loaded, q, v, tau, formulation=f)
            for f in ("articulated", "composite")
        )
        assert_close(a, b, rtol=1e-11)
        assert_close(rm.inverse_dynamics(loaded, q, v, a), tau, rtol=1e-11)
        given = {"joint_0": np.ones(6)}
        vdot, force = rm.hybrid_dynamics(loaded, q, v, tau, given)
        assert_close(rm.inverse_dynamics(loaded, q, v, vdot), force, rtol=1e-11)
        if rotor:
            with pytest.raises(RemoraError, match="rotor inertia"):
                rm.forward_dynamics(loaded, q, v, tau, formulation="newton_euler")


def test_followers_move_with_their_leaders():
    """The reduced equations against an independent robot whose joints are tied by hand."""
    tied = geared(rotor=0.7)
    free = tied.replace(
        joints=[
            *tied.joints[:2],
            rm.Joint(
                **{**vars(tied.joints[2]), "mimic": None, "q": slice(9, 10), "v": slice(7, 8)}
            ),
        ]
    )
    q, v = rm.random_state(tied, 1)
    G = np.zeros((8, 7))  # v_free = G v
    G[:7, :7] = np.eye(7)
    G[7, 6] = -1.5
    q_free = np.append(q, -1.5 * q[8] + 0.1)
    H = rm.mass_matrix(tied, q)
    assert_close(H, G.T @ rm.mass_matrix(free, q_free) @ G)
    assert_close(rm.bias_force(tied, q, v), G.T @ rm.bias_force(free, q_free, G @ v))
    energy = rm.kinetic_energy(free, q_free, G @ v)
    assert_close(rm.kinetic_energy(tied, q, v), energy, scale=energy)
    vdot = np.linspace(-1, 1, 7)
    expected = G.T @ rm.inverse_dynamics(free, q_free, G @ v, G @ vdot)
    assert_close(rm.inverse_dynamics(tied, q, v, vdot), expected)
    tau = np.linspace(1, 2, 7)
    vdot = rm.forward_dynamics(tied, q, v, tau, formulation="composite")
    assert_close(H @ vdot + rm.bias_force(tied, q, v), tau)
    C = rm.coriolis_matrix(tied, q, v)
    assert_close(C @ v, rm.bias_force(tied, q, v))
    for f in ("articulated", "newton_euler", "decoupled", "image_space"):
        with pytest.raises(RemoraError, match=r"right_joint.*composite"):
            rm.forward_dynamics(tied, q, v, tau, formulation=f)
    with pytest.raises(RemoraError, match="mimics 'left_joint': prescribe 'left_joint'"):
        rm.hybrid_dynamics(tied, q, v, tau, {"right_joint": 0.0}, formulation="composite")


def test_robots_with_followers_need_not_be_told_a_formulation():
    robot = geared(rotor=0.7)
    q, v = rm.random_state(robot, 1)
    tau = np.linspace(1, 2, 7)
    expected = rm.forward_dynamics(robot, q, v, tau, formulation="composite")
    assert_close(rm.forward_dynamics(robot, q, v, tau), expected)
    assert_close(rm.compile(rm.forward_dynamics, robot)(q, v, tau), expected, rtol=1e-11)
    assert_close(rm.compile(robot).forward_dynamics(q, v, tau), expected, rtol=1e-11)
    vdot, force = rm.hybrid_dynamics(robot, q, v, tau, {"left_joint": 0.5})
    assert_close(rm.inverse_dynamics(robot, q, v, vdot), force, rtol=1e-11)
    known = rm.reaction_wrenches(robot, q, v, tau, formulation="composite")
    assert_close(rm.reaction_wrenches(robot, q, v, tau), known)
    joint, base = rm.dynamics.floating_inverse_dynamics(robot, q, v, expected[6:])
    needed = rm.inverse_dynamics(robot, q, v, np.append(base, expected[6:]))
    assert_close(needed, np.append(np.zeros(6), joint), scale=np.abs(needed).max())
    one = rm.simulate(robot, q, v, 0.2, integrator=rm.Integrator("rk4", step=0.01))
    many = rm.simulate_batch(robot, q[None], v[None], 0.2, integrator=rm.Integrator(step=0.01))
    assert_close(many.q[-1, 0] if many.q.shape[0] != 1 else many.q[0, -1], one.q[-1], rtol=1e-10)


def test_the_table_chooses_the_formulation():
    plain = rm.random_robot(3, bodies=4)
    q, v = rm.random_state(plain, 0)
    usual = rm.forward_dynamics(plain, q, v, v, formulation="articulated")
    assert np.array_equal(rm.forward_dynamics(plain, q, v, v), usual)


def test_friction_opposes_motion_and_takes_energy():
    robot = geared()
    v = np.zeros(7)
    assert not np.any(rm.dynamics.friction_forces(robot, v))
    v[6] = 2.0
    force = rm.dynamics.friction_forces(robot, v)
    # the follower, at -3 rad/s, drags through its ratio of -1.5
    dry = 0.2 * (2.0 / 2.001 + 1.5 * 3.0 / 3.001)
    assert_close(force[6], -(0.3 * 2.0 + 1.5 * 0.3 * 3.0) - dry)
    assert force @ v < 0.0
    batch = np.random.default_rng(0).normal(size=(4, 7))
    assert rm.dynamics.friction_forces(robot, batch).shape == (4, 7)
