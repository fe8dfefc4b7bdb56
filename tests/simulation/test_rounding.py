"""True orbital coordinates: rounding of 7.6 km/s against the tolerances, named as the cause."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped

MU, RADIUS = 3.986004418e14, 7.0e6
SPEED = float(np.sqrt(MU / RADIUS))


def satellite():
    builder = rm.Builder("sat").body("bus", 100.0, (0, 0, 0), np.eye(3) * 10.0)
    return builder.joint("base", "free", None, "bus").build()


ROBOT = satellite()
Q = rm.configuration(ROBOT, xyz=(RADIUS, 0, 0))
V = np.array([0.0, 0.0, 0.001, 0.6 * SPEED, 0.8 * SPEED, 0.0])
CAUSE = r"rounding exceeds atol=1e-12: at 603. m/s .* use atol=1e-05, or coordinates relative"


def test_tolerances_below_rounding_are_refused():
    with pytest.raises(
        rm.errors.InvalidValue, match=f"1000000 steps are not enough for 50000 s: {CAUSE}"
    ):
        rm.simulate(ROBOT, Q, V, 50_000.0)
    states = {"q": np.stack([Q, Q]), "v": np.stack([V, V])}
    with pytest.raises(rm.errors.InvalidValue, match=CAUSE):
        rm.simulate_batch(ROBOT, **grouped(True, **states, duration=50_000.0, integrator="dop853"))


def test_many_steps_due_to_rounding_are_announced_and_explained():
    with (
        pytest.warns(rm.errors.SimulationWarning, match=CAUSE),
        pytest.raises(rm.errors.SimulationError, match=f"3000 steps were not enough .*: {CAUSE}"),
    ):
        rm.simulate(ROBOT, Q, V, 5.0, integrator=rm.Integrator(max_steps=3_000))


def test_the_advised_tolerance_is_enough():
    run = rm.simulate(ROBOT, Q, V, 300.0, integrator=rm.Integrator(atol=1e-5, max_steps=3_000))
    assert run.status == "complete"
    assert np.allclose(run.v[-1, 2], 0.001, rtol=0, atol=1e-5)


def test_slow_robots_are_not_looked_at():
    rm.simulate(ROBOT, Q, V / 1e4, 10.0, integrator=rm.Integrator(max_steps=2000))
