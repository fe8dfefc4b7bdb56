"""Accelerometers and force-torque sensors: the true motion with all loads, in every kind of run."""

import numpy as np
import pytest

import needs
import remora as rm
from arms import arm
from c_structs import built_test, verdict
from remora.algebra import pose, quaternion
from remora.algebra.array_ops import concatenate, stack
from remora.components.component import Component, Interface
from remora.components.signals import Signal

H = 0.05
SETTINGS = {
    "integrator": rm.Integrator("rk4", step=H / 2),
    "record": H,
    "physics": rm.Physics(limits="ignore"),
}


def box():
    """Return a body whose centre of mass is not its origin, with a frame elsewhere."""
    built = rm.Builder("box").body("bus", mass=100.0, com=(0.1, 0.2, -0.1), inertia=(10, 20, 30))
    built = built.joint("base", "free", None, "bus")
    return built.frame("imu", "bus", xyz=(0.5, -0.3, 0.7), rpy=(0.3, 0.2, -0.5)).build()


def hand(**options):
    """Return an arm on a free base, with friction and springs."""
    return arm(2, **options)


def specific_force(robot, q, v, vdot, frame):
    """Return it by the Jacobian in inertial axes and its rate: another way than the sensor's."""
    J = rm.jacobian(robot, q, frame, axes="world")[3:]
    dJ = rm.dynamics.jacobian_rate(robot, q, v, frame, axes="world")[3:]
    back = quaternion.conjugate(rm.frame_pose(robot, q, frame)[:4])
    return quaternion.rotate(back, J @ vdot + dJ @ v - np.asarray(robot.gravity))


def of_recorded_loads(run, robot, k, frame):
    """Return the specific force at sample k from the recorded loads."""
    pushed = None if run.wrenches is None else run.wrenches[k]
    tau = run.tau[k] + run.passive[k]
    return specific_force(
        robot, run.q[k], run.v[k],
        rm.forward_dynamics(robot, run.q[k], run.v[k], tau, pushed), frame,
    )  # fmt: skip


def test_a_body_that_tumbles_freely():
    """f = ω̇ × r + ω × (ω × r) with Euler's equations, r from the centre of mass."""
    robot = box()
    system = rm.System(robot, [rm.sensors.Accelerometer("imu", sample_time=H, name="imu")])
    v = np.array([0.5, -0.3, 0.4, 0.1, 0.2, 0.3])
    run = rm.simulate(system, rm.neutral(robot), v, 2.0, **SETTINGS)
    placed, w, inertia = robot.frame("imu").placement, run.v[:-1, :3], np.diag([10.0, 20.0, 30.0])
    r = pose.translation(placed) - np.array([0.1, 0.2, -0.1])
    rate = -np.cross(w, w @ inertia) / np.diag(inertia)
    force = np.cross(rate, r) + np.cross(w, np.cross(w, r))
    force = quaternion.rotate(quaternion.conjugate(pose.rotation(placed)), force)
    found = run.signals["imu.specific_force"][1:]
    assert np.abs(force).max() > 0.3
    assert np.abs(found - force).max() < 1e-12 * np.abs(force).max()


def test_at_rest_and_in_free_fall():
    for kind, expected in (("fixed", 9.81), ("free", 0.0)):
        built = rm.Builder("still", gravity=(0, 0, -9.81)).body("bus", mass=2.0, inertia=(1, 1, 1))
        built = built.joint("base", kind, None, "bus").body("wheel", mass=1.0, inertia=(1, 1, 1))
        robot = built.joint("turn", "revolute", "bus", "wheel", axis=(0, 0, 1)).build()
        system = rm.System(robot, [rm.sensors.Accelerometer("wheel", sample_time=H, name="imu")])
        run = rm.simulate(system, rm.neutral(robot), np.zeros(robot.nv), 2 * H, record=H)
        assert run.signals["imu.specific_force"][1] == pytest.approx([0, 0, expected], abs=1e-13)


def push(t, q, v):
    return concatenate([np.zeros(6), stack([0.3 + 0.1 * t, -0.2])])


def unseen(t, q, v):
    return push(float(t), q, v)


