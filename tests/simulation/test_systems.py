"""Systems in single runs: continuous components, sampled ones, energy and momentum."""

import copy
import pickle

import numpy as np
import pytest
from scipy.linalg import expm

import remora as rm
from plain_settings import grouped
from sliders import slider

METHODS = ["dop853", "dopri5", "radau", "rk4"]
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def step_of(integrator, step):
    return {
        "integrator": integrator,
        "step": step if integrator in ("rk4", "variational") else None,
    }


def two_bodies():
    """Two masses that slide along a common axis, far from everything."""
    builder = rm.Builder("two").body("a", mass=2.0, inertia=(1, 1, 1))
    builder = builder.joint("base", "free", None, "a").body("b", mass=3.0, inertia=(1, 1, 1))
    return builder.joint("slide", "prismatic", "a", "b", axis=(1, 0, 0)).build()


class Spring(rm.Component):
    """A spring between the origins of two bodies."""

    a: str
    b: str
    stiffness: float = 10.0

    def act(self, at):
        force = self.stiffness * (at.position(self.b) - at.position(self.a))
        return [
            rm.Wrench(self.a, force=force, axes="inertial"),
            rm.Wrench(self.b, force=-force, axes="inertial"),
        ]


class OpaqueSpring(Spring):
    """The same, but it cannot be traced."""

    def act(self, at):
        float(at.q[0])
        return super().act(at)


class Lag(rm.Component):
    """A force that approaches its command exponentially."""

    time_constant: float = 0.3
    command: float = 1.0

    def interface(self, robot):
        return rm.Interface(
            outputs={"force": rm.Signal((), "N")}, continuous={"x": rm.State(0.0, "N")}
        )

    def outputs(self, at):
        return {"force": 2.0 * at.state["x"]}

    def derivative(self, at):
        return {"x": (self.command - at.state["x"]) / self.time_constant}

    def act(self, at):
        return rm.JointForce("slide", at.state["x"])


class OpaqueLag(Lag):
    def derivative(self, at):
        float(at.t)
        return super().derivative(at)


class PID(rm.Component):
    """A sampled controller with memory and, on request, noise in its measurement."""

    kp: float = 4.0
    ki: float = 1.5
    kd: float = 3.0
    goal: float = 0.5
    spread: float = 0.0

    def interface(self, robot):
        return rm.Interface(
            outputs={"force": rm.Signal((), "N")},
            discrete={"sum": rm.State(0.0, "m s")},
            noise={"position": 1},
        )

    def _error(self, at):
        measured = at.joint_position("slide")[..., 0] + self.spread * at.noise["position"][..., 0]
        return self.goal - measured

    def outputs(self, at):
        damping = self.kd * at.joint_velocity("slide")[..., 0]
        return {"force": self.kp * self._error(at) + self.ki * at.memory["sum"] - damping}

    def act(self, at):
        return rm.JointForce("slide", self.outputs(at)["force"])

    def update(self, at):
        return {"sum": at.memory["sum"] + self.sample_time * self._error(at)}


class OpaquePID(PID):
    def update(self, at):
        float(at.t)
        return super().update(at)


# Continuous components ----------------------------------------------------------------------------


@pytest.mark.parametrize("spring", [Spring, OpaqueSpring])
@pytest.mark.parametrize("integrator", [*METHODS, "variational"])
def test_a_spring_between_two_bodies_swings_as_it_must(integrator, spring):
    robot = two_bodies()
    system = rm.System(robot, [spring(a="a", b="b")])
    assert bool(system.untraceable) == (spring is OpaqueSpring)
    q, v = rm.neutral(robot), np.zeros(7)
    q[8], v[6] = 0.7, 0.4
    duration = 2.0 if spring is Spring and integrator != "variational" else 0.3
    run = rm.simulate(system, q, v, duration, **grouped(**TIGHT, **step_of(integrator, 1e-3)))
    w = np.sqrt(10.0 / (2.0 * 3.0 / 5.0))
    exact = 0.7 * np.cos(w * run.t) + 0.4 / w * np.sin(w * run.t)
    allowed = {"rk4": 1e-10, "variational": 1e-6}.get(integrator, 1e-10)
    assert np.abs(run.q[:, 8] - exact).max() < allowed
    kept = run.conservation()
    assert kept.linear_momentum.broken_by == ""
    assert kept.linear_momentum.relative < 1e-13
    if integrator != "variational":
        assert kept.energy.relative < 1e-9
    # what the spring does is the work of external wrenches, although it is internal
    assert np.abs(run.work[:, 0]).max() == 0.0
    assert np.abs(run.work[-1, 1]) > 1e-3


