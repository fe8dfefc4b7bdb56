"""Parts of the searches against plain NumPy: steps at limits, starts, reasons, least squares."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import remora as rm
from remora.planning import (
    configuration_search,
    damped_step,
    floating_path,
    path_search,
    quadratic_program,
    reach_path,
    solve,
    starts,
    task_limits,
)
from remora.planning import (
    problem as problem_module,
)
from remora.planning.joint_ranges import JointRanges, joint_ranges
from remora.planning.problem import FAR, FIRST_DAMPING, PATIENCE, PROGRESS, Problem
from remora.planning.result import InverseKinematicsResult, TargetError
from remora.planning.task_equations import TaskSpec, equation


def mixed():
    """Return a robot on the inertial frame: limits that differ, a slider, an unlimited joint."""
    return (
        rm.Builder("mixed")
        .body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0).body("c", mass=1.0).body("d", mass=1.0)
        .joint("turn", "revolute", "bus", "a", axis=(0, 0, 1), lower=-0.5, upper=1.5)
        .joint("slide", "prismatic", "a", "b", axis=(1, 0, 0), lower=-0.2)
        .joint("spin", "revolute", "b", "c", axis=(0, 1, 0))
        .joint("follow", "revolute", "c", "d", axis=(0, 1, 0), mimic=("turn", -0.5, 0.1))
        .joint("base", "fixed", None, "bus")
        .build()
    )  # fmt: skip


ROBOT = mixed()


@pytest.mark.parametrize("rows", [2, 5])
def test_damped_steps_solve_their_normal_equations(rows, rng):
    J, e, mu = rng.normal(size=(rows, 3)), rng.normal(size=rows), np.array([0.3])
    step = damped_step.damped_solution(J, e, mu)
    assert np.allclose((J.T @ J + 0.3 * np.eye(3)) @ step, J.T @ e, rtol=1e-9, atol=1e-10)


def test_steps_end_at_limits_and_the_others_compensate(rng):
    J = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -0.4]])
    lower, upper = np.array([-0.5, -0.2, -1e6]), np.array([1.5, 9.0, 1e6])
    q, e = np.array([1.4, 0.1, 0.0]), np.array([0.8, -1.0])
    usable, mu = np.ones(3), np.array([1e-6])
    found = damped_step.bounded_solution(ROBOT, q, lower, upper, J, e, usable, mu)
    assert found[0] == pytest.approx(0.1, abs=1e-12)  # at 1.5
    assert found[1] == pytest.approx(-0.3, abs=1e-12)  # at -0.2
    rest = e - J[:, :2] @ found[:2]
    assert found[2] == pytest.approx(J[:, 2] @ rest / (J[:, 2] @ J[:, 2] + 1e-6), rel=1e-6)
    inside = damped_step.bounded_solution(ROBOT, 0 * q, lower, upper, J, 0.1 * e, usable, mu)
    assert np.allclose(inside, damped_step.damped_solution(J, 0.1 * e, mu), atol=1e-12)
    for place, descent, expected in (
        ((1.5, 0.0, 0.0), (1.0, 1.0, 1.0), (0, 1, 1)),
        ((1.5, 0.0, 0.0), (-1.0, 1.0, 1.0), (1, 1, 1)),
        ((-0.5, -0.2, 0.0), (-1.0, -1.0, -1.0), (0, 0, 1)), ((-0.5, -0.2, 0), (1, 1, 1), (1, 1, 1)),
    ):  # fmt: skip
        may = damped_step.movable(ROBOT, np.array(place), lower, upper, np.array(descent, float))
        assert tuple(may) == expected


def test_a_step_is_taken_or_refused_by_its_error_and_the_damping_follows(rng):
    robot = (
        rm.Builder("two links").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0))
        .body("a", mass=1.0).body("b", mass=1.0)
        .joint("one", "revolute", "bus", "a", axis=(0, 0, 1))
        .joint("two", "revolute", "a", "b", xyz=(1, 0, 0), axis=(0, 0, 1))
        .frame("tip", "b", xyz=(0.5, 0, 0)).build(base="fixed")
    )  # fmt: skip
    weights, specs = np.array([1.0, 2.0, 3.0]), (TaskSpec("position", robot.frames["tip"]),)

    def tip(q):
        a, b = q[0], q[0] + q[1]
        return np.array([np.cos(a) + 0.5 * np.cos(b), np.sin(a) + 0.5 * np.sin(b), 0.0])

    seen = set()
    for damping, walk in itertools.product((1e-8, 0.5, 1e12), (0.0, 1.0)):
        for _ in range(8):
            q, goal = rng.uniform(-3.0, 3.0, 2), np.append(rng.uniform(-1.0, 1.0, 2), 0.0)
            moved, errors, after = damped_step.damped_step(
                robot, q, goal, weights, np.ones(2), np.full(2, -1e9), np.full(2, 1e9),
                np.array([damping]), np.array([walk]), specs,
            )  # fmt: skip
            x, y, _ = tip(q)
            u, w = 0.5 * np.cos(q.sum()), 0.5 * np.sin(q.sum())
            J, e = weights[:, None] * [[-y, -w], [x, u], [0.0, 0.0]], weights * (goal - tip(q))
            mu = damping * 0.5 * min(e @ e, np.sqrt(10.0 * np.sum(J * J) * (e @ e)))
            step = np.linalg.solve(J.T @ J + mu * np.eye(2), J.T @ e)
            there = q + step
            better = np.linalg.norm(weights * (goal - tip(there))) < np.linalg.norm(e)
            expected = there if better or walk else q
            assert moved == pytest.approx(expected, rel=1e-6)
            assert errors == pytest.approx(goal - tip(expected), abs=1e-6)
            factor = 1.0 if walk else 0.2 if better else 8.0
            assert after == pytest.approx(np.clip(factor * damping, 1e-8, 1e12))
            seen.add((bool(better), walk))
    assert len(seen) == 4


def test_ways_are_clipped_where_their_ends_would_leave_the_ranges():
    robot = rm.load("vt18_satellite")
    ranges = joint_ranges(robot, (), "floating")
    n = robot.nq - 8
    start = rm.neutral(robot)
    start[8:] = 0.2
    lower, upper = ranges.lower.copy(), ranges.upper.copy()
    lower[8], upper[8] = -0.1, 0.5
    free = ranges.free.copy()
    free[7] = 0.0
    lower[9], upper[9] = 0.0, 0.1
    problem = SimpleNamespace(robot=robot, start=start, ranges=JointRanges(lower, upper, free))
    assert path_search._within(problem, np.full(n, 1.0))[:3] == pytest.approx([0.3, 1.0, 1.0])
    assert path_search._within(problem, np.full(n, -1.0))[:3] == pytest.approx([-0.3, -1.0, -1.0])


def test_random_starts_are_in_the_ranges_or_near(rng):
    ranges = joint_ranges(ROBOT, (), "fixed")
    # the follower is at -0.5 x + 0.1 and has no limits
    q = np.array([0.1, 0.3, 2.0])
    drawn = starts.random_starts(ROBOT, q, ranges, 4000, rng)
    low, high = np.array([-0.5, -0.2, 2.0 - np.pi]), np.array([1.5, 1.3, 2.0 + np.pi])
    assert np.all((drawn >= low) & (drawn <= high))
    assert np.allclose(drawn.min(axis=0), low, atol=0.02 * (high - low))
    assert np.allclose(drawn.max(axis=0), high, atol=0.02 * (high - low))
    held = joint_ranges(ROBOT, ("slide",), "fixed")
    assert np.all(starts.random_starts(ROBOT, q, held, 5, rng)[:, 1] == 0.3)
    far = np.array([0.2, 0.1, 2.0 + 3 * 2.0 * np.pi + 0.4])
    near = starts.wrapped(ROBOT, far, q, ranges)
    assert near == pytest.approx([0.2, 0.1, 2.4])


@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])
def test_least_squares_of_a_line_are_damped_only_near_singularities(shape, rng):
    J, b = rng.normal(size=shape), rng.normal(size=shape[0])
    assert np.allclose(reach_path._least_squares(J, b), np.linalg.pinv(J) @ b, atol=1e-10)
    U, sizes, V = np.linalg.svd(J, full_matrices=False)
    low = reach_path.NEAR_SINGULAR * sizes[0]
    near = (U * [sizes[0], 0.25 * low]) @ V
    size = (reach_path.DAMPING / reach_path.NEAR_SINGULAR + 0.75) * low
    expected = (U[:, 0] @ b) / sizes[0] * V[0]
    expected = expected + (U[:, 1] @ b) * 0.25 * low / ((0.25 * low) ** 2 + size**2) * V[1]
    assert np.allclose(reach_path._least_squares(near, b), expected, rtol=1e-9, atol=1e-12)


def test_singular_directions_and_null_spaces(rng):
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (3, 4))
    J = U @ np.hstack([np.diag([2.0, 1.0, 1e-4]), np.zeros((3, 1))]) @ V.T
    ratio, direction = solve._singular(J)
    assert ratio == pytest.approx(5e-5, rel=1e-6)
    assert abs(direction @ U[:, 2]) == pytest.approx(1.0, abs=1e-9)
    assert solve._singular(rng.normal(size=(3, 4)))[1] is None
    tall, hardest = solve._singular(J.T)
    assert (tall, hardest.shape) == (0.0, (4,))
    assert solve._singular(np.zeros((2, 2))) == (0.0, None)
    N = quadratic_program._null_space(J)
    assert (N.shape, np.abs(J @ N).max() < 1e-12) == ((4, 1), True)
    assert np.array_equal(quadratic_program._null_space(np.zeros((2, 3))), np.eye(3))


def test_limits_in_conflict_are_named_by_the_side_that_is_passed():
    limits = SimpleNamespace(
        A=np.eye(3), lower=np.array([0.0, 0.0, 0.0]), upper=np.array([1.0, 1.0, 1.0]),
        names=[("a low", "a high"), ("b low", "b high"), ("c low", "")],
    )  # fmt: skip
    with pytest.raises(rm.errors.InvalidValue, match=r"exit 7.*in conflict: a high, b low, c low$"):
        quadratic_program._refuse(limits, np.array([2.0, -1.0, 3.0]), 7)
    with pytest.raises(rm.errors.InvalidValue, match="in conflict: unknown"):
        quadratic_program._refuse(limits, np.array([0.5, 0.5, 1.0]), 7)


def test_results_are_told_with_units():
    assert str(TargetError(0.0123456, 0.5)) == f"0.0123 m, {np.degrees(0.5):.3g}°"
    assert str(TargetError(None, None)) == "none"
    errors = {"tool": TargetError(0.5, None), "bus": TargetError(None, None)}
    told = InverseKinematicsResult(
        np.zeros(2), False, errors, 1, 3, ("a", "b"), ("b",), 0.1, None, "out of reach"
    )
    assert str(told).splitlines() == [
        "not reached; closest configuration found (1 step from 3 starts)", "  tool: off by 0.5 m",
        "  bus: has no weight", "  out of reach", "  at a limit: a",
    ]  # fmt: skip
    solved = InverseKinematicsResult(np.zeros(2), True, {}, 2, 1, (), (), 0.1, None)
    assert str(solved) == "solved (2 steps from 1 start)"


def reason(J, e=(1.0, 0.0), limiting=(), ratio=0.5, free=1.0):
    ranges = JointRanges(np.full(2, -1.0), np.full(2, 1.0), np.full(2, free))
    problem = SimpleNamespace(weights=np.ones(2), ranges=ranges)
    found = SimpleNamespace(jacobian=np.array(J, float), path=None)
    return solve._reason(problem, found, np.array(e), limiting, ratio)


def test_reasons_are_told_in_their_order():
    good = [[1.0, 0.0], [0.0, 1.0]]
    assert reason(good, free=0.0) == "no joint may move"
    assert "do not change the targets" in reason(np.full((2, 2), 1e-9), limiting=("a",))
    assert reason(good, limiting=("a", "b")) == "limited by the range of a, b"
    assert "max_iterations" in reason(good)
    flat = [[0.0, 0.0], [3.0, 0.0]]
    assert "other starts may" in reason(flat)
    assert "singular, ratio 1.0e-05" in reason(flat, ratio=1e-5)
    slight = [[1e-6, 0.0], [1e3, 0.0]]  # a slope relative to both sizes
    assert "other starts may" in reason(slight, e=(1e3, 0.0))


def test_steps_of_a_floating_path_are_of_sixth_order():
    """X' = X V(t) with V a cubic, one step against many; the screw is that of a matrix."""
    rng = np.random.default_rng(8)
    terms = 0.5 * rng.normal(size=(4, 6))

    def rate(t):
        return sum(c * t**k for k, c in enumerate(terms))

    def expm(A):
        made = term = np.eye(4)
        for k in range(1, 25):
            term = term @ A / k
            made = made + term
        return made

    def hat(x):
        (a, b, c), p = x[:3], x[3:]
        return np.block([[np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]]), p[:, None]],
                         [np.zeros((1, 4))]])  # fmt: skip

    def step(start, h):
        at = start + h * (0.5 + np.sqrt(0.15) * np.array([-1.0, 0.0, 1.0]))
        return expm(hat(floating_path._magnus(h, *(rate(t) for t in at))))

    def many(h, n):
        made = np.eye(4)
        for k in range(n):
            made = made @ step(k * h / n, h / n)
        return made

    exact = {h: many(h, 16) for h in (0.8, 0.4)}
    other = []  # by midpoints, extrapolated
    for n in (50, 100):
        made = np.eye(4)
        for k in range(n):
            made = made @ expm(hat(rate((k + 0.5) * 0.8 / n)) * 0.8 / n)
        other.append(made)
    assert np.allclose(exact[0.8], (4.0 * other[1] - other[0]) / 3.0, atol=1e-8)
    errors = [np.abs(step(0.0, h) - exact[h]).max() for h in (0.8, 0.4)]
    assert errors[0] / errors[1] > 90.0  # 2⁷ of one step


