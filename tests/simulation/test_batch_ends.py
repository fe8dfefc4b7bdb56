"""Where the runs of a batch end, by which clock, and what is known of their events."""

import os
import signal
import threading

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from sliders import slider


class Place:
    """A condition: the mass is at a place."""

    def __init__(self, level):
        self.level = level

    def __call__(self, t, q, v):
        return q[0] - self.level


class Lag(rm.Component):
    """A force that follows the time; it begins with the second of its numbers."""

    numbers: np.ndarray

    def interface(self, robot):
        return rm.Interface(
            continuous={"force": float(self.numbers[1])}, discrete={"passed": rm.State(0.0)}
        )

    def derivative(self, at):
        return {"force": self.numbers[0] * (at.t - at.state["force"])}

    def act(self, at):
        return rm.JointForce("slide", at.state["force"])


class Beat(rm.Component):
    """One event that occurs again and again, and one that occurs late."""

    def interface(self, robot):
        beats = {"beats": rm.ZeroCrossing(0), "late": rm.ZeroCrossing(1)}
        return rm.Interface(events=beats)

    def crossings(self, at):
        return {"beats": np.sin(40.0 * at.t + 0.1), "late": at.t - 3.3}


@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
@pytest.mark.parametrize("sample", [None, 0.5])
def test_the_end_of_a_run_that_an_event_stops(integrator, sample, tmp_path):
    system = rm.System(slider(), [Lag(np.array([1.0, 0.3]))])
    phases = [
        rm.Phase(1.0),
        rm.Phase(2.0, events=[rm.Event(Place(1.0), "there", "stop", 1)]),
        rm.Phase(0.5),
    ]
    options = {"integrator": integrator, "step": 0.01, "sample": sample}
    speeds = np.array([[-2.0], [0.0], [0.3]])
    batch = rm.simulate_batch(
        system, [0.0], speeds, **grouped(True, phases=phases, progress=False, **options)
    )
    assert batch.outcome.tolist() == ["complete", "stopped", "stopped"]
    for k, run in enumerate(batch[i] for i in range(3)):
        assert batch.final.t[k] == batch.end[k] == pytest.approx(run.t[-1], abs=1e-9)
        assert batch.final.q[k] == pytest.approx(run.q[-1], abs=1e-9)
        assert batch.final.v[k] == pytest.approx(run.v[-1], abs=1e-9)
        for name, x in run.signals.items():
            assert batch.final.signals[name][k] == pytest.approx(x[-1], abs=1e-9)
    assert batch.final.q[1:, 0] == pytest.approx([1.0, 1.0], abs=1e-12)
    assert np.array_equal(batch.final.q[0], batch.q[0, -1])
    assert np.array_equal(batch.to_pandas()["q.slide"], batch.final.q[:, 0])
    again = rm.open_batch(batch.save(tmp_path / "batch"))
    assert np.array_equal(again.final.v, batch.final.v)
    force = "lag.force"
    assert np.array_equal(again.final.signals[force], batch.final.signals[force])


def test_conditions_of_a_phase_are_on_its_clock():
    """A phase that begins at 1.5 s: 1 s means 2.5 s if it has its own clock, and never if not."""

    def at(t, q, v):
        return t - 1.0

    for own_clock, end in ((True, 2.5), (False, 3.5)):
        phases = [
            rm.Phase(1.5),
            rm.Phase(2.0, events=[rm.Event(at, "time", "stop", 1)], own_clock=own_clock),
        ]
        run = rm.simulate(
            slider(),
            [0.0],
            [1.0],
            phases,
            physics=rm.Physics(limits="ignore"),
            record=rm.Record(progress=False),
        )
        assert run.t[-1] == pytest.approx(end, abs=1e-12)
        for options in ({"step": 0.1}, {"integrator": "dopri5"}):
            batch = rm.simulate_batch(
                slider(),
                [0.0],
                [1.0],
                **grouped(True, phases=phases, runs=2, progress=False, **options),
            )
            assert batch.end == pytest.approx([end, end], abs=1e-12)


