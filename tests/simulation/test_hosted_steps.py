"""Implicit and variational methods in the program of a run: Python makes their steps only."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from plain_settings import grouped

ROBOT = rm.load("servicer")
METHODS = {"radau": {"rtol": 1e-8}, "variational": {"step": 0.01}}


def start():
    return rm.neutral(ROBOT), 0.05 * rm.random_state(ROBOT, 1)[1]


@pytest.mark.parametrize("integrator", METHODS)
def test_ticks_events_and_samples(integrator):
    q, v = start()
    gains = dict.fromkeys([j.name for j in ROBOT.joints[1:]], 0.02)
    law = rm.control.JointPD(ROBOT, dict.fromkeys(gains, 0.1), gains, gains, 0.1)
    event = rm.Event(lambda t, q, v: t - 0.7 + q[8], "passed", action="record")
    run = rm.simulate(
        rm.System(ROBOT, [law]),
        q,
        v,
        2.0,
        **grouped(events=[event], sample=0.25, integrator=integrator, **METHODS[integrator]),
    )
    assert len(run) == 9
    (passed,) = run.events
    assert abs(passed.t - 0.7 + passed.q[8]) < 1e-14


@pytest.mark.parametrize(("integrator", "rtol"), [("radau", 1e-6), ("variational", 2e-4)])
def test_events_and_samples_are_those_of_dop853(integrator, rtol):
    """To the error of the method: rtol of the run, or its step squared."""
    q, v = start()
    event = rm.Event(lambda t, q, v: np.sin(100.0 * q[9]), "waves", action="record")
    given = {"events": [event], "sample": 0.0137, "limits": "ignore"}
    runs = [
        rm.simulate(ROBOT, q, v, 5.0, **grouped(integrator=name, **given, **METHODS.get(name, {})))
        for name in ("dop853", integrator)
    ]
    times = [np.array([e.t for e in run.events]) for run in runs]
    assert len(times[0]) > 3
    assert len(times[1]) == len(times[0])
    assert_close(times[1], times[0], rtol=rtol)
    assert_close(runs[1].q, runs[0].q, rtol=rtol)
    assert_close(runs[1].v, runs[0].v, rtol=rtol)
