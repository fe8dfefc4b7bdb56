"""Control laws compute with the state that is measured, and what they know is listed."""

import pickle

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import CModule, built_test, verdict
from remora.algebra import pose, quaternion
from remora.components.component import Component, Interface
from remora.components.signals import Signal
from remora.simulation.export.c_loop import save_loop_c

ROBOT = rm.load("servicer")
ARM = ROBOT.joints.names[1:]
TICK = {"sample_time": 0.05}
SETTINGS = {
    "integrator": rm.Integrator("rk4", step=0.05),
    "physics": rm.Physics(limits="ignore"),
    "record": rm.Record(0.05),
}
ALL = ("attitude", "rate", "position", "velocity")


def start():
    q = rm.neutral(ROBOT)
    q[8:] = [0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0]
    return q, np.zeros(ROBOT.nv)


class Position(Component):
    """What a relative navigation would measure: position and velocity of the base."""

    def interface(self, robot):
        return Interface(outputs={"position": Signal(3, "m"), "velocity": Signal(3, "m/s")})

    def outputs(self, at):
        return {"position": at.position("bus"), "velocity": at.velocity("bus")}


def sensors(encoders=(), tracker=(), gyro=()):
    return [
        rm.sensors.JointEncoders(ARM, **TICK, **dict(encoders), name="encoders"),
        rm.sensors.StarTracker("bus", **TICK, **dict(tracker), name="tracker"),
        rm.sensors.RateGyro("bus", **TICK, **dict(gyro), name="gyro"),
        Position(**TICK),
        rm.estimation.StateEstimate(ARM, ALL, name="nav"),
    ]


def reaching():
    goal = rm.frame_pose(ROBOT, start()[0], "tool")
    goal = pose.from_parts(goal[:4], np.add(pose.translation(goal), [-0.05, 0.05, 0.03]))
    path = rm.control.PoseReference([goal, goal], durations=1.0, name="path", **TICK)
    law = rm.control.ResolvedRate("tool", gain=1.0, name="law", **TICK)
    servo = rm.control.JointRateServo(ARM, 10.0, name="servo", **TICK)
    return [path, law, servo], goal


def test_exact_sensors_change_nothing():
    parts, _ = reaching()
    truth = rm.simulate(rm.System(ROBOT, parts), *start(), 4.0, **SETTINGS)
    system = rm.System(ROBOT, [*sensors(), *parts])
    assert {k: system.connections[f"{k}.q"] for k in ("law", "servo")} == {
        "law": "nav.q", "servo": "nav.q"
    }  # fmt: skip
    measured = rm.simulate(system, *start(), 4.0, **SETTINGS)
    assert np.abs(measured.q - truth.q).max() < 1e-9
    assert system.truth_read_by() == {}
    told = rm.System(ROBOT, parts).truth_read_by()
    assert set(told) == {"law", "servo"}
    assert "base attitude" in told["law"]
    assert "base position" in told["law"]
    assert "base position" not in told["servo"]


@pytest.mark.parametrize("axis", range(3))
def test_a_bias_of_the_attitude_appears_in_the_tool_one_to_one(axis):
    """The law brings the tool to the goal as it sees it, from a base that it sees turned."""
    bias = np.zeros(3)
    bias[axis] = 0.01
    parts, goal = reaching()
    system = rm.System(ROBOT, [*sensors(tracker={"bias": bias}), *parts])
    run = rm.simulate(system, *start(), 25.0, **SETTINGS)
    tool = rm.frame_pose(ROBOT, run.q[-1], "tool")
    off = quaternion.mul(tool[:4], quaternion.conjugate(goal[:4]))
    assert 2.0 * np.linalg.norm(off[1:]) == pytest.approx(0.01, rel=1e-4)
    bus = rm.frame_pose(ROBOT, run.q[-1], "bus")
    turned = quaternion.mul(
        quaternion.mul(bus[:4], quaternion.exp(0.5 * bias)), quaternion.conjugate(bus[:4])
    )
    seen = pose.translation(bus) + quaternion.rotate(
        turned, pose.translation(tool) - pose.translation(bus)
    )
    assert np.linalg.norm(seen - pose.translation(goal)) < 1e-5
    assert np.linalg.norm(pose.translation(tool) - pose.translation(goal)) > 1e-3


