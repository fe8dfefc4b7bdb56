"""Functions that do not take active constraints into account refuse them."""

import numpy as np
import pytest

import remora as rm
from remora.dynamics.kernels.compiled import FUNCTIONS
from remora.dynamics.refusals import UNAFFECTED_BY_CONSTRAINTS, WITH_CONSTRAINTS
from remora.model.constraint import Constraint

HERE = np.eye(8)[0]


@pytest.fixture
def robot():
    latch = Constraint("latch", "fixed", 0, 2, HERE, HERE, np.zeros((0, 3)), *np.zeros(4))
    return rm.random_robot(3, bodies=4).replace(constraints=[latch])


def test_motion_is_refused_and_computed_when_they_are_off(robot):
    q, v = rm.random_state(robot, 1)
    off = robot.with_active(off=["latch"])
    with pytest.raises(
        rm.errors.InvalidValue, match=r"'decoupled' .* constraints .*'latch'.*articulated"
    ):
        rm.forward_dynamics(robot, q, v, 0.0 * v, formulation="decoupled")
    plain = rm.forward_dynamics(robot.replace(constraints=()), q, v, 0.0 * v)
    assert np.array_equal(rm.forward_dynamics(off, q, v, 0.0 * v), plain)


def test_what_follows_from_the_state_is_computed(robot):
    q, v = rm.random_state(robot, 1)
    plain = robot.replace(constraints=())
    assert np.array_equal(rm.momentum(robot, q, v), rm.momentum(plain, q, v))
    assert np.array_equal(rm.mass_matrix(robot, q), rm.mass_matrix(plain, q))


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if hasattr(f, "needs_dynamics")])
def test_kernels_are_refused_alike(robot, name):
    if name in UNAFFECTED_BY_CONSTRAINTS | WITH_CONSTRAINTS:
        return
    with pytest.raises(rm.errors.InvalidValue, match="constraints"):
        rm.compile(FUNCTIONS[name], robot)


def test_kernels_of_large_robots_say_why(robot, monkeypatch):
    """Loops over the bodies do not take constraints, and a straight line would be too long."""
    monkeypatch.setattr("remora.dynamics.kernels.compiled.fits_straight_line", lambda robot: False)
    with pytest.raises(rm.RemoraError, match=r"forward_dynamics .*'latch'.* at most 200 bodies"):
        rm.compile(rm.forward_dynamics, robot)
    off = robot.with_active(off=["latch"])
    rm.compile(rm.inverse_dynamics, off)


@pytest.mark.parametrize(
    "function",
    [
        lambda robot, q: rm.inverse_kinematics(robot, {"body_1": rm.poses(robot, q)[1]}),
        lambda robot, q: rm.manipulability(robot, q, "body_1"),
        lambda robot, q: rm.workspace(robot, "body_1"),
        lambda robot, q: rm.papers.sa24.split_robot(robot, ["joint_1"]),
    ],
)
def test_kinematics_of_the_tree_alone_is_refused_too(robot, function):
    """A configuration that breaks the loops is no answer."""
    with pytest.raises(rm.RemoraError, match=r"constraints .*"):
        function(robot, rm.neutral(robot))


def test_a_base_that_is_held_does_not_float(robot):
    """Loops inside the robot keep its momentum; a constraint to the inertial frame does not."""
    q, v = rm.random_state(robot, 1)
    plain = robot.replace(constraints=())
    J = rm.generalized_jacobian(robot, q, "body_3")
    assert np.array_equal(J, rm.generalized_jacobian(plain, q, "body_3"))
    post = Constraint("post", "fixed", -1, 2, HERE, HERE, np.zeros((0, 3)), *np.zeros(4))
    held = robot.replace(constraints=[post])
    for function in (
        lambda: rm.generalized_jacobian(held, q, "body_3"),
        lambda: rm.base_velocity(held, q, v[6:]),
    ):
        with pytest.raises(rm.errors.InvalidValue, match=r"does not float: 'post' connects it"):
            function()
    off = held.with_active(off=["post"])
    assert np.array_equal(J, rm.generalized_jacobian(off, q, "body_3"))
