"""`remora demo`: a target is reached, everything is kept, files are written that can be opened."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import remora as rm
from processes import IGNORING_SIGINT, started
from remora.algebra import pose

pytest.importorskip("viser", reason="the demo shows its run: extra `view`")
pytest.importorskip("matplotlib", reason="the demo plots its run: extra `plot`")

pytestmark = pytest.mark.timeout(400)  # a whole demo
REMORA = (sys.executable, "-c", "from remora.cli import main; main()")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [*REMORA, "demo", "--no-open"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_it_tells_what_happened(shown):
    _, text = shown
    for word in ("servicer", "base    turned by", "from the target", "linear momentum", "next"):
        assert word in text.lower()
    drifts = [float(x) for x in re.findall(r"momentum.*?(\d\.\de-\d+)\s+N", text)]
    assert len(drifts) == 2
    assert max(drifts) < 1e-12


def test_the_tool_is_where_it_should_be(shown):
    folder, _ = shown
    run = rm.open_run(folder / "remora-demo" / "run")
    assert run.status == "complete"
    goal = pose.translation(run.robot.frame("target").placement)
    assert np.linalg.norm(run.frame("tool").position[-1] - goal) < 1e-4  # m
    assert run.conservation().angular_momentum.relative < 1e-13
    assert np.degrees(np.linalg.norm(rm.difference(run.robot, run.q[0], run.q[-1])[:3])) > 2.0


def test_files_are_whole_and_ask_nobody(shown):
    folder, text = shown
    for name in ("report.html", "animation.html"):
        page = (folder / "remora-demo" / name).read_text(encoding="utf-8")
        assert name in text
        assert page.rstrip().endswith("</html>")
        assert 100_000 < len(page) < 4_000_000


def test_it_never_writes_over_anything(shown):
    folder, _ = shown
    command = [*REMORA, "demo", "--no-open", "--out", "remora-demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "is there already" in done.stderr


@pytest.mark.parametrize("before", [(), IGNORING_SIGINT], ids=["terminal", "background job"])
@pytest.mark.parametrize("begun", ["remora-demo", "remora-demo/run"], ids=["planning", "running"])
def test_ctrl_c_ends_it_without_claims(before, begun, tmp_path, ctrl_c):
    with started([*before, *REMORA, "demo", "--no-open"], cwd=tmp_path) as child:
        for _ in range(6000):
            if (tmp_path / begun).exists():
                break
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
    assert child.returncode == 130, error
    assert error == ""
    assert out.rstrip().endswith("interrupted: what was done until then is in remora-demo")
    for claim in ("from the target", "momentum", "report.html", "Next"):
        assert claim not in out
