"""Assemblies that cannot be are refused with the names of their subsystems."""

import copy
import pickle

import numpy as np
import pytest

import remora as rm
from dynamics.assembly.modules import WheelBody, arm

ARM = arm()


@pytest.mark.parametrize(
    ("subsystems", "connections", "message"),
    [
        ({}, [], "at least one subsystem"),
        ({"a": ARM, "b": ARM}, [], "subsystems 'a', 'b' have no predecessor"),
        ({"a": ARM, "b": ARM}, [("b", "a", "tip"), ("a", "b", "tip")], "cycle: 'a' -> 'b' -> 'a'"),
        (
            {"a": ARM, "b": ARM, "c": ARM, "d": ARM},
            [("b", "c", "tip"), ("c", "d", "tip"), ("d", "c", "tip")],
            "cycle: 'c' -> 'd' -> 'c'",
        ),
        ({"a": ARM}, [("a", "a", "tip")], "'a' is connected to itself"),
        ({"a": ARM, "b": ARM}, [("b", "c", "tip")], "no subsystem named 'c'; known: a, b"),
        (
            {"a": ARM, "b": ARM, "c": ARM},
            [("b", "a", "tip"), ("c", "a", "tip"), ("b", "c", "tip")],
            "'b' has two predecessors, 'a' and 'c'",
        ),
        (
            {"a": ARM, "b": ARM},
            [("b", "a", "tipp")],
            "no connection point of subsystem 'a' named 'tipp'; did you mean 'tip'",
        ),
        (
            {"a": WheelBody(), "b": ARM},
            [("b", "a", "hand")],
            "no connection point of subsystem 'a' named 'hand'; known: tip",
        ),
        (
            {"a": ARM, "b": ARM},
            [rm.papers.sa24.Connection("b", "a", "tip", mount="tip")],
            "'b' cannot be mounted by 'tip': joint 'joint1' .revolute. moves it",
        ),
        (
            {"a": ARM, "b": WheelBody()},
            [rm.papers.sa24.Connection("b", "a", "tip", mount="tip")],
            "'b' is not a robot; its connection has no mount=",
        ),
        ({"a": 3.0}, [], "subsystem 'a' is a float; it must be a Robot"),
        (
            {"a": ARM, "b": arm(gravity=(0, 0, -1.6))},
            [("b", "a", "tip")],
            r"'b' has gravity \[0.0, 0.0, -1.6\], the assembly \[0.0, 0.0, 0.0\]",
        ),
    ],
)
def test_refusals(subsystems, connections, message):
    with pytest.raises(rm.RemoraError, match=message):
        rm.Assembly(subsystems, connections)


def test_connections_and_arguments_are_checked():
    with pytest.raises(rm.RemoraError, match="placement of the connection of 'b'"):
        rm.papers.sa24.Connection("b", "a", "tip", placement=np.zeros(8))
    with pytest.raises(rm.RemoraError, match="placement of the connection of 'b'"):
        rm.papers.sa24.Connection("b", "a", "tip", placement=np.zeros(7))
    assembly = rm.Assembly({"a": ARM, "b": ARM}, [("b", "a", "tip")])
    with pytest.raises(rm.errors.ShapeError, match=r"q must have shape \(..., 4\)"):
        assembly.inverse_dynamics(np.zeros(3), np.zeros(4), np.zeros(4))
    with pytest.raises(rm.errors.ShapeError, match="batch shapes do not broadcast"):
        assembly.forward_dynamics(np.zeros((2, 4)), np.zeros((3, 4)), np.zeros(4))
    with pytest.raises(rm.RemoraError, match="tau holds values that are not finite"):
        assembly.forward_dynamics(np.zeros(4), np.zeros(4), np.full(4, np.nan))
    with pytest.raises(rm.RemoraError, match="no subsystem named 'c'"):
        assembly.inverse_dynamics(*np.zeros((3, 4)), {"c": np.zeros((2, 6))})
    with pytest.raises(rm.errors.ShapeError, match="wrenches of subsystem 'b' must have shape"):
        assembly.inverse_dynamics(*np.zeros((3, 4)), {"b": np.zeros((3, 6))})
    with pytest.raises(rm.RemoraError, match="no subsystem named 'c'"):
        assembly.part("c")


def test_objects_without_forward_dynamics_are_named():
    class InverseOnly:
        nq = nv = 0
        points = ()

        def point_motions(self, base, q, v, vdot):
            return {}

        def inverse_dynamics(self, base, q, v, vdot, loads):
            return rm.papers.sa24.SubsystemLoads(base.rate, np.zeros(0))

    assembly = rm.Assembly({"a": ARM, "load": InverseOnly()}, [("load", "a", "tip")])
    assert assembly.inverse_dynamics(*np.ones((3, 2))).shape == (2,)
    with pytest.raises(rm.RemoraError, match=r"'load' \(InverseOnly\) has no forward dynamics"):
        assembly.forward_dynamics(*np.ones((3, 2)))
    with pytest.raises(
        rm.RemoraError, match=r"'load' \(InverseOnly\) does not return the wrenches"
    ):
        assembly.graph(*np.ones((3, 2)))
    with pytest.raises(rm.RemoraError, match=r"'load' \(InverseOnly\) is not a robot"):
        assembly.neutral()
    with pytest.raises(rm.RemoraError, match="'load' is not a robot: no robot can be made"):
        assembly.to_robot()


