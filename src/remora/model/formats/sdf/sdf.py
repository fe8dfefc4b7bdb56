"""The SDF reader: the models of a file become builder calls.

Differences from URDF:

- Poses are relative to any named frame; joints name frames as their parent and child
  (`sdf_frames`).
- A joint may be away from the origin of its child. Remora's body frame is at the joint, so it is
  moved there; the link's own frame is kept as the frame `<link>_sdf`.
- A file may have several models. A model not fixed to the world is free, with its pose from the
  file; a static model is fixed.
- A world has gravity (by default 9.8 m/s² downwards); a model alone does not specify it.
- A joint whose child already hangs on another joint closes a loop and becomes a constraint, without
  limits, damping, friction and springs. Sensors, plugins and physics engines are ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from remora.algebra import dual_quaternion, pose, quaternion
from remora.algebra.array_ops import Array
from remora.errors import Fault, ModelError
from remora.model.building.builder import Builder
from remora.model.building.validate import Place
from remora.model.formats.bounded_xml import Element, parse, shown
from remora.model.formats.sdf.sdf_frames import FrameError, Scope
from remora.model.formats.sdf.sdf_joints import axis_of, drive_of, kind_of, mimic_of, pitch_of
from remora.model.formats.sdf.sdf_links import inertial_of, moved_shapes, shapes_of
from remora.model.formats.sdf.sdf_models import (
    Models,
    ScopedElement,
    joint_end,
    joint_frame,
    sdf_minor,
)
from remora.model.formats.sdf.sdf_text import SdfText

#: SDF's default gravity of a world, m/s².
_GRAVITY = (0.0, 0.0, -9.8)
#: Supported versions 1.n.
_OLDEST, _NEWEST = 4, 12
#: Tolerance of poses: rounding.
_ROUNDING = 1e-13


def read_sdf(path: str | Path, mesh_root: str | Path | None = None) -> Builder:
    """Read an SDF file into a builder, whose `build` validates the robot.

    Args:
        path: the file.
        mesh_root: the folder that must contain every mesh and included file; default: the nearest
            parent folder that is a package or model, or that of the file.

    Raises:
        ModelError: if the file is not XML, not SDF, or too large. Faults of the robot are reported
            through the builder instead.
    """
    path = Path(path)
    root = parse(path)
    minor = sdf_minor(root)
    reason = None
    if root.tag != "sdf":
        hint = {"robot": "; name it .urdf", "mujoco": "; name it .xml"}.get(root.tag, "")
        reason = f"the root of an SDF file must be <sdf>{hint}"
    elif minor is None or minor < _OLDEST:
        version = shown(root.attributes.get("version", ""))
        reason = f"version {version!r} is not known; 1.{_OLDEST} to 1.{_NEWEST} are"
    if reason is not None or minor is None:
        raise ModelError(str(path), [Fault(root.label, reason or "", root.line)])
    worlds = [child for child in root.children if child.tag == "world"]
    top = worlds[0] if worlds else root
    named = top if worlds else next((c for c in root.children if c.tag == "model"), root)
    builder = Builder(named.attributes.get("name") or path.stem, source=str(path))
    text = SdfText(builder)
    if len(worlds) > 1:
        text.fault(text.at(worlds[1]), "a file may hold one world")
    if minor > _NEWEST:
        text.warn(text.at(root), f"version 1.{minor} is newer than 1.{_NEWEST}, the newest known")
    models = Models(text, mesh_root)
    scope = models.read(path, top, minor)
    if worlds:
        at = text.at(top)
        builder.gravity(text.values(top, "gravity", at, 3, _GRAVITY))
    _Converter(builder, text, scope, models).convert()
    return builder


class _Converter:
    """Converts links, joints and frames into builder calls."""

    def __init__(self, builder: Builder, text: SdfText, world: Scope, models: Models) -> None:
        self._builder, self._text, self._world, self._models = builder, text, world, models
        #: By body: pose of its link in the world, and of its joint in its link.
        self._at: dict[str, Array] = {}
        self._moved: dict[str, Array] = {}

    def convert(self) -> None:
        """Call the builder."""
        here = dual_quaternion.identity()
        statics: list[str] = []
        for link in self._models.links:
            body = link.scope.prefix + link.name
            self._at[body] = self._pose(link.scope, link.name, link.place)
            self._moved[body] = here
            if link.static:
                statics.append(body)
        carried: dict[str, str] = dict.fromkeys(statics, "world")
        joints = [j for j in self._models.joints if not j.static]
        ends = [self._ends(joint, carried) for joint in joints]
        for link in self._models.links:
            self._link(link)
        for body in statics:
            place = Place(f"static link {body!r}")
            self._builder.joint(
                f"{body}_fixed", "fixed", None, body, placement=self._at[body], place=place
            )
        for joint, found in zip(joints, ends, strict=True):
            if found is not None:
                self._joint(joint, *found)
        self._roots([body for body in self._at if body not in carried])
        for frame in self._models.frames:
            self._frame(frame)

    def _ends(
        self, joint: ScopedElement, carried: dict[str, str]
    ) -> tuple[str | None, str, Array, bool] | None:
        """Return parent, child, pose and whether a joint closes a loop; None if it is faulty."""
        text, place = self._text, joint.place
        names = {role: joint_end(text, joint, role) for role in ("parent", "child")}
        for role, name in names.items():
            if not name:
                text.fault(place, f"has no <{role}>")
        if not all(names.values()):
            return None
        try:
            parent, child = joint.scope.link(names["parent"]), joint.scope.link(names["child"])
            x = None if child is None else joint.scope.world_pose(joint_frame(joint))
        except FrameError as error:
            text.fault(place, str(error))
            return None
        unknown = [name for name in (parent, child) if name is not None and name not in self._at]
        if unknown:
            text.fault(place, f"there is no link {unknown[0]!r}")
        elif child is None or x is None:
            text.fault(place, "its child is the world; swap parent and child")
        elif parent == child:
            text.fault(place, f"parent and child are the same link {child!r}")
        elif child in carried:
            return parent, child, x, True
        else:
            carried[child] = joint.name
            if joint.element.attributes.get("type") not in ("fixed", None):
                moved = dual_quaternion.mul(dual_quaternion.conjugate(self._at[child]), x)
                same = np.max(np.abs(moved - dual_quaternion.identity())) <= _ROUNDING
                self._moved[child] = dual_quaternion.identity() if same else moved
            return parent, child, x, False
        return None

    def _link(self, link: ScopedElement) -> None:
        text, element, place = self._text, link.element, link.place
        body = link.scope.prefix + link.name
        mass, com, inertia = inertial_of(text, element, place)
        shapes = shapes_of(text, element, link.meshes, place)
        back = dual_quaternion.conjugate(self._moved[body])
        if link.static:
            mass, inertia = 0.0, np.zeros((3, 3))
        if text.word(element, "gravity", place).lower() in ("false", "0"):
            text.warn(place, "its gravity is switched off, which is left out")
        if not np.array_equal(back, dual_quaternion.identity()):
            R = pose.to_rotation_matrix(back)
            com, inertia = pose.transform_point(back, com), R @ inertia @ R.T
            inertia = 0.5 * (inertia + inertia.T)
            self._builder.frame(f"{body}_sdf", body, placement=back, place=place)
        self._builder.body(body, mass, com, inertia, moved_shapes(shapes, back), place)

    def _joint(
        self, joint: ScopedElement, parent: str | None, child: str, x: Array, closes: bool
    ) -> None:
        text, element, place = self._text, joint.element, joint.place
        name = joint.scope.prefix + joint.name
        on = dual_quaternion.identity() if parent is None else self._body_pose(parent)
        known = kind_of(text, element, place)
        if known is None:
            if not closes:
                self._builder.kindless_joint(name, parent, child, place)
            return
        kind, count = known
        at = self._at[child] if kind == "fixed" else x
        placement = dual_quaternion.mul(dual_quaternion.conjugate(on), at)
        tags = ("axis", "axis2")[:count]
        axes = [a for tag in tags if (a := text.child(element, tag, place)) is not None]
        if len(axes) < count:
            text.fault(place, f"has no <{tags[len(axes)]}>")
            if not closes:
                self._builder.kindless_joint(name, parent, child, place)
            return
        vectors = {tag: self._axis(joint, a, x) for tag, a in zip(tags, axes, strict=True)}
        pitch = pitch_of(text, element, place) if kind == "helical" else 0.0
        drive = drive_of(text, axes, place, kind)
        if closes:
            self._constraint(place, name, kind, parent, child, x, pitch, vectors, drive)
            return
        mimic = mimic_of(text, axes[0], place) if count == 1 else None
        if mimic is not None:
            mimic = (joint.scope.prefix + mimic[0], *mimic[1:])
        self._builder.joint(
            name,
            kind,
            parent,
            child,
            placement=placement,
            mimic=mimic,
            pitch=pitch,
            place=place,
            **vectors,
            **drive,
        )

    def _constraint(
        self,
        place: Place,
        name: str,
        kind: str,
        parent: str | None,
        child: str,
        x: Array,
        pitch: float,
        vectors: dict[str, Any],
        drive: dict[str, Any],
    ) -> None:
        """Add a joint that closes a loop; both its frames are at x in the file's configuration."""
        moot = [key for key, value in drive.items() if np.any((value != 0.0) & np.isfinite(value))]
        if moot:
            self._text.warn(place, f"closes a loop: its {', '.join(moot)} are left out")
        ends: dict[str, Any] = {}
        for role, body in (("parent", parent), ("child", child)):
            on = dual_quaternion.identity() if body is None else self._body_pose(body)
            ends[f"{role}_placement"] = dual_quaternion.mul(dual_quaternion.conjugate(on), x)
        self._builder.constraint(
            name, kind, parent, child, pitch=pitch, place=place, **ends, **vectors
        )

    def _axis(self, joint: ScopedElement, axis: Element, x: Array) -> Array:
        """Return an axis in the joint's frame."""
        xyz, frame = axis_of(self._text, axis, joint.place, joint.minor)
        if frame is None:
            return xyz
        other = self._pose(joint.scope, frame, joint.place)
        turn = quaternion.mul(quaternion.conjugate(x[:4]), other[:4])
        return quaternion.rotate(turn, xyz)

    def _roots(self, roots: list[str]) -> None:
        """Add free joints for bodies without a joint, with their poses from the file."""
        if len(roots) == 1:
            x = self._at[roots[0]]
            if not np.array_equal(x, dual_quaternion.identity()):
                self._builder.root_placement = x
            return
        for body in roots:
            place = Place(f"base of {body!r}")
            self._builder.joint(
                f"{body}_base", "free", None, body, placement=self._at[body], place=place
            )

    def _frame(self, frame: ScopedElement) -> None:
        try:
            body = frame.scope.link(frame.name)
            x = frame.scope.world_pose(frame.name)
        except FrameError as error:
            self._text.fault(frame.place, str(error))
            return
        if body is not None and body not in self._at:
            self._text.fault(frame.place, f"there is no link {body!r}")
            return
        if body is not None:
            x = dual_quaternion.mul(dual_quaternion.conjugate(self._body_pose(body)), x)
        name = frame.scope.prefix + frame.name
        self._builder.frame(name, body, placement=x, place=frame.place)

    def _body_pose(self, body: str) -> Array:
        return dual_quaternion.mul(self._at[body], self._moved[body])

    def _pose(self, scope: Scope, name: str, place: Place) -> Array:
        try:
            return scope.world_pose(name)
        except FrameError as error:
            self._text.fault(place, str(error))
            return dual_quaternion.identity()
