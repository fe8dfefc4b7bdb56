"""Configurations and velocities by joint name: round trips on every joint type, and refusals."""

import casadi
import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose
from trees import Case


@pytest.mark.parametrize("seed", range(20))
def test_by_joint_and_back(seed):
    case = Case(seed, largest=12)
    robot = case.robot
    q, v = rm.random_state(robot, 3, batch=(2, 4))
    assert np.array_equal(rm.configuration(robot, rm.by_joint(robot, q)), q)
    assert np.array_equal(rm.velocity(robot, rm.by_joint(robot, v)), v)
    for joint in robot.joints:
        if joint.q.stop > joint.q.start:
            own = rm.by_joint(robot, q)[joint.name]
            assert np.array_equal(own.reshape(2, 4, -1), q[..., joint.q])


def arm():
    return (
        rm.Builder("arm")
        .body("bus", mass=10.0, inertia=(1, 1, 1))
        .body("upper", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .body("left", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .body("right", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .body("stub", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .joint("shoulder", "revolute", "bus", "upper")
        .joint("left_slide", "prismatic", "upper", "left")
        .joint("right_slide", "prismatic", "upper", "right", mimic=("left_slide", -1.0, 0.0))
        .joint("wrist", "spherical", "upper", "ball")
        .joint("mount", "fixed", "bus", "stub")
        .build()
    )


def test_what_is_not_given_is_neutral_or_from_another_configuration():
    robot = arm()
    q = rm.configuration(robot, {"shoulder": 0.3, "left_slide": 0.1})
    expected = rm.neutral(robot)
    expected[robot.joints["shoulder"].q] = 0.3
    expected[robot.joints["left_slide"].q] = 0.1
    assert np.array_equal(q, expected)
    changed = rm.configuration(robot, {"shoulder": -0.3}, q0=q)
    assert changed[robot.joints["left_slide"].q] == 0.1
    assert changed[robot.joints["shoulder"].q] == -0.3
    assert np.array_equal(rm.configuration(robot), rm.neutral(robot))
    assert np.array_equal(rm.velocity(robot), np.zeros(robot.nv))


def test_the_base():
    robot = arm()
    x = pose.from_xyz_rpy((1.0, 2.0, 3.0), (0.1, 0.2, 0.3))
    by_pose = rm.configuration(robot, base=x)
    assert np.array_equal(by_pose[:8], x)
    by_parts = rm.configuration(robot, xyz=(1.0, 2.0, 3.0), rpy=(0.1, 0.2, 0.3))
    assert np.array_equal(by_parts, by_pose)
    assert np.array_equal(rm.configuration(robot, {"base": x}), by_pose)
    assert_close(pose.translation(rm.configuration(robot, xyz=(0, 0, 1))[:8]), [0, 0, 1])
    twist = np.arange(6.0)
    assert np.array_equal(rm.velocity(robot, {"shoulder": 2.0}, base=twist)[:7], [*twist, 2.0])


def test_batches_are_broadcast():
    robot = arm()
    angles = np.linspace(0.0, 1.0, 5)
    q = rm.configuration(robot, {"shoulder": angles, "left_slide": np.zeros((3, 1))})
    assert q.shape == (3, 5, robot.nq)
    assert np.array_equal(q[2, :, robot.joints["shoulder"].q.start], angles)
    moved = rm.configuration(robot, xyz=np.zeros((4, 3)))
    assert moved.shape == (4, robot.nq)


def test_symbols():
    robot = arm()
    angle = casadi.SX.sym("angle")
    q = rm.configuration(robot, {"shoulder": angle}, xyz=(0.0, 0.0, 1.0))
    f = casadi.Function("f", [angle], [casadi.vertcat(*q.tolist())])
    expected = rm.configuration(robot, {"shoulder": 0.7}, xyz=(0.0, 0.0, 1.0))
    assert_close(np.array(f(0.7)).ravel(), expected)
    again = rm.configuration(robot, rm.by_joint(robot, q))
    assert again.shape == q.shape


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (({"elbow": 1.0},), rm.errors.UnknownName, "no joint named 'elbow'.*known: base, shoulder"),
        (({"shoulde": 1.0},), rm.errors.UnknownName, "did you mean 'shoulder'"),
        (({"right_slide": 1.0},), rm.errors.InvalidValue, "mimics 'left_slide': give that one"),
        (({"mount": 1.0},), rm.errors.InvalidValue, "is fixed"),
        (({"wrist": (1.0, 0.0, 0.0)},), rm.errors.ShapeError, r"spherical\) must be \(..., 4\)"),
        (({"wrist": (2.0, 0.0, 0.0, 0.0)},), rm.errors.InvalidValue, "not of unit length"),
        (({"shoulder": "30 deg"},), rm.errors.InvalidValue, "not numeric"),
        (({"shoulder": np.nan},), rm.errors.InvalidValue, "not finite"),
        (({}, np.zeros(8)), rm.errors.InvalidValue, "not of unit length"),
        (({}, np.eye(8)[0], (0, 0, 1)), rm.errors.InvalidValue, "give one of them"),
        (({"base": np.eye(8)[0]}, np.eye(8)[0]), rm.errors.InvalidValue, "once"),
        (
            ({"shoulder": np.zeros(2), "left_slide": np.zeros(3)},),
            rm.errors.ShapeError,
            "batch shapes",
        ),
    ],
)
def test_refusals(arguments, error, match):
    with pytest.raises(error, match=match):
        rm.configuration(arm(), *arguments)


def test_more_refusals():
    fixed = rm.load("servicer", base="fixed")
    with pytest.raises(rm.errors.InvalidValue, match="is fixed: use base="):
        rm.configuration(fixed, xyz=(0, 0, 1))
    with pytest.raises(rm.errors.InvalidValue, match="'base' is fixed: it cannot move"):
        rm.configuration(fixed, base=(0, 0, 1))
    with pytest.raises(
        rm.errors.ShapeError, match=r"\(..., 14\) as q or \(..., 11\) as v, not \(3,\)"
    ):
        rm.by_joint(arm(), (1.0, 2.0, 3.0))
    with pytest.raises(rm.RemoraError, match="robot"):
        rm.configuration({"elbow": 1.0})


@pytest.mark.parametrize("joints", [np.zeros(3), [("elbow", 1.0)], "elbow", {1: 0.0}])
def test_joints_are_given_by_name(joints):
    robot = rm.load("servicer")
    for function in (rm.configuration, rm.velocity):
        with pytest.raises(rm.RemoraError, match=r"joints must be (a dictionary by name|given by)"):
            function(robot, joints)
