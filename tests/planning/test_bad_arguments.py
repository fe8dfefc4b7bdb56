"""Inverse kinematics, its tasks and planned reaches under arguments and goals that make no sense.

Each gives an error that says what is wrong, or a result that tells the truth: finite numbers, the
errors of the configuration itself, success only within the tolerance, and otherwise a reason.
"""

import dataclasses

import casadi
import numpy as np
import pytest

import remora as rm
from arms import arm, wheeled
from closed_loops import random_loops
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose, quaternion

ROBOT, HELD = arm(3), arm(3, base="fixed")
BENT = np.array([0.3, -0.6, 0.8])
Q = np.concatenate([rm.neutral(ROBOT)[:8], BENT])
GOAL = rm.frame_pose(ROBOT, Q, "tool")
NEAR = pose.translation(GOAL) + np.array([-0.05, 0.04, 0.02])
REST = np.zeros(ROBOT.nv)

#: Values that no number, flag, name, frame, goal or robot may be.
NEVER = {
    "nan": np.nan, "infinite": np.inf, "text": "much", "complex": 1j, "ragged": [[1.0], [1.0, 2.0]],
    "complex array": np.full(3, 1j), "seven": np.ones(7), "one is nan": (1.0, np.nan, 1.0),
    "object": object(), "huge": 1e300, "fraction": -1.5, "bytes": b"x", "nested": [[[1.0]]],
    "names": ["a", "b"], "masked": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "big": 10**30,
    "symbol": casadi.SX.sym("x"), "eight ones": np.ones(8), "minus": -1, "set": {0.5},
}  # fmt: skip
#: Values that are right for some arguments.
SOMETIMES = {"zero": 0, "true": True, "false": False, "none": None, "empty": [], "mapping": {},
             "half": 0.5, "twice": ["j0", "j0"], "three": np.ones(3), "one": 1}  # fmt: skip

TASKS = {
    "frame": rm.tasks.FrameTask("tool", GOAL),
    "relative pose": rm.tasks.RelativePoseTask("tool", GOAL, reference="bus"),
    "position": rm.tasks.PositionTask("tool", NEAR),
    "direction": rm.tasks.DirectionTask("tool", (1, 0, 0), (0, 1, 0)),
    "posture": rm.tasks.PostureTask(Q),
    "centre of mass": rm.tasks.CenterOfMassTask((0.3, 0.0, 0.0)),
    "attitude": rm.tasks.BaseAttitudeTask((1.0, 0.0, 0.0, 0.0)),
    "zero reaction": rm.tasks.ZeroReactionTask(),
}


@pytest.mark.parametrize("place", [(2e9, 0.0, 0.0), (0.0, -2e9, 0.0)])
def test_goals_beyond_all_distances_are_refused(place):
    with pytest.raises(rm.errors.InvalidValue, match="m away"):
        rm.inverse_kinematics(HELD, {"tool": place}, BENT, "fixed")


def solved(robot, targets, q0=None, base="fixed", **options):
    return rm.inverse_kinematics(
        robot,
        targets,
        q0,
        base,
        **{"compiled": False, "starts": 2, "max_iterations": 12, **options},
    )


def refused(call):
    """Return what a call says when it refuses; None where it returns."""
    try:
        call()
    except rm.RemoraError as error:
        said = str(error)
    else:
        return None
    assert len(said) > 15
    return said


def off(robot, task, q):
    """Return distance and angle by which a task is missed, computed apart from its equations."""
    if isinstance(task, rm.tasks.CenterOfMassTask):
        return np.linalg.norm(rm.center_of_mass(robot, q) - task.goal), 0.0
    if isinstance(task, rm.tasks.BaseAttitudeTask):
        own = rm.frame_pose(robot, q, 0)[:4]
        gap = quaternion.mul(quaternion.conjugate(own), np.asarray(task.goal, dtype=float))
        return 0.0, np.linalg.norm(2.0 * quaternion.log(gap))
    x = rm.frame_pose(robot, q, task.frame)
    if isinstance(task, rm.tasks.RelativePoseTask):
        x = dq.mul(dq.conjugate(rm.frame_pose(robot, q, task.reference)), x)
    if isinstance(task, rm.tasks.PositionTask):
        return np.linalg.norm(pose.translation(x) - task.goal), 0.0
    gap = quaternion.mul(quaternion.conjugate(x[:4]), np.asarray(task.goal)[:4])
    way = pose.translation(np.asarray(task.goal)) - pose.translation(x)
    return np.linalg.norm(way), np.linalg.norm(2.0 * quaternion.log(gap))


