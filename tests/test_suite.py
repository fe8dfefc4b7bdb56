"""The suite itself: long tests, memory, caches, time limits, interrupts."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import choose_long_tests
import long_tests
import memory_guard
from memory_guard import Peak
from processes import IGNORING_SIGINT

TESTS = Path(__file__).parent


def session(folder, code, *arguments, before=(), **environment):
    """Run pytest on a file with this code, in a folder and a process of its own."""
    (folder / "test_it.py").write_text(textwrap.dedent(code))
    (folder / "pytest.ini").write_text("[pytest]\n")
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )  # fmt: skip


# Long tests -------------------------------------------------------------------------------------


def test_every_long_test_exists(request):
    """A test that was renamed or removed must leave tests/long_tests.txt, too."""
    ids = long_tests.listed(long_tests.LIST.read_text(encoding="utf-8"))
    collected = request.config.stash[long_tests.COLLECTED]
    assert long_tests.missing(ids, collected, request.config.args) == []


def test_missing_long_tests_are_found():
    ids = {
        "tests/test_docs.py::test_gone", "tests/test_docs.py::test_here",
        "tests/test_gone.py::test_a", "tests/test_examples.py::test_not_collected_here",
    }  # fmt: skip
    collected = {"tests/test_docs.py::test_here", "tests/test_docs.py::test_other"}
    gone = ["tests/test_docs.py::test_gone", "tests/test_gone.py::test_a"]
    assert long_tests.missing(ids, collected) == gone
    named = ["tests/test_docs.py::test_here"]
    assert long_tests.missing(ids, collected, named) == gone[1:]


def test_listed_tests_are_marked_slow(request):
    slow = {item.nodeid for item in request.session.items if item.get_closest_marker("slow")}
    ids = long_tests.listed(long_tests.LIST.read_text(encoding="utf-8"))
    left = {item.nodeid for item in request.session.items}
    assert slow >= ids & left


JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite>
<testcase classname="tests.test_docs" name="test_a[x.y-1 2]" time="1.3">
<properties><property name="peak_memory_kib" value="[1, 2]"/>
<property name="processor_seconds" value="0.4"/></properties></testcase>
<testcase classname="tests.test_docs.TestIt" name="test_b" time="2.5"/>
<testcase classname="tests.algebra.test_screw" name="test_c" time="1.1">
<properties><property name="processor_seconds" value="1.6"/></properties></testcase>
</testsuite></testsuites>"""
PRINTED = """
============ slowest durations =============
1.00s setup    tests/test_docs.py::test_a[x.y-1 2]
0.30s call     tests/test_docs.py::test_a[x.y-1 2]
2.50s call     tests/test_docs.py::TestIt::test_b
1.10s teardown tests/algebra/test_screw.py::test_c

(12 durations < 0.005s hidden.  Use -vv to show these durations.)
"""
A, B, C = (
    "tests/test_docs.py::test_a[x.y-1 2]", "tests/test_docs.py::TestIt::test_b",
    "tests/algebra/test_screw.py::test_c",
)  # fmt: skip


@pytest.mark.parametrize("record", [JUNIT, PRINTED], ids=["junit", "durations"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--limit", "1.2"], {A, B}),
        (["--limit", "1.05"], {A, B, C}),
        (["--limit", "2"], {B}),
        (["--limit", "2", "--add"], {B, "tests/test_docs.py::test_kept"}),
    ],
    ids=["usual", "low", "high", "added"],
)
def test_long_tests_are_chosen_from_a_record(record, options, expected, tmp_path, capsys):
    (tmp_path / "record").write_text(record)
    out = tmp_path / "long_tests.txt"
    out.write_text("# old\ntests/test_docs.py::test_kept\n")
    choose_long_tests.main([str(tmp_path / "record"), "--out", str(out), *options])
    text = out.read_text()
    assert long_tests.listed(text) == expected
    assert text.splitlines()[2:] == sorted(expected)
    assert f"{len(expected)} of 3 tests are long" in capsys.readouterr().out


