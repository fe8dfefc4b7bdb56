"""Scenario files that combine robots and switch constraints: what they say is what runs."""

import textwrap

import numpy as np
import pytest

import remora as rm
from captures import joined
from remora.model.formats.yaml.yaml import save_robot

CHASER = rm.Builder("chaser").body("bus", mass=40, inertia=(8, 9, 11))
CHASER = CHASER.joint("base", "free", None, "bus").frame("grapple", "bus", xyz=(1.2, 0, 0)).build()
TARGET = rm.Builder("target").body("bus", mass=15, com=(0.05, 0.02, 0), inertia=(3, 2.5, 2))
TARGET = TARGET.joint("base", "free", None, "bus").frame("fixture", "bus", xyz=(-0.6, 0, 0)).build()

CAPTURE = """
    scenario: 1
    combine: {chaser: chaser.yaml, target: {file: target.yaml}}
    constraints:
      - {name: grasp, kind: fixed, parent: chaser/grapple, child: target/fixture, active: false}
    start:
      bases:
        target/base: {xyz: [2.1, 0, 0], omega: [0.03, -0.02, 0.05], velocity: [-0.1, 0.03, 0]}
    phases:
      - name: approach
        duration: 20
        until:
          - capture: {grapple: chaser/grapple, fixture: target/fixture, distance: 0.05,
                      angle: 30 deg, speed: 0.2}
      - {name: stack, duration: 5, activate: grasp, latch: true, after_event: true}
      - {name: apart, duration: 2, release: [grasp], separation: {grasp: [0.1, 0, 0]}}
    integrator: {rtol: 1e-12}
    output: {sample: 0.5}
    """


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_robot(CHASER, tmp_path / "chaser.yaml")
    save_robot(TARGET, tmp_path / "target.yaml")

    def written(text, name="s.yaml"):
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    return written


def faults(write, text):
    with pytest.raises(rm.errors.ModelError) as told:
        rm.load_scenario(write(text))
    return {(f.line, f.element): f.reason for f in told.value.faults}


def test_a_capture_in_a_file_is_that_of_simulate(write):
    scenario = rm.load_scenario(write(CAPTURE))
    run = scenario.run()
    both = rm.combine({"chaser": CHASER, "target": TARGET})
    ends = "chaser/grapple", "target/fixture"
    both = rm.loops.add_constraint(both, "grasp", "fixed", *ends, active=False)
    assert scenario.robot == both
    q, v = rm.neutral(both), np.zeros(both.nv)
    q[8:] = rm.algebra.pose.from_translation(np.array([2.1, 0.0, 0.0]))
    v[6:] = 0.03, -0.02, 0.05, -0.1, 0.03, 0.0
    reach = rm.capture_events(both, *ends, distance=0.05, angle=np.pi / 6, speed=0.2)
    own = rm.simulate(both, q, v, [
        rm.Phase(20.0, events=reach),
        rm.Phase(5.0, activate="grasp", latch=True, after_event=True),
        rm.Phase(2.0, release="grasp", separation={"grasp": (0.1, 0, 0)}),
    ], integrator=rm.Integrator(rtol=1e-12), record=0.5)  # fmt: skip
    assert np.array_equal(run.q, own.q)
    assert [e.name for e in run.events] == ["captured"]
    assert [(s.activated, s.released) for s in run.switches] == [(("grasp",), ()), ((), ("grasp",))]
    for one, two in zip(run.switches, own.switches, strict=True):
        assert np.array_equal(one.impulses["grasp"], two.impulses["grasp"])
    kept = run.conservation()
    assert max(kept.linear_momentum.relative, kept.angular_momentum.relative) < 1e-12


def test_a_missed_capture_does_what_the_file_says(write):
    slow = CAPTURE.replace("speed: 0.2", "speed: 0.01, missed: stop")
    run = rm.load_scenario(write(slow)).run()
    assert [e.name for e in run.events] == ["missed"]
    assert "stopped by 'missed'" in run.message
    named = CAPTURE.replace("speed: 0.2}", "speed: 0.2}\n            name: arm")
    assert rm.load_scenario(write(named)).run().events[0].name == "arm captured"
    logged = CAPTURE.replace("speed: 0.2}", "speed: 0.2}\n            action: record")
    run = rm.load_scenario(write(logged)).run()
    assert [e.name for e in run.events] == ["captured", "missed"]
    assert "no event led to 'stack'" in run.message


