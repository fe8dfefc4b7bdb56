"""Planned reaches, flown: the base recoils, and the frame stops at the goal."""

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
        robot,
        q,
        np.zeros(robot.nv),
        duration=plan.duration,
        prescribed=plan.motions,
        integrator=rm.Integrator(rtol=1e-11, atol=1e-12),
    )


def fastest(plan):
    """Name and largest speed of the fastest joint, found on a fine grid of times."""
    fine = np.linspace(0.0, plan.duration, 20 * (len(plan.t) - 1) + 1)
    speeds = {n: max(abs(m(t)[1][0]) for t in fine) for n, m in plan.motions.items()}
    name = max(speeds, key=speeds.get)
    return name, max(speeds[name], float(np.abs(plan.v[:, -len(speeds) :]).max()))


@pytest.mark.parametrize(
    ("path", "steps"), [("joints", 3), ("joints", 20), ("line", 20), ("line", 61)]
)
def test_speed_limits_hold_between_few_samples(path, steps):
    """The joints follow splines: their peaks lie between samples."""
    near = pose.translation(rm.frame_pose(ROBOT, Q, "tool")) + np.array([-0.01, 0.01, 0.0])
    plan = rm.plan_reach(ROBOT, Q, "tool", near, path=path, steps=steps)
    assert fastest(plan)[1] < 0.4 * (1.0 + 1e-9)
    assert fastest(plan)[1] > 0.4 * (1.0 - 0.01)


def gantry():
    """Return a tool on two slides; the first carries all and is on the inertial frame."""
    builder = rm.Builder("gantry")
    for i, axis in enumerate(np.eye(3)[:2]):
        builder.body(f"slide_{i}", 3.0, (0, 0, 0), np.eye(3))
        builder.joint(
            f"x{i}", "prismatic", f"slide_{i - 1}" if i else None, f"slide_{i}", axis=axis,
            lower=-9, upper=9, velocity=(0.1, 2.0)[i],
        )  # fmt: skip
    builder.frame("tool", "slide_1")
    return builder.build()


def gripper():
    """Return an arm whose second joint turns 2.35 times as fast as the first, the other way."""
    builder = rm.Builder("gripper")
    for i in range(2):
        builder.body(f"link_{i}", 1.0, (0.3, 0, 0), np.eye(3))
        builder.joint(
            f"j{i}", "revolute", f"link_{i - 1}" if i else None, f"link_{i}", axis=(0, 0, 1),
            placement=pose.from_xyz_rpy((0.6 * i, 0, 0)), velocity=(3.0, 0.2)[i],
            mimic=("j0", -2.35, 0.1) if i else None,
        )  # fmt: skip
    builder.frame("tool", "link_1", pose.from_xyz_rpy((0.5, 0, 0)))
    return builder.build()


@pytest.mark.parametrize(
    ("robot", "name", "goal", "limit", "path"),
    [
        (gantry(), "x0", [0.5, 0.4], 0.1, "line"),
        (gantry(), "x0", [0.5, 0.4], 0.1, "joints"),
        (gripper(), "j1", [0.7], 0.2 / 2.35, "joints"),
    ],
)
def test_limits_of_joints_on_the_inertial_frame_and_of_followers(robot, name, goal, limit, path):
    q = np.zeros(robot.nq)
    target = pose.translation(rm.frame_pose(robot, np.array(goal), "tool"))
    plan = rm.plan_reach(robot, q, "tool", target, base="fixed", path=path)
    assert np.abs(plan.v[:, 0]).max() == pytest.approx(limit, rel=1e-3)
    assert np.abs(plan.v[:, 0]).max() < limit * (1.0 + 1e-9)
    with pytest.raises(
        rm.errors.InvalidValue, match=rf"limit of joint '{name}' needs {plan.duration:.4g}"
    ):
        rm.plan_reach(robot, q, "tool", target, 0.9 * plan.duration, base="fixed", path=path)


