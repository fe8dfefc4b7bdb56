"""Remora's YAML: exact round trips, and refusals that say where and why."""

import dataclasses
import os
import re
import textwrap
import time

import casadi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remora.algebra import pose
from remora.errors import ModelError, RemoraError
from remora.model.building.builder import Builder
from remora.model.formats.load import load
from remora.model.formats.random_robot import random_robot
from remora.model.formats.yaml import yaml, yaml_tree
from remora.model.formats.yaml.yaml import read_yaml, robot_to_yaml, save_robot
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Geometry, Robot


def bits(x):
    return np.asarray(x, dtype=float).tobytes()


def assert_same(a: Robot, b: Robot) -> None:
    """Every number bit for bit, every name, the order; warnings excepted."""
    assert (a.name, a.nq, a.nv, bits(a.gravity)) == (b.name, b.nq, b.nv, bits(b.gravity))
    assert a.bodies.names == b.bodies.names
    assert a.joints.names == b.joints.names
    assert a.frames.names == b.frames.names
    for one, two in zip(a.bodies, b.bodies, strict=True):
        for key in ("mass", "com", "inertia"):
            assert bits(getattr(one, key)) == bits(getattr(two, key)), (one.name, key)
        for g, h in zip(one.geometry, two.geometry, strict=True):
            assert (g.kind, g.size, g.color, g.mesh) == (h.kind, h.size, h.color, h.mesh)
            assert bits(g.placement) == bits(h.placement)
    for one, two in zip(a.joints, b.joints, strict=True):
        for key in ("kind", "parent", "q", "v", "mimic"):
            assert getattr(one, key) == getattr(two, key), (one.name, key)
        for key in ("placement", "axes", "pitch", "damping", "friction", "rotor_inertia"):
            assert bits(getattr(one, key)) == bits(getattr(two, key)), (one.name, key)
        for key in ("lower", "upper", "velocity", "effort"):
            assert bits(getattr(one.limits, key)) == bits(getattr(two.limits, key))
    for one, two in zip(a.frames, b.frames, strict=True):
        assert (one.body, bits(one.placement)) == (two.body, bits(two.placement))
    for one, two in zip(a.constraints, b.constraints, strict=True):
        assert one == two, one.name
        for key in ("parent_placement", "child_placement", "axes"):
            assert bits(getattr(one, key)) == bits(getattr(two, key)), (one.name, key)


def test_angles_may_be_in_degrees(tmp_path):
    text = """
    remora: 1
    bodies:
      - {name: bus, mass: 10, inertia: [1, 1, 1]}
      - name: arm
        mass: 1
        inertia: [1, 1, 1]
        joint: {name: hinge, kind: revolute, parent: bus, rpy: [0, -90 deg, 1.5], lower: -115deg,
                upper: 2, velocity: 5 deg/s, stiffness: 3, spring_reference: 1e1 deg}
        geometry: [{kind: sphere, size: 0.1, rpy: [45 deg, 0, 0]}]
      - name: tube
        mass: 1
        inertia: [1, 1, 1]
        joint: {name: tube, kind: cylindrical, parent: bus, upper: [90 deg, 0.5]}
      - name: finger
        mass: 1
        inertia: [1, 1, 1]
        joint: {name: finger, kind: revolute, parent: arm,
                mimic: {joint: hinge, ratio: 2, offset: 20 deg}}
    frames: [{name: tool, body: arm, rpy: [0, 0, 180 deg]}]
    constraints:
      - {name: latch, kind: fixed, parent: bus, child: tube, active: false,
         child_rpy: [0, 30 deg, 0]}
    """
    file = tmp_path / "robot.yaml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    robot = load(file)
    hinge, tube = robot.joints["hinge"], robot.joints["tube"]
    turn = np.radians
    assert bits(hinge.placement) == bits(pose.from_xyz_rpy((0, 0, 0), (0, turn(-90), 1.5)))
    assert bits(hinge.limits.lower) == bits([turn(-115)])
    assert bits(hinge.limits.upper) == bits([2.0])
    assert bits(hinge.limits.velocity) == bits([turn(5)])
    assert bits(hinge.spring_reference) == bits([turn(10)])
    assert bits(tube.limits.upper) == bits([turn(90), 0.5])
    assert robot.joints["finger"].mimic.offset == turn(20)
    shape = robot.bodies["arm"].geometry[0]
    assert bits(shape.placement) == bits(pose.from_xyz_rpy((0, 0, 0), (turn(45), 0, 0)))
    assert bits(robot.frames["tool"].placement) == bits(
        pose.from_xyz_rpy((0, 0, 0), (0, 0, turn(180)))
    )
    end = robot.constraints["latch"].child_placement
    assert bits(end) == bits(pose.from_xyz_rpy((0, 0, 0), (0, turn(30), 0)))
    save_robot(robot, tmp_path / "again.yaml")
    assert_same(robot, load(tmp_path / "again.yaml"))


