"""A system has the same run alone and in a batch: noise, delays, states, resets."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider


class Loop(rm.Component):
    """A sampled PI controller with noise in what it measures."""

    spread: float = 0.3

    def interface(self, robot):
        return rm.Interface(
            outputs={"command": rm.Signal((), "N")},
            discrete={"sum": rm.State(0.0, "m s")},
            noise={"position": 1, "speed": 2},
        )

    def _error(self, at):
        return 0.5 - at.q[..., 0] + self.spread * at.noise["position"][..., 0]

    def outputs(self, at):
        speed = at.v[..., 0] + 0.1 * at.noise["speed"][..., 1]
        return {"command": 4.0 * self._error(at) + at.memory["sum"] - 3.0 * speed}

    def update(self, at):
        return {"sum": at.memory["sum"] + self.sample_time * self._error(at)}


class Drive(rm.Component):
    """A lag that is emptied each time the mass passes its goal."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"command": rm.Signal((), "N")},
            continuous={"force": rm.State(0.0, "N")},
            discrete={"passed": rm.State(0.0)},
            events={"goal": rm.ZeroCrossing(0, "reset")},
        )

    def derivative(self, at):
        return {"force": (at.inputs["command"] - at.state["force"]) / 0.05}

    def act(self, at):
        return rm.JointForce("slide", at.state["force"])

    def crossings(self, at):
        return {"goal": at.q[..., 0] - 0.5}

    def reset(self, at, event):
        return {"force": 0.0 * at.state["force"], "passed": at.memory["passed"] + 1.0}


@pytest.mark.parametrize(("delay", "offset"), [(0.0, 0.0), (0.1, 0.0), (0.04, 0.02), (0.17, 0.03)])
def test_a_run_of_a_batch_is_repeated_alone(delay, offset):
    loop = Loop(sample_time=0.1, delay=delay, offset=offset)
    system = rm.System(slider(), [loop, Drive()])
    options = {"step": 0.01, "sample": 1.0, "seed": 5}
    batch = rm.simulate_batch(
        system, [0.0], [0.0], 10.0, **grouped(True, runs=4, signals=list(system.signals), **options)
    )
    for k in (0, 3):
        run = rm.simulate(
            system,
            [0.0],
            [0.0],
            10.0,
            **grouped(integrator="rk4", run=k, limits="ignore", **options),
        )
        assert run.signals["drive.passed"][-1] >= 2.0
        at = [int(np.flatnonzero(run.t == t)[-1]) for t in batch.t]
        assert np.abs(batch.q[k] - run.q[at]).max() < 1e-12
        assert np.abs(batch.v[k] - run.v[at]).max() < 1e-12
        for name, values in run.signals.items():
            assert np.abs(batch.signals[name][k] - values[at]).max() < 1e-12
    assert np.abs(batch.q[0] - batch.q[3]).max() > 1e-3
