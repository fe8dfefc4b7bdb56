"""A batch that several threads share: every state once, nothing left running, nothing leaked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import needs
import remora as rm
from processes import started
from remora.codegen.kernel import SMALLEST_CHUNK
from remora.codegen.llvm.thread_team import run_shared

CHUNK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
ROBOT = rm.load("servicer")


def shared(compute, states, threads, **options):
    """Let a Python function compute the chunks."""
    function = CHUNK(lambda call, start, count, scratch: compute(start, count))
    return run_shared(ctypes.cast(function, ctypes.c_void_p).value, (), states, threads, **options)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(("states", "whole"), [(1, 8), (7, 8), (64, 8), (1000, 8), (50, 1), (3, 4)])
def test_every_state_is_computed_once(states, whole, threads):
    found = []
    shared(lambda start, count: found.append((start, count)), states, threads, whole=whole)
    taken = sorted(k for start, count in found for k in range(start, start + count))
    assert taken == list(range(states))
    for start, count in found:
        assert start % whole == 0
        assert count % whole == 0 or start + count == states


def test_the_numbers_of_the_call_and_scratch_memory_of_its_own_for_each_thread():
    together = threading.Barrier(3, timeout=60)
    seen, numbers = {}, set()

    def compute(call, start, count, scratch):
        if threading.get_ident() not in seen:
            seen[threading.get_ident()] = scratch
            together.wait()
        numbers.add(tuple((ctypes.c_int64 * 3).from_address(call)))

    function = CHUNK(compute)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert run_shared(address, (5, 6, 7), 300, 3, scratch=(4096, 64)) == 2
    assert not together.broken
    assert numbers == {(5, 6, 7)}
    assert sorted(seen.values()) == [4096, 4160, 4224]
    assert seen[threading.get_ident()] == 4096


def test_it_returns_only_after_a_helper_that_takes_long():
    """The caller has nothing left to compute and sleeps until the helper is done."""
    caller = threading.get_ident()
    entered, release, left = threading.Event(), threading.Event(), []

    def compute(start, count):
        if threading.get_ident() == caller:
            assert entered.wait(60)
        elif not entered.is_set():
            entered.set()
            assert release.wait(60)
            left.append(start)

    timer = threading.Timer(0.2, release.set)
    timer.start()
    shared(compute, 160, 2)
    assert len(left) == 1
    timer.join()


def test_many_callers_at_once_in_short_batches():
    """Helpers are woken, cancelled and shared by callers in every order."""

    def caller(seed):
        rng = np.random.default_rng(seed)
        energy = rm.compile(rm.kinetic_energy, ROBOT)
        n = 4 * SMALLEST_CHUNK
        q, v = rm.random_state(ROBOT, rng, (n,))
        expected = energy(q, v)
        for k in range(300):
            out = np.full(n, np.nan)
            energy(q, v, out=out, threads=2 + k % 3)
            assert np.array_equal(out, expected)

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(caller, range(4)))


def test_helpers_are_reused():
    def helpers():
        return sum(t.name.startswith("remora-") and t.daemon for t in threading.enumerate())

    shared(lambda start, count: None, 100, 4)
    before = helpers()
    assert before >= 3
    for _ in range(50):
        shared(lambda start, count: None, 100, 4)
    assert helpers() == before


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread")
def test_an_interrupt_comes_after_the_last_chunk(ctrl_c):
    """No thread goes on writing to an array that the interrupted caller gives up."""
    fd = rm.compile(rm.forward_dynamics, ROBOT)
    n, caller = 200_000, threading.get_ident()
    q, v = (np.resize(a, (n, a.shape[-1])) for a in rm.random_state(ROBOT, 1, (100,)))
    out = np.full((n, ROBOT.nv), np.nan)
    fd(q[:5000], v[:5000], v[:5000], threads=2)

    def interrupt():
        while np.isnan(out[0, 0]):
            time.sleep(1e-4)
        signal.pthread_kill(caller, signal.SIGINT)

    def interrupted():
        fd(q, v, v, out=out, threads=2)
        time.sleep(60)  # on a processor that is done before the signal

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    there = out.copy()
    other.join()
    assert np.array_equal(there, fd(q, v, v))


@needs.fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that there are threads is meant
def test_a_forked_process_starts_helpers_of_its_own():
    shared(lambda start, count: None, 100, 3)
    child = os.fork()
    if child == 0:
        together = threading.Barrier(3, timeout=60)
        first = threading.local()

        def compute(start, count):
            if not hasattr(first, "done"):
                first.done = True
                together.wait()

        shared(compute, 300, 3)
        os._exit(3 if together.broken else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sleeping_helpers_do_not_keep_a_process_alive():
    text = f"""
import remora as rm
robot = rm.load("servicer")
q, v = rm.random_state(robot, 1, ({3 * SMALLEST_CHUNK},))
print(rm.compile(rm.kinetic_energy, robot)(q, v, threads=3).shape)
"""
    with started([sys.executable, "-c", text]) as process:
        out, error = process.communicate(timeout=100)
    assert (process.returncode, out.strip(), error) == (0, f"({3 * SMALLEST_CHUNK},)", "")
