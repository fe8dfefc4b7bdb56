"""The interconnection matrix: its pattern, and A 1 as the wrenches at all joints [SA24]."""

import itertools

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import arm, cut
from remora.dynamics.recursive.recursive_newton_euler import joint_loads
from trees import Case, relative_error

BRANCHES = [
    ("2", "1", "link1"), ("3", "1", "link0"), ("5", "1", "link1"), ("7", "1", "link0"),
    ("4", "2", "tip"), ("6", "5", "tip"), ("8", "7", "tip"),
]  # fmt: skip


def branched():
    """The topology of SA24's Example 2."""
    three = arm(axes=((0, 0, 1), (0, 1, 0), (0, 1, 0)))
    return rm.Assembly({str(k): three for k in range(1, 9)}, BRANCHES)


def test_a_1_is_the_wrench_at_every_joint_of_random_trees():
    for seed in range(10):
        case = Case(seed, largest=10)
        split, at = cut(case)
        graph = split.assembly.graph(at.q, at.v, at.vdot, at.wrenches)
        loads = joint_loads(case.robot, case.q, case.v, case.vdot, case.wrenches)
        expected = np.array([load.W for load in loads])[split.bodies]
        assert relative_error(graph.total, expected) < 1e-13
        assert relative_error(graph.A.sum(axis=-2), expected) < 1e-13


def test_the_matrix_of_example_2():
    assembly = branched()
    q, v, w = np.random.default_rng(1).normal(size=(3, 2, 24))
    graph = assembly.graph(q, v, w)
    assert (
        str(graph)
        == """\
graph of 8 subsystems, 24 joints; Γ_total = A 1
A = [W1    Γ2,1  Γ3,1  Γ5,1  Γ7,1  0     0     0]
    [0     W2    0     0     0     Γ4,2  0     0]
    [0     0     W3    0     0     0     0     0]
    [0     0     0     W5    0     0     Γ6,5  0]
    [0     0     0     0     W7    0     0     Γ8,7]
    [0     0     0     0     0     W4    0     0]
    [0     0     0     0     0     0     W6    0]
    [0     0     0     0     0     0     0     W8]"""
    )
    assert graph.A.shape == (2, 24, 8, 6)
    assert relative_error(graph.of("1"), graph.total[:, :3]) < 1e-14
    with pytest.raises(rm.errors.UnknownName, match="no subsystem named 'x'"):
        graph.of("x")
    # 3 and 7 are mounted on the first link of 1: its other joints do not feel them
    assert np.all(graph.blocks[0, 2][:, 1:] == 0.0)
    assert np.all(graph.blocks[0, 2][:, 0] != 0.0)
    assert np.all(graph.blocks[0, 1][:, 2:] == 0.0)


def test_twist_edges_add_up_to_the_twists_of_the_robot():
    assembly = branched()
    q, v, w = np.random.default_rng(2).normal(size=(3, 24))
    graph = assembly.graph(q, v, w)
    robot = assembly.to_robot()
    twists, rates = rm.twists(robot, q, v), rm.dynamics.accelerations(robot, q, v, w)
    for i, name in enumerate(graph.names):
        total = sum(x for (_, to), x in graph.twists.items() if to == i)
        rows = assembly.part(name).bodies
        assert relative_error(total[:, :6], twists[rows]) < 1e-13
        assert relative_error(total[:, 6:], rates[rows]) < 1e-13
    # Ξ_ii is what remains if the predecessors stand still
    still = v.copy()
    still[:3] = 0.0
    alone = rm.twists(robot, q, still)[assembly.part("2").bodies]
    assert relative_error(graph.twists[1, 1][:, :6], alone) < 1e-13


def boxed():
    reading = rm.papers.sa24.SensorReading(
        np.arange(6.0), {"end": rm.papers.sa24.PointReading(np.ones(6), np.zeros(6))}
    )
    box = rm.BlackBox(lambda t, base: reading, ("end",))
    return rm.Assembly(
        {"base": arm(), "manipulator": box, "arm": arm()},
        [("manipulator", "base", "tip"), ("arm", "manipulator", "end")],
    )


def test_black_boxes_have_a_column_and_no_rows():
    graph = boxed().graph(*np.ones((3, 4)), t=0.0)
    assert (
        str(graph)
        == """\
graph of 3 subsystems, 4 joints; Γ_total = A 1
  1: base
  2: manipulator (black box)
  3: arm
A = [W1    Γ2,1  0]
    [0     0     W3]"""
    )
    tau = boxed().inverse_dynamics(*np.ones((3, 4)), t=0.0)
    assert np.allclose(graph.total[1, 4], tau[1])  # the second joint turns about y
    assert (1, 2) in graph.twists


def test_the_picture_has_circles_squares_and_both_kinds_of_edges():
    figure = boxed().graph(*np.ones((3, 4)), t=0.0).plot(title="MBM")
    axes = figure.axes[0]
    kinds = sorted(type(patch).__name__ for patch in axes.patches)
    assert kinds.count("Circle") == 3  # two subsystems and the inner outline of the root
    assert kinds.count("Rectangle") == 1
    words = {text.get_text() for text in axes.texts}
    assert {"base", "manipulator", "arm", r"$\Xi_{1,2}$", r"$\Gamma_{2,1}$", "$W_{1}$"} <= words
    assert r"$W_{2}$" not in words
    assert len(branched().graph(*np.zeros((3, 24))).plot().axes[0].patches) == 9


def test_large_graphs_are_not_drawn_or_printed_in_full():
    link = arm(axes=((0, 0, 1),))
    names = [f"p{k}" for k in range(70)]
    links = [(b, a, "tip") for a, b in itertools.pairwise(names)]
    graph = rm.Assembly(dict.fromkeys(names, link), links).graph(*np.zeros((3, 70)))
    assert str(graph).endswith("139 blocks of A are not zero")
    with pytest.raises(rm.RemoraError, match="has 70 subsystems; it is drawn for at most 60"):
        graph.plot()