def test_a_resumed_capture_is_the_same(write, tmp_path):
    scenario = rm.load_scenario(write(CAPTURE))
    whole = scenario.run(out=tmp_path / "run")
    again = rm.load_scenario("s.yaml").run(out=tmp_path / "run", resume=True)
    assert np.array_equal(whole.q, again.q)
    other = rm.load_scenario(
        write(CAPTURE.replace("separation: {grasp: [0.1", "separation: {grasp: [0.2"))
    )
    with pytest.raises(rm.RemoraError, match="contains another run"):
        other.run(out=tmp_path / "run", resume=True)


def test_constraints_of_every_kind_are_added(write, tmp_path):
    save_robot(rm.load("vt18_satellite"), tmp_path / "arm.yaml")
    robot = rm.load_scenario(
        write("""
        scenario: 1
        robot: arm.yaml
        constraints:
          - {name: anchor, kind: spherical, parent: null, child: body_1, active: false}
          - {name: strut, kind: rod, parent: body_1, child: body_3, length: 2, child_xyz: [1, 0, 0],
             active: false}
          - {name: pin, kind: revolute, parent: body_1, child: body_4, axis: [0, 1, 0],
             parent_rpy: [90 deg, 0, 0], active: false}
          - {name: pair, kind: gear, parent: J1, child: J2, ratio: -2, offset: 10 deg,
             active: false}
        phases: [{duration: 1}]
        """)
    ).robot
    arm = rm.load("vt18_satellite")
    own = rm.loops.add_constraint(arm, "anchor", "spherical", None, "body_1", active=False)
    own = rm.loops.add_constraint(
        own, "strut", "rod", "body_1", "body_3", length=2, child_xyz=(1, 0, 0), active=False
    )
    own = rm.loops.add_constraint(
        own, "pin", "revolute", "body_1", "body_4", axis=(0, 1, 0), parent_rpy=(np.pi / 2, 0, 0),
        active=False,
    )  # fmt: skip
    own = rm.loops.add_constraint(
        own, "pair", "gear", "J1", "J2", ratio=-2, offset=np.radians(10), active=False
    )
    assert robot == own


def test_a_start_is_closed(write, tmp_path):
    save_robot(joined().with_active(on=["grasp"]), tmp_path / "loop.yaml")
    text = """
        scenario: 1
        robot: loop.yaml
        start: {joints: {shoulder: 0.4}, speeds: {shoulder: 0.1}, close_loops: true}
        phases: [{duration: 0.5}]
        """
    scenario = rm.load_scenario(write(text))
    robot = scenario.robot
    assert np.abs(rm.loops.constraint_residual(robot, scenario.q)).max() < 1e-12
    assert np.abs(rm.loops.constraint_jacobian(robot, scenario.q) @ scenario.v).max() < 1e-12
    assert scenario.run().conservation().constraint < 1e-12
    found = faults(write, text.replace("loop.yaml", "target.yaml").replace("shoulder", "base"))
    assert any("no constraint" in reason for reason in found.values())


