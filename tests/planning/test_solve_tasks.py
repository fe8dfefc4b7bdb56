"""Tasks under limits: least squares, priorities, momentum and torques, by other means."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import remora as rm
from numeric import assert_close
from remora.algebra import pose
from remora.planning.joint_ranges import joint_ranges
from remora.planning.task_limits import speed_bounds

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical")


def limited(robot, velocity=np.inf, effort=np.inf, lower=-np.inf, upper=np.inf):
    """Return the robot with the same limits at every joint but the base."""
    joints = [robot.joints[0]]
    for joint in robot.joints[1:]:
        ones = np.ones(joint.v.stop - joint.v.start)
        changed = dataclasses.replace(
            joint.limits, velocity=velocity * ones, effort=effort * ones, lower=lower * ones,
            upper=upper * ones,
        )  # fmt: skip
        joints.append(dataclasses.replace(joint, limits=changed))
    return robot.replace(joints=joints)


ROBOT = rm.random_robot(4, bodies=8, kinds=("revolute",), branching=0.0)
Q, V = rm.random_state(ROBOT, 1)
V = 0.1 * V
GOAL = pose.from_parts(Q[:4], np.array([0.4, -0.1, 0.3]))


def solve(robot, q, v, tasks, limits=None, dt=0.01, **options):
    return rm.tasks.solve_tasks(robot, q, v, tasks, limits, dt, compiled=False, **options)


@pytest.mark.parametrize("seed", range(4))
def test_a_reachable_rate_is_met_and_momentum_is_kept(seed):
    """Every joint type, floating: the frame moves as wanted, and the momentum is as given."""
    robot = rm.random_robot(seed, bodies=8, kinds=KINDS, branching=0.0)
    q, v = rm.random_state(robot, seed)
    task = rm.tasks.FrameTask(7, GOAL, gain=2.0)
    found = solve(robot, q, v, task, base="floating", damping=1e-12)
    assert_close(rm.momentum(robot, q, found.velocity), np.zeros(6), rtol=1e-10)
    assert found.deviations[task.called] < 1e-6
    x, xi = rm.frame_pose(robot, q, 7), rm.frame_twist(robot, q, found.velocity, 7)
    wanted = 2.0 * (pose.translation(GOAL) - pose.translation(x))
    assert_close(pose.to_rotation_matrix(x) @ xi[3:], wanted, rtol=1e-5)
    h = rm.momentum(robot, q, v)
    given = solve(robot, q, v, task, base="floating", momentum=h, damping=1e-12)
    assert_close(rm.momentum(robot, q, given.velocity), h, rtol=1e-9)
    assert given.deviations[task.called] < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_acceleration_level_is_a_solution_of_the_equations_of_motion(seed):
    """The torques make forward dynamics return the accelerations, without a force on the base."""
    robot = rm.random_robot(10 + seed, bodies=7, kinds=KINDS, branching=0.2)
    q, v = rm.random_state(robot, seed)
    goal_velocity = np.array([0.1, 0.2, 0.3])
    task = rm.tasks.PositionTask(6, (0.4, 0.2, 0.1), gain=3.0, velocity=goal_velocity)
    found = solve(robot, q, v, task, base="floating", level="acceleration", damping=1e-12)
    assert_close(found.torque[:6], np.zeros(6), rtol=1e-9, scale=np.abs(found.torque).max())
    vdot = rm.forward_dynamics(robot, q, v, found.torque)
    assert_close(vdot, found.acceleration, rtol=1e-7)
    if found.deviations[task.called] < 1e-6:
        x = rm.frame_pose(robot, q, 6)
        R, xi = pose.to_rotation_matrix(x), rm.frame_twist(robot, q, v, 6)
        rate = rm.dynamics.frame_acceleration(robot, q, v, found.acceleration, 6)
        felt = R @ (rate[3:] + np.cross(xi[:3], xi[3:]))
        e = np.array([0.4, 0.2, 0.1]) - pose.translation(x)
        assert_close(felt, 9.0 * e + 6.0 * (goal_velocity - R @ xi[3:]), rtol=1e-5)


def test_weighted_least_squares_within_speed_limits():
    """Against SciPy's bounded least squares."""
    robot = limited(ROBOT, velocity=0.2)
    tasks = [
        rm.tasks.FrameTask(7, GOAL, weight=2.0, orientation_weight=0.5, gain=3.0),
        rm.tasks.PostureTask(rm.neutral(robot), weight=0.1),
    ]
    found = solve(robot, Q, 0.0 * V, tasks, damping=1e-13)
    J = rm.jacobian(robot, Q, 7)[:, 6:]
    R = pose.to_rotation_matrix(rm.frame_pose(robot, Q, 7))
    J[3:] = R @ J[3:]
    angle = rm.algebra.quaternion
    x = rm.frame_pose(robot, Q, 7)
    phi = 2.0 * angle.log(angle.mul(angle.conjugate(x[:4]), GOAL[:4]))
    e = np.concatenate([phi, pose.translation(GOAL) - pose.translation(x)])
    weights = 2.0 * np.array([0.5] * 3 + [1.0] * 3)
    A = np.concatenate([weights[:, None] * J, 0.1 * np.eye(7)])
    b = np.concatenate([weights * 3.0 * e, 0.1 * (-Q[8:])])
    oracle = lsq_linear(A, b, (-0.2, 0.2), tol=1e-14)
    assert np.any(np.abs(oracle.x) > 0.1999)
    assert_close(found.velocity[6:], oracle.x, rtol=1e-6)
    assert_close(found.velocity[:6], np.zeros(6))
    assert all(name.startswith("velocity of joint_") for name in found.active)
    assert len(found.active) == np.sum(np.abs(oracle.x) > 0.2 - 1e-6)


