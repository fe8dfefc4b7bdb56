"""Shared by all tests: hypothesis profile, Ctrl-C, reference numbers; limits are in the plugins."""

import gc
import signal
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import needs
import spart

pytest_plugins = ["long_tests", "memory_guard", "passed_tests", "session_cache", "skip_summary"]

hypothesis.settings.register_profile(
    "remora", deadline=None, max_examples=100, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("remora")

# Traces hold millions of live objects: looking for cycles among them takes a tenth of the time.
gc.set_threshold(200_000, 20, 100)

ORACLE = Path(__file__).resolve().parents[2] / "shared" / "oracle"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20180911)


@pytest.fixture
def ctrl_c():
    """Have SIGINT raise KeyboardInterrupt, and children start with it at its default.

    Whoever started the tests may ignore it, as scripts do for their background jobs.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", params=spart.ROBOTS)
def reference(request) -> spart.Reference:
    """One of SPART's robots with its numbers; skipped where they are not beside the checkout."""
    if not ORACLE.is_dir():
        pytest.skip(needs.ORACLE_NEED)
    return spart.Reference(ORACLE, request.param)


@pytest.fixture(scope="session", params=spart.ROBOTS)
def unmerged(request) -> spart.Unmerged:
    """The same with fixed links as bodies, as SPART has them."""
    if not ORACLE.is_dir():
        pytest.skip(needs.ORACLE_NEED)
    return spart.Unmerged(ORACLE, request.param)
