"""Order of evaluation: what components read at a tick does not depend on how they are listed."""

import itertools

import numpy as np
import pytest

import remora as rm
from sliders import slider


class Counter(rm.Component):
    """1, 2, 3, ... at its ticks."""

    def interface(self, robot):
        return rm.Interface(outputs={"count": rm.Signal()}, discrete={"n": 0.0})

    def outputs(self, at):
        return {"count": at.memory["n"] + 1.0}

    def update(self, at):
        return {"n": at.memory["n"] + 1.0}


class Actuator(rm.Component):
    """Acts and stores what it reads; its output does not depend on it."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"count": rm.Signal()}, outputs={"y": rm.Signal()}, discrete={"last": 0.0}
        )

    def outputs(self, at):
        return {"y": at.memory["last"]}

    def act(self, at):
        return rm.JointForce("slide", at.inputs["count"])

    def update(self, at):
        return {"last": at.inputs["count"]}


class Copy(rm.Component):
    """Passes its input on."""

    def interface(self, robot):
        return rm.Interface(inputs={"count": rm.Signal()}, outputs={"passed": rm.Signal()})

    def outputs(self, at):
        return {"passed": at.inputs["count"]}


def final(components, name, connect=None, duration=0.95):
    system = rm.System(slider(), components, connect)
    run = rm.simulate(
        system, [0.0], [0.0], duration, integrator=rm.Integrator("rk4", step=0.05), record=0.05
    )
    batch = rm.simulate_batch(
        system, [0.0], [0.0], duration, integrator=rm.Integrator(step=0.05), runs=1
    )
    assert batch.signals[name][0, -1] == run.signals[name][-1]
    assert abs(batch.q[0, -1, 0] - run.q[-1, 0]) < 1e-14
    return run.signals[name][-1], run.q[-1, 0]


@pytest.mark.parametrize("other", [0.1, 0.05])
def test_actions_and_updates_read_the_signals_of_the_tick(other):
    made = [Counter(sample_time=0.1), Actuator(sample_time=other)]
    first, second = (final(parts, "actuator.last") for parts in (made, made[::-1]))
    assert first == second
    assert first[0] == 10.0
    # constant forces 1, 2, ... over 0.1 s each
    q, v = 0.0, 0.0
    for k in range(10):
        h = 0.1 if k < 9 else 0.05
        q, v = q + v * h + 0.5 * (k + 1) * h * h, v + (k + 1) * h
    assert abs(first[1] - q) < 1e-13


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.04])
def test_a_delayed_component_reads_the_signals_of_the_tick(delay):
    made = [Counter(sample_time=0.1), Copy(sample_time=0.1, delay=delay)]
    seen = [final(parts, "copy.passed")[0] for parts in (made, made[::-1])]
    late = round(delay / 0.1)
    assert seen == [10.0 - late] * 2


class Estimator(rm.Component):
    """Its estimate is its state; its next state depends on the command."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"command": rm.Signal()},
            outputs={"estimate": rm.Signal()},
            discrete={"x": 1.0},
        )

    def outputs(self, at):
        return {"estimate": at.memory["x"]}

    def update(self, at):
        return {"x": at.memory["x"] + at.inputs["command"]}


class Law(rm.Component):
    """command = -gain estimate."""

    gain: float = 0.25

    def interface(self, robot):
        return rm.Interface(inputs={"estimate": rm.Signal()}, outputs={"command": rm.Signal()})

    def outputs(self, at):
        return {"command": -self.gain * at.inputs["estimate"]}


def test_an_observer_updates_with_the_command_of_the_same_tick():
    for parts in itertools.permutations([Estimator(sample_time=0.1), Law(sample_time=0.1)]):
        # x[k+1] = (1 - gain) x[k]; ten ticks before 0.95 s
        assert abs(final(parts, "estimator.x")[0] - 0.75**10) < 1e-15


class TwoStages(rm.Component):
    """Its second output depends on an input that depends on its first output."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"passed": rm.Signal()},
            outputs={"count": rm.Signal(), "sum": rm.Signal()},
            discrete={"n": 0.0},
        )

    def outputs(self, at):
        return {"count": at.memory["n"] + 1.0, "sum": 10.0 * at.inputs["passed"]}

    def update(self, at):
        return {"n": at.memory["n"] + 1.0}


def test_outputs_of_two_components_may_alternate():
    made = [TwoStages(sample_time=0.1), Copy(sample_time=0.1)]
    for parts in (made, made[::-1]):
        assert final(parts, "two_stages.sum")[0] == 100.0


def test_alternating_outputs_with_different_ticks_are_refused():
    with pytest.raises(rm.errors.ModelError, match="depend on each other at the same tick"):
        rm.System(slider(), [TwoStages(sample_time=0.1), Copy(sample_time=0.05)])


class Switched(rm.Component):
    """Has a direct path from input to output only where its gain is not zero."""

    gain: float = 0.0

    def interface(self, robot):
        return rm.Interface(inputs={"count": rm.Signal()}, outputs={"u": rm.Signal()})

    def outputs(self, at):
        return {"u": self.gain * at.inputs["count"]}


class Position(rm.Component):
    """A continuous signal."""

    def interface(self, robot):
        return rm.Interface(outputs={"count": rm.Signal()})

    def outputs(self, at):
        return {"count": 2.0 + at.q[..., 0]}


def test_a_gain_that_is_zero_may_differ_by_run():
    system = rm.System(slider(), [Switched(), Position()])
    batch = rm.simulate_batch(
        system,
        [1.0],
        [0.0],
        0.1,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"switched.gain": [0.0, 2.0]}),
    )
    assert np.array_equal(batch.signals["switched.u"][:, -1], [0.0, 6.0])
    changed = system.with_parameters({"switched.gain": 2.0})
    run = rm.simulate(changed, [1.0], [0.0], 0.1, integrator=rm.Integrator("rk4", step=0.1))
    assert run.signals["switched.u"][-1] == 6.0


class Decides(Switched):
    """Decides on the value of one of its parameters."""

    mode: float = 1.0

    def outputs(self, at):
        if self.mode > 0.0:
            return {"u": self.gain * at.inputs["count"]}
        return {"u": at.q[..., 0]}


def test_parameters_that_decide_leave_the_others_free():
    system = rm.System(slider(), [Decides(), Position()])
    assert not system.untraceable
    batch = rm.simulate_batch(
        system,
        [1.0],
        [0.0],
        0.1,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"decides.gain": [0.0, 2.0]}),
    )
    assert np.array_equal(batch.signals["decides.u"][:, -1], [0.0, 6.0])


class Product(rm.Component):
    """A number times an array: with one joint, both have one element."""

    def interface(self, robot):
        return rm.Interface(inputs={"count": rm.Signal()})

    def act(self, at):
        return rm.GeneralizedForce(0.5 * at.inputs["count"] * np.cos(at.v))


def test_a_number_times_an_array_of_one_element_is_traced():
    system = rm.System(slider(), [Position(), Product()])
    assert not system.untraceable
    run = rm.simulate(system, [1.0], [0.0], 0.1, integrator=rm.Integrator("rk4", step=0.1))
    batch = rm.simulate_batch(system, [1.0], [0.0], 0.1, integrator=rm.Integrator(step=0.1), runs=1)
    assert abs(batch.q[0, -1, 0] - run.q[-1, 0]) < 1e-15
