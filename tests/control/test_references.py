"""References: they pass their way-points, their rates are derivatives, limits are reached."""

import itertools

import numpy as np
import pytest

import remora as rm
from arms import arm
from laws_on_small_robots import values
from remora.algebra import dual_quaternion, pose, quaternion, tangent
from remora.control.references.time_laws import TIME_LAWS, shortest_time

ROBOT = arm(2, "fixed")
Q, V = np.zeros(2), np.zeros(2)
POSES = [
    pose.from_xyz_rpy([0, 0, 0], [0, 0, 0]),
    pose.from_xyz_rpy([1, 0.5, -0.2], [0.5, -1.0, 2.0]),
    pose.from_xyz_rpy([0.3, 0.2, 0.1], [0.1, 0.2, -2.0]),
]


def at(reference, t):
    return values(reference, ROBOT, Q, V, t=t)


@pytest.mark.parametrize("law", TIME_LAWS)
def test_time_laws_go_from_rest_to_rest_with_their_derivatives(law):
    t, h = np.linspace(-0.5, 3.5, 403), 1e-5
    travel = TIME_LAWS[law](t, 3.0, 0.7)
    later, before = TIME_LAWS[law](t + h, 3.0, 0.7), TIME_LAWS[law](t - h, 3.0, 0.7)
    assert np.all(travel.s[t <= 0] == 0.0)
    assert np.abs(travel.s[t >= 3] - 1.0).max() < 1e-14
    assert np.abs((later.s - before.s) / (2 * h) - travel.rate).max() < 1e-5
    smooth = np.abs(later.acceleration - before.acceleration) < 1e-3  # not across a jump
    assert np.mean(smooth) > 0.9
    slope = (later.rate - before.rate) / (2 * h)
    assert np.abs(slope - travel.acceleration)[smooth].max() < 1e-4


@pytest.mark.parametrize("law", TIME_LAWS)
@pytest.mark.parametrize(("rate", "acceleration"), [(0.5, 10.0), (5.0, 0.3), (0.5, np.inf)])
def test_the_shortest_time_reaches_a_limit_and_exceeds_none(law, rate, acceleration):
    duration, ramp = shortest_time(law, rate, acceleration)
    travel = TIME_LAWS[law](np.linspace(0.0, duration, 20001), duration, ramp)
    fractions = [np.abs(travel.rate).max() / rate, np.abs(travel.acceleration).max() / acceleration]
    assert max(fractions) < 1 + 1e-9
    assert max(fractions) > 0.999


@pytest.mark.parametrize("law", TIME_LAWS)
def test_joints_pass_their_way_points_within_their_limits(law):
    points = np.array([[0.0, 1.0], [0.4, 0.2], [-1.0, 0.2]])
    path = rm.control.JointReference(
        points, law=law, max_speed=[0.2, 0.5], max_acceleration=[0.1, 1.0], start=1.0
    )
    ends = 1.0 + np.concatenate([[0.0], np.cumsum(path.durations)])
    for t, point in zip(ends, points, strict=True):
        found = at(path, t)
        assert np.abs(found["position"] - point).max() < 1e-12
        assert np.abs(found["velocity"]).max() < 1e-12
    many = at(path, np.linspace(0.0, ends[-1] + 1.0, 5001))
    speed, push = np.abs(many["velocity"]).max(axis=0), np.abs(many["acceleration"]).max(axis=0)
    assert np.all(speed <= np.array([0.2, 0.5]) * (1 + 1e-9))
    assert np.all(push <= np.array([0.1, 1.0]) * (1 + 1e-9))
    assert max(speed[0] / 0.2, push[0] / 0.1) > 0.99
    assert np.abs(at(path, 0.3)["position"] - points[0]).max() == 0.0


@pytest.mark.parametrize("law", TIME_LAWS)
def test_breaks_are_where_acceleration_or_jerk_jumps(law):
    """Between two breaks, accelerations are one polynomial: the cubic through four fits a fifth."""
    points = np.array([[0.0, 1.0], [0.4, 0.2], [-1.0, 0.3]])
    path = rm.control.JointReference(
        points, law=law, max_speed=0.2, max_acceleration=0.25, start=1.0
    )
    breaks = path.interface(ROBOT).breaks
    ends = 1.0 + np.concatenate([[0.0], np.cumsum(path.durations)])
    assert all(min(abs(end - x) for x in breaks) < 1e-12 for end in ends)
    part = np.array([0.02, 0.25, 0.5, 0.75, 0.98])
    for a, b in itertools.pairwise(breaks):
        found = at(path, a + part * (b - a))["acceleration"]
        cubic = [np.polyval(np.polyfit(part[:4], x[:4], 3), part[4]) for x in found.T]
        assert np.allclose(cubic, found[4], atol=1e-9)


