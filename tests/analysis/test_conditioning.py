"""Conditioning along paths: closed formulas, definitions, warnings, refusals."""

import dataclasses

import numpy as np
import pytest

import remora as rm
from numeric import assert_close


def path(angles):
    robot = rm.load("spart17_planar")
    q = np.repeat(rm.neutral(robot)[None], len(angles), axis=0)
    q[:, -1] = angles
    return robot, q


def test_a_two_link_arm_in_its_plane():
    """σ1 σ2 = l1 l2 |sin q2|; directions out of the plane do not count."""
    robot, q = path(np.linspace(-2.0, 2.0, 9))
    found = rm.analysis.conditioning(robot, q, "tool", t=np.arange(9.0))
    assert found.singular_values.shape == (9, 2)
    assert_close(np.prod(found.singular_values, axis=1), 0.25 * np.abs(np.sin(q[:, -1])), 1e-13)
    assert found.condition[4] > 1e12  # stretched
    J = rm.jacobian(robot, q, "tool")[:, 3:, 6:]
    assert_close(found.singular_values, np.linalg.svd(J, compute_uv=False)[:, :2], 1e-13)


@pytest.mark.parametrize("base", ["fixed", "flying", "floating"])
def test_the_singular_values_are_the_semi_axes(base):
    robot = rm.random_robot(3, bodies=8, kinds=["revolute", "universal"])
    q, _ = rm.random_state(robot, 1, 5)
    target = robot.bodies[-1].name
    found = rm.analysis.conditioning(robot, q, target, base, "twist", length=0.7)
    expected = rm.manipulability(robot, q, target, base, subspace="twist", length=0.7)
    assert_close(found.singular_values, expected.semi_axes[:, : found.singular_values.shape[1]])
    assert_close(found.smallest, found.singular_values[:, -1])


def test_the_distance_in_joint_space_is_right_near_a_singularity():
    """Near q2 = 0 the smallest singular value falls linearly: the elbow is |q2| away."""
    robot, q = path(np.array([-1e-3, 1e-4, 0.0, 2e-3]))
    found = rm.analysis.conditioning(robot, q, "tool", subspace="xy")
    assert_close(found.joint_distance, np.abs(q[:, -1]), 1e-4)
    assert found.joint_distance[2] == 0.0
    without = rm.analysis.conditioning(robot, q, "tool", subspace="xy", joint_distances=False)
    assert np.all(np.isnan(without.joint_distance))


def test_warnings_name_what_is_near_and_when():
    robot, q = path(np.linspace(-1.0, 1.0, 101))
    robot = robot.replace(
        joints=[
            rm.load("spart17_planar").joints[0],
            robot.joints[1],
            limited(robot.joints[2], -2.0, 0.99),
        ]
    )
    found = rm.analysis.conditioning(robot, q, "tool", t=np.linspace(0.0, 10.0, 101))
    assert found.joints == ("joint_1", "joint_2")
    assert_close(found.limit_distance[0, 1], 1.0, 1e-14)
    near, limit = found.warnings()
    assert "'tool' comes near a singularity from 4.6 s to 5.4 s" in near
    assert "at 5 s" in near
    assert limit.startswith("joint 'joint_2' passes a limit by 0.573° at 10 s, ")
    assert "from 9.7 s to 10 s" in limit
    quiet = found.warnings(condition=np.inf, limit=0.0)
    assert len(quiet) == 1  # beyond a limit is always said
    untimed = rm.analysis.conditioning(robot, q, "tool")
    assert "at point 50" in untimed.warnings()[0]


def limited(joint, low, high):
    limits = dataclasses.replace(joint.limits, lower=np.array([low]), upper=np.array([high]))
    return dataclasses.replace(joint, limits=limits)


def test_refusals():
    robot, q = path(np.zeros(3))
    with pytest.raises(rm.errors.ShapeError, match="q must be a path of configurations"):
        rm.analysis.conditioning(robot, q[0], "tool")
    with pytest.raises(rm.errors.ShapeError, match="one time for each q"):
        rm.analysis.conditioning(robot, q, "tool", t=[0.0, 1.0])
    with pytest.raises(rm.errors.UnknownName, match="base"):
        rm.analysis.conditioning(robot, q, "tool", "heavy")
    with pytest.raises(rm.errors.InvalidValue, match="no joint of the arm"):
        rm.analysis.conditioning(robot, q, robot.bodies[0].name)
    with pytest.raises(
        rm.errors.InvalidValue, match="no joint moves the frame 'tool' in this subspace"
    ):
        rm.analysis.conditioning(robot, q, "tool", subspace="z")
    for function in (rm.analysis.conditioning, rm.manipulability):
        with pytest.raises(
            rm.errors.InvalidValue, match=r"joints='joint_1' must be a list of names"
        ):
            function(robot, q, "tool", joints="joint_1")
    with pytest.raises(rm.errors.InvalidValue, match=r"joints=\['joint_1'\]"):
        rm.workspace(robot, "tool", plane="xy", samples=10, joints="joint_1")


def test_the_figure_has_every_singular_value():
    pytest.importorskip("matplotlib")
    robot = rm.load("servicer")
    q, _ = rm.random_state(robot, 1, 20)
    figure = rm.analysis.conditioning(robot, q, "tool", "floating", "twist").plot()
    assert [len(ax.lines) for ax in figure.axes][:2] == [6, 2]
    assert len(figure.axes) == 3
