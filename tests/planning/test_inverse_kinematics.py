"""Inverse kinematics: reachable targets are reached, others are approached and explained."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.planning.floating_path import base_motion, base_motion_rate, end_of_path, end_variation
from remora.planning.joint_ranges import joint_ranges
from remora.planning.starts import wrapped

FIXED_KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar",
               "cartesian", "spherical")  # fmt: skip


def planar_arm(lengths=(1.0, 1.0), limits=(-np.inf, np.inf), base="fixed"):
    builder = rm.Builder("planar arm")
    builder.body("base", 50.0, (0, 0, 0), np.eye(3) * 10.0)
    builder.joint("base_joint", base, None, "base")
    parent, x = "base", 0.0
    for i, length in enumerate(lengths):
        builder.body(f"link_{i}", 1.0, (0.5 * length, 0, 0), np.eye(3) * 0.1)
        builder.joint(
            f"joint_{i}", "revolute", parent, f"link_{i}", placement=pose.from_xyz_rpy((x, 0, 0)),
            axis=(0, 0, 1), lower=limits[0], upper=limits[1],
        )  # fmt: skip
        parent, x = f"link_{i}", length
    builder.frame("tip", parent, pose.from_xyz_rpy((x, 0, 0)))
    return builder.build()


def with_mimic(ratio=0.5, offset=0.1, limits=(-2.0, 2.0)):
    """A finger whose second joint follows the first with another ratio."""
    builder = rm.Builder("finger")
    builder.body("palm", 5.0, (0, 0, 0), np.eye(3))
    builder.joint("palm_joint", "free", None, "palm")
    builder.body("near", 0.3, (0.05, 0, 0), np.eye(3) * 1e-3)
    builder.joint("knuckle", "revolute", "palm", "near", axis=(0, 0, 1), lower=limits[0],
                  upper=limits[1], velocity=1.0)  # fmt: skip
    builder.body("far", 0.2, (0.05, 0, 0), np.eye(3) * 1e-3)
    builder.joint(
        "tip_joint", "revolute", "near", "far", placement=pose.from_xyz_rpy((0.1, 0, 0)),
        axis=(0, 0, 1), mimic=("knuckle", ratio, offset), lower=-0.4, upper=0.8, velocity=0.3,
    )  # fmt: skip
    return builder.build()


def test_two_link_arm_against_the_closed_form():
    robot = planar_arm()
    found = rm.inverse_kinematics(robot, {"tip": (1.2, 0.7, 0.0)}, q0=[0.3, 0.4], compiled=False)
    assert found.success
    r2 = 1.2**2 + 0.7**2
    elbow = np.arccos((r2 - 2.0) / 2.0)
    shoulder = np.arctan2(0.7, 1.2) - 0.5 * elbow
    assert_close(found.q, np.array([shoulder, elbow]), rtol=1e-7)
    assert found.errors["tip"].position < 1e-8
    assert found.errors["tip"].angle is None


def test_out_of_reach_is_approached_and_explained():
    robot = planar_arm()
    found = rm.inverse_kinematics(robot, {"tip": (3.0, 4.0, 0.0)}, starts=3, compiled=False)
    assert not found.success
    assert abs(found.errors["tip"].position - 3.0) < 1e-6  # stretched: 5 m minus 2 m
    assert found.singular_value < 1e-3
    tip = pose.translation(rm.frame_pose(robot, found.q, "tip"))
    assert_close(tip, np.array([1.2, 1.6, 0.0]), rtol=1e-3)
    assert "out of reach" in str(found)
    assert "off by 3 m" in str(found)


def test_limits_are_kept_and_named():
    robot = planar_arm(limits=(-0.5, 0.5))
    found = rm.inverse_kinematics(robot, {"tip": (0.0, 2.0, 0.0)}, starts=5, compiled=False)
    assert not found.success
    assert np.all(np.abs(found.q) <= 0.5)
    assert found.joints_at_limits == found.limited_by == ("joint_0", "joint_1")
    assert "limited by the range of joint_0, joint_1" in str(found)
    free = rm.inverse_kinematics(robot, {"tip": (0.0, 2.0, 0.0)}, limits=False, compiled=False)
    assert free.errors["tip"].position < 1e-3  # a boundary of the workspace: slow, but reached


def test_q0_at_its_limits_can_leave_them():
    robot = planar_arm(limits=(-1.5, 1.5))
    goal = rm.frame_pose(robot, [0.4, -0.7], "tip")
    for corner in ((1.5, 1.5), (-1.5, -1.5), (1.5, -1.5)):
        found = rm.inverse_kinematics(robot, {"tip": goal}, q0=corner, compiled=False)
        assert found.success


def test_a_target_at_180_degrees():
    robot = planar_arm((1.0, 1.0, 1.0))
    q = np.array([np.pi, 0.0, 0.0])
    goal = rm.frame_pose(robot, q, "tip")
    found = rm.inverse_kinematics(robot, {"tip": goal}, q0=np.zeros(3), compiled=False)
    assert found.success


def test_an_opposite_direction():
    robot = planar_arm((1.0, 1.0, 1.0))
    task = rm.tasks.DirectionTask("tip", (1, 0, 0), (-1, 0, 0))
    found = rm.inverse_kinematics(robot, task, q0=np.zeros(3), compiled=False)
    assert found.success
    axis = pose.to_rotation_matrix(rm.frame_pose(robot, found.q, "tip"))[:, 0]
    assert_close(axis, np.array([-1.0, 0.0, 0.0]), rtol=1e-7)


def test_unlimited_joints_end_within_half_a_turn_of_q0():
    robot = planar_arm((1.0, 1.0, 1.0))
    goal = rm.frame_pose(robot, [2.5, 1.0, -2.0], "tip")
    for seed in range(4):
        q0 = np.random.default_rng(seed).uniform(-9.0, 9.0, 3)
        found = rm.inverse_kinematics(robot, {"tip": goal}, q0=q0, seed=seed, compiled=False)
        assert found.success
        assert np.all(np.abs(found.q - q0) <= np.pi + 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_with_every_joint(seed):
    """A target that some configuration reaches is reached, for any joint type."""
    robot = rm.random_robot(seed, bodies=7, kinds=FIXED_KINDS, branching=0.0)
    q, _ = rm.random_state(robot, seed)
    q0, _ = rm.random_state(robot, 100 + seed)
    q0[:8] = q[:8]
    targets = {"body_6": rm.frame_pose(robot, q, "body_6")}
    found = rm.inverse_kinematics(robot, targets, q0, "fixed", compiled=False)
    assert found.success
    assert_close(found.q[:8], q0[:8])
    x = rm.frame_pose(robot, found.q, "body_6")
    assert np.max(np.abs(dq.log(dq.mul(dq.conjugate(x), targets["body_6"])))) < 1e-7


def test_several_targets_of_two_arms():
    robot = rm.load("vt18_two_arm")
    q, _ = rm.random_state(robot, 2)
    q0 = rm.neutral(robot)
    q[:8] = q0[:8]
    ends = [robot.bodies[i].name for i in rm.topology.leaves(robot)]
    goals = {name: rm.frame_pose(robot, q, name)[:] for name in ends}
    found = rm.inverse_kinematics(robot, goals, q0, "fixed", compiled=False)
    assert found.success
    assert set(found.errors) == set(ends)


def test_a_mimic_joint_and_its_follower_s_range():
    robot = with_mimic()
    assert robot.nv == 7
    q = rm.neutral(robot)
    q[-1] = 1.1
    goal = rm.frame_pose(robot, q, "far")
    found = rm.inverse_kinematics(robot, {"far": goal}, base="fixed", compiled=False)
    assert found.success
    assert abs(found.q[-1] - 1.1) < 1e-7
    q[-1] = 1.9  # the follower would be at 1.05, beyond 0.8
    far = rm.inverse_kinematics(
        robot, {"far": rm.frame_pose(robot, q, "far")}, base="fixed", compiled=False
    )
    assert not far.success
    assert abs(far.q[-1] - 1.4) < 1e-12
    assert far.limited_by == ("knuckle",)


@pytest.mark.parametrize("ratio", [0.5, -0.5, 3.0, -3.0])
def test_ranges_and_speeds_of_a_leader_are_those_that_its_follower_allows(ratio):
    """By trying every position and speed of the leader."""
    robot = with_mimic(ratio)
    q = np.linspace(-2.5, 2.5, 100_001)
    follower = ratio * q + 0.1
    allowed = q[(np.abs(q) <= 2.0) & (follower >= -0.4) & (follower <= 0.8)]
    ranges = joint_ranges(robot, (), "floating")
    assert ranges.lower[-1] == pytest.approx(allowed[0], abs=1e-4)
    assert ranges.upper[-1] == pytest.approx(allowed[-1], abs=1e-4)
    start, goal = rm.neutral(robot), rm.neutral(robot)
    start[-1], goal[-1] = 0.5 * (allowed[0] + allowed[-1]), allowed[-1]
    fast = [rm.tasks.PostureTask(goal, gain=1e3)]
    found = rm.tasks.solve_tasks(robot, start, np.zeros(robot.nv), fast, None, 1e-4, compiled=False)
    assert found.velocity[-1] == pytest.approx(min(1.0, 0.3 / abs(ratio)), rel=1e-9)


def test_whole_turns_of_a_leader_are_kept():
    """A turn of the leader moves its follower; that of another unlimited joint changes nothing."""
    free = (-np.inf, np.inf)
    for robot, expected in (
        (with_mimic(limits=free), 7.0),
        (planar_arm(limits=free), 7.0 - 2 * np.pi),
    ):
        q = rm.neutral(robot)
        q[-1] = 7.0
        ranges = joint_ranges(robot, (), "fixed")
        found = wrapped(robot, q, rm.neutral(robot), ranges)
        assert found[-1] == pytest.approx(expected, abs=1e-12)
        last = robot.bodies[-1].name
        assert np.allclose(rm.frame_pose(robot, found, last), rm.frame_pose(robot, q, last)) or (
            np.allclose(rm.frame_pose(robot, found, last), -rm.frame_pose(robot, q, last))
        )


def test_nothing_can_move():
    builder = rm.Builder("block")
    builder.body("block", 1.0, (0, 0, 0), np.eye(3))
    builder.joint("joint", "fixed", None, "block")
    block = builder.build()
    found = rm.inverse_kinematics(block, {"block": (1.0, 0.0, 0.0)})
    assert not found.success
    assert found.q.shape == (0,)
    assert found.errors["block"].position == 1.0
    assert rm.inverse_kinematics(block, {"block": (0.0, 0.0, 0.0)}).success
    robot = planar_arm(base="free")
    locked = rm.inverse_kinematics(
        robot, {"tip": (0, 2, 0)}, base="fixed", locked=["joint_0", "joint_1"]
    )
    assert not locked.success
    assert_close(locked.q, rm.neutral(robot))
    base = rm.inverse_kinematics(
        robot, {"base": (1.0, 0.0, 0.0)}, base="fixed", starts=2, compiled=False
    )
    assert not base.success
    assert base.errors["base"].position == 1.0
    moved = rm.inverse_kinematics(robot, {"base": (1.0, 0.0, 0.0)}, base="flying", compiled=False)
    assert moved.success
    nothing = rm.inverse_kinematics(robot, {})
    assert nothing.success
    assert nothing.errors == {}


def test_compiled_and_numpy_agree():
    robot = planar_arm((1.0, 0.8, 0.6), (-2.5, 2.5))
    goal = rm.frame_pose(robot, [0.5, -1.0, 0.8], "tip")
    a, b = (rm.inverse_kinematics(robot, {"tip": goal}, compiled=c) for c in (True, False))
    assert a.success
    assert (a.iterations, a.starts) == (b.iterations, b.starts)
    assert_close(a.q, b.q, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"targets": {"tip": np.full(3, np.nan)}}, "target 'tip' holds values"),
        ({"targets": {"tip": np.zeros(5)}}, "must be a pose (8,) or a position (3,)"),
        ({"targets": {"hand": np.zeros(3)}}, "no body or frame named 'hand'"),
        ({"targets": "tip"}, "targets are {frame: pose"),
        ({"targets": ["tip"]}, "a target is a task"),
        ({"targets": [rm.tasks.PositionTask("tip", (1, 0, 0))] * 2}, "name them"),
        ({"targets": rm.tasks.ZeroReactionTask()}, "is about velocities"),
        ({"base": "free"}, "no base named 'free'"),
        ({"base": "floating"}, "base on a free joint"),
        ({"q0": [9.0, 0.0]}, "joint 'joint_0' is 8.5 beyond its range"),
        ({"q0": [np.nan, 0.0]}, "q0 holds values"),
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"starts": 0}, "starts must be at least 1"),
        ({"locked": ["elbow"]}, "no joint named 'elbow'"),
    ],
)  # fmt: skip
def test_refusals(change, says):
    robot = planar_arm(limits=(-0.5, 0.5))
    given = {"targets": {"tip": (1.0, 0.0, 0.0)}, **change}
    with pytest.raises(rm.RemoraError) as error:
        rm.inverse_kinematics(robot, **given)
    assert says in str(error.value)


# A floating base ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_end_of_a_path_varies_as_told(seed):
    robot = rm.random_robot(seed, bodies=5, kinds=FIXED_KINDS)
    q, v = rm.random_state(robot, seed)
    way = 0.3 * v[6:]
    response = base_motion(robot, False), base_motion_rate(robot, False)
    W = end_variation(robot, q, way, 24, *response)
    h = 1e-6
    for j in range(way.size):
        ends = [end_of_path(robot, q, way + s * h * np.eye(way.size)[j], 24, response[0])
                for s in (-1.0, 1.0)]  # fmt: skip
        slope = rm.difference(robot, *ends) / (2.0 * h)
        assert_close(W[:, j], slope, rtol=1e-4)  # poses at Gauss points: second order


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "spherical", "planar"])
def test_the_base_ends_where_a_simulation_puts_it(kind):
    """The same joint path, prescribed over time in a run from rest: the base's pose to 1e-8."""
    robot = rm.random_robot(3, bodies=4, kinds=("revolute", kind), branching=0.0)
    q0, v = rm.random_state(robot, 1)
    way = 0.5 * v[6:]
    q1 = end_of_path(robot, q0, way, 64, base_motion(robot, False))
    goal = rm.frame_pose(robot, q1, "body_3")
    found = rm.inverse_kinematics(robot, {"body_3": goal}, q0, base="floating", compiled=False)
    assert found.success
    path = found.path
    assert_close(path.q[0], q0)
    assert_close(path.q[-1], found.q)

    def along(joint):
        def motion(t):
            s, speed = 0.5 * (1.0 - np.cos(np.pi * t)), 0.5 * np.pi * np.sin(np.pi * t)
            rate = 0.5 * np.pi**2 * np.cos(np.pi * t)
            dq = np.concatenate([np.zeros(6), path.way])
            own = dq[joint.v]
            return rm.integrate(robot, q0, s * dq)[joint.q], speed * own, rate * own

        return rm.Motion(motion)

    moving = [j for j in robot.joints[1:] if j.v.stop > j.v.start]
    run = rm.simulate(
        robot,
        q0,
        np.zeros(robot.nv),
        duration=1.0,
        integrator=rm.Integrator(rtol=1e-11, atol=1e-12),
        prescribed={j.name: along(j) for j in moving},
    )
    gap = rm.difference(robot, found.q, run.q[-1])
    assert np.max(np.abs(gap)) < 1e-8


