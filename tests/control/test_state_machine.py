"""State machines: against a machine in plain Python, in runs, batches, C, files and diagrams."""

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import built_test, verdict
from remora.control import StateMachine

ROBOT = rm.load("vt18_satellite")
H = 0.1
SETTINGS = {"integrator": rm.Integrator("rk4", step=H), "record": H}
MODES = ("approach", "close", "hold", "retreat")
TRANSITIONS = (
    "approach -> close: range < 0.5 for 0.3",
    "close -> hold: range < 0.1 and not fault",
    "close -> approach: range > 0.8",
    "hold -> approach: after 1.2 and range > 0.05",
    "* -> retreat: fault",
    "retreat -> approach: after 0.5 and not fault for 0.2",
)


def by_hand(range_, fault):
    """Return mode and time of each tick, written as one would write it by hand."""
    mode, since, near, quiet = "approach", 0, 0, 0
    found = []
    for k, (x, bad) in enumerate(zip(range_, fault > 0.5, strict=True)):
        near = near + 1 if x < 0.5 else 0
        quiet = 0 if bad else quiet + 1
        ticks, new = k - since, None
        if mode == "approach" and near >= 4:
            new = "close"
        elif mode == "close" and x < 0.1 and not bad:
            new = "hold"
        elif (mode == "close" and x > 0.8) or (mode == "hold" and ticks >= 12 and x > 0.05):
            new = "approach"
        elif mode != "retreat" and bad:
            new = "retreat"
        elif mode == "retreat" and ticks >= 5 and quiet >= 3:
            new = "approach"
        if new:
            mode, since, near, quiet = new, k, int(x < 0.5), int(not bad)
        found.append((MODES.index(mode), (k - since) * H))
    return np.array(found)


class Random(rm.Component):
    """Signals that wander."""

    sampled = True

    def interface(self, robot):
        return rm.Interface(
            outputs={"range": rm.Signal((), "m"), "fault": rm.Signal()},
            discrete={"at": rm.State(1.0)}, noise={"move": 1, "fault": 1},
        )  # fmt: skip

    def outputs(self, at):
        from remora.algebra.array_ops import less, select

        fault = select(less(1.7, at.noise["fault"][..., 0]), 1.0, 0.0)
        return {"range": self._next(at), "fault": fault}

    def _next(self, at):
        return 0.9 * at.memory["at"] + 0.04 + 0.15 * at.noise["move"][..., 0]

    def update(self, at):
        return {"at": self._next(at)}


def machine(**options):
    return StateMachine(MODES, TRANSITIONS, sample_time=H, name="modes", **options)


def test_random_signals_in_a_batch_and_alone():
    """Every transition is made in some run, and all modes and times are those by hand."""
    system = rm.System(ROBOT, [machine(), Random(sample_time=H, name="wander")])
    q, v = rm.neutral(ROBOT), np.zeros(ROBOT.nv)
    batch = rm.simulate_batch(system, q, v, 30.0, runs=rm.Runs(30, seed=4), **SETTINGS)
    made = set()
    for k in range(30):
        range_, fault, mode, time = (
            batch.signals[name][k, 1:]
            for name in ("wander.range", "wander.fault", "modes.mode", "modes.time")
        )
        expected = by_hand(range_, fault)
        assert np.array_equal(mode, expected[:, 0])
        assert np.abs(time - expected[:, 1]).max() < 1e-12
        made |= set(zip(mode[:-1].astype(int), mode[1:].astype(int), strict=True))
        flags = np.array([batch.signals[f"modes.{name}"][k, 1:] for name in MODES])
        assert np.array_equal(flags.argmax(axis=0), mode)
        assert np.all(flags.sum(axis=0) == 1.0)
    pairs = {(a, b) for a, b in made if a != b}
    assert pairs == {(0, 1), (1, 2), (1, 0), (2, 0), (0, 3), (1, 3), (2, 3), (3, 0)}
    run = rm.simulate(system, q, v, 30.0, seed=(4, 7), **SETTINGS)
    assert np.array_equal(run.signals["modes.mode"], batch.signals["modes.mode"][7])


