"""Components see phases and events of a run: alone, in batches, resumed, in scenario files."""

import numpy as np
import pytest

import captures
import remora as rm
from plain_settings import grouped
from remora.algebra.array_ops import less, select
from remora.components.run_signals import event_key
from remora.simulation.engine import progress
from sliders import slider

STEPS = {
    "rk4": {"step": 0.02}, "dopri5": {}, "dop853": {}, "radau": {}, "variational": {"step": 1e-3}
}  # fmt: skip
#: Of the force of `Mode`, which is linear in time: all but the midpoint rule are exact.
OFF = {"variational": 1e-6}


class Mode(rm.Component):
    """A command of the phase, and of an event and the time since."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"go": rm.Signal(), "when": rm.Signal((), "s")},
            outputs={"command": rm.Signal((), "N")},
        )

    def outputs(self, at):
        since = at.inputs["go"] * (at.t - at.inputs["when"])
        return {"command": at.inputs["go"] + since + 0.5 * at.phase + 0.3 * at.phase_time}


class Push(rm.Component):
    """A force on the slider."""

    def interface(self, robot):
        return rm.Interface(inputs={"command": rm.Signal((), "N")})

    def act(self, at):
        return rm.GeneralizedForce(np.reshape(at.inputs["command"], (1,)))


HALF = rm.Event(lambda t, q, v: q[0] - 0.5, "half way", "record", 1)
CONNECT = {"mode.go": "events.half_way", "mode.when": "events.half_way_time"}
PHASES = [rm.Phase(0.4, events=[HALF]), rm.Phase(1.0, events=[HALF]), rm.Phase(0.6)]


def system(**timing):
    return rm.System(slider(), [Mode(**timing), Push()], CONNECT)


def exact(q, v, start=0.0):
    """Return time of the event, q and v at the end: polynomials between the switches."""
    t, k, seen = 0.0, 0, None
    ends = [0.4, 1.4, 2.0]
    begins = [0.0, 0.4, 1.4]

    def moved(h):
        a = 0.5 * k + 0.3 * (t - begins[k]) + (0.0 if seen is None else 1.0 + t - seen)
        b = 0.3 + (0.0 if seen is None else 1.0)
        return q + v * h + a * h**2 / 2 + b * h**3 / 6, v + a * h + b * h**2 / 2

    while k < 3:
        h = ends[k] - t
        if seen is None and q < 0.5 < moved(h)[0]:
            low, high = 0.0, h
            for _ in range(80):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if moved(middle)[0] < 0.5 else (low, middle)
            (q, v), t = moved(high), t + high
            seen = t
            continue
        (q, v), t, k = moved(h), ends[k], k + 1
    return start + seen, q, v


@pytest.mark.parametrize("integrator", STEPS)
def test_a_continuous_component_reacts_to_phases_and_events(integrator):
    seen, q, v = exact(0.1, 0.6)
    options = {"integrator": integrator, "sample": 0.1, **STEPS[integrator]}
    run = rm.simulate(system(), [0.1], [0.6], **grouped(phases=PHASES, start=5.0, **options))
    off = OFF.get(integrator, 1e-11)
    assert run.events[0].t - 5.0 == pytest.approx(seen, abs=off)
    assert run.q[-1, 0] == pytest.approx(q, abs=off)
    assert run.v[-1, 0] == pytest.approx(v, abs=off)
    late = run.t > run.events[0].t
    assert np.array_equal(run.signals["events.half_way"], late)
    assert run.signals["events.half_way_time"] == pytest.approx(late * run.events[0].t)
    assert np.unique(run.signals["phase.index"]).tolist() == [0.0, 1.0, 2.0]
    assert run.signals["phase.time"][-1] == pytest.approx(0.6)


@pytest.mark.parametrize("integrator", ["rk4", "dopri5", "dop853"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_run_of_a_batch_reacts_to_its_own_events(integrator, dtype):
    v = np.array([[0.6], [0.45], [0.3]])
    batch = rm.simulate_batch(
        system(),
        [0.1],
        v,
        PHASES,
        integrator=rm.Integrator(
            integrator,
            step=0.02,
            rtol=1e-6 if dtype == "float32" else 1e-10,
            atol=1e-8 if dtype == "float32" else 1e-12,
        ),
        record=0.1,
        target=rm.Target(dtype=dtype),
    )
    off = 1e-11 if dtype == "float64" else 1e-5
    for k in range(3):
        seen, there, speed = exact(0.1, v[k, 0])
        assert batch.events.first[k, 0] == pytest.approx(seen, abs=off)
        assert batch.final.q[k, 0] == pytest.approx(there, abs=off)
        assert batch.final.v[k, 0] == pytest.approx(speed, abs=off)
        late = batch.t > seen
        assert np.array_equal(batch.signals["events.half_way"][k], late)
    assert np.unique(batch.signals["phase.index"]).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_a_sampled_component_reacts_at_its_next_tick(delay):
    """Alone and in a batch; ticks count from the start of the run, as without phases."""
    own = system(sample_time=0.1, delay=delay)
    options = {"phases": PHASES, "integrator": "rk4", "step": 0.02, "sample": 0.05}
    run = rm.simulate(own, [0.1], [0.6], **grouped(**options))
    batch = rm.simulate_batch(own, [0.1], [0.6], **grouped(True, runs=2, **options))
    assert batch.final.q[1] == pytest.approx(run.q[-1], abs=1e-13)
    (event,) = run.events
    tick = 0.1 * np.ceil(event.t / 0.1) + delay
    first = run.t[np.flatnonzero(run.signals["mode.command"] >= 1.0)[0]]
    assert first == pytest.approx(tick + 0.05)  # a sample at a tick is taken before it


class Clocked(rm.Component):
    """A torque of the phase, of all joints."""

    def act(self, at):
        size = 1e-3 * (1.0 + at.phase) * np.cos(20.0 * at.phase_time)
        return rm.GeneralizedForce(size * np.arange(at.robot.nv) * 1.0)


def test_phases_in_lockstep_and_on_a_large_robot():
    """Without events, runs of a batch make the same steps; large robots are not compiled."""
    phases = [rm.Phase(0.02), rm.Phase(0.03)]
    for bodies in (3, 210):
        robot = rm.random_robot(3, bodies=bodies, kinds=("revolute",), base="fixed")
        q, v = rm.random_state(robot, 1)
        own = rm.System(robot, [Clocked()])
        options = {"phases": phases, "integrator": "rk4", "step": 0.01}
        run = rm.simulate(own, q, 0.0 * v, **grouped(limits="ignore", **options))
        batch = rm.simulate_batch(own, q, 0.0 * v, **grouped(True, runs=1, **options))
        still = rm.simulate(
            own,
            q,
            0.0 * v,
            0.05,
            physics=rm.Physics(limits="ignore"),
            integrator=rm.Integrator("rk4", step=0.01),
        )
        assert np.abs(batch.final.v[0] - run.v[-1]).max() < 1e-12 * np.abs(run.v[-1]).max()
        assert np.abs(still.v[-1] - run.v[-1]).max() > 1e-2 * np.abs(run.v[-1]).max()


class Noisy(rm.Component):
    """Noise, and the phase."""

    def interface(self, robot):
        return rm.Interface(outputs={"noise": rm.Signal(), "both": rm.Signal()}, noise={"drawn": 1})

    def outputs(self, at):
        drawn = at.noise["drawn"][..., 0]
        return {"noise": drawn, "both": drawn + at.phase}


class Plain(Noisy):
    """Noise."""

    def outputs(self, at):
        return dict.fromkeys(("noise", "both"), at.noise["drawn"][..., 0])


def test_noise_does_not_depend_on_what_is_read():
    runs = [
        rm.simulate(
            rm.System(slider(), [c]),
            [0.0],
            [0.1],
            [rm.Phase(0.5), rm.Phase(0.5)],
            record=0.1,
            seed=4,
        )
        for c in (Noisy(name="n", sample_time=0.1), Plain(name="n", sample_time=0.1))
    ]
    assert np.array_equal(runs[0].signals["n.noise"], runs[1].signals["n.noise"])
    assert not np.array_equal(runs[0].signals["n.both"], runs[1].signals["n.both"])


def test_a_resumed_run_knows_phase_and_events(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    options = {"phases": PHASES, "integrator": "rk4", "step": 0.02, "sample": 0.1}
    whole = rm.simulate(system(), [0.1], [0.6], **grouped(**options))
    for until in (0.3, 0.9, 1.7):  # before the event, after it, in the last phase

        def stop(status, until=until):
            if status.t > until:
                raise KeyboardInterrupt

        out = tmp_path / f"run{until}"
        with pytest.warns(RuntimeWarning, match="interrupted"):
            part = rm.simulate(system(), [0.1], [0.6], **grouped(out=out, progress=stop, **options))
        assert part.status == "interrupted"
        run = rm.simulate(system(), [0.1], [0.6], **grouped(out=out, resume=True, **options))
        assert np.array_equal(run.q, whole.q)
        assert np.array_equal(run.signals["mode.command"], whole.signals["mode.command"])


class Brake(rm.Component):
    """A damper between the bus and the captured target, once it is captured."""

    gain: float = 3.0

    def interface(self, robot):
        return rm.Interface(inputs={"captured": rm.Signal()})

    def act(self, at):
        on = select(less(0.5, at.inputs["captured"]), self.gain, 0.0)
        return rm.Wrench("bus", np.zeros(3), -on * at.angular_velocity("bus"))


def test_a_controller_reacts_to_a_capture():
    """Momentum is constant until the capture, each run its own; the law knows no distances."""
    robot = captures.joined()
    own = rm.System(robot, [Brake()], {"brake.captured": "events.captured"})
    events = rm.capture_events(robot, "grapple", "fixture", distance=0.1, speed=1.0)
    phases = [
        rm.Phase(4.0, events=events),
        rm.Phase(2.0, activate="grasp", latch=True, after_event=True),
    ]
    starts = [captures.state(robot, gap=g, speed=(-0.12, 0.0, 0.0)) for g in (0.2, 0.25, 0.09)]
    q, v = (np.stack(x) for x in zip(*starts, strict=True))
    batch = rm.simulate_batch(own, q, v, phases, integrator=rm.Integrator(step=0.02), record=0.1)
    captured = batch.events.first[:, batch.events.names.index("captured")]
    assert captured[2] == 0.0  # in reach from the start
    for k in range(3):
        run = rm.simulate(
            own,
            q[k],
            v[k],
            phases,
            integrator=rm.Integrator(rtol=1e-11, step_to_samples=True),
            record=0.1,
            physics=rm.Physics(limits="ignore"),
        )
        when = next(e.t for e in run.events if e.name == "captured")
        assert when == pytest.approx(captured[k], abs=1e-8)
        assert np.abs(batch.final.v[k] - run.v[-1]).max() < 1e-6
        off = np.abs(run.momentum - run.momentum[0]).max(axis=1)
        assert off[run.t <= when].max() < 1e-12
        assert off[-1] > 1e-3
        assert np.all(run.signals["events.captured"][run.t > when + 1e-9] == 1.0)


SCENARIO = """
scenario: 1
robot: slider.yaml
start: {speeds: {slide: 0.5}}
components:
  - {type: threshold, name: first, above: 0.5}
  - {type: threshold, name: second, above: 0.5}
