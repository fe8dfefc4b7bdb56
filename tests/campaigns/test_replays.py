"""A campaign equals its replays: at the end of runs that events stop, and by the same clock."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import remora as rm
from arms import arm
from sliders import slider

SCENARIO = """
scenario: 1
robot: slider.yaml
start: {speeds: {slide: 0.5}}
phases:
  - duration: 4
  - duration: 6
    torque: {slide: 0.1}
    until: [{time: 2.6, name: over, action: stop}, {time: 0.3, name: soon, action: record}]
integrator: {name: INTEGRATOR, step: 0.1}
"""
STUDY = """
campaign: 1
scenario: scenario.yaml
runs: 4
disperse: {start.speeds.slide: {uniform: {low: 0.1, high: 0.9}}}
outputs:
  final: {joint: slide}
  most: {joint: slide, take: max}
  path: {speed: slide, take: integral}
  soon: {event: soon}
success:
  there: {output: final, above: 1.3}
  no end: {event: over, occurs: false}
SAMPLE
"""


@pytest.mark.parametrize("sample", ["", "sample: 1"])
@pytest.mark.parametrize("integrator", ["rk4", "dop853"])
def test_runs_that_are_stopped_between_samples(tmp_path, sample, integrator):
    """Exact: constant force from 4 s on, and the end at 6.6 s."""
    rm.save_robot(slider(), tmp_path / "slider.yaml")
    scenario = SCENARIO.replace("INTEGRATOR", integrator)
    (tmp_path / "scenario.yaml").write_text(scenario, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(STUDY.replace("SAMPLE", sample), encoding="utf-8")
    found = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    v = found["start.speeds.slide"]
    exact = 6.6 * v + 0.5 * 0.1 * 2.6**2
    assert found["end"] == pytest.approx(np.full(4, 6.6), abs=1e-12)
    assert found["soon"] == pytest.approx(np.full(4, 4.3), abs=1e-12)
    assert found["final"] == pytest.approx(exact, abs=1e-9)
    assert np.array_equal(found["most"], found["final"])
    assert np.array_equal(found["there"], (exact > 1.3).astype(float))
    assert not np.any(found["no end"])
    for k in range(4):
        run = found.replay(k)
        assert run.t[-1] == pytest.approx(found["end"][k], abs=1e-12)
        assert run.q[-1, 0] == pytest.approx(found["final"][k], abs=1e-9)
        path = np.sum(0.5 * (run.v[1:, 0] + run.v[:-1, 0]) * np.diff(run.t))
        assert path == pytest.approx(found["path"][k], abs=1e-9)


CONDITIONS = """
scenario: 1
robot: arm.yaml
start: {speeds: {j0: 0.1, j1: 0.1}}
phases:
  - {duration: 0.6, torque: {j0: 0.1}}
  - duration: 3
    torque: {j0: 0.4, j1: 0.2}
    until: [{UNTIL, action: stop, name: over}]
"""
OF_ARMS = """
campaign: 1
scenario: scenario.yaml
runs: 3
disperse:
  start.speeds.j0: {uniform: {low: 0.08, high: 0.15}}
  link_0.mass: {uniform: {low: 8, high: 12}}
  j1.stiffness: {uniform: {low: 0, high: 0.2}}
