"""Control laws compute with the design of a system, what moves is the robot."""

import copy
import pickle

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import CModule, built_test, verdict
from remora.components.component import Component, Interface
from remora.components.signals import Signal
from remora.simulation.export.c_loop import save_loop_c

ROBOT = rm.load("servicer")
MASSES = np.array([4.9, 50.0, 300.0])  # kg, of the payload in the gripper
DURATION, STEP, KP, KD = 4.0, 0.05, 4.0, 4.0
ARM = np.array([0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0])
GOAL = np.add(ARM, [0.5, -0.4, 0.3, 0.6, -0.2, 0.3, 0.1])
SETTINGS = {
    "integrator": rm.Integrator("rk4", step=STEP),
    "physics": rm.Physics(limits="ignore"),
    "record": rm.Record(STEP),
}


def start():
    q = rm.neutral(ROBOT)
    q[8:] = ARM
    return rm.normalize(ROBOT, q), np.zeros(ROBOT.nv)


def laws():
    joints = ROBOT.joints.names[1:]
    path = rm.control.JointReference([ARM, GOAL], joints, durations=DURATION, name="path")
    return [path, rm.control.JointComputedTorque(KP, KD, joints, name="law")]


def loaded(mass):
    return ROBOT.replace_body("flange", mass=mass)


def error(run):
    """Return the largest distance of a joint from its reference, degrees."""
    off = run.q[..., 8:] - run.signals["path.position"]
    return np.degrees(np.abs(off).max(axis=(-2, -1)))


def by_hand(mass):
    """Return the same error of a law in NumPy that knows the payload of 4.9 kg."""
    H_of = rm.compile(rm.mass_matrix, ROBOT)
    h_of = rm.compile(rm.bias_force, ROBOT)

    def path(t):
        u = t / DURATION
        return (
            ARM + (GOAL - ARM) * (10 * u**3 - 15 * u**4 + 6 * u**5),
            (GOAL - ARM) * 30 * u**2 * (1 - u) ** 2 / DURATION,
            (GOAL - ARM) * 60 * u * (1 - 3 * u + 2 * u**2) / DURATION**2,
        )

    def torque(t, q, v):
        H, h, (goal, speed, acceleration) = H_of(q), h_of(q, v), path(t)
        wanted = acceleration + KD * (speed - v[6:]) + KP * (goal - q[8:])
        recoil = H[6:, :6] @ np.linalg.inv(H[:6, :6])
        own = (H[6:, 6:] - recoil @ H[:6, 6:]) @ wanted + h[6:] - recoil @ h[:6]
        return np.concatenate([np.zeros(6), own])

    run = rm.simulate(loaded(mass), *start(), DURATION, torque=torque, **SETTINGS)
    goals = np.array([path(t)[0] for t in run.t])
    return np.degrees(np.abs(run.q[:, 8:] - goals).max())


@pytest.fixture(scope="module")
def expected():
    return np.array([by_hand(mass) for mass in MASSES])


def test_a_payload_that_the_law_does_not_know(expected):
    """Alone, in a batch and in its replay, the law computes with the robot as it was given."""
    assert expected[0] < 0.5 < 10.0 < expected[1] < expected[2]
    system = rm.System(ROBOT, laws())
    for mass, wanted in zip(MASSES, expected, strict=True):
        for made in (system.with_parameters({"flange.mass": mass}),
                     rm.System(loaded(mass), laws(), design=ROBOT)):  # fmt: skip
            run = rm.simulate(made, *start(), DURATION, **SETTINGS)
            assert error(run) == pytest.approx(wanted, rel=1e-9)
    runs = rm.Runs(parameters={"flange.mass": MASSES})
    batch = rm.simulate_batch(system, *start(), DURATION, runs=runs, **SETTINGS)
    assert error(batch) == pytest.approx(expected, rel=1e-9)
    for k in range(3):
        replay = batch[k]
        assert replay.q[-1] == pytest.approx(batch.q[k, -1], rel=1e-11, abs=1e-12)


def test_a_payload_that_the_law_knows():
    """Numbers of the design are parameters, too: they feed the law what it should know."""
    system = rm.System(ROBOT, laws())
    values = {"flange.mass": MASSES, "design.flange.mass": MASSES}
    batch = rm.simulate_batch(
        system, *start(), DURATION, runs=rm.Runs(parameters=values), **SETTINGS
    )
    assert np.all(error(batch) < 0.5)
    for k, mass in enumerate(MASSES):
        run = rm.simulate(rm.System(loaded(mass), laws()), *start(), DURATION, **SETTINGS)
        assert batch.q[k] == pytest.approx(run.q, rel=1e-10, abs=1e-12)
    light = np.array([2.0, 4.9, 20.0])
    only = rm.Runs(parameters={"design.flange.mass": light})
    wrong = rm.simulate_batch(system, *start(), DURATION, runs=only, **SETTINGS)
    alone = [
        rm.simulate(rm.System(ROBOT, laws(), design=loaded(m)), *start(), DURATION, **SETTINGS)
        for m in light
    ]
    assert error(wrong) == pytest.approx([error(run) for run in alone], rel=1e-9)
    assert error(wrong)[2] > 2.0 * error(wrong)[1]


