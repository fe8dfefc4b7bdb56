"""Captures and releases during a run: impulses, momentum, energy, latches, events, refusals."""

from dataclasses import replace

import numpy as np
import pytest

import remora as rm
from captures import MOVING, joined, state
from plain_settings import grouped
from remora.algebra import dual_quaternion as dq
from remora.algebra import pose


def momenta(robot, q, v, bodies):
    """Return the momentum of some bodies about the inertial origin, inertial axes."""
    x, xi = rm.poses(robot, q), rm.twists(robot, q, v)
    total = np.zeros(6)
    for i in bodies:
        body = robot.bodies[i]
        P = float(body.mass) * (xi[i, 3:] + np.cross(xi[i, :3], body.com))
        L = body.inertia @ xi[i, :3] + np.cross(body.com, P)
        R, p = pose.to_rotation_matrix(x[i]), pose.translation(x[i])
        total += np.concatenate([R @ P, R @ L + np.cross(p, R @ P)])
    return total


def test_a_rigid_capture_transmits_the_impulse_that_stops_the_relative_motion():
    robot = joined()
    q, v = state(robot, **MOVING)
    run = rm.simulate(robot, q, v, [rm.Phase(0.0), rm.Phase(0.1, activate="grasp")])
    (switch,) = run.switches
    assert switch.activated == ("grasp",)
    q1, v1 = run.q[1], run.v[1]
    before, after = rm.momentum(robot, q, v), rm.momentum(robot, q1, v1)
    assert np.abs(after - before).max() < 1e-12 * np.abs(before).max()
    # each side's momentum changes by the impulse, at the fixture
    x = dq.mul(rm.poses(robot, q)[2], robot.frame("fixture").placement)
    R, p = pose.to_rotation_matrix(x), pose.translation(x)
    f, tau = R @ switch.impulses["grasp"][:3], R @ switch.impulses["grasp"][3:]
    transmitted = np.concatenate([f, tau + np.cross(p, f)])
    for bodies, sign in (((2,), 1.0), ((0, 1), -1.0)):
        change = momenta(robot, q1, v1, bodies) - momenta(robot, q, v, bodies)
        assert np.abs(change - sign * transmitted).max() < 1e-12 * np.abs(transmitted).max()
    # closed form: half the relative velocity on the effective mass, T = ½ Gv (G M⁻¹ Gᵀ)⁻¹ Gv
    closed = robot.with_active(on=["grasp"])
    G = rm.loops.constraint_jacobian(closed, q)
    H = rm.mass_matrix(robot, q)
    loss = 0.5 * (G @ v) @ np.linalg.solve(G @ np.linalg.solve(H, G.T), G @ v)
    assert switch.energy_loss == pytest.approx(loss, rel=1e-12)
    fell = rm.kinetic_energy(robot, q, v) - rm.kinetic_energy(robot, q1, v1)
    assert switch.energy_loss == pytest.approx(fell, rel=1e-12)
    assert run.conservation().energy.relative < 1e-12


def welded(q):
    """Return the robot whose target is part of the arm, at the relative pose of q."""
    robot = joined()
    x = rm.poses(robot, q)
    target, bodies = dq.mul(dq.conjugate(x[1]), x[2]), robot.bodies
    builder = rm.Builder("welded").body(
        "bus", mass=20.0, com=(0.1, 0, 0), inertia=bodies[0].inertia
    )
    builder = builder.joint("base", "free", None, "bus")
    builder = builder.body("arm", mass=2.0, com=(0.4, 0, 0), inertia=bodies[1].inertia)
    builder = builder.joint("shoulder", "revolute", "bus", "arm", xyz=(0.5, 0, 0), axis=(0, 0, 1))
    builder = builder.body("target", mass=8.0, com=(0.2, 0.1, 0), inertia=bodies[2].inertia)
    return builder.joint("weld", "fixed", "arm", "target", placement=target).build()


def test_a_latched_pair_moves_like_a_robot_welded_from_the_start():
    robot = joined()
    q, v = state(robot, 0.03, turn=(0.1, -0.2, 0.3), **MOVING)
    phases = [rm.Phase(0.0), rm.Phase(20.0, activate="grasp", latch=True)]
    kwargs = {"rtol": 1e-12, "atol": 1e-14, "sample": 1.0, "step_to_samples": True}
    run = rm.simulate(robot, q, v, **grouped(phases=phases, **kwargs))
    one = welded(q)
    alone = rm.simulate(one, q[: one.nq], run.v[1, : one.nv], 20.0, **grouped(**kwargs))
    assert np.abs(run.q[1:, : one.nq] - alone.q).max() < 1e-10
    assert np.abs(run.v[1:, : one.nv] - alone.v).max() < 1e-10
    assert run.conservation().angular_momentum.relative < 1e-12
    latched = run.robot_in_phase(1)
    assert np.abs(rm.loops.constraint_residual(latched, run.q[1:])).max() < 1e-13