def checked_rates(reference, times):
    """Check twist and twist rate against differences of poses and twists."""
    h = 1e-5
    for t in times:
        here, later, before = at(reference, t), at(reference, t + h), at(reference, t - h)
        step = dual_quaternion.mul(dual_quaternion.conjugate(before["pose"]), later["pose"])
        assert np.abs(dual_quaternion.log(step) / h - here["twist"]).max() < 1e-7
        slope = (later["twist"] - before["twist"]) / (2 * h)
        assert np.abs(slope - here["twist_rate"]).max() < 1e-6


@pytest.mark.parametrize("interpolation", ["screw", "straight"])
@pytest.mark.parametrize("law", TIME_LAWS)
def test_poses_pass_their_way_points_and_have_the_twists_they_say(interpolation, law):
    path = rm.control.PoseReference(POSES, [2.0, 3.0], interpolation, law)
    for t, x in zip([0.0, 2.0, 5.0], POSES, strict=True):
        found = at(path, t)["pose"]
        assert min(np.abs(found - x).max(), np.abs(found + x).max()) < 1e-12
    checked_rates(path, [0.3, 0.9, 1.6, 2.4, 3.5, 4.6])
    middle = at(path, 1.0)["pose"]
    if interpolation == "screw":
        expected = dual_quaternion.sclerp(POSES[0], POSES[1], 0.5)
        assert min(np.abs(middle - expected).max(), np.abs(middle + expected).max()) < 1e-12
    else:
        place = 0.5 * (pose.translation(POSES[0]) + pose.translation(POSES[1]))
        assert np.abs(pose.translation(middle) - place).max() < 1e-12


def test_a_pose_keeps_the_slower_of_its_limits():
    path = rm.control.PoseReference(
        POSES,
        max_speed=0.3,
        max_angular_speed=0.2,
        max_angular_acceleration=0.05,
        law="trapezoidal",
    )
    many = at(path, np.linspace(0.0, path.durations.sum(), 4001))
    turning = np.linalg.norm(many["twist"][:, :3], axis=1)
    moving = np.linalg.norm(many["twist"][:, 3:], axis=1)
    assert turning.max() < 0.2 + 1e-9
    assert moving.max() < 0.3 + 1e-9
    assert max(turning.max() / 0.2, moving.max() / 0.3) > 0.999
    assert np.linalg.norm(many["twist_rate"][:, :3], axis=1).max() < 0.05 + 1e-9


def test_a_circle_has_its_radius_plane_and_twist():
    turn = quaternion.from_rpy(np.array([0.3, 0.2, 0.1]))
    circle = rm.control.CircleReference([1, 0.2, 0], [0.8, 0.2, 0], [0.5, 0, 1], 4.0, turn, 1.5)
    many = pose.translation(at(circle, np.linspace(0, 4, 101))["pose"]) - np.array([0.8, 0.2, 0])
    assert np.abs(np.linalg.norm(many, axis=1) - 0.2).max() < 1e-14
    assert np.abs(many[:, 2]).max() < 1e-14  # the normal is made perpendicular to the radius
    assert np.abs(many[-1] + many[0]).max() < 1e-14  # one and a half turns
    checked_rates(circle, [0.5, 1.3, 2.0, 3.1])
    assert at(circle, 1.0)["pose"].shape == (8,)
    assert np.all(np.isfinite(tangent.twist(np.zeros(6), at(circle, 1.0)["twist"])))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.control.JointReference([[0.0, 0.0]], 1.0), "m ≥ 2"),
        (lambda: rm.control.JointReference([[0.0], [np.nan]], 1.0), "must be finite"),
        (lambda: rm.control.JointReference([[0.0], [1.0]]), "needs durations, or a largest speed"),
        (
            lambda: rm.control.JointReference([[0.0], [1.0]], durations=-1.0),
            "durations of a joint_ref",
        ),
        (lambda: rm.control.JointReference([[0.0], [1.0]], max_speed=0.0), "must be positive"),
        (
            lambda: rm.control.JointReference([[0.0], [1.0]], durations=1, law="cubic"),
            "no time law",
        ),
        (lambda: rm.control.PoseReference([POSES[0], 2 * POSES[1]], 1.0), "unit dual quaternions"),
        (lambda: rm.control.PoseReference([POSES[0]], 1.0), "m ≥ 2"),
        (lambda: rm.control.PoseReference(POSES, 1.0, "line"), "screw, straight"),
        (
            lambda: rm.control.CircleReference([1, 0, 0], [0, 0, 0], [1, 0, 0], 1.0),
            "along its radius",
        ),
        (
            lambda: rm.control.CircleReference([1, 0, 0], [0, 0, 0], [0, 0, 1], 0.0),
            "greater than 0",
        ),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()
    with pytest.raises(rm.RemoraError, match="3 numbers for 2 coordinates"):
        rm.control.JointReference([[0, 0, 0], [1, 1, 1]], durations=1).interface(ROBOT)
