"""Limits of joints and of drives in batches: those of single runs."""

import warnings

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider

ROBOT = slider(upper=1.0, lower=-2.0, velocity=0.8, effort=0.5)
V = np.array([[0.3], [-0.4], [0.1]])


@pytest.mark.parametrize("options", [{"integrator": "dop853"}, {"step": 0.1}])
def test_limits_are_recorded_as_in_single_runs(options):
    batch = rm.simulate_batch(
        ROBOT,
        np.zeros((3, 1)),
        V,
        5.0,
        **grouped(True, torque={"slide": 0.1}, limits="record", **options),
    )
    names = np.array(batch.events.names)
    for k in range(3):
        alone = batch[k]
        found = [
            (str(names[j]), t)
            for t, fired in zip(batch.events.times[k], batch.events.fired[k], strict=True)
            for j in np.flatnonzero(fired > 0.5)
        ]
        assert [e.name for e in alone.events] == [name for name, _ in found]
        assert [e.t for e in alone.events] == [t for _, t in found]
        assert np.array_equal(alone.q[-1], batch.q[k, -1])
    assert {"slide upper limit", "slide speed limit", "slide lower limit"} <= set(names)
    assert batch.events.first.shape == (3, len(names))


def test_a_robot_without_loads_finds_the_program_with_its_limits():
    """Programs of robots alone are found by the robot's identity, and by what is watched."""
    options = {"integrator": "dop853"}
    plain = rm.simulate_batch(ROBOT, np.zeros((3, 1)), V, 5.0, **grouped(True, **options))
    watched = rm.simulate_batch(
        ROBOT, np.zeros((3, 1)), V, 5.0, **grouped(True, limits="record", **options)
    )
    stopped = rm.simulate_batch(
        ROBOT, np.zeros((3, 1)), V, 5.0, **grouped(True, limits="stop", **options)
    )
    assert plain.events is None
    assert watched.events.counts.tolist() == [1, 0, 0]
    assert stopped.outcome.tolist() == ["stopped", "complete", "complete"]
    again = rm.simulate_batch(ROBOT, np.zeros((3, 1)), V, 5.0, **grouped(True, **options))
    assert again.events is None


def test_a_limit_stops_a_run_where_it_is():
    batch = rm.simulate_batch(
        ROBOT,
        np.zeros((3, 1)),
        V,
        5.0,
        integrator=rm.Integrator(step=0.1),
        physics=rm.Physics(limits="stop"),
    )
    assert batch.outcome.tolist() == ["stopped", "complete", "complete"]
    assert batch.end[0] == pytest.approx(1.0 / 0.3, rel=1e-14)
    assert batch.final.q[0, 0] == pytest.approx(1.0, rel=1e-14)


def test_limits_are_ignored_if_nothing_is_said():
    assert (
        rm.simulate_batch(
            ROBOT, np.zeros((3, 1)), V, 5.0, integrator=rm.Integrator(step=0.1)
        ).events
        is None
    )
    with pytest.raises(rm.errors.UnknownName, match="treatment of limits named 'warn'"):
        rm.simulate_batch(
            ROBOT,
            np.zeros((3, 1)),
            V,
            5.0,
            integrator=rm.Integrator(step=0.1),
            physics=rm.Physics(limits="warn"),
        )


def test_drives_saturate():
    options = {"torque": {"slide": 3.0}, "step": 0.1}
    batch = rm.simulate_batch(
        ROBOT, np.zeros((3, 1)), V, 2.0, **grouped(True, saturate=True, **options)
    )
    mass = rm.mass_matrix(ROBOT, [0.0])[0, 0]
    assert batch.v[:, -1] == pytest.approx(V + 2.0 * 0.5 / mass, rel=1e-13)
    free = rm.simulate_batch(ROBOT, np.zeros((3, 1)), V, 2.0, **grouped(True, **options))
    assert free.v[:, -1] == pytest.approx(V + 2.0 * 3.0 / mass, rel=1e-13)


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_start_beyond_a_limit_is_warned_of_once(target):
    with pytest.warns(rm.errors.SimulationWarning) as seen:
        rm.simulate_batch(
            ROBOT, np.array([[0.0], [1.5]]), [0.1], 0.1, physics=rm.Physics(limits="record"),
            integrator=rm.Integrator(step=0.1), target=target,
        )  # fmt: skip
    assert ["starts at" in str(x.message) for x in seen] == [True]


def test_runs_in_turn_leave_the_filters_of_warnings():
    """They belong to the process: other threads may make batches, too."""
    filters = []

    def torque(t, q, v):
        filters.append(list(warnings.filters))
        return [0.01] if q[0] < 1.0 else [-0.01]

    rm.simulate_batch(
        ROBOT, np.array([[0.0], [0.1]]), [0.1], 0.1, torque=torque,
        integrator=rm.Integrator(step=0.1), target="python",
    )  # fmt: skip
    assert filters
    assert all(found == warnings.filters for found in filters)