def test_long_tests_are_chosen_by_processor_time(tmp_path, capsys):
    (tmp_path / "record").write_text(JUNIT)
    out = tmp_path / "long_tests.txt"
    choose_long_tests.main([str(tmp_path / "record"), "--out", str(out), "--processor-time"])
    assert long_tests.listed(out.read_text()) == {C}
    assert "1 of 2 tests are long" in capsys.readouterr().out
    (tmp_path / "record").write_text(PRINTED)
    with pytest.raises(SystemExit):
        choose_long_tests.main([str(tmp_path / "record"), "--out", str(out), "--processor-time"])
    assert "a JUnit file is needed" in capsys.readouterr().err


def test_processor_time_is_in_the_record(tmp_path):
    code = """
        import subprocess, sys, time
        BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

        def test_own(): burn()
        def test_child(): subprocess.run([sys.executable, "-c", BUSY])
        def test_sleep(): time.sleep(0.6)

        def burn():
            end = time.process_time() + 0.5
            while time.process_time() < end: pass
    """
    record = tmp_path / "record.xml"
    done = session(tmp_path, code, "-p", "long_tests", f"--junitxml={record}")
    assert done.returncode == 0, done.stdout
    seconds = choose_long_tests.durations(record.read_text(), tmp_path, processor_time=True)
    assert seconds["test_it.py::test_own"] >= 0.45
    assert seconds["test_it.py::test_child"] >= 0.45
    assert seconds["test_it.py::test_sleep"] < 0.3


@pytest.mark.parametrize("record", ["", "nothing", "<?xml version='1.0'?><a>"])
def test_what_is_no_record_is_refused(record, tmp_path, capsys):
    (tmp_path / "record").write_text(record)
    out = tmp_path / "long_tests.txt"
    with pytest.raises(SystemExit) as ended:
        choose_long_tests.main([str(tmp_path / "record"), "--out", str(out)])
    assert ended.value.code == 2
    assert "record: " in capsys.readouterr().err
    assert not out.exists()


# Memory -----------------------------------------------------------------------------------------

GREEDY = """
    import subprocess, sys
    import memory_guard
    memory_guard.LIMIT = 200 << 10  # KiB

    def take():
        return len(bytearray(b"x") * (300 << 20))

    def test_before(): pass
    def test_own(): take()
    def test_between(): pass
    def test_child(): subprocess.run([sys.executable, "-c", "bytearray(b'x') * (300 << 20)"])
    def test_after(): subprocess.run([sys.executable, "-c", "pass"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux")
def test_a_test_that_takes_too_much_memory_fails(tmp_path):
    done = session(tmp_path, GREEDY, "-p", "memory_guard", "-rE")
    wrong = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ERROR test")]
    assert wrong == ["test_it.py::test_own", "test_it.py::test_child"], done.stdout
    assert "5 passed, 2 errors" in done.stdout
    assert "a process that the test started took 0." in done.stdout
    assert "of children 0.3" in done.stdout
    assert done.stdout.count("more than 0.20 GiB") >= 2


def test_only_who_raises_the_peak_is_blamed():
    limit = memory_guard.LIMIT
    assert memory_guard.refusal(Peak(10, 10), Peak(limit, limit), limit) is None
    assert "2.50 GiB" in memory_guard.refusal(Peak(10, 10), Peak(limit * 5 // 4, 0), limit)
    assert memory_guard.refusal(Peak(2 * limit, 10), Peak(2 * limit, 10), limit) is None
    assert "started" in memory_guard.refusal(Peak(1, 2 * limit), Peak(1, 3 * limit), limit)


# Caches -----------------------------------------------------------------------------------------

CACHING = """
    import os, pathlib
    import remora as rm

    def test_a_kernel_is_kept_in_the_folder_of_the_session():
        rm.compile(rm.center_of_mass, rm.load("vt18_satellite"))
        folder = pathlib.Path(os.environ["XDG_CACHE_HOME"])
        assert any((folder / "remora").iterdir())
        pathlib.Path("folder").write_text(str(folder))

    def test_figures_need_no_home():
        import matplotlib
        assert matplotlib.get_cachedir().startswith(os.environ["XDG_CACHE_HOME"])