def tells_the_truth(robot, tasks, found, tolerance=1e-8):
    """Check a result of inverse kinematics against the configuration that it holds."""
    assert np.all(np.isfinite(found.q))
    assert refused(lambda: rm.frame_pose(robot, found.q, 0)) is None
    worst = 0.0
    for task in tasks:
        told, real = found.errors[task.called], off(robot, task, found.q)
        for mine, own in zip((told.position, told.angle), real, strict=True):
            if mine is not None:
                assert mine == pytest.approx(own, rel=1e-6, abs=1e-7)
                worst = max(worst, own)
    assert found.success == (worst <= tolerance) or abs(worst - tolerance) < 1e-7
    assert bool(found.reason) != found.success
    assert found.success or found.reason in str(found)


# Arguments ----------------------------------------------------------------------------------------

#: What of `SOMETIMES` each argument takes, and what of `NEVER` it takes all the same.
ARGUMENTS = {
    "targets": {"empty", "mapping"}, "q0": {"none", "three"}, "base": {"none"},
    "tolerance": {"half", "one"}, "locked": {"empty", "twice"}, "limits": {"true", "false"},
    "starts": {"one"}, "max_iterations": {"one"}, "seed": {"zero", "one"},
    "compiled": {"false"},
}  # fmt: skip


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_inverse_kinematics(name, base):
    robot, q0 = (HELD, BENT) if base == "fixed" else (ROBOT, Q)
    given = {"targets": {"tool": GOAL}, "q0": q0, "base": base}
    for told, bad in (NEVER | SOMETIMES).items():
        if name == "compiled" and bad is True:
            continue  # right, and takes a while
        said = refused(lambda bad=bad: solved(robot, **{**given, name: bad}))
        allowed = told in ARGUMENTS[name] and not (base == "floating" and told == "three")
        assert (said is None) == allowed, (told, said)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_robots_frames_and_goals_that_are_none(base):
    robot, q0 = (HELD, BENT) if base == "fixed" else (ROBOT, Q)
    for told, bad in (NEVER | SOMETIMES).items():
        assert refused(lambda bad=bad: solved(bad, {"tool": GOAL}, q0, base)), told
        said = refused(lambda bad=bad: solved(robot, {"tool": bad}, q0, base))
        assert (said is None) == (told == "three"), told
        said = refused(lambda bad=bad: solved(robot, [rm.tasks.PositionTask(bad, NEAR)], q0, base))
        assert (said is None) == (told in ("zero", "one")), told
    for bad in (
        2.0 * GOAL,
        GOAL + 0.1,
        np.zeros(8),
        GOAL[::-1],
        np.tile(GOAL, (2, 1)),
        NEAR * 1e10,
    ):
        assert "tool" in refused(lambda bad=bad: solved(robot, {"tool": bad}, q0, base))
    lost = rm.Frame("lost", 77, GOAL), rm.Frame("nowhere", 1, np.full(8, np.nan))
    for frame in lost:
        assert frame.name in refused(lambda frame=frame: solved(robot, {frame: NEAR}, q0, base))
    assert "call" in refused(lambda: solved(robot, [TASKS["position"]] * 2, q0, base))


#: What each field of a task takes besides its own value; others only what is in `COMMON`.
COMMON = {
    "weight": {"zero", "half", "one"}, "gain": {"zero", "half", "one"}, "velocity": {"none"},
    "priority": {"zero", "one", "minus"}, "name": {"text", "none"}, "frame": {"zero", "one"},
    "position_weight": {"zero", "half", "one"}, "orientation_weight": {"zero", "half", "one"},
    "reference": {"zero", "one"}, "axis": {"three"}, "attitude_only": {"true", "false"},
    "goal": set(),
}  # fmt: skip
OWN = {(kind, "velocity"): {"none", "three"}
       for kind in ("position", "direction", "centre of mass", "attitude", "posture")}  # fmt: skip
OWN |= {(kind, "goal"): {"three"} for kind in ("position", "direction", "centre of mass")}
FIELDS = [(kind, f.name) for kind, task in TASKS.items() for f in dataclasses.fields(task)]


