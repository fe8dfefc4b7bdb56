"""Captures and releases in batches: each run at its own time, as in single runs."""

import numpy as np
import pytest

import remora as rm
from flat_captures import REACH, capture_phases, close, dispersed, flat, same_switches
from plain_settings import grouped
from remora.algebra import dual_quaternion, pose


@pytest.fixture(scope="module")
def captured():
    robot, _ = flat()
    q, v = dispersed(5)
    v[3, 3] = 0.3  # moves away
    return rm.simulate_batch(
        robot,
        q,
        v,
        capture_phases(robot),
        integrator=rm.Integrator(step=0.05),
        record=0.25,
        runs=rm.Runs(parameters={"target.mass": np.array([8.0, 9.0, 10.0, 8.0, 12.0])}),
    )


def test_each_run_captures_and_releases_at_its_own_time(captured):
    times, caught = captured.switches[0].t, [0, 1, 2, 4]
    assert np.isnan(times[3])
    assert len(set(times[caught])) == 4
    assert close(captured.events.of("captured")[caught, 0], times[caught])
    assert captured.outcome.tolist() == ["complete"] * 3 + ["no event", "complete"]
    assert captured.ok.all()
    assert np.nanmin(captured.switches[0].energy_loss) > 0.0
    assert np.nanmin(captured.switches[1].separation_work) > 0.0
    for k in (1, 3):
        run = captured[k]
        same_switches(captured, k, run)
        end = np.searchsorted(captured.t, captured.end[k] + 1e-9) - 1
        at = np.argmin(np.abs(run.t - captured.t[end]))
        assert close(captured.q[k, end], run.q[at])
        assert close(captured.v[k, end], run.v[at])
    assert np.isnan(captured.q[3, -1]).all()


def test_a_run_has_the_same_bits_in_another_batch(captured):
    robot, _ = flat()
    q, v = dispersed(5)
    other = rm.simulate_batch(
        robot,
        q[[4, 1]],
        v[[4, 1]],
        capture_phases(robot),
        integrator=rm.Integrator(step=0.05),
        record=captured.t,
        runs=rm.Runs(parameters={"target.mass": np.array([12.0, 9.0])}),
    )
    assert np.array_equal(other.q, captured.q[[4, 1]], equal_nan=True)
    for one, all_of in zip(other.switches, captured.switches, strict=True):
        assert np.array_equal(one.impulses["grasp"], all_of.impulses["grasp"][[4, 1]])


def test_switches_are_saved_with_a_batch(captured, tmp_path):
    opened = rm.open_batch(captured.save(tmp_path / "batch"))
    assert len(opened.switches) == 2
    for one, other in zip(opened.switches, captured.switches, strict=True):
        assert one.description() == other.description()
        for a, b in zip(one.arrays(), other.arrays(), strict=True):
            assert np.array_equal(a, b, equal_nan=True)
    assert opened.outcome.tolist() == captured.outcome.tolist()
    assert opened.faults == {}


def test_momentum_is_conserved_through_captures_in_space():
    builder = rm.Builder("pair").body("bus", mass=20.0, com=(0.1, 0, 0), inertia=(2, 3, 4))
    builder = builder.joint("base", "free", None, "bus")
    builder = builder.body("target", mass=8.0, com=(0.2, 0.1, 0), inertia=(0.8, 1.1, 1.3))
    builder = builder.joint("target", "free", None, "target")
    builder = builder.frame("grapple", "bus", xyz=(0.8, 0, 0))
    robot = builder.frame("fixture", "target", xyz=(-0.3, 0, 0)).build()
    robot = rm.loops.add_constraint(robot, "grasp", "fixed", "grapple", "fixture", active=False)
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    q[8:] = pose.from_translation(np.array([1.25, 0, 0]))
    v[6:] = 0.1, -0.05, 0.1, -0.15, 0.03, 0.0
    v = v + 0.02 * np.random.default_rng(1).normal(size=(4, robot.nv))
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        capture_phases(robot),
        integrator=rm.Integrator("dop853", rtol=1e-13, atol=1e-15),
        record=0.1,
        runs=rm.Runs(parameters={"mass": np.array([20.0, 8.0]) * np.ones((4, 2))}),
    )
    assert np.isfinite(batch.switches[1].t).all()
    h = batch.evaluate(rm.momentum)
    assert np.nanmax(np.abs(h - h[:, :1])) < 1e-12 * np.nanmax(np.abs(h))


