"""Residual, Jacobian and bias of every kind of constraint."""

import numpy as np
import pytest

import remora as rm
from closed_loops import KINDS, random_loops
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.model.joint_types import JOINT_TYPES

ALL = [*KINDS, "rod", "gear"]


def slope(function, h):
    return (function(h) - function(-h)) / (2.0 * h)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_the_jacobian_is_the_derivative_of_the_residual(kind, seed):
    robot, q, _ = random_loops(seed, bodies=6, kinds=[kind])
    phi, G = rm.loops.constraint_residual(robot, q), rm.loops.constraint_jacobian(robot, q)
    assert np.max(np.abs(phi)) < 1e-14
    columns = [
        slope(
            lambda h, e=e: rm.loops.constraint_residual(robot, rm.integrate(robot, q, h * e)), 1e-5
        )
        for e in np.eye(robot.nv)
    ]
    assert_close(G, np.stack(columns, axis=-1), rtol=1e-8)  # central differences


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_the_bias_is_minus_the_rate_of_the_jacobian(kind, seed):
    robot, q, v = random_loops(seed, bodies=6, kinds=[kind])
    moving = slope(
        lambda t: rm.loops.constraint_jacobian(robot, rm.integrate(robot, q, t * v)) @ v, 1e-5
    )
    assert_close(rm.loops.constraint_bias(robot, q, v), -moving, rtol=1e-8)  # central differences


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_between_two_parts_of_one_rigid_body_is_blind(kind):
    robot, q, _ = random_loops(3, bodies=6, kinds=[kind])
    (loop,) = robot.constraints
    same = robot.replace_constraint(loop.name, parent=2, child=2)
    assert not np.any(rm.loops.constraint_jacobian(same, q))


def test_inactive_constraints_have_no_rows():
    robot, q, v = random_loops(1, kinds=["fixed", "rod"])
    off = robot.with_active(off=["fixed0"])
    assert rm.loops.constraint_residual(off, q).shape == (1,)
    assert rm.loops.constraint_jacobian(off, q).shape == (1, robot.nv)
    none = off.with_active(off=["rod1"])
    assert rm.loops.constraint_bias(none, q, v).shape == (0,)


@pytest.mark.parametrize("turns", [-2, 0, 3])
def test_a_thread_counts_full_turns(turns):
    robot, _, _ = random_loops(1, bodies=2, kinds=["helical"], base="free")
    robot = robot.replace_constraint("helical0", parent=-1, child=0)
    (thread,) = robot.constraints
    angle = np.array([1.0 + 2.0 * np.pi * turns])
    x = dq.mul(thread.parent_placement, JOINT_TYPES["helical"].pose(thread, angle))
    q = rm.neutral(robot)
    base = dq.conjugate(robot.joints[0].placement)
    q[:8] = dq.mul(base, dq.mul(x, dq.conjugate(thread.child_placement)))
    assert np.max(np.abs(rm.loops.constraint_residual(robot, q))) < 1e-13