def test_internal_components_conserve_momentum_of_a_turning_robot():
    robot = rm.load("servicer")
    q, v = rm.random_state(robot, 5)
    names = robot.bodies.names
    system = rm.System(robot, [Spring(a=names[0], b=names[-1], stiffness=3.0)])
    run = rm.simulate(
        system,
        q,
        0.1 * v,
        2.0,
        physics=rm.Physics(limits="ignore"),
        integrator=rm.Integrator(rtol=1e-12),
    )
    kept = run.conservation()
    assert kept.angular_momentum.broken_by == ""
    assert kept.linear_momentum.relative < 1e-12
    assert kept.angular_momentum.relative < 1e-12
    assert kept.energy.relative < 1e-10


def test_wrenches_that_do_not_cancel_are_external():
    class Push(rm.Component):
        def act(self, at):
            return rm.Wrench("a", force=(1.0, 0.0, 0.0))

    robot = two_bodies()
    run = rm.simulate(rm.System(robot, [Push()]), rm.neutral(robot), np.zeros(7), 1.0)
    assert run.conservation().linear_momentum.broken_by == "external wrenches"
    assert run.momentum[-1, 0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("lag", [Lag, OpaqueLag])
@pytest.mark.parametrize("integrator", METHODS)
def test_a_lag_has_its_exact_solution(integrator, lag):
    system = rm.System(slider(), [lag(name="lag")])
    run = rm.simulate(system, [0.0], [0.0], 2.0, **grouped(**TIGHT, **step_of(integrator, 2e-3)))
    e = np.exp(-run.t / 0.3)
    allowed = {"rk4": 1e-11}.get(integrator, 1e-12)
    assert np.abs(run.signals["lag.x"] - (1.0 - e)).max() < allowed
    assert np.abs(run.signals["lag.force"] - 2.0 * (1.0 - e)).max() < 2 * allowed
    assert np.abs(run.v[:, 0] - (run.t - 0.3 * (1.0 - e))).max() < allowed
    position = run.t**2 / 2 - 0.3 * run.t + 0.09 * (1.0 - e)
    assert np.abs(run.q[:, 0] - position).max() < allowed
    assert np.abs(run.tau[:, 0] - run.signals["lag.x"]).max() == 0.0
    assert run.conservation().energy.relative < 1e-10


def test_the_error_of_a_component_state_controls_the_step_size():
    """Nothing but the component needs short steps."""

    class Oscillator(rm.Component):
        frequency: float = 50.0

        def interface(self, robot):
            return rm.Interface(continuous={"x": rm.State([1.0, 0.0])})

        def derivative(self, at):
            x, w = at.state["x"], self.frequency
            return {"x": w * np.stack([x[..., 1], -x[..., 0]], axis=-1)}

    system = rm.System(slider(), [Oscillator()])
    run = rm.simulate(system, [0.0], [0.1], 1.0, integrator=rm.Integrator(rtol=1e-9, atol=1e-9))
    assert np.abs(run.signals["oscillator.x"][:, 0] - np.cos(50.0 * run.t)).max() < 1e-6
    alone = rm.simulate(slider(), [0.0], [0.1], 1.0, integrator=rm.Integrator(rtol=1e-9, atol=1e-9))
    assert len(run) > 3 * len(alone)


@pytest.mark.parametrize("case", ["spring", "lag", "pid"])
def test_traced_and_evaluated_components_agree(case):
    made = {
        "spring": (
            two_bodies(), Spring(name="c", a="a", b="b"), OpaqueSpring(name="c", a="a", b="b")
        ),
        "lag": (slider(), Lag(name="c"), OpaqueLag(name="c")),
        "pid": (
            slider(),
            PID(name="c", sample_time=0.1, delay=0.04, spread=0.2),
            OpaquePID(name="c", sample_time=0.1, delay=0.04, spread=0.2),
        ),
    }  # fmt: skip
    robot, traced, opaque = made[case]
    q, v = rm.neutral(robot), np.full(robot.nv, 0.05)
    a, b = (
        rm.simulate(rm.System(robot, [c]), q, v, 1.0, integrator=rm.Integrator("rk4", step=0.01))
        for c in (traced, opaque)
    )
    for name in ("q", "v", "tau", "work", *a.signals):
        assert np.abs(a.quantity(name) - b.quantity(name)).max() < 1e-13


@pytest.mark.parametrize("lag", [Lag, OpaqueLag])
def test_stiff_components_need_few_implicit_steps(lag):
    system = rm.System(slider(), [lag(name="lag", time_constant=1e-5)])
    run = rm.simulate(system, [0.0], [0.0], 2.0, integrator="radau")
    assert len(run) < 400
    assert run.v[-1, 0] == pytest.approx(2.0 - 1e-5, abs=1e-9)


class Servo(rm.Component):
    """Two joints with a lag in their drives, and an event."""

    kp: float = 5.0

    def interface(self, robot):
        return rm.Interface(
            continuous={"torque": rm.State(np.zeros(2), "N m")},
            events={"half": rm.ZeroCrossing(1, "record")},
        )

    def derivative(self, at):
        names = "elbow_pitch", "shoulder_pitch"
        q, v = (
            np.concatenate([of(name) for name in names], axis=-1)
            for of in (at.joint_position, at.joint_velocity)
        )
        return {"torque": 3.0 * (self.kp * (0.3 - q) - 4.0 * v - at.state["torque"])}

    def act(self, at):
        torque = at.state["torque"]
        return [
            rm.JointForce("elbow_pitch", torque[..., :1]),
            rm.JointForce("shoulder_pitch", torque[..., 1:]),
        ]

    def crossings(self, at):
        return {"half": at.joint_position("elbow_pitch")[..., 0] - 0.15}


def test_all_integrators_agree():
    robot = rm.load("servicer")
    system = rm.System(robot, [Servo()])
    options = {"duration": 2.0, "sample": 0.25, "limits": "ignore"}
    start = rm.neutral(robot), np.zeros(robot.nv)
    best = rm.simulate(system, *start, **grouped(rtol=1e-13, atol=1e-14, **options))
    kept = best.conservation()
    assert kept.linear_momentum.relative < 1e-13
    assert kept.angular_momentum.relative < 1e-13
    assert kept.energy.relative < 1e-12
    for integrator in METHODS:
        run = rm.simulate(system, *start, **grouped(**options, **step_of(integrator, 2e-3)))
        for name in ("q", "v", "servo.torque"):
            assert np.abs(run.quantity(name) - best.quantity(name)).max() < 1e-8
        assert [e.name for e in run.events] == ["servo.half"]
        assert run.events[0].t == pytest.approx(best.events[0].t, abs=1e-9)


def test_a_system_is_copied_and_pickled():
    system = rm.System(
        slider(),
        [rm.control.JointPD(slider(), {"slide": 0.5}, 4.0, 1.0, 0.1, name="law", delay=0.03)],
    )
    for again in (copy.deepcopy(system), copy.copy(system), pickle.loads(pickle.dumps(system))):
        assert again == system
        assert again.schedule == system.schedule
        run, other = (rm.simulate(s, [0.0], [0.0], 1.0) for s in (system, again))
        assert run.q.tobytes() == other.q.tobytes()
    changed = copy.deepcopy(system).with_parameters({"law.kp": [5.0]})
    assert changed != system


# The Jacobian for implicit methods ----------------------------------------------------------------


class Mixed(rm.Component):
    """Depends on everything: configuration, velocity, own state; acts in every way."""

    gain: float = 0.7

    def interface(self, robot):
        return rm.Interface(continuous={"x": rm.State([0.1, -0.2])})

    def derivative(self, at):
        x, p = at.state["x"], at.position("tip")
        return {"x": -x * x + p[..., :2] + 0.1 * at.v[..., :2]}

    def act(self, at):
        x = at.state["x"]
        force = self.gain * at.velocity("tip") * (1.0 + x[..., :1])
        return [
            rm.Wrench("tip", force=-force, torque=at.position("tip"), axes="inertial"),
            rm.GeneralizedForce(0.3 * np.concatenate([at.v[..., 2:], x], axis=-1)),
        ]


class OpaqueMixed(Mixed):
    def act(self, at):
        float(at.q[0])
        return super().act(at)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("component", [Mixed, OpaqueMixed])
def test_the_jacobian_of_a_system_is_that_of_its_rates(component, held):
    from remora.dynamics.forces.equations_of_motion import PassiveParameters
    from remora.simulation.engine.phase_dynamics import PhaseDynamics, RunSettings

    robot = rm.random_robot(2, bodies=4, base="free")
    robot = robot.replace(frames=(*robot.frames, _frame_of_last_body(robot)))
    system = rm.System(robot, [component()])
    q, v = rm.random_state(robot, 3)
    last = robot.joints[-1].name
    phase = rm.Phase(1.0, locked=[last] if held else [])
    if held:
        v[robot.joints[last].v] = 0.0
    settings = RunSettings(
        robot, "articulated", PassiveParameters(0.1, 0.0, 0.0), False, system=system
    )
    dynamics = PhaseDynamics(settings, phase, 0.0, q)
    dynamics.given.enter(0.0, 1.0)
    y = np.concatenate([np.zeros(robot.nv), v, np.zeros(3), system.initial_x])
    J = dynamics.jacobian(0.3, y)
    rows = [*range(2 * robot.nv), *range(2 * robot.nv + 3, y.size)]
    for k in range(y.size):
        d = np.zeros(y.size)
        d[k] = 1e-6
        slope = (dynamics.rates(0.3, y + d) - dynamics.rates(0.3, y - d)) / 2e-6
        assert np.abs(slope[rows] - J[rows, k]).max() < 2e-6 * (1.0 + np.abs(J[rows]).max())


def _frame_of_last_body(robot):
    return rm.Frame("tip", len(robot.bodies) - 1, rm.neutral(robot)[:8])


# Sampled components -------------------------------------------------------------------------------


def discretized(controller, duration, mass):
    """The same loop, exactly: between updates, the force on the mass is constant."""
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 2] = 1.0, 1.0 / mass
    T, count = controller.sample_time, 1000
    ticks = [(controller.offset + k * T, 1, k) for k in range(count)]
    effects = [(t + controller.delay, 2 if controller.delay == 0.0 else 0, k) for t, _, k in ticks]
    state, total, now, commands = np.zeros(3), 0.0, 0.0, {}
    for t, kind, k in sorted([*ticks, *effects]):
        if t >= duration:
            break
        state, now = expm(matrix * (t - now)) @ state, t
        if kind == 1:
            error = controller.goal - state[0]
            commands[k] = controller.kp * error + controller.ki * total - controller.kd * state[1]
            total += T * error
        else:
            state[2] = commands[k]
    return expm(matrix * (duration - now)) @ state, total