def test_batches_are_their_single_runs_with_noise():
    system = rm.System(
        ROBOT,
        [
            *sensors(
                {"noise": 1e-4, "speed_noise": 1e-4, "resolution": 2e-4},
                {"noise": 1e-4},
                {"noise": 1e-5, "drift": 1e-6},
            ),
            *reaching()[0],
        ],
    )
    q, v = start()
    bias = 0.01 * np.random.default_rng(1).normal(size=(3, 3))
    runs = rm.Runs(parameters={"tracker.bias": bias}, seed=4)
    batch = rm.simulate_batch(system, q, v, 2.0, runs=runs, **SETTINGS)
    for k in range(3):
        one = system.with_parameters({"tracker.bias": bias[k]})
        run = rm.simulate(one, q, v, 2.0, seed=(4, k), **SETTINGS)
        assert np.abs(batch.q[k] - run.q).max() < 1e-12
    assert np.abs(batch.q[0, -1] - batch.q[1, -1]).max() > 1e-4


def test_parts_that_are_not_measured_are_listed():
    parts, _ = reaching()
    some = rm.estimation.StateEstimate(ARM, ("attitude", "rate"), name="nav")
    system = rm.System(ROBOT, [*sensors()[:3], some, *parts])
    assert system.truth_read_by() == {
        "law": ("base position", "base velocity"),
        "servo": ("base velocity",),
    }
    one = rm.System(ROBOT, [*sensors()[:3], some, *parts], {"servo.q": "robot.q"})
    assert "elbow_pitch position" in one.truth_read_by()["servo"]
    assert "elbow_pitch speed" not in one.truth_read_by()["servo"]
    for made in (pickle.loads(pickle.dumps(one)), one.with_parameters({"encoders.noise": [1e-4]})):
        assert made.truth_read_by() == one.truth_read_by()
    more = one.with_components({"more": rm.sensors.RateGyro("bus", **TICK)})
    assert more.truth_read_by() == one.truth_read_by()


def test_two_estimates_must_be_chosen_between():
    parts, _ = reaching()
    other = rm.estimation.StateEstimate(ARM, name="other")
    with pytest.raises(rm.errors.ModelError, match=r"servo.q.*2 possible sources.*nav.q, other.q"):
        rm.System(ROBOT, [*sensors(), other, *parts])
    chosen = {f"{law}.{x}": f"other.{x}" for law in ("law", "servo") for x in "qv"}
    made = rm.System(ROBOT, [*sensors(), other, *parts], chosen)
    assert "base rate" in made.truth_read_by()["servo"]


def test_a_mounted_tracker_and_gyro():
    """The design knows how they are mounted on the base."""
    mount = {"xyz": (0.1, 0.2, 0.3), "rpy": (0.4, -0.5, 0.6)}
    box = rm.Builder("box").body("bus", mass=100.0, inertia=(10, 20, 30))
    robot = box.joint("base", "free", None, "bus").frame("optics", "bus", **mount).build()
    nav = rm.estimation.StateEstimate((), ("attitude", "rate"), "optics", "optics", name="nav")
    parts = [
        rm.sensors.StarTracker("optics", **TICK),
        rm.sensors.RateGyro("optics", **TICK),
        nav,
    ]
    q, v = rm.random_state(robot, 2)
    run = rm.simulate(rm.System(robot, parts), q, v, 0.5, **SETTINGS)
    assert np.abs(run.signals["nav.q"][0] - q).max() < 1e-12
    assert np.abs(run.signals["nav.v"][0] - v).max() < 1e-12


