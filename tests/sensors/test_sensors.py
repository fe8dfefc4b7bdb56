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
    gyro = rm.sensors.RateGyro("bus", bias=(0.1, 0.2, 0.3), sample_time=0.1)
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
        ({"above": 1.0}, [1.0, 5.0]),
        ({"below": 1.0}, [3.0]),
        ({"crosses": 1.0}, [1.0, 3.0, 5.0]),
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
        (lambda: rm.sensors.RateGyro("bus", bias=(1, 2)), "one number or 3"),
        (lambda: rm.sensors.RateGyro("bus", noise=-1.0), "noise of a rate gyro"),
        (
            lambda: rm.System(SERVICER, [rm.sensors.RateGyro("bus")]),
            "a rate gyro needs a sample_time",
        ),
        (lambda: rm.System(SERVICER, [rm.sensors.RateGyro("bux", sample_time=1.0)]), "bux"),
        (lambda: rm.sensors.Threshold(1.0, below=2.0), "one of above, below, crosses"),
        (lambda: rm.sensors.Threshold(), "one of above, below, crosses"),
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


H = 0.05
TICKED = {"integrator": rm.Integrator("rk4", step=H), "record": H}


def one_of(sensor, connect=None, v=None, duration=1.0):
    """Return the run of a servicer with one sensor and locked joints."""
    q, speeds = spinning()
    system = rm.System(SERVICER, [sensor], connect)
    return rm.simulate(system, q, speeds if v is None else v, duration, **locked(), **TICKED)


def test_the_chain_of_errors_by_hand():
    """Axes, then scale factors, then what is added, then range, then resolution."""
    m, scale, bias = np.array([0.02, -0.01, 0.03]), np.array([0.1, -0.1, 0.0]), [0.01, 0.0, -0.005]
    gyro = rm.sensors.RateGyro(
        "bus", misalignment=m, scale=scale, bias=bias, limit=0.025, resolution=1e-3, sample_time=H
    )
    run = one_of(gyro)
    angle = np.linalg.norm(m)
    K = np.cross(np.eye(3), m / angle)
    R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K  # about m, right-handed
    z = np.array([0.0, 0.0, 1.0])
    assert R @ z == pytest.approx(z + np.cross(m, z), abs=1e-3)
    plain = (1 + scale) * (run.v[:-1, :3] @ R) + bias
    expected = 1e-3 * np.floor(np.clip(plain, -0.025, 0.025) / 1e-3 + 0.5)
    found = run.signals["rate_gyro.rate"][1:]
    assert np.abs(found - expected).max() < 1e-15
    assert np.any(np.abs(plain) > 0.025)


def test_lost_measurements_leave_the_last_one():
    gyro = rm.sensors.RateGyro("bus", noise=0.1, dropout=0.3, sample_time=H, name="gyro")
    q, v = spinning()
    system = rm.System(SERVICER, [gyro])
    batch = rm.simulate_batch(system, q, v, 10.0, runs=rm.Runs(40, seed=5), **TICKED)
    rate, valid = batch.signals["gyro.rate"][:, 1:], batch.signals["gyro.valid"][:, 1:]
    assert np.unique(valid).tolist() == [0.0, 1.0]
    count = valid.size
    assert abs(valid.mean() - 0.7) < 4 * np.sqrt(0.21 / count)
    same = np.all(rate[:, 1:] == rate[:, :-1], axis=-1)
    assert np.array_equal(same, valid[:, 1:] == 0.0)
    never = system.with_parameters({"gyro.dropout": 0.0})
    run = rm.simulate(never, q, v, 10.0, **TICKED)
    assert np.all(run.signals["gyro.valid"][1:] == 1.0)


def test_tachometers_of_wheels():
    """Speeds of the wheels with scale factor and quantization, within the range."""
    robot = rm.load("wheeled_bus")
    wheels = [j.name for j in robot.joints[1:] if j.kind in ("revolute", "continuous")][:3]
    sensor = rm.sensors.Tachometers(
        wheels, scale=[0.01, 0.0, -0.01], resolution=0.1, limit=40.0, sample_time=H, name="tacho"
    )
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    speeds = [10.0, -30.0, 50.0]
    for name, speed in zip(wheels, speeds, strict=True):
        v[robot.joints[name].v] = speed
    run = rm.simulate(rm.System(robot, [sensor]), q, v, 0.2, **TICKED)
    assert run.signals["tacho.speeds"][1] == pytest.approx([10.1, -30.0, 40.0], abs=1e-12)