@pytest.mark.parametrize("integrator", [*METHODS, "variational"])
@pytest.mark.parametrize(
    ("delay", "offset"), [(0.0, 0.0), (0.1, 0.0), (0.2, 0.03), (0.04, 0.0), (0.17, 0.02)]
)
def test_a_sampled_controller_is_the_discretized_loop(integrator, delay, offset):
    controller = PID(name="pid", sample_time=0.1, delay=delay, offset=offset)
    system = rm.System(slider(mass=2.0), [controller])
    run = rm.simulate(system, [0.0], [0.0], 1.95, **grouped(**step_of(integrator, 0.013)))
    exact, total = discretized(controller, 1.95, 2.0)
    assert abs(run.q[-1, 0] - exact[0]) < 1e-12
    assert abs(run.v[-1, 0] - exact[1]) < 1e-12
    assert abs(run.signals["pid.sum"][-1] - total) < 1e-12
    assert run.tau[-1, 0] == pytest.approx(exact[2], abs=1e-12)


def test_samples_at_a_tick_have_the_values_before_it():
    system = rm.System(slider(), [PID(name="pid", sample_time=0.1)])
    run = rm.simulate(system, [0.0], [0.0], 0.3, record=0.1)
    force = run.signals["pid.force"]
    assert force[0] == 4.0 * 0.5  # of the tick at the start
    assert force[1] == force[0]
    assert force[2] != force[1]
    assert run.tau[:, 0].tolist() == force.tolist()


