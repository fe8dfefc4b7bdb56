"""Programs of batches are found again quickly, and only where they are the same."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.codegen.integration.program_cpu import ProgramKernel
from remora.dynamics.kernels import kernel_memory
from remora.identity.recent import Recent
from remora.simulation.batch import batch_phases
from remora.simulation.program import event_search

ROBOT = rm.load("vt18_satellite")
Q, V = rm.random_state(ROBOT, 0, (2,))
OPTIONS = {"duration": 0.2, "step": 0.1, "progress": False}


@pytest.fixture
def keys(monkeypatch):
    """Return the keys by value that are asked for, with nothing in memory."""
    found, original = [], batch_phases.value_key

    def value_key(*given):
        found.append(original(*given))
        return found[-1]

    monkeypatch.setattr(batch_phases, "value_key", value_key)
    monkeypatch.setattr(kernel_memory, "_memory", Recent(100))
    return found


def programs():
    """Return the programs in memory."""
    found = (kernel for kernel, _ in kernel_memory._memory._values.values())
    return list({id(k): k for k in found if isinstance(k, ProgramKernel)}.values())


def test_the_same_robot_is_not_digested_again(keys):
    first = rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS))
    again = rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS))
    assert len(keys) == 1
    assert np.array_equal(first.q, again.q)
    copy = dataclasses.replace(ROBOT)
    assert copy is not ROBOT
    rm.simulate_batch(copy, Q, V, **grouped(True, **OPTIONS))
    assert len(keys) == 2  # another object, compared by value
    assert keys[0] == keys[1]
    assert len(programs()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float32"}, {"integrator": "dopri5"}, {"integrator": "dopri5", "rtol": 1e-6},
        {"slip_speed": 0.1}, {"formulation": "composite"}, {"breaks": [0.05]},
        {"parameters": {"body_2.mass": np.array([5.0, 6.0])}},
    ],
    ids=lambda change: next(reversed(change)),
)  # fmt: skip
def test_other_settings_are_other_programs(change, keys):
    rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS))
    rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS | change))
    rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS | change))
    assert len(keys) == 2
    assert keys[0] != keys[1]


def test_loads_are_compared_by_value(keys):
    torque = np.zeros(ROBOT.nv)
    still = rm.simulate_batch(ROBOT, Q, V, **grouped(True, torque=torque, **OPTIONS))
    torque[-1] = 2.0
    pushed = rm.simulate_batch(ROBOT, Q, V, **grouped(True, torque=torque, **OPTIONS))
    assert len(keys) == 2
    assert not np.array_equal(still.q[:, -1], pushed.q[:, -1])


def test_a_replaced_formulation_is_compared_by_value(keys, monkeypatch):
    rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS))
    monkeypatch.setitem(
        rm.dynamics.FORMULATIONS, "articulated", rm.dynamics.FORMULATIONS["composite"]
    )
    for _ in range(2):
        rm.simulate_batch(ROBOT, Q, V, **grouped(True, **OPTIONS))
    assert len(keys) == 3
    assert keys[0] != keys[1] == keys[2]


def test_switching_nothing_returns_the_robot():
    assert ROBOT.with_active() is ROBOT


def test_more_nodes_of_the_event_search_are_not_more_code(keys, monkeypatch):
    """Conditions and their slopes are compiled once, not once per node."""
    sizes, times, frame = [], [], ROBOT.bodies[-1].name
    for count in (5, 9):
        monkeypatch.setattr(event_search, "NODES", tuple(np.linspace(0.0, 1.0, count)))
        monkeypatch.setattr(kernel_memory, "_memory", Recent(100))
        event = rm.Event(lambda t, q, v: rm.frame_pose(ROBOT, q, frame)[7] - 0.3, "there")
        batch = rm.simulate_batch(
            ROBOT, Q, V, 2.0, integrator="dopri5", events=[event], record=rm.Record(progress=False)
        )
        (kernel,) = programs()
        sizes.append(len(repr(kernel.program.content())))
        times.append(batch.events.times)
    assert sizes[1] < 1.2 * sizes[0]
    assert np.isfinite(times[0]).any()
    np.testing.assert_allclose(times[1], times[0], rtol=0.0, atol=1e-9)
