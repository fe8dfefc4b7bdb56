"""Programs of batches as C: the bits of the interpreter for whole runs, fixed and adaptive."""

import numpy as np
import pytest

import needs
import remora as rm
from c_programs import run_c
from remora.codegen.integration.program_interpreter import interpret
from remora.dynamics.forces.equations_of_motion import PassiveParameters
from remora.simulation.batch.lockstep_program import lockstep_program, timetable
from remora.simulation.inputs.phases import motion_of
from remora.simulation.integrators import tableaus
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import Forces, RunEquations
from remora.simulation.program.run_program import Recorded, StepControl, run_program


class Gauge(rm.Component):
    deviation: float = 1e-2

    def interface(self, robot):
        return rm.Interface(outputs={"height": rm.Signal()}, noise={"height": 1})

    def outputs(self, at):
        return {"height": at.q[..., 0] + self.deviation * at.noise["height"][..., 0]}


class Hover(rm.Component):
    def interface(self, robot):
        return rm.Interface(inputs={"height": rm.Signal()}, discrete={"last": 0.0})

    def act(self, at):
        height = at.inputs["height"]
        speed = (height - at.memory["last"]) / self.sample_time
        return rm.JointForce("slide", (2.0 * (1.0 - height) - 0.3 * speed)[..., None])

    def update(self, at):
        return {"last": at.inputs["height"]}


class Floor(rm.Component):
    def interface(self, robot):
        return rm.Interface(events={"impact": rm.ZeroCrossing(-1, "reset")}, discrete={"count": 0})

    def crossings(self, at):
        return {"impact": at.q[..., 0]}

    def reset(self, at, event):
        return {"v": -0.8 * at.v, "count": at.memory["count"] + 1.0}


def equations(parts=(), held=()):
    builder = rm.Builder("ball", gravity=(0, 0, -9.81)).body("ball", mass=2, inertia=(1, 1, 1))
    builder = builder.joint("slide", "prismatic", None, "ball", axis=(0, 0, 1))
    builder = builder.body("tail", mass=0.5, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    robot = builder.joint("tail", "revolute", "ball", "tail", axis=(0, 1, 0)).build()
    system = rm.System(robot, list(parts))
    passive = PassiveParameters(1e-3, 0.0, 0.0)
    return RunEquations(system, Forces(None, None), (), "articulated", passive, dict(held))


def given(program, blocks, dtype, **values):
    """Return the arguments of two runs."""
    system = blocks.equations.system
    values |= {
        "q": [[0.5, 0.1], [0.9, -0.4]], "v": [[0.0, 1.0], [1.0, 0.0]],
        "z": [system.initial_z] * 2, "seed": [[7.0, 1.0]] * 2, "run": [[0.0], [3.0]],
        "anchor": [[0.5, 0.1], [0.9, -0.4]],
    }  # fmt: skip
    return [
        np.asarray(values.get(s.name, np.zeros((2, *s.shape))), "float64" if s.wide else dtype)
        for s in program.inputs
    ]


def same_bits(program, arguments, folder, dtype, tables, capacity):
    found = run_c(program, folder, arguments, dtype, tables, capacity)
    ready = program.prepared(dtype, fma=False)
    expected = interpret(ready, arguments, tables, capacity, dtype)
    for a, b, o in zip(found, expected, program.outputs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=o.name)
    return dict(zip((o.name for o in program.outputs), found, strict=True))


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tableau", ["RK4", "DOPRI5"])
def test_events_ticks_and_noise(tableau, dtype, tmp_path):
    own = equations([Gauge(sample_time=0.03), Hover(sample_time=0.03, delay=0.01), Floor()])
    blocks = RunBlocks(own, getattr(tableaus, tableau), dtype, 0.0)
    control = StepControl(getattr(tableaus, tableau), 0.02, 1e-6, 1e-8)
    program = run_program(blocks, Recorded(tuple(own.system.signals)))
    numbers = {k: np.full((2, 1), x) for k, x in control.numbers.items()}
    one, many = np.ones((2, 1)), np.full((2, 1), 1e300)
    arguments = given(
        program, blocks, dtype, until=0.5 * one, budget=many, h=0.02 * one, fresh=one,
        entering=one, **numbers,
    )  # fmt: skip
    tables = {"sample time": np.array([0.0, 0.1, 0.37, 0.5])}
    found = same_bits(program, arguments, tmp_path, dtype, tables, {"events": 10})
    assert (found["floor.count"][:, -1] >= 1.0).any()
    assert np.isfinite(found["sample q"]).all()


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lockstep_with_a_held_joint(dtype, tmp_path):
    motion = motion_of("tail", lambda t: 0.1 + 0.3 * t - 0.2 * t * t)
    own = equations([Gauge(sample_time=0.03), Hover(sample_time=0.03)], {"tail": motion})
    blocks = RunBlocks(own, tableaus.RK4, dtype, 0.0)
    program = lockstep_program(blocks, ())
    updates = [(u, 0.0, 0) for u in own.system.schedule]
    table = timetable(np.array([0.0, 0.1, 0.2]), 0.0, 0.2, 0.02, (), updates)
    arguments = given(program, blocks, dtype)
    capacity = dict.fromkeys(program.buffers, 3)
    found = same_bits(program, arguments, tmp_path, dtype, table.passed(), capacity)
    assert np.isfinite(found["sample q"]).all()
    assert np.abs(found["final q"][:, 1] - (0.1 + 0.06 - 0.008)).max() < 1e-6