def test_ticks_count_from_the_start_of_the_run_and_go_on_through_phases():
    system = rm.System(slider(mass=2.0), [PID(name="pid", sample_time=0.1, delay=0.04)])
    whole = rm.simulate(system, [0.0], [0.0], 1.95, start=0.5)
    phases = [rm.Phase(0.33), rm.Phase(0.47, own_clock=True), rm.Phase(1.15)]
    parts = rm.simulate(system, [0.0], [0.0], phases, start=0.5)
    assert abs(whole.q[-1, 0] - parts.q[-1, 0]) < 1e-14
    exact, _ = discretized(PID(sample_time=0.1, delay=0.04), 1.95, 2.0)
    assert abs(parts.q[-1, 0] - exact[0]) < 1e-12


def test_a_sample_time_below_the_resolution_of_time_is_refused():
    system = rm.System(slider(), [PID(name="pid", sample_time=1e-17)])
    with pytest.raises(
        rm.errors.SimulationError, match=r"sample time of component 'pid'.*is too short"
    ):
        rm.simulate(system, [0.0], [0.0], 1.0, start=1.0)


def test_noise_is_that_of_seed_and_run():
    system = rm.System(slider(), [PID(name="pid", sample_time=0.1, spread=0.3)])

    def end(**options):
        return rm.simulate(system, [0.0], [0.0], 1.0, **grouped(**options)).q[-1, 0]

    same = end(seed=3, run=2)
    assert same == end(seed=3, run=2)
    assert len({same, end(), end(seed=3), end(run=2)}) == 4
    for bad in ({"seed": -1}, {"run": 2**32}, {"seed": 1.5}):
        with pytest.raises(rm.RemoraError, match="must be a whole number"):
            end(**bad)