def test_a_condition_lasts_equally_long_in_all_modes():
    """It holds all the time: from the tick at which a mode begins, the first or a later one."""
    made = StateMachine(
        ("a", "b", "c"), ("a -> b: on for 0.5", "b -> c: on for 0.5"), sample_time=H, name="modes"
    )
    system = rm.System(ROBOT, [made], {"modes.on": 1.0})
    q, v = rm.neutral(ROBOT), np.zeros(ROBOT.nv)
    run = rm.simulate(system, q, v, 2.0, **SETTINGS)
    changes = run.t[:-1][np.diff(run.signals["modes.mode"]) > 0]
    assert changes == pytest.approx([0.5, 1.0])


def test_events_of_the_run_and_outputs_are_connected_by_their_names():
    ramp = rm.SignalSource(rm.Profile([0.0, 4.0], [0.0, 4.0]), "N", name="ramp")
    limit = rm.sensors.Threshold(1.95, "N", name="limit")
    made = StateMachine(
        ("wait", "work", "rest"),
        ("wait -> work: events.limit_crossed", "work -> rest: ramp.value > 3.05"),
        sample_time=H, name="modes",
    )  # fmt: skip
    watch = rm.sensors.Threshold(1.5, action="stop", name="watch")
    connect = {"limit.signal": "ramp.value", "watch.signal": "modes.mode"}
    system = rm.System(ROBOT, [ramp, limit, made, watch], connect)
    assert system.connections["modes.events_limit_crossed"] == "events.limit_crossed"
    run = rm.simulate(
        system, rm.neutral(ROBOT), np.zeros(ROBOT.nv), 4.0, integrator=rm.Integrator(rtol=1e-8),
        record=H,
    )  # fmt: skip
    mode = run.signals["modes.mode"]
    changes = run.t[1:][np.diff(mode) > 0]
    assert changes[0] == pytest.approx(2.1)  # a sample at a tick has the mode before it
    assert run.t[-1] == pytest.approx(3.1)
    assert run.events[-1].name == "watch.crossed"


@needs.compiler
def test_in_c(tmp_path):
    system = rm.System(ROBOT, [machine(), Random(sample_time=H, name="wander")])
    rm.save_component_c(system, "modes", tmp_path)
    assert "retreat" in (tmp_path / "modes.h").read_text()
    assert verdict(built_test(tmp_path, "modes", "-O1")) == (0, 0, "good")
    rm.save_loop_c(system, tmp_path, H, name="loop")
    assert verdict(built_test(tmp_path, "loop", "-O1")) == (0, 0, "good")


def test_the_diagram_lists_the_transitions(tmp_path):
    system = rm.System(ROBOT, [machine(), Random(sample_time=H, name="wander")])
    system.diagram().save(tmp_path / "loop.svg")
    text = (tmp_path / "loop.svg").read_text(encoding="utf-8")
    for line in ("approach → close", "* → retreat", "hold"):
        assert line in text


SCENARIO = """
scenario: 1
robot: vt18_satellite
components:
  - {type: signal_source, name: ramp, value: {profile: {times: [0, 4], values: [0, 4]}}}
  - type: state_machine
    name: modes
    sample_time: 0.1
    modes: [wait, work]
    transitions: ["wait -> work: ramp.value > 1.05"]
phases: [{duration: 2}]
output: {sample: 0.1}
"""


def test_in_a_scenario(tmp_path):
    (tmp_path / "modes.yaml").write_text(SCENARIO)
    run = rm.load_scenario(tmp_path / "modes.yaml").run()
    assert run.t[np.argmax(run.signals["modes.work"] > 0.5)] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("modes", "transitions", "told"),
    [
        (("a", "b"), ("a -> c: x",), "no mode in the transition 'a -> c: x' named 'c'"),
        (("a", "b"), ("a to b: x",), "a transition must be like"),
        (("a", "b"), ("a -> b: x ~ 3",), "condition 'x ~ 3'"),
        (("a", "b"), ("a -> b: after -3",), "condition 'after -3'|must not be negative"),
        (("a", "b"), ("a -> b: x < 1 for -3",), "must not be negative"),
        (("a", "b"), ("a -> a: x",), "where it begins"),
        (("a", "b", "c"), ("a -> b: x", "c -> a: y"), "no transition leads to mode 'c'"),
        (("a", "a"), (), "modes must differ"),
        (("a", "time"), ("a -> time: x",), "other than mode and time"),
        ((), (), "modes must differ"),
        (("a", "b"), ("a -> b: x.y", "b -> a: x_y"), "have the same input"),
    ],
)
def test_refusals(modes, transitions, told):
    with pytest.raises(rm.errors.RemoraError, match=told):
        StateMachine(modes, transitions, sample_time=H)
