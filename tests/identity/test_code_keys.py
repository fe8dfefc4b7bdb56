"""Keys of code: none for functions that may read what is not in the key."""

import dataclasses
import functools
import math
import operator
import os
import random
import sys
import time
import types
from os import environ, getenv
from pathlib import Path

import casadi
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import remora as rm
from remora.identity.digest import code_key, digest
from sliders import slider

GAIN = 2.0
PLACE = Path("gains.txt")


@dataclasses.dataclass(frozen=True)
class Law:
    gain: float

    def __call__(self, t, q, v):
        return np.where(q > 0.0, -self.gain * v, math.pi * np.linalg.norm(v))


class Held(rm.Component):
    gain: float = 1.0

    def outputs(self, at):
        return {"u": rm.algebra.quaternion.mul(at.q, at.q), "w": rm.mass_matrix(at.robot, at.q)}


OWN = types.ModuleType("own_forces")
OWN.FORCE = 1.0


def force_of(module):
    return module.FORCE


class Push(rm.Component):
    def act(self, at):
        return rm.JointForce("slide", force_of(OWN))


def closure(value):
    return lambda t: value * t


PURE = [
    Law(1.0), Law(1.0).__call__, Held(), closure(1.0), CubicSpline([0, 1, 2], [0, 1, 0]), np.sin,
    np.linalg.solve, rm.mass_matrix, lambda q: casadi.sin(q), lambda q: [x for x in q if x in (1,)],
    functools.partial(closure, 2.0), lambda q: sorted(map(abs, q)), rm.control.JointPD,
    lambda q: np.stack([np.cos(GAIN * q), np.sin(q)], axis=-1),
]  # fmt: skip


@pytest.mark.parametrize("value", PURE, ids=lambda value: type(value).__name__)
def test_pure_code_has_a_key(value):
    assert code_key(value) is not None
    assert code_key(value) == code_key(value)


IMPURE = {
    "environment": lambda: os.environ["FORCE"],
    "environment, named": lambda: environ["FORCE"],
    "variable": lambda: os.getenv("FORCE"),
    "variable, named": lambda: getenv("FORCE"),
    "clock": lambda: time.time(),
    "random": lambda: random.random(),
    "random of NumPy": lambda: np.random.standard_normal(),  # noqa: NPY002
    "generator": closure(np.random.default_rng(0)),
    "file": lambda: open("gains.txt"),  # noqa: SIM115
    "path": lambda: PLACE.read_text(),
    "table": lambda: np.loadtxt("gains.txt"),
    "robot": lambda: rm.load("robot.yaml"),
    "within": lambda: [os.environ[n] for n in ("FORCE",)],
    "closure": (lambda module: lambda: module.environ["FORCE"])(os),
    "module as a value": lambda: (os, 1)[0].environ["FORCE"],
    "all of NumPy as a value": lambda: (np, 1)[0].random.standard_normal(),
    "module as a default": lambda module=os: module.environ["FORCE"],
    "NumPy as a default": lambda module=np: module.random.standard_normal(),
    "Remora as a value": lambda: (rm, 1)[0].load("robot.yaml"),
    "partial": functools.partial(os.getenv, "FORCE"),
}


@pytest.mark.parametrize("name", IMPURE)
def test_code_that_may_read_something_else_next_time_has_no_key(name):
    assert code_key(IMPURE[name]) is None


def test_a_module_of_the_user_counts_however_it_is_read(monkeypatch):
    """What is named at once counts by value; whoever gets the module may read anything of it."""
    own = types.ModuleType("own_gains")
    monkeypatch.setitem(sys.modules, "own_gains", own)
    held = {"own": own, "read": lambda module: module.GAIN, "attrgetter": operator.attrgetter}

    def imported(q):
        import own_gains as m

        return held["read"](m) * q

    readers = {text: eval(f"lambda: {text}", dict(held)) for text in (
        "own.GAIN", "read(own)", "attrgetter('GAIN')(own)", "own.__dict__['GAIN']",
        "own.__getattribute__('GAIN')", "[m.GAIN for m in (own,)]",
    )}  # fmt: skip
    own.GAIN = 1.0
    before = {name: code_key(reader) for name, reader in {**readers, "import": imported}.items()}
    own.GAIN = 4.0
    assert before["own.GAIN"] is not None
    for name, reader in {**readers, "import": imported}.items():
        assert before[name] is None or code_key(reader) != before[name], name


def test_a_component_that_passes_a_module_on_is_traced_anew(monkeypatch):
    system = rm.System(slider(), [Push()])
    for force in (1.0, 4.0):
        monkeypatch.setattr(OWN, "FORCE", force)
        run = rm.simulate(system, np.zeros(1), np.zeros(1), 1.0, record=rm.Record(progress=False))
        np.testing.assert_allclose(run.q[-1, 0], 0.5 * force)
        batch = rm.simulate_batch(
            system,
            np.zeros(1),
            np.zeros(1),
            1.0,
            integrator=rm.Integrator(step=0.1),
            record=rm.Record(progress=False),
        )
        np.testing.assert_allclose(batch.q[-1, 0], 0.5 * force)


def test_an_import_within_a_function_counts():
    def pure(q):
        import math

        return math.pi * q

    def impure(q):
        import os

        return float(os.environ["FORCE"]) * q

    def named(q):
        from numpy.random import standard_normal

        return standard_normal() * q  # noqa: NPY002

    assert code_key(pure) is not None
    assert code_key(impure) is None
    assert code_key(named) is None


def test_data_of_a_library_counts_by_value(monkeypatch):
    def law(q):
        return math.pi * q

    before = code_key(law)
    monkeypatch.setattr(math, "pi", 3.0)
    assert before is not None
    assert code_key(law) != before


def test_packages_that_a_user_installed_are_known_by_value(monkeypatch):
    """What they hold can be set at run time; by name alone it would not be seen."""
    package = types.ModuleType("some_laws")
    package.__file__ = os.path.join(os.path.dirname(pytest.__file__), "some_laws.py")
    exec("FORCE = 1.0\ndef law(q):\n    return FORCE * q\n", vars(package))
    monkeypatch.setitem(sys.modules, "some_laws", package)
    assert digest(package.law) is not None
    before = code_key(package.law)
    assert before is not None
    package.FORCE = 4.0
    assert code_key(package.law) not in (None, before)


def test_functions_of_the_library_have_different_keys():
    assert code_key(rm.mass_matrix) != code_key(rm.bias_force)


def test_long_functions_are_read_to_their_end():
    """Names beyond the 255th have arguments of several bytes."""
    lines = [f"    q = q + np.float64(x.attribute_{k})" for k in range(300)]
    for last, pure in (("np.sin(q)", True), ("np.random.standard_normal()", False)):
        text = "\n".join(["def law(q, x):", *lines, f"    return {last}"])
        held = {"np": np, "__name__": "__main__"}
        exec(text, held)
        assert (code_key(held["law"]) is not None) == pure
