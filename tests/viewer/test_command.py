"""`remora view`, and the files that play by themselves."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

import remora as rm
from processes import IGNORING_SIGINT, started
from remora.cli import main
from remora.viewer.report.animation_html import html_of, pace

COMMAND = [sys.executable, "-c", "from remora.cli import main; main()", "view"]


@pytest.fixture
def remora_view(monkeypatch, capsys):
    """Return the command in this process: (*arguments) -> exit code, output, errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["remora", "view", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


@pytest.mark.parametrize("before", [(), IGNORING_SIGINT], ids=["terminal", "background job"])
def test_a_page_is_served_until_it_is_interrupted(before, ctrl_c):
    command = [*before, *COMMAND, "servicer", "--no-open", "--port", "0"]
    with started(command, stderr=subprocess.STDOUT) as process:
        line = process.stdout.readline()
        url = re.match(r"http://127\.0\.0\.1:\d+", line)
        assert url, line
        with urllib.request.urlopen(url[0], timeout=20) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)[0]
    assert process.returncode == 0
    assert rest == ""


def test_a_run_becomes_a_file(remora_view, run, tmp_path):
    run.save(tmp_path / "run")
    code, out, err = remora_view(tmp_path / "run", "--html", tmp_path / "run.html", "--dark")
    assert code == 0, err
    assert re.search(r"run.html: \d\.\d\d MB, a stand-alone page", out)
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    code, out, err = remora_view(tmp_path / "run", "--html", tmp_path / "run.html")
    assert code != 0
    assert "exists already; --force replaces it" in err
    assert "darkMode:true" in text
    assert "<title>servicer - Remora</title>" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "not the folder of a run"),
        (["nowhere.urdf"], "nowhere.urdf"),
        (["."], "no run in this folder"),
        (["servicer", "--html", "a.html"], "--html is for runs"),
        (["servicer", "--port", "-3"], "a port is a number"),
    ],
)
def test_refusals_are_one_message(remora_view, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = remora_view(*arguments, "--no-open")
    assert code == 2
    assert err.startswith("error: ")
    assert message in err


def test_a_port_in_use_is_one_message(remora_view):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, err = remora_view("servicer", "--no-open", "--port", taken.getsockname()[1])
    assert code == 2
    assert re.fullmatch(r"error: port \d+ of 127.0.0.1 is in use: .*\n", err)


def test_the_pace_of_files():
    assert pace(20.0) == (1.0, 600)
    assert pace(600.0) == (10.0, 600)
    assert pace(1e9)[0] == pytest.approx(1e9 / 60)
    assert pace(0.1) == (0.02, 150)
    assert pace(0.0) == (1.0, 1)


def test_files_of_odd_runs(run, tmp_path):
    one = rm.Recording(run.robot, {}, {name: rows[:1] for name, rows in run.columns.items()})
    assert "__VISER_EMBED_DATA__" in html_of(one)
    none = rm.Recording(run.robot, {}, {name: rows[:0] for name, rows in run.columns.items()})
    with pytest.raises(rm.RemoraError, match="no samples"):
        rm.save_html(none, tmp_path / "a.html")
    with pytest.raises(rm.errors.InvalidValue, match="at least two"):
        rm.save_html(run, tmp_path / "a.html", pictures=1)
    with pytest.raises(rm.RemoraError, match="cannot be written"):
        rm.save_html(run, tmp_path / "no" / "a.html")
    with rm.view(one, port=0, open=False) as page:
        page.play()
        assert np.array_equal(page.q, one.q[0])


def test_names_cannot_become_commands(run):
    odd = run.robot.replace(name=r"\g<9></title><script>alert(1)</script>")
    text = html_of(rm.Recording(odd, {}, run.columns), pictures=2)
    assert "<script>alert" not in text