@needs.compiler
def test_in_c_the_design_is_constant(tmp_path, expected):
    system = rm.System(loaded(MASSES[1]), laws(), design=ROBOT)
    save_loop_c(system, tmp_path, STEP, name="loop")
    assert verdict(built_test(tmp_path, "loop", "-O1")) == (0, 0, "good")
    loop = CModule(tmp_path, "loop")
    loop.set("parameters", **{k.replace(".", "_"): x for k, x in system.parameters.items()})
    loop.call("init", *start())
    for _ in range(round(DURATION / STEP)):
        loop.call("step")
    run = rm.simulate(system, *start(), DURATION, **SETTINGS)
    assert loop.get("state", "q") == pytest.approx(run.q[-1], rel=1e-11, abs=1e-12)
    assert error(run) == pytest.approx(expected[1], rel=1e-9)
    rm.save_component_c(system, "law", tmp_path)
    assert verdict(built_test(tmp_path, "law", "-O1")) == (0, 0, "good")
    same = rm.System(ROBOT, laws())
    rm.save_component_c(same, "law", tmp_path / "same")
    assert (tmp_path / "law.c").read_text() == (tmp_path / "same" / "law.c").read_text()


def test_what_is_equal_and_what_is_copied():
    plain = rm.System(ROBOT, laws())
    assert plain.design is ROBOT
    assert rm.System(ROBOT, laws(), design=ROBOT) == plain
    heavy = plain.with_parameters({"flange.mass": 50.0})
    assert heavy.design is ROBOT
    assert float(heavy.robot.bodies["flange"].mass) == 50.0
    assert heavy != rm.System(heavy.robot, laws())
    assert heavy == rm.System(heavy.robot, laws(), design=ROBOT)
    assert "design" in repr(heavy)
    for made in (pickle.loads(pickle.dumps(heavy)), copy.deepcopy(heavy)):
        assert made == heavy
        assert float(made.design.bodies["flange"].mass) == 4.9
    again = heavy.with_parameters({"design.flange.mass": 50.0, "law.kp": [5.0]})
    assert float(again.design.bodies["flange"].mass) == 50.0
    assert again.parameters["law.kp"].tolist() == [5.0]
    assert again.with_robot(ROBOT).design is again.design
    assert plain.with_robot(heavy.robot).design is heavy.robot


def test_a_run_with_another_design_is_not_resumed(tmp_path):
    settings = SETTINGS | {"record": rm.Record(STEP, folder=tmp_path / "run", resume=True)}
    light, heavy = (rm.System(ROBOT, laws(), design=loaded(m)) for m in (20.0, 50.0))
    rm.simulate(light, *start(), 0.5, **settings)
    assert rm.simulate(light, *start(), 0.5, **settings).status == "complete"
    with pytest.raises(rm.errors.RemoraError, match="design differs"):
        rm.simulate(heavy, *start(), 0.5, **settings)
    with pytest.raises(rm.errors.RemoraError, match="design is given there"):
        rm.simulate(rm.System(ROBOT, laws()), *start(), 0.5, **settings)


class Estimate(Component):
    """What a user's own component sees: the robot, or the design where it asks for it."""

    def interface(self, robot):
        return Interface(outputs={"robot": Signal((), "kg"), "design": Signal((), "kg")})

    def outputs(self, at):
        masses = (x.mass_matrix[..., 3, 3] for x in (at, at.design))
        return dict(zip(("robot", "design"), masses, strict=True))


class Known(Estimate):
    """The same, with the design throughout."""

    uses_design = True


def test_components_of_a_user_choose():
    system = rm.System(ROBOT, {"seen": Estimate(), "known": Known()})
    runs = rm.Runs(parameters={"flange.mass": MASSES})
    batch = rm.simulate_batch(system, *start(), 0.1, runs=runs, **SETTINGS)
    total = ROBOT.mass - 4.9
    assert batch.signals["seen.robot"][:, 0] == pytest.approx(total + MASSES, rel=1e-14)
    for name in ("seen.design", "known.robot", "known.design"):
        assert batch.signals[name][:, 0] == pytest.approx(np.full(3, ROBOT.mass), rel=1e-14)