def test_strict_priorities():
    """The second task uses the null space of the first, as the projected pseudo-inverse does."""
    first = rm.tasks.PositionTask(7, (0.5, 0.3, -0.2), priority=0, gain=2.0)
    second = rm.tasks.PostureTask(rm.neutral(ROBOT), priority=1)
    alone = solve(ROBOT, Q, 0.0 * V, first, damping=1e-12)
    both = solve(ROBOT, Q, 0.0 * V, [second, first], damping=1e-12)
    J = rm.jacobian(ROBOT, Q, 7)[3:, 6:]
    assert_close(J @ both.velocity[6:], J @ alone.velocity[6:], rtol=1e-9)
    P = np.eye(7) - np.linalg.pinv(J) @ J
    u = alone.velocity[6:]
    expected = u + np.linalg.pinv(P) @ (-Q[8:] - u)
    assert_close(both.velocity[6:], expected, rtol=1e-6)
    weighted = solve(ROBOT, Q, 0.0 * V, [dataclasses.replace(second, priority=0), first])
    assert np.linalg.norm(J @ (weighted.velocity - alone.velocity)[6:]) > 1e-3


@pytest.mark.parametrize("attitude_only", [False, True])
def test_zero_reaction_leaves_the_base_at_rest(attitude_only):
    robot = rm.random_robot(4, bodies=11, kinds=("revolute",), branching=0.0)
    q, _ = rm.random_state(robot, 1)
    still = rm.tasks.ZeroReactionTask(attitude_only=attitude_only)
    task = rm.tasks.PositionTask(10, (0.5, 0.3, -0.2), priority=1)
    found = solve(robot, q, np.zeros(robot.nv), [still, task], base="floating")
    rows = slice(0, 3 if attitude_only else 6)
    assert np.max(np.abs(found.velocity[rows])) < 1e-9
    assert np.max(np.abs(found.velocity[6:])) > 1e-2
    # Without it the base moves.
    moved = solve(robot, q, np.zeros(robot.nv), task, base="floating")
    assert np.max(np.abs(moved.velocity[rows])) > 1e-2


