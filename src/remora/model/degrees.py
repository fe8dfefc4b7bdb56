"""Angles and rates of YAML files: a plain number is in rad or rad/s, `30 deg` is in degrees."""

from __future__ import annotations

import math
import re

#: A decimal number, as a regular expression.
NUMBER = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
#: Longest text that is read as a number of degrees.
_LONGEST = 100


class Degrees(float):
    """An angle or a rate in rad or rad/s that was given in degrees."""


def in_degrees(text: str, unit: str) -> Degrees | None:
    """Return the angle or rate of a text such as `30 deg`, or None if it is no such text.

    Args:
        text: the text.
        unit: regular expression of the accepted units: `deg`, `deg/s`.
    """
    if len(text) > _LONGEST:
        return None
    found = re.fullmatch(rf"({NUMBER})\s*{unit}", text)
    return None if found is None else Degrees(math.radians(float(found.group(1))))