def test_progress_is_a_part_of_what_is_within_reach():
    J = np.array([[3.0, 0.0, 1.0], [0.0, 4.0, 2.0]])
    reach = Problem.reach(None, J)
    assert reach == pytest.approx(np.sqrt(FAR * 30.0))
    for before, part in ((0.25 * reach**2, 1.0), (16.0 * reach**2, 0.25)):
        level = (1.0 - PROGRESS * part) * before
        assert Problem.progress(None, level - 0.01 * (before - level), before, reach)
        assert not Problem.progress(None, level + 0.01 * (before - level), before, reach)


def test_a_path_is_given_up_after_steps_in_a_row_without_progress(monkeypatch):
    robot = rm.load("vt18_satellite")
    for told in ([True] * 8, [False] * (PATIENCE - 1) + [True] * 3, []):
        answers = iter(told)
        monkeypatch.setattr(Problem, "progress", lambda *_, told=answers: next(told, False))
        found = rm.inverse_kinematics(
            robot, {"end_effector": [50.0, 0.0, 0.0]}, base="floating", starts=1, compiled=False,
            max_iterations=60,
        )  # fmt: skip
        assert (found.success, found.iterations) == (False, len(told) + PATIENCE)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_nothing_is_compiled_unless_it_is_asked_for(monkeypatch, base):
    made = []
    for module in (problem_module, floating_path):
        own = module.kernel
        monkeypatch.setattr(module, "kernel", lambda *given, own=own, **more: (
            made.append(given[0].__name__), own(*given, **more))[1])  # fmt: skip
    robot = rm.load("vt18_satellite")
    for compiled in (False, True):
        rm.inverse_kinematics(
            robot, {"end_effector": [1.0, 0.4, 0.2]}, base=base, starts=1, compiled=compiled,
            max_iterations=3,
        )  # fmt: skip
        assert bool(made) == compiled
    used = {"fixed": {"damped_step", "task_terms"}, "floating": {"task_terms"}}[base]
    assert used <= set(made)


