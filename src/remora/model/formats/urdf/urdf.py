"""The URDF reader: checks the XML text and converts it to builder calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from remora.algebra import pose, quaternion
from remora.algebra.array_ops import Array
from remora.errors import Fault, ModelError
from remora.model.building.builder import MAX_BODIES, Builder
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, parse, shown
from remora.model.formats.mesh_paths import Meshes
from remora.model.formats.urdf.urdf_loops import read_loop_joint
from remora.model.formats.urdf.urdf_text import EXTENSIONS, ElementReader, inside
from remora.model.numbers import frozen
from remora.model.robot import Geometry

Color: TypeAlias = tuple[float, float, float, float]

_KINDS = ("fixed", "revolute", "continuous", "prismatic", "floating", "planar")
#: Drake's name for the inertial frame, unless a link has this name.
_WORLD = "world"
#: A joint type that Bullet adds to URDF.
_BULLET = "spherical"
_WITH_AXIS = ("revolute", "continuous", "prismatic", "planar")
_ONE_SPEED = ("revolute", "continuous", "prismatic")
#: The solids, with the attributes that give their size and the number of values of each.
_SOLIDS = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}
_ZERO = (0.0, 0.0, 0.0)


def read_urdf(
    path: str | Path, mesh_root: str | Path | None = None, content: bytes | None = None
) -> Builder:
    """Read a URDF file into a builder, whose `build` validates the robot.

    Args:
        path: the file.
        mesh_root: the folder that must contain every mesh; default: the folder of the file.
        content: text to read instead of the file's: an expanded template.

    Raises:
        ModelError: if the file is not XML, not URDF, or too large. Faults of the robot are reported
            through the builder instead.
    """
    path = Path(path)
    root = parse(path, content)
    reason = _not_urdf(root) or _too_many(root)
    if reason:
        raise ModelError(str(path), [Fault(root.label, reason, root.line)])
    if template := next(_xacro(root), None):
        reason = f"is a xacro template; expand it first: xacro {path.name} > robot.urdf"
        raise ModelError(str(path), [Fault(template.label, reason, template.line)])
    builder = Builder(root.attributes.get("name") or path.stem, source=str(path))
    _Reader(builder, Meshes(path, mesh_root)).robot(root)
    return builder


def _not_urdf(root: Element) -> str | None:
    if root.tag == "robot":
        return None
    others = {"sdf": "this is SDF; name it .sdf", "mujoco": "this is MJCF; name it .xml"}
    return others.get(root.tag, "the root of a URDF file must be <robot>")


def _too_many(root: Element) -> str | None:
    tags = Counter(child.tag for child in root.children)
    tags["visual"] = sum(part.tag == "visual" for link in root.children for part in link.children)
    for tag in ("link", "joint", "loop_joint", "visual"):
        count = tags[tag]
        if count > MAX_BODIES:
            return f"has {count} {tag}s; {MAX_BODIES} are allowed"
    return None


def _xacro(element: Element) -> Iterator[Element]:
    """Yield xacro elements; expanded files may still declare its namespace."""
    if element.tag in EXTENSIONS:
        return
    if element.tag.startswith("xacro:") or any(
        mark in value for value in element.attributes.values() for mark in ("${", "$(")
    ):
        yield element
    for child in element.children:
        yield from _xacro(child)


class _Reader:
    """Traverses the elements of one file and calls the builder."""

    def __init__(self, builder: Builder, meshes: Meshes) -> None:
        self._builder = builder
        self._text = ElementReader(builder)
        self._meshes = meshes
        self._colors: dict[str, Color] = {}
        self._joint_names: frozenset[str] = frozenset()
        self._has_world = False

    def robot(self, root: Element) -> None:
        place = Place(root.label, root.line)
        self._text.parts(root, place)
        if not root.attributes.get("name"):
            self._text.warn(place, f"has no name; called {self._builder.name!r}")
        joints = (child for child in root.children if child.tag == "joint")
        self._joint_names = frozenset(joint.attributes.get("name", "") for joint in joints)
        links = (child for child in root.children if child.tag == "link")
        self._has_world = any(link.attributes.get("name") == _WORLD for link in links)
        loop = partial(read_loop_joint, self._text, self._builder, self._is_world)
        readers = {
            "material": self._shared,
            "link": self._link,
            "joint": self._joint,
            "loop_joint": loop,
        }
        for tag, read in readers.items():
            for child in root.children:
                if child.tag == tag:
                    read(child, Place(child.label, child.line))

    # Links -----------------------------------------------------------------------------------

    def _link(self, link: Element, place: Place) -> None:
        parts = self._text.parts(link, place)
        mass, com, inertia, frame = 0.0, _ZERO, np.zeros((3, 3)), None
        if inertial := parts.get("inertial"):
            mass, com, inertia, frame = self._inertial(inertial, inside(place, inertial))
            if mass == 0.0 and np.any(inertia):
                self._text.warn(place, "has inertia but no mass; both are kept as they are")
        visuals = [child for child in link.children if child.tag == "visual"]
        shapes = [self._shape(visual, inside(place, visual)) for visual in visuals]
        geometry = [shape for shape in shapes if shape is not None]
        name = self._text.name(link, "name", place)
        self._builder.body(name, mass, com, inertia, geometry, place, frame)

    def _inertial(
        self, inertial: Element, place: Place
    ) -> tuple[float, Sequence[float], Array, Array | None]:
        """Return mass, centre of mass, inertia in link axes, and the frame if it is rotated."""
        text, faults = self._text, self._text.faults
        parts = text.parts(inertial, place)
        com, rpy = self._origin(parts, place)
        mass, moments = 0.0, np.zeros((3, 3))
        if element := text.needed(parts, "mass", place):
            mass = text.number(element, "value", place)
        if element := text.needed(parts, "inertia", place):
            keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            xx, xy, xz, yy, yz, zz = (text.number(element, key, place) for key in keys)
            moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if text.faults > faults:  # an incomplete inertia must not be checked
            return mass, com, np.zeros((3, 3)), None
        frame = None
        if any(rpy):
            frame = pose.from_xyz_rpy(com, rpy)
            R = quaternion.to_matrix(quaternion.from_rpy(np.array(rpy)))
            moments = R @ moments @ R.T
            moments = 0.5 * (moments + moments.T)
        return mass, com, moments, frame

    def _shape(self, visual: Element, place: Place) -> Geometry | None:
        """Return a visual shape, or None with a warning if it is faulty."""
        with self._text.cosmetic("the shape is left out") as spoilt:
            shape = self._visual(visual, place)
        return None if spoilt() else shape

    def _visual(self, visual: Element, place: Place) -> Geometry | None:
        text = self._text
        parts = text.parts(visual, place)
        placement = frozen(pose.from_xyz_rpy(*self._origin(parts, place)))
        color = None
        if material := parts.get("material"):
            color = self._material(material, inside(place, material))
        geometry = text.needed(parts, "geometry", place)
        if geometry is None:
            return None
        shapes = text.parts(geometry, inside(place, geometry))
        if len(shapes) != 1:
            reason = f"must hold one of: {', '.join((*_SOLIDS, 'mesh'))}"
            text.fault(inside(place, geometry), reason)
            return None
        ((kind, shape),) = shapes.items()
        if kind == "mesh":
            scale = tuple(text.numbers(shape, "scale", place, 3, (1.0, 1.0, 1.0)))
            mesh = self._mesh(shape, inside(place, shape))
            return None if mesh is None else Geometry("mesh", scale, placement, color, mesh)
        keys = _SOLIDS[kind]
        size = tuple(x for key, count in keys for x in text.numbers(shape, key, place, count))
        if min(size) < 0.0:
            text.fault(inside(place, shape), f"has a negative size: {size}")
            return None
        return Geometry(kind, size, placement, color)

    def _mesh(self, shape: Element, place: Place) -> str | None:
        filename = shape.attributes.get("filename")
        if not filename:
            self._text.fault(place, "has no attribute filename")
            return None
        return self._meshes.named(
            filename,
            f'filename="{shown(filename)}"',
            partial(self._text.fault, place),
            partial(self._text.warn, place),
        )

    def _shared(self, material: Element, place: Place) -> None:
        """Read a material that links refer to by name."""
        with self._text.cosmetic("the material is left out"):
            self._material(material, place)

    def _material(self, material: Element, place: Place) -> Color | None:
        """Return a material's colour; one with name and colour can be referred to from then on."""
        parts = self._text.parts(material, place)
        name = material.attributes.get("name", "")
        if "color" not in parts:
            return self._colors.get(name)
        faults = self._text.faults
        r, g, b, a = self._text.numbers(parts["color"], "rgba", place, 4)
        if self._text.faults > faults:
            return None
        if not all(0.0 <= x <= 1.0 for x in (r, g, b, a)):
            self._text.warn(place, "has a colour outside 0 to 1; left out")
            return None
        return self._colors.setdefault(name, (r, g, b, a)) if name else (r, g, b, a)

    # Joints ----------------------------------------------------------------------------------

    def _joint(self, joint: Element, place: Place) -> None:
        text = self._text
        parts = text.parts(joint, place)
        kind = self._kind(joint, place)
        xyz, rpy = self._origin(parts, place)
        axis = (1.0, 0.0, 0.0)
        if element := parts.get("axis"):
            axis = text.numbers(element, "xyz", place, 3)
        ends: list[str] = []
        for role in ("parent", "child"):
            element = text.needed(parts, role, place)
            ends.append(text.name(element, "link", place) if element else "")
        parent, child = ends
        drive: dict[str, float] = {}
        if kind is not None:
            drive = self._limits(parts, kind, place) | self._dynamics(parts, kind, place)
        mimic = None
        if element := parts.get("mimic"):
            mimic = self._mimic(element, kind, place)
        if not parent or not child:
            return  # already reported; the builder would repeat it
        if parent == child:
            text.fault(place, f"parent and child are the same link {parent!r}")
        name = text.name(joint, "name", place)
        if kind is None:
            self._builder.kindless_joint(name, parent, child, place)
            return
        grounded = self._is_world(parent)
        if grounded:
            text.warn(place, f"there is no link {_WORLD!r}: taken for the inertial frame")
        self._builder.joint(
            name,
            kind,
            None if grounded else parent,
            child,
            xyz=xyz,
            rpy=rpy,
            axis=axis if kind in _WITH_AXIS else None,
            mimic=mimic,
            place=place,
            **drive,
        )

    def _is_world(self, link: str) -> bool:
        """Tell whether the name of a link means the inertial frame."""
        return link == _WORLD and not self._has_world

    def _mimic(
        self, mimic: Element, kind: str | None, place: Place
    ) -> tuple[str, float, float] | None:
        """Return the mimic relation of a joint, or None with a warning if it has no effect."""
        text, at = self._text, inside(place, mimic)
        leader = text.name(mimic, "joint", place)
        ratio = text.number(mimic, "multiplier", place, 1.0)
        offset = text.number(mimic, "offset", place, 0.0)
        if not leader:
            return None
        if kind == "fixed":
            text.warn(at, "has no effect on a fixed joint; ignored")
            return None
        if leader not in self._joint_names:
            reason = f"there is no joint {shown(leader)!r} to follow; this one moves by itself"
            self._builder.warn(at, reason, loud=True)
            return None
        return leader, ratio, offset

    def _kind(self, joint: Element, place: Place) -> str | None:
        """Return the type of a joint, or None if it is faulty."""
        kind = joint.attributes.get("type")
        if kind in _KINDS:
            return kind
        if kind == _BULLET:
            self._text.warn(place, f"the type {kind!r} is Bullet's, not URDF's; taken as such")
            return kind
        what = "has no type" if kind is None else f"unknown type {shown(kind)!r}"
        self._text.fault(place, f"{what}; allowed: {', '.join(_KINDS)}")
        return None

    def _limits(self, parts: dict[str, Element], kind: str, place: Place) -> dict[str, float]:
        """Return the limits in `<limit>` that apply to the joint type."""
        limit = parts.get("limit")
        if limit is None:
            return {}
        at, faults = inside(place, limit), self._text.faults
        given = {
            key: self._text.number(limit, key, place)
            for key in ("lower", "upper", "velocity", "effort")
            if key in limit.attributes
        }
        for key in ("velocity", "effort"):
            if given.get(key, 0.0) < 0.0:
                reason = f"{key} is negative: {given[key]:g}; leave out what is unlimited"
                self._text.fault(at, reason)
        if self._text.faults > faults:
            return {}
        if kind not in _ONE_SPEED:
            if kind != "fixed":
                self._text.warn(at, f"has no effect on a {kind} joint; ignored")
            return {}
        unlimited = kind == "continuous"
        if not unlimited and not {"lower", "upper"} & given.keys():
            self._text.warn(at, "gives neither lower nor upper; taken as unlimited")
            unlimited = True
        if unlimited:
            return {key: x for key, x in given.items() if key in ("velocity", "effort")}
        bounds = {"lower": 0.0, "upper": 0.0} | given
        if bounds["lower"] > bounds["upper"]:
            low, high = bounds.pop("lower"), bounds.pop("upper")
            self._text.warn(at, f"lower {low:g} is above upper {high:g}; taken as unlimited")
        return bounds

    def _dynamics(self, parts: dict[str, Element], kind: str, place: Place) -> dict[str, float]:
        """Return damping and friction if the joint has exactly one speed."""
        dynamics = parts.get("dynamics")
        if dynamics is None:
            return {}
        keys = ("damping", "friction")
        given = {key: self._text.number(dynamics, key, place, 0.0) for key in keys}
        if kind in _ONE_SPEED:
            return given
        if kind != "fixed" and any(given.values()):
            self._text.warn(inside(place, dynamics), f"has no effect on a {kind} joint; ignored")
        return {}

    def _origin(
        self, parts: dict[str, Element], place: Place
    ) -> tuple[Sequence[float], Sequence[float]]:
        origin = parts.get("origin")
        if origin is None:
            return _ZERO, _ZERO
        xyz = self._text.numbers(origin, "xyz", place, 3, _ZERO)
        return xyz, self._text.numbers(origin, "rpy", place, 3, _ZERO)
