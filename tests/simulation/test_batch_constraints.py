"""Batches of robots with constraints that act from the start: single runs, drift, refusals."""

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from ptx_machine import launched
from remora.algebra import pose
from remora.codegen.integration.program_ptx import CudaProgram
from remora.components.system import System
from remora.dynamics.forces.equations_of_motion import PassiveParameters
from remora.simulation.batch.lockstep_program import lockstep_program, timetable
from remora.simulation.integrators import tableaus
from remora.simulation.program.run_blocks import RunBlocks
from remora.simulation.program.run_equations import Forces, RunEquations

WHERE = rm.algebra.pose.from_translation


def loop(base="fixed"):
    """Return a closed chain of three links on a base, and its angles near a closed state."""
    builder = rm.Builder("loop").body("base", mass=20.0, inertia=(4, 5, 6))
    last = "base"
    for k in range(3):
        builder = builder.body(f"link{k}", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.25))
        reach = 0.7 if k == 0 else 1.0
        builder = builder.joint(
            f"j{k}", "revolute", last, f"link{k}", axis=(0, 0, 1), xyz=(reach, 0, 0)
        )
        last = f"link{k}"
    builder = builder.constraint(
        "pin", "revolute", "base", last, parent_xyz=(-0.5, 0, 0), child_xyz=(1, 0, 0)
    )
    robot = builder.build(base=base)
    q = rm.neutral(robot)
    q[-3:] = 1.7, 1.5, 1.5
    return robot, q


