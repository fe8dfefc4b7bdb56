"""`rm.Simulation`: runs that are cut anywhere, taken back, branched, and driven from outside."""

import copy
import dataclasses
import pickle
import random

import numpy as np
import pytest

import captures
import fuzz
import remora as rm
from plain_settings import grouped
from remora.errors import InvalidValue, ShapeError, UnknownName
from remora.simulation.engine import phase_program
from remora.simulation.inputs.loads import Sum
from remora.simulation.inputs.moves import Move
from remora.simulation.inputs.phases import total_duration
from sliders import slider

# random systems may start beyond their limits
pytestmark = pytest.mark.filterwarnings("ignore:joint .* beyond")
PLAIN = rm.load("vt18_satellite")
_RANGE = {"lower": np.array([-0.1]), "upper": np.array([0.06])}
ROBOT = PLAIN.replace_joint("J1", limits=dataclasses.replace(PLAIN.joints["J1"].limits, **_RANGE))
Q, V = rm.neutral(ROBOT), np.zeros(9)
J1 = ROBOT.joints["J1"]


def brake(t, q, v):
    return -0.3 * v[6:7] + 0.2 * np.cos(t)


def law(t, q, v):
    return -0.5 * v - 0.1 * np.sin(3.0 * t)


def phases():
    """Events, a joint that is prescribed and one that is locked, an impulse, controllers, loads."""
    turned = rm.Event(lambda t, q, v: q[J1.q][0] - 0.05, "turned", "next", 1)
    seen = rm.Event(lambda t, q, v: v[J1.v][0] - 0.03, "seen", "record")
    return [
        rm.Phase(2.0, torque={"J1": 4.0, "J2": rm.Pulse(0.1, 0.4, 0.3)}, events=[turned, seen]),
        rm.Phase(
            0.6, torque={"J1": rm.ZeroOrderHold(brake, 0.13)},
            prescribed={"J2": Move.to(0.1, 0.0, 0.5)}, locked=["J3"], impulse=True, own_clock=True,
        ),
        rm.Phase(
            0.5, torque=rm.ZeroOrderHold(law, 0.17),
            base_wrench=rm.Pulse(0.1, 0.5, np.ones(6)), own_clock=True,
        ),
    ]  # fmt: skip


METHODS = {
    "steps": {"rtol": 1e-8},
    "samples": {"rtol": 1e-8, "sample": 0.011, "stops": (50.0, 1.0)},
    "steps to samples": {"rtol": 1e-8, "sample": 0.11, "step_to_samples": True},
    "dopri5": {"rtol": 1e-7, "integrator": "dopri5", "sample": 0.05},
    "radau": {"rtol": 1e-6, "integrator": "radau", "sample": 0.05},
    "rk4": {"integrator": "rk4", "step": 0.013},
    "stopped": {"limits": "stop", "sample": 0.02},
}


def capture():
    """A capture and a release."""
    robot = captures.joined()
    reach = rm.capture_events(robot, "grapple", "fixture", distance=0.1, angle=1.0, speed=1.0)
    parts = [
        rm.Phase(3.0, events=reach),
        rm.Phase(0.5, activate="grasp", latch=True, after_event=True),
        rm.Phase(0.5, release="grasp", separation={"grasp": (0.2, 0, 0)}),
    ]
    state = captures.state(robot, gap=0.2, speed=(-0.2, 0, 0))
    return robot, *state, {"phases": parts, "sample": 0.05, "rtol": 1e-8}


def case(name):
    """Return system, q, v and options of a run."""
    if name in METHODS:
        return ROBOT, Q, V, {"phases": phases(), **METHODS[name]}
    if name == "capture":
        return capture()
    own = fuzz.random_case(int(name.removeprefix("random ")))
    return own.system, own.q, own.v, {"phases": own.phases, **own.options}


#: The random systems: sampled components with noise, offsets and delays, resets, many events,
#: events that end phases or the run, sampled loads, clocks of phases.
CASES = [*METHODS, "capture", *(f"random {seed}" for seed in (0, 3, 9, 11, 13, 16, 20))]