def test_directions_and_fields_in_the_axes_of_a_frame():
    s, B = np.array([3.0, 4.0, 12.0]), np.array([2e-5, -1e-5, 4e-5])
    sun = rm.sensors.SunSensor("bus", half_angle=0.5, sample_time=H, name="sun")
    magnetometer = rm.sensors.Magnetometer("bus", scale=0.1, sample_time=H, name="field")
    q, v = spinning()
    v[:3] = 0.0, 0.5, 0.0
    system = rm.System(SERVICER, [sun, magnetometer], {"sun.direction": s, "field.field": B})
    run = rm.simulate(system, q, v, 12.0, **locked(), **TICKED)
    R = np.array([rm.algebra.quaternion.to_matrix(x[:4]) for x in run.q[:-1]])
    own = s / 13.0 @ R
    seen = own[:, 2] > np.cos(0.5)
    assert 0 < seen.sum() < seen.size
    found = run.signals["sun.sun"][1:]
    assert np.array_equal(run.signals["sun.valid"][1:], seen)
    last = np.maximum.accumulate(np.where(seen, np.arange(seen.size), -1))
    assert np.abs(found - np.where(last[:, None] < 0, 0.0, own[last])).max() < 1e-14
    measured = run.signals["field.measured_field"][1:]
    assert np.abs(measured - 1.1 * (B @ R)).max() < 1e-19


def test_a_sun_sensor_that_sees_all_directions_and_none():
    sensor = rm.sensors.SunSensor("bus", noise=0.01, sample_time=H, name="sun")
    for s, seen in (([0, 0, -1.0], 1.0), ([0, 0, 0], 0.0)):
        run = one_of(sensor, {"sun.direction": s}, np.zeros(SERVICER.nv))
        assert np.all(run.signals["sun.valid"][1:] == seen)
        size = np.linalg.norm(run.signals["sun.sun"][1:], axis=1)
        assert size == pytest.approx(seen, abs=1e-14)


def test_units_and_defaults_follow_from_the_class():
    told = rm.sensors.Accelerometer.__doc__
    assert "m/s²/√s" in told
    assert "rad/s or m/s" in rm.sensors.Tachometers.__doc__
    with pytest.raises(rm.RemoraError, match="dropout of an accelerometer must be at most 1"):
        rm.sensors.Accelerometer("bus", dropout=1.5, sample_time=H)
    with pytest.raises(rm.RemoraError, match="resolution of tachometers"):
        rm.sensors.Tachometers(resolution=0.0, sample_time=H)


def test_the_pose_of_a_target():
    """Range-dependent noise, field of view and distance, latency; the mean is the true pose."""
    built = rm.Builder("free").body("bus", mass=50.0, inertia=(5, 6, 7))
    chaser = built.joint("base", "free", None, "bus").frame("eye", "bus", xyz=(0.3, 0, 0)).build()
    robot = rm.combine({"a": chaser, "b": chaser})
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    turn = [0.2, -0.1, 0.3]
    q[8:] = rm.algebra.pose.from_xyz_rpy([0.3, 1.0, 4.0], turn)
    v[10] = 0.9  # leaves the field of view
    size = np.array([1e-3, 2e-3, 3e-3, 0.01, 0.02, 0.03])
    camera = rm.sensors.TargetCamera(
        "a/eye", "b/bus", noise=size, range_noise=0.5 * size, half_angle=0.5, sample_time=H,
        name="camera",
    )  # fmt: skip
    system = rm.System(robot, [camera])
    batch = rm.simulate_batch(system, q, v, 3.0, runs=rm.Runs(300, seed=2), **TICKED)
    eye = rm.frame_pose(robot, batch.q[0, :-1], "a/eye")
    x = rm.algebra.dual_quaternion.mul(
        rm.algebra.dual_quaternion.conjugate(eye), rm.frame_pose(robot, batch.q[0, :-1], "b/bus")
    )
    p = rm.algebra.pose.translation(x)
    distance = np.linalg.norm(p, axis=1)
    seen = p[:, 2] > np.cos(0.5) * distance
    assert 5 < seen.sum() < seen.size
    assert np.array_equal(batch.signals["camera.valid"][:, 1:], np.tile(seen, (300, 1)))
    found = batch.signals["camera.pose"][:, 1:][:, seen]
    off = (rm.algebra.pose.translation(found) - p[seen]) / (1 + 0.5 * distance[seen])[:, None]
    assert off.reshape(-1, 3).std(axis=0) == pytest.approx(size[3:], rel=0.05)
    r = rm.algebra.quaternion.mul(
        rm.algebra.quaternion.conjugate(x[seen, :4]), rm.algebra.pose.rotation(found)
    )
    angle = 2 * rm.algebra.quaternion.log(r) / (1 + 0.5 * distance[seen])[:, None]
    assert angle.reshape(-1, 3).std(axis=0) == pytest.approx(size[:3], rel=0.05)
    tail = batch.signals["camera.pose"][:, 1 + np.flatnonzero(seen)[-1] :]
    assert tail.shape[1] > 5
    assert np.all(tail == tail[:, :1])
    late = rm.sensors.TargetCamera("a/eye", "b/bus", reach=4.3, sample_time=H, delay=2 * H)
    run = rm.simulate(rm.System(robot, [late]), q, v, 1.0, **TICKED)
    near = distance < 4.3
    told = run.signals["target_camera.valid"][3:]
    assert np.array_equal(told, near[: told.size])
    with pytest.raises(rm.errors.ModelError, match="are on one body"):
        rm.System(robot, [rm.sensors.TargetCamera("a/eye", "a/bus", sample_time=H)])
