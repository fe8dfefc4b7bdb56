"""Actuators: lag and limits, thrust and direction, in runs and in batches."""

import numpy as np
import pytest

import remora as rm
from laws_on_small_robots import values
from plain_settings import grouped
from sliders import slider

SERVICER = rm.load("servicer")


def at_rest():
    return rm.neutral(SERVICER), np.zeros(SERVICER.nv)


def test_torque_of_joints_follows_its_command_exponentially():
    drive = rm.actuators.FirstOrderActuator(
        ("elbow_pitch", "wrist_roll"), time_constant=0.2, name="drive"
    )
    system = rm.System(SERVICER, [drive], connect={"drive.command": [1.5, -0.5]})
    run = rm.simulate(system, *at_rest(), 0.6, record=0.1)
    exact = (1.0 - np.exp(-run.t / 0.2))[:, None] * [1.5, -0.5]
    assert np.abs(run.signals["drive.torque"] - exact).max() < 1e-9
    assert np.abs(run.joint("elbow_pitch").torque - exact[:, 0]).max() < 1e-9
    assert np.abs(run.joint("wrist_roll").torque - exact[:, 1]).max() < 1e-9
    assert run.signal_columns["drive.torque"].unit == "N m"


def test_commands_are_limited_on_both_sides():
    drive = rm.actuators.FirstOrderActuator(
        ("elbow_pitch", "wrist_roll"), time_constant=0.05, limit=0.8, name="drive"
    )
    system = rm.System(SERVICER, [drive], connect={"drive.command": [2.0, -7.0]})
    run = rm.simulate(system, *at_rest(), 2.0)
    assert np.allclose(run.signals["drive.torque"][-1], [0.8, -0.8], atol=1e-9)


def test_a_torque_on_a_body_acts_in_the_axes_of_the_frame():
    wheels = rm.actuators.FirstOrderActuator(frame="bus", time_constant=0.01, name="wheels")
    system = rm.System(SERVICER, [wheels], connect={"wheels.command": [0.0, 0.0, 1.0]})
    run = rm.simulate(system, *at_rest(), 0.5)
    assert np.allclose(run.wrenches[-1, 0], [0, 0, 0, 0, 0, 1.0], atol=1e-9)


def test_time_constants_differ_in_a_batch():
    robot = slider()
    name = next(j.name for j in robot.joints if j.kind == "prismatic")
    drive = rm.actuators.FirstOrderActuator((name,), time_constant=1.0, name="drive")
    system = rm.System(robot, [drive], connect={"drive.command": [1.0]})
    lags = np.array([0.1, 0.5, 2.0])
    batch = rm.simulate_batch(
        system,
        rm.neutral(robot),
        np.zeros(robot.nv),
        1.0,
        integrator=rm.Integrator(step=1e-3),
        runs=rm.Runs(parameters={"drive.time_constant": lags}),
    )
    assert np.abs(batch.signals["drive.torque"][:, -1, 0] - (1 - np.exp(-1 / lags))).max() < 1e-8


@pytest.mark.parametrize(("command", "force"), [(-1.0, 0.0), (0.25, 0.5), (1.0, 2.0), (9.0, 2.0)])
def test_a_thruster_pushes_along_its_direction_between_off_and_on(command, force):
    thruster = rm.actuators.Thruster("bus", 2.0, (0.0, 3.0, 4.0))
    system = rm.System(SERVICER, [thruster], connect={"thruster.command": command})
    run = rm.simulate(system, *at_rest(), 0.1)
    assert np.all(run.signals["thruster.force"] == force)
    assert np.allclose(run.wrenches[0, 0, :3], [0, 0.6 * force, 0.8 * force], atol=1e-15)


def test_a_thruster_is_off_if_nothing_commands_it():
    run = rm.simulate(rm.System(SERVICER, [rm.actuators.Thruster("bus", 2.0)]), *at_rest(), 0.1)
    assert not np.any(run.signals["thruster.force"])