def test_a_seed_is_that_of_a_generator():
    robot, goal = rm.load("vt18_satellite"), {"end_effector": [1.0, 0.4, 0.2]}
    rng, found = np.random.default_rng(3), []
    for seed in (3, rng, rng):
        found.append(rm.inverse_kinematics(
            robot, goal, base="fixed", starts=4, seed=seed, compiled=False, max_iterations=2,
        ).q)  # fmt: skip
    assert np.array_equal(found[0], found[1])
    assert rng.bit_generator.state != np.random.default_rng(3).bit_generator.state


def test_a_refused_path_is_tried_with_ever_more_damping(monkeypatch):
    solved, used = path_search.bounded_solution, []

    def solution(*given):
        used.append(float(given[-1]))
        return solved(*given)

    monkeypatch.setattr(path_search, "bounded_solution", solution)
    monkeypatch.setattr(path_search, "near_cost", lambda *_: 1.0)
    monkeypatch.setattr(Problem, "progress", lambda *_: True)
    own = Problem.cost
    monkeypatch.setattr(Problem, "cost", lambda *given: own(*given) + 1e9)
    rm.inverse_kinematics(
        rm.load("vt18_satellite"), {"end_effector": [50.0, 0.0, 0.0]}, base="floating", starts=1,
        compiled=False, max_iterations=20,
    )  # fmt: skip
    raised = FIRST_DAMPING * damped_step.REFUSED ** np.arange(20.0)
    assert np.allclose(used, np.minimum(raised, damped_step.LARGEST_DAMPING), rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_path_is_refined_until_its_end_settles_from_either_side(sign, monkeypatch):
    robot = rm.load("vt18_satellite")
    q, way = rm.neutral(robot), np.zeros(robot.nv - 6)
    tried = []

    def follow(robot, q, way, s, response):
        tried.append(steps := len(s) - 1)
        ends = np.tile(q[:8], (steps + 1, 1))
        ends[-1, 5] += sign * 10.0 * floating_path.PATH_ACCURACY * (4.0 / steps) ** 2
        return ends

    monkeypatch.setattr(floating_path, "follow", follow)
    found = floating_path.sampled_path(robot, q, way, 4, None)
    # the ends of 4, 8 and 16 steps differ by 7.5 and 1.9; twice the accuracy is asked for
    assert tried == [4, 8, 16]
    assert len(found.q) == 17


def test_all_starts_descend_until_one_of_them_is_there():
    problem = SimpleNamespace(
        tolerance=0.1, groups=np.eye(1), weights=np.ones(1), max_iterations=9,
        terms=lambda q: (q, None), progress=lambda now, before, reach: now < before,
    )  # fmt: skip

    def step(q, damping, kind):
        return q - 0.5 * (q < 1.8), q - 0.5 * (q < 1.8), damping  # a start beyond stays there

    for begin, end in (([[2.0], [1.5]], [[2.0], [0.0]]), ([[1.0]], [[0.0]])):
        q, errors, taken = configuration_search._descend(problem, step, np.array(begin), 1.0)
        assert np.array_equal(q, end)
        assert np.array_equal(errors, end)
        assert taken == len(begin) * round(2 * begin[-1][0])

    still, count = lambda q, damping, kind: (q, q, damping), PATIENCE + 1
    problem.max_iterations = 3 * count
    for begin in ([[2.0], [1.5]], [[1.0]]):  # given up when the first step was not the last better
        *_, taken = configuration_search._descend(problem, still, np.array(begin), 1.0)
        assert taken == len(begin) * count


def test_rows_of_a_posture_are_angles_or_lengths_of_what_leads():
    assert equation(TaskSpec("posture", None)).angular(ROBOT) == (True, False, True)


def test_a_single_coordinate_is_brought_to_its_goal():
    made = rm.Builder("one").body("bus", mass=5.0, inertia=(1.0, 1.0, 1.0)).body("a", mass=1.0)
    made.joint("turn", "revolute", "bus", "a", axis=(0, 0, 1)).joint("base", "fixed", None, "bus")
    found = rm.inverse_kinematics(made.build(), [rm.tasks.PostureTask([0.3])], base="fixed")
    assert found.success
    assert found.q == pytest.approx([0.3], abs=1e-6)


def test_labels_are_those_of_the_joints_of_each_speed():
    robot = rm.random_robot(3, bodies=6, kinds=("spherical", "revolute", "universal"))
    labels = task_limits._labels(robot)
    assert labels[:6] == [""] * 6
    assert labels[6:] == [
        joint.name for joint in robot.joints[1:] for _ in range(robot.nv)[joint.v]
    ]


def test_a_walk_ends_at_the_tolerance_or_returns_the_best():
    weights = np.array([2.0, 1.0])
    problem = SimpleNamespace(
        tolerance=0.1, groups=np.eye(2), weights=weights,
        cost=lambda errors: float(np.sum((weights * errors) ** 2)),
    )  # fmt: skip
    way = [[0.5, 0.5], [0.3, 1.2], [0.2, 0.1], [0.09, 0.05], [0.0, 0.0]]

    def walk(most, first=(9.0, 9.0)):
        step = iter(way)
        found = configuration_search._walk(
            problem, lambda q, damping, kind: (q + 1.0, np.array(next(step)), damping), np.zeros(1),
            np.full((1, 1), -1.0), np.array([first]), most,
        )  # fmt: skip
        return float(found[0][0, 0]), found[1][0].tolist(), found[2]

    assert walk(5) == (4.0, [0.09, 0.05], 4)
    assert walk(2) == (1.0, [0.5, 0.5], 2)  # 1.25, and then 1.8
    assert walk(2, (0.1, 0.2)) == (-1.0, [0.1, 0.2], 2)
    assert walk(0) == (-1.0, [9.0, 9.0], 0)


def test_bounds_of_speeds_are_named_by_what_binds():
    joints = ("turn", "slide", "spin")
    limits = {"turn": 5.0, "slide": 0.1, "spin": np.inf}
    robot = ROBOT
    for name in joints:
        own = replace(robot.joints[name].limits, velocity=np.array([limits[name]]))
        robot = robot.replace_joint(name, limits=own)
    ranges = joint_ranges(robot, (), "fixed")
    given = rm.tasks.TaskLimits(acceleration={"turn": 2.0, "spin": 3.0})
    q, v, dt = np.array([1.45, 0.3, 0.0]), np.array([0.1, 0.05, 1.0]), 0.1
    found = task_limits.speed_bounds(robot, q, v, given, ranges, dt)
    assert found.lower == pytest.approx([-0.1, -0.1, 0.7])
    assert found.upper[1:] == pytest.approx([0.1, 1.3])
    assert 0.0 < found.upper[0] <= 0.3
    assert found.names[0][0] == "acceleration of turn"
    assert found.names[1] == ("velocity of slide", "velocity of slide")
    assert found.names[2] == ("acceleration of spin", "acceleration of spin")
    free = rm.tasks.TaskLimits(acceleration={"turn": 50.0})
    near = task_limits.speed_bounds(robot, np.array([1.4999, 0.3, 0.0]), v, free, ranges, dt)
    assert near.names[0][1] == "position of turn"
    assert near.upper[0] < 0.2
