"""The reader of Remora's YAML robot files, which cover all features of the robot model.

A file is a list of bodies, each with its joint, and a list of frames:

    remora: 1                       # version of the format
    name: one arm
    gravity: [0, 0, 0]              # m/s², inertial axes
    bodies:
      - name: bus
        mass: 100                   # kg
        com: [0, 0, 0]              # centre of mass in the body frame, m
        inertia: [20, 20, 20]       # about it, kg m²: diagonal; xx xy xz yy yz zz; or 3 x 3
        joint: {name: base, kind: free, parent: null}
      - name: arm
        mass: 5
        com: [0.5, 0, 0]
        inertia: [0.1, 1, 1]
        joint: {name: shoulder, kind: revolute, parent: bus, xyz: [1, 0, 0], axis: [0, 0, 1]}
        geometry: [{kind: box, size: [1, 0.1, 0.1], xyz: [0.5, 0, 0], color: [1, 1, 1, 1]}]
    frames:
      - {name: tool, body: arm, xyz: [1, 0, 0], rpy: [0, 0, 0]}
    constraints:                    # what closes loops, see docs/loops.md
      - {name: latch, kind: fixed, parent: bus, child: tool, parent_xyz: [2, 0, 0], active: false}
      - {name: strut, kind: rod, parent: bus, child: arm, child_xyz: [0.5, 0, 0], length: 1.2}

A body without `joint` is the root; its base joint is chosen when loading. A pose is `xyz` and
`rpy`, or `placement`: the 8 numbers of a unit dual quaternion. Angles are in rad, or in degrees
with their unit: `rpy: [0, 0, 90 deg]`, `upper: 115 deg`, `velocity: 5 deg/s`. `save_robot` writes
files that load again bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remora.model.building.builder import Builder
from remora.model.building.validate import SHAPES, Checker
from remora.model.constraint import GEAR, ROD
from remora.model.formats.mesh_paths import Meshes
from remora.model.formats.yaml.yaml_map import DEGREES, POSE, YamlMap
from remora.model.formats.yaml.yaml_tree import YamlNode, read_tree
from remora.model.formats.yaml.yaml_write import FORMAT, robot_to_yaml, save_robot
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Geometry
from remora.model.robot_fields import PER_SPEED, rows

__all__ = ["read_yaml", "robot_to_yaml", "save_robot"]

_BOUNDS = {name: row.absent for name, row in rows("limits").items()}
_DRIVE = tuple(rows("joint", holds="numbers", shape=PER_SPEED))
_BODY_NUMBERS = tuple(rows("body", holds="numbers"))
_ROBOT_KEYS = ("remora", "name", "gravity", "dynamics", "bodies", "frames", "constraints")
_BODY_KEYS = ("name", *_BODY_NUMBERS, "inertial_frame", "joint", "geometry")
_JOINT_NUMBERS = ("axis", "axis2", "pitch", *_DRIVE)
_JOINT_KEYS = ("name", "kind", "parent", *POSE, *_JOINT_NUMBERS, *_BOUNDS, "mimic")
_MIMIC_KEYS = tuple(rows("mimic"))
_GEOMETRY_KEYS = ("kind", "size", *POSE, "color", "mesh")
_FRAME_KEYS = ("name", "body", *POSE)
_END_KEYS = ("name", "kind", "parent", "child", "active")
_ENDS = tuple(f"{end}_{key}" for end in ("parent", "child") for key in POSE)
#: The numbers of each kind of constraint; the rest are joint types.
_CONSTRAINT_NUMBERS = {
    ROD: (*(key for key in _ENDS if not key.endswith("rpy")), "length"),
    GEAR: ("ratio", "offset"),
}
_JOINT_TYPE_NUMBERS = (*_ENDS, "axis", "axis2", "pitch")
_ANY_CONSTRAINT_KEYS = (*_END_KEYS, *_JOINT_TYPE_NUMBERS, "length", "ratio", "offset")


def read_yaml(path: str | os.PathLike[str], mesh_root: str | Path | None = None) -> Builder:
    """Read a Remora YAML file into a builder.

    Faults are collected in the builder, whose `build` reports them all. Text that is not valid YAML
    is refused immediately.

    Args:
        path: the file.
        mesh_root: the folder that must contain every mesh; default: the folder of the file.

    Raises:
        ModelError: if the file cannot be read or parsed.
    """
    source = os.fspath(path)
    check = Checker()
    robot = YamlMap(check, read_tree(source, check), "robot", _ROBOT_KEYS)
    version = robot.node("remora")
    if version is None or version.value != FORMAT:
        check.fault(robot.place("remora"), f"must say 'remora: {FORMAT}', the format's version")
    name = robot.text("name", default=Path(source).stem)
    gravity = robot.numbers("gravity")
    if gravity is not None:
        gravity = check.numbers(robot.place("gravity"), "gravity", gravity, 3)
    builder = Builder(name, (0.0, 0.0, 0.0) if gravity is None else gravity, source)
    builder.check.faults.extend(check.faults)
    robot.check = builder.check
    builder.dynamics = robot.flag("dynamics", True)
    meshes = Meshes(Path(source), mesh_root)
    for i, node in enumerate(robot.items("bodies")):
        _read_body(
            builder, YamlMap(builder.check, node, f"bodies[{i}]", _BODY_KEYS, "body"), meshes
        )
    for i, node in enumerate(robot.items("frames")):
        frame = YamlMap(builder.check, node, f"frames[{i}]", _FRAME_KEYS, "frame")
        body = frame.reference("body")
        builder.frame(frame.name(), body, place=frame.place(), **frame.pose())
    kinds = _joint_kinds(robot)
    for i, node in enumerate(robot.items("constraints")):
        _read_constraint(builder, node, f"constraints[{i}]", kinds)
    return builder


def _joint_kinds(robot: YamlMap) -> dict[str, str]:
    """Return the types of the joints of a file by their names, as far as it gives them."""
    found: dict[str, str] = {}
    for body in robot.items("bodies"):
        joint = body.value.get("joint") if isinstance(body.value, dict) else None
        if joint is not None and isinstance(joint.value, dict):
            name, kind = (joint.value.get(key) for key in ("name", "kind"))
            if name is not None and kind is not None:
                found[str(name.value)] = str(kind.value)
    return found


def _read_body(builder: Builder, body: YamlMap, meshes: Meshes) -> None:
    name = body.name()
    geometry: list[Geometry] = []
    for i, node in enumerate(body.items("geometry")):
        element = f"{body.element}, geometry[{i}]"
        entries = YamlMap(builder.check, node, element, _GEOMETRY_KEYS)
        shape = _read_geometry(builder, entries, meshes)
        if shape is not None:
            geometry.append(shape)
    numbers = body.given(*_BODY_NUMBERS, "inertial_frame")
    builder.body(name, geometry=geometry, place=body.place(), **numbers)
    node = body.node("joint")
    if node is not None:
        element = f"joint of body {name!r}"
        _read_joint(builder, YamlMap(builder.check, node, element, _JOINT_KEYS, "joint"), name)


def _read_joint(builder: Builder, joint: YamlMap, child: str) -> None:
    kind = joint.text("kind")
    if not kind:  # already a fault; nothing else can be checked
        place = joint.place()
        builder.kindless_joint(joint.name(), joint.reference("parent"), child, place)
        return
    numbers = joint.given(*_JOINT_NUMBERS)
    for key, unlimited in _BOUNDS.items():
        bound = joint.numbers(key, null=unlimited)
        if bound is not None:
            numbers[key] = bound
    for key in DEGREES:
        if key in numbers:
            joint.check_degrees(key, numbers[key], joint.name(), kind)
    if kind in JOINT_TYPES and kind != "helical" and "pitch" in numbers:
        joint.check.fault(joint.place("pitch"), f"a {kind} joint has no pitch; a helical one has")
    mimic = None
    node = joint.node("mimic")
    if node is not None:
        follow = YamlMap(joint.check, node, f"{joint.element}, mimic", _MIMIC_KEYS)
        leader = follow.text("joint")
        factors = {"ratio": 1.0, "offset": 0.0, **follow.given("ratio", "offset")}
        follow.check_degrees("offset", factors["offset"], joint.name(), kind)
        mimic = (leader, factors["ratio"], factors["offset"])
    builder.joint(
        joint.name(),
        kind,
        joint.reference("parent"),
        child,
        mimic=mimic,
        place=joint.place(),
        **joint.pose(),
        **numbers,
    )


def _read_constraint(
    builder: Builder, node: YamlNode, element: str, kinds: Mapping[str, str]
) -> None:
    entries = node.value if isinstance(node.value, dict) else {}
    kind_node = entries.get("kind")
    kind = kind_node.value if kind_node is not None and isinstance(kind_node.value, str) else ""
    numbers = _CONSTRAINT_NUMBERS.get(kind, _JOINT_TYPE_NUMBERS)
    known = kind in (ROD, GEAR) or kind in JOINT_TYPES
    keys = (*_END_KEYS, *numbers) if known else _ANY_CONSTRAINT_KEYS
    constraint = YamlMap(builder.check, node, element, keys, "constraint")
    poses = {**constraint.pose("parent_"), **constraint.pose("child_")}
    given: dict[str, Any] = {
        **{key: value for key, value in poses.items() if key in numbers},
        **constraint.given(*(key for key in numbers if key not in _ENDS)),
        "active": constraint.flag("active", True),
        "place": constraint.place(),
    }
    name, kind = constraint.name(), constraint.text("kind")
    if kind == GEAR:
        leader, driven = constraint.text("parent"), constraint.text("child")
        constraint.check_degrees("offset", given.get("offset"), driven, kinds.get(driven, ""))
        builder.gear(name, leader, driven, **given)
        return
    parent, child = constraint.reference("parent"), constraint.reference("child")
    if kind == ROD and constraint.node("length") is None:
        constraint.check.fault(constraint.place(), "length is missing")
    elif kind == ROD and "length" in given:
        builder.rod(name, parent, child, **given)
    elif kind and kind != ROD:  # a missing kind is already a fault
        builder.constraint(name, kind, parent, child, **given)


def _read_geometry(builder: Builder, shape: YamlMap, meshes: Meshes) -> Geometry | None:
    """Return the shape, or None if it is faulty or omitted."""
    check, before = shape.check, len(shape.check.faults)
    kind, size, color = shape.text("kind"), shape.numbers("size"), _color(shape)
    placement = check.pose(shape.place(), **shape.pose())
    mesh = None
    if kind == "mesh":
        size = (1.0, 1.0, 1.0) if shape.node("size") is None else size
        mesh = _mesh(builder, shape, meshes)
    elif shape.node("size") is None:
        check.fault(shape.place(), "size is missing")
    if kind != "mesh" and shape.node("mesh") is not None:
        check.fault(shape.place("mesh"), f"is for the kind mesh, not for {kind[:60]!r}")
    size = (size,) if isinstance(size, float) else size
    found = Geometry(kind, tuple(size or ()), placement, color, mesh)
    if kind and (size is not None or kind not in SHAPES):  # a missing value is already a fault
        check.geometry(shape.place("size" if kind in SHAPES else "kind"), found)
    if len(check.faults) > before or (kind == "mesh" and mesh is None):
        return None
    return found


def _color(shape: YamlMap) -> tuple[float, float, float, float] | None:
    color = shape.numbers("color")
    if color is None:
        return None
    rgba = shape.check.numbers(shape.place("color"), "color", color, 4)
    if np.any((rgba < 0.0) | (rgba > 1.0)):
        reason = f"color must be red, green, blue, alpha from 0 to 1, not {rgba}"
        shape.check.fault(shape.place("color"), reason)
    r, g, b, a = (float(c) for c in rgba)
    return r, g, b, a


def _mesh(builder: Builder, shape: YamlMap, meshes: Meshes) -> str | None:
    name, place = shape.text("mesh"), shape.place("mesh")
    if not name:
        return None
    fault, warn = partial(shape.check.fault, place), partial(builder.warn, place)
    return meshes.named(name, f"mesh {name[:60]!r}", fault, warn)