class PayloadEstimate(Component):
    """A payload estimator that has converged: it reads the true mass of the flange."""

    def interface(self, robot):
        return Interface(outputs={"mass": Signal((), "kg")})

    def outputs(self, at):
        return {"mass": at.robot.bodies["flange"].mass + 0.0 * at.t}


def test_an_estimate_of_the_payload_feeds_the_design(tmp_path):
    parts = [*laws(), PayloadEstimate(name="estimate")]
    system = rm.System(ROBOT, parts, {"law.design.flange.mass": "estimate.mass"})
    runs = rm.Runs(parameters={"flange.mass": MASSES})
    batch = rm.simulate_batch(system, *start(), DURATION, runs=runs, **SETTINGS)
    assert np.all(error(batch) < 1e-3)
    for k, mass in enumerate(MASSES):
        one = system.with_parameters({"flange.mass": mass})
        assert pickle.loads(pickle.dumps(one)) == one
        run = rm.simulate(one, *start(), DURATION, **SETTINGS)
        assert run.q[-1] == pytest.approx(batch.q[k, -1], rel=1e-11, abs=1e-12)
    rm.save_component_c(system, "law", tmp_path)
    assert (
        "double design_flange_mass; /* kg, from estimate.mass */"
        in (tmp_path / "law.h").read_text()
    )
    fixed = rm.System(ROBOT, laws(), {"law.design.flange.mass": 50.0})
    run = rm.simulate(fixed.with_parameters({"flange.mass": 50.0}), *start(), DURATION, **SETTINGS)
    assert error(run) < 1e-3
    refused = {
        "law.design.flange.mas": "flange.mas",
        "path.design.flange.mass": "no such",
        "law.design.flange.com": "shape",
    }
    for target, text in refused.items():
        with pytest.raises(rm.errors.RemoraError, match=text):
            rm.System(ROBOT, parts, {target: "estimate.mass"})


def test_actuators_allocate_with_the_design_and_act_on_the_robot():
    """Wheels on turned axes exert another torque than the one that is demanded."""
    robot = rm.load("wheeled_bus")
    wheels = [j.name for j in robot.joints if j.kind == "revolute"]
    law = rm.actuators.ReactionWheels(wheels, max_torque=1.0, max_speed=600.0, name="wheels")
    demand = np.array([0.02, -0.01, 0.03])
    system = rm.System(robot, [law], {"wheels.command": demand})
    q, v = rm.neutral(robot), np.zeros(robot.nv)
    made = rm.simulate(system, q, v, 0.1, **SETTINGS)
    assert made.signals["wheels.torque"][0] == pytest.approx(demand, rel=1e-12)
    place = robot.joints[wheels[0]].placement
    tilt = rm.algebra.pose.from_xyz_rpy(np.zeros(3), np.array([0.1, 0.2, 0.0]))
    tilted = rm.algebra.dual_quaternion.mul(place, tilt)
    changed = system.with_parameters({f"{wheels[0]}.placement": tilted})
    run = rm.simulate(changed, q, v, 0.1, **SETTINGS)
    S = np.array([
        rm.algebra.quaternion.rotate(rm.algebra.pose.rotation(changed.robot.joints[n].placement),
                                     changed.robot.joints[n].axes[0])
        for n in wheels
    ]).T  # fmt: skip
    nominal = np.array([
        rm.algebra.quaternion.rotate(rm.algebra.pose.rotation(robot.joints[n].placement),
                                     robot.joints[n].axes[0])
        for n in wheels
    ]).T  # fmt: skip
    expected = S @ np.linalg.pinv(nominal) @ demand
    assert run.signals["wheels.torque"][0] == pytest.approx(expected, rel=1e-12)
    assert np.abs(expected - demand).max() > 1e-4


def test_a_grasped_body_is_part_of_the_design():
    """Constraints are those of the robot: an active one is known to the law, which is pinned."""
    held = rm.loops.add_constraint(
        ROBOT, "grip", "fixed", parent="bus", child="flange", active=False
    )
    heavy = held.replace_body("flange", mass=50.0)
    system = rm.System(heavy, laws(), design=ROBOT)
    assert system.design.constraints.names == ["grip"]
    on = system.acting_on(heavy.with_active(on=["grip"]))
    assert on.design.constraints["grip"].active
    assert float(on.design.bodies["flange"].mass) == 4.9
    moved = np.array(held.constraints["grip"].child_placement, copy=True)
    moved[5:] += 0.01
    changed = rm.System(held, laws()).with_parameters({"grip.child_placement": moved})
    assert changed.design is changed.robot


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"flange.mas": 1.0}, "no parameter named 'flange.mas'"),
        ({"design.flange.mas": 1.0}, "no parameter of the design named 'flange.mas'"),
        ({"flange.mass": -1.0}, "flange.mass must be positive"),
        ({"design.flange.mass": -1.0}, "design.flange.mass must be positive"),
        ({"design.flange.mass": np.nan}, "design.flange.mass"),
        ({"design.flange.com": 1.0}, "must have shape"),
        ({"law.kq": 1.0}, "no parameter named 'law.kq'"),
    ],
)
def test_impossible_parameters(values, text):
    system = rm.System(ROBOT, laws())
    with pytest.raises(rm.errors.RemoraError, match=text):
        system.with_parameters(values)
    with pytest.raises(rm.errors.RemoraError, match=text.replace("must have shape", "com")):
        rm.simulate_batch(system, *start(), 0.1, runs=rm.Runs(parameters=values), **SETTINGS)