connections: {first.signal: events.far, second.signal: phase.index}
phases:
  - {duration: 4, until: [{joint: slide, above: 0.75, name: far, action: record}]}
  - {duration: 1}
output: {sample: 0.5}
"""


def test_scenario_files(tmp_path):
    rm.save_robot(slider(), tmp_path / "slider.yaml")
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    scenario = rm.load_scenario(file)
    run = scenario.run(progress=False)
    far = next(e.t for e in run.events if e.name == "far")
    assert far == pytest.approx(1.5, abs=1e-9)
    crossed = {e.name: e.t for e in run.events}
    assert crossed["first.crossed"] == pytest.approx(far, abs=1e-6)
    assert crossed["second.crossed"] == pytest.approx(4.0, abs=1e-6)
    file.write_text(SCENARIO.replace("events.far", "events.fra"), encoding="utf-8")
    with pytest.raises(rm.errors.ModelError, match="fra") as refused:
        rm.load_scenario(file)
    assert "far" in str(refused.value)


# Names -------------------------------------------------------------------------------------------


def test_names_of_events_as_signals():
    assert event_key("half way") == "half_way"
    assert event_key("grip.captured") == "grip_captured"
    assert event_key("servicer/elbow upper limit") == "servicer_elbow_upper_limit"
    assert event_key("2nd") == "_2nd"


def test_events_of_components_and_limits_are_signals():
    robot = slider(upper=0.4)
    connect = {"mode.go": "events.slide_upper_limit", "mode.when": "events.clock_late_time"}
    run = rm.simulate(
        rm.System(robot, [Mode(), Push(), Late(name="clock")], connect),
        [0.1],
        [0.6],
        1.0,
        record=0.1,
    )
    times = {e.name: e.t for e in run.events}
    assert run.signals["events.slide_upper_limit_time"][-1] == times["slide upper limit"]
    assert run.signals["events.clock_late_time"][-1] == times["clock.late"]


class Late(rm.Component):
    """An event at 0.3 s."""

    def interface(self, robot):
        return rm.Interface(events={"late": rm.ZeroCrossing(1, "record")})

    def crossings(self, at):
        return {"late": at.t - 0.3}


def test_the_time_of_an_event_is_that_of_its_first_occurrence():
    """Of one that occurs three times, alone and in a batch."""
    beat = rm.Event(lambda t, q, v: np.sin(5.0 * t - 0.6), "half way", "record")
    options = {"events": [beat], "integrator": "rk4", "step": 0.02, "sample": 0.1}
    run = rm.simulate(system(), [0.0], [0.0], 1.9, **grouped(**options))
    batch = rm.simulate_batch(system(), [0.0], [0.0], 1.9, **grouped(True, runs=1, **options))
    assert len(run.events) == 3
    for found in (run.signals, {name: x[0] for name, x in batch.signals.items()}):
        assert found["events.half_way"].tolist() == [0.0] * 2 + [1.0] * 18
        assert found["events.half_way_time"][-1] == pytest.approx(0.12, abs=1e-12)


def test_unknown_events_are_refused_with_those_that_exist():
    other = rm.Event(lambda t, q, v: q[0] - 0.5, "other")
    with pytest.raises(rm.errors.UnknownName, match=r"half_way.*known: other"):
        rm.simulate(
            system(), [0.1], [0.6], 1.0, events=[other], physics=rm.Physics(limits="ignore")
        )
    with pytest.raises(rm.errors.UnknownName, match="half_way"):
        rm.simulate_batch(system(), [0.1], [0.6], 1.0, integrator=rm.Integrator(step=0.1), runs=1)
    with pytest.raises(
        rm.errors.ModelError, match=r"no output 'phase\.indx'; did you mean 'phase\.index'"
    ):
        rm.System(slider(), [Push()], {"push.command": "phase.indx"})


class Reading(rm.Component):
    """Inputs with the names of the run's outputs, and an output of its own."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"time": rm.Signal((), "s", default=7.0), "index": rm.Signal(default=7.0)},
            outputs={"value": rm.Signal()},
        )

    def outputs(self, at):
        return {"value": at.inputs["time"] + 0.0 * at.phase}


