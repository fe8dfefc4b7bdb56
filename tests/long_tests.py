"""Tests that `make test` leaves to `make test-all`: those of `long_tests.txt` are marked `slow`.

Each test's record (JUnit) has the processor time that it and its ended children took, which other
work on the machine does not change much.
"""

import os
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("long_tests.txt")
COLLECTED = pytest.StashKey[set[str]]()
#: Name of the property in records, s.
PROCESSOR_TIME = "processor_seconds"
_begun = pytest.StashKey[float]()
_LEFT = pytest.StashKey[int]()


def listed(text):
    """Return the ids in the text of a list: one a line, but for comments and blank lines."""
    lines = (line.strip() for line in text.splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def missing(ids, collected, named=()):
    """Return the listed ids that stand for no test any more, in order.

    Args:
        ids: of the list.
        collected: ids of all tests that were found.
        named: what the session was asked to collect; of a file of which single tests are named,
            and of one that has none here (it may need a package), nothing can be said.
    """
    partly = {name.partition("::")[0] for name in named if "::" in name}
    whole = {test.partition("::")[0] for test in collected} - partly
    root = LIST.parents[1]
    return sorted(
        test
        for test in ids - collected
        if test.partition("::")[0] in whole or not (root / test.partition("::")[0]).is_file()
    )


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config, items):
    config.stash[COLLECTED] = {item.nodeid for item in items}
    ids = listed(LIST.read_text(encoding="utf-8"))
    long = [item for item in items if item.nodeid in ids]
    for item in long:
        item.add_marker(pytest.mark.slow)
    if config.option.markexpr == "not slow":
        config.stash[_LEFT] = len(long)
        if hasattr(config, "workeroutput"):
            config.workeroutput["long_tests"] = len(long)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a worker counted: all of them have the same tests."""
    node.config.stash[_LEFT] = (getattr(node, "workeroutput", None) or {}).get("long_tests", 0)


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(_LEFT, 0):
        terminalreporter.write_line(f"left out: {count:,} long tests (make test-all runs them)")


def _processor_time():
    """Return the processor time of this process and its ended children, s."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_begun] = _processor_time()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        seconds = _processor_time() - item.stash[_begun]
        item.user_properties.append((PROCESSOR_TIME, round(seconds, 2)))
