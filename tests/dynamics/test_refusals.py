"""Bad input to the dynamics: a clear error, never a silent NaN."""

import numpy as np
import pytest

import remora as rm
from remora.errors import RemoraError

FORWARD = [name for name, row in rm.FORMULATIONS.items() if row.hybrid is not None]

ROBOT = rm.random_robot(2, bodies=5)
Q, V = rm.random_state(ROBOT, 0)
TAU = np.zeros(ROBOT.nv)


def test_unknown_formulations_list_the_known_ones():
    with pytest.raises(RemoraError, match="articulated, composite, newton_euler, decoupled"):
        rm.forward_dynamics(ROBOT, Q, V, TAU, formulation="lagrange")
    with pytest.raises(RemoraError, match="recursive, composite, newton_euler, decoupled"):
        rm.inverse_dynamics(ROBOT, Q, V, TAU, formulation="articulated")
    with pytest.raises(RemoraError, match="newton_euler, decoupled"):
        rm.newton_euler_solution(ROBOT, Q, V, TAU, formulation="composite")


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
        ("articulated", "joint 'j'.*nothing to move"),
        ("composite", "singular"),
        ("newton_euler", "body 'b' has no mass"),
        ("decoupled", "body 'b' has no mass"),
    ):
        with pytest.raises(RemoraError, match=reason):
            rm.forward_dynamics(hollow, q, v, np.zeros(7), formulation=f)


def test_a_point_mass_turning_about_itself_is_singular():
    point = ROBOT.replace_body("body_4", inertia=np.zeros((3, 3)))
    with pytest.raises(RemoraError, match="singular"):
        rm.forward_dynamics(point, Q, V, TAU, formulation="newton_euler")


def test_prescribed_joints():
    def hybrid(given):
        return rm.hybrid_dynamics(ROBOT, Q, V, TAU, given)

    with pytest.raises(RemoraError, match="no joint named 'x'"):
        hybrid({"x": 0.0})
    with pytest.raises(RemoraError, match="prescribed acceleration of joint 'joint_0' must have"):
        hybrid({"joint_0": np.zeros(5)})
    with pytest.raises(RemoraError, match="not finite"):
        hybrid({"joint_0": np.full(6, np.nan)})