def bits(run, n=None):
    """All that a run holds, to the last bit."""
    rows = {name: values[:n].tobytes() for name, values in run.columns.items()}
    events = [(e.t, e.name, e.action, e.q.tobytes(), e.v.tobytes()) for e in run.events]
    ended = run.phase_starts, run.status, run.message
    return rows, events, ended, [repr(s) for s in run.switches]


def length(options):
    return total_duration(options["phases"])


@pytest.mark.parametrize("name", CASES)
def test_cut_at_any_times_it_is_one_long_run(name):
    """Cuts at random, also at samples and where phases and events are, and looks in between."""
    system, q, v, options = case(name)
    whole = rm.simulate(system, q, v, **grouped(**options))
    end, rng = float(whole.t[-1]), random.Random(name)
    special = [*whole.t.tolist(), *whole.phase_starts, *(e.t for e in whole.events)]
    special = [t for t in special if 0.0 < t < end]

    def jumps(t):  # up to rounding: the state before the jump is shown there
        return any(abs(t - start) < 1e-12 for start in whole.phase_starts[1:])

    for count in (3, 60):
        times = [rng.uniform(0.0, end) for _ in range(count)]
        times += rng.sample(special, min(count, len(special)))
        sim = rm.Simulation(system, q, v, **grouped(**options))
        for t in sorted(times):
            sim.advance(t)
            assert sim.t == t
            assert not sim.ended
            if rng.random() < 0.4:
                at = np.flatnonzero(whole.t == t)
                if at.size == 1 and not jumps(t):
                    assert np.array_equal(sim.q, whole.q[at[0]])
                    assert np.array_equal(sim.v, whole.v[at[0]])
                    for signal, values in whole.signals.items():
                        assert np.array_equal(sim.signal(signal), values[at[0]])
                else:
                    assert np.isfinite(sim.q).all()
            if rng.random() < 0.1:
                part = sim.recording()
                rows, known = bits(part)[0], bits(whole, len(part))[0]
                if not jumps(t):
                    assert len(part) == np.searchsorted(whole.t, t, "right")
                    assert [e.t for e in part.events] == [e.t for e in whole.events if e.t <= t]
                assert all(known[column] == own for column, own in rows.items())
                assert (part.status, sim.status) == ("running", "running")
        assert sim.advance(length(options)) is sim
        assert sim.ended
        assert sim.t == end
        assert bits(sim.recording()) == bits(whole)
        assert np.array_equal(sim.q, whole.q[-1])


def driven(sim, orders, end):
    """Advance a simulation through orders (time, torque or None), and return its recording."""
    for t, torque in orders:
        sim.advance(t)
        if sim.ended:
            break
        if torque is not None:
            sim.set_input("torque", torque)
    return sim.advance(max(end, sim.t)).recording()


@pytest.mark.parametrize("name", CASES)
def test_a_saved_state_is_taken_up_and_branched_with_the_same_bits(name):
    """With inputs that are set on the way, which more cuts do not change."""
    system, q, v, options = case(name)
    end, rng = length(options), random.Random(f"{name} again")
    last = float(rm.simulate(system, q, v, **grouped(**options)).t[-1])
    orders = sorted(
        (rng.uniform(0.0, last), rng.choice([None, [rng.gauss(0.0, 0.2) for _ in v]]))
        for _ in range(10)
    )
    sim, saved = rm.Simulation(system, q, v, **grouped(**options)), []
    for t, torque in orders:
        sim.advance(t)
        if sim.ended:
            break
        if torque is not None:
            sim.set_input("torque", torque)
        saved.append((sim.t, sim.q, sim.save()))
    known = bits(sim.advance(max(end, sim.t)).recording())
    saved.append((sim.t, sim.q, sim.save()))
    cut = sorted([*orders, *((rng.uniform(0.0, last), None) for _ in range(10))])
    assert bits(driven(rm.Simulation(system, q, v, **grouped(**options)), cut, end)) == known
    for t, then, state in rng.sample(saved, min(4, len(saved))):
        sim.restore(state)
        assert sim.t == t
        if not sim.ended:  # another future
            driven(sim, [(t + 0.01, np.full(len(v), 0.1))], end)
            sim.restore(state)
        assert np.array_equal(sim.q, then)
        rest = [order for order in orders if order[0] > t]
        assert bits(driven(sim, rest, end)) == known


