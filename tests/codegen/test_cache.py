"""Compiled objects on disk: found again, shared, and never loaded from an unsafe place."""

import dataclasses
import os
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import remora as rm
from remora.codegen import kernel_cache
from remora.dynamics.kernels.cache_keys import tables_digest

#: Entries of a compiled kernel: its source, the code for one state, the code for SIMD lanes.
EACH = 3

SCRIPT = """
import sys, numpy as np, remora as rm
robot = rm.load("vt18_satellite")
q, v = rm.random_state(robot, 0)
kernel = rm.compile(rm.forward_dynamics, robot)
traced = "graph" in vars(kernel)
print(traced, kernel(q, v, np.ones(9)).tobytes().hex())
"""


def run(folder, script=SCRIPT, **environment):
    env = {**os.environ, "REMORA_CACHE": str(folder), **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "kernels"
    place.mkdir(mode=0o700)
    return place


def entries(folder):
    return [f for f in folder.iterdir() if not f.name.startswith(".")]


def test_the_second_process_does_not_trace(folder):
    first, second = run(folder), run(folder)
    assert first[0] == "True"
    assert second[0] == "False"
    assert first[1] == second[1]
    assert len(entries(folder)) == EACH
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in entries(folder))


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text"])
def test_a_damaged_entry_is_made_anew(folder, damage):
    expected = run(folder)[1]
    before = {entry: entry.read_bytes() for entry in entries(folder)}
    traced: list[str] = []
    for entry, data in before.items():
        spoilt = {
            "empty": b"", "cut": data[: len(data) // 2], "text": b"hello",
            "flipped": data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
        }[damage]  # fmt: skip
        entry.write_bytes(spoilt)
        found = run(folder)
        assert found[1] == expected
        traced.append(found[0])
        assert {entry: entry.read_bytes() for entry in entries(folder)} == before
    assert sorted(traced) == ["False", "False", "True"]  # the source is needed for the code
    assert run(folder) == ["False", expected]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_is_not_used(folder, mode):
    expected = run(folder)[1]
    folder.chmod(mode)
    assert run(folder) == ["True", expected]
    folder.chmod(0o700)
    assert run(folder) == ["False", expected]


def test_an_entry_that_others_can_write_is_not_used(folder):
    expected = run(folder)[1]
    for entry in entries(folder):
        entry.chmod(0o666)
    assert run(folder) == ["True", expected]


def test_a_folder_below_one_that_others_can_write_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    run(shared / "kernels")
    assert not (shared / "kernels").exists() or not entries(shared / "kernels")


def test_many_processes_at_once(folder):
    env = {**os.environ, "REMORA_CACHE": str(folder)}
    processes = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = {p.communicate()[0].split()[1] for p in processes}
    assert all(p.returncode == 0 for p in processes)
    assert len(outputs) == 1
    assert len(entries(folder)) == EACH


def test_without_a_home_to_write_to_it_still_compiles(tmp_path):
    """A cache that cannot be made: a file stands where its folder should be."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(blocked / "kernels")[0] == "True"
    out = run("", SCRIPT, REMORA_CACHE="", XDG_CACHE_HOME=str(blocked / "cache"))
    assert out[0] == "True"


def test_no_compiler_and_no_tools_are_needed(folder):
    """With an empty PATH there is no gcc to be found."""
    assert run(folder, PATH="")[0] == "True"


def test_what_decides_a_kernel_is_in_its_key(folder, monkeypatch):
    monkeypatch.setenv("REMORA_CACHE", str(folder))
    robot = rm.load("vt18_satellite")
    rm.compile(rm.mass_matrix, robot)
    rm.compile(rm.mass_matrix, robot)
    assert len(entries(folder)) == EACH
    rm.compile(rm.mass_matrix, robot, dtype="float32")
    rm.compile(rm.mass_matrix, robot.replace_body("body_2", mass=np.asarray(5.5)))
    rm.compile(rm.mass_matrix, robot, parameters=["mass"])
    rm.compile(rm.forward_dynamics, robot)
    rm.compile(rm.forward_dynamics, robot.replace(gravity=np.array([0.0, 0.0, 1.0])))
    rm.compile(rm.forward_dynamics, robot, fixed={"formulation": "composite"})
    assert len(entries(folder)) == 7 * EACH


def test_functions_of_ones_own_are_kept_by_their_graph(folder, monkeypatch):
    monkeypatch.setenv("REMORA_CACHE", str(folder))
    robot = rm.load("vt18_satellite")
    for factor in (1.0, 2.0, 2.0):
        rm.compile(
            lambda robot, q, factor=factor: rm.center_of_mass(robot, q) * factor,
            robot,
            fixed={"factor": factor},
        )
    assert len(entries(folder)) == 2 * EACH


def test_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("REMORA_CACHE", str(tmp_path / "a"))
    assert kernel_cache.folder() == tmp_path / "a"
    monkeypatch.delenv("REMORA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert kernel_cache.folder() == tmp_path / "b" / "remora"


@pytest.mark.parametrize(
    ("table", "name"), [(rm.dynamics.FORMULATIONS, "articulated"), (rm.JOINT_TYPES, "free")]
)
def test_a_row_that_is_replaced_or_deleted_changes_the_key(table, name, monkeypatch):
    own, rows = tables_digest(), dict(table)
    with monkeypatch.context() as m:
        m.setitem(table, name, dataclasses.replace(table[name]))
        replaced = tables_digest()
    del table[name]
    deleted = tables_digest()
    table.clear()
    table.update(rows)  # in their order
    assert len({own, replaced, deleted}) == 3
    assert tables_digest() == own