def test_splits_that_cannot_be():
    robot = arm(axes=((0, 0, 1),) * 3)
    with pytest.raises(rm.RemoraError, match="joint 'joint0': nothing precedes the base"):
        rm.papers.sa24.split_robot(robot, ["joint0"])
    with pytest.raises(rm.RemoraError, match="joint 'joint1': it is cut there already"):
        rm.papers.sa24.split_robot(robot, ["joint1", "joint1"])
    with pytest.raises(rm.RemoraError, match="no joint named 'joint9'"):
        rm.papers.sa24.split_robot(robot, ["joint9"])
    with pytest.raises(rm.RemoraError, match="names of subsystems must differ"):
        rm.papers.sa24.split_robot(robot, {"joint1": "x", "joint2": "x"})
    split = robot.split({"joint1": "middle", "joint2": "end"})
    assert split.assembly.names == ["link0", "middle", "end"]
    assert repr(split.assembly).splitlines() == [
        "Assembly: 3 subsystems, 3 bodies, nq=3, nv=3",
        "  link0 (1 body, nv=1)",
        "    middle (1 body, nv=1)  at link0",
        "      end (1 body, nv=1)  at link1",
    ]


def test_assemblies_are_immutable_values():
    one, other = (
        rm.Assembly({"a": arm(), "b": arm()}, [("b", "a", "tip")], (0, 0, -1.6)) for _ in range(2)
    )
    assert one == other
    assert hash(one) == hash(other)
    assert one != one.remove("b")
    assert one.swap("b", arm(axes=((0, 0, 1),))) != one
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    with pytest.raises(AttributeError, match="an Assembly is immutable; 'gravity' cannot be set"):
        one.gravity = np.zeros(3)
    with pytest.raises(AttributeError, match="immutable"):
        one.remove("b").nq = 3
    with pytest.raises(TypeError):
        one.subsystems["c"] = arm()
    with pytest.raises(ValueError, match="read-only"):
        one.gravity[0] = 1.0


def test_an_assembly_of_a_black_box_alone():
    alone = rm.Assembly({"box": rm.BlackBox(lambda t, base: rm.papers.sa24.SensorReading())})
    assert alone.neutral().shape == (0,)
    assert [x.shape for x in alone.random_state(1, 3)] == [(3, 0), (3, 0)]
    assert alone.inverse_dynamics([], [], [], t=0.0).shape == (0,)


def test_robots_with_closed_loops_are_refused():
    b = rm.Builder("loop")
    for k in range(3):
        b.body(f"b{k}", 1.0, (0, 0, 0.1), np.eye(3))
        b.joint(f"j{k}", "revolute", f"b{k - 1}" if k else None, f"b{k}", axis=(0, 1, 0))
    b.constraint("pin", "spherical", "b0", "b2")
    robot = b.build()
    with pytest.raises(rm.RemoraError, match="subsystem 'a': a robot with constraints"):
        rm.Assembly({"a": robot})
    with pytest.raises(rm.RemoraError, match=r"'loop' has constraints .closed loops.: it cannot"):
        rm.papers.sa24.split_robot(robot, ["j1"])


def test_nested_assemblies_are_swapped_and_removed_by_their_name():
    def wing(second):
        return rm.Assembly({"arm": arm(), "hand": second}, [("hand", "arm", "tip")])

    first, other = arm(axes=((0, 0, 1),)), arm(axes=((1, 0, 0), (0, 0, 1), (0, 1, 0)))
    aside = rm.algebra.pose.from_xyz_rpy((0.1, -0.2, 0.3), (0.4, 0.5, 0.6))
    link = rm.papers.sa24.Connection("wing", "a", "tip", placement=aside)
    whole = rm.Assembly(
        {"a": arm(), "wing": wing(first), "load": arm()},
        [link, ("load", "wing", "hand/tip")], (0.0, 0.0, -9.81),
    )  # fmt: skip
    found = whole.swap("wing", wing(other))  # what is mounted on it stays
    expected = rm.Assembly(
        {"a": arm(), "wing": wing(other), "load": arm()},
        [link, ("load", "wing", "hand/tip")], (0.0, 0.0, -9.81),
    )  # fmt: skip
    assert found.names == expected.names == ["a", "wing/arm", "wing/hand", "load"]
    q, v = expected.random_state(5)
    tau = expected.inverse_dynamics(q, v, v)
    assert np.array_equal(found.inverse_dynamics(q, v, v), tau)
    single = whole.swap("wing", other)  # "load" is on its point of the same name
    expected = rm.Assembly(
        {"a": arm(), "wing": other, "load": arm()}, [link, ("load", "wing", "tip")],
        (0.0, 0.0, -9.81),
    )  # fmt: skip
    assert single == expected
    assert whole.remove("wing").names == ["a"]
    assert (
        whole.add("more", arm(), "wing", "hand/tip").part("more").connection.parent == "wing/hand"
    )
    with pytest.raises(rm.RemoraError, match="subsystem 'nose' is the root"):
        rm.Assembly({"nose": wing(first)}).remove("nose")
    with pytest.raises(
        rm.errors.UnknownName, match="no subsystem named 'wine'; did you mean 'wing'"
    ):
        whole.swap("wine", other)
    with pytest.raises(rm.RemoraError, match="there is a subsystem 'wing' already"):
        whole.add("wing", other, "a", "tip")