# Inputs -----------------------------------------------------------------------------------------

TIMES, END = np.array([0.0, 0.1, 0.15, 0.3, 0.5]), 0.7


def held(values):
    """Return a profile that holds values from each time of `TIMES` on."""
    return rm.Profile([*TIMES, END], [*values, values[-1]], "hold")


@pytest.mark.parametrize("load", ["torque", "base_wrench", "wrenches"])
@pytest.mark.parametrize("name", ["steps", "radau", "rk4"])
def test_a_load_that_is_set_is_a_profile_that_is_held(name, load):
    """To the last bit, whatever the load was before."""
    rng = np.random.default_rng(3)
    sizes = {"torque": 9, "base_wrench": 6}
    values = rng.normal(scale=0.2, size=(len(TIMES), sizes.get(load, 6)))
    before, body = rm.ZeroOrderHold(lambda *_: values[0], 0.13), ROBOT.bodies[2].name
    given, setting = held(values), list(values)
    if load == "wrenches":
        given, before, setting = {body: given}, {body: before}, [{body: x} for x in values]
    options = {**METHODS[name], "duration": END}
    known = rm.simulate(ROBOT, Q, V, **grouped(**options, **{load: given}))
    sim = rm.Simulation(ROBOT, Q, V, **grouped(**options, **{load: before}))
    sim.advance(0.0)
    for t, value in zip(TIMES, setting, strict=True):
        sim.advance(t)
        sim.set_input(load, setting[0])  # replaced before a step is made
        sim.set_input(load, value)
    assert bits(sim.advance(END).recording()) == bits(known)


def test_torques_by_joint_and_wrenches_by_body():
    whole = np.zeros(9)
    whole[J1.v] = 0.3
    push = np.zeros((len(ROBOT.bodies), 6))
    push[2] = 0.1
    runs = []
    for torque, wrenches in (({"J1": 0.3}, {ROBOT.bodies[2].name: [0.1] * 6}), (whole, push)):
        sim = rm.Simulation(ROBOT, Q, V, 0.2)
        sim.set_input("torque", torque)
        sim.set_input("wrenches", wrenches)
        runs.append(bits(sim.advance(0.2).recording())[0])
    assert runs[0] == runs[1]


