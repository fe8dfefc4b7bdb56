"""Bad input to the dynamics: a clear error, never a silent NaN."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.errors import RemoraError

FORWARD = [name for name, row in rm.dynamics.FORMULATIONS.items() if row.hybrid is not None]

ROBOT = rm.random_robot(2, bodies=5)
Q, V = rm.random_state(ROBOT, 0)
TAU = np.zeros(ROBOT.nv)


def test_unknown_formulations_list_the_known_ones():
    maximal = "newton_euler, decoupled, image_space"
    with pytest.raises(RemoraError, match=f"articulated, composite, {maximal}"):
        rm.forward_dynamics(ROBOT, Q, V, TAU, formulation="lagrange")
    with pytest.raises(RemoraError, match=f"recursive, composite, {maximal}"):
        rm.inverse_dynamics(ROBOT, Q, V, TAU, formulation="articulated")


@pytest.mark.parametrize("formulation", FORWARD)
def test_wrong_shapes_nan_and_quaternions(formulation):
    def fd(q=Q, v=V, tau=TAU, w=None):
        return rm.forward_dynamics(ROBOT, q, v, tau, w, formulation)

    for bad, reason in (
        ({"tau": TAU[:-1]}, "tau must have shape"),
        ({"tau": TAU * np.nan}, "tau holds values that are not finite"),
        ({"v": V[:3]}, "v must have shape"),
        ({"q": Q * 1.1}, "not of unit length"),
        ({"w": np.zeros((4, 6))}, "wrenches must have shape"),
        ({"w": np.full((5, 6), np.inf)}, "wrenches holds values that are not finite"),
    ):
        with pytest.raises(RemoraError, match=reason):
            fd(**bad)


def test_a_leaf_without_mass_is_an_error_not_a_nan():
    robot = (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=1, inertia=(1, 1, 1))
        .joint("j", "revolute", "a", "b")
        .build()
    )
    hollow = robot.replace_body("b", mass=np.asarray(0.0), inertia=np.zeros((3, 3)))
    q, v = rm.random_state(hollow, 0)
    for f, reason in (
        ("articulated", "joint 'j'.*moves no inertia"),
        ("composite", "singular"),
        ("newton_euler", "body 'b' has no mass"),
        ("decoupled", "body 'b' has no mass"),
        ("image_space", "body 'b' has no mass"),
    ):
        with pytest.raises(RemoraError, match=reason):
            rm.forward_dynamics(hollow, q, v, np.zeros(7), formulation=f)


def test_a_point_mass_turning_about_itself_is_singular():
    point = ROBOT.replace_body("body_4", inertia=np.zeros((3, 3)))
    with pytest.raises(RemoraError, match="singular"):
        rm.forward_dynamics(point, Q, V, TAU, formulation="newton_euler")


def rod(axis, com):
    """A slender rod, or a point, on a revolute joint about its own line."""
    u = np.array(axis) / np.linalg.norm(axis)
    return (
        rm.Builder()
        .body("a", mass=1, inertia=(1, 1, 1))
        .body("b", mass=1, com=com * u, inertia=0.1 * (np.eye(3) - np.outer(u, u)))
        .joint("j", "revolute", "a", "b", axis=u)
        .build()
    )


@pytest.mark.parametrize("formulation", FORWARD)
@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 2, 3), (1, 1, 0)])
def test_singular_to_rounding_is_an_error_not_a_large_number(axis, formulation):
    robot = rod(axis, com=0.3)
    q, v = rm.random_state(robot, 0)
    with pytest.raises(RemoraError, match=r"singular|moves no inertia"):
        rm.forward_dynamics(robot, q, v, np.ones(7), formulation=formulation)


@pytest.mark.parametrize("formulation", FORWARD)
def test_ground_without_mass_is_fine(formulation):
    """The `world` link of a robot on the ground has no mass and needs none."""
    robot = (
        rm.Builder(gravity=(0, 0, -9.81))
        .body("world")
        .body("arm", mass=2, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
        .joint("j", "revolute", "world", "arm", axis=(0, 1, 0))
        .build(base="fixed")
    )
    q, v, tau = np.array([0.3]), np.array([0.5]), np.array([0.1])
    vdot = rm.forward_dynamics(robot, q, v, tau, formulation=formulation)
    moment = 2 * 9.81 * 0.5 * np.cos(0.3)  # of the weight, about +y
    assert_close(vdot, [(0.1 + moment) / (0.2 + 2 * 0.25)])
    assert_close(
        rm.reaction_wrenches(robot, q, v, tau, formulation=formulation),
        rm.reaction_wrenches(robot, q, v, tau),
    )


@pytest.mark.parametrize("formulation", FORWARD)
def test_a_robot_that_cannot_move(formulation):
    robot = rm.Builder().body("a", mass=1, inertia=(1, 1, 1)).build(base="fixed")
    nothing = np.zeros(0)
    for batch in ((), (3,)):
        v = np.zeros((*batch, 0))
        assert rm.forward_dynamics(robot, v, v, v, formulation=formulation).shape == (*batch, 0)
    assert rm.reaction_wrenches(
        robot, nothing, nothing, nothing, formulation=formulation
    ).shape == (1, 6)
    assert rm.inverse_dynamics(robot, nothing, nothing, nothing).shape == (0,)


def test_batch_shapes_that_do_not_broadcast():
    many_q, _ = rm.random_state(ROBOT, 0, (2,))
    _, many_v = rm.random_state(ROBOT, 0, (3,))
    for call in (
        lambda: rm.twists(ROBOT, many_q, many_v),
        lambda: rm.dynamics.accelerations(ROBOT, many_q, many_v, V),
        lambda: rm.forward_dynamics(ROBOT, many_q, many_v, TAU),
        lambda: rm.inverse_dynamics(ROBOT, many_q, V, TAU, np.zeros((3, 5, 6))),
        lambda: rm.jacobian(ROBOT, many_q, 1, np.zeros((3, 3))),
        lambda: rm.dynamics.jacobian_rate(ROBOT, many_q, many_v, 1),
        lambda: rm.frame_twist(ROBOT, many_q, many_v, 1),
        lambda: rm.dynamics.joint_twists(ROBOT, many_q, np.zeros((3, 5, 6))),
    ):
        with pytest.raises(RemoraError, match="do not broadcast"):
            call()


def test_numbers_too_large_are_said_not_returned():
    for f in FORWARD:
        with (
            np.errstate(all="ignore"),
            pytest.raises(RemoraError, match=r"too large|singular|not finite"),
        ):
            rm.forward_dynamics(ROBOT, Q, V * 1e200, TAU, formulation=f)


def test_a_slip_speed_that_is_none():
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(RemoraError, match="slip_speed"):
            rm.dynamics.friction_forces(ROBOT, V, bad)


def test_prescribed_joints():
    def hybrid(given):
        return rm.hybrid_dynamics(ROBOT, Q, V, TAU, given)

    with pytest.raises(RemoraError, match="no joint named 'x'"):
        hybrid({"x": 0.0})
    with pytest.raises(RemoraError, match="prescribed acceleration of joint 'joint_0' must have"):
        hybrid({"joint_0": np.zeros(5)})
    with pytest.raises(RemoraError, match="not finite"):
        hybrid({"joint_0": np.full(6, np.nan)})
