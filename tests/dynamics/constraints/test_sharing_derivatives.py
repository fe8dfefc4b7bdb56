"""Derivatives of inverse dynamics with weights and unactuated joints, against differences."""

import numpy as np
import pytest

import remora as rm
from closed_loops import closed, constraint, random_loops
from mechanisms import four_bar, four_bar_angles
from numeric import assert_close

H = 1e-6


def state(seed, kind):
    robot, q, v = random_loops(seed, bodies=7, kinds=["fixed"])
    rng = np.random.default_rng(seed)
    robot = closed(robot, constraint(kind, robot, q, 1, 6, rng, "grip"))
    v = rm.loops.project_velocity(robot, q, v)
    return robot, q, v, rng


def slopes(robot, q, v, vdot, **options):
    """Return central differences by q, v and vdot."""

    def tau(q, v, vdot):
        return rm.loops.constrained_inverse_dynamics(robot, q, v, vdot, **options)

    def moved(s):
        return rm.integrate(robot, q, s)

    steps = H * np.eye(robot.nv)  # all of them at once
    parts = (
        tau(moved(steps), v, vdot) - tau(moved(-steps), v, vdot),
        tau(q, v + steps, vdot) - tau(q, v - steps, vdot),
        tau(q, v, vdot + steps) - tau(q, v, vdot - steps),
    )
    return [part.T / (2.0 * H) for part in parts]


@pytest.mark.parametrize(("seed", "kind"), [(2, "cylindrical"), (3, "universal"), (4, "rod")])
def test_weights(seed, kind):
    robot, q, v, rng = state(seed, kind)
    options = {
        "weights": rng.uniform(0.3, 3.0, robot.nv),
        "wrenches": rng.normal(size=(len(robot.bodies), 6)),
    }
    vdot = rm.forward_dynamics(robot, q, v, rng.normal(size=robot.nv))
    found = rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot, **options)
    for part, expected in zip(found, slopes(robot, q, v, vdot, **options), strict=True):
        assert_close(part, expected, rtol=1e-7, scale=np.max(np.abs(part)))


@pytest.mark.parametrize("kind", ["fixed", "spherical", "revolute"])
def test_unactuated_joints_and_weights(kind):
    robot, q, v, rng = state(3, kind)
    passive = robot.joints[6]
    tau = rng.normal(size=robot.nv)
    tau[passive.v] = 0.0
    vdot = rm.forward_dynamics(robot, q, v, tau)
    options = {"weights": rng.uniform(0.3, 3.0, robot.nv), "unactuated": [passive.name]}
    found = rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot, **options)
    assert not np.any(np.stack(found)[:, passive.v])
    for part, expected in zip(found, slopes(robot, q, v, vdot, **options), strict=True):
        assert_close(part, expected, rtol=1e-7, scale=np.max(np.abs(part)))


def linkage():
    """Return a linkage that its crank alone drives, at a state, and its acceleration."""
    robot = four_bar()
    coupler, rocker = four_bar_angles(0.9)
    q = np.array([0.9, coupler - 0.9, rocker])
    v = rm.loops.project_velocity(robot, q, np.ones(3))
    return robot, q, v, rm.forward_dynamics(robot, q, v, (2.5, 0.0, 0.0))


def test_a_linkage_driven_by_its_crank():
    """One actuator, one freedom: ∂v̇/∂τ and ∂τ/∂v̇ are inverse to each other along it."""
    robot, q, v, vdot = linkage()
    passive = ["j3", "j4"]
    D = rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot, unactuated=passive)
    assert not np.any(np.stack(D)[:, 1:])
    by_torque = rm.dynamics.forward_dynamics_derivatives(robot, q, v, (2.5, 0.0, 0.0))
    assert_close(D.dvdot @ by_torque.dtau[:, 0], np.eye(3)[0], rtol=1e-11)
    # along the motion: the torque that keeps v̇ as it was
    N = rm.loops.constraint_projector(robot, q)[:, 0]
    ahead, behind = (
        rm.close_loops(robot, rm.integrate(robot, q, k * H * N), fixed=["j2"])[0] for k in (1, -1)
    )
    found = []
    for place in (ahead, behind):
        own = rm.loops.project_velocity(robot, place, v)
        a = rm.forward_dynamics(robot, place, own, (2.5, 0.0, 0.0))
        t = rm.loops.constrained_inverse_dynamics(robot, place, own, a, unactuated=passive)
        found.append((rm.difference(robot, q, place), own - v, a - vdot, t[0] - 2.5))
    for dq, dv, da, dt in found:
        assert abs(D.dq[0] @ dq + D.dv[0] @ dv + D.dvdot[0] @ da - dt) < 1e-9


def test_without_weights_it_is_that_of_inverse_dynamics():
    robot, q, v, rng = state(3, "universal")
    vdot = rm.forward_dynamics(robot, q, v, rng.normal(size=robot.nv))
    found = rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot)
    expected = rm.dynamics.inverse_dynamics_derivatives(robot, q, v, vdot)
    same = rm.loops.constrained_inverse_dynamics_derivatives(
        robot, q, v, vdot, weights=np.full(robot.nv, 1e-25)
    )
    for part, other, scaled in zip(found, expected, same, strict=True):
        assert_close(part, other, rtol=1e-11)
        assert_close(scaled, other, rtol=1e-11)


def test_batches_kernels_and_refusals():
    robot, q, v, vdot = linkage()
    options = {"weights": np.array([1.0, 2.0, 0.5]), "unactuated": ("j4",)}
    one = rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot, **options)
    many = rm.loops.constrained_inverse_dynamics_derivatives(
        robot, np.tile(q, (2, 1)), v, vdot, **options
    )
    kernel = rm.compile(rm.loops.constrained_inverse_dynamics_derivatives, robot, fixed=options)
    for part, parts, compiled in zip(one, many, kernel(q, v, vdot), strict=True):
        assert parts.shape == (2, 3, 3)
        assert_close(parts[1], part, rtol=1e-13)
        assert_close(compiled, part, rtol=1e-11)
    with pytest.raises(rm.errors.InvalidValue, match="weights must be positive"):
        rm.loops.constrained_inverse_dynamics_derivatives(
            robot, q, v, vdot, weights=[1.0, 0.0, 1.0]
        )
    everywhere = ["j2", "j3", "j4"]
    with pytest.raises(rm.errors.InvalidValue, match=r"unactuated joints 'j2', 'j3', 'j4'"):
        rm.loops.constrained_inverse_dynamics_derivatives(robot, q, v, vdot, unactuated=everywhere)
    tree = robot.with_active(off=["pin"])
    with pytest.raises(rm.errors.InvalidValue, match=r"unactuated joints 'j3'"):
        rm.loops.constrained_inverse_dynamics_derivatives(tree, q, v, vdot, unactuated=["j3"])
    still = rm.forward_dynamics(tree, q, v, (1.0, 0.0, 2.0))
    D = rm.loops.constrained_inverse_dynamics_derivatives(tree, q, v, still, unactuated=["j3"])
    expected = rm.dynamics.inverse_dynamics_derivatives(tree, q, v, still)
    assert not np.any(D.dq[1])
    assert np.array_equal(D.dvdot[::2], expected.dvdot[::2])
