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
`rpy`, or `placement`: the 8 numbers of a unit dual quaternion. `save_robot` writes files that load
again bit for bit.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remora.model.building.builder import Builder
from remora.model.building.validate import SHAPES, Checker, Place
from remora.model.constraint import GEAR, ROD
from remora.model.formats.mesh_paths import Meshes
from remora.model.formats.yaml.yaml_tree import YamlNode, read_tree, shown
from remora.model.formats.yaml.yaml_write import FORMAT, robot_to_yaml, save_robot
from remora.model.joint_types import JOINT_TYPES
from remora.model.robot import Geometry
from remora.model.robot_fields import PER_SPEED, rows

__all__ = ["read_yaml", "robot_to_yaml", "save_robot"]

#: Maximum length of a name or path.
MAX_TEXT = 1000

_POSE = ("placement", "xyz", "rpy")
_BOUNDS = {name: row.absent for name, row in rows("limits").items()}
_DRIVE = tuple(rows("joint", holds="numbers", shape=PER_SPEED))
_BODY_NUMBERS = tuple(rows("body", holds="numbers"))
_ROBOT_KEYS = ("remora", "name", "gravity", "dynamics", "bodies", "frames", "constraints")
_BODY_KEYS = ("name", *_BODY_NUMBERS, "joint", "geometry")
_JOINT_NUMBERS = ("axis", "axis2", "pitch", *_DRIVE)
_JOINT_KEYS = ("name", "kind", "parent", *_POSE, *_JOINT_NUMBERS, *_BOUNDS, "mimic")
_MIMIC_KEYS = tuple(rows("mimic"))
_GEOMETRY_KEYS = ("kind", "size", *_POSE, "color", "mesh")
_FRAME_KEYS = ("name", "body", *_POSE)
_END_KEYS = ("name", "kind", "parent", "child", "active")
_ENDS = tuple(f"{end}_{key}" for end in ("parent", "child") for key in _POSE)
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
    robot = _Map(check, read_tree(source, check), "robot", _ROBOT_KEYS)
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
        _read_body(builder, _Map(builder.check, node, f"bodies[{i}]", _BODY_KEYS, "body"), meshes)
    for i, node in enumerate(robot.items("frames")):
        frame = _Map(builder.check, node, f"frames[{i}]", _FRAME_KEYS, "frame")
        body = frame.reference("body")
        builder.frame(frame.name(), body, place=frame.place(), **frame.pose())
    for i, node in enumerate(robot.items("constraints")):
        _read_constraint(builder, node, f"constraints[{i}]")
    return builder


class _Map:
    """The entries of a map, read by key; each fault names the line of its key."""

    def __init__(
        self, check: Checker, node: YamlNode, element: str, known: tuple[str, ...], what: str = ""
    ) -> None:
        """Wrap `node`, reported as `element` until its own name as a `what` is known."""
        self.check = check
        self.element = element
        self._line = node.line
        self._entries = node.value if isinstance(node.value, dict) else {}
        if not isinstance(node.value, dict):
            reason = f"must be a map with the keys {', '.join(known)}, not {shown(node)}"
            check.fault(self.place(), reason)
        own = self._entries.get("name")
        if what and own is not None and isinstance(own.value, str):
            self.element = f"{what} {own.value[:60]!r}"
        for key in self._entries:
            if key not in known:
                reason = f"unknown key {key[:60]!r}; known: {', '.join(known)}"
                check.fault(self.place(key), reason)

    def place(self, key: str | None = None) -> Place:
        """Return the location of the map, or of one of its keys."""
        entry = self._entries.get(key) if key is not None else None
        return Place(self.element, self._line if entry is None else entry.line)

    def node(self, key: str) -> YamlNode | None:
        """Return the value of a key, or None if it is absent."""
        return self._entries.get(key)

    def items(self, key: str) -> list[YamlNode]:
        """Return the items of a list; empty if absent."""
        node = self.node(key)
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        self.check.fault(self.place(key), f"{key} must be a list, not {shown(node)}")
        return []

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text, or the default; without a default a missing text is a fault."""
        node = self.node(key)
        if node is None:
            if default is None:
                self.check.fault(self.place(), f"{key} is missing")
        elif not isinstance(node.value, str):
            reason = f"{key} must be text, not {shown(node)}; put it in quotes"
            self.check.fault(self.place(key), reason)
        elif len(node.value) > MAX_TEXT:
            self.check.fault(self.place(key), f"{key} is longer than {MAX_TEXT} characters")
        elif not node.value and default is None:
            self.check.fault(self.place(key), f"{key} is empty")
        else:
            return node.value
        return default or ""

    def name(self) -> str:
        """Return the name, or a placeholder (and a fault) so that other faults are found too."""
        return self.text("name") or self.element

    def reference(self, key: str) -> str | None:
        """Return the name of a body, or None for null: the inertial frame."""
        node = self.node(key)
        if node is None:
            reason = f"{key} is missing: name a body, or null for the inertial frame"
            self.check.fault(self.place(), reason)
        return None if node is None or node.value is None else self.text(key)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false, or the default."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node.value, bool):
            return node.value
        self.check.fault(self.place(key), f"{key} must be true or false, not {shown(node)}")
        return default

    def numbers(self, key: str, null: float | None = None) -> Any:
        """Return a number or nested lists of numbers; None if absent or faulty."""
        node = self.node(key)
        if node is None:
            return None
        numbers, wrong = _plain(node, null)
        if wrong is None:
            return numbers
        self.check.fault(self.place(key), f"{key} must be finite numbers, not {shown(wrong)}")
        return None

    def given(self, *keys: str) -> dict[str, Any]:
        """Return the numbers of those keys that are present."""
        found = {key: self.numbers(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def pose(self, prefix: str = "") -> dict[str, Any]:
        """Return the pose's keys; `placement` excludes `xyz` and `rpy`."""
        found = self.given(*(f"{prefix}{key}" for key in _POSE))
        placement = f"{prefix}placement"
        if placement in found and len(found) > 1:
            reason = f"gives a {placement} and {prefix}xyz or {prefix}rpy; one says it all"
            self.check.fault(self.place(placement), reason)
        return found