def test_phases_by_time_switch_all_runs_at_once():
    robot, q = flat()
    v = dispersed(3)[1]
    phases = [rm.Phase(0.0), rm.Phase(0.5, activate="grasp"), rm.Phase(0.5, release="grasp")]
    batch = rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.05))
    for k in range(3):
        same_switches(batch, k, batch[k])
        assert close(batch.v[k, -1], batch[k].v[-1])
    assert batch.switches[0].t.tolist() == [0.0] * 3


@pytest.mark.parametrize("kind", ["revolute", "rod", "gear"])
def test_every_kind_of_constraint_latches_with_the_numbers_of_its_run(kind):
    builder = rm.Builder("pair").body("base", mass=5.0, inertia=(1, 1, 1))
    for name in ("a", "b"):
        builder = builder.body(name, mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
        builder = builder.joint(name, "revolute", "base", name, axis=(0, 0, 1))
    if kind == "revolute":
        builder = builder.constraint("own", "revolute", "a", "b", axis=(0, 0, 1))
    elif kind == "rod":
        builder = builder.rod("own", "a", "b", 1.0, parent_xyz=(0.3, 0, 0), child_xyz=(0.5, 0, 0))
    else:
        builder = builder.gear("own", "a", "b", ratio=-2.0)
    robot = builder.build(base="fixed").with_active(off=["own"])
    q, v = np.array([[0.3, 1.0], [0.2, -0.7]]), np.array([[0.2, 0.5], [-0.1, 0.3]])
    phases = [rm.Phase(0.1), rm.Phase(0.2, activate="own", latch=True)]
    batch = rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.02))
    same_switches(batch, 1, batch[1])
    assert close(batch.v[1, -1], batch[1].v[-1])


def test_a_latched_pose_lasts_through_a_release():
    robot, _ = flat()
    q, v = dispersed(2)
    phases = [
        rm.Phase(0.1, activate="grasp", latch=True), rm.Phase(0.0, release="grasp"),
        rm.Phase(0.1, activate="grasp"),
    ]  # fmt: skip
    batch = rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.05))
    assert len(batch.switches) == 3
    assert np.abs(batch.switches[2].energy_loss).max() < 1e-15
    assert batch.switches[0].energy_loss.min() > 0.0


def test_locked_joints_transmit_the_impulse_in_every_run():
    robot, q = flat()
    v = dispersed(2)[1]
    v[:, :3] = 0.0
    phases = [rm.Phase(0.0, locked="bus"), rm.Phase(0.3, activate="grasp", locked="bus")]
    batch = rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.05))
    assert np.abs(batch.q[:, -1] - q).max() < 1e-12
    assert np.abs(batch.v[:, -1]).max() < 1e-12
    same_switches(batch, 1, batch[1])


def test_runs_in_which_a_capture_is_not_possible_fail_alone():
    robot, q = flat()
    q = np.stack([q, q])
    q[1, 3] += 0.05
    v = dispersed(2)[1]
    phases = [rm.Phase(0.0), rm.Phase(0.5, activate="grasp")]
    batch = rm.simulate_batch(
        robot, q, v, phases, integrator=rm.Integrator(step=0.05), record=rm.Record(failures="keep")
    )
    assert batch.ok.tolist() == [True, False]
    assert batch.outcome[1] == "violated constraint"
    assert "latch=True" in batch.faults[1]
    assert np.isnan(batch.switches[0].t).tolist() == [False, True]
    assert np.isnan(batch.q[1, -1]).all()
    with pytest.raises(rm.errors.SimulationError, match=r"run \[1\].*'grasp' by 0.05.*latch=True"):
        rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.05))


