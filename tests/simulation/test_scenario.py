"""Scenario files: what they say is what runs, and what is wrong with them is said at once."""

import dataclasses
import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.algebra import pose
from remora.model.formats.yaml.yaml import save_robot
from remora.simulation.inputs.moves import Move, through
from remora.simulation.scenario.file_schema import (
    IntegratorFile,
    OutputFile,
    PhaseFile,
    ScenarioFile,
    schema,
)

ROOT = Path(__file__).parents[2]
VT18 = rm.load("vt18_satellite")


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text, name="s.yaml"):
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    return written


HEAD = "scenario: 1\nrobot: vt18_satellite\n"


def refused(write, text):
    with pytest.raises(rm.errors.ModelError) as told:
        rm.load_scenario(write(text))
    return told.value


# What a file says --------------------------------------------------------------------------------


def test_loads_motions_events_and_options_are_those_of_simulate(write):
    scenario = rm.load_scenario(
        write("""
        scenario: 1
        name: all
        description: All there is.
        robot: {file: vt18_satellite, gravity: [0, 0, -0.1]}
        start:
          base: {xyz: [1, 2, 3], rpy: [90 deg, 0, 0.1], omega: [1 deg/s, 0, 0], velocity: [0, 1, 0]}
          joints: {J1: 30 deg, J2: -0.2}
          speeds: {J3: 3 deg/s}
        phases:
          - name: one
            duration: 2
            torque:
              J1: 0.5
              J2: {pulse: {start: 0.5, stop: 1, value: 0.3}}
              J3: {sine: {amplitude: 0.2, frequency: 0.5, phase: 90 deg}}
            base_wrench:
              profile:
                times: [0, 1, 2]
                values: [[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]
                kind: hold
            wrenches:
              body_3: [0, 0, 1, 0, 0, 0]
              body_4:
                pulse: {start: 0, stop: 1, sine: {amplitude: [1, 0, 0, 0, 0, 0], omega: 2}}
            until:
              - {joint: J1, speed_above: 2 deg/s, action: record, name: fast}
              - {time: 1.5}
          - duration: 1
        integrator: {name: dopri5, rtol: 1e-9, atol: 1e-11}
        output: {sample: 0.1}
        limits: ignore
        """)
    )
    assert (scenario.name, scenario.description) == ("all", "All there is.")
    assert scenario.duration == 3.0
    run = scenario.run()
    robot = rm.load("vt18_satellite", gravity=(0, 0, -0.1))
    q, v = rm.neutral(robot), np.zeros(9)
    q[:8] = pose.from_xyz_rpy([1, 2, 3], [np.pi / 2, 0, 0.1])
    q[8:10] = np.radians(30), -0.2
    v[0], v[4], v[8] = np.radians(1), 1.0, np.radians(3)
    assert np.allclose(scenario.q, q, atol=1e-15)
    assert np.allclose(scenario.v, v, atol=1e-15)
    force = np.zeros(6)
    force[0] = 1.0
    steps = rm.Profile([0, 1, 2], [np.zeros(6), [1, 0, 0, 0, 0, 1], np.zeros(6)], "hold")
    lift = [0, 0, 1, 0, 0, 0]
    wave = rm.Pulse(0, 1, lambda t: force * np.sin(2 * t))
    torque = {
        "J1": 0.5,
        "J2": rm.Pulse(0.5, 1, 0.3),
        "J3": rm.Pulse(0, 2, lambda t: 0.2 * np.cos(np.pi * t)),
    }
    phase = rm.Phase(
        1.5, torque=torque, base_wrench=steps, wrenches={"body_3": lift, "body_4": wave}
    )
    asked = {"integrator": "dopri5", "rtol": 1e-9, "atol": 1e-11, "sample": 0.1}
    own = rm.simulate(robot, q, v, **grouped(phases=[phase, rm.Phase(1)], limits="ignore", **asked))
    assert np.allclose(run.q, own.q, rtol=0, atol=1e-8)
    assert np.allclose(run.v, own.v, rtol=0, atol=1e-8)
    assert run.phase_starts == (0.0, 1.5)
    assert [e.name for e in run.events] == ["fast", "time 1.5"]
    assert run.settings["note"] == "scenario 'all'\nAll there is."


