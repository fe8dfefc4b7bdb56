"""Projections onto the constraints and the impulse of a capture."""

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint, random_loops
from numeric import assert_close
from remora.dynamics.constraints.reactions import wrenches_of


@pytest.mark.parametrize("seed", range(8))
def test_an_impulse_conserves_momentum_and_loses_the_stated_energy(seed):
    robot, q, v = random_loops(seed, bodies=6, kinds=["fixed"])
    robot = closed(robot, constraint("fixed", robot, q, 1, 5, np.random.default_rng(seed), "latch"))
    after, impulse, loss = rm.loops.constraint_impulse(robot, q, v)
    G, H = rm.loops.constraint_jacobian(robot, q), rm.mass_matrix(robot, q)
    assert_close(H @ (after - v), G.T @ impulse, rtol=1e-12)
    assert np.max(np.abs(G @ after)) < 1e-12
    assert_close(rm.momentum(robot, q, after), rm.momentum(robot, q, v), rtol=1e-13)
    lost = rm.kinetic_energy(robot, q, v) - rm.kinetic_energy(robot, q, after)
    assert_close(loss, lost, rtol=1e-11)
    assert wrenches_of(robot, q, impulse).shape == (1, 6)
    assert_close(rm.loops.project_velocity(robot, q, v), after, rtol=1e-13)


@pytest.mark.parametrize("seed", range(8))
def test_newton_steps_converge_quadratically_and_keep_the_centre_of_mass(seed):
    robot, q, v = random_loops(seed, bodies=7, count=2)
    near = rm.integrate(robot, q, 1e-3 * v)
    errors = []
    for _ in range(4):
        errors.append(np.max(np.abs(rm.loops.constraint_residual(robot, near))))
        near = rm.loops.project_configuration(robot, near)
    assert errors[0] > 1e-6
    assert errors[1] < 20.0 * errors[0] ** 1.5
    assert errors[3] < 1e-13


def test_without_active_constraints_nothing_changes():
    robot, q, v = random_loops(1, kinds=["fixed"])
    off = robot.with_active(off=["fixed0"])
    assert np.array_equal(rm.loops.project_configuration(off, q), q)
    after, impulse, loss = rm.loops.constraint_impulse(off, q, v)
    assert np.array_equal(after, v)
    assert impulse.shape == (0,)
    assert loss == 0.0
