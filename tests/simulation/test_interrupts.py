"""Ctrl-C works where the parent process ignores SIGINT, as scripts and nohup do."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import remora as rm
from processes import IGNORING_SIGINT
from remora.simulation.engine.interrupts import interruptible, uninterrupted


@pytest.fixture
def sigint():
    """Put back this process's handler of SIGINT at the end of the test."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_ignored_sigint_becomes_an_interrupt(sigint):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), interruptible(inherited=True):
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_program_that_ignores_sigint_by_itself_is_left_alone(sigint):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible(inherited=False):
        interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_of_the_program_is_left_alone(sigint):
    got = []
    signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    with interruptible(inherited=True):
        interrupt()
    assert got == [signal.SIGINT]


def test_other_threads_install_nothing(sigint):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seen = []

    def inside():
        with interruptible(inherited=True):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_IGN]


def test_an_interrupt_waits_for_the_end_of_a_short_block(ctrl_c):
    done = []

    def block():
        with uninterrupted():
            interrupt()
            done.append("block")
        done.append("after the interrupt")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_a_short_block_is_raised_as_it_is(ctrl_c):
    def block():
        with uninterrupted():
            interrupt()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_files_of_a_run_are_begun_whole(ctrl_c, monkeypatch, tmp_path):
    """An interrupt while they are made: they can be read, and the run begins there again."""
    robot = rm.load("vt18_satellite")
    make = Path.mkdir

    def interrupted(self, *arguments, **options):
        make(self, *arguments, **options)
        if self == tmp_path / "run":
            interrupt()

    monkeypatch.setattr(Path, "mkdir", interrupted)
    asked = (robot, rm.neutral(robot), np.zeros(robot.nv), 1.0)
    with pytest.raises(KeyboardInterrupt):
        rm.simulate(*asked, record=rm.Record(folder=tmp_path / "run"))
    monkeypatch.undo()
    assert rm.open_run(tmp_path / "run").status == "running"
    assert (
        rm.simulate(*asked, record=rm.Record(folder=tmp_path / "run", resume=True)).status
        == "complete"
    )


RUN = """
    import os, signal, warnings
    import numpy as np, remora as rm
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    robot = rm.load("vt18_satellite")

    def torque(t, q, v):
        if t > 0.5:
            os.kill(os.getpid(), signal.SIGINT)
        return np.zeros(9)

    warnings.simplefilter("ignore")
    run = rm.simulate(robot, rm.neutral(robot), np.zeros(9), 5.0, torque=torque,
                      integrator=rm.Integrator(max_step=0.1))
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    print(run.status)
"""
BATCH = """
    import os, signal, warnings
    import numpy as np, remora as rm
    from remora.simulation.batch import batch_phases
    from remora.codegen.integration.program_cpu import ProgramKernel
    plain, calls = ProgramKernel.__call__, []

    def interrupted(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *arguments, **options)

    ProgramKernel.__call__, batch_phases.BLOCK = interrupted, 4
    robot = rm.load("vt18_satellite")
    q = np.broadcast_to(rm.neutral(robot), (12, robot.nq))
    warnings.simplefilter("ignore")
    runs = rm.simulate_batch(robot, q, np.zeros(9), 0.1, integrator=rm.Integrator(step=0.1),
                             target=rm.Target(threads=1))
    assert runs.ok.tolist() == [True] * 4 + [False] * 8
    print(runs.status)
"""
WORKER = """
    import multiprocessing, signal
    from remora.simulation.engine.interrupts import interruptible

    def work():
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        print("interrupted by nobody", flush=True)

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
    assert worker.exitcode == 0
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [(RUN, "interrupted"), (BATCH, "interrupted"), (WORKER, "interrupted by nobody")],
    ids=["run", "batch", "worker of a pool"],
)
def test_in_a_background_job_of_a_script(code, said):
    done = subprocess.run(
        [*IGNORING_SIGINT, sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr
