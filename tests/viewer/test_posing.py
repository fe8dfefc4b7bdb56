"""A floating base follows dragged joints as momentum conservation demands."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import remora as rm
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.viewer.page.floating_drag import drag_joint, floats


def response(robot):
    return lambda q: rm.dynamics.base_response(robot, q)


def integrated(robot, q, target):
    """Return the base's pose by another way: the total momentum is zero at every instant."""
    way = rm.difference(robot, q, np.concatenate([q[:8], target[8:]]))

    def rate(s, x):
        here = rm.integrate(robot, np.concatenate([dq.normalize(x), q[8:]]), s * way * joints)
        v = np.concatenate([np.zeros(6), way[6:]])
        A = rm.dynamics.momentum_matrix(robot, here)
        v[:6] = -np.linalg.solve(A[:, :6], A[:, 6:] @ way[6:])
        return 0.5 * dq.mul(x, dq.pure(v[:6]))

    joints = np.concatenate([np.zeros(6), np.ones(robot.nv - 6)])
    return solve_ivp(rate, (0, 1), q[:8], rtol=1e-11, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("seed", [None, 3, 4])
def test_the_base_ends_where_an_independent_integration_puts_it(seed):
    kinds = ("revolute", "prismatic", "spherical", "universal")
    robot = rm.load("servicer") if seed is None else rm.random_robot(seed, bodies=5, kinds=kinds)
    q, _ = rm.random_state(robot, 1)
    target, _ = rm.random_state(robot, 2)
    found = drag_joint(robot, response(robot), q, target)
    assert np.array_equal(found[8:], target[8:])
    wanted = integrated(robot, q, target)
    # The steps are of fourth order, of 0.02 rad; random robots are light, and turn by radians.
    bound = 1e-8 if seed is None else 1e-6
    assert np.abs(pose.to_matrix(found[:8]) - pose.to_matrix(wanted)).max() < bound
    assert abs(np.linalg.norm(found[:4]) - 1) < 1e-14


def test_the_error_falls_with_the_fourth_power_of_the_step():
    robot = rm.load("servicer")
    q, _ = rm.random_state(robot, 1)
    target, _ = rm.random_state(robot, 2)
    exact = drag_joint(robot, response(robot), q, target, 0.005)
    errors = [
        np.abs(drag_joint(robot, response(robot), q, target, step)[:8] - exact[:8]).max()
        for step in (0.4, 0.2, 0.1)
    ]
    assert errors[0] / errors[1] > 11
    assert errors[1] / errors[2] > 11


def test_the_centre_of_mass_stays():
    robot = rm.load("servicer")
    q, _ = rm.random_state(robot, 1)
    target, _ = rm.random_state(robot, 2)
    found = drag_joint(robot, response(robot), q, target)
    drift = rm.center_of_mass(robot, found) - rm.center_of_mass(robot, q)
    assert np.abs(drift).max() < 1e-8


def test_one_joint_there_and_back_turns_nothing_but_a_loop_of_two_does():
    robot = rm.load("servicer")
    start = rm.neutral(robot)

    def drive(*moves):
        q = start
        for joint, angle in moves:
            target = q.copy()
            target[robot.joints[joint].q] += angle
            q = drag_joint(robot, response(robot), q, target)
        return q

    back = drive(("shoulder_pitch", 1.2), ("shoulder_pitch", -1.2))
    assert np.abs(back - start).max() < 1e-9
    loop = drive(
        ("shoulder_pitch", 1.2), ("elbow_pitch", -1.5), ("shoulder_pitch", -1.2),
        ("elbow_pitch", 1.5),
    )  # fmt: skip
    assert np.abs(loop[8:] - start[8:]).max() < 1e-12
    assert np.degrees(np.abs(pose.to_rpy(loop[:8])).max()) > 1.0


def test_only_one_free_base_floats():
    assert floats(rm.load("servicer"))
    assert not floats(rm.load("servicer", base="fixed"))
