"""Resuming a run: another control law is noticed wherever it keeps what differs."""

import dataclasses
import functools
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import remora as rm
from plain_settings import grouped
from remora.simulation.storage.fingerprint import fingerprint

ROBOT = rm.load("vt18_satellite")
Q, V = rm.neutral(ROBOT), np.full(9, 0.01)
GAIN = [1.0]
TABLE = {"gains": {"kd": 1.0}}


# Laws that keep a gain in different places --------------------------------------------------------


def in_default(k):
    def law(t, q, v, gain=k):
        return -gain * v

    return law


def in_keyword_default(k):
    def law(t, q, v, *, gain=k):
        return -gain * v

    return law


def in_closure(k):
    return lambda t, q, v: -k * v


def in_nested_closure(k):
    def inner(v):
        return -k * v

    def middle(v):
        return inner(v)

    return lambda t, q, v: middle(v)


def in_list(k):
    gains = [0.5, [k]]
    return lambda t, q, v: -gains[1][0] * v


def in_dict(k):
    gains = {"p": 0.0, "d": (k,)}
    return lambda t, q, v: -gains["d"][0] * v


def in_array(k):
    gains = np.full((100, 20), k)
    return lambda t, q, v: -gains[7, 3] * v


def in_set(k):
    gains = frozenset((k, "a", "b"))
    return lambda t, q, v: -max(x for x in gains if not isinstance(x, str)) * v


class Plain:
    def __init__(self, k):
        self.gains = {"kd": k}

    def law(self, t, q, v):
        return -self.gains["kd"] * v

    __call__ = law


class Slots:
    __slots__ = ("__kd", "sample_time")

    def __init__(self, k):
        self.__kd, self.sample_time = k, 0.1

    def __call__(self, t, q, v):
        return -self.__kd * v


class Holder:
    def __init__(self, k):
        self.inner = Plain(k)

    def __call__(self, t, q, v):
        return self.inner.law(t, q, v)


@dataclasses.dataclass(frozen=True)
class Frozen:
    kd: float
    sample_time: float = 0.05

    def __call__(self, t, q, v):
        return -self.kd * v


def by_class_attribute(k):
    return type("Own", (Plain,), {"kd": k, "__call__": lambda self, t, q, v: -self.kd * v})(0.0)


def by_global(k):
    GAIN[0] = k
    return read_global


def read_global(t, q, v):
    return -GAIN[0] * v


def by_global_of_another_function(k):
    GAIN[0] = k
    return lambda t, q, v: read_global(t, q, v)


def by_global_table(k):
    TABLE["gains"]["kd"] = k
    return lambda t, q, v: -TABLE["gains"]["kd"] * v


def scaled(gain, t, q, v, *, shift=0.0):
    return shift - gain * v


def in_function_attribute(k):
    def law(t, q, v):
        return -law.gain * v

    law.gain = k
    return law


def in_code(k):
    return eval(f"lambda t, q, v: -{k} * v")


def in_dictionary_of_functions(k):
    return {"J1": rm.ZeroOrderHold(lambda t, q, v: [-k * v[6]], 0.1)}


def in_pulse(k):
    return {"J1": rm.Pulse(0.0, 0.5, lambda t: k * t)}


LAWS = [
    in_default, in_keyword_default, in_closure, in_nested_closure, in_list, in_dict, in_array,
    in_set, Plain, Slots, Holder, Frozen, by_class_attribute, by_global,
    by_global_of_another_function, by_global_table, in_function_attribute, in_code,
    in_dictionary_of_functions, in_pulse,
    lambda k: Plain(k).law,
    lambda k: rm.ZeroOrderHold(Holder(k).inner.law, 0.1),
    lambda k: functools.partial(scaled, k),
    lambda k: functools.partial(scaled, 1.0, shift=k - 1.0),
    lambda k: functools.partial(functools.partial(Plain.law, Plain(k))),
]  # fmt: skip


@pytest.mark.parametrize("make", LAWS, ids=lambda f: f.__name__)
def test_another_gain_is_another_run(make, tmp_path):
    options = {"duration": 0.2, "out": tmp_path / "run"}
    first = rm.simulate(ROBOT, Q, V, **grouped(torque=make(1.0), **options))
    with pytest.raises(rm.RemoraError, match="contains another run"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=make(5.0), **options, resume=True))
    again = rm.simulate(ROBOT, Q, V, **grouped(torque=make(1.0), **options, resume=True))
    assert np.array_equal(again.v, first.v)


