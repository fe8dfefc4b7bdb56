"""One digest by value: what changes a value or what a function does changes the digest."""

import copy
import dataclasses
import enum
import functools
import importlib.util
import math
import os
import pickle
import subprocess
import sys
import threading
import types
from pathlib import Path

import casadi
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import remora as rm
from remora.identity.digest import NoIdentity, digest, digest_or_none, encode
from remora.identity.sources import digest_of_files

GAIN = 2.0
SETTINGS = types.ModuleType("settings_of_the_test")
SETTINGS.gain = 1.0


@dataclasses.dataclass(frozen=True)
class Law:
    gain: float
    limits: tuple = (1.0, 2.0)

    def __call__(self, t, q, v):
        return -self.gain * v


class Slotted:
    __slots__ = ("__private", "gain")

    def __init__(self, gain, private=0):
        self.gain, self.__private = gain, private

    def law(self, t, q, v):
        return -self.gain * v


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)

    def law(self, t, q, v):
        return -self.gain * v


class Cached(Plain):
    @functools.cached_property
    def doubled(self):
        return 2 * self.gain


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(tuple):
    pass


def with_closure(gain, inner=None):
    def law(t, q, v):
        return -gain * v if inner is None else inner(t, q, v)

    return law


def with_default(gain):
    def law(t, q, v, gain=gain, *, other=gain):
        return -gain * v * other

    return law


def plus(t, q, v):
    return GAIN * v


def from_module(t, q, v):
    return SETTINGS.gain * v


def recursive(n):
    return 1 if n == 0 else n * recursive(n - 1)


def in_comprehension():
    return [GAIN for _ in range(2)]


DIFFERENT = [
    0, 1, -1, True, False, None, 0.0, -0.0, 1.0, math.nan, math.inf, 1j, "", "1", b"", b"1", ...,
    (),
    (1,), [1], [], {}, {1: 2}, {2: 1}, {"a": 1}, {"a": 1, "b": 2}, set(), {1}, frozenset({1, 2}),
    [[1], 2],
    [[1, 2]], [1, [2]], (1, (2,)), ("ab",), ("a", "b"), slice(1, 2), slice(1, 3), range(3),
    np.float64(1.0), np.float32(1.0), np.int64(1), np.array(1.0), np.array([1.0]), np.zeros((2, 3)),
    np.zeros((3, 2)), np.zeros(6), np.zeros(6, np.float32), np.zeros(6, int), np.array([-0.0] * 6),
    np.ones((1, 1)).view(np.matrix), np.ma.masked_array([1.0, 2.0], [0, 1]),
    np.ma.masked_array([1.0, 2.0], [0, 0]), np.array([1, "a"], dtype=object), np.dtype("f4"),
    np.dtype("f8"), np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    Law(1.0), Law(2.0), Law(1.0, (1.0, 3.0)), Slotted(1.0), Slotted(2.0), Slotted(1.0, 1),
    Plain(gain=1.0), Plain(gain=2.0), Plain(gain=[1.0]), Plain(gain={"a": [1.0]}), Cached(gain=1.0),
    Plain(other=1.0), Point((1,)), Point((2,)), Color.RED, Color.BLUE, Path("a"), Path("b"),
    types.SimpleNamespace(a=1), types.SimpleNamespace(a=2), Law, Plain, Cached,
    with_closure(1.0), with_closure(2.0), with_closure([1.0]), with_closure(np.array([1.0])),
    with_closure(0, with_closure(1.0)), with_closure(0, with_closure(2.0)), with_default(1.0),
    with_default(2.0), Plain(gain=1.0).law, Plain(gain=2.0).law, Slotted(1.0).law, Slotted(3.0).law,
    functools.partial(with_closure, 1.0), functools.partial(with_closure, 2.0),
    functools.partial(with_closure, gain=1.0), plus, recursive, from_module, lambda t: 1.0,
    lambda t: 2.0, lambda t: t, np.sin, np.cos, math.sin, math.cos, len, [1, 2].count, [1, 3].count,
    str.upper, str.lower, rm.mass_matrix, rm.bias_force, CubicSpline([0, 1, 2], [0, 1, 0]),
    CubicSpline([0, 1, 2], [0, 2, 0]), np.random.default_rng(1), np.random.default_rng(2),
    casadi.DM([1.0]), casadi.DM([2.0]), functools.lru_cache(plus), np.linalg.norm,
]  # fmt: skip