def moving(robot, q, runs, seed=0):
    """Return consistent states that differ by run."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        there = q.copy()
        there[-3:] += 0.05 * rng.normal(size=3)
        found.append(rm.close_loops(robot, there, 0.3 * rng.normal(size=robot.nv)))
    return np.array([s[0] for s in found]), np.array([s[1] for s in found])


def off(robot, batch, k, run):
    """Return the largest difference of a run of a batch from one alone, at its samples."""
    seen = [np.argmin(np.abs(run.t - t)) for t in batch.t]
    return max(
        np.abs(rm.difference(robot, run.q[seen], batch.q[k])).max(),
        np.abs(run.v[seen] - batch.v[k]).max(),
    )


def test_a_closed_chain_in_a_batch_is_that_of_a_single_run():
    robot, q = loop()
    q, v = moving(robot, q, 3)
    torque = np.array([0.3, -0.2, 0.1])
    batch = rm.simulate_batch(
        robot, q, v, 2.0, integrator=rm.Integrator(step=0.01), record=0.5, torque=torque
    )
    for k in range(3):
        assert off(robot, batch, k, batch[k]) < 1e-12
    assert np.abs(batch.evaluate(rm.loops.constraint_residual)).max() < 1e-13


def test_adaptive_steps_of_a_closed_chain_are_those_of_a_single_run():
    robot, q = loop()
    q, v = moving(robot, q, 2)
    options = {"integrator": "dopri5", "rtol": 1e-9, "atol": 1e-11, "step": 1e-3, "sample": 0.5}
    batch = rm.simulate_batch(robot, q, v, 2.0, **grouped(True, **options))
    for k in range(2):
        assert off(robot, batch, k, batch[k]) < 1e-11  # rounding moves the steps' ends
    assert np.abs(batch.evaluate(rm.loops.constraint_residual)).max() < 1e-13


def test_drift_and_momentum_of_closed_chains_in_a_batch_over_100_s():
    robot, q = loop("free")
    q, v = moving(robot, q, 4)
    options = {"integrator": "dop853", "rtol": 1e-13, "atol": 1e-15, "sample": 10.0}
    batch = rm.simulate_batch(robot, q, 0.3 * v, 100.0, **grouped(True, **options))
    assert np.abs(batch.evaluate(rm.loops.constraint_residual)).max() < 1e-10
    h = batch.evaluate(rm.momentum)
    assert np.abs(h - h[:, :1]).max() < 1e-12 * np.abs(h).max()


def test_parameters_and_prescribed_joints_of_closed_chains_differ_by_run():
    robot, start = loop()
    start[0] = 1.7
    q = rm.close_loops(robot, start, fixed=["j0"])[0]
    move = {"j0": rm.Motion.between(0.0, 1.0, 1.7, 1.9)}
    parameters = {"link1.mass": np.array([2.0, 5.0])}
    batch = rm.simulate_batch(
        robot,
        q,
        np.zeros(3),
        1.0,
        integrator=rm.Integrator(step=0.02),
        record=0.5,
        prescribed=move,
        runs=rm.Runs(parameters=parameters),
    )
    for k in range(2):
        assert off(robot, batch, k, batch[k]) < 1e-12
    assert np.abs(batch.q[:, -1, 0] - 1.9).max() < 1e-14


def arms():
    """Return two arms on a free base that hold one workpiece by two fixed constraints."""
    builder = rm.Builder("arms").body("base", mass=50.0, inertia=(8, 9, 10))
    builder = builder.joint("base", "free", None, "base")
    for side, y in (("left", 0.4), ("right", -0.4)):
        last = "base"
        for k in range(3):
            name, reach = f"{side}{k}", (0.3, y, 0) if k == 0 else (0.5, 0, 0)
            builder = builder.body(name, mass=2.0, com=(0.25, 0, 0), inertia=(0.02, 0.1, 0.1))
            builder = builder.joint(f"{name}_j", "revolute", last, name, axis=(0, 0, 1), xyz=reach)
            last = name
    builder = builder.body("piece", mass=5.0, inertia=(0.5, 0.2, 0.6))
    builder = builder.joint("piece", "free", None, "piece")
    robot = builder.build()
    q = rm.neutral(robot)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for k, angle in enumerate((0.3, -0.9, 0.6)):
            q[robot.joints[f"{side}{k}_j"].q] = sign * angle
    x = rm.poses(robot, q)
    tips = [rm.algebra.dual_quaternion.mul(x[i], WHERE(np.array([0.5, 0, 0]))) for i in (3, 6)]
    middle = 0.5 * (pose.translation(tips[0]) + pose.translation(tips[1]))
    q[robot.joints["piece"].q] = WHERE(middle)
    width = float(pose.translation(tips[0])[1] - middle[1])
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot = rm.loops.add_constraint(
            robot, f"{side}_grip", "fixed", f"{side}2", "piece", parent_xyz=(0.5, 0, 0),
            child_xyz=(0, sign * width, 0),
        )  # fmt: skip
    return robot, q


def test_two_arms_that_hold_a_workpiece_keep_momentum_in_a_batch():
    robot, q = arms()
    rng = np.random.default_rng(1)
    v = np.stack([rm.close_loops(robot, q, 0.1 * rng.normal(size=robot.nv))[1] for _ in range(3)])
    options = {"integrator": "dop853", "rtol": 1e-13, "atol": 1e-14, "sample": 0.5}
    batch = rm.simulate_batch(robot, q, v, 2.0, **grouped(True, **options))
    assert np.abs(batch.evaluate(rm.loops.constraint_residual)).max() < 1e-12
    h = batch.evaluate(rm.momentum)
    assert np.abs(h - h[:, :1]).max() < 1e-12 * np.abs(h).max()


def test_a_run_that_begins_with_a_violated_constraint_fails_and_is_named():
    robot, q = loop()
    q, v = moving(robot, q, 3)
    apart, sliding = q.copy(), v.copy()
    apart[1, 1] += 1e-3
    with pytest.raises(rm.errors.SimulationError, match=r"run \[1\].*begins with violated.*'pin'"):
        rm.simulate_batch(robot, apart, v, 0.1, integrator=rm.Integrator(step=0.02))
    sliding[2, 1] += 1e-3
    with pytest.raises(
        rm.errors.SimulationError, match=r"run \[2\].*velocity that violates.*'pin'"
    ):
        rm.simulate_batch(robot, q, sliding, 0.1, integrator=rm.Integrator(step=0.02))
    kept = rm.simulate_batch(
        robot,
        apart,
        sliding,
        0.1,
        integrator=rm.Integrator(step=0.02),
        record=rm.Record(failures="keep"),
    )
    assert kept.ok.tolist() == [True, False, False]
    assert kept.outcome.tolist() == ["complete", "violated constraint", "violated constraint"]
    assert "'pin'" in kept.faults[1]
    assert np.isnan(kept.q[1:]).all()
    assert np.isfinite(kept.q[0]).all()


def test_a_locked_joint_that_a_constraint_would_move_fails():
    robot, q = loop()
    q, v = moving(robot, q, 2)
    phases = [rm.Phase(0.0), rm.Phase(0.1, locked=("j0", "j1"))]
    v[1] = 0.0
    v[0] = rm.close_loops(robot, q[0], [0.0, 0.0, 1.0])[1]
    batch = rm.simulate_batch(
        robot, q, v, phases, integrator=rm.Integrator(step=0.02), record=rm.Record(failures="keep")
    )
    assert batch.outcome.tolist() == ["contradiction", "complete"]


def test_float32_and_constraints_is_refused():
    robot, q = loop()
    with pytest.raises(rm.RemoraError, match=r"'pin' acts.*float64"):
        rm.simulate_batch(
            robot,
            q,
            np.zeros(robot.nv),
            0.1,
            integrator=rm.Integrator(step=0.02),
            target=rm.Target(dtype="float32"),
        )


def test_the_program_with_constraints_on_a_gpu():
    """Its PTX on the small machine of the tests: what NumPy gives."""
    builder = rm.Builder("four-bar").body("ground", mass=10.0, inertia=(1, 1, 1))
    for name in ("crank", "coupler", "rocker"):
        builder = builder.body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    builder = builder.joint("a", "revolute", "ground", "crank")
    builder = builder.joint("b", "revolute", "crank", "coupler", xyz=(1, 0, 0))
    builder = builder.joint("d", "revolute", "ground", "rocker", xyz=(1.2, 0, 0))
    builder = builder.rod("c", "coupler", "rocker", 0.3, parent_xyz=(1, 0, 0), child_xyz=(1, 0, 0))
    robot = builder.build(base="fixed")
    q, v = rm.close_loops(robot, [1.2, -1.1, 1.5], [1.0, 0, 0])
    passive = PassiveParameters(1e-3, 0.0, 0.0)
    equations = RunEquations(System(robot), Forces(None, None), (), "articulated", passive, {})
    program = lockstep_program(RunBlocks(equations, tableaus.RK4, "float64", 0.0), ())
    table = timetable(np.array([0.1]), 0.0, 0.1, 0.05, (), ())
    given = {"q": np.tile(q, (2, 1)), "v": np.stack([v, 0.5 * v])}
    numbers = [given.get(s.name, np.zeros((2, *s.shape))) for s in program.inputs]
    made = CudaProgram(program, "four_bar", "float64")
    found = launched(made, numbers, table.passed(), block=1, capacity=1)
    got = dict(zip([o.name for o in program.outputs], found, strict=True))
    batch = rm.simulate_batch(
        robot, given["q"], given["v"], 0.1, integrator=rm.Integrator(step=0.05)
    )
    assert np.abs(got["final q"] - batch.q[:, -1]).max() < 1e-13
    assert np.abs(got["final v"] - batch.v[:, -1]).max() < 1e-13
