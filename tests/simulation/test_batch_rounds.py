"""Adaptive runs of a batch in rounds have the same bits as without, however they are ordered."""

import math

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.batch import batch_phases
from sliders import slider

RUNS = 40
SPEEDS = np.linspace(0.0, 30.0, RUNS)[:, None] * np.where(np.arange(RUNS) % 2, 1.0, -0.1)[:, None]
OPTIONS = {"integrator": "dopri5", "rtol": 1e-9, "atol": 1e-11, "seed": 3, "threads": 1}


class Loop(rm.Component):
    """A sampled, noisy controller with memory."""

    def interface(self, robot):
        return rm.Interface(discrete={"sum": 0.0}, noise={"n": 1})

    def act(self, at):
        noisy = at.q[..., 0] + 0.1 * at.noise["n"][..., 0]
        return rm.JointForce("slide", -9.0 * noisy - at.memory["sum"])

    def update(self, at):
        return {"sum": at.memory["sum"] + 0.1 * at.q[..., 0]}


class Spring(rm.Component):
    """A stiffening spring: fast runs take more steps."""

    def act(self, at):
        q = at.q[..., 0]
        return rm.JointForce("slide", -4.0 * q - 2.0 * q * q * q)


SYSTEM = rm.System(slider(), [Loop(sample_time=0.4, delay=0.1), Spring()])


def batch(chosen=slice(None), **options):
    index = np.arange(RUNS)[chosen]
    return rm.simulate_batch(
        SYSTEM,
        np.zeros((len(index), 1)),
        SPEEDS[chosen],
        2.0,
        **grouped(True, run=index, sample=0.23, **OPTIONS | options),
    )


@pytest.mark.parametrize("budgets", [None, (3.0, 7.0, 8.0, math.inf), (1.0, 200.0, math.inf)])
def test_bits_do_not_depend_on_rounds(budgets, monkeypatch):
    made = []
    whole = batch_phases.BatchRuns._round
    monkeypatch.setattr(
        batch_phases.BatchRuns, "_round", lambda *args: made.append(args[3]) or whole(*args)
    )
    if budgets is not None:
        monkeypatch.setattr(batch_phases, "BUDGETS", budgets)
    found = batch()
    assert len(made) == len(budgets or batch_phases.BUDGETS)
    assert len(made[-1]) > 0, "no run was left for the last round"
    for first in range(0, RUNS, 10):  # too few for rounds
        made.clear()
        part = batch(slice(first, first + 10))
        assert len(made) == 1
        for name in ("q", "v", "ok", "end"):
            assert np.array_equal(getattr(part, name), getattr(found, name)[first : first + 10])
        for name, values in part.signals.items():
            assert np.array_equal(values, found.signals[name][first : first + 10])


def test_runs_that_fail_are_those_that_fail_alone():
    few = {"max_steps": 200, "failures": "keep"}
    found, alone = batch(**few), [batch(slice(k, k + 1), **few) for k in range(0, RUNS, 4)]
    assert 0 < np.count_nonzero(found.ok) < RUNS
    assert [b.ok[0] for b in alone] == found.ok[::4].tolist()
    assert [b.outcome[0] for b in alone] == found.outcome[::4].tolist()
    assert np.array_equal([b.q[0] for b in alone], found.q[::4], equal_nan=True)


def test_progress_counts_each_run_once():
    shown = []
    batch(progress=False)
    runs = batch_phases.BatchRuns
    original = runs._round
    try:
        runs._round = lambda self, *args: original(self, *args[:4], shown.append)
        batch()
    finally:
        runs._round = original
    assert sum(shown) == RUNS
