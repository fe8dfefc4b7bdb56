"""The closed loop as one C function: the numbers of a run in Python, the same bits everywhere."""

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import CROSS, CModule, built_test, verdict
from plain_settings import grouped
from remora.components.actions import GeneralizedForce, JointForce, Wrench
from remora.components.component import Component, Interface
from remora.components.evaluation import Instant
from remora.components.noise import normals
from remora.components.signals import Signal
from remora.components.system import System
from remora.errors import InvalidValue, UnknownName
from remora.model.state import log_rate
from remora.simulation.export.c_loop import save_loop_c
from remora.simulation.systems.noise_streams import noise_streams

ROBOT = rm.load("servicer")


class Encoder(Component):
    """Measures the joints with noise."""

    deviation: float = 1e-3

    def interface(self, robot):
        return Interface(outputs={"angles": Signal(7, "rad")}, noise={"angles": 7})

    def outputs(self, at):
        return {"angles": at.q[..., 8:] + self.deviation * at.noise["angles"]}


class Control(Component):
    """PI control of the joints with the speeds of a difference."""

    kp: float = 3.0
    ki: float = 0.2
    kd: float = 4.0

    def interface(self, robot):
        return Interface(
            inputs={"angles": Signal(7, "rad"), "goal": Signal(7, "rad")},
            discrete={"integral": np.zeros(7), "last": np.zeros(7)},
        )

    def act(self, at):
        angles, m = at.inputs["angles"], at.memory
        error, speed = at.inputs["goal"] - angles, (angles - m["last"]) / self.sample_time
        tau = self.kp * error + self.ki * m["integral"] - self.kd * (0.1 * speed)
        names = [j.name for j in at.robot.joints[1:]]
        return [JointForce(n, tau[..., i : i + 1]) for i, n in enumerate(names)]

    def update(self, at):
        angles = at.inputs["angles"]
        error = at.inputs["goal"] - angles
        return {"integral": at.memory["integral"] + self.sample_time * error, "last": angles}


class Thruster(Component):
    """A continuous component with state: a lag, and a force that depends on time."""

    rate: float = 2.0

    def interface(self, robot):
        return Interface(outputs={"thrust": Signal((), "N")}, continuous={"level": 0.5})

    def outputs(self, at):
        return {"thrust": at.state["level"] * 3.0}

    def derivative(self, at):
        return {"level": self.rate * (np.sin(1.3 * at.t) - at.state["level"])}

    def act(self, at):
        up = np.array([0.0, 0.0, 1.0]) * at.state["level"][..., None]
        return [
            Wrench("tool", force=0.1 * up, axes="inertial"),
            GeneralizedForce(-0.5 * at.v),
        ]


def loop(**timing):
    timing = {"sample_time": 0.02, "delay": 0.04} | timing
    goal = [0.2, 0.4, -0.1, -0.6, 0.0, 0.3, 0.1]
    parts = [Encoder(sample_time=0.02), Control(**timing), Thruster()]
    return System(ROBOT, parts, connect={"control.goal": goal})


def reference(system, q, v, noises, h):
    """Return q, v, x and z after RK4 steps on the manifold, by Python's evaluation."""
    robot = system.robot
    arguments = ("q", "v", "tau", "wrenches")
    dynamics = rm.compile(rm.forward_dynamics, robot, arguments=arguments)
    rate_of = rm.compile(log_rate, robot, arguments=("dq", "v"))
    moved = rm.compile(rm.integrate, robot)
    losses = rm.compile(rm.dynamics.friction_forces, robot)
    x, z = system.initial_x, system.initial_z

    def rates(t, q, u, v, x):
        tau, wrenches = (now := Instant(system, t, q, v, x, z)).loads()
        return rate_of(u, v), dynamics(q, v, tau + losses(v), wrenches), now.derivative()

    for i, noise in enumerate(noises):
        t, still = i * h, np.zeros(robot.nv)
        for update in system.schedule:
            tick, left = divmod(round((t - update.offset) / h), round(update.sample_time / h))
            if tick >= 0 and left == 0:
                now = Instant(system, t, q, v, x, z)
                ticks = update.kind == "tick"
                z = now.ticked(update.names, noise) if ticks else now.released(update.names)
        k = [rates(t, q, still, v, x)]
        for c in (0.5, 0.5, 1.0):
            u, dv, dx = (c * h * rate for rate in k[-1])
            k.append(rates(t + c * h, moved(q, u), u, v + dv, x + dx))
        u, dv, dx = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(*k, strict=True))
        q, v, x = moved(q, u), v + dv, x + dx
    return q, v, x, z


