"""`remora bench` and `remora compile` in processes of their own; no time is judged here."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import in_process
import remora as rm
from benchmark_scripts import chain, present
from remora.cli import kernel_timing
from remora.cli.compile import TRIPLES
from remora.codegen.export import objects
from remora.model.formats.yaml.yaml import save_robot

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(400)  # whole benchmarks, and peers
PEERS = [name for name in ("pinocchio", "mujoco") if importlib.util.find_spec(name)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def remora(*arguments, cache, columns=80, **environment):
    return run("-c", "from remora.cli import main; main()", *arguments,
               REMORA_CACHE=str(cache), COLUMNS=str(columns), **environment)  # fmt: skip


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, encoding="utf-8",
        timeout=300, check=False, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def small(tmp_path):
    """A robot that compiles in no time."""
    builder = rm.Builder("small").body("bus", mass=10, inertia=(1, 1, 1))
    builder.body("arm", mass=1, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    builder.joint("hinge", "revolute", "bus", "arm", xyz=(1, 0, 0), axis=(0, 0, 1))
    builder.frame("tip", "arm", xyz=(1, 0, 0))
    save_robot(builder.build(), tmp_path / "small.yaml")
    return str(tmp_path / "small.yaml")


def test_bench_prints_a_row_for_each_function(small, cache):
    done = remora(
        "bench", small, "--batch", "64", "--threads", "2", "--seconds", "0.05", cache=cache
    )
    assert done.returncode == 0, done.stderr
    for words in (*kernel_timing.TIMED.values(), "one call", "batch of 64", "2 threads"):
        assert words in done.stdout
    assert "from the cache" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("forward", "Jacobian"))]
    assert [len(re.findall(r"\d\.\d{3}\b", row)) for row in rows] == [3, 3]
    assert max(map(len, done.stdout.splitlines()[2:-3])) <= 80
    assert "…" not in done.stdout


def test_peers_that_are_not_installed_are_named(monkeypatch):
    for name in ("pinocchio", "mujoco"):
        monkeypatch.setitem(sys.modules, name, None)
    assert present(rm.load("servicer"), 1) == (
        [],
        ["Pinocchio is not installed (pip install pin)",
         "MuJoCo is not installed (pip install mujoco-core)"],
    )  # fmt: skip


@pytest.mark.skipif(not PEERS, reason="no peer is installed")
def test_a_peer_without_such_a_joint_is_left_out():
    builder = rm.Builder("odd").body("a", mass=1, inertia=(1, 1, 1))
    builder.body("b", mass=1, inertia=(1, 1, 1))
    builder.joint("j", "cylindrical", "a", "b", axis=(0, 0, 1))
    peers, missing = present(builder.build(), 1)
    assert not peers
    assert sum("cylindrical" in line for line in missing) == len(PEERS)


@pytest.mark.skipif(not PEERS, reason="no peer is installed")
def test_the_peers_of_the_benchmark_compute_the_same():
    kinds = ("revolute", "prismatic", "spherical")
    robot = rm.random_robot(3, 6, kinds=kinds, gravity=True)
    states = kernel_timing.random_states(robot, 8)
    peers, missing = present(robot, 1)
    assert len(peers) + len(missing) == 2
    for peer in peers:
        for function in kernel_timing.TIMED:
            for case in peer.cases(function, states, (1,)):
                assert math.isnan(case.deviation) or case.deviation < 1e-11, case.call


def test_measuring_divides_by_the_states_and_keeps_the_order():
    calls = []

    def case(states):
        return kernel_timing.Case(
            "jacobian", "Remora", "f", states, 1, "float64", calls.append, (states,)
        )

    one, ten = kernel_timing.measure([case(1), case(10)], 0.01)
    assert (one.case.states, ten.case.states) == (1, 10)
    assert 0 < ten.seconds < 1
    assert {1, 10} == set(calls)


def test_the_benchmarks_run_and_save_what_they_measured(tmp_path, cache):
    file = tmp_path / "growth.json"
    done = run(
        "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import compile_time;"
        "compile_time.SIZES = (1, 2); compile_time.main()",
        "--seconds", "0.01", "--repeats", "1", "--json", str(file), REMORA_CACHE=str(cache),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = json.loads(file.read_text(encoding="utf-8"))
    assert [row["bodies"] for row in data["growth"]] == [2, 3]
    assert data["machine"]["lanes_float64"] >= 2


@pytest.mark.parametrize("name", ["dynamics", "compile_time"])
def test_stored_results_are_there_with_their_picture(name):
    data = json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text(encoding="utf-8"))
    assert data["command"].startswith(f"python benchmarks/{name}.py")
    assert {"processor", "cores", "versions"} <= set(data["machine"])
    assert (ROOT / "benchmarks/results" / f"{name}.png").stat().st_size > 10_000


def test_the_tables_of_the_page_are_those_of_the_stored_results():
    done = run(
        "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import tables;"
        "text = tables.PAGE.read_text(encoding='utf-8'); assert tables.page(text) == text",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_compile_for_this_computer_fills_the_cache(small, tmp_path):
    place = tmp_path / "cache"
    done = remora("compile", small, cache=place)
    assert done.returncode == 0, done.stderr
    assert "Kernel forward_dynamics(q (..., 9), v (..., 7), tau (..., 7))" in done.stdout
    for word in ("lanes", "operations: ", "multiplications", str(place)):
        assert word in done.stdout
    assert len(list(place.iterdir())) == 3  # its source, and code for one state and for lanes


def test_compile_about_a_frame(small, cache):
    options = ("--function", "jacobian", "--dtype", "float32")
    done = remora("compile", small, *options, "--frame", "tip", cache=cache)
    assert done.returncode == 0, done.stderr
    assert "-> out (..., 6, 7), float32" in done.stdout


def test_compile_writes_c_and_objects(small, cache, tmp_path):
    for target in (["c"], ["object", "--triple", "riscv64"]):
        out = tmp_path / target[0]
        done = remora("compile", small, "--target", *target, "--out", str(out), cache=cache)
        assert done.returncode == 0, done.stderr
        written = [Path(line) for line in done.stdout.splitlines() if line.startswith("/")]
        assert sorted(written) == sorted(out.iterdir())
        assert {".h", {"c": ".c", "object": ".o"}[target[0]]} <= {file.suffix for file in written}
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = remora("compile", small, "--target", "c", "--out", str(blocked), cache=cache)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {blocked}/")
    assert "cannot be written: Not a directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile"], ["robot"]),
        (["compile", "nobody"], ["nobody", "servicer"]),
        (["compile", "servicer", "--function", "fly"], ["fly", "known", "forward_dynamics"]),
        (["compile", "servicer", "--target", "gpu"], ["gpu", "cpu, c, object"]),
        (["compile", "servicer", "--dtype", "int8"], ["int8", "float64, float32"]),
        (["compile", "servicer", "--function", "jacobian"], ["--frame", "tool"]),
        (["compile", "servicer", "--function", "jacobian", "--frame", "x"], ["'x'", "tool"]),
        (["compile", "servicer", "--frame", "tool"], ["not about a frame"]),
        (["compile", "servicer", "--target", "object"], ["--triple", "leon", "riscv64"]),
        (["compile", "servicer", "--triple", "leon"], ["--target object"]),
        (["compile", "servicer", "--out", "x"], ["--out", "cache"]),
        (["bench", "nobody"], ["nobody", "servicer"]),
        (["bench", "--batch", "1"], ["--batch 1"]),
        (["bench", "--threads", "-1"], ["--threads"]),
        (["bench", "--seconds", "nan"], ["--seconds"]),
    ],
)
def test_mistakes_get_a_message_and_exit_code_2(arguments, words):
    done = in_process.remora(*arguments, columns=200)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word.lower() in done.stderr.lower()


@pytest.mark.parametrize("command", ["bench", "compile"])
def test_help_explains(command, cache):
    done = remora(command, "--help", cache=cache)
    assert done.returncode == 0
    for word in ("Usage", "bundled", "servicer"):
        assert word in done.stdout


def test_the_help_of_triples_lists_all_targets():
    assert tuple(objects.TARGETS) == TRIPLES


def test_the_chain_of_the_growth_benchmark():
    robot = chain(5)
    assert (len(robot.bodies), robot.nv) == (6, 11)
    assert np.all(np.isfinite(rm.forward_dynamics(robot, rm.neutral(robot), *np.zeros((2, 11)))))