def test_an_event_at_the_start_is_reported_at_the_start():
    def near(t, q, v):
        return q[0] - 0.5

    events = [rm.Event(near, "near", "record", -1, at_start=True)]
    for start in (0.0, 3.0):
        options = {"events": events, "start": start, "progress": False}
        run = rm.simulate(slider(), [0.0], [1.0], 1.0, **grouped(limits="ignore", **options))
        batch = rm.simulate_batch(
            slider(), [0.0], [1.0], 1.0, **grouped(True, step=0.1, runs=1, **options)
        )
        assert [event.t for event in run.events] == [start]
        assert batch.events.times[0].tolist() == [start]


def test_conditions_of_all_phases_are_on_the_clock_of_the_run():
    def at(t, q, v):
        return t - 2.25

    options = {
        "phases": [rm.Phase(1.5, own_clock=True), rm.Phase(2.0, own_clock=True)],
        "events": [rm.Event(at, "time", "stop", 1)],
        "progress": False,
    }
    run = rm.simulate(slider(), [0.0], [1.0], **grouped(**options))
    batch = rm.simulate_batch(slider(), [0.0], [1.0], **grouped(True, step=0.1, runs=1, **options))
    assert run.t[-1] == batch.end[0] == 2.25


@pytest.mark.parametrize("most", [0, 5, 1000])
def test_the_first_time_of_an_event_does_not_depend_on_how_many_are_stored(most):
    system = rm.System(slider(), [Beat()])
    options = {"step": 0.01, "max_events": most, "progress": False, "runs": 2}
    if most == 5:
        with pytest.warns(RuntimeWarning, match=r"more than 5 events .*events\.first"):
            events = rm.simulate_batch(system, [0.0], [0.0], 4.0, **grouped(True, **options)).events
    else:
        events = rm.simulate_batch(system, [0.0], [0.0], 4.0, **grouped(True, **options)).events
    first = dict(zip(events.names, events.first[0], strict=True))
    assert first["beat.late"] == pytest.approx(3.3, abs=1e-12)
    assert first["beat.beats"] == pytest.approx((np.pi - 0.1) / 40.0, abs=1e-12)
    assert events.counts[0] == 51
    assert np.isfinite(events.of("beat.late")[0]).any() == (most == 1000)


def test_an_event_in_a_step_that_the_next_one_must_be_shorter_than():
    """The time of the event is that of the step that found it, not of the next step's length."""

    def pushed(t, q, v):
        return np.stack([np.sin(9.0 * t) * np.exp(3.0 * np.sin(4.0 * t))])

    def beats(t, q, v):
        return np.sin(23.0 * t + 0.1)

    events = [rm.Event(beats, "beats", "record")]
    options = {"torque": pushed, "events": events, "integrator": "dopri5", "rtol": 1e-8}
    batch = rm.simulate_batch(
        slider(),
        [0.0],
        [[0.0], [0.3]],
        6.0,
        **grouped(True, max_step=0.05, progress=False, **options),
    )
    exact = (np.pi * np.arange(1, 44) - 0.1) / 23.0
    for k in range(2):
        assert batch.events.of("beats")[k] == pytest.approx(exact, abs=1e-12)
    run = rm.simulate(
        slider(), [0.0], [0.3], 6.0, **grouped(limits="ignore", progress=False, **options)
    )
    assert batch.final.q[1] == pytest.approx(run.q[-1], abs=1e-6)


@pytest.mark.parametrize("step", [{"step": 0.01}, {"integrator": "dop853"}])
def test_a_parameter_of_a_run_sets_its_initial_states(step):
    """Whichever element it is, and in whichever run."""
    system = rm.System(slider(), [Lag(np.array([0.0, 0.0]))])
    numbers = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 5.0]])
    batch = rm.simulate_batch(
        system,
        [0.0],
        [0.0],
        2.0,
        **grouped(True, parameters={"lag.numbers": numbers}, progress=False, **step),
    )
    assert batch.final.q[:, 0] == pytest.approx([0.0, 2.0, 10.0])
    assert batch[2].q[-1] == pytest.approx(batch.final.q[2])
    given = rm.simulate_batch(
        system,
        [0.0],
        [0.0],
        2.0,
        **grouped(
            True,
            parameters={"lag.numbers": numbers},
            initial={"lag.force": 3.0},
            progress=False,
            **step,
        ),
    )
    assert given.final.q[:, 0] == pytest.approx([6.0, 6.0, 6.0])


class Weighed(rm.Component):
    """A number of the robot is the initial value of a state."""

    def interface(self, robot):
        return rm.Interface(continuous={"level": 1.0 / float(robot.bodies["mass"].mass)})

    def derivative(self, at):
        return {"level": 0.0 * at.state["level"]}


