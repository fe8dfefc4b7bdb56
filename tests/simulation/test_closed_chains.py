"""Runs of closed chains: drift, momentum, energy, steps in machine code, events, resume."""

import numpy as np
import pytest

import remora as rm
from captures import joined, state
from closed_loops import closed
from plain_settings import grouped
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose
from remora.model.constraint import Constraint
from remora.simulation.engine import progress as showing
from remora.simulation.engine.phase_dynamics import PhaseDynamics
from remora.simulation.storage import recorder as storage


def linkage():
    """Return a free-floating closed chain of four links, and a state in which it moves."""
    builder = rm.Builder("linkage").body("base", mass=20.0, inertia=(4, 5, 6))
    builder, last = builder.joint("base", "free", None, "base"), "base"
    for k in range(4):
        name = f"link{k}"
        builder = builder.body(name, mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.25))
        reach = 0.5 if k == 0 else 1.0
        builder = builder.joint(f"j{k}", "revolute", last, name, axis=(0, 0, 1), xyz=(reach, 0, 0))
        last = name
    robot = builder.build()
    q = rm.neutral(robot)
    q[8:] = 1.2, 1.3, 1.4, 1.1
    x, tip = rm.poses(robot, q), pose.from_translation(np.array([1.0, 0, 0]))
    place = dq.mul(dq.mul(dq.conjugate(x[0]), x[4]), tip)
    numbers = [np.array(0.0)] * 4
    loop = Constraint("loop", "revolute", 0, 4, place, tip, np.array([[0, 0, 1.0]]), *numbers)
    robot = closed(robot, loop)
    v = rm.loops.project_velocity(robot, q, 0.3 * np.random.default_rng(0).normal(size=robot.nv))
    return robot, q, v


def test_a_closed_chain_keeps_its_constraints_momentum_and_energy_for_100_s():
    robot, q, v = linkage()
    run = rm.simulate(robot, q, v, 100.0, integrator=rm.Integrator(rtol=1e-12, atol=1e-14))
    kept = run.conservation()
    assert kept.constraint < 1e-13
    assert (
        np.abs(np.einsum("nij,nj->ni", rm.loops.constraint_jacobian(robot, run.q), run.v)).max()
        < 1e-13
    )
    assert kept.linear_momentum.relative < 1e-12
    assert kept.angular_momentum.relative < 1e-12
    # as good as the same chain without the loop
    tree = rm.simulate(
        robot.with_active(off=["loop"]),
        q,
        v,
        100.0,
        integrator=rm.Integrator(rtol=1e-12, atol=1e-14),
    )
    assert kept.energy.relative < 10.0 * tree.conservation().energy.relative
    assert "constraints" in str(kept)


@pytest.mark.parametrize("options", [
    {"integrator": "rk4", "step": 0.01}, {"integrator": "radau", "rtol": 1e-9},
    {"integrator": "dopri5", "rtol": 1e-11, "sample": 0.2},
], ids=["rk4", "radau", "dopri5"])  # fmt: skip
def test_integrators_agree_and_samples_within_steps_satisfy_the_constraints(options):
    robot, q, v = linkage()
    run = rm.simulate(robot, q, v, 2.0, **grouped(**options))
    best = rm.simulate(robot, q, v, 2.0, integrator=rm.Integrator(rtol=1e-12, atol=1e-14))
    assert np.abs(run.q[-1] - best.q[-1]).max() < 1e-7
    assert run.conservation().constraint < 1e-13


def test_variational_steps_of_a_closed_chain_are_of_order_two_and_conserve():
    robot, q, v = linkage()
    best, off = rm.simulate(robot, q, v, 2.0, integrator=rm.Integrator(rtol=1e-12, atol=1e-14)), []
    for step in (0.02, 0.01):
        run = rm.simulate(robot, q, v, 2.0, integrator=rm.Integrator("variational", step=step))
        kept = run.conservation()
        assert kept.constraint < 1e-14
        assert (
            np.abs(np.einsum("nij,nj->ni", rm.loops.constraint_jacobian(robot, run.q), run.v)).max()
            < 1e-13
        )
        assert kept.linear_momentum.relative < 1e-13
        assert kept.angular_momentum.relative < 1e-13
        off.append(np.abs(run.q[-1] - best.q[-1]).max())
    assert off[0] / off[1] == pytest.approx(4.0, rel=1e-2)


def test_energy_of_variational_steps_of_a_closed_chain_does_not_drift():
    robot, q, v = linkage()
    run = rm.simulate(robot, q, v, 100.0, integrator=rm.Integrator("variational", step=0.05))
    error = run.energy / run.energy[0] - 1.0
    half = len(error) // 2
    assert np.abs(error).max() < 5e-4  # of order h²
    assert abs(error[:half].mean() - error[half:].mean()) < 2e-5
    assert run.conservation().constraint < 1e-13


