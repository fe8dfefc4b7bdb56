"""The limits of a joint as text: the same digits in tables, reports, pages and messages."""

from __future__ import annotations

import math

#: Decimals of angles in degrees and of lengths in metres.
_DECIMALS = {True: 1, False: 3}


def coordinate_text(value: float, angular: bool) -> str:
    """Return a coordinate or speed in degrees or metres as a number: `170.2`, `0.5`.

    Args:
        value: rad or m (per second).
        angular: whether it is an angle.
    """
    shown = math.degrees(value) if angular else value
    if not math.isfinite(shown):
        return f"{shown:g}"
    text = f"{shown:.{_DECIMALS[angular]}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if float(text) == 0.0 and shown != 0.0:  # a limit that is not zero is not shown as zero
        return f"{shown:.3g}"
    return "0" if float(text) == 0.0 else text


def range_text(lower: float, upper: float, angular: bool) -> str:
    """Return a range as text: `±170.2°`, `0 to 0.5 m`; empty if both ends are infinite.

    Args:
        lower: smallest coordinate, rad or m.
        upper: largest coordinate, rad or m.
        angular: whether they are angles.
    """
    if math.isinf(lower) and math.isinf(upper):
        return ""
    unit = "°" if angular else " m"
    high = coordinate_text(upper, angular)
    if lower == -upper:
        return f"±{high}{unit}"
    return f"{coordinate_text(lower, angular)} to {high}{unit}"
