"""One component as C: the bits of the traced functions, tick after tick, here and under qemu."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import field

import numpy as np
import pytest

import remora as rm
from remora.algebra.array_ops import less, select, stack
from remora.components.actions import GeneralizedForce, JointForce, Wrench
from remora.components.c_component import save_component_c
from remora.components.component import Component, Interface, ZeroCrossing
from remora.components.evaluation import Instant
from remora.components.signals import Signal, State
from remora.components.system import System

CC = shutil.which("gcc")
STRICT = (
    "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wdouble-promotion",
)  # fmt: skip
CROSS = [
    ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
    ("powerpc-linux-gnu-gcc", "qemu-ppc"),
]
ROBOT = rm.load("servicer")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")


class Controller(Component):
    """A PI controller with anti-windup, noise and delay."""

    joint: str = "elbow_pitch"
    kp: float = 4.0
    ki: float = 1.5
    limit: float = 2.0
    weights: np.ndarray = field(default_factory=lambda: np.array([0.5, 0.25, -0.125]))

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


def build(folder, name, *flags, compiler=CC):
    program = folder / "program"
    command = [compiler, *STRICT, *flags, folder / f"{name}.c", folder / f"{name}_test.c", "-lm"]
    done = subprocess.run(
        [*map(str, command), "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return program


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) of (\d+) numbers differ.*: (\w+)$", done.stdout.strip())
    assert int(found[2]) > 100
    return done.returncode, int(found[1]), found[3]


CASES = [
    ("controller", {}),
    ("controller", {"delay": 0.06}),
    ("controller", {"delay": 0.05, "offset": 0.01}),
    ("filter", {}),
]


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "timing"), CASES)
def test_every_bit_of_the_recorded_calls(name, timing, dtype, tmp_path):
    files = save_component_c(system_of(**timing), name, tmp_path, dtype=dtype)
    assert [f.name for f in files] == [f"{name}.h", f"{name}.c", f"{name}_test.c"]
    for level in ("-O0", "-O2"):
        assert run(build(tmp_path, name, level)) == (0, 0, "good")


@pytest.mark.parametrize(("compiler", "emulator"), CROSS)
@pytest.mark.parametrize(("name", "timing"), [CASES[1], CASES[3]])
def test_every_bit_on_other_processors(name, timing, compiler, emulator, tmp_path):
    for program in (compiler, emulator):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    save_component_c(system_of(**timing), name, tmp_path)
    program = build(tmp_path, name, "-static", "-O2", compiler=compiler)
    assert run(emulator, program) == (0, 0, "good")
