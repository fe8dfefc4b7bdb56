"""Limits as text: the same digits wherever they are shown."""

import math

import pytest

import remora as rm
from remora.cli.robot_tables import _limits
from remora.model.limit_text import coordinate_text, range_text
from remora.viewer.run_tables import _bounds


@pytest.mark.parametrize(
    ("lower", "upper", "angular", "text"),
    [
        (-2.97, 2.97, True, "±170.2°"),
        (math.radians(-90.0), math.radians(90.0), True, "±90°"),
        (0.0, 0.5, False, "0 to 0.5 m"),
        (-0.1, 1.2345, False, "-0.1 to 1.234 m"),
        (-1.0, math.inf, True, "-57.3 to inf°"),
        (-math.inf, math.inf, True, ""),
        (0.0, 0.0, False, "±0 m"),
        (-1e-5, 1e-5, False, "±1e-05 m"),  # not zero
        (math.radians(-700.04), math.radians(1000.0), True, "-700 to 1000°"),
    ],
)
def test_ranges(lower, upper, angular, text):
    assert range_text(lower, upper, angular) == text


def test_no_zero_has_a_sign():
    assert coordinate_text(-0.0, True) == "0"


def test_tables_of_commands_and_reports_agree():
    for name in rm.bundled("robots"):
        robot = rm.load(name)
        for i, joint in enumerate(robot.joints):
            assert _limits(robot, joint) == _bounds(robot, i)[0]
