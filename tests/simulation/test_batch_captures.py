"""Captures and releases in batches: each run at its own time, as in single runs."""

import numpy as np
import pytest

import remora as rm
from captures import MOVING, joined, state
from remora.algebra import pose

REACH = {"distance": 0.1, "angle": 1.0, "speed": 0.5}


def approaching(robot, runs, seed=0):
    """Return states that approach with different velocities."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        speed = (-0.15, 0.02, 0.0) + 0.02 * rng.normal(size=3)
        turn = 0.1 * rng.normal(size=3)
        found.append(state(robot, 0.2 + 0.05 * rng.uniform(), speed=speed, turn=turn))
    return np.array([s[0] for s in found]), np.array([s[1] for s in found])


def capture_phases(robot, **more):
    """Return approach, stack and release."""
    reach = rm.capture_events(robot, "grapple", "fixture", **REACH)
    return [
        rm.Phase(3.0, events=reach, name="approach"),
        rm.Phase(1.0, activate="grasp", latch=True, after_event=True, name="stack"),
        rm.Phase(0.5, release="grasp", separation={"grasp": (0.2, 0.0, 0.0)}, name="release"),
    ]


def close(a, b):
    """Return whether two arrays agree to 1e-12 of their size."""
    return np.abs(np.asarray(a) - b).max() <= 1e-12 * max(1.0, np.abs(np.asarray(b)).max())


def same_switches(batch, k, run):
    """Assert that the switches of a run of a batch are those of a single run."""
    seen = [s for s in batch.switches if np.isfinite(s.t[k])]
    assert len(seen) == len(run.switches)
    for mine, alone in zip(seen, run.switches, strict=True):
        assert mine.phase == alone.phase
        assert (mine.activated, mine.released) == (alone.activated, alone.released)
        assert close(mine.t[k], alone.t)
        assert mine.impulses.keys() == alone.impulses.keys()
        for name, impulse in alone.impulses.items():
            assert close(mine.impulses[name][k], impulse)
        assert close(mine.energy_loss[k], alone.energy_loss)
        assert close(mine.separation_work[k], alone.separation_work)
        for name, numbers in alone.latched.items():
            for key, value in numbers.items():
                assert close(mine.latched[name][key][k], value)


@pytest.fixture(scope="module")
def captured():
    robot = joined()
    q, v = approaching(robot, 5)
    v[3, 10] = 0.1  # drifts away
    return rm.simulate_batch(
        robot, q, v, phases=capture_phases(robot), step=0.05, sample=0.25,
        parameters={"target.mass": np.array([8.0, 9.0, 10.0, 8.0, 12.0])},
    )  # fmt: skip


def test_each_run_captures_and_releases_at_its_own_time(captured):
    times = captured.switches[0].t
    assert np.isnan(times[3])
    assert len(set(times[[0, 1, 2, 4]])) == 4
    assert close(np.nanmin(captured.events.times, axis=-1)[[0, 1, 2, 4]], times[[0, 1, 2, 4]])
    assert captured.outcome.tolist() == ["complete"] * 3 + ["no event", "complete"]
    assert captured.ok.all()
    for k in range(5):
        run = captured[k]
        same_switches(captured, k, run)
        end = np.searchsorted(captured.t, captured.end[k] + 1e-9) - 1
        at = np.argmin(np.abs(run.t - captured.t[end]))
        assert np.abs(rm.difference(run.robot, run.q[at], captured.q[k, end])).max() < 1e-11
        assert close(captured.v[k, end], run.v[at])
    assert np.isnan(captured.q[3, -1]).all()


def test_momentum_is_conserved_through_capture_and_release(captured):
    h = captured.evaluate(rm.momentum)
    assert np.nanmax(np.abs(h - h[:, :1])) < 1e-12 * np.nanmax(np.abs(h))
    assert np.nanmin(captured.switches[0].energy_loss) > 0.0
    assert np.nanmin(captured.switches[1].separation_work) > 0.0


def test_a_run_has_the_same_bits_in_another_batch(captured):
    robot = joined()
    q, v = approaching(robot, 5)
    other = rm.simulate_batch(
        robot, q[[4, 1]], v[[4, 1]], phases=capture_phases(robot), step=0.05, sample=0.25,
        parameters={"target.mass": np.array([12.0, 9.0])},
    )  # fmt: skip
    assert np.array_equal(other.q, captured.q[[4, 1]], equal_nan=True)
    for one, all_of in zip(other.switches, captured.switches, strict=True):
        assert np.array_equal(one.impulses["grasp"], all_of.impulses["grasp"][[4, 1]])


def test_phases_by_time_switch_all_runs_at_once():
    robot = joined()
    rng = np.random.default_rng(3)
    q, v = state(robot, **MOVING)
    v = v + 0.01 * rng.normal(size=(3, robot.nv))
    phases = [rm.Phase(0.0), rm.Phase(0.5, activate="grasp"), rm.Phase(0.5, release="grasp")]
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.05)
    for k in range(3):
        same_switches(batch, k, batch[k])
        assert close(batch.v[k, -1], batch[k].v[-1])
    assert batch.switches[0].t.tolist() == [0.0] * 3


def test_adaptive_steps_capture_as_single_runs_do():
    robot = joined()
    q, v = approaching(robot, 2)
    batch = rm.simulate_batch(
        robot, q, v, phases=capture_phases(robot), integrator="dopri5", rtol=1e-11, atol=1e-13
    )
    for k in range(2):
        run, switch = batch[k], batch.switches[0]
        assert abs(switch.t[k] - run.switches[0].t) < 1e-9
        assert np.abs(switch.impulses["grasp"][k] - run.switches[0].impulses["grasp"]).max() < 1e-8


@pytest.mark.parametrize("kind", ["revolute", "rod", "gear"])
def test_every_kind_of_constraint_latches_with_the_numbers_of_its_run(kind):
    robot = joined("revolute")
    if kind == "rod":
        robot = rm.add_constraint(robot, "own", "rod", "bus", "target", length=1.0, active=False)
    elif kind == "gear":
        builder = rm.Builder("gear").body("base", mass=5.0, inertia=(1, 1, 1))
        for name in ("a", "b"):
            builder = builder.body(name, mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
            builder = builder.joint(name, "revolute", "base", name, axis=(0, 0, 1))
        robot = builder.gear("own", "a", "b", ratio=-2.0).build().with_active(off=["own"])
    name = "grasp" if kind == "revolute" else "own"
    rng = np.random.default_rng(2)
    states = [rm.random_state(robot, k) for k in range(2)]
    q, v = np.array([s[0] for s in states]), 0.3 * rng.normal(size=(2, robot.nv))
    phases = [rm.Phase(0.1), rm.Phase(0.2, activate=name, latch=True)]
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.01)
    for k in range(2):
        same_switches(batch, k, batch[k])
        assert np.abs(batch.v[k, -1] - batch[k].v[-1]).max() < 1e-11 * np.abs(batch.v[k]).max()


def test_a_latched_pose_lasts_through_a_release():
    robot = joined()
    q, v = approaching(robot, 2)
    v[:] = 0.0
    phases = [
        rm.Phase(0.1, activate="grasp", latch=True), rm.Phase(0.0, release="grasp"),
        rm.Phase(0.1, activate="grasp"),
    ]  # fmt: skip
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.05)
    assert len(batch.switches) == 3
    assert np.abs(batch.switches[2].energy_loss).max() < 1e-15
    same_switches(batch, 1, batch[1])


def test_locked_joints_transmit_the_impulse_in_every_run():
    robot = joined()
    q, v = state(robot, **MOVING)
    v[6] = 0.0
    v = np.stack([v, 1.1 * v])
    phases = [
        rm.Phase(0.0, locked="shoulder"), rm.Phase(0.3, activate="grasp", locked="shoulder"),
    ]  # fmt: skip
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.05)
    assert np.abs(batch.q[:, -1, 8] - q[8]).max() == 0.0
    for k in range(2):
        same_switches(batch, k, batch[k])
        assert close(batch.v[k, -1], batch[k].v[-1])


def test_runs_in_which_a_capture_is_not_possible_fail_alone():
    robot = joined()
    one, v = state(robot, **MOVING)
    q = np.stack([one, state(robot, 0.05, **MOVING)[0]])
    phases = [rm.Phase(0.0), rm.Phase(0.2, activate="grasp")]
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.05, failures="keep")
    assert batch.ok.tolist() == [True, False]
    assert batch.outcome[1] == "violated constraint"
    assert "latch=True" in batch.faults[1]
    assert np.isnan(batch.switches[0].t).tolist() == [False, True]
    assert np.isnan(batch.q[1, -1]).all()
    with pytest.raises(rm.SimulationError, match=r"run \[1\].*'grasp' by 0.05.*latch=True"):
        rm.simulate_batch(robot, q, v, phases=phases, step=0.05)


def test_a_separation_that_others_block_fails():
    robot = rm.add_constraint(joined(), "second", "fixed", "grapple", "fixture", active=False)
    q, v = state(robot)
    v[:] = 0.0
    phases = [
        rm.Phase(0.0, activate=("grasp", "second")),
        rm.Phase(0.1, release="grasp", separation={"grasp": 0.1}),
    ]
    with pytest.raises(rm.RemoraError, match="other constraints do not let"):
        rm.simulate(robot, q, v, phases=phases)
    batch = rm.simulate_batch(robot, q, v, phases=phases, step=0.1, runs=2, failures="keep")
    assert batch.outcome.tolist() == ["blocked constraint"] * 2
    assert "other constraints do not let" in batch.faults[0]


class Range(rm.Component):
    """Measures the distance of two frames. Output: `range`, m."""

    first: str
    second: str

    def interface(self, robot):
        return rm.Interface(outputs={"range": rm.Signal((), "m")})

    def outputs(self, at):
        a, b = (at.frame_pose(name) for name in (self.first, self.second))
        gap = pose.translation(b) - pose.translation(a)
        return {"range": np.sqrt(gap @ gap)}


def test_a_component_switches_a_constraint_in_single_runs_and_batches():
    robot = joined()
    q, v = approaching(robot, 3)
    near = rm.Threshold(0.1, "m", direction="below", action="next", name="near")
    system = rm.System(
        robot, [Range("grapple", "fixture", name="sensor"), near],
        connect={"near.signal": "sensor.range"},
    )  # fmt: skip
    phases = [rm.Phase(3.0), rm.Phase(0.5, activate="grasp", latch=True, after_event=True)]
    batch = rm.simulate_batch(system, q, v, phases=phases, step=0.05)
    assert close(batch.events.of("near.crossed").min(axis=-1), batch.switches[0].t)
    for k in range(3):
        run = batch[k]
        same_switches(batch, k, run)
        assert run.switches[0].t == run.events[0].t
        assert np.abs(run.conservation().linear_momentum.relative) < 1e-12


def test_a_fixture_in_reach_at_the_start_is_captured_at_once():
    robot = joined()
    q, v = state(robot, 0.05, speed=(-0.01, 0.0, 0.0))
    far, there = state(robot, 0.5, speed=(-0.01, 0.0, 0.0))
    phases = capture_phases(robot)
    for start in (0.0, 10.0):
        run = rm.simulate(robot, q, v, phases=phases, start=start)
        assert [e.name for e in run.events] == ["captured"]
        assert abs(run.switches[0].t - start) < 1e-14 * max(1.0, start)
        batch = rm.simulate_batch(
            robot, np.stack([q, far]), np.stack([v, there]), phases=phases, step=0.05, start=start
        )
        assert abs(batch.switches[0].t[0] - start) < 1e-14 * max(1.0, start)
        assert batch.outcome.tolist() == ["complete", "no event"]
        same = batch[0].switches[0].impulses["grasp"]
        assert close(batch.switches[0].impulses["grasp"][0], same)
    # an event of the whole run occurs where it is first watched, not again in later phases
    event = rm.Event(lambda t, q, v: q[8] - 1.0, "low", "record", -1, at_start=True)
    late = [rm.Phase(0.1), rm.Phase(0.1), rm.Phase(0.1)]
    run = rm.simulate(robot, q, v, phases=late, events=[event])
    batch = rm.simulate_batch(robot, q, v, phases=late, events=[event], step=0.05, runs=2)
    assert [e.name for e in run.events] == ["low"]
    assert batch.events.counts.tolist() == [1, 1]
    with pytest.raises(rm.InvalidValue, match="needs the direction"):
        rm.Event(lambda t, q, v: q[8], at_start=True)
