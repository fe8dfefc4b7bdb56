"""Campaigns under fire, by the benchmark: killed processes, and a full disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "campaign_failures.py"


def found(tmp_path, *options):
    file = tmp_path / "found.json"
    command = [sys.executable, str(BENCHMARK), *options, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.timeout(400)
def test_workers_scheduler_and_client_are_killed(tmp_path):
    """The benchmark compares all numbers bit for bit and counts the runs; here it is short."""
    size = ("--kills", "3", "--runs", "192", "--duration", "50", "--workers", "2", "--age", "0.6")
    made = found(tmp_path, "--only", "kills", *size)["kills"]
    assert made["workers killed"] >= 3
    assert made["scheduler killed"] == made["client killed"] == 1
    assert made["clients"] >= 3
    assert any("the scheduler is gone" in said for said in made["client said"])
    assert made["equal bits"]


@pytest.mark.timeout(400)
def test_a_full_disk_stops_a_campaign_and_harms_nothing(tmp_path):
    made = found(tmp_path, "--only", "disk")["disk"]
    assert made["complete when full"] < made["blocks"]
    assert "cannot be written" in made["said"]
    assert "resume continues" in made["said"]
    assert made["equal bits"]
