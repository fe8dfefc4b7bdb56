"""Robots whose accelerations a function computes: only their own runs see it."""

import numpy as np

import remora as rm
from remora.dynamics.kernels.composed_robot import composed_robot
from remora.dynamics.kernels.kernel_memory import kernel


def test_the_function_is_neither_kept_for_nor_taken_from_an_equal_robot():
    plain = rm.random_robot(3, bodies=3)
    q, v = rm.random_state(plain, 1)
    found = rm.forward_dynamics(plain, q, v, v)
    moving = composed_robot(plain, lambda q, v, tau: 7.0 * tau)
    names = ("q", "v", "tau")
    for robot, expected in ((plain, found), (moving, 7.0 * v), (plain, found), (moving, 7.0 * v)):
        assert np.allclose(kernel(rm.forward_dynamics, robot, names)(q, v, v), expected, rtol=1e-12)
        assert np.allclose(rm.compile(robot).forward_dynamics(q, v, v), expected, rtol=1e-12)
    assert np.allclose(rm.compile(moving).twists(q, v), rm.twists(plain, q, v), atol=1e-12)


def test_a_run_moves_as_the_function_says():
    b = rm.Builder("cart").body("cart", 1.0, (0, 0, 0), np.eye(3))
    plain = b.joint("slide", "prismatic", None, "cart", axis=(1, 0, 0)).build()
    moving = composed_robot(plain, lambda q, v, tau: -4.0 * q)  # an oscillator
    t = np.linspace(0.0, 1.0, 11)
    run = rm.simulate(
        moving, [1.0], [0.0], duration=1.0, record=t, integrator=rm.Integrator(rtol=1e-12)
    )
    assert np.allclose(run.q[:, 0], np.cos(2.0 * t), rtol=0, atol=1e-11)