def test_a_loop_converges_and_keeps_all_limits():
    """Speeds, ranges, accelerations and torques hold at every step while a floating arm reaches."""
    robot = limited(ROBOT, velocity=0.3, effort=0.6, lower=-2.0, upper=2.0)
    q, dt, a = rm.neutral(robot), 0.1, 0.5
    v, limits = np.zeros(robot.nv), rm.tasks.TaskLimits(acceleration=a, torque=True)
    goal_q = q.copy()
    goal_q[8:] = [0.2, -0.3, 0.4, 0.1, -0.2, 0.3, 0.1]
    task = rm.tasks.PositionTask(7, pose.translation(rm.frame_pose(robot, goal_q, 7)))
    seen, distances = set(), []
    for _ in range(120):
        found = solve(robot, q, v, task, limits, dt, base="floating")
        torque = rm.inverse_dynamics(robot, q, v, found.acceleration)
        assert_close(torque, found.torque, rtol=1e-9)
        assert_close(torque[:6], np.zeros(6), rtol=1e-9)  # nothing holds the base
        assert np.all(np.abs(torque[6:]) <= 0.6 + 1e-6)
        assert_close(v[6:] + dt * found.acceleration[6:], found.velocity[6:])
        assert np.all(np.abs(found.acceleration[6:]) <= a + 1e-6)
        v = found.velocity
        q = rm.integrate(robot, q, dt * v)
        assert np.all(np.abs(v[6:]) <= 0.3 + 1e-8)
        assert np.all(np.abs(q[8:]) <= 2.0 + 1e-8)
        distances.append(found.errors["position of 7"].position)
        seen |= {name.split()[0] for name in found.active}
    assert distances[-1] < 1e-3 * distances[0]
    assert {"velocity", "torque"} <= seen


def test_a_joint_brakes_before_the_end_of_its_range():
    robot = limited(ROBOT, lower=-1.0, upper=1.0)
    q, v, dt, a = rm.neutral(robot), np.zeros(robot.nv), 0.05, 0.5
    far = q.copy()
    far[8:] = 5.0
    for _ in range(200):
        found = solve(robot, q, v, rm.tasks.PostureTask(far, gain=5.0),
                      rm.tasks.TaskLimits(acceleration=a), dt)  # fmt: skip
        assert np.all(np.abs(found.velocity[6:] - v[6:]) <= a * dt + 1e-9)
        v = found.velocity
        q = rm.integrate(robot, q, dt * v)
        assert np.all(q[8:] <= 1.0 + 1e-9)
    assert np.all(q[8:] > 0.99)


def test_the_largest_speed_is_that_from_which_it_can_just_brake():
    """After a step at the bound v the rest of the way is v²/2a, at both ends of the range."""
    robot = limited(ROBOT, lower=-1.0, upper=1.0)
    ranges = joint_ranges(robot, (), "floating")
    q, v, dt, a = rm.neutral(robot), np.zeros(robot.nv), 0.05, 0.5
    q[8:] = 0.6
    v[6:] = 0.6  # so fast that the acceleration does not bound it first
    found = speed_bounds(
        robot, q, v, rm.tasks.TaskLimits(velocity=False, acceleration=a), ranges, dt
    )
    v[6:] = -1.24
    back = speed_bounds(
        robot, q, v, rm.tasks.TaskLimits(velocity=False, acceleration=a), ranges, dt
    )
    for speed, way in ((found.upper[6:], 0.4), (-back.lower[6:], 1.6)):
        assert speed * dt + speed**2 / (2 * a) == pytest.approx(np.full(robot.nv - 6, way))
    still = speed_bounds(robot, q, 0 * v, rm.tasks.TaskLimits(acceleration=a), ranges, dt)
    assert np.all(still.upper[6:] == a * dt)


