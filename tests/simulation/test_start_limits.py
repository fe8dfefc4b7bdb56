"""Joints that start beyond their limits: a warning names joint, value and limit."""

import numpy as np
import pytest
from typer.testing import CliRunner

import remora as rm
from remora.campaigns import campaign as campaigns
from remora.cli import app
from sliders import slider

ROBOT = rm.load("servicer")
DEGREES = r"joint 'shoulder_roll' starts at 90 rad, beyond its upper limit of 2\.97 rad; 90 deg\?"


def started(**joints):
    return rm.configuration(ROBOT, joints)


def test_degrees_typed_for_radians():
    with pytest.warns(rm.errors.SimulationWarning, match=DEGREES):
        rm.simulate(ROBOT, started(shoulder_roll=90.0), np.zeros(ROBOT.nv), 0.01)


def test_several_joints_and_a_little_too_far():
    q = started(shoulder_roll=-2.98, shoulder_pitch=2.2)
    text = (
        r"joint 'shoulder_roll' starts at -2\.98 rad, beyond its lower limit of -2\.97 rad; "
        r"joint 'shoulder_pitch' starts at 2\.2 rad, beyond its upper limit of 2\.1 rad$"
    )
    with pytest.warns(rm.errors.SimulationWarning, match=text):
        rm.simulate(ROBOT, q, np.zeros(ROBOT.nv), 0.01)


def test_a_batch_names_the_worst_run():
    q = np.stack([started(shoulder_roll=x) for x in (0.0, 3.0, 90.0, 2.97)])
    with pytest.warns(rm.errors.SimulationWarning, match=f"^run 2: {DEGREES}$"):
        rm.simulate_batch(
            ROBOT, q, np.zeros((4, ROBOT.nv)), 0.01, integrator=rm.Integrator(step=0.01)
        )


def test_at_a_limit_and_with_limits_ignored_there_is_no_warning():
    v = np.zeros(ROBOT.nv)
    rm.simulate(ROBOT, started(shoulder_roll=2.97 + 1e-9), v, 0.01)
    rm.simulate(ROBOT, started(shoulder_roll=90.0), v, 0.01, physics=rm.Physics(limits="ignore"))


SCENARIO = """
scenario: 1
robot: servicer
start: {joints: {shoulder_roll: 90}}
phases: [{duration: 0.02}]
integrator: {name: rk4, step: 0.01}
"""


def test_scenarios_and_campaigns_on_the_command_line(tmp_path):
    (tmp_path / "far.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        "campaign: 1\nscenario: far.yaml\nruns: 4\nseed: 1\n"
        "disperse: {start.speeds.elbow_pitch: {normal: {std: 0.01}}}\n"
        "outputs: {angle: {joint: shoulder_roll}}\n",
        encoding="utf-8",
    )
    with pytest.warns(rm.errors.SimulationWarning, match=DEGREES) as told:
        found = CliRunner().invoke(app, ["run", str(tmp_path / "far.yaml"), "--quiet"])
    assert found.exit_code == 0, found.output
    assert len(told) == 1
    with pytest.warns(rm.errors.SimulationWarning, match=DEGREES) as told:
        campaigns.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    assert len(told) == 1


def test_a_batch_without_runs():
    q, v = np.zeros((0, ROBOT.nq)), np.zeros((0, ROBOT.nv))
    assert (
        rm.simulate_batch(
            ROBOT, q, v, 0.1, integrator=rm.Integrator(step=0.1), record=rm.Record(progress=False)
        ).q.shape[0]
        == 0
    )


@pytest.mark.parametrize("start", [0.0, 1.0])
@pytest.mark.parametrize("integrator", ["dop853", "radau"])
@pytest.mark.filterwarnings("ignore:joint .* beyond")
def test_a_violated_limit_is_an_event_at_the_start(integrator, start):
    """Located without steps so short that an implicit method cannot make them."""
    robot = slider(lower=-0.35, upper=0.35)
    run = rm.simulate(robot, [0.5], [1.0], 0.5, integrator=integrator, start=start)
    assert [(e.name, e.t) for e in run.events] == [("slide upper limit", start)]
    assert run.q[-1] == pytest.approx([1.0])