"""


def test_a_session_needs_no_home_and_leaves_nothing(tmp_path):
    """A home that nobody can write to, not even root, and a cache of the user that is named."""
    home = "/proc/nowhere"
    done = session(
        tmp_path, CACHING, "-p", "session_cache", "-W", "error::UserWarning",
        HOME=home, XDG_CACHE_HOME=f"{home}/.cache", REMORA_CACHE=f"{home}/kernels", MPLCONFIGDIR="",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    folder = Path((tmp_path / "folder").read_text())
    assert folder.name.startswith("remora-tests-")
    assert not folder.exists()
    assert str(folder) != os.environ["XDG_CACHE_HOME"]


def test_workers_share_the_folder_of_their_session(tmp_path):
    code = """
        import os, pathlib, pytest

        @pytest.mark.parametrize("k", range(8))
        def test_where(k, worker_id):
            place = os.environ["XDG_CACHE_HOME"]
            pathlib.Path(f"{worker_id}-{k}").write_text(place)
            assert pathlib.Path(place).is_dir()
    """
    done = session(tmp_path, code, "-p", "session_cache", "-n", "2", "--dist", "each")
    assert done.returncode == 0, done.stdout
    assert len({file.read_text() for file in tmp_path.glob("gw*-*")}) == 1
    assert len({file.name[:3] for file in tmp_path.glob("gw*-*")}) == 2


# Limits -----------------------------------------------------------------------------------------


def test_a_kept_folder_has_the_caches(tmp_path):
    kept = tmp_path / "kept"
    code = """
        import os, pathlib
        def test_it():
            assert "REMORA_TEST_CACHE" not in os.environ
            (pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "there").touch()
        """
    done = session(tmp_path, code, "-p", "session_cache", REMORA_TEST_CACHE=str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (kept / "there").exists()
    assert kept.stat().st_mode & 0o077 == 0


def test_the_second_session_runs_what_did_not_pass_in_the_first(tmp_path):
    code = """
        import pytest
        def test_passes(): pass
        def test_fails(): assert False
        def test_is_skipped(): pytest.skip("needs a tool")
        @pytest.fixture
        def broken():
            yield
            raise OSError
        def test_fails_at_its_end(broken): pass
        """
    options = ("-p", "passed_tests", "-p", "skip_summary", "-n", "2")
    done = session(tmp_path, code, *options, "--write-passed", "passed")
    assert "skipped: 1 needs a tool" in done.stdout
    ids = (tmp_path / "passed").read_text().splitlines()
    assert [name.partition("::")[2] for name in ids] == ["test_passes"]
    done = session(tmp_path, code, *options, "--without-passed", "passed")
    assert "1 failed, 1 passed, 1 skipped, 1 error" in done.stdout  # the one that fails at its end


def test_every_test_has_a_time_limit(request):
    assert request.config.pluginmanager.hasplugin("timeout")
    assert 0 < float(request.config.getini("timeout")) <= 120
    assert request.config.getini("faulthandler_exit_on_timeout")


INTERRUPTING = """
    import os, signal, subprocess, sys
    import pytest

    CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"

    def child():
        return subprocess.check_output([sys.executable, "-c", CHILD], text=True).strip()

    def test_with(ctrl_c):
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert child() == "False"

    def test_without():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert child() == "True"
"""


def test_tests_that_interrupt_work_in_a_background_job_of_a_script(tmp_path):
    done = session(tmp_path, INTERRUPTING, "-p", "conftest", before=IGNORING_SIGINT)
    assert done.returncode == 0, done.stdout
