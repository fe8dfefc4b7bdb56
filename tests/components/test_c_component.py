"""One component as C: the bits of the traced functions, tick after tick, here and under qemu."""

import re
import subprocess
from dataclasses import field

import numpy as np
import pytest

import needs
import remora as rm
from c_structs import CROSS, CModule, built_test, verdict
from remora.algebra.array_ops import less, select, stack
from remora.components.actions import GeneralizedForce, JointForce, Wrench
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.evaluation import Instant
from remora.components.export.c_component import save_component_c
from remora.components.signals import Signal, State
from remora.components.system import System
from remora.errors import RemoraError, UnknownName
from sliders import slider

ROBOT = rm.load("servicer")


class Controller(Component):
    """A PI controller with anti-windup, noise and delay."""

    joint: str = "elbow_pitch"
    kp: float = 4.1
    ki: float = 1.7
    limit: float = 2.0
    weights: np.ndarray = field(default_factory=lambda: np.array([0.3, 0.25, -0.1]))

    def interface(self, robot):
        return Interface(
            inputs={"goal": Signal((), "rad"), "bias": Signal(3, "N m", default=0.0)},
            outputs={"command": Signal((), "N m"), "error": Signal(2)},
            discrete={"integral": State(0.25, "rad s"), "last": np.zeros((2, 2))},
            noise={"encoder": 2},
        )

    def _law(self, at):
        error = at.inputs["goal"] - at.joint_position(self.joint)[..., 0]
        error = error + 0.01 * at.noise["encoder"][..., 0]
        raw = self.kp * error + self.ki * at.memory["integral"]
        raw = raw + np.sum(self.weights * at.inputs["bias"], axis=-1) + np.sin(at.t)
        held = select(less(raw, -self.limit), -self.limit, raw)
        return error, raw, select(less(self.limit, held), self.limit, held)

    def outputs(self, at):
        error, _, command = self._law(at)
        return {"command": command, "error": stack([error, at.noise["encoder"][..., 1]])}

    def act(self, at):
        return [JointForce(self.joint, self._law(at)[2]), Wrench("tool", force=at.inputs["bias"])]

    def update(self, at):
        error, raw, command = self._law(at)
        return {
            "integral": at.memory["integral"] + self.sample_time * (error + command - raw),
            "last": at.memory["last"] * 0.5 + np.array([[1.0, 0.0], [0.0, 2.0]]) * error,
        }


class Filter(Component):
    """A continuous filter with an event that resets it."""

    rate: float = 3.0

    def interface(self, robot):
        return Interface(
            inputs={"q": Signal(3)}, outputs={"y": Signal(3)},
            continuous={"y_state": np.ones(3)}, discrete={"count": 0.0},
            events={"low": ZeroCrossing(-1, "reset"), "bounce": ZeroCrossing(1, "reset"),
                    "noted": ZeroCrossing()},
        )  # fmt: skip

    def outputs(self, at):
        return {"y": at.state["y_state"] * at.position("tool")[..., 0:1]}

    def act(self, at):
        return GeneralizedForce(-0.1 * at.v)

    def derivative(self, at):
        return {"y_state": self.rate * (at.inputs["q"] - at.state["y_state"])}

    def crossings(self, at):
        y = at.state["y_state"]
        return {"low": y[..., 0], "bounce": y[..., 1], "noted": np.cos(y[..., 2])}

    def reset(self, at, event):
        if event == "low":
            return {"count": at.memory["count"] + 1.0}
        return {"y_state": -at.state["y_state"], "v": -at.v}


def system_of(**timing):
    timing = {"sample_time": 0.02} | timing
    parts = [Controller(**timing), Filter()]
    return System(ROBOT, parts, connect={"controller.goal": 0.3, "filter.q": [0.1, 0.2, 0.3]})


CASES = [
    ("controller", {}),
    ("controller", {"delay": 0.06}),
    ("controller", {"delay": 0.05, "offset": 0.01}),
    ("filter", {}),
]


