"""VT18's incidence matrix, branch ends and index functions, with the paper's own example."""

import numpy as np
import pytest

import remora as rm


def chain(n):
    builder = rm.Builder("Figure 3")
    for i in range(1, n + 1):
        builder.body(f"{i}", mass=1.0, inertia=(1, 1, 1))
        if i > 1:
            builder.joint(f"J{i - 1}", "revolute", f"{i - 1}", f"{i}")
    return builder.build()


def test_example_1():
    """[VT18, eqs. 36-40]; the paper counts bodies and joints from 1, and no base joint."""
    robot = chain(5)
    C = rm.topology.incidence_matrix(robot)[1:]
    expected = [[-1, 1, 0, 0, 0], [0, -1, 1, 0, 0], [0, 0, -1, 1, 0], [0, 0, 0, -1, 1]]
    assert C.tolist() == expected
    T = rm.topology.branch_terminations(robot)
    assert T.tolist() == [0, 0, 0, 0, 1]
    assert [i + 1 for i in rm.topology.negatives(C[0])] == [1]
    assert [i + 1 for i in rm.topology.positives(C[0])] == [2]
    assert [i + 1 for i in rm.topology.positives(T)] == [5]


def test_rows_and_columns_of_a_branched_tree():
    robot = rm.random_robot(4, bodies=20, branching=0.6)
    C = rm.topology.incidence_matrix(robot)
    assert C[0].tolist() == [1] + [0] * 19  # the base is mounted on no body
    for i in range(1, 20):
        assert rm.topology.negatives(C[i]) == [robot.joints[i].parent]
        assert rm.topology.positives(C[i]) == [i]
    for j in range(20):
        assert rm.topology.positives(C[:, j]) == [j]
        assert rm.topology.negatives(C[:, j]) == rm.topology.children(robot, j)
    ends = rm.topology.branch_terminations(robot)
    assert rm.topology.leaves(robot) == [i for i in range(20) if not rm.topology.children(robot, i)]
    assert ends.sum() == len(rm.topology.leaves(robot))


def test_ancestors_and_subtrees_mirror_each_other():
    robot = rm.random_robot(11, bodies=25, branching=0.5)
    for i in range(25):
        assert rm.topology.ancestors(robot, i)[0] == i
        assert rm.topology.ancestors(robot, i)[-1] == 0
        for j in range(25):
            assert (i in rm.topology.ancestors(robot, j)) == (j in rm.topology.subtree(robot, i))
    assert rm.topology.subtree(robot, 0) == list(range(25))
    assert np.array_equal(rm.topology.children(robot, -1), [0])


def test_bodies_may_be_named():
    robot = rm.load("servicer")
    for function in (rm.topology.children, rm.topology.ancestors, rm.topology.subtree):
        assert function(robot, "elbow") == function(robot, robot.body_index("elbow"))
    assert (
        rm.topology.ancestors(robot, -1) == []
    )  # a frame fixed in the inertial frame hangs on no body


@pytest.mark.parametrize(
    "function", [rm.topology.children, rm.topology.ancestors, rm.topology.subtree]
)
def test_bodies_that_are_not_there_are_refused(function):
    robot = chain(3)
    for body, reason in (
        ("4", "no body named '4'; known: 1, 2, 3"),
        (3, "no body 3; known: 0 to 2"),
    ):
        with pytest.raises(rm.errors.UnknownName, match=reason):
            function(robot, body)
    for body in (-2, 1.5, None):
        with pytest.raises(rm.errors.UnknownName):
            function(robot, body)
    with pytest.raises(rm.errors.UnknownName):
        rm.topology.subtree(robot, -1)