def _plain(node: YamlNode, null: float | None) -> tuple[Any, YamlNode | None]:
    """Return a node as nested lists of numbers, or the part that is not a finite number."""
    value = node.value
    if isinstance(value, list):
        numbers: list[Any] = []
        for item in value:
            number, wrong = _plain(item, null)
            if wrong is not None:
                return None, wrong
            numbers.append(number)
        return numbers, None
    if value is None and null is not None:
        return null, None
    if isinstance(value, float) and np.isfinite(value):
        return value, None
    return None, node


def _read_body(builder: Builder, body: _Map, meshes: Meshes) -> None:
    name = body.name()
    geometry: list[Geometry] = []
    for i, node in enumerate(body.items("geometry")):
        element = f"{body.element}, geometry[{i}]"
        entries = _Map(builder.check, node, element, _GEOMETRY_KEYS)
        shape = _read_geometry(builder, entries, meshes)
        if shape is not None:
            geometry.append(shape)
    numbers = body.given(*_BODY_NUMBERS)
    builder.body(name, geometry=geometry, place=body.place(), **numbers)
    node = body.node("joint")
    if node is not None:
        element = f"joint of body {name!r}"
        _read_joint(builder, _Map(builder.check, node, element, _JOINT_KEYS, "joint"), name)


def _read_joint(builder: Builder, joint: _Map, child: str) -> None:
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
    if kind in JOINT_TYPES and kind != "helical" and "pitch" in numbers:
        joint.check.fault(joint.place("pitch"), f"a {kind} joint has no pitch; a helical one has")
    mimic = None
    node = joint.node("mimic")
    if node is not None:
        follow = _Map(joint.check, node, f"{joint.element}, mimic", _MIMIC_KEYS)
        leader = follow.text("joint")
        factors = {"ratio": 1.0, "offset": 0.0, **follow.given("ratio", "offset")}
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


def _read_constraint(builder: Builder, node: YamlNode, element: str) -> None:
    entries = node.value if isinstance(node.value, dict) else {}
    told = entries.get("kind")
    kind = told.value if told is not None and isinstance(told.value, str) else ""
    numbers = _CONSTRAINT_NUMBERS.get(kind, _JOINT_TYPE_NUMBERS)
    known = kind in (ROD, GEAR) or kind in JOINT_TYPES
    keys = (*_END_KEYS, *numbers) if known else _ANY_CONSTRAINT_KEYS
    constraint = _Map(builder.check, node, element, keys, "constraint")
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
        builder.gear(name, leader, driven, **given)
        return
    parent, child = constraint.reference("parent"), constraint.reference("child")
    if kind == ROD and constraint.node("length") is None:
        constraint.check.fault(constraint.place(), "length is missing")
    elif kind == ROD and "length" in given:
        builder.rod(name, parent, child, **given)
    elif kind and kind != ROD:  # a missing kind is already a fault
        builder.constraint(name, kind, parent, child, **given)


def _read_geometry(builder: Builder, shape: _Map, meshes: Meshes) -> Geometry | None:
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


def _color(shape: _Map) -> tuple[float, float, float, float] | None:
    color = shape.numbers("color")
    if color is None:
        return None
    rgba = shape.check.numbers(shape.place("color"), "color", color, 4)
    if np.any((rgba < 0.0) | (rgba > 1.0)):
        reason = f"color must be red, green, blue, alpha from 0 to 1, not {rgba}"
        shape.check.fault(shape.place("color"), reason)
    r, g, b, a = (float(c) for c in rgba)
    return r, g, b, a


def _mesh(builder: Builder, shape: _Map, meshes: Meshes) -> str | None:
    name, place = shape.text("mesh"), shape.place("mesh")
    if not name:
        return None
    fault, warn = partial(shape.check.fault, place), partial(builder.warn, place)
    return meshes.named(name, f"mesh {name[:60]!r}", fault, warn)
