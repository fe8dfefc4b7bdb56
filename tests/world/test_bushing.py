"""Bushings and compliant captures: forces, energy, momentum, events, and in a batch."""

import numpy as np
import pytest

import remora as rm
from remora.algebra import pose, quaternion


def pair():
    """Return two bodies that move freely relative to each other."""
    builder = rm.Builder("pair").body("a", mass=20.0, inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "a").body("b", mass=5.0, inertia=(0.5, 0.6, 0.8))
    builder = builder.joint("gap", "free", "a", "b")
    builder = builder.frame("grapple", "a", xyz=(0.5, 0, 0))
    return builder.frame("fixture", "b", xyz=(-0.3, 0, 0)).build()


def state(robot, gap, speed=(0.0, 0.0, 0.0), rate=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[8:] = pose.from_parts(quaternion.exp(0.5 * np.array(turn)), np.array([0.8 + gap, 0.0, 0.0]))
    v[6:9], v[9:] = rate, speed
    return q, v


def test_a_bushing_exerts_what_it_states():
    robot = pair()
    bushing = rm.world.Bushing("grapple", "fixture", 100.0, 3.0, 40.0, 2.0)
    q, v = state(robot, 0.1, (0.2, 0, 0), (0, 0, 0.4))
    run = rm.simulate(rm.System(robot, [bushing]), q, v, 0.01)
    # the fixture is 0.3 m behind the origin of b, which turns: its speed is (0.2, -0.12, 0)
    assert np.allclose(run.signals["bushing.force"][0], [-10.6, 0.36, 0.0], atol=1e-12)
    assert np.allclose(run.signals["bushing.torque"][0], [0.0, 0.0, -0.8], atol=1e-12)
    assert run.signals["bushing.energy"][0] == pytest.approx(0.5, rel=1e-12)


def test_springs_conserve_energy_and_momentum():
    robot = pair()
    system = rm.System(robot, [rm.world.Bushing("grapple", "fixture", 50.0, 0.0, 9.0, 0.0)])
    q, v = state(robot, 0.1, (0.02, 0.05, -0.03), (0.2, -0.1, 0.3), (0.3, -0.5, 0.8))
    run = rm.simulate(system, q, v, 5.0, integrator=rm.Integrator(rtol=1e-12))
    total = run.energy + run.signals["bushing.energy"]
    assert np.abs(total - total[0]).max() < 1e-9 * total[0]
    kept = run.conservation()
    assert not kept.linear_momentum.broken_by
    assert kept.angular_momentum.relative < 1e-12
    assert kept.linear_momentum.relative < 1e-12


def capture(**changes):
    given = {"distance": 0.05, "angle": 0.2, "speed": 0.1, "stiffness": 400.0, "damping": 30.0}
    given |= {"rotational_stiffness": 40.0, "rotational_damping": 5.0}
    return rm.world.CompliantCapture("grapple", "fixture", **given | changes)


def test_a_capture_begins_in_reach_and_holds_the_pose_of_that_moment():
    robot = pair()
    q, v = state(robot, 0.2, (-0.05, 0, 0), (0, 0, 0.01))
    run = rm.simulate(rm.System(robot, [capture()]), q, v, 30.0, record=0.5)
    (event,) = run.events
    assert event.name == "compliant_capture.captured"
    gap = run.frame("fixture").position - run.frame("grapple").position
    here = np.interp(event.t, run.t, run.signals["compliant_capture.holding"])
    assert 0.0 <= here <= 1.0
    assert run.signals["compliant_capture.holding"][-1] == 1.0
    assert np.linalg.norm(gap[-1]) == pytest.approx(0.05, abs=1e-6)
    assert np.linalg.norm(run.signals["compliant_capture.force"][0]) == 0.0
    assert run.conservation().angular_momentum.relative < 1e-12


def test_without_latch_the_springs_pull_the_frames_together():
    robot = pair()
    q, v = state(robot, 0.2, (-0.05, 0, 0))
    run = rm.simulate(rm.System(robot, [capture(latch=False)]), q, v, 40.0, record=0.5)
    gap = run.frame("fixture").position - run.frame("grapple").position
    assert np.linalg.norm(gap[-1]) < 1e-6


def test_a_fixture_that_passes_too_fast_is_missed():
    robot = pair()
    q, v = state(robot, 0.2, (-0.5, 0, 0))
    run = rm.simulate(rm.System(robot, [capture()]), q, v, 2.0, record=0.5)
    (event,) = run.events
    assert event.name == "compliant_capture.missed"
    assert event.t == pytest.approx(0.25 / 0.5, rel=1e-12)
    assert np.all(run.signals["compliant_capture.holding"] == 0.0)


def test_a_release_lets_go_once():
    robot = pair()
    q, v = state(robot, 0.1, (-0.05, 0, 0))
    run = rm.simulate(rm.System(robot, [capture(release_time=3.0)]), q, v, 6.0, record=0.1)
    assert [e.name.partition(".")[2] for e in run.events] == ["captured", "released"]
    after = run.t > 3.0
    assert np.all(run.signals["compliant_capture.force"][after] == 0.0)


def test_captures_of_a_batch_happen_at_their_own_times():
    robot = pair()
    system = rm.System(robot, [capture()])
    starts = [state(robot, 0.2, (-s, 0, 0)) for s in (0.05, 0.08, 0.5)]
    q, v = (np.array([s[i] for s in starts]) for i in range(2))
    batch = rm.simulate_batch(
        system, q, v, 4.0, integrator=rm.Integrator("dopri5", rtol=1e-9), record=1.0
    )
    captured = batch.events.of("compliant_capture.captured")[:, 0]
    missed = batch.events.of("compliant_capture.missed")[:, 0]
    assert np.isfinite(captured).tolist() == [True, True, False]
    assert np.isfinite(missed).tolist() == [False, False, True]
    for k in range(3):
        run = rm.simulate(system, q[k], v[k], 4.0, record=1.0)
        assert np.abs(batch.q[k, -1] - run.q[-1]).max() < 1e-7


def test_frames_on_one_body_are_refused():
    robot = pair()
    with pytest.raises(rm.RemoraError, match="same body"):
        rm.System(robot, [rm.world.Bushing("grapple", "a", 1.0)])
    with pytest.raises(rm.RemoraError, match="angle"):
        capture(angle=4.0)


def test_a_fixture_in_reach_at_the_start_is_captured_at_the_start():
    robot = pair()
    q, v = state(robot, 0.03, (-0.05, 0, 0))
    run = rm.simulate(rm.System(robot, [capture()]), q, v, 0.1)
    (event,) = run.events
    assert event.name == "compliant_capture.captured"
    assert event.t == 0.0


def test_compliant_captures_converge_to_the_rigid_one():
    robot = rm.loops.add_constraint(pair(), "grasp", "fixed", "grapple", "fixture", active=False)
    q, v = state(robot, 0.03, (-0.05, 0.01, 0), (0.02, 0.1, -0.05))
    phases = [rm.Phase(0.0), rm.Phase(2.0, activate="grasp", latch=True)]
    rigid = rm.simulate(robot, q, v, phases, integrator=rm.Integrator(rtol=1e-12))
    stiffness = np.array([1e2, 1e3, 1e4, 1e5])
    damping = 1.4 * np.sqrt(4.0 * stiffness)  # 0.7 of critical, reduced mass 4 kg
    numbers = {"stiffness": stiffness, "damping": damping}
    numbers |= {"rotational_stiffness": 0.1 * stiffness, "rotational_damping": 0.1 * damping}
    batch = rm.simulate_batch(
        rm.System(robot, [capture()]),
        q,
        v,
        2.0,
        integrator=rm.Integrator("dopri5", rtol=1e-11, atol=1e-14),
        runs=rm.Runs(parameters={f"compliant_capture.{name}": x for name, x in numbers.items()}),
    )
    off = np.abs(batch.v[:, -1] - rigid.v[-1]).max(axis=1)
    assert np.all(off[1:] < 0.11 * off[:-1])
    # once the impact has decayed, the springs yield to the centrifugal load as 1/stiffness
    assert off[3] == pytest.approx(0.1 * off[2], rel=1e-3)
