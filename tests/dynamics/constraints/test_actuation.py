"""Inverse dynamics of closed chains, and the projector onto allowed motions."""

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint, random_loops
from mechanisms import four_bar, four_bar_angles
from numeric import assert_close


def state(seed):
    robot, q, v = random_loops(seed, bodies=7, kinds=["fixed"])
    loop = constraint("fixed", robot, q, 1, 6, np.random.default_rng(seed), "grip")
    robot = closed(robot, loop)
    rng = np.random.default_rng(seed)
    v = rm.loops.project_velocity(robot, q, v)
    return robot, q, v, rm.forward_dynamics(robot, q, v, rng.normal(size=robot.nv)), rng


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_inverse_of_forward_dynamics_and_the_smallest(seed):
    robot, q, v, vdot, rng = state(seed)
    weights = rng.uniform(0.5, 3.0, robot.nv)
    G = rm.loops.constraint_jacobian(robot, q)
    for w in (np.ones(robot.nv), weights):
        tau = rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, weights=w)
        assert_close(rm.forward_dynamics(robot, q, v, tau), vdot, rtol=1e-10)
        # any inner load makes it larger: orthogonal to the range of Gᵀ in the metric of w
        assert np.max(np.abs(G @ (w * tau))) < 1e-10 * (1.0 + np.max(np.abs(tau)))


@pytest.mark.parametrize("seed", range(5))
def test_unactuated_joints_stay_without_force(seed):
    robot, q, v, _, rng = state(seed)
    passive = robot.joints[6]  # inside the loop
    tau = rng.normal(size=robot.nv)
    tau[passive.v] = 0.0
    vdot = rm.forward_dynamics(robot, q, v, tau)
    found = rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, unactuated=[passive.name])
    assert not np.any(found[passive.v])
    assert_close(rm.forward_dynamics(robot, q, v, found), vdot, rtol=1e-9)
    assert np.linalg.norm(found) <= np.linalg.norm(tau) * (1.0 + 1e-12)


def test_a_linkage_driven_by_its_crank():
    robot = four_bar()
    coupler, rocker = four_bar_angles(0.9)
    q = np.array([0.9, coupler - 0.9, rocker])
    v = rm.loops.project_velocity(robot, q, np.ones(3))
    vdot = rm.forward_dynamics(robot, q, v, (2.5, 0.0, 0.0))
    found = rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, unactuated=["j3", "j4"])
    assert_close(found, np.array([2.5, 0.0, 0.0]), rtol=1e-11)
    with pytest.raises(rm.errors.InvalidValue, match=r"unactuated joints 'j2', 'j3', 'j4'"):
        rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, unactuated=["j2", "j3", "j4"])


def test_the_projector_spans_the_allowed_motions():
    robot, q, v, _, _ = state(3)
    P, H, G = (
        rm.loops.constraint_projector(robot, q),
        rm.mass_matrix(robot, q),
        rm.loops.constraint_jacobian(robot, q),
    )
    assert_close(P @ P, P, rtol=1e-11)
    assert np.max(np.abs(G @ P)) < 1e-11
    assert_close(H @ P, (H @ P).T, rtol=1e-11)
    assert_close(P @ v, v, rtol=1e-11)
    assert np.linalg.matrix_rank(P, tol=1e-9) == rm.loops.constraint_report(robot, q).freedoms
    tau = np.ones(robot.nv)
    change = rm.forward_dynamics(robot, q, v, tau) - rm.forward_dynamics(robot, q, v, 0.0 * tau)
    assert_close(P @ np.linalg.solve(H, tau), change, rtol=1e-9)