def test_a_burn_changes_momentum_by_its_impulse():
    burn = rm.SignalSource(rm.Pulse(1.0, 2.5, 1.0), name="burn")
    system = rm.System(
        SERVICER,
        [burn, rm.actuators.Thruster("bus", 2.0, (0, 1, 0))],
        {"thruster.command": "burn.value"},
    )
    for options in ({"rtol": 1e-11}, {"integrator": "rk4", "step": 0.4}):
        run = rm.simulate(system, *at_rest(), 4.0, **grouped(**options))
        gained = np.linalg.norm(run.momentum[-1, :3])
        # the bus turns slowly, so that the impulse is a little less than 3 N s
        exact = rm.simulate(
            SERVICER,
            *at_rest(),
            4.0,
            integrator=rm.Integrator(rtol=1e-12),
            wrenches={"bus": rm.Pulse(1.0, 2.5, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0])},
        )
        assert abs(gained - np.linalg.norm(exact.momentum[-1, :3])) < 1e-6
        assert 2.9 < gained < 3.0


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: rm.actuators.FirstOrderActuator(("elbow_pitch",), time_constant=0.0),
            "greater than 0",
        ),
        (
            lambda: rm.actuators.FirstOrderActuator(("elbow_pitch",), limit=-1.0),
            "limit of an actuator",
        ),
        (lambda: rm.actuators.FirstOrderActuator(), "acts on joints"),
        (lambda: rm.actuators.FirstOrderActuator(("elbow_pitch",), "bus"), "acts on joints"),
        (lambda: rm.System(SERVICER, [rm.actuators.FirstOrderActuator(("elbo",))]), "elbo"),
        (lambda: rm.actuators.Thruster("bus", 0.0), "thrust of a thruster"),
        (lambda: rm.actuators.Thruster("bus", 1.0, (0, 0, 0)), "not all zero"),
        (lambda: rm.actuators.Thruster("bus", 1.0, 1.0), "three numbers"),
        (lambda: rm.actuators.Thruster("bus", "much"), "must be a number"),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make()


# Thruster sets ------------------------------------------------------------------------------------

BUS = rm.load("wheeled_bus")
TWELVE = tuple(f"thruster_{i}" for i in range(1, 13))


@pytest.mark.parametrize("seed", range(3))
def test_a_thruster_set_exerts_the_demand_by_pushing_only(seed):
    rng = np.random.default_rng(seed)
    torque, force = 0.01 * rng.normal(size=3), 0.02 * rng.normal(size=3)
    found = values(
        rm.actuators.ThrusterSet(TWELVE, 1.0), BUS, rm.neutral(BUS), np.zeros(10),
        {"torque": torque, "force": force},
    )  # fmt: skip
    assert np.all(found["thrust"] >= 0.0)
    assert np.count_nonzero(found["thrust"]) <= 6
    assert np.abs(found["exerted"] - torque).max() < 1e-14


def test_a_demand_beyond_the_thrust_keeps_its_direction():
    torque = np.array([1.0, -2.0, 0.5])
    found = values(rm.actuators.ThrusterSet(TWELVE, 0.1), BUS, rm.neutral(BUS), np.zeros(10),
                   {"torque": torque})  # fmt: skip
    assert found["thrust"].max() == pytest.approx(0.1)
    assert np.linalg.norm(np.cross(found["exerted"], torque)) < 1e-12
    assert float(found["exerted"] @ torque) > 0.0
    still = values(rm.actuators.ThrusterSet(TWELVE, 0.1), BUS, rm.neutral(BUS), np.zeros(10))
    assert not np.any(still["thrust"])


def test_a_couple_of_thrusters_turns_the_bus_without_pushing_it():
    demand = {"thruster_set.torque": [0.0, 0.0, 0.02]}
    system = rm.System(BUS, [rm.actuators.ThrusterSet(TWELVE, 0.1)], demand)
    run = rm.simulate(system, rm.neutral(BUS), np.zeros(10), 5.0, record=1.0)
    assert np.abs(run.momentum[-1] - [0, 0, 0, 0, 0, 0.1]).max() < 1e-12


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((TWELVE[:6], 0.1), "rank < 6"),
        ((TWELVE[:11], 0.1), "'thruster_11' has no opposite one"),
        ((("wheel_1", *TWELVE), 0.1), "'wheel_1' is not on the base"),
    ],
)
def test_thruster_sets_that_cannot_work_are_refused(given, reason):
    with pytest.raises(rm.RemoraError, match=reason):
        rm.System(BUS, [rm.actuators.ThrusterSet(*given)])
    with pytest.raises(rm.RemoraError, match="greater than 0"):
        rm.actuators.ThrusterSet(TWELVE, 0.0)
    with pytest.raises(rm.RemoraError, match="listed twice"):
        rm.actuators.ThrusterSet((*TWELVE, TWELVE[0]), 0.1)
