"""Springs between frames: the force they state, energy, momentum, and in a batch."""

import numpy as np
import pytest

import remora as rm


def two_bodies():
    builder = rm.Builder("two").body("a", mass=2.0, inertia=(1, 1, 1))
    builder = builder.joint("base", "free", None, "a").body("b", mass=3.0, inertia=(1, 1, 1))
    return builder.joint("slide", "prismatic", "a", "b", axis=(1, 0, 0)).build()


def state(robot, place=0.7, speed=0.0):
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[8], v[6] = place, speed
    return q, v


def test_tension_is_that_of_a_spring_and_a_damper():
    robot = two_bodies()
    system = rm.System(robot, [rm.world.Spring("a", "b", 10.0, 0.5, 3.0)])
    run = rm.simulate(system, *state(robot, 0.7, 0.4), 0.1)
    assert run.signals["spring.length"][0] == pytest.approx(0.7, abs=1e-15)
    assert run.signals["spring.force"][0] == pytest.approx(10.0 * 0.2 + 3.0 * 0.4, abs=1e-14)
    assert np.allclose(run.wrenches[0, 0, :3], [3.2, 0, 0], atol=1e-14)
    assert np.allclose(run.wrenches[0, 1, :3], [-3.2, 0, 0], atol=1e-14)


def test_two_masses_oscillate_about_the_free_length():
    robot = two_bodies()
    system = rm.System(robot, [rm.world.Spring("a", "b", 10.0, 0.5)])
    run = rm.simulate(system, *state(robot), 3.0, integrator=rm.Integrator(rtol=1e-12))
    w = np.sqrt(10.0 / (2.0 * 3.0 / 5.0))
    assert np.abs(run.q[:, 8] - (0.5 + 0.2 * np.cos(w * run.t))).max() < 1e-10
    assert run.conservation().linear_momentum.relative < 1e-13
    assert run.conservation().energy.relative < 1e-10


def test_damping_dissipates_what_the_relative_speed_takes():
    robot = two_bodies()
    system = rm.System(robot, [rm.world.Spring("a", "b", 10.0, 0.5, damping=1.5)])
    run = rm.simulate(system, *state(robot), 40.0, integrator=rm.Integrator(rtol=1e-10))
    assert abs(run.q[-1, 8] - 0.5) < 1e-6
    assert run.conservation().linear_momentum.relative < 1e-12


def test_a_spring_of_no_length_has_no_direction_and_no_force():
    robot = two_bodies()
    system = rm.System(robot, [rm.world.Spring("a", "b", 10.0, 0.5, 2.0)])
    run = rm.simulate(system, *state(robot, 0.0), 0.05)
    assert np.all(np.isfinite(run.signals["spring.force"]))
    assert run.signals["spring.force"][0] == 0.0


def test_stiffness_differs_from_run_to_run_in_a_batch():
    robot = two_bodies()
    system = rm.System(robot, [rm.world.Spring("a", "b", 10.0, 0.5)])
    k = np.array([5.0, 10.0, 20.0])
    batch = rm.simulate_batch(
        system,
        *state(robot),
        1.0,
        integrator=rm.Integrator(step=1e-3),
        runs=rm.Runs(parameters={"spring.stiffness": k}),
    )
    exact = 0.5 + 0.2 * np.cos(np.sqrt(k / 1.2))
    assert np.abs(batch.q[:, -1, 8] - exact).max() < 1e-10


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.world.Spring("a", "b", -1.0), "stiffness of a spring must be finite and 0 or"),
        (lambda: rm.world.Spring("a", "b", 1.0, float("nan")), "length of a spring"),
        (
            lambda: rm.System(two_bodies(), [rm.world.Spring("a", "a", 1.0)]),
            "nothing moves between",
        ),
        (lambda: rm.System(two_bodies(), [rm.world.Spring("a", "c", 1.0)]), "'c'"),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()
