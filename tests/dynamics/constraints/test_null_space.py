"""The basis of the motions that constraints allow, in independent speeds."""

import numpy as np
import pytest

import remora as rm
from closed_loops import random_loops
from mechanisms import four_bar, four_bar_angles, stewart
from numeric import assert_close


def linkage():
    coupler, rocker = four_bar_angles(0.9)
    return four_bar(), np.array([0.9, coupler - 0.9, rocker])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["fixed", "revolute", "rod", "universal"])
def test_it_spans_what_the_projector_keeps(seed, kind):
    """With redundant constraints, too: the projector comes from the mass matrix."""
    robot, q, _ = random_loops(seed, bodies=7, kinds=[kind, "spherical"])
    chosen = rm.loops.independent_speeds(robot, q)
    N = rm.loops.constraint_null_space(robot, q)
    assert N.shape == (robot.nv, rm.loops.constraint_report(robot, q).freedoms)
    assert np.array_equal(N[list(chosen)], np.eye(len(chosen)))
    assert np.max(np.abs(rm.loops.constraint_jacobian(robot, q) @ N), initial=0.0) < 1e-12
    P = rm.loops.constraint_projector(robot, q)
    assert_close(P @ N, N, rtol=1e-10)
    assert_close(N @ P[list(chosen)], P, rtol=1e-10)  # every allowed motion is in its span


def test_accelerations_of_the_freedoms_that_remain():
    """NᵀM N s̈ = Nᵀ(τ - h - M v̇₀): the dynamics without multipliers, v̇₀ any with G v̇₀ = γ."""
    robot = stewart()
    q = rm.neutral(robot)
    N = rm.loops.constraint_null_space(robot, q)
    assert N.shape == (30, 12)
    rng = np.random.default_rng(1)
    v, tau = N @ rng.normal(size=12), rng.normal(size=30)
    G, gamma = rm.loops.constraint_jacobian(robot, q), rm.loops.constraint_bias(robot, q, v)
    particular = np.linalg.lstsq(G, gamma, rcond=None)[0]
    M, h = rm.mass_matrix(robot, q), rm.bias_force(robot, q, v)
    s = np.linalg.solve(N.T @ M @ N, N.T @ (tau - h - M @ particular))
    assert_close(particular + N @ s, rm.forward_dynamics(robot, q, v, tau), rtol=1e-10)


def test_the_crank_determines_the_linkage():
    robot, q = linkage()
    for crank in (["j2"], [0]):
        N = rm.loops.constraint_null_space(robot, q, independent=crank)
        angles = [four_bar_angles(0.9 + s * 1e-6) for s in (1.0, -1.0)]
        coupler, rocker = (np.subtract(*angles)) / 2e-6
        assert_close(N[:, 0], np.array([1.0, coupler - 1.0, rocker]), rtol=1e-8)
    rocker = rm.loops.constraint_null_space(robot, q, independent=["j4"])
    assert_close(rocker, N / N[2], rtol=1e-12)


def test_batches_and_kernels():
    robot, q = linkage()
    one = rm.loops.constraint_null_space(robot, q, independent=["j2"])
    many = rm.loops.constraint_null_space(robot, np.tile(q, (2, 3, 1)), independent=["j2"])
    assert many.shape == (2, 3, 3, 1)
    assert_close(many[1, 2], one, rtol=1e-13)
    kernel = rm.compile(rm.loops.constraint_null_space, robot, fixed={"independent": ("j2",)})
    assert_close(kernel(q), one, rtol=1e-13)
    two = rm.compile(rm.loops.constraint_null_space, robot, fixed={"independent": (0, 1)})
    assert not np.any(np.isfinite(two(q)))


def test_without_constraints_and_without_freedoms():
    robot, q = linkage()
    tree = robot.with_active(off=["pin"])
    assert np.array_equal(rm.loops.constraint_null_space(tree, q), np.eye(3))
    assert rm.loops.independent_speeds(tree, q) == (0, 1, 2)
    locked = rm.loops.add_constraint(
        robot, "lock", "gear", "j2", "j4", ratio=7.0, offset=q[2] - 7 * q[0]
    )
    assert rm.loops.constraint_null_space(locked, q).shape == (3, 0)
    empty = rm.loops.add_constraint(tree, "none", "spherical", None, "ground")
    assert np.array_equal(rm.loops.constraint_null_space(empty, q), np.eye(3))


def test_what_is_not_independent_is_refused():
    robot, q = linkage()
    for given, told in (
        (["j2", "j3"], "not independent of each other"),
        ([], "do not determine all others: 1 more"),
        (["j2", 0], "occurs twice"),
        ([3], "neither a joint nor an index from 0 to 2"),
        ([1.5], "neither a joint nor an index"),
    ):
        with pytest.raises(rm.errors.InvalidValue, match=told):
            rm.loops.constraint_null_space(robot, q, independent=given)
    with pytest.raises(rm.errors.UnknownName, match="'elbow'"):
        rm.loops.constraint_null_space(robot, q, independent=["elbow"])
    with pytest.raises(rm.errors.InvalidValue, match="all 3 speeds are independent"):
        rm.loops.constraint_null_space(robot.with_active(off=["pin"]), q, independent=["j2"])
    with pytest.raises(rm.errors.InvalidValue, match="numbers of one configuration"):
        rm.loops.independent_speeds(robot, np.tile(q, (2, 1)))
    with pytest.raises(rm.errors.InvalidValue, match="with symbols, say which speeds"):
        rm.compile(rm.loops.constraint_null_space, robot)
