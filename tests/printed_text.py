"""What code prints, compared with what a page or a notebook shows."""

import re

import numpy as np

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def assert_same_text(actual, expected, place):
    """Compare line by line, blank lines aside; a line `...` stands for any lines."""
    lines = [line for line in actual.splitlines() if line.strip()]
    at, gap = 0, False
    for wanted in expected.splitlines():
        if wanted.strip() == "...":
            gap = True
        elif wanted.strip():
            while gap and at < len(lines) and not same(lines[at], wanted):
                at += 1
            found = at < len(lines) and same(lines[at], wanted)
            assert found, f"{place} does not print\n{wanted}\nbut\n{actual}"
            at, gap = at + 1, False
    assert gap or at == len(lines), f"{place} prints more:\n{actual}"


def same(one, two):
    """Tell whether words agree, and numbers by value: rounding noise counts as zero."""
    if NUMBER.sub(" # ", one).split() != NUMBER.sub(" # ", two).split():
        return False
    a, b = ([float(number) for number in NUMBER.findall(line)] for line in (one, two))
    return np.allclose(a, b, rtol=1e-9, atol=1e-12)
