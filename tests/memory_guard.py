"""No test takes more than 2 GiB: neither the process that runs it nor any process it starts.

Measured by the kernel, on Linux: the peak of the own process is reset before each test
(`clear_refs`) and read after it (`VmHWM`); ended children are in `RUSAGE_CHILDREN`, whose maximum
only grows; children that still run are asked. A child begins with the peak of the process that
started it, which is below the limit, too. So a run is clean only if no process ever exceeded it,
but after the first test that does, one with a smaller child is not noticed until that is mended.
"""

import ctypes
import gc
import re
import resource
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

#: KiB
LIMIT = 2 << 20
#: KiB; what earlier tests left behind is collected where the process holds so much more than then.
LEFT = 256 << 10
_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.M)
_HELD = re.compile(r"^VmRSS:\s*(\d+) kB", re.M)


class Peak(NamedTuple):
    """Most memory resident at a time, KiB."""

    own: int
    children: int


_before = pytest.StashKey[Peak]()


_collected = 512 << 10


def collect():
    """Free what earlier tests left behind, if it is much: a test's memory is its own.

    Traces leave millions of objects in cycles, which are collected rarely (conftest).
    """
    global _collected
    if _resident("self", _HELD) > _collected + LEFT:
        gc.collect()
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc has it
            trim(0)
        _collected = max(_collected, _resident("self", _HELD))


def reset():
    """Have the peak of this process begin at what it holds now, where the kernel allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak():
    """Return the peaks of this process since `reset` and of its children since its start."""
    children = [resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
    return Peak(_resident("self"), max(children + [_resident(p) for p in _descendants("self")]))


def _resident(process, of=_PEAK):
    try:
        found = of.search(Path(f"/proc/{process}/status").read_text())
    except OSError:  # it has just ended
        return 0
    return int(found[1]) if found else 0


def _descendants(process):
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = thread.read_text().split()
        except OSError:
            continue
        for child in children:
            yield child
            yield from _descendants(child)


def refusal(before, after, limit):
    """Return what is wrong with the peaks after a test, in words; None where nothing is."""
    for who, was, now in (
        ("the process of the test", before.own, after.own),
        ("a process that the test started", before.children, after.children),
    ):
        if now > max(was, limit):
            return f"{who} took {now / 2**20:.2f} GiB of memory, more than {limit / 2**20:.2f} GiB"
    return None


if sys.platform == "linux":

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(item):
        collect()
        reset()
        item.stash[_before] = peak()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(item):
        result = yield
        after = peak()
        item.user_properties.append(("peak_memory_kib", list(after)))
        wrong = refusal(item.stash[_before], after, LIMIT)
        if wrong:
            pytest.fail(wrong, pytrace=False)
        return result


def pytest_terminal_summary(terminalreporter):
    """Print the largest peaks of all workers."""
    peaks = [
        (value, report.nodeid)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "peak_memory_kib"
    ]
    if not peaks:
        return
    own, children = (max((value[k], nodeid) for value, nodeid in peaks) for k in (0, 1))
    terminalreporter.write_line(
        f"peak memory: {own[0] / 2**20:.2f} GiB in {own[1]}; "
        f"of children {children[0] / 2**20:.2f} GiB by {_first(peaks, children[0])}"
    )


def _first(peaks, children):
    """Return the first test after which the peak of the children was this."""
    return next(nodeid for value, nodeid in peaks if value[1] == children)