def test_before_the_first_measurement_the_estimate_is_the_identity():
    robot = rm.combine({"a": ROBOT, "b": rm.load("vt18_satellite")})
    root = next(j.name for j in robot.joints[1:] if j.parent < 0)
    parts = [
        rm.sensors.StarTracker("a/bus", sample_time=0.1, offset=0.1),
        rm.sensors.RateGyro("a/bus", sample_time=0.1, offset=0.1),
        rm.estimation.StateEstimate((), ("attitude", "rate"), free_joints=[root], name="nav"),
    ]
    key = root.replace("/", "_")
    given = {f"nav.{key}_pose": np.zeros(8), f"nav.{key}_twist": np.zeros(6)}
    q, v = rm.random_state(robot, 3)
    run = rm.simulate(rm.System(robot, parts, given), q, v, 0.3, **SETTINGS)
    first, place = run.signals["nav.q"][0], robot.joints[root].q
    assert first[:4].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert first[place].tolist() == [1.0, *[0.0] * 7]
    assert np.all(np.isfinite(run.signals["nav.q"]))
    measured = {f"nav.{key}_pose": 2.0 * q[place], f"nav.{key}_twist": np.arange(6.0)}
    run = rm.simulate(rm.System(robot, parts, measured), q, v, 0.1, **SETTINGS)
    assert np.abs(run.signals["nav.q"][0][place] - q[place]).max() < 1e-12
    assert run.signals["nav.v"][0][robot.joints[root].v].tolist() == [*range(6)]


@needs.compiler
@pytest.mark.parametrize("name", ["nav", "servo", "law", "tracker", "encoders"])
def test_in_c_the_estimate_is_an_input(name, tmp_path):
    system = rm.System(ROBOT, [*sensors({"resolution": 1e-3}), *reaching()[0]])
    rm.save_component_c(system, name, tmp_path)
    assert verdict(built_test(tmp_path, name, "-O1")) == (0, 0, "good")
    header = (tmp_path / f"{name}.h").read_text()
    assert ("from nav.q" in header) == (name in ("servo", "law"))
    if name == "nav":
        assert "double q[" not in header.partition("_inputs;")[0]
        assert "double attitude[4]" in header


def test_encoders_round_to_their_resolution():
    sensor = rm.sensors.JointEncoders(ARM, **TICK, resolution=1e-2, bias=0.003)
    q, v = start()
    v[6:] = 0.1
    run = rm.simulate(rm.System(ROBOT, [sensor]), q, v, 1.0, **SETTINGS)
    found = run.signals["joint_encoders.positions"]
    assert np.abs(found / 1e-2 - np.round(found / 1e-2)).max() < 1e-9
    held = np.vstack([run.q[:1, 8:], run.q[:-1, 8:]])  # a sample at a tick has the value before it
    assert np.abs(found[1:] - held[1:] - 0.003).max() <= 5e-3 + 1e-12
    speeds = run.signals["joint_encoders.speeds"]
    assert np.abs(speeds[1:] - run.v[:-1, 6:]).max() < 1e-12


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: rm.estimation.StateEstimate(), "nothing is measured"),
        (lambda: rm.estimation.StateEstimate(["elbow"]), "no joint named 'elbow'"),
        (lambda: rm.estimation.StateEstimate(["base"]), "carries the base"),
        (lambda: rm.estimation.StateEstimate(base=["pose"]), "pose"),
        (lambda: rm.estimation.StateEstimate(base=["rate"], tracker="bus"), "has no 'attitude'"),
        (lambda: rm.estimation.StateEstimate(base=["rate"], gyro="tool"), "not on the base"),
        (lambda: rm.estimation.StateEstimate(free_joints=["base"]), "not a free joint of another"),
        (lambda: rm.estimation.StateEstimate(free_joints=["elbow_pitch"]), "not a free joint"),
        (lambda: rm.estimation.StateEstimate(ARM, **TICK), "has no sample_time"),
        (lambda: rm.sensors.StarTracker("bus"), "needs a sample_time"),
        (lambda: rm.sensors.StarTracker("bus", noise=-1.0, **TICK), "noise"),
        (lambda: rm.sensors.JointEncoders(noise=-1.0, **TICK), "noise"),
        (lambda: rm.sensors.JointEncoders(resolution=0.0, **TICK), "resolution"),
    ],
)
def test_refusals(made, text):
    with pytest.raises(rm.errors.RemoraError, match=text):
        rm.System(ROBOT, [made()])