def test_a_mass_of_a_run_sets_its_initial_states():
    system = rm.System(slider(), [Weighed()])
    batch = rm.simulate_batch(
        system,
        [0.0],
        [0.0],
        0.1,
        integrator=rm.Integrator(step=0.1),
        runs=rm.Runs(parameters={"mass.mass": [1.0, 4.0, -1.0]}),
        record=rm.Record(failures="keep", progress=False),
    )
    assert batch.final.signals["weighed.level"][:2].tolist() == [1.0, 0.25]
    assert batch[1].signals["weighed.level"][-1] == 0.25
    assert batch.ok.tolist() == [True, True, False]


class Counted(rm.Component):
    """As many states as a parameter says."""

    count: float = 2.0

    def interface(self, robot):
        if self.count > 5.0:
            raise ValueError("too many")
        return rm.Interface(continuous={"x": np.zeros(int(self.count))})

    def derivative(self, at):
        return {"x": 0.0 * at.state["x"]}


def test_a_parameter_that_changes_more_than_initial_values_is_refused():
    system = rm.System(slider(), [Counted()])
    options = {"step": 0.1, "progress": False}
    with pytest.raises(rm.RemoraError, match=r"counted\.count = 3.* changes the interface"):
        rm.simulate_batch(
            system,
            [0.0],
            [0.0],
            0.1,
            **grouped(True, parameters={"counted.count": [2.0, 3.0]}, **options),
        )
    with pytest.raises(rm.RemoraError, match=r"'counted' cannot have .*count = 9.*too many"):
        rm.simulate_batch(
            system,
            [0.0],
            [0.0],
            0.1,
            **grouped(True, parameters={"counted.count": [2.0, 9.0]}, **options),
        )


# Ctrl-C -------------------------------------------------------------------------------------------


def interrupted(speeds, duration, **options):
    """Return a batch that is interrupted a second after it began; it never ends by itself."""
    given = {**options, "progress": False}
    rm.simulate_batch(
        slider(), [0.0], speeds, 0.1, **grouped(True, **{**given, "sample": None})
    )  # compile
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(RuntimeWarning, match="the runs that are done are kept"):
            return rm.simulate_batch(slider(), [0.0], speeds, duration, **grouped(True, **given))
    finally:
        timer.cancel()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("options", [{"step": 0.01}, {"integrator": "dopri5", "max_step": 0.01}])
def test_ctrl_c_ends_a_batch_at_once_and_keeps_the_runs_that_are_done(options):
    """One block: the runs that reach a place are done before the others, which take years."""
    there = rm.Event(Place(1.0), "there", "stop", 1)
    speeds = np.where(np.arange(40) < 17, 1.0, -1.0)[:, None]
    options |= {"events": [there], "max_steps": 10**9, "sample": [0.0, 0.5, 3e7], "threads": 1}
    batch = interrupted(speeds, 3e7, **options)
    assert batch.status == "interrupted"
    assert batch.outcome[:16].tolist() == ["stopped"] * 16
    assert batch.ok[:16].all()
    assert batch.final.q[:16, 0] == pytest.approx(np.ones(16), abs=1e-12)
    assert batch.events.first[:16, 0] == pytest.approx(np.ones(16), abs=1e-12)
    assert batch.outcome[24:].tolist() == ["interrupted"] * 16
    assert not batch.ok[24:].any()
    assert np.isnan(batch.final.q[24:]).all()
    assert np.all(batch.end < 3e7)


@pytest.mark.usefixtures("ctrl_c")
def test_samples_of_a_batch_in_lockstep_that_ctrl_c_ended():
    speeds = np.arange(1.0, 41.0)[:, None]
    batch = interrupted(speeds, 1e7, step=0.01, sample=[0.0, 10.0, 9e6, 1e7], threads=1)
    assert set(batch.outcome) == {"interrupted"}
    assert repr(batch).endswith("interrupted, 40 not finished")
    assert not batch.ok.any()
    assert batch.end[0] > 10.0
    assert batch.q[0, :2, 0] == pytest.approx([0.0, 10.0])
    for k in range(40):
        known = np.isfinite(batch.q[k, :, 0])
        assert np.array_equal(known, batch.t <= batch.end[k])