def constrained(builder: Builder, bodies: list[str], joints: list[str]) -> Builder:
    """Add a constraint of every kind between random bodies, and a gear between the joints."""
    rng = np.random.default_rng(8)
    for i, kind in enumerate(k for k in JOINT_TYPES if k != "free"):
        parent, child = rng.choice([*bodies, None], 2, replace=False)
        axes = {"axis": rng.normal(size=3)} if JOINT_TYPES[kind].axes else {}
        axes |= {"axis2": rng.normal(size=3)} if kind == "universal" else {}
        builder.constraint(
            f"c: {kind}", kind, parent, child, parent_xyz=rng.normal(size=3),
            parent_rpy=rng.normal(size=3), child_placement=pose.from_xyz_rpy(rng.normal(size=3)),
            pitch=0.1 / 3 if kind == "helical" else 0.0, active=bool(i % 2), **axes,
        )  # fmt: skip
    builder.rod("strut", bodies[0], bodies[-1], 1 / 3, child_xyz=(0.1, -0.0, 1 / 3), active=False)
    builder.gear("gear", joints[0], joints[1], -1 / 3, offset=0.1)
    return builder


def everything() -> Builder:
    """A robot with every kind of joint and everything the format can say."""
    rng = np.random.default_rng(7)
    shapes = [
        Geometry("box", (1.0, 2.0, 0.1), pose.from_xyz_rpy((0.1, 0, 0), (1, 2, 3))),
        Geometry("sphere", (0.3,), pose.from_xyz_rpy((0, 0, 0)), (0.1, 0.2, 1.0, 0.5)),
        Geometry("capsule", (0.3, 1 / 3), pose.from_xyz_rpy((0, -0.0, 0))),
    ]
    builder = Builder("every thing: 'quoted' \"twice\"\n\t\u2028é", gravity=(0.0, -0.0, -9.81 / 3))
    builder.body("bus", 100.0, (0, 0, 0.1), (20.0, 20.0, 30.0), shapes)
    builder.joint("root", "free", None, "bus", xyz=(1, 2, 3), rpy=(0.3, 0.2, 0.1))
    parent = "bus"
    for i, (kind, row) in enumerate(JOINT_TYPES.items()):
        A = rng.normal(size=(3, 3))
        turned = A @ A.T + np.eye(3) * np.trace(A @ A.T)
        name = f"b{i}" if i % 2 else f"{i}"
        builder.body(name, rng.uniform(0.1, 2), rng.normal(size=3), turned)
        builder.joint(
            kind,
            kind,
            parent,
            name,
            xyz=rng.normal(size=3),
            rpy=rng.normal(size=3),
            pitch=0.1 / 3 if kind == "helical" else 0.0,
            lower=-rng.uniform(1, 2, row.nv),
            upper=np.where(np.arange(row.nv) == 1, np.inf, 1 / 3),
            velocity=rng.uniform(1, 2, row.nv),
            damping=rng.uniform(size=row.nv),
            friction=0.2,
            rotor_inertia=0.01,
            **{key: rng.normal(size=3) for key in ("axis", "axis2")[: row.axes]},
        )
        parent = name if i % 3 else "bus"
    builder.body("finger", 0.1, inertia=(1e-5, 1e-5, 1e-5))
    builder.joint("follow", "prismatic", "b1", "finger", mimic=("revolute", -1 / 3, 0.1))
    builder.frame("tool", "b3", xyz=(0.1, 0.2, 0.3), rpy=(1, 1, 1))
    builder.frame("null", None, xyz=(5, 0, 0))
    builder.frame("at the bus", "bus")
    return constrained(builder, ["0", "b1", "2", "tool", "4"], ["revolute", "helical"])


@pytest.mark.parametrize("merge", [False, True])
def test_round_trip_of_everything_is_exact(tmp_path, merge):
    robot = everything().build(merge_fixed=merge)
    assert {j.kind for j in robot.joints} == set(JOINT_TYPES) - ({"fixed"} if merge else set())
    save_robot(robot, tmp_path / "robot.yaml")
    again = read_yaml(tmp_path / "robot.yaml").build()
    assert_same(robot, again)
    assert robot_to_yaml(again) == robot_to_yaml(robot)


