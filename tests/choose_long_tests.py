"""Choose the tests that `make test` leaves to `make test-all`, by a record of how long each took.

    make test-all ARGS="--junitxml=record.xml"        (or ARGS="--durations=0" > record.log)
    .venv/bin/python tests/choose_long_tests.py record.xml

All tests of the record that took longer than the limit are written to `tests/long_tests.txt`: by
the clock, or by processor time with `--processor-time` (JUnit only), for a machine that did other
things at the same time. What
was listed there before and is not in the record is dropped. With `--add` it stays: for the record
of `make test` alone, after which another test may have to wait for what a long one had prepared
before (a fixture, a kernel in the cache).
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from long_tests import LIST, PROCESSOR_TIME, listed

#: Longest time of a test in `make test`, s, with its setup and teardown.
LIMIT = 0.8
HEAD = """\
# Long tests, which `make test` leaves to `make test-all`.
# Written by tests/choose_long_tests.py from a record of durations; one test id a line.
"""
_LINE = re.compile(r"^\s*(\d+\.\d+)s (?:setup|call|teardown)\s+(\S.*?)\s*$", re.M)


def durations(record, root, processor_time=False):
    """Return seconds by test id, from the text of a JUnit file or of `pytest --durations=0`.

    Raises:
        ValueError: if it is neither.
    """
    seconds = defaultdict(float)
    if record.lstrip().startswith("<?xml"):
        for case in ElementTree.fromstring(record).iter("testcase"):
            time = case.get("time", 0.0)
            if processor_time:
                found = case.find(f"./properties/property[@name='{PROCESSOR_TIME}']")
                if found is None:  # skipped
                    continue
                time = found.get("value")
            seconds[_id(case.get("classname", ""), case.get("name", ""), root)] += float(time)
    elif not processor_time:
        for time, test in _LINE.findall(record):
            seconds[test] += float(time)
    if not seconds:
        needed = "a JUnit file" if processor_time else "a JUnit file or pytest --durations=0"
        raise ValueError(f"no durations: {needed} is needed")
    return dict(seconds)


def _id(classname, name, root):
    """Return the id of a test from a JUnit file: the module is the longest path that exists."""
    parts = classname.split(".")
    for n in range(len(parts), 0, -1):
        file = "/".join(parts[:n]) + ".py"
        if (root / file).is_file():
            return "::".join([file, *parts[n:], name])
    return "::".join([classname.replace(".", "/") + ".py", name])


def chosen(seconds, limit, before=()):
    """Return the ids over the limit and those of `before`, in order."""
    return sorted({test for test, time in seconds.items() if time > limit} | set(before))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS")
    parser.add_argument("--processor-time", action="store_true", help="not the time by the clock")
    parser.add_argument("--add", action="store_true", help="keep what is listed already")
    parser.add_argument("--out", type=Path, default=LIST, help="default: tests/long_tests.txt")
    asked = parser.parse_args(arguments)
    seconds = {}
    for record in asked.records:
        try:
            text = record.read_text(encoding="utf-8")
            found = durations(text, LIST.parents[1], asked.processor_time)
        except (OSError, ValueError, ElementTree.ParseError) as error:
            parser.error(f"{record}: {error}")
        for test, time in found.items():
            seconds[test] = max(time, seconds.get(test, 0.0))
    before = listed(asked.out.read_text(encoding="utf-8")) if asked.add else ()
    tests = chosen(seconds, asked.limit, before)
    asked.out.write_text(HEAD + "".join(f"{test}\n" for test in tests), encoding="utf-8")
    left = sum(time for test, time in seconds.items() if test not in set(tests))
    print(
        f"{asked.out}: {len(tests)} of {len(seconds)} tests are long; the others take {left:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