def test_a_law_cannot_have_inputs_of_these_names():
    class Law(Component):
        uses_design = True

        def interface(self, robot):
            return Interface(inputs={"q": Signal(3)})

    with pytest.raises(rm.errors.ModelError, match="cannot be named 'q' or 'v'"):
        rm.System(ROBOT, [Law()], {"law.q": np.zeros(3)})


class Observer(Component):
    """An estimate that remembers the true state, as a filter that reads too much would."""

    uses_design = True
    estimates_state = True
    sampled = True

    def interface(self, robot):
        q, v = rm.neutral(robot), np.zeros(robot.nv)
        return Interface(
            outputs={"q": Signal(robot.nq), "v": Signal(robot.nv)}, discrete={"qm": q, "vm": v}
        )

    def outputs(self, at):
        return {"q": at.memory["qm"], "v": at.memory["vm"]}

    def update(self, at):
        return {"qm": at.q, "vm": at.v}


class Reference(Component):
    """A component whose outputs only have the names of the state."""

    def interface(self, robot):
        return Interface(outputs={"q": Signal(robot.nq), "v": Signal(robot.nv)})

    def outputs(self, at):
        return {"q": 0.0 * at.t + rm.neutral(ROBOT), "v": 0.0 * at.t + np.zeros(ROBOT.nv)}


class Push(Component):
    """A law of a user, without the design."""

    def act(self, at):
        return rm.JointForce("elbow_pitch", -at.joint_velocity("elbow_pitch"))


class Two(Component):
    """A law with an output that needs nothing, and one that needs the state and the design."""

    uses_design = True

    def interface(self, robot):
        return Interface(
            inputs={"command": Signal(())}, outputs={"free": Signal(()), "place": Signal(3)}
        )

    def outputs(self, at):
        return {"free": 2.0 * at.inputs["command"], "place": at.position("tool") / at.robot.mass}


class Shifted(Component):
    """An estimate of the position with an offset that a law provides."""

    estimates_state = True

    def interface(self, robot):
        outputs = {"q": Signal(robot.nq), "v": Signal(robot.nv), "mass": Signal((), "kg")}
        return Interface(inputs={"off": Signal(())}, outputs=outputs)

    def outputs(self, at):
        return {"q": at.q, "v": at.v + at.inputs["off"], "mass": 5.0 + at.inputs["off"]}


def test_truth_in_the_memory_of_an_estimate_is_listed():
    law = rm.control.JointPD(ROBOT, {"elbow_pitch": 0.5}, 30.0, 20.0, 0.05, name="law")
    told = rm.System(ROBOT, [Observer(**TICK, name="observer"), law]).truth_read_by()
    assert "base attitude" in told["observer"]
    assert "law" not in told
    idle = rm.control.JointPD(ROBOT, {"elbow_pitch": 0.5}, 0.0, 0.0, 0.05, name="law")
    assert rm.System(ROBOT, [idle]).truth_read_by() == rm.System(ROBOT, [law]).truth_read_by()
    assert rm.System(ROBOT, [Push()]).truth_read_by() == {"push": ("elbow_pitch speed",)}
    damper = rm.world.Spring(("bus", "tool"), 1.0, 1.0)
    assert rm.System(ROBOT, [damper]).truth_read_by() == {}


def test_truth_that_is_read_after_a_capture_is_listed():
    box = rm.Builder("box").body("box", mass=120.0, inertia=(20, 30, 25))
    both = rm.combine({"arm": ROBOT, "box": box.joint("free", "free", None, "box").build()})
    both = rm.loops.add_constraint(
        both, "grip", "fixed", parent="arm/tool", child="box/box", active=False
    )
    servo = rm.control.JointRateServo([f"arm/{n}" for n in ARM], 2.0, name="servo", **TICK)
    told = rm.System(both, [servo], {"servo.rate": np.zeros(7)}).truth_read_by()["servo"]
    assert {"box/free attitude", "box/free position", "box/free rate"} <= {*told}