@pytest.mark.parametrize("seed", range(30))
def test_round_trip_of_random_robots_is_exact(tmp_path, seed):
    robot = random_robot(seed, bodies=12, gravity=True)
    save_robot(robot, tmp_path / "robot.yaml")
    assert_same(robot, read_yaml(tmp_path / "robot.yaml").build())


def test_round_trip_of_a_long_chain_of_merged_links_is_exact(tmp_path):
    builder = Builder("chain").body("b0", 1.0, inertia=(1, 1, 1))
    for i in range(1, 200):
        builder.body(f"b{i}", 1.0, inertia=(1, 1, 1))
        builder.joint(f"j{i}", "fixed", f"b{i - 1}", f"b{i}", xyz=(0.1, 0, 0), rpy=(1, 2, 3))
    robot = builder.build(merge_fixed=True)
    save_robot(robot, tmp_path / "robot.yaml")
    assert_same(robot, read_yaml(tmp_path / "robot.yaml").build())


def test_meshes_are_saved_relative_to_the_file(tmp_path):
    (tmp_path / "meshes").mkdir()
    mesh = Geometry("mesh", (1.0, 1.0, 2.0), pose.from_xyz_rpy((0, 0, 0)), None,
                    str(tmp_path.resolve() / "meshes" / "a b.stl"))  # fmt: skip
    robot = Builder("m").body("b", 1.0, inertia=(1, 1, 1), geometry=[mesh]).build()
    save_robot(robot, tmp_path / "robot.yaml")
    assert "meshes/a b.stl" in (tmp_path / "robot.yaml").read_text()
    assert_same(robot, read_yaml(tmp_path / "robot.yaml").build())
    with pytest.raises(RemoraError, match="save the robot in a folder above"):
        save_robot(robot, tmp_path / "elsewhere" / "robot.yaml")


def test_meshes_are_found_as_in_urdf(tmp_path):
    (tmp_path / "robots").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").touch()
    names = (
        "../meshes/a.stl",
        "package://arm/meshes/a.stl",
        "gone.stl",
        "http://example.org/a.stl",
    )
    shapes = "".join(f"      - {{kind: mesh, mesh: '{name}'}}\n" for name in names)
    path = tmp_path / "robots" / "robot.yaml"
    body = "  - name: bus\n    mass: 1\n    inertia: [1, 1, 1]\n    geometry:\n"
    path.write_text(f"{HEAD}{body}{shapes}")
    robot = load(path, mesh_root=tmp_path)
    mesh = str((tmp_path / "meshes" / "a.stl").resolve())
    gone = str((tmp_path / "robots").resolve() / "gone.stl")
    assert [g.mesh for g in robot.bodies["bus"].geometry] == [mesh, mesh, gone]
    assert "line 9, body 'bus', geometry[2]: mesh 'gone.stl': there is no such" in robot.warnings[0]
    assert "mesh 'http://example.org/a.stl' is neither path" in robot.warnings[1]
    with pytest.raises(ModelError, match=r"leads out of .*; allow another mesh_root"):
        load(path)


def test_the_example_of_the_documentation_is_a_robot(tmp_path):
    path = tmp_path / "robot.yaml"
    example = yaml.__doc__.partition("frames:\n\n")[2].partition("\n\nA body")[0]
    path.write_text("\n".join(line[4:] for line in example.splitlines()))
    robot = read_yaml(path).build()
    assert (robot.name, robot.nv, robot.frames.names) == ("one arm", 7, ["tool"])


