"""All ready-made components: they can be traced, and differ in runs of a batch by parameters."""

import numpy as np
import pytest

import laws_on_small_robots as laws
import remora as rm
from arms import arm
from plain_settings import grouped
from remora.algebra import pose

ARM = arm(2)  # small, so that it is compiled quickly
ROBOTS = {"thruster_set": rm.load("wheeled_bus")}
GOAL = {"j0": 0.3, "j1": -0.2}
MADE = {
    "joint_pd": rm.control.JointPD(ARM, GOAL, 5.0, 2.0, 0.02, torque_output=True),
    "attitude_pd": rm.control.AttitudePD(ARM, (1, 0, 0, 0), 5.0, 2.0, 0.02, torque_output=True),
    "end_effector_wrench": rm.control.EndEffectorWrenchControl(
        ARM, {"tool": pose.from_xyz_rpy([1.0, 0.2, 0.1], [0.1, 0.2, 0.3])}, 4.0, 3.0
    ),
    "rate_gyro": rm.sensors.RateGyro("bus", noise=0.1, drift=0.1, sample_time=0.02),
    "star_tracker": rm.sensors.StarTracker("bus", noise=0.1, sample_time=0.02),
    "joint_encoders": rm.sensors.JointEncoders(
        noise=0.1, speed_noise=0.1, resolution=1e-3, sample_time=0.02
    ),
    "tachometers": rm.sensors.Tachometers(
        noise=0.1, drift=0.1, scale=0.1, limit=0.5, resolution=1e-3, dropout=0.3, sample_time=0.02
    ),
    "accelerometer": rm.sensors.Accelerometer("tool", noise=0.1, sample_time=0.02),
    "force_torque_sensor": rm.sensors.ForceTorqueSensor("j1", noise=0.1, sample_time=0.02),
    "sun_sensor": rm.sensors.SunSensor("bus", noise=0.1, half_angle=1.0, sample_time=0.02),
    "magnetometer": rm.sensors.Magnetometer("tool", noise=0.1, sample_time=0.02),
    "target_camera": rm.sensors.TargetCamera(
        "bus", "tool", noise=0.1, range_noise=0.1, half_angle=2.0, dropout=0.3, sample_time=0.02
    ),
    "state_estimate": rm.estimation.StateEstimate(("j0", "j1"), ("attitude", "rate")),
    "attitude_filter": rm.estimation.AttitudeFilter(0.01, 0.01, 0.1, every=2, sample_time=0.02),
    "first_order_actuator": rm.actuators.FirstOrderActuator(("j0",), limit=2.0),
    "thruster": rm.actuators.Thruster("tool", 3.0),
    "thruster_set": rm.actuators.ThrusterSet(tuple(f"thruster_{i}" for i in range(1, 13)), 0.1),
    "spring": rm.world.Spring(("bus", "tool"), 2.0, 1.0, 0.3),
    "bushing": rm.world.Bushing(("bus", "tool"), 2.0, 0.3, 1.0, 0.2),
    "compliant_capture": rm.world.CompliantCapture("tool", "bus", 0.05, 0.2, 0.1, 50.0, 1.0),
    "wall": rm.world.Wall("tool", (0, 0, 1), (0, 0, 1), 300.0, 20.0),
    "orbit": rm.world.Orbit(altitude=500e3, inclination=0.9, degree=3),
    "signal_source": rm.SignalSource(rm.Profile([0.0, 1.0], [0.0, 2.0])),
    "threshold": rm.sensors.Threshold(3.0, size=3),
    "state_machine": rm.control.StateMachine(
        ("far", "near", "done"),
        ("far -> near: range < 2 for 0.04", "near -> done: after 0.06", "* -> far: range > 5"),
        sample_time=0.02,
    ),
    **{name: component for name, (_, component, _) in laws.MADE.items()},
}


def test_every_component_of_the_table_is_tested():
    assert list(MADE) == list(rm.COMPONENTS)
    assert all(type(MADE[name]) is row for name, row in rm.COMPONENTS.items())


@pytest.mark.parametrize("name", MADE)
def test_each_is_traced_and_has_the_same_values_compiled_and_in_numpy(name):
    inputs = {"threshold.signal": [1.0, 2.0, 3.0], "first_order_actuator.command": [3.0],
              "thruster_set.torque": [0.01, -0.02, 0.05], "state_estimate.positions": [0.1, 0.2],
              "state_estimate.speeds": [0.3, 0.4], "state_estimate.attitude": [0.6, 0.0, 0.8, 0.0],
              "state_estimate.rate": [0.1, 0.2, 0.3], "attitude_filter.rate": [0.1, 0.2, 0.3],
              "attitude_filter.attitude": [0.6, 0.0, 0.8, 0.0],
              "state_machine.range": 1.0, "sun_sensor.direction": [0.1, 0.2, 2.0],
              "magnetometer.field": [1e-5, 2e-5, -4e-5]}  # fmt: skip
    connect = {key: x for key, x in inputs.items() if key.startswith(f"{name}.")}
    robot, _, needed = laws.MADE.get(name, (ROBOTS.get(name, ARM), None, {}))
    connect |= {f"{name}.{key}": x for key, x in needed.items()}
    system = rm.System(robot, [MADE[name]], connect)
    assert dict(system.untraceable) == {}
    q, v = rm.random_state(robot, 3)
    options = {"integrator": "rk4", "step": 0.01, "sample": 0.05, "limits": "ignore"}
    run = rm.simulate(system, q, 0.1 * v, 0.2, **grouped(**options))
    batch = rm.simulate_batch(
        system, q, 0.1 * v, 0.2, integrator=rm.Integrator(step=0.01), record=0.05, runs=2
    )
    assert np.abs(batch.q[0] - run.q).max() < 1e-12
    for signal, values in run.signals.items():
        size = np.maximum(np.abs(values).max(), 1.0)
        assert np.abs(batch.signals[signal][0] - values).max() < 1e-12 * size, signal


def test_a_pd_of_joints_adds_its_reference_to_the_goal():
    law = rm.control.JointPD(ARM, GOAL, 5.0, 2.0, 0.02, reference_input=True, torque_output=True)
    system = rm.System(ARM, [law], {"joint_pd.reference": [0.1, 0.2]})
    q, v = rm.random_state(ARM, 3)
    run = rm.simulate(system, q, v, 0.01, physics=rm.Physics(limits="ignore"))
    moved = rm.control.JointPD(ARM, {"j0": 0.4, "j1": 0.0}, 5.0, 2.0, 0.02)
    expected = moved(0.0, q, v)[6:8]
    assert np.abs(run.signals["joint_pd.torque"][0] - expected).max() < 1e-13
    assert not np.any(run.tau)


def test_a_pd_of_the_attitude_uses_the_measured_rate():
    law = rm.control.AttitudePD(
        ARM, (1, 0, 0, 0), 5.0, 2.0, 0.02, rate_input=True, torque_output=True
    )
    gyro = rm.sensors.RateGyro("bus", bias=(0.1, 0.0, 0.0), sample_time=0.02)
    q, v = rm.neutral(ARM), np.zeros(ARM.nv)
    run = rm.simulate(rm.System(ARM, [gyro, law]), q, v, 0.01)
    assert np.allclose(run.signals["attitude_pd.torque"][0], [-0.2, 0, 0], atol=1e-15)
    acting = rm.control.AttitudePD(ARM, (1, 0, 0, 0), 5.0, 2.0, 0.02, rate_input=True)
    run = rm.simulate(rm.System(ARM, [gyro, acting]), q, v, 0.01)
    assert np.allclose(run.tau[0, :3], [-0.2, 0, 0], atol=1e-15)