def test_all_different_values_have_different_digests():
    digests = [digest(x) for x in DIFFERENT]
    for i, a in enumerate(digests):
        for j in range(i):
            assert a != digests[j], (DIFFERENT[i], DIFFERENT[j])


@pytest.mark.parametrize("value", DIFFERENT, ids=lambda x: type(x).__name__)
def test_the_same_value_has_the_same_digest(value):
    assert digest(value) == digest(value)
    if isinstance(value, types.FunctionType) and value.__name__ in ("law", "<lambda>"):
        return  # cannot be copied
    assert digest(copy.deepcopy(value)) == digest(value)


def test_made_twice_is_the_same():
    assert digest(with_closure(1.0)) == digest(with_closure(1.0))
    assert digest(with_default(1.0)) == digest(with_default(1.0))
    assert digest(Plain(gain=1.0).law) == digest(Plain(gain=1.0).law)
    assert digest([[1.0]] * 2) == digest([[1.0], [1.0]])  # shared or not


def test_arrays_are_compared_by_bits_however_they_are_printed_or_laid_out():
    a = np.array([1.0, 1.0 + 1e-9])
    with np.printoptions(precision=4):
        assert digest(a) != digest(np.ones(2))
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1.0
    assert digest(long) != digest(other)
    x = np.arange(6.0).reshape(2, 3)
    assert digest(np.asfortranarray(x)) == digest(x) == digest(np.stack([x, x])[0])


def test_globals_that_a_function_names_count(monkeypatch):
    before, inner = digest(plus), digest(in_comprehension)
    through, module = digest(with_closure(0, plus)), digest(from_module)
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    assert digest(plus) != before
    assert digest(in_comprehension) != inner
    assert digest(with_closure(0, plus)) != through
    assert digest(from_module) == module
    monkeypatch.setattr(SETTINGS, "gain", 5.0)
    sys.modules.pop("settings_of_the_test", None)
    assert digest(from_module) != module


def test_a_method_that_is_replaced_counts(monkeypatch):
    before = digest(Plain(gain=1.0)), digest(Cached(gain=1.0).law)
    monkeypatch.setattr(Plain, "law", lambda self, t, q, v: 7.0 * v)
    assert digest(Plain(gain=1.0)) != before[0]
    assert digest(Cached(gain=1.0).law) != before[1]


def test_special_attributes_and_metaclasses_count():
    def made(gain):
        return type("Law", (), {"__call__": functools.partial(scaled, gain)})()

    def typed(gain):
        kind = type("Kind", (type,), {"gain": property(lambda cls: gain)})
        return kind("Law", (), {})()

    assert digest(made(1.0)) == digest(made(1.0)) != digest(made(2.0))
    assert digest(typed(1.0)) == digest(typed(1.0)) != digest(typed(2.0))


def scaled(gain, t, q, v):
    return gain * v


def test_a_module_of_the_user_that_is_named_as_one_of_python_counts(monkeypatch, tmp_path):
    found = []
    for gain in (1.0, 2.0):
        file = tmp_path / f"{gain}" / "profile.py"
        file.parent.mkdir()
        file.write_text(f"def law(t, q, v):\n    return {gain} * v\n")
        spec = importlib.util.spec_from_file_location("profile", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "profile", module)
        spec.loader.exec_module(module)
        found.append(digest(module.law))
    assert found[0] != found[1]


INSTALLED = """
import sys, sysconfig
place = sys.argv[1]
paths = sysconfig.get_paths()
sysconfig.get_paths = lambda: paths | {"purelib": place}
sys.path.insert(0, place)
import laws.control
from remora.identity.digest import digest
print(digest(laws.control.law))
"""


def test_all_files_of_an_installed_package_count(tmp_path):
    package = tmp_path / "laws"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "control.py").write_text(
        "from laws.gains import GAIN\n\n\ndef law(t, q, v):\n    return GAIN * v\n"
    )
    found = []
    for gain in (1.0, 1.0, 2.0):
        (package / "gains.py").write_text(f"GAIN = {gain}\n")
        command = [sys.executable, "-B", "-c", INSTALLED, str(tmp_path)]
        found.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1] != found[2]


