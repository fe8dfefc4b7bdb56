"""Components in scenario files: what runs, where signals appear, and faults with their lines."""

import textwrap

import numpy as np
import pytest

import remora as rm
from remora.simulation.inputs.loads import described
from remora.viewer.component_words import component_table
from remora.viewer.figures.panels import choice, panels
from remora.viewer.load_words import loaded
from remora.viewer.page.plots import offered, plot_of
from remora.viewer.report.report import html

LOOP = """
scenario: 1
robot: servicer
seed: 5
run: 2
start: {base: {omega: [1 deg/s, 0, 0]}}
components:
  - {type: rate_gyro, name: gyro, frame: bus, noise: 0.1 deg/s, sample_time: 0.1}
  - {type: attitude_pd, name: attitude, kp: 20, kd: 100, sample_time: 0.1, delay: 0.1,
     rate_input: true, torque_output: true}
  - {type: first_order_actuator, name: wheels, frame: bus, time_constant: 0.2, limit: 2}
  - {type: signal_source, name: burn, value: {pulse: {start: 0.5, stop: 1, value: 1}}}
  - {type: thruster, frame: tool, thrust: 0.5, direction: [0, 1, 0]}
  - {type: threshold, name: firing, above: 0.25, unit: N}
  - {type: spring, between: [bus, tool], stiffness: 0.1}
connections:
  wheels.command: attitude.torque
  thruster.command: burn.value
  firing.signal: thruster.force
phases: [{name: hold, duration: 2}]
output: {sample: 0.1}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text, name="s.yaml"):
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    return written


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenario")
    (folder / "loop.yaml").write_text(LOOP, encoding="utf-8")
    rm.load_scenario(folder / "loop.yaml").run(out=folder / "run", progress=False)
    return rm.open_run(folder / "run")


def test_the_file_is_the_system_in_python(run):
    robot = rm.load("servicer")
    q, v = rm.neutral(robot), np.zeros(13)
    v[0] = np.radians(1.0)
    parts = [
        rm.sensors.RateGyro("bus", noise=np.radians(0.1), sample_time=0.1, name="gyro"),
        rm.control.AttitudePD(robot, (1, 0, 0, 0), 20, 100, 0.1, delay=0.1, name="attitude",
                      rate_input=True, torque_output=True),
        rm.actuators.FirstOrderActuator(frame="bus", time_constant=0.2, limit=2, name="wheels"),
        rm.SignalSource(rm.Pulse(0.5, 1.0, 1.0), name="burn"),
        rm.actuators.Thruster("tool", 0.5, (0, 1, 0)),
        rm.sensors.Threshold(0.25, "N", name="firing"),
        rm.world.Spring(("bus", "tool"), 0.1),
    ]  # fmt: skip
    wires = {"wheels.command": "attitude.torque", "thruster.command": "burn.value",
             "firing.signal": "thruster.force"}  # fmt: skip
    system = rm.System(robot, parts, wires)
    same = rm.simulate(system, q, v, 2.0, record=0.1, seed=(5, 2))
    assert np.abs(run.q - same.q).max() < 1e-13
    assert list(run.signals) == list(same.signals)
    for name in run.signals:
        assert np.abs(run.signals[name] - same.signals[name]).max() < 1e-12
    assert [e.name for e in run.events] == ["firing.crossed"]
    assert run.settings["connections"]["attitude.rate"] == "gyro.rate"


def test_noise_is_that_of_the_seed_and_the_run(write):
    rates = []
    for text in (LOOP, LOOP.replace("seed: 5", "seed: 6"), LOOP.replace("run: 2", "run: 3")):
        rates.append(rm.load_scenario(write(text)).run(progress=False).signals["gyro.rate"])
    assert np.abs(rates[0] - rates[1]).max() > 1e-4
    assert np.abs(rates[0] - rates[2]).max() > 1e-4


def test_every_kind_of_source(write):
    text = """
    scenario: 1
    robot: servicer
    components:
      - {type: signal_source, name: one, value: 2, unit: N}
      - {type: signal_source, name: two, value: [1, 2], unit: N}
      - {type: signal_source, name: wave, value: {sine: {amplitude: 3, frequency: 0.25}}}
      - {type: signal_source, name: line, sample_time: 0.5,
         value: {profile: {times: [0, 4], values: [[0, 1], [4, 5]]}}}
    phases: [{duration: 2}]
    output: {sample: 1}
    """
    run = rm.load_scenario(write(text)).run(progress=False)
    assert run.signals["one.value"].tolist() == [2, 2, 2]
    assert run.signals["two.value"].tolist() == [[1, 2]] * 3
    assert np.allclose(run.signals["wave.value"], [0, 3, 0], atol=1e-12)
    # sampled: at a tick a sample has the value before it
    assert np.allclose(run.signals["line.value"], [[0, 1], [0.5, 1.5], [1.5, 2.5]], atol=1e-12)


def test_a_pd_of_joints_follows_a_reference(write):
    text = """
    scenario: 1
    robot: servicer
    components:
      - {type: signal_source, name: ramp, unit: rad,
         value: {profile: {times: [0, 5, 60], values: [[0], [0.2], [0.2]]}}}
      - {type: joint_pd, goal: {elbow_pitch: 0}, kp: 40, kd: 40, reference_input: true}
    connections: {joint_pd.reference: ramp.value}
    phases:
      - duration: 30
        locked: [shoulder_roll, shoulder_pitch, upper_arm_roll, forearm_roll, wrist_pitch,
                 wrist_roll]
    output: {sample: 1}
    """
    run = rm.load_scenario(write(text)).run(progress=False)
    assert abs(run.joint("elbow_pitch").q[-1] - 0.2) < 1e-3


def test_gains_by_joint_and_poses_by_frame_are_those_of_python(write):
    text = """\
    scenario: 1
    robot: servicer
    components:
      - {type: joint_pd, name: arm, goal: {elbow_pitch: 20 deg, wrist_pitch: 0}, sample_time: 0.1,
         kp: {elbow_pitch: 40, wrist_pitch: 10}, kd: {elbow_pitch: 30, wrist_pitch: 5}}
      - {type: end_effector_wrench, name: hand,
         targets: {tool: {xyz: [1, 0, 3], rpy: [0, 0, 5 deg]}}, kp: 0.1, kv: 0.5, law: printed}
    phases:
      - duration: 0.4
        controllers:
          - {law: joint_pd, goal: {shoulder_roll: 0, wrist_roll: 0}, sample_time: 0.1,
             kp: {shoulder_roll: 20, wrist_roll: 2}, kd: 4}
    integrator: {name: rk4, step: 0.1}
    """
    scenario = rm.load_scenario(write(text))
    robot = rm.load("servicer")
    arm = rm.control.JointPD(
        robot, {"elbow_pitch": np.radians(20.0), "wrist_pitch": 0.0},
        {"elbow_pitch": 40.0, "wrist_pitch": 10.0}, {"elbow_pitch": 30.0, "wrist_pitch": 5.0}, 0.1,
        name="arm",
    )  # fmt: skip
    target = rm.algebra.pose.from_xyz_rpy((1, 0, 3), (0, 0, np.radians(5.0)))
    hand = rm.control.EndEffectorWrenchControl(
        robot, {"tool": target}, 0.1, 0.5, "printed", name="hand"
    )
    assert dict(scenario.system.components) == {"arm": arm, "hand": hand}
    roll = rm.control.JointPD(
        robot, {"shoulder_roll": 0.0, "wrist_roll": 0.0},
        {"shoulder_roll": 20.0, "wrist_roll": 2.0}, 4.0, 0.1,
    )  # fmt: skip
    run = scenario.run(progress=False)
    expected = rm.simulate(
        rm.System(robot, [arm, hand]), scenario.q, scenario.v,
        rm.Phase(0.4, torque=roll, own_clock=True), integrator=rm.Integrator("rk4", step=0.1),
    )  # fmt: skip
    assert np.array_equal(run.q, expected.q)
    assert np.abs(run.v[-1]).max() > 1e-3


def test_the_bundled_loop_holds_the_attitude():
    scenario = rm.load_scenario("hold_attitude")
    assert dict(scenario.system.untraceable) == {}
    run = scenario.run(progress=False)
    turned = 2.0 * np.degrees(np.linalg.norm(run.q[:, 1:4], axis=-1))
    assert turned.max() > 0.3
    assert turned[-50:].max() < 0.1
    assert np.abs(run.signals["wheels.torque"]).max() <= 2.0
    assert {e.name for e in run.events} == {"saturated.crossed"}


# Where signals appear -----------------------------------------------------------------------------


def test_panels_of_signals_have_their_names_and_units(run):
    made = {panel.title: panel for panel in panels(run, "signals", choice(run, degrees=False))}
    assert made["gyro.rate"].unit == "rad/s"
    assert [line.label for line in made["gyro.rate"].lines] == ["x", "y", "z"]
    assert np.array_equal(made["gyro.rate"].lines[1].values, run.signals["gyro.rate"][:, 1])
    assert made["spring.length"].unit == "m"
    assert made["spring.force"].unit == "N"
    assert [p.title for p in panels(run, "thruster.force", choice(run))] == ["thruster.force"]
    figure = run.plot("gyro.rate", "attitude")
    assert figure.axes[0].get_title(loc="left").startswith("gyro.rate")
    with pytest.raises(rm.errors.UnknownName, match=r"gyro\.rate"):
        run.plot("gyro.rat")


def test_numbers_of_one_component_and_unit_share_a_panel():
    class Two(rm.Component):
        def interface(self, robot):
            return rm.Interface(outputs={"a": rm.Signal((), "N"), "b": rm.Signal((), "N")})

        def outputs(self, at):
            return {"a": at.t, "b": 2.0 * at.t}

    robot = rm.load("servicer")
    run = rm.simulate(rm.System(robot, [Two()]), rm.neutral(robot), np.zeros(13), 0.1)
    (panel,) = panels(run, "signals", choice(run))
    assert (panel.title, panel.unit) == ("signals of two", "N")
    assert [line.label for line in panel.lines] == ["a", "b"]


def test_the_viewer_offers_every_signal(run):
    names = [name for name in offered(run) if "." in name]
    assert names[0] == "gyro.rate, rad/s"
    assert "burn.value" in names
    plot = plot_of(run, "wheels.torque, N m")
    assert (plot.unit, plot.names) == ("N m", ["x", "y", "z"])
    assert np.array_equal(plot.values, run.signals["wheels.torque"])
    assert plot_of(run, "burn.value").values.shape == (len(run), 1)


def test_the_report_lists_components_and_draws_signals(run):
    table = component_table(run)
    rows = {row[0].partition(" ")[0]: row for row in table.rows}
    told = ("attitude (AttitudePD)", "every 0.1 s, delay 0.1 s", "rate ← gyro.rate")
    assert rows["attitude"][:3] == told
    assert "rate_input" in rows["attitude"][4]
    assert "places" not in rows["attitude"][4]
    assert rows["wheels"][1] == "continuous"
    assert rows["gyro"][3] == "rate [rad/s]; walk [rad/s]"
    assert rows["wheels"][4] == "frame bus, time_constant 0.2 s, limit 2 N m"
    text = html(run, animation=False)
    assert "<h3>Components</h3>" in text
    assert "Component signals" in text
    assert "thruster.force" in text


def test_control_laws_of_phases_are_told_in_words():
    robot = rm.load("servicer")
    law = rm.control.JointPD(robot, {"elbow_pitch": 0.5}, 2.0, 3.0, 0.05)
    told = loaded({"sum": [described(law), {"elbow_pitch": 1.0}]})
    assert told == (
        "JointPD: joints elbow_pitch, goal 0.5, kp 2, kd 3, every 0.05 s; elbow_pitch: 1"
    )


def test_a_run_without_components_has_no_table():
    robot = rm.load("servicer")
    run = rm.simulate(robot, rm.neutral(robot), np.zeros(13), 0.1)
    assert component_table(run).rows == []
    assert "<h3>Components</h3>" not in html(run, animation=False)
    (panel,) = panels(run, "signals", choice(run))
    assert panel.lines == ()


# Faults -------------------------------------------------------------------------------------------


def faults(write, text):
    with pytest.raises(rm.errors.ModelError) as told:
        rm.load_scenario(write(text))
    return {(f.line, f.element): f.reason for f in told.value.faults}


def test_all_faults_of_settings_are_told_at_once_with_their_lines(write):
    found = faults(write, """\
        scenario: 1
        robot: servicer
        components:
          - {type: rate_giro, frame: bus}
          - {type: rate_gyro, frame: buss, sample_time: 0.1}
          - {frame: bus}
          - {type: spring, between: [bus, tool], stifness: 1}
          - {type: thruster, frame: tool, thrust: -1}
          - type: joint_pd
            goal: {elbw_pitch: 1}
            kp: 1
            kd: 1
        connections: {a.b: true}
        phases: [{duration: -1}]
        """)  # fmt: skip
    assert "did you mean 'rate_gyro'" in found[4, "components[0]"]
    assert "did you mean 'bus'" in found[5, "components[1].frame"]
    assert found[6, "components[2]"].startswith("type is missing: one of joint_pd, attitude_pd")
    unknown = found[7, "components[3]"] if "unknown" in found.get((7, "components[3]"), "") else ""
    assert unknown.startswith("unknown key 'stifness'; did you mean 'stiffness'? known: name, ")
    assert "kp" not in unknown  # the keys of springs alone
    assert "greater than 0" in found[8, "components[4].thrust"]
    assert "did you mean 'elbow_pitch'" in found[10, "components[5].goal.elbw_pitch"]
    assert (14, "phases[0].duration") in found


def test_all_faults_of_the_system_are_told_with_their_lines(write):
    found = faults(write, """\
        scenario: 1
        robot: servicer
        components:
          - {type: attitude_pd, kp: 1, kd: 1, sample_time: 0.1, rate_input: true}
          - {type: first_order_actuator, name: wheels, frame: bus, time_constant: 0.1}
          - {type: threshold, above: 1, unit: N, size: 3}
          - {type: signal_source, name: burn, value: 1}
        connections:
          threshold.signal: wheels.torque
          wheels.comand: burn.value
        phases: [{duration: 1, torque: {elbow_pitch: [1, 2]}}]
        """)  # fmt: skip
    assert found[4, "components[0]"].startswith("input 'rate': nothing provides it")
    assert found[5, "components[1]"].startswith("input 'command': nothing provides it")
    assert found[9, "connections.threshold.signal"] == (
        "is in N, its source 'wheels.torque' in N m"
    )
    assert "did you mean 'wheels.command'?" in found[10, "connections.wheels.comand"]
    assert found[11, "phases[0].torque.elbow_pitch"] == "must be one number, not 2"


@pytest.mark.parametrize(
    ("lines", "element", "told"),
    [
        ("  - {type: thruster, frame: bus, thrust: 1}\n" * 2, "components[1]",
         "components[0] has the name 'thruster' as well"),
        ("  - {type: threshold, unit: N}\n", "components[0]", "one of above, below, crosses"),
        ("  - {type: threshold, above: 1, below: 2}\n", "components[0]", "one of above, below"),
        ("  - {type: first_order_actuator, time_constant: 1}\n", "components[0]",
         "acts on joints"),
        ("  - {type: spring, between: [bus, bus], stiffness: 1}\n", "components[0]",
         "nothing moves between"),
        ("  - {type: signal_source, value: {profile: {times: [1, 0], values: [1, 2]}}}\n",
         "components[0]", "value.profile.times: times of a profile must ascend"),
        ("  - {type: signal_source, value: {profile: {times: [0, 1], values: [1, [2, 3]]}}}\n",
         "components[0]", "value.profile.values[1]: must be one number, not 2"),
        ("  - {type: thruster, frame: bus, thrust: 1, delay: 1}\n", "components[0]",
         "offset and delay need a sample_time"),
        ("  - {type: thruster, name: a b, frame: bus, thrust: 1}\n", "components[0]",
         "a name has letters"),
        ("  - {type: rate_gyro, frame: bus}\n", "components[0]", "sample_time is missing"),
    ],
)  # fmt: skip
def test_faults_of_one_component(write, lines, element, told):
    text = f"scenario: 1\nrobot: servicer\ncomponents:\n{lines}phases: [{{duration: 1}}]\n"
    found = {e: reason for (_, e), reason in faults(write, text).items()}
    assert told in found[element]


def test_a_map_in_place_of_a_source(write):
    text = "scenario: 1\nrobot: servicer\nconnections: {a.b: {c: d}}\nphases: [{duration: 1}]\n"
    assert faults(write, text)[3, "connections.a.b"] == "must be a number, not a map"


def test_connections_without_components(write):
    text = "scenario: 1\nrobot: servicer\nconnections: {a.b: c.d}\nphases: [{duration: 1}]\n"
    assert faults(write, text) == {(3, "connections.a.b"): "there are no components to connect"}


def test_a_resumed_scenario_restores_its_components(tmp_path, monkeypatch):
    (tmp_path / "s.yaml").write_text(LOOP, encoding="utf-8")
    whole = rm.load_scenario(tmp_path / "s.yaml").run(progress=False)
    scenario = rm.load_scenario(tmp_path / "s.yaml")
    out = tmp_path / "run"
    first = scenario.run(out=out, progress=False)
    again = rm.load_scenario(tmp_path / "s.yaml").run(out=out, resume=True, progress=False)
    assert np.array_equal(first.q, whole.q)
    assert np.array_equal(again.signals["gyro.rate"], whole.signals["gyro.rate"])
    (tmp_path / "s.yaml").write_text(LOOP.replace("limit: 2", "limit: 1"), encoding="utf-8")
    with pytest.raises(rm.RemoraError, match="contains another run"):
        rm.load_scenario(tmp_path / "s.yaml").run(out=out, resume=True, progress=False)
