"""Planned reaches, flown: the base recoils, and the frame stops at the target."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose


def arm(base="free"):
    builder = rm.Builder("small arm")
    builder.body("bus", 20.0, (0, 0, 0), np.eye(3) * 2.0).joint("root", base, None, "bus")
    parent, x = "bus", 0.5
    for i in range(3):
        builder.body(f"link_{i}", 2.0, (0.4, 0, 0), np.eye(3) * 0.2)
        builder.joint(
            f"joint_{i}", "revolute", parent, f"link_{i}", placement=pose.from_xyz_rpy((x, 0, 0)),
            axis=(0, 0, 1), lower=-2.5, upper=2.5, velocity=0.4,
        )  # fmt: skip
        parent, x = f"link_{i}", 0.8
    builder.frame("tool", parent, pose.from_xyz_rpy((0.8, 0, 0)))
    return builder.build()


ROBOT = arm()
Q = np.array([*rm.neutral(ROBOT)[:8], 0.6, -1.2, 0.8])
TARGET = pose.translation(rm.frame_pose(ROBOT, Q, "tool")) + np.array([-0.4, 0.3, 0.0])


def flown(robot, plan, q=Q):
    return rm.simulate(
        robot, q, np.zeros(robot.nv), duration=plan.duration, prescribed=plan.motions,
        rtol=1e-11, atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("path", ["line", "joints"])
def test_a_reach_is_flown_to_its_target(path):
    plan = rm.plan_reach(ROBOT, Q, "tool", TARGET, path=path)
    assert plan.error.position < 1e-6
    assert plan.error.angle is None
    assert list(plan.motions) == ["joint_0", "joint_1", "joint_2"]
    speeds = np.abs(plan.v[:, 6:]).max()
    assert speeds == pytest.approx(0.4)  # the shortest duration
    run = flown(ROBOT, plan)
    tool = pose.translation(rm.frame_pose(ROBOT, run.q, "tool"))
    assert np.linalg.norm(tool[-1] - TARGET) < 1e-6
    assert np.max(np.abs(rm.difference(ROBOT, plan.q[-1], run.q[-1]))) < 1e-8
    turned = np.linalg.norm(rm.difference(ROBOT, Q, run.q[-1])[:3])
    assert turned > 0.02
    assert np.max(np.abs(rm.momentum(ROBOT, plan.q, plan.v))) < 1e-9
    start = tool[0]
    away = tool - start
    along = (TARGET - start) / np.linalg.norm(TARGET - start)
    off = np.linalg.norm(away - (away @ along)[:, None] * along, axis=1).max()
    assert (off < 1e-6) == (path == "line")


def test_a_pose_a_fixed_base_and_a_frame_as_target():
    fixed = arm("fixed")
    q = Q[8:]
    goal = rm.frame_pose(fixed, [0.2, -0.9, 1.0], "tool")
    with_frame = fixed.replace(frames=[*fixed.frames, rm.Frame("target", -1, goal)])
    plan = rm.plan_reach(with_frame, q, "tool", "target", 12.0, base="fixed")
    assert plan.duration == 12.0
    run = flown(with_frame, plan, q)
    gap = rm.frame_pose(with_frame, run.q[-1], "tool") - goal
    assert np.max(np.abs(gap)) < 1e-6
    held = rm.plan_reach(ROBOT, Q, "tool", TARGET, locked=["joint_0"], path="joints")
    assert list(held.motions) == ["joint_1", "joint_2"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": (9.0, 0.0, 0.0)}, "leaves its range .* along the line"),
        ({"target": (9.0, 0.0, 0.0), "path": "joints"}, "not reached; closest configuration"),
        ({"target": (np.nan, 0.0, 0.0)}, "not finite"),
        ({"target": "link_1"}, "moves with a body"),
        ({"target": np.zeros(4)}, "must be a pose"),
        ({"frame": "hand"}, "no body or frame named 'hand'"),
        ({"duration": 0.1}, "too short: the speed limit of joint 'joint_"),
        ({"duration": -1.0}, "duration must be positive"),
        ({"path": "arc"}, "no path named 'arc'"),
        ({"base": "flying"}, "no base named 'flying'"),
        ({"steps": 1}, "steps must be at least 2"),
    ],
)
def test_refusals(change, says):
    given = {"frame": "tool", "target": TARGET, **change}
    with pytest.raises(rm.RemoraError, match=says):
        rm.plan_reach(ROBOT, Q, **given)


def with_limits(robot, name, **changes):
    limits = dataclasses.replace(robot.joints[name].limits, **changes)
    return robot.replace_joint(name, limits=limits)


def test_a_range_on_the_way_and_no_speed_limits():
    endless = ROBOT
    for name in ("joint_0", "joint_1", "joint_2"):
        endless = with_limits(endless, name, velocity=np.array([np.inf]))
    with pytest.raises(rm.RemoraError, match="no speed limits"):
        rm.plan_reach(endless, Q, "tool", TARGET)
    narrow = with_limits(ROBOT, "joint_1", lower=np.array([-1.3]))
    with pytest.raises(rm.RemoraError, match=r"'joint_1' leaves its range .* along the line"):
        rm.plan_reach(narrow, Q, "tool", TARGET)
