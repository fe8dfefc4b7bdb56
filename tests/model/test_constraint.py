"""Constraints as values: identity, switching, replacement, copies."""

import copy
import pickle

import casadi
import numpy as np
import pytest

import remora as rm
from remora.model.building import constraint_drafts
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
    with pytest.raises(rm.errors.InvalidValue, match=message):
        robot.with_active(**given)


def test_unknown_constraints_are_refused(robot):
    with pytest.raises(
        rm.errors.UnknownName, match="no constraint named 'latsh'; did you mean 'latch'"
    ):
        robot.with_active(off=["latsh"])
    with pytest.raises(rm.errors.UnknownName, match="no constraint"):
        robot.replace_constraint("hook", length=1.0)


def test_replaced_numbers_are_checked(robot):
    longer = robot.replace_constraint("strut", length=0.7)
    assert longer.constraints["strut"].length == 0.7
    assert longer.constraints["strut"].length.flags.writeable is False
    assert longer != robot
    with pytest.raises(rm.errors.ShapeError, match="child_placement of constraint 'strut'"):
        robot.replace_constraint("strut", child_placement=np.zeros(3))
    with pytest.raises(rm.errors.ShapeError, match="axes of constraint 'strut' must have shape"):
        robot.replace_constraint("strut", axes=np.zeros(3))
    with pytest.raises(rm.errors.UnknownName, match="field of a constraint"):
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
    with pytest.raises(rm.errors.UnknownName, match=r"CONSTRAINT\.length"):
        parameter(robot, "strut.size")


# In the builder -----------------------------------------------------------------------------------