def test_a_floating_robot_out_of_reach_and_at_limits():
    robot = planar_arm((1.0, 1.0), (-0.3, 0.3), base="free")
    q0 = rm.neutral(robot)
    found = rm.inverse_kinematics(
        robot, {"tip": (0.0, 2.0, 0.0)}, q0, base="floating", starts=2, compiled=False
    )
    assert not found.success
    assert found.limited_by == ("joint_0", "joint_1")
    assert np.all(np.abs(found.path.q[:, 8:]) <= 0.3 + 1e-12)
    momentum_free = rm.center_of_mass(robot, found.path.q)
    assert_close(momentum_free, np.broadcast_to(momentum_free[0], momentum_free.shape))
    base = rm.inverse_kinematics(
        robot, {"base": (1.0, 0.0, 0.0)}, q0, base="floating", starts=2, compiled=False
    )
    assert not base.success


def test_mimic_joints_and_locked_ones_on_a_floating_base():
    robot = with_mimic()
    q0 = rm.neutral(robot)
    q1 = end_of_path(robot, q0, np.array([0.9]), 32, base_motion(robot, False))
    found = rm.inverse_kinematics(
        robot, {"far": rm.frame_pose(robot, q1, "far")}, q0, base="floating", compiled=False
    )
    assert found.success
    assert abs(found.q[-1] - 0.9) < 1e-7
    still = rm.inverse_kinematics(
        robot, {"far": (1, 0, 0)}, q0, base="floating", locked=["knuckle"], compiled=False
    )
    assert not still.success
    assert_close(still.q, q0)


def test_the_base_is_that_of_the_robot_if_none_is_named():
    """A free-floating robot recoils; others, and those without masses, are mounted."""
    robot = planar_arm((1.0, 1.0), base="free")
    q0 = rm.neutral(robot)
    q0[8:] = 0.4, 0.7
    goal = {"tip": (1.2, 0.7, 0.0)}
    found = rm.inverse_kinematics(robot, goal, q0, compiled=False)
    named = rm.inverse_kinematics(robot, goal, q0, "floating", compiled=False)
    assert found.success
    assert found.path is not None
    assert np.array_equal(found.q, named.q)
    assert not np.allclose(found.q[:8], q0[:8])
    held = rm.inverse_kinematics(planar_arm((1.0, 1.0)), goal, q0[8:], compiled=False)
    assert held.path is None