@needs.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "timing"), CASES)
def test_every_bit_of_the_recorded_calls(name, timing, dtype, tmp_path):
    files = save_component_c(system_of(**timing), name, tmp_path, dtype=dtype)
    assert [f.name for f in files] == [f"{name}.h", f"{name}.c", f"{name}_test.c"]
    for level in ("-O0", "-O2"):
        assert verdict(built_test(tmp_path, name, level)) == (0, 0, "good")


@pytest.mark.parametrize(("compiler", "emulator"), CROSS)
@pytest.mark.parametrize(("name", "timing"), [CASES[1], CASES[3]])
def test_every_bit_on_other_processors(name, timing, compiler, emulator, tmp_path):
    needs.programs(compiler, emulator)
    save_component_c(system_of(**timing), name, tmp_path)
    program = built_test(tmp_path, name, "-static", "-O2", compiler=compiler)
    assert verdict(emulator, program) == (0, 0, "good")


def ticks(system, name, count, seed=3):
    """Yield what a component sees at its ticks, and z after each, by Python's evaluation."""
    layout, rng = system.layouts[name], np.random.default_rng(seed)
    z = system.initial_z
    for k in range(count):
        q, v = rm.random_state(ROBOT, rng)
        noise, t = rng.normal(size=system.noise_size), 0.02 * k
        x = np.zeros(system.nx)
        z = Instant(system, t, q, v, x, z).ticked([name], noise)
        late = layout.component.delay == 0.05
        if late:
            z = Instant(system, t, q, v, x, z).released([name])
        yield t, q, noise, z, late


@needs.compiler
@pytest.mark.parametrize("timing", [{}, {"delay": 0.06}, {"delay": 0.05}], ids=str)
def test_ticks_are_those_of_python(timing, tmp_path):
    """State carried over 100 ticks, with other parameters than those that were written."""
    system = system_of(**timing).with_parameters({"controller.kp": 2.3, "controller.limit": 5.0})
    save_component_c(system_of(**timing), "controller", tmp_path)
    c = CModule(tmp_path, "controller")
    c.set("parameters", kp=2.3, ki=1.7, limit=5.0, weights=[0.3, 0.25, -0.1])
    c.call("init")
    layout = system.layouts["controller"]
    seen = []
    for t, q, noise, z, late in ticks(system, "controller", 100):
        c.set("inputs", t=t, q=q, goal=0.3, bias=[0.0, 0.0, 0.0], noise_encoder=noise)
        c.call("update")
        if late:
            c.call("release")
        got = c.get("outputs", "command", "error", "force_elbow_pitch", "wrench_tool")
        np.testing.assert_allclose(got, z[layout.effective], rtol=1e-13, atol=1e-14)
        state = c.get("state", "integral", "last")
        np.testing.assert_allclose(state, z[layout.discrete], rtol=1e-13, atol=1e-14)
        seen.append(got[0])
    assert len(set(seen)) > 50  # the limit does not hide everything


def controllers():
    """The controllers of the library as components."""
    joints = rm.control.JointPD(ROBOT, {"elbow_pitch": 0.4, "wrist_roll": 0.1}, 5.0, 2.0, 0.01)
    attitude = rm.control.AttitudePD(ROBOT, goal=[1, 0, 0, 0], kp=300.0, kd=400.0, sample_time=0.05)
    return System(ROBOT, {"joints": joints, "attitude": attitude})


@needs.compiler
@pytest.mark.parametrize("name", ["joints", "attitude"])
def test_the_controllers_of_the_library(name, tmp_path):
    system = controllers()
    save_component_c(system, name, tmp_path)
    assert verdict(built_test(tmp_path, name, "-O2")) == (0, 0, "good")


