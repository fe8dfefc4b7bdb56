"""All bundled scenarios run in batches with their own phases, each run as it does alone."""

from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import less, select
from remora.model.formats.bundled import bundled
from remora.simulation.inputs.loads import Sum
from sliders import slider

#: Differences that are allowed, rad and m: with fixed steps rounding; with adaptive ones what is
#: left of the tolerance of the run (dopri5 with 1e-9 in grasp_push), through a capture 1e-9.
OFF = {
    "capture": 1e-9, "grasp_push": 1e-8, "hold_attitude": 1e-13, "reach_payload": 1e-13,
    "unfold": 1e-12, "vt18": 1e-10,
}  # fmt: skip


@pytest.mark.parametrize("name", bundled("scenarios"))
def test_a_scenario_in_a_batch_does_what_it_does_alone(name):
    scenario = rm.load_scenario(name)
    steps = scenario.integrator
    steps = replace(steps, method=steps.method or "dop853", step_to_samples=True)
    physics = replace(scenario.physics, limits="ignore")
    sample = scenario.duration / 8.0
    system = scenario.robot if scenario.system is None else scenario.system
    v = np.stack([scenario.v, scenario.v])
    v[1, :3] += np.radians([0.02, -0.01, 0.03])  # the base turns
    batch = rm.simulate_batch(
        system, scenario.q, v, scenario.phases, integrator=steps, physics=physics, record=sample,
        runs=rm.Runs(seed=scenario.seed[0]),
    )  # fmt: skip
    for k in range(2):
        run = rm.simulate(
            system, scenario.q, v[k], scenario.phases, integrator=steps, physics=physics,
            record=sample, seed=(scenario.seed[0], k),
        )  # fmt: skip
        assert batch.end[k] == pytest.approx(run.t[-1], abs=1e-9)
        assert np.abs(batch.final.q[k] - run.q[-1]).max() < OFF[name]
        assert np.abs(batch.final.v[k] - run.v[-1]).max() < OFF[name]
        for t, q in zip(batch.t, batch.q[k], strict=True):
            if np.isfinite(q).all():
                there = np.flatnonzero(np.abs(run.t - t) < 1e-9)
                assert np.abs(q - run.q[there]).max(axis=-1).min() < OFF[name]
        if run.events:
            times = batch.events.times[k]
            assert times[np.isfinite(times)] == pytest.approx([e.t for e in run.events], abs=1e-8)
            first = dict(zip(batch.events.names, batch.events.first[k], strict=True))
            for event in run.events[::-1]:  # each of them occurs once
                assert first[event.name] == pytest.approx(event.t, abs=1e-8)
        else:
            assert batch.events is None or not np.isfinite(batch.events.times[k]).any()


# Clocks of phases --------------------------------------------------------------------------------


class Ramp(rm.Component):
    """A sampled force that grows with the time that it is told, as a load of a phase."""

    rate: float = 0.7

    def act(self, at):
        return rm.GeneralizedForce(np.reshape(self.rate * at.t, (1,)))

    def __call__(self, t, q, v):
        return np.reshape(self.rate * t, (1,))


def rhythm(t, q, v):
    """Return a force of time and state."""
    return np.cos(3.0 * t) - 0.4 * v


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
@pytest.mark.parametrize("own_clock", [True, False])
@pytest.mark.parametrize("ends", ["early", "late"])
def test_sampled_loads_receive_the_clock_of_their_phase(integrator, own_clock, ends):
    """Of functions and of components; ticks are counted from the start of the phase."""
    laws = Sum(Ramp(sample_time=0.15), rm.ZeroOrderHold(rhythm, 0.2), [0.1])
    far = rm.Event(lambda t, q, v: q[0] - 1.0, "far", "next", 1)
    phases = [
        rm.Phase(0.71, torque=laws, own_clock=own_clock, events=[far] if ends == "early" else ()),
        rm.Phase(0.9, torque=laws, own_clock=own_clock),
    ]
    robot, q, v = slider(), [0.9], [0.3]
    options = {"integrator": integrator, "step": 0.01, "sample": 0.25, "start": 2.0}
    batch = rm.simulate_batch(robot, q, v, **grouped(True, phases=phases, runs=2, **options))
    run = rm.simulate(robot, q, v, **grouped(phases=phases, limits="ignore", **options))
    assert (len(run.events) > 0) == (ends == "early")
    assert batch.end[1] == pytest.approx(run.t[-1], abs=1e-13)
    assert batch.final.q[1] == pytest.approx(run.q[-1], abs=1e-11)
    assert batch.final.v[1] == pytest.approx(run.v[-1], abs=1e-11)


def test_breaks_of_components_are_times_of_the_run_and_those_of_loads_of_the_phase():
    """With steps that are long: one across a break would be off by far."""
    source = rm.SignalSource(rm.Pulse(1.3, 1.6, 1.0), "N", name="source")
    pushed = rm.System(slider(), [source, Pushed(name="pushed")])
    phases = [
        rm.Phase(1.0, torque=rm.Pulse(0.42, 0.47, [2.0]), own_clock=True),
        rm.Phase(1.0, torque=rm.Pulse(0.42, 0.47, [3.0]), own_clock=True),
    ]
    exact = 0.1 + 0.3 + 0.15  # of 1 kg
    for integrator in ("rk4", "dop853"):
        batch = rm.simulate_batch(
            pushed, [0.0], [0.0], phases, runs=2, integrator=rm.Integrator(integrator, step=0.5)
        )
        assert batch.final.v[0, 0] == pytest.approx(exact, abs=1e-13)


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_breaks_of_a_batch_are_times_of_the_run(integrator):
    """Also in a phase with its own clock, whose function jumps at 1.3 s of the run."""

    def jump(t, q, v):
        return np.reshape(select(less(0.3, t), 1.0, 0.0), (1,))

    phases = [rm.Phase(1.0), rm.Phase(1.0, torque=jump, own_clock=True)]
    batch = rm.simulate_batch(
        slider(),
        [0.0],
        [0.0],
        phases,
        runs=2,
        integrator=rm.Integrator(integrator, step=0.5, breaks=[1.3]),
    )
    assert batch.final.v[0, 0] == pytest.approx(0.7, abs=1e-13)


class Pushed(rm.Component):
    """A force on the slider."""

    def interface(self, robot):
        return rm.Interface(inputs={"value": rm.Signal((), "N")})

    def act(self, at):
        return rm.GeneralizedForce(np.reshape(at.inputs["value"], (1,)))


def test_a_sampled_load_of_a_large_robot_receives_the_clock_of_its_phase():
    """Robots that are not compiled as a whole evaluate loads run by run."""
    robot = rm.random_robot(3, bodies=210, kinds=("revolute",), base="free")
    law = rm.ZeroOrderHold(rhythm_of_all, 0.02)
    phases = [rm.Phase(0.02), rm.Phase(0.03, torque=law, own_clock=True)]
    q, v = rm.random_state(robot, 1)
    batch = rm.simulate_batch(
        robot, q, 0.0 * v, phases, integrator=rm.Integrator(step=0.01), runs=1
    )
    run = rm.simulate(
        robot,
        q,
        0.0 * v,
        phases,
        integrator=rm.Integrator("rk4", step=0.01),
        physics=rm.Physics(limits="ignore"),
    )
    assert np.abs(run.v[-1]).max() > 1e-4
    assert np.abs(batch.final.v[0] - run.v[-1]).max() < 1e-13


def rhythm_of_all(t, q, v):
    """Return forces of the joints."""
    return np.concatenate([np.zeros(6), 1e-3 * np.cos(60.0 * t) * np.ones(v.shape[0] - 6)])
