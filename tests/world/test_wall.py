"""A wall: a unilateral spring, with its contacts as events."""

import numpy as np
import pytest

import remora as rm

BALL = (
    rm.Builder("ball").body("ball", mass=2.0, inertia=(1, 1, 1))
    .joint("slide", "prismatic", None, "ball", axis=(1, 0, 0)).build()
)  # fmt: skip


def test_a_ball_bounces_as_a_half_period_of_the_spring():
    wall = rm.world.Wall("ball", (1.0, 0, 0), (-2.0, 0, 0), stiffness=50.0)
    run = rm.simulate(rm.System(BALL, [wall]), [0.0], [0.5], 4.0)
    contact, release = run.events
    assert (contact.name, release.name) == ("wall.contact", "wall.release")
    assert abs(contact.t - 2.0) < 1e-9
    assert abs(release.t - contact.t - np.pi * np.sqrt(2.0 / 50.0)) < 1e-9
    assert abs(run.v[-1, 0] + 0.5) < 1e-9


def test_damping_takes_energy_and_never_pulls():
    wall = rm.world.Wall("ball", (1.0, 0, 0), (-1.0, 0, 0), stiffness=50.0, damping=10.0)
    run = rm.simulate(rm.System(BALL, [wall]), [0.9], [0.5], 4.0, record=0.01)
    assert -0.4 < run.v[-1, 0] < -0.05
    assert run.signals["wall.force"][:, 0].max() <= 0.0
    assert run.signals["wall.force"][:, 0].min() < -1.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"normal": (0, 0, 0)}, "not all zero"),
        ({"stiffness": 0.0}, "greater than 0"),
        ({"damping": -1.0}, "0 or greater"),
        ({"sample_time": 0.1}, "continuous"),
    ],
)
def test_refusals(options, told):
    given = {"point": (1, 0, 0), "normal": (-1, 0, 0), "stiffness": 1.0}
    with pytest.raises(rm.RemoraError, match=told):
        rm.world.Wall("ball", **{**given, **options})