@needs.compiler
def test_a_continuous_component_is_that_of_python(tmp_path):
    system = system_of()
    save_component_c(system, "filter", tmp_path)
    c, component = CModule(tmp_path, "filter"), system.components["filter"]
    layout = system.layouts["filter"]
    c.call("init")
    assert c.get("state", "y_state", "count").tolist() == [1.0, 1.0, 1.0, 0.0]
    (q, v), x = rm.random_state(ROBOT, 4), np.array([0.3, -0.2, 0.5])
    at = Instant(system, 0.0, q, v, x, system.initial_z)
    c.set("parameters", rate=component.rate)
    c.set("inputs", q=q, v=v, input_q=[0.1, 0.2, 0.3])
    c.set("state", y_state=x, count=0.0)
    for function in ("output", "derivative", "crossings"):
        c.call(function)
    np.testing.assert_allclose(c.get("outputs", "y"), at.signals["filter.y"], rtol=1e-13)
    np.testing.assert_allclose(c.get("outputs", "generalized_force"), -0.1 * v, rtol=1e-15)
    np.testing.assert_allclose(c.get("derivatives", "y_state"), at.derivative(), rtol=1e-14)
    np.testing.assert_allclose(c.get("events", "low", "bounce", "noted"), at.crossings())
    c.call("reset_low")
    assert c.get("state", "count") == at.reset("filter", "low")[3][layout.discrete] == 1.0
    c.call("reset_bounce")
    assert c.get("state", "y_state").tolist() == (-x).tolist()
    assert c.get("robot_state", "v").tolist() == (-v).tolist()


@needs.compiler
def test_the_test_program_finds_a_wrong_number(tmp_path):
    save_component_c(system_of(), "controller", tmp_path)
    source = tmp_path / "controller.c"
    text = source.read_text()
    wrong = re.sub(r"(state->integral = t\d+);", r"\1 + 1e-7;", text)
    assert wrong != text
    source.write_text(wrong)
    status, different, word = verdict(built_test(tmp_path, "controller"))
    assert (status, word) == (1, "WRONG")
    assert different >= 50


def test_only_what_is_read_is_an_input(tmp_path):
    header, source, _ = save_component_c(system_of(), "controller", tmp_path, name="my pi")
    text = header.read_text()
    assert header.name == "my_pi.h"
    assert "double t; /* time, s */" in text
    assert "double q[15]; /* configuration of the robot; reads q[11] */" in text
    assert " v[13]" not in text
    assert " * q: base 0-7, shoulder_roll 8, shoulder_pitch 9," in text
    assert "noise_encoder[2]" in text
    assert "double force_elbow_pitch;" in text
    called = set(re.findall(r"(\w+)\(", source.read_text()))
    assert called <= {"my_pi_init", "my_pi_update", "fabs"}  # no memory, no other library
    assert "malloc" not in source.read_text()


class Gain(Component):
    """A component without state, parameters and robot."""

    def interface(self, robot):
        return Interface(inputs={"u": Signal(60)}, outputs={"y": Signal(60)})

    def outputs(self, at):
        return {"y": 2.0 * at.inputs["u"]}


@needs.compiler
def test_empty_structs_are_left_out(tmp_path):
    for timing in ({}, {"sample_time": 0.1}):
        system = System(ROBOT, [Gain(**timing)], connect={"gain.u": 1.0})
        save_component_c(system, "gain", tmp_path)
        module = CModule(tmp_path, "gain")
        function = "update" if timing else "output"
        assert module.functions == {function: ["inputs", "outputs"]}
        assert verdict(built_test(tmp_path, "gain")) == (0, 0, "good")


@needs.compiler
@needs.cxx
def test_the_header_is_cpp_too(tmp_path):
    save_component_c(system_of(), "controller", tmp_path)
    main = tmp_path / "main.cpp"
    main.write_text(
        '#include "controller.h"\n#include "controller.h"\n'
        "int main() { controller_parameters p = CONTROLLER_PARAMETERS; return p.kp != 4.1; }\n"
    )
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic")
    subprocess.run(["g++", *flags, str(main), "-o", str(tmp_path / "main")], check=True)
    subprocess.run([tmp_path / "main"], check=True)


