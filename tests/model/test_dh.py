"""Denavit-Hartenberg tables in both conventions, against the matrices of their definitions."""

import numpy as np
import pytest

import remora as rm
from numeric import assert_close
from remora.algebra import pose
from remora.errors import RemoraError


def Rx(t):
    return pose.to_matrix(pose.from_axis_angle(np.array([1.0, 0, 0]), np.asarray(t)))


def Rz(t):
    return pose.to_matrix(pose.from_axis_angle(np.array([0.0, 0, 1]), np.asarray(t)))


def T(*p):
    return pose.to_matrix(pose.from_translation(np.array(p, dtype=float)))


ROWS = [
    (0.3, 0.2, 0.5, 1.2, "revolute"),
    (-0.4, 0.1, 0.3, -0.7, "prismatic"),
    (1.0, 0.0, 0.2, 0.4, "revolute"),
]


def table():
    return [
        rm.DHLink(
            f"l{i}", theta, d, a, alpha, joint, mass=1 + i, com=(0.1, 0.2, 0.3), inertia=(1, 2, 2)
        )
        for i, (theta, d, a, alpha, joint) in enumerate(ROWS)
    ]


def expected(convention, q, rows=ROWS):
    result, chain = np.eye(4), []
    for (theta, d, a, alpha, joint), x in zip(rows, q, strict=True):
        theta, d = (theta + x, d) if joint == "revolute" else (theta, d + x)
        if convention == "classic":
            result = result @ Rz(theta) @ T(0, 0, d) @ T(a, 0, 0) @ Rx(alpha)
        else:
            result = result @ Rx(alpha) @ T(a, 0, 0) @ Rz(theta) @ T(0, 0, d)
        chain.append(result)
    return chain


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_frames_follow_the_definition(convention, rng):
    robot = rm.from_dh(table(), convention, base="fixed", base_mass=1, base_inertia=(1, 1, 1))
    for q in rng.normal(size=(5, 3)):
        for i, wanted in enumerate(expected(convention, q)):
            assert_close(pose.to_matrix(rm.frame_pose(robot, q, f"l{i}_dh")), wanted, rtol=1e-14)
        centres = [(w @ [0.1, 0.2, 0.3, 1])[:3] for w in expected(convention, q)]
        com = (sum((1 + i) * c for i, c in enumerate(centres))) / 7  # the base adds 1 kg at 0
        assert_close(rm.center_of_mass(robot, q), com, rtol=1e-14)


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_inertia_is_turned_into_body_axes(convention):
    robot = rm.from_dh(table(), convention, base="fixed", base_mass=1, base_inertia=(1, 1, 1))
    for i in range(3):
        R = pose.to_rotation_matrix(robot.frames[f"l{i}_dh"].placement)
        assert_close(robot.bodies[f"l{i}"].inertia, R @ np.diag([1, 2, 2]) @ R.T, rtol=1e-14)


def test_branches():
    mount = pose.from_xyz_rpy((0, 1, 0), (0, 0, np.pi))
    right = [
        rm.DHLink("r0", a=1.0, mass=1, inertia=(1, 1, 1), parent="base", mount=mount),
        rm.DHLink("r1", a=0.5, mass=1, inertia=(1, 1, 1)),
    ]
    robot = rm.from_dh([*table(), *right], "classic", base_mass=5, base_inertia=(1, 1, 1))
    assert rm.topology.children(robot, 0) == [1, 4]
    x = rm.frame_pose(robot, rm.neutral(robot), "r1_dh")
    assert_close(pose.translation(x), [-1.5, 1.0, 0.0], rtol=1e-14)


def test_refusals():
    with pytest.raises(RemoraError, match="known: classic, modified"):
        rm.from_dh(table(), "dh")
    with pytest.raises(RemoraError, match="revolute, prismatic"):
        rm.from_dh([rm.DHLink("a", joint="free")], "classic")
    with pytest.raises(RemoraError, match="parent of link 'a'"):
        rm.from_dh([rm.DHLink("a", parent="nobody")], "classic")
    with pytest.raises(RemoraError, match=r"link 'a': theta is not numeric: 'x'"):
        rm.from_dh([rm.DHLink("a", theta="x")], "classic")
    with pytest.raises(RemoraError, match="parent of link 'a'"):
        rm.from_dh([rm.DHLink("a", parent=["base"])], "classic")
    with pytest.raises(RemoraError, match="centre of mass"):
        rm.from_dh([rm.DHLink("a", mass=1, com="x")], "classic", base_mass=1)
    with pytest.raises(RemoraError, match=r"base_mass.*mass is zero.*base='fixed'"):
        rm.from_dh(table(), "classic")


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_an_inertia_has_three_forms(convention):
    six = np.array([0.3, 0.01, 0.02, 0.4, 0.03, 0.5])
    full = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]])
    robots = [
        rm.from_dh(
            [
                rm.DHLink(
                    "l", a=1.0, alpha=np.pi / 2, d=0.2, mass=2, com=(0.1, 0.2, 0.3), inertia=inertia
                )
            ],
            convention,
            base_mass=1,
            base_inertia=(1, 1, 1),
        )
        for inertia in (six, tuple(six), full)
    ]
    x = robots[0].frames["l_dh"].placement
    R = pose.to_rotation_matrix(x)
    for robot in robots:
        link = robot.bodies["l"]
        assert_close(link.com, pose.transform_point(x, np.array([0.1, 0.2, 0.3])), rtol=1e-14)
        assert_close(link.inertia, R @ full @ R.T, rtol=1e-14)
    if convention == "classic":
        assert_close(robots[0].bodies["l"].com, [1.1, -0.3, 0.4], rtol=1e-14)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ({"mount": [1, 2]}, "mount of link 'a': placement must be 8 numbers"),
        ({"mount": "x"}, "mount of link 'a': placement is not numeric: 'x'"),
        ({"mount": np.ones(8)}, "mount of link 'a': placement is not a unit dual quaternion"),
        ({"inertia": (1, 2)}, r"body 'a': inertia must be 3 x 3 numbers, not of shape \(2,\)"),
        ({"inertia": "x"}, "body 'a': inertia is not numeric"),
        ({"inertia": (1, np.nan, 1)}, "body 'a': inertia is not finite"),
        ({"inertia": (1, 1, 3)}, "body 'a': inertia violates the triangle inequality"),
        ({"com": (1, 2)}, "body 'a': centre of mass must be 3 numbers"),
        ({"theta": (1, 2)}, "link 'a': theta must be one number"),
    ],
)
def test_malformed_numbers_are_all_in_one_report(spoil, reason):
    bad = rm.DHLink("a", **{"mass": 1, "inertia": (1, 1, 1), **spoil})
    worse = rm.DHLink("b", mass=-1, inertia=(1, 1, 1))
    with pytest.raises(rm.errors.ModelError, match=reason) as caught:
        rm.from_dh([bad, worse], "classic", base_mass=1, base_inertia=(1, 1, 1))
    assert "body 'b': mass is negative" in str(caught.value)