def test_another_row_of_a_table_is_another_run(monkeypatch, tmp_path):
    own = rm.dynamics.FORMULATIONS["composite"]

    def run(factor, **more):
        def hybrid(*arguments):
            vdot, tau = own.hybrid(*arguments)
            return factor * vdot, tau

        monkeypatch.setitem(
            rm.dynamics.FORMULATIONS, "mine", dataclasses.replace(own, hybrid=hybrid)
        )
        return rm.simulate(
            ROBOT, Q, V, 0.5, **grouped(formulation="mine", out=tmp_path / "run", **more)
        )

    first = run(1.0)
    assert np.array_equal(run(1.0, resume=True).q, first.q)
    with pytest.raises(rm.RemoraError, match=r"FORMULATIONS\['mine'\].*factor"):
        run(2.0, resume=True)


def test_the_message_says_what_differs(tmp_path):
    options = {"duration": 0.1, "out": tmp_path / "run"}
    phases = [rm.Phase(0.1), rm.Phase(0.1, torque=Holder(1.0))]
    rm.simulate(ROBOT, Q, V, **grouped(torque=in_dict(1.0), **options))
    with pytest.raises(rm.RemoraError, match=r"torque\.<gains>\['d'\]\[0\] is 1.0 there, 5.0 here"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=in_dict(5.0), **options, resume=True))
    with pytest.raises(rm.RemoraError, match=r"torque\.__code__ differs"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=in_closure(1.0), **options, resume=True))
    rm.simulate(ROBOT, Q, V, phases, record=rm.Record(folder=tmp_path / "two"))
    phases[1].torque.inner.gains["kd"] = 2.0
    text = r"phases\[1\]\.torque\.inner\.gains\['kd'\] is 1.0 there, 2.0 here"
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(ROBOT, Q, V, phases, record=rm.Record(folder=tmp_path / "two", resume=True))


@pytest.mark.parametrize("what", ["events", "prescribed", "base_wrench"])
def test_conditions_and_motions_are_compared_too(what, tmp_path):
    def made(k):
        return {
            "events": [rm.Event(lambda t, q, v: t - k, "late", "record")],
            "prescribed": {"J2": rm.Motion(lambda t: 0.1 * k * (1.0 - np.cos(t)))},
            "base_wrench": lambda t, q, v: k * np.ones(6),
        }[what]

    options = {"duration": 0.2, "out": tmp_path / "run"}
    v = V.copy()
    v[ROBOT.joints["J2"].v] = 0.0
    rm.simulate(ROBOT, Q, v, **grouped(**{what: made(0.1)}, **options))
    with pytest.raises(rm.RemoraError, match=rf"contains another run.*{what}.*<k> is 0.1 there"):
        rm.simulate(ROBOT, Q, v, **grouped(**{what: made(0.3)}, **options, resume=True))
    rm.simulate(ROBOT, Q, v, **grouped(**{what: made(0.1)}, **options, resume=True))


def test_kernels_are_known_by_what_they_compute(tmp_path):
    """A law with machine code in it is compared, before and after the code is made."""
    fast = rm.compile(ROBOT)
    mass = rm.compile(rm.mass_matrix, ROBOT)

    def law(gain):
        return lambda t, q, v: -gain * fast.mass_matrix(q) @ v - 0.0 * mass(q) @ v

    options = {"duration": 0.1, "out": tmp_path / "run"}
    rm.simulate(ROBOT, Q, V, **grouped(torque=law(0.1), **options))
    rm.simulate(ROBOT, Q, V, **grouped(torque=law(0.1), **options, resume=True))
    fast = rm.compile(ROBOT)
    rm.simulate(ROBOT, Q, V, **grouped(torque=law(0.1), **options, resume=True))
    fast = rm.compile(ROBOT.replace_body("body_1", mass=3.0))
    with pytest.raises(rm.RemoraError, match="contains another run"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=law(0.1), **options, resume=True))


# What cannot be compared --------------------------------------------------------------------------


#: Files that laws hold open; the test closes them.
OPENED = []


def with_file(path, k):
    file = path.open("a")
    OPENED.append(file)
    return lambda t, q, v: -k * v if file.writable() else None


def with_lock(path, k):
    lock = threading.Lock()
    return lambda t, q, v: -k * v + 0.0 * lock.locked()


