"""Robots whose own damping or friction makes their equations stiff."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import remora as rm
from remora.simulation.engine.stiffness import stiffest


def arm(damping: float = 0.0, friction: float = 0.0) -> rm.Robot:
    return (
        rm.Builder("arm", gravity=(0.0, 0.0, -9.81))
        .body("ground")
        .body("upper", 2.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        .body("finger", 1e-4, com=(0.01, 0, 0), inertia=(1e-8, 1e-8, 1e-8))
        .joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0), damping=0.5)
        .joint("knuckle", "revolute", "upper", "finger", xyz=(1, 0, 0), axis=(0, 1, 0),
               damping=damping, friction=friction)
        .build(base="fixed")
    )  # fmt: skip


def test_the_fastest_decay_is_that_of_the_linearized_motion() -> None:
    robot = arm(damping=0.3)
    found = stiffest(robot, rm.neutral(robot), 1e-3)
    assert found is not None
    H = rm.mass_matrix(robot, rm.neutral(robot))
    rates = np.linalg.eigvals(np.linalg.solve(H, np.diag([0.5, 0.3])))
    assert found.joint == "knuckle"
    np.testing.assert_allclose(found.rate, rates.max(), rtol=1e-12)
    assert (found.damping, found.friction) == (0.3, 0.0)
    held = stiffest(robot, rm.neutral(robot), 1e-3, held=["knuckle"])
    assert held is not None
    assert held.joint == "shoulder"
    np.testing.assert_allclose(held.rate, 0.5 / H[0, 0], rtol=1e-12)


def test_a_robot_without_friction_is_not_stiff() -> None:
    robot = arm().replace_joint("shoulder", damping=0.0)
    assert stiffest(robot, rm.neutral(robot), 1e-3) is None


def test_a_followers_damping_counts_at_its_leader() -> None:
    robot = (
        rm.Builder()
        .body("ground")
        .body("one", 1.0, inertia=(1, 1, 1))
        .body("two", 1.0, inertia=(1, 1, 1))
        .joint("lead", "revolute", "ground", "one", damping=1.0)
        .joint("follow", "revolute", "ground", "two", damping=5.0, mimic=("lead", 2.0, 0.0))
        .build(base="fixed")
    )
    found = stiffest(robot, np.zeros(1), 1e-3)
    assert found is not None
    np.testing.assert_allclose(found.rate, (1.0 + 4.0 * 5.0) / (1.0 + 4.0), rtol=1e-12)
    assert found.joint == "follow"


@pytest.mark.parametrize("options", [{"damping": 1.0}, {"friction": 0.01}])
def test_a_stiff_robot_runs_with_radau_and_says_so(options) -> None:
    robot = arm(**options)
    q, v = np.array([0.3, -0.2]), np.zeros(2)
    with pytest.warns(rm.errors.SimulationWarning, match="'knuckle'.*integrator='radau' is used"):
        run = rm.simulate(robot, q, v, 1.0)
    assert run.settings["integrator"] == "radau"
    assert len(run) < 50_000
    told = rm.simulate(robot, q, v, 1.0, integrator="radau")
    np.testing.assert_array_equal(told.q, run.q)


def test_others_run_with_dop853_and_say_nothing() -> None:
    robot = arm(damping=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = rm.simulate(robot, np.zeros(2), np.zeros(2), 0.1)
    assert run.settings["integrator"] == "dop853"


def test_a_stiff_joint_that_is_locked_does_not_count() -> None:
    robot = arm(damping=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = rm.simulate(robot, np.zeros(2), np.zeros(2), 0.1, locked=["knuckle"])
    assert run.settings["integrator"] == "dop853"


def test_too_many_steps_name_the_stiffest_joint() -> None:
    robot = arm(damping=1.0)
    with pytest.raises(rm.errors.SimulationError, match=r"'knuckle' \(damping 1, friction 0\)"):
        rm.simulate(
            robot, np.zeros(2), np.zeros(2), 1.0, integrator=rm.Integrator("dop853", max_steps=50)
        )


def test_fixed_steps_that_damping_makes_unstable_are_warned_of():
    """A damped slider came to -7.5e48 m, status "complete", ok=True."""
    builder = rm.Builder("damped").body("mass", mass=1, inertia=(1, 1, 1))
    builder = builder.joint("slide", "prismatic", None, "mass", axis=(0, 0, 1), damping=3.2e3)
    robot = builder.build()
    with pytest.warns(rm.errors.SimulationWarning, match=r"'slide' .* at most 0.00087 s"):
        rm.simulate(robot, [0.0], [1.0], 0.01, integrator=rm.Integrator("rk4", step=1e-3))
    with pytest.warns(rm.errors.SimulationWarning, match=r"'slide' .* at most 0.00087 s"):
        rm.simulate_batch(robot, [[0.0]], [[1.0]], 0.01, integrator=rm.Integrator(step=1e-3))
    run = rm.simulate(
        robot, [0.0], [1.0], 0.01, integrator=rm.Integrator("rk4", step=8e-4)
    )  # warns of nothing
    assert run.q[-1, 0] == pytest.approx(1.0 / 3.2e3, rel=0.2)
    assert rm.simulate_batch(
        robot, [[0.0]], [[1.0]], 0.01, integrator=rm.Integrator(step=8e-4)
    ).ok.all()