def test_every_kind_of_task_is_here():
    kinds, todo = set(), [type(TASKS["posture"]).__mro__[1]]
    while todo:
        children = todo.pop().__subclasses__()
        kinds.update(children)
        todo += children
    assert kinds == {type(task) for task in TASKS.values()}


def stepped(task):
    return rm.tasks.solve_tasks(ROBOT, Q, REST, task, base="floating", compiled=False)


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_fields_of_tasks(kind, name):
    for told, bad in (NEVER | SOMETIMES).items():
        task = dataclasses.replace(TASKS[kind], **{name: bad})
        said = refused(lambda task=task: stepped(task))
        allowed = OWN.get((kind, name), COMMON[name])
        assert (said is None) == (told in allowed), (told, said)
        assert said is None or "task" in said
        if kind == "zero reaction":
            continue
        again = refused(lambda task=task: solved(HELD if kind != "posture" else ROBOT, task))
        assert (again is None) == (said is None), (told, again)


#: What each argument of `rm.tasks.solve_tasks` takes.
STEPS = {
    "robot": set(), "q": set(), "v": set(), "tasks": {"empty", "mapping"}, "limits": {"none"},
    "dt": {"half", "one"}, "base": set(), "level": set(), "momentum": {"none"},
    "damping": {"half", "one"}, "compiled": {"false"},
}  # fmt: skip
LIMITS = {"position": {"true", "false"}, "velocity": {"true", "false"}, "torque": {"true", "false"},
          "acceleration": {"none", "half", "one", "mapping"}}  # fmt: skip


@pytest.mark.parametrize("name", [*STEPS, *LIMITS])
def test_arguments_of_solve_tasks(name):
    given = {"robot": ROBOT, "q": Q, "v": REST, "tasks": TASKS["position"], "base": "floating"}
    for told, bad in (NEVER | SOMETIMES).items():
        if name == "compiled" and bad is True:
            continue
        changed = {"limits": rm.tasks.TaskLimits(**{name: bad})} if name in LIMITS else {name: bad}
        call = {**given, "compiled": False, **changed}
        said = refused(lambda call=call: rm.tasks.solve_tasks(**call))
        assert (said is None) == (told in (STEPS | LIMITS)[name]), (told, said)


def with_speeds(robot):
    for name in ("j0", "j1", "j2"):
        limits = dataclasses.replace(robot.joints[name].limits, velocity=np.array([0.5]))
        robot = robot.replace_joint(name, limits=limits)
    return robot


#: What each argument of `rm.plan_reach` takes.
REACH = {
    "robot": set(), "q": set(), "frame": set(), "goal": set(), "duration": {"none", "one"},
    "base": set(), "path": set(), "locked": {"empty"}, "steps": set(),
}  # fmt: skip


@pytest.mark.parametrize("path", ["line", "joints"])
def test_arguments_of_a_reach(path):
    robot = with_speeds(ROBOT)
    given = {"robot": robot, "q": Q, "frame": "tool", "goal": NEAR, "steps": 20, "path": path}
    assert rm.plan_reach(**given).error.position < 1e-5
    for name, allowed in REACH.items():
        for told, bad in (NEVER | SOMETIMES).items():
            said = refused(lambda name=name, bad=bad: rm.plan_reach(**{**given, name: bad}))
            assert (said is None) == (told in allowed), (name, told, said)


# Goals --------------------------------------------------------------------------------------------


def goals(robot, q):
    """Return what is asked for: singular, out of reach, half a turn away, contradictory, ..."""
    x = rm.frame_pose(robot, q, "tool")
    p = pose.translation(x)
    straight = rm.frame_pose(robot, np.concatenate([q[:-3], np.zeros(3)]), "tool")
    for sign in (1.0, -1.0):
        yield [rm.tasks.FrameTask("tool", sign * x)]
        yield [rm.tasks.FrameTask("tool", sign * straight)]
    for axis in np.eye(3):
        half = quaternion.mul(x[:4], np.concatenate([[0.0], axis]))
        yield [rm.tasks.FrameTask("tool", pose.from_parts(half, p))]
        yield [rm.tasks.BaseAttitudeTask(np.concatenate([[0.0], axis]))]
    for point in (
        p + np.array([1.0, 0.0, 0.0]),
        -p,
        [0.0, 0.0, 0.0],
        [60.0, -80.0, 0.0],
        [1e6, 0.0, 0.0],
        [0, 0, 1e9],
    ):
        yield [rm.tasks.PositionTask("tool", point)]
    yield [
        rm.tasks.PositionTask("tool", (1, 0, 0)),
        rm.tasks.PositionTask("tool", (0, 1, 0), name="other"),
    ]
    yield [rm.tasks.RelativePoseTask("tool", x, reference="tool")]
    yield [rm.tasks.CenterOfMassTask((0.1, 0.0, 0.0))]
    yield [
        rm.tasks.FrameTask("tool", x, position_weight=0.0),
        rm.tasks.PositionTask("bus", (9, 0, 0), weight=0),
    ]


