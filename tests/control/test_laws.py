"""Control laws: the equations they state, and what they do to a robot."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose, quaternion
from remora.simulation.scenario.component_table import LAWS

SERVICER = rm.load("servicer")


def at(angles_deg=(0, 30, 0, -60, 0, 45, 0)):
    q = rm.neutral(SERVICER)
    q[8:] = np.radians(angles_deg)
    return q


def test_joint_pd_is_a_spring_and_a_damper(rng):
    q, v = rm.random_state(SERVICER, 3)
    goal = {"elbow_pitch": 0.3, "wrist_roll": -0.2}
    law = rm.control.JointPD(SERVICER, goal, {"elbow_pitch": 10, "wrist_roll": 2}, 5.0, 0.1)
    tau = law(0.0, q, v)
    assert law.sample_time == 0.1
    assert law.joints == ("elbow_pitch", "wrist_roll")
    assert tau[9] == 10 * (0.3 - q[11]) - 5 * v[9]
    assert tau[12] == 2 * (-0.2 - q[14]) - 5 * v[12]
    others = np.delete(tau, [9, 12])
    assert tau.shape == (13,)
    assert np.all(others == 0.0)
    assert isinstance(law, rm.Controller)


def test_joint_pd_of_joints_with_several_coordinates():
    builder = rm.Builder("r").body("a", mass=1, inertia=(1, 1, 1)).body("b", mass=1)
    robot = builder.joint("slide", "cartesian", "a", "b").build()
    law = rm.control.JointPD(robot, {"slide": [1, 2, 3]}, 2.0, {"slide": [1, 1, 2]}, 0.1)
    tau = law(0.0, rm.neutral(robot), np.ones(9))
    assert np.array_equal(tau, [0, 0, 0, 0, 0, 0, 1, 3, 4])


@pytest.mark.parametrize("seed", range(5))
def test_attitude_pd_works_against_the_error_along_its_axis(seed, rng):
    """A small turn θ about an axis a away from the goal is answered by -kp θ a."""
    rng = np.random.default_rng(seed)
    goal = quaternion.normalize(rng.normal(size=4))
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    law = rm.control.AttitudePD(SERVICER, goal, 7.0, [1, 2, 3], 0.1)
    q, v = rm.random_state(SERVICER, rng)
    for sign in (1.0, -1.0):
        r = sign * quaternion.mul(goal, quaternion.from_axis_angle(axis, 1e-3))
        q[:8] = pose.from_parts(r, np.array([1.0, 2.0, 3.0]))
        tau = law(0.0, q, v)
        assert np.allclose(tau[:3], -7e-3 * axis - [1, 2, 3] * v[:3], atol=1e-8)
        assert np.all(tau[3:] == 0.0)
    off = quaternion.mul(goal, quaternion.from_axis_angle(axis, 2.0))
    q[:4] = off
    assert np.allclose(law(0, q, 0 * v)[:3], -7 * 2 * np.sin(1.0) * axis)


def test_both_bring_a_robot_to_its_goals():
    q, v = at(), np.zeros(13)
    v[:3] = 0.05, -0.03, 0.02
    goal = dict(zip(SERVICER.joints.names[1:], q[8:] + 0.1, strict=True))
    gains = [3, 14, 5, 5, 0.3, 0.4, 0.05]
    stiff = dict(zip(goal, gains, strict=True))
    arm = rm.control.JointPD(SERVICER, goal, stiff, {k: 1.6 * x for k, x in stiff.items()}, 0.05)
    wanted = quaternion.from_rpy(np.array([0.1, 0.2, -0.1]))
    base = rm.control.AttitudePD(SERVICER, wanted, 40.0, 150.0, 0.1)
    both = rm.ZeroOrderHold(lambda t, q, v: arm(t, q, v) + base(t, q, v), 0.05)
    run = rm.simulate(
        SERVICER,
        q,
        v,
        120.0,
        torque=both,
        record=1.0,
        integrator=rm.Integrator("dopri5", rtol=1e-8),
    )
    assert np.abs(run.q[-1, 8:] - list(goal.values())).max() < 1e-3
    assert np.abs(run.v[-1][:3]).max() < 1e-4
    assert abs(run.q[-1, :4] @ wanted) > 1 - 1e-6


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.control.JointPD(SERVICER, {}, 1, 1, 0.1), "at least one joint"),
        (lambda: rm.control.JointPD(SERVICER, {"elbow": 0}, 1, 1, 0.1), "no joint named 'elbow'"),
        (lambda: rm.control.JointPD(SERVICER, {"base": 0}, 1, 1, 0.1), "no coordinates to hold"),
        (
            lambda: rm.control.JointPD(SERVICER, {"elbow_pitch": [0, 1]}, 1, 1, 0.1),
            "one number or 1",
        ),
        (
            lambda: rm.control.JointPD(SERVICER, {"elbow_pitch": np.nan}, 1, 1, 0.1),
            "must be finite",
        ),
        (lambda: rm.control.JointPD(SERVICER, {"elbow_pitch": 0}, {}, 1, 0.1), "kp is missing"),
        (lambda: rm.control.AttitudePD(SERVICER, [0, 0, 0, 0], 1, 1, 0.1), "must be a quaternion"),
        (lambda: rm.control.AttitudePD(SERVICER, [1, 0, 0, 0], [1, 2], 1, 0.1), "one number or 3"),
        (
            lambda: rm.control.AttitudePD(
                rm.load("servicer", base="fixed"), [1, 0, 0, 0], 1, 1, 0.1
            ),
            "has no attitude",
        ),
    ],
)
def test_what_cannot_be_controlled_is_refused(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()


def test_a_phase_can_list_them():
    assert {"joint_pd": rm.control.JointPD, "attitude_pd": rm.control.AttitudePD} == LAWS
    assert all(rm.COMPONENTS[name] is row for name, row in LAWS.items())