def test_held_joints_move_as_they_are_told(write):
    text = HEAD + textwrap.dedent("""
        start: {joints: {J1: 0.3}}
        phases:
          - duration: 4
            prescribed:
              J1: {to: 60 deg, start: 1, stop: 3}
              J2: {through: {times: [2, 4], values: [0.3, -0.2]}}
              J3: {sine: {amplitude: 0.1, omega: 1, phase: -90 deg}}
          - {duration: 1, locked: [J1, J2], impulse: true}
        output: {sample: 0.5}
        """)
    run = rm.load_scenario(write(text)).run()
    at = {float(t): k for k, t in enumerate(run.t)}
    assert run.joint("J1").q[at[1.0]] == pytest.approx(0.3, abs=1e-14)
    assert run.joint("J1").q[at[2.0]] == pytest.approx(0.5 * (0.3 + np.pi / 3), abs=1e-13)
    assert run.joint("J1").q[at[3.0]] == pytest.approx(np.pi / 3, abs=1e-14)
    assert run.joint("J2").q[at[2.0]] == pytest.approx(0.3, abs=1e-13)
    assert run.joint("J2").q[at[4.0]] == pytest.approx(-0.2, abs=1e-13)
    own = run.phase == 0
    assert np.allclose(run.joint("J3").q[own], 0.1 * (1 - np.cos(run.t[own])), atol=1e-13)
    assert run.conservation().angular_momentum.relative < 1e-9


def test_a_motion_begins_where_an_event_left_the_joint(write):
    text = HEAD + textwrap.dedent("""
        phases:
          - {duration: 9, torque: {J1: 0.5}, until: [{joint: J1, above: 0.1}]}
          - duration: 3
            prescribed: {J2: {to: 0.5}}
            torque: {J1: {pulse: {start: 1, stop: 2, value: 1}}}
            impulse: true
          - {duration: 1, locked: [J2], until: [{frame: end_effector, turning_above: 1e9 deg/s}]}
        """)
    run = rm.load_scenario(write(text)).run()
    first = run.phase_starts[1]
    assert first == run.events[0].t < 9
    assert run.joint("J2").q[-1] == pytest.approx(0.5, abs=1e-13)
    pushed = run.t[run.joint("J1").torque == 1.0]
    assert pushed[0] >= first + 1
    assert pushed[-1] <= first + 2 + 1e-12


def test_distance_and_turning_events(write):
    text = HEAD + textwrap.dedent("""
        start: {base: {velocity: [1, 0, 0]}}
        phases:
          - {duration: 9, until: [{frame: body_1, point: [5, 0, 0], nearer: 2}]}
          - {duration: 9, until: [{frame: body_1, point: [0, 0, 0], farther: 4}]}
          - duration: 9
            base_wrench: [0, 0, 0, 0, 0, 5]
            until: [{frame: body_1, turning_above: 2 deg/s, action: stop}]
        """)
    run = rm.load_scenario(write(text)).run()
    assert run.phase_starts[1] == pytest.approx(3.0, abs=1e-9)
    assert run.phase_starts[2] == pytest.approx(4.0, abs=1e-9)
    assert "turning above" in run.message
    assert np.linalg.norm(run.v[-1, :3]) == pytest.approx(np.radians(2), rel=1e-9)


def test_a_random_start_comes_of_the_seed(write):
    text = HEAD + "start: {random: true, joints: {J1: 0.5}}\nphases: [{duration: 1}]\nseed: "
    one, two, other = (rm.load_scenario(write(text + s)) for s in ("3", "3", "4"))
    assert np.array_equal(one.q, two.q)
    assert not np.array_equal(one.q, other.q)
    q, v = rm.random_state(VT18, 3)
    q[8] = 0.5
    assert np.array_equal(one.q, q)
    assert np.array_equal(one.v, v)