def test_an_event_captures_and_a_release_pushes_apart():
    robot = joined()
    q, v = state(robot, 0.4, speed=(-0.15, 0.04, 0.0))
    reach = rm.capture_events(robot, "grapple", "fixture", distance=0.1, angle=1.0, speed=0.5)
    run = rm.simulate(robot, q, v, [  # samples are dense output
        rm.Phase(20.0, events=reach, name="approach"),
        rm.Phase(3.0, activate="grasp", latch=True, after_event=True, name="stack"),
        rm.Phase(2.0, release="grasp", separation={"grasp": (0.2, 0.0, 0.0)}, name="release"),
    ], record=0.5, integrator=rm.Integrator(rtol=1e-13))  # fmt: skip
    assert [e.name for e in run.events] == ["captured"]
    assert [s.t for s in run.switches] == [run.events[0].t, run.events[0].t + 3.0]
    gap = run.frame("fixture").position - run.frame("grapple").position
    held = run.phase == 1
    assert np.ptp(np.linalg.norm(gap[held], axis=1)) < 1e-12
    assert np.linalg.norm(gap[held], axis=1)[0] == pytest.approx(0.1, abs=1e-12)
    k = np.flatnonzero(run.phase == 2)[0]
    speed = run.frame_twist("fixture")[k], run.frame_twist("grapple")[k]
    assert run.switches[1].separation_work > 0.0
    x = dq.mul(dq.conjugate(run.frame_pose("grapple")[k]), run.frame_pose("fixture")[k])
    relative = rm.algebra.screw.adjoint(x, speed[0]) - speed[1]
    # of the frame on the child, which the latch put at the grapple
    assert np.abs(relative - [0, 0, 0, 0.2, 0, 0]).max() < 1e-12
    kept = run.conservation()
    assert kept.linear_momentum.relative < 1e-12
    assert kept.angular_momentum.relative < 1e-12
    assert kept.energy.relative < 1e-9


def test_a_missed_capture_is_an_event_and_ends_the_run_before_the_phase_that_needs_it():
    robot = joined()
    q, v = state(robot, 0.4, speed=(-0.6, 0.0, 0.0))
    reach = rm.capture_events(robot, "grapple", "fixture", distance=0.3, speed=0.1)
    phases = [
        rm.Phase(3.0, events=reach),
        rm.Phase(1.0, activate="grasp", latch=True, after_event=True, name="stack"),
    ]
    run = rm.simulate(robot, q, v, phases)
    assert [e.name for e in run.events] == ["missed"]
    assert run.t[-1] == 3.0
    assert run.switches == ()
    assert "no event led to 'stack'" in run.message
    unnamed = [phases[0], replace(phases[1], name="")]
    assert "no event led to 'phase 2'" in rm.simulate(robot, q, v, unnamed).message


def test_a_locked_joint_transmits_the_impulse():
    robot = joined()
    q, v = state(robot, **MOVING)
    v[6] = 0.0
    phases = [
        rm.Phase(0.0, locked="shoulder"),
        rm.Phase(1.0, activate="grasp", locked="shoulder"),
    ]
    run = rm.simulate(robot, q, v, phases, integrator=rm.Integrator(rtol=1e-12))
    assert np.abs(run.q[:, 8] - q[8]).max() == 0.0
    assert np.abs(run.v[:, 6]).max() == 0.0
    assert run.conservation().angular_momentum.relative < 1e-12
    closed = run.robot_in_phase(1)
    assert np.abs(rm.loops.constraint_residual(closed, run.q[run.phase == 1])).max() < 1e-12


def test_what_cannot_be_switched_is_refused():
    robot = joined()
    q, v = state(robot, 0.05, **MOVING)
    with pytest.raises(rm.RemoraError, match=r"'grasp'.*latch=True"):
        rm.simulate(robot, q, v, [rm.Phase(1.0, activate="grasp")])
    with pytest.raises(rm.RemoraError, match=r"second.*'grasp' is already on"):
        rm.simulate(robot, q, v, [
            rm.Phase(1.0, activate="grasp", latch=True),
            rm.Phase(1.0, activate="grasp", name="second"),
        ])  # fmt: skip
    with pytest.raises(rm.RemoraError, match=r"phase 1: .*'grasp' is already off"):
        rm.simulate(robot, q, v, [rm.Phase(1.0, release="grasp")])
    with pytest.raises(rm.RemoraError, match=r"no constraint named|grip"):
        rm.simulate(robot, q, v, [rm.Phase(1.0, activate="grip")])
    with pytest.raises(rm.RemoraError, match=r"not released"):
        rm.Phase(1.0, separation={"grasp": 0.1})
    with pytest.raises(rm.RemoraError, match=r"both activated and released"):
        rm.Phase(1.0, activate="grasp", release="grasp")
    closed = robot.with_active(on=["grasp"])
    with pytest.raises(rm.RemoraError, match=r"'grasp' by 0.05.*close_loops"):
        rm.simulate(closed, q, v, 1.0)
    q, v = state(robot, **MOVING)
    with pytest.raises(rm.RemoraError, match=r"velocity that violates.*'grasp'.*close_loops"):
        rm.simulate(closed, q, v, 1.0)
    with pytest.raises(rm.RemoraError, match=r"reduced.*'grasp'"):
        rm.simulate(closed, q, v, 1.0, physics=rm.Physics(model="reduced"))
