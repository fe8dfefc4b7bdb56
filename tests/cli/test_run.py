"""`remora run` as a user meets it: in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import in_process
import remora as rm
from processes import IGNORING_SIGINT, started

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from remora.cli import main; main()", "run"]


def remora(*arguments, folder=None, user=None):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True, text=True, timeout=100, check=False, cwd=folder, user=user,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip


def test_the_schema_is_printed_and_kept_in_the_docs():
    done = remora("--schema")
    assert done.returncode == 0
    assert done.stdout == (ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8")
    assert json.loads(done.stdout)["properties"]["phases"]


def test_the_bundled_scenarios_are_listed():
    done = remora("--list")
    for name in rm.bundled("scenarios"):
        assert name in done.stdout


def test_a_run_is_told_and_saved(tmp_path):
    done = remora("vt18", "--out", tmp_path / "run", "--sample", 0.5)
    assert done.returncode == 0, done.stderr
    for word in ("complete", "70 s; 141 samples", "pulses", "momentum", "energy", str(tmp_path)):
        assert word in done.stdout.replace("\n", "")
    assert "NaN" not in done.stdout
    run = rm.open_run(tmp_path / "run")
    assert (run.status, len(run)) == ("complete", 141)
    again = remora("vt18", "--out", tmp_path / "run", "--sample", 0.5, "--resume")
    assert again.returncode == 0
    assert again.stdout == done.stdout


def test_events_and_early_ends_are_told():
    done = remora("grasp_push", "--quiet")
    spans = re.findall(r"(\d+\.\d{4}) to +(\d+\.\d{4}) s", done.stdout)
    assert len(spans) > 1
    edges = [spans[0][0], *(end for _, end in spans)]
    assert edges[0] == "0.0000"
    assert [start for start, _ in spans] == edges[:-1]
    ended = float(re.search(r"simulated +([\d.]+) s of at most 65 s", done.stdout)[1])
    assert float(edges[-1]) == pytest.approx(ended, abs=1e-3)
    assert "bus quiet (next)" in done.stdout
    assert "not conserved: forces on the base, external wrenches" in done.stdout


LONG = """\
scenario: 1
robot: servicer
start: {random: true}
phases:
  - {duration: 10000, controllers: [{law: attitude_pd, kp: 1, kd: 50, sample_time: 0.05}]}
limits: ignore
integrator: {name: dopri5, rtol: 1e-9}
output: {sample: 0.5}
"""


def test_a_run_that_is_stopped_or_killed_goes_on(tmp_path, ctrl_c):
    (tmp_path / "long.yaml").write_text(LONG)
    arguments = [*COMMAND, "long.yaml", "--out", "run", "--resume"]
    rows = [0]
    for before, number, end in (
        ((), signal.SIGINT, 130), ((), signal.SIGKILL, -9), (IGNORING_SIGINT, signal.SIGINT, 130),
    ):  # fmt: skip
        with started([*before, *arguments], cwd=tmp_path) as child:
            for _ in range(400):
                time.sleep(0.1)
                begun = (tmp_path / "run" / "t" / "zarr.json").exists()
                if begun and len(rm.open_run(tmp_path / "run")) > rows[-1] + 1:
                    break
            child.send_signal(number)
            out, error = child.communicate(timeout=60)
        assert child.returncode == end, error
        assert "Traceback" not in error
        run = rm.open_run(tmp_path / "run")
        rows.append(len(run))
        if end == 130:
            assert run.status == "interrupted"
            assert "to resume: remora run long.yaml --out run --resume" in out
    assert rows == sorted(set(rows))


def says(done, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_mistakes_get_one_message_and_exit_code_2(tmp_path):
    says(remora(folder=tmp_path), "name a scenario")

    def remora_run(*arguments, folder=None):
        return in_process.remora("run", *arguments, folder=folder)

    says(remora_run("unfolds"), "no bundled scenario named 'unfolds'", "vt18")
    says(remora_run("missing.yaml", folder=tmp_path), "missing.yaml", "No such file")
    says(remora_run(".", folder=tmp_path), "not a regular file")
    says(remora_run("vt18", "--resume"), "--out DIR")
    says(remora_run("vt18", "--sample", "-1"), "sample must be a positive number")
    says(remora_run("vt18", "--sample", "1e-12"), "too many samples")
    (tmp_path / "bad.yaml").write_text("scenario: 1\nrobot: servicer\nphases: [{duration: -1}]\n")
    says(remora_run("bad.yaml", folder=tmp_path), "bad.yaml: 1 fault", "line 3, phases[0].duration")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("mine")
    says(remora_run("vt18", "--out", "full", folder=tmp_path), "full: is not empty")
    says(remora_run("vt18", "--out", "full", "--resume", folder=tmp_path), "there is no run")
    says(remora_run("vt18", "--out", "full/thing", folder=tmp_path), "is a file")


def test_a_run_that_cannot_go_on_is_told(tmp_path):
    text = "scenario: 1\nrobot: servicer\nstart: {speeds: {elbow_pitch: 0.1}}\n"
    (tmp_path / "s.yaml").write_text(text + "phases: [{duration: 1, locked: [elbow_pitch]}]\n")
    says(remora("s.yaml", folder=tmp_path), "contradiction: joint 'elbow_pitch' moves at [0.1]")


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() == 0 or os.name == "nt", reason="root may write"
)
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o555)
    says(remora("vt18", "--out", tmp_path / "run"), "cannot be written: Permission denied")
    tmp_path.chmod(0o755)


def test_a_place_that_cannot_be_made():
    says(remora("vt18", "--out", "/proc/run"), "/proc/run: cannot be written")