def test_a_robot_file_lies_beside_the_scenario(write, tmp_path):
    save_robot(rm.random_robot(1, 4), tmp_path / "mine.yaml")
    (tmp_path / "inner").mkdir()
    text = "scenario: 1\nrobot: ../mine.yaml\nphases: [{duration: 0.1}]\n"
    name = write(text, "inner/s.yaml")
    assert rm.load_scenario(name).robot.name == rm.random_robot(1, 4).name
    assert rm.load_scenario(tmp_path / name).source == tmp_path / name
    base = "scenario: 1\nrobot: {file: vt18_satellite, base: fixed}\nphases: [{duration: 0.1}]\n"
    assert rm.load_scenario(write(base)).robot.nv == 3


def test_every_free_base_of_a_combined_robot_has_its_start(write, tmp_path):
    body = rm.Builder("body").body("bus", mass=2.0, inertia=(1.0, 1.5, 2.0)).build()
    robot = rm.combine({"servicer": body, "target": body})
    save_robot(robot, tmp_path / "both.yaml")
    name = write("""
        scenario: 1
        robot: both.yaml
        start:
          base: {xyz: [1, 0, 0]}
          bases:
            target/base: {xyz: [0, 2, 0], rpy: [0, 0, 90 deg], omega: [0, 0, 1 deg/s]}
        phases:
          - {duration: 1}
    """)
    scenario = rm.load_scenario(name)
    assert scenario.robot == robot
    first, second = (robot.joints[f"{name}/base"] for name in ("servicer", "target"))
    np.testing.assert_allclose(pose.translation(scenario.q[first.q]), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(pose.translation(scenario.q[second.q]), [0.0, 2.0, 0.0])
    np.testing.assert_allclose(scenario.v[second.v], [0, 0, np.pi / 180.0, 0, 0, 0])
    assert not np.any(scenario.v[first.v])


def test_a_spline_is_smooth_and_meets_its_points():
    t, x = [0.0, 1.0, 1.5, 4.0], [0.2, 1.0, -0.5, 0.3]
    motion = through(t, x)
    for when, place in zip(t, x, strict=True):
        assert motion(when)[0][0] == pytest.approx(place, abs=1e-14)
    assert np.abs([motion(0.0)[1], motion(4.0)[1]]).max() < 1e-14
    for knot in t[1:3]:
        before, after = motion(knot - 1e-9), motion(knot + 1e-9)
        for a, b in zip(before, after, strict=True):
            assert a[0] == pytest.approx(b[0], abs=1e-6)
    e = 1e-5
    for when in (0.4, 1.2, 3.3):
        slope = (motion(when + e)[0] - motion(when - e)[0]) / (2 * e)
        assert slope[0] == pytest.approx(motion(when)[1][0], abs=1e-8)
    assert Move.through([1.0], [0.5]).begin(np.array([0.2]))(5.0)[0][0] == 0.5


# The bundled ones --------------------------------------------------------------------------------


def test_the_bundled_ones_are_listed_and_load():
    assert {"grasp_push", "hold_attitude", "reach_payload", "unfold", "vt18"} <= set(
        rm.bundled("scenarios")
    )
    for name in rm.bundled("scenarios"):
        scenario = rm.load_scenario(name)
        assert scenario.description
        assert all(phase.name for phase in scenario.phases)


def test_vt18_is_the_paper_s_experiment():
    run = rm.load_scenario("vt18").run()
    torque = {
        "J1": rm.Pulse(2, 5, lambda t: 0.5 * np.sin(t - 2)),
        "J2": rm.Pulse(10, 12, lambda t: 0.5 * np.sin(t - 10)),
        "J3": rm.Pulse(20, 22, lambda t: 0.5 * np.sin(t - 20)),
    }
    own = rm.simulate(
        VT18,
        rm.neutral(VT18),
        np.zeros(9),
        70,
        torque=torque,
        integrator=rm.Integrator(rtol=2.22e-14, atol=1e-14),
    )
    assert run.t[-1] == 70.0
    assert np.abs(rm.difference(VT18, run.q[-1], own.q[-1])).max() < 1e-11
    kept = run.conservation()
    assert kept.linear_momentum.relative < 1e-12
    assert kept.angular_momentum.relative < 1e-12


def test_unfold_turns_the_base_and_keeps_momentum():
    run = rm.load_scenario("unfold").run()
    assert (run.status, len(run.phase_starts)) == ("complete", 3)
    kept = run.conservation()
    assert kept.linear_momentum.relative < 1e-13
    assert kept.angular_momentum.relative < 1e-13
    assert kept.energy.relative < 1e-11
    assert run.events == ()  # no joint passes its limits
    for joint in run.robot.joints[1:]:
        assert np.abs(run.joint(joint.name).v).max() <= joint.limits.velocity[0] * 1.3
    turned = np.degrees(pose.to_rpy(run.frame("bus").pose[-1]))
    assert abs(turned[1]) > 5
    tool = run.frame("tool").position
    assert np.linalg.norm(tool[-1]) > np.linalg.norm(tool[0]) + 1
    assert np.abs(run.v[-1]).max() < 1e-12


def test_grasp_push_comes_to_rest():
    scenario = rm.load_scenario("grasp_push")
    run = scenario.run()
    quiet = run.phase_starts[1]
    assert [e.name for e in run.events] == ["bus quiet"]
    assert quiet < 60
    assert np.degrees(np.linalg.norm(run.v[:, :3], axis=1).max()) > 0.5
    assert np.abs(np.degrees(pose.to_rpy(run.frame("bus").pose[-1]))).max() < 2
    goal = scenario.q[8:]
    assert np.abs(run.q[-1, 8:] - goal).max() < np.radians(0.5)
    assert run.conservation().energy.relative < 1e-8
    assert np.all(run.tau[run.phase == 1] == 0.0)


# What is wrong with a file -----------------------------------------------------------------------

BROKEN = """\
scenario: 1
robot: servicer
descripton: a word misspelt
start:
  joints: {elbow_pitch: 30 degrees, shoulder_roll: [1, 2]}
  base: {xyz: [1, 2]}
phases:
  - name: push
    duration: -3
    torque:
      elbw_pitch: 2
      wrist_pitch: .nan
    wrenches: {flang: [1, 0, 0, 0, 0, 0]}
  - duration: 5
    locked: [elbow_pitch]
    prescribed: {elbow_pitch: {to: 20 deg}}
    torque: {wrist_roll: {pulse: {start: 9, stop: 10, value: 1}}}
    until:
      - {frame: tol, point: [0, 0, 0], nearer: 0.1}
      - {joint: wrist_roll, above: 1, action: leave}
    base_wrench: [1, 2, 3]
  - duration: 5
    controllers:
      - {law: joint_dp, goal: {elbow_pitch: 0}, kp: 1, kd: 1, sample_time: 0.1}
      - {law: attitude_pd, kp: 1, kd: 1, sample_time: 0}
  - duration: 1
    locked: [elbow_pitch]
    prescribed: {elbow_pitch: {to: 20 deg}}
    torque: {wrist_roll: {pulse: {start: 9, stop: 10, value: 1}}, wrist_pitch: [1, 2]}
integrator: {name: ode45, rtol: tight}
output: {sample: 0}
limits: 3
"""
FAULTS = [
    (3, "scenario: unknown key 'descripton'; did you mean 'description'?"),
    (
        5,
        "start.joints.elbow_pitch: must be a number, or degrees such as '30 deg', not '30 degrees'",
    ),
    (6, "start.base.xyz: must have 3 entries, not 2"),
    (9, "phases[0].duration: must be greater than 0, not -3.0"),
    (11, "phases[0].torque.elbw_pitch: no joint named 'elbw_pitch'; did you mean 'elbow_pitch'?"),
    (12, "phases[0].torque.wrist_pitch: must be a number, not '.nan'"),
    (13, "phases[0].wrenches.flang: no body named 'flang'; did you mean 'flange'?"),
    (19, "phases[1].until[0].frame: no body or frame named 'tol'; did you mean 'tool'?"),
    (20, "phases[1].until[1].action: must be 'next', 'stop' or 'record', not 'leave'"),
    (24, "phases[2].controllers[0]: no controller named 'joint_dp'; did you mean 'joint_pd'?"),
    (25, "phases[2].controllers[1].sample_time: must be greater than 0, not 0.0"),
    (27, "phases[3].locked[0]: contradiction: joint 'elbow_pitch' is both locked and prescribed"),
    (29, "phases[3].torque.wrist_roll.pulse.start: begins after 9 s, the phase lasts 1 s"),
    (29, "phases[3].torque.wrist_pitch: must be one number, not 2"),
    (
        30,
        "integrator.name: must be 'dop853', 'dopri5', 'rk4', 'radau' or 'variational', not 'ode45'",
    ),
    (30, "integrator.rtol: must be a number, not 'tight'"),
    (31, "output.sample: must be greater than 0, not 0.0"),
    (32, "limits: must be 'record', 'stop' or 'ignore', not 3.0"),
]


def test_all_faults_of_a_file_are_told_at_once_with_their_lines(write):
    error = refused(write, BROKEN)
    told = [str(fault) for fault in error.faults]
    for line, text in FAULTS:
        assert any(t.startswith(f"line {line}, {text}") for t in told), (text, told)
    assert len(told) == len(FAULTS)
    assert [f.line for f in error.faults] == sorted(f.line for f in error.faults)
    assert str(error).startswith(f"s.yaml: {len(FAULTS)} faults\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- 1\n- 2\n", "must be a map"),
        ("scenario: [1\n", "is not YAML"),
        ("", "the file is empty"),
        ("scenario: 1\nscenario: 1\nrobot: servicer\nphases: [{duration: 1}]", "given twice"),
        ("scenario: 2\nrobot: servicer\nphases: [{duration: 1}]", "line 1, scenario: must be 1"),
        ("robot: servicer\nphases: [{duration: 1}]", "scenario: scenario is missing"),
        ("scenario: 1\nphases: [{duration: 1}]", "robot is missing"),
        ("scenario: 1\nrobot: servicer", "phases is missing"),
        ("scenario: 1\nrobot: servicer\nphases: []", "at least 1 entry, not 0"),
        ("scenario: 1\nrobot: servicr\nphases: [{duration: 1}]", "line 2, robot: no bundled robot"),
        ("scenario: 1\nrobot: no.urdf\nphases: [{duration: 1}]", "cannot be read: No such file"),
        ("scenario: 1\nrobot: {file: servicer, base: wheels}\nphases: [{duration: 1}]", "wheels"),
        ("scenario: 1\nrobot: &a servicer\nphases: [{duration: 1}]", "anchors"),
        ("scenario: 1\nrobot: !!python/object servicer\nphases: []", "tags are not allowed"),
        ("scenario: 1\nrobot: " + "[" * 40, "nested deeper"),
        ("scenario: 1\nrobot: 3\nphases: [{duration: 1}]", "robot: must be text, not 3.0"),
    ],
)
def test_what_is_no_scenario_is_refused(write, text, told):
    with pytest.raises(rm.RemoraError, match=re.escape(told)):
        rm.load_scenario(write(text))


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("duration: .inf", "must be a number, not '.inf'"),
        ("duration: 1e999", "must be a finite number"),
        ("duration: true", "must be a number, not true"),
        ("duration: '1'", "must be a number, not '1'"),
        ("duration: 1, torque: {base: 1}", "torque.base: must be 6 numbers, not 1"),
        ("duration: 1, torque: {J1: {}}", "must have one of pulse, sine, profile"),
        ("duration: 1, torque: {J1: {pulse: {start: 1, stop: 1, value: 1}}}", "must stop after"),
        ("duration: 1, torque: {J1: {sine: {amplitude: 1}}}", "must have one of frequency, omega"),
        ("duration: 1, torque: {J1: {profile: {times: [1, 0], values: [1, 2]}}}", "ascend"),
        ("duration: 1, torque: {J1: {profile: {times: [0, 1, 2], values: [1, 2]}}}", "as many"),
        ("duration: 1, base_wrench: 3", "base_wrench: must be 6 numbers, not 1"),
        ("duration: 1, prescribed: {base: {to: 1}}", "rotates by a quaternion"),
        ("duration: 1, prescribed: {J1: {to: 1, stop: 2}}", "must lie within the phase's 1 s"),
        ("duration: 1, prescribed: {J1: {to: 1, sine: {amplitude: 1, omega: 1}}}", "to and sine"),
        (
            "duration: 1, prescribed: {J1: {through: {times: [1], values: [1, 2]}}}",
            "as many values",
        ),
        (
            "duration: 1, prescribed: {J1: {through: {times: [0.5, 2], values: [1, 2]}}}",
            "end after",
        ),
        (
            "duration: 1, locked: [J1], torque: {J1: 1}",
            "its torque is computed and cannot be an input",
        ),
        ("duration: 1, locked: J1", "locked: must be a list, not 'J1'"),
        ("duration: 1, until: [{joint: J1}]", "must have one of above, below"),
        ("duration: 1, until: [{joint: J1, nearer: 1}]", "nearer does not go with joint"),
        ("duration: 1, until: [{frame: body_1, nearer: 1}]", "need a point"),
        ("duration: 1, until: [{time: 1, above: 2}]", "above does not go with time"),
        ("duration: 1, until: [{time: 2}]", "is 2 s, the phase lasts 1 s"),
        ("duration: 1, until: [{joint: base, above: 2}]", "must have one coordinate"),
        ("duration: 1, controllers: [{kp: 1}]", "law is missing: one of joint_pd, attitude_pd"),
        ("duration: 1, controllers: {law: joint_pd}", "controllers: must be a list, not a map"),
        (
            "duration: 1, controllers: [{law: joint_pd, goal: {J1: 0}, kp: {J2: 1}, kd: 1, "
            "sample_time: 1}]",
            "kp is missing for joint 'J1'",
        ),
        (
            "duration: 1, locked: [J1], controllers: [{law: joint_pd, goal: {J1: 0}, kp: 1, kd: 1, "
            "sample_time: 1}]",
            "joint 'J1' is held, it cannot be driven",
        ),
    ],
)
def test_faults_of_phases(write, phase, told):
    error = refused(write, HEAD + f"phases:\n  - {{{phase}}}\n")
    assert told in str(error)
    assert all(fault.line == 4 for fault in error.faults)