def test_constraint_parameters_differ_by_run_and_diverged_runs_do_not_disturb_others():
    robot, q = flat()
    q = np.stack([q, q])
    q[1, 3] += 0.05
    places = np.stack([pose.from_translation(np.array([x, 0, 0])) for x in (-0.3, -0.35)])
    v = dispersed(2)[1]
    phases = [rm.Phase(0.0), rm.Phase(0.5, activate="grasp")]
    given = {"grasp.child_placement": places}
    batch = rm.simulate_batch(
        robot, q, v, phases, integrator=rm.Integrator(step=0.05), runs=rm.Runs(parameters=given)
    )
    assert batch.ok.all()
    same_switches(batch, 1, batch[1])
    given = {"grasp.child_placement": 2.0 * places}
    with pytest.raises(rm.errors.InvalidValue, match=r"child_placement.*unit dual quaternion"):
        rm.simulate_batch(
            robot, q, v, phases, integrator=rm.Integrator(step=0.05), runs=rm.Runs(parameters=given)
        )
    v[1] *= 1e3
    hold = rm.Phase(0.5, activate="grasp", latch=True)
    phases = [rm.Phase(0.5, torque=lambda t, q, v: 1e6 * v**3), hold]
    v[0] = 0.0
    kept = rm.simulate_batch(
        robot, q, v, phases, integrator=rm.Integrator(step=0.05), record=rm.Record(failures="keep")
    )
    assert kept.outcome.tolist() == ["complete", "not finite"]
    assert np.isnan(kept.switches[0].t).tolist() == [False, True]


def test_impulses_of_a_separation_and_a_capture_at_once_add_up():
    """The panel's weld transmits the push on the target and the blow of the clamp."""
    builder = rm.Builder("stack")
    for name, mass in (("bus", 20.0), ("panel", 5.0), ("target", 8.0)):
        builder = builder.body(name, mass=mass, com=(0.1, 0.05, 0), inertia=(2, 3, 4))
        builder = builder.joint(name, "planar", None, name, axis=(0, 0, 1))
    robot = builder.build()
    q = np.array([0.0, 0, 0, 0, 1.0, 0, 1.1, 0, 0])
    robot = rm.loops.add_constraint(robot, "weld", "fixed", "bus", "panel", parent_xyz=(0, 1.0, 0))
    robot = rm.loops.add_constraint(
        robot, "grasp", "fixed", "bus", "target", parent_xyz=(1.1, 0, 0)
    )
    robot = rm.loops.add_constraint(robot, "clamp", "fixed", "panel", "target", active=False)
    phases = [
        rm.Phase(0.1),
        rm.Phase(0.1, release="grasp", separation={"grasp": (0.2, 0.0, 0.0)}, activate="clamp",
                 latch=True),
    ]  # fmt: skip
    v = np.zeros((3, 9))
    v[:, 0] = v[:, 3] = v[:, 6] = 0.1, 0.2, 0.3
    batch = rm.simulate_batch(
        robot, np.tile(q, (3, 1)), v, phases, integrator=rm.Integrator(step=0.05)
    )
    for k in range(3):
        run = rm.simulate(robot, q, v[k], phases, integrator=rm.Integrator("rk4", step=0.05))
        same_switches(batch, k, run)
        assert np.abs(run.switches[0].impulses["weld"]).max() > 0.1


def test_a_separation_that_others_block_fails():
    robot, q = flat("second")
    v = np.zeros(6)
    phases = [
        rm.Phase(0.0, activate=("grasp", "second")),
        rm.Phase(0.1, release="grasp", separation={"grasp": (0.1, 0.0, 0.0)}),
    ]
    with pytest.raises(rm.RemoraError, match="other constraints do not let"):
        rm.simulate(robot, q, v, phases)
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        phases,
        integrator=rm.Integrator(step=0.1),
        runs=2,
        record=rm.Record(failures="keep"),
    )
    assert batch.outcome.tolist() == ["blocked constraint"] * 2
    assert "other constraints do not let" in batch.faults[0]


