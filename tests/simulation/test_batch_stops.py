"""Stops in batches: contact is located in every run by itself, inside the machine code."""

import numpy as np
import pytest

import remora as rm
from ptx_machine import launched
from remora.components.system import System
from remora.dynamics.forces.equations_of_motion import PassiveParameters
from remora.simulation.integrators import tableaus
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import Forces, RunEquations
from remora.simulation.program.run_program import Recorded, StepControl, run_program
from sliders import bounced, slider


@pytest.mark.parametrize("step", [1.0, 0.3, 0.05, 1e-3])
def test_a_stop_is_not_stepped_over(step):
    """Row of issue 12: however long the steps are, and whatever the other runs do."""
    robot = slider(upper=4.75, gravity=-10.0)
    v = np.array([[10.0], [9.0], [0.0], [-3.0], [9.7], [12.0], [10.0], [30.0], [9.75]])
    batch = rm.simulate_batch(
        robot,
        np.zeros((9, 1)),
        v,
        3.0,
        integrator=rm.Integrator(step=step),
        physics=rm.Physics(stops=1e4),
    )
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
        robot,
        np.zeros((3, 1)),
        v,
        3.0,
        integrator=rm.Integrator(step=step),
        physics=rm.Physics(stops=(2e4, damping)),
        record=0.1,
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
    batch = rm.simulate_batch(
        robot, q, v, 3.0, integrator=rm.Integrator(step=0.01), physics=rm.Physics(stops=(3e4, 0.2))
    )
    touched = 0
    for k in range(6):
        run = rm.simulate(
            robot,
            q[k],
            v[k],
            3.0,
            physics=rm.Physics(stops=(3e4, 0.2)),
            integrator=rm.Integrator(rtol=1e-11),
        )
        touched += any("limit" in e.name for e in run.events)
        assert np.abs(rm.difference(robot, batch.q[k, -1], run.q[-1])).max() < 1e-4
        alone = rm.simulate_batch(
            robot,
            q[k],
            v[k],
            3.0,
            integrator=rm.Integrator(step=0.01),
            physics=rm.Physics(stops=(3e4, 0.2)),
        )
        assert np.array_equal(alone.q, batch.q[k])
        assert np.array_equal(alone.v, batch.v[k])
    assert touched >= 4


def test_where_no_stop_is_met_they_change_nothing():
    robot = slider(lower=-50.0, upper=50.0, gravity=-1.0)
    v = np.linspace(-3.0, 3.0, 7)[:, None]
    with_stops, without = (
        rm.simulate_batch(
            robot,
            np.zeros((7, 1)),
            v,
            2.0,
            integrator=rm.Integrator(step=0.05),
            physics=rm.Physics(stops=k),
        )
        for k in (1e4, None)
    )
    assert np.abs(with_stops.q - without.q).max() < 1e-14


def test_single_precision():
    robot = slider(upper=4.75, gravity=-10.0)
    batch = rm.simulate_batch(
        robot,
        [0.0],
        [10.0],
        3.0,
        integrator=rm.Integrator(step=0.05),
        physics=rm.Physics(stops=1e4),
        target=rm.Target(dtype="float32"),
    )
    assert batch.q[-1, 0] == pytest.approx(-24.202, abs=2e-2)


def _program(robot, dtype="float64"):
    """Return the program of a robot with stops, and the arguments of a run by name."""
    passive = PassiveParameters(1e-3, 1e4, 0.1)
    equations = RunEquations(System(robot), Forces(None, None), (), "articulated", passive, {})
    blocks = RunBlocks(equations, tableaus.DOPRI5, dtype, 0.0)
    control = StepControl(tableaus.DOPRI5, 0.1, 1e-8, 1e-10, max_step=0.1)
    zero = np.zeros(1)
    numbers = {"rest q": zero, "rest v": zero, "t": zero, "start": zero, "phase start": zero,
               "until": np.ones(1), "status": zero, "budget": np.full(1, 1e300),
               "entering": np.ones(1), "h": np.full(1, 0.1), "fresh": np.ones(1)}  # fmt: skip
    numbers |= {name: np.full(1, x) for name, x in control.numbers.items()}
    return run_program(blocks, Recorded()), numbers


def _arguments(program, q, v, numbers):
    given = {**numbers, "q": q, "v": v}
    return [given.get(s.name, np.zeros(s.shape)) for s in program.inputs]


def test_the_loop_as_it_is_interpreted():
    """NumPy, operation by operation, gives the bits of the machine code."""
    from remora.codegen.integration.program_cpu import ProgramKernel
    from remora.codegen.integration.program_interpreter import interpret
    from remora.codegen.llvm import host

    program, numbers = _program(slider(lower=-0.3, upper=0.4, gravity=-2.0))
    given = _arguments(program, np.zeros((5, 1)), np.linspace(-4.0, 4.0, 5)[:, None], numbers)
    tables = {"sample time": [0.2, 0.5]}
    made = ProgramKernel(program, "stops", "float64")(*given, tables=tables)
    seen = interpret(program.prepared("float64", host.host().fma), given, tables)
    for a, b in zip(made, seen, strict=True):
        assert np.array_equal(a, b)


def test_the_loop_on_a_gpu():
    """Its PTX on the small machine of the tests, one thread in a block: what NumPy gives."""
    from remora.codegen.integration.program_interpreter import interpret
    from remora.codegen.integration.program_ptx import CudaProgram

    program, numbers = _program(slider(lower=-0.3, upper=0.4, gravity=-2.0))
    given = _arguments(program, np.zeros((2, 1)), np.array([[-4.0], [3.0]]), numbers)
    given = [np.broadcast_to(x, (2, *np.shape(x)[-1:])).copy() for x in given]
    tables = {"sample time": [0.2]}
    got = launched(CudaProgram(program, "stops", "float64"), given, tables, block=1)
    seen = interpret(program.prepared("float64"), given, tables)
    for a, b, output in zip(got, seen, program.outputs, strict=True):
        if output.name != "final tried":  # a GPU divides with another rounding
            assert np.abs(a - b).max(initial=0.0) < 1e-6


def test_a_run_that_needs_too_many_passes_is_not_ok():
    """A stop so stiff that the step would need millions of passes: no number is made up."""
    robot = slider(lower=0.0, gravity=-10.0)
    batch = rm.simulate_batch(
        robot,
        [[0.0], [9.0]],
        [[0.0], [1.0]],
        1.0,
        integrator=rm.Integrator(step=1.0),
        physics=rm.Physics(stops=1e12),
        record=rm.Record(failures="keep"),
    )
    assert batch.ok.tolist() == [False, True]
    assert batch.q[1, -1, 0] == pytest.approx(5.0, abs=1e-9)
    with pytest.raises(rm.errors.SimulationError, match="1 of 2 runs could not be finished"):
        rm.simulate_batch(
            robot,
            [[0.0], [9.0]],
            [[0.0], [1.0]],
            1.0,
            integrator=rm.Integrator(step=1.0),
            physics=rm.Physics(stops=1e12),
        )