def starts(robot):
    """Return a bent, a stretched (singular) start, and one at the ends of all ranges."""
    q = rm.neutral(robot)
    return [np.concatenate([q[:-3], end]) for end in (BENT, np.zeros(3), [2.0, -2.0, 2.0])]


@pytest.mark.parametrize(("base", "steps"), [("fixed", 12), ("floating", 5), ("flying", 12)])
def test_results_tell_the_truth(base, steps):
    """Each start meets a third of the goals; the next test has all of them step by step."""
    for k, start in enumerate(starts(ROBOT)):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            for tasks in list(goals(ROBOT, start))[k::3]:
                found = solved(ROBOT, tasks, start, base, max_iterations=steps)
                tells_the_truth(ROBOT, tasks, found)
                assert np.all(np.abs(found.q[-3:]) <= 2.0 + 1e-12)


def test_far_away_the_arm_is_stretched_and_a_base_flies_there():
    for distance in (10.0, 1e3, 1e6):
        found = solved(
            HELD, {"tool": (0.6 * distance, 0.8 * distance, 0.0)}, BENT, max_iterations=100
        )
        assert not found.success
        assert abs(distance - found.errors["tool"].position - 1.725) < 0.05 / distance + 1e-3
        assert "out of reach" in found.reason
    found = solved(ROBOT, {"tool": (60.0, 80.0, 0.0)}, Q, "flying", max_iterations=100)
    assert found.success


@pytest.mark.parametrize("base", ["fixed", "floating", "flying"])
def test_starts_beyond_the_ranges_and_joints_that_may_not_move(base):
    out = Q.copy()
    out[-1] = 5.0
    target = {"tool": rm.frame_pose(ROBOT, out, "tool")}
    assert "j2" in refused(lambda: solved(ROBOT, target, out, base))
    assert solved(ROBOT, target, out, base, limits=False).success
    assert solved(ROBOT, target, out, base, locked=["j2"]).success  # stays where it is
    still = solved(ROBOT, {"tool": NEAR}, Q, base, locked=["base", "j0", "j1", "j2"])
    assert still.reason == "no joint may move"
    point = dataclasses.replace(ROBOT.joints["j1"].limits, lower=BENT[1:2], upper=BENT[1:2])
    pinned = ROBOT.replace_joint("j1", limits=point)
    found = solved(pinned, {"tool": NEAR}, Q, base)
    assert found.q[-2] == BENT[1]
    assert "range" in refused(lambda: solved(pinned, {"tool": NEAR}, rm.neutral(pinned), base))


def test_robots_without_joints_with_wheels_and_with_closed_loops():
    builder = rm.Builder("bus").body("bus", mass=3.0, inertia=(1, 1, 1))
    bus = builder.joint("base", "free", None, "bus").build()
    for base, moves in (("fixed", False), ("floating", False), ("flying", True)):
        found = solved(bus, {"bus": (0.1, 0.0, 0.0)}, None, base)
        assert (found.success, found.reason) == (moves, "" if moves else "no joint may move")
        task = rm.tasks.PositionTask("bus", (1, 0, 0))
        step = rm.tasks.solve_tasks(
            bus, rm.neutral(bus), np.zeros(6), task, base=base, compiled=False
        )
        assert step.deviations["position of 'bus'"] == pytest.approx(
            0.0 if moves else 1.0, abs=1e-6
        )
    assert refused(lambda: rm.plan_reach(bus, rm.neutral(bus), "bus", (0.1, 0, 0)))
    spinning = wheeled(3)
    q = rm.neutral(spinning)
    turned = solved(spinning, rm.tasks.BaseAttitudeTask((0.0, 0.0, 0.0, 1.0)), q, "floating")
    tells_the_truth(spinning, [rm.tasks.BaseAttitudeTask((0.0, 0.0, 0.0, 1.0))], turned)
    assert turned.success
    for base in ("fixed", "floating"):
        found = solved(spinning, {"bus": (0.1, 0.0, 0.0)}, q, base)
        assert "do not change the targets" in found.reason
    closed, state, _ = random_loops(3, bodies=5, count=1)
    for call in (
        lambda: solved(closed, {closed.bodies[-1].name: NEAR}, state),
        lambda: rm.plan_reach(closed, state, 1, NEAR),
        lambda: rm.tasks.solve_tasks(
            closed, state, np.zeros(closed.nv), rm.tasks.PositionTask(1, NEAR)
        ),
    ):
        assert "constraints" in refused(call)
    massless = ROBOT.replace(dynamics=False)
    assert "masses" in refused(lambda: solved(massless, {"tool": NEAR}, Q, "floating"))
    assert "masses" in refused(lambda: solved(massless, TASKS["centre of mass"], Q))