class Contact(rm.Component):
    """A switch that is pressed near its fixture, and closes when it was pressed long enough."""

    switch: str
    fixture: str
    dwell: float

    def interface(self, robot):
        return rm.Interface(
            outputs={"range": rm.Signal((), "m")}, continuous={"pressed": 0.0},
            events={"closed": rm.ZeroCrossing(1, "next")},
        )  # fmt: skip

    def outputs(self, at):
        gap = at.position(self.fixture) - at.position(self.switch)
        return {"range": np.sqrt(gap @ gap)}

    def derivative(self, at):
        gap = at.position(self.fixture) - at.position(self.switch)
        return {"pressed": np.exp(-(gap @ gap) / 0.1**2)}

    def crossings(self, at):
        return {"closed": at.state["pressed"] - self.dwell}


def test_a_component_switches_a_constraint_in_single_runs_and_batches():
    robot, _ = flat()
    q, v = dispersed(3)
    system = rm.System(robot, [Contact("grapple", "fixture", 0.1, name="contact")])
    phases = [rm.Phase(3.0), rm.Phase(0.5, activate="grasp", latch=True, after_event=True)]
    batch = rm.simulate_batch(system, q, v, phases, integrator=rm.Integrator(step=0.05))
    assert close(batch.events.of("contact.closed")[:, 0], batch.switches[0].t)
    assert close(batch.end, batch.switches[0].t + 0.5)
    run = batch[2]
    same_switches(batch, 2, run)
    assert [e.name for e in run.events] == ["contact.closed"]
    assert run.switches[0].t == run.events[0].t
    held = run.signals["contact.range"][run.phase == 1]
    assert np.ptp(held) < 1e-13


def test_a_fixture_in_reach_at_the_start_is_captured_at_once():
    robot, q = flat()
    far, v = q.copy(), np.array([0.0, 0, 0, -0.01, 0, 0])
    far[3] += 0.5
    phases = capture_phases(robot)
    for start in (0.0, 10.0):
        run = rm.simulate(robot, q, v, phases, start=start)
        assert [e.name for e in run.events] == ["captured"]
        assert abs(run.switches[0].t - start) < 1e-14 * max(1.0, start)
        batch = rm.simulate_batch(
            robot, np.stack([q, far]), v, phases, integrator=rm.Integrator(step=0.05), start=start
        )
        assert abs(batch.switches[0].t[0] - start) < 1e-14 * max(1.0, start)
        assert batch.outcome.tolist() == ["complete", "no event"]
        same = run.switches[0].impulses["grasp"]
        assert close(batch.switches[0].impulses["grasp"][0], same)


def test_an_event_at_the_start_occurs_where_it_is_first_watched():
    robot, q = flat()
    v = np.zeros(6)
    event = rm.Event(lambda t, q, v: q[3] - 2.0, "low", "record", -1, at_start=True)
    phases = [rm.Phase(0.1), rm.Phase(0.1), rm.Phase(0.1)]
    run = rm.simulate(robot, q, v, phases, events=[event])
    batch = rm.simulate_batch(
        robot, q, v, phases, events=[event], integrator=rm.Integrator(step=0.05), runs=2
    )
    assert [e.name for e in run.events] == ["low"]
    assert batch.events.counts.tolist() == [1, 1]
    with pytest.raises(rm.errors.InvalidValue, match="needs the direction"):
        rm.Event(lambda t, q, v: q[3], at_start=True)
    with pytest.raises(rm.errors.InvalidValue, match="needs the direction"):
        rm.ZeroCrossing(0, at_start=True)


