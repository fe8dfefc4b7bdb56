"""The filter of attitude and gyro bias: its covariance is right, and what it costs in a loop."""

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import built_test, verdict
from remora.algebra import quaternion as quat

H = 0.1
SPREAD = np.array([1e-3, 1e-3, 5e-3])
BOX = (
    rm.Builder("box")
    .body("bus", mass=100.0, inertia=(10, 20, 30))
    .joint("base", "free", None, "bus")
    .build()
)
SETTINGS = {"integrator": rm.Integrator("rk4", step=H), "record": H}


def parts(scale=1.0, every=5):
    """Return gyro, star tracker and a filter for noise that is `scale` times as large."""
    return [
        rm.sensors.RateGyro("bus", noise=1e-3, drift=1e-4, sample_time=H, name="gyro"),
        rm.sensors.StarTracker("bus", noise=SPREAD, sample_time=H, name="tracker"),
        rm.estimation.AttitudeFilter(
            1e-3 * scale, 1e-4, SPREAD * scale, 0.02, every, sample_time=H, name="filter"
        ),
    ]


def start():
    return rm.neutral(BOX), np.array([0.05, -0.03, 0.04, 0, 0, 0])


def errors(batch, bias):
    """Return the errors of attitude and bias; a sample at a tick has the estimate before it."""
    estimate, true = batch.signals["filter.estimate"][:, 1:], batch.q[:, :-1, :4]
    off = quat.mul(quat.conjugate(estimate), true)
    of_bias = bias[:, None] + batch.signals["gyro.walk"][:, :-1]
    of_bias = of_bias - batch.signals["filter.offset"][:, 1:]
    return np.concatenate([2.0 * quat.log(quat.shortest(off)), of_bias], axis=-1)


@pytest.mark.parametrize(("scale", "side"), [(1.0, ""), (2.0, "below"), (0.5, "above")])
def test_the_covariance_is_that_of_the_errors(scale, side):
    """NEES and NIS of 1,000 runs lie within 95 % bounds; with a wrong noise they do not."""
    bias = 0.02 * np.random.default_rng(0).normal(size=(1000, 3))
    runs = rm.Runs(parameters={"gyro.bias": bias}, seed=2)
    names = ["gyro.walk", *(f"filter.{x}" for x in ("estimate", "offset", "covariance", "nis"))]
    settings = SETTINGS | {"record": rm.Record(H, signals=names)}
    batch = rm.simulate_batch(rm.System(BOX, parts(scale)), *start(), 20.0, runs=runs, **settings)
    error, P = errors(batch, bias), batch.signals["filter.covariance"][:, 1:]
    of_state = rm.estimation.consistency(rm.estimation.nees(error, P)[:, 1:], 6)
    nis = batch.signals["filter.nis"][:, 1:]
    ticks = np.flatnonzero(nis.any(axis=0))
    assert set(np.diff(ticks)) == {5}
    of_measurements = rm.estimation.consistency(nis[:, ticks], 3)
    for found in (of_state, of_measurements):
        assert found.consistent == (not side), str(found)
        assert side in str(found)
        if not side:
            assert found.inside > 0.9
    if not side:
        spread = error[:, -1].std(axis=0) / np.sqrt(np.diagonal(P[0, -1]))
        assert np.abs(spread - 1.0).max() < 0.1


def test_without_noise_the_filter_finds_the_bias():
    gyro = rm.sensors.RateGyro("bus", bias=(0.01, -0.02, 0.005), sample_time=H, name="gyro")
    tracker = rm.sensors.StarTracker("bus", sample_time=H, name="tracker")
    made = rm.estimation.AttitudeFilter(1e-5, 1e-6, 1e-5, 0.02, sample_time=H, name="filter")
    run = rm.simulate(rm.System(BOX, [gyro, tracker, made]), *start(), 30.0, **SETTINGS)
    assert run.signals["filter.bias"][-1] == pytest.approx([0.01, -0.02, 0.005], abs=2e-6)
    assert np.abs(run.signals["filter.rate"][-1] - run.v[-2, :3]).max() < 2e-6
    assert run.signals["filter.deviation"][-1].shape == (6,)