def test_the_root_may_leave_its_joint_to_the_loader(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text("remora: 1\nbodies:\n  - {name: bus, mass: 1e1, inertia: [1, 1, 1]}\n")
    robot = read_yaml(path).build(base="planar")
    assert (robot.name, robot.joints[0].kind) == ("robot", "planar")
    assert robot.bodies["bus"].mass == 10.0


def test_what_is_no_plain_number_cannot_be_saved(tmp_path):
    robot = random_robot(1)
    first = robot.bodies[0].name
    symbol = np.array(casadi.SX.sym("m"), dtype=object)
    for changed in (
        robot.replace_body(first, mass=symbol),
        robot.replace_body(first, mass=np.ones(3)),
        robot.replace_body(first, inertia=np.ones((2, 3, 3))),
        dataclasses.replace(robot, gravity=np.array([0, np.nan, 0])),
    ):
        with pytest.raises(RemoraError, match="saved"):
            save_robot(changed, tmp_path / "robot.yaml")
    assert not (tmp_path / "robot.yaml").exists()
    with pytest.raises(RemoraError, match="cannot be written"):
        save_robot(robot, tmp_path / "nowhere" / "robot.yaml")


# Refusals ------------------------------------------------------------------------------------

HEAD = "remora: 1\nbodies:\n"
BUS = "  - {name: bus, mass: 10, inertia: [1, 1, 1]}\n"
GOOD = HEAD + BUS


def arm(joint: str = "name: j, kind: revolute, parent: bus", body: str = "mass: 1") -> str:
    """A good bus on line 3 and on line 4 an arm with this joint and this body."""
    return f"{GOOD}  - {{name: arm, {body}, joint: {{{joint}}}}}\n"


def shape(text: str) -> str:
    return f"{HEAD}  - name: bus\n    mass: 1\n    geometry:\n      - {{{text}}}\n"


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def constraint(text: str) -> str:
    """A good robot, and on line 6 a constraint."""
    return f"{arm(body='mass: 1, inertia: [1, 1, 1]')}constraints:\n  - {{{text}}}\n"


# name: (text, line, part of the reason)
MALFORMED = {
    "constraints that are no list": (GOOD + "constraints: 3\n", 4, "must be a list"),
    "a constraint that is no map": (GOOD + "constraints: [3]\n", 4, "must be a map"),
    "a constraint without a name": (
        constraint("kind: fixed, parent: bus, child: arm"), 6, "name is missing",
    ),
    "a constraint without a kind": (
        constraint("name: c, parent: bus, child: arm"), 6, "kind is missing",
    ),
    "a constraint of unknown kind": (
        constraint("name: c, kind: glue, parent: bus, child: arm"), 6, "unknown kind 'glue'",
    ),
    "a free constraint": (
        constraint("name: c, kind: free, parent: bus, child: arm"), 6, "constrains nothing",
    ),
    "a constraint without a child": (
        constraint("name: c, kind: fixed, parent: bus"), 6, "child is missing",
    ),
    "a constraint on an unknown body": (
        constraint("name: c, kind: fixed, parent: bus, child: leg"), 6, "unknown child body",
    ),
    "a constraint of a body to itself": (
        constraint("name: c, kind: fixed, parent: arm, child: arm"), 6, "'arm' to itself",
    ),
    "a constraint with the length of a rod": (
        constraint("name: c, kind: fixed, parent: bus, child: arm, length: 1"), 6,
        "unknown key 'length'",
    ),
    "a rod without a length": (
        constraint("name: c, kind: rod, parent: bus, child: arm"), 6, "length is missing",
    ),
    "a rod of negative length": (
        constraint("name: c, kind: rod, parent: bus, child: arm, length: -1"), 6,
        "length must be positive",
    ),
    "a rod of infinite length": (
        constraint("name: c, kind: rod, parent: bus, child: arm, length: .inf"), 6,
        "must be finite numbers",
    ),
    "a constraint with a zero axis": (
        constraint("name: c, kind: revolute, parent: bus, child: arm, axis: [0, 0, 0]"), 6,
        "axis is zero",
    ),
    "a constraint placed twice": (
        constraint("name: c, kind: fixed, parent: bus, child: arm, child_xyz: [0, 0, 0], "
                   "child_placement: [1, 0, 0, 0, 0, 0, 0, 0]"), 6,
        "gives a child_placement and child_xyz",
    ),
    "a constraint that is a bit active": (
        constraint("name: c, kind: fixed, parent: bus, child: arm, active: 1"), 6,
        "active must be true or false",
    ),
    "a gear on the base": (
        constraint("name: c, kind: gear, parent: base, child: j"), 6,
        "'base' is free; it must have one coordinate",
    ),
    "a gear of a joint with itself": (
        constraint("name: c, kind: gear, parent: j, child: j"), 6, "'j' to itself",
    ),
    "a gear on an unknown joint": (
        constraint("name: c, kind: gear, parent: k, child: j"), 6, "unknown leading joint 'k'",
    ),
    "a rod with angles": (
        constraint("name: c, kind: rod, parent: bus, child: arm, length: 1, child_rpy: [0, 0, 0]"),
        6, "unknown key 'child_rpy'",
    ),
    "a gear with a pose": (
        constraint("name: c, kind: gear, parent: k, child: j, child_xyz: [0, 0, 0]"), 6,
        "unknown key 'child_xyz'",
    ),
    "empty": ("", 1, "empty"),
    "only a comment": ("# nothing\n", 1, "empty"),
    "a list at the top": ("- a\n- b\n", 1, "must be a map"),
    "a word at the top": ("robot\n", 1, "must be a map"),
    "no version": ("bodies:\n" + BUS, 1, "remora: 1"),
    "a later version": ("name: a\nremora: 2\nbodies:\n" + BUS, 2, "remora: 1"),
    "no bodies": ("remora: 1\n", None, "no bodies"),
    "bodies is a map": ("remora: 1\nbodies: {bus: 1}\n", 2, "must be a list"),
    "bodies is text": ("remora: 1\n\nbodies: bus\n", 3, "must be a list"),
    "a body is a word": (GOOD + "  - arm\n", 4, "must be a map"),
    "unknown key at the top": (GOOD + "colour: red\n", 4, "unknown key 'colour'; known: remora"),
    "unknown key of a body": (HEAD + "  - name: bus\n    weight: 1\n", 4, "unknown key 'weight'"),
    "unknown key of a joint": (arm("name: j, kind: free, parent: bus, q: 1"), 4, "unknown key 'q'"),
    "key given twice": (HEAD + "  - name: bus\n    mass: 1\n    mass: 2\n", 5, "first on line 4"),
    "key given twice in braces": (arm(body="mass: 1, mass: 1"), 4, "is given twice"),
    "body without name": (HEAD + "  - {mass: 1}\n", 3, "name is missing"),
    "body with an empty name": (HEAD + "  - {name: '', mass: 1}\n", 3, "name is empty"),
    "a number for a name": (HEAD + "  - {name: 12, mass: 1}\n", 3, "put it in quotes"),
    "true for a name": (HEAD + "  - {name: true, mass: 1}\n", 3, "put it in quotes"),
    "endless name": (HEAD + f"  - {{name: {'n' * 5000}, mass: 1}}\n", 3, "longer than"),
    "two bodies of one name": (HEAD + BUS + BUS, 4, "used twice"),
    "joint without name": (arm("kind: revolute, parent: bus"), 4, "name is missing"),
    "joint without kind": (arm("name: j, parent: bus"), 4, "kind is missing"),
    "joint without parent": (arm("name: j, kind: revolute"), 4, "null for the inertial frame"),
    "joint of empty kind": (arm("name: j, kind: '', parent: bus"), 4, "kind is empty"),
    "joint of unknown kind": (arm("name: j, kind: hinge, parent: bus"), 4, "known: fixed"),
    "joint of unknown parent": (arm("name: j, kind: free, parent: tus"), 4, "unknown parent 'tus'"),
    "joint is a list": (f"{GOOD}  - {{name: arm, mass: 1, joint: [j]}}\n", 4, "must be a map"),
    "cycle": (
        HEAD
        + "  - {name: a, mass: 1, joint: {name: ja, kind: revolute, parent: b}}\n"
        + "  - {name: b, mass: 1, joint: {name: jb, kind: revolute, parent: a}}\n",
        3,
        "cycle",
    ),
    "two roots": (GOOD + "  - {name: arm, mass: 1}\n", 4, "several roots"),
    "degrees for a mass": (arm(body="mass: 1 deg"), 4, "mass must be finite numbers, not '1 deg'"),
    "degrees of a slide": (
        arm("name: j, kind: prismatic, parent: bus, upper: 30 deg"), 4,
        "upper is in degrees, but joint 'j' (prismatic) moves by metres",
    ),
    "degrees of both freedoms": (
        arm("name: j, kind: cylindrical, parent: bus, lower: -30 deg"), 4, "moves by metres",
    ),
    "radians as a text": (
        arm("name: j, kind: revolute, parent: bus, upper: 1 rad"), 4,
        "or degrees such as '30 deg', not '1 rad'",
    ),
    "an angle for a rate": (
        arm("name: j, kind: revolute, parent: bus, velocity: 30 deg"), 4, "such as '30 deg/s'",
    ),
    "a gear of slides in degrees": (
        HEAD + BUS + "".join(
            f"  - {{name: {n}, mass: 1, inertia: [1, 1, 1], "
            f"joint: {{name: {n}, kind: prismatic, parent: bus}}}}\n" for n in "ab"
        ) + "constraints:\n  - {name: g, kind: gear, parent: a, child: b, offset: 5 deg}\n", 7,
        "offset is in degrees, but joint 'b'",
    ),
    "words for a mass": (arm(body="mass: heavy"), 4, "mass must be finite numbers, not 'heavy'"),
    "decimal comma": (arm(body="mass: '1,5'"), 4, "not '1,5'"),
    "null for a mass": (arm(body="mass: null"), 4, "not null"),
    "true for a mass": (arm(body="mass: true"), 4, "not true"),
    "a map for a mass": (arm(body="mass: {kg: 1}"), 4, "not a map"),
    "a list for a mass": (arm(body="mass: [1]"), 4, "must be one number"),
    "negative mass": (arm(body="mass: -1"), 4, "negative"),
    "zero mass": (arm(body="mass: 0"), 4, "zero"),
    "no mass": (arm(body="com: [0, 0, 0]"), 4, "zero"),
    ".nan": (arm(body="mass: .nan"), 4, "not '.nan'"),
    "nan": (arm(body="mass: nan"), 4, "not 'nan'"),
    ".inf": (arm(body="mass: 1, com: [0, .inf, 0]"), 4, "not '.inf'"),
    "a number without end": (arm(body="mass: 1e999"), 4, "finite"),
    "hexadecimal": (arm(body="mass: 0x10"), 4, "not '0x10'"),
    "underscores": (arm(body="mass: 1_000"), 4, "not '1_000'"),
    "a million digits": (arm(body=f"mass: {'9' * 1_000_000}"), 4, "finite numbers"),
    "two numbers for three": (arm(body="mass: 1, com: [0, 0]"), 4, "3 numbers"),
    "uneven inertia": (arm(body="mass: 1, inertia: [[1, 0], [1], 3]"), 4, "inertia"),
    "inertia not symmetric": (
        arm(body="mass: 1, inertia: [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]"), 4, "symmetric"
    ),
    "triangle inequality": (arm(body="mass: 1, inertia: [1, 1, 3]"), 4, "triangle"),
    "zero axis": (arm("name: j, kind: revolute, parent: bus, axis: [0, 0, 0]"), 4, "axis is zero"),
    "too many axes": (arm("name: j, kind: spherical, parent: bus, axis: [0, 0, 1]"), 4, "0 axes"),
    "universal with one axis": (arm("name: j, kind: universal, parent: bus"), 4, "axis2"),
    "pitch of a revolute": (arm("name: j, kind: revolute, parent: bus, pitch: 1"), 4, "no pitch"),
    "placement and xyz": (
        arm("name: j, kind: free, parent: bus, xyz: [0, 0, 0], placement: [1,0,0,0,0,0,0,0]"),
        4,
        "give one of them",
    ),
    "placement not unit": (
        arm("name: j, kind: free, parent: bus, placement: [2,0,0,0,0,0,0,0]"), 4, "unit dual"
    ),
    "limits crossed": (
        arm("name: j, kind: revolute, parent: bus, lower: 1, upper: -1"), 4, "above the upper"
    ),
    "limits of a wrong count": (
        arm("name: j, kind: revolute, parent: bus, lower: [1, 2]"), 4, "one number or 1"
    ),
    "mimics nothing": (
        arm("name: j, kind: revolute, parent: bus, mimic: {joint: k}"), 4, "unknown joint 'k'"
    ),
    "mimics itself": (
        arm("name: j, kind: revolute, parent: bus, mimic: {joint: j}"), 4, "cycle"
    ),
    "mimic without joint": (
        arm("name: j, kind: revolute, parent: bus, mimic: {ratio: 2}"), 4, "joint is missing"
    ),
    "gravity is one number": ("remora: 1\ngravity: 9.81\nbodies:\n" + BUS, 2, "3 numbers"),
    "gravity is text": ("remora: 1\ngravity: down\nbodies:\n" + BUS, 2, "not 'down'"),
    "frame on nothing": (GOOD + "frames:\n  - {name: f, body: arm}\n", 5, "unknown body 'arm'"),
    "frame without body": (GOOD + "frames:\n  - {name: f}\n", 5, "body is missing"),
    "frame named like a body": (GOOD + "frames:\n  - {name: bus, body: bus}\n", 5, "used twice"),
    "shape of unknown kind": (shape("kind: cone, size: [1, 1]"), 6, "known: box"),
    "shape without size": (shape("kind: box"), 6, "size is missing"),
    "shape of wrong size": (shape("kind: box, size: [1, 1]"), 6, "3 numbers"),
    "shape of negative size": (shape("kind: sphere, size: -1"), 6, "negative"),
    "colour out of range": (shape("kind: sphere, size: 1, color: [1, 1, 1, 255]"), 6, "0 to 1"),
    "mesh without file": (shape("kind: mesh"), 6, "mesh is missing"),
    "mesh that climbs out": (shape("kind: mesh, mesh: ../../etc/passwd"), 6, "leads out"),
    "absolute mesh": (shape("kind: mesh, mesh: /etc/passwd"), 6, "leads out"),
    "mesh address": (shape("kind: mesh, mesh: 'file:///etc/passwd'"), 6, "leads out"),
    "mesh with a null": (shape('kind: mesh, mesh: "a\\0b"'), 6, "cannot be followed"),
    "mesh of a box": (shape("kind: box, size: [1, 1, 1], mesh: a.stl"), 6, "for the kind mesh"),
    "alias bomb": (BOMB, 1, "aliases"),
    "alias": ("remora: 1\nbodies: *b\n", 2, "aliases"),
    "anchor": ("remora: 1\nname: &n a\n", 2, "anchors"),
    "merge key": ("remora: 1\n<<: {a: 1}\nbodies:\n" + BUS, 2, "unknown key '<<'"),
    "python object": ("remora: 1\nname: !!python/object/apply:os.system [ls]\n", 2, "tags"),
    "tag": ("remora: 1\nname: !mine a\n", 2, "tags"),
    "standard tag": ("remora: 1\nname: !!str 12\n", 2, "tags"),
    "tab": ("remora: 1\n\tname: a\n", 2, "is not YAML"),
    "truncated in braces": (GOOD + "  - {name: arm, mass", 4, "is not YAML"),
    "truncated in quotes": (GOOD + "  - {name: 'ar", 4, "is not YAML"),
    "wrong indent": ("remora: 1\n  name: a\n", 2, "is not YAML"),
    "two documents": (GOOD + "---\n" + GOOD, 4, "second document"),
    "a list for a key": ("remora: 1\n? [a, b]\n: c\n", 2, "key must be a word"),
    "a number for a key": ("remora: 1\n2: c\n", 2, "key must be a word"),
    "null character": ("remora: 1\nname: a\0b\n", 2, "unprintable character U+0000"),
    "nested brackets": (f"remora: 1\nname: {'[' * 1_000_000}", 2, "nested deeper"),
    "nested braces": (f"remora: 1\nname: {'{a: ' * 1_000_000}", 2, "nested deeper"),
    "nested dashes": (f"remora: 1\nname:\n  {'- ' * 1_000_000}", 3, "nested deeper"),
    "nested maps": ("".join(" " * i + "a:\n" for i in range(1000)), 17, "nested deeper"),
    "XML": ("<robot name='a'/>\n", 1, "must be a map"),
    "JSON cut short": ('{"remora": 1, "bodies": [', 1, "is not YAML"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_text_is_refused_with_file_line_and_reason(tmp_path, case):
    text, line, reason = MALFORMED[case]
    path = tmp_path / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(ModelError) as caught:
        read_yaml(path).build()
    assert time.process_time() - start < 5.0
    assert str(path) in str(caught.value)
    assert any(reason in f.reason and f.line == line for f in caught.value.faults), caught.value
    assert all(fault.element for fault in caught.value.faults)


def test_all_faults_come_in_one_report(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(
        "remora: 1\nbodies:\n  - name: bus\n    mass: -1\n    inertia: [1, 1, 3]\n"
        "    colour: red\n    mass: 2\n    joint: {name: j, kind: hinge, parent: x}\n"
    )
    with pytest.raises(ModelError) as caught:
        read_yaml(path).build()
    lines = [fault.line for fault in caught.value.faults]
    assert len(lines) == 6
    assert set(lines) == {3, 6, 7, 8}


LONG = "x" * 200
#: Text, where it is told, and the lengths of what is told of it.
CUT = {
    "name": (f"{HEAD}  - {{name: {LONG}, mass: -1}}\n", "element", {60}),
    "unknown key": (f"{GOOD}{LONG}: 1\n", "reason", {60}),
    "twice": (f"{GOOD}{LONG}: 1\n{LONG}: 2\n", "element", {60}),
    "tag": (f"remora: 1\nname: !{LONG} 5\n", "reason", {59}),
    "value": (f"{HEAD}  - {{name: bus, mass: {LONG}}}\n", "reason", {56}),
    "joint": (
        f"{GOOD}  - {{name: arm, mass: 1, joint: {{name: {LONG}, kind: prismatic, parent: bus, "
        "upper: 3 deg}}\n", "reason", {60},
    ),
    "kind": (shape(f"kind: {LONG}, mesh: a.stl"), "reason", {60, 76}),
}  # fmt: skip


@pytest.mark.parametrize("case", CUT)
def test_long_texts_of_a_file_are_cut_where_they_are_told(tmp_path, case):
    text, where, lengths = CUT[case]
    path = tmp_path / "robot.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        read_yaml(path).build()
    told = "\n".join(getattr(fault, where) for fault in caught.value.faults)
    assert set(map(len, re.findall("x{20,}", told))) == lengths


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"remora: 1\nname: \xff\xfe\n", "not UTF-8"),
        (bytes(range(256)), "not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", "unprintable"),
        (b"remora: 1\nname: \xed\xa0\x80\n", "not UTF-8"),
    ],
)
def test_binary_is_refused(tmp_path, data, reason):
    path = tmp_path / "robot.yaml"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=f"{re.escape(str(path))}(.|\n)*{reason}"):
        read_yaml(path)