outputs: {j1: {joint: j1}, over: {event: over}}
success: {ends: {event: over}}
"""


def written(folder, until):
    rm.save_robot(arm(2), folder / "arm.yaml")
    scenario = folder / "scenario.yaml"
    scenario.write_text(CONDITIONS.replace("UNTIL", until), encoding="utf-8")
    (folder / "study.yaml").write_text(OF_ARMS, encoding="utf-8")
    return scenario


@pytest.mark.parametrize(
    "until",
    [
        "joint: j1, above: 0.12",
        "joint: j0, speed_above: 0.18",
        "frame: tool, point: [1.3, 0.3, 0], farther: 0.5",
        "frame: tool, turning_above: 0.35",
    ],
)
def test_conditions_of_scenarios_are_those_of_campaigns(tmp_path, until):
    written(tmp_path, until)
    found = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    assert np.all(found["ends"] == 1.0)
    assert np.array_equal(found["over"], found["end"])
    for k in range(3):
        run = found.replay(k)
        assert run.t[-1] == pytest.approx(found["end"][k], abs=1e-9)
        assert run.t[-1] > 0.6
        j1 = run.robot.joints["j1"]
        assert run.q[-1, j1.q] == pytest.approx(found["j1"][k], abs=1e-9)


def test_a_condition_of_a_frame_is_that_of_the_robot_that_runs(tmp_path):
    """The scenario's own robot has a shorter arm."""
    near = "frame: tool, point: [1.3, 0.3, 0], farther: 0.5"
    scenario = rm.load_scenario(written(tmp_path, near))
    longer = scenario.robot
    for joint, x in (("j0", 0.375), ("j1", 0.51)):
        placement = rm.algebra.pose.from_xyz_rpy(np.array([x, 0.0, 0.0]), np.zeros(3))
        longer = longer.replace_joint(joint, placement=placement)
    run = rm.simulate(
        longer,
        scenario.q,
        scenario.v,
        scenario.phases,
        physics=rm.Physics(limits="ignore"),
        record=rm.Record(progress=False),
    )
    tool = rm.algebra.pose.translation(rm.frame_pose(longer, run.q[-1], "tool"))
    assert np.linalg.norm(tool - [1.3, 0.3, 0.0]) == pytest.approx(0.5, abs=1e-9)
    batch = rm.simulate_batch(
        longer,
        scenario.q,
        scenario.v,
        scenario.phases,
        integrator="dop853",
        runs=1,
        record=rm.Record(progress=False),
    )
    assert batch.end[0] == pytest.approx(run.t[-1], abs=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{j1: {joint: j1},", "{a: {joint: j0}, a/b: {joint: j1},", "beside 'a/b'"),
        ("{j1: {joint: j1},", "{..: {joint: j1},", "cannot be stored"),
        ("{j1: {joint: j1},", "{a//b: {joint: j1},", "cannot be stored"),
        ("success:", "bands: {x/y: {joint: j1}, x: {joint: j0}}\nsuccess:", "beside 'x/y'"),
        ("success:", "bands: {x: {joint: j0}}\nsuccess:", ""),
        ("success: {", "success: {bands: {event: over}, ", ""),
    ],
)
def test_names_that_cannot_be_stored_are_refused_on_loading(tmp_path, old, new, words):
    written(tmp_path, "joint: j1, above: 0.12")
    file = tmp_path / "study.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    if not words:
        assert rm.load_study(file).runs == 3
        return
    with pytest.raises(rm.errors.ModelError) as refused:
        rm.load_study(file)
    assert words in str(refused.value)


def test_control_laws_of_phases_are_those_of_replays(tmp_path):
    """Sampled laws under `controllers:`, whose ticks count from the start of their phase."""
    scenario = written(tmp_path, "joint: j1, above: 0.12")
    law = "{law: joint_pd, goal: {j1: 0.3}, kp: 2, kd: 1, sample_time: 0.17}"
    text = scenario.read_text(encoding="utf-8")
    text = text.replace(", j1: 0.2}", f"}}\n    controllers: [{law}]", 1)
    scenario.write_text(text, encoding="utf-8")
    found = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    assert found["ok"].all()
    assert np.unique(found["over"]).size == 3
    for k in range(3):
        run = found.replay(k)
        assert run.events[0].t == pytest.approx(found["over"][k], abs=1e-8)
        assert run.joint("j1").q[-1] == pytest.approx(found["j1"][k], abs=1e-8)


def test_phases_that_batches_do_not_have_are_refused_on_loading(tmp_path):
    scenario = written(tmp_path, "joint: j1, above: 0.12")
    text = scenario.read_text(encoding="utf-8").replace(", j1: 0.2}", "}\n    impulse: true", 1)
    scenario.write_text(text, encoding="utf-8")
    rm.load_scenario(scenario)
    with pytest.raises(rm.errors.ModelError) as refused:
        rm.load_study(tmp_path / "study.yaml")
    assert "its phase 2 has impulse: true" in str(refused.value)


def test_one_number_of_each_run_needs_no_axis_of_its_own():
    """A stiffness is stored with a shape (1,), a mass without."""
    robot = slider(stiffness=1.0)
    runs = [
        rm.simulate_batch(
            robot,
            [1.0],
            [0.0],
            1.0,
            integrator=rm.Integrator(step=0.01),
            record=rm.Record(progress=False),
            runs=rm.Runs(parameters={"slide.stiffness": x}),
        )
        for x in ([1.0, 4.0], [[1.0], [4.0]])
    ]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert runs[0].q[:, -1, 0] == pytest.approx(np.cos([1.0, 2.0]), abs=1e-8)
    assert runs[0][1].q[-1] == pytest.approx(runs[0].q[1, -1])


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_says_how_to_resume(tmp_path):
    rm.save_robot(slider(), tmp_path / "slider.yaml")
    scenario = SCENARIO.replace("INTEGRATOR", "rk4").replace("duration: 4", "duration: 1e9")
    (tmp_path / "scenario.yaml").write_text(scenario, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(STUDY.replace("SAMPLE", ""), encoding="utf-8")
    code = "from remora.cli import main; main()"
    command = [sys.executable, "-c", code, "campaign", "study.yaml"]
    with subprocess.Popen(
        [*command, "--out", "out", "--workers", "0"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        while not (tmp_path / "out" / "campaign.json").exists():
            assert started.poll() is None
            time.sleep(0.05)
        time.sleep(1.0)
        started.send_signal(signal.SIGINT)
        told, error = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "remora campaign study.yaml --out out --resume" in told
    assert not error
