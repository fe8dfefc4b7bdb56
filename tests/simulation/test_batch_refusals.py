"""Runs of a batch end as single runs do where a component breaks a rule; phases keep ticks."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import sqrt
from sliders import slider


def ball():
    builder = rm.Builder("ball").body("ball", mass=1.0, inertia=(1, 2, 3))
    return builder.joint("socket", "spherical", None, "ball").build()


class Stretch(rm.Component):
    """Multiplies a state at t = 0.5 s."""

    size: float = 1.0
    what: str = "q"

    def interface(self, robot):
        return rm.Interface(events={"due": rm.ZeroCrossing(1, "reset")})

    def crossings(self, at):
        return {"due": at.t - 0.5}

    def reset(self, at, event):
        return {self.what: self.size * (at.q if self.what == "q" else at.v)}


@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}])
def test_a_reset_that_breaks_a_unit_quaternion_ends_the_run(options):
    robot = ball()
    system = rm.System(robot, [Stretch()])
    sizes = {"stretch.size": [1.0, 1.0 + 1e-12, 1.001, 0.0]}
    start = rm.neutral(robot), np.array([0.1, 0.2, 0.3])
    with pytest.raises(rm.errors.SimulationError, match=r"unit norm.*'stretch\.due'"):
        rm.simulate_batch(system, *start, 1.0, **grouped(True, parameters=sizes, **options))
    batch = rm.simulate_batch(
        system, *start, 1.0, **grouped(True, parameters=sizes, failures="keep", **options)
    )
    assert batch.ok.tolist() == [True, True, False, False]
    assert batch.outcome.tolist() == ["complete"] * 2 + ["invalid reset"] * 2
    assert np.allclose(batch.end, [1.0, 1.0, 0.5, 0.5], atol=1e-12)
    # within the tolerance it is normalized, as in single runs
    assert abs(np.linalg.norm(batch.q[1, -1]) - 1.0) < 1e-14


def test_a_reset_that_is_not_finite_ends_the_run():
    robot = ball()
    system = rm.System(robot, [Stretch(what="v")])
    start = rm.neutral(robot), np.array([0.1, 0.2, 0.3])
    parameters = {"stretch.size": [2.0, 1e308]}  # times itself beyond the largest number

    class Overflow(Stretch):
        def reset(self, at, event):
            return {"v": self.size * self.size * at.v}

    system = rm.System(robot, [Overflow(name="stretch")])
    batch = rm.simulate_batch(
        system,
        *start,
        1.0,
        integrator=rm.Integrator(step=0.01),
        runs=rm.Runs(parameters=parameters),
        record=rm.Record(failures="keep"),
    )
    assert batch.outcome.tolist() == ["complete", "invalid reset"]


class Root(rm.Component):
    """An event function that is NaN from some time on."""

    until: float = 0.3
    action: str = "record"

    def interface(self, robot):
        return rm.Interface(events={"root": rm.ZeroCrossing(0, self.action)})

    def crossings(self, at):
        return {"root": 1.0 + sqrt(self.until - at.t)}


@pytest.mark.parametrize("action", ["record", "stop", "next", "reset"])
@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}])
def test_an_event_function_that_is_nan_ends_the_run(action, options):
    system = rm.System(slider(), [Root(action=action)])
    until = {"root.until": [0.3, 2.0, -1.0]}
    batch = rm.simulate_batch(
        system, [0.0], [1.0], 1.0, **grouped(True, parameters=until, failures="keep", **options)
    )
    assert batch.outcome.tolist() == ["event is NaN", "complete", "event is NaN"]
    assert batch.ok.tolist() == [False, True, False]
    with pytest.raises(rm.errors.SimulationError, match=r"NaN.*'root\.root'"):
        rm.simulate_batch(system, [0.0], [1.0], 1.0, **grouped(True, runs=1, **options))


def test_a_locked_joint_stays_locked_through_a_reset():
    class Kick(rm.Component):
        def interface(self, robot):
            return rm.Interface(events={"due": rm.ZeroCrossing(1, "reset")})

        def crossings(self, at):
            return {"due": at.t - 0.5}

        def reset(self, at, event):
            return {"q": at.q + 1.0, "v": at.v + 1.0}

    system = rm.System(slider(), [Kick()])
    times = [0.0, 0.25, 0.5, 0.75, 1.0]
    batch = rm.simulate_batch(
        system,
        [0.2],
        [0.0],
        1.0,
        integrator=rm.Integrator(step=0.05),
        locked="slide",
        runs=1,
        record=times,
    )
    assert np.all(batch.q == 0.2)
    assert np.all(batch.v == 0.0)


class Noisy(rm.Component):
    """Counts its ticks, and pushes with noise."""

    def interface(self, robot):
        return rm.Interface(
            outputs={"force": rm.Signal((), "N")}, noise={"white": 1}, discrete={"ticks": 0.0}
        )

    def outputs(self, at):
        return {"force": at.noise["white"][..., 0]}

    def act(self, at):
        return rm.JointForce("slide", at.noise["white"][..., 0])

    def update(self, at):
        return {"ticks": at.memory["ticks"] + 1.0}


class Never(rm.Component):
    """An event that does not occur: the runs of a batch choose their own steps."""

    def interface(self, robot):
        return rm.Interface(events={"never": rm.ZeroCrossing()})

    def crossings(self, at):
        return {"never": 1.0 + at.q[..., 0] ** 2}


class Hold:
    """A sampled load."""

    sample_time = 0.1

    def __call__(self, t, q, v):
        return -1.0 * q


@pytest.mark.parametrize("more", [[], [Never()]])
def test_ticks_go_on_through_phases_with_sampled_loads(more):
    system = rm.System(slider(), [Noisy(sample_time=0.1), *more])
    torques = [None, Hold(), Hold(), None]
    phases = [rm.Phase(0.53, torque=torque) for torque in torques]
    options = {"phases": phases, "step": 0.01, "seed": 3}
    batch = rm.simulate_batch(system, [0.1], [0.0], **grouped(True, runs=2, sample=0.25, **options))
    run = rm.simulate(
        system,
        [0.1],
        [0.0],
        **grouped(
            integrator="rk4",
            limits="ignore",
            run=1,
            sample=batch.t,
            step_to_samples=True,
            **options,
        ),
    )
    at = [int(np.flatnonzero(np.abs(run.t - t) < 1e-12)[-1]) for t in batch.t]
    assert np.array_equal(batch.signals["noisy.ticks"][1], run.signals["noisy.ticks"][at])
    assert np.abs(batch.q[1] - run.q[at]).max() < 1e-13


class Charged(rm.Component):
    """A parameter is the initial value of a state."""

    charge: float = 1.0

    def interface(self, robot):
        return rm.Interface(continuous={"level": self.charge})

    def derivative(self, at):
        return {"level": 0.0 * at.state["level"]}


def test_a_parameter_that_sets_an_initial_state_is_not_ignored():
    system = rm.System(slider(), [Charged()])
    changed = system.with_parameters({"charged.charge": 3.0})
    assert changed.initial_x.tolist() == [3.0]
    assert changed == rm.System(slider(), [Charged(charge=3.0)])
    batch = rm.simulate_batch(
        system,
        [0.0],
        [0.0],
        0.1,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"charged.charge": [1.0, 3.0]}),
    )
    assert batch.signals["charged.level"].tolist() == [[1.0, 1.0], [3.0, 3.0]]


class Lost(rm.Component):
    """A signal that becomes NaN and moves nothing."""

    def interface(self, robot):
        return rm.Interface(outputs={"lost": rm.Signal()})

    def outputs(self, at):
        return {"lost": sqrt(0.35 - at.t)}


@pytest.mark.parametrize("timing", [{}, {"sample_time": 0.1}])
def test_a_signal_that_is_nan_fails_its_run(timing):
    system = rm.System(slider(), [Lost(**timing)])
    with pytest.raises(rm.errors.SimulationError, match=r"signal 'lost\.lost'"):
        rm.simulate_batch(
            system, [0.0], [1.0], 1.0, integrator=rm.Integrator(step=0.1), record=0.1, runs=1
        )


class Vector(rm.Component):
    """As many states as there are runs."""

    gain: np.ndarray

    def interface(self, robot):
        return rm.Interface(continuous={"x": [1.0, 2.0, 3.0]})

    def derivative(self, at):
        return {"x": self.gain}


@pytest.mark.parametrize("batch", [(3,), (2, 3), (3, 3), (1,), (3, 1)])
def test_shapes_of_states_and_of_batches_are_not_confused(batch):
    system = rm.System(slider(), [Vector(gain=np.array([0.5, 0.25, 0.125]))])
    found = rm.simulate_batch(
        system,
        np.zeros((*batch, 1)),
        [0.0],
        1.0,
        integrator=rm.Integrator(step=0.5),
        runs=rm.Runs(parameters={"vector.gain": [1.0, 10.0, 100.0]}),
    )
    assert found.signals["vector.x"].shape == (*batch, 2, 3)
    assert np.allclose(found.signals["vector.x"][..., -1, :], [2.0, 12.0, 103.0])


def test_two_components_do_not_share_their_noise(monkeypatch):
    monkeypatch.setattr("remora.simulation.systems.noise_streams.stream_number", lambda name: 7)
    parts = [Noisy(name=name, sample_time=0.1) for name in ("one", "two")]
    system = rm.System(slider(), parts)
    with pytest.raises(rm.RemoraError, match="'one' and 'two' would have the same noise"):
        rm.simulate_batch(system, [0.0], [0.0], 0.1, integrator=rm.Integrator(step=0.1), runs=1)


@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5"}])
def test_a_joint_that_moves_cannot_be_locked(options):
    phases = [rm.Phase(0.5), rm.Phase(0.5, locked="slide")]
    speeds = np.array([[0.0], [0.5]])
    with pytest.raises(rm.errors.SimulationError, match="contradiction: joint 'slide' moves at"):
        rm.simulate_batch(slider(), [0.0], speeds, **grouped(True, phases=phases, **options))
    batch = rm.simulate_batch(
        slider(), [0.0], speeds, **grouped(True, phases=phases, failures="keep", **options)
    )
    assert batch.ok.tolist() == [True, False]
    assert batch.outcome.tolist() == ["complete", "contradiction"]
    motion = {"slide": rm.Motion.between(0.0, 1.0, 0.3, 0.5)}
    with pytest.raises(
        rm.errors.SimulationError, match=r"joint 'slide' is 0\.3 rad or m from where"
    ):
        rm.simulate_batch(
            slider(), [0.0], [0.0], 1.0, **grouped(True, prescribed=motion, runs=1, **options)
        )
    rm.simulate_batch(
        slider(), [0.3], [0.0], 1.0, **grouped(True, prescribed=motion, runs=1, **options)
    )


def test_what_single_runs_refuse_at_the_start():
    told = "'slide' is prescribed or locked, so its"
    with pytest.raises(rm.RemoraError, match=told):
        rm.simulate_batch(
            slider(),
            [0.0],
            [0.0],
            0.1,
            integrator=rm.Integrator(step=0.1),
            torque={"slide": 1.0},
            locked="slide",
            runs=1,
        )
    system = rm.System(slider(), [Noisy(sample_time=1e-13)])
    with pytest.raises(rm.RemoraError, match="'noisy', 1e-13 s, is too short"):
        rm.simulate_batch(
            system, [0.0], [0.0], 1e-11, integrator=rm.Integrator(step=0.1), start=1e4, runs=1
        )
