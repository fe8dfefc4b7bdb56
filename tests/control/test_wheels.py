"""Reaction wheels: allocation, null motion, saturation, and desaturation."""

import numpy as np
import pytest

import remora as rm
from arms import wheeled
from laws_on_small_robots import acting, values
from remora.actuators.reaction_wheels import spin_axes, spin_inertias

NAMES = {n: tuple(f"w{i}" for i in range(n)) for n in (3, 4, 6)}
DEMAND = np.array([0.02, -0.03, 0.01])
TETRAHEDRON = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])


@pytest.mark.parametrize("count", NAMES)
def test_the_torque_on_the_bus_is_the_demand_for_any_number_of_wheels(count):
    robot = wheeled(count)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    law = rm.actuators.ReactionWheels(NAMES[count], 10.0, 1e3)
    found = values(law, robot, q, v, {"command": DEMAND})
    assert np.abs(found["torque"] - DEMAND).max() < 1e-15
    # what the robot does with these torques: all momentum stays zero, the bus turns as told
    axes = spin_axes(robot, NAMES[count])
    tau = np.concatenate([np.zeros(6), -np.linalg.pinv(axes) @ DEMAND])
    vdot = rm.forward_dynamics(robot, q, v, tau)
    inertias = spin_inertias(robot, NAMES[count])
    bus = rm.dynamics.locked_inertia(robot, q) - (axes * inertias) @ axes.T
    assert np.abs(bus @ vdot[:3] - DEMAND).max() < 1e-12


def test_null_motion_changes_speeds_without_a_torque():
    """Motors of wheels in a tetrahedron brake them to the common speed, drives included."""
    robot = wheeled(4, rotor_inertia=2e-3, axes=TETRAHEDRON)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    axes = spin_axes(robot, NAMES[4])
    null = np.linalg.svd(axes)[2][-1]
    v[6:] = 100.0 * null
    assert np.ptp(null) < 1e-15
    goal = -30.0
    law = rm.actuators.ReactionWheels(NAMES[4], 10.0, 1e3, null_gain=0.5, speeds=goal)
    found = values(law, robot, q, v, {"command": np.zeros(3)})
    assert np.abs(found["torque"]).max() < 1e-14
    assert np.abs(found["momentum"]).max() < 1e-12
    drives = acting(law, robot, q, v, {"command": np.zeros(3)})
    motors = np.concatenate([drive.numbers() for drive in drives])
    assert motors == pytest.approx(-0.5 * (5e-3 + 2e-3) * (v[6:] - goal), rel=1e-12)


def test_null_motion_ends_at_the_common_speed():
    robot, goal = wheeled(4, rotor_inertia=2e-3, axes=TETRAHEDRON), -30.0
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = 50.0
    law = rm.actuators.ReactionWheels(NAMES[4], 10.0, 1e3, null_gain=0.5, speeds=goal)
    system = rm.System(robot, [law], {"reaction_wheels.command": np.zeros(3)})
    run = rm.simulate(system, q, v, 10.0, record=5.0)
    expected = goal + np.exp(-0.5 * run.t[:, None]) * (v[6:] - goal)
    assert np.abs(run.v[:, 6:] - expected).max() < 1e-8
    assert np.abs(run.v[-1, :6]).max() < 1e-9


def test_the_momentum_is_that_of_wheels_and_drives():
    robot = wheeled(3, rotor_inertia=2e-3)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = 10.0, -20.0, 5.0
    law = rm.actuators.ReactionWheels(NAMES[3], 10.0, 1e3)
    found = values(law, robot, q, v, {"command": np.zeros(3)})["momentum"]
    by_hand = sum((5e-3 + 2e-3) * v[6 + i] * robot.joints[f"w{i}"].axes[0] for i in range(3))
    assert np.abs(found - by_hand).max() < 1e-15


def test_limits_of_torque_and_speed():
    robot = wheeled(3)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    v[6:] = 60.0, -60.0, 0.0
    axes = spin_axes(robot, NAMES[3])
    law = rm.actuators.ReactionWheels(NAMES[3], 0.1, 50.0)
    for sign in (1.0, -1.0):
        found = values(law, robot, q, v, {"command": sign * axes @ np.array([5.0, 5.0, 5.0])})
        motors = -np.linalg.solve(axes, found["torque"])
        # too fast already: only a torque that brakes, of at most 0.1 N m
        expected = [-0.1, 0.0, -0.1] if sign > 0 else [0.0, 0.1, 0.1]
        assert np.abs(motors - expected).max() < 1e-14


def test_wheels_that_saturate_lose_the_attitude_and_keep_it_when_desaturated():
    """A constant torque on the bus fills the wheels; thrusters empty them, and the bus stays."""
    robot = wheeled(4)

    class Push(rm.Component):
        def act(self, at):
            return rm.Wrench("bus", torque=np.array([0.01, 0.0, 0.0]))

    tick = {"sample_time": 0.2}
    law = rm.control.AttitudePD(
        robot, (1, 0, 0, 0), 2.0, 6.0, 0.2, torque_output=True, name="attitude"
    )
    wheels = rm.actuators.ReactionWheels(NAMES[4], 0.05, 150.0, **tick)
    dump = rm.control.WheelDesaturation(0.5, 0.03, 0.8, 0.1, **tick)
    connect = {"reaction_wheels.command": "attitude.torque"}
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    bare = rm.System(robot, [law, wheels, Push()], connect)
    run = rm.simulate(bare, q, v, 300.0, record=1.0, integrator=rm.Integrator(rtol=1e-8))
    assert np.abs(run.signals["reaction_wheels.speed"]).max() > 149.9
    turned = 2 * np.arccos(np.clip(np.abs(run.q[:, 0]), 0, 1))
    assert turned[-1] > 0.1
    connect["reaction_wheels.external"] = "wheel_desaturation.torque"
    held = rm.System(robot, [law, wheels, dump, Push()], connect)
    run = rm.simulate(held, q, v, 300.0, record=1.0, integrator=rm.Integrator(rtol=1e-8))
    assert np.abs(run.signals["reaction_wheels.speed"]).max() < 149.0
    turned = 2 * np.arccos(np.clip(np.abs(run.q[:, 0]), 0, 1))
    assert turned.max() < 0.02
    momentum = np.linalg.norm(run.signals["reaction_wheels.momentum"], axis=1)
    firing = run.signals["wheel_desaturation.firing"]
    assert np.sum(np.diff(firing) > 0.5) >= 2  # it comes on more than once
    assert momentum.max() < 0.85


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: rm.actuators.ReactionWheels(("w0", "w1"), 1, 1), "do not span space"),
        (
            lambda: rm.actuators.ReactionWheels(("base", "w1", "w2"), 1, 1),
            "not a revolute joint of the base",
        ),
        (lambda: rm.actuators.ReactionWheels(NAMES[3], 0, 1), "greater than 0"),
        (lambda: rm.control.WheelDesaturation(1, 1, 1, 2, sample_time=0.1), "must be below upper"),
        (lambda: rm.control.WheelDesaturation(1, 1, 2, 1), "needs a sample_time"),
    ],
)
def test_refusals(make, told):
    with pytest.raises(rm.RemoraError, match=told):
        make().interface(wheeled(3))