def test_faults_are_told_at_once_with_their_lines(write):
    found = faults(write, """\
        scenario: 1
        combine: {chaser: chaser.yaml, target: target.yaml}
        constraints:
          - {name: grasp, kind: fixed, parent: chaser/grapple, child: target/fixtur}
          - {name: strut, kind: rod, parent: chaser/bus, child: target/bus}
          - {name: hold, kind: fixed, parent: chaser/bus, child: chaser/grapple}
          - {name: weld, kind: wled, parent: chaser/bus, child: target/bus}
          - {name: gears, kind: gear, parent: chaser/base, child: null}
          - {name: pin, kind: fixed, parent: chaser/bus, child: target/bus, length: 2}
          - {name: ok, kind: fixed, parent: chaser/bus, child: target/bus, active: false}
          - {name: ok, kind: fixed, parent: chaser/bus, child: target/bus, active: false}
          - {name: lost, kind: fixed, parent: chaser/bus}
        phases:
          - duration: 5
            after_event: true
            latch: true
            until:
              - capture: {grapple: chaser/grapple, fixture: chaser/bus, distance: 1, speed: 1}
              - capture: {grapple: chaser/graple, fixture: target/fixture, distance: 0, speed: 1,
                          angle: 200 deg}
              - {capture: {grapple: chaser/grapple, fixture: target/bus, distance: 1, speed: 1},
                 time: 3}
          - {duration: 5, activate: [ok, grip], release: ok, separation: {grasp: 0.1}}
        """)  # fmt: skip
    told = {
        (4, "constraints[0].child"): "did you mean 'target/fixture'",
        (5, "constraints[1]"): "needs its length",
        (6, "constraints[2]"): "connects a body to itself",
        (7, "constraints[3]"): "unknown kind 'wled'",
        (8, "constraints[4]"): "must have one coordinate",
        (8, "constraints[4].child"): "must be a joint",
        (9, "constraints[5]"): "no option of a fixed constraint named 'length'",
        (11, "constraints[7]"): "'ok'",
        (12, "constraints[8]"): "child is missing",
        (19, "phases[0].until[1].capture.grapple"): "did you mean 'chaser/grapple'",
        (19, "phases[0].until[1].capture.distance"): "greater than 0",
        (20, "phases[0].until[1].capture.angle"): "half a turn",
        (21, "phases[0].until[2]"): "it has time and capture",
        (23, "phases[1].activate[1]"): "no constraint named 'grip'",
        (23, "phases[1].release"): "both activated and released",
        (23, "phases[1].separation.grasp"): "is not released in this phase",
    }
    for place, reason in told.items():
        if place == (8, "constraints[4]"):
            continue  # told when the other end is known
        assert reason in found[place], place


def test_faults_within_sound_phases_are_told(write):
    found = faults(write, """\
        scenario: 1
        combine: {chaser: chaser.yaml, target: target.yaml}
        constraints:
          - {name: grasp, kind: fixed, parent: chaser/grapple, child: target/fixture, active: false}
          - {name: loose, kind: rod, parent: chaser/bus, child: target/bus}
        phases:
          - duration: 5
            after_event: true
            latch: true
            until:
              - capture: {grapple: chaser/grapple, fixture: chaser/bus, distance: 1, speed: 1}
          - {duration: 5, release: grasp}
          - {duration: 5, activate: [grasp, grasp, loose]}
          - {duration: 5, activate: grasp}
        """)  # fmt: skip
    told = {
        (5, "constraints[1]"): "needs its length",
        (8, "phases[0].after_event"): "no phase before",
        (9, "phases[0].latch"): "name them in activate",
        (11, "phases[0].until[0].capture"): "both are on the same body",
        (12, "phases[1].release"): "already off",
        (13, "phases[2].activate[1]"): "named twice",
        (14, "phases[3].activate"): "already on",
    }
    assert set(found) == set(told)
    for place, reason in told.items():
        assert reason in found[place], place


@pytest.mark.parametrize(
    ("head", "place", "reason"),
    [
        ("robot: x.urdf\ncombine: {a: vt18_satellite}", "combine", "either robot or combine"),
        ("seed: 1", "scenario", "robot is missing; or combine"),
        ("combine: {}", "combine", "at least 1"),
        ("combine: [vt18_satellite]", "combine", "must be a map"),
        ("combine: {a: vt18_satelite}", "combine.a", "did you mean 'vt18_satellite'"),
        ("combine: {a/b: vt18_satellite}", "combine", "a prefix must be a name without '/'"),
        (
            "combine: {a: vt18_satellite, b: {file: vt18_satellite, gravity: [0, 0, 1]}}",
            "combine",
            "same gravity",
        ),
    ],
)  # fmt: skip
def test_robots_that_cannot_be_combined(write, head, place, reason):
    found = faults(write, f"scenario: 1\n{head}\nphases: [{{duration: 1}}]\n")
    assert [element for _, element in found] == [place]
    assert reason in next(iter(found.values()))
