"""Constraints as values: identity, switching, replacement, copies."""

import copy
import pickle

import numpy as np
import pytest

import remora as rm
from remora.model.constraint import Constraint
from remora.model.named import Named
from remora.model.robot_fields import rows

HERE = np.eye(8)[0]


def constraint(name, kind="fixed", parent=0, child=2, active=True):
    axes = {"revolute": np.array([[0.0, 0.0, 1.0]])}.get(kind, np.zeros((0, 3)))
    numbers = np.array([0.0, 0.5, 1.0, 0.0])
    return Constraint(name, kind, parent, child, HERE, HERE, axes, *numbers, active=active)


@pytest.fixture
def robot():
    plain = rm.random_robot(3, bodies=4)
    added = [constraint("latch"), constraint("strut", "rod", active=False)]
    return plain.replace(constraints=added)


def test_a_robot_has_no_constraints_unless_given():
    plain = rm.load("vt18_satellite")
    assert plain.constraints == ()
    assert plain.constraints.names == []
    assert "constraints" not in repr(plain)


def test_constraints_are_switched_by_name(robot):
    other = robot.with_active(on=["strut"], off=["latch"])
    assert [c.active for c in other.constraints] == [False, True]
    assert [c.active for c in robot.constraints] == [True, False]
    assert other != robot
    assert other.seen_identity != robot.seen_identity
    assert other.with_active(on="latch", off="strut") == robot
    assert robot.with_active() == robot


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"on": ["latch"]}, "'latch' is already on"),
        ({"off": ["strut"]}, "'strut' is already off"),
        ({"on": ["strut"], "off": ["strut"]}, "'strut' is named twice"),
        ({"on": ["strut", "strut"]}, "'strut' is named twice"),
    ],
)
def test_a_switch_that_changes_nothing_is_refused(robot, given, message):
    with pytest.raises(rm.InvalidValue, match=message):
        robot.with_active(**given)


def test_unknown_constraints_are_refused(robot):
    with pytest.raises(rm.UnknownName, match="no constraint named 'latsh'; did you mean 'latch'"):
        robot.with_active(off=["latsh"])
    with pytest.raises(rm.UnknownName, match="no constraint"):
        robot.replace_constraint("hook", length=1.0)


def test_replaced_numbers_are_checked(robot):
    longer = robot.replace_constraint("strut", length=0.7)
    assert longer.constraints["strut"].length == 0.7
    assert longer.constraints["strut"].length.flags.writeable is False
    assert longer != robot
    with pytest.raises(rm.ShapeError, match="child_placement of constraint 'strut'"):
        robot.replace_constraint("strut", child_placement=np.zeros(3))
    with pytest.raises(rm.ShapeError, match="axes of constraint 'strut' must have shape"):
        robot.replace_constraint("strut", axes=np.zeros(3))
    with pytest.raises(rm.UnknownName, match="field of a constraint"):
        robot.replace_constraint("strut", size=1.0)


def test_copies_and_pickles_are_equal(robot):
    assert copy.deepcopy(robot) is robot
    again = pickle.loads(pickle.dumps(robot))
    assert again == robot
    assert isinstance(again.constraints, Named)
    assert again.constraints["latch"] == robot.constraints["latch"]
    assert hash(again.constraints["latch"]) == hash(robot.constraints["latch"])
    assert again.constraints["latch"].child_placement.flags.writeable is False


def test_the_robot_and_its_constraints_are_printed(robot):
    assert repr(robot).endswith("constraints: latch (fixed), strut (rod, off)")
    assert repr(robot.constraints[1]) == "Constraint('strut', rod, parent=0, child=2, off)"


def test_numbers_of_constraints_are_kernel_parameters(robot):
    from remora.dynamics.kernels.parameters import parameter

    for name, row in rows("constraint", only="open").items():
        signature, put = parameter(robot, f"strut.{name}")
        assert signature.shape == row.shape
        value = np.asarray(getattr(robot.constraints["strut"], name)) + 0.25
        assert np.array_equal(getattr(put(robot, value).constraints["strut"], name), value)
    with pytest.raises(rm.UnknownName, match=r"CONSTRAINT\.length"):
        parameter(robot, "strut.size")