def test_a_singular_arm_and_an_unreachable_goal_stay_finite():
    builder = rm.Builder("arm")
    builder.body("base", 1.0, (0, 0, 0), np.eye(3)).joint("root", "fixed", None, "base")
    for parent, child in (("base", "a"), ("a", "b")):
        builder.body(child, 1.0, (0.5, 0, 0), np.eye(3))
        builder.joint(f"to_{child}", "revolute", parent, child, axis=(0, 0, 1),
                      placement=pose.from_xyz_rpy((1.0, 0, 0)))  # fmt: skip
    builder.frame("tip", "b", pose.from_xyz_rpy((1.0, 0, 0)))
    robot = builder.build()
    q = np.zeros(robot.nq)
    task = rm.tasks.PositionTask("tip", (9.0, 0.0, 0.0))
    found = solve(robot, q, np.zeros(robot.nv), task)
    assert np.all(np.isfinite(found.velocity))
    assert np.max(np.abs(found.velocity)) < 1.0


def test_compiled_and_numpy_agree():
    robot = limited(rm.random_robot(2, bodies=4, kinds=("revolute",)), velocity=0.3)
    q, v = rm.random_state(robot, 3)
    options = {"base": "floating", "level": "acceleration"}
    tasks = [rm.tasks.PositionTask(3, (1, 0, 0)), rm.tasks.PostureTask(q, priority=1)]
    limits = rm.tasks.TaskLimits(velocity=False, torque=True)
    a = rm.tasks.solve_tasks(robot, q, 0.1 * v, tasks, limits, **options)
    b = solve(robot, q, 0.1 * v, tasks, limits, **options)
    assert_close(a.velocity, b.velocity, rtol=1e-8)
    assert_close(a.torque, b.torque, rtol=1e-7)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"tasks": rm.tasks.FrameTask(7, np.full(8, np.nan))},
            "task 'pose of 7': goal holds values",
        ),
        ({"tasks": [rm.tasks.PositionTask(7, (1, 0, 0))] * 2}, "name them"),
        ({"tasks": 3}, "tasks such as"),
        ({"dt": 0.0}, "dt must be positive"),
        ({"damping": 0.0}, "damping must be positive"),
        ({"base": "free"}, "no base named 'free'"),
        ({"level": "jerk"}, "no level named 'jerk'"),
        ({"q": np.full(ROBOT.nq, np.nan)}, "q holds values"),
        ({"v": np.zeros(3)}, "v must have shape"),
        ({"momentum": np.zeros(6)}, "momentum= is for"),
        ({"limits": rm.tasks.TaskLimits(acceleration=-1.0)}, "must be positive"),
        ({"limits": rm.tasks.TaskLimits(acceleration={"elbow": 1.0})}, "no joint named 'elbow'"),
    ],
)
def test_refusals(change, says):
    given = {
        "q": Q,
        "v": np.zeros(ROBOT.nv),
        "tasks": rm.tasks.PositionTask(7, (1, 0, 0)),
        **change,
    }
    with pytest.raises(rm.RemoraError) as error:
        rm.tasks.solve_tasks(ROBOT, **given, compiled=False)
    assert says in str(error.value)


def test_limits_in_conflict_are_named():
    robot = limited(ROBOT, velocity=0.1, effort=1e-3)
    v = np.zeros(robot.nv)
    v[6:] = 5.0  # far above the speed limit, and hardly a torque to brake with
    with pytest.raises(rm.RemoraError, match=r"no motion satisfies all limits.*of joint_"):
        solve(robot, Q, v, rm.tasks.PositionTask(7, (1, 0, 0)), rm.tasks.TaskLimits(torque=True))
    with pytest.raises(rm.RemoraError, match="fixed base is at rest"):
        solve(robot, Q, V, rm.tasks.PositionTask(7, (1, 0, 0)))
    heavy = ROBOT.replace(gravity=(0.0, 0.0, -9.8))
    with pytest.raises(rm.RemoraError, match="under gravity"):
        solve(heavy, Q, V, rm.tasks.PositionTask(7, (1, 0, 0)), base="floating")