@pytest.mark.parametrize("torque", [None, push, unseen], ids=["none", "traced", "called"])
@pytest.mark.parametrize("method", ["rk4", "dop853", "radau"])
def test_all_loads_of_a_run_are_measured(method, torque):
    """Thrust, springs, friction, and the torque of the phase, also if Python computes it."""
    robot = hand()
    system = rm.System(robot, [
        rm.actuators.Thruster("bus", 3.0, direction=(1.0, 2.0, 0.5), name="thruster"),
        rm.world.Spring(("bus", "tool"), 2.0, 1.0, 0.3),
        rm.sensors.Accelerometer("tool", sample_time=H, name="imu"),
    ], {"thruster.command": 0.8})  # fmt: skip
    q, v = rm.random_state(robot, 3)
    integrator = rm.Integrator(method, step=H / 2) if method == "rk4" else rm.Integrator(method)
    settings = SETTINGS | {"integrator": integrator}
    more = {} if torque is None else {"torque": torque}
    run = rm.simulate(system, q, 0.3 * v, 0.5, **settings, **more)
    found = run.signals["imu.specific_force"]
    for k in range(10):
        expected = of_recorded_loads(run, robot, k, "tool")
        assert np.abs(found[k + 1] - expected).max() < 1e-11 * np.abs(expected).max()
    if torque is not unseen and method == "rk4":
        batch = rm.simulate_batch(system, q, 0.3 * v, 0.5, runs=2, **settings, **more)
        assert np.abs(batch.signals["imu.specific_force"][1] - found).max() < 1e-11


@pytest.mark.parametrize("joints", [1, 2])
def test_joints_that_are_held_and_driven(joints):
    robot = hand()
    system = rm.System(robot, [rm.sensors.Accelerometer("tool", sample_time=H, name="imu")])
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    options = {"prescribed": {"j0": lambda t: 0.8 * t * t}}
    options |= {"locked": ["j1"]} if joints == 2 else {}
    run = rm.simulate(system, q, v, 0.5, torque=push, **options, **SETTINGS)
    found = run.signals["imu.specific_force"]
    for k in range(10):
        expected = of_recorded_loads(run, robot, k, "tool")
        assert np.abs(found[k + 1] - expected).max() < 1e-11
    batch = rm.simulate_batch(system, q, v, 0.5, torque=push, runs=2, **options, **SETTINGS)
    assert np.abs(batch.signals["imu.specific_force"][0] - found).max() < 1e-11


class Commanded(Component):
    """A drive that reads a sampled command."""

    def interface(self, robot):
        return Interface(inputs={"torque": Signal((), "N m")})

    def act(self, at):
        return rm.JointForce("j1", at.inputs["torque"])


def test_the_loads_are_those_before_the_tick():
    """A command of the same tick has no effect yet, wherever the sensor is in the list."""
    robot = hand()
    steps = rm.SignalSource(lambda t: 3.0 * t + 1.0, "N m", name="steps", sample_time=H)
    sensor = rm.sensors.Accelerometer("tool", sample_time=H, name="imu")
    q, v = rm.random_state(robot, 3)
    runs = []
    for parts in ([steps, Commanded(), sensor], [sensor, Commanded(), steps]):
        system = rm.System(robot, parts, {"commanded.torque": "steps.value"})
        runs.append(rm.simulate(system, q, 0.1 * v, 0.5, **SETTINGS))
    first, second = (run.signals["imu.specific_force"] for run in runs)
    assert np.array_equal(first, second)
    run = runs[0]
    for k in range(1, 10):  # a recorded sample at a tick has the loads before it
        expected = of_recorded_loads(run, robot, k, "tool")
        assert np.abs(first[k + 1] - expected).max() < 1e-11


def test_runs_of_a_batch_are_single_runs_with_dispersed_masses_and_noise():
    robot = hand()
    sensors = [
        rm.sensors.Accelerometer("tool", noise=1e-3, drift=1e-4, scale=0.01, misalignment=0.02,
                                 resolution=1e-4, limit=5.0, dropout=0.2, sample_time=H,
                                 delay=2 * H, name="imu"),
        rm.sensors.ForceTorqueSensor("j1", noise=1e-3, sample_time=2 * H, name="wrist"),
    ]  # fmt: skip
    system = rm.System(robot, sensors)
    q, v = rm.random_state(robot, 3)
    body, masses = robot.bodies[-1].name, np.array([0.5, 1.0, 2.0])
    values = {f"{body}.mass": masses, "imu.bias": 0.1 * np.arange(9.0).reshape(3, 3)}
    batch = rm.simulate_batch(
        system, q, 0.3 * v, 1.0, runs=rm.Runs(parameters=values, seed=3), **SETTINGS
    )
    for k in range(3):
        one = system.with_parameters({name: x[k] for name, x in values.items()})
        run = rm.simulate(one, q, 0.3 * v, 1.0, seed=(3, k), **SETTINGS)
        for name in ("imu.specific_force", "wrist.wrench", "imu.valid"):
            assert np.abs(batch.signals[name][k] - run.signals[name]).max() < 1e-11, name