def start():
    q, v = rm.neutral(ROBOT), np.zeros(ROBOT.nv)
    q[8:] = [0.0, 0.5, 0.0, -1.0, 0.0, 0.7, 0.0]
    return rm.normalize(ROBOT, q), v + 0.01 * np.arange(ROBOT.nv)


CASES = {
    "no delay": ({"delay": 0.0}, 0.01),
    "delay in ticks": ({}, 0.02),
    "delay between ticks, offset": ({"delay": 0.03, "offset": 0.01, "sample_time": 0.04}, 0.01),
}


PARAMETERS = {
    "encoder_deviation": 1e-3, "control_kp": 3.0, "control_ki": 0.2, "control_kd": 4.0,
    "thruster_rate": 2.0,
}  # fmt: skip


def run_c(system, folder, h, noises):
    """Return q, v, x and a part of z (integral and held forces) after steps in C."""
    save_loop_c(system, folder, h)
    c = CModule(folder, "servicer")
    c.set("parameters", **PARAMETERS)
    c.call("init", *start())
    for noise in noises:
        c.set("noise", encoder_angles=noise)
        c.call("step")
    assert int(c.get("state", "steps")[0]) == len(noises)
    held = [f"control_force_{j.name}" for j in ROBOT.joints[1:]]
    parts = (("q",), ("v",), ("thruster_level",), ("control_integral", *held))
    return [c.get("state", *names) for names in parts]


def assert_close(found, expected):
    for one, two in zip(found, expected, strict=True):
        assert np.max(np.abs(one - two)) < 1e-12 * np.max(np.abs(two))


@needs.compiler
@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_the_textbook(case, tmp_path):
    timing, h = CASES[case]
    system = loop(**timing)
    noises = np.random.default_rng(2).normal(size=(round(1.0 / h), system.noise_size))
    found = run_c(system, tmp_path, h, noises)
    q, v, x, z = reference(system, *start(), noises, h)
    layout = system.layouts["control"]
    part = np.concatenate([z[layout.discrete][:7], z[layout.effective]])
    assert np.linalg.norm(part) > 0.1
    assert_close(found, [q, v, x, part])