@pytest.mark.parametrize("timing", [{"delay": H}, {"sample_time": 5 * H, "offset": 2 * H}])
def test_a_star_tracker_that_measures_later(timing):
    """The filter starts with the first measured attitude, and counts from there."""
    gyro = rm.sensors.RateGyro("bus", bias=(0.01, -0.02, 0.005), sample_time=H, name="gyro")
    tracker = rm.sensors.StarTracker("bus", name="tracker", **({"sample_time": H} | timing))
    every = 5 if "offset" in timing else 1
    made = rm.estimation.AttitudeFilter(1e-5, 1e-6, 1e-5, 0.02, every, sample_time=H, name="filter")
    q, v = rm.neutral(BOX), np.zeros(6)
    run = rm.simulate(rm.System(BOX, [gyro, tracker, made]), q, v, 30.0, **SETTINGS)
    assert run.signals["filter.estimate"][1] == pytest.approx([1, 0, 0, 0])
    assert run.signals["filter.bias"][-1] == pytest.approx([0.01, -0.02, 0.005], abs=1e-5)
    assert np.all(np.isfinite(run.signals["filter.covariance"]))


def test_attitudes_that_are_lost_are_no_measurements():
    """A body that turns at 0.2 rad/s, with every second attitude lost: the old one stays."""
    tick, noise = {"sample_time": H}, 1e-4
    tracker = rm.sensors.StarTracker("bus", noise=noise, dropout=0.5, name="tracker", **tick)
    gyro = rm.sensors.RateGyro("bus", noise=noise, name="gyro", **tick)
    mekf = rm.estimation.AttitudeFilter(noise, 1e-5, noise, name="filter", **tick)
    connect = {
        "filter.rate": "gyro.rate", "filter.attitude": "tracker.attitude",
        "filter.attitude_valid": "tracker.valid",
    }  # fmt: skip
    system = rm.System(BOX, [gyro, tracker, mekf], connect)
    v, runs = np.array([0, 0, 0.2, 0, 0, 0]), rm.Runs(200, seed=1)
    batch = rm.simulate_batch(system, start()[0], v, 60 * H, runs=runs, **SETTINGS)
    valid, nis = batch.signals["tracker.valid"][:, 1:], batch.signals["filter.nis"][:, 1:]
    begun = np.cumsum(valid, axis=1) > 1
    assert np.array_equal(nis[begun] > 0.0, valid[begun] > 0.5)
    assert not nis[~begun].any()
    assert np.mean(nis[begun & (valid > 0.5)]) == pytest.approx(3.0, rel=0.05)


def test_a_batch_is_its_single_runs():
    system = rm.System(BOX, parts())
    batch = rm.simulate_batch(system, *start(), 3.0, runs=rm.Runs(3, seed=5), **SETTINGS)
    for k in range(3):
        run = rm.simulate(system, *start(), 3.0, seed=(5, k), **SETTINGS)
        for name in ("filter.estimate", "filter.covariance", "filter.nis"):
            assert np.abs(batch.signals[name][k] - run.signals[name]).max() < 1e-13


def test_the_pointing_of_a_loop_with_filter_and_without_truth():
    """The attitude law reads the filter's attitude and rate through the estimate."""
    nav = rm.estimation.StateEstimate((), ("attitude", "rate"), name="nav")
    law = rm.control.AttitudePD(BOX, (1, 0, 0, 0), 4.0, 20.0, H, name="law")
    connect = {"nav.attitude": "filter.attitude", "nav.rate": "filter.rate"}
    system = rm.System(BOX, [*parts(), nav, law], connect)
    assert system.truth_read_by() == {}
    run = rm.simulate(system, *start(), 120.0, seed=1, **SETTINGS)
    angle = 2.0 * np.arccos(np.abs(run.q[-200:, 0]))
    assert 1e-5 < angle.max() < 5e-3
    unwired = rm.System(BOX, [*parts(), law])
    assert unwired.truth_read_by() == {"law": ("base attitude", "base rate")}
    with pytest.raises(rm.errors.ModelError, match=r"nav.attitude.*2 possible sources"):
        rm.System(BOX, [*parts(), nav, law])


@needs.compiler
def test_the_filter_is_the_same_in_c(tmp_path):
    system = rm.System(BOX, parts())
    rm.save_component_c(system, "filter", tmp_path)
    assert verdict(built_test(tmp_path, "filter", "-O1")) == (0, 0, "good")
    rm.save_loop_c(system, tmp_path, H, name="loop")
    assert verdict(built_test(tmp_path, "loop", "-O1")) == (0, 0, "good")


@pytest.mark.parametrize(
    "settings",
    [
        {"rate_noise": 0.0},
        {"drift": -1.0},
        {"attitude_noise": 0.0},
        {"bias_deviation": 0.0},
        {"every": 0},
        {"every": 1.5},
        {"sample_time": None},
    ],
)
def test_settings_that_make_no_sense(settings):
    good = {"rate_noise": 1e-3, "drift": 1e-4, "attitude_noise": 1e-3, "sample_time": H}
    rm.estimation.AttitudeFilter(**good)
    with pytest.raises(rm.errors.RemoraError, match=next(iter(settings))):
        rm.estimation.AttitudeFilter(**(good | settings))