def test_a_byte_order_mark_is_fine(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_yaml(path).build().bodies.names == ["bus"]


def test_large_files_and_what_is_no_file_are_refused_unread(tmp_path):
    large, pipe = tmp_path / "large.yaml", tmp_path / "pipe.yaml"
    with large.open("wb") as file:
        file.truncate(200 * 2**20)
    os.mkfifo(pipe)
    for path, reason in (
        (large, "larger than"),
        (pipe, "not a regular file"),
        (tmp_path, "cannot be read|not a regular file"),
        (tmp_path / "none.yaml", "cannot be read"),
    ):
        with pytest.raises(ModelError, match=reason) as caught:
            read_yaml(path)
        assert str(path) in str(caught.value)


def test_too_many_values_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_tree, "MAX_NODES", 1000)
    path = tmp_path / "robot.yaml"
    path.write_text(f"remora: 1\nname: [{'1,' * 2000}]\n")
    with pytest.raises(ModelError, match="more than 1000 values"):
        read_yaml(path)


# Fuzzing: a robot or a RemoraError, nothing else ------------------------------------------------

PIECES = st.sampled_from(
    [*"[]{}:,-?&*!|>'\"%@`#\n\t \\~=<.0123456789eabcxy\x85\u2028\U0001f600", "  ", "\n  - ", ": ",
     "name", "mass", "joint", "kind", "parent", "null", "bodies:", "remora: 1", "frames:", "bus",
     "revolute", "1e3", ".nan", "---\n", "...\n", "!!", "\\U99999999", "%YAML 1.1\n", '"\\x', "? "]
)  # fmt: skip
ROUGH = st.lists(PIECES, max_size=40).map("".join)
JUNK = st.one_of(
    st.none(), st.booleans(), st.floats().map(repr), st.text(max_size=8).map(repr),
    st.sampled_from(["bus", "arm", "revolute", "[1, 2, 3]", "[[1], 2]", "{a: 1}", "[]", "~",
                     "1e300", "[1e300, 1, 1]", "-1", "[1,1e-300,0,0,0,0,0,0]", "universal",
                     "helical"]),
)  # fmt: skip


