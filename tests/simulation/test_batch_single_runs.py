"""Single runs of batches as recordings, and batches as data frames."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped

ROBOT = rm.load("vt18_satellite")
GYRO = rm.sensors.RateGyro("body_1", noise=1e-3, sample_time=0.1)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(1)
    system = rm.System(ROBOT, [GYRO])
    q, v = rm.neutral(ROBOT), 0.1 * rng.normal(size=(6, ROBOT.nv))
    parameters = {"body_2.mass": rng.uniform(5, 15, 6), "rate_gyro.noise": rng.uniform(0, 1e-2, 6)}
    return rm.simulate_batch(
        system,
        q,
        v,
        1.5,
        integrator=rm.Integrator(step=0.05),
        record=0.3,
        runs=rm.Runs(parameters=parameters, seed=4),
        torque={"J1": rm.Pulse(0.2, 0.7, 0.3)},
    )


def test_a_run_alone_equals_the_run_of_the_batch(batch):
    run = batch[4]
    assert np.array_equal(run.t, batch.t)
    for one, other in ((run.q, batch.q[4]), (run.v, batch.v[4])):
        assert np.abs(one - other).max() < 1e-12
    signal = run.signals["rate_gyro.rate"], batch.signals["rate_gyro.rate"][4]
    assert np.abs(signal[0] - signal[1]).max() < 1e-12
    assert run.robot.bodies["body_2"].mass == batch.parameters["body_2.mass"][4]
    assert np.abs(run.tau).max() == pytest.approx(0.3)


def test_places_of_runs():
    q = np.tile(rm.neutral(ROBOT), (2, 3, 1))
    v = 0.1 * np.random.default_rng(2).normal(size=(2, 3, ROBOT.nv))
    batch = rm.simulate_batch(ROBOT, q, v, 0.2, integrator=rm.Integrator(step=0.1))
    assert np.abs(batch[1, 2].q[-1] - batch.q[1, 2, -1]).max() < 1e-13
    assert np.array_equal(batch[5].q, batch[1, 2].q)
    for wrong in (6, -1, (2, 0), "one", 1.0):
        with pytest.raises(rm.errors.InvalidValue, match="has no run"):
            batch[wrong]


def test_what_exists_in_batches_only_is_refused():
    def torque(t, q, v, push):
        return push * np.ones(ROBOT.nv)

    options = {"torque": torque, "inputs": {"push": np.ones(4)}, "step": 0.1}
    batch = rm.simulate_batch(
        ROBOT, rm.neutral(ROBOT), np.zeros(ROBOT.nv), 0.1, **grouped(True, **options)
    )
    with pytest.raises(rm.RemoraError, match="it has inputs="):
        batch[0]


def test_data_frame(batch):
    table = batch.to_pandas()
    assert len(table) == 6
    assert np.array_equal(table["body_2.mass"], batch.parameters["body_2.mass"])
    assert table["ok"].all()
    joint = ROBOT.joints["J1"]
    assert np.array_equal(table["v.J1"], batch.v[:, -1, joint.v.start])


def test_percentile_bands(batch):
    figure = batch.plot()
    assert [ax.get_title(loc="left") for ax in figure.axes] == [
        "q.J1, deg",
        "q.J2, deg",
        "q.J3, deg",
    ]
    turn = np.degrees(batch.q[:, :, ROBOT.joints["J1"].q.start])
    assert np.allclose(figure.axes[0].lines[0].get_ydata(), np.median(turn, axis=0))
    widest = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    ends = np.percentile(turn, [1, 99], axis=0)
    assert (widest.min(), widest.max()) == pytest.approx((ends.min(), ends.max()))
    figure = batch.plot("v.J1", "rate_gyro.rate[2]", degrees=False)
    median = figure.axes[0].lines[0].get_ydata()
    joint = ROBOT.joints["J1"].v.start
    assert np.allclose(median, np.median(batch.v[:, :, joint], axis=0))
    with pytest.raises(rm.errors.UnknownName, match=r"q\.J1"):
        batch.plot("q.J9")