def test_impossible_designs():
    other = rm.load("vt18_satellite")
    with pytest.raises(rm.errors.RemoraError, match="the design must have the bodies of"):
        rm.System(ROBOT, laws(), design=other)
    with pytest.raises(rm.errors.RemoraError):
        rm.System(ROBOT, laws(), design="servicer")
    held = rm.loops.add_constraint(
        ROBOT, "grip", "fixed", parent="bus", child="flange", active=False
    )
    with pytest.raises(rm.errors.RemoraError, match="constraints of the design are those of"):
        rm.System(held, laws()).with_parameters({"design.grip.child_placement": np.zeros(8)})


SCENARIO = """
scenario: 1
robot: servicer
start: {joints: {shoulder_pitch: 0.6, elbow_pitch: -1.2, wrist_pitch: 0.8}}
components:
  - type: joint_reference
    name: path
    waypoints: [[0, 0.6, 0, -1.2, 0, 0.8, 0], [0.5, 0.2, 0.3, -0.6, -0.2, 1.1, 0.1]]
    durations: 4
  - {type: joint_computed_torque, name: law, kp: 4, kd: 4}
DESIGN
phases: [{duration: 4}]
limits: ignore
integrator: {name: rk4, step: 0.05}
output: {sample: 0.05}
"""
STUDY = """
campaign: 1
scenario: payload.yaml
runs: 20
seed: 3
disperse:
  flange.mass: {uniform: {low: 4, high: 60}}
  design.flange.mass: {uniform: {low: 4, high: 60}}
outputs:
  elbow: {joint: elbow_pitch, minus: -0.6, take: final, unit: deg}
"""


def scenario(folder, design):
    text = SCENARIO.replace("DESIGN", f"design: {design}" if design else "")
    (folder / "payload.yaml").write_text(text)
    return folder / "payload.yaml"


def test_a_scenario_says_what_its_laws_know(tmp_path):
    known = rm.load_scenario(scenario(tmp_path, "{flange.mass: 50}"))
    assert float(known.system.design.bodies["flange"].mass) == 50.0
    run = known.run()
    made = rm.System(ROBOT, laws(), design=loaded(50.0))
    alone = rm.simulate(made, *start(), DURATION, **SETTINGS)
    assert error(run) == pytest.approx(error(alone), rel=1e-9)
    plain = rm.load_scenario(scenario(tmp_path, ""))
    assert plain.system.design is plain.robot


@pytest.mark.parametrize(
    ("design", "text"),
    [
        ("{flange.mas: 50}", "no parameter named 'flange.mas'"),
        ("{flange.mass: -5}", "must be positive"),
        ("{flange.com: [1, 2]}", "must have the shape"),
        ("{flange.mass: heavy}", "design"),
        ("{flange: {mass: 50}}", r"design\.flange: must be a number, not a map"),
    ],
)
def test_faults_of_a_scenario_name_the_line(design, text, tmp_path):
    with pytest.raises(rm.errors.ModelError, match=text) as caught:
        rm.load_scenario(scenario(tmp_path, design))
    assert "design" in str(caught.value)
    assert caught.value.faults[0].line == 11


def test_a_study_disperses_robot_and_design(tmp_path):
    scenario(tmp_path, "")
    (tmp_path / "study.yaml").write_text(STUDY)
    campaign = rm.campaign(tmp_path / "study.yaml", tmp_path / "out", workers=0, progress=False)
    masses = campaign["flange.mass"]
    assert np.abs(masses - campaign["design.flange.mass"]).max() > 10.0
    for k in (0, 7):
        run = campaign.replay(k)
        off = np.degrees(run.q[-1, ROBOT.joints["elbow_pitch"].q][0] + 0.6)
        assert np.degrees(campaign["elbow"][k]) == pytest.approx(off, rel=1e-8, abs=1e-9)
    page = rm.campaign_report(campaign, tmp_path / "report.html").read_text()
    assert "What control laws know" in page
    row = page[page.index("What control laws know") :]
    assert row.index("flange.mass") < row.index("compute: law") < row.index("design.flange.mass")