def test_noise_has_the_numbers_of_the_generator():
    from remora.components.noise import normals, stream_number

    class Gyro(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"rate": rm.Signal(3, "rad/s")}, noise={"white": 3})

        def outputs(self, at):
            return {"rate": at.noise["white"]}

    system = rm.System(slider(), [Lag(), Gyro(sample_time=0.25)])
    run = rm.simulate(system, [0.0], [0.0], 1.0, record=0.25, seed=(7, 5))
    rate = run.signals["gyro.rate"]
    assert rate.shape == (5, 3)
    for k, tick in enumerate((0, 0, 1, 2, 3)):  # a sample has the values before the tick
        assert rate[k].tolist() == normals(7, 5, stream_number("gyro"), tick, 3).tolist()


def test_signals_pass_between_components():
    """A sensor at 10 Hz, a controller at 5 Hz, an actuator with a lag."""

    class Sensor(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"position": rm.Signal((), "m")})

        def outputs(self, at):
            return {"position": at.joint_position("slide")[..., 0]}

    class Law(rm.Component):
        gain: float = 2.0

        def interface(self, robot):
            return rm.Interface(
                inputs={"position": rm.Signal((), "m")}, outputs={"command": rm.Signal((), "N")}
            )

        def outputs(self, at):
            return {"command": -self.gain * at.inputs["position"]}

    class Drive(rm.Component):
        time_constant: float = 0.2

        def interface(self, robot):
            return rm.Interface(
                inputs={"command": rm.Signal((), "N")}, continuous={"force": rm.State(0.0, "N")}
            )

        def derivative(self, at):
            return {"force": (at.inputs["command"] - at.state["force"]) / self.time_constant}

        def act(self, at):
            return rm.JointForce("slide", at.state["force"])

    parts = [Sensor(sample_time=0.1), Law(sample_time=0.2), Drive()]
    run = rm.simulate(rm.System(slider(), parts), [1.0], [0.0], 2.0, **grouped(**TIGHT))
    matrix = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, -5.0, 5.0], [0, 0, 0, 0]])
    state = np.array([1.0, 0.0, 0.0, 0.0])
    for _ in range(10):
        state[3] = -2.0 * state[0]
        state = expm(matrix * 0.2) @ state
    assert np.abs(run.q[-1, 0] - state[0]) < 1e-11
    assert np.abs(run.signals["drive.force"][-1] - state[2]) < 1e-11
    assert "law.command [N]" in repr(run)


def test_a_result_due_at_the_tick_of_another_is_there_when_it_ticks():
    """Times read at 0, 0.1, ... take effect 0.05 s later, just when the other looks at them."""

    class Clock(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"time": rm.Signal((), "s")})

        def outputs(self, at):
            return {"time": at.t}

    class Reader(rm.Component):
        def interface(self, robot):
            seen = {"seen": rm.Signal((), "s")}
            return rm.Interface(inputs={"time": rm.Signal((), "s")}, outputs=seen)

        def outputs(self, at):
            return {"seen": at.inputs["time"]}

    late, reader = Clock(sample_time=0.1, delay=0.05), Reader(sample_time=0.05)
    for parts in ([late, reader], [reader, late]):
        run = rm.simulate(rm.System(slider(), parts), [0.0], [0.0], 0.5, record=0.025)
        between = np.isclose(run.t % 0.05, 0.025) & (run.t > 0.05)
        expected = 0.1 * np.floor((run.t[between] - 0.05) / 0.1 + 1e-9)
        assert run.signals["reader.seen"][between] == pytest.approx(expected, abs=1e-12)