CONSTRAINTS = """\
constraints:
  - name: latch
    kind: universal
    parent: body_0
    child: body_2
    parent_xyz: [0.1, 0.2, 0.3]
    child_placement: [1, 0, 0, 0, 0, 0, 0, 0]
    axis: [0, 0, 1]
    axis2: [0, 1, 0]
    active: false
  - {name: strut, kind: rod, parent: null, child: body_3, length: 0.5}
  - name: gear
    kind: gear
    parent: joint_1
    child: joint_2
    ratio: 2
"""


def loads_or_refuses(text: str, path) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        result = read_yaml(path).build(merge_fixed=True)
    except RemoraError as error:
        result = str(error)
    assert isinstance(result, Robot) or str(path) in result


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "robot.yaml"


@settings(max_examples=300, deadline=None)
@given(st.one_of(ROUGH, st.text(max_size=60)))
def test_fuzzed_text(scratch, text):
    loads_or_refuses(text, scratch)
    loads_or_refuses(GOOD + text, scratch)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_fuzzed_values(scratch, data):
    text = robot_to_yaml(random_robot(3, bodies=4))
    text += data.draw(st.sampled_from(["", CONSTRAINTS]))
    for _ in range(data.draw(st.integers(1, 3))):
        values = list(re.finditer(r"(?<=: )[^\n]+", text))
        hit = data.draw(st.sampled_from(values))
        text = text[: hit.start()] + str(data.draw(JUNK)) + text[hit.end() :]
    loads_or_refuses(text, scratch)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_fuzzed_cuts(scratch, data):
    text = robot_to_yaml(random_robot(4, bodies=3))
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    loads_or_refuses(text[:a] + text[b:], scratch)
