"""Tests that `make test` leaves to `make test-all`: those of `long_tests.txt` are marked `slow`."""

from pathlib import Path

import pytest

LIST = Path(__file__).with_name("long_tests.txt")
COLLECTED = pytest.StashKey[set[str]]()


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
    long = listed(LIST.read_text(encoding="utf-8"))
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)
