"""`remora report` as a user meets it: one file, or one clear message."""

import os
import subprocess
import sys

import numpy as np
import pytest

import remora as rm
from in_process import remora

pytest.importorskip("matplotlib")


def process(*arguments):
    command = [sys.executable, "-c", "from remora.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "first.zarr"
    robot = rm.load("servicer")
    torque = {"elbow_pitch": 1.0}
    rm.simulate(
        robot,
        rm.neutral(robot),
        np.zeros(robot.nv),
        0.5,
        torque=torque,
        record=rm.Record(folder=place),
    )
    return place


def refused(done, *texts):
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    for text in texts:
        assert text in done.stderr


def test_a_report_is_written_beside_the_run(folder):
    done = process("report", folder, "--no-animation")
    assert done.returncode == 0, done.stderr
    file = folder.with_suffix(".html")
    assert str(file) in done.stdout
    assert "elbow_pitch" in file.read_text(encoding="utf-8")


def test_a_report_is_written_where_it_is_wanted(folder, tmp_path):
    file = tmp_path / "other.html"
    done = remora("report", folder, "--out", file, "--title", "Review 3", "--no-animation")
    assert done.returncode == 0, done.stderr
    assert "<h1>Review 3</h1>" in file.read_text(encoding="utf-8")


def test_a_report_is_not_overwritten_silently(folder, tmp_path):
    file = tmp_path / "kept.html"
    file.write_text("mine", encoding="utf-8")
    refused(remora("report", folder, "--out", file, "--no-animation"), "exists already; --force")
    assert file.read_text(encoding="utf-8") == "mine"
    done = remora("report", folder, "--out", file, "--no-animation", "--force")
    assert done.returncode == 0, done.stderr
    assert "elbow_pitch" in file.read_text(encoding="utf-8")


def test_what_cannot_be_read_is_one_message(tmp_path):
    refused(remora("report", tmp_path / "nowhere"), "nowhere", "no such folder")
    refused(remora("report", tmp_path), "no run in this folder")


def test_a_damaged_run_is_one_message(folder, tmp_path):
    robot = rm.load("servicer")
    place = tmp_path / "run"
    rm.simulate(robot, rm.neutral(robot), np.zeros(robot.nv), 0.5, record=rm.Record(folder=place))
    (place / "q" / "zarr.json").write_text("{", encoding="utf-8")
    refused(remora("report", place), "q", "damaged")


def test_a_half_written_run_gives_a_report_that_says_so(folder, tmp_path):
    code = (
        "import os, sys, numpy as np, remora as rm\n"
        "robot = rm.load('servicer')\n"
        "def law(t, q, v):\n"
        "    if t > 0.3: os._exit(9)\n"
        "    return np.zeros(robot.nv)\n"
        "rm.simulate(robot, rm.neutral(robot), np.zeros(robot.nv), 1.0, torque=law,\n"
        "    integrator=rm.Integrator('rk4', step=0.01), record=rm.Record(folder=sys.argv[1]))\n"
    )
    place = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", code, place], check=False, timeout=120)
    assert killed.returncode == 9
    done = remora("report", place, "--no-animation")
    assert done.returncode == 0, done.stderr
    assert "was killed" in place.with_suffix(".html").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_one_message(folder, tmp_path):
    refused(
        remora("report", folder, "--out", tmp_path, "--no-animation"), "is a folder; name a file"
    )
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    done = remora("report", folder, "--out", file / "report.html", "--no-animation")
    refused(done, "cannot be written")
    if os.access("/proc/version", os.R_OK):
        done = remora("report", folder, "--out", "/proc/report.html", "--no-animation")
        refused(done, "/proc/report.html", "cannot be written")


def test_help_can_be_followed():
    done = remora("report", "--help")
    assert done.returncode == 0
    assert "Example: remora report run.zarr" in " ".join(done.stdout.split())
