"""The Euler-angle model: the textbook's equations where they hold, an error where they do not."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close, rate_along_motion, traced
from remora.algebra import pose, quaternion
from remora.dynamics.lagrangian import euler_angles as euler
from remora.model import joints
from trees import Case


def pitched(robot, pitch):
    """A state with the base pitched, at an arbitrary roll and yaw."""
    q, v = rm.random_state(robot, 4)
    q[:8] = pose.from_xyz_rpy((1, 2, 3), (0.3, pitch, -0.4))
    return q, v


@pytest.mark.parametrize("seed", range(20))
def test_coordinates_there_and_back(seed):
    c = Case(seed, largest=10)
    robot, q, v = c.state
    chi, chidot = euler.euler_coordinates(robot, q, v)
    assert chi.shape == chidot.shape == (robot.nv,)
    q2, v2 = euler.euler_state(robot, chi, chidot)
    assert_close(v2, v)
    assert_close(rm.poses(robot, q2) ** 2, rm.poses(robot, q) ** 2, rtol=1e-11)  # up to sign
    # T⁻¹ is the inverse of T, and χ̇ the rate of χ
    T, inverted = euler.rate_matrix(robot, chi), euler.rate_matrix_inverse(robot, chi)
    assert_close(T @ inverted, np.eye(robot.nv), rtol=1e-11)
    if robot.nv:
        rate = rate_along_motion(
            robot, lambda q, v: euler.euler_coordinates(robot, q, v)[0], q, v, 0.0 * v
        )
        assert_close(chidot, rate, rtol=1e-11)


def test_the_rates_are_fpg11s_matrix():
    """T of eq. 17, entry by entry, for roll φ and pitch θ."""
    robot = rm.random_robot(0, bodies=1, base="spherical")
    f, t = 0.3, 0.7
    s, c = np.sin, np.cos
    printed = [
        [1, s(f) * np.tan(t), c(f) * np.tan(t)],
        [0, c(f), -s(f)],
        [0, s(f) / c(t), c(f) / c(t)],
    ]
    assert_close(euler.rate_matrix_inverse(robot, np.array([f, t, 1.1])), printed)


@pytest.mark.parametrize("seed", [8, 9, 17, 19])
def test_acceleration_is_that_of_the_coordinates(seed):
    """χ̈ from Lagrange's equations in χ is the rate of χ̇ along the motion of the full model."""
    c = Case(seed, largest=6)
    robot, q, v = c.state
    chi, chidot = euler.euler_coordinates(robot, q, v)
    vdot = rm.forward_dynamics(robot, q, v, c.tau)
    rate = rate_along_motion(
        robot, lambda q, v: euler.euler_coordinates(robot, q, v)[1], q, v, vdot
    )
    found = euler.euler_acceleration(robot, chi, chidot, c.tau)
    assert_close(found, rate, rtol=1e-10)
    (symbolic,) = traced(lambda *a: euler.euler_acceleration(robot, *a), [chi, chidot, c.tau])
    assert_close(symbolic, found, rtol=1e-11)


def test_singular_at_90_degrees_of_pitch():
    robot = rm.load("servicer")
    tau = np.ones(robot.nv)
    for pitch in (np.pi / 2, -np.pi / 2, np.pi / 2 + 1e-7):
        q, v = pitched(robot, pitch)
        for call in (
            lambda q=q, v=v: rm.forward_dynamics(robot, q, v, tau, formulation="euler_angles"),
            lambda q=q, v=v: rm.inverse_dynamics(robot, q, v, tau, formulation="euler_angles"),
            lambda q=q, v=v: euler.euler_coordinates(robot, q, v),
        ):
            with pytest.raises(rm.RemoraError, match=r"singular at a pitch of ±90°.*'base'"):
                call()
        # the others go on
        expected = rm.forward_dynamics(robot, q, v, tau)
        for f in ("lagrangian", "composite", "newton_euler", "decoupled"):
            assert_close(rm.forward_dynamics(robot, q, v, tau, formulation=f), expected, rtol=1e-11)
    with pytest.raises(rm.RemoraError, match="singular"):
        euler.euler_acceleration(robot, np.r_[0, np.pi / 2, 0, np.zeros(10)], np.ones(13), tau)


def test_one_singular_state_of_a_batch_is_refused():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 0, (3,))
    q[1, :8] = pose.from_xyz_rpy((0, 0, 0), (0, np.pi / 2, 0))
    with pytest.raises(rm.RemoraError, match="singular"):
        rm.forward_dynamics(robot, q, v, 0.0 * v, formulation="euler_angles")


def test_rounding_grows_towards_the_singularity():
    """Digits are lost as 1/cos² of the pitch, and no faster."""
    robot = rm.load("servicer")
    for cosine in (1e-1, 1e-2, 1e-3, 1e-4):
        q, v = pitched(robot, np.pi / 2 - cosine)
        expected = rm.forward_dynamics(robot, q, v, 0.0 * v)
        found = rm.forward_dynamics(robot, q, v, 0.0 * v, formulation="euler_angles")
        assert np.abs(found - expected).max() / np.abs(expected).max() < 1e-13 / cosine**2


def test_inner_ball_joints_have_angles_of_their_own():
    robot = rm.random_robot(1, bodies=3, kinds=("spherical",), base="fixed", branching=0.0)
    q, v = rm.random_state(robot, 0)
    q[robot.joints[2].q] = quaternion.from_rpy(np.array([0.1, np.pi / 2, 0.2]))
    with pytest.raises(rm.RemoraError, match="'joint_2'"):
        rm.forward_dynamics(robot, q, v, 0.0 * v, formulation="euler_angles")
    assert not joints.in_coordinates(robot.joints[2])