# With everything else a run can have --------------------------------------------------------------


def test_a_system_and_torque_add_up():
    robot, system = slider(), rm.System(slider(), [Lag(name="lag")])
    both = rm.simulate(system, [0.0], [0.0], 1.0, **grouped(torque=[0.5], **TIGHT))
    alone = rm.simulate(system, [0.0], [0.0], 1.0, **grouped(**TIGHT))
    assert np.abs(both.tau[-1] - alone.tau[-1] - 0.5).max() < 1e-12
    assert both.v[-1, 0] == pytest.approx(alone.v[-1, 0] + 0.5, abs=1e-12)
    follow = rm.simulate(
        system, [0.0], [0.0], 1.0, **grouped(torque=lambda t, q, v: [0.5 + 0 * t], **TIGHT)
    )
    assert np.abs(follow.q[-1] - both.q[-1]).max() < 1e-12
    pushed = rm.simulate(
        system, [0.0], [0.0], 1.0, **grouped(wrenches={"mass": [0, 0, 0.5, 0, 0, 0]}, **TIGHT)
    )
    assert np.abs(pushed.q[-1] - both.q[-1]).max() < 1e-12
    nothing = rm.simulate(rm.System(robot), [0.0], [0.0], 1.0, torque=[0.5])
    plain = rm.simulate(robot, [0.0], [0.0], 1.0, torque=[0.5])
    assert nothing.q.tolist() == plain.q.tolist()


@pytest.mark.parametrize("lag", [Lag, OpaqueLag])
@pytest.mark.parametrize("integrator", ["dop853", "radau"])
def test_the_sum_of_all_drives_is_limited(lag, integrator):
    robot = slider(effort=0.8)
    system = rm.System(robot, [lag(name="lag", command=2.0)])
    run = rm.simulate(
        system,
        [0.0],
        [0.0],
        2.0,
        torque=[0.3],
        physics=rm.Physics(saturate=True),
        integrator=rm.Integrator(integrator, breaks=[-0.3 * np.log(0.75)]),
    )
    wanted = np.minimum(2.0 * (1.0 - np.exp(-run.t / 0.3)) + 0.3, 0.8)
    assert np.abs(run.tau[:, 0] - wanted).max() < 1e-9
    assert run.conservation().energy.relative < 1e-9


@pytest.mark.parametrize("spring", [Spring, OpaqueSpring])
def test_held_joints_carry_what_components_do(spring):
    robot = rm.load("servicer")
    names = robot.bodies.names
    system = rm.System(robot, [spring(a=names[0], b=names[-1], stiffness=20.0)])
    q, v = rm.random_state(robot, 1)
    v = 0.0 * v
    elbow = "elbow_pitch"
    start = float(q[robot.joints[elbow].q][0])
    motion = {elbow: rm.Motion.between(0.0, 1.0, start, start + 0.3)}
    locked = [n for n in robot.joints.names if n.startswith("wrist")]
    run = rm.simulate(
        system, q, v, 1.0, prescribed=motion, locked=locked, physics=rm.Physics(limits="ignore")
    )
    kept = run.conservation()
    assert kept.energy.relative < 1e-8
    assert kept.angular_momentum.relative < 1e-10
    assert run.joint(elbow).q[-1] == pytest.approx(start + 0.3, abs=1e-9)


def test_stops_and_components():
    """A lag pushes the mass into a stop; energy is balanced."""
    robot = slider(upper=0.2)
    system = rm.System(robot, [Lag(name="lag")])
    run = rm.simulate(system, [0.0], [0.0], 3.0, **grouped(stops=(200.0, 1.0), **TIGHT))
    assert run.q[:, 0].max() > 0.2
    assert run.conservation().energy.relative < 1e-10
    assert "slide upper limit" in [e.name for e in run.events]