def test_an_import_within_a_function_is_the_same_before_and_after(monkeypatch):
    def law(t, q, v):
        import colorsys

        return colorsys.ONE_THIRD * v

    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    before = digest(law)
    law(0.0, 0.0, 1.0)
    assert "colorsys" in sys.modules
    assert digest(law) == before


def test_what_is_cached_does_not_count():
    one = Cached(gain=1.0)
    before = digest(one)
    assert one.doubled == 2.0
    assert digest(one) == before


def test_cycles():
    a, b = [1], [2]
    a.append(a)
    b.append(b)
    assert digest(a) != digest(b)
    c = [1]
    c.append(c)
    assert digest(a) == digest(c)
    one, two = Plain(gain=1.0), Plain(gain=1.0)
    one.other, two.other = two, one
    before = digest(one)
    two.gain = 3.0
    assert digest(one) != before


def test_deep_values_are_refused_rather_than_crashing():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NoIdentity, match="too deeply"):
        digest(deep)
    while deep:
        deep = deep[0]


@pytest.mark.parametrize(
    "value",
    [
        casadi.SX.sym("x"), np.array([casadi.SX.sym("x")]), threading.Lock(), (i for i in "a"),
        with_closure(threading.Lock()), Plain(gain=threading.Lock()).law, np.frompyfunc(len, 1, 1),
        sys.__stdout__, Law(casadi.SX.sym("x")), SETTINGS, lambda: globals()["GAIN"],
        lambda: eval("GAIN"), lambda name: getattr(SETTINGS, name), lambda: vars(SETTINGS)["gain"],
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_what_has_no_value_is_refused(value):
    with pytest.raises(NoIdentity):
        digest(value)
    assert digest_or_none(value) is None


def test_the_error_says_where():
    with pytest.raises(NoIdentity, match=r"torque\.gain\[1\]\['lock'\] \(_thread.lock\)"):
        encode(Plain(gain=[0, {"lock": threading.Lock()}]), "torque")


def test_other_processes_agree(tmp_path):
    (tmp_path / "law.py").write_text(
        "import numpy as np\nK = {'a', 'b', 'c'}\n"
        "class Law:\n    def __init__(self, k):\n        self.k = k\n"
        "    def __call__(self, t, q, v):\n        return -self.k * v * len(K)\n"
        "def make(k):\n    return lambda t, q, v: Law(k)(t, q, v) + np.ones(3)\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport law\n"
        "from remora.identity.digest import digest\nprint(digest(law.make(2.0), law.Law(3.0)))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_pickled_copies_agree():
    for value in (Law(1.0), Slotted(1.0), Plain(gain=[1.0]), rm.load("servicer")):
        assert digest(pickle.loads(pickle.dumps(value))) == digest(value)


def test_source_files_in_any_depth_count(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    file = tmp_path / "a" / "b" / "c" / "d.py"
    file.write_text("x = 1\n")
    before = digest_of_files(tmp_path, ("a",))
    file.write_text("x = 2\n")
    changed = digest_of_files(tmp_path, ("a",))
    file.rename(file.with_name("e.py"))
    assert len({before, changed, digest_of_files(tmp_path, ("a",))}) == 3


def test_source_files_count_by_name_and_content_and_nothing_else_does(tmp_path):
    for name in ("a/x.py", "b/y.py", "z.py", "folder.py/w.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = digest_of_files(tmp_path, (".",))
    (tmp_path / "a" / "x.pyc").write_text("compiled")
    (tmp_path / "c").mkdir()
    assert digest_of_files(tmp_path, (".",)) == before
    assert digest_of_files(tmp_path, ("a", "b")) != digest_of_files(tmp_path, ("b", "a"))
    seen = {before}
    for name in ("a/x.py", "b/y.py", "z.py", "folder.py/w.py"):
        (tmp_path / name).write_text(name + " ")
        seen.add(digest_of_files(tmp_path, (".",)))
    (tmp_path / "c" / "new.py").write_text("")
    seen.add(digest_of_files(tmp_path, (".",)))
    (tmp_path / "a" / "x.py").replace(tmp_path / "b" / "x.py")
    seen.add(digest_of_files(tmp_path, (".",)))
    assert len(seen) == 7
