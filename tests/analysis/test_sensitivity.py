"""Sensitivity of a miss: against differences, closed formulas, runs and Monte Carlo."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close

ERRORS = {"mass": 0.02, "com": 0.005, "inertia": 0.05, "length": 0.001}


def planned(robot, seed=0, points=6, size=0.6):
    rng = np.random.default_rng(seed)
    q, _ = rm.random_state(robot, rng)
    way = np.zeros(robot.nv)
    way[6:] = size * rng.normal(size=robot.nv - 6)
    return np.array([rm.integrate(robot, q, s * way) for s in np.linspace(0.0, 1.0, points)])


@pytest.mark.parametrize("seed", [1, 4, 9])
@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_derivatives_are_those_of_the_robots_with_errors(seed, base):
    """Joints of every type; differences of the exact misses, of fourth order in the step."""
    robot = rm.random_robot(seed, bodies=4, base="free")
    q = planned(robot, seed)
    if base == "fixed":
        q[:, :8] = q[0, :8]
    found = rm.analysis.miss_sensitivity(robot, q, robot.bodies[-1].name, ERRORS, base)
    x = np.random.default_rng(1).normal(size=(3, len(found.labels))) * found.deviations
    h = 1e-2
    one, two = ((found.exact_miss(s * h * x) - found.exact_miss(-s * h * x)) / (2.0 * s * h)
                for s in (1.0, 2.0))  # fmt: skip
    assert_close(found.miss(x), (4.0 * one - two) / 3.0, 1e-9)


def test_a_planar_arm_that_is_held_has_the_closed_form():
    """The tip of two links moves by J δlength, and not by errors of masses."""
    robot = rm.load("spart17_planar")
    q = np.repeat(rm.neutral(robot)[None], 3, axis=0)
    q[:, 8:] = np.linspace([0.0, 0.0], [0.4, 0.9], 3)
    found = rm.analysis.miss_sensitivity(robot, q, "tool", ERRORS, base="fixed")
    masses = [k for k, name in enumerate(found.labels) if "length" not in name]
    assert not found.jacobian[:, masses].any()
    k = found.labels.index("joint_2.length.x")
    turn = q[-1, 8] + 0.0
    assert_close(found.jacobian[:, k], [np.cos(turn), np.sin(turn), 0.0], 1e-14)
    assert_close(found.nominal, rm.algebra.pose.translation(rm.frame_pose(robot, q[-1], "tool")))


def test_the_nominal_end_is_that_of_a_run():
    robot = rm.load("spart17_planar")
    q = rm.neutral(robot)
    end = np.array([0.7, -1.1])
    path = np.repeat(q[None], 21, axis=0)
    path[:, 8:] = np.linspace(q[8:], end, 21)
    found = rm.analysis.miss_sensitivity(robot, path, "tool", {"mass": 0.01})
    moves = {
        name: rm.Motion.between(0, 5, q[8 + k], end[k])
        for k, name in enumerate(robot.joints.names[1:])
    }
    run = rm.simulate(robot, q, np.zeros(robot.nv), 5.0, prescribed=moves)
    there = rm.algebra.pose.translation(run.frame_pose("tool"))[-1]
    assert_close(found.nominal, there, 1e-7)


def test_a_monte_carlo_confirms_the_derivatives():
    robot = rm.load("spart17_planar")
    path = np.repeat(rm.neutral(robot)[None], 9, axis=0)
    path[:, 8:] = np.linspace([0.2, 0.3], [1.2, -0.8], 9)
    found = rm.analysis.miss_sensitivity(robot, path, "tool", {"mass": 0.01, "length": 0.001})
    x, misses = found.monte_carlo(2000, seed=3)
    assert_close(np.sqrt(np.mean(np.sum(misses**2, axis=1))), found.rms, 0.05)
    # the spread of 2,000 samples is known to 1/sqrt(4000)
    assert np.abs(np.cov(misses.T) - found.covariance).max() < 0.1 * found.covariance.max()
    size = np.linalg.norm(misses, axis=1).max()
    assert np.abs(misses - found.miss(x)).max() < 0.05 * size
    assert_close(found.rms**2, np.sum(found.contributions**2))


def test_single_parts_replace_all():
    robot = rm.load("spart17_planar")
    path = np.repeat(rm.neutral(robot)[None], 2, axis=0)
    path[1, 8] = 0.5
    name = robot.bodies[1].name
    found = rm.analysis.miss_sensitivity(robot, path, "tool", {f"{name}.mass": 0.5, "mass": 0.01})
    assert found.deviations[found.labels.index(f"{name}.mass")] == 0.5
    assert set(found.deviations) == {0.5, 0.01}


def test_refusals():
    robot = rm.load("spart17_planar")
    path = np.repeat(rm.neutral(robot)[None], 2, axis=0)

    def sensitivity(errors, **options):
        return rm.analysis.miss_sensitivity(robot, path, "tool", errors, **options)

    with pytest.raises(rm.errors.InvalidValue, match="errors is empty"):
        sensitivity({})
    with pytest.raises(rm.errors.UnknownName, match="kind of error"):
        sensitivity({"colour": 1.0})
    with pytest.raises(rm.errors.UnknownName, match="part with a mass"):
        sensitivity({"nobody.mass": 1.0})
    with pytest.raises(rm.errors.InvalidValue, match="must be a positive standard deviation"):
        sensitivity({"mass": -0.1})
    with pytest.raises(rm.errors.InvalidValue, match="fixed or floating"):
        sensitivity({"mass": 0.1}, base="flying")
    with pytest.raises(rm.errors.ShapeError, match="at least two configurations"):
        rm.analysis.miss_sensitivity(robot, path[:1], "tool", {"mass": 0.1})
    with pytest.raises(rm.errors.ShapeError, match="x must have shape"):
        sensitivity({"mass": 0.1}).exact_miss([1.0])


def test_the_figure_has_bars_and_both_distributions():
    pytest.importorskip("matplotlib")
    robot = rm.load("spart17_planar")
    path = np.repeat(rm.neutral(robot)[None], 2, axis=0)
    path[1, 8] = 0.5
    bars, spread = rm.analysis.miss_sensitivity(robot, path, "tool", {"mass": 0.01}).plot().axes
    assert len(bars.patches) == 3
    assert len(spread.lines) == 3


def test_an_interrupted_monte_carlo_continues(tmp_path):
    robot = rm.load("spart17_planar")
    path = np.repeat(rm.neutral(robot)[None], 2, axis=0)
    path[1, 8] = 0.5
    found = rm.analysis.miss_sensitivity(robot, path, "tool", {"mass": 0.01})
    file, calls = tmp_path / "kept.npz", []

    def stop(done, total):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.monte_carlo(120, checkpoint=file, progress=stop)
    other = rm.analysis.miss_sensitivity(robot, path, "tool", {"mass": 0.02})
    with pytest.raises(rm.RemoraError, match="another computation"):
        other.monte_carlo(120, checkpoint=file)
    later = []
    x, misses = found.monte_carlo(
        120, checkpoint=file, progress=lambda done, total: later.append(done)
    )
    assert calls == [50, 100]
    assert later == [120]
    assert not file.exists()
    assert np.array_equal(misses, found.monte_carlo(120)[1])
    assert np.array_equal(misses, found.exact_miss(x))