class Names(Component):
    """Names that clash with each other and with C."""

    int: float = 0.5

    def interface(self, robot):
        inputs = ["q", "input_q", "noise_n", "double"]
        return Interface(
            inputs={k: Signal() for k in inputs}, outputs={"force_elbow_pitch": Signal()},
            discrete={"force_wrist_roll": 0.0, "state": 1.0}, noise={"n": 1},
        )  # fmt: skip

    def outputs(self, at):
        i = at.inputs
        total = 1e0 * i["q"] + 10 * i["input_q"] + 100 * i["noise_n"] + 1000 * i["double"]
        return {"force_elbow_pitch": total + self.int * at.noise["n"][..., 0]}

    def act(self, at):
        return [JointForce(n, at.q[..., 8:9]) for n in ("elbow_pitch", "elbow_pitch", "wrist_roll")]

    def update(self, at):
        return {"force_wrist_roll": at.memory["state"], "state": -at.memory["state"]}


@needs.compiler
def test_names_that_clash(tmp_path):
    connect = {f"names.{k}": 0.0 for k in ("q", "input_q", "noise_n", "double")}
    system = System(ROBOT, [Names(sample_time=0.1)], connect=connect)
    save_component_c(system, "names", tmp_path)
    assert verdict(built_test(tmp_path, "names")) == (0, 0, "good")
    c = CModule(tmp_path, "names")
    c.call("init")
    c.set("parameters", int_=0.5)
    c.set("inputs", q=np.arange(15.0), input_q=1.0, input_q_2=2.0, noise_n=3.0, double_=4.0)
    c.set("inputs", noise_n_2=[8.0])
    c.call("update")
    outputs = ("force_elbow_pitch", "force_elbow_pitch_2", "force_elbow_pitch_3")
    assert c.get("outputs", *outputs).tolist() == [4325.0, 8.0, 8.0]
    assert c.get("outputs", "force_wrist_roll_2") == 8.0
    assert c.get("state", "force_wrist_roll", "state").tolist() == [1.0, -1.0]


class Untraceable(Component):
    """A component that converts a symbol to a number."""

    def interface(self, robot):
        return Interface(outputs={"y": Signal()})

    def outputs(self, at):
        return {"y": 1.0 if at.v[0] > 0.0 else 0.0}


class Nothing(Component):
    """A component that does nothing."""


def test_refusals(tmp_path):
    system = System(ROBOT, [Gain(), Untraceable(), Nothing()], connect={"gain.u": 1.0})
    with pytest.raises(UnknownName, match="of the system named 'gian'; did you mean 'gain'"):
        save_component_c(system, "gian", tmp_path)
    with pytest.raises(RemoraError, match=r"save_component_c takes an rm\.System first, not Robot"):
        save_component_c(ROBOT, "gain", tmp_path)
    with pytest.raises(UnknownName, match="float16"):
        save_component_c(system, "gain", tmp_path, dtype="float16")
    with pytest.raises(RemoraError, match=r"'untraceable' cannot be written as C: .*line"):
        save_component_c(system, "untraceable", tmp_path)
    with pytest.raises(RemoraError, match="'nothing' has no outputs"):
        save_component_c(system, "nothing", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_empty_arrays_are_refused(tmp_path):
    class Hollow(rm.Component):
        def interface(self, robot):
            return rm.Interface(discrete={"nothing": np.zeros(0)})

        def update(self, at):
            return {"nothing": at.memory["nothing"]}

    system = rm.System(slider(), [Hollow(sample_time=0.1)])
    with pytest.raises(rm.RemoraError, match=r"'hollow' cannot be .* 'nothing' has no numbers"):
        save_component_c(system, "hollow", tmp_path)
