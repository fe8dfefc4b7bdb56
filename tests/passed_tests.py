"""Two sessions that share the work: what passed in the first is left out of the second.

    pytest --write-passed=FILE      write the ids of the tests that passed
    pytest --without-passed=FILE    leave out the tests that are listed there

`.ci/run` uses it: first a stranger's `make test` on a machine that has no tools, then everything
that did not run there.
"""

from pathlib import Path

import pytest

_passed = pytest.StashKey[set[str]]()


def pytest_addoption(parser):
    group = parser.getgroup("remora")
    group.addoption("--write-passed", type=Path, metavar="FILE")
    group.addoption("--without-passed", type=Path, metavar="FILE")


def pytest_configure(config):
    config.stash[_passed] = set()
    config.pluginmanager.register(_Recorder(config.stash[_passed]))


class _Recorder:
    """Keeps the ids of passed tests; with workers, the session that started them has them all."""

    def __init__(self, passed):
        self.passed = passed

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        elif report.failed:  # at its end
            self.passed.discard(report.nodeid)


def pytest_collection_modifyitems(config, items):
    file = config.getoption("--without-passed")
    if file is not None:
        passed = set(file.read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid not in passed]


def pytest_sessionfinish(session):
    file = session.config.getoption("--write-passed")
    if file is not None and not hasattr(session.config, "workerinput"):
        ids = sorted(session.config.stash[_passed])
        file.write_text("".join(f"{test}\n" for test in ids), encoding="utf-8")