def test_signals_of_the_run_are_connected_only_on_request():
    """Also in a system that is made again, with other numbers or of its pickle."""
    made = rm.System(slider(), [Reading(name="r")])
    for own in (made, made.with_robot(slider(mass=2.0)), rm.System(made.robot, made.components)):
        assert own.connections["r.time"] == 7.0
        assert "phase" in own.components
        assert rm.simulate(own, [0.0], [0.1], 1.0).signals["r.value"][-1] == 7.0
    assert "phase" not in rm.System(slider(), [Push()], {"push.command": 1.0}).components


def test_components_of_these_names_stay_what_they_are():
    """Of a component that is called `phase` or `events`, outputs are its own."""
    source = rm.SignalSource(3.0, "N", name="events")
    own = rm.System(slider(), {"events": source, "push": Push(), "phase": Clocked()},
                    {"push.command": "events.value"})  # fmt: skip
    assert [*own.components] == ["events", "push", "phase", "phase_of_run"]
    run = rm.simulate(own, [0.0], [0.0], [rm.Phase(0.5), rm.Phase(0.5)])
    assert run.v[-1, 0] == pytest.approx(3.0, abs=1e-2)
    assert run.signals["phase_of_run.index"][-1] == 1.0


class Sometimes(rm.Component):
    """Reads the phase after a while only."""

    def act(self, at):
        return rm.GeneralizedForce(np.reshape(at.phase if at.t > 0.5 else 0.0, (1,)))


def test_a_phase_that_is_read_sometimes_is_refused():
    own = rm.System(slider(), [Sometimes()])
    with pytest.raises(rm.errors.SimulationError, match=r"connect an input to 'phase\.index'"):
        rm.simulate(own, [0.0], [0.0], 1.0)


def test_exported_c_has_neither(tmp_path):
    for own in (system(), rm.System(slider(), [Clocked()])):
        with pytest.raises(rm.RemoraError, match=r"exported C|phase of the run"):
            rm.save_loop_c(own, tmp_path, 0.1)
    with pytest.raises(rm.RemoraError, match="reads the phase of the run"):
        rm.save_component_c(rm.System(slider(), [Clocked()]), "clocked", tmp_path)
    assert rm.save_component_c(system(), "push", tmp_path)
