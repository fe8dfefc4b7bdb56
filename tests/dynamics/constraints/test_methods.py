"""Constrained dynamics: three methods agree, and satisfy the equations that define them."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from closed_loops import KINDS, closed, constraint, random_loops
from numeric import assert_close
from remora.algebra import screw
from remora.dynamics.constraints.reactions import loop_loads

METHODS = ("articulated", "composite", "newton_euler", "image_space")


def case(seed, rotors=False, **options):
    robot, q, v = random_loops(seed, base=("free", "fixed")[seed % 2], **options)
    if not rotors:
        still = [dataclasses.replace(j, rotor_inertia=0.0 * j.rotor_inertia) for j in robot.joints]
        robot = robot.replace(joints=still)
    rng = np.random.default_rng(seed)
    v = rm.loops.project_velocity(robot, q, v)
    return robot, q, v, rng.normal(size=robot.nv), rng.normal(size=(len(robot.bodies), 6))


@pytest.mark.parametrize("seed", range(24))
def test_methods_agree(seed):
    robot, q, v, tau, w = case(seed, bodies=7, count=1 + seed % 3)
    found = [rm.forward_dynamics(robot, q, v, tau, w, method) for method in METHODS]
    for other in found[1:]:
        assert_close(other, found[0], rtol=1e-10)
    reactions = [rm.reaction_wrenches(robot, q, v, tau, w, method) for method in METHODS]
    for other in reactions[1:]:
        assert_close(other, reactions[0], rtol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, "rod", "gear"])
def test_the_equations_hold(kind):
    robot, q, v, tau, w = case(5, rotors=True, bodies=6, kinds=[kind])
    vdot, lam = (
        rm.forward_dynamics(robot, q, v, tau, w),
        rm.loops.constraint_multipliers(robot, q, v, tau, w),
    )
    G = rm.loops.constraint_jacobian(robot, q)
    tree = robot.replace(constraints=())
    assert_close(rm.inverse_dynamics(tree, q, v, vdot, w), tau + G.T @ lam, rtol=1e-11)
    assert_close(G @ vdot, rm.loops.constraint_bias(robot, q, v), rtol=1e-11)
    assert abs((G.T @ lam) @ v) < 1e-11 * (1.0 + np.linalg.norm(lam))  # they do no work


@pytest.mark.parametrize("kind", [*KINDS, "rod"])
def test_wrenches_of_loops_act_as_their_multipliers(kind):
    robot, q, v, tau, w = case(8, rotors=True, bodies=6, kinds=[kind])
    lam = rm.loops.constraint_multipliers(robot, q, v, tau, w)
    loads = loop_loads(robot, q, lam)
    tree = robot.replace(constraints=())
    there = rm.forward_dynamics(tree, q, v, tau, w + loads)
    assert_close(there, rm.forward_dynamics(robot, q, v, tau, w), rtol=1e-10)
    c = robot.constraints[0]
    (own,) = rm.constraint_wrenches(robot, q, v, tau, w)
    if c.child >= 0:
        assert_close(screw.adjoint(c.child_placement, own), loads[c.child], rtol=1e-12)
    if min(c.child, c.parent) >= 0:  # internal: no net force, no net torque about any point
        x = rm.poses(robot, q)
        total = screw.adjoint(x[c.child], loads[c.child])
        assert np.max(np.abs(total + screw.adjoint(x[c.parent], loads[c.parent]))) < 1e-12 * (
            1.0 + np.max(np.abs(total))
        )


def test_momentum_of_a_free_robot_is_not_changed_by_its_loops():
    robot, q, v, tau, _ = case(2, rotors=True, bodies=8, kinds=["spherical", "rod"])
    robot = closed(robot, *(
        constraint(kind, robot, q, 1, child, np.random.default_rng(3))
        for kind, child in (("spherical", 6), ("rod", 5))
    ))  # fmt: skip
    tau[:6] = 0.0
    v = rm.loops.project_velocity(robot, q, v)
    rate = rm.dynamics.momentum_matrix(robot, q) @ rm.forward_dynamics(robot, q, v, tau)
    free = rm.dynamics.momentum_matrix(robot, q) @ rm.forward_dynamics(
        robot.replace(constraints=()), q, v, tau
    )
    assert_close(rate, free, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_prescribed_joints(seed):
    robot, q, v, tau, w = case(seed, bodies=8, kinds=["spherical"])
    first = robot.joints[1]
    given = {first.name: np.full(first.v.stop - first.v.start, 0.3)}
    found = [rm.hybrid_dynamics(robot, q, v, tau, given, w, method) for method in METHODS]
    for vdot, force in found[1:]:
        assert_close(vdot, found[0][0], rtol=1e-10)
        assert_close(force, found[0][1], rtol=1e-10)
    vdot, force = found[0]
    assert_close(rm.forward_dynamics(robot, q, v, force, w), vdot, rtol=1e-9)


def test_prescribed_motion_that_breaks_a_loop_is_refused():
    robot, q, v, tau, _ = case(4, bodies=4, kinds=["fixed"])
    robot = closed(robot, constraint("fixed", robot, q, 0, 2, np.random.default_rng(1), "weld"))
    v = rm.loops.project_velocity(robot, q, v)
    moved = {j.name: np.ones(j.v.stop - j.v.start) for j in robot.joints[1:3]}
    with pytest.raises(rm.errors.InvalidValue, match=r"'weld' contradicts .* prescribed motion"):
        rm.hybrid_dynamics(robot, q, v, tau, moved)


def test_batches_and_kernels_agree_with_one_state():
    robot, q, v, tau, _ = case(2, bodies=4, kinds=["rod"])
    single = rm.forward_dynamics(robot, q, v, tau)
    many = rm.forward_dynamics(robot, np.stack([q, q]), np.stack([v, v]), np.stack([tau, tau]))
    assert_close(many[1], single, rtol=1e-13)
    kernel = rm.compile(rm.forward_dynamics, robot)
    assert_close(kernel(q, v, tau), single, rtol=1e-10)