@pytest.mark.parametrize("path", ["line", "joints"])
def test_a_reach_is_flown_to_its_goal(path):
    plan = rm.plan_reach(ROBOT, Q, "tool", TARGET, path=path)
    assert plan.error.position < 1e-6
    assert plan.error.angle is None
    assert list(plan.motions) == ["joint_0", "joint_1", "joint_2"]
    assert 0.4 * (1.0 - 1e-6) < fastest(plan)[1] < 0.4 * (1.0 + 1e-9)  # the shortest duration
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


def test_a_pose_a_fixed_base_and_a_frame_as_goal():
    fixed = arm("fixed")
    q = Q[8:]
    goal = rm.frame_pose(fixed, [0.2, -0.9, 1.0], "tool")
    with_frame = fixed.replace(frames=[*fixed.frames, rm.Frame("target", -1, goal)])
    plan = rm.plan_reach(with_frame, q, "tool", "target", 12.0, base="fixed")
    assert plan.duration == 12.0
    run = flown(with_frame, plan, q)
    gap = rm.frame_pose(with_frame, run.q[-1], "tool") - goal
    assert np.max(np.abs(gap)) < 1e-6
    tau = plan.t / plan.duration  # turned as far as moved, all the way
    turned = plan.q.sum(axis=-1) - q.sum()
    assert np.allclose(turned, tau**3 * (10 - 15 * tau + 6 * tau**2) * turned[-1], atol=1e-6)
    held = rm.plan_reach(ROBOT, Q, "tool", TARGET, locked=["joint_0"], path="joints")
    assert list(held.motions) == ["joint_1", "joint_2"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"goal": (9.0, 0.0, 0.0)}, "leaves its range .* along the line"),
        ({"goal": (9.0, 0.0, 0.0), "path": "joints"}, "not reached; closest configuration"),
        ({"goal": (np.nan, 0.0, 0.0)}, "not finite"),
        ({"goal": "link_1"}, "moves with a body"),
        ({"goal": np.zeros(4)}, "must be a pose"),
        ({"frame": "hand"}, "no body or frame named 'hand'"),
        ({"duration": 0.1}, "too short: the speed limit of joint 'joint_"),
        ({"duration": -1.0}, "duration must be positive"),
        ({"path": "arc"}, "no path named 'arc'"),
        ({"base": "flying"}, "no base named 'flying'"),
        ({"steps": 1}, "steps must be at least 2"),
    ],
)
def test_refusals(change, says):
    given = {"frame": "tool", "goal": TARGET, **change}
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


