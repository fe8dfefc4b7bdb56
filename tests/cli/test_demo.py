"""`remora demo`: a satellite is captured, everything is kept, files are written that open."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import remora as rm
from printed_text import assert_same_text
from processes import IGNORING_SIGINT, started

pytest.importorskip("viser", reason="the demo shows its run: extra `view`")
pytest.importorskip("matplotlib", reason="the demo plots its run: extra `plot`")

pytestmark = pytest.mark.timeout(400)  # a whole demo
REMORA = (
    sys.executable, "-c", "import sys; sys.argv[0] = 'remora'; from remora.cli import main; main()"
)  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [*REMORA, "demo", "--no-open"]
    plain = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    begun = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=plain,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    elapsed = time.perf_counter() - begun
    assert done.returncode == 0, done.stderr
    assert 0.0 < float(re.search(r"recorded in\s+([\d.]+) s", done.stdout)[1]) < elapsed
    return folder, done.stdout


def test_it_tells_what_happened(shown):
    _, text = shown
    for word in ("servicer", "turned by up to", "impulse", "mj lost", "linear momentum", "next"):
        assert word in text.lower()
    drifts = [float(x) for x in re.findall(r"momentum.*?(\d\.\de-\d+)\s+N", text)]
    assert len(drifts) == 2
    assert max(drifts) < 1e-12


def test_the_page_of_the_command_line_shows_it(shown):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^\$ remora demo --no-open\n(.*?)^```", page, flags=re.M | re.S)
    assert_same_text(shown[1], told, "cli.md")


def test_the_satellite_is_captured_and_comes_to_rest(shown):
    folder, text = shown
    run = rm.open_run(folder / "remora-demo" / "run")
    assert run.status == "complete"
    (capture,) = run.switches
    assert capture.activated == ("grapple",)
    assert "captured" in [event.name for event in run.events]
    k = int(np.flatnonzero(run.phase == capture.phase)[0])
    ends = [run.frame(x).position for x in ("servicer/tool", "target/fixture")]
    gap = np.linalg.norm(ends[1] - ends[0], axis=1)
    assert gap[k] == pytest.approx(0.012, abs=1e-6)  # m
    assert np.ptp(gap[k:]) < 1e-12
    kept = run.conservation()
    assert max(kept.linear_momentum.relative, kept.angular_momentum.relative) < 1e-13
    assert kept.constraint < 1e-12
    tumble = np.degrees(np.linalg.norm(run.frame_twist("target/bus")[:, :3], axis=1))
    assert tumble[0] > 3.0
    assert tumble[-1] < 0.05
    turned = rm.difference(run.robot, run.q[0], run.q[k])[:3]
    assert np.degrees(np.linalg.norm(turned)) > 2.0
    # the impulse is what the satellite's momentum changed by
    target = rm.load("defunct_satellite")
    h = [rm.momentum(target, run.q[i, 18:], run.v[i, 16:]) for i in (k - 1, k)]
    size = np.linalg.norm((h[1] - h[0])[:3])
    assert size == pytest.approx(np.linalg.norm(capture.impulses["grapple"][:3]), rel=1e-9)
    assert f"{size:.4g} N s" in text


def test_files_are_whole_and_ask_nobody(shown):
    folder, text = shown
    for name in ("report.html", "animation.html"):
        page = (folder / "remora-demo" / name).read_text(encoding="utf-8")
        assert name in text
        assert page.rstrip().endswith("</html>")
        assert 100_000 < len(page) < {"report.html": 3_000_000, "animation.html": 1_500_000}[name]


def test_it_never_writes_over_anything(shown):
    folder, _ = shown
    command = [*REMORA, "demo", "--no-open", "--out", "remora-demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "exists already" in done.stderr


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
    for claim in ("impulse", "momentum", "report.html", "Next"):
        assert claim not in out
