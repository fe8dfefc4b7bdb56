"""What the report of a campaign says that control laws know."""

from types import SimpleNamespace

import numpy as np

import remora as rm
from remora.campaigns.campaign_report import _known

ROBOT = rm.load("servicer")


def told(components, connect):
    return _known(SimpleNamespace(system=rm.System(ROBOT, components, connect), targets={}))


def test_laws_that_compute_with_an_estimate_are_named():
    arm = ROBOT.joints.names[1:]
    servo = rm.control.JointRateServo(arm, 10.0, name="servo", sample_time=0.05)
    sensors = [
        rm.sensors.JointEncoders(arm, sample_time=0.05),
        rm.estimation.StateEstimate(arm, name="nav"),
    ]
    connect = {"servo.rate": np.zeros(7)}
    assert "compute: servo<" in told([servo], connect)
    text = told([*sensors, servo], connect)
    assert "compute: servo<" in text
    assert "<td>base velocity</td>" in text.replace("base rate, ", "")


def test_the_truth_that_a_law_without_design_reads_is_told():
    class Push(rm.Component):
        def act(self, at):
            return rm.JointForce("elbow_pitch", -at.joint_velocity("elbow_pitch"))

    text = told([Push()], {})
    assert "elbow_pitch speed" in text
    assert "dispersed" not in text