def with_generator(path, k):
    steps = (x for x in range(10**9))
    return lambda t, q, v: -k * v + 0.0 * steps.gi_running


@pytest.fixture
def closed_files():
    """Close what laws hold open, whatever happens: left open, it would warn in a later test."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.mark.usefixtures("closed_files")
@pytest.mark.parametrize("make", [with_file, with_lock, with_generator], ids=lambda f: f.__name__)
def test_what_cannot_be_compared_needs_a_word(make, tmp_path):
    own = tmp_path / "log"
    options = {"duration": 0.1, "out": tmp_path / "run"}
    rm.simulate(ROBOT, Q, V, **grouped(torque=make(own, 1.0), **options))
    text = r"torque\.<\w+> .*cannot be compared by value.*assume_unchanged=True"
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(ROBOT, Q, V, **grouped(torque=make(own, 1.0), **options, resume=True))
    trusted = {**options, "resume": True, "assume_unchanged": True}
    rm.simulate(ROBOT, Q, V, **grouped(torque=make(own, 1.0), **trusted))
    with pytest.raises(rm.RemoraError, match=r"contains another run.*<k> is 1.0 there, 5.0 here"):
        rm.simulate(
            ROBOT, Q, V, **grouped(torque=make(own, 5.0), **trusted)
        )  # the rest is compared


def test_runs_that_do_not_say_what_acted(tmp_path):
    rm.simulate(ROBOT, Q, V, 0.1, torque=in_closure(1.0)).save(tmp_path / "run")
    options = {"torque": in_closure(1.0), "out": tmp_path / "run", "resume": True}
    with pytest.raises(rm.RemoraError, match=r"has no record of its loads.*assume_unchanged=True"):
        rm.simulate(ROBOT, Q, V, 0.1, **grouped(**options))
    assert (
        rm.simulate(ROBOT, Q, V, 0.1, **grouped(**options, assume_unchanged=True)).status
        == "complete"
    )
    with pytest.raises(rm.RemoraError, match="assume_unchanged needs resume=True"):
        rm.simulate(ROBOT, Q, V, 0.1, record=rm.Record(assume_unchanged=True))


class Integral:
    """A controller that remembers."""

    sample_time = 0.01

    def __init__(self):
        self.total = np.zeros(9)

    def __call__(self, t, q, v):
        if t > 0.45:
            raise KeyboardInterrupt
        self.total = self.total + 0.01 * v
        return -v - 5.0 * self.total


def test_a_controller_that_remembers_is_not_resumed_unasked(tmp_path):
    """What it had added up is lost, so the rest of the run would be another."""
    options = {"duration": 1.0, "out": tmp_path / "run"}
    with pytest.warns(RuntimeWarning, match="interrupted"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=Integral(), **options))
    text = r"torque\.total changed during the run.*assume_unchanged=True"
    with pytest.raises(rm.RemoraError, match=text):
        rm.simulate(ROBOT, Q, V, **grouped(torque=Integral(), **options, resume=True))
    used = Integral()
    used.total = np.ones(9)
    with pytest.raises(rm.RemoraError, match=r"contains another run.*torque\.total"):
        rm.simulate(ROBOT, Q, V, **grouped(torque=used, **options, resume=True))
    with pytest.warns(RuntimeWarning, match="interrupted"):
        rm.simulate(
            ROBOT, Q, V, **grouped(torque=Integral(), **options, resume=True, assume_unchanged=True)
        )


# In other processes -------------------------------------------------------------------------------

OTHER = """
    import sys
    sys.path.insert(0, TESTS)
    {space}
    from simulation.test_same_law import LAWS, fingerprint
    {space}
    def local(k):
        {space}
        names = {{"a", "b", "c", str(k)}}
        return lambda t, q, v: len(names) * v * k
    for make in (*LAWS, local):
        print(fingerprint("torque", make(1.0)).digest)
"""


def test_the_same_in_every_process():
    """Whatever the seed of hashes, the addresses, and the lines that the functions stand in."""
    found = []
    for seed, space in (("1", ""), ("2", "\n" * 20), ("random", "# a comment")):
        head = f"TESTS = {str(Path(__file__).parents[1])!r}\n"
        text = textwrap.dedent(OTHER).format(space=space)
        command = [sys.executable, "-c", head + text]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(LAWS) + 1
    here = [fingerprint("torque", make(1.0)).digest for make in LAWS[:6]]
    assert here == found[0][:6]
