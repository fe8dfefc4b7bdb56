"""Sampled loads where a phase ends just after a tick: as in single runs, one sample, not two."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider

SLIDER = slider(mass=1.3)
PERIOD = 0.1


def law(t, q, v):
    return 3.0 * (0.5 - q) - v + t


def loads():
    pd = rm.control.JointPD(SLIDER, {"slide": 0.5}, kp=3.0, kd=1.0, sample_time=PERIOD)
    return {"law": rm.ZeroOrderHold(law, PERIOD), "pd": pd}


def difference(phases, **options):
    """Return the largest difference of states at 0.9 s, alone and in a batch."""
    times = [0.0, 0.9]
    alone = rm.simulate(
        SLIDER,
        [0.0],
        [1.0],
        phases,
        integrator=rm.Integrator("rk4", step=0.01, step_to_samples=True),
        physics=rm.Physics(limits="ignore"),
        record=rm.Record(times, progress=False),
    )
    batch = rm.simulate_batch(
        SLIDER,
        [0.0],
        [1.0],
        **grouped(True, phases=phases, runs=2, step=0.01, sample=times, **options),
    )
    assert np.array_equal(batch.q[0, :2], batch.q[1, :2])
    off = np.abs(batch.q[0, 1] - alone.q[1]), np.abs(batch.v[0, 1] - alone.v[1])
    return float(np.max(off))


@pytest.mark.parametrize("kind", ["law", "pd"])
@pytest.mark.parametrize("late", [0.0, 1e-9, 4e-7, -4e-7, 0.03])
def test_an_event_near_a_tick(kind, late):
    over = rm.Event(lambda t, q, v: t - (0.3 + late), "over", action="next", direction=1)
    load = loads()[kind]
    phases = [rm.Phase(1.0, torque=load, events=[over]), rm.Phase(0.7, torque=load)]
    assert difference(phases) < 1e-14


@pytest.mark.parametrize("late", [0.0, 4e-7, -4e-7, 0.03])
def test_phases_of_fixed_length_that_end_near_a_tick(late):
    load = loads()["pd"]
    phases = [rm.Phase(0.3 + late, torque=load), rm.Phase(0.7 - late, torque=load)]
    assert difference(phases) < 1e-14


def test_another_load_is_sampled_at_once():
    phases = [
        rm.Phase(0.3 + 4e-7, torque=loads()["pd"]),
        rm.Phase(0.7 - 4e-7, torque=rm.ZeroOrderHold(law, PERIOD)),
    ]
    assert difference(phases) < 1e-14