def test_degrees_of_a_joint_that_slides(write):
    text = """
        scenario: 1
        robot: vt18_two_arm
        start:
          joints: {J3: 10 deg, J5: [2, 0, 0, 0]}
          speeds: {J3: 1 deg/s}
        phases:
          - duration: 1
            prescribed: {J3: {to: 5 deg}}
          - duration: 1
            controllers: [{law: joint_pd, goal: {J3: 5 deg}, kp: 1, kd: 1, sample_time: 1}]
            until: [{joint: J3, above: 5 deg}]
    """
    error = refused(write, text)
    lines = [fault.line for fault in error.faults if "by metres, not by degrees" in fault.reason]
    assert lines == [9, 11, 12]
    sound = text.replace("5 deg", "0.1")
    error = refused(write, sound)
    told = {fault.line: fault.reason for fault in error.faults}
    assert "its length is 2" in str(error)
    assert "metres" in told[6]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("integrator: {name: rk4}", "step is missing"),
        ("formulation: magic", "no formulation of forward dynamics named 'magic'"),
        ("output: {sample: 1e-9}", "the maximum is 10,000,000"),
        ("start: {joints: {base: 3}}", "is a free joint: set start.base or start.bases"),
        ("start: {bases: {J1: {xyz: [1, 2, 3]}}}", "joint 'J1' is revolute, not free"),
        ("start: {base: {}, bases: {base: {}}}", "is set in both base and bases"),
        ("start: {bases: {nobody: {}}}", "nobody"),
        ("start: {joints: {J1: [1, 2]}}", "must be one number, not 2"),
        ("seed: 1.5", "seed: must be a whole number, not 1.5"),
        ("stops: 3", "stops: must be a map, not 3.0"),
        ("saturate: 'yes'", "saturate: must be true or false, not 'yes'"),
    ],
)
def test_faults_of_the_rest(write, more, told):
    error = refused(write, HEAD + "phases:\n  - {duration: 1}\n" + more + "\n")
    assert told in str(error)
    assert error.faults[0].line == 5


