"""Stops in batches: contact is located in every run by itself, inside the machine code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import remora as rm
from ptx_machine import launched
from remora.dynamics.forces.equations_of_motion import PassiveParameters
from remora.simulation.batch.batch_inputs import batch_inputs
from remora.simulation.batch.batch_loop import COUNT, START, STEP, Forces
from remora.simulation.batch.batch_loop_with_stops import batch_program_with_stops, first_fall
from sliders import bounced, slider


@pytest.mark.parametrize("step", [1.0, 0.3, 0.05, 1e-3])
def test_a_stop_is_not_stepped_over(step):
    """Row of issue 12: however long the steps are, and whatever the other runs do."""
    robot = slider(upper=4.75, gravity=-10.0)
    v = np.array([[10.0], [9.0], [0.0], [-3.0], [9.7], [12.0], [10.0], [30.0], [9.75]])
    batch = rm.simulate_batch(robot, np.zeros((9, 1)), v, 3.0, step=step, stops=1e4)
    for speed, end in zip(v[:, 0], batch.q[:, -1, 0], strict=True):
        y, _ = bounced(0.0, speed, 3.0, lower=-1e3, upper=4.75, gravity=-10.0, k=1e4)
        assert end == pytest.approx(y[0], abs=2e-6)
    assert batch.q[0, -1, 0] == pytest.approx(-24.20198903, abs=1e-6)
    assert batch.q[0, -1, 0] == batch.q[6, -1, 0]


@pytest.mark.parametrize(("step", "damping"), [(0.2, 0.0), (0.01, 0.0), (0.1, 0.05), (0.003, 0.05)])
def test_many_bounces(step, damping):
    setting = {"lower": -0.5, "upper": 0.7, "gravity": -3.0}
    robot = slider(**setting)
    v = np.array([[4.0], [2.0], [3.0]])
    batch = rm.simulate_batch(
        robot, np.zeros((3, 1)), v, 3.0, step=step, stops=(2e4, damping), sample=0.1
    )
    for speed, q, u in zip(v[:, 0], batch.q[:, -1, 0], batch.v[:, -1, 0], strict=True):
        y, times = bounced(0.0, speed, 3.0, **setting, k=2e4, d=damping)
        assert len(times) >= 2
        assert q == pytest.approx(y[0], abs=2e-5)
        assert u == pytest.approx(y[1], abs=2e-4)
    if damping == 0.0:
        over = np.maximum(batch.q - 0.7, 0.0) + np.maximum(-0.5 - batch.q, 0.0)
        energy = 0.5 * batch.v**2 + 3.0 * batch.q + 1e4 * over**2
        assert np.abs(energy[..., 0] / energy[:, :1, 0] - 1.0).max() < 1e-5


def test_the_same_as_one_run_at_a_time():
    """A manipulator thrown against its stops, a free base and a damped drive."""
    robot = rm.load("servicer")
    rng = np.random.default_rng(3)
    q = np.tile(rm.neutral(robot), (6, 1))
    v = np.concatenate([np.zeros((6, 6)), rng.uniform(-1.5, 1.5, (6, robot.nv - 6))], axis=1)
    batch = rm.simulate_batch(robot, q, v, 3.0, step=0.01, stops=(3e4, 0.2))
    touched = 0
    for k in range(6):
        run = rm.simulate(robot, q[k], v[k], 3.0, stops=(3e4, 0.2), rtol=1e-11)
        touched += any("limit" in e.name for e in run.events)
        assert np.abs(rm.difference(robot, batch.q[k, -1], run.q[-1])).max() < 1e-4
        alone = rm.simulate_batch(robot, q[k], v[k], 3.0, step=0.01, stops=(3e4, 0.2))
        assert np.array_equal(alone.q, batch.q[k])
        assert np.array_equal(alone.v, batch.v[k])
    assert touched >= 4


def test_where_no_stop_is_met_they_change_nothing():
    robot = slider(lower=-50.0, upper=50.0, gravity=-1.0)
    v = np.linspace(-3.0, 3.0, 7)[:, None]
    with_stops, without = (
        rm.simulate_batch(robot, np.zeros((7, 1)), v, 2.0, step=0.05, stops=k) for k in (1e4, None)
    )
    assert np.abs(with_stops.q - without.q).max() < 1e-14


def test_single_precision():
    robot = slider(upper=4.75, gravity=-10.0)
    batch = rm.simulate_batch(robot, [0.0], [10.0], 3.0, step=0.05, stops=1e4, dtype="float32")
    assert batch.q[-1, 0] == pytest.approx(-24.202, abs=2e-2)


def test_the_loop_as_it_is_interpreted():
    """NumPy, operation by operation, gives the bits of the machine code."""
    from remora.codegen.integration.program_cpu import ProgramKernel
    from remora.codegen.integration.program_interpreter import interpret
    from remora.codegen.llvm import host

    robot = slider(lower=-0.3, upper=0.4, gravity=-2.0)
    own = batch_inputs(robot, np.zeros((5, 1)), np.linspace(-4.0, 4.0, 5)[:, None], None, None, {},
                       {}, "float64")  # fmt: skip
    forces = Forces(own.torque, own.wrenches, own.inputs)
    program = batch_program_with_stops(
        robot, forces, (), "articulated", PassiveParameters(1e-3, 1e4, 0.1), 0.0, "float64"
    )
    tables = {START: [0.0], STEP: [0.1], COUNT: [10]}
    made = ProgramKernel(program, "stops", "float64")(*own.arrays, tables=tables)
    ready = program.prepared("float64", host.host().fma)
    seen = interpret(ready, own.arrays, tables)
    for a, b in zip(made, seen, strict=True):
        assert np.array_equal(a, b)


def test_the_loop_on_a_gpu():
    """Its PTX on the small machine of the tests, one thread in a block: what NumPy gives."""
    from remora.codegen.integration.program_interpreter import interpret
    from remora.codegen.integration.program_ptx import CudaProgram

    robot = slider(lower=-0.3, upper=0.4, gravity=-2.0)
    own = batch_inputs(robot, np.zeros((3, 1)), np.linspace(-4.0, 4.0, 3)[:, None], None, None, {},
                       {}, "float64")  # fmt: skip
    forces = Forces(own.torque, own.wrenches, own.inputs)
    program = batch_program_with_stops(
        robot, forces, (), "articulated", PassiveParameters(1e-3, 1e4, 0.1), 0.0, "float64"
    )
    tables = {START: [0.0], STEP: [0.1], COUNT: [3]}
    got = launched(CudaProgram(program, "stops", "float64"), own.arrays, tables, block=1)
    seen = interpret(program.prepared("float64"), own.arrays, tables)
    for a, b in zip(got, seen, strict=True):
        assert np.abs(a - b).max() < 1e-9


def test_a_run_that_needs_too_many_passes_is_not_ok():
    """A stop so stiff that the step would need millions of passes: no number is made up."""
    robot = slider(lower=0.0, gravity=-10.0)
    batch = rm.simulate_batch(
        robot, [[0.0], [9.0]], [[0.0], [1.0]], 1.0, step=1.0, stops=1e12, failures="keep"
    )
    assert batch.ok.tolist() == [False, True]
    assert batch.q[1, -1, 0] == pytest.approx(5.0, abs=1e-9)
    with pytest.raises(rm.SimulationError, match="1 of 2 runs do not stay finite"):
        rm.simulate_batch(robot, [[0.0], [9.0]], [[0.0], [1.0]], 1.0, step=1.0, stops=1e12)


@given(
    ends=st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    first=st.floats(0.0, 3.0),
)
@settings(max_examples=300, deadline=None)
def test_where_cubics_fall_below_zero(ends, first):
    """Against the values of the cubic on a fine grid."""
    f0, (s0, f1, s1) = first, ends
    place = float(first_fall(*(np.array([x]) for x in (f0, s0, f1, s1)), 1e-14)[0])
    x = np.linspace(0.0, 1.0, 20_001)
    c2, c3 = 3.0 * (f1 - f0) - 2.0 * s0 - s1, 2.0 * (f0 - f1) + s0 + s1
    values = f0 + x * (s0 + x * (c2 + x * c3))
    below = np.flatnonzero(values < -1e-9)
    if below.size:
        assert place <= x[below[0]] + 1e-12
        assert place >= x[below[0]] - 2e-3
        here = f0 + place * (s0 + place * (c2 + place * c3))
        assert abs(here) < 1e-5
    elif values.min() > 1e-9:
        assert place == 2.0