def test_variational_steps_of_a_latched_pair_are_those_of_a_welded_one():
    robot = joined()
    q, v = state(robot, 0.03, turn=(0.1, -0.2, 0.3), speed=(-0.15, 0.04, 0.0))
    phases = [rm.Phase(0.0), rm.Phase(5.0, activate="grasp", latch=True)]
    runs = [
        rm.simulate(
            robot, q, v, **grouped(phases=phases, sample=1.0, step_to_samples=True, **options)
        )
        for options in ({"integrator": "variational", "step": 0.005}, {"rtol": 1e-11})
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-6
    kept = runs[0].conservation()
    assert kept.angular_momentum.relative < 1e-13
    assert kept.constraint < 1e-13


def test_runs_in_machine_code_are_those_with_steps_in_python(monkeypatch):
    robot, q, v = linkage()
    torque = np.r_[np.zeros(6), 0.3, -0.2, 0.1, 0.4]
    options = {"torque": torque, "rtol": 1e-12, "sample": 0.3}
    fast = rm.simulate(robot, q, v, 3.0, **grouped(**options))
    monkeypatch.setattr(PhaseDynamics, "programmable", False)
    slow = rm.simulate(robot, q, v, 3.0, **grouped(**options))
    assert np.abs(fast.q - slow.q).max() < 1e-10
    assert np.abs(fast.v - slow.v).max() < 1e-10


def test_a_prescribed_joint_moves_the_loop_and_its_torque_does_the_work():
    robot, q, v = linkage()
    rate = float(v[6])

    def turn(t):
        return q[8] + rate * t, rate, 0.0

    run = rm.simulate(
        robot, q, v, 2.0, prescribed={"j0": rm.Motion(turn)}, integrator=rm.Integrator(rtol=1e-11)
    )
    kept = run.conservation()
    assert kept.constraint < 1e-13
    assert kept.angular_momentum.relative < 1e-11
    assert kept.energy.relative < 1e-9
    assert np.abs(run.joint("j0").q - q[8] - rate * run.t).max() < 1e-14


def test_the_recorded_wrench_is_the_one_that_closes_the_loop():
    robot, q, v = linkage()
    run = rm.simulate(robot, q, v, 1.0)
    wrench = run.constraint("loop").wrench
    k = len(run) // 2
    expected = rm.constraint_wrenches(robot, run.q[k], run.v[k], run.tau[k] + run.passive[k])[0]
    assert np.abs(wrench[k] - expected).max() < 1e-10
    assert run.constraint("loop").active.all()
    # with it as an external wrench, the tree moves as the closed chain does
    tree = robot.with_active(off=["loop"])
    loads = np.zeros((5, 6))
    there = dq.mul(rm.poses(robot, run.q[k])[4], robot.constraints[0].child_placement)
    for body, sign in ((4, 1.0), (0, -1.0)):
        x = dq.mul(dq.conjugate(rm.poses(robot, run.q[k])[body]), there)
        loads[body] = sign * rm.algebra.screw.adjoint(x, wrench[k])
    vdot = rm.forward_dynamics(tree, run.q[k], run.v[k], run.tau[k] + run.passive[k], loads)
    assert np.abs(vdot - run.vdot[k]).max() < 1e-10


class Kill(BaseException):
    """Ends a run from within, as a kill does."""


def test_a_killed_capture_resumes_to_the_same_bits(tmp_path, monkeypatch):
    robot = joined()
    q, v = state(robot, 0.2, speed=(-0.15, 0.04, 0.0), turn=(0.1, 0.2, -0.1))
    reach = rm.capture_events(robot, "grapple", "fixture", distance=0.1, angle=1.0, speed=0.5)
    phases = [
        rm.Phase(20.0, events=reach),
        rm.Phase(2.0, activate="grasp", latch=True, after_event=True),
        rm.Phase(1.0, release="grasp", separation={"grasp": 0.1}),
    ]
    whole = rm.simulate(robot, q, v, phases, record=0.05)
    monkeypatch.setattr(storage.Recorder, "_appended", lambda self: self.flush())
    monkeypatch.setattr(showing, "INTERVAL", 0.0)
    folder, seen = tmp_path / "run", []
    for stop in (2, 4, 6, 8):

        def progress(status, stop=stop):
            seen.append(status)
            if len(seen) % stop == 0:
                raise Kill

        with monkeypatch.context() as patch:
            patch.setattr(storage._Folder, "finish", lambda self, *_: self._unlock())
            try:
                rm.simulate(
                    robot,
                    q,
                    v,
                    phases,
                    record=rm.Record(0.05, folder=folder, resume=True, progress=progress),
                )
            except Kill:
                continue
    run = rm.simulate(robot, q, v, phases, record=rm.Record(0.05, folder=folder, resume=True))
    for found in (run, rm.open_run(folder)):
        assert found.q.tobytes() == whole.q.tobytes()
        assert found.v.tobytes() == whole.v.tobytes()
        assert [s.plain() for s in found.switches] == [s.plain() for s in whole.switches]
        assert np.array_equal(found.vdot, whole.vdot)
    assert len(run.switches) == 2