# Scenario files -----------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a scenario with the small arm beside it."""
    rm.save_robot(ROBOT, tmp_path / "arm.yaml")

    def write(phases, start=""):
        text = (
            "scenario: 1\nrobot: arm.yaml\n"
            f"start: {{joints: {{joint_0: 0.6, joint_1: -1.2, joint_2: 0.8}}{start}}}\n"
            f"phases:\n{phases}integrator: {{rtol: 1.0e-11, atol: 1.0e-12}}\n"
        )
        (tmp_path / "reach.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "reach.yaml"

    return write


AWAY = "[2.2, 0.45, 0.0]"
MOVED = "  - {duration: 4, prescribed: {joint_0: {to: 0.4}}, locked: [joint_1, joint_2]}\n"


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_a_phase_reaches_from_wherever_the_robot_is(written, base):
    reach = f"reach: {{frame: tool, goal: {AWAY}, base: {base}, path: joints}}"
    run = rm.load_scenario(written(f"{MOVED}  - {{duration: 20, {reach}}}\n")).run()
    assert run.status == "complete"
    tool = pose.translation(run.frame_pose("tool"))[-1]
    distance = np.linalg.norm(tool - [2.2, 0.45, 0.0])
    assert (distance < 1e-6) == (base == "floating")  # the base recoils, whatever the plan says
    if base == "floating":
        plan = rm.plan_reach(ROBOT, run.q[run.phase == 0][-1], "tool", np.array([2.2, 0.45, 0.0]),
                             20.0, path="joints")  # fmt: skip
        assert np.abs(rm.difference(ROBOT, plan.q[-1], run.q[-1])).max() < 1e-8


def test_a_reach_to_a_pose_keeps_the_rest_locked(written):
    goal = rm.frame_pose(ROBOT, Q, "tool")
    place = pose.translation(goal) + np.array([-0.2, 0.1, 0.0])
    target = f"{{xyz: {place.tolist()}, rpy: [0, 0, {0.6 - 1.2 + 0.8 - 0.1}]}}"
    reach = f"  - {{duration: 20, reach: {{frame: tool, goal: {target}}}}}\n"
    run = rm.load_scenario(written(reach)).run()
    assert np.linalg.norm(pose.translation(run.frame_pose("tool")[-1]) - place) < 1e-6
    reach = f"  - {{duration: 30, locked: [joint_2], reach: {{frame: tool, goal: {AWAY}}}}}\n"
    run = rm.load_scenario(written(reach)).run()
    assert np.all(run.joint("joint_2").q == 0.8)
    assert np.linalg.norm(pose.translation(run.frame_pose("tool")[-1]) - [2.2, 0.45, 0.0]) < 1e-6


def test_a_reach_is_resumed_and_described(written, tmp_path):
    phases = f"  - {{duration: 20, reach: {{frame: tool, goal: {AWAY}}}}}\n"
    scenario = rm.load_scenario(written(phases))
    whole = scenario.run()

    def stop(status):
        if status.t > 8.0:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = scenario.run(tmp_path / "run", progress=stop)
    assert part.status == "interrupted"
    rest = scenario.run(tmp_path / "run", resume=True)
    assert np.array_equal(rest.q[-1], whole.q[-1])
    told = whole.settings["phases"][0]["prescribed"]["joint_0"]
    assert told == {"reach": "tool", "goal": [2.2, 0.45, 0.0], "base": "floating", "path": "line"}


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        ("prescribed: {joint_0: {to: 0.1}}", "joint 'joint_0' is part of the reach"),
        ("torque: {joint_0: 0.1}", "joint 'joint_0' is prescribed or locked"),
        ("base_wrench: [1, 0, 0, 0, 0, 0]", "no other forces may act on the robot"),
        (
            "controllers: [{law: attitude_pd, kp: 1, kd: 1, sample_time: 1}]",
            "no other forces may act on the robot",
        ),
    ],
)
def test_contradictions_of_a_reach_are_found_before_the_run(written, phase, reason):
    phases = f"  - {{duration: 20, {phase}, reach: {{frame: tool, goal: {AWAY}}}}}\n"
    with pytest.raises(rm.errors.ModelError, match=reason):
        rm.load_scenario(written(phases))


def test_goals_of_a_reach_that_move_or_are_unknown_are_refused(written):
    for target, reason in (("link_1", "moves with a body"), ("hook", "no body or frame named")):
        phases = f"  - {{duration: 20, reach: {{frame: tool, goal: {target}}}}}\n"
        with pytest.raises(rm.errors.ModelError, match=reason):
            rm.load_scenario(written(phases))


def test_a_reach_on_a_drifting_base_or_out_of_reach_is_an_error_of_the_run(written):
    phases = f"  - {{duration: 20, reach: {{frame: tool, goal: {AWAY}}}}}\n"
    drifting = rm.load_scenario(written(phases, ", base: {velocity: [0.01, 0, 0]}"))
    with pytest.raises(rm.RemoraError, match="needs zero momentum"):
        drifting.run()
    far = written("  - {duration: 20, reach: {frame: tool, goal: [9, 0, 0]}}\n")
    with pytest.raises(rm.RemoraError, match=r"leaves the workspace|leaves its range"):
        rm.load_scenario(far).run()