class Push(rm.Component):
    """A force that follows a command."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"command": rm.Signal((), "N", default=1.0)},
            continuous={"force": rm.State(0.0, "N")},
        )

    def derivative(self, at):
        return {"force": (at.inputs["command"] - at.state["force"]) / 0.1}

    def act(self, at):
        return rm.JointForce("slide", at.state["force"])


class Sampler(rm.Component):
    """A command that is passed on at ticks, with noise."""

    def interface(self, robot):
        return rm.Interface(
            inputs={"goal": rm.Signal((), "N", default=0.0)},
            outputs={"command": rm.Signal((), "N")},
            noise={"goal": 1},
        )

    def outputs(self, at):
        return {"command": at.inputs["goal"] + 0.1 * at.noise["goal"][..., 0]}


@pytest.mark.parametrize("options", [{}, {"integrator": "rk4", "step": 0.01}])
def test_an_input_of_a_component_is_a_source_that_is_held(options):
    values = [1.0, -2.0, 0.5, 3.0, 0.0]
    source = rm.SignalSource(held(values), "N")
    system = rm.System(slider(), [Push(), source], {"push.command": "signal_source.value"})
    known = rm.simulate(system, [0.0], [0.0], 0.7, **grouped(sample=0.05, **options))
    sim = rm.Simulation(
        rm.System(slider(), [Push()]),
        [0.0],
        [0.0],
        0.7,
        **grouped(sample=0.05, inputs="push.command", **options),
    )
    assert sim.signal("inputs.push_command") == 1.0  # the default
    for t, value in zip(TIMES, values, strict=True):
        sim.advance(t)
        sim.set_input("push.command", value)
        assert sim.signal("inputs.push_command") == value
    run = sim.advance(0.7).recording()
    assert np.abs(run.q - known.q).max() < 1e-12
    assert np.abs(run.signals["push.force"] - known.signals["push.force"]).max() < 1e-11
    shown = run.signals["inputs.push_command"]  # a sample at t holds what was before
    assert np.array_equal(shown, [1.0, 1.0, 1.0, -2.0, *[0.5] * 3, *[3.0] * 4, *[0.0] * 4])


def test_a_tick_at_the_time_of_a_change_sees_the_new_input():
    """Also at the start, and where a phase begins; noise and times of ticks stay."""
    system = rm.System(slider(), [Sampler(sample_time=0.1), Push()])
    parts = [rm.Phase(0.1 * 3), rm.Phase(0.4)]
    sim = rm.Simulation(system, [0.0], [0.0], parts, inputs=["sampler.goal"], seed=3)
    noise = []
    for k, goal in enumerate([2.0, 5.0, -1.0, 4.0, 8.0]):
        sim.advance(0.1 * k)
        before = sim.save()
        sim.set_input("sampler.goal", goal)
        sim.advance(0.1 * k + 0.05)
        got = float(sim.signal("sampler.command"))
        assert abs(got - goal) < 1.0
        noise.append(got - goal)
        sim.restore(before)
        sim.set_input("sampler.goal", goal)
    assert np.unique(np.abs(noise)).size == 5
    alone = rm.simulate(system, [0.0], [0.0], parts, record=0.05, seed=3)
    ticks = alone.signals["sampler.command"][1:10:2]
    assert np.allclose(noise, ticks, rtol=0, atol=1e-15)


def test_an_input_at_an_event_that_ends_a_phase():
    """The event is at a time that is also one of the inputs, to the last bit."""
    at = rm.Event(lambda t, q, v: t - 0.25, "then", "next", 1)
    parts = [rm.Phase(1.0, events=[at]), rm.Phase(0.25)]
    sim = rm.Simulation(slider(), [0.0], [0.0], parts)
    sim.advance(0.4)
    when = sim.recording().events[0].t
    sim = rm.Simulation(slider(), [0.0], [0.0], parts)
    sim.advance(when)
    sim.set_input("torque", [2.0])
    state = sim.save()
    sim.advance(1.0)
    once = sim.recording()
    sim.restore(state)
    assert bits(sim.advance(1.0).recording()) == bits(once)
    assert once.phase_starts == (0.0, when)
    assert abs(once.q[-1, 0] - 0.25**2) < 1e-12
    assert abs(sim.t - when - 0.25) < 1e-15


def test_the_reduced_model_takes_torques_only():
    options = {"model": "reduced", "duration": 0.4, "sample": 0.1}
    last = [0.0] * 6 + [0.2, 0.1, -0.1]
    torque = rm.Profile([0.0, 0.2, 0.4], [[0.0] * 9, last, last], "hold")
    known = rm.simulate(PLAIN, Q, V, **grouped(torque=torque, **options))
    sim = rm.Simulation(PLAIN, Q, V, **grouped(**options))
    assert sim.inputs == ("torque",)
    sim.advance(0.2)
    sim.set_input("torque", {"J1": 0.2, "J2": 0.1, "J3": -0.1})
    run = sim.advance(0.4).recording()
    assert np.abs(run.q - known.q).max() < 1e-12
    with pytest.raises(UnknownName, match="base_wrench"):
        rm.Simulation(PLAIN, Q, V, **grouped(**options)).set_input("base_wrench", np.zeros(6))


# Ends and errors --------------------------------------------------------------------------------


def test_a_run_that_has_ended_stays_there():
    stop = rm.Event(lambda t, q, v: q[0] - 0.5, "there", "stop")
    sim = rm.Simulation(slider(), [0.0], [1.0], 2.0, events=[stop])
    sim.advance(1.5)
    assert sim.ended
    assert sim.status == "complete"
    assert "there" in sim.message
    assert abs(sim.t - 0.5) < 1e-14
    assert sim.advance(2.0).t == sim.t
    with pytest.raises(rm.RemoraError, match="has ended"):
        sim.set_input("torque", [1.0])


def test_a_failure_names_its_time_and_keeps_what_was_recorded():
    def failing(t, q, v):
        return [np.nan if t > 0.5 else 0.0]

    sim = rm.Simulation(
        slider(),
        [0.0],
        [1.0],
        2.0,
        torque=failing,
        record=0.1,
        integrator=rm.Integrator(breaks=[0.4]),
    )
    sim.advance(0.3)
    state = sim.save()
    for _ in range(2):  # again, too
        with pytest.raises(rm.errors.SimulationError) as error:
            sim.advance(1.0)
        assert 0.4 <= error.value.time < 1.0
        assert len(error.value.recording) >= 4
    assert (sim.status, sim.ended) == ("failed", True)
    with pytest.raises(rm.RemoraError, match="failed"):
        sim.save()
    sim.restore(state)
    sim.set_input("torque", [0.0])
    assert abs(sim.advance(2.0).q[0] - 2.0) < 1e-12


def test_an_interrupted_simulation_goes_on(monkeypatch):
    options = {"phases": phases(), **METHODS["samples"]}
    whole = rm.simulate(ROBOT, Q, V, **grouped(**options))
    sim = rm.Simulation(ROBOT, Q, V, **grouped(**options))
    sim.advance(0.05)
    own, calls = phase_program.PhaseProgram.advance, 0

    def interrupted(self, *arguments):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return own(self, *arguments)

    monkeypatch.setattr(phase_program.PhaseProgram, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim.advance(5.0)
    assert sim.t == 0.05
    assert calls == 3
    assert bits(sim.advance(5.0).recording()) == bits(whole)


def test_refusals():
    system = rm.System(slider(), [Push()])
    sim = rm.Simulation(system, [0.0], [0.0], 1.0, inputs=["push.command"])
    sim.advance(0.5)
    for until in (0.4, np.nan, -np.inf):
        with pytest.raises(InvalidValue, match=r"not before t = 0\.5 s"):
            sim.advance(until)
    with pytest.raises(rm.RemoraError, match="until"):
        sim.advance("later")
    with pytest.raises(UnknownName, match=r"push\.force"):
        sim.signal("push.forces")
    with pytest.raises(UnknownName, match=r"push\.command"):
        sim.set_input("push.comand", 1.0)
    with pytest.raises(UnknownName, match="torque"):
        sim.set_input("torques", [1.0])
    for name, value in (("torque", [1.0, 2.0]), ("push.command", [1.0, 2.0]), ("wrenches", 1.0)):
        with pytest.raises(ShapeError, match="shape"):
            sim.set_input(name, value)
    for name in ("torque", "push.command"):
        with pytest.raises(InvalidValue, match="nan"):
            sim.set_input(name, [np.nan])
    with pytest.raises(InvalidValue, match="numbers"):
        sim.set_input("torque", lambda t, q, v: [0.0])
    assert sim.t == 0.5
    with pytest.raises(rm.RemoraError, match="save"):
        sim.restore(rm.Simulation(system, [0.0], [0.0], 1.0).save())
    with pytest.raises(rm.RemoraError, match="save"):
        rm.Simulation(system, [0.0], [0.0], 1.0, record=rm.Record(folder="there"))
    with pytest.raises(UnknownName, match=r"push\.command"):
        rm.Simulation(system, [0.0], [0.0], 1.0, inputs=["push.comand"])
    with pytest.raises(rm.RemoraError, match="System"):
        rm.Simulation(slider(), [0.0], [0.0], 1.0, inputs=["push.command"])


def test_a_run_that_fails_at_its_start_keeps_its_state():
    def broken(t, q, v):
        raise ValueError("no file")

    sim = rm.Simulation(PLAIN, Q, V + 0.1, 1.0, torque=broken)
    for until in (0.5, 0.7):  # told again
        with pytest.raises(
            rm.errors.SimulationError, match=r"at t = 0 s: .*torque raised ValueError: no"
        ):
            sim.advance(until)
    assert (sim.t, sim.status, sim.ended) == (0.0, "failed", True)
    assert np.array_equal(sim.q, Q)
    assert np.array_equal(sim.v, V + 0.1)
    with pytest.raises(UnknownName):
        sim.signal("gyro.rate")


def test_an_unknown_argument_is_one_of_simulation():
    with pytest.raises(TypeError, match=r"Simulation\(\) .* 'tolerance'"):
        rm.Simulation(PLAIN, Q, V, 1.0, tolerance=1e-3)


def test_a_torque_on_a_joint_that_is_held_now_is_refused():
    """It was ignored, while `rm.simulate` refused it."""
    parts = [rm.Phase(0.2, locked=["J1"]), rm.Phase(0.2, locked=["J2"], impulse=True)]
    sim = rm.Simulation(ROBOT, Q, V, parts)
    for t, own, other in ((0.0, "J1", "J2"), (0.13, "J1", "J2"), (0.2, "J2", "J1")):
        sim.advance(t)
        with pytest.raises(rm.RemoraError, match=f"contradiction: joint '{own}' is prescribed"):
            sim.set_input("torque", {own: 0.0})
        sim.set_input("torque", np.full(ROBOT.nv, 0.1))  # as a law returns it
        sim.set_input("torque", {other: 0.1})
    run = sim.advance(0.4).recording()
    assert np.any(run.v[-1])


def test_loads_are_those_that_were_given():
    """A run read the user's arrays again in later phases and when an input was set."""
    steps, rest = rm.Integrator("rk4", step=0.1), ([0.0], [0.0])
    part = rm.simulate(slider(), *rest, 1.0, torque=[1.0], integrator=steps).q[-1]
    for given in ([1.0], np.ones(1), {"slide": np.ones(1)}, Sum(np.ones(1), None)):
        changed = given.parts[0] if isinstance(given, Sum) else given
        key = "slide" if isinstance(given, dict) else 0
        halves = [rm.Phase(0.5, torque=given), rm.Phase(0.5, torque=given)]
        sim = rm.Simulation(slider(), *rest, 1.0, torque=given, integrator=steps)
        later = rm.Simulation(slider(), *rest, halves, integrator=steps)
        batch = rm.simulate_batch(slider(), [[0.0]], [0.0], 1.0, torque=given, integrator=steps)
        sim.advance(0.5)
        changed[key] = 100.0
        sim.set_input("wrenches", np.zeros((1, 6)))
        assert sim.advance(1.0).q == pytest.approx(part, rel=1e-13)
        assert later.advance(1.0).q == pytest.approx(part, rel=1e-13)
        assert batch[0].q[-1] == pytest.approx(part, rel=1e-13)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))]
)
@pytest.mark.parametrize("integrator", ["dop853", "radau"])
def test_a_copy_goes_on_by_itself_with_the_same_bits(copied, integrator):
    def made():
        law = rm.control.JointPD(PLAIN, {"J2": 0.1}, {"J2": 2.0}, {"J2": 1.0}, 0.05)
        return rm.Simulation(rm.System(PLAIN, [law]), Q, V, 0.6, integrator=integrator)

    sims = made(), made()
    for sim in sims:
        sim.set_input("torque", {"J1": 1.0})
        sim.advance(0.13)
    branch = copied(sims[0])
    assert (branch.t, branch.status) == (0.13, "running")
    assert np.array_equal(branch.q, sims[0].q)
    assert len(branch.recording().t) == len(sims[0].recording().t) > 1
    branch.set_input("torque", {"J1": -1.0})
    branch.advance(0.6)
    for sim in sims:
        sim.set_input("base_wrench", np.zeros(6))  # all loads are read again
        sim.advance(0.6)
    assert np.array_equal(sims[0].recording().v, sims[1].recording().v)
    again = made()
    again.set_input("torque", {"J1": 1.0})
    again.advance(0.13).set_input("torque", {"J1": -1.0})
    expected = again.advance(0.6).recording()
    assert np.array_equal(branch.recording().t, expected.t)
    assert np.array_equal(branch.recording().v, expected.v)
    assert not np.array_equal(branch.v, sims[0].v)
    ended = copied(branch)
    assert (ended.t, ended.status) == (0.6, "complete")
    assert np.array_equal(ended.v, branch.v)