def test_files_that_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rm.errors.ModelError, match="cannot be read: No such file"):
        rm.load_scenario("missing.yaml")
    with pytest.raises(
        rm.errors.UnknownName, match=r"known: .*grasp_push, hold_attitude, .*unfold, vt18"
    ):
        rm.load_scenario("unfolds")
    with pytest.raises(rm.errors.ModelError, match="not a regular file"):
        rm.load_scenario(tmp_path)
    (tmp_path / "dir.yaml").mkdir()
    with pytest.raises(rm.errors.ModelError, match="not a regular file"):
        rm.load_scenario("dir.yaml")
    with pytest.raises(rm.errors.ModelError, match=r"must end with \.yaml"):
        rm.load_scenario("robot.urdf")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(rm.errors.ModelError, match="not UTF-8"):
        rm.load_scenario("bytes.yaml")
    with pytest.raises(rm.errors.InvalidValue, match="a path is needed"):
        rm.load_scenario(3)
    (tmp_path / "folder").mkdir()
    with pytest.raises(rm.errors.ModelError, match="not a regular file"):
        rm.load_scenario("folder")


def test_a_folder_does_not_hide_a_bundled_name(tmp_path, monkeypatch):
    """`remora run unfold --out unfold` leaves such a folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("unfold", "reach_payload"):
        (tmp_path / name).mkdir()
    assert rm.load_scenario("unfold").robot.name == "servicer"
    assert rm.load_study("reach_payload").scenario.name == "reach_payload"  # folder of both names


def test_a_resumed_scenario_is_the_same(tmp_path):
    scenario = rm.load_scenario("grasp_push")
    whole = scenario.run(out=tmp_path / "run")
    again = rm.load_scenario("grasp_push").run(out=tmp_path / "run", resume=True)
    assert np.array_equal(whole.q, again.q)
    with pytest.raises(rm.RemoraError, match=r"sample is 0.05 there, 0.1 here"):
        scenario.run(out=tmp_path / "run", resume=True, sample=0.1)


# The schema --------------------------------------------------------------------------------------


def test_every_setting_of_a_run_has_a_key():
    """Of the integrator, the physics and the phases; two are named otherwise, one is fixed."""

    def missing(made, schema):
        return {field.name for field in dataclasses.fields(made)} - set(schema.model_fields)

    assert missing(rm.Integrator, IntegratorFile) == {"method", "step_to_samples"}
    assert "name" in IntegratorFile.model_fields
    assert "step_to_samples" in OutputFile.model_fields
    assert missing(rm.Physics, ScenarioFile) == set()
    assert missing(rm.Phase, PhaseFile) == {"events", "own_clock"}
    assert "until" in PhaseFile.model_fields


def test_steps_breaks_and_the_reduced_model_are_those_of_python(write):
    more = """\
    model: reduced
    integrator: {name: dopri5, rtol: 1e-8, max_steps: 400, breaks: [0.25]}
    start: {joints: {J2: 30 deg}, speeds: {J2: 5 deg/s}}
    phases: [{duration: 1, torque: {J1: 0.1}}]
    """
    scenario = rm.load_scenario(write(HEAD + textwrap.dedent(more)))
    assert scenario.physics == rm.Physics("record", model="reduced")
    assert scenario.integrator == rm.Integrator("dopri5", rtol=1e-8, max_steps=400, breaks=(0.25,))
    run = scenario.run(progress=False)
    expected = rm.simulate(
        VT18, scenario.q, scenario.v, 1.0, torque={"J1": 0.1}, physics=scenario.physics,
        integrator=scenario.integrator,
    )  # fmt: skip
    assert 0.25 in run.t
    assert np.array_equal(run.q, expected.q)
    assert run.settings["model"] == "reduced"


def test_the_schema_in_the_docs_is_that_of_the_code():
    written = json.loads((ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8"))
    assert written == schema()


def test_the_format_knows_every_integrator_and_controller():
    either = IntegratorFile.model_json_schema()["properties"]["name"]["anyOf"]
    names = either[0]["enum"]
    assert names == sorted(rm.INTEGRATORS, key=names.index)
    laws = schema()["$defs"]["PhaseFile"]["properties"]["controllers"]["items"]["discriminator"]
    assert set(laws["mapping"]) == {"joint_pd", "attitude_pd"} < set(rm.COMPONENTS)