def test_a_capture_sees_the_placements_of_each_run():
    """A joint that is mounted 0.1 m further away is captured when a body 0.1 m further away is."""
    robot, _ = flat()
    q, v = dispersed(2)
    v[1] = v[0]
    phases = [rm.Phase(3.0, events=rm.capture_events(robot, "grapple", "fixture", **REACH))]
    places = pose.from_translation(np.array([[0.0, 0, 0], [0.1, 0, 0]]))
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        phases,
        integrator=rm.Integrator(step=0.05),
        runs=rm.Runs(parameters={"target.placement": places}),
    )
    q[1, 3] += 0.1
    moved = rm.simulate_batch(robot, q, v, phases, integrator=rm.Integrator(step=0.05))
    assert close(batch.end, moved.end)
    assert batch.end[1] - batch.end[0] > 0.2


def test_what_depends_on_switched_constraints_is_not_evaluated(captured):
    """The robot of a batch is that of the start of its runs."""
    assert captured.evaluate(rm.kinetic_energy).shape == captured.q.shape[:-1]
    for function in (rm.constraint_wrenches, rm.loops.constraint_residual, rm.reaction_wrenches):
        with pytest.raises(rm.RemoraError, match=f"{function.__name__} depends on constraints"):
            captured.evaluate(function)


def test_an_event_function_that_a_capture_leaves_at_zero_ends_the_run():
    """It changes its sign by rounding: the run ends with a reason, not never."""
    robot, _ = flat()
    q, v = dispersed(2)
    rate = rm.Event(lambda t, q, v: v[5] - v[2], "relative rate", "record")
    phases = [rm.Phase(0.1), rm.Phase(0.2, activate="grasp", latch=True)]
    options = {"phases": phases, "step": 0.05, "sample": 0.1, "events": [rate]}
    with pytest.raises(
        rm.errors.SimulationError, match="stays at zero and changes its sign by rounding"
    ):
        rm.simulate_batch(robot, q, v, **grouped(True, **options))


def test_latched_runs_with_different_masses_and_places_move_like_welded_robots():
    robot, _ = flat()
    q, v = dispersed(2)
    mass, x = np.array([8.0, 12.0]), np.array([0.0, 0.05])
    places = pose.from_translation(np.stack([x, 2.0 * x, 0.0 * x], axis=-1))
    batch = rm.simulate_batch(
        robot,
        q,
        v,
        [rm.Phase(0.1), rm.Phase(2.0, activate="grasp", latch=True)],
        integrator=rm.Integrator(step=0.01),
        record=0.1,
        runs=rm.Runs(parameters={"target.mass": mass, "bus.placement": places}),
    )
    for k in range(2):
        own = robot.replace_body("target", mass=mass[k]).replace_joint("bus", placement=places[k])
        bus, target = own.bodies
        at = rm.poses(own, batch.q[k, 1])
        weld = dual_quaternion.mul(dual_quaternion.conjugate(at[0]), at[1])
        builder = rm.Builder("one").body("bus", mass=bus.mass, com=bus.com, inertia=bus.inertia)
        builder.joint("bus", "planar", None, "bus", axis=(0, 0, 1), placement=places[k])
        builder.body("target", mass=target.mass, com=target.com, inertia=target.inertia)
        one = builder.joint("weld", "fixed", "bus", "target", placement=weld).build()
        # both bodies together have the momentum of both alone
        before = rm.momentum(own, batch.q[k, 1], batch.v[k, 1])
        A = np.stack([rm.momentum(one, batch.q[k, 1, :3], e) for e in np.eye(3)], axis=-1)
        after = np.linalg.lstsq(A, before, rcond=None)[0]
        alone = rm.simulate(
            one, batch.q[k, 1, :3], after, 2.0, integrator=rm.Integrator("rk4", step=0.01)
        )
        assert np.abs(alone.q[-1] - batch.q[k, -1, :3]).max() < 1e-10
        assert np.abs(alone.v[-1] - batch.v[k, -1, :3]).max() < 1e-10