def test_only_estimates_are_taken_by_themselves():
    law = rm.control.JointPD(ROBOT, {"elbow_pitch": 0.5}, 30.0, 20.0, 0.05, name="law")
    system = rm.System(ROBOT, [Reference(name="reference"), law])
    assert "law.q" not in system.connections
    chosen = rm.System(ROBOT, [Reference(name="reference"), law], {"law.q": "reference.q"})
    assert chosen.connections["law.q"] == "reference.q"
    named = rm.System(ROBOT, [Reference(name="robot"), law], {"law.q": "robot.q"})
    assert named.connections["law.q"] == "robot.q"

    class Wrong(Push):
        estimates_state = True

    with pytest.raises(rm.errors.ModelError, match="estimates_state needs the outputs"):
        rm.System(ROBOT, [Wrong()])


def test_a_law_that_is_evaluated_in_parts():
    """Its first output is known before the state and the design with which it computes."""
    connect = {
        "shifted.off": "two.free",
        "two.command": 0.0,
        "two.design.flange.mass": "shifted.mass",
    }
    run = rm.simulate(rm.System(ROBOT, [Two(), Shifted()], connect), *start(), 0.2, **SETTINGS)
    expected = rm.frame_pose(ROBOT, start()[0], "tool")
    mass = float(ROBOT.mass) + 0.1
    assert run.signals["two.place"][0] == pytest.approx(
        pose.translation(expected) / mass, rel=1e-12
    )


@pytest.mark.parametrize(
    ("connect", "text"),
    [
        ({"law.design.flange.mass": -5.0}, "must be positive"),
        ({"law.design.flange.inertia": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]}, "must be symmetric"),
        ({"law.design.nope.mass": 5.0}, "no parameter named 'nope.mass'"),
        ({"law.design.": 5.0}, "no parameter"),
        ({"law.design.mass": "law.torque"}, "shape"),
    ],
)
def test_impossible_numbers_of_a_design_are_faults_of_the_system(connect, text):
    law = rm.control.JointComputedTorque(4.0, 4.0, ARM, name="law")
    with pytest.raises(rm.errors.ModelError, match=text):
        rm.System(ROBOT, [law], {"law.position": np.zeros(7), **connect})


def test_free_joints_whose_inputs_have_one_name():
    def box(joint):
        made = rm.Builder("box").body("b", mass=1.0, inertia=(1, 1, 1))
        return made.joint(joint, "free", None, "b").build()

    boxes = {"a": ROBOT, "x": box("b_c"), "x_b": box("c")}
    robot = rm.combine(boxes)
    with pytest.raises(rm.errors.ModelError, match="has the inputs of another"):
        rm.System(robot, [rm.estimation.StateEstimate(free_joints=["x/b_c", "x_b/c"])])


@needs.compiler
def test_biases_of_the_attitude_appear_one_to_one_in_a_batch_and_in_c(tmp_path):
    """Each run of a batch has its own bias; exported C takes it as a parameter."""
    biases = np.array([[0.01, 0.0, 0.0], [0.0, -0.02, 0.0], [0.003, 0.004, 0.012]])
    parts, goal = reaching()
    system = rm.System(ROBOT, [*sensors(), *parts])
    runs = rm.Runs(parameters={"tracker.bias": biases})
    batch = rm.simulate_batch(system, *start(), 25.0, runs=runs, **SETTINGS)
    for k, bias in enumerate(biases):
        assert off_goal(batch.q[k, -1], goal) == pytest.approx(np.linalg.norm(bias), rel=1e-4)
    save_loop_c(system, tmp_path, 0.05, name="loop")
    loop = CModule(tmp_path, "loop")
    values = {key.replace(".", "_"): x for key, x in system.parameters.items()}
    loop.set("parameters", **(values | {"tracker_bias": biases[2]}))
    loop.call("init", *start())
    for _ in range(500):
        loop.call("step")
    q = loop.get("state", "q")
    assert q == pytest.approx(batch.q[2, -1], abs=1e-11)
    assert off_goal(q, goal) == pytest.approx(0.013, rel=1e-4)


def off_goal(q, goal):
    """Return the angle by which the tool is turned from the goal."""
    tool = rm.frame_pose(ROBOT, q, "tool")
    off = quaternion.mul(tool[:4], quaternion.conjugate(goal[:4]))
    return 2.0 * np.linalg.norm(off[1:])
