"""Gyros and thresholds: statistics of the noise, the event functions, in runs and in batches."""

import numpy as np
import pytest

import remora as rm

SERVICER = rm.load("servicer")


def spinning():
    q, v = rm.neutral(SERVICER), np.zeros(SERVICER.nv)
    v[:3] = 0.02, -0.01, 0.03
    return q, v


def locked():
    return {"locked": SERVICER.joints.names[1:]}


def test_without_noise_a_gyro_measures_rate_and_bias():
    gyro = rm.sensors.RateGyro("bus", (0.1, 0.2, 0.3), sample_time=0.1)
    run = rm.simulate(rm.System(SERVICER, [gyro]), *spinning(), 1.0, record=0.1)
    held = run.signals["rate_gyro.rate"][1:]  # a sample at a tick has the value before it
    assert np.abs(held - run.v[:-1, :3] - [0.1, 0.2, 0.3]).max() < 1e-9


def test_noise_has_the_stated_spread_and_no_mean():
    gyro = rm.sensors.RateGyro("bus", noise=0.3, sample_time=0.01)
    q, v = rm.neutral(SERVICER), np.zeros(SERVICER.nv)
    batch = rm.simulate_batch(
        rm.System(SERVICER, [gyro]),
        q,
        v,
        0.2,
        integrator=rm.Integrator(step=0.01),
        record=0.01,
        runs=400,
    )
    rate = batch.signals["rate_gyro.rate"]
    assert rate.shape == (400, 21, 3)
    assert abs(rate.std() - 0.3) < 0.3 * 0.02
    assert abs(rate.mean()) < 4 * 0.3 / np.sqrt(rate.size)


def test_the_bias_walks_with_the_square_root_of_time():
    gyro = rm.sensors.RateGyro("bus", drift=0.1, sample_time=0.02)
    q, v = rm.neutral(SERVICER), np.zeros(SERVICER.nv)
    batch = rm.simulate_batch(
        rm.System(SERVICER, [gyro]), q, v, 2.0, integrator=rm.Integrator(step=0.02), runs=2000
    )
    walk = batch.signals["rate_gyro.walk"][:, -1]
    assert abs(walk.std() - 0.1 * np.sqrt(2.0)) < 0.05 * 0.1 * np.sqrt(2.0)


def test_a_run_of_a_batch_has_the_noise_of_a_run_alone():
    gyro = rm.sensors.RateGyro("bus", noise=0.1, drift=0.01, sample_time=0.05)
    system = rm.System(SERVICER, [gyro])
    batch = rm.simulate_batch(
        system,
        *spinning(),
        1.0,
        integrator=rm.Integrator(step=0.05),
        record=0.05,
        runs=rm.Runs(5, seed=7),
    )
    run = rm.simulate(
        system,
        *spinning(),
        1.0,
        integrator=rm.Integrator("rk4", step=0.05),
        record=0.05,
        seed=(7, 3),
    )
    difference = run.signals["rate_gyro.rate"] - batch.signals["rate_gyro.rate"][3]
    assert np.abs(difference).max() < 1e-13


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"level": 1.0, "direction": "above"}, [1.0, 5.0]),
        ({"level": 1.0, "direction": "below"}, [3.0]),
        ({"level": 1.0, "direction": "both"}, [1.0, 3.0, 5.0]),
    ],
)
def test_a_threshold_finds_the_crossings_of_a_number(settings, expected):
    ramps = rm.Profile([0.0, 2.0, 4.0, 6.0], [0.0, 2.0, 0.0, 2.0])
    parts = [rm.SignalSource(ramps, "N", name="ramp"), rm.sensors.Threshold(unit="N", **settings)]
    system = rm.System(SERVICER, parts, {"threshold.signal": "ramp.value"})
    run = rm.simulate(system, *spinning(), 5.5, integrator=rm.Integrator(rtol=1e-8))
    assert [e.name for e in run.events] == ["threshold.crossed"] * len(expected)
    assert np.abs(np.array([e.t for e in run.events]) - expected).max() < 1e-9


@pytest.mark.parametrize(("index", "when"), [(0, 1.0), (1, 0.5), (None, 1.0 / np.sqrt(5.0))])
def test_a_threshold_of_a_vector_watches_an_element_or_the_norm(index, when):
    ramp = rm.Profile([0.0, 3.0], [[0.0, 0.0], [3.0, 6.0]])
    limit = rm.sensors.Threshold(1.0, "rad", 2, index, action="stop", name="limit")
    system = rm.System(
        SERVICER, [rm.SignalSource(ramp, "rad", name="ramp"), limit], {"limit.signal": "ramp.value"}
    )
    run = rm.simulate(system, *spinning(), 3.0, integrator=rm.Integrator(rtol=1e-8))
    assert abs(run.t[-1] - when) < 1e-9


def test_the_norm_of_a_vector_that_begins_at_zero_is_watched_in_a_batch():
    """Its event function has finite slopes there; that of the norm itself has not."""
    wheels = rm.actuators.FirstOrderActuator(frame="bus", time_constant=0.5, name="wheels")
    limit = rm.sensors.Threshold(0.6, "N m", 3, name="limit")
    wires = {"wheels.command": [0.6, 0.0, 0.8], "limit.signal": "wheels.torque"}
    system = rm.System(SERVICER, [wheels, limit], wires)
    q, v = rm.neutral(SERVICER), np.zeros(SERVICER.nv)
    batch = rm.simulate_batch(system, q, v, 2.0, integrator=rm.Integrator(step=0.05), runs=3)
    exact = -0.5 * np.log(1.0 - 0.6)
    assert np.abs(batch.events.of("limit.crossed")[:, 0] - exact).max() < 1e-5
    run = rm.simulate(system, q, v, 2.0)
    assert abs(run.events[0].t - exact) < 1e-9


def test_a_threshold_ends_a_phase():
    ramp = rm.SignalSource(rm.Profile([0.0, 4.0], [0.0, 4.0]), name="ramp")
    limit = rm.sensors.Threshold(1.5, action="next")
    system = rm.System(SERVICER, [ramp, limit], {"threshold.signal": "ramp.value"})
    run = rm.simulate(
        system,
        *spinning(),
        duration=[rm.Phase(3.0), rm.Phase(1.0)],
        integrator=rm.Integrator(rtol=1e-8),
    )
    assert np.allclose(run.phase_starts, [0.0, 1.5], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.sensors.RateGyro("bus", (1, 2)), "one number or 3"),
        (lambda: rm.sensors.RateGyro("bus", noise=-1.0), "noise of a gyro"),
        (lambda: rm.System(SERVICER, [rm.sensors.RateGyro("bus")]), "noise needs a sample_time"),
        (lambda: rm.System(SERVICER, [rm.sensors.RateGyro("bux", sample_time=1.0)]), "bux"),
        (lambda: rm.sensors.Threshold(1.0, direction="up"), "above"),
        (lambda: rm.sensors.Threshold(1.0, action="reset"), "record"),
        (lambda: rm.sensors.Threshold(1.0, size=3, index=3), "index of a threshold"),
        (lambda: rm.sensors.Threshold(1.0, size=-3), "size of a threshold"),
        (
            lambda: rm.System(
                SERVICER,
                [rm.sensors.RateGyro("bus", sample_time=1.0), rm.sensors.Threshold(1.0, "N", 3)],
                {"threshold.signal": "rate_gyro.rate"},
            ),
            "is in N, its source 'rate_gyro.rate' in rad/s",
        ),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()