def described():
    """A bus with two arms, one of them on a fixed link."""
    b = rm.Builder("two arms")
    b.body("bus", mass=10.0, inertia=(1.0, 1.0, 1.0))
    b.body("plate", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("mount", "fixed", "bus", "plate", xyz=(0.0, 0.5, 0.0), rpy=(0.0, 0.0, np.pi / 2))
    for side in ("left", "right"):
        b.body(side, mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.body(f"{side} hand", mass=0.2, inertia=(0.01, 0.01, 0.01))
        b.joint(f"{side} wrist", "spherical", side, f"{side} hand", xyz=(1.0, 0.0, 0.0))
    b.joint("left shoulder", "revolute", "plate", "left")
    b.joint("right shoulder", "revolute", "bus", "right", xyz=(0.0, -0.5, 0.0))
    b.frame("palm", "left hand", xyz=(0.1, 0.0, 0.0), rpy=(0.2, 0.0, 0.0))
    return b.frame("dock", None, xyz=(3.0, 0.0, 0.0))


def at(robot, q, c, end):
    """The inertial pose of a constraint frame."""
    body, placement = getattr(c, end), getattr(c, f"{end}_placement")
    return placement if body < 0 else rm.frame_pose(robot, q, rm.Frame("c", body, placement))


def test_ends_are_bodies_frames_or_the_inertial_frame():
    b = described()
    b.constraint("grip", "spherical", "palm", "right hand", parent_xyz=(0.0, 0.0, 0.1))
    b.constraint("berth", "fixed", "dock", "plate", child_rpy=(0.0, 0.1, 0.0), active=False)
    b.rod("strut", "plate", None, 2.0, parent_xyz=(0.1, 0.0, 0.0))
    b.gear("drive", "left shoulder", "right shoulder", ratio=-2.0, offset=0.1)
    apart, merged = b.build(), b.build(merge_fixed=True)
    assert apart.constraints.names == ["grip", "berth", "strut", "drive"]
    grip = apart.constraints["grip"]
    assert (grip.parent, grip.child) == (
        apart.body_index("left hand"), apart.body_index("right hand"),
    )  # fmt: skip
    q, _ = rm.random_state(apart, 2)  # the merged robot has the same coordinates
    for one, two in zip(apart.constraints[:3], merged.constraints[:3], strict=True):
        for end in ("parent", "child"):
            np.testing.assert_allclose(at(merged, q, two, end), at(apart, q, one, end), atol=1e-12)
    assert merged.constraints["strut"].parent == merged.body_index("bus")
    drive = merged.constraints["drive"]
    assert merged.joints[drive.parent].name == "left shoulder"
    assert merged.joints[drive.child].name == "right shoulder"
    assert (drive.ratio, drive.offset) == (-2.0, 0.1)
    assert merged.constraints["berth"].active is False


FAULTS = {
    "unknown body": (lambda b: b.constraint("c", "fixed", "bus", "leg"), "unknown child body or"),
    "a list as an end": (lambda b: b.constraint("c", "fixed", ["bus"], "left"), "unknown parent"),
    "itself": (lambda b: b.constraint("c", "fixed", "left", "left"), "the body 'left' to itself"),
    "its frame": (lambda b: b.constraint("c", "fixed", "palm", "left hand"), "'palm' and 'left ha"),
    "ground": (lambda b: b.constraint("c", "fixed", None, None), "inertial frame to itself"),
    "ground frame": (lambda b: b.rod("c", None, "dock", 1.0), "frame to itself: 'dock' are fixed"),
    "free": (lambda b: b.constraint("c", "free", "bus", "left"), "free joint constrains nothing"),
    "floating": (lambda b: b.constraint("c", "floating", "bus", "left"), "constrains nothing"),
    "unknown kind": (lambda b: b.constraint("c", "glue", "bus", "left"), "unknown kind 'glue'"),
    "a rod as a kind": (lambda b: b.constraint("c", "rod", "bus", "left"), r"use rod\(\)"),
    "zero axis": (
        lambda b: b.constraint("c", "revolute", "bus", "left", axis=(0, 0, 0)), "axis is zero",
    ),
    "too many axes": (
        lambda b: b.constraint("c", "fixed", "bus", "left", axis=(0, 0, 1)), "takes 0 axes",
    ),
    "one axis of two": (
        lambda b: b.constraint("c", "universal", "bus", "left", axis=(0, 0, 1)), "needs both axis",
    ),
    "a pitch": (
        lambda b: b.constraint("c", "revolute", "bus", "left", pitch=[0.0, 0.1]), "has no pitch",
    ),
    "not a pose": (
        lambda b: b.constraint("c", "fixed", "bus", "left", child_placement=np.ones(8)),
        "not a unit dual quaternion",
    ),
    "NaN": (lambda b: b.constraint("c", "fixed", "bus", "left", child_xyz=(0, np.nan, 0)), "finit"),
    "negative length": (lambda b: b.rod("c", "bus", "left", -1.0), "length must be positive"),
    "no length": (lambda b: b.rod("c", "bus", "left", 0.0), "length must be positive"),
    "twice": (lambda b: b.rod("c", "bus", "left", 1.0).gear("c", "a", "b"), "'c' is used twice"),
    "no name": (lambda b: b.rod("", "bus", "left", 1.0), "has no name"),
    "no text": (lambda b: b.rod(3, "bus", "left", 1.0), "its name must be text"),
    "unknown joint": (lambda b: b.gear("c", "left shoulder", "hip"), "unknown driven joint 'hip'"),
    "no joint": (lambda b: b.gear("c", None, "left shoulder"), "unknown leading joint None"),
    "wrist": (lambda b: b.gear("c", "left shoulder", "left wrist"), "is spherical; it must have"),
    "own gear": (lambda b: b.gear("c", "left shoulder", "left shoulder"), "shoulder' to itself"),
    "active": (lambda b: b.rod("c", "bus", "left", 1.0, active="no"), "active must be True or Fal"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_constraints_name_them(case):
    change, reason = FAULTS[case]
    with pytest.raises(rm.errors.ModelError, match=reason) as caught:
        change(described()).build()
    assert any("constraint" in str(fault) for fault in caught.value.faults)


def test_all_faults_come_at_once():
    b = described().rod("a", "bus", "leg", -1.0).gear("b", "left wrist", "hip")
    b.constraint("c", "revolute", "arm", "left", axis=(0, 0, 0))
    with pytest.raises(rm.errors.ModelError) as caught:
        b.build()
    assert len(caught.value.faults) == 6


def test_links_that_are_merged_cannot_be_constrained_to_each_other():
    b = described().rod("strut", "plate", "bus", 1.0)
    assert len(b.build().constraints) == 1
    with pytest.raises(
        rm.errors.ModelError, match="to itself: 'plate' and 'bus' are parts of 'bus'"
    ):
        b.build(merge_fixed=True)


def test_a_gear_on_a_mimic_joint_is_refused():
    b = described().body("wheel", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("wheel", "revolute", "bus", "wheel", mimic=("left shoulder", 2.0, 0.0))
    with pytest.raises(rm.errors.ModelError, match="'wheel' is a mimic joint of 'left shoulder'"):
        b.gear("gear", "right shoulder", "wheel").build()


@pytest.mark.parametrize(
    ("kind", "parent", "child", "options"),
    [
        ("spherical", "palm", "right hand", {"parent_xyz": (0.0, 0.0, 0.1)}),
        ("universal", None, "plate", {"axis": (1, 0, 0), "axis2": (0, 1, 0), "active": False}),
        ("rod", "dock", "right hand", {"length": 2.0, "child_xyz": (0.1, 0.0, 0.0)}),
        ("gear", "left shoulder", "right shoulder", {"ratio": 3.0}),
    ],
)
def test_a_constraint_added_later_is_that_of_the_builder(kind, parent, child, options):
    b = described()
    add = {"rod": b.rod, "gear": b.gear}.get(kind)
    if add is None:
        b.constraint("c", kind, parent, child, **options)
    else:
        add("c", parent, child, **options)
    plain = described().build()
    assert rm.loops.add_constraint(plain, "c", kind, parent, child, **options) == b.build()
    assert plain.constraints == ()


def test_refusals_of_constraints_added_later():
    robot = rm.loops.add_constraint(described().build(), "c", "fixed", "bus", "left")
    with pytest.raises(rm.errors.ModelError, match="'c' is used twice"):
        rm.loops.add_constraint(robot, "c", "rod", "bus", "left", length=1.0)
    with pytest.raises(
        rm.errors.UnknownName, match="option of a rod constraint named 'lenght'; did you"
    ):
        rm.loops.add_constraint(robot, "d", "rod", "bus", "left", lenght=1.0)
    with pytest.raises(rm.errors.InvalidValue, match="needs its length"):
        rm.loops.add_constraint(robot, "d", "rod", "bus", "left")
    with pytest.raises(rm.errors.ModelError, match="to itself"):
        rm.loops.add_constraint(robot, "d", "fixed", "palm", "left hand")
    with pytest.raises(rm.RemoraError, match="takes a robot first"):
        rm.loops.add_constraint("servicer", "d", "fixed", "palm", "left hand")


def test_symbolic_numbers_of_constraints():
    length = casadi.SX.sym("length")
    robot = rm.loops.add_constraint(described().build(), "c", "rod", "bus", "left", length=length)
    assert robot.seen_identity is None
    assert robot.replace_constraint("c", length=2.0).seen_identity is not None


def test_too_many_constraints_are_refused(monkeypatch):
    monkeypatch.setattr(constraint_drafts, "MAX_CONSTRAINTS", 3)
    b = described()
    for k in range(4):
        b.rod(f"rod {k}", "bus", "left", 1.0)
    with pytest.raises(rm.errors.ModelError, match="has 4 constraints; 3 are allowed"):
        b.build()


@pytest.mark.parametrize(
    "name", ["a b", "ü/ç", "x.y", "'", '"', "\n", "null", "-", "[red]", "1", "✂" * 300]
)
def test_names_may_hold_any_character(name, tmp_path):
    robot = rm.loops.add_constraint(described().build(), name, "rod", "bus", "left", length=1.0)
    rm.save_robot(robot, tmp_path / "robot.yaml")
    again = rm.load(tmp_path / "robot.yaml", merge_fixed=False)
    assert again.constraints.names == [name]
    assert again == robot
    assert robot.with_active(off=[name]).with_active(on=[name]) == robot
    assert pickle.loads(pickle.dumps(robot)) == robot
    assert rm.combine({"p": robot}).constraints.names == [f"p/{name}"]
