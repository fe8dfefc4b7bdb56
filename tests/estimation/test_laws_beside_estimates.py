"""Laws of users behind actuators, and laws that act as loads of a run, beside an estimate."""

import re

import numpy as np
import pytest

import remora as rm
from remora.components.component import Component, Interface
from remora.components.signals import Signal
from remora.simulation.inputs.loads import Sum

ROBOT = rm.load("servicer")
TICK = {"sample_time": 0.05}
ELBOW = ("elbow_pitch",)
READ = ("elbow_pitch position", "elbow_pitch speed")


class Law(Component):
    """A law of a user whose torque goes to an actuator."""

    def interface(self, robot):
        return Interface(outputs={"torque": Signal((1,), "N m")})

    def outputs(self, at):
        off = 0.5 - at.joint_position("elbow_pitch")
        return {"torque": 30.0 * off - 60.0 * at.joint_velocity("elbow_pitch")}


class LawWithDesign(Law):
    uses_design = True


class Tachometer(Component):
    """A sensor of a user."""

    def interface(self, robot):
        return Interface(outputs={"speed": Signal((1,), "rad/s")})

    def outputs(self, at):
        return {"speed": 1.0 * at.joint_velocity("elbow_pitch")}


class Damping(Component):
    """A law that reads a sensor only."""

    def interface(self, robot):
        speed, torque = Signal((1,), "rad/s"), Signal((1,), "N m")
        return Interface(inputs={"speed": speed}, outputs={"torque": torque})

    def outputs(self, at):
        return {"torque": -60.0 * at.inputs["speed"]}


class DampingWithDesign(Damping):
    uses_design = True


class Limit(Component):
    """Something between a law and its actuator."""

    def interface(self, robot):
        signal = Signal((1,), "N m")
        return Interface(inputs={"wanted": signal}, outputs={"limited": signal})

    def outputs(self, at):
        return {"limited": rm.algebra.array_ops.clip(at.inputs["wanted"], -1.0, 1.0)}


def measured():
    return [
        rm.sensors.JointEncoders(ELBOW, bias=0.1, name="encoders", **TICK),
        rm.estimation.StateEstimate(ELBOW, name="nav"),
    ]


def motor():
    return rm.actuators.FirstOrderActuator(ELBOW, name="motor")


def test_a_law_of_a_user_that_commands_an_actuator_is_listed():
    law = Law(name="law")
    direct = {"motor.command": "law.torque"}
    through = {"limit.wanted": "law.torque", "motor.command": "limit.limited"}
    assert rm.System(ROBOT, [law, motor()], direct).truth_read_by() == {"law": READ}
    assert rm.System(ROBOT, [law, *measured(), motor()], direct).truth_read_by() == {"law": READ}
    limited = rm.System(ROBOT, [law, Limit(name="limit"), motor()], through)
    assert limited.truth_read_by() == {"law": READ}
    taking = rm.System(ROBOT, [LawWithDesign(name="law"), *measured(), motor()], direct)
    assert taking.truth_read_by() == {}
    alone = rm.System(ROBOT, [law])
    assert alone.truth_read_by() == {}  # it commands nothing


def test_a_sensor_of_a_user_is_told_from_a_law_by_the_law_that_uses_the_design():
    parts, connect = [Tachometer(name="sensor"), motor()], {"motor.command": "law.torque"}
    marked = rm.System(ROBOT, [*parts, DampingWithDesign(name="law")], connect)
    assert marked.truth_read_by() == {}
    unmarked = rm.System(ROBOT, [*parts, Damping(name="law")], connect)
    assert unmarked.truth_read_by() == {"sensor": READ[1:]}


@pytest.mark.parametrize("sample_time", [None, 0.05])
def test_a_law_that_is_a_load_cannot_compute_with_the_estimate(sample_time):
    law = rm.control.JointPD(ROBOT, {"elbow_pitch": 0.5}, 30.0, 20.0, sample_time)
    system, start = rm.System(ROBOT, measured()), (rm.neutral(ROBOT), np.zeros(ROBOT.nv))
    text = "JointPD would read the true state, which the system estimates in 'nav'"
    step = rm.Integrator("rk4", step=0.05)
    for torque in (law, Sum(law, np.zeros(ROBOT.nv))):
        with pytest.raises(rm.RemoraError, match=text):
            rm.simulate(system, *start, 1.0, torque=torque)
        with pytest.raises(rm.RemoraError, match=text):
            rm.simulate(system, *start, [rm.Phase(1.0), rm.Phase(1.0, torque=torque)])
        with pytest.raises(rm.RemoraError, match=text):
            rm.simulate_batch(system, *start, 1.0, torque=torque, integrator=step, runs=2)
    part = rm.System(ROBOT, [*measured(), law])
    run = rm.simulate(part, *start, 20.0, integrator=step, record=20.0)
    assert run.joint("elbow_pitch").q[-1] == pytest.approx(0.4, abs=1e-2)  # less the bias


def test_a_scenario_names_the_phase_whose_controller_would_read_the_truth(tmp_path):
    file = tmp_path / "measured.yaml"
    file.write_text("""
scenario: 1
robot: servicer
components:
  - {type: joint_encoders, joints: [elbow_pitch], sample_time: 0.05}
  - {type: state_estimate, joints: [elbow_pitch]}
phases:
  - duration: 1
  - duration: 1
    controllers:
      - {law: joint_pd, goal: {elbow_pitch: 0.5}, kp: 30, kd: 20, sample_time: 0.05}
""")
    with pytest.raises(rm.errors.ModelError, match=re.escape("phases[1].controllers")) as caught:
        rm.load_scenario(file)
    assert "make it a component" in str(caught.value)