# Steps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
@pytest.mark.parametrize("base", ["fixed", "floating", "flying"])
def test_steps_with_strict_priorities_that_contradict_each_other(base, level):
    """The first is served as if it were alone, the second takes what is left and says so."""
    first = rm.tasks.PositionTask("tool", NEAR, priority=0)
    second = rm.tasks.PositionTask(
        "tool", NEAR + np.array([0.3, 0.0, 0.0]), priority=1, name="second"
    )
    options = {"base": base, "level": level, "compiled": False}
    for q in starts(ROBOT):
        alone = rm.tasks.solve_tasks(ROBOT, q, REST, [first], **options)
        both = rm.tasks.solve_tasks(ROBOT, q, REST, [second, first], **options)
        assert np.all(np.isfinite(both.velocity))
        own = both.deviations[first.called]
        assert own == pytest.approx(alone.deviations[first.called], rel=1e-4, abs=1e-5)
        assert both.deviations["second"] > 0.2


@pytest.mark.parametrize("base", ["fixed", "floating", "flying"])
def test_steps_stay_finite_and_within_limits(base):
    """Singular poses, far goals, jumps and half turns; deviations are those of the velocity."""
    robot, bounds = with_speeds(ROBOT), np.full(3, 0.5)
    for q in starts(robot):
        for tasks in goals(robot, q):
            for v in (REST, np.concatenate([REST[:6], [0.5, -0.5, 0.5]])):
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    step = rm.tasks.solve_tasks(
                        robot, q, v, tasks, dt=0.1, base=base, compiled=False
                    )
                assert np.all(np.isfinite(step.velocity))
                assert np.all(np.abs(step.velocity[6:]) <= bounds * (1 + 1e-9))
                ends = q[-3:] + 0.1 * step.velocity[6:]
                assert np.all(np.abs(ends) <= 2.0 + 1e-9)
                if base == "floating":
                    assert np.max(np.abs(rm.momentum(robot, q, step.velocity))) < 1e-9
                if base == "fixed":
                    assert not np.any(step.velocity[:6])


def test_steps_with_momentum_wheels_and_a_start_beyond_the_range():
    robot = wheeled(3)
    q, h = rm.neutral(robot), np.array([3.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    task = rm.tasks.BaseAttitudeTask((1.0, 0.0, 0.0, 0.0), gain=0.5)
    step = rm.tasks.solve_tasks(robot, q, np.zeros(robot.nv), task, base="floating", momentum=h,
                          compiled=False)  # fmt: skip
    assert np.max(np.abs(rm.momentum(robot, q, step.velocity) - h)) < 1e-9
    assert step.deviations[task.called] < 1e-6  # the wheels hold the momentum
    assert np.linalg.norm(step.velocity[6:]) > 1.0
    out = Q.copy()
    out[-1] = 2.3
    back = rm.tasks.solve_tasks(ROBOT, out, REST, rm.tasks.PostureTask(out), dt=0.1, compiled=False)
    assert back.velocity[-1] == pytest.approx(-3.0)  # to the end of the range within the step
    assert "position of j2" in back.active
    slow, stay = with_speeds(ROBOT), rm.tasks.PostureTask(out)
    said = refused(lambda: rm.tasks.solve_tasks(slow, out, REST, stay, dt=0.1, compiled=False))
    assert "position of j2" in said or "velocity of j2" in said