def test_pd_laws_are_components():
    from remora.simulation.inputs.loads import Sum

    robot = rm.load("servicer")
    goal = {"elbow_pitch": 0.4, "shoulder_pitch": -0.3}
    joints = rm.control.JointPD(robot, goal, 20.0, 30.0, 0.05)
    base = rm.control.AttitudePD(robot, [1.0, 0.1, 0.0, 0.0], 40.0, 150.0, 0.1)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    system = rm.System(robot, [joints, base])
    assert not system.untraceable
    assert {"joint_pd.kp", "joint_pd.kd", "joint_pd.goal", "attitude_pd.kp"} <= set(
        system.parameters
    )
    a = rm.simulate(system, q, v, 3.0, physics=rm.Physics(limits="ignore"))
    c = rm.simulate(robot, q, v, 3.0, physics=rm.Physics(limits="ignore"), torque=Sum(joints, base))
    assert np.abs(a.q[-1] - c.q[-1]).max() < 1e-12
    assert np.abs(a.tau[-1] - c.tau[-1]).max() < 1e-10
    stiffer = system.with_parameters({"joint_pd.kp": [40.0, 40.0]})
    d = rm.simulate(stiffer, q, v, 3.0, physics=rm.Physics(limits="ignore"))
    assert np.abs(a.q[-1] - d.q[-1]).max() > 1e-3


def test_a_continuous_pd_law_in_a_system_and_as_torque():
    law = rm.control.JointPD(slider(), {"slide": 0.5}, 4.0, 1.0, None)
    a = rm.simulate(rm.System(slider(), [law]), [0.0], [0.0], 2.0, **grouped(**TIGHT))
    b = rm.simulate(slider(), [0.0], [0.0], 2.0, **grouped(torque=law, **TIGHT))
    w = np.sqrt(4.0 - 0.25)
    exact = 0.5 - 0.5 * np.exp(-1.0) * (np.cos(2 * w) + 0.5 / w * np.sin(2 * w))
    assert abs(a.q[-1, 0] - exact) < 1e-11
    assert abs(b.q[-1, 0] - exact) < 1e-11


def test_what_needs_a_system_is_refused_as_torque():
    late = rm.control.JointPD(slider(), {"slide": 0.5}, 4.0, 1.0, 0.1, delay=0.05)
    with pytest.raises(rm.RemoraError, match="offset and the delay of JointPD need a system"):
        rm.simulate(slider(), [0.0], [0.0], 1.0, torque=late)
    with pytest.raises(rm.RemoraError, match="cannot be the component Lag"):
        rm.simulate(slider(), [0.0], [0.0], 1.0, torque=Lag())
    other = rm.control.JointPD(rm.load("servicer"), {"elbow_pitch": 0.1}, 1.0, 1.0, 0.1)
    with pytest.raises(rm.RemoraError, match="elbow_pitch"):
        rm.System(slider(), [other])


def test_what_has_no_components_says_so():
    system = rm.System(slider(), [Lag(name="lag")])
    with pytest.raises(rm.RemoraError, match=r"no continuous states of components \(lag\)"):
        rm.simulate(system, [0.0], [0.0], 1.0, integrator=rm.Integrator("variational", step=0.01))
    robot = two_bodies()
    with pytest.raises(rm.RemoraError, match="model='reduced' has no components"):
        rm.simulate(
            rm.System(robot, [Spring(a="a", b="b")]),
            rm.neutral(robot),
            np.zeros(7),
            1.0,
            physics=rm.Physics(model="reduced"),
        )


def test_large_robots_with_components(monkeypatch):
    from remora.simulation.engine import phase_dynamics
    from remora.simulation.systems import component_evaluation

    robot = rm.random_robot(3, bodies=8, base="free")
    names = robot.bodies.names
    system = rm.System(robot, [Spring(a=names[0], b=names[-1])])
    q, v = rm.random_state(robot, 2)
    v = 0.05 * v
    whole = rm.simulate(
        system, q, v, 0.3, integrator=rm.Integrator(rtol=1e-11), physics=rm.Physics(limits="ignore")
    )
    monkeypatch.setattr(phase_dynamics, "_is_large", lambda model: True)
    monkeypatch.setattr(component_evaluation, "_is_large", lambda robot: True)
    parts = rm.simulate(
        system, q, v, 0.3, integrator=rm.Integrator(rtol=1e-11), physics=rm.Physics(limits="ignore")
    )
    assert np.abs(rm.difference(robot, whole.q[-1], parts.q[-1])).max() < 1e-9
    assert np.abs(whole.work[-1] - parts.work[-1]).max() < 1e-9