@needs.compiler
@pytest.mark.parametrize("case", CASES)
def test_ten_seconds_are_those_of_simulate(case, tmp_path):
    """The servicer under sampled control with noise and delay, 1e-12 after ten seconds."""
    timing, h = CASES[case]
    system = loop(**timing)
    steps, every = round(10.0 / h), round(0.02 / h)
    stream, size = noise_streams(system)["encoder"], system.noise_size
    noises = [normals(7, 0, stream, k // every, size) for k in range(steps)]
    found = run_c(system, tmp_path, h, noises)
    settings = {"integrator": "rk4", "step": h, "limits": "ignore"}  # no steps at limits
    run = rm.simulate(system, *start(), 10.0, **grouped(seed=7, **settings))
    assert np.linalg.norm(run.q[-1, 8:] - run.q[0, 8:]) > 0.5  # something happened
    assert_close(found[:3], [run.q[-1], run.v[-1], run.signals["thruster.level"][-1:]])


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_bit_of_the_recorded_steps(dtype, tmp_path):
    timing, h = CASES["delay between ticks, offset"]
    files = save_loop_c(loop(**timing), tmp_path, h, name="my loop", dtype=dtype)
    assert [f.name for f in files] == ["my_loop.h", "my_loop.c", "my_loop_test.c"]
    for level in ("-O0", "-O2"):
        assert verdict(built_test(tmp_path, "my_loop", level)) == (0, 0, "good")


@pytest.mark.parametrize(("compiler", "emulator"), CROSS)
def test_every_bit_on_other_processors(compiler, emulator, tmp_path):
    needs.programs(compiler, emulator)
    save_loop_c(loop(), tmp_path, 0.02)
    program = built_test(tmp_path, "servicer", "-static", "-O1", compiler=compiler)
    assert verdict(emulator, program) == (0, 0, "good")


@needs.compiler
def test_controllers_with_different_sample_times(tmp_path):
    """Joints at 50 Hz, attitude at 20 Hz with a delay, as rm.simulate does it."""
    joints = rm.control.JointPD(ROBOT, {"elbow_pitch": -0.4, "shoulder_pitch": 0.1}, 2.0, 4.0, 0.02)
    attitude = rm.control.AttitudePD(
        ROBOT, goal=[1, 0, 0, 0], kp=30.0, kd=200.0, sample_time=0.05, delay=0.02, offset=0.03
    )
    system = System(ROBOT, {"joints": joints, "attitude": attitude})
    save_loop_c(system, tmp_path, 0.01, name="two")
    c = CModule(tmp_path, "two")
    c.set("parameters", **{k.replace(".", "_"): x for k, x in system.parameters.items()})
    q, v = start()
    c.call("init", q, v)
    for _ in range(500):
        c.call("step")
    settings = {"integrator": "rk4", "step": 0.01, "limits": "ignore"}
    run = rm.simulate(system, q, v, 5.0, **grouped(**settings))
    assert_close([c.get("state", "q"), c.get("state", "v")], [run.q[-1], run.v[-1]])
    assert verdict(built_test(tmp_path, "two", "-O1")) == (0, 0, "good")


@needs.compiler
def test_a_robot_without_components(tmp_path):
    """No parameters, no noise, no updates: a free motion conserves momentum."""
    save_loop_c(System(ROBOT), tmp_path, 0.01)
    c = CModule(tmp_path, "servicer")
    assert c.functions == {"init": ["state"], "step": ["state"]}
    q, v = start()
    c.call("init", q, v)
    for _ in range(100):
        c.call("step")
    after = rm.momentum(ROBOT, c.get("state", "q"), c.get("state", "v"))
    np.testing.assert_allclose(after, rm.momentum(ROBOT, q, v), rtol=1e-9, atol=1e-11)
    assert verdict(built_test(tmp_path, "servicer")) == (0, 0, "good")


@needs.compiler
def test_another_start_time(tmp_path):
    """The time that components see begins at state->start."""
    save_loop_c(System(ROBOT, [Thruster()]), tmp_path, 0.01)
    c = CModule(tmp_path, "servicer")
    c.set("parameters", thruster_rate=2.0)
    q, v = start()
    c.call("init", q, v)
    c.set("state", start=np.pi / 1.3)  # the sine changes its sign
    c.call("step")
    (level,) = c.get("state", "thruster_level")
    # to second order: level + h rate (sin - level) + ...
    exact = 0.5 * np.exp(-0.02) - 1.3 * 0.01**2
    assert abs(level - exact) < 2e-6


def test_refusals(tmp_path):
    system = loop()
    for step in (0.0, -1.0, np.nan, np.inf, True, "0.01"):
        with pytest.raises(InvalidValue, match="step must be a positive number of seconds"):
            save_loop_c(system, tmp_path, step)
    with pytest.raises(UnknownName, match="float16"):
        save_loop_c(system, tmp_path, 0.02, dtype="float16")
    assert list(tmp_path.iterdir()) == []
