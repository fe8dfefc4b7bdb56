"""Remora's own robot files: YAML for all that other formats cannot say, read and written.

A file is a list of bodies, each with the joint that carries it, and a list of frames:

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

A body without `joint` is the root, carried by whatever base the loading asks for. A pose is
`xyz` and `rpy`, or `placement`: the 8 numbers of a unit dual quaternion. What `save` writes loads
again bit for bit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import pose
from remora.algebra.namespace import Array
from remora.model.build import Builder
from remora.model.joints import JOINTS
from remora.model.robot import Geometry
from remora.model.validate import Checker, Place, frozen
from remora.model.yaml_tree import Node, read_tree, shown
from remora.model.yaml_write import FORMAT, dumps, save

__all__ = ["dumps", "read_yaml", "save"]

#: The kinds of geometry and how many numbers their sizes have.
SHAPES = {"box": 3, "cylinder": 2, "sphere": 1, "capsule": 2, "ellipsoid": 3, "mesh": 3}

#: The longest name or path.
MAX_TEXT = 1000

_POSE = ("placement", "xyz", "rpy")
_BOUNDS = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}
_DRIVE = ("damping", "friction", "rotor_inertia")
_ROBOT_KEYS = ("remora", "name", "gravity", "bodies", "frames")
_BODY_KEYS = ("name", "mass", "com", "inertia", "joint", "geometry")
_JOINT_NUMBERS = ("axis", "axis2", "pitch", *_DRIVE)
_JOINT_KEYS = ("name", "kind", "parent", *_POSE, *_JOINT_NUMBERS, *_BOUNDS, "mimic")
_MIMIC_KEYS = ("joint", "ratio", "offset")
_GEOMETRY_KEYS = ("kind", "size", *_POSE, "color", "mesh")
_FRAME_KEYS = ("name", "body", *_POSE)


def read_yaml(path: str | os.PathLike[str]) -> Builder:
    """Return the builder that a Remora YAML file describes.

    Faults are collected in the builder, whose `build` reports them all; a text that is no YAML
    at all is reported at once.

    Raises:
        ModelError: where the file cannot be read or parsed.
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
    folder = Path(source).parent
    for i, node in enumerate(robot.items("bodies")):
        _read_body(builder, _Map(builder.check, node, f"bodies[{i}]", _BODY_KEYS, "body"), folder)
    for i, node in enumerate(robot.items("frames")):
        frame = _Map(builder.check, node, f"frames[{i}]", _FRAME_KEYS, "frame")
        body = frame.reference("body")
        builder.frame(frame.name(), body, place=frame.place(), **frame.pose())
    return builder


class _Map:
    """The entries of a map, taken one by one; each fault names the line of its key."""

    def __init__(
        self, check: Checker, node: Node, element: str, known: tuple[str, ...], what: str = ""
    ) -> None:
        """Take `node`, called `element` until it gives its name as a `what`."""
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
        """Return where the map, or one of its keys, stands."""
        entry = self._entries.get(key) if key is not None else None
        return Place(self.element, self._line if entry is None else entry.line)

    def node(self, key: str) -> Node | None:
        """Return what the key holds, or None where it is absent."""
        return self._entries.get(key)

    def items(self, key: str) -> list[Node]:
        """Return the items of a list, which may be absent."""
        node = self.node(key)
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        self.check.fault(self.place(key), f"{key} must be a list, not {shown(node)}")
        return []

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; the default where it is absent, a fault where there is no default."""
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
        """Return the name, or a stand-in (and a fault) so that other faults can be found."""
        return self.text("name") or self.element

    def reference(self, key: str) -> str | None:
        """Return the name of a body, None for null: the inertial frame."""
        node = self.node(key)
        if node is None:
            reason = f"{key} is missing: name a body, or null for the inertial frame"
            self.check.fault(self.place(), reason)
        return None if node is None or node.value is None else self.text(key)

    def numbers(self, key: str, null: float | None = None) -> Any:
        """Return a number or nested lists of numbers, None where absent or at fault."""
        node = self.node(key)
        if node is None:
            return None
        numbers, wrong = _plain(node, null)
        if wrong is None:
            return numbers
        self.check.fault(self.place(key), f"{key} must be finite numbers, not {shown(wrong)}")
        return None

    def given(self, *keys: str) -> dict[str, Any]:
        """Return those of the keys that hold numbers."""
        found = {key: self.numbers(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def pose(self) -> dict[str, Any]:
        """Return the pose's keys; `placement` excludes `xyz` and `rpy`."""
        found = self.given(*_POSE)
        if "placement" in found and len(found) > 1:
            reason = "gives a placement and xyz or rpy; one says it all"
            self.check.fault(self.place("placement"), reason)
        return found