def test_the_load_on_a_joint():
    """[f, τ] of a joint: reaction and drive, by `rm.reaction_wrenches`; gravity and wrenches."""
    robot = hand()
    tool = rm.sensors.ForceTorqueSensor("j1", "tool", sample_time=H, name="at_tool")
    joint = rm.sensors.ForceTorqueSensor("j1", sample_time=H, name="joint")
    pushed = rm.actuators.Thruster("tool", 3.0, direction=(1.0, 2.0, 0.5), name="thruster")
    system = rm.System(robot, [tool, joint, pushed], {"thruster.command": 0.8})
    q, v = rm.random_state(robot, 3)
    run = rm.simulate(system, q, 0.3 * v, 0.5, torque=push, **SETTINGS)
    place, index = robot.frame("tool").placement, robot.joint_index("j1")
    offset, turn = pose.translation(place), pose.rotation(place)
    axis = np.asarray(rm.jacobian(robot, q, robot.bodies[index].name)[:3, -1])
    for k in range(10):
        tau = run.tau[k] + run.passive[k]
        W = rm.reaction_wrenches(robot, run.q[k], run.v[k], tau, run.wrenches[k])[index].copy()
        W[3:] += axis * tau[-1]
        found = run.signals["joint.wrench"][k + 1]
        assert np.abs(found - W).max() < 1e-11 * np.abs(W).max()
        W[3:] -= np.cross(offset, W[:3])
        W = quaternion.rotate(quaternion.conjugate(turn), W.reshape(2, 3)).reshape(6)
        assert np.abs(run.signals["at_tool.wrench"][k + 1] - W).max() < 1e-11 * np.abs(W).max()


@needs.compiler
def test_the_loop_and_the_sensors_in_c(tmp_path):
    robot = hand()
    sensors = [
        rm.sensors.Accelerometer("tool", noise=1e-3, drift=1e-4, sample_time=H, name="imu"),
        rm.sensors.ForceTorqueSensor("j1", sample_time=H, name="wrist"),
        rm.actuators.Thruster("bus", 3.0, name="thruster"),
    ]
    system = rm.System(robot, sensors, {"thruster.command": 0.8})
    for name in ("imu", "wrist"):
        rm.save_component_c(system, name, tmp_path)
        assert "acceleration" in (tmp_path / f"{name}.h").read_text()
        assert verdict(built_test(tmp_path, name, "-O1")) == (0, 0, "good")
    rm.save_loop_c(system, tmp_path, H, name="loop")
    assert verdict(built_test(tmp_path, "loop", "-O1")) == (0, 0, "good")


class Reader(Component):
    """A component of a user that reads the true acceleration."""

    def interface(self, robot):
        return Interface(
            inputs={"motion": Signal(robot.nv, source="motion.acceleration")},
            outputs={"first": Signal()},
        )

    def outputs(self, at):
        return {"first": at.inputs["motion"][..., 0]}


class Law(Reader):
    uses_design = True


def test_who_may_read_the_true_motion():
    robot = hand()
    rm.System(robot, [Reader(sample_time=H)])
    with pytest.raises(rm.errors.ModelError, match="known at ticks only"):
        rm.System(robot, [Reader()])
    with pytest.raises(rm.errors.ModelError, match="which control laws do not know"):
        rm.System(robot, [Law(sample_time=H)])
    with pytest.raises(rm.errors.ModelError, match="carries the base"):
        rm.System(robot, [rm.sensors.ForceTorqueSensor("base", sample_time=H)])
    with pytest.raises(rm.errors.ModelError, match="must be on 'link_0'"):
        rm.System(robot, [rm.sensors.ForceTorqueSensor("j0", "tool", sample_time=H)])
