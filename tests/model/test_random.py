"""Random robots: the kinds asked for, and refusals."""

import numpy as np
import pytest

import remora as rm


def test_the_kinds_are_drawn_from():
    robot = rm.random_robot(3, bodies=30, kinds=["continuous", "helical"], base="planar")
    assert robot.joints[0].kind == "planar"
    assert {joint.kind for joint in robot.joints[1:]} == {"revolute", "helical"}
    assert len(rm.random_robot(0, bodies=1).bodies) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kinds": ["ball"]}, "no kind of joint named 'ball'; known: fixed, revolute"),
        ({"kinds": []}, "kinds is empty"),
        ({"kinds": [["revolute"]]}, r"no kind of joint \['revolute'\]"),
        ({"bodies": 0}, "bodies=0; a robot has at least one"),
        ({"bodies": -3}, "bodies=-3"),
    ],
)
def test_refusals(options, reason):
    with pytest.raises(rm.RemoraError, match=reason):
        rm.random_robot(0, **options)


def test_gravity_is_about_that_of_the_earth():
    drawn = [rm.random_robot(k, bodies=1, gravity=True).gravity for k in range(80)]
    assert 8.0 < np.linalg.norm(drawn, axis=1).mean() < 12.0
    assert not np.any(rm.random_robot(0, bodies=1).gravity)