def _plain(node: Node, null: float | None) -> tuple[Any, Node | None]:
    """Return a node as numbers in lists, or the part of it that is no finite number."""
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


def _read_body(builder: Builder, body: _Map, folder: Path) -> None:
    name = body.name()
    geometry: list[Geometry] = []
    for i, node in enumerate(body.items("geometry")):
        element = f"{body.element}, geometry[{i}]"
        shape = _read_geometry(_Map(builder.check, node, element, _GEOMETRY_KEYS), folder)
        if shape is not None:
            geometry.append(shape)
    numbers = body.given("mass", "com", "inertia")
    builder.body(name, geometry=geometry, place=body.place(), **numbers)
    node = body.node("joint")
    if node is not None:
        element = f"joint of body {name!r}"
        _read_joint(builder, _Map(builder.check, node, element, _JOINT_KEYS, "joint"), name)


def _read_joint(builder: Builder, joint: _Map, child: str) -> None:
    kind = joint.text("kind") or "fixed"
    numbers = joint.given(*_JOINT_NUMBERS)
    for key, unlimited in _BOUNDS.items():
        bound = joint.numbers(key, null=unlimited)
        if bound is not None:
            numbers[key] = bound
    if kind in JOINTS and kind != "helical" and "pitch" in numbers:
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


def _read_geometry(shape: _Map, folder: Path) -> Geometry | None:
    """Return the shape, or None where it is at fault."""
    before = len(shape.check.faults)
    kind = shape.text("kind")
    if kind and kind not in SHAPES:
        known = ", ".join(SHAPES)
        shape.check.fault(shape.place("kind"), f"unknown kind {kind[:60]!r}; known: {known}")
    size = _lengths(shape, kind)
    color = _color(shape)
    placement = _shape_pose(shape)
    mesh = _mesh(shape, folder) if kind == "mesh" else None
    if kind != "mesh" and shape.node("mesh") is not None:
        shape.check.fault(shape.place("mesh"), f"is for the kind mesh, not for {kind[:60]!r}")
    if len(shape.check.faults) > before:
        return None
    return Geometry(kind, size, placement, color, mesh)


def _lengths(shape: _Map, kind: str) -> tuple[float, ...]:
    """Return the sizes; a single number may stand without a list, a mesh's scale is 1 if absent."""
    place, size = shape.place("size"), shape.numbers("size")
    if shape.node("size") is None:
        if kind != "mesh":
            shape.check.fault(place, "size is missing")
        return (1.0, 1.0, 1.0)
    if size is None or kind not in SHAPES:
        return ()
    size = [size] if isinstance(size, float) else size
    lengths = shape.check.numbers(place, f"size of a {kind}", size, SHAPES[kind])
    # A mesh may be mirrored by a negative scale; a length may not be negative.
    if kind != "mesh" and np.any(lengths < 0.0):
        shape.check.fault(place, f"size is negative: {lengths}")
    return tuple(float(length) for length in lengths)


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


def _shape_pose(shape: _Map) -> Array:
    place, given = shape.place(), shape.pose()
    if "placement" in given:
        return shape.check.placement(place, given["placement"])
    xyz, rpy = (
        shape.check.numbers(place, key, given.get(key, (0.0, 0.0, 0.0)), 3) for key in _POSE[1:]
    )
    return frozen(pose.from_xyz_rpy(xyz, rpy))


def _mesh(shape: _Map, folder: Path) -> str | None:
    """Return the mesh's absolute path; it must lie below the file's folder, links resolved."""
    text = shape.text("mesh")
    try:
        root = folder.resolve()
        target = (root / text).resolve()
    except (OSError, ValueError, RuntimeError):
        shape.check.fault(shape.place("mesh"), f"is not a path: {text[:60]!r}")
        return None
    if not target.is_relative_to(root):
        reason = f"the mesh {text[:60]!r} is outside the folder of the file"
        shape.check.fault(shape.place("mesh"), reason)
    return str(target)
